"""The bundle method: its first iterates by another solver, planted saddle points, few calls on rough functions."""

from __future__ import annotations

import math
from dataclasses import replace

import cvxpy as cp
import numpy as np
import pytest

import saddleslide as ss
from saddleslide.errors import InputError
from saddleslide.facts.facts import Facts
from saddleslide.methods.bundle import Bundle
from saddleslide.oracles.oracles import Oracles

F, D = ss.functions, ss.domains


def planted(p, rng, n=12, m=9, X=None, Y=None):
    """|A (x - x*)|^p / p + <c, x> with c = -B^T y*, and its mirror: (x*, y*) is a saddle point wherever it lies."""
    X, Y = X or D.Box(-1.0, 1.0, shape=n), Y or D.Box(-1.0, 1.0, shape=m)
    A, C, B = rng.standard_normal((18, n)), rng.standard_normal((14, m)), rng.standard_normal((m, n))
    x, y = X.project(rng.standard_normal(n)), Y.project(rng.standard_normal(m))
    f = F.Power(p - 1.0).translated(A @ x) @ A + F.Linear(-B.T @ y)
    g = F.Power(p - 1.0).translated(C @ y) @ C + F.Linear(B @ x)
    return ss.SaddleProblem(f=f, g=g, B=B, X=X, Y=Y), -float(y @ B @ x)


@pytest.mark.parametrize("p", [1.0, 1.25, 1.5, 1.75])
def test_a_planted_saddle_value_is_found_and_never_crossed(p):
    rng = np.random.default_rng(int(4 * p))
    sets = [(D.Box(-1.0, 1.0, shape=12), D.Simplex(9), 0.02), (D.Ball(2.0, shape=12), D.Box(-0.5, 1.0, shape=9), 0.3)]
    for X, Y, tol in sets[: 2 if p == 1.5 else 1]:
        problem, value = planted(p, rng, X=X, Y=Y)
        rows = []
        found = ss.solve(problem, tol=tol, method="bundle", callback=rows.append)
        assert found.status.name == "SOLVED" and found.calls.f < 80
        assert all(row.lower <= value + 1e-12 and row.upper >= value - 1e-12 for row in rows)
        # What is claimed of the point, against other points of the sets.
        B, f_at, g_at = problem.coupling, problem.f.value(found.x), problem.g.value(found.y)
        for _ in range(20):
            x, y = (domain.project(2.0 * rng.standard_normal(domain.shape)) for domain in (problem.X, problem.Y))
            assert f_at + y @ B.forward(found.x) - problem.g.value(y) <= found.upper + 1e-9
            assert problem.f.value(x) + x @ B.adjoint(found.y) - g_at >= found.lower - 1e-9


def test_the_first_iterates_are_proximal_steps_on_cuts():
    """Where the proximal terms alone hold the coupling: one step in y, extrapolated, one in x; by a cone solver."""
    rng = np.random.default_rng(5)
    problem, _ = planted(1.25, rng, 4, 3)
    problem = ss.SaddleProblem(f=problem.f, g=problem.g, B=0.02 * problem.coupling.entries, X=problem.X, Y=problem.Y)
    B, method, oracles = problem.coupling.entries, Bundle(), Oracles(problem)
    state = method.init(oracles, Facts(problem), problem.start(), 0.0)
    x, y = problem.start()
    x_before, cuts, weights, promised, moved = x, ([], []), None, None, None
    for _ in range(6):
        # With a tiny gap the programs of the method are exact.
        state = method.step(replace(state, gap=1e-6), oracles)
        at = problem.f.value_and_gradient(x), problem.g.value_and_gradient(y)
        for rows, (value, slope), point in zip(cuts, at, (x, y), strict=True):
            rows.append((value - slope @ point, slope))
        if weights is None:
            # Linear terms are simple: they are no part of what is cut.
            rests = oracles.problem.f_parts[0].gradient(x), oracles.problem.g_parts[0].gradient(y)
            slopes = rests[0] + B.T @ y, rests[1] - B @ x
            radii = problem.X.radius(x), problem.Y.radius(y)
            first = weights = [float(np.linalg.norm(s)) / r for s, r in zip(slopes, radii, strict=True)]
        else:
            known = zip(at, promised, weights, moved, strict=True)
            short = [value - low > 2.5 * w * d for (value, _), low, w, d in known]
            known = zip(weights, short, first, strict=True)
            weights = [min(max(w * (1.2 if s else 0.95), w_0 / 8), w_0) for w, s, w_0 in known]
        assert problem.coupling.norm.upper < math.sqrt(weights[0] * weights[1])

        def near(rows, tilt, center, weight):
            z, t = cp.Variable(center.size), cp.Variable()
            under = [t >= a + s @ z for a, s in rows] + [cp.abs(z) <= 1.0]
            cp.Problem(cp.Minimize(t + tilt @ z + 0.5 * weight * cp.sum_squares(z - center)), under).solve("CLARABEL")
            return z.value, t.value

        v, low_g = near(cuts[1], -B @ (2.0 * x - x_before), y, weights[1])
        u, low_f = near(cuts[0], B.T @ v, x, weights[0])
        promised, moved = (low_f, low_g), (np.sum((u - x) ** 2), np.sum((v - y) ** 2))
        x_before, x, y = x, u, v
        assert np.allclose(state.x, x, atol=1e-4) and np.allclose(state.y, y, atol=1e-4)


