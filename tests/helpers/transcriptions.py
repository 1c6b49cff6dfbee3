"""The paper's Algorithms 1 to 4, line by line and slowly, for the library to be held against.

Nothing of the library's method or planning is used here: only projections and the user's callables.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

import saddleslide as ss


@dataclass(frozen=True)
class Part:
    """One component (p, Q) with its constants; a missing half is the zero function or operator."""

    gradient: Callable | None = None
    operator: Callable | None = None
    L: float = 0.0
    M: float = 0.0
    tau: float = 0.0

    def dp(self, z):
        return np.zeros_like(z) if self.gradient is None else self.gradient(z)

    def Q(self, z):
        return np.zeros_like(z) if self.operator is None else self.operator(z)

    def component(self) -> ss.Component:
        """The same component for the library."""
        return ss.Component(
            function=self.gradient,
            smoothness=None if self.gradient is None else ss.Holder(1.0, self.L),
            operator=self.operator,
            lipschitz=self.M,
            tau=self.tau,
        )


@dataclass(frozen=True)
class Space:
    """The set Z and the diagonal of P, one weight per block."""

    domain: ss.domains.Domain
    weights: tuple[float, ...] = (1.0,)

    @property
    def P(self):
        return np.repeat(self.weights, [block.size for block in self.domain.blocks])

    def argmin(self, slope, *proximal):
        """argmin over Z of <slope, z> + sum of eta/2 |z - centre|_P^2 over the given pairs (eta, centre)."""
        total = sum(eta for eta, _ in proximal)
        centre = sum(eta * point for eta, point in proximal) / total
        return self.domain.project(centre - slope / (total * self.P))


def alpha(t: int) -> float:
    """Eq. alpha_sequence."""
    return 1.0 if t == 0 else 2.0 / (1.0 + math.sqrt(1.0 + 4.0 / alpha(t - 1) ** 2))


def eta(part: Part, t: Sequence[int], T: Sequence[int]) -> float:
    """Eq. eta_stochastic, which is eq. eta_inexact for tau = 0; t = (t_1, ..., t_k)."""
    now = math.prod(alpha(t_l) for t_l in t)
    ratio = math.prod(alpha(t_l) / alpha(T_l - 1) for t_l, T_l in zip(t, T, strict=False))
    return (part.L + part.tau) * now + part.M * ratio


def algorithm_1(parts: Sequence[Part], space: Space, z_in, T: Sequence[int]) -> list:
    """Sliding algorithm for any n: outermost averages. Iterates are kept under their multi-indices."""
    n = len(parts)
    z = {(k, (0,) * k): z_in for k in range(1, n + 1)}
    outermost = []

    def recursive_procedure(k, t, p):
        # p[i] is the gradient of p_i^{k,t} for i > k, and its proximal model (eta, centre, slope) for i <= k.
        if k == n:
            models = [p[i] for i in range(1, n + 1)]
            slope = sum(model_slope for _, _, model_slope in models)
            return space.argmin(slope, *((weight, centre) for weight, centre, _ in models))
        average = z[k + 1, (*t, 0)]
        for j in range(T[k]):
            now, following = (*t, j), (*t, j + 1)
            own, hat = parts[k], hat_p(p, k, alpha(j), average)
            weight, centre = eta(own, now, T), z[k + 1, now]
            below = {**hat, k + 1: (weight, centre, hat[k + 1](centre) + own.Q(centre))}
            tilde = recursive_procedure(k + 1, now, below)
            average = alpha(j) * tilde + (1.0 - alpha(j)) * average
            z[k + 1, following] = space.argmin(own.Q(tilde) - own.Q(centre), (weight, tilde))
            for level in range(k + 2, n + 1):
                z[level, following + (0,) * (level - k - 1)] = z[level, (*now, T[k + 1], *(0,) * (level - k - 2))]
            if k == 0:
                outermost.append(average)
        return average

    def hat_p(p, k, a, average):
        return {i: p[i] if i <= k else rescaled(p[i], a, average) for i in range(1, n + 1)}

    def rescaled(gradient, a, average):
        """Gradient of z -> p(a z + (1 - a) average) / a."""
        return lambda point: (1.0 / a) * (a * gradient(a * point + (1.0 - a) * average))

    recursive_procedure(0, (), {i: part.dp for i, part in enumerate(parts, start=1)})
    return outermost


def algorithm_2(part: Part, space: Space, z_0, T: int) -> list:
    """One level."""
    z, average, averages = z_0, z_0, []
    for t in range(T):
        a, beta = alpha(t), eta(part, (t,), (T,))
        middle = a * z + (1 - a) * average
        tilde = space.argmin(part.dp(middle) + part.Q(z), (beta, z))
        z = space.argmin(part.Q(tilde) - part.Q(z), (beta, tilde))
        average = a * tilde + (1 - a) * average
        averages.append(average)
    return averages


def algorithm_3(first: Part, second: Part, space: Space, z_0, T: tuple[int, int]) -> list:
    """Two levels: `z`, `bar` are z_k and its average, `w`, `w_bar` are z_k^t and its average."""
    z = bar = w = z_0
    averages = []
    for k in range(T[0]):
        a, beta = alpha(k), eta(first, (k,), T)
        under = a * z + (1 - a) * bar
        w_bar = w
        for t in range(T[1]):
            b, eta_kt = alpha(t), eta(second, (k, t), T)
            hat = b * w + (1 - b) * w_bar
            w_under = a * hat + (1 - a) * bar
            slope = first.dp(under) + second.dp(w_under) + first.Q(z) + second.Q(w)
            w_tilde = space.argmin(slope, (beta, z), (eta_kt, w))
            w_bar = b * w_tilde + (1 - b) * w_bar
            w = space.argmin(second.Q(w_tilde) - second.Q(w), (eta_kt, w_tilde))
        tilde = w_bar
        bar = a * tilde + (1 - a) * bar
        z = space.argmin(first.Q(tilde) - first.Q(z), (beta, tilde))
        averages.append(bar)
    return averages


def algorithm_4(order: str, parts: dict[str, Part], space: Space, z_0, T: tuple[int, int, int]) -> list:
    """Three levels of the bilinear saddle problem with beta = 0; order "fgB" is the printed one.

    In the other orders f', g' and (B^T y, -B x) move to the level that carries their letter: f' and g' are taken at
    that level's averaging point, the coupling at its iterate, and only the level of B corrects its iterate.
    """
    outer, middle, inner = (parts[letter] for letter in order)
    z1 = bar1 = z2 = z3 = z_0
    averages = []

    def corrected(part, weight, tilde, z):
        """A level without operator continues at its own new point, as printed for f and g."""
        return tilde if part.operator is None else space.argmin(part.Q(tilde) - part.Q(z), (weight, tilde))

    for k in range(T[0]):
        a, lam = alpha(k), eta(outer, (k,), T)
        under1 = a * z1 + (1 - a) * bar1
        bar2 = z2
        for t in range(T[1]):
            b, eta_kt = alpha(t), eta(middle, (k, t), T)
            under2 = a * (b * z2 + (1 - b) * bar2) + (1 - a) * bar1
            bar3 = z3
            for r in range(T[2]):
                c, gamma = alpha(r), eta(inner, (k, t, r), T)
                under3 = a * (b * (c * z3 + (1 - c) * bar3) + (1 - b) * bar2) + (1 - a) * bar1
                levels = ((outer, under1, z1), (middle, under2, z2), (inner, under3, z3))
                G = sum(part.dp(under) + part.Q(z) for part, under, z in levels)
                tilde3 = space.argmin(G, (lam, z1), (eta_kt, z2), (gamma, z3))
                bar3 = c * tilde3 + (1 - c) * bar3
                z3 = corrected(inner, gamma, tilde3, z3)
            bar2 = b * bar3 + (1 - b) * bar2
            z2 = corrected(middle, eta_kt, bar3, z2)
        bar1 = a * bar2 + (1 - a) * bar1
        z1 = corrected(outer, lam, bar2, z1)
        averages.append(bar1)
    return averages


def library_averages(parts: Sequence[Part], space: Space, z_0, T: Sequence[int]) -> list:
    """Outermost averages of `ss.slide` on the same components."""
    averages: list = []
    components = [part.component() for part in parts]
    metric = space.weights if len(space.weights) > 1 else space.weights[0]
    ss.slide(components, space.domain, z_0, T, metric, callback=lambda seen: averages.append(seen.z))
    return averages


def random_part(rng, space: Space, kind: str) -> Part:
    """A smooth convex p, a nonlinear monotone Q, or both ("p", "Q", "pQ"), with true constants in the P-norm."""
    size, smallest = space.domain.size, min(space.weights)
    A, b = rng.standard_normal((size + 1, size)), rng.standard_normal(size + 1)
    K = rng.standard_normal((size, size))
    K, c = K - K.T, 2.0 * rng.standard_normal(size)
    return Part(
        gradient=(lambda z: A.T @ np.tanh(A @ z - b)) if "p" in kind else None,
        operator=(lambda z: K @ z + np.tanh(z) + c) if "Q" in kind else None,
        L=np.linalg.norm(A, 2) ** 2 / smallest if "p" in kind else 0.0,
        M=(np.linalg.norm(K, 2) + 1.0) / smallest if "Q" in kind else 0.0,
    )


BOUNDED = {
    "box": Space(ss.domains.Box(-0.1, [0.2, 0.1, 0.3, 0.1, 0.2])),
    "ball": Space(ss.domains.Ball(0.2, shape=5, center=[0.1, 0.0, 0.0, -0.1, 0.0]), (2.5,)),
    "simplex": Space(ss.domains.Simplex(5)),
    "product": Space(ss.domains.Product(ss.domains.Ball(0.2, shape=2), ss.domains.Simplex(3)), (0.25, 3.0)),
}
SPACES = {
    **BOUNDED,
    "full space": Space(ss.domains.FullSpace(5)),
    "blocks": Space(ss.domains.Product(ss.domains.FullSpace(2), ss.domains.NonNegative(3)), (4.0, 0.5)),
}


def feasible_start(rng, space: Space):
    return space.domain.project(rng.standard_normal(space.domain.size))


def assert_same_iterates(found, expected, tolerance=1e-12):
    """As many iterates, each within the tolerance relative to its size."""
    for step, (one, other) in enumerate(itertools.zip_longest(found, expected), start=1):
        difference = np.max(np.abs(one - other)) / max(1.0, np.max(np.abs(other)))
        assert difference <= tolerance, f"step {step}: {difference:.1e}"


def assert_projection_is_active(domain, unprojected):
    """Some iterate of the same method without projections must leave the set, else a test proves nothing."""
    assert max(domain.violation(z) for z in unprojected) > 1e-2


def writers_of(components, domain):
    """Gradients and operators of components as `Recursion` takes them: in place, on flat points."""

    def gradient(one):
        return lambda z, out: one.linearise(z, out, domain) and None

    def operator(one):
        return lambda z, out: one.apply(z, out, domain)

    gradients = [gradient(one) if one.has_gradient else None for one in components]
    return gradients, [operator(one) if one.has_operator else None for one in components]
