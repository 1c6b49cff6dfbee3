"""Families of small random problems whose truth is known in 120 digits, the doors they go through, and the check.

A claim is refuted by any of: a success whose true gap at the returned point is above the target; a lower bound above,
or an upper bound below, what it bounds; a lower bound above the upper one. No slack is left for rounding: bounds
promise to contain it. Where f is not convex nothing is promised but that no success is false.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy.optimize
import scipy.sparse.linalg

import exact
import saddleslide as ss

F, D = ss.functions, ss.domains
LIMITS = {"f": 150, "g": 150, "B": 1000}
STEPS = 40


@dataclass
class Case:
    """A problem beside its truth, and what is asked of it."""

    family: str
    problem: ss.SaddleProblem
    saddle: exact.Saddle
    target: dict
    # A pair near the saddle point, where one is known beforehand.
    near: tuple | None = None
    convex: bool = True
    # Whether any success would be false.
    hopeless: bool = False
    told: str = ""

    @property
    def honest(self):
        """Whether all that the library is told is true."""
        return self.family in ("offset", "quadratic", "sums", "zero targets", "thin boxes", "smooth")


# Sets


def drawn_set(rng, n, scale, center=None, kinds=("space", "box", "ball", "simplex")):
    """A set of the package beside its twin; boxes and balls of size `scale`, around a center or 0."""
    kind = kinds[int(rng.integers(len(kinds)))]
    middle = np.zeros(n) if center is None else center
    if kind == "space":
        return D.FullSpace(n), exact.whole_space(n)
    if kind == "simplex":
        return D.Simplex(n), exact.simplex(n)
    if kind == "ball":
        radius = scale * rng.uniform(0.3, 2.0)
        return D.Ball(radius, shape=n, center=middle), exact.ball(radius, middle)
    lower, upper = middle - scale * rng.uniform(0.1, 2.0, n), middle + scale * rng.uniform(0.1, 2.0, n)
    return D.Box(lower, upper), exact.box(lower, upper)


def small_set(rng, n):
    return drawn_set(rng, n, 10.0 ** rng.uniform(-1.0, 1.0), kinds=("box", "ball", "simplex"))


# Functions: each a function of the package beside its twin


def conditioned(rng, rows, n, condition):
    k = min(rows, n)
    U, V = (np.linalg.qr(rng.standard_normal((size, k)))[0] for size in (rows, n))
    return (U * np.geomspace(1.0, 1.0 / condition, k)) @ V.T


def symmetric(rng, n, condition):
    Q = np.linalg.qr(rng.standard_normal((n, n)))[0]
    M = (Q * np.geomspace(1.0, 1.0 / condition, n)) @ Q.T
    return 0.5 * (M + M.T)


def plain(rng, n):
    """A function without surprises, for the other side."""
    kind = int(rng.integers(3))
    if kind == 0:
        return F.Zero(), exact.zero(n)
    if kind == 1:
        weight = 10.0 ** rng.uniform(-2.0, 1.0)
        return F.Quadratic(weight), exact.quadratic(weight * np.eye(n))
    c = rng.standard_normal(n)
    return F.Linear(c), exact.linear(c)


def matrix(rng, m, n):
    kind = rng.random()
    return np.zeros((m, n)) if kind < 0.15 else rng.standard_normal((m, n)) * 10.0 ** rng.uniform(-1.5, 0.5)


def drawn_target(rng):
    """Absolute or relative, from loose to far below rounding; now and then 0."""
    kind = rng.random()
    if kind < 0.55:
        return {"tol": float(10.0 ** rng.uniform(-14.0, 0.0))}
    if kind < 0.92:
        return {"reduction": float(10.0 ** rng.uniform(-16.0, -1.0))}
    return {"tol": 0.0} if kind < 0.96 else {"reduction": 1e-300}


def joined(family, rng, f, g, B, X, Y, **more):
    """A case from pairs of (ours, exact); the truth of B is its matrix."""
    (f, exact_f), (g, exact_g), (X, exact_X), (Y, exact_Y) = f, g, X, Y
    given, M = B if isinstance(B, tuple) else (B, B)
    problem = ss.SaddleProblem(f=f, g=g, B=given, X=X, Y=Y)
    saddle = exact.Saddle(exact_f, exact_g, exact.exactly(M), exact_X, exact_Y)
    return Case(family, problem, saddle, drawn_target(rng), **more)


def sizes(rng, most=5):
    return int(rng.integers(1, most + 1)), int(rng.integers(1, most + 1))


def mirrored(rng, family, f, X, g, Y, B, **more):
    """Either way round: the interesting side is x or y."""
    if rng.random() < 0.5:
        return joined(family, rng, f, g, B, X, Y, **more)
    B = (B[0].T, B[1].T) if isinstance(B, tuple) else B.T
    return joined(family, rng, g, f, B, Y, X, **more)


# Families


def offset_side(rng, n):
    """Least squares around a point that is far away."""
    rows = n + int(rng.integers(0, 4))
    condition = 10.0 ** (rng.uniform(0.0, 1.0) if rng.random() < 0.7 else rng.uniform(1.0, 6.0))
    A = conditioned(rng, rows, n, condition) * 10.0 ** rng.uniform(-1.0, 1.5)
    far = 10.0 ** rng.uniform(3.0, 9.0)
    x0 = far * rng.standard_normal(n)
    b = A @ x0 + 10.0 ** rng.uniform(-3.0, 1.0) * rng.standard_normal(rows)
    ridge = 0.0 if rng.random() < 0.7 else 10.0 ** rng.uniform(-6.0, 0.0)
    center = (None, x0, 0.5 * x0)[int(rng.integers(3))]
    kinds = ("space", "space", "box", "ball", "simplex")
    side = drawn_set(rng, n, far * 10.0 ** rng.uniform(-6.0, 1.0), center, kinds)
    return (F.LeastSquares(A, b, ridge=ridge), exact.least_squares(A, b, ridge)), side


def offset(rng):
    if rng.random() < 0.4:
        return sharp_offset(rng)
    n, m = sizes(rng)
    f, X = offset_side(rng, n)
    g, Y = offset_side(rng, m) if rng.random() < 0.25 else (plain(rng, m), small_set(rng, m))
    # Where <y, Bx> is large, its rounding hides that of f.
    B = matrix(rng, m, n) * 10.0 ** (rng.uniform(-9.0, 0.0) if rng.random() < 0.6 else 0.0)
    return mirrored(rng, "offset", f, X, g, Y, B)


def sharp_offset(rng):
    """The same with next to nothing beside it, so that every method gets down to rounding."""
    n, m = int(rng.integers(1, 4)), 1
    A = rng.integers(-7, 8, (n + 2, n)) + np.eye(n + 2, n) * rng.uniform(0.5, 1.0)
    far = 10.0 ** rng.uniform(3.0, 10.0)
    x0 = far * rng.standard_normal(n)
    b = A @ x0 + rng.standard_normal(n + 2)
    kinds = ("space", "space", "box", "ball")
    X = drawn_set(rng, n, far * 10.0 ** rng.uniform(-4.0, 0.0), x0, kinds)
    B = (0.0 if rng.random() < 0.5 else 10.0 ** rng.uniform(-1.0, 0.0) / far) * rng.standard_normal((m, n))
    f, g = (F.LeastSquares(A, b), exact.least_squares(A, b)), (F.Zero(), exact.zero(m))
    return mirrored(rng, "offset", f, X, g, small_set(rng, m), B)


def quadratic(rng):
    """Matrices up to a condition of 1e13, on either side."""
    n, m = sizes(rng)
    parts = []
    for size in (n, m):
        M = symmetric(rng, size, 10.0 ** rng.uniform(0.0, 13.0)) * 10.0 ** rng.uniform(-3.0, 3.0)
        x0 = 10.0 ** rng.uniform(-2.0, 7.0) * rng.standard_normal(size)
        c = -M @ x0 if rng.random() < 0.7 else rng.standard_normal(size)
        side = drawn_set(rng, size, 10.0 ** rng.uniform(-1.0, 6.0), x0 if rng.random() < 0.5 else None)
        parts.append(((F.Quadratic(M) + F.Linear(c), exact.quadratic(M, c)), side))
    (f, X), (g, Y) = parts
    if rng.random() < 0.5:
        g, Y = plain(rng, m), small_set(rng, m)
    B = matrix(rng, m, n) * 10.0 ** (rng.uniform(-7.0, 0.0) if rng.random() < 0.5 else 0.0)
    return mirrored(rng, "quadratic", f, X, g, Y, B)


def term(rng, n, kinked):
    kind = int(rng.integers(7 if kinked else 6))
    if kind == 0:
        return offset_side(rng, n)[0]
    if kind == 1:
        M = symmetric(rng, n, 10.0 ** rng.uniform(0.0, 10.0))
        return F.Quadratic(M), exact.quadratic(M)
    if kind == 2:
        q = 10.0 ** rng.uniform(-6.0, 3.0, n)
        return F.Quadratic(q, diagonal=True), exact.quadratic(np.diag(q))
    if kind == 3:
        c = 10.0 ** rng.uniform(-2.0, 6.0) * rng.standard_normal(n)
        return F.Linear(c), exact.linear(c)
    if kind == 4:
        delta = 10.0 ** rng.uniform(-2.0, 0.5)
        return F.Huber(delta), exact.huber(delta, n)
    if kind == 5:
        A = conditioned(rng, n + 2, n, 10.0)
        b = rng.standard_normal(n + 2)
        return F.LeastSquares(A, b), exact.least_squares(A, b)
    w = rng.uniform(0.1, 2.0, n)
    return F.Power(0.0, weight=w), exact.absolute(w)


def sum_of_terms(rng, n, kinked):
    ours, twin = term(rng, n, kinked)
    for _ in range(int(rng.integers(0, 3))):
        factor = 10.0 ** rng.uniform(-3.0, 3.0)
        more, twin_more = term(rng, n, kinked)
        if rng.random() < 0.5:
            ours, twin = ours + factor * more, twin.plus(twin_more.times(factor))
        else:
            ours, twin = factor * (ours + more), twin.plus(twin_more).times(factor)
    return ours, twin


def sums(rng):
    n, m = sizes(rng, 4)
    kinked = rng.random() < 0.4
    kinds = ("space", "box") if kinked else ("space", "box", "ball", "simplex")
    X = drawn_set(rng, n, 10.0 ** rng.uniform(-1.0, 4.0), kinds=kinds)
    g, Y = (sum_of_terms(rng, m, False) if rng.random() < 0.3 else plain(rng, m)), small_set(rng, m)
    return mirrored(rng, "sums", sum_of_terms(rng, n, kinked), X, g, Y, matrix(rng, m, n))


class Own(F.Function):
    """A class of the caller's own, with a modulus that may be anything."""

    def __init__(self, value, gradient, smoothness, modulus):
        self._value, self._gradient, self._smoothness, self._modulus = value, gradient, smoothness, modulus

    def value_and_gradient(self, x, out=None):
        found = self._gradient(x)
        if out is not None:
            out[...] = found
            found = out
        return float(self._value(x)), found

    def smoothness(self, domain):
        if self._smoothness is None:
            raise ss.errors.UnknownConstantError("Own: smoothness is not known.")
        return self._smoothness

    def strong_convexity(self, domain):
        return self._modulus


