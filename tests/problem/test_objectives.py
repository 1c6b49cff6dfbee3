"""Objectives as people write them: where terms go, what comes back, and answers against an interior-point solver."""

from __future__ import annotations

import numpy as np
import pytest

import saddleslide as ss
from saddleslide.certificates.guards import check_own_steps
from saddleslide.oracles.calls import RunEnded
from saddleslide.oracles.oracles import Oracles
from saddleslide.problem.objectives import BLOCK, GRADIENT, PROX, SET, split_objective
from support import gathered, need

F, D = ss.functions, ss.domains
RNG = np.random.default_rng(7)
N = 12
A, b = RNG.standard_normal((20, N)), RNG.standard_normal(20)
K, W = RNG.standard_normal((8, N)), 100.0 * RNG.standard_normal((6, N))
ONES = np.ones(6)
LS = F.LeastSquares(A, b)
GRADIENTS = ss.operators.FiniteDifferences((3, 4))
SHRINK = F.Custom(prox=lambda c, t: np.sign(c) * np.maximum(abs(c) - t, 0.0), value=lambda x: abs(x).sum())


def case(name, objective, minimum, constraints=lambda cp, x: [], over=None):
    return pytest.param(objective, over, minimum, constraints, id=name)


CASES = [
    case("lasso", LS + 0.5 * F.L1(), lambda cp, x: _ls(cp, x) + 0.5 * cp.norm1(x)),
    case("norm", LS + 2.0 * F.L2(), lambda cp, x: _ls(cp, x) + 2.0 * cp.norm(x)),
    case("behind", LS + 0.5 * F.L1() @ K, lambda cp, x: _ls(cp, x) + 0.5 * cp.norm1(K @ x)),
    case(
        "two blocks of different units, x >= 0",
        LS + 0.5 * F.L1() @ K + 0.3 * F.L2() @ W,
        lambda cp, x: _ls(cp, x) + 0.5 * cp.norm1(K @ x) + 0.3 * cp.norm(W @ x),
        lambda cp, x: [x >= 0],
        D.NonNegative(N),
    ),
    case(
        "two simple terms without a common step",
        LS + 0.2 * F.L1() + 2.0 * F.L2(),
        lambda cp, x: _ls(cp, x) + 0.2 * cp.norm1(x) + 2.0 * cp.norm(x),
    ),
    case(
        "equalities", LS + F.Indicator(D.Box(ONES, ONES)) @ W, lambda cp, x: _ls(cp, x), lambda cp, x: [W @ x == ONES]
    ),
    case(
        "inequalities",
        LS + F.Indicator(D.Box(-np.inf, -ONES)) @ W,
        lambda cp, x: _ls(cp, x),
        lambda cp, x: [W @ x <= -ONES],
    ),
    case(
        "ranges",
        LS + F.Indicator(D.Box(ONES, 2.0 * ONES)) @ W,
        lambda cp, x: _ls(cp, x),
        lambda cp, x: [W @ x >= ONES, W @ x <= 2.0 * ONES],
    ),
    case(
        "basis pursuit with noise",
        F.L1() + F.Indicator(D.Ball(0.5, center=ONES)) @ W,
        lambda cp, x: cp.norm1(x),
        lambda cp, x: [cp.norm(W @ x - ONES) <= 0.5],
    ),
    case("least absolute deviations", F.L1().translated(b) @ A, lambda cp, x: cp.norm1(A @ x - b)),
    case("own step", LS + 0.5 * SHRINK, lambda cp, x: _ls(cp, x) + 0.5 * cp.norm1(x)),
    case("own step behind", LS + 0.5 * SHRINK @ K, lambda cp, x: _ls(cp, x) + 0.5 * cp.norm1(K @ x)),
]


def _ls(cp, x):
    return 0.5 * cp.sum_squares(A @ x - b)


