"""Right-hand sides of Theorems 3.3 and 3.5 as numbers: the printed form and the sharp one with the actual alphas."""

from __future__ import annotations

import math
from collections.abc import Sequence

from saddleslide.errors import InputError
from saddleslide.theory.levels import Level, Term, last_alpha, nest_loops, sum_of_inverse_squares


def noise_weights(levels: Sequence[Level]) -> list[tuple[float, float]]:
    """(spread, squares) of each level: the sums over nodes in the proof of Theorem VI_sliding_stochastic_uniform.

    With the actual alphas spread = prod alpha_{T-1}^2 sum_t alpha_t^-2 (at most the number of calls) and squares = prod
    alpha_{T-1}^4 sum_t alpha_t^-2 (at most 2^k over the number of calls).
    """
    found, spread, squares = [], 1.0, 1.0
    for level in levels:
        a, total = last_alpha(level.T), sum_of_inverse_squares(level.T)
        spread *= a**2 * total
        squares *= a**4 * total
        found.append((spread, squares))
    return found


def drift(level: Level, spread: float) -> float:
    """sigma^2 spread / (2 tau); infinite without a tau."""
    return level.term.variance * spread / (2.0 * level.term.tau) if level.term.tau > 0.0 else math.inf


def operator_drift(level: Level, spread: float) -> float:
    """2 s^2 spread / step for the variance s^2 of a sampled operator (docs/theory.md)."""
    return 2.0 * level.term.operator_variance * spread / level.step


def is_felt(level: Level) -> bool:
    """Whether there is noise in gradients; it moves nothing on a single point."""
    return level.term.variance > 0.0 and level.term.Omega > 0.0


def is_felt_in_operator(level: Level) -> bool:
    """The same of an operator."""
    return level.term.operator_variance > 0.0 and level.term.Omega > 0.0


def noise_bound(levels: Sequence[Level]) -> float:
    """What sampled gradients add to the sharp bound: last two sums of Theorem VI_sliding_stochastic_uniform.

    Its sup is split by levels, so every level may have its own norm and Omega (docs/stochastic.md).
    """
    total, pairs = 0.0, list(zip(levels, noise_weights(levels), strict=True))
    for level, (spread, squares) in pairs:
        Omega = level.term.Omega
        if is_felt(level):
            total += drift(level, spread) + math.sqrt(level.term.variance * Omega * squares)
        if is_felt_in_operator(level):
            total += operator_drift(level, spread) + math.sqrt(level.term.operator_variance * Omega * squares)
    return total


def printed_noise_bound(levels: Sequence[Level]) -> float:
    """The same two sums as printed: sigma_i^2 A_i / (2 tau_i) and 2^(i/2) sigma_i sqrt(Omega / A_i)."""
    return math.fsum(
        drift(level, level.N) + math.sqrt(2.0**i * level.term.variance * level.term.Omega / level.N)
        for i, level in enumerate(levels, start=1)
        if is_felt(level)
    )


# Corollary 3.6 proves kappa_n = 2^(2n+2); the paper's tables use 1.
PRACTICAL_KAPPA = 1.0


def proved_kappa(n: int) -> float:
    """kappa_n of Corollary 3.6 (256 for three levels).

    Examples
    --------
    >>> proved_kappa(3)
    256.0
    """
    return 2.0 ** (2 * n + 2)


def budget(term: Term, eps: float) -> float:
    """R_i of Corollary 3.6: calls that the component needs for accuracy eps, up to a constant.

    A sampled gradient adds sigma^2 Omega / eps^2 (Corollary VI_sliding_stochastic_complexity, its sum as a maximum).

    Examples
    --------
    >>> budget(Term("B", M=2.0, Omega=120.0), eps=0.5)
    480.0
    """
    if not (eps > 0.0 and math.isfinite(eps)):
        raise InputError(f"budget: eps is {eps!r}; expected a finite number > 0.")
    smooth, p = 0.0, term.smoothness
    if p is not None and p.H > 0.0:
        smooth = (p.H * term.Omega ** ((1.0 + p.nu) / 2.0) / eps) ** (2.0 / (1.0 + 3.0 * p.nu))
    operator = term.M * term.Omega / eps if term.M > 0.0 else 0.0
    noise = term.noise * term.Omega / eps**2 if term.noise > 0.0 else 0.0
    return max(smooth, operator, noise, 1.0)


