"""Bounds within a radius against closed forms and brute force."""

import math

import numpy as np
import pytest
import scipy.optimize
from hypothesis import given
from hypothesis import strategies as st

import saddleslide as ss
from saddleslide.certificates.within import least_within
from saddleslide.functions.roundings import Errors
from support import gathered

F, D = ss.functions, ss.domains
EXACT = Errors(0.0, 0.0)
# Functions and sets, and what they are once more for many points at a time, without the package.
SIMPLE = {
    "zero": (F.Zero(), lambda p: 0.0),
    "l1": (0.7 * F.Power(0.0), lambda p: 0.7 * np.abs(p).sum(axis=1)),
    "quadratic": (
        F.Quadratic(0.4) + F.Linear(np.array([0.3, -1.0])),
        lambda p: 0.2 * (p * p).sum(axis=1) + p @ [0.3, -1.0],
    ),
    "huber": (F.Huber(0.5), lambda p: np.where(np.abs(p) < 0.5, p * p, np.abs(p) - 0.25).sum(axis=1)),
}
SETS = {
    "space": (D.FullSpace(2), lambda p: np.full(len(p), True)),
    "orthant": (D.NonNegative(2), lambda p: (p >= 0.0).all(axis=1)),
    "box": (D.Box(-0.5, [0.2, np.inf]), lambda p: ((p >= -0.5) & (p <= [0.2, np.inf])).all(axis=1)),
    "ball": (D.Ball(1.5, shape=2), lambda p: np.linalg.norm(p, axis=1) <= 1.5),
    "simplex": (D.Simplex(2), lambda p: np.full(len(p), True)),
}


def brute_minimum(slope, center, radius, value, holds, on_simplex):
    """The least value on a fine grid of the set within the radius."""
    if on_simplex:
        parts = np.linspace(0.0, 1.0, 1001)
        points = np.stack([parts, 1.0 - parts], axis=1)
    else:
        turns, lengths = np.meshgrid(np.linspace(0.0, 2.0 * np.pi, 181), np.linspace(0.0, radius, 41))
        points = center + np.stack([lengths * np.cos(turns), lengths * np.sin(turns)], axis=-1).reshape(-1, 2)
    inside = holds(points) & (np.linalg.norm(points - center, axis=1) <= radius * (1 + 1e-12))
    return float(np.min(((points - center) @ slope + value(points))[inside]))


@gathered("kind", SIMPLE)
@pytest.mark.parametrize("name", SETS)
def test_the_bound_is_never_above_the_minimum_and_close_to_it(name, kind):
    rng, (simple, value), (domain, holds) = np.random.default_rng(5), SIMPLE[kind], SETS[name]
    for radius in (0.3, 2.0):
        slope, center = rng.standard_normal(2), domain.project(rng.standard_normal(2))
        least = brute_minimum(slope, center, radius, value, holds, name == "simplex")
        bound = least_within(0.0, slope, center, radius, simple, domain, EXACT, math.nan)
        assert bound.value <= least + 1e-9
        # The grid has about 40 points along a radius.
        assert bound.value >= least - 0.05 * radius


@given(st.integers(0, 10**6), st.floats(1e-3, 1e3))
def test_on_the_whole_space_it_is_the_slope_times_the_radius(seed, radius):
    rng = np.random.default_rng(seed)
    slope, center = rng.standard_normal(5), rng.standard_normal(5)
    bound = least_within(1.0, slope, center, radius, F.Zero(), D.FullSpace(5), EXACT, math.nan)
    assert bound.value == pytest.approx(1.0 - radius * np.linalg.norm(slope), rel=1e-12)


def test_a_linear_program_within_a_radius_is_that_of_a_cone_solver():
    rng = np.random.default_rng(2)
    slope, center = rng.standard_normal(6), np.abs(rng.standard_normal(6))
    ball = {"type": "ineq", "fun": lambda x: 4.0 - (x - center) @ (x - center), "jac": lambda x: 2.0 * (center - x)}
    found = scipy.optimize.minimize(
        lambda x: slope @ (x - center), center, jac=lambda x: slope, bounds=[(0, None)] * 6, method="SLSQP",
        constraints=ball,
    )  # fmt: skip
    bound = least_within(0.0, slope, center, 2.0, F.Zero(), D.NonNegative(6), EXACT, math.nan)
    assert bound.value == pytest.approx(found.fun, rel=2e-3) and bound.value <= found.fun + 1e-9


