"""The collection of methods: by name, as a table, and from a plan."""

from __future__ import annotations

import importlib
import textwrap
from collections.abc import Iterator, Mapping
from typing import Any

from saddleslide.errors import InputError, raise_all
from saddleslide.facts.facts import Facts
from saddleslide.methods.base import Method
from saddleslide.methods.restarted_primal_dual import RestartedPrimalDual
from saddleslide.theory.plan import ADAPTIVE_SLIDING, RECURSIVE_SLIDING, RESTARTED_PRIMAL_DUAL, Plan

# Where each method is: a module of its own, loaded when it is asked for.
HOMES = {
    "mirror-prox": ("mirror_prox", "MirrorProx"),
    "pdhg": ("pdhg", "PDHG"),
    "condat-vu": ("condat_vu", "CondatVu"),
    "admm": ("admm", "ADMM"),
    "opapc": ("opapc", "OPAPC"),
    "l-bfgs": ("lbfgs", "LBFGS"),
    "apdg": ("apdg", "APDG"),
    "gradient-sliding": ("gradient_sliding", "GradientSliding"),
    "universal-primal-dual": ("universal_primal_dual", "UniversalPrimalDual"),
    "accelerated-mirror-prox": ("accelerated_mirror_prox", "AcceleratedMirrorProx"),
    "mirror-prox-sliding": ("mirror_prox_sliding", "MirrorProxSliding"),
    "universal-mirror-prox": ("universal_mirror_prox", "UniversalMirrorProx"),
    "recursive-sliding": ("recursive_sliding", "RecursiveSliding"),
    "proved-sliding": ("proved_sliding", "ProvedSliding"),
    "two-level-sliding": ("recursive_sliding", "TwoLevelSliding"),
    "lockstep": ("recursive_sliding", "Lockstep"),
    "accelerated-gradient": ("accelerated_gradient", "AcceleratedGradient"),
    "universal-gradient": ("universal_gradient", "UniversalGradient"),
}


class Methods(Mapping[str, type[Method]]):
    """All methods by name; prints as a table of what each needs, promises and comes from.

    Examples
    --------
    >>> import saddleslide as ss
    >>> "mirror-prox" in ss.methods.by_name
    True
    >>> ss.methods.by_name["mirror-prox"].description.reference[:10]
    'Nemirovski'
    """

    def __getitem__(self, name: str) -> type[Method]:
        if not isinstance(name, str) or name not in HOMES:
            raise InputError(f"method: {name!r} is unknown; expected one of {', '.join(self)}.")
        module, kind = HOMES[name]
        found: type[Method] = getattr(importlib.import_module(f"saddleslide.methods.{module}"), kind)
        return found

    def __contains__(self, name: object) -> bool:
        return name in HOMES

    def __iter__(self) -> Iterator[str]:
        return iter(HOMES)

    def __len__(self) -> int:
        return len(HOMES)

    def __repr__(self) -> str:
        return "\n".join(_block(member) for member in self.values())

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
            about = member.description
            cells = (f"`{name}`", _needs(member), about.guarantee, about.reference)
            rows.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
        return "\n".join(rows)


def _needs(member: type[Method]) -> str:
    return ", ".join(member.description.needs) or "gradients"


def _block(member: type[Method]) -> str:
    about = member.description
    rows = (("needs", _needs(member)), ("promises", about.guarantee), ("from", about.reference))
    lines = [about.name]
    for title, text in rows:
        lines += textwrap.wrap(text, 100, initial_indent=f"  {title:<9}", subsequent_indent=" " * 11)
    return "\n".join(lines)


by_name = Methods()


def named_method(name: str, options: Mapping[str, Any] | None = None) -> Method:
    """The method of a name with these settings; one error with all that is wrong with them."""
    member, given = by_name[name], dict(options or {})
    known = {option.name: option for option in member.options()}
    unknown = sorted(set(given) - set(known), key=str)
    complaints = [f"option {entry!r} is unknown; expected one of {sorted(known)}." for entry in unknown]
    wrong = [note for entry, option in known.items() if entry in given and (note := option.complaint(given[entry]))]
    raise_all(name, complaints + wrong)
    return member(**given)


def as_method(method: str | Method, options: Mapping[str, Any] | None, caller: str) -> str | Method:
    """A method given as a value or by its name, with its settings; "auto" and "adaptive" stay what they are."""
    given = options is not None
    if given and not isinstance(options, Mapping):
        raise InputError(f"{caller}: options is {options!r}; expected a mapping such as {{'output': 'last'}}.")
    if isinstance(method, Method):
        complaint = f"options is {options!r} beside {method!r}, which has its own; expected one of them."
        raise_all(caller, [complaint] * given)
        return method
    if not isinstance(method, str):
        raise InputError(
            f"{caller}: method is {method!r}; expected 'auto', 'adaptive', a name in ss.methods or one of its methods."
        )
    if method in ("auto", "adaptive"):
        raise_all(caller, ["options is given; expected a named method with it."] * given)
        return method
    return named_method(method, options)


# Methods that plans name and `ss.methods` does not list: each is made of its plan.
_BY_PLAN = {
    ADAPTIVE_SLIDING: ("adaptive_sliding", "AdaptiveSliding"),
    RECURSIVE_SLIDING: ("recursive_sliding", "ScheduledSliding"),
}


def method_of(plan: Plan) -> Method:
    """The method that a plan asks for, at its beginning."""
    if plan.own is not None:
        own: Method = plan.own
        return own
    if plan.method in _BY_PLAN:
        module, kind = _BY_PLAN[plan.method]
        made: Method = getattr(importlib.import_module(f"saddleslide.methods.{module}"), kind).of(plan)
        return made
    if plan.method == RESTARTED_PRIMAL_DUAL:
        return RestartedPrimalDual()
    return named_method(plan.method, plan.settings)


def method_plan(facts: Facts, method: Method, tol: float = 0.0, rtol: float = 0.0, every: int | None = None) -> Plan:
    """The plan of a run with one method, after one error with all that it lacks on this problem."""
    problem, name = facts.problem, method.description.name
    silent = [part for part, function in (("f", problem.f), ("g", problem.g)) if not function.has_value]
    complaints = [f"{part} has no value, so no gap can be certified; pass value=." for part in silent]
    raise_all(f"method {name!r} can not run on this problem", complaints + method.lacks(facts))
    listed = name in by_name and by_name[name] is type(method)
    shapes = (problem.X.shape, problem.Y.shape)
    return Plan(
        method=name, settings=method.settings(), own=None if listed else method, every=every, tol=tol, rtol=rtol,
        shapes=shapes,
    )  # fmt: skip