def own(rng):
    """Own classes and Custom, moduli overstated up to 1e6 times, or declared where there is no curvature."""
    n, m = sizes(rng)
    kind = int(rng.integers(3))
    if kind == 0:
        M, c = symmetric(rng, n, 10.0 ** rng.uniform(0.0, 6.0)), rng.standard_normal(n)
        modulus, H = float(np.linalg.eigvalsh(M)[0]), 1.0
        twin = exact.quadratic(M, c)
        value, gradient = (lambda x: 0.5 * x @ (M @ x) + c @ x), (lambda x: M @ x + c)
    elif kind == 1:
        c = rng.standard_normal(n)
        modulus, H, twin = 0.0, 1e-3, exact.linear(c)
        value, gradient = (lambda x: c @ x), (lambda x: c + 0.0 * x)
    else:
        A, c = rng.standard_normal((n + 1, n)), 0.3 * rng.standard_normal(n)
        modulus, H, twin = 0.0, float(np.linalg.norm(A, 2) ** 2), exact.log_cosh(A).plus(exact.linear(c))

        def value(x):
            r = np.abs(A @ x)
            # Both forms to the last digits, the first for small r, where the other is what is left of log(2).
            small = np.log1p(2.0 * np.sinh(0.5 * np.minimum(r, 1.0)) ** 2)
            return float(np.sum(np.where(r < 1.0, small, r + np.log1p(np.exp(-2.0 * r)) - np.log(2.0)))) + c @ x

        def gradient(x):
            return A.T @ np.tanh(A @ x) + c

    factor = 10.0 ** rng.uniform(0.0, 6.0)
    told = factor * (modulus or 10.0 ** rng.uniform(-6.0, 0.0))
    smoothness = ss.Holder(1.0, max(H, told)) if rng.random() < 0.5 else None
    made = Own if rng.random() < 0.6 else lambda value, gradient, *rest: F.Custom(gradient, value, *rest)
    kinds = ("box", "ball", "simplex", "space")
    X = drawn_set(rng, n, 10.0 ** rng.uniform(-1.0, 2.0), kinds=kinds)
    f = made(value, gradient, smoothness, told), twin
    note = f"modulus {told:.1e} for {modulus:.1e}"
    return mirrored(rng, "own", f, X, plain(rng, m), small_set(rng, m), matrix(rng, m, n), told=note)


