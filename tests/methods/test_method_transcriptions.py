"""Every method against its published scheme, written again on flat vectors: the first 20 iterates to 1e-12."""

from __future__ import annotations

import math

import numpy as np
import pytest

import saddleslide as ss
from arena import Arena, Driven
from transcriptions import Part, Space, algorithm_1

STEPS = 20
metrics = pytest.mark.parametrize("metric", ["identity", "balanced"])


def assert_same(found, expected, tolerance=1e-12):
    assert len(found) == len(expected) == STEPS
    for a, b in zip(found, expected, strict=True):
        assert np.max(np.abs(a - b)) <= tolerance
    # Iterates that stand still would agree for the wrong reason.
    assert np.max(np.abs(found[-1] - found[0])) > 1e-3


def extragradient(arena, eta, P):
    """Nemirovski: w_t = Prox_z(eta F(z)), z_t = Prox_z(eta F(w_t)); pairs (w_t, z_t)."""
    z, pairs = arena.start, []
    for _ in range(STEPS):
        w = arena.project(z - eta * arena.F(z) / P)
        z = arena.project(z - eta * arena.F(w) / P)
        pairs.append((w, z))
    return pairs


@metrics
def test_mirror_prox_average(metric):
    arena = Arena()
    pairs = extragradient(arena, 1.0 / sum(arena.constants(metric)), arena.P(metric))
    expected = [np.mean([w for w, _ in pairs[: t + 1]], axis=0) for t in range(STEPS)]
    assert_same(arena.library("mirror-prox", STEPS, metric=metric), expected)


@metrics
def test_mirror_prox_last_iterate(metric):
    arena = Arena(seed=1)
    pairs = extragradient(arena, 0.5 / sum(arena.constants(metric)), arena.P(metric))
    assert_same(arena.library("mirror-prox", STEPS, output="last", metric=metric), [z for _, z in pairs])


def test_mirror_prox_with_a_given_step():
    arena = Arena(seed=2)
    pairs = extragradient(arena, 0.2, np.ones(12))
    assert_same(arena.library("mirror-prox", STEPS, output="last", eta=0.2, metric="identity"), [z for _, z in pairs])


def accelerated_mirror_prox(arena, metric, gamma):
    """Chen, Lan and Ouyang, Algorithm 1, with w^ag as a sum with weights t."""
    P, r, middle_average = arena.P(metric), arena.start, arena.start
    points, found = [], []
    for t in range(1, STEPS + 1):
        alpha = 2.0 / (t + 1.0)
        slope = arena.gradients((1.0 - alpha) * middle_average + alpha * r)
        w = arena.project(r - gamma(t) * (arena.coupling(r) + slope) / P)
        r = arena.project(r - gamma(t) * (arena.coupling(w) + slope) / P)
        points.append(w)
        # alpha_t = 2/(t+1) means weights proportional to t.
        middle_average = sum(s * u for s, u in enumerate(points, start=1)) / (t * (t + 1) / 2)
        found.append(middle_average)
    return found


@metrics
def test_accelerated_mirror_prox_for_any_number_of_iterations(metric):
    arena = Arena(seed=3)
    L, M = arena.constants(metric)
    expected = accelerated_mirror_prox(arena, metric, lambda t: t / (2.0 * (L + M * t)))
    assert_same(arena.library("accelerated-mirror-prox", STEPS, metric=metric), expected)


def test_accelerated_mirror_prox_with_a_horizon_and_a_scale():
    arena = Arena(seed=4)
    L, M = arena.constants("identity")
    expected = accelerated_mirror_prox(arena, "identity", lambda t: t / (0.75 * (2.0 * L + STEPS * M)))
    options = {"horizon": STEPS, "scale": 0.75, "metric": "identity"}
    assert_same(arena.library("accelerated-mirror-prox", STEPS, **options), expected)


@metrics
def test_mirror_prox_sliding(metric):
    """Lan and Ouyang: each prox as the minimiser of its own sum of three terms."""
    arena = Arena(seed=5, coupling=2.0)
    (L, M), P = arena.constants(metric), arena.P(metric)
    z = average = arena.start
    expected, lengths = [], []
    for k in range(1, STEPS + 1):
        gamma, beta, T = 2.0 / (k + 1.0), 2.0 * L / k, math.ceil(k * M / L)
        slope = arena.gradients((1.0 - gamma) * average + gamma * z)
        inner, aheads = z, []
        for t in range(1, T + 1):
            eta = beta * (t - 1) + L * T / k
            centre = (beta * z + eta * inner) / (beta + eta)
            ahead = arena.project(centre - (slope + arena.coupling(inner)) / (P * (beta + eta)))
            inner = arena.project(centre - (slope + arena.coupling(ahead)) / (P * (beta + eta)))
            aheads.append(ahead)
        z = inner
        average = (1.0 - gamma) * average + gamma * np.mean(aheads, axis=0)
        expected.append(average)
        lengths.append(T)
    assert lengths[-1] > lengths[0]
    assert_same(arena.library("mirror-prox-sliding", STEPS, metric=metric), expected)