@pytest.mark.parametrize(("objective", "over", "minimum", "constraints"), CASES)
def test_answers_are_those_of_an_interior_point_solver(objective, over, minimum, constraints):
    cp = need("cvxpy")
    x = cp.Variable(N)
    trusted = cp.Problem(cp.Minimize(minimum(cp, x)), constraints(cp, x))
    trusted.solve(solver="CLARABEL")
    result = ss.minimize(objective, over=over, rtol=1e-5)
    assert result.success, result.message
    scale = 1e-7 * abs(trusted.value)
    assert result.lower <= trusted.value + scale
    # Constraints behind operators hold up to the claim, so that the value may lie below the minimum by as much.
    assert abs(result.objective - trusted.value) <= 1e-4 * abs(trusted.value)
    assert result.violation <= 1e-3
    if result.violation == 0.0:
        assert result.lower - scale <= trusted.value <= result.objective + scale


def test_every_term_goes_where_it_is_cheapest():
    stated = split_objective(
        LS + 0.1 * F.L1() + 0.5 * F.LInf() + 2.0 * F.L1() @ K + F.Indicator(D.NonNegative(N)) + F.Quadratic(1.0)
    )
    assert [term.place for term in stated.terms] == [GRADIENT, PROX, BLOCK, BLOCK, SET, PROX]
    assert stated.problem.X.uniform == (0.0, np.inf)
    # Each has a step on the whole space, and their sum has none.
    steps = split_objective(LS + 0.1 * F.L1() + 0.5 * F.LInf())
    assert [term.place for term in steps.terms] == [GRADIENT, PROX, BLOCK]
    assert "block of y" in str(stated.problem) and "proximal step" in str(stated.problem)


def test_the_order_written_decides_nothing():
    data = F.LeastSquares(None, np.ones((3, 4)), weights=np.arange(12.0).reshape(3, 4))
    u, _ = ss.operators.split_unknowns((3, 4), 2)
    for first, second in ((data, F.Nuclear()), (data @ u, F.Nuclear() @ u)):
        there, back = (split_objective(objective).terms for objective in (first + second, second + first))
        assert [term.place for term in there] == [GRADIENT, PROX] == [term.place for term in reversed(back)]


def test_duals_are_subgradients_in_the_order_written_with_their_factors():
    result = ss.minimize(LS + 0.003 * F.L2() @ W + 0.5 * F.L1() @ K + 0.7 * F.Quadratic(1.0) @ K, rtol=1e-9)
    of_norm, of_l1, of_square = result.duals
    x = result.x
    np.testing.assert_allclose(of_norm, 0.003 * W @ x / np.linalg.norm(W @ x), atol=1e-5)
    assert np.abs(of_l1).max() <= 0.5 + 1e-9
    assert np.vdot(of_l1, K @ x) == pytest.approx(0.5 * np.abs(K @ x).sum(), abs=1e-6)
    np.testing.assert_allclose(of_square, 0.7 * K @ x, atol=1e-12)
    # Stationarity, with nothing but these arrays.
    slope = A.T @ (A @ x - b) + W.T @ of_norm + K.T @ (of_l1 + of_square)
    assert np.linalg.norm(slope) <= 1e-3 * np.linalg.norm(A.T @ b)


def test_without_compositions_there_is_no_y_and_no_product():
    result = ss.minimize(LS + 0.5 * F.L1())
    assert result.y.size == 0 and result.calls.B == 0 and result.duals == ()
    assert "minimum" in repr(result) and result.problem is not None


def test_a_step_that_does_not_fit_its_values_is_no_success():
    wrong = F.Custom(prox=lambda c, t: np.sign(c) * np.maximum(abs(c) - 0.5 * t, 0.0), value=lambda x: abs(x).sum())
    for objective in (LS + 0.5 * wrong, LS + 0.5 * wrong @ K):
        assert ss.minimize(objective).status.name == "INCONSISTENT"


def test_what_is_not_convex_is_no_success():
    largest = F.Custom(
        prox=lambda c, t: np.where(abs(c) >= np.sort(abs(c))[-2], c, 0.0),
        value=lambda x: 0.0 if np.count_nonzero(x) <= 2 else np.inf,
    )
    with pytest.raises(RunEnded, match="between two of its points"):
        check_own_steps(Oracles(split_objective(LS + largest @ K).problem))
    assert not ss.minimize(LS + largest @ K, max_steps=100).success


