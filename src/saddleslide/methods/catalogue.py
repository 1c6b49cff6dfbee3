"""The collection of methods: by name, as a table, and from a plan."""

from __future__ import annotations

import importlib
import textwrap
from collections.abc import Iterator, Mapping
from typing import Any

from saddleslide.errors import InputError, raise_all
from saddleslide.facts.facts import Facts
from saddleslide.methods.adaptive_sliding import AdaptiveSliding
from saddleslide.methods.base import Method
from saddleslide.methods.restarted_primal_dual import RestartedPrimalDual
from saddleslide.problem import SaddleProblem
from saddleslide.theory.adaptive import METHODS, AdaptivePlan
from saddleslide.theory.method_plan import MethodPlan

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
    "two-level-sliding": ("two_level", "TwoLevelSliding"),
    "lockstep": ("lockstep", "Lockstep"),
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


def as_named(
    method: str | Method, options: Mapping[str, Any] | None, name: str
) -> tuple[str, Mapping[str, Any] | None]:
    """Name and options of a method, which may be given by its name or as a value.

    Examples
    --------
    >>> import saddleslide as ss
    >>> as_named(ss.methods.PDHG(variant="plain"), None, "solve")[1]["variant"]
    'plain'
    """
    if isinstance(method, str):
        return method, options
    if not isinstance(method, Method):
        raise InputError(
            f"{name}: method is {method!r}; expected 'auto', 'adaptive', a name in ss.methods or one of its methods."
        )
    listed = method.description.name
    complaints = [f"options is {options!r} beside {method!r}, which has its own; expected one of them."]
    complaints *= options is not None
    if listed not in by_name or by_name[listed] is not type(method):
        complaints.append(f"method is {method!r}; expected a class that ss.methods lists.")
    raise_all(name, complaints)
    return listed, method.settings()


def method_of(plan: AdaptivePlan | MethodPlan) -> Method:
    """The method that a plan asks for, at its beginning.

    Examples
    --------
    >>> method_of(MethodPlan("pdhg", {"variant": "plain"}))
    PDHG(variant='plain')
    """
    if isinstance(plan, MethodPlan):
        return named_method(plan.method, plan.options)
    if plan.method == METHODS[1]:
        return RestartedPrimalDual()
    return AdaptiveSliding.of(plan)


def method_plan(
    problem: SaddleProblem,
    name: str,
    tol: float = 0.0,
    rtol: float = 0.0,
    options: Mapping[str, Any] | None = None,
    every: int | None = None,
) -> MethodPlan:
    """The plan of a run with a named method, after one error with all that it lacks on this problem.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> simplex, zero = ss.domains.Simplex(2), ss.functions.Zero()
    >>> game = ss.SaddleProblem(f=zero, g=zero, B=np.eye(2), X=simplex, Y=simplex)
    >>> method_plan(game, "mirror-prox", tol=1e-2).options["output"]
    'average'
    """
    if options is not None and not isinstance(options, Mapping):
        raise InputError(f"solve: options is {options!r}; expected a mapping such as {{'output': 'last'}}.")
    method = named_method(name, options)
    silent = [part for part, function in (("f", problem.f), ("g", problem.g)) if not function.has_value]
    complaints = [f"{part} has no value, so no gap can be certified; pass value=." for part in silent]
    raise_all(f"method {name!r} can not run on this problem", complaints + method.lacks(Facts(problem)))
    return MethodPlan(name, method.settings(), every, tol=tol, rtol=rtol, shapes=(problem.X.shape, problem.Y.shape))