def wrong_transpose(rng, M):
    """A transpose that is off by 1e-9 to 1 of the size of the matrix, and how."""
    error = 10.0 ** rng.uniform(-9.0, 0.0)
    kind = int(rng.integers(4))
    size = float(np.linalg.norm(M))
    if kind == 0:
        return (1.0 + error) * M.T, f"scaled by 1 + {error:.1e}"
    if kind == 1:
        E = rng.standard_normal(M.shape)
        return (M + error * size / np.linalg.norm(E) * E).T, f"noise of {error:.1e}"
    E = np.zeros(M.shape)
    i, j = (int(rng.integers(size)) for size in M.shape)
    if kind == 2:
        E[i, j] = error * size
        return (M + E).T, f"an entry off by {error:.1e}"
    E[i] = -error * M[i]
    return (M + E).T, f"a row off by {error:.1e}"


class OwnCoupling(ss.operators.Operator):
    """A coupling of the caller's own."""

    def __init__(self, M, T):
        self.M, self.T = M, T
        self.y_shape, self.x_shape = (M.shape[0],), (M.shape[1],)

    def forward(self, x, out=None):
        found = self.M @ x
        if out is None:
            return found
        out[...] = found
        return out

    def adjoint(self, y, out=None):
        found = self.T @ y
        if out is None:
            return found
        out[...] = found
        return out


