"""Primal-dual steps on the coupling with compiled updates, where metric, functions and domains are of known kinds."""

from __future__ import annotations

from typing import Any, final

import numpy as np

from saddleslide.arrays.base import Array
from saddleslide.arrays.kinds import NUMPY
from saddleslide.certificates.candidate import Split
from saddleslide.domains import Box, Domain, FullSpace
from saddleslide.functions.separable import SeparableForm
from saddleslide.kernels.arguments import Curve, DualUpdate, PrimalUpdate
from saddleslide.kernels.switch import jit_enabled, load
from saddleslide.methods.sliding.known import known_set
from saddleslide.methods.sliding.plain_steps import CouplingProblem, Steps
from saddleslide.metrics import Entrywise, Metric, Spectral
from saddleslide.operators import FiniteDifferences
from saddleslide.oracles.oracles import Oracles

# X in the coordinates of a spectral metric has no constraints: they are inactive, or the metric is given up.
_FREE = known_set(FullSpace(1))


class Workshop:
    """What all coupling problems of a run share: kernels, kinds, and vectors to work in."""

    def __init__(
        self, oracles: Oracles, metric: Spectral | Entrywise, f: SeparableForm, g: SeparableForm, sets: tuple[Any, Any]
    ) -> None:
        self.oracles, self.metric, self.f, self.g, self.sets = oracles, metric, f, g, sets
        self.curves = known_curve(f), known_curve(g)
        self.kernels, self.products = load("primal_dual"), load("products")
        problem = oracles.problem
        self.x_shape, self.y_shape = problem.X.shape, problem.Y.shape
        self.P, self.S = (_spread(symbol, self.x_shape) for symbol in (metric.symbol, metric.coupling_symbol))
        self.X = [np.empty(problem.X.size) for _ in range(2)]
        self.y = [np.empty(problem.Y.size) for _ in range(2)]
        self.ahead, self.pulled, self.Bx = np.empty(problem.Y.size), np.empty(problem.X.size), np.empty(problem.Y.size)

    def adjoint(self, y: Array) -> Array:
        """B^T y, in the shape of x."""
        coupling = self.oracles.problem.coupling
        out = self.pulled.reshape(self.x_shape)
        if not isinstance(coupling, FiniteDifferences):
            return self.oracles.adjoint(y.reshape(self.y_shape), out)
        self.oracles.products(1, lambda: self.products.difference_adjoint(*coupling.x_shape, y, self.pulled))
        return out

    def forward(self, x: Array) -> Array:
        """B x, flat."""
        coupling = self.oracles.problem.coupling
        if not isinstance(coupling, FiniteDifferences):
            return _contiguous(self.oracles.forward(x, self.Bx.reshape(self.y_shape)))
        flat = x.reshape(-1)
        self.oracles.products(1, lambda: self.products.difference_forward(*coupling.x_shape, 1.0, flat, self.Bx))
        return self.Bx


@final
class FusedSteps(Steps):
    """The steps of `PlainSteps` in two passes each, one per block, besides products and transforms."""

    def __init__(self, at: Workshop, given: CouplingProblem) -> None:
        self.at, self.metric = at, at.metric
        L, rho, model = given.L, given.rho, given.model
        self.X, self.y = (_contiguous(part) for part in given.start)
        origin = tuple(_contiguous(part) for part in given.origin)
        self.y_ahead = self.y
        base = L * self.metric.apply(given.center) - given.gradient - at.f.linear
        weight, near = L * at.P, rho * at.S
        inverse = 1.0 / (weight + near + _flat(at.f.quadratic))
        self.primal = PrimalUpdate(_contiguous(base), origin[0], near, inverse, weight)
        constant: Array | float = -at.g.linear
        stiffness: Array | float = 1.0 / rho + at.g.quadratic
        if model is not None:
            constant = constant + model.curvature * model.center - model.slope
            stiffness = stiffness + model.curvature
        inverse_y = _spread(np.divide(1.0, stiffness), at.y_shape)
        self.dual = DualUpdate(_spread(constant, at.y_shape), origin[1], inverse_y, 1.0 / rho)

    def advance(self, pull: Array | None = None) -> tuple[float, float]:
        at = self.at
        pull = at.adjoint(self.y_ahead) if pull is None else pull
        pulled = _contiguous(self.metric.to_basis(pull))
        X = at.X[0] if self.X is not at.X[0] else at.X[1]
        change, way = at.kernels.primal_step(X, pulled, self.X, self.primal, at.curves[0], at.sets[0])
        self.x = self.metric.from_basis(X.reshape(at.x_shape))
        self.Bx = at.forward(self.x)
        y = at.y[0] if self.y is not at.y[0] else at.y[1]
        given = y, at.ahead, self.y, self.Bx, self.dual, at.curves[1], at.sets[1]
        dual_change, dual_way = at.kernels.dual_step(*given)
        self.X, self.y, self.y_ahead = X, y, at.ahead
        return change + dual_change, way + dual_way

    def pull(self) -> Array:
        return self.at.adjoint(self.y).copy()

    def output(self) -> tuple[Array, Array, Array, Array]:
        at = self.at
        X, y, Bx = self.X.reshape(at.x_shape).copy(), self.y.reshape(at.y_shape).copy(), self.Bx.copy()
        x = X if isinstance(self.metric, Entrywise) else self.x
        return X, x, y, Bx.reshape(at.y_shape)


def workshop(oracles: Oracles, metric: Metric, split: Split) -> Workshop | None:
    """Where compiled steps can be made: diagonal metrics, boxes or full spaces, and simple parts without curves."""
    problem = oracles.problem
    f, g = split.f_simple.separable_form(), split.g_simple.separable_form()
    if (
        not jit_enabled()
        or problem.arrays != NUMPY
        or not isinstance(metric, Spectral | Entrywise)
        or f is None
        or g is None
    ):
        return None
    entrywise = isinstance(metric, Entrywise)
    sets = known_set(problem.X) if entrywise else _FREE, known_set(problem.Y)
    if (
        known_curve(f) is None
        or known_curve(g) is None
        or not _clips(problem.Y)
        or not (_clips(problem.X) or not entrywise)
    ):
        return None
    return Workshop(oracles, metric, f if entrywise else SeparableForm(), g, sets)


def known_curve(form: SeparableForm) -> Curve | None:
    """Weights of |x| and of |x|^(3/2) / (3/2), where nothing else bends the form; None otherwise.

    Examples
    --------
    >>> import saddleslide as ss
    >>> known_curve((2.0 * ss.functions.Power(0.5) + ss.functions.Power(0.0)).separable_form())
    Curve(threshold=1.0, root=2.0)
    """
    if form.hubers or any(np.ndim(weight) or nu not in (0.0, 0.5) for weight, nu in form.powers):
        return None
    threshold, root = (sum((float(weight) for weight, nu in form.powers if nu == wanted), 0.0) for wanted in (0.0, 0.5))
    return Curve(threshold, root)


def _contiguous(value: Array) -> Array:
    """Flat, as compiled steps take it."""
    return np.ascontiguousarray(value, dtype=np.float64).reshape(-1)


def _clips(domain: Domain) -> bool:
    return isinstance(domain, Box | FullSpace)


def _flat(value: Array | float) -> Array | float:
    return value.reshape(-1) if isinstance(value, np.ndarray) and value.ndim else value


def _spread(value: Array | float, shape: tuple[int, ...]) -> Array:
    return np.ascontiguousarray(np.broadcast_to(value, shape), dtype=np.float64).reshape(-1)