@pytest.mark.parametrize("eps", [0.01, 0.3])
@metrics
def test_universal_mirror_prox(metric, eps):
    """Stonyakin et al.: M_(k+1) = 2^(i-1) M_k with the smallest i >= 0 that passes, all trials from scratch."""
    arena = Arena(seed=6, nus=(0.75, 0.25), tilt=0.3)
    P, z, M = arena.P(metric), arena.start, 1.0
    points, expected, trials = [], [], 0
    for _ in range(STEPS):
        for i in range(60):
            trial = 2.0 ** (i - 1) * M
            w = arena.project(z - arena.F(z) / (trial * P))
            after = arena.project(z - arena.F(w) / (trial * P))
            left = (arena.F(w) - arena.F(z)) @ (w - after)
            trials += 1
            if left <= 0.5 * trial * (P @ (w - z) ** 2 + P @ (w - after) ** 2) + 0.5 * eps:
                break
        z, M = after, trial
        points.append((1.0 / M, w))
        expected.append(sum(a * u for a, u in points) / sum(a for a, _ in points))
    assert trials > STEPS
    assert_same(arena.library("universal-mirror-prox", STEPS, accuracy=eps, metric=metric), expected)


def parts_of(arena):
    f = Part(gradient=lambda z: np.concatenate([arena.split(arena.gradients(z))[0], np.zeros(arena.rows)]), L=arena.L_f)
    g = Part(
        gradient=lambda z: np.concatenate([np.zeros(arena.columns), arena.split(arena.gradients(z))[1]]), L=arena.L_g
    )
    return f, g


def product_space(arena):
    problem = arena.problem
    return Space(ss.domains.Product(problem.X, problem.Y), (1.0, 1.0))


@pytest.mark.parametrize("outer", ["f", "g"])
def test_two_level_sliding_is_algorithm_1_with_two_levels(outer):
    arena = Arena(seed=7)
    f, g = parts_of(arena)
    outside, inside = (f, g) if outer == "f" else (g, f)
    inside = Part(inside.gradient, arena.coupling, inside.L, arena.norm)
    expected = algorithm_1([outside, inside], product_space(arena), arena.start, (STEPS, 3))
    options = {"outer": outer, "outer_steps": STEPS, "inner_steps": 3, "metric": "identity"}
    assert_same(arena.library("two-level-sliding", STEPS, **options), expected)


def test_lockstep_is_algorithm_1_with_inner_loops_of_one():
    arena = Arena(seed=8)
    f, g = parts_of(arena)
    B = Part(operator=arena.coupling, M=arena.norm)
    expected = algorithm_1([f, g, B], product_space(arena), arena.start, (STEPS, 1, 1))
    assert_same(arena.library("lockstep", STEPS, steps=STEPS, metric="identity"), expected)


def test_recursive_sliding_is_algorithm_1_with_the_loops_of_its_plan():
    arena = Arena(seed=9)
    f, g = parts_of(arena)
    parts = {"f": f, "g": g, "B": Part(operator=arena.coupling, M=arena.norm)}
    eps = 0.02
    start = arena.split(arena.start)
    levels = ss.methods.by_name["recursive-sliding"](metric="identity").levels(arena.problem, start, eps)
    loops = tuple(level.T for level in levels)
    assert loops[0] >= STEPS
    assert max(loops[1:]) > 1
    expected = algorithm_1([parts[level.term.name] for level in levels], product_space(arena), arena.start, loops)
    found = arena.library("recursive-sliding", STEPS, tol=eps, loose=1.0, metric="identity")
    assert_same(found, expected[:STEPS])


def budget_by_hand(L, M, Omega, eps):
    """R of Corollary 3.6 for a Lipschitz gradient and an operator."""
    return max(math.sqrt(L * Omega / eps), M * Omega / eps, 1.0)


def stage_by_hand(name, arena, point, eps):
    """Parts and loops of a stage that begins at a point: Corollary 3.6 with kappa = 1, in the Euclidean norm."""
    x, y = arena.split(point)
    corner = np.maximum(arena.high - x, x - arena.low)
    Omega = corner @ corner + (arena.radius + np.linalg.norm(y)) ** 2
    f, g = parts_of(arena)
    B = Part(operator=arena.coupling, M=arena.norm)
    R = {part: budget_by_hand(part.L, part.M, Omega, eps) for part in (f, g, B)}
    if name == "lockstep":
        return [f, g, B], (math.ceil(max(R.values())), 1, 1)
    if name == "two-level-sliding":
        outside, inside = sorted((f, g), key=lambda part: R[part])
        T = math.ceil(R[outside])
        both = Part(inside.gradient, arena.coupling, inside.L, arena.norm)
        return [outside, both], (T, math.ceil(budget_by_hand(inside.L, arena.norm, Omega, eps) / T))
    parts, loops = sorted(R, key=lambda part: R[part]), []
    for part in parts:
        loops.append(max(1, math.ceil(R[part] / math.prod(loops))))
    return parts, tuple(loops)


