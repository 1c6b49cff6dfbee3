"""What a method may need of a problem, by name; each check says in one sentence what is missing."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from saddleslide.domains import FullSpace

if TYPE_CHECKING:
    from saddleslide.facts.facts import BlockFacts, Facts


def _smooth(name: str, block: BlockFacts) -> str:
    if math.isnan(block.exponent):
        return f"{name} = {block.function!r} has no known smoothness on {block.domain}; expected a Lipschitz gradient."
    if block.exponent < 1.0:
        return (
            f"{name} has a Hölder gradient of exponent {block.exponent:g}; expected a Lipschitz gradient (exponent 1)."
        )
    return ""


def _holder(name: str, block: BlockFacts) -> str:
    known = not math.isnan(block.exponent)
    return "" if known else f"{name} = {block.function!r} has no known Hölder condition on {block.domain}."


def _prox(name: str, block: BlockFacts) -> str:
    if block.has_prox:
        return ""
    return f"{name} = {block.function!r} has no exact proximal step on {block.domain}; expected a separable function."


def _strong(name: str, block: BlockFacts) -> str:
    if block.modulus > 0.0:
        return ""
    return f"{name} = {block.function!r} has no known strong convexity on {block.domain}; expected a modulus > 0."


def _quadratic(name: str, block: BlockFacts) -> str:
    return "" if block.function.quadratic else f"{name} = {block.function!r} is not quadratic."


def _linear(name: str, block: BlockFacts) -> str:
    return "" if block.function.linear else f"{name} = {block.function!r} is not linear."


def _bounded(name: str, block: BlockFacts) -> str:
    return "" if block.domain.bounded else f"{name} = {block.domain} is unbounded; expected a bounded domain."


def _zero(name: str, block: BlockFacts) -> str:
    return "" if block.is_zero else f"{name} = {block.function!r} is not Zero()."


def _free(name: str, block: BlockFacts) -> str:
    free = isinstance(block.domain, FullSpace)
    return "" if free else f"{name} = {block.domain} is constrained; expected the full space."


def _closed_minimum(name: str, block: BlockFacts) -> str:
    """Linear functions have one on every domain, others where they have a proximal step."""
    if block.function.linear or block.has_prox:
        return ""
    said = f"{name} = {block.function!r}, has no closed form on {block.domain}."
    return f"the minimum of {name} plus a linear function, {said}"


def _response(name: str, block: BlockFacts) -> str:
    known = block.has_prox or (block.function.linear and block.domain.bounded)
    if known and (block.domain.bounded or block.modulus > 0.0):
        return ""
    return (
        f"{name} = {block.function!r} has no exact best response on {block.domain}; expected a separable function on a "
        "bounded domain, or with strong convexity."
    )


def _uncoupled(facts: Facts) -> str:
    return "" if facts.norm == 0.0 else f"B has norm up to {facts.norm:.3g}; expected B = 0, a minimisation in x alone."


def _some_curvature(facts: Facts) -> str:
    found = [block.holder_at_hand for block in (facts.f, facts.g)]
    flat = all(condition is not None and condition.H == 0.0 for condition in found)
    return "f and g are linear: there is no gradient to slide over; expected curvature in f or g." if flat else ""


def _smooth_maximum(facts: Facts) -> str:
    g = facts.g
    if g.modulus > 0.0 or facts.norm == 0.0:
        return ""
    return f"g = {g.function!r} has no known strong convexity on {g.domain}: max over y is not smooth in x."


def _provable(facts: Facts) -> str:
    """Bounded domains (Theorem 3.5), or strong convexity where no constraint can be active (Theorem 4.4)."""
    X, Y = facts.f.domain, facts.g.domain
    free = isinstance(X, FullSpace) and isinstance(Y, FullSpace)
    if (X.bounded and Y.bounded) or (free and min(facts.moduli) > 0.0):
        return ""
    return (
        f"X = {X} and Y = {Y}: no theorem bounds the gap; expected bounded domains, or full spaces "
        "with strong convexity of f and g."
    )


_OF_A_FUNCTION = {
    "smooth": _smooth,
    "Hölder": _holder,
    "prox of": _prox,
    "strong convexity of": _strong,
    "quadratic": _quadratic,
    "linear": _linear,
    "closed minimum of": _closed_minimum,
    "best response of": _response,
}
_OF_A_SET = {"bounded": _bounded, "free": _free}
REQUIREMENTS: dict[str, Callable[[Facts], str]] = {
    **{f"{need} f": partial(lambda check, facts: check("f", facts.f), check) for need, check in _OF_A_FUNCTION.items()},
    **{f"{need} g": partial(lambda check, facts: check("g", facts.g), check) for need, check in _OF_A_FUNCTION.items()},
    **{f"{need} X": partial(lambda check, facts: check("X", facts.f), check) for need, check in _OF_A_SET.items()},
    **{f"{need} Y": partial(lambda check, facts: check("Y", facts.g), check) for need, check in _OF_A_SET.items()},
    "g = 0": lambda facts: _zero("g", facts.g),
    "B = 0": _uncoupled,
    "curvature of f or g": _some_curvature,
    "strong convexity of g or B = 0": _smooth_maximum,
    "bounded X, Y or curved f, g": _provable,
}


def missing(needs: Sequence[str], facts: Facts) -> list[str]:
    """One sentence for every need that the problem does not meet."""
    return [sentence for need in needs if (sentence := REQUIREMENTS[need](facts))]
