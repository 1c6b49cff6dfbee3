"""The constants that a plan relies on: declared, computed, or estimated and marked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from saddleslide.arrays.base import Array, as_number
from saddleslide.domains import Domain
from saddleslide.errors import InputError, UnknownConstantError, raise_all
from saddleslide.functions import Function, estimated_smoothness
from saddleslide.problem import SaddleProblem
from saddleslide.theory import Constant
from saddleslide.theory.holder import Holder
from saddleslide.theory.noise import ESTIMATE

SMOOTHNESS_NAMES = ("nu_x", "H_x", "nu_y", "H_y", "L_xy")
CONSTANT_NAMES = (*SMOOTHNESS_NAMES, "mu_x", "mu_y")


def declared_constants(constants: Mapping[str, float]) -> dict[str, float]:
    """Declared values, after refusing what can not be one."""
    unknown = sorted(set(constants) - set(CONSTANT_NAMES), key=str)
    raise_all("plan", [f"constants has {unknown}; expected names among {list(CONSTANT_NAMES)}."] * bool(unknown))
    values = {name: as_number(value, f"plan: constants[{name!r}]", 0.0) for name, value in constants.items()}
    if values.get("L_xy") == 0.0:
        raise InputError(
            "plan: constants['L_xy'] is 0; expected an upper bound on the norm of B, > 0. Leave it out for B = 0."
        )
    lone = [side for side in "xy" if f"nu_{side}" in values and f"H_{side}" not in values]
    raise_all(
        "plan", [f"constants declares nu_{side} without H_{side}; expected both: H belongs to its nu." for side in lone]
    )
    return values


def plan_constants(problem: SaddleProblem, values: Mapping[str, float], names: Sequence[str]) -> dict[str, Constant]:
    """The constants of these names, each with its origin."""
    computed: dict[str, tuple[float, str]] = {}
    for side, name, function, domain, point in zip(
        "xy", ("f on X", "g on Y"), (problem.f, problem.g), (problem.X, problem.Y), problem.start(), strict=True
    ):
        if f"H_{side}" in values:
            computed[f"nu_{side}"] = (values.get(f"nu_{side}", 1.0), "declared with its H")
            continue
        smoothness, source = _smoothness(function, domain, point, name)
        computed |= {f"nu_{side}": (smoothness.nu, source), f"H_{side}": (smoothness.H, source)}
    if "L_xy" not in values:
        norm = problem.coupling.norm
        computed["L_xy"] = (norm.upper, f"norm of B, upper bound: {norm.method}")
    if "mu_x" in names:
        computed["mu_x"] = (problem.f.strong_convexity(problem.X), "strong convexity of f on X")
        computed["mu_y"] = (problem.g.strong_convexity(problem.Y), "strong convexity of g on Y")
    return {name: Constant(values[name], "declared") if name in values else Constant(*computed[name]) for name in names}


def _smoothness(function: Function, domain: Domain, point: Array, name: str) -> tuple[Holder, str]:
    try:
        return function.smoothness(domain), name
    except UnknownConstantError:
        return estimated_smoothness(function, domain, point), f"estimated from a few gradients of {name}; {ESTIMATE}"