def test_a_product_of_boxes_clips_its_entries_as_exactly_as_a_box():
    # At a solution of an inequality: no slope where it is tight, a large one where the multiplier is 0.
    slope, center = np.array([1e-13, 3.0, 5.0]), np.array([0.2, 0.0, 0.0])
    for domain in (D.NonNegative(3), D.Product(D.NonNegative(3)), D.Product(D.NonNegative(1), D.NonNegative(2))):
        assert least_within(4.0, slope, center, 5.0, F.Zero(), domain, EXACT, math.nan).value >= 4.0 - 1e-9


def test_errors_of_value_and_slope_lower_the_bound():
    slope, center = np.array([1.0, -2.0]), np.zeros(2)
    for domain in (D.FullSpace(2), D.NonNegative(2)):
        clean = least_within(0.0, slope, center, 3.0, F.Zero(), domain, EXACT, math.nan)
        rough = least_within(0.0, slope, center, 3.0, F.Zero(), domain, Errors(0.5, 0.1), math.nan)
        assert rough.value <= clean.value - 0.5 - 0.1 * 3.0 + 1e-9


def test_every_block_of_y_has_a_radius_in_its_own_units():
    """An inequality in other units: the radius of its multiplier goes along, and the gap is that over balls."""
    rng = np.random.default_rng(8)
    c, A, G = rng.standard_normal(5), rng.standard_normal((2, 5)), rng.standard_normal((1, 5))
    inside, Y = rng.standard_normal(5), D.Product(D.FullSpace(2), D.NonNegative(1))
    found = []
    for unit in (1.0, 8.0):
        B, d = np.vstack([A, unit * G]), np.append(A @ inside, unit * (G @ inside - 1.0))
        problem = ss.SaddleProblem(f=F.Quadratic(1.0) + F.Linear(c), g=F.Linear(d), B=B, X=D.FullSpace(5), Y=Y)
        # Interior points would leave a gap that is rounding.
        result = ss.solve(problem, rtol=1e-3, method="adaptive")
        assert result.status is ss.Status.SOLVED_WITHIN
        (_, one, other), (y, last) = result.certificate.radii, (result.y[:2], result.y[2])
        missed = B @ result.x - d
        most = y @ missed[:2] + one * np.linalg.norm(missed[:2])
        most += max((last + other) * missed[2], max(last - other, 0.0) * missed[2])
        upper = 0.5 * result.x @ result.x + c @ result.x + most
        pulled = c + B.T @ result.y
        lower = -0.5 * pulled @ pulled - d @ result.y
        assert upper - lower == pytest.approx(result.gap, rel=1e-3)
        assert f"Radii: {one:.4g} around block 1 of y, {other:.4g} around block 2 of y." in result.message
        found.append((one, other * unit))
    assert found[0] == pytest.approx(found[1], rel=1e-9)


def test_without_a_scale_at_the_start_constraints_are_not_missed():
    # No slope at the start: f is constant, and so is h near 0. Balls as small as first steps prove nothing.
    h, rows = F.EpsilonInsensitive(0.1), np.array([[0.0, 0.1], [0.0, -1.0]])
    own = F.Custom(prox=lambda center, step: h.prox(np.array(center), step), value=h.value)
    fixed = F.Indicator(D.Box(0.0, 0.0, shape=2)).translated(rows @ [0.0, 0.4])
    for unit in (1.0, 1e-6):
        f, K = F.LeastSquares(np.zeros((1, 2)), [math.sqrt(unit)]), np.array([[-1.8, 1.0], [0.8, 0.8]])
        result = ss.minimize(f + unit * own @ K + fixed @ rows, rtol=1e-4, max_calls={"B": 1000})
        missed = float(np.linalg.norm(rows @ result.x - rows @ [0.0, 0.4]))
        assert not result.success or missed <= 1e-4
        # The two blocks of y: as large as what F is worth.
        assert min(result.certificate.radii[1:]) > unit


@pytest.mark.parametrize("rtol", [3e-7, 1e-12])
def test_constraints_alone_are_met_where_they_are_called_so(rtol):
    # Multipliers shrink for ever, and a target that is absolute once another method goes on would be met in tiny balls.
    for seed in range(3):
        rng = np.random.default_rng(seed)
        rows, point, faces, room = rng.normal(size=(3, 4)), rng.normal(size=4), rng.normal(size=(3, 4)), rng.random(3)
        fixed = F.Indicator(D.Box(0.0, 0.0, shape=3)).translated(rows @ point) @ rows
        below = F.Indicator(D.Box(-np.inf, 0.0, shape=3)).translated(faces @ point + room) @ faces
        result = ss.minimize(fixed + below, rtol=rtol, max_calls={"B": 300})
        missed = max(np.abs(rows @ (result.x - point)).max(), (faces @ (result.x - point) - room).max())
        assert result.success or rtol == 1e-12
        assert not result.success or missed <= rtol


