"""Primal-dual steps on a grid: compiled ones against their twins in NumPy, and accelerated ones against the book."""

import math
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import saddleslide as ss
from saddleslide.arrays.base import inner_product, length_of, moved_product
from saddleslide.facts.facts import Facts
from saddleslide.kernels.switch import jit
from saddleslide.methods import grid_steps, restarted_primal_dual
from saddleslide.methods.base import CHUNK
from saddleslide.methods.grid_steps import known_grid, known_steps
from saddleslide.methods.restarted_primal_dual import PrimalDualState, RestartedPrimalDual, make_measure
from saddleslide.oracles.oracles import Oracles

F, D = ss.functions, ss.domains


def differences_problem(shape=(5, 7), channels=None, Y="groups", bend=0.0, low=-np.inf, high=np.inf):
    rng = np.random.default_rng(0)
    B = ss.operators.FiniteDifferences(shape, channels=channels)
    colours = (len(B.y_shape) - 1,) if channels else ()
    axes = {"groups": (0, *colours), "each": (0,), "other": (1,)}
    Y = D.Box(-0.3, 0.3, shape=B.y_shape) if Y == "box" else D.GroupBalls(0.3, axis=axes[Y], shape=B.y_shape)
    bounded = np.isfinite(low) or np.isfinite(high)
    X = D.Box(low, high, shape=B.x_shape) if bounded else D.FullSpace(B.x_shape)
    f = F.LeastSquares(None, np.zeros(B.x_shape), weights=rng.uniform(0.5, 2.0, B.x_shape)) + F.Linear(
        rng.standard_normal(B.x_shape)
    )
    return ss.SaddleProblem(f=f, g=F.Quadratic(bend) if bend else F.Zero(), B=B, X=X, Y=Y)


def chunks(problem, modulus, count=2):
    """Some chunks of steps from a point where no entry is 0, not even those of y that no difference reaches."""
    oracles, rng = Oracles(problem), np.random.default_rng(1)
    start = problem.X.project(rng.standard_normal(problem.X.shape)), problem.Y.project(rng.random(problem.Y.shape))
    state = PrimalDualState.at(oracles, start, problem.coupling.norm.upper, 0.7)
    state.modulus = modulus
    for _ in range(count):
        state = RestartedPrimalDual().step(state, oracles)
    return state, oracles.calls


CASES = [
    {},
    {"shape": (1, 6)},
    {"shape": (6, 1), "Y": "box"},
    {"shape": (9,), "Y": "box", "bend": 0.2},
    {"shape": (3, 4, 5), "bend": 0.2, "low": -0.4, "high": 0.5},
    {"shape": (2, 3, 1, 4), "low": 0.0},
    {"shape": (4, 5), "channels": 3},
    {"shape": (4, 5), "channels": 3, "Y": "each"},
    {"shape": (4, 5), "channels": 2, "Y": "box", "low": -0.4, "high": 0.5},
]


@pytest.mark.parametrize("short", [0, 256])
@pytest.mark.parametrize("modulus", [0.0, 0.5])
def test_compiled_steps_agree_with_their_twins(modulus, short, monkeypatch):
    """With a line a row, and with all lines of the last two axes in one."""
    monkeypatch.setattr(grid_steps, "_SHORT_LINE", short)
    for case in CASES:
        problem, found = differences_problem(**case), []
        for on in (False, True):
            with jit(on):
                assert (known_steps(Oracles(problem)) is not None) == on
                found.append(chunks(problem, modulus))
        (plain, calls), (fast, same) = found
        assert calls == same, case
        for name in ("x", "y", "pull", "weight", "length"):
            np.testing.assert_allclose(getattr(fast, name), getattr(plain, name), rtol=0, atol=1e-12, err_msg=str(case))
        np.testing.assert_allclose(fast.points[0].x, plain.points[0].x, rtol=0.0, atol=1e-12)
        np.testing.assert_allclose(fast.pull, problem.coupling.adjoint(fast.y), rtol=0.0, atol=1e-13)


def test_what_is_of_no_known_kind_is_left_to_numpy():
    assert known_grid(differences_problem()) is not None
    assert known_grid(differences_problem(Y="other")) is None
    problem = differences_problem()
    for f in (F.Power(0.0), F.Huber(0.5)):
        assert known_grid(ss.SaddleProblem(f=f, g=F.Zero(), B=problem.coupling, X=problem.X, Y=problem.Y)) is None
    g = F.Linear(np.ones((2, 5, 7)))
    assert known_grid(ss.SaddleProblem(f=problem.f, g=g, B=problem.coupling, X=problem.X, Y=problem.Y)) is None


