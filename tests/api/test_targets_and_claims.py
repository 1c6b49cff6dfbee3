"""What may be asked for, and what is claimed where nothing bounds the sets: other solvers, scales, limits."""

import math

import numpy as np
import pytest
import scipy.optimize

import saddleslide as ss
from support import gathered, need

F, D = ss.functions, ss.domains
RNG = np.random.default_rng(7)
A, b = RNG.standard_normal((20, 40)), RNG.standard_normal(20)
TALL, t = RNG.standard_normal((50, 6)), RNG.standard_normal(50)
C, d = RNG.standard_normal((4, 40)), RNG.standard_normal(4)
PRICES, MIX = RNG.random(24), RNG.random((8, 24))
SUMS = MIX @ (RNG.random(24) * (RNG.random(24) > 0.6))
SPARSE = A @ (RNG.standard_normal(40) * (RNG.random(40) > 0.9))
STEPS = np.eye(40)[:-1] - np.eye(40, k=1)[:-1]


def saddle(f, g, B, X, Y):
    return ss.SaddleProblem(f=f, g=g, B=B, X=X, Y=Y)


def lasso():
    model = need("sklearn.linear_model").Lasso(alpha=1.5 / 20, fit_intercept=False, tol=1e-12, max_iter=10**6).fit(A, b)
    value = 0.5 * np.sum((A @ model.coef_ - b) ** 2) + 1.5 * np.abs(model.coef_).sum()
    f = F.LeastSquares(A, b) + 1.5 * F.Power(0.0)
    return saddle(f, F.Zero(), np.zeros((1, 40)), D.FullSpace(40), D.Box(0.0, 0.0, shape=1)), value


def equalities():
    """Least squares of full column rank under C x = d, by its KKT system."""
    tall = np.vstack([A, RNG.standard_normal((40, 40))])
    right = np.concatenate([b, np.zeros(40)])
    system = np.block([[tall.T @ tall, C.T], [C, np.zeros((4, 4))]])
    x = np.linalg.solve(system, np.concatenate([tall.T @ right, d]))[:40]
    f = F.LeastSquares(tall, right)
    return saddle(f, F.Linear(d), C, D.FullSpace(40), D.FullSpace(4)), 0.5 * np.sum((tall @ x - right) ** 2)


def linear_program():
    value = scipy.optimize.linprog(PRICES, A_eq=MIX, b_eq=SUMS).fun
    return saddle(F.Linear(PRICES), F.Linear(SUMS), MIX, D.NonNegative(24), D.FullSpace(8)), value


def inequalities():
    """min <c, x> with G x <= h in R^n: multipliers >= 0."""
    G, h = np.vstack([TALL, np.eye(6), -np.eye(6)]), np.concatenate([np.abs(t) + 0.5, np.full(12, 3.0)])
    c = RNG.standard_normal(6)
    value = scipy.optimize.linprog(c, A_ub=G, b_ub=h, bounds=(None, None)).fun
    return saddle(F.Linear(c), F.Linear(h), G, D.FullSpace(6), D.NonNegative(62)), value


def quantile():
    """The sum of 0.7 max(r, 0) + 0.3 max(-r, 0) of r = t - A x, as a linear program."""
    c = np.concatenate([np.zeros(6), np.full(50, 0.7), np.full(50, 0.3)])
    split = np.hstack([TALL, np.eye(50), -np.eye(50)])
    bounds = [(None, None)] * 6 + [(0, None)] * 100
    value = scipy.optimize.linprog(c, A_eq=split, b_eq=t, bounds=bounds).fun
    return saddle(F.Zero(), F.Linear(-t), -TALL, D.FullSpace(6), D.Box(-0.3, 0.7, shape=50)), value


def basis_pursuit():
    value = scipy.optimize.linprog(np.ones(80), A_eq=np.hstack([A, -A]), b_eq=SPARSE).fun
    return saddle(F.Power(0.0), F.Linear(SPARSE), A, D.FullSpace(40), D.FullSpace(20)), value