def presented(rng, M, T):
    """Two products as callables, a LinearOperator or a class."""
    kind = int(rng.integers(3))
    m, n = M.shape
    if kind == 0:
        return ss.operators.as_operator((lambda x: M @ x, lambda y: T @ y), (n,), (m,))
    if kind == 1:
        return scipy.sparse.linalg.LinearOperator((m, n), matvec=lambda x: M @ x, rmatvec=lambda y: T @ y, dtype=float)
    return OwnCoupling(M, T)


def adjoint(rng):
    """Products with B that are not each other's transpose; what is true is the forward one."""
    n, m = sizes(rng)
    M = rng.standard_normal((m, n)) * 10.0 ** rng.uniform(-1.5, 1.0)
    T, told = wrong_transpose(rng, M)
    if rng.random() < 0.15:
        T, told = M.T.copy(), "right"
    far = 10.0 ** rng.uniform(-1.0, 3.0)
    A, b = conditioned(rng, n + 1, n, 10.0), far * rng.standard_normal(n + 1)
    f = (F.LeastSquares(A, b), exact.least_squares(A, b)) if rng.random() < 0.6 else plain(rng, n)
    kinds = ("space", "box", "ball", "simplex") if isinstance(f[0], F.LeastSquares) else ("box", "ball", "simplex")
    X = drawn_set(rng, n, far * 10.0 ** rng.uniform(-1.0, 1.0), kinds=kinds)
    return joined("adjoint", rng, f, plain(rng, m), (presented(rng, M, T), M), X, small_set(rng, m), told=told)


def adjoint_inside(rng):
    """The same of A inside a least-squares or logistic function: its gradient is not that of its value."""
    n, m = sizes(rng, 4)
    rows = n + 1
    A = rng.standard_normal((rows, n))
    T, told = wrong_transpose(rng, A)
    far = 10.0 ** rng.uniform(-1.0, 2.0)
    b, ridge = far * rng.standard_normal(rows), 10.0 ** rng.uniform(-3.0, 0.0)
    given = ss.operators.as_operator(presented(rng, A, T), (n,), (rows,))
    if rng.random() < 0.7:
        f = F.LeastSquares(given, b, ridge=ridge), exact.least_squares(A, b, ridge)
    else:
        labels = np.sign(b)
        f = F.Logistic(given, labels, ridge=ridge), exact.logistic(A, labels, ridge)
    X = drawn_set(rng, n, far * 10.0 ** rng.uniform(-1.0, 1.0))
    return mirrored(rng, "adjoint inside", f, X, plain(rng, m), small_set(rng, m), matrix(rng, m, n), told=told)


