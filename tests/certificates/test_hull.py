"""Bounds from cuts and points of many candidates: true on planted saddle points, as tight as the linear program."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import linprog

import saddleslide as ss
from saddleslide.certificates.candidate import Column, Linearisation
from saddleslide.certificates.hull import keep, least_over_hull, note_use
from saddleslide.functions.maxima import Affine, best_weights, least_maximum, near_maximum
from saddleslide.functions.trust import errors_at

F, D = ss.functions, ss.domains
SETS = {
    "box": lambda n: D.Box(-1.0, 1.0, shape=n),
    "ball": lambda n: D.Ball(2.0, shape=n),
    "simplex": lambda n: D.Simplex(n),
    "l1 ball": lambda n: D.L1Ball(1.5, shape=n),
}


def planted(p: float, kind: str, rng: np.random.Generator, n: int = 6, m: int = 5):
    """|A (x - x*)|^p / p + <c, x> with c = -B^T y*, and its mirror: (x*, y*) is a saddle point wherever it lies."""
    X, Y = SETS[kind](n), SETS[kind](m)
    A, C, B = rng.standard_normal((8, n)), rng.standard_normal((8, m)), rng.standard_normal((m, n))
    x, y = X.project(rng.standard_normal(n)), Y.project(rng.standard_normal(m))
    f = F.Power(p - 1.0).translated(A @ x) @ A + F.Linear(-B.T @ y)
    g = F.Power(p - 1.0).translated(C @ y) @ C + F.Linear(B @ x)
    return ss.SaddleProblem(f=f, g=g, B=B, X=X, Y=Y), x, y, -float(y @ B @ x)


def columns(function, points, product):
    """What a run would remember of these points."""
    found = []
    for z in points:
        value, slope = function.value_and_gradient(z)
        known, made = Linearisation(z, value, slope), errors_at(function, z, value, float(np.linalg.norm(slope)))
        found.append(Column.of(z, value, product(z), known, made.value, made))
    return found


def bounds(problem, xs, ys):
    """The lower and the upper bound from points alone, margins taken off."""
    B = problem.coupling
    f, g = columns(problem.f, xs, B.forward), columns(problem.g, ys, B.adjoint)
    x, y = problem.start()

    def error(point, product):
        return B.bound_rounding(float(np.linalg.norm(point)), float(np.linalg.norm(product)))

    low = least_over_hull(f, g, F.Zero(), problem.X, x, 1e-9, error)
    mirrored = [replace(column, image=-column.image) for column in f]
    high = least_over_hull(g, mirrored, F.Zero(), problem.Y, y, 1e-9, error)
    return low.value - low.margin, high.margin - high.value, low, high


@pytest.mark.parametrize("kind", SETS)
def test_bounds_enclose_the_saddle_value_and_close_in_on_it(kind):
    rng, worst = np.random.default_rng(7), 0.0
    for trial in range(16):
        problem, x, y, value = planted((1.0, 1.25, 1.5, 1.75)[trial % 4], kind, rng)
        far = 0.5 ** rng.integers(0, 12, 24)[:, None]
        xs = [problem.X.project(z) for z in x + far * rng.standard_normal((24, 6))]
        ys = [problem.Y.project(z) for z in y + far * rng.standard_normal((24, 5))]
        lower, upper, low, _ = bounds(problem, xs, ys)
        assert lower <= value + 1e-13 and upper >= value - 1e-13
        # What is claimed of the points of the hull: by any other point of the sets.
        others = [problem.X.project(2.0 * rng.standard_normal(6)) for _ in range(20)] + [x]
        pull, g = problem.coupling.adjoint(low.point), problem.g.value(low.point)
        assert lower <= min(problem.f.value(z) + pull @ z for z in others) - g + 1e-12
        alone = bounds(problem, xs[:1], ys[:1])
        worst = max(worst, (upper - lower) / (alone[1] - alone[0]))
    assert worst < 0.7


def test_weights_are_those_of_the_linear_program():
    rng = np.random.default_rng(1)
    for _ in range(10):
        functions = Affine(rng.standard_normal(14), rng.standard_normal((14, 9)), (8, 6))
        for domain in (D.Box(-1.0, [2.0] * 8 + [-1.0]), D.Simplex(9)):
            program = domain.as_program()
            # min t + u over x, t >= the first group, u >= the second one.
            tops = np.repeat(np.eye(2), (8, 6), axis=0)
            rows = np.hstack([program.rows.toarray(), np.zeros((program.rows.shape[0], 2))])
            ends = [*zip(program.lower, program.upper, strict=True), (None, None), (None, None)]
            answer = linprog(
                np.r_[np.zeros(9), 1.0, 1.0], A_ub=np.hstack([functions.slopes, -tops]), b_ub=-functions.values,
                A_eq=rows if len(rows) else None, b_eq=program.totals if len(rows) else None, bounds=ends,
            )  # fmt: skip
            weights = best_weights(functions, F.Zero(), domain, np.zeros(9), 1e-8)
            value, slope = functions.weigh(weights)
            assert value - domain.support(-slope) == pytest.approx(answer.fun, abs=1e-7)
            assert weights.min() >= 0.0 and np.allclose([weights[:8].sum(), weights[8:].sum()], 1.0)


@pytest.mark.parametrize("kind", SETS)
def test_a_proximal_step_of_cuts_is_as_good_as_any_other_point(kind):
    rng, domain = np.random.default_rng(2), SETS[kind](9)
    functions, center = Affine(rng.standard_normal(12), rng.standard_normal((12, 9)), (12,)), rng.standard_normal(9)
    found = near_maximum(functions, domain, center, 3.0, 1e-9)
    value, slope = functions.weigh(found.weights)
    # Strong duality: the step of the weighed functions is a bound, which a box attains.
    step = domain.project(center - slope / 3.0)
    bound = value + slope @ step + 1.5 * np.sum((step - center) ** 2)
    at = functions.largest(found.point) + 1.5 * np.sum((found.point - center) ** 2)
    assert domain.violation(found.point) < 1e-8
    assert bound <= at + 1e-9 and at - bound < (1e-8 if domain.as_program() else 0.2)


def test_the_column_that_is_used_least_makes_room():
    zero = np.zeros(1)
    made = [Column(zero, float(i), zero, 0.0, zero, use=use) for i, use in enumerate((0.5, 0.1, 1.0))]
    assert [column.total for column in keep(made, Column(zero, 3.0, zero, 0.0, zero), 3)] == [0.0, 2.0, 3.0]
    assert [round(column.use, 3) for column in note_use(made, np.array([0.0, 0.9, 0.1]))] == [0.4, 0.9, 0.8]


def test_rough_functions_are_certified_early():
    rng = np.random.default_rng(0)
    n, m = 60, 40
    A, C, B = (M / np.linalg.norm(M, 2) for M in (rng.standard_normal(s) for s in ((2 * n, n), (2 * m, m), (m, n))))
    f = F.Power(0.5).translated(rng.standard_normal(2 * n)) @ A
    g = F.Power(0.5).translated(rng.standard_normal(2 * m)) @ C
    X, Y = D.Box(-1.0, 1.0, shape=n), D.Box(-1.0, 1.0, shape=m)
    problem = ss.SaddleProblem(f=f, g=g, B=B, X=X, Y=Y)
    found = ss.solve(problem, reduction=1e-3, method="adaptive")
    # Single gradients certify it after 21 steps.
    assert found.status.name == "SOLVED" and len(found.history) <= 18
    seen = ss.certify(problem, found.x, found.y, accuracy=1e-4)
    assert found.lower <= seen.upper and found.upper >= seen.lower
    assert seen.gap <= found.gap + 2e-4


def test_one_affine_function_is_least_at_a_corner():
    program = D.Box(-1.0, 2.0, shape=2).as_program()
    found = least_maximum(Affine(np.zeros(1), np.array([[1.0, -3.0]]), (1,)), program, np.zeros(2), 1e-9)
    assert np.allclose(found.point, [-1.0, 2.0], atol=1e-8) and found.weights == pytest.approx([1.0])
