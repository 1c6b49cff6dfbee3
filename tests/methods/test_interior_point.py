"""Interior points: the same numbers as a simplex code and a cone solver, and each of their pieces by itself."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
import scipy

import saddleslide as ss
from saddleslide.certificates.verdict import Status
from saddleslide.domains.program import Program, program_of
from saddleslide.errors import InputError
from saddleslide.methods.interior_point import System

F, D, operators = ss.functions, ss.domains, ss.operators


def evaluate(program: Program, x: np.ndarray) -> float:
    """The function of a program at a point, written out: a kink is the largest of its slopes' values."""
    total = 0.5 * program.quadratic @ x**2 + program.linear @ x
    for kink in program.kinks:
        for w, b, bend, t in zip(kink.weight, kink.center, kink.bend, x, strict=True):
            slope = w * np.sign(t - b) if bend == 0.0 else np.clip((t - b) / bend, -w, w)
            total += slope * (t - b) - 0.5 * bend * slope**2
    return float(total)


SIMPLE = {
    "quadratic": F.Quadratic(np.array([1.0, 2.0, 0.0])),
    "l1": 0.7 * F.L1(),
    "moved": F.L1().translated(np.array([1.0, -2.0, 0.3])),
    "Huber": 2.0 * F.Huber(0.4),
    "sum": F.Linear([1.0, 2.0, 3.0]) + F.Huber(1.5) + 0.2 * F.L1() + F.LeastSquares(None, [1.0, 2.0, 3.0]),
}


@pytest.mark.parametrize("name", SIMPLE)
def test_a_program_has_the_values_of_its_function_but_for_a_constant(name):
    f, rng = SIMPLE[name], np.random.default_rng(3)
    program = program_of(f, D.FullSpace(3))
    points = 2.0 * rng.standard_normal((8, 3))
    differences = [f.value(x) - evaluate(program, x) for x in points]
    assert np.ptp(differences) < 1e-13


def test_a_power_between_a_kink_and_a_square_is_no_program():
    assert program_of(F.Power(0.5), D.FullSpace(3)) is None
    assert program_of(F.Zero(), D.Ball(1.0, shape=3)) is None


@pytest.mark.parametrize(
    "domain",
    [
        D.Box(-1.0, [2.0, 3.0, 4.0, np.inf]),
        D.Simplex(4, scale=2.0),
        D.CappedSimplex(4, 0.4),
        D.Affine([[1.0, 1.0, 0.0, 2.0]], [1.0]),
        D.Product(D.Simplex(2), D.Box(0.0, 1.0, shape=2)),
        D.Treeplex([-1, 0], [2, 2]),
    ],
    ids=repr,
)
def test_the_program_of_a_set_holds_at_its_points_and_nowhere_else(domain):
    program, rng = domain.as_program(), np.random.default_rng(5)
    for _ in range(20):
        point = 3.0 * rng.standard_normal(4)
        nearest = domain.project(point)
        # The nearest point of the program's set, by a solver that knows nothing of ours.
        x = cp.Variable(4)
        rules = [x[i] >= low for i, low in enumerate(program.lower) if np.isfinite(low)]
        rules += [x[i] <= high for i, high in enumerate(program.upper) if np.isfinite(high)]
        rules += [program.rows.toarray() @ x == program.totals] if program.totals.size else []
        cp.Problem(cp.Minimize(cp.sum_squares(x - point)), rules).solve(solver="CLARABEL")
        assert x.value == pytest.approx(nearest, abs=2e-5)


A = np.random.default_rng(0).standard_normal((3, 6))


@pytest.mark.parametrize(
    "operator",
    [
        operators.as_operator(A),
        operators.as_operator(scipy.sparse.csr_array(A)),
        2.0 * operators.as_operator(A),
        operators.as_operator(A).T,
        operators.as_operator(A) + operators.as_operator(scipy.sparse.csr_array(A)),
        operators.Stack(operators.as_operator(A), operators.Identity(6), scales=[2.0, 3.0]),
        operators.Diagonal([1.0, 2.0, 3.0]),
        operators.FiniteDifferences((2, 3), channels=2),
        operators.FiniteDifferences(5),
        operators.Marginals((2, 3)),
        ss.SaddleProblem(F.Zero(), F.Zero(), A, D.FullSpace(6), D.FullSpace(3)).mirrored().coupling,
    ],
    ids=repr,
)
def test_entries_are_the_products_with_unit_vectors(operator):
    entries = operator.entries
    written = entries.toarray() if scipy.sparse.issparse(entries) else entries
    columns = [operator.forward(e.reshape(operator.x_shape)).ravel() for e in np.eye(operator.shape[1])]
    assert np.array_equal(written, np.stack(columns, axis=1))
    assert operators.Convolution(np.ones(3), 8).entries is None


