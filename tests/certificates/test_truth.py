"""Random claims against the truth in 120 digits: a slice of benchmarks/truth.py, family by family."""

from dataclasses import replace

import numpy as np
import pytest

import endless
import saddleslide as ss
import truths
from exact import Saddle, ball, box, exactly, least_squares, mpf, quadratic, simplex, whole_space

F, D = ss.functions, ss.domains
RUNS = 8
# Claims that were false once: a target relative to the far end of a step in bad units, points that ran away unnamed.
ONCE_FALSE = {
    "unbounded": [7295, 701615, 705295], "infeasible": [42041, 7000217, 7001801, 7101113], "endless": [701053, 7100189],
}  # fmt: skip


@pytest.mark.parametrize("family", truths.FAMILIES)
@pytest.mark.filterwarnings("ignore")
def test_claims_are_true(family):
    with np.errstate(all="ignore"):
        rows = [truths.judged(family, seed) for seed in range(RUNS)]
    assert [row for row in rows if row["wrong"]] == []
    assert sum(row["status"] != "REFUSED" for row in rows) > RUNS // 2


@pytest.mark.parametrize("family", endless.FAMILIES)
@pytest.mark.filterwarnings("ignore")
def test_claims_on_endless_sets_are_true_in_all_units(family):
    with np.errstate(all="ignore"):
        rows = [endless.judged(family, seed) for seed in (*range(RUNS), *ONCE_FALSE.get(family, []))]
    assert [row for row in rows if row["wrong"]] == []


@pytest.mark.parametrize("seed", [55, 77])
def test_a_constant_hides_no_contradiction(seed):
    # f is a positive constant, and multipliers begin to run away: a target relative to F is no excuse.
    case = endless.infeasible(np.random.default_rng([seed, 27]))
    for units in ((1.0, 1.0, 1.0), (16.0, 32.0, 0.125)):
        result = ss.solve(case.in_units(*units).problem(False), rtol=1e-4, max_calls={"B": 8000})
        assert result.status is ss.Status.INFEASIBLE


def test_numbers_out_of_range_are_a_status_whatever_was_missing_before():
    # The minimum of f was asked for and is unknown; then steps of a fall without end leave double precision.
    own = F.Custom(prox=lambda c, t: np.sign(c) * np.maximum(abs(c) - t, 0.0), value=lambda x: abs(x).sum())
    assert ss.minimize(F.Linear(np.full(6, 1e5)) + 0.01 * own).status is ss.Status.NUMERICAL_LIMIT


def test_a_ray_is_no_error_of_certify():
    # x_1 = 0 and x_1 = 3; y runs along the ray that shows it.
    f, g, rows = F.LeastSquares([[0.0, 1.0]], [1.0]), F.Linear([0.0, 3.0]), np.array([[1.0, 0.0], [1.0, 0.0]])
    problem = ss.SaddleProblem(f=f, g=g, B=rows, X=D.FullSpace(2), Y=D.FullSpace(2))
    seen = ss.certify(problem, [1.5, 1.0], [1.0, -1.0])
    assert "No x within the stated distance" in seen.reason and seen.gap == seen.within_gap == np.inf


def test_false_claims_within_a_radius_are_found():
    case = endless.solvable(np.random.default_rng([4, 27]))
    seen = ss.Certificate(within=(float(case.F(case.x, case.y)) + 0.1, np.inf), radii=(1.0, 1.0))
    said = endless.Said(case.x, case.y, replace(seen, within=(seen.within[0], seen.within[0] + 1.0)), "", False, 0.0, 0)
    assert len(endless.complaints(case, said)) == 2
    assert endless.complaints(replace(case, lacks="INFEASIBLE"), replace(said, success=True)) != []


@pytest.mark.parametrize("S", [whole_space(3), box([-0.3] * 3, [0.2] * 3), simplex(3), ball(0.3, [0.0] * 3)])
def test_the_truth_is_a_number_of_many_digits(S):
    rng = np.random.default_rng(3)
    A, b, B = rng.standard_normal((4, 3)), rng.standard_normal(4), rng.standard_normal((2, 3))
    saddle = Saddle(least_squares(A, b), quadratic(np.eye(2)), exactly(B), S, box([-0.1] * 2, [0.1] * 2))
    low, high = saddle.bracket(exactly(np.zeros(3)), exactly(np.zeros(2)))
    assert abs(high - low) < mpf(10) ** -40 * (1 + abs(low))
    # No pair of points says anything else.
    x, y = (side.project(exactly(0.02 * rng.standard_normal(size))) for side, size in ((S, 3), (saddle.Y, 2)))
    bottom, top = saddle.below(y, x)[0], saddle.above(x, y)[0]
    assert bottom <= high and low <= top and bottom < saddle.value(x, y) < top


def test_false_claims_are_found():
    rng = np.random.default_rng(0)
    case = truths.offset(rng)
    x, y = truths.next_to_saddle(case, rng)
    low, high = case.saddle.bracket(exactly(x), exactly(y))
    right = truths.Claim(x, y, float(low) - 1.0, float(high) + 1e30, "SOLVED", success=False)
    assert truths.complaints(case, right)[0] == []
    for wrong in (
        {"lower": float(high) + 1e-3 * (1.0 + abs(float(high)))},
        {"upper": float(low) - 1e-3 * (1.0 + abs(float(low)))},
        {"upper": float(low) - 10.0 - abs(float(low))},
        {"lower": float("nan")},
        {"success": True, "target": 0.0, "x": case.problem.X.project(x + 1.0 + abs(x))},
    ):
        assert truths.complaints(case, truths.Claim(**{**vars(right), **wrong}))[0]