def orthant_with_variation():
    """x >= 0 with total variation and no ridge, as a quadratic program of SciPy's."""

    def objective(z):
        x, slack = z[:40], z[40:]
        r = A @ x - b
        return 0.5 * r @ r + 0.5 * slack.sum(), np.concatenate([A.T @ r, np.full(39, 0.5)])

    rows = np.vstack([np.hstack([STEPS, -np.eye(39)]), np.hstack([-STEPS, -np.eye(39)])])
    bounds = scipy.optimize.Bounds(np.concatenate([np.zeros(40), np.full(39, -np.inf)]), np.inf)
    found = scipy.optimize.minimize(
        objective, np.ones(79), jac=True, bounds=bounds, method="SLSQP", options={"ftol": 1e-12, "maxiter": 1000},
        constraints={"type": "ineq", "fun": lambda z: -rows @ z, "jac": lambda z: -rows},
    )  # fmt: skip
    f = F.LeastSquares(A, b)
    return saddle(f, F.Zero(), STEPS, D.NonNegative(40), D.Box(-0.5, 0.5, shape=39)), found.fun


# Where bounds that every solution obeys make the claim global.
MADE_GLOBAL = (lasso, equalities, quantile, basis_pursuit)
FREE = (lasso, equalities, linear_program, inequalities, quantile, basis_pursuit, orthant_with_variation)


@gathered("make", FREE, ids=lambda make: make.__name__)
def test_problems_without_bounds_are_solved_to_the_values_of_other_solvers(make):
    problem, value = make()
    result = ss.solve(problem, rtol=1e-4, max_steps=4000)
    assert result.lower - 1e-9 <= value <= result.upper + 1e-6 * abs(value)
    assert result.gap <= 1e-4 * max(abs(result.lower), abs(result.upper)) and result.success
    if make in MADE_GLOBAL:
        said = result.certificate.solutions
        assert result.status is ss.Status.SOLVED and result.radius == math.inf and said and said in result.message
        return
    assert result.status is ss.Status.SOLVED_WITHIN and result.radius == 10.0
    # The certificate keeps what holds on the whole sets.
    assert result.certificate.gap > result.gap and min(result.certificate.radii) < math.inf
    assert "Radii: " in result.message


def test_a_claim_implies_small_residuals_of_constraints():
    """|B x - b| <= gap / R_y for multipliers in the whole space (docs/certificates.md, 2)."""
    for make, sums in ((equalities, d), (linear_program, SUMS), (basis_pursuit, SPARSE)):
        problem, _ = make()
        result = ss.solve(problem, rtol=1e-4, max_steps=4000)
        left = float(np.linalg.norm(problem.coupling.forward(result.x) - sums))
        # Bounds over twice the set that has all multipliers leave as much as its radius, which is at least |y|.
        within = result.status is ss.Status.SOLVED_WITHIN
        assert left <= result.gap / (result.certificate.radii[1] if within else 0.9 * np.linalg.norm(result.y))


@gathered(("of_x", "of_y", "of_f"), [(1e3, 1.0, 1.0), (1e-4, 1e2, 1e-3), (1.0, 1e-5, 1e5)])
def test_no_status_depends_on_units(of_x, of_y, of_f):
    """x in other units, y in other units, f in other units: lengths and gaps follow."""
    tall = np.vstack([A, np.eye(40)])
    right = np.concatenate([b, np.zeros(40)])

    def scaled(sx, sy, sf):
        f = F.LeastSquares(math.sqrt(sf) * tall / sx, math.sqrt(sf) * right)
        return saddle(f, F.Linear(sf * d / sy), sf * C / (sx * sy), D.FullSpace(40), D.FullSpace(4))

    plain, other = (ss.solve(scaled(*s), rtol=1e-5, method="adaptive") for s in ((1, 1, 1), (of_x, of_y, of_f)))
    assert plain.status is other.status is ss.Status.SOLVED
    sizes = [float(result.certificate.solutions.split()[-1]) for result in (plain, other)]
    assert sizes[1] == pytest.approx(of_y * sizes[0], rel=0.01)
    assert other.upper == pytest.approx(of_f * plain.upper, rel=1e-4)


