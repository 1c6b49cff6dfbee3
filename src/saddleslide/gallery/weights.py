"""The weight of the total variation: from the noise (discrepancy principle), or from a known picture (best PSNR)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np

from saddleslide.api.solver import solve
from saddleslide.arrays.base import Array, as_number
from saddleslide.errors import InputError
from saddleslide.functions import LeastSquares
from saddleslide.gallery.reconstruction import Reconstruction
from saddleslide.oracles.calls import Calls
from saddleslide.problem import SaddleProblem

_RTOL = 1e-4
# Standard deviation over median absolute value of a normal variable.
_MAD = 1.4826


@final
@dataclass(frozen=True)
class ChosenWeight:
    """A weight, the rule that chose it, what was tried (pairs of weight and score), and the calls of all solves.

    Examples
    --------
    >>> ChosenWeight(1e-4, "noise 0.1", ((1e-4, 0.1),)).weight
    0.0001
    """

    weight: float
    rule: str
    tried: tuple[tuple[float, float], ...]
    calls: Calls = field(default_factory=Calls)


def choose_weight(
    make: Callable[[float], SaddleProblem],
    *,
    noise: float | None = None,
    truth: Any = None,
    between: tuple[float, float] = (1e-6, 1e-1),
    steps: int = 12,
) -> ChosenWeight:
    """Choose the weight of a tomography problem.

    Parameters
    ----------
    make : callable
        weight -> problem, such as `lambda w: ss.gallery.reconstruct(sinogram, angles, w)`.
    noise : float, optional
        Standard deviation of one number of the sinogram. The weight is the one whose misfit is that large. When missing
        it is estimated from the sinogram's second differences, along bins or along angles; with few angles and bins the
        object itself bends more than the noise, the estimate is too large and the picture too smooth. For counts it is
        1 by definition.
    truth : array, optional
        The true picture: the weight with the best PSNR is searched instead.
    between : (float, float), optional
        Where to search, 0 < low < high.
    steps : int, optional
        Problems to solve, each to a relative gap of 1e-4.

    Returns
    -------
    ChosenWeight
        `weight`, every weight that was tried with its misfit or PSNR, and the calls of all solves.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> angles, truth = np.linspace(0.0, np.pi, 20, endpoint=False), ss.gallery.phantom(1, 16)
    >>> clean = ss.gallery.parallel_beam(16, angles, bins=23).project(truth)
    >>> sinogram = clean + 0.1 * np.random.default_rng(0).standard_normal(clean.shape)
    >>> chosen = choose_weight(lambda w: ss.gallery.reconstruct(sinogram, angles, w), noise=0.1, steps=6)
    >>> 1e-6 < chosen.weight < 1e-1
    True
    """
    low, high = (as_number(end, "choose_weight: between", 0.0) for end in between)
    if not 0.0 < low < high or steps < 3:
        raise InputError(
            f"choose_weight: between is {between}, steps is {steps}; expected 0 < low < high and at least 3 steps."
        )
    tried: list[tuple[float, float]] = []
    made: list[Calls] = []

    def solution(weight: float) -> Reconstruction:
        problem = make(weight)
        result = solve(problem, rtol=_RTOL)
        made.append(result.calls)
        found = problem.read(result)
        if not isinstance(found, Reconstruction):
            raise InputError(
                f"choose_weight: make returned a problem that reads as {type(found).__name__}; expected tomography."
            )
        return found

    def scored(score: Callable[[Reconstruction], float]) -> Callable[[float], float]:
        def at(logarithm: float) -> float:
            value = score(solution(math.exp(logarithm)))
            tried.append((math.exp(logarithm), value))
            return value

        return at

    ends = (math.log(low), math.log(high))
    if truth is not None:
        best = _golden(scored(lambda one: one.psnr(truth)), ends, steps)
        return ChosenWeight(best, "best PSNR", tuple(tried), sum(made, Calls()))
    target = _noise_of(make(low), noise)
    found = _bisect(scored(lambda one: float(np.sqrt(np.mean(one.residual**2)))), ends, target, steps)
    reached = min(value for _, value in tried) <= target
    rule = f"misfit {target:.4g}" if reached else f"the smallest: no weight brings the misfit down to {target:.4g}"
    return ChosenWeight(found, rule, tuple(tried), sum(made, Calls()))


def estimated_noise(sinogram: Array) -> float:
    """Standard deviation of the noise: the smaller of two medians of second differences, along bins and along angles.

    The object bends the sinogram too, so either is too large rather than too small.

    Examples
    --------
    >>> rough = np.random.default_rng(0).standard_normal((50, 60))
    >>> bool(abs(estimated_noise(rough) - 1.0) < 0.05)
    True
    """
    bends = [np.diff(sinogram, n=2, axis=axis) for axis in (0, 1) if sinogram.shape[axis] >= 3]
    # Rays beside the object bend nothing in data without noise: their exact zeros say nothing of it.
    sizes = [np.abs(bend[bend != 0.0]) for bend in bends]
    if not sizes:
        raise InputError(f"choose_weight: the sinogram has shape {sinogram.shape}; expected 3 angles or bins.")
    # The weights 1, -2, 1 make the variance six times as large.
    return min(float(_MAD * np.median(size) / math.sqrt(6.0)) if size.size else 0.0 for size in sizes)


def _noise_of(problem: SaddleProblem, noise: float | None) -> float:
    if noise is not None:
        return as_number(noise, "choose_weight: noise", 0.0)
    if not isinstance(problem.f, LeastSquares):
        return 1.0
    reader: Any = problem.reader
    return estimated_noise(reader.args[0])


def _bisect(misfit: Callable[[float], float], ends: tuple[float, float], target: float, steps: int) -> float:
    """The largest weight that was tried and whose misfit is at most the target: misfits grow with the weight."""
    low, high = ends
    for _ in range(steps):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if misfit(middle) <= target else (low, middle)
    return math.exp(low)


def _golden(quality: Callable[[float], float], ends: tuple[float, float], steps: int) -> float:
    """Golden-section search for the maximum, on logarithms."""
    ratio = (math.sqrt(5.0) - 1.0) / 2.0
    low, high = ends
    points = [high - ratio * (high - low), low + ratio * (high - low)]
    values = [quality(point) for point in points]
    for _ in range(steps - 2):
        if values[0] > values[1]:
            high = points[1]
            points, values = [high - ratio * (high - low), points[0]], [math.nan, values[0]]
        else:
            low = points[0]
            points, values = [points[1], low + ratio * (high - low)], [values[1], math.nan]
        values = [quality(point) if math.isnan(value) else value for point, value in zip(points, values, strict=True)]
    return math.exp(points[int(np.argmax(values))])