@gathered("place", ["prox", "prox behind K", "class", "project"])
def test_own_code_between_calls_raises_and_rounds_as_the_caller_says(place):
    own, runs = ZeroDivisionError("mine"), []

    def shrink(c, t):
        runs.append(0)
        if len(runs) > 5:
            raise own
        # 0 / 0 is the caller's affair.
        return np.sign(c) * np.nan_to_num(abs(c) / abs(c)) * np.maximum(abs(c) - t, 0.0)

    class Mine(ss.functions.Function):
        def value_and_gradient(self, x, out=None):
            return float(abs(x).sum()), np.sign(x)

        def smoothness(self, domain):
            return ss.Holder(0.0, 2.0)

        def strong_convexity(self, domain):
            return 0.0

        prox = staticmethod(shrink)

    h = F.Custom(prox=shrink, value=lambda x: abs(x).sum())
    objective = {"prox": LS + h, "prox behind K": LS + h @ K, "class": LS + 0.5 * Mine()}.get(place, LS)
    over = D.Custom(project=lambda x: shrink(x, 0.0), shape=N, radius=9.0) if place == "project" else None
    with np.errstate(all="ignore"), pytest.raises(ZeroDivisionError) as caught:
        ss.minimize(objective, over=over, rtol=1e-9)
    assert caught.value is own and "of your own" in own.__notes__[0]


def test_own_steps_are_those_of_the_function_itself():
    # As many steps of both: bounds of what is known to be l1 are better, and end a run earlier.
    ours, own = (ss.minimize(LS + 0.5 * h, tol=1e-12, method="adaptive", max_steps=12) for h in (F.L1(), SHRINK))
    np.testing.assert_allclose(own.x, ours.x, rtol=0.0, atol=1e-12)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda: ss.minimize(3.0), "expected functions of ss.functions"),
        (lambda: ss.minimize(F.L1()), "none of the terms has a shape"),
        (lambda: ss.minimize(LS, over=N), "expected a set of ss.domains"),
        (lambda: ss.minimize(LS + F.L1() @ np.ones((2, N + 1))), "Pass x_shape="),
        (lambda: ss.minimize(LS, over=D.FullSpace(N + 1)), "expected equal shapes"),
        (
            lambda: ss.minimize(LS + 2.0 * (F.L1() + F.L2()).conjugate() @ K),
            r"conjugate of L1\(\) \+ L2\(\) behind an op",
        ),
        (lambda: ss.minimize(LS + F.Logistic(A, np.sign(b)) @ K), "expected"),
        (lambda: F.L1(np.ones(24)) @ GRADIENTS, r"shape \(24,\), K is Finite.* \(2, 3, 4\); expected equal shapes"),
        (lambda: ss.minimize(F.L21(axis=3) @ GRADIENTS), r"L21\(axis=3\) of arrays of shape \(2, 3, 4\): "),
        (
            lambda: ss.minimize(LS + F.Indicator(D.Box(2.0, 3.0, shape=N)), over=D.Box(0.0, 1.0, shape=N)),
            "over=.* and ",
        ),
        (lambda: ss.operators.split_unknowns(), "expected one for every unknown"),
    ],
)
def test_what_can_not_be_said_is_refused_by_name(wrong, words):
    with pytest.raises(ss.errors.InputError, match=words):
        wrong()


def test_entries_with_weights_of_their_own_leave_steps_that_mix_them_alone():
    cp = need("cvxpy")
    uneven = A * np.geomspace(1.0, 100.0, N)
    x = cp.Variable(N)
    trusted = cp.Problem(cp.Minimize(0.5 * cp.sum_squares(uneven @ x - b) + 2.0 * cp.norm(x)))
    trusted.solve(solver="CLARABEL")
    result = ss.minimize(F.LeastSquares(uneven, b) + 2.0 * F.L2())
    assert result.success and result.objective == pytest.approx(trusted.value, rel=2e-4)
    weights = ss.metrics.Diagonal(np.geomspace(1.0, 100.0, N))
    with pytest.raises(ss.errors.InputError, match="mixes the entries"):
        ss.minimize(F.LeastSquares(uneven, b) + 2.0 * F.L2(), metric=weights)


