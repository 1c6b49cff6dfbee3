"""A costly g slid inside the steps on f: exact counts, growth like the root of its condition, plans by price."""

import math
from dataclasses import replace

import numpy as np
import pytest
import scipy.optimize

import saddleslide as ss
from saddleslide.methods import adaptive_sliding
from saddleslide.methods.sliding.inner import Linearised, Proximal, Slid
from support import Counter, gathered
from watched import Both

F, D = ss.functions, ss.domains


@gathered("reach", [None, 2.0, 0.1])
@gathered("kappas", [(10.0, 10.0), (1e3, 1e2), (1e2, 1e4)])
def test_counts_handed_over_are_exact(kappas, reach):
    both = Both(*kappas, reach=reach)
    plan = ss.plan(both.problem, reduction=1e-6, method="adaptive")
    assert plan.order == "fgB" and plan.settings["g_steps"] >= 4 and plan.settings["steps_per_g"] >= 4
    assert "f and g are costly: g is slid inside the steps on f" in plan.reasons
    before = both.A.products + both.C.products + both.B.products
    assert before == 0
    result = ss.solve(both.problem, reduction=1e-6)
    assert result.success
    # A gradient is a product with the matrix and one with its transpose; a value alone is half of that.
    assert both.A.products == 2 * result.calls.f
    assert both.C.products == 2 * result.calls.g
    assert both.B.products == result.calls.B
    counts = [(m.calls.f, m.calls.g, m.calls.B) for m in result.history]
    assert counts == sorted(counts) and counts[-1] == (result.calls.f, result.calls.g, result.calls.B)


@gathered("seed", [0, 1, 2])
def test_the_value_is_that_of_a_linear_solve(seed):
    both = Both(1e2, 1e3, seed=seed)
    result, truth = ss.solve(both.problem, reduction=1e-8), both.truth()
    assert result.success
    assert result.lower <= truth + 1e-12 * abs(truth) and truth <= result.upper + 1e-12 * abs(truth)


def test_the_value_on_a_box_is_that_of_an_independent_solver():
    both = Both(30.0, 30.0, reach=0.15, n=6, m=5)
    A, C, B = both.A.matrix, both.C.matrix, both.B.matrix

    def upper(x):
        """max over the box of y by bounded least squares: 1/2 |Cy - c|^2 + ridge/2 |y|^2 - <y, Bx>."""
        K = C.T @ C + both.ridges[1] * np.eye(5)
        R = np.linalg.cholesky(K).T
        goal = np.linalg.solve(R.T, C.T @ both.c + B @ x)
        y = scipy.optimize.lsq_linear(R, goal, (-0.15, 0.15), tol=1e-14).x
        g = 0.5 * np.sum((C @ y - both.c) ** 2) + 0.5 * both.ridges[1] * y @ y
        f = 0.5 * np.sum((A @ x - both.a) ** 2) + 0.5 * both.ridges[0] * x @ x
        slope = A.T @ (A @ x - both.a) + both.ridges[0] * x + B.T @ y
        return float(f + y @ B @ x - g), slope

    options = {"ftol": 1e-15, "gtol": 1e-12, "maxiter": 5000}
    box = [(-0.15, 0.15)] * 6
    found = scipy.optimize.minimize(upper, np.zeros(6), jac=True, bounds=box, method="L-BFGS-B", options=options)
    result = ss.solve(both.problem, tol=1e-9)
    assert result.success
    assert result.lower - 1e-9 <= found.fun <= result.upper + 1e-9
    assert np.count_nonzero(np.abs(result.x) == 0.15) > 0 and np.count_nonzero(np.abs(result.y) == 0.15) > 0


def method_calls(kappa_y, seed, linearised=False, costs=None):
    """Calls of f' and g' by the method itself, where the coupling is too weak to help g."""
    both = Both(10.0, kappa_y, seed=seed, norm=0.01)
    plan = ss.plan(both.problem, reduction=1e-6, costs=costs, method="adaptive")
    if linearised:
        plan = replace(plan, settings={**plan.settings, "g_steps": 0, "steps_per_g": 0})
    result = ss.run(both.problem, plan, max_calls={"g": 5000})
    assert result.success or linearised
    return result.calls.f - result.certificate_calls.f, result.calls.g - result.certificate_calls.g


@gathered("seed", [0, 1])
def test_gradients_of_g_grow_like_the_root_of_its_condition(seed):
    """A hundredfold condition allows tenfold gradients and a margin."""
    (_, easy), (_, hard) = (method_calls(kappa, seed) for kappa in (1e2, 1e4))
    assert hard <= 15 * easy


def test_plain_linearised_steps_grow_faster_than_that():
    """The contrast that makes the test above one: without momentum of its own g needs many times more."""
    (_, easy), (_, hard) = (method_calls(kappa, 0, linearised=True) for kappa in (1e2, 2e3))
    assert hard >= 1.5 * math.sqrt(20.0) * easy and hard >= 3 * method_calls(2e3, 0)[1]


