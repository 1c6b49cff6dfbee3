"""Interior points: the same numbers as a simplex code and a cone solver, and each of their pieces by itself."""

from __future__ import annotations

from dataclasses import replace

import cvxpy as cp
import numpy as np
import pytest
import scipy

import endless
import saddleslide as ss
from saddleslide.certificates.judge import Judge
from saddleslide.certificates.verdict import Status
from saddleslide.domains.program import Program, program_of
from saddleslide.errors import InputError
from saddleslide.methods.interior_point import InteriorPoint
from saddleslide.methods.optimality import Core, Rows, System
from support import gathered

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


@gathered("seed", range(12))
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


@gathered("seed", range(6))
def test_programs_with_kinks_have_the_value_that_a_cone_solver_finds(monkeypatch, seed):
    candidates, looks = InteriorPoint.candidates, []
    monkeypatch.setattr(InteriorPoint, "candidates", lambda *given: looks.append(given[1]) or candidates(*given))
    rng = np.random.default_rng(100 + seed)
    n, m = 8, 12
    K, b, center = rng.standard_normal((m, n)), rng.standard_normal(m), rng.standard_normal(n)
    L = rng.standard_normal((5, n))
    objective = F.L1().translated(center) + 0.5 * F.L1() @ L + 2.0 * (F.Quantile(0.2).translated(b) @ K)
    found = ss.minimize(objective, rtol=1e-10, over=D.Box(-1.0, 1.0, shape=n), method="interior-point")
    x = cp.Variable(n)
    r = K @ x - b
    terms = cp.norm1(x - center) + 0.5 * cp.norm1(L @ x)
    terms += 2.0 * cp.sum(cp.maximum(0.2 * r, -0.8 * r))
    value = cp.Problem(cp.Minimize(terms), [x >= -1.0, x <= 1.0]).solve(solver="CLARABEL")
    # What steps leave open and the value that they know tell when a look can succeed: there is no other.
    (look,) = looks
    assert found.status is Status.SOLVED and 0.1 * look.left < found.gap < 10.0 * look.left
    assert look.value == pytest.approx(value, rel=1e-4)
    assert found.lower - 1e-6 <= value <= found.objective + 1e-6
    assert found.objective == pytest.approx(value, rel=1e-6)


def test_a_factor_is_taken_where_it_is_cheaper_than_products():
    """Long signals and dense programs; no picture, whose factors fill in, no prices of the caller's."""
    N = 3000
    D2 = scipy.sparse.diags_array([1.0, -2.0, 1.0], offsets=[0, 1, 2], shape=(N - 2, N))
    signal = np.cumsum(np.random.default_rng(0).standard_normal(N))
    trend = ss.SaddleProblem(
        F.LeastSquares(None, signal), F.Zero(), D2.tocsr(), D.FullSpace(N), D.Box(-5.0, 5.0, shape=N - 2)
    )
    assert ss.plan(trend, rtol=1e-6).method == "interior-point"
    assert ss.plan(trend, rtol=1e-6, costs=(1.0, 1.0, 1.0)).method != "interior-point"
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


@pytest.mark.parametrize("seed", range(6))
def test_steps_are_the_same_in_all_units(seed):
    case = endless.solvable(np.random.default_rng([seed, 5]))
    case = replace(case, A=case.A[:0], b=case.b[:0])
    x_unit, y_unit, root = 2.0**-17, 2.0**9, 2.0**5
    systems = [System.of(each.problem(False)) for each in (case, case.in_units(x_unit, y_unit, root))]
    (u, *_), (moved, *_) = (system.begin() for system in systems)
    n, m = case.B.shape[::-1]
    assert np.array_equal(u[:n] * x_unit, moved[:n]) and np.array_equal(u[n : n + m] * y_unit, moved[n : n + m])
    first, second = (
        ss.solve(each.problem(False), rtol=1e-4, method="interior-point")
        for each in (case, case.in_units(x_unit, y_unit, root))
    )
    assert (first.status, first.calls) == (second.status, second.calls)
    assert first.x * x_unit == pytest.approx(second.x, rel=1e-6, abs=1e-6 * x_unit)


