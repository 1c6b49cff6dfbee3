"""Sampled gradients in one run of Algorithm 1: tau_i, the noise terms of the bounds, and the accuracy they allow.

Theorems VI_sliding_stochastic and VI_sliding_stochastic_uniform with their corollaries. A level's variance is that of
its term, in the dual norm of the level.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

from saddleslide.errors import InputError
from saddleslide.theory.bounds import Noise, deviation, felt, loop_counts, noise_weights, sharp_bound, sorted_by_budget
from saddleslide.theory.levels import Level, Term, check_loops, place

# Halvings of the bracket of an accuracy: a part in a thousand of its logarithm.
_HALVINGS = 12
_SMALLEST_SHARE = 1e-6
# Marks the origin of a variance that was estimated: an estimate must never pass for a bound.
ESTIMATE = "NOT A BOUND, so nothing is proved"


class _Constant(Protocol):
    @property
    def value(self) -> float: ...
    @property
    def origin(self) -> str: ...


def rests_on_estimate(constants: Mapping[str, _Constant]) -> bool:
    """Whether a constant of the plan is an estimate: nothing that uses one is proved.

    Examples
    --------
    >>> from saddleslide.theory.plan import Constant
    >>> rests_on_estimate({"sigma2_x": Constant(1.0, "declared")})
    False
    """
    return any(ESTIMATE in constant.origin for constant in constants.values())


def is_noisy(terms: Iterable[Term]) -> bool:
    """Whether any gradient is sampled.

    Examples
    --------
    >>> is_noisy([Term("f", variance=1.0), Term("B", M=1.0)])
    True
    """
    return any(term.variance > 0.0 for term in terms)


def noise_curvature(position: int, N: int, variance: float, Omega: float) -> float:
    """tau_i = sigma_i A_i^(3/2) / (2^i sqrt(Omega)).

    Corollaries VI_sliding_stochastic_optimized (Omega = R^2) and VI_sliding_stochastic_uniform_complexity.

    Examples
    --------
    >>> noise_curvature(1, 4, variance=1.0, Omega=4.0)
    2.0
    """
    if variance == 0.0 or Omega == 0.0:
        return 0.0
    if not math.isfinite(Omega):
        raise InputError(
            "plan: a gradient is sampled and Omega is infinite; expected bounded domains (Theorem "
            "VI_sliding_stochastic_uniform), or strongly convex f and g with regime='restarts'."
        )
    return math.sqrt(variance / Omega) * math.pow(N, 1.5) / math.ldexp(1.0, position)


def steadied(terms: Sequence[Term], loops: Sequence[int]) -> list[Term]:
    """Terms in the order of the levels, each sampled one with its tau; exact ones as they are.

    Examples
    --------
    >>> [term.tau for term in steadied([Term("f", variance=1.0, Omega=4.0), Term("B", M=1.0)], loops=(4, 2))]
    [2.0, 0.0]
    """
    steady, N = [], 1
    for position, (term, T) in enumerate(zip(terms, check_loops(loops, len(terms)), strict=True), start=1):
        N *= T
        if term.variance > 0.0:
            term = replace(term, tau=noise_curvature(position, N, term.variance, term.Omega))
        steady.append(term)
    return steady


def fixed_comparator_noise(levels: Sequence[Level]) -> float:
    """The third sum of Theorem VI_sliding_stochastic with the actual alphas: no sup over the domain.

    Examples
    --------
    >>> fixed_comparator_noise(place(steadied([Term("f", variance=1.0, Omega=4.0)], (1,)), (1,)))
    2.0
    """
    weights = noise_weights(levels)
    return math.fsum(deviation(a, b.spread) for a, b in zip(levels, weights, strict=True) if felt(a))


def expected_bound(levels: Sequence[Level]) -> float:
    """Bound on the expected gap: Theorem VI_sliding_stochastic_uniform with the actual alphas.

    Examples
    --------
    >>> expected_bound(place(steadied([Term("f", variance=1.0, Omega=4.0)], (1,)), (1,)))
    4.5
    """
    return sharp_bound(levels)


def proved_accuracy(terms: Sequence[Term], tol: float, sort: bool = True) -> float:
    """The eps whose budgets make the bound on the (expected) gap at most `tol`, as large as a search finds it.

    Stands in for the constant c_n of Corollary VI_sliding_stochastic_complexity: every term of the bound falls like
    eps, so the bound itself says how much smaller than `tol` it must be.

    Examples
    --------
    >>> eps = proved_accuracy([Term("f", variance=1.0, Omega=4.0), Term("B", M=1.0, Omega=4.0)], tol=0.5)
    >>> 0.01 < eps < 0.5
    True
    """

    def meets(eps: float) -> bool:
        placed = sorted_by_budget(terms, eps) if sort else list(terms)
        loops = loop_counts(placed, eps)
        return expected_bound(place(steadied(placed, loops), loops)) <= tol

    good = tol
    while not meets(good):
        good /= 2.0
        if good < _SMALLEST_SHARE * tol:
            raise InputError(f"plan: no budgets were found whose bound meets tol = {tol:g}; expected a larger tol.")
    bad = 2.0 * good
    if good == tol:
        return good
    for _ in range(_HALVINGS):
        middle = math.sqrt(good * bad)
        good, bad = (middle, bad) if meets(middle) else (good, middle)
    return good


def samples_of(calls: Mapping[str, float], constants: Mapping[str, _Constant]) -> dict[str, int]:
    """Calls times batch for each sampled gradient; `batch_x` and `batch_y` are constants of the plan.

    Examples
    --------
    >>> from saddleslide.theory.plan import Constant
    >>> samples_of({"f": 10, "g": 3, "B": 8}, {"batch_x": Constant(4, "rows per call")})
    {'f': 40, 'g': 0}
    """
    batches = {"f": constants.get("batch_x"), "g": constants.get("batch_y")}
    return {name: 0 if batch is None else int(calls[name] * batch.value) for name, batch in batches.items()}


def noise_lines(levels: Sequence[Level], samples: Mapping[str, int]) -> list[str]:
    """For people: the noise of each sampled oracle in the bound, its tau, and the samples."""
    if not is_noisy(level.term for level in levels):
        return []
    lines = [f"  samples  of f' {samples['f']:,}   of g' {samples['g']:,}"]
    parts = zip(levels, noise_weights(levels), strict=True)
    return lines + [_noise_line(level, noise) for level, noise in parts if level.term.variance > 0.0]


def _noise_line(level: Level, noise: Noise) -> str:
    term = level.term
    said = f"  noise    {term.name}': sigma^2 = {term.variance:.4g}, tau = {term.tau:.4g}"
    if not felt(level):
        return said
    curvature, sup = 0.5 * term.tau * level.last_alphas**2 * term.Omega, math.sqrt(term.variance * term.Omega)
    drift, sup = deviation(level, noise.spread), sup * math.sqrt(noise.squares)
    return f"{said}; in the bound {drift:.3g} + {curvature:.3g} (tau) + {sup:.3g} (sup over the domain)"