def contradictions(seed):
    """Constraints with no point, by a margin: (problem, what it is)."""
    rng = np.random.default_rng(seed)
    rows, c = rng.standard_normal((3, 6)), rng.standard_normal(6)
    # The last row is a combination of the others, its right side is not.
    wrong = np.vstack([rows, rng.standard_normal(3) @ rows])
    right = np.append(rows @ rng.standard_normal(6), 50.0)
    fit = F.LeastSquares(rng.standard_normal((9, 6)), rng.standard_normal(9))
    free, all_y = D.FullSpace(6), D.FullSpace(4)
    yield saddle(fit, F.Linear(right), wrong, free, all_y)
    yield saddle(F.Linear(np.abs(c)), F.Linear(right), wrong, D.NonNegative(6), all_y)
    # x >= 0 with a positive row and a negative sum; a box that is too small; two half spaces that do not meet.
    yield saddle(F.Linear(np.abs(c)), F.Linear([-1.0]), np.abs(c)[None, :], D.NonNegative(6), D.FullSpace(1))
    yield saddle(fit, F.Linear([9.0]), np.ones((1, 6)), D.Box(0.0, 1.0, shape=6), D.FullSpace(1))
    yield saddle(fit, F.Linear([1.0, -2.0]), np.vstack([c, -c]), free, D.NonNegative(2))


def test_constraints_that_nothing_satisfies_are_named():
    for seed in range(4):
        for problem in contradictions(seed):
            result = ss.solve(problem, rtol=1e-3, max_steps=2000)
            assert result.status is ss.Status.INFEASIBLE and not result.success and "around x" in result.message


def test_programs_that_fall_without_end_are_named():
    for seed in range(4):
        rng = np.random.default_rng(seed)
        rows = rng.standard_normal((2, 5))
        ray = np.abs(rng.standard_normal(5))
        rows -= np.outer(rows @ ray, ray) / (ray @ ray)
        c = rng.standard_normal(5) - ray
        c -= (max(c @ ray, 0.0) + 1.0) * ray / (ray @ ray)
        for X in (D.NonNegative(5), D.FullSpace(5)):
            sums = rows @ X.project(rng.standard_normal(5))
            result = ss.solve(saddle(F.Linear(c), F.Linear(sums), rows, X, D.FullSpace(2)), rtol=1e-3, max_steps=2000)
            assert result.status is ss.Status.UNBOUNDED and "around y" in result.message


def test_programs_with_a_solution_are_never_called_otherwise():
    """Feasible and bounded by construction, with scales from 1e-4 to 1e4 and rows that depend on each other."""
    for seed in range(25):
        rng = np.random.default_rng(seed)
        rows = rng.standard_normal((4, 8)) * 10.0 ** rng.uniform(-2, 2)
        rows[3] = rows[0] + rows[1] * (seed % 2)
        x = np.abs(rng.standard_normal(8)) * (rng.random(8) > 0.5) * 10.0 ** rng.uniform(-2, 2)
        c = rows.T @ rng.standard_normal(4) + np.abs(rng.standard_normal(8)) * (x == 0.0)
        problem = saddle(F.Linear(c), F.Linear(rows @ x), rows, D.NonNegative(8), D.FullSpace(4))
        result = ss.solve(problem, rtol=1e-3, max_steps=500)
        assert result.status not in (ss.Status.INFEASIBLE, ss.Status.UNBOUNDED, ss.Status.SOLVED), seed
        if result.success:
            value = scipy.optimize.linprog(c, A_eq=rows[:3], b_eq=(rows @ x)[:3]).fun
            assert abs(c @ result.x - value) <= 0.02 * max(abs(value), abs(result.upper))


def test_a_radius_of_0_asks_for_a_global_proof():
    problem, _ = orthant_with_variation()
    assert not ss.solve(problem, rtol=1e-3, radius=0.0, max_steps=100).success
    assert ss.solve(lasso()[0], rtol=1e-3, radius=0.0).status is ss.Status.SOLVED


def test_a_larger_radius_costs_at_most_as_many_times_the_gap():
    problem, _ = linear_program()
    found = [ss.solve(problem, tol=1e-4, radius=radius, max_steps=4000) for radius in (1.0, 100.0)]
    assert all(result.success for result in found)
    ratio = found[1].certificate.radii[1] / found[0].certificate.radii[1]
    assert ratio == pytest.approx(100.0, rel=0.1)