def squares(name):
    """An objective with squares, its set, and the same for a cone solver."""
    rng = np.random.default_rng(7)
    A, b, K, w = rng.standard_normal((20, 12)), rng.standard_normal(20), np.diff(np.eye(12), axis=0), rng.random(20)
    S = rng.standard_normal((5, 12))
    x, data = cp.Variable(12), F.LeastSquares(A, b)
    plain, few = (0.5 * cp.sum_squares(M @ x - b[: len(M)]) for M in (A, S))
    return {
        "lasso": (data + 3.0 * F.L1(), None, plain + 3.0 * cp.norm1(x), [], x),
        "elastic net": (
            F.LeastSquares(A, b, 0.5) + 2.0 * F.L1(), None, plain + 0.25 * cp.sum_squares(x) + 2.0 * cp.norm1(x), [], x
        ),
        "wide": (F.LeastSquares(S, b[:5]) + 0.3 * F.L1(), None, few + 0.3 * cp.norm1(x), [], x),
        "fused": (data + 1.0 * F.L1() @ K, None, plain + cp.norm1(K @ x), [], x),
        "weights, x >= 0": (
            2.0 * F.LeastSquares(A, b, weights=w) + F.Linear(S[1]), D.NonNegative(12),
            cp.sum(cp.multiply(w, (A @ x - b) ** 2)) + S[1] @ x, [x >= 0], x,
        ),
        "simplex": (data + F.Linear(S[0]), D.Simplex(12), plain + S[0] @ x, [x >= 0, cp.sum(x) == 1], x),
        "matrix": (
            F.Quadratic(S.T @ S) + F.Linear(A[0]), D.Box(-1.0, 1.0, shape=12),
            0.5 * cp.sum_squares(S @ x) + A[0] @ x, [x >= -1, x <= 1], x,
        ),
    }[name]  # fmt: skip


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("name", ["lasso", "elastic net", "wide", "fused", "weights, x >= 0", "simplex", "matrix"])
def test_squares_have_the_value_that_a_cone_solver_finds(name, sparse, monkeypatch):
    if sparse:
        monkeypatch.setattr("saddleslide.facts.newton._WRITTEN_OUT", 0)
    objective, over, expression, rules, _ = squares(name)
    found = ss.minimize(objective, over=over, rtol=1e-8, method="interior-point")
    trusted = cp.Problem(cp.Minimize(expression), rules)
    trusted.solve(solver="CLARABEL", tol_gap_abs=1e-10, tol_gap_rel=1e-10)
    assert found.success and found.objective == pytest.approx(trusted.value, rel=1e-6, abs=1e-7)
    assert ss.minimize(objective, over=over, rtol=1e-8).plans[0].method == "interior-point"


@pytest.mark.parametrize("both", [False, True])
def test_a_direction_with_squares_solves_the_whole_system(both):
    """What squares bring along beside x and y, against the system written out."""
    rng = np.random.default_rng(11)
    f = F.LeastSquares(rng.standard_normal((4, 6)), np.ones(4)) + 0.3 * F.L1()
    g = F.LeastSquares(rng.standard_normal((3, 5)), np.ones(3)) if both else F.Linear(np.ones(5))
    problem = ss.SaddleProblem(f, g, rng.standard_normal((5, 6)), D.FullSpace(6), D.Simplex(5))
    system = System.of(problem)
    theta = rng.random(system.q.size) + 0.1
    theta[-1:] = 0.0
    matrix = np.diag(theta) + np.stack([system.turn(e) for e in np.eye(theta.size)], axis=1)
    assert matrix + matrix.T == pytest.approx(2.0 * np.diag(theta), abs=1e-15)
    right = rng.standard_normal(theta.size)
    assert system.factorise(theta)(right) == pytest.approx(np.linalg.solve(matrix, right), rel=1e-9, abs=1e-9)


