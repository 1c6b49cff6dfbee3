"""Luo's method: the inequality of its proof after every step, its updates in other variables, the published rate."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

import saddleslide as ss
from arena import Driven, slope
from support import gathered

F, D = ss.functions, ss.domains


def random_problem(seed):
    """F of any exponent beside a simple term; g linear on a whole space, |.|_1, or a power on a box."""
    rng = np.random.default_rng(seed)
    n, m = 6, 4
    A, B = rng.standard_normal((8, n)), rng.standard_normal((m, n)) * rng.choice([0.1, 1.0, 4.0])
    f = [
        F.LeastSquares(A, rng.standard_normal(8)),
        F.Power(0.5) @ A,
        F.Power(0.0) @ A,
        F.Quadratic(np.linspace(0.5, 4.0, n)) + F.Linear(rng.standard_normal(n)),
    ][seed % 4]
    f = f + 0.2 * F.L1() if seed % 3 == 0 else f
    g, Y = [
        (F.Linear(B @ rng.uniform(-0.5, 0.5, n)), D.FullSpace(m)),
        (F.L1(), D.FullSpace(m)),
        (F.Power(0.5), D.Box(-1.0, 2.0, shape=m)),
    ][seed % 3]
    return ss.SaddleProblem(f=f, g=g, B=B, X=D.Box(-1.0, 1.0, shape=n), Y=Y), rng


def value(problem, x, y):
    return problem.f.value(x) + float(y @ problem.coupling.forward(x)) - problem.g.value(y)


def potential(driven, u, w):
    """S G(u, w) + Gamma/2 |v - u|^2 + 1/2 |y - w|^2 with G(u, w) = F(x, w) - F(u, mean)."""
    problem, state = driven.problem, driven.state
    G = value(problem, state.x, w) - value(problem, u, state.mean)
    return state.S * G + 0.5 * state.Gamma * np.sum((state.v - u) ** 2) + 0.5 * np.sum((state.y - w) ** 2)


def largest_excess(seed, eps, steps=60, **changes):
    """Of the potential over that at the start and S eps/2, over steps and points."""
    problem, rng = random_problem(seed)
    driven = Driven(problem, "uapd", None, eps, ratio=float(rng.uniform(0.3, 3.0)))
    driven.state = replace(driven.state, **changes)
    pairs = [
        (problem.X.project(rng.standard_normal(6)), problem.Y.project(2.0 * rng.standard_normal(4))) for _ in range(20)
    ]
    first, worst = [potential(driven, u, w) for u, w in pairs], -math.inf
    for _ in range(steps):
        driven.step()
        allowed = 0.5 * eps * driven.state.S
        worst = max(
            worst, *(potential(driven, u, w) - start - allowed for (u, w), start in zip(pairs, first, strict=True))
        )
    return worst / (1.0 + max(map(abs, first)))


@gathered("seed", range(12))
def test_the_inequality_of_the_proof_holds_after_every_step(seed):
    assert largest_excess(seed, eps=0.05) <= 1e-9


def test_longer_steps_than_proved_break_the_inequality():
    # A norm of B and a modulus of f that are not true.
    assert max(largest_excess(seed, 0.05, norm=0.3) for seed in range(12)) > 1e-2
    assert max(largest_excess(seed, 0.05, mu=8.0) for seed in range(12)) > 1e-2


def test_for_linear_constraints_the_steps_are_the_semi_implicit_scheme():
    """In Luo's variables, with alpha^2 (M beta / (1 + alpha) + |B|^2) = gamma beta, from a first step on."""
    rng = np.random.default_rng(0)
    H, B, mu = np.linspace(1.0, 5.0, 6), rng.standard_normal((3, 6)), 1.0
    c, b = rng.standard_normal(6), rng.standard_normal(3)
    problem = ss.SaddleProblem(
        f=F.Quadratic(np.diag(H)) + F.Linear(c), g=F.Linear(b), B=B, X=D.FullSpace(6), Y=D.FullSpace(3)
    )
    driven = Driven(problem, "uapd", None, 1e-9, ratio=1.3)
    driven.step()
    for _ in range(30):
        state = driven.state
        beta, gamma, x, v, lam = 1.0 / state.S, state.Gamma / state.S, state.x, state.v, state.y
        driven.step()
        alpha, M = driven.state.S / state.S - 1.0, 2.0 * driven.state.M
        assert alpha**2 * (M * beta / (1.0 + alpha) + np.linalg.norm(B, 2) ** 2) == pytest.approx(
            gamma * beta, rel=1e-9
        )
        middle = (x + alpha * v) / (1.0 + alpha)
        guess = lam + alpha / beta * (B @ v - b)
        weight = gamma / alpha + driven.state.mu
        v = (gamma / alpha * v + driven.state.mu * middle - (H * middle + c) - B.T @ guess) / weight
        np.testing.assert_allclose(driven.state.v, v, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(driven.state.x, (x + alpha * v) / (1.0 + alpha), rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(driven.state.y, lam + alpha / beta * (B @ v - b), rtol=1e-9, atol=1e-12)
        gamma_next = (gamma + driven.state.mu * alpha) / (1.0 + alpha)
        assert driven.state.Gamma / driven.state.S == pytest.approx(gamma_next, rel=1e-12)
    assert driven.state.mu == pytest.approx(mu)


def steps_for(problem, eps):
    """Steps until the bound of the proof is eps on boxes with 20 entries of at most 1."""
    driven, steps = Driven(problem, "uapd", None, eps, ratio=1.0), 0
    while 0.5 * eps * driven.state.S < 20.0:
        driven.step()
        steps += 1
    return steps, driven


U = np.linalg.qr(np.random.default_rng(0).standard_normal((20, 20)))[0]
TILT = F.Linear(0.2 * np.random.default_rng(1).standard_normal(20))
RATES = {
    # f, |B|, accuracies, the published exponent of eps.
    "products": (F.Zero(), 1.0, (1.0, 0.25, 0.0625), -1.0),
    "products, f strongly convex": (F.LeastSquares(U, np.ones(20)), 30.0, (1.0, 0.25, 0.0625), -0.5),
    "products, a simple f strongly convex": (F.Quadratic(1.0), 30.0, (1.0, 0.25, 0.0625), -0.5),
    "gradients, nu = 0": ((F.Power(0.0) @ U) + TILT, 0.0, (2.0, 1.0, 0.5), -2.0),
}


@gathered(("f", "norm", "accuracies", "exponent"), RATES.values(), ids=RATES)
def test_steps_grow_as_published_and_stay_below_the_bound(f, norm, accuracies, exponent):
    box = D.Box(-1.0, 1.0, shape=20)
    problem = ss.SaddleProblem(f=f, g=F.Zero(), B=norm * np.eye(20), X=box, Y=box)
    counts = []
    for eps in accuracies:
        steps, driven = steps_for(problem, eps)
        bound = driven.method.calls(driven.facts, eps)
        # Without a coupling f is rough, and its certificate is loose.
        assert norm == 0.0 or driven.gap <= eps
        assert driven.calls.f <= bound.f and driven.calls.B <= bound.B
        counts.append(steps)
    assert slope(accuracies, counts) == pytest.approx(exponent, abs=0.08)


@gathered("nu", [0.25, 0.5, 0.75])
def test_calls_for_a_hoelder_function_stay_below_the_bound_for_its_exponent(nu):
    box, tilt = D.Box(-1.0, 1.0, shape=20), 0.3 * np.random.default_rng(2).standard_normal(20)
    problem = ss.SaddleProblem(f=F.Power(nu, tilt=tilt) @ U, g=F.Zero(), B=np.zeros((20, 20)), X=box, Y=box)
    counts = {}
    for eps in (0.25, 0.03):
        steps, driven = steps_for(problem, eps)
        assert driven.gap <= eps and driven.calls.f <= driven.method.calls(driven.facts, eps).f
        counts[eps] = steps
    assert slope(list(counts), list(counts.values())) >= -2.0 / (1.0 + 3.0 * nu) - 0.05