@gathered("seed", [0, 1])
def test_a_dear_f_pays_less_for_the_condition_of_g(seed):
    """Its calls do grow with the condition of g (measured: 3.5 and 3.2 times for a hundredfold one), below its root."""
    (easy, _), (hard, _) = (method_calls(kappa, seed, costs=(200.0, 1.0, 1.0)) for kappa in (1e2, 1e4))
    assert hard <= 5 * easy
    assert 2 * hard <= method_calls(1e4, seed, costs=(1.0, 1.0, 1.0))[0]


@gathered("prices", [(1.0, 1.0, 1.0), (100.0, 5.0, 1.0), (100.0, 1.0, 1.0), (1.0, 100.0, 1.0), (1e6, 1.0, 0.0)])
def test_prices_set_the_inner_work(prices):
    """As many steps on g as cost one f', as many coupling steps (two products) as cost one g'; from 4 to 500."""
    plan = ss.plan(Both(10.0, 10.0).problem, 1e-3, costs=prices, method="adaptive")

    def limited(ratio):
        return int(min(max(ratio, 4), 500))

    assert plan.settings["g_steps"] == limited(prices[0] / prices[1])
    assert plan.settings["steps_per_g"] == limited(prices[1] / (2.0 * prices[2]) if prices[2] else math.inf)
    assert f"at most {plan.settings['g_steps']} steps on g" in plan.explain()


def test_a_dear_f_is_called_less():
    def calls(prices):
        return ss.solve(Both(1e3, 1e3, reach=2.0).problem, reduction=1e-6, costs=prices).calls

    dear_f, dear_g = calls((100.0, 1.0, 1.0)), calls((1.0, 100.0, 1.0))
    assert dear_f.f <= 0.8 * dear_g.f


@pytest.mark.parametrize(
    ("g", "Y", "metric", "kind"),
    [
        (F.Quadratic(1.0), D.Box(-1.0, 1.0, shape=4), "blocks", Proximal),
        (F.LeastSquares(np.eye(4) + 0.1, np.ones(4)), D.Box(-1.0, 1.0, shape=4), "blocks", Slid),
        (F.LeastSquares(np.eye(4) + 0.1, np.ones(4)), D.Box(-1.0, 1.0, shape=4), "diagonal", Slid),
        (F.LeastSquares(np.eye(4) + 0.1, np.ones(4)), D.Box(-1.0, 1.0, shape=4), "spectral", Linearised),
    ],
)
def test_how_g_is_treated(g, Y, metric, kind, monkeypatch):
    seen = []
    for name in ("Proximal", "Linearised", "Slid"):
        original = getattr(adaptive_sliding, name)
        monkeypatch.setattr(adaptive_sliding, name, lambda *a, made=original: seen.append(made) or made(*a))
    rng = np.random.default_rng(0)
    A, B = rng.standard_normal((9, 5)), rng.standard_normal((4, 5))
    problem = ss.SaddleProblem(f=F.LeastSquares(A, np.ones(9)), g=g, B=B, X=D.FullSpace(5), Y=Y)
    result = ss.solve(problem, reduction=1e-7, metric=metric)
    assert result.success and seen[-1] is kind
    blocks = ss.solve(problem, tol=1e-9, metric="blocks")
    assert max(result.lower, blocks.lower) <= min(result.upper, blocks.upper) + 1e-12


def test_a_costly_g_that_is_not_finite_ends_with_a_status():
    calls = Counter(lambda y: y if calls.count < 20 else np.full(y.shape, np.nan))
    g = F.Custom(
        gradient=calls, value=lambda y: 0.5 * float(y @ y), smoothness=ss.Holder(1.0, 1.0), strong_convexity=1.0
    )
    f = F.LeastSquares(np.diag([1.0, 0.1, 0.01]), np.ones(3))
    problem = ss.SaddleProblem(f=f, g=g, B=np.eye(3), X=D.Box(-1.0, 1.0, shape=3), Y=D.Box(-1.0, 1.0, shape=3))
    result = ss.solve(problem, 1e-14, metric="blocks")
    assert result.status.name in ("NON_FINITE", "SOLVED", "NUMERICAL_LIMIT")
    assert np.isfinite(result.x).all() and np.isfinite(result.y).all() and not math.isnan(result.gap)


def test_an_inner_loop_that_is_too_short_for_the_coupling_is_lengthened():
    """Constraints that fix x: the coupling is ill-conditioned, f is not; 3,500 gradients left a gap of 4e-5 before."""
    rng = np.random.default_rng(0)
    rng.standard_normal(18 + 6 + 72 + 12)
    A, x = rng.standard_normal((6, 6)), rng.standard_normal(6)
    f = F.LeastSquares(rng.standard_normal((12, 6)), rng.standard_normal(12))
    problem = ss.gallery.constrained(f, A, A @ x)
    result = ss.solve(problem, tol=1e-8, max_calls={"f": 600})
    assert result.status is ss.Status.SOLVED
    assert np.linalg.norm(result.x - x) < 1e-3