def test_equations_alone_take_one_step_in_any_units():
    rng = np.random.default_rng(13)
    A, B, b = rng.standard_normal((20, 15)), rng.standard_normal((4, 15)), rng.standard_normal(20)
    h, N = B @ rng.standard_normal(15), scipy.linalg.null_space(B)
    A, b = np.vstack([A, 0.3 * np.eye(15)]), np.concatenate([b, np.zeros(15)])
    x0 = np.linalg.lstsq(B, h, rcond=None)[0]
    x = x0 + N @ np.linalg.lstsq(A @ N, b - A @ x0, rcond=None)[0]
    for unit in (1e-6, 1.0, 1e6):
        problem = ss.SaddleProblem(
            f=F.LeastSquares(unit * A[:20], unit * b[:20], (0.3 * unit) ** 2), g=F.Linear(unit * h), B=unit * B,
            X=D.FullSpace(15), Y=D.Box(-1e3 * unit, 1e3 * unit, shape=4),
        )  # fmt: skip
        found = ss.solve(problem, reduction=1e-8)
        assert found.success and len(found.history) == 1 and found.method_calls.f <= 2
        assert found.plans[0].method == "interior-point" and found.x == pytest.approx(x, abs=1e-4)
    # Without a bound on y no gap at the start is known, and no value is asked for in search of one.
    free = ss.solve(ss.SaddleProblem(F.LeastSquares(A[:20], b[:20]), F.Linear(h), B, D.FullSpace(15), D.FullSpace(4)))
    assert free.success and len(free.history) == 1 and free.certificate.calls.f <= 2


def test_two_players_take_one_step():
    rng = np.random.default_rng(14)
    A, C, B = rng.standard_normal((9, 6)), rng.standard_normal((8, 5)), rng.standard_normal((5, 6))
    b, e = rng.standard_normal(9), rng.standard_normal(8)
    problem = ss.SaddleProblem(
        f=F.LeastSquares(A, b, 0.1), g=F.LeastSquares(C, e, 0.2), B=B, X=D.FullSpace(6), Y=D.FullSpace(5)
    )
    K = np.block([[A.T @ A + 0.1 * np.eye(6), B.T], [B, -C.T @ C - 0.2 * np.eye(5)]])
    found = ss.solve(problem, tol=1e-10)
    assert [plan.method for plan in found.plans] == ["interior-point"] and len(found.history) == 1
    z = np.linalg.solve(K, np.concatenate([A.T @ b, -C.T @ e]))
    assert np.concatenate([found.x, found.y]) == pytest.approx(z, abs=1e-9)


def test_gram_matrices_of_blocks_are_those_of_the_whole():
    rng = np.random.default_rng(15)
    blocks = [scipy.sparse.random_array((7, 6), density=0.4, random_state=rng).tocsr(), rng.standard_normal((9, 6))]
    rows, diagonal, r = Rows(blocks), rng.random(6), rng.standard_normal(6)
    whole = np.vstack([blocks[0].toarray(), blocks[1]])
    for divisor in (np.r_[rng.random(7) + 0.1, np.ones(9)], np.r_[np.ones(7), np.full(9, 4.0)], rng.random(16) + 0.1):
        written = whole.T @ np.diag(1.0 / divisor) @ whole + np.diag(diagonal)
        assert written @ rows.normal(True, diagonal, divisor).solve(r) == pytest.approx(r)
        # All of it sparse.
        apart = Rows([scipy.sparse.csr_array(whole)])
        apart.blocks = [scipy.sparse.csr_array(whole)]
        for once in (False, True):
            assert written @ apart.normal(True, diagonal, divisor, once).solve(r) == pytest.approx(r)


def test_squares_are_left_to_gradients_where_these_are_better():
    objective, over, *_ = squares("lasso")
    problem = ss.minimize(objective, over=over).problem
    assert ss.plan(problem).method == "interior-point"
    assert ss.plan(problem, costs=(1.0, 1.0, 1.0)).method == "adaptive sliding"
    assert ss.plan(problem, start=(np.ones(12), np.zeros(0))).method == "adaptive sliding"
    dear = ss.minimize(F.LeastSquares(np.ones((3, 2500)), np.ones(3), 1.0) + F.L1(), max_steps=0)
    wide = scipy.sparse.random_array((2500, 2500), density=0.01, random_state=np.random.default_rng(0))
    large = F.LeastSquares(wide.tocsr(), np.ones(2500), 1.0) + F.L1()
    assert dear.plans[0].method == "interior-point"
    assert ss.minimize(large, max_steps=0).plans[0].method == "adaptive sliding"


