"""Simple terms and norms of x in the plans of the theorems: the recursion of docs/theory.md, its bound, refusals."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
import scipy.fft
import scipy.linalg

import saddleslide as ss
from composite import Composite
from plans import rescheduled
from saddleslide.errors import InputError
from saddleslide.facts.metric_constants import Omega_in, constants_in, constants_in_norms
from saddleslide.methods.schedule.planner import theorem_plan
from saddleslide.theory.hypotheses import ESTIMATE
from support import gathered

functions, domains = ss.functions, ss.domains


def uneven(seed=0, n=8, m=5, spread=3.0):
    """Least squares with columns of very different size on a box, a power in y."""
    rng = np.random.default_rng(seed)
    scales = 10.0 ** rng.uniform(-spread / 2.0, spread / 2.0, n)
    f = functions.LeastSquares(rng.standard_normal((n + 3, n)) * scales, rng.standard_normal(n + 3))
    widths = rng.uniform(0.5, 2.0, n) / scales
    return ss.SaddleProblem(
        f=f,
        g=functions.Power(0.5, weight=rng.uniform(0.5, 1.0, m)),
        B=rng.standard_normal((m, n)) * scales,
        X=domains.Box(-widths, widths),
        Y=domains.Box(-1.0, 1.0, shape=m),
    ), scales


def free(seed=0, n=6, m=4, coupling=1.0):
    """Quadratics on full spaces with a saddle point from one linear system."""
    rng = np.random.default_rng(seed)
    scales = 10.0 ** rng.uniform(-1.5, 1.5, n)
    A, b = rng.standard_normal((n + 4, n)) * scales, rng.standard_normal(n + 4)
    B = coupling * rng.standard_normal((m, n)) * scales
    problem = ss.SaddleProblem(
        f=functions.LeastSquares(A, b), g=functions.Quadratic(2.0), B=B,
        X=domains.FullSpace(n), Y=domains.FullSpace(m),
    )  # fmt: skip
    system = np.block([[A.T @ A, B.T], [B, -2.0 * np.eye(m)]])
    z = np.linalg.solve(system, np.concatenate([A.T @ b, np.zeros(m)]))
    return problem, A, (z[:n], z[n:])


def lasso(seed=0, n=6, m=5):
    """Least squares with |x|_1, and a power in y: f is simple in part, g as a whole."""
    rng = np.random.default_rng(seed)
    A, b = rng.standard_normal((n + 2, n)), rng.standard_normal(n + 2)
    return ss.SaddleProblem(
        f=functions.LeastSquares(A, b) + functions.Power(0.0, weight=0.3),
        g=functions.Power(0.0, weight=0.2),
        B=rng.standard_normal((m, n)),
        X=domains.Box(-1.0, 1.0, shape=n),
        Y=domains.Box(-1.0, 1.0, shape=m),
    )


def true_gap(problem, result):
    """The exact gap less all that rounding may have added."""
    certificate = ss.certify(problem, result.x, result.y)
    return certificate.gap - certificate.error


# Simple terms.


@pytest.mark.parametrize(("order", "loops"), [("fB", (5, 4)), ("Bf", (6, 2))])
def test_simple_terms_run_as_the_transcription_of_the_theory_page(order, loops):
    problem = lasso()
    plan = ss.plan(problem, order=order, loops=loops, simple=("f", "g"), metric=(2.0, 0.5))
    result = ss.run(problem, plan)
    rest, B = problem.f.parts[0], problem.coupling.matrix

    def gradient(z, out):
        out[:6] = rest.gradient(z[:6])

    def coupling(z, out):
        out[:6], out[6:] = B.T @ z[6:], -B @ z[:6]

    gradients = [{"f": gradient}.get(name) for name in order]
    operators = [{"B": coupling}.get(name) for name in order]
    recursion = Composite(
        plan.schedule.levels,
        gradients,
        operators,
        domains.Product(problem.X, problem.Y),
        np.zeros(11),
        thresholds=(0.3, 0.2),
    )
    *_, z = recursion.steps()
    np.testing.assert_allclose(np.concatenate([result.x, result.y]), z, rtol=0.0, atol=1e-12)
    assert result.method_calls.g == 0 and result.method_calls.f == plan.predicted_calls["f"]


@gathered("seed", range(8))
@gathered(("simple", "order"), [(("f",), "fgB"), (("g",), "fB"), (("f", "g"), "fB"), (("f", "g"), "Bf")])
def test_the_bound_holds_with_simple_terms(seed, simple, order):
    problem = lasso(seed)
    plan = ss.plan(problem, order=order, loops=(4, 3, 5)[: len(order)], simple=simple)
    assert plan.proved
    result = ss.run(problem, plan)
    assert true_gap(problem, result) <= plan.bound
    assert vars(result.counted) == plan.predicted_calls and result.spared == 4


def test_a_function_that_is_simple_as_a_whole_costs_no_level_where_that_is_cheaper():
    problem = lasso()
    plan = theorem_plan(problem, 0.05, proved=True)
    assert plan.regime == "degenerate" and plan.schedule.simple == ("f", "g") and sorted(plan.order) == ["B", "f"]
    assert "simple terms of g are in the projection step" in plan.explain()
    costs = dict(plan.alternatives)
    assert min(costs.values()) >= ss.theory.plan.weigh_calls(plan.predicted_calls, plan.costs)
    assert any("simple" not in name for name in costs)


def test_the_smoothness_of_the_rest_alone_is_used():
    problem = lasso()
    plan = ss.plan(problem, 0.05, regime="degenerate", simple=("f",))
    assert plan.constants["nu_x"].value == 1.0
    assert ss.plan(problem, 0.05, regime="degenerate").constants["nu_x"].value == 0.0


def test_declared_constants_and_orders_keep_their_functions_whole():
    problem = lasso()
    declared = theorem_plan(problem, 0.1, constants={"H_x": 50.0, "nu_x": 0.0})
    assert "f" not in getattr(declared, "simple", ())
    with pytest.raises(InputError, match="order is 'fgB'; expected a permutation of 'fB'"):
        ss.plan(problem, order="fgB", loops=(2, 2, 2), simple=("g",))
    with pytest.raises(InputError, match=r"simple has \['h'\]"):
        ss.plan(problem, 0.1, simple=("h",))
    with pytest.raises(InputError, match="anchors take f' of an f and g' of a g without a simple term"):
        ss.plan(problem, 0.1, simple=("f", "g"), regime="restarts", anchors=True, interior=("x", "y"))
    # Simple terms are no obstacle; what is missing is curvature of y.
    with pytest.raises(InputError, match="regime 'restarts' expects both > 0"):
        ss.plan(problem, 0.1, simple=("g",), regime="restarts")


# Norms of the x block.


def in_other_units(problem, scales):
    """The same problem in u = scales x, where a diagonal norm of x is the Euclidean one."""
    return ss.SaddleProblem(
        f=functions.LeastSquares(problem.f.A.matrix / scales, problem.f.b),
        g=problem.g,
        B=problem.coupling.matrix / scales,
        X=domains.Box(problem.X.lower * scales, problem.X.upper * scales),
        Y=problem.Y,
    )


def test_a_diagonal_norm_is_a_change_of_units():
    problem, scales = uneven()
    plan = ss.plan(problem, 0.5, regime="degenerate", metric=ss.metrics.Diagonal(scales**2))
    other = in_other_units(problem, scales)
    same = ss.plan(other, 0.5, regime="degenerate", metric=plan.metric)
    assert (plan.order, plan.loops) == (same.order, same.loops)
    assert math.isclose(plan.bound, same.bound, rel_tol=1e-9)
    here, there = ss.run(problem, plan), ss.run(other, same)
    np.testing.assert_allclose(here.x * scales, there.x, rtol=0.0, atol=1e-11)
    np.testing.assert_allclose(here.y, there.y, rtol=0.0, atol=1e-11)


@gathered("seed", range(6))
def test_the_bound_holds_in_a_diagonal_norm_and_is_smaller(seed):
    problem, _ = uneven(seed)
    plan = ss.plan(problem, metric="diagonal", order="fgB", loops=(6, 3, 8))
    plain = ss.plan(problem, metric="auto", order="fgB", loops=(6, 3, 8))
    assert true_gap(problem, ss.run(problem, plan)) <= plan.bound < plain.bound


def test_the_automatic_plan_takes_a_diagonal_norm_where_it_pays():
    problem, _ = uneven(spread=5.0)
    plan = theorem_plan(problem, 0.01)
    assert isinstance(plan.schedule.given, ss.metrics.Diagonal) and "norm     of x: diagonal" in plan.explain()


def test_constants_in_a_norm_are_generalised_eigenvalues():
    problem, A, _ = free()
    rng = np.random.default_rng(3)
    root = rng.standard_normal((6, 6)) + 3.0 * np.eye(6)
    P = root @ root.T
    metric = ss.metrics.Operator(lambda x: P @ x, lambda x: np.linalg.solve(P, x), largest=float(np.linalg.norm(P, 2)))
    used = ss.plan(problem, 1e-2, regime="restarts").constants
    found = constants_in(metric.with_coupling(problem.coupling), problem, used, {})
    values = scipy.linalg.eigh(A.T @ A, P, eigvals_only=True)
    B = problem.coupling.matrix
    norm = math.sqrt(scipy.linalg.eigh(B.T @ B, P, eigvals_only=True)[-1])
    assert found["H_x"].value == pytest.approx(values[-1], rel=1e-9)
    assert found["mu_x"].value == pytest.approx(values[0], rel=1e-6)
    assert norm <= found["L_xy"].value <= 1.1 * norm and ESTIMATE in found["L_xy"].origin
    # A matrix B at hand is seen in the norm, and nothing is left to estimates.
    found = constants_in_norms((metric.with_coupling(problem.coupling), None), problem, used, {})
    assert found["L_xy"].value == pytest.approx(norm, rel=1e-9) and ESTIMATE not in found["L_xy"].origin
    declared = constants_in(metric.with_coupling(problem.coupling), problem, used, {"H_x": used["H_x"].value})
    smallest = float(np.linalg.eigvalsh(P)[0])
    assert used["H_x"].value / smallest <= declared["H_x"].value <= 2.0 * used["H_x"].value / smallest


def test_functions_without_a_constant_hessian_are_bounded_by_the_extremes_of_the_norm():
    rng = np.random.default_rng(0)
    f = functions.Logistic(rng.standard_normal((9, 4)), rng.choice([-1, 1], 9), ridge=0.5)
    problem = ss.SaddleProblem(
        f=f, g=functions.Quadratic(1.0), B=np.eye(4), X=domains.FullSpace(4), Y=domains.FullSpace(4)
    )
    plan = ss.plan(problem, 1e-2, regime="restarts", metric=ss.metrics.Diagonal([0.5, 1.0, 2.0, 4.0]))
    plain = ss.plan(problem, 1e-2, regime="restarts").constants
    assert plan.constants["H_x"].value == pytest.approx(plain["H_x"].value / 0.5)
    assert plan.constants["mu_x"].value == pytest.approx(plain["mu_x"].value / 4.0)
    assert ss.run(problem, plan).success


def norms_for(A):
    """The same P = diag(A^T A) three ways: entries, an operator, and (for its diagonal in the basis) a symbol."""
    weights = np.sum(A**2, axis=0)
    return {
        "diagonal": ss.metrics.Diagonal(weights),
        "operator": ss.metrics.Operator(lambda x: weights * x, lambda x: x / weights, largest=float(weights.max())),
    }


def test_an_operator_and_a_diagonal_with_the_same_entries_run_alike():
    problem, A, (_, y) = free(coupling=0.3)
    norms = norms_for(A)
    plan = ss.plan(problem, 1e-6, regime="restarts", metric=norms["diagonal"])
    results = [ss.run(problem, rescheduled(plan, given=metric)) for metric in norms.values()]
    for result in results:
        assert result.success
        np.testing.assert_allclose(result.y, y, atol=1e-2)
    np.testing.assert_allclose(results[0].x, results[1].x, rtol=1e-9, atol=1e-12)
    assert results[0].calls == results[1].calls


def test_proved_restarts_contract_in_a_norm():
    """Psi of Theorem 4.4 in the norm of the metric, against the saddle point of a linear system."""
    problem, A, (x, y) = free(n=3, m=2, coupling=0.1)
    metric = ss.metrics.Diagonal(np.sum(A**2, axis=0))
    plan = ss.plan(problem, 1e-1, regime="restarts", metric=metric, proved=True)
    assert plan.schedule.has_restarts and plan.proved
    short = rescheduled(plan, stages=plan.schedule.stages[:1])
    result = ss.run(problem, short)
    delta_x, delta_y = plan.constants["delta_x"].value, plan.constants["delta_y"].value
    dx, dy = result.x - x, result.y - y
    square = delta_x * float(dx @ (metric.symbol * dx)) + delta_y * float(dy @ dy)
    bregman = 0.5 * float(np.sum((A @ dx) ** 2)) + float(dy @ dy)
    assert square + 12.0 * bregman <= 0.75 * plan.schedule.stages[0].Omega
    worse = ss.plan(problem, 1e-1, regime="restarts", proved=True)
    assert plan.predicted_calls["f"] < worse.predicted_calls["f"]


@pytest.mark.parametrize("kind", ["spectral", "fft"])
def test_a_fitted_norm_saves_gradients_in_a_plan_of_the_theorems(kind):
    """Blur on a grid: its Hessian is diagonal in the basis, with eigenvalues from 1e-3 to 1."""
    n = 16
    frequencies = np.minimum(np.arange(n), n - np.arange(n)) if kind == "fft" else np.arange(n)
    eigenvalues = np.maximum(np.exp(-0.05 * (frequencies[:, None] ** 2 + frequencies[None, :] ** 2)), 1e-3)
    transform = scipy.fft.fftn if kind == "fft" else scipy.fft.dctn
    back = scipy.fft.ifftn if kind == "fft" else scipy.fft.idctn

    def blur(x):
        return np.real(back(eigenvalues * transform(x, norm="ortho"), norm="ortho"))

    operator = ss.operators.as_operator((blur, blur), x_shape=(n, n), y_shape=(n, n))
    f = functions.Quadratic(operator, strong_convexity=1e-3) + functions.Linear(
        np.random.default_rng(0).standard_normal((n, n))
    )
    B = ss.operators.FiniteDifferences((n, n))
    problem = ss.SaddleProblem(
        f=f, g=functions.Quadratic(1.0), B=B, X=domains.FullSpace((n, n)), Y=domains.FullSpace(B.y_shape)
    )
    tol = 1e-3 * ss.certify(problem, *problem.start()).gap
    plans = {metric: ss.plan(problem, tol, regime="restarts", metric=metric) for metric in (kind, "auto")}
    results = {metric: ss.run(problem, plan) for metric, plan in plans.items()}
    # The modulus of a Hessian that is given as code can only be declared.
    assert all(result.status is ss.Status.MET_AS_DECLARED for result in results.values())
    assert not plans[kind].proved and ESTIMATE in plans[kind].explain()
    assert 3 * results[kind].method_calls.f < results["auto"].method_calls.f


def test_plans_with_norms_and_simple_terms_are_data():
    problem, _ = uneven()
    for plan in (
        ss.plan(problem, metric="diagonal", order="fgB", loops=(3, 2, 4)),
        ss.plan(problem, order="fB", loops=(3, 4), simple=("g",)),
    ):
        again = ss.Plan.from_dict(json.loads(json.dumps(plan.to_dict())))
        assert again.explain() == plan.explain()
        first, second = ss.run(problem, plan), ss.run(problem, again)
        assert np.array_equal(first.x, second.x) and first.gap == second.gap
    restarted, A, _ = free()
    plan = ss.plan(restarted, 1e-3, regime="restarts", metric=ss.metrics.Diagonal(np.sum(A**2, axis=0)))
    again = ss.Plan.from_dict(json.loads(json.dumps(plan.to_dict())))
    assert np.array_equal(ss.run(restarted, plan).x, ss.run(restarted, again).x)


def test_the_radius_of_a_box_is_that_of_its_corners():
    box, point = domains.Box([-1.0, 0.0], [2.0, 3.0]), np.array([0.0, 1.0])
    weights = np.array([2.0, 5.0])
    corners = [np.array([a, b]) for a in (-1.0, 2.0) for b in (0.0, 3.0)]
    farthest = max(float(np.sum(weights * (corner - point) ** 2)) for corner in corners)
    assert Omega_in(ss.metrics.Diagonal(weights), box, point) == pytest.approx(farthest)


def test_norms_that_do_not_fit_are_refused():
    problem, _, _ = free()
    lopsided = np.eye(6) + np.eye(6, k=1)
    wrong = {
        "has shape \\(3, 3\\); expected that of a block \\(6,\\)": np.eye(3),
        "expected a symmetric one": lopsided,
        "is not positive definite": (1.0, -np.eye(4)),
        "the weight is -1; expected a number > 0": (np.eye(6), -1.0),
        "metric is 'wavelet'; expected one of": "wavelet",
    }
    for message, metric in wrong.items():
        with pytest.raises(InputError, match=message):
            ss.plan(problem, 1e-2, metric=metric)