def off_by(error, seed, inside):
    """A regression whose B, or whose A, has an adjoint of the wrong scale."""
    rng = np.random.default_rng(seed)
    n, m = 4, 3
    A, b, M = conditioned(rng, n + 1, n, 3.0), 10.0 * rng.standard_normal(n + 1), rng.standard_normal((m, n))
    A_given = presented(rng, A, (1.0 + error) * A.T) if inside else A
    B_given = M if inside else presented(rng, M, (1.0 + error) * M.T)
    f = F.LeastSquares(A_given, b, ridge=0.5, x_shape=(n,)), exact.least_squares(A, b, 0.5)
    Y = D.Box(-np.ones(m), np.ones(m)), exact.box(-np.ones(m), np.ones(m))
    g = F.Quadratic(0.1), exact.quadratic(0.1 * np.eye(m))
    return joined("adjoint", rng, f, g, (B_given, M), (D.FullSpace(n), exact.whole_space(n)), Y)


def single(rng):
    """Products in single precision: what is true is the matrix."""
    n, m = sizes(rng)
    M = rng.standard_normal((m, n)).astype(np.float32).astype(float)
    low = M.astype(np.float32)
    pair = (
        lambda x: (low @ x.astype(np.float32)).astype(float),
        lambda y: (low.T @ y.astype(np.float32)).astype(float),
    )
    given = ss.operators.as_operator(pair, (n,), (m,))
    far = 10.0 ** rng.uniform(-1.0, 3.0)
    A, b = conditioned(rng, n + 1, n, 10.0), far * rng.standard_normal(n + 1)
    f = F.LeastSquares(A, b), exact.least_squares(A, b)
    return joined("single", rng, f, plain(rng, m), (given, M), drawn_set(rng, n, far), small_set(rng, m))


def game_pair(M):
    """Optimal strategies of the matrix game min over x, max over y of y'Mx, in doubles."""
    m, n = M.shape
    found = scipy.optimize.linprog(
        np.append(np.zeros(n), 1.0), A_ub=np.hstack([M, -np.ones((m, 1))]), b_ub=np.zeros(m),
        A_eq=np.append(np.ones(n), 0.0)[None], b_eq=[1.0], bounds=[(0, None)] * n + [(None, None)],
    )  # fmt: skip
    return found.x[:n], np.maximum(-found.ineqlin.marginals, 0.0)


def zero_targets(rng):
    """Values of 0, starts that are optimal, targets of 0."""
    n, m = sizes(rng)
    kind = int(rng.integers(4))
    target = (
        {"tol": 0.0},
        {"reduction": 0.0},
        {"reduction": 1e-300},
        {"tol": 1e-300},
        {"tol": 1e-14},
        {"reduction": 1e-3},
    )[int(rng.integers(6))]
    if kind == 0:
        M = rng.standard_normal((n, n)) if rng.random() < 0.5 else rng.integers(-3, 4, (n, n)).astype(float)
        M = M - M.T
        side = (D.Simplex(n), exact.simplex(n))
        zero = (F.Zero(), exact.zero(n))
        case = joined("zero targets", rng, zero, zero, M, side, side, near=game_pair(M) if n > 1 else None)
    elif kind == 1:
        M = rng.standard_normal((m, n))
        f, g = (F.Zero(), exact.zero(n)), (F.Zero(), exact.zero(m))
        simplices = (D.Simplex(n), exact.simplex(n)), (D.Simplex(m), exact.simplex(m))
        case = joined("zero targets", rng, f, g, M, *simplices, near=game_pair(M))
    elif kind == 2:
        # The start is the saddle point, and the value is 0.
        A = rng.standard_normal((n + 1, n))
        f = F.LeastSquares(A, np.zeros(n + 1)), exact.least_squares(A, np.zeros(n + 1))
        case = joined(
            "zero targets", rng, f, plain(rng, m), matrix(rng, m, n), drawn_set(rng, n, 1.0), small_set(rng, m)
        )
    else:
        # An exact fit far away.
        A = rng.integers(-3, 4, (n + 1, n)).astype(float)
        x0 = np.round(10.0 ** rng.uniform(0.0, 6.0) * rng.standard_normal(n))
        f = F.LeastSquares(A, A @ x0), exact.least_squares(A, A @ x0)
        g, Y = (F.Zero(), exact.zero(m)), small_set(rng, m)
        case = joined("zero targets", rng, f, g, matrix(rng, m, n), drawn_set(rng, n, 1.0, x0), Y)
    case.target = target
    return case


def concave_entry(a, c):
    """a/2 x^2 + c x with any sign of a."""
    a, c = exact.mpf(a), exact.mpf(c)

    def value(x):
        return a / 2 * x * x + c * x

    def best(tilt, low, high):
        points = [low, high] + ([min(max(-(c + tilt) / a, low), high)] if a > 0 else [])
        return min(points, key=lambda x: value(x) + tilt * x)

    return value, best


