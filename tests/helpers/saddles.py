"""Saddle problems whose saddle point is known by a linear solve or by construction, with Psi and gaps in plain NumPy.

Nothing of the library's planning, method or certificate is used here.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

import saddleslide as ss

F, D = ss.functions, ss.domains


@dataclass(frozen=True)
class Curve:
    """A convex function up to its tilt: the library's form, and slope and Bregman divergence of our own."""

    function: Callable
    slope: Callable
    bregman: Callable


def quadratic(matrix):
    """1/2 <u, matrix u> - <tilt, u>."""
    matrix = np.asarray(matrix)
    return Curve(
        lambda tilt: F.Quadratic(matrix) + F.Linear(-tilt),
        lambda u: matrix @ u,
        lambda u, star, slope: 0.5 * float((u - star) @ matrix @ (u - star)),
    )


def power(nu, weight, curvature, kinks=0.0):
    """1/2 q |u|^2 + w sum |u_i|^(1+nu) / (1+nu) - <tilt, u>; at nu = 0 the slope of |.| at 0 is `kinks`."""

    def value(u):
        return 0.5 * curvature * u * u + weight * np.abs(u) ** (1.0 + nu) / (1.0 + nu)

    def slope(u):
        root = np.sign(u) * np.abs(u) ** nu if nu > 0.0 else np.where(u == 0.0, kinks, np.sign(u))
        return curvature * u + weight * root

    return Curve(
        lambda tilt: F.Power(nu, weight, tilt, np.full(tilt.shape, curvature)),
        slope,
        lambda u, star, slope: math.fsum(value(u) - value(star) - slope * (u - star)),
    )


@dataclass(frozen=True)
class Saddle:
    """A problem, its saddle point, and the Bregman divergences from it."""

    problem: ss.SaddleProblem
    x: np.ndarray
    y: np.ndarray
    f_bregman: Callable
    g_bregman: Callable

    def Psi(self, x, y, weights):
        """Eq. Psi_s with P = diag(weights)."""
        dx, dy = x - self.x, y - self.y
        square = weights[0] * float(dx @ dx) + weights[1] * float(dy @ dy)
        return square + 12.0 * (self.f_bregman(x) + self.g_bregman(y))

    def near(self, rng, size=1.0):
        """A feasible point at about this distance of the saddle point."""
        X, Y = self.problem.X, self.problem.Y
        return (
            X.project(self.x + size * rng.standard_normal(self.x.shape)),
            Y.project(self.y + size * rng.standard_normal(self.y.shape)),
        )


def planted(f, g, B, x, y, X=None, Y=None, normals=(0.0, 0.0)):
    """Tilts such that f'(x) + B^T y + normals[0] = 0 and g'(y) - B x + normals[1] = 0."""
    f_slope, g_slope = f.slope(x), g.slope(y)
    problem = ss.SaddleProblem(
        f=f.function(f_slope + B.T @ y + normals[0]),
        g=g.function(g_slope - B @ x + normals[1]),
        B=B,
        X=X or D.FullSpace(x.shape),
        Y=Y or D.FullSpace(y.shape),
    )
    return Saddle(problem, x, y, lambda u: f.bregman(u, x, f_slope), lambda v: g.bregman(v, y, g_slope))


def spread(rng, n, low, high):
    """A symmetric matrix with eigenvalues spread geometrically from low to high and random eigenvectors."""
    Q = np.linalg.qr(rng.standard_normal((n, n)))[0]
    matrix = (Q * np.geomspace(low, high, n)) @ Q.T
    return 0.5 * (matrix + matrix.T)


def with_norm(rng, rows, columns, norm):
    B = rng.standard_normal((rows, columns))
    return B * (norm / np.linalg.norm(B, 2))


def solved_quadratic(A, C, a, b, B, X=None, Y=None):
    """min max of 1/2 <x, Ax> - <a, x> + <y, Bx> - 1/2 <y, Cy> + <b, y>: the saddle point by one linear solve."""
    z = np.linalg.solve(np.block([[A, B.T], [-B, C]]), np.concatenate([a, b]))
    x, y = z[: len(a)], z[len(a) :]
    problem = ss.SaddleProblem(
        f=quadratic(A).function(a),
        g=quadratic(C).function(b),
        B=B,
        X=X or D.FullSpace(len(a)),
        Y=Y or D.FullSpace(len(b)),
    )
    for domain, point in ((problem.X, x), (problem.Y, y)):
        assert isinstance(domain, D.FullSpace) or domain.violation(point * (1.0 + 1e-9)) == 0.0, "not interior"
    return Saddle(problem, x, y, lambda u: quadratic(A).bregman(u, x, None), lambda v: quadratic(C).bregman(v, y, None))


def conditioned(seed, kappa_x, kappa_y, kappa_xy, columns=5, rows=4, mu=(1.0, 1.0)):
    """A random quadratic problem on full spaces with mu and the condition numbers of eq. kappa_s (no anchors)."""
    rng = np.random.default_rng(seed)
    A = mu[0] * spread(rng, columns, 1.0, kappa_x)
    C = mu[1] * spread(rng, rows, 1.0, kappa_y)
    B = with_norm(rng, rows, columns, math.sqrt(kappa_xy * mu[0] * mu[1]))
    return solved_quadratic(A, C, rng.standard_normal(columns), rng.standard_normal(rows), B)


def mirrored(saddle):
    """The same problem with the players exchanged."""
    old = saddle.problem
    problem = ss.SaddleProblem(f=old.g, g=old.f, B=-old.coupling.dense().T, X=old.Y, Y=old.X)
    return Saddle(problem, saddle.y, saddle.x, saddle.g_bregman, saddle.f_bregman)


