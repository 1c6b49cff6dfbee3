"""The averaging weights alpha_t of eq. alpha_sequence."""

from __future__ import annotations

import math
from array import array
from functools import lru_cache
from threading import Lock


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


# alpha_t and the sum of alpha_s^-2 for s <= t, grown on demand; longer loops go on from the end.
_KEPT = 100_000
_alphas = array("d", [1.0])
_inverse_squares = array("d", [1.0])
_growing = Lock()


def alpha(t: int) -> float:
    """Give alpha_t alone, however far: a loop of any length may begin without a list of its weights.

    Examples
    --------
    >>> alpha(2) == alpha_sequence(3)[2], round(alpha(10**12) * 10**12, 6)
    (True, 2.0)
    """
    return _alphas[t] if t < len(_alphas) else _at(t + 1)[0]


def last_alpha(T: int) -> float:
    """Give alpha_{T-1}, what a level with T iterations contributes to the bounds.

    Examples
    --------
    >>> last_alpha(1)
    1.0
    """
    return _at(T)[0]


def sum_of_inverse_squares(T: int) -> float:
    """Sum of alpha_t^-2 over the T iterations of a level, at most alpha_{T-1}^-3 (Lemma alpha_properties).

    Examples
    --------
    >>> round(sum_of_inverse_squares(2), 4)
    3.618
    """
    return _at(T)[1]


@lru_cache(maxsize=1024)
def _at(T: int) -> tuple[float, float]:
    with _growing:
        while len(_alphas) < min(T, _KEPT):
            a = 2.0 / (1.0 + math.sqrt(1.0 + 4.0 / _alphas[-1] ** 2))
            # Readers look at the length of the other one.
            _inverse_squares.append(_inverse_squares[-1] + 1.0 / a**2)
            _alphas.append(a)
    if T <= _KEPT:
        return _alphas[T - 1], _inverse_squares[T - 1]
    return _far(T)


def _far(T: int) -> tuple[float, float]:
    """Beyond the kept ones u = 1/alpha grows by 1/2 + 1/(8u) a step; what is left out is below 1e-12 relative."""
    first, kept = 1.0 / _alphas[-1], _inverse_squares[-1]
    u = first + 0.5 * (T - _KEPT)
    # Euler and Maclaurin's sums of 1/(8u) and of u^2, where du/dt = 1/2 + 1/(8u) + 1/(32u^2) takes these steps.
    for _ in range(8):
        grown = 0.25 * math.log((4.0 * u + 1.0) / (4.0 * first + 1.0)) + 0.0625 * (1.0 / first - 1.0 / u)
        u = first + 0.5 * (T - _KEPT) + grown
    area = _area(u) - _area(first) + 0.5 * (u * u - first * first) + (u - first) / 12.0
    return 1.0 / u, kept + area


def _area(u: float) -> float:
    return 2.0 * u**3 / 3.0 - u * u / 4.0