def nonconvex(rng):
    """Quadratics with some negative curvature, through callables, a matrix or a class; some stationary at the start."""
    n, m = sizes(rng)
    a = rng.uniform(0.1, 2.0, n) * np.where(rng.random(n) < 0.5, -1.0, 1.0)
    a[int(rng.integers(n))] = -rng.uniform(0.1, 2.0)
    c = rng.standard_normal(n) * (rng.random() < 0.6)
    X = drawn_set(rng, n, 10.0 ** rng.uniform(-1.0, 1.0), kinds=("box",))
    twin = exact.Exact(*exact.blank(n), entries=tuple(map(concave_entry, a, c)))

    def value(x):
        return 0.5 * float(x @ (a * x)) + float(c @ x)

    def gradient(x):
        return a * x + c

    f = Own(value, gradient, None, 0.0) if rng.random() < 0.4 else F.Custom(gradient, value)
    B = matrix(rng, m, n)
    g = (F.Zero(), exact.zero(m)) if rng.random() < 0.5 else (F.Quadratic(1.0), exact.quadratic(np.eye(m)))
    case = mirrored(rng, "nonconvex", (f, twin), X, g, small_set(rng, m), B, convex=False)
    case.target = {"tol": float(10.0 ** rng.uniform(-10.0, 0.0))}
    return case


def infeasible(rng):
    """Constraints that no point of X meets, or multipliers that the ball does not hold."""
    n = int(rng.integers(1, 5))
    width = 10.0 ** rng.uniform(-2.0, 3.0)
    A = rng.uniform(0.2, 1.0, (1, n))
    b = A.sum(axis=1) * width * (1.0 + 10.0 ** rng.uniform(-3.0, 1.0))
    weight = 10.0 ** rng.uniform(-1.0, 1.0)
    bound = None
    lower, upper = np.zeros(n), np.full(n, width)
    X = (D.Box(lower, upper), exact.box(lower, upper))
    told = "no feasible point"
    if rng.random() < 0.4:
        # The shortest x with Ax = b has the multiplier weight b / |A|^2.
        X = (D.FullSpace(n), exact.whole_space(n))
        bound = float(weight * b[0] / (A @ A.T)[0, 0] * rng.uniform(0.05, 0.95))
        told = "a bound that is too small"
    problem = ss.gallery.constrained(F.Quadratic(weight), A, b, X=X[0], bound=bound)
    radius = float(problem.Y.radius_at_zero)
    saddle = exact.Saddle(
        exact.quadratic(weight * np.eye(n)), exact.linear(b), exact.exactly(A), X[1], exact.ball(radius, np.zeros(1))
    )
    # Small against the gap of the start: a looser target may be met far inside the ball of multipliers, and truly.
    target = {"tol": float(radius * abs(b[0]) * 10.0 ** rng.uniform(-14.0, -6.0))}
    return Case("infeasible", problem, saddle, target, hopeless=True, told=told)


def thin_boxes(rng):
    """Boxes that are next to nothing in some directions, or points."""
    n, m = sizes(rng)
    parts = []
    for size in (n, m):
        middle = 10.0 ** rng.uniform(-3.0, 8.0) * rng.standard_normal(size)
        widths = np.where(rng.random(size) < 0.4, 0.0, 10.0 ** rng.uniform(-320.0, 1.0, size))
        lower = middle.copy()
        upper = np.where(rng.random(size) < 0.3, np.nextafter(middle, np.inf), middle + widths)
        parts.append((D.Box(lower, upper), exact.box(lower, upper)))
    f = sum_of_terms(rng, n, False) if rng.random() < 0.6 else plain(rng, n)
    return joined("thin boxes", rng, f, plain(rng, m), matrix(rng, m, n), *parts)


def smooth(rng):
    """Logistic losses with ridges, sums with quadratics."""
    n, m = sizes(rng, 3)
    A = rng.standard_normal((n + 2, n)) * 10.0 ** rng.uniform(-0.5, 1.0)
    labels = np.where(rng.random(n + 2) < 0.5, -1.0, 1.0)
    ridge = 10.0 ** rng.uniform(-6.0, 0.0)
    f = F.Logistic(A, labels, ridge=ridge), exact.logistic(A, labels, ridge)
    if rng.random() < 0.4:
        more, twin = term(rng, n, False)
        f = f[0] + more, f[1].plus(twin)
    X = drawn_set(rng, n, 10.0 ** rng.uniform(-1.0, 1.0))
    return mirrored(rng, "smooth", f, X, plain(rng, m), small_set(rng, m), matrix(rng, m, n))