def test_rough_problems_take_few_gradients():
    rng = np.random.default_rng(0)
    n, m = 60, 40
    for p, reduction, most in ((1.0, 3e-2, 100), (1.5, 1e-3, 80)):
        A, C = rng.standard_normal((m, n)) / math.sqrt(n), rng.standard_normal((m, n)) / math.sqrt(n)
        f = F.Power(p - 1.0).translated(rng.standard_normal(m)) @ A
        g = F.Power(p - 1.0).translated(rng.standard_normal(m)) @ C
        box, B = D.Box(-1.0, 1.0, shape=n), rng.standard_normal((n, n)) / math.sqrt(n)
        found = ss.solve(ss.SaddleProblem(f=f, g=g, B=B, X=box, Y=box), reduction=reduction, method="bundle")
        assert found.status.name == "SOLVED" and max(found.calls.f, found.calls.g) <= most


def test_solve_takes_it_on_rough_problems_alone():
    rng = np.random.default_rng(0)
    A, C, B = rng.standard_normal((90, 80)), rng.standard_normal((70, 60)), rng.standard_normal((60, 80))
    X, Y = D.Box(-1.0, 1.0, shape=80), D.Box(-1.0, 1.0, shape=60)

    def method(p, X=X):
        f, g = F.Power(p - 1.0).translated(A[:, 0]) @ A, F.Power(p - 1.0).translated(C[:, 0]) @ C
        return ss.plan(ss.SaddleProblem(f=f, g=g, B=B, X=X, Y=Y), rtol=1e-2).method

    assert (method(1.0), method(1.25)) == ("bundle", "bundle")
    assert "bundle" not in (method(2.0), method(1.25, D.FullSpace(80)))
    assert ss.plan(ss.gallery.synthetic(0.5, 0.5, seed=0), tol=1.0).method != "bundle"


def test_a_simple_function_keeps_its_own_step_and_what_has_no_program_is_refused():
    rng = np.random.default_rng(3)
    A, b = rng.standard_normal((20, 6)), rng.standard_normal(20)
    f, box = F.Power(0.0).translated(b) @ A, D.Box(-1.0, 1.0, shape=6)
    problem = ss.SaddleProblem(f=f, g=F.Quadratic(1.0), B=rng.standard_normal((4, 6)), X=box, Y=D.Ball(1.0, shape=4))
    found = ss.solve(problem, tol=1e-3, method="bundle")
    assert found.status.name == "SOLVED" and found.calls.g <= 1
    with pytest.raises(InputError, match="stands beside a costly one"):
        ss.solve(ss.SaddleProblem(f=f + F.L1(), g=F.Zero(), B=problem.B, X=box, Y=problem.Y), tol=1.0, method="bundle")
    with pytest.raises(InputError, match="there is no gradient to cut with"):
        ss.solve(ss.gallery.matrix_game(np.eye(3)), tol=1.0, method="bundle")