def smallest_value(matrix, tilt, domain):
    """Minimum of 1/2 <u, matrix u> + <tilt, u>: by a linear solve, or entry by entry on a box (diagonal matrix)."""
    if isinstance(domain, D.FullSpace):
        u = -np.linalg.solve(matrix, tilt)
    else:
        curvature = np.diag(matrix)
        assert np.array_equal(matrix, np.diag(curvature))
        ends = np.where(tilt > 0.0, domain.lower, domain.upper)
        inner = -tilt / np.where(curvature > 0.0, curvature, 1.0)
        u = np.where(curvature > 0.0, np.clip(inner, domain.lower, domain.upper), ends)
    return 0.5 * float(u @ matrix @ u) + float(tilt @ u)


@dataclass(frozen=True)
class Mixed:
    """1/2 <x, Ax> - <a, x> on R^n against 1/2 <y, Cy> - <b, y> on a box, C diagonal and singular: mu_y = 0."""

    A: np.ndarray
    C: np.ndarray
    a: np.ndarray
    b: np.ndarray
    B: np.ndarray
    Y: ss.domains.Box

    @classmethod
    def random(cls, seed, *, mu=0.5, kappa=3.0, norm=1.0, smooth=True, columns=4, rows=3):
        """The saddle point lies well inside the box."""
        rng = np.random.default_rng(seed)
        A = mu * spread(rng, columns, 1.0, kappa)
        C = np.diag([0.0, *rng.uniform(0.1, 1.0, rows - 1)]) if smooth else np.zeros((rows, rows))
        B = with_norm(rng, rows, columns, norm)
        x, y = rng.standard_normal(columns), rng.uniform(-0.3, 0.3, rows)
        return cls(A, C, A @ x + B.T @ y, C @ y - B @ x, B, D.Box(-1.0, 1.0, shape=rows))

    @property
    def problem(self):
        n = len(self.a)
        g = (F.Quadratic(np.diag(self.C)) + F.Linear(-self.b)) if self.C.any() else F.Linear(-self.b)
        return ss.SaddleProblem(f=quadratic(self.A).function(self.a), g=g, B=self.B, X=D.FullSpace(n), Y=self.Y)

    def regularised(self, weight, center):
        """Saddle of the problem with weight/2 |y - center|^2 added to g, from one linear solve; interior."""
        C = self.C + weight * np.eye(len(self.b))
        return solved_quadratic(self.A, C, self.a, self.b + weight * center, self.B, Y=self.Y)

    def gap(self, x, y):
        """The gap of the problem without regularisation."""
        f = 0.5 * float(x @ self.A @ x) - float(self.a @ x)
        g = 0.5 * float(y @ self.C @ y) - float(self.b @ y)
        upper = f - smallest_value(self.C, -self.b - self.B @ x, self.Y)
        lower = smallest_value(self.A, self.B.T @ y - self.a, D.FullSpace(len(x))) - g
        return upper - lower


def algorithm_4_with_anchors(problem, levels, beta, start):
    """Algorithm 4 as printed, order f, g, B, with p_3: outermost averages. `levels` hold T, L, M and the weights."""
    f, g, B, X, Y = problem.f, problem.g, problem.coupling.dense(), problem.X, problem.Y
    (T1, T2, T3), (L1, L2, L3) = [level.T for level in levels], [level.L for level in levels]
    M, (w_x, w_y) = levels[2].term.M, levels[2].term.weights
    anchor_g, anchor_f = g.gradient(start[1]), f.gradient(start[0])
    alpha = [1.0]
    while len(alpha) < max(T1, T2, T3):
        alpha.append(2.0 / (1.0 + math.sqrt(1.0 + 4.0 / alpha[-1] ** 2)))

    def combine(a, first, second):
        return tuple(a * u + (1.0 - a) * v for u, v in zip(first, second, strict=True))

    def argmin(slope, *proximal):
        total = sum(weight for weight, _ in proximal)
        x, y = (sum(weight * point[i] for weight, point in proximal) / total for i in (0, 1))
        return X.project(x - slope[0] / (total * w_x)), Y.project(y - slope[1] / (total * w_y))

    z1 = bar1 = z2 = z3 = start
    averages = []
    for k in range(T1):
        under1, lam, bar2 = combine(alpha[k], z1, bar1), L1 * alpha[k], z2
        for t in range(T2):
            under2 = combine(alpha[k], combine(alpha[t], z2, bar2), bar1)
            eta, bar3 = L2 * alpha[k] * alpha[t], z3
            for r in range(T3):
                now = alpha[k] * alpha[t] * alpha[r]
                gamma = L3 * now + M * now / (alpha[T1 - 1] * alpha[T2 - 1] * alpha[T3 - 1])
                under3 = combine(alpha[k], combine(alpha[t], combine(alpha[r], z3, bar3), bar2), bar1)
                G = (
                    f.gradient(under1[0]) + beta[0] * B.T @ (B @ under3[0] - anchor_g) + B.T @ z3[1],
                    g.gradient(under2[1]) + beta[1] * B @ (B.T @ under3[1] + anchor_f) - B @ z3[0],
                )
                tilde = argmin(G, (lam, z1), (eta, z2), (gamma, z3))
                bar3 = combine(alpha[r], tilde, bar3)
                turn = (B.T @ (tilde[1] - z3[1]), -B @ (tilde[0] - z3[0]))
                z3 = argmin(turn, (gamma, tilde))
            bar2, z2 = combine(alpha[t], bar3, bar2), bar3
        bar1, z1 = combine(alpha[k], bar2, bar1), bar2
        averages.append(bar1)
    return averages
