"""What methods need of a problem, by name, and what theorems assume: what is missing, and how each is known."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from saddleslide.domains.base import Domain
from saddleslide.domains.entrywise import FullSpace
from saddleslide.errors import InputError
from saddleslide.functions.base import Function
from saddleslide.functions.trust import known_smoothness
from saddleslide.operators.base import is_own_code
from saddleslide.problem import SaddleProblem
from saddleslide.theory.hypotheses import COMPUTED, DECLARED, ESTIMATE, FOLLOWS, UNKNOWN, VIOLATED, Constant, Hypothesis

if TYPE_CHECKING:
    from saddleslide.facts.facts import BlockFacts, Facts
    from saddleslide.theory.mixed import Regularisation
    from saddleslide.theory.restarts import Curvature

# Of a function on its set: "smooth f", "bounded Y". What must hold, and what is said where it does not.
_OF_A_BLOCK: dict[str, tuple[Callable[[BlockFacts], bool], str]] = {
    "smooth": (
        lambda block: block.exponent >= 1.0,
        "{name} has a Hölder gradient of exponent {block.exponent:g}; expected a Lipschitz gradient (exponent 1).",
    ),
    "Hölder": (
        lambda block: not math.isnan(block.exponent),
        "{name} = {block.function!r} has no known Hölder condition on {block.domain}.",
    ),
    "prox of": (
        lambda block: block.has_prox,
        "{name} = {block.function!r} has no exact proximal step on {block.domain}; expected a separable function.",
    ),
    "strong convexity of": (
        lambda block: block.modulus > 0.0,
        "{name} = {block.function!r} has no known strong convexity on {block.domain}; expected a modulus > 0.",
    ),
    "quadratic": (lambda block: block.function.quadratic, "{name} = {block.function!r} is not quadratic."),
    "linear": (lambda block: block.function.linear, "{name} = {block.function!r} is not linear."),
    # Linear functions have one on every domain, others where they have a proximal step.
    "closed minimum of": (
        lambda block: block.function.linear or block.has_prox,
        "the minimum of {name} plus a linear function, {name} = {block.function!r}, has no closed form on "
        "{block.domain}.",
    ),
    "best response of": (
        lambda block: (
            (block.has_prox or (block.function.linear and block.domain.bounded))
            and (block.domain.bounded or block.modulus > 0.0)
        ),
        "{name} = {block.function!r} has no exact best response on {block.domain}; expected a separable function on a "
        "bounded domain, or with strong convexity.",
    ),
    "quadratic program of": (
        lambda block: block.program is not None,
        "{name} = {block.function!r} on {block.domain} is no quadratic program of its entries; expected quadratics, "
        "absolute values and Huber functions, on boxes with equations.",
    ),
    "bounded": (lambda block: block.domain.bounded, "{name} = {block.domain} is unbounded; expected a bounded domain."),
    "free": (
        lambda block: isinstance(block.domain, FullSpace),
        "{name} = {block.domain} is constrained; expected the full space.",
    ),
}
_NO_SMOOTHNESS = "{name} = {block.function!r} has no known smoothness on {block.domain}; expected a Lipschitz gradient."


def _has_curvature(facts: Facts) -> bool:
    found = [block.holder_at_hand for block in (facts.f, facts.g)]
    return not all(condition is not None and condition.H == 0.0 for condition in found)


def _is_provable(facts: Facts) -> bool:
    """Bounded domains (Theorem 3.5), or strong convexity where no constraint can be active (Theorem 4.4)."""
    X, Y = facts.f.domain, facts.g.domain
    free = isinstance(X, FullSpace) and isinstance(Y, FullSpace)
    return (X.bounded and Y.bounded) or (free and min(facts.moduli) > 0.0)


_OF_A_PROBLEM: dict[str, tuple[Callable[[Facts], bool], str]] = {
    "g = 0": (lambda facts: facts.g.is_zero, "g = {g.function!r} is not Zero()."),
    "B = 0": (
        lambda facts: facts.norm == 0.0,
        "B has norm up to {facts.norm:.3g}; expected B = 0, a minimisation in x alone.",
    ),
    "entries of B": (
        lambda facts: facts.entries is not None,
        "B = {facts.problem.coupling!r} is known by its products alone; expected a matrix.",
    ),
    "curvature of f or g": (
        _has_curvature,
        "f and g are linear: there is no gradient to slide over; expected curvature in f or g.",
    ),
    "strong convexity of g or B = 0": (
        lambda facts: facts.g.modulus > 0.0 or facts.norm == 0.0,
        "g = {g.function!r} has no known strong convexity on {g.domain}: max over y is not smooth in x.",
    ),
    "bounded X, Y or curved f, g": (
        _is_provable,
        "X = {f.domain} and Y = {g.domain}: no theorem bounds the gap; expected bounded domains, or full spaces "
        "with strong convexity of f and g.",
    ),
}


# All that a method may name in its `needs`.
NEEDS = (
    *(f"{kind} {name}" for kind in _OF_A_BLOCK for name in (("X", "Y") if kind in ("bounded", "free") else ("f", "g"))),
    *_OF_A_PROBLEM,
)


def find_missing(needs: Sequence[str], facts: Facts, method: str = "") -> list[str]:
    """One sentence for every need of a method that the problem does not meet."""
    unknown = [need for need in needs if need not in NEEDS]
    if unknown:
        raise InputError(
            f"method {method!r}: needs has {', '.join(map(repr, unknown))}; expected of {', '.join(map(repr, NEEDS))}. "
            "Say other needs in `lacks`."
        )
    sentences = []
    for need in needs:
        if need in _OF_A_PROBLEM:
            is_met, sentence = _OF_A_PROBLEM[need]
            if not is_met(facts):
                sentences.append(sentence.format(facts=facts, f=facts.f, g=facts.g))
            continue
        kind, name = need.rsplit(" ", 1)
        block = facts.f if name in ("f", "X") else facts.g
        holds, sentence = _OF_A_BLOCK[kind]
        if not holds(block):
            sentence = _NO_SMOOTHNESS if kind == "smooth" and math.isnan(block.exponent) else sentence
            sentences.append(sentence.format(name=name, block=block))
    return sentences


Sides = tuple[tuple[str, str, Function, Domain, str], tuple[str, str, Function, Domain, str]]


def _sides(problem: SaddleProblem) -> Sides:
    return ("f", "x", problem.f, problem.X, "X"), ("g", "y", problem.g, problem.Y, "Y")


def _how(constant: Constant, own: bool = False) -> str:
    """How a constant of a plan is known: an estimate is not."""
    if ESTIMATE in constant.origin:
        return UNKNOWN
    return DECLARED if own or constant.origin.startswith("declared") else COMPUTED


def _trust(what: str, own: bool, why: str) -> Hypothesis:
    """What follows of our functions and matrices, and is declared of the caller's own code."""
    return Hypothesis(what, DECLARED if own else FOLLOWS, "your own code" if own else why)