def box_problem(shift=0.0):
    f = F.Quadratic(1.0) + F.Linear(np.full(6, shift))
    return saddle(f, F.Quadratic(0.5), TALL[:6].T, D.Box(-1.0, 1.0, shape=6), D.Box(-1.0, 1.0, shape=6))


def test_the_largest_of_the_three_targets_counts_and_there_is_a_default():
    problem = box_problem(1.0)
    for asked in ({"tol": 1e-3}, {"rtol": 1e-5}, {"reduction": 1e-6}, {"tol": 1e-3, "rtol": 1e-9}, {}):
        result = ss.solve(problem, **asked)
        size = max(abs(result.lower), abs(result.upper))
        start = ss.certify(problem, *problem.start()).gap
        rtol = asked.get("rtol", 0.0 if asked else 1e-4)
        # The gap at the start is bounded from below on the way.
        most = max(asked.get("tol", 0.0), rtol * size, max(asked.get("reduction", 0.0), 1e-3 * rtol) * start)
        assert result.success and result.gap <= most * (1.0 + 1e-9)
        assert result.plans[0] == ss.plan(problem, **asked)


def test_a_saddle_value_of_0_is_a_target_that_can_be_met():
    """Relative to the value nothing is: a thousandth of the gap at the start stands in."""
    start = np.full(6, 0.5), np.full(6, 0.5)
    result = ss.solve(box_problem(), rtol=1e-4, start=start)
    assert result.success and 0.0 < result.known_target <= 1e-6
    game = ss.gallery.matrix_game(np.array([[0.0, 1.0, -1.0], [-1.0, 0.0, 1.0], [1.0, -1.0, 0.0]]))
    corner = np.array([1.0, 0.0, 0.0])
    assert ss.solve(game, start=(corner, corner)).success


def test_targets_that_are_none_are_refused():
    problem = box_problem()
    with pytest.raises(ss.errors.InputError, match="all targets are 0"):
        ss.solve(problem, tol=0.0)
    with pytest.raises(ss.errors.InputError, match="rtol"):
        ss.solve(problem, rtol=-1.0)
    noisy = saddle(F.Noisy(F.Quadratic(1.0), 0.1), F.Quadratic(1.0), np.eye(6), problem.X, problem.Y)
    with pytest.raises(ss.errors.InputError, match="expected tol= or reduction="):
        ss.solve(noisy, rtol=1e-2)


def test_a_start_that_is_a_solution_of_value_0_meets_every_rtol():
    # Rock, paper, scissors: nothing is small beside a value of 0, and the first point is the answer.
    R = np.array([[0.0, -1.0, 1.0], [1.0, 0.0, -1.0], [-1.0, 1.0, 0.0]])
    for result in (
        ss.solve(ss.gallery.matrix_game(R)),
        ss.minimize(ss.functions.Max() @ R, over=ss.domains.Simplex(3), rtol=1e-8),
    ):
        assert result.status is ss.Status.SOLVED and result.gap <= result.target <= 1e-14
    # A part of that gap is a part of rounding.
    assert ss.solve(ss.gallery.matrix_game(R), reduction=1e-3).status is ss.Status.NUMERICAL_LIMIT


def test_what_a_solved_run_misses_of_constraints_is_said():
    # Over multipliers that are known to be small, the gap counts little of what constraints are missed by.
    rng = np.random.default_rng(43)
    M, t, rows = rng.standard_normal((4, 2)), 3.0 * rng.standard_normal(4), rng.standard_normal((2, 2))
    level = rows @ np.linalg.lstsq(M, t)[0] + [-1e-3, 1.0]
    below = F.Indicator(D.Box(-np.inf, 0.0, shape=2)).translated(level) @ rows
    result = ss.minimize(F.LeastSquares(M, t) + below, over=D.Ball(10.0, 2))
    assert result.status is ss.Status.SOLVED and result.certificate.solutions.startswith("sum w |y| <= ")
    size = float(result.certificate.solutions.split()[4])
    missed = np.max(rows @ result.x - level)
    # Weights are at most 1, and the set is twice as large as the multipliers.
    assert 0.0 < missed <= result.gap / (0.5 * size) * 1.001
    assert f"Constraints are missed by up to {result.violation:.3g}" in result.message
