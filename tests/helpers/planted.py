"""Random saddle problems over regimes, domains, exponents, sizes, condition numbers and scales.

Every function comes with its own plain NumPy value and gradient, and every domain with its own projection, so that a
check built on them shares no code with the package. Part of the problems have a known saddle point (x*, y*): the
linear tilts are set so that f'(x*) + B^T y* + n_x = 0 and g'(y*) - B x* + n_y = 0 with n_x, n_y normal to X and Y.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.sparse

import saddleslide as ss

F, D = ss.functions, ss.domains
REGIMES = ("both", "x only", "y only", "none", "simple", "games")
EXPONENTS = (0.0, 0.25, 0.5, 0.75, 1.0)
# Relative targets, loosest first; without curvature only the piecewise-linear games go far.
TARGETS = {
    "both": (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8),
    "x only": (1e-1, 1e-2, 1e-3, 1e-4, 1e-5),
    "y only": (1e-1, 1e-2, 1e-3, 1e-4, 1e-5),
    "none": (1e-2, 3e-3, 1e-3),
    "simple": (1e-1, 1e-2, 1e-3, 1e-4, 1e-6),
    "games": (1e-2, 1e-3, 1e-4, 1e-6, 1e-8),
}


@dataclass(frozen=True)
class Piece:
    """A function of the package beside its plain NumPy value and (sub)gradient, free of the package."""

    function: object
    value: Callable
    gradient: Callable
    name: str
    terms: tuple = ()

    def plus(self, other):
        return Piece(
            self.function + other.function,
            lambda x: self.value(x) + other.value(x),
            lambda x: self.gradient(x) + other.gradient(x),
            f"{self.name}+{other.name}",
            ((1.0, self), (1.0, other)),
        )

    def times(self, factor):
        return Piece(
            factor * self.function,
            lambda x: factor * self.value(x),
            lambda x: factor * self.gradient(x),
            f"scaled {self.name}",
            ((factor, self),),
        )

    def size(self, x):
        """Sizes of the terms, which rounding of the value is relative to."""
        if self.terms:
            return sum(factor * term.size(x) for factor, term in self.terms)
        return abs(self.value(x)) + float(np.sum(np.abs(self.gradient(x) * x)))


@dataclass(frozen=True)
class Side:
    """A domain of the package beside its plain NumPy projection, and how to draw a point with a normal vector."""

    domain: object
    project: Callable
    draw: Callable
    name: str
    bounded: bool
    bounds: tuple | None = None


@dataclass(frozen=True)
class Planted:
    """A problem, its two blocks in plain NumPy, and the saddle point where it is known."""

    seed: int
    regime: str
    problem: ss.SaddleProblem
    f: Piece
    g: Piece
    X: Side
    Y: Side
    matrix: np.ndarray
    condition: float
    saddle: tuple | None = None
    value: float | None = None

    @property
    def reduction(self):
        targets = TARGETS[self.regime]
        return targets[self.seed // len(REGIMES) % len(targets)]

    @property
    def label(self):
        return (
            f"seed {self.seed} ({self.regime}): f {self.f.name} on {self.X.name}, g {self.g.name} on {self.Y.name}, "
            f"B {self.matrix.shape}, condition {self.condition:.1e}"
        )


# Domains


def full_space(rng, shape, scale):
    def draw():
        return scale * rng.standard_normal(shape), np.zeros(shape)

    return Side(D.FullSpace(shape), lambda x: x, draw, "full space", False, (-np.inf, np.inf))


def box(rng, shape, scale, one_sided=False):
    lower = -scale * rng.uniform(0.1, 2.0, shape)
    upper = scale * rng.uniform(0.1, 2.0, shape)
    if one_sided:
        open_above = rng.random(shape) < 0.5
        lower, upper = np.where(open_above, lower, -np.inf), np.where(open_above, np.inf, upper)
    elif rng.random() < 0.5:
        lower, upper = np.full(shape, -scale * rng.uniform(0.0, 2.0)), np.full(shape, scale * rng.uniform(0.1, 2.0))

    def draw():
        inside = np.clip(scale * rng.standard_normal(shape), lower, upper)
        kind = rng.random(shape)
        x = np.where((kind < 0.3) & np.isfinite(lower), lower, inside)
        x = np.where((kind > 0.7) & np.isfinite(upper), upper, x)
        sizes = rng.exponential(size=shape) * (rng.random(shape) < 0.8)
        return x, np.where(x == upper, sizes, np.where(x == lower, -sizes, 0.0))

    name = "one-sided box" if one_sided else "box"
    return Side(
        D.Box(lower, upper), lambda x: np.clip(x, lower, upper), draw, name, not one_sided, (lower, upper)
    )  # fmt: skip


def ball(rng, shape, scale):
    center = scale * rng.standard_normal(shape) if rng.random() < 0.25 else None
    radius = scale * rng.uniform(0.3, 2.0)
    middle = np.zeros(shape) if center is None else center

    def project(x):
        norm = np.sqrt(np.sum((x - middle) ** 2))
        return x if norm <= radius else middle + (x - middle) * (radius / norm)

    def draw():
        direction = rng.standard_normal(shape)
        direction /= np.sqrt(np.sum(direction**2))
        if rng.random() < 0.4:
            return middle + rng.uniform(0.0, 0.9) * radius * direction, np.zeros(shape)
        return middle + radius * direction, rng.exponential() * direction

    return Side(D.Ball(radius, shape=shape, center=center), project, draw, "ball", True)


def simplex_projection(x):
    """By bisection on the threshold, unlike the package's sort."""
    low, high = np.min(x) - 1.0, np.max(x)
    for _ in range(200):
        middle = 0.5 * (low + high)
        if np.maximum(x - middle, 0.0).sum() > 1.0:
            low = middle
        else:
            high = middle
    found = np.maximum(x - high, 0.0)
    return found / found.sum() if found.sum() > 0.0 else simplex_projection(x - np.max(x))