FAMILIES: dict[str, Callable] = {
    "offset": offset,
    "quadratic": quadratic,
    "sums": sums,
    "own": own,
    "adjoint": adjoint,
    "adjoint inside": adjoint_inside,
    "single": single,
    "zero targets": zero_targets,
    "nonconvex": nonconvex,
    "infeasible": infeasible,
    "thin boxes": thin_boxes,
    "smooth": smooth,
}

# Doors

METRICS = ("blocks", "diagonal", "spectral")
PLANS = {
    "a plan": {},
    "a fixed plan": {"order": "fgB", "loops": (8, 2, 8)},
    "a theorem's plan": {"regime": "degenerate"},
    "restarts": {"regime": "restarts"},
}
DOORS = ("auto", "auto", "auto", "adaptive", *(f"adaptive, {metric}" for metric in METRICS), *PLANS,
         "certify", "certify", "certify a result", "resume", "resume auto")  # fmt: skip


def drawn_door(rng):
    """The doors of the library come up as often as all named methods together."""
    pool = DOORS if rng.random() < 0.6 else tuple(ss.methods.by_name)
    return pool[int(rng.integers(len(pool)))]


@dataclass
class Claim:
    """What came out of a door."""

    x: np.ndarray
    y: np.ndarray
    lower: float
    upper: float
    status: str
    success: bool = False
    target: float = math.nan
    assumes: str = ""
    # Whether the bounds are none on the whole sets at this point, but on the saddle value alone.
    elsewhere: bool = False


def _of(result):
    known = result.certificate
    # A success within radii, or over sets that have every solution, claims nothing of the gap over whole sets, which is
    # judged here; endless.py judges those.
    elsewhere = known.within_gap < known.gap or known.solutions != ""
    return Claim(
        np.asarray(result.x, float), np.asarray(result.y, float), known.lower, known.upper, result.status.name,
        result.success and not elsewhere, result.known_target, known.assumes, elsewhere,
    )  # fmt: skip


def claimed(case, rng):
    """What the library says of a case, and through which door; some are refused, and others are tried instead."""
    for _ in range(6):
        door = drawn_door(rng)
        try:
            return door, through(case, door, rng)
        except ss.errors.InputError:
            continue
    return "", None


def judged(family, seed):
    """A row: what came of one case of a family, and what is wrong with it."""
    rng = np.random.default_rng([seed, 19])
    case = FAMILIES[family](rng)
    door, claim = claimed(case, rng)
    row = {"seed": seed, "family": family, "door": door, "told": case.told}
    if claim is None:
        return {**row, "status": "REFUSED", "value": "", "wrong": []}
    wrong, value = complaints(case, claim)
    return {**row, "status": claim.status, "success": claim.success, "value": value, "wrong": wrong}


def through(case, door, rng):
    problem, target = case.problem, case.target
    # Rounding shows where a run has converged: some begin next to the saddle point.
    start = next_to_saddle(case, rng) if rng.random() < 0.3 else None
    limits = {"max_calls": LIMITS, "max_steps": STEPS}
    if door in PLANS:
        tol = max(target.get("tol", 1e-6), 1e-9)
        return _of(ss.run(problem, ss.plan(problem, tol, **PLANS[door]), start=start, max_calls=LIMITS))
    if door == "certify":
        return _certified(problem, *(start or anywhere(case, rng)))
    if door == "certify a result":
        found = ss.solve(problem, **target, start=start, **limits)
        return _certified(problem, found.x, found.y)
    if door.startswith("resume"):
        method = "auto" if "auto" in door else "adaptive"
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "run.npz"
            first = ss.solve(
                problem, **target, method=method, checkpoint=path, max_calls=LIMITS, max_steps=int(rng.integers(1, 6))
            )
            return _of(ss.resume(path, problem, **limits) if path.exists() else first)
    name, _, metric = door.partition(", ")
    return _of(ss.solve(problem, **target, method=name, metric=metric or "auto", start=start, **limits))


def anywhere(case, rng):
    """A feasible pair."""
    sides = case.problem.X, case.problem.Y
    return tuple(side.project(10.0 ** rng.uniform(-2.0, 3.0) * rng.standard_normal(side.shape)) for side in sides)


