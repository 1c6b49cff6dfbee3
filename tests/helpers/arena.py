"""A small saddle problem twice: for the library, and as flat NumPy formulas with constants of their own."""

import math

import numpy as np

import saddleslide as ss
from saddleslide.facts.facts import Facts
from saddleslide.oracles.oracles import Oracles


class Arena:
    """f and g powers or matrix quadratics with tilts, X a box, Y a ball, B dense; z = (x, y) flat."""

    columns, rows, low, high, radius = 7, 5, -0.3, 0.4, 0.6

    def __init__(self, seed=0, nus=None, coupling=1.3, tilt=1.5):
        rng = np.random.default_rng(seed)
        n, m = self.columns, self.rows
        self.nus = nus
        G, H = rng.standard_normal((n + 2, n)), rng.standard_normal((m + 3, m))
        self.A, self.C = G.T @ G / n, H.T @ H / m + 0.05 * np.eye(m)
        self.c_x, self.c_y = tilt * rng.standard_normal(n), tilt * rng.standard_normal(m)
        self.B = coupling * rng.standard_normal((m, n)) / math.sqrt(n)
        self.start = self.project(rng.standard_normal(n + m))
        self.norm = np.linalg.norm(self.B, 2)
        self.L_f, self.L_g = np.linalg.eigvalsh(self.A)[-1], np.linalg.eigvalsh(self.C)[-1]
        self.mu_f, self.mu_g = np.linalg.eigvalsh(self.A)[0], np.linalg.eigvalsh(self.C)[0]

    @property
    def problem(self):
        functions = ss.functions
        if self.nus is None:
            f = functions.Quadratic(self.A) + functions.Linear(-self.c_x)
            g = functions.Quadratic(self.C) + functions.Linear(-self.c_y)
        else:
            f, g = functions.Power(self.nus[0], tilt=self.c_x), functions.Power(self.nus[1], tilt=self.c_y)
        X = ss.domains.Box(self.low, self.high, shape=self.columns)
        return ss.SaddleProblem(f=f, g=g, B=self.B, X=X, Y=ss.domains.Ball(self.radius, shape=self.rows))

    def split(self, z):
        return z[: self.columns], z[self.columns :]

    def project(self, z):
        x, y = np.clip(z[: self.columns], self.low, self.high), z[self.columns :]
        return np.concatenate([x, y * min(1.0, self.radius / np.linalg.norm(y))])

    def gradients(self, z):
        x, y = self.split(z)
        if self.nus is None:
            return np.concatenate([self.A @ x - self.c_x, self.C @ y - self.c_y])
        power = [np.sign(u) * np.abs(u) ** nu for u, nu in zip((x, y), self.nus, strict=True)]
        return np.concatenate([power[0] - self.c_x, power[1] - self.c_y])

    def coupling(self, z):
        x, y = self.split(z)
        return np.concatenate([self.B.T @ y, -self.B @ x])

    def F(self, z):
        return self.gradients(z) + self.coupling(z)

    def weights(self, metric):
        """Diagonal of P: identity, or both domains equally large as seen from the start."""
        if metric == "identity":
            return 1.0, 1.0
        x, y = self.split(self.start)
        r_x = math.sqrt(np.sum(np.maximum(self.high - x, x - self.low) ** 2))
        r_y = self.radius + np.linalg.norm(y)
        return r_y / r_x, r_x / r_y

    def P(self, metric):
        return np.repeat(self.weights(metric), [self.columns, self.rows])

    def constants(self, metric):
        """L of the gradients and M of the coupling in the P-norm."""
        w_x, w_y = self.weights(metric)
        return max(self.L_f / w_x, self.L_g / w_y), self.norm / math.sqrt(w_x * w_y)

    def library(self, name, count, /, tol=0.1, **options):
        """Outputs of the library's method after each of the first iterations."""
        driven, points = Driven(self.problem, name, self.split(self.start), tol, **options), []
        for _ in range(count):
            driven.step()
            points.append(np.concatenate([part.ravel() for part in driven.point]))
        return points


class Driven:
    """A method driven by hand on a problem: its state, and the oracles with their counts."""

    def __init__(self, problem, method, start=None, tol=0.1, /, **options):
        self.problem, self.oracles, self.facts = problem, Oracles(problem), Facts(problem)
        self.method = ss.methods.by_name[method](**options) if isinstance(method, str) else method
        self.state = self.method.init(self.oracles, self.facts, problem.start() if start is None else start, tol)

    def step(self, count=1):
        """Iterations."""
        for _ in range(count):
            self.state = self.method.step(self.state, self.oracles)

    @property
    def point(self):
        return self.method.point(self.state, self.oracles)

    @property
    def candidates(self):
        return self.method.candidates(self.state, self.oracles)

    @property
    def gap(self):
        """The exact gap, judged from outside."""
        return ss.certify(self.problem, *self.point).gap

    @property
    def calls(self):
        return self.oracles.calls


def trace(problem, method, iterations, tol=0.1, start=None):
    """(iteration, exact gap, calls) of a method at the given iterations, judged from outside."""
    driven, rows, k = Driven(problem, method, problem.start(start), tol), [], 0
    for until in iterations:
        driven.step(until - k)
        k = until
        rows.append((k, driven.gap, driven.calls.copy()))
    return rows


def slope(xs, ys):
    """Slope of a straight line through (log x, log y)."""
    return float(np.polyfit(np.log(xs), np.log(ys), 1)[0])
