"""What sampled gradients add to the bounds: the noise terms of Theorem VI_sliding_stochastic_uniform."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from saddleslide.theory.alphas import last_alpha, sum_of_inverse_squares
from saddleslide.theory.levels import Level


@dataclass(frozen=True)
class Noise:
    """Noise of one level in the bound: (sigma^2 / 2 tau) spread + sqrt(Omega) sigma sqrt(squares)."""

    spread: float
    squares: float


def noise_weights(levels: Sequence[Level]) -> tuple[Noise, ...]:
    """The sums over nodes in the proof of Theorem VI_sliding_stochastic_uniform, with the actual alphas.

    spread = prod alpha_{T-1}^2 sum_t alpha_t^-2 (at most the number of calls) and squares = prod alpha_{T-1}^4 sum_t
    alpha_t^-2 (at most 2^k over the number of calls).

    Examples
    --------
    >>> from saddleslide.theory.holder import Holder
    >>> from saddleslide.theory.levels import Term, place
    >>> noise_weights(place([Term("f", Holder(1.0, 1.0))], loops=(1,)))
    (Noise(spread=1.0, squares=1.0),)
    """
    found, spread, squares = [], 1.0, 1.0
    for level in levels:
        a, total = last_alpha(level.T), sum_of_inverse_squares(level.T)
        spread *= a**2 * total
        squares *= a**4 * total
        found.append(Noise(spread, squares))
    return tuple(found)


def noise_bound(levels: Sequence[Level]) -> float:
    """What sampled gradients add to the sharp bound: last two sums of Theorem VI_sliding_stochastic_uniform.

    Its sup is split by levels, so every level may have its own norm and Omega (docs/stochastic.md).

    Examples
    --------
    >>> from saddleslide.theory.levels import Term, place
    >>> from saddleslide.theory.noise import steadied
    >>> noise_bound(place(steadied([Term("f", variance=1.0, Omega=4.0)], (1,)), (1,)))
    4.0
    """
    return math.fsum(
        deviation(level, noise.spread) + math.sqrt(level.term.variance * level.term.Omega * noise.squares)
        for level, noise in zip(levels, noise_weights(levels), strict=True)
        if felt(level)
    )


def printed_noise_bound(levels: Sequence[Level]) -> float:
    """The same two sums as printed: sigma_i^2 A_i / (2 tau_i) and 2^(i/2) sigma_i sqrt(Omega / A_i).

    Examples
    --------
    >>> from saddleslide.theory.levels import Term, place
    >>> from saddleslide.theory.noise import steadied
    >>> round(printed_noise_bound(place(steadied([Term("f", variance=1.0, Omega=4.0)], (1,)), (1,))), 4)
    4.8284
    """
    return math.fsum(
        deviation(level, level.N) + math.sqrt(2.0**i * level.term.variance * level.term.Omega / level.N)
        for i, level in enumerate(levels, start=1)
        if felt(level)
    )


def felt(level: Level) -> bool:
    """Noise moves nothing on a single point."""
    return level.term.variance > 0.0 and level.term.Omega > 0.0


def deviation(level: Level, spread: float) -> float:
    """sigma^2 spread / (2 tau); infinite without a tau.

    Examples
    --------
    >>> from saddleslide.theory.levels import Term, place
    >>> deviation(place([Term("f", variance=4.0, tau=2.0)], (1,))[0], 3.0)
    3.0
    """
    return level.term.variance * spread / (2.0 * level.term.tau) if level.term.tau > 0.0 else math.inf
