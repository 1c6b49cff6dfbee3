"""What a call costs, estimated from sizes: deterministic, in operations. Declared costs replace it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from saddleslide.arrays.base import as_number
from saddleslide.errors import InputError
from saddleslide.functions.base import Function
from saddleslide.operators.base import Operator
from saddleslide.problem import SaddleProblem
from saddleslide.watcher import made

# A function or product of unknown code is taken to be this much dearer than a pass over its vector.
_UNKNOWN = 50.0
_FEWEST, _MOST = 12, 500
# Where the transforms of a step cost more than half a gradient, a few more gradients are cheaper than more steps.
_DEAR_STEP, _FEWEST_OF_DEAR_ONES = 0.5, 6
FEWEST_ON_G = 4


def product_cost(coupling: Operator) -> float:
    """Operations of one product."""
    known = coupling.operations
    return _UNKNOWN * (math.prod(coupling.x_shape) + math.prod(coupling.y_shape)) if known is None else known


def gradient_cost(f: Function, size: int) -> float:
    """Operations of one gradient."""
    if f.linear_image is not None:
        return 2.0 * product_cost(f.linear_image)
    # Of the parts alone, so that a plan does not depend on where they are; declare or measure what waiting costs.
    costs = f.over_parts(partial(gradient_cost, size=size))
    if costs:
        drawn, terms = f.drawn
        return sum(costs) * drawn / terms
    if f.separable:
        return 4.0 * size
    # A matrix costs its entries, as that of a dense Quadratic does.
    return sum(product_cost(operator) for operator, _ in f.operators) or _UNKNOWN * size


def estimate_costs(problem: SaddleProblem) -> tuple[float, float, float]:
    """Operations of one gradient of f, one of g and one product, from sizes."""
    f = gradient_cost(problem.f, math.prod(problem.X.shape))
    g = gradient_cost(problem.g, math.prod(problem.Y.shape))
    return f, g, product_cost(problem.coupling)


def measure_costs(problem: SaddleProblem, repeats: int = 3) -> tuple[float, float, float]:
    """Seconds of one gradient of f, one of g and one product: the fastest of a few calls each.

    The only place where the clock decides anything, and only when asked for; the plan records the numbers, so that a
    replay of the plan does not measure again.
    """
    (x, y), coupling = problem.start(), problem.coupling

    def seconds(call: Callable[[], object]) -> float:
        began = time.perf_counter()
        call()
        return time.perf_counter() - began

    calls = {
        "f": lambda: problem.f.gradient(x),
        "g": lambda: problem.g.gradient(y),
        "B": lambda: coupling.forward(x.reshape(coupling.x_shape)),
    }
    f, g, B = (min(made(name, partial(seconds, call)) for _ in range(repeats)) for name, call in calls.items())
    return f, g, B


def choose_costs(problem: SaddleProblem, costs: Any, name: str) -> tuple[float, float, float]:
    """Declared, measured ("measure") or estimated (None) costs of f', g' and a product."""
    if costs is None:
        return estimate_costs(problem)
    if isinstance(costs, str) and costs == "measure":
        return measure_costs(problem)
    listed = isinstance(costs, Sequence | np.ndarray) and not isinstance(costs, str)
    if not listed or (isinstance(costs, np.ndarray) and costs.ndim == 0):
        raise InputError(f"{name}: costs is {costs!r}; expected (c_f, c_g, c_B), 'measure' or None.")
    found = tuple(as_number(cost, f"{name}: costs", 0.0) for cost in costs)
    if len(found) != 3:
        raise InputError(f"{name}: costs has {len(found)} numbers; expected (c_f, c_g, c_B).")
    return found[0], found[1], found[2]


def inner_steps_per_gradient(
    problem: SaddleProblem, costs: tuple[float, float, float] | None, metric: str, fewest: int = _FEWEST
) -> int:
    """Coupling steps that cost as much as one gradient of f, within sensible limits."""
    size = math.prod(problem.X.shape)
    vectors = 10.0 * (size + math.prod(problem.Y.shape))
    transforms = 10.0 * size * math.log2(max(size, 2)) if metric in ("spectral", "fft") else 0.0
    if costs is None:
        gradient, product = gradient_cost(problem.f, size), product_cost(problem.coupling)
    else:
        gradient, product = costs[0], costs[2]
        vectors = transforms = 0.0
    step = 2.0 * product + vectors + transforms
    if transforms > _DEAR_STEP * gradient:
        fewest = min(fewest, _FEWEST_OF_DEAR_ONES)
    return int(min(max(gradient / step if step > 0.0 else _MOST, fewest), _MOST))


def g_steps_per_gradient(costs: tuple[float, float, float]) -> int:
    """Gradients of g that cost as much as one of f, within sensible limits."""
    return int(min(max(costs[0] / costs[1] if costs[1] > 0.0 else _MOST, FEWEST_ON_G), _MOST))