def test_what_one_factor_solves_is_looked_at_at_once():
    rng = np.random.default_rng(18)
    f, g = (F.LeastSquares(rng.standard_normal((50, 30)), rng.standard_normal(50), 0.1) for _ in range(2))
    free = D.FullSpace(30)
    problem = ss.SaddleProblem(f=f, g=g, B=rng.standard_normal((30, 30)), X=free, Y=free)
    found = ss.solve(problem, rtol=1e-8, method="interior-point")
    assert found.success and [row.step for row in found.history] == [1]


def test_no_matrix_is_factorised_for_a_norm_that_nobody_needs(monkeypatch):
    rng = np.random.default_rng(17)
    A, b, B = rng.standard_normal((160, 90)), rng.standard_normal(160), rng.standard_normal((80, 90))

    def refuse(*_, **__):
        raise AssertionError("singular values were asked for")

    monkeypatch.setattr(scipy.linalg, "svdvals", refuse)
    for method in ("auto", "adaptive"):
        assert ss.minimize(F.LeastSquares(A, b) + 5.0 * F.L1(), rtol=1e-4, method=method).success
        assert ss.minimize(F.Logistic(A, np.sign(b)) + 2.0 * F.L1(), rtol=1e-3, method=method).success
        assert ss.minimize(F.LeastSquares(A[:70], b[:70]) + 5.0 * F.L1(), rtol=1e-2, method=method).success
        assert ss.minimize(F.Huber(0.5).translated(b) @ A + 2.0 * F.L1(), rtol=1e-2, method=method).success
    box = D.Box(-1.0, 1.0, shape=90), D.Box(-1.0, 1.0, shape=80)
    assert ss.solve(ss.SaddleProblem(F.Linear(np.ones(90)), F.Zero(), B, *box), reduction=1e-3).success


def test_the_order_of_a_band_is_that_of_its_own_system(monkeypatch):
    """A system in x first, then one in y of another size: each in its own order, found once."""
    monkeypatch.setattr("saddleslide.facts.newton._WRITTEN_OUT", 0)
    B = scipy.sparse.csr_array(scipy.sparse.diags_array([np.ones(60), -np.ones(60)], offsets=[0, 1], shape=(60, 61)))
    rng, rows = np.random.default_rng(16), Rows([B])
    for a, b in ((np.ones(61), np.zeros(60)), (np.zeros(61), np.ones(60)), (2.0 * np.ones(61), np.zeros(60))):
        theta_x, theta_y = a + 1e-9, b + 1e-9
        core, r = Core(rows, a, b, theta_x, theta_y), rng.standard_normal(121)
        matrix = np.block([[np.diag(theta_x), B.toarray().T], [-B.toarray(), np.diag(theta_y)]])
        assert matrix @ core.solve(r) == pytest.approx(r, rel=1e-5, abs=1e-5)
        assert core.factor.order is not None


def test_a_start_is_judged_where_somebody_has_set_it_or_a_target_asks(monkeypatch):
    judge, looks = Judge.judge_exactly, []
    monkeypatch.setattr(Judge, "judge_exactly", lambda *given: looks.append(given[1].x) or judge(*given))
    rng = np.random.default_rng(3)
    objective = F.L1().translated(rng.standard_normal(12)) @ rng.standard_normal((12, 4)) + F.Quadratic(1.0)
    found = ss.minimize(objective, method="interior-point")
    assert found.success and len(looks) == 1
    ss.minimize(objective, method="interior-point", reduction=1e-3)
    assert len(looks) == 3 and not looks[1].any()
    again = ss.minimize(objective, method="interior-point", start=(found.x, found.y))
    assert again.success and not again.history and np.array_equal(looks[3], found.x)


def test_where_a_step_breaks_down_the_point_before_it_is_the_answer():
    rng = np.random.default_rng(0)
    A, b = rng.standard_normal((12, 6)), rng.standard_normal(12)
    found = ss.minimize(F.LeastSquares(A, b) + F.L1(), tol=1e-300, method="interior-point")
    assert found.status is Status.NUMERICAL_LIMIT and found.gap < 1e-8
