"""H, mu, L_xy and Omega in the norms |x|_P, |y|_P of metrics: computed, bounded, or estimated and marked."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, final

import numpy as np
import scipy

from saddleslide.arrays.base import Array, as_number, length_of
from saddleslide.domains.base import Domain
from saddleslide.domains.entrywise import Box
from saddleslide.errors import InputError
from saddleslide.functions.base import Function
from saddleslide.functions.constants import hessian_diagonal
from saddleslide.functions.quadratic import Quadratic
from saddleslide.metrics.base import Entrywise, Metric, Symbol
from saddleslide.metrics.base import Operator as MetricOperator
from saddleslide.operators.base import Operator
from saddleslide.operators.explicit import Matrix, as_operator
from saddleslide.operators.spectrum import FACTORISABLE, margin_of_rounding, norm_bound
from saddleslide.problem import SaddleProblem
from saddleslide.theory.holder import Holder
from saddleslide.theory.hypotheses import ESTIMATE, Constant
from saddleslide.theory.levels import Term, levelwise_terms
from saddleslide.watcher import made

# Norms of the x block that are not a number; the weight between the blocks is chosen beside them.
BUILT_METRICS = ("diagonal", "spectral", "fft")
METRICS = ("auto", "blocks", "identity", "balanced", "levelwise", *BUILT_METRICS)
Weights = tuple[float, float]
# The norms of x and of y; None for the Euclidean one.
Norms = tuple[Metric | None, Metric | None]


def is_pair(metric: Any) -> bool:
    """Whether a norm is given for each block: numbers, matrices, objects of `ss.metrics`; two numbers are weights."""
    several = isinstance(metric, tuple | list) and len(metric) == 2
    return several and any(isinstance(one, Metric) or np.ndim(one) == 2 or scipy.sparse.issparse(one) for one in metric)


def is_matrix(metric: Any) -> bool:
    """Whether P of x is given as a matrix."""
    return scipy.sparse.issparse(metric) or (isinstance(metric, np.ndarray) and metric.ndim == 2)


def usable_norms(
    metrics: list[tuple[str, Weights | None]], used: Mapping[str, Constant]
) -> list[tuple[str, Weights | None]]:
    """Level-wise norms leave a block without curvature when neither its function nor B has any."""
    bare = used["L_xy"].value == 0.0 and min(used["H_x"].value, used["H_y"].value) == 0.0
    return [(name, weights) for name, weights in metrics if len(metrics) == 1 or weights is not None or not bare]


def block_norms(metric: Any, squares: tuple[float, float]) -> list[tuple[str, Weights | None]]:
    """The norms to compare: names with the weights of the two blocks, None for level-wise ones.

    `squares` are the largest squared distances from the start on X, in the norm of a metric of x, and on Y.
    """
    bounded = all(map(math.isfinite, squares))
    metric = "auto" if isinstance(metric, Metric) or is_matrix(metric) else metric
    if is_pair(metric):
        # P is what was asked for.
        metric = (1.0, 1.0)
    one = metric is None or np.isscalar(metric) or (isinstance(metric, np.ndarray) and metric.ndim == 0)
    usable = metric in METRICS if isinstance(metric, str) else one or isinstance(metric, Sequence | np.ndarray)
    if not usable:
        raise InputError(
            f"plan: metric is {metric!r}; expected one of {METRICS}, a number, (w_x, w_y), a matrix or one of "
            "ss.metrics."
        )
    if isinstance(metric, str):
        metric = "auto" if metric in ("blocks", *BUILT_METRICS) else metric
        if metric in ("balanced", "levelwise") and not bounded:
            raise InputError(f"plan: metric {metric!r} needs bounded domains; pass the weights (w_x, w_y).")
        # Balanced weights make both blocks equally large.
        balanced = (1.0 / (squares[0] or 1.0), 1.0 / (squares[1] or 1.0)) if bounded else None
        named = {"identity": (1.0, 1.0), "balanced": balanced, "levelwise": None}
        if metric == "auto":
            return list(named.items()) if bounded else [("identity", (1.0, 1.0))]
        return [(metric, named[metric])]
    pair: tuple[Any, ...] = (metric, metric) if one else tuple(metric)
    if len(pair) != 2:
        raise InputError(f"plan: metric has {len(pair)} weights; expected (w_x, w_y).")
    w_x, w_y = (as_number(weight, "plan: metric weight") for weight in pair)
    if min(w_x, w_y) <= 0.0:
        raise InputError(f"plan: metric weights are {(w_x, w_y)}; expected numbers > 0.")
    return [("identity" if (w_x, w_y) == (1.0, 1.0) else f"blocks ({w_x:.4g}, {w_y:.4g})", (w_x, w_y))]


def terms_in(used: Mapping[str, Constant], weights: Weights | None, squares: tuple[float, float]) -> list[Term]:
    """Terms of f, g and B in the P-norm, or each in its own (docs/theory.md); the order here breaks ties."""
    f = Holder(used["nu_x"].value, used["H_x"].value)
    g = Holder(used["nu_y"].value, used["H_y"].value)
    L_xy = used["L_xy"].value
    if weights is None:
        return levelwise_terms(f, g, L_xy, *squares)
    Omega = float(weights[0] * squares[0] + weights[1] * squares[1])
    return [
        Term("f", f.in_metric(weights[0]), weights=weights, Omega=Omega),
        Term("g", g.in_metric(weights[1]), weights=weights, Omega=Omega),
        Term("B", M=L_xy / math.sqrt(weights[0]) / math.sqrt(weights[1]), weights=weights, Omega=Omega),
    ]


# Products that an operator at hand only as products may be asked for, and what a search so short may miss.
_STEPS, _MARGIN = 12, 1.1


_SIDES = str.maketrans("xy", "yx")


def constants_in_norms(
    norms: Norms, problem: SaddleProblem, used: Mapping[str, Constant], declared: Mapping[str, float]
) -> dict[str, Constant]:
    """The constants of a plan in the norms of both blocks."""
    found, (x, y) = dict(used), norms
    if x is not None:
        found = constants_in(x, problem, found, declared)
    if y is not None:
        L_xy = found["L_xy"]
        turned = {name.translate(_SIDES): one for name, one in found.items()} | {"L_xy": L_xy}
        told = {name.translate(_SIDES) for name in declared} | {"L_xy"}
        turned = constants_in(y, problem.mirrored(), turned, dict.fromkeys(told, math.nan))
        found = {name.translate(_SIDES): one for name, one in turned.items() if name != "L_xy"} | {
            "L_xy": turned["L_xy"]
        }
    exact = "L_xy" not in declared and (y is not None or isinstance(x, MetricOperator))
    white = in_coordinates(norms, problem.coupling) if exact else None
    if white is not None:
        bound = norm_bound(white)
        found["L_xy"] = Constant(bound.upper, f"norm of B in the metric, upper bound: {bound.method}")
    return found


def in_coordinates(norms: Norms, coupling: Operator) -> Operator | None:
    """B where |x|_P and |y|_P are Euclidean norms: R_y^-T B R_x^-1 with P = R^T R; None where B is not at hand."""
    matrix = coupling.dense()
    if matrix is None or max(matrix.shape) > FACTORISABLE:
        return None
    for metric, shape in zip(norms, (coupling.x_shape, coupling.y_shape), strict=True):
        if metric is not None:
            R = scipy.linalg.cholesky(as_matrix(metric, shape))
            matrix = scipy.linalg.solve_triangular(R, matrix.T, trans="T").T
        matrix = matrix.T
    return Matrix(matrix)


def as_matrix(metric: Metric, shape: tuple[int, ...]) -> Array:
    """P as a matrix of flat points."""
    if isinstance(metric, MetricOperator) and metric.matrix is not None:
        return metric.matrix
    units = np.eye(math.prod(shape)).reshape(-1, *shape)
    P = np.array([metric.product(unit).ravel() for unit in units])
    return np.asarray(0.5 * (P + P.T))


def diameter_in(metric: Metric | None, domain: Domain) -> float:
    """An upper bound on the diameter of a set in the norm of a metric."""
    if isinstance(metric, Entrywise) and isinstance(domain, Box):
        return length_of(np.sqrt(metric.symbol) * (domain.upper - domain.lower))
    return domain.diameter() * (1.0 if metric is None else math.sqrt(metric.largest))


def smoothness_in(metric: Metric, function: Function, domain: Domain) -> Holder:
    """A Hölder condition of a function in the norm of a metric."""
    exact = _hessian_range(metric, function, domain.shape).get("H_x")
    if exact is not None and ESTIMATE not in exact.origin:
        return Holder(1.0, exact.value)
    return function.smoothness(domain).in_metric(smallest_eigenvalue(metric, domain.shape)[0])


def quadratic_in(metric: Metric | None, weight: float, shape: tuple[int, ...]) -> Function:
    """weight/2 |u|_P^2 of points of this shape."""
    if metric is None:
        return Quadratic(weight)
    if isinstance(metric, Entrywise):
        return Quadratic(weight * np.broadcast_to(metric.symbol, shape), diagonal=True)
    if isinstance(metric, MetricOperator) and metric.matrix is not None:
        P = metric.matrix if len(shape) == 1 else as_operator(metric.matrix, shape, shape)
        return Quadratic(weight * P)

    def product(u: Array) -> Array:
        return weight * metric.product(u)

    return Quadratic(as_operator((product, product), shape, shape, norm=weight * metric.largest), x_shape=shape)


def dual_length(metric: Metric | None, slope: Array) -> float:
    """The length of a slope in the dual norm of a metric."""
    if metric is None:
        return length_of(slope)
    return math.sqrt(max(float(np.vdot(slope, metric.inverse(slope))), 0.0))


def constants_in(
    metric: Metric, problem: SaddleProblem, used: Mapping[str, Constant], declared: Mapping[str, float]
) -> dict[str, Constant]:
    """The constants of a plan with those of the x block in the norm of a metric that is attached to the coupling.

    Declared constants are Euclidean, as everywhere, and are converted by the extreme eigenvalues of P.
    """
    # From the Euclidean ones and the extreme eigenvalues of P; then what f and B themselves say.
    smallest, mark = smallest_eigenvalue(metric, problem.X.shape)
    by_smallest, H, L_xy = f"and the smallest eigenvalue of P{mark}", used["H_x"], used["L_xy"]
    in_metric = Holder(used["nu_x"].value, H.value).in_metric(smallest)
    computed = {
        "H_x": Constant(in_metric.H, f"{H.origin}, {by_smallest}"),
        "L_xy": Constant(L_xy.value / math.sqrt(smallest), f"{L_xy.origin}, {by_smallest}"),
    }
    if "mu_x" in used:
        mu = used["mu_x"]
        computed["mu_x"] = Constant(mu.value / metric.largest, f"{mu.origin}, and the largest eigenvalue of P")
    exact = {} if "H_x" in declared else _hessian_range(metric, problem.f, problem.X.shape)
    # Both moduli are lower bounds, and that of the whole function may know of simple terms too.
    less = [name for name in exact if name == "mu_x" and name in computed and exact[name].value <= computed[name].value]
    computed |= {name: known for name, known in exact.items() if name not in declared and name not in less}
    if "L_xy" not in declared:
        computed["L_xy"] = _norm_in_metric(metric, problem.coupling)
    return {name: computed.get(name, constant) for name, constant in used.items()}


def oracles_in(
    norms: Norms, oracles: Mapping[str, tuple[float, float]], problem: SaddleProblem
) -> dict[str, tuple[float, float]]:
    """Declared (delta, L)-oracles with L in the norms: at most L over the smallest eigenvalue of P."""
    found = dict(oracles)
    for name, metric, domain in zip("fg", norms, (problem.X, problem.Y), strict=True):
        if metric is not None and name in oracles:
            delta, L = oracles[name]
            found[name] = (delta, L / smallest_eigenvalue(metric, domain.shape)[0])
    return found


def noise_in(norms: Norms, noise: Mapping[str, Constant], problem: SaddleProblem) -> dict[str, Constant]:
    """Variances in the dual norms: at most sigma^2 over the smallest eigenvalue of P."""
    found = dict(noise)
    for side, metric, domain in zip("xy", norms, (problem.X, problem.Y), strict=True):
        name = f"sigma2_{side}"
        if metric is not None and name in noise:
            smallest, mark = smallest_eigenvalue(metric, domain.shape)
            known = noise[name]
            found[name] = Constant(known.value / smallest, f"{known.origin}, in the dual norm of {side}{mark}")
    return found


def Omega_in(metric: Metric | None, domain: Domain, point: Array) -> float:
    """Largest |x - point|_P^2 on the domain."""
    if metric is None:
        return domain.squared_radius(point)
    if isinstance(metric, Entrywise) and isinstance(domain, Box):
        roots = np.sqrt(np.broadcast_to(metric.symbol, domain.shape))
        return Box(roots * domain.lower, roots * domain.upper).squared_radius(roots * point)
    return domain.squared_radius(point) * (metric.largest if domain.bounded else 1.0)


def _hessian_range(metric: Metric, f: Function, shape: tuple[int, ...]) -> dict[str, Constant]:
    """H_x and mu_x from the constant Hessian of f: generalised eigenvalues of (f'', P)."""
    if not f.quadratic or f.linear:
        return {}
    size = math.prod(shape)
    if size <= FACTORISABLE and hessian_diagonal(f, shape) is not None:
        units = np.eye(size).reshape(size, *shape)
        hessian = np.array([f.hessian_product(unit).ravel() for unit in units])
        P = np.array([metric.product(unit).ravel() for unit in units])
        values = scipy.linalg.eigh(0.5 * (hessian + hessian.T), 0.5 * (P + P.T), eigvals_only=True)
        error = float(values[-1]) * margin_of_rounding(size)
        low, high, origin = float(values[0]) - error, float(values[-1]) + error, "generalised eigenvalues of (f'', P)"
    else:
        low, high = _ritz_range(metric, f, shape)
        low, high, origin = low / _MARGIN, high * _MARGIN, f"{_STEPS} products with f'' in the metric; {ESTIMATE}"
    return {"H_x": Constant(high, origin), "mu_x": Constant(max(low, 0.0), origin)}


def _ritz_range(metric: Metric, f: Function, shape: tuple[int, ...]) -> tuple[float, float]:
    """Extreme Ritz values of P^-1 f'' after a few Lanczos steps in the inner product of P, seeded."""
    v = np.random.default_rng(0).standard_normal(shape)
    basis: list[Array] = []
    projected = np.zeros((_STEPS, _STEPS))
    for k in range(_STEPS):
        for other in basis:
            v = v - float(np.vdot(other, metric.product(v))) * other
        length = math.sqrt(max(float(np.vdot(v, metric.product(v))), 0.0))
        if not length > 1e-12 * (1.0 if k == 0 else float(np.abs(projected).max())):
            projected = projected[:k, :k]
            break
        basis.append(v / length)
        image = made("f", partial(f.hessian_product, basis[-1]))
        projected[k, : k + 1] = projected[: k + 1, k] = [float(np.vdot(other, image)) for other in basis]
        v = metric.inverse(image)
    values = np.linalg.eigvalsh(projected)
    return float(values[0]), float(values[-1])


def smallest_eigenvalue(metric: Metric, shape: tuple[int, ...]) -> tuple[float, str]:
    """A lower bound on the eigenvalues of P, and a mark where it is an estimate."""
    if isinstance(metric, Symbol):
        return float(np.min(metric.symbol)), ""
    if isinstance(metric, MetricOperator) and metric.matrix is not None and len(metric.matrix) <= FACTORISABLE:
        values = np.linalg.eigvalsh(metric.matrix)
        smallest = float(values[0]) - margin_of_rounding(len(values)) * float(values[-1])
        if smallest > 0.0:
            return smallest, ""
    x, inverse = np.random.default_rng(0).standard_normal(shape), 0.0
    for _ in range(_STEPS):
        x = metric.inverse(x / length_of(x))
        inverse = length_of(x)
    return 1.0 / (_MARGIN * inverse), f"; {ESTIMATE}"


def _norm_in_metric(metric: Metric, coupling: Operator) -> Constant:
    """Norm of B P^(-1/2); for an operator the factor that its power iterations found."""
    if not isinstance(metric, Symbol):
        return Constant(math.sqrt(1.0 / metric.balance), f"norm of B in the metric, power iterations; {ESTIMATE}")
    bound = float(np.max(metric.coupling_symbol / metric.symbol))
    found = norm_bound(_Rescaled(coupling, metric))
    if found.upper**2 <= bound:
        return Constant(found.upper, f"norm of B in the metric, upper bound: {found.method}")
    return Constant(math.sqrt(bound), "norm of B in the metric, upper bound: symbols of B^T B and P")


@final
class _Rescaled(Operator):
    """B P^(-1/2) for a P that is diagonal in a fast basis, as it is seen from there."""

    def __init__(self, coupling: Operator, metric: Symbol) -> None:
        self.inner, self.metric = coupling, metric
        self.x_shape, self.y_shape = coupling.x_shape, coupling.y_shape
        self.roots = np.sqrt(np.broadcast_to(metric.symbol, metric.to_basis(np.zeros(coupling.x_shape)).shape))

    def forward(self, x: Array, out: Array | None = None) -> Array:
        return self.inner.forward(self.metric.from_basis(x / self.roots), out)

    def adjoint(self, y: Array, out: Array | None = None) -> Array:
        found: Array = np.divide(self.metric.to_dual(self.inner.adjoint(y)), self.roots, out=out)
        return found