def sorted_by_budget(terms: Sequence[Term], eps: float) -> list[Term]:
    """Terms in the order of their budgets, outermost first; ties keep the given order.

    Examples
    --------
    >>> [t.name for t in sorted_by_budget([Term("g", M=9.0, Omega=1.0), Term("B", M=3.0, Omega=1.0)], 0.1)]
    ['B', 'g']
    """
    return sorted(terms, key=lambda term: budget(term, eps))


def loop_counts(terms: Sequence[Term], eps: float, kappa: float = PRACTICAL_KAPPA) -> tuple[int, ...]:
    """T_i = max(1, ceil(kappa R_i / N_{i-1})), for terms in the order of the levels.

    Examples
    --------
    >>> loop_counts([Term("f", M=10.0, Omega=1.0), Term("B", M=35.0, Omega=1.0)], eps=1.0)
    (10, 4)
    """
    calls = [kappa * budget(term, eps) for term in terms]
    for term, count in zip(terms, calls, strict=True):
        if not math.isfinite(count):
            expected = "expected a bounded one (Corollary 3.6), or explicit loops="
            raise InputError(f"component {term.name}: the domain is unbounded; {expected}.")
    return nest_loops(calls)


def sharp_bound(levels: Sequence[Level]) -> float:
    """Theorem 3.3 before alpha_{T-1} <= 2/T is used: sum of A_i Omega_i / 2 + delta_i / prod alpha.

    Every radius is the level's own Omega, so this is also the level-wise form (docs/theory.md). Levels with a variance
    add their noise: then it is Theorem VI_sliding_stochastic_uniform, a bound on the expected gap.

    Examples
    --------
    >>> from saddleslide.theory.levels import Term, place
    >>> sharp_bound(place([Term("B", M=2.0, Omega=4.0)], loops=(1,)))
    4.0
    """
    return noise_bound(levels) + math.fsum(
        _times(0.5 * ((level.L + level.term.tau) * level.last_alphas**2 + level.term.M * level.last_alphas), level)
        + level.delta / level.last_alphas
        for level in levels
    )


def printed_inexact_bound(levels: Sequence[Level]) -> float:
    """Theorem 3.3 as printed (eq. gap_bound_inexact), with the printed noise of levels that have a variance.

    Examples
    --------
    >>> from saddleslide.theory.levels import Term, place
    >>> printed_inexact_bound(place([Term("p", inexact=(0.5, 8.0), Omega=1.0)], loops=(4,)))
    3.0
    """
    return printed_noise_bound(levels) + math.fsum(
        _times(2.0 ** (2 * i - 1) * (level.L + level.term.tau) / level.N**2, level)
        + _times(2.0 ** (i - 1) * level.term.M / level.N, level)
        + level.delta * level.N
        for i, level in enumerate(levels, start=1)
    )


def printed_holder_bound(levels: Sequence[Level]) -> float:
    """Theorem 3.5 as printed (eq. Holder_gap_bound).

    Examples
    --------
    >>> from saddleslide import Holder
    >>> from saddleslide.theory.levels import Term, place
    >>> printed_holder_bound(place([Term("f", Holder(1.0, 8.0), Omega=1.0)], loops=(4,)))
    1.0
    """
    parts = []
    for i, level in enumerate(levels, start=1):
        p, smooth = level.term.smoothness, 0.0
        if p is not None and p.H > 0.0:
            scale = 2.0 ** (i * (1.0 + p.nu)) * p.H * level.term.Omega ** ((1.0 + p.nu) / 2.0)
            smooth = float(scale / ((1.0 + p.nu) * level.N ** ((1.0 + 3.0 * p.nu) / 2.0)))
        parts.append(smooth + _times(2.0 ** (i - 1) * level.term.M / level.N, level))
    return math.fsum(parts)


def _times(coefficient: float, level: Level) -> float:
    """Coefficient times Omega; a coefficient of 0 wins over an infinite Omega."""
    return coefficient * level.term.Omega if coefficient > 0.0 else 0.0