@pytest.mark.parametrize("rows", [4, 9])
@pytest.mark.parametrize("sparse", [False, True])
def test_a_direction_solves_the_whole_system(rows, sparse):
    """Kinks, equations and either side eliminated: against the system written out."""
    rng = np.random.default_rng(rows)
    B = rng.standard_normal((rows, 6))
    f, X = F.Quadratic(0.5) + 0.3 * F.L1(), D.CappedSimplex(6, 0.5)
    g, Y = F.Huber(0.2) + F.Linear(1.0), D.Simplex(rows)
    problem = ss.SaddleProblem(f, g, scipy.sparse.csr_array(B) if sparse else B, X, Y)
    system = System.of(problem)
    size = system.q.size
    theta = rng.random(size) + 0.1
    theta[-2:] = 0.0  # multipliers of equations
    matrix = np.diag(theta) + np.stack([system.turn(e) for e in np.eye(size)], axis=1)
    assert matrix + matrix.T == pytest.approx(2.0 * np.diag(theta), abs=1e-15)
    right = rng.standard_normal(size)
    assert system.factorise(theta)(right) == pytest.approx(np.linalg.solve(matrix, right), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("seed", range(12))
def test_linear_programs_have_the_value_that_a_simplex_code_finds(seed):
    rng = np.random.default_rng(seed)
    m, n = rng.integers(1, 8), rng.integers(8, 20)
    E, scale = rng.standard_normal((m, n)), 10.0 ** rng.uniform(-4, 4)
    x = np.maximum(rng.standard_normal(n), 0.0)
    c, b = scale * (E.T @ rng.standard_normal(m) + np.where(x > 0.0, 0.0, rng.random(n))), E @ x
    problem = ss.SaddleProblem(F.Linear(c), F.Linear(b), E, D.NonNegative(n), D.FullSpace(m))
    found = ss.solve(problem, rtol=1e-8, method="interior-point")
    trusted = scipy.optimize.linprog(c, A_eq=E, b_eq=b, method="highs")
    assert found.success and len(found.history) < 30
    assert c @ found.x == pytest.approx(trusted.fun, rel=1e-6, abs=1e-7 * scale)
    assert np.linalg.norm(E @ found.x - b) < 1e-6


@pytest.mark.parametrize("seed", range(6))
def test_programs_with_kinks_have_the_value_that_a_cone_solver_finds(seed):
    rng = np.random.default_rng(100 + seed)
    n, m = 8, 12
    K, b, center = rng.standard_normal((m, n)), rng.standard_normal(m), rng.standard_normal(n)
    L = rng.standard_normal((5, n))
    objective = F.L1().translated(center) + 0.5 * F.L1() @ L + 2.0 * (F.Quantile(0.2).translated(b) @ K)
    found = ss.minimize(objective, rtol=1e-8, over=D.Box(-1.0, 1.0, shape=n), method="interior-point")
    x = cp.Variable(n)
    r = K @ x - b
    terms = cp.norm1(x - center) + 0.5 * cp.norm1(L @ x)
    terms += 2.0 * cp.sum(cp.maximum(0.2 * r, -0.8 * r))
    value = cp.Problem(cp.Minimize(terms), [x >= -1.0, x <= 1.0]).solve(solver="CLARABEL")
    assert found.status is Status.SOLVED
    assert found.lower - 1e-6 <= value <= found.objective + 1e-6
    assert found.objective == pytest.approx(value, rel=1e-6)


def test_a_factor_is_taken_where_it_is_cheaper_than_products():
    """Long signals and dense programs; no picture, whose factors fill in, no small game, no prices of the caller's."""
    N = 3000
    D2 = scipy.sparse.diags_array([1.0, -2.0, 1.0], offsets=[0, 1, 2], shape=(N - 2, N))
    signal = np.cumsum(np.random.default_rng(0).standard_normal(N))
    trend = ss.SaddleProblem(
        F.LeastSquares(None, signal), F.Zero(), D2.tocsr(), D.FullSpace(N), D.Box(-5.0, 5.0, shape=N - 2)
    )
    assert ss.plan(trend, rtol=1e-6).method == "interior-point"
    assert ss.plan(trend, rtol=1e-6, costs=(1.0, 1.0, 1.0)).method != "interior-point"
    assert ss.plan(ss.gallery.matrix_game(np.eye(3)), rtol=1e-4).method != "interior-point"
    picture = ss.gallery.denoise(np.zeros((128, 128)), weight=0.1)
    assert ss.plan(picture, rtol=1e-6).method != "interior-point"
    with pytest.raises(InputError, match="too large"):
        ss.solve(picture, rtol=1e-6, method="interior-point")
    found = ss.solve(trend, rtol=1e-6)
    assert found.status is Status.SOLVED and found.calls.B < 300


def test_what_can_not_be_said_as_a_program_is_refused_with_all_reasons():
    problem = ss.SaddleProblem(F.Power(0.5), F.Zero(), A, D.Box(-1.0, 1.0, shape=6), D.Ball(1.0, shape=3))
    with pytest.raises(InputError) as caught:
        ss.solve(problem, tol=1e-3, method="interior-point")
    assert "f = " in str(caught.value) and "g = " in str(caught.value)


def test_sets_that_fix_entries_are_refused_and_left_to_products():
    rng = np.random.default_rng(0)
    X = D.Box([0.0, 1.0, 0.0], [1.0, 1.0, 2.0])
    problem = ss.SaddleProblem(F.Linear(np.ones(3)), F.Zero(), A[:, :3], X, D.Box(-1.0, 1.0, shape=3))
    with pytest.raises(InputError, match="X fixes 1 entries"):
        ss.solve(problem, tol=1e-6, method="interior-point")
    supply, demand = np.r_[0.0, rng.random(39)], rng.random(50)
    transport = ss.gallery.transport(
        rng.random((40, 50)), supply / supply.sum(), demand / demand.sum(), regulariser=None
    )
    assert ss.plan(transport, rtol=1e-6).method != "interior-point"