def test_accelerated_steps_are_those_of_the_book():
    """Algorithm 2 of Chambolle and Pock (2011) with their letters, on a problem with a scalar modulus."""
    rng = np.random.default_rng(2)
    K, b, gamma = rng.standard_normal((4, 6)), rng.standard_normal(6), 0.8
    f, X, Y = F.Quadratic(gamma) + F.Linear(-b), D.FullSpace(6), D.Box(-0.5, 0.5, shape=4)
    oracles = Oracles(ss.SaddleProblem(f=f, g=F.Zero(), B=K, X=X, Y=Y))
    norm, measure = float(np.linalg.norm(K, 2)), make_measure(oracles)
    s, t = measure.x * np.ones(6), measure.y * np.ones(4)
    start = np.zeros(6), np.zeros(4)
    # In the norm of sum x_i^2 / s_i the modulus is that much smaller.
    first = RestartedPrimalDual().init(oracles, Facts(oracles.problem), start, 1e-3)
    assert first.modulus == pytest.approx(gamma * s.min()) and np.ptp(s) > 0.0
    state = replace(PrimalDualState.at(oracles, start, norm, 0.7), modulus=first.modulus)
    state = RestartedPrimalDual().step(state, oracles)
    (x, y), tau, sigma = start, 1.0 / (norm * 0.7), 0.7 / norm
    for _ in range(CHUNK):
        new = (x - tau * s * (K.T @ y - b)) / (1.0 + tau * s * gamma)
        theta = 1.0 / np.sqrt(1.0 + 2.0 * gamma * s.min() * tau)
        tau, sigma = theta * tau, sigma / theta
        y, x = np.clip(y + sigma * t * (K @ (new + theta * (new - x))), -0.5, 0.5), new
    np.testing.assert_allclose(state.x, x, rtol=0.0, atol=1e-13)
    np.testing.assert_allclose(state.y, y, rtol=0.0, atol=1e-13)
    # The first restart comes early: the weight is all that was travelled.
    assert state.restarts == 1
    assert state.weight == pytest.approx(np.linalg.norm(y / np.sqrt(t)) / np.linalg.norm(x / np.sqrt(s)))


def test_curvature_that_is_felt_makes_loose_targets_cheaper(monkeypatch):
    rng = np.random.default_rng(0)
    i, j = np.mgrid[0:48, 0:48] / 48
    picture = 1.0 * ((i - 0.5) ** 2 + (j - 0.4) ** 2 < 0.09) + 0.3 * i + 0.1 * rng.standard_normal((48, 48))
    objective = F.LeastSquares(None, picture) + 0.1 * F.L21(axis=0) @ ss.operators.FiniteDifferences((48, 48))
    calls = []
    for felt in (restarted_primal_dual._FELT, np.inf):
        monkeypatch.setattr(restarted_primal_dual, "_FELT", felt)
        result = ss.minimize(objective, rtol=1e-3)
        assert result.success
        calls.append(result.calls.B)
    assert calls[0] <= 0.6 * calls[1], calls


def test_looks_come_when_the_target_is_expected_to_be_met():
    """Steps to the next look are as many as the last fall of the gap asks for, from 4 to as many as before."""
    state = replace(chunks(differences_problem(), 0.5)[0], gap=10.0, seen=16, steps=32, chunk=16)
    learnt = []
    for gap, target in ((1.0, 1e-3), (1.0, 0.5), (1.0, 0.99), (20.0, 0.5), (np.inf, 0.5)):
        judge = SimpleNamespace(known_gap=gap, target=target)
        learnt.append(RestartedPrimalDual().learn(state, [gap], judge, None))
    assert [new.chunk for new in learnt] == [16, 5, 4, 16, 16]
    assert all(new.seen == 32 for new in learnt) and learnt[0].gap == 1.0


def test_products_of_long_arrays_are_made_in_pieces_of_one_thread(monkeypatch):
    rng, lengths, dot = np.random.default_rng(3), [], np.dot
    monkeypatch.setattr(np, "dot", lambda a, b: (lengths.append(a.size), dot(a, b))[1])
    for size in (7, 40_000):
        a, b, c, d = rng.standard_normal((4, size))
        expected = float(np.sum((a - b) * (c - d)))
        assert moved_product(a, b, c, d) == pytest.approx(expected, rel=1e-12)
        assert moved_product(a[::2], b[::2], c[::2], d[::2]) == pytest.approx(np.sum((a - b)[::2] * (c - d)[::2]))
        assert inner_product(a, b) == pytest.approx(math.fsum(a * b), rel=1e-12)
        assert length_of(a[::2].reshape(-1, 1)) == pytest.approx(math.sqrt(math.fsum(a[::2] ** 2)), rel=1e-14)
    # BLAS shares out products of more than 10,000 numbers over threads.
    assert max(lengths) <= 10_000
    with np.errstate(all="raise"):
        # As of a product of vectors, nothing is said of what overflows.
        assert length_of(np.full(20_000, 1e200)) == inner_product(np.full(20_000, np.inf), np.ones(20_000)) == math.inf
