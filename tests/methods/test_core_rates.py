"""The core of `solve` on problems with known values: how many calls it takes, and bounds that enclose the value.

Small and fast: a wrong sign, weight or factor in a step, an average or a bound shows here first.
"""

import numpy as np
import pytest

import saddleslide as ss
from saddleslide.certificates.judge import Judge
from saddleslide.methods.metric_choice import first_curvature

F, D = ss.functions, ss.domains
RNG = np.random.default_rng(0)
# Curvatures over three decades; the minimiser of f lies inside the box.
d = np.geomspace(1.0, 1e-3, 40)
c = 0.05 * RNG.standard_normal(40) * np.sqrt(d)
BOX = D.Box(-100.0, 100.0, shape=40)
LOWEST = float(-0.5 * np.sum(c * c / d))


def own_function():
    return F.Custom(lambda x: d * x - c, lambda x: float(0.5 * x @ (d * x) - c @ x), ss.Holder(1.0, 1.0))


def test_momentum_points_ahead():
    """Accelerated: the root of the condition number. Without momentum, or against it, thousands of gradients.

    600 to 1,000 gradients are needed here, as rounding decides; without momentum 1,770 are not enough.
    """
    B = 0.01 * RNG.standard_normal((3, 40))
    problem = ss.SaddleProblem(f=own_function(), g=F.Quadratic(1.0), B=B, X=BOX, Y=D.Box(-1.0, 1.0, shape=3))
    result = ss.solve(problem, tol=1e-4, method="adaptive", max_steps=400)
    assert result.status is ss.Status.SOLVED and result.calls.f <= 1100


@pytest.mark.parametrize("start", [0.0, 30.0])
def test_bounds_enclose_the_value_at_every_step(start):
    """B = 0 and g = |y|^2 / 2 - <1, y> on [-1, 1]^3: the value is the minimum of f plus 3/2."""
    g = F.Quadratic(1.0) + F.Linear(-np.ones(3))
    problem = ss.SaddleProblem(f=own_function(), g=g, B=np.zeros((3, 40)), X=BOX, Y=D.Box(-1.0, 1.0, shape=3))
    value, seen = LOWEST + 1.5, []
    point = np.full(40, start), np.full(3, -1.0)
    result = ss.solve(problem, tol=1e-3, method="adaptive", start=point, max_steps=400, callback=seen.append)
    for moment in (*seen, result):
        assert moment.lower <= value + 1e-12 and value - 1e-12 <= moment.upper
    assert result.status is ss.Status.SOLVED and result.gap <= 1e-3


def test_steps_on_the_coupling_find_the_saddle_point():
    """f = |x - a|^2 / 2, g = |y|^2 / 2 on full spaces: (I + B^T B) x = a and y = B x."""
    B, a = RNG.standard_normal((6, 5)), RNG.standard_normal(5)
    x = np.linalg.solve(np.eye(5) + B.T @ B, a)
    f = F.LeastSquares(np.eye(5), a)
    problem = ss.SaddleProblem(f=f, g=F.Quadratic(1.0), B=B, X=D.FullSpace(5), Y=D.FullSpace(6))
    value = 0.5 * np.sum((x - a) ** 2) + 0.5 * np.sum((B @ x) ** 2)
    result = ss.solve(problem, tol=1e-9, method="adaptive", max_steps=60)
    assert result.status is ss.Status.SOLVED and result.calls.B <= 900
    assert result.lower <= value + 1e-12 and value - 1e-12 <= result.upper
    np.testing.assert_allclose(result.x, x, atol=1e-4)
    np.testing.assert_allclose(result.y, B @ x, atol=1e-4)


def test_games_are_solved_to_rounding():
    """Restarted primal-dual steps are linear on games: 1e-10 within a few thousand products."""
    game = np.array([[0.0, -2.0, 1.0, 0.3], [2.0, 0.0, -1.0, 0.1], [-1.0, 1.0, 0.0, -0.4]])
    result = ss.solve(ss.gallery.matrix_game(game), tol=1e-10, method="adaptive", max_calls={"B": 6000})
    assert result.status is ss.Status.SOLVED and result.gap <= 1e-10
    column = ss.certify(ss.gallery.matrix_game(game), result.x, result.y)
    assert column.gap <= 1e-10


def test_the_averaged_model_of_an_affine_function_is_that_function(monkeypatch):
    """Every linearisation is the function itself, so every average of them is: constant 5, slope c."""
    kept, consider = [], Judge.judge

    def watched(self, candidate, **options):
        kept.append(candidate.averaged)
        return consider(self, candidate, **options)

    monkeypatch.setattr(Judge, "judge", watched)
    f = F.Custom(lambda x: c.copy(), lambda x: float(c @ x + 5.0), ss.Holder(1.0, 1.0))
    B = RNG.standard_normal((3, 40))
    problem = ss.SaddleProblem(f=f, g=F.Quadratic(1.0), B=B, X=BOX, Y=D.Box(-1.0, 1.0, shape=3))
    ss.solve(problem, tol=1e-9, method="adaptive", start=(np.full(40, 3.0), np.zeros(3)), max_steps=8)
    assert len(kept) == 8
    for constant, slope, _ in kept:
        np.testing.assert_allclose(constant, 5.0, rtol=1e-9)
        np.testing.assert_allclose(slope, c, rtol=1e-9)


def test_the_first_curvature_is_that_of_the_costly_part():
    f = F.LeastSquares(2.0 * np.eye(2), np.ones(2)) + F.Quadratic(9.0)
    problem = ss.SaddleProblem(
        f=f, g=F.Zero(), B=np.eye(2), X=D.Box(-1.0, 1.0, shape=2), Y=D.Box(-1.0, 1.0, shape=2)
    )  # fmt: skip
    assert first_curvature(problem) == pytest.approx(4.0)


def test_lower_bounds_take_g_off():
    """g >= 9/2 on [1, 2]^3 and B = 0: a bound from the averaged model of f alone would lie above the value."""
    g = F.Quadratic(1.0) + F.Linear(np.ones(3))
    problem = ss.SaddleProblem(f=own_function(), g=g, B=np.zeros((3, 40)), X=BOX, Y=D.Box(1.0, 2.0, shape=3))
    result = ss.solve(problem, tol=1e-3, method="adaptive", max_steps=40)
    assert result.lower <= LOWEST - 4.5 + 1e-12 <= result.upper + 2e-12
