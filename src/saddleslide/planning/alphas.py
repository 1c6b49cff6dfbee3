"""The averaging weights alpha_t of eq. alpha_sequence."""

from __future__ import annotations

import math
from functools import lru_cache


@lru_cache(maxsize=64)
def alpha_sequence(length: int) -> tuple[float, ...]:
    """alpha_0 = 1, alpha_{t+1} = 2 / (1 + sqrt(1 + 4 / alpha_t^2)).

    Examples
    --------
    >>> [round(a, 4) for a in alpha_sequence(3)]
    [1.0, 0.618, 0.4559]
    """
    alphas = [1.0]
    while len(alphas) < length:
        alphas.append(2.0 / (1.0 + math.sqrt(1.0 + 4.0 / alphas[-1] ** 2)))
    return tuple(alphas[:length])


# Up to here alpha_{T-1} is computed step by step.
_STEPWISE = 1_000_000


@lru_cache(maxsize=1024)
def last_alpha(T: int) -> float:
    """Give alpha_{T-1}, what a level with T iterations contributes to the bounds.

    Examples
    --------
    >>> last_alpha(1)
    1.0
    """
    a = 1.0
    for _ in range(min(T, _STEPWISE) - 1):
        a = 2.0 / (1.0 + math.sqrt(1.0 + 4.0 / a**2))
    return a if T <= _STEPWISE else 1.0 / _far(1.0 / a, T - _STEPWISE)


def _far(s: float, steps: int) -> float:
    """S = 1/alpha after many more steps: it grows by 1/2 + 1/(8 s) each, so s - log(1 + 4 s) / 4 grows by 1/2."""
    end = s + 0.5 * steps
    for _ in range(4):
        end = s + 0.5 * steps + 0.25 * math.log((1.0 + 4.0 * end) / (1.0 + 4.0 * s))
    return end