@pytest.mark.parametrize("name", ["recursive-sliding", "two-level-sliding", "lockstep"])
def test_stages_begin_at_the_average_of_the_last_one_with_half_its_target(name):
    arena = Arena(seed=11, coupling=0.1)
    eps, loose = (16.0, 4.0) if name == "recursive-sliding" else (16.0, 1.0)
    options = {"loose": loose} if name == "recursive-sliding" else {}
    found = arena.library(name, STEPS, tol=eps / loose, metric="identity", **options)
    expected, point, stages = [], arena.start, 0
    while len(expected) < STEPS:
        parts, loops = stage_by_hand(name, arena, point, eps)
        expected += algorithm_1(parts, product_space(arena), point, loops)
        point, eps, stages = expected[-1], 0.5 * eps, stages + 1
    assert stages >= 4
    assert_same(found, expected[:STEPS])


class Minimisation:
    """phi(x) = f(x) + max over |y_i| <= 0.5 of <y, Bx> - modulus/2 |y|^2, and the library's problem."""

    def __init__(self, modulus, seed=9):
        self.arena = arena = Arena(seed=seed)
        self.modulus = modulus
        f = ss.functions.Quadratic(arena.A) + ss.functions.Linear(-arena.c_x)
        g = ss.functions.Quadratic(modulus) if modulus else ss.functions.Zero()
        X, Y = ss.domains.Box(arena.low, arena.high, shape=7), ss.domains.Box(-0.5, 0.5, shape=5)
        self.problem = ss.SaddleProblem(f=f, g=g, B=arena.B, X=X, Y=Y)
        self.start = np.linspace(arena.low, arena.high, 7), np.zeros(5)

    def project(self, x):
        return np.clip(x, self.arena.low, self.arena.high)

    def response(self, x):
        v = self.arena.B @ x
        return np.clip(v / self.modulus, -0.5, 0.5) if self.modulus else 0.5 * np.sign(v)

    def value(self, x):
        y = self.response(x)
        rest = 0.5 * x @ self.arena.A @ x - self.arena.c_x @ x
        return rest + y @ self.arena.B @ x - 0.5 * self.modulus * y @ y

    def gradient(self, x):
        return self.arena.A @ x - self.arena.c_x + self.arena.B.T @ self.response(x)

    def library(self, name, **options):
        driven, points = Driven(self.problem, name, self.start, **options), []
        for _ in range(STEPS):
            driven.step()
            points.append(np.concatenate(driven.point))
        return points


def test_accelerated_gradient():
    """Nesterov 2005, the scheme with two projections merged; weights t on gradients and responses alike."""
    p = Minimisation(modulus=0.4)
    L = p.arena.L_f + p.arena.norm**2 / 0.4
    z, x = p.start[0], p.start[0]
    replies, zs, expected = [], [], []
    for t in range(1, STEPS + 1):
        middle = ((t - 1) * x + 2 * z) / (t + 1)
        replies.append(t * p.response(middle))
        z = p.project(z - t / (2.0 * L) * p.gradient(middle))
        zs.append(t * z)
        total = t * (t + 1) / 2
        x = sum(zs) / total
        expected.append(np.concatenate([x, sum(replies) / total]))
    assert_same(p.library("accelerated-gradient"), expected)


@pytest.mark.parametrize("modulus", [0.0, 0.4])
def test_universal_gradient(modulus):
    """Nesterov 2015, scheme (4.1): values of phi in the test, L_(k+1) = 2^(i-1) L_k."""
    p, eps = Minimisation(modulus, seed=10), 0.05
    x0 = y = v = p.start[0]
    A, L, sums, replies, expected, trials = 0.0, 1.0, np.zeros(7), np.zeros(5), [], 0
    for _ in range(STEPS):
        for i in range(60):
            trial = 2.0**i * L
            # a^2 = (A + a) / (2^i L)
            a = max(np.roots([trial, -1.0, -A]).real)
            tau = a / (A + a)
            x = tau * v + (1.0 - tau) * y
            ahead = tau * p.project(v - a * p.gradient(x)) + (1.0 - tau) * y
            step = ahead - x
            trials += 1
            model = p.value(x) + p.gradient(x) @ step + 0.5 * trial * step @ step
            if p.value(ahead) <= model + 0.5 * eps * tau:
                break
        y, A, L = ahead, A + a, trial / 2.0
        sums, replies = sums + a * p.gradient(x), replies + a * p.response(x)
        v = p.project(x0 - sums)
        expected.append(np.concatenate([y, replies / A]))
    assert trials > STEPS
    assert_same(p.library("universal-gradient", accuracy=eps), expected, 1e-11)