def test_one_step_solves_a_bowl_beside_a_norm():
    data = RNG.standard_normal((4, 3))
    result = ss.minimize(F.LeastSquares(None, data) + 0.3 * F.L21(axis=-1), tol=1e-8)
    norms = np.linalg.norm(data, axis=-1, keepdims=True)
    np.testing.assert_allclose(result.x, data * np.maximum(1.0 - 0.3 / norms, 0.0), atol=2e-4)
    assert result.success and result.lower <= result.objective <= result.lower + 1e-8


def test_terms_are_evaluated_where_they_are_finite():
    cp = need("cvxpy")
    counts = np.r_[1.0, 2.0, np.zeros(6)]
    P = np.abs(K[:, :5])
    x = cp.Variable(5)
    trusted = cp.Problem(cp.Minimize(cp.sum(cp.kl_div(counts, P @ x)) + 0.1 * cp.norm1(x[1:] - x[:-1])))
    trusted.solve(solver="CLARABEL")
    # P x >= 0 of entries without counts is a constraint that holds up to the claim.
    result = ss.minimize(F.KullbackLeibler(counts) @ P + 0.1 * F.L1() @ ss.operators.FiniteDifferences(5), rtol=1e-5)
    assert result.success and result.objective == pytest.approx(trusted.value, rel=1e-4)
    z = P @ result.x
    assert result.violation == pytest.approx(np.linalg.norm(np.minimum(z, 0.0)), abs=1e-15)
    # Of x itself, of what is moved, added or a conjugate.
    shifted = split_objective(F.Entropy().translated(ONES) @ W + F.LInf().conjugate() @ K)
    point = np.full(N, 0.3)
    value, distance = shifted.judge(point)
    inside = np.maximum(W @ point - 1.0, 0.0)
    beside_ball = K @ point - D.L1Ball(1.0, 8).project(K @ point)
    assert value == pytest.approx(np.sum(inside * np.log(np.where(inside > 0.0, inside, 1.0))))
    assert distance == pytest.approx(max(np.linalg.norm(np.minimum(W @ point - 1.0, 0.0)), np.linalg.norm(beside_ball)))


def test_several_unknowns_have_their_own_steps():
    cp = need("cvxpy")
    M = RNG.standard_normal((4, 3))
    low, sparse = ss.operators.split_unknowns((4, 3), (4, 3))
    fit = F.Indicator(D.Ball(0.5, center=M)) @ (low + sparse)
    objective = F.Nuclear() @ low + 0.4 * F.L1() @ sparse + 0.1 * F.Quadratic(1.0) @ sparse + fit
    stated = split_objective(objective)
    assert [term.place for term in stated.terms] == [PROX, PROX, PROX, BLOCK]
    result = ss.minimize(objective, rtol=1e-6)
    L, S = cp.Variable((4, 3)), cp.Variable((4, 3))
    minimum = cp.normNuc(L) + 0.4 * cp.sum(cp.abs(S)) + 0.05 * cp.sum_squares(S)
    trusted = cp.Problem(cp.Minimize(minimum), [cp.norm(L + S - M, "fro") <= 0.5])
    trusted.solve(solver="CLARABEL")
    assert result.success and result.objective == pytest.approx(trusted.value, rel=1e-5)
    np.testing.assert_allclose(sparse @ result.x, S.value, atol=2e-3)
    # Duals of a term with a step of its own are its gradients, where it has some.
    np.testing.assert_allclose(result.duals[2], 0.1 * (sparse @ result.x), atol=1e-12)


