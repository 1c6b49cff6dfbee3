"""What a method may need of a problem, by name; each check says in one sentence what is missing."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from saddleslide.domains import Domain, FullSpace
from saddleslide.errors import InputError
from saddleslide.functions import Function, Zero, has_prox
from saddleslide.functions.at_hand import exponent, smoothness_at_hand
from saddleslide.problem import SaddleProblem
from saddleslide.theory.holder import Holder

Check = Callable[[SaddleProblem], str]


def smoothness_of(function: Function, domain: Domain) -> Holder | None:
    """The declared Hölder condition; None where a function declares none on this domain.

    Examples
    --------
    >>> import saddleslide as ss
    >>> smoothness_of(ss.functions.Quadratic(3.0), ss.domains.FullSpace(2))
    Holder(nu=1.0, H=3.0)
    """
    try:
        return function.smoothness(domain)
    except InputError:
        return None


def _exponent(function: Function, domain: Domain) -> float:
    """Of the Hölder condition, for which no norm is bounded; NaN where there is none."""
    try:
        return exponent(function, domain)
    except InputError:
        return math.nan


def _smooth(name: str, function: Function, domain: Domain) -> str:
    nu = _exponent(function, domain)
    if math.isnan(nu):
        return f"{name} = {function!r} has no known smoothness on {domain}; expected a Lipschitz gradient."
    if nu < 1.0:
        return f"{name} has a Hölder gradient of exponent {nu:g}; expected a Lipschitz gradient (exponent 1)."
    return ""


def _holder(name: str, function: Function, domain: Domain) -> str:
    missing_condition = math.isnan(_exponent(function, domain))
    return f"{name} = {function!r} has no known Hölder condition on {domain}." if missing_condition else ""


def _prox(name: str, function: Function, domain: Domain) -> str:
    if has_prox(function, domain):
        return ""
    return f"{name} = {function!r} has no exact proximal step on {domain}; expected a separable function."


def _strong(name: str, function: Function, domain: Domain) -> str:
    if function.strong_convexity(domain) > 0.0:
        return ""
    return f"{name} = {function!r} has no known strong convexity on {domain}; expected a modulus > 0."


def _quadratic(name: str, function: Function) -> str:
    return "" if function.quadratic else f"{name} = {function!r} is not quadratic."


def _linear(name: str, function: Function) -> str:
    return "" if function.linear else f"{name} = {function!r} is not linear."


def _bounded(name: str, domain: Domain) -> str:
    return "" if domain.bounded else f"{name} = {domain} is unbounded; expected a bounded domain."


def _zero(name: str, function: Function) -> str:
    return "" if isinstance(function, Zero) else f"{name} = {function!r} is not Zero()."


def _free(name: str, domain: Domain) -> str:
    return "" if isinstance(domain, FullSpace) else f"{name} = {domain} is constrained; expected the full space."


def _closed_minimum(name: str, function: Function, domain: Domain) -> str:
    """Linear functions have one on every domain, others where they have a proximal step."""
    if function.linear or has_prox(function, domain):
        return ""
    return f"the minimum of {name} plus a linear function, {name} = {function!r}, has no closed form on {domain}."


def _uncoupled(problem: SaddleProblem) -> str:
    norm = problem.coupling.norm.upper
    return "" if norm == 0.0 else f"B has norm up to {norm:.3g}; expected B = 0, a minimisation in x alone."


def _some_curvature(problem: SaddleProblem) -> str:
    sides = (problem.f, problem.X), (problem.g, problem.Y)
    found = [smoothness_at_hand(function, domain) for function, domain in sides]
    flat = all(condition is not None and condition.H == 0.0 for condition in found)
    return "f and g are linear: there is no gradient to slide over; expected curvature in f or g." if flat else ""


def _response(name: str, function: Function, domain: Domain) -> str:
    known = has_prox(function, domain) or (function.linear and domain.bounded)
    finite = domain.bounded or function.strong_convexity(domain) > 0.0
    if known and finite:
        return ""
    return (
        f"{name} = {function!r} has no exact best response on {domain}; expected a separable function on a bounded "
        "domain, or with strong convexity."
    )


def _smooth_maximum(problem: SaddleProblem) -> str:
    if problem.g.strong_convexity(problem.Y) > 0.0 or problem.coupling.norm.upper == 0.0:
        return ""
    return f"g = {problem.g!r} has no known strong convexity on {problem.Y}: max over y is not smooth in x."


def _provable(problem: SaddleProblem) -> str:
    """Bounded domains (Theorem 3.5), or strong convexity where no constraint can be active (Theorem 4.4)."""
    domains = (problem.X, problem.Y)
    curved = problem.f.strong_convexity(problem.X) > 0.0 and problem.g.strong_convexity(problem.Y) > 0.0
    free = all(isinstance(domain, FullSpace) for domain in domains)
    if all(domain.bounded for domain in domains) or (free and curved):
        return ""
    return (
        f"X = {problem.X} and Y = {problem.Y}: no theorem bounds the gap; expected bounded domains, or full spaces "
        "with strong convexity of f and g."
    )


REQUIREMENTS: dict[str, Check] = {
    "smooth f": lambda p: _smooth("f", p.f, p.X),
    "smooth g": lambda p: _smooth("g", p.g, p.Y),
    "Hölder f": lambda p: _holder("f", p.f, p.X),
    "Hölder g": lambda p: _holder("g", p.g, p.Y),
    "prox of f": lambda p: _prox("f", p.f, p.X),
    "prox of g": lambda p: _prox("g", p.g, p.Y),
    "strong convexity of f": lambda p: _strong("f", p.f, p.X),
    "strong convexity of g": lambda p: _strong("g", p.g, p.Y),
    "quadratic f": lambda p: _quadratic("f", p.f),
    "quadratic g": lambda p: _quadratic("g", p.g),
    "linear g": lambda p: _linear("g", p.g),
    "bounded X": lambda p: _bounded("X", p.X),
    "bounded Y": lambda p: _bounded("Y", p.Y),
    "g = 0": lambda p: _zero("g", p.g),
    "B = 0": _uncoupled,
    "free X": lambda p: _free("X", p.X),
    "free Y": lambda p: _free("Y", p.Y),
    "closed minimum of f": lambda p: _closed_minimum("f", p.f, p.X),
    "closed minimum of g": lambda p: _closed_minimum("g", p.g, p.Y),
    "curvature of f or g": _some_curvature,
    "best response of g": lambda p: _response("g", p.g, p.Y),
    "strong convexity of g or B = 0": _smooth_maximum,
    "bounded X, Y or curved f, g": _provable,
}


def missing(needs: Sequence[str], problem: SaddleProblem) -> list[str]:
    """One sentence for every need that the problem does not meet.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> simplex, zero = ss.domains.Simplex(2), ss.functions.Zero()
    >>> game = ss.SaddleProblem(f=zero, g=zero, B=np.eye(2), X=simplex, Y=simplex)
    >>> missing(("bounded X", "strong convexity of f"), game)
    ['f = Zero() has no known strong convexity on Simplex((2,)); expected a modulus > 0.']
    """
    return [sentence for need in needs if (sentence := REQUIREMENTS[need](problem))]
