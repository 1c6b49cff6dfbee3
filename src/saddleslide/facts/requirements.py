"""What a method may need of a problem, by name; each check says in one sentence what is missing."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from saddleslide.domains import Domain, FullSpace
from saddleslide.errors import InputError
from saddleslide.functions.base import Function
from saddleslide.operators.base import is_own_code
from saddleslide.problem import SaddleProblem
from saddleslide.theory import Constant
from saddleslide.theory.hypotheses import COMPUTED, DECLARED, FOLLOWS, UNKNOWN, VIOLATED, Hypothesis
from saddleslide.theory.mixed import Regularisation
from saddleslide.theory.noise import ESTIMATE
from saddleslide.theory.restarts import Curvature

if TYPE_CHECKING:
    from saddleslide.facts.facts import BlockFacts, Facts


Sides = tuple[tuple[str, str, Function, Domain, str], tuple[str, str, Function, Domain, str]]


def _sides(problem: SaddleProblem) -> Sides:
    return ("f", "x", problem.f, problem.X, "X"), ("g", "y", problem.g, problem.Y, "Y")


def _how(constant: Constant, own: bool) -> str:
    """How a constant of a plan is known: an estimate is not."""
    if ESTIMATE in constant.origin:
        return UNKNOWN
    return DECLARED if own or constant.origin.startswith("declared") else COMPUTED


def common_hypotheses(problem: SaddleProblem, used: Mapping[str, Constant]) -> tuple[Hypothesis, ...]:
    """What every theorem asks of f, g and B: Assumptions Monotone_and_Lipschitz and Holder_continuous.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> problem = ss.gallery.synthetic(seed=0)
    >>> plan = ss.plan(problem, order="fgB", loops=(2, 2, 2))
    >>> [one.how for one in common_hypotheses(problem, plan.constants)]
    ['follows', 'computed', 'follows', 'computed', 'follows', 'declared']
    """
    found = []
    for name, side, function, _, domain_name in _sides(problem):
        own = function.own_code
        found.append(
            Hypothesis(
                f"{name} is convex", DECLARED if own else FOLLOWS, "your own code" if own else "what it is made of"
            )
        )
        nu, H = used.get(f"nu_{side}"), used.get(f"H_{side}")
        if nu is not None and H is not None:
            what = f"{name}' is Hölder on {domain_name} with ({nu.value:g}, {H.value:.6g})"
            found.append(Hypothesis(what, _how(H, own), H.origin))
    own = is_own_code(problem.coupling)
    found.append(
        Hypothesis(
            "B is linear and its adjoint true",
            DECLARED if own else FOLLOWS,
            "your own code" if own else "a matrix of ours",
        )
    )
    if "L_xy" in used:
        norm = used["L_xy"]
        how = DECLARED if "declared" in norm.origin else COMPUTED
        found.append(Hypothesis(f"|B| is at most {norm.value:.6g}", how, norm.origin))
    return tuple(found)


def run_hypotheses(
    problem: SaddleProblem, used: Mapping[str, Constant], squares: tuple[float, float], oracles: Collection[str]
) -> tuple[Hypothesis, ...]:
    """Those of one run of the recursion: Theorems 3.3 and 3.5, and VI_sliding_stochastic_uniform."""
    found = list(common_hypotheses(problem, used))
    for (_, _, _, domain, name), square in zip(_sides(problem), squares, strict=True):
        bounded = bool(np.isfinite(square))
        found.append(Hypothesis(f"{name} is bounded", FOLLOWS if bounded else VIOLATED, str(domain)))
    found += [Hypothesis(f"{name} has the (delta, L)-oracle of the plan", DECLARED, "oracles=") for name in oracles]
    return (*found, *_noise(problem, used))


def _noise(problem: SaddleProblem, used: Mapping[str, Constant]) -> list[Hypothesis]:
    found = []
    for name, side, function, _, _ in _sides(problem):
        variance = used.get(f"sigma2_{side}")
        if variance is None or not function.sampled:
            continue
        own = function.own_code
        found.append(Hypothesis(f"samples of {name}' are unbiased", DECLARED if own else FOLLOWS, "how they are drawn"))
        found.append(
            Hypothesis(f"their variance is at most {variance.value:.6g}", _how(variance, False), variance.origin)
        )
    return found


def restart_hypotheses(
    problem: SaddleProblem,
    used: Mapping[str, Constant],
    curvature: Curvature,
    extra: Regularisation | None,
    interior: Collection[str],
    ranges: Mapping[str, str],
) -> tuple[Hypothesis, ...]:
    """Those of Theorem 4.4 and Corollary 4.5, of the mixed regime where there is one, and of the step to the gap.

    `ranges` says for the blocks whose range condition is used how it is known.
    """
    found = list(common_hypotheses(problem, used))
    for name, side, function, domain, domain_name in _sides(problem):
        modulus = used[f"mu_{side}"]
        if modulus.value > 0.0:
            certain = function.certain_convexity(domain) >= modulus.value * (1.0 - 1e-9)
            how = COMPUTED if certain else DECLARED
            found.append(
                Hypothesis(f"{name} is {modulus.value:.6g}-strongly convex on {domain_name}", how, modulus.origin)
            )
    found.append(
        Hypothesis(
            f"Psi is at most {used['Psi0'].value:.6g} at the start", _how(used["Psi0"], False), used["Psi0"].origin
        )
    )
    found += _anchor_hypotheses(problem, curvature, interior)
    for block, how in ranges.items():
        gradients, kernel, whole = ("f'", "ker B", "X") if block == "x" else ("g'", "ker B^T", "Y")
        found.append(Hypothesis(f"R_{block}: {gradients} lies in the range of B", how))
        found.append(Hypothesis(f"{whole} + {kernel} = {whole}", FOLLOWS, f"{whole} is the whole space"))
    found += _noise(problem, used)
    found += _transfer_hypotheses(problem, extra, interior)
    return tuple(found)


def _anchor_hypotheses(problem: SaddleProblem, curvature: Curvature, interior: Collection[str]) -> list[Hypothesis]:
    """The anchor of x leans on g' and on the constraint of Y, that of y on f' and X."""
    f, g = _sides(problem)
    found = []
    for beta, smoothness, (name, side, function, domain, domain_name) in (
        (curvature.beta_x, curvature.g, g),
        (curvature.beta_y, curvature.f, f),
    ):
        if beta == 0.0:
            continue
        found.append(_no_normal(side, domain, domain_name, interior))
        how, why = ambient(function, domain, smoothness.H)
        found.append(Hypothesis(f"{name}' is {smoothness.H:.6g}-Lipschitz on the whole space", how, why))
    return found


def ambient(function: Function, domain: Domain, H: float) -> tuple[str, str]:
    """How it is known that a gradient is H-Lipschitz on the whole space, which an active anchor asks for.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> ambient(ss.functions.Quadratic(2.0), ss.domains.Box(0.0, 1.0, shape=2), 2.0)[0]
    'computed'
    """
    if isinstance(domain, FullSpace):
        return FOLLOWS, "the set is the whole space"
    if function.own_code:
        return UNKNOWN, "what is declared of your own code is declared on the set"
    try:
        everywhere = function.smoothness(FullSpace(domain.shape))
    except InputError:
        return VIOLATED, "no such constant on the whole space"
    if everywhere.nu < 1.0 or not everywhere.H <= H * (1.0 + 1e-9):
        return VIOLATED, f"there it is ({everywhere.nu:g}, {everywhere.H:.6g})-Hölder"
    return COMPUTED, "the same constant holds there"


def _no_normal(
    side: str, domain: Domain, domain_name: str, interior: Collection[str], for_gap: bool = False
) -> Hypothesis:
    what = f"no constraint of {domain_name} pushes at the solution"
    if isinstance(domain, FullSpace):
        return Hypothesis(what, FOLLOWS, f"{domain_name} is the whole space", for_gap)
    declared = side in interior
    return Hypothesis(what, DECLARED if declared else UNKNOWN, "interior=" if declared else str(domain), for_gap)


def _transfer_hypotheses(
    problem: SaddleProblem, extra: Regularisation | None, interior: Collection[str]
) -> list[Hypothesis]:
    """From Psi to the gap: Lemma mixed_gap_identity, and for the mixed regime Assumption mixed_gap_transfer."""
    found = [_no_normal(side, domain, name, interior, for_gap=True) for _, side, _, domain, name in _sides(problem)]
    if extra is not None:
        regularised = problem.Y if extra.block == "y" else problem.X
        how = FOLLOWS if regularised.bounded else VIOLATED
        found.append(Hypothesis(f"the regularised block {extra.block} is bounded", how, str(regularised)))
    return found


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
