"""The collection of methods: by name, as a table, and from a plan."""

from __future__ import annotations

import importlib
import textwrap
from collections.abc import Iterator, Mapping
from typing import Any

from saddleslide.certificates.foresight import possible_claim
from saddleslide.errors import InputError, raise_all
from saddleslide.facts.facts import Facts
from saddleslide.methods.base import Method
from saddleslide.theory.plan import ADAPTIVE_SLIDING, RECURSIVE_SLIDING, RESTARTED_PRIMAL_DUAL, Plan

# Where each method is: a module of its own, loaded when it is asked for.
HOMES = {
    "mirror-prox": ("mirror_prox", "MirrorProx"),
    "pdhg": ("pdhg", "PDHG"),
    "condat-vu": ("condat_vu", "CondatVu"),
    "admm": ("admm", "ADMM"),
    "opapc": ("opapc", "OPAPC"),
    "l-bfgs": ("lbfgs", "LBFGS"),
    "interior-point": ("interior_point", "InteriorPoint"),
    "krylov": ("krylov", "Krylov"),
    "bundle": ("bundle", "Bundle"),
    "apdg": ("apdg", "APDG"),
    "gradient-sliding": ("gradient_sliding", "GradientSliding"),
    "uapd": ("uapd", "UAPD"),
    "universal-primal-dual": ("universal_primal_dual", "UniversalPrimalDual"),
    "accelerated-mirror-prox": ("accelerated_mirror_prox", "AcceleratedMirrorProx"),
    "mirror-prox-sliding": ("mirror_prox_sliding", "MirrorProxSliding"),
    "universal-mirror-prox": ("universal_mirror_prox", "UniversalMirrorProx"),
    "recursive-sliding": ("recursive_sliding", "RecursiveSliding"),
    "proved-sliding": ("proved_sliding", "ProvedSliding"),
    "parameter-free-sliding": ("parameter_free_sliding", "ParameterFreeSliding"),
    "two-level-sliding": ("recursive_sliding", "TwoLevelSliding"),
    "lockstep": ("recursive_sliding", "Lockstep"),
    "accelerated-gradient": ("accelerated_gradient", "AcceleratedGradient"),
    "universal-gradient": ("universal_gradient", "UniversalGradient"),
}
# Those that are made of a plan and have no name in `ss.methods`.
PLANNED = {
    ADAPTIVE_SLIDING: ("adaptive_sliding", "AdaptiveSliding"),
    RECURSIVE_SLIDING: ("recursive_sliding", "ScheduledSliding"),
    RESTARTED_PRIMAL_DUAL: ("restarted_primal_dual", "RestartedPrimalDual"),
}


def _load(module: str, kind: str) -> Any:
    return getattr(importlib.import_module(f"saddleslide.methods.{module}"), kind)


def load_all() -> None:
    """Load every method, and with it the states that a file may name."""
    for home in (*HOMES.values(), *PLANNED.values()):
        _load(*home)


class Methods(Mapping[str, type[Method]]):
    """All methods by name; prints as a table of what each needs, promises and comes from.

    Examples
    --------
    >>> import saddleslide as ss
    >>> ss.methods.by_name["mirror-prox"].description.reference[:10]
    'Nemirovski'
    """

    def __getitem__(self, name: str) -> type[Method]:
        if not isinstance(name, str) or name not in HOMES:
            raise InputError(f"method: {name!r} is unknown; expected auto, adaptive or one of {', '.join(self)}.")
        found: type[Method] = _load(*HOMES[name])
        return found

    def __contains__(self, name: object) -> bool:
        return name in HOMES

    def __iter__(self) -> Iterator[str]:
        return iter(HOMES)

    def __len__(self) -> int:
        return len(HOMES)

    def __repr__(self) -> str:
        lines = []
        for name, member in self.items():
            lines.append(name)
            for title, text in zip(("needs", "promises", "from"), _about(member), strict=True):
                lines += textwrap.wrap(text, 100, initial_indent=f"  {title:<9}", subsequent_indent=" " * 11)
        return "\n".join(lines)

    def markdown(self) -> str:
        """The table of docs/methods.md: one row a method.

        Examples
        --------
        >>> import saddleslide as ss
        >>> ss.methods.by_name.markdown().splitlines()[0]
        '| method | needs | guarantee | from |'
        """
        rows = ["| method | needs | guarantee | from |", "|---|---|---|---|"]
        for name, member in self.items():
            cells = [cell.replace("|", "\\|") for cell in (f"`{name}`", *_about(member))]
            rows.append(f"| {' | '.join(cells)} |")
        return "\n".join(rows)


def _about(member: type[Method]) -> tuple[str, str, str]:
    about = member.description
    return ", ".join(about.needs) or "gradients", about.guarantee, about.reference


by_name = Methods()


def find_method(name: str, options: Mapping[str, Any] | None = None) -> Method:
    """The method of a name with these settings; one error with all that is wrong with them."""
    member, given = by_name[name], dict(options or {})
    known = {option.name: option for option in member.options()}
    unknown = sorted(set(given) - set(known), key=str)
    complaints = [f"option {entry!r} is unknown; expected one of {sorted(known)}." for entry in unknown]
    complaints += [note for key, option in known.items() if key in given and (note := option.complaint(given[key]))]
    raise_all(name, complaints)
    return member(**given)


def as_method(method: str | Method, options: Mapping[str, Any] | None, caller: str) -> str | Method:
    """A method given as a value or by its name, with its settings; "auto" and "adaptive" stay what they are."""
    given = options is not None
    if given and not isinstance(options, Mapping):
        raise InputError(f"{caller}: options is {options!r}; expected a mapping such as {{'output': 'last'}}.")
    if isinstance(method, Method):
        raise_all(
            caller, [f"options is {options!r} beside {method!r}, which has its own; expected one of them."] * given
        )
        return method
    if isinstance(method, type) and issubclass(method, Method):
        raise InputError(f"{caller}: method is the class {method.__name__}; expected an instance, {method.__name__}().")
    if not isinstance(method, str):
        raise InputError(
            f"{caller}: method is {method!r}; expected 'auto', 'adaptive', a name in ss.methods or one of its methods."
        )
    if method in ("auto", "adaptive"):
        raise_all(caller, ["options is given; expected a named method with it."] * given)
        return method
    return find_method(method, options)


def method_of(plan: Plan) -> Method:
    """The method that a plan asks for, at its beginning; those that `ss.methods` does not list are made of the plan."""
    if isinstance(plan.own, Method):
        return plan.own
    if plan.method in PLANNED:
        made: Method = _load(*PLANNED[plan.method]).of(plan)
        return made
    return find_method(plan.method, plan.settings)


def method_plan(facts: Facts, method: Method, every: int | None = None) -> Plan:
    """The plan of a run with one method, after one error with all that it lacks on this problem."""
    problem, name = facts.problem, method.description.name
    silent = [part for part, function in (("f", problem.f), ("g", problem.g)) if not function.has_value]
    complaints = [f"{part} has no value, so no gap can be certified; pass value=." for part in silent]
    raise_all(f"method {name!r} can not run on this problem", complaints + method.lacks(facts))
    own = None if name in by_name and by_name[name] is type(method) else method
    settings, shapes = method.settings(), (problem.X.shape, problem.Y.shape)
    claim = possible_claim(problem)
    return Plan(method=name, settings=settings, own=own, every=every, tol=0.0, shapes=shapes, certificate=claim)