def _common(problem: SaddleProblem, used: Mapping[str, Constant]) -> list[Hypothesis]:
    """What every theorem asks of f, g and B: Assumptions Monotone_and_Lipschitz and Holder_continuous."""
    found = []
    for name, side, function, _, domain_name in _sides(problem):
        found.append(_trust(f"{name} is convex", function.own_code, "what it is made of"))
        nu, H = used.get(f"nu_{side}"), used.get(f"H_{side}")
        if nu is not None and H is not None:
            what = f"{name}' is Hölder on {domain_name} with ({nu.value:g}, {H.value:.6g})"
            found.append(Hypothesis(what, _how(H, function.own_code), H.origin))
    found.append(_trust("B is linear and its adjoint true", is_own_code(problem.coupling), "a matrix of ours"))
    if "L_xy" in used:
        norm = used["L_xy"]
        how = DECLARED if "declared" in norm.origin else COMPUTED
        found.append(Hypothesis(f"|B| is at most {norm.value:.6g}", how, norm.origin))
    return found


def _noise(problem: SaddleProblem, used: Mapping[str, Constant]) -> list[Hypothesis]:
    found = []
    for name, side, function, _, _ in _sides(problem):
        variance = used.get(f"sigma2_{side}")
        if variance is not None and function.sampled:
            unbiased = DECLARED if function.own_code else FOLLOWS
            most = f"their variance is at most {variance.value:.6g}"
            found.append(Hypothesis(f"samples of {name}' are unbiased", unbiased, "how they are drawn"))
            found.append(Hypothesis(most, _how(variance), variance.origin))
    return found