def next_to_saddle(case, rng):
    """The saddle point as far as doubles and a guess of what is active go, and some way off it now and then."""
    saddle = case.saddle
    if case.near is None:
        zeros = (exact.exactly(np.zeros(side.shape[0])) for side in (case.problem.X, case.problem.Y))
        x, y = (side.project(z) for side, z in zip((saddle.X, saddle.Y), zeros, strict=True))
        for _ in range(3):
            x, y = saddle.newton(x, y)
            x, y = saddle.below(y, x)[2], saddle.above(x, y)[2]
        pair = saddle.newton(x, y)
    else:
        pair = case.near
    off = 0.0 if rng.random() < 0.5 else 10.0 ** rng.uniform(-14.0, -2.0)
    sides = case.problem.X, case.problem.Y
    points = [np.asarray(point, float) for point in pair]
    if not all(np.isfinite(point).all() and np.abs(point).max(initial=0.0) < 1e100 for point in points):
        return anywhere(case, rng)
    moved = [point * (1.0 + off * rng.standard_normal(point.shape)) for point in points]
    return tuple(side.project(point) for side, point in zip(sides, moved, strict=True))


def _certified(problem, x, y):
    known = ss.certify(problem, x, y, max_gradients=100)
    return Claim(np.asarray(x, float), np.asarray(y, float), known.lower, known.upper, f"CERTIFIED {known.kind}",
                 assumes=known.assumes, elsewhere=known.solutions != "")  # fmt: skip


# The check


FALSE, CROSSED = "false success", "negative gap"


def _digits(number):
    return exact.mpmath.nstr(number, 6)


def complaints(case, claim):
    """What is wrong with a claim, in full sentences, and how far the saddle value is known."""
    saddle = case.saddle
    if case.hopeless and claim.success:
        return [f"{FALSE}: success in spite of {case.told}"], "known"
    if claim.assumes:
        # Bounds that rest on a declared modulus say so and are no success.
        return ([f"{FALSE}: success on a declared modulus"] if claim.success else []), "as declared"
    found = []
    if case.honest and claim.status == "INCONSISTENT":
        found.append("true oracles are called inconsistent")
    if math.isnan(claim.lower) or math.isnan(claim.upper):
        found.append("a bound is NaN")
    if claim.lower > claim.upper:
        found.append(f"{CROSSED}: lower {claim.lower:.17g}, upper {claim.upper:.17g}")
    x, y = exact.exactly(claim.x.ravel()), exact.exactly(claim.y.ravel())
    inside_x, inside_y = saddle.X.project(x), saddle.Y.project(y)
    for name, point, inside in (("x", x, inside_x), ("y", y, inside_y)):
        if exact.norm(point - inside) > 1e-9 * (1 + exact.norm(point)):
            found.append(f"{name} is outside its set")
    # A point may be a last bit outside: what holds there or at its projection is true of it.
    points_x = [x] if all(inside_x == x) else [x, inside_x]
    points_y = [y] if all(inside_y == y) else [y, inside_y]
    tops = [saddle.above(point, inside_y) for point in points_x]
    bottoms = [saddle.below(point, inside_x) for point in points_y]
    top, bottom = min(t[0] for t in tops), max(b[0] for b in bottoms)
    # Far above the rounding of 400 bits and far below that of doubles.
    slack = exact.SLACK * (1 + abs(saddle.f.constant) + abs(saddle.g.constant) + abs(top) + abs(bottom))
    met = top - bottom <= exact.mpf(claim.target) + slack
    if not case.convex:
        # Claims are made for convex functions; how often others pass for convex is counted, and no more.
        return found, "taken for convex" if claim.success and not met else "not convex"
    if claim.success and claim.target >= 0.0 and not met:
        found.append(f"{FALSE}: gap {_digits(top - bottom)} above the target {claim.target:.6g}")
    if math.isfinite(claim.upper) and not claim.elsewhere and top > exact.mpf(claim.upper) + slack:
        found.append(f"max F(x, .) exceeds upper {claim.upper:.17g} by {_digits(top - exact.mpf(claim.upper))}")
    if math.isfinite(claim.lower) and not claim.elsewhere and bottom < exact.mpf(claim.lower) - slack:
        found.append(f"min F(., y) is below lower {claim.lower:.17g} by {_digits(exact.mpf(claim.lower) - bottom)}")
    if not (math.isfinite(claim.lower) or math.isfinite(claim.upper)):
        return found, "not asked"
    near = (x, y) if case.near is None else tuple(map(exact.exactly, case.near))
    low, high = saddle.bracket(*near)
    for name, off in (("upper", low - exact.mpf(claim.upper)), ("lower", exact.mpf(claim.lower) - high)):
        if off > slack:
            found.append(f"{name} is on the wrong side of the saddle value by {_digits(off)}")
    width = exact.mpf(claim.upper) - exact.mpf(claim.lower)
    known = high - low <= max(exact.mpf(10) ** -25 * (1 + abs(high)), abs(width) / 1000)
    return found, "known" if known else "bracketed"
