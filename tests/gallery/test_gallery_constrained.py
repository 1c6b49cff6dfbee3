"""Linearly constrained problems against a direct solve of the KKT system and against Clarabel."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse as sp

import saddleslide as ss
from saddleslide.cli.main import main
from saddleslide.errors import InputError
from support import gathered
from trusted import quadratic_program


def instance(n, m, seed, condition=10.0, redundant=0):
    rng = np.random.default_rng(seed)
    U = np.linalg.qr(rng.standard_normal((n, n)))[0]
    Q = (U * np.geomspace(1.0, condition, n)) @ U.T
    Q = (Q + Q.T) / 2
    A = rng.standard_normal((m, n))
    A = np.vstack([A, rng.standard_normal((redundant, m)) @ A])
    return Q, rng.standard_normal(n), A, A @ rng.random(n)


def kkt(Q, c, A, b):
    """x and the shortest multipliers, by least squares on the KKT system."""
    n, m = len(Q), len(A)
    matrix = np.block([[Q, A.T], [A, np.zeros((m, m))]])
    solved = np.linalg.lstsq(matrix, np.r_[-c, b], rcond=None)[0]
    return solved[:n], solved[n:]


CASES = [
    (10, 3, 0, 10.0, 0),
    (30, 10, 1, 10.0, 0),
    (30, 10, 2, 1e3, 0),
    (25, 8, 3, 50.0, 4),
    (40, 1, 4, 100.0, 0),
    (12, 5, 5, 4.0, 0),
]


@gathered("case", CASES)
def test_minimiser_and_multipliers_solve_the_kkt_system(case):
    Q, c, A, b = instance(*case)
    f = ss.functions.Quadratic(Q) + ss.functions.Linear(c)
    problem = ss.gallery.constrained(f, A, b)
    result = ss.solve(problem, tol=1e-8, max_steps=2000)
    solution = problem.read(result)
    x, y = kkt(Q, c, A, b)
    minimum = 0.5 * x @ Q @ x + c @ x
    assert result.status is ss.Status.SOLVED
    assert solution.inside and not solution.infeasible
    assert result.lower - 1e-11 <= minimum <= result.upper + 1e-11
    assert solution.objective - minimum <= result.gap + 1e-11
    assert solution.residual == pytest.approx(np.linalg.norm(A @ solution.x - b), abs=1e-14)
    # The gap bounds (bound - |y|) times the residual, and mu/2 |dx|^2 up to the multipliers' share.
    assert (solution.bound - np.linalg.norm(y)) * solution.residual <= result.gap + 1e-11
    assert solution.x == pytest.approx(x, abs=1e-4)
    assert solution.multipliers == pytest.approx(y, abs=1e-3 * (1 + np.abs(y).max()))


@gathered("seed", range(5))
def test_with_bounds_on_x_it_is_the_quadratic_program_of_clarabel(seed):
    Q, c, A, b = instance(20, 4, 20 + seed, 20.0)
    f = ss.functions.Quadratic(Q) + ss.functions.Linear(c)
    problem = ss.gallery.constrained(f, sp.csr_array(A), b, X=ss.domains.Box(0.0, 1.0, shape=20))
    result = ss.solve(problem, tol=1e-8, max_steps=2000)
    solution = problem.read(result)
    sides = np.vstack([-np.eye(20), np.eye(20)])
    minimum, x, y = quadratic_program(Q, c, A, b, sides, np.r_[np.zeros(20), np.ones(20)])
    assert result.status is ss.Status.SOLVED and solution.inside and not solution.infeasible
    assert result.lower - 1e-9 <= minimum <= result.upper + 1e-9
    assert solution.x == pytest.approx(x, abs=1e-3)
    assert solution.multipliers == pytest.approx(y, abs=1e-2)
    assert solution.residual <= 1e-7


def test_a_logistic_loss_under_constraints_is_the_minimum_in_the_null_space():
    rng = np.random.default_rng(7)
    data, labels = rng.standard_normal((40, 8)), np.sign(rng.standard_normal(40))
    A, b = rng.standard_normal((3, 8)), rng.standard_normal(3)
    f = ss.functions.Logistic(data, labels, ridge=0.1)
    problem = ss.gallery.constrained(f, A, b)
    solution = problem.read(ss.solve(problem, tol=1e-8, max_steps=2000))
    shift, basis = np.linalg.lstsq(A, b, rcond=None)[0], np.linalg.svd(A)[2][3:].T

    def along(t):
        x = shift + basis @ t
        margin = -labels * (data @ x)
        slope = data.T @ (-labels / (1.0 + np.exp(-margin))) + 0.1 * x
        return np.logaddexp(0.0, margin).sum() + 0.05 * x @ x, basis.T @ slope

    best = scipy.optimize.minimize(
        along, np.zeros(5), jac=True, method="L-BFGS-B", options={"ftol": 1e-15, "gtol": 1e-10}
    )
    assert solution.objective == pytest.approx(best.fun, abs=1e-7)
    assert solution.x == pytest.approx(shift + basis @ best.x, abs=1e-4)


@gathered("seed", range(5))
def test_contradicting_rows_are_refused_and_the_distance_is_right(seed):
    Q, _, A, b = instance(12, 4, seed, redundant=3)
    wrong = b + np.random.default_rng(seed).standard_normal(7)
    distance = np.linalg.norm(wrong - A @ np.linalg.lstsq(A, wrong, rcond=None)[0])
    with pytest.raises(InputError, match=rf"b is {distance:.2g} away from the range of A"):
        ss.gallery.constrained(ss.functions.Quadratic(Q), A, wrong)


def test_a_domain_that_excludes_the_constraint_is_reported_with_proof():
    problem = ss.gallery.constrained(
        ss.functions.Quadratic(1.0), np.ones((1, 4)), [5.0], X=ss.domains.Box(0.0, 1.0, shape=4), bound=50.0
    )
    solution = problem.read(ss.solve(problem, tol=1e-6))
    assert solution.infeasible and "separating hyperplane" in solution.verdict
    assert solution.residual == pytest.approx(1.0, abs=1e-6)


def test_a_bound_that_is_too_small_is_reported_not_called_infeasible():
    problem = ss.gallery.constrained(ss.functions.Quadratic(1.0), np.ones((1, 4)), [8.0], bound=0.5)
    solution = problem.read(ss.solve(problem, tol=1e-8, max_steps=2000))
    assert not solution.inside and not solution.infeasible
    assert "larger bound" in solution.verdict
    assert solution.residual > 1.0


@gathered(
    ("A", "b", "words"),
    [(np.eye(3), [1.0, 2.0], "shape"), (np.eye(2), [1.0, np.nan], "NaN"), (np.ones(3), [1.0], "matrix")],
)
def test_wrong_constraints_are_refused(A, b, words):
    with pytest.raises(InputError, match=words):
        ss.gallery.constrained(ss.functions.Quadratic(1.0), A, b)


def test_a_function_of_another_shape_is_refused_before_it_is_called():
    for f in (ss.functions.Quadratic(np.eye(3)), ss.functions.Linear(np.ones(3))):
        with pytest.raises(InputError, match=r"f takes arrays of shape \(3,\), A of shape \(2,\)"):
            ss.gallery.constrained(f, np.ones((1, 2)), [1.0])


def test_a_function_that_is_none_is_refused():
    with pytest.raises(InputError, match="f is function"):
        ss.gallery.constrained(lambda x: x, np.eye(2), np.ones(2))


INFEASIBLE = {
    "box": (ss.functions.Quadratic(1.0), np.ones((1, 4)), [5.0], ss.domains.Box(0.0, 1.0, shape=4)),
    "ball": (ss.functions.Quadratic(np.diag([1.0, 2.0])), np.eye(2), [3.0, 0.1], ss.domains.Ball(1.0, shape=2)),
    "simplex": (ss.functions.Linear([1.0, 2.0, 3.0]), [[1.0, 0.0, 1.0]], [1.01], ss.domains.Simplex(3)),
}


@gathered("case", INFEASIBLE)
@gathered("tol", [2.0, 1e-2, 1e-7])
def test_what_no_x_satisfies_is_no_success(case, tol):
    f, A, b, X = INFEASIBLE[case]
    problem = ss.gallery.constrained(f, A, b, X=X)
    result = ss.solve(problem, tol=tol)
    assert result.status is ss.Status.BOUND_REACHED and not result.success
    assert "a separating hyperplane proves it" in result.message and "larger bound=" in result.message
    assert problem.read(result).infeasible
    with pytest.raises(ss.errors.OutcomeError, match="BOUND_REACHED"):
        ss.solve(problem, tol=tol, strict=True)


@pytest.mark.parametrize("bound", [0.5, 1.9])
def test_a_ball_that_is_too_small_is_no_success_by_any_door(bound, tmp_path):
    # The multiplier of x_1 + ... + x_4 = 8 is -2.
    problem = ss.gallery.constrained(ss.functions.Quadratic(np.eye(4)), np.ones((1, 4)), [8.0], bound=bound)
    path = tmp_path / "run.npz"
    plan = ss.plan(problem, tol=1e-6)
    ss.solve(problem, tol=1e-8, max_steps=1, checkpoint=path)
    for result in (ss.solve(problem, tol=1e-6), ss.run(problem, plan), ss.resume(path, problem, max_steps=10_000)):
        assert result.status is ss.Status.BOUND_REACHED and not result.success
        assert f"their bound is {bound:.4g}" in result.message
    solution = problem.read(result)
    assert not solution.inside and "larger bound" in solution.verdict


@pytest.mark.parametrize("target", [{"tol": 1e-4}, {"reduction": 1e-2}])
def test_a_ball_so_small_that_every_point_meets_the_target_is_no_success(target):
    # R |A x - b| is below the target wherever x is, and y stays inside the ball.
    problem = ss.gallery.constrained(ss.functions.Quadratic(1.0), np.ones((1, 2)), [5.0], bound=1e-6)
    for method in ("auto", "adaptive"):
        result = ss.solve(problem, **target, method=method)
        assert result.status is ss.Status.BOUND_REACHED and not result.success
        assert "their bound is 1e-06" in result.message or "A x = b is missed by" in result.message


def test_a_ball_that_is_large_enough_proves_feasibility():
    problem = ss.gallery.constrained(ss.functions.Quadratic(np.eye(4)), np.ones((1, 4)), [8.0], bound=2.5)
    result = ss.solve(problem, tol=1e-3)
    assert result.status is ss.Status.SOLVED
    assert problem.read(result).residual <= 10.0 * result.gap / 2.5


def test_agents_whose_ball_is_too_small_are_no_success():
    local = [ss.functions.Quadratic(1.0) + ss.functions.Linear([-c]) for c in (1.0, 2.0, 6.0)]
    problem = ss.gallery.consensus(local, [[0, 1, 0], [1, 0, 1], [0, 1, 0]], bound=0.1)
    result = ss.solve(problem, tol=1e-8)
    assert result.status is ss.Status.BOUND_REACHED
    assert not problem.read(result).inside and problem.read(result).consensus_error > 0.1
    tiny = ss.gallery.consensus(local, [[0, 1, 0], [1, 0, 1], [0, 1, 0]], bound=1e-4)
    assert all(not ss.solve(tiny, tol=1e-2, method=method).success for method in ("auto", "adaptive"))


def test_the_command_line_does_not_call_it_solved(tmp_path, capsys):
    for name, rows in (("A", np.ones((1, 4))), ("b", np.array([[-1.0]])), ("Q", np.eye(4)), ("c", np.zeros((1, 4)))):
        np.savetxt(tmp_path / f"{name}.csv", rows, delimiter=",")
    files = [part for name in "AbQc" for part in (f"--{name}", str(tmp_path / f"{name}.csv"))]
    assert main(["solve", "constrained", *files, "--nonnegative"]) == 1
    said = capsys.readouterr().out
    assert "bound_reached" in said and "No x in X has A x = b" in said


@pytest.mark.parametrize("bound", [None, 20.0])
def test_what_building_a_problem_takes_is_in_no_result(bound):
    rng = np.random.default_rng(3)
    matrix, made = rng.standard_normal((3, 8)), {"f": 0, "A": 0}

    def counted(name, work):
        def run(v):
            made[name] += 1
            return work(v)

        return run

    A = ss.operators.as_operator((counted("A", lambda x: matrix @ x), counted("A", lambda y: matrix.T @ y)), (8,), (3,))
    f = ss.functions.from_callable(
        counted("f", lambda x: (0.5 * float(x @ x), x.copy())), smoothness=ss.Holder(1.0, 1.0), strong_convexity=1.0
    )
    problem = ss.gallery.constrained(f, A, np.ones(3), bound=bound)
    assert made["A"] > 0 and made["f"] == (bound is None)
    for _ in range(2):
        made.update(f=0, A=0)
        result = ss.solve(problem, tol=1e-4)
        assert made == {"f": result.calls.f, "A": result.calls.B}