def run_hypotheses(
    problem: SaddleProblem, used: Mapping[str, Constant], squares: tuple[float, float], oracles: Collection[str]
) -> tuple[Hypothesis, ...]:
    """Those of one run of the recursion: Theorems 3.3 and 3.5, and VI_sliding_stochastic_uniform."""
    found = _common(problem, used)
    for (_, _, _, domain, name), square in zip(_sides(problem), squares, strict=True):
        found.append(Hypothesis(f"{name} is bounded", FOLLOWS if math.isfinite(square) else VIOLATED, str(domain)))
    found += [Hypothesis(f"{name} has the (delta, L)-oracle of the plan", DECLARED, "oracles=") for name in oracles]
    return (*found, *_noise(problem, used))


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
    found = _common(problem, used)
    for name, side, function, domain, domain_name in _sides(problem):
        modulus = used[f"mu_{side}"]
        if modulus.value > 0.0:
            certain = function.certain_convexity(domain) >= modulus.value * (1.0 - 1e-9)
            what = f"{name} is {modulus.value:.6g}-strongly convex on {domain_name}"
            found.append(Hypothesis(what, COMPUTED if certain else DECLARED, modulus.origin))
    Psi0 = used["Psi0"]
    found.append(Hypothesis(f"Psi is at most {Psi0.value:.6g} at the start", _how(Psi0), Psi0.origin))
    # The anchor of x leans on g' and on the constraint of Y, that of y on f' and X.
    f, g = _sides(problem)
    anchors = (curvature.beta_x, curvature.g, g), (curvature.beta_y, curvature.f, f)
    for beta, smoothness, (name, side, function, domain, domain_name) in anchors:
        if beta != 0.0:
            found.append(_no_normal(side, domain, domain_name, interior))
            how, why = _on_whole_space(function, domain, smoothness.H)
            found.append(Hypothesis(f"{name}' is {smoothness.H:.6g}-Lipschitz on the whole space", how, why))
    for block, how in ranges.items():
        gradients, kernel, whole = ("f'", "ker B", "X") if block == "x" else ("g'", "ker B^T", "Y")
        found.append(Hypothesis(f"R_{block}: {gradients} lies in the range of B", how))
        found.append(Hypothesis(f"{whole} + {kernel} = {whole}", FOLLOWS, f"{whole} is the whole space"))
    found += _noise(problem, used)
    # From Psi to the gap: Lemma mixed_gap_identity, and for the mixed regime Assumption mixed_gap_transfer.
    found += [_no_normal(side, domain, name, interior, for_gap=True) for _, side, _, domain, name in _sides(problem)]
    if extra is not None:
        regularised = problem.Y if extra.block == "y" else problem.X
        how = FOLLOWS if regularised.bounded else VIOLATED
        found.append(Hypothesis(f"the regularised block {extra.block} is bounded", how, str(regularised)))
    return tuple(found)


def _on_whole_space(function: Function, domain: Domain, H: float) -> tuple[str, str]:
    """How it is known that a gradient is H-Lipschitz on the whole space, which an active anchor asks for."""
    if isinstance(domain, FullSpace):
        return FOLLOWS, "the set is the whole space"
    if function.own_code:
        return UNKNOWN, "what is declared of your own code is declared on the set"
    everywhere = known_smoothness(function, FullSpace(domain.shape))
    if everywhere is None:
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
