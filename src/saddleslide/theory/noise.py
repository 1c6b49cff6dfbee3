"""Sampled gradients in one run of Algorithm 1: tau_i, the noise terms of the bounds, and the accuracy they allow.

Theorems VI_sliding_stochastic and VI_sliding_stochastic_uniform with their corollaries. A level's variance is that of
its term, in the dual norm of the level.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from saddleslide.errors import InputError
from saddleslide.theory.bounds import (
    drift,
    is_felt,
    is_felt_in_operator,
    loop_counts,
    noise_weights,
    operator_drift,
    sharp_bound,
    sorted_by_budget,
)
from saddleslide.theory.levels import Level, Term, check_loops, place

# Halvings of the bracket of an accuracy: a part in a thousand of its logarithm.
_HALVINGS = 12
_SMALLEST_SHARE = 1e-6


def is_noisy(terms: Iterable[Term]) -> bool:
    """Whether any gradient is sampled."""
    return any(term.noise > 0.0 for term in terms)


def steady(terms: Sequence[Term], loops: Sequence[int]) -> list[Term]:
    """Terms in the order of the levels, sampled ones with tau_i = sigma_i A_i^(3/2) / (2^i sqrt(Omega)).

    Corollaries VI_sliding_stochastic_optimized (Omega = R^2) and VI_sliding_stochastic_uniform_complexity.
    """
    steady, N = [], 1
    for position, (term, T) in enumerate(zip(terms, check_loops(loops, len(terms)), strict=True), start=1):
        N *= T
        if term.noise > 0.0 and not math.isfinite(term.Omega):
            raise InputError(
                "plan: a gradient is sampled and Omega is infinite; expected bounded domains (Theorem "
                "VI_sliding_stochastic_uniform), or strongly convex f and g with regime='restarts'."
            )
        if term.noise > 0.0:
            root = math.sqrt(term.noise / term.Omega) if term.Omega > 0.0 else 0.0
            term = replace(term, tau=root * math.pow(N, 1.5) / math.ldexp(1.0, position))
        steady.append(term)
    return steady


def comparator_noise(levels: Sequence[Level]) -> float:
    """The third sum of Theorem VI_sliding_stochastic with the actual alphas: no sup over the domain."""
    pairs = zip(levels, noise_weights(levels), strict=True)
    return math.fsum(
        drift(level, spread) * is_felt(level) + operator_drift(level, spread) * is_felt_in_operator(level)
        for level, (spread, _) in pairs
        if is_felt(level) or is_felt_in_operator(level)
    )


def deviation_bound(levels: Sequence[Level], failure: float) -> float:
    """What the gap exceeds at most so often, for errors e of sampled gradients with E exp(|e|^2 / s^2) <= exp(1).

    The variance of a term stands for s^2 (2.32 sigma^2 for Gaussian errors). docs/open.md has the proof.
    """
    if not 0.0 < failure < 1.0:
        raise InputError(f"deviation_bound: failure is {failure!r}; expected a probability in (0, 1).")
    if any(is_felt_in_operator(level) for level in levels):
        raise InputError("deviation_bound: an operator is sampled; expected sampled gradients alone (docs/open.md).")
    felt = [(level, pair) for level, pair in zip(levels, noise_weights(levels), strict=True) if is_felt(level)]
    rare = math.log(3.0 * max(len(felt), 1) / failure)
    exact = [replace(level, term=replace(level.term, variance=0.0)) for level in levels]
    return sharp_bound(exact) + math.fsum(
        (1.0 + rare) * drift(level, spread)
        + (1.0 + 0.5 * rare + 2.0 * math.sqrt(3.0 * rare)) * math.sqrt(level.term.variance * level.term.Omega * squares)
        for level, (spread, squares) in felt
    )


def prove_accuracy(terms: Sequence[Term], tol: float, sort: bool = True) -> float:
    """The eps whose budgets make the bound on the (expected) gap at most `tol`, as large as a search finds it.

    Stands in for the constant c_n of Corollary VI_sliding_stochastic_complexity: every term of the bound falls like
    eps, so the bound itself says how much smaller than `tol` it must be.
    """

    def bound(eps: float) -> float:
        placed = sorted_by_budget(terms, eps) if sort else list(terms)
        loops = loop_counts(placed, eps)
        return sharp_bound(place(steady(placed, loops), loops))

    return largest_accuracy(bound, tol)


def largest_accuracy(bound: Callable[[float], float], tol: float) -> float:
    """The largest eps <= tol, as far as halvings find it, whose budgets have a bound of at most `tol`."""

    def meets(eps: float) -> bool:
        return bound(eps) <= tol

    good = tol
    while not meets(good):
        good /= 2.0
        if good < _SMALLEST_SHARE * tol:
            raise InputError(f"plan: no budgets were found whose bound meets tol = {tol:g}; expected a larger tol.")
    if good == tol:
        return good
    bad = 2.0 * good
    for _ in range(_HALVINGS):
        middle = math.sqrt(good * bad)
        good, bad = (middle, bad) if meets(middle) else (good, middle)
    return good