def simplex(rng, shape, scale):
    def draw():
        x = rng.exponential(size=shape) * (rng.random(shape) < 0.6)
        if x.sum() == 0.0:
            x.flat[rng.integers(x.size)] = 1.0
        x = x / x.sum()
        return x, rng.standard_normal() - np.where(x == 0.0, rng.exponential(size=shape), 0.0)

    return Side(D.Simplex(shape), simplex_projection, draw, "simplex", True)


# Functions


def zero(rng, shape):
    return Piece(F.Zero(), lambda x: 0.0, np.zeros_like, "zero")


def linear(rng, shape, c=None):
    c = rng.standard_normal(shape) if c is None else c
    return Piece(F.Linear(c), lambda x: float(np.sum(c * x)), lambda x: c.copy(), "linear")


def spectrum(rng, size, condition, flat):
    values = np.geomspace(1.0, 1.0 / condition, size)
    if flat:
        values[rng.integers(1, size + 1) :] = 0.0
    return values


def matrix_quadratic(rng, shape, condition, flat):
    size = int(np.prod(shape))
    Q = np.linalg.qr(rng.standard_normal((size, size)))[0]
    M = (Q * spectrum(rng, size, condition, flat)) @ Q.T
    M = 0.5 * (M + M.T)
    given = scipy.sparse.csr_array(M) if rng.random() < 0.2 else M
    return Piece(
        F.Quadratic(given),
        lambda x: 0.5 * float(x @ (M @ x)),
        lambda x: M @ x,
        "matrix quadratic",
    )


def diagonal_quadratic(rng, shape, condition, flat):
    q = spectrum(rng, int(np.prod(shape)), condition, flat).reshape(shape)
    return Piece(
        F.Quadratic(q, diagonal=True), lambda x: 0.5 * float(np.sum(q * x * x)), lambda x: q * x, "diagonal quadratic"
    )


