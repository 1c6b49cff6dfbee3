"""Which metric `solve` works in, and why the better ones are not used."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from saddleslide import metrics
from saddleslide.domains.entrywise import Box, FullSpace
from saddleslide.domains.norms import Ball
from saddleslide.errors import InputError, raise_all
from saddleslide.functions.constants import exponent, hessian_diagonal, smoothness_at_hand, takes_factor
from saddleslide.functions.lifted import curvature_below, linear_models
from saddleslide.metrics.base import Blocks, Diagonal, Entrywise, Metric

if TYPE_CHECKING:
    from saddleslide.arrays.base import Array, Shape
    from saddleslide.functions.base import Function
    from saddleslide.oracles.oracles import Oracles
    from saddleslide.problem import SaddleProblem

METRICS = ("auto", "blocks", "diagonal", "spectral", "fft")
# Entries whose curvatures differ by less than this are as well served by one number.
_UNEVEN = 10.0


def choose_metric(problem: SaddleProblem, rest: Function, wanted: str | Metric) -> tuple[str, tuple[str, ...]]:
    """The metric that is used, and why the better ones are not."""
    if isinstance(wanted, Metric):
        _check_given(problem, wanted)
        return "given", (f"metric {wanted.name} as given",)
    # What keeps a metric that is not entrywise, fitted to the Hessian of f, from being used.
    free = []
    if not isinstance(problem.X, FullSpace | Box | Ball):
        free = [f"X is {problem.X}, whose constraint couples the entries"]
    elif not (rest.linear_image is not None or rest.quadratic):
        free = ["f offers no products with its Hessian"]
    # Looking at the diagonal of a Hessian takes a pass over its matrix.
    uneven = _diagonal_obstacles(problem, rest) if wanted == "diagonal" else []
    hard = {"spectral": free, "fft": free, "diagonal": uneven}.get(wanted, [])
    if hard:
        raise InputError(f"metric {wanted!r} can not be used: {'; '.join(hard)}.")
    if wanted != "auto":
        return wanted, (f"metric {wanted} as asked",)
    if grid_of(problem) is None:
        free.append("x is not an image")
    if not free:
        return "spectral", ("x is an image on a free domain: the Hessian of f is fitted in the cosine basis",)
    why = (f"no spectral metric: {'; '.join(free)}",)
    uneven = _diagonal_obstacles(problem, rest)
    if not uneven:
        weights = hessian_diagonal(rest, problem.X.shape)
        assert weights is not None
        spread = float(weights.max() / weights.min())
        if spread >= _UNEVEN:
            return "diagonal", (*why, f"curvatures of the entries of x differ by {spread:.2g}: each has its own weight")
        uneven.append(f"curvatures of the entries of x differ by {spread:.2g} only")
    return "blocks", (*why, f"no diagonal metric: {'; '.join(uneven)}")


def build_metric(name: str, oracles: Oracles, rest: Function, x: Array, seed: int) -> Metric:
    """The metric "diagonal", "spectral" or "fft" of a problem; the last two take counted products with the Hessian."""
    problem = oracles.problem
    if name == "diagonal":
        weights = hessian_diagonal(rest, problem.X.shape)
        assert weights is not None
        return Diagonal(weights).with_coupling(problem.coupling)
    lift = oracles.make_lift(rest)
    hessian = lift.hessian_stack(lift.lift(x) if not rest.quadratic else lift.blank(x))
    modulus = rest.strong_convexity(problem.X)
    seeded, basis = np.random.default_rng(seed), "fft" if name == "fft" else "dct"
    shape = problem.X.shape
    grid, diagonal = grid_of(problem) or shape, partial(hessian_diagonal, rest, shape)
    if grid == shape:
        return metrics.fit_spectral(hessian, shape, problem.coupling, modulus, seeded, basis=basis, diagonal=diagonal)

    def on_grid(stack: Array) -> Array:
        return hessian(stack.reshape(len(stack), *shape)).reshape(stack.shape)

    fitted = metrics.fit_spectral(on_grid, grid, problem.coupling, modulus, seeded, basis=basis, diagonal=diagonal)
    return fitted.on_grid(grid).with_coupling(problem.coupling)


def grid_of(problem: SaddleProblem) -> Shape | None:
    """The grid that x lies on: its own shape, or the one that B knows of a vector."""
    return next((shape for shape in (problem.X.shape, problem.coupling.x_shape) if len(shape) > 1), None)


def _diagonal_obstacles(problem: SaddleProblem, rest: Function) -> list[str]:
    obstacles = []
    if not isinstance(problem.X, FullSpace | Box):
        obstacles.append(f"X is {problem.X}, whose projection mixes the entries")
    if _has_mixing_step(problem):
        obstacles.append("a simple term of f has a proximal step that mixes the entries")
    if hessian_diagonal(rest, problem.X.shape) is None:
        obstacles.append("f does not show the diagonal of its Hessian")
    return obstacles


def _has_mixing_step(problem: SaddleProblem) -> bool:
    """Whether the simple part of f takes one step for all entries: norms of groups, of singular values, own code."""
    simple = problem.f_parts[1]
    return simple.separable_form() is None and not simple.has_entry_steps


def _check_given(problem: SaddleProblem, metric: Metric) -> None:
    """Refuse a metric that does not fit the block, before any work."""
    shape, complaints = np.shape(getattr(metric, "symbol", 1.0)), []
    if shape not in ((), problem.X.shape):
        complaints.append(f"metric {metric.name!r} has shape {shape}; expected {problem.X.shape}.")
    own_weights = isinstance(metric, Entrywise) and not isinstance(metric, Blocks)
    if own_weights and not isinstance(problem.X, FullSpace | Box):
        complaints.append(f"metric {metric.name!r} can not be used: X is {problem.X}, whose constraint mixes with it.")
    if isinstance(metric, Entrywise) and shape and _has_mixing_step(problem):
        complaints.append(f"metric {metric.name!r} can not be used: a simple term of f mixes the entries of x.")
    if not isinstance(metric, Entrywise):
        try:
            rough = exponent(problem.f_parts[0], problem.X) < 1.0
        except InputError:
            rough = False
        complaints += [f"metric {metric.name!r} needs a smooth f beside its simple terms."] * rough
    raise_all("metric", complaints)


def first_curvature(problem: SaddleProblem) -> float:
    """A first estimate of the curvature of f; backtracking corrects it either way."""
    rest = problem.f_parts[0]
    if takes_factor(rest) and (rest.quadratic or linear_models(rest)):
        return curvature_below(rest, problem.X.shape) or 1.0
    smoothness = smoothness_at_hand(rest, problem.X)
    if smoothness is None:
        return 1.0
    return smoothness.H if smoothness.nu == 1.0 and smoothness.H > 0.0 else max(smoothness.H, 1e-12)