def test_slopes_do_not_make_a_small_set_large():
    # Nothing meets the sum 3 on a simplex of size 1e-3; were x larger, any residual would be small beside slopes.
    unit, h, rng = 1e-3, F.Max(), np.random.default_rng(0)
    A, rows = rng.standard_normal((5, 3)) / unit, np.array([[1.0, 1.0, 1.0], [1.0, -1.0, 0.0]]) / unit
    f = F.Custom(
        lambda x: A.T @ np.tanh(A @ x), lambda x: float(np.log(np.cosh(A @ x)).sum()), ss.Holder(1.0, 30.0 / unit**2)
    )
    own = F.Custom(prox=lambda center, step: h.prox(np.array(center), step), value=h.value)
    fixed = F.Indicator(D.Box(0.0, 0.0, shape=2)).translated([3.0, 0.0]) @ rows
    result = ss.minimize(f + (3.0 / unit) * own + fixed, over=D.Simplex(3, unit), rtol=1e-6, max_calls={"B": 300})
    assert not result.success
    # Along a set of one point nothing changes, whatever its slopes: 0 x = -1/2 has no solution.
    squares, rows = F.LeastSquares(np.array([[3.0], [2.0]]), [1.0, 0.0]), np.array([[0.0], [3.0]])
    fixed = F.Indicator(D.Box(0.0, 0.0, shape=2)).translated([-0.5, 3.5]) @ rows
    assert not ss.minimize(squares + 4.0 * own + fixed, over=D.Simplex(1), rtol=1e-3, max_calls={"B": 200}).success


def test_a_weight_that_suited_a_kink_stays_in_the_range_of_numbers():
    line, exact = ss.domains.FullSpace(1), Errors(0.0, 0.0)
    with np.errstate(all="raise"):
        found = least_within(-1.0, np.array([10.0]), np.full(1, 0.1), 1.0, ss.functions.L1(), line, exact, 1e-269)
    # -1 + 10 (x - 0.1) + |x| is least at x = -0.9.
    assert found.value == pytest.approx(-10.1, rel=1e-9)


@pytest.mark.parametrize("seed", range(8))
def test_no_contradiction_is_seen_from_projections_of_points_far_away(seed):
    # The equation pushes against the face of the half space, from 1e16 away when weights are small.
    rng = np.random.default_rng(seed)
    normal, inside = rng.standard_normal(2), rng.standard_normal(2)
    row, level = -rng.uniform(0.1, 2.0) * normal, float(normal @ inside) + 1.0
    equation = ss.functions.Indicator(ss.domains.Box(row @ inside, row @ inside, shape=1)) @ row[None, :]
    result = ss.minimize(ss.functions.L1() @ np.eye(2) + equation, over=ss.domains.HalfSpace(normal, level), rtol=1e-3)
    assert result.status is not ss.Status.INFEASIBLE
    far = ss.domains.HalfSpace(normal, level).project(1e16 * normal)
    assert normal @ far == pytest.approx(level, rel=1e-12)


@pytest.mark.parametrize("seed", range(12))
def test_radii_of_bounded_blocks_do_not_shrink_with_their_points(seed):
    # The minimum is 0, and multipliers vanish on the way: a claim within what is left of them would say nothing.
    rng = np.random.default_rng(seed)
    A, C = rng.standard_normal((1, 2)), rng.standard_normal((1, 2))
    half = ss.functions.Indicator(ss.domains.Box([0.5], [np.inf])) @ C
    result = ss.minimize(ss.functions.L1().translated([1.0]) @ A + half)
    assert result.objective <= 1e-3 or not result.success
    if result.success and len(result.certificate.radii) == 3:
        assert result.certificate.radii[1] >= 2.0


def test_rounding_of_eigenvalues_proves_nothing():
    # The cone holds 0, whatever the size of a slope beside the radius.
    slope = np.diag([-6e-7, -1.2e10, 0.17]) + 91.0 * (np.eye(3, k=1) + np.eye(3, k=-1)) * [[1.0, 1.0, 0.0]] * 3
    cone, rng = D.PSDCone(3).polar(), np.random.default_rng(0)
    for _ in range(200):
        tilt = slope * 10.0 ** rng.uniform(-3, 3, 1) + rng.normal(size=(3, 3))
        tilt = 0.5 * (tilt + tilt.T)
        for tau in 10.0 ** rng.uniform(10, 25, 3):
            found = least_within(0.0, tilt, np.zeros((3, 3)), 3e-18, F.Zero(), cone, Errors(0.0, 0.0), tau)
            assert found.value <= 0.0
