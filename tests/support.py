"""Small helpers shared by the tests: samplers, counting oracles, brute-force references."""

import math
import os
import signal

import numpy as np

import saddleslide as ss


class Counter:
    """Wraps a callable and counts its calls."""

    def __init__(self, call):
        self.call = call
        self.count = 0

    def __call__(self, argument):
        self.count += 1
        return self.call(argument)


class CountedProblem:
    """min max of 1/2 |x - a|^2 + <y, Bx> - 1/2 |y - b|^2 from plain callables, each with its own counter."""

    def __init__(self, B, X=None, Y=None, f_gradient=None, g_gradient=None, norm=None, modulus=0.0):
        B = np.array(B)
        rows, columns = B.shape
        a, b = np.linspace(-1.0, 1.0, columns), np.linspace(0.5, -0.5, rows)
        self.f = Counter(f_gradient or (lambda x: x - a))
        self.g = Counter(g_gradient or (lambda y: y - b))
        self.f_value = Counter(lambda x: 0.5 * float(np.sum((x - a) ** 2)))
        self.g_value = Counter(lambda y: 0.5 * float(np.sum((y - b) ** 2)))
        self.forward, self.adjoint = Counter(lambda x: B @ x), Counter(lambda y: B.T @ y)
        smoothness = ss.Holder(nu=1.0, H=1.0)
        self.f_function = ss.functions.Custom(self.f, self.f_value, smoothness, strong_convexity=modulus)
        self.g_function = ss.functions.Custom(self.g, self.g_value, smoothness, strong_convexity=modulus)
        self.X = X or ss.domains.Box(-1.0, 1.0, shape=columns)
        self.Y = Y or ss.domains.Box(-1.0, 1.0, shape=rows)
        self.norm = norm
        pair = (self.forward, self.adjoint)
        coupling = ss.couplings.as_coupling(pair, x_shape=(columns,), y_shape=(rows,), norm=norm)
        self.problem = ss.SaddleProblem(f=self.f_function, g=self.g_function, B=coupling, X=self.X, Y=self.Y)

    @property
    def gradients(self):
        return self.f.count, self.g.count

    @property
    def products(self):
        return self.forward.count + self.adjoint.count

    @property
    def total(self):
        return self.f.count + self.g.count + self.products + self.f_value.count + self.g_value.count


def points_of(domain, rng, count):
    """Points spread over a domain: projections of normal draws of several sizes, so its boundary is met too."""
    scales = rng.choice([0.3, 1.0, 4.0], size=count)
    return [domain.project(scale * rng.standard_normal(domain.shape)) for scale in scales]


def inner(a, b):
    """Correctly rounded inner product."""
    return math.fsum((np.ravel(a) * np.ravel(b)).tolist())


def central_difference(value, x, step=1e-6):
    """Gradient of a smooth function from values alone."""
    gradient = np.empty(x.shape)
    for index in np.ndindex(x.shape):
        ahead, behind = x.copy(), x.copy()
        ahead[index] += step
        behind[index] -= step
        gradient[index] = (value(ahead) - value(behind)) / (2.0 * step)
    return gradient


def with_spectrum(values, rows, columns, rng):
    """A dense matrix with the given singular values and random singular vectors."""
    k = len(values)
    U = np.linalg.qr(rng.standard_normal((rows, k)))[0]
    V = np.linalg.qr(rng.standard_normal((columns, k)))[0]
    return (U * np.asarray(values)) @ V.T


def matrix_free(matrix):
    """The same map as two callables, with no matrix at hand."""
    rows, columns = matrix.shape
    pair = (lambda x: matrix @ x, lambda y: matrix.T @ y)
    return ss.couplings.as_coupling(pair, x_shape=(columns,), y_shape=(rows,))


def paper_plan(problem, tol=None, **options):
    """A plan as in the paper's tables: one run of Algorithm 1 in the identity metric unless said otherwise."""
    return ss.plan(problem, tol, **{"metric": "identity", "regime": "degenerate", **options})


def die_or_double(number):
    """A task for worker processes: 3 kills its process."""
    if number == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return 2 * number
