"""Right-hand sides of Theorems 3.3 and 3.5 as numbers: the printed form and the sharp one with the actual alphas."""

from __future__ import annotations

import math
from collections.abc import Sequence

from saddleslide.theory.deviations import noise_bound, printed_noise_bound
from saddleslide.theory.levels import Level


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
    return math.fsum(
        _holder_part(i, level) + _times(2.0 ** (i - 1) * level.term.M / level.N, level)
        for i, level in enumerate(levels, start=1)
    )


def _holder_part(i: int, level: Level) -> float:
    smoothness = level.term.smoothness
    if smoothness is None or smoothness.H == 0.0:
        return 0.0
    nu = smoothness.nu
    scale = 2.0 ** (i * (1.0 + nu)) * smoothness.H * level.term.Omega ** ((1.0 + nu) / 2.0)
    return float(scale / ((1.0 + nu) * level.N ** ((1.0 + 3.0 * nu) / 2.0)))


def _times(coefficient: float, level: Level) -> float:
    """Coefficient times Omega; a coefficient of 0 wins over an infinite Omega."""
    return coefficient * level.term.Omega if coefficient > 0.0 else 0.0