@pytest.mark.parametrize("tol", [1e-6, 1e-11])
def test_closed_minima_are_found_at_once(tol):
    symmetric = A[:N] + A[:N].T
    values, vectors = np.linalg.eigh(symmetric)
    result = ss.minimize(F.LeastSquares(None, symmetric), tol, over=D.PSDCone(N))
    assert result.success and result.objective == pytest.approx(0.5 * np.sum(np.minimum(values, 0.0) ** 2), abs=1e-11)
    np.testing.assert_allclose(result.x, vectors * np.maximum(values, 0.0) @ vectors.T, atol=1e-11)
    result = ss.minimize(F.LeastSquares(None, b) + 0.3 * F.L2(), tol)
    assert result.success
    np.testing.assert_allclose(result.x, b * (1.0 - 0.3 / np.linalg.norm(b)), atol=1e-12)


def test_unknowns_keep_their_steps_on_boxes():
    cp = need("cvxpy")
    u, w = ss.operators.split_unknowns(3, 2)
    lower = np.array([0.1, 0.0, -1.0, 0.2, 0.0])
    c = np.array([1.0, -2.0, 0.5])
    coupled = 0.7 * F.L2() @ (ss.operators.as_operator(K[:2, :3]) @ u - w)
    objective = F.Linear(c) @ u + 0.2 * F.Quadratic(1.0) @ u + F.L1().translated([1.0, 2.0]) @ w + coupled
    over = D.Box(lower, np.full(5, 3.0))
    assert [term.place for term in split_objective(objective, over).terms] == [PROX, PROX, PROX, BLOCK]
    result = ss.minimize(objective, rtol=1e-6, over=over)
    x = cp.Variable(5)
    minimum = c @ x[:3] + 0.1 * cp.sum_squares(x[:3]) + cp.norm1(x[3:] - np.array([1.0, 2.0]))
    minimum += 0.7 * cp.norm(K[:2, :3] @ x[:3] - x[3:])
    trusted = cp.Problem(cp.Minimize(minimum), [x >= lower, x <= 3.0])
    trusted.solve(solver="CLARABEL")
    assert result.success and result.objective == pytest.approx(trusted.value, rel=1e-5)


def test_what_is_linear_behind_an_operator_is_linear():
    result = ss.minimize(LS + 2.0 * F.Linear(np.arange(8.0)) @ ss.operators.as_operator(K), rtol=1e-8)
    expected = np.linalg.solve(A.T @ A, A.T @ b - 2.0 * K.T @ np.arange(8.0))
    assert result.success and result.x == pytest.approx(expected, abs=5e-3)
    assert result.duals[0] == pytest.approx(2.0 * np.arange(8.0))


def test_slips_of_the_pen_are_answered_with_what_to_write():
    A, h = np.ones((3, 2)), ss.functions.L1()

    class Foreign:
        def prox(self, x, tau):
            return x

    for wrong, says in (
        (lambda: A @ h, "f @ A"),
        (lambda: ss.operators.as_operator(A) @ h, "f @ A"),
        (lambda: A * h, r"shape \(3, 2\); expected one number"),
        (lambda: h * A, r"shape \(3, 2\); expected one number"),
        (lambda: h + Foreign(), "from_pyproximal"),
        (lambda: h + (lambda x: x @ x), "from_callable"),
        (lambda: (lambda x: x @ x) + h, "from_callable"),
        (lambda: h + ss.functions.L2, r"Write L2\(...\)"),
        (
            lambda: ss.functions.LeastSquares(None, np.ones((4, 4, 3))) + h @ ss.operators.FiniteDifferences((4, 4)),
            "channels=",
        ),
        (lambda: h / "2", "number is"),
        (lambda: h - h, "convex"),
        (lambda: -h, "convex"),
    ):
        with pytest.raises(ss.errors.InputError, match=says):
            wrong()
    with pytest.raises(TypeError):
        A[0] + h
    assert [repr(f) for f in (1.0 * h, h / 0.5, np.array(0.5) * (h + h), sum([h, h]))] == [
        "L1()", "2 * L1()", "0.5 * (L1() + L1())", "L1() + L1()"
    ]  # fmt: skip
