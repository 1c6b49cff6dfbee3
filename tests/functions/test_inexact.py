"""(delta, L)-oracles through `solve`, plans of every regime, and certificates that know their delta."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

import saddleslide as ss
from saddleslide.certificates.candidate import Linearisation
from saddleslide.certificates.guards import PairGuard
from saddleslide.errors import InputError
from saddleslide.oracles.calls import RunEnded
from saddleslide.theory import sharp_bound
from support import gathered

F, D = ss.functions, ss.domains


def displaced(weight, tilt, shift, seed=0):
    """1/2 w |x|^2 - <t, x> whose gradient is taken at a point up to `shift` away: a (3/2 w shift^2, 2w)-oracle.

    h(u) - h(v') - <h'(v'), u - v'> = w/2 |u - v'|^2 with v' = v + d, |d| <= shift, lies between w/4 |u - v|^2 - w/2
    shift^2 and w |u - v|^2 + w shift^2; h~(v) = h(v') + <h'(v'), v - v'> - w/2 shift^2. So its modulus is w/2.
    """

    def place(x):
        return x + shift / math.sqrt(x.size) * np.sign(np.sin(37.0 * x + seed))

    def value(x):
        v = place(x)
        return 0.5 * weight * v @ v - tilt @ v + (weight * v - tilt) @ (x - v) - 0.5 * weight * shift**2

    def gradient(x):
        return weight * place(x) - tilt

    custom = F.Custom(value=value, gradient=gradient, smoothness=ss.Holder(1.0, 2.0 * weight))
    return F.Inexact(custom, delta=1.5 * weight * shift**2, L=2.0 * weight)


def game(seed, shift, X=None):
    """The inexact problem, and the same with exact functions."""
    rng = np.random.default_rng(seed)
    t, B = rng.standard_normal((2, 4)), rng.standard_normal((4, 4))
    X = D.Box(-1.0, 1.0, shape=4) if X is None else X
    made = [displaced(2.0, t[0], shift, 1), displaced(1.0, t[1], shift, 2)]
    exact = [F.Quadratic(2.0) + F.Linear(-t[0]), F.Quadratic(1.0) + F.Linear(-t[1])]
    return (ss.SaddleProblem(f=f, g=g, B=B, X=X, Y=X) for f, g in (made, exact))


@gathered("seed", range(6))
def test_the_oracle_satisfies_its_definition(seed):
    rng = np.random.default_rng(seed)
    h, t = displaced(2.0, np.ones(4), 0.1, seed), np.ones(4)
    for _ in range(50):
        u, v = rng.standard_normal((2, 4))
        excess = 0.5 * 2.0 * u @ u - t @ u - h.value(v) - h.gradient(v) @ (u - v)
        assert 0.5 * 1.0 * (u - v) @ (u - v) - 1e-12 <= excess <= 0.5 * 4.0 * (u - v) @ (u - v) + h.inexactness + 1e-12


@gathered("shift", [0.01, 0.1])
@gathered("seed", range(2))
def test_certified_bounds_hold_for_the_function_that_is_meant(seed, shift):
    """No certificate of an inexact oracle is below the gap of the exact problem, and none is below delta."""
    rough, exact = game(seed, shift)
    delta = rough.f.inexactness + rough.g.inexactness
    result = ss.solve(rough, tol=100.0 * delta)
    assert result.gap <= 100.0 * delta
    assert result.status.name in ("SOLVED", "MET_AS_DECLARED")
    true = ss.certify(exact, result.x, result.y)
    assert true.gap - true.error <= result.gap
    assert result.lower <= true.upper
    assert result.upper >= true.lower
    assert result.gap >= delta
    for point in (np.zeros(4), np.full(4, 0.3)):
        seen, known = ss.certify(rough, point, point), ss.certify(exact, point, point)
        assert known.gap - known.error <= seen.gap
        assert seen.gap >= delta
    # A target below what delta leaves is never claimed.
    assert ss.solve(rough, tol=0.5 * delta, max_steps=20).gap > 0.5 * delta


def test_one_run_takes_delta_and_L_from_the_function():
    """Theorem 3.3 by hand: L/2 a^2 Omega + delta / a for f and g, M/2 a Omega for B."""
    rough, _ = game(0, 0.01)
    plan = ss.plan(rough, order="fgB", loops=(4, 2, 3), metric="identity")
    declared = ss.plan(
        rough, order="fgB", loops=(4, 2, 3), metric="identity", inexact={"f": (3e-4, 4.0), "g": (1.5e-4, 2.0)}
    )
    alphas = [1.0]
    while len(alphas) < 4:
        alphas.append(2.0 / (1.0 + math.sqrt(1.0 + 4.0 / alphas[-1] ** 2)))
    a, b = alphas[3], alphas[3] * alphas[1]
    by_hand = 8.0 * (4.0 / 2.0 * a * a + 2.0 / 2.0 * b * b + plan.constants["L_xy"].value / 2.0 * b * alphas[2])
    by_hand += 3e-4 / a + 1.5e-4 / b
    assert plan.bound == pytest.approx(by_hand) == declared.bound
    assert plan.theorem.startswith("Theorem 3.3")
    result = ss.run(rough, plan)
    _, exact = game(0, 0.01)
    true = ss.certify(exact, result.x, result.y)
    assert true.gap - true.error <= plan.bound
    # delta alone moves the bound, and multiples and sums of functions carry it along.
    twice = ss.SaddleProblem(f=2.0 * rough.f + F.Quadratic(1.0), g=rough.g, B=rough.B, X=rough.X, Y=rough.Y)
    assert twice.f.inexactness == pytest.approx(6e-4)
    levels = ss.plan(twice, order="fgB", loops=(4, 2, 3), metric="identity").schedule.levels
    assert (levels[0].delta, levels[0].L) == pytest.approx((6e-4, 9.0))
    assert sharp_bound(levels) > plan.bound


def with_modulus(problem, moduli):
    f, g = (
        F.Inexact(part.function, part.inexactness, part.curvature, strong_convexity=mu)
        for part, mu in zip((problem.f, problem.g), moduli, strict=True)
    )
    return ss.SaddleProblem(f=f, g=g, B=problem.B, X=problem.X, Y=problem.Y)


def test_restarts_follow_their_recursion_with_the_error_of_the_oracles():
    """Omega_{s+1} = 3/4 Omega_s + 14 sum delta / a, down to the target or to what is not proved to fall."""
    rough, exact = game(1, 1e-6)
    rough = with_modulus(rough, (1.0, 0.5))
    plan = ss.plan(rough, 1e-3, regime="restarts", Psi0=100.0)
    Omega = 100.0
    for stage in plan.schedule.stages:
        assert stage.Omega == pytest.approx(Omega)
        added = 14.0 * sum(
            {"f": 3e-12, "g": 1.5e-12, "B": 0.0}[level.term.name] / level.last_alphas for level in stage.levels
        )
        assert stage.anchor_error == pytest.approx(added)
        Omega = 0.75 * Omega + added
    assert Omega <= plan.constants["Psi_end"].value
    result = ss.run(rough, plan)
    assert result.gap <= 1e-3
    true = ss.certify(exact, result.x, result.y)
    assert true.gap - true.error <= result.gap
    coarse = with_modulus(next(iter(game(1, 0.1))), (1.0, 0.5))
    with pytest.raises(InputError, match="with the declared delta Psi is not proved to fall below"):
        ss.plan(coarse, 1e-3, regime="restarts", Psi0=100.0, proved=True)


def test_anchors_take_inexact_oracles_for_half_an_error_each():
    """16 sum delta / a + 8 (delta_f + delta_g) a stage, and Psi is never above what that says."""
    made = np.random.default_rng(4)
    x, y, size = made.standard_normal(3), made.standard_normal(3), 0.05
    delta = 1.5 * size**2
    B = np.linalg.qr(made.standard_normal((3, 3)))[0]

    def off(shift):
        # |z|^2/2 with its gradient taken at z + e, |e| = size, and a value that leaves room for the modulus 1/2.
        def gradient(z):
            return z + size * np.sign(np.sin(50.0 * z)) / math.sqrt(3.0) - shift

        def value(z):
            at = gradient(z) + shift
            return 0.5 * float(at @ at) - float(shift @ at) + float((at - shift) @ (z - at)) - 0.5 * size**2

        part = F.Custom(gradient, value, smoothness=ss.Holder(1.0, 2.0))
        return F.Inexact(part, delta, 2.0, strong_convexity=0.5)

    free = ss.domains.FullSpace(3)
    problem = ss.SaddleProblem(f=off(x + B.T @ y), g=off(y - B @ x), B=B, X=free, Y=free)
    start = (x + 4.0 * np.ones(3), y - 4.0 * np.ones(3))
    plan = ss.plan(problem, 3.0, regime="restarts", Psi0=1000.0, anchors=True, start=start)
    moduli = plan.constants["delta_x"].value, plan.constants["delta_y"].value
    assert moduli == pytest.approx((1.0, 1.0))
    stage = plan.schedule.stages[0]
    assert (stage.beta_x, stage.beta_y) == (0.125, 0.125)
    errors = sum(delta / level.last_alphas for level in stage.levels if level.term.name != "B")
    assert stage.anchor_error == pytest.approx(16.0 * errors + 8.0 * 2.0 * delta)
    point, bound = start, 2.0 * 7.0 * 48.0
    for stage in plan.schedule.stages[:3]:
        one = replace(plan, schedule=replace(plan.schedule, stages=(stage,)), tol=1e-300)
        result = ss.run(problem, one, start=point)
        point, bound = (result.x, result.y), 0.75 * bound + stage.anchor_error
        squares = [float(np.sum((u - v) ** 2)) for u, v in zip(point, (x, y), strict=True)]
        assert 7.0 * sum(squares) <= bound


def test_the_mixed_regime_takes_inexact_oracles():
    rough, exact = game(2, 1e-5)
    rough = with_modulus(rough, (1.0, 0.0))
    plan = ss.plan(rough, 0.05, regime="mixed")
    assert plan.schedule.regularisation.block == "y"
    deltas = {level.term.name: level.delta for level in plan.schedule.stages[0].levels}
    assert (deltas["f"], deltas["g"]) == pytest.approx((3e-10, 1.5e-10))
    result = ss.run(rough, plan)
    true = ss.certify(exact, result.x, result.y)
    assert true.gap - true.error <= result.gap <= 0.05


def test_what_an_oracle_can_not_be_is_refused():
    with pytest.raises(InputError, match="Inexact: function is"):
        F.Inexact(3.0, 0.1)
    with pytest.raises(InputError, match="Inexact: delta"):
        F.Inexact(F.Quadratic(1.0), -1.0)
    with pytest.raises(InputError, match=r"Inexact: L is missing, and .* has nu = 0\.5"):
        F.Inexact(F.Power(0.5), 0.1).smoothness(D.Box(-1.0, 1.0, shape=2))
    box = D.Box(-1.0, 1.0, shape=2)
    mixed = ss.SaddleProblem(f=F.Inexact(F.Quadratic(1.0), 0.1) + F.Power(0.5), g=F.Zero(), B=np.eye(2), X=box, Y=box)
    with pytest.raises(InputError, match="beside a rough part"):
        ss.plan(mixed, 1.0, regime="degenerate", simple=())


def test_gradients_of_an_oracle_may_turn_back_by_twice_its_error_and_no_more():
    """h(u) >= h~(v) + <g(v), u - v> and h~ >= h - delta, both ways round: <g(u) - g(v), u - v> >= -2 delta."""
    f, line = F.Inexact(F.Quadratic(0.0), delta=0.1, L=1.0), D.Box(-2.0, 2.0, shape=1)

    def looks_right(slope):
        guard = PairGuard("f", f, line)
        guard.look(Linearisation(np.zeros(1), math.nan, np.zeros(1)))
        guard.look(Linearisation(np.ones(1), math.nan, np.array([slope])))

    looks_right(-0.19)
    with pytest.raises(RunEnded, match="f is not convex, or its gradient is wrong"):
        looks_right(-0.21)