def tall_matrix(rng, shape, condition, rows=None):
    size = int(np.prod(shape))
    rows = int(rng.integers(size, 2 * size + 1)) if rows is None else rows
    k = min(rows, size)
    U = np.linalg.qr(rng.standard_normal((rows, k)))[0]
    V = np.linalg.qr(rng.standard_normal((size, k)))[0]
    return (U * np.sqrt(spectrum(rng, k, condition, False))) @ V.T


def presented(rng, A, x_shape):
    """The same matrix as an array, sparse, or two callables."""
    kind = rng.integers(0, 4)
    if kind == 0:
        return scipy.sparse.csr_array(A)
    if kind == 1:
        rows = (A.shape[0],)
        pair = (lambda x: A @ x.ravel(), lambda y: (A.T @ y).reshape(x_shape))
        return ss.operators.as_operator(pair, x_shape=x_shape, y_shape=rows)
    return A


def least_squares(rng, shape, condition, flat):
    rows = max(1, int(np.prod(shape)) // 2) if flat else None
    A = tall_matrix(rng, shape, condition, rows)
    b = rng.standard_normal(len(A))
    ridge = 0.0 if flat or rng.random() < 0.5 else 1.0 / condition
    given = A if ridge == 0.0 else presented(rng, A, shape)

    def value(x):
        r = A @ x.ravel() - b
        return 0.5 * float(r @ r) + 0.5 * ridge * float(np.sum(x * x))

    def gradient(x):
        return (A.T @ (A @ x.ravel() - b)).reshape(shape) + ridge * x

    return Piece(F.LeastSquares(given, b, ridge=ridge, x_shape=shape), value, gradient, "least squares")


def logistic(rng, shape, condition, flat):
    A = tall_matrix(rng, shape, min(condition, 100.0))
    labels = np.where(rng.random(len(A)) < 0.5, -1.0, 1.0)
    ridge = 0.0 if flat else 1.0 / condition

    def value(x):
        margins = labels * (A @ x.ravel())
        return float(np.sum(np.maximum(-margins, 0.0) + np.log1p(np.exp(-np.abs(margins))))) + 0.5 * ridge * float(
            np.sum(x * x)
        )

    def gradient(x):
        margins = np.clip(labels * (A @ x.ravel()), -700.0, 700.0)
        return (A.T @ (-labels / (1.0 + np.exp(margins)))).reshape(shape) + ridge * x

    return Piece(F.Logistic(presented(rng, A, shape), labels, ridge=ridge, x_shape=shape), value, gradient, "logistic")


def poisson(rng, shape, condition, flat):
    A = np.abs(tall_matrix(rng, shape, min(condition, 100.0)))
    intensity, k = 10.0 ** rng.uniform(0.0, 3.0), rng.uniform(0.2, 1.0)
    counts = rng.poisson(intensity * np.exp(-k * rng.random(len(A)))).astype(float)
    ridge = 0.0 if flat else 1.0 / condition
    scale = 1.0 / (intensity * k * k)

    def value(x):
        q = k * (A @ x.ravel())
        return scale * float(np.sum(intensity * np.exp(-q) + counts * q)) + 0.5 * ridge * float(np.sum(x * x))

    def gradient(x):
        q = k * (A @ x.ravel())
        return scale * k * (A.T @ (counts - intensity * np.exp(-q))).reshape(shape) + ridge * x

    f = F.PoissonTransmission(A, counts, intensity, k, ridge=ridge, x_shape=shape)
    return Piece(f, value, gradient, "poisson")


def power(rng, shape, nu=None):
    nu = float(rng.choice(EXPONENTS)) if nu is None else nu
    w = rng.uniform(0.2, 1.0, shape) if rng.random() < 0.5 else np.full(shape, rng.uniform(0.2, 1.0))

    def gradient(x):
        return w * np.sign(x) * np.abs(x) ** nu

    return Piece(
        F.Power(nu, weight=w),
        lambda x: float(np.sum(w * np.abs(x) ** (1.0 + nu))) / (1.0 + nu),
        gradient,
        f"power {nu}",
    )


def huber(rng, shape):
    delta = 10.0 ** rng.uniform(-2.0, 0.5)

    def value(x):
        size = np.abs(x)
        return float(np.sum(np.where(size <= delta, size * size / (2.0 * delta), size - 0.5 * delta)))

    return Piece(F.Huber(delta), value, lambda x: np.clip(x / delta, -1.0, 1.0), "huber")


def custom(rng, shape, condition, flat):
    """Sum of log cosh (Ax - b), plus a ridge where curved: known only through its callables."""
    A = tall_matrix(rng, shape, min(condition, 100.0))
    b = rng.standard_normal(len(A))
    ridge = 0.0 if flat else 1.0 / condition

    def value(x):
        r = np.abs(A @ x.ravel() - b)
        return float(np.sum(r + np.log1p(np.exp(-2.0 * r)) - np.log(2.0))) + 0.5 * ridge * float(np.sum(x * x))

    def gradient(x):
        return (A.T @ np.tanh(A @ x.ravel() - b)).reshape(shape) + ridge * x

    H = float(np.linalg.norm(A, 2)) ** 2 + ridge
    f = F.Custom(gradient=gradient, value=value, smoothness=ss.Holder(1.0, H), strong_convexity=ridge)
    return Piece(f, value, gradient, "custom")


CURVED = ("matrix", "least squares", "logistic", "poisson", "diagonal", "custom", "sum", "huber sum", "power sum")
FLAT = ("zero", "linear", "power", "huber", "matrix", "least squares", "logistic", "poisson", "custom", "power sum")
SIMPLE_CURVED = ("diagonal", "power diagonal", "huber diagonal")
SIMPLE_FLAT = ("zero", "linear", "power", "huber", "diagonal")


def function(rng, shape, kind, condition, flat):
    vector = len(shape) == 1
    makers = {
        "zero": lambda: zero(rng, shape),
        "linear": lambda: linear(rng, shape),
        "power": lambda: power(rng, shape),
        "huber": lambda: huber(rng, shape),
        "matrix": lambda: matrix_quadratic(rng, shape, condition, flat),
        "diagonal": lambda: diagonal_quadratic(rng, shape, condition, flat),
        "least squares": lambda: least_squares(rng, shape, condition, flat),
        "logistic": lambda: logistic(rng, shape, condition, flat),
        "poisson": lambda: poisson(rng, shape, condition, flat),
        "custom": lambda: custom(rng, shape, condition, flat),
        "sum": lambda: least_squares(rng, shape, condition, flat).plus(logistic(rng, shape, condition, True)),
        "huber sum": lambda: least_squares(rng, shape, condition, flat).plus(huber(rng, shape)),
        "power sum": lambda: least_squares(rng, shape, condition, flat).plus(power(rng, shape)),
        "power diagonal": lambda: diagonal_quadratic(rng, shape, condition, flat).plus(power(rng, shape)),
        "huber diagonal": lambda: diagonal_quadratic(rng, shape, condition, flat).plus(huber(rng, shape)),
    }
    return makers["least squares" if kind == "matrix" and not vector else kind]()


# Problems


def block(rng, regime, curved, largest):
    """Domain and kind of function of one block."""
    size = int(rng.choice([1, 2, int(rng.integers(3, 12)), int(rng.integers(3, largest + 1))], p=[0.1, 0.1, 0.4, 0.4]))
    scale = 10.0 ** rng.uniform(-3.0, 3.0) if rng.random() < 0.5 else 1.0
    shape = (size,)
    if regime == "games":
        side = simplex if rng.random() < 0.6 else box
        return side(rng, shape, scale), "linear" if rng.random() < 0.5 else "zero", shape
    kinds = (SIMPLE_CURVED if curved else SIMPLE_FLAT) if regime == "simple" else (CURVED if curved else FLAT)
    kind = str(rng.choice(kinds))
    sides = ("box", "ball", "simplex") + (("full", "full", "one-sided") if curved and kind != "poisson" else ())
    side = str(rng.choice(sides))
    if side in ("full", "ball") and kind not in ("matrix",) and size > 8 and rng.random() < 0.25:
        shape = (2, size // 2)
    if kind == "poisson":
        # The curvature grows like exp(-Ax): bounded only where x is.
        scale = min(scale, 1.0)
    makers = {
        "box": lambda: box(rng, shape, scale),
        "one-sided": lambda: box(rng, shape, scale, one_sided=True),
        "ball": lambda: ball(rng, shape, scale),
        "simplex": lambda: simplex(rng, shape, scale),
        "full": lambda: full_space(rng, shape, scale),
    }
    return makers[side](), kind, shape


def coupling(rng, Y, X):
    rows, columns = Y.domain.size, X.domain.size
    scale = 10.0 ** rng.uniform(-3.0, 3.0) if rng.random() < 0.5 else 1.0
    M = scale * rng.standard_normal((rows, columns)) / np.sqrt(max(rows, columns))
    kind = rng.integers(0, 3)
    if kind == 1:
        M *= rng.random(M.shape) < 0.3
        return M, scipy.sparse.csr_array(M)
    if kind == 2:
        x_shape, y_shape = X.domain.shape, Y.domain.shape
        pair = (lambda x: (M @ x.ravel()).reshape(y_shape), lambda y: (M.T @ y.ravel()).reshape(x_shape))
        return M, ss.operators.as_operator(pair, x_shape=x_shape, y_shape=y_shape)
    return M, M


def planted(seed, regime=None, largest=60, condition=None):
    """The problem of a seed; every third has no planted point."""
    rng = np.random.default_rng(seed)
    regime = REGIMES[seed % len(REGIMES)] if regime is None else regime
    curved = {"both": (True, True), "x only": (True, False), "y only": (False, True)}.get(regime, (False, False))
    if regime == "simple":
        curved = tuple(bool(c) for c in rng.random(2) < 0.5)
    X, f_kind, x_shape = block(rng, regime, curved[0], largest)
    Y, g_kind, y_shape = block(rng, regime, curved[1], largest)
    condition = 10.0 ** rng.uniform(0.0, 6.0) if condition is None else condition
    f = function(rng, x_shape, f_kind, condition, not curved[0])
    g = function(rng, y_shape, g_kind, condition, not curved[1])
    f, g = (part.times(10.0 ** rng.uniform(-3.0, 3.0)) if rng.random() < 0.3 else part for part in (f, g))
    M, B = coupling(rng, Y, X)
    saddle = value = None
    if rng.random() < 2 / 3:
        (x, n_x), (y, n_y) = X.draw(), Y.draw()
        pull, reply = (M.T @ y.ravel()).reshape(x_shape), (M @ x.ravel()).reshape(y_shape)
        f_slope, g_slope = f.gradient(x), g.gradient(y)
        n_x = n_x * max(float(np.max(np.abs(f_slope + pull))), 1e-3)
        n_y = n_y * max(float(np.max(np.abs(g_slope - reply))), 1e-3)
        f = f.plus(linear(rng, x_shape, -(f_slope + pull + n_x)))
        g = g.plus(linear(rng, y_shape, reply - g_slope - n_y))
        saddle = (x, y)
        value = f.value(x) + float(np.sum(y * reply)) - g.value(y)
    problem = ss.SaddleProblem(f=f.function, g=g.function, B=B, X=X.domain, Y=Y.domain)
    return Planted(seed, regime, problem, f, g, X, Y, M, condition, saddle, value)
