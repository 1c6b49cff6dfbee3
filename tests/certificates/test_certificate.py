"""Certificates from carried models and from inner solves: true, ordered, and never silent about what is missing."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.optimize import minimize

import saddleslide as ss
from saddleslide.functions.minimum import LowerModel
from saddleslide.methods.sliding import bilinear_recursion, carried_models
from saddleslide.oracles.oracles import Oracles
from saddleslide.theory.restarts import Stage
from support import gathered


def coupled_quadratics(seed, n=6, m=5, ridge=0.0):
    """Quadratics with full matrices on boxes: no closed form, so runs carry models."""
    rng = np.random.default_rng(seed)
    A, C = rng.standard_normal((n + 2, n)), rng.standard_normal((m + 2, m))
    return ss.SaddleProblem(
        f=ss.functions.LeastSquares(A, rng.standard_normal(n + 2), ridge=ridge),
        g=ss.functions.Logistic(C, np.sign(rng.standard_normal(m + 2)), ridge=ridge),
        B=rng.standard_normal((m, n)),
        X=ss.domains.Box(-1.0, 1.0, shape=n),
        Y=ss.domains.Box(-2.0, 1.0, shape=m),
    )


def run_with_models(problem, order, loops):
    plan = ss.plan(problem, order=order, loops=loops, metric="identity")
    stage = Stage(plan.schedule.levels, math.nan)
    recursion = bilinear_recursion(Oracles(problem), stage, problem.start())
    *_, average = recursion.steps()
    x, y = average[: problem.X.size].copy(), average[problem.X.size :].copy()
    return plan, x, y, carried_models(recursion, problem)


def independent_gap(problem, x, y):
    """max_y F(x, y) - min_x F(x, y) by a general-purpose solver."""
    B = problem.coupling.matrix

    def extreme(function, tilt, domain):
        return minimize(
            lambda v: function.value(v) + tilt @ v,
            np.zeros(domain.size),
            jac=lambda v: function.gradient(v) + tilt,
            method="SLSQP",
            bounds=list(zip(domain.lower, domain.upper, strict=True)),
            options={"ftol": 1e-14, "maxiter": 1000},
        ).fun

    upper = problem.f.value(x) - extreme(problem.g, -(B @ x), problem.Y)
    lower = extreme(problem.f, B.T @ y, problem.X) - problem.g.value(y)
    return upper - lower


@gathered("order", ["fgB", "gBf", "Bfg", "Bgf", "fBg", "gfB"])
@gathered("ridge", [0.0, 0.3])
def test_carried_models_lie_between_the_true_gap_and_the_theorem(order, ridge):
    for seed in range(3):
        problem = coupled_quadratics(seed, ridge=ridge)
        plan, x, y, models = run_with_models(problem, order, (5, 3, 4))
        assert set(models) == {"f", "g"}
        by_models = ss.certify(problem, x, y, models=models, max_gradients=0)
        assert by_models.kind == "model"
        assert by_models.calls.f == 0 and by_models.calls.g == 0
        true = independent_gap(problem, x, y)
        assert true <= by_models.gap + 1e-9
        assert by_models.gap <= plan.bound * (1 + 1e-12)


def test_a_carried_model_is_never_above_its_function():
    problem = coupled_quadratics(4, ridge=0.2)
    _, _, _, models = run_with_models(problem, "gBf", (4, 3, 5))
    rng = np.random.default_rng(0)
    for name, function, domain in (("f", problem.f, problem.X), ("g", problem.g, problem.Y)):
        model = models[name]
        assert model.curvature >= 0.2
        slack = []
        for _ in range(200):
            v = domain.project(2.0 * rng.standard_normal(domain.shape))
            value = model.constant + model.slope @ v + 0.5 * model.curvature * v @ v
            slack.append(function.value(v) - value)
        assert min(slack) >= -1e-10
        assert min(slack) < 0.5 * max(slack), "the model should touch somewhere"


def test_strong_convexity_tightens_the_models():
    problem = coupled_quadratics(5, ridge=0.5)
    _, x, y, models = run_with_models(problem, "fgB", (5, 3, 4))
    flat = {
        name: LowerModel.at(np.zeros_like(model.slope), model.constant, model.slope) for name, model in models.items()
    }
    curved = ss.certify(problem, x, y, models=models, max_gradients=0)
    # Dropping the quadratic keeps a true model, since it is nonnegative.
    assert curved.gap < ss.certify(problem, x, y, models=flat, max_gradients=0).gap


def test_both_kinds_are_tried_and_the_tighter_one_counts():
    problem = coupled_quadratics(6)
    _, x, y, models = run_with_models(problem, "fgB", (3, 2, 2))
    solved = ss.certify(problem, x, y, models=models)
    modelled = ss.certify(problem, x, y, models=models, max_gradients=0)
    assert solved.kind == "exact"
    assert solved.gap <= modelled.gap
    assert solved.gap == pytest.approx(independent_gap(problem, x, y), abs=1e-6)


def test_a_search_that_is_cut_short_says_so_and_stays_true():
    problem = coupled_quadratics(7)
    x, y = problem.start()
    full = ss.certify(problem, x, y)
    short = ss.certify(problem, x, y, max_gradients=2)
    assert short.kind == "searched"
    assert short.calls.f <= 2 and short.calls.g <= 2
    assert short.gap > full.gap
    assert short.lower <= full.lower and short.upper >= full.upper


def test_run_uses_the_models_when_nothing_else_is_possible():
    """A Custom function with values but no structure, on bounded sets."""
    rng = np.random.default_rng(8)
    B = rng.standard_normal((4, 4))
    custom = ss.functions.Custom(
        gradient=lambda v: v**3, value=lambda v: 0.25 * float(np.sum(v**4)), smoothness=ss.Holder(1.0, 3.0)
    )
    box = ss.domains.Box(-1.0, 1.0, shape=4)
    problem = ss.SaddleProblem(f=custom, g=custom, B=B, X=box, Y=box)
    result = ss.run(problem, ss.plan(problem, order="fgB", loops=(30, 1, 4)), start=(np.ones(4), np.ones(4)))
    assert math.isfinite(result.gap)
    assert result.gap <= result.plans[0].bound
    # And one value at the point itself.
    assert result.certificate_calls.f <= max(result.calls.f, 25) + 1


def test_no_bound_without_values_or_curvature():
    free = ss.domains.FullSpace(2)
    silent = ss.functions.Custom(gradient=lambda v: v, smoothness=ss.Holder(1.0, 1.0))
    problem = ss.SaddleProblem(f=silent, g=ss.functions.Quadratic(1.0), B=np.eye(2), X=free, Y=free)
    certificate = ss.certify(problem, np.zeros(2), np.zeros(2))
    assert certificate.gap == math.inf
    assert certificate.kind == "none"
    assert "value" in certificate.reason


def cancelling(rng, size, x):
    """A vector with entries of this size whose product with x is nearly 0."""
    c = size * rng.standard_normal(x.size)
    c[-1] = -(c[:-1] @ x[:-1]) / x[-1]
    return c


@gathered("where", ["in f", "in B x", "in B^T y", "everywhere", "nowhere"])
def test_rounding_is_inside_the_bounds(where):
    """One-point domains: the saddle value is a sum of products, known exactly as a fraction: terms cancel, or not."""
    for seed in range(60):
        rng = np.random.default_rng(seed)
        x, y = rng.standard_normal(6), rng.standard_normal(6)
        c = cancelling(rng, 1e8, x) if where in ("in f", "everywhere") else np.zeros(6)
        B = 1e-6 * rng.standard_normal((6, 6))
        if where in ("in B x", "everywhere"):
            B = np.array([cancelling(rng, 1e8, x) for _ in range(6)])
        elif where == "nowhere":
            c = 1e8 * np.sign(x)
        elif where == "in B^T y":
            B = np.array([cancelling(rng, 1e8, y) for _ in range(6)]).T
        problem = ss.SaddleProblem(
            f=ss.functions.Linear(c), g=ss.functions.Zero(), B=B, X=ss.domains.Box(x, x), Y=ss.domains.Box(y, y)
        )
        assert problem.coupling.norm.upper > 0.0
        exact = sum(Fraction(a) * Fraction(b) for a, b in zip(c, x, strict=True))
        exact += sum(Fraction(y[i]) * Fraction(B[i, j]) * Fraction(x[j]) for i in range(6) for j in range(6))
        certificate = ss.certify(problem, x, y)
        assert Fraction(certificate.lower) <= exact <= Fraction(certificate.upper), seed
        terms = np.abs(c * x).sum() + problem.coupling.norm.upper * np.linalg.norm(x) * np.linalg.norm(y)
        assert certificate.gap < 1e-12 * terms


def test_rounding_in_products_is_in_every_bound():
    """The sum 1e16 + 1 - 1e16 is lost in rounding: no bound may pretend otherwise."""
    B = np.array([[1e16, 1.0, -1e16]])
    X, Y, zero = ss.domains.Box(1.0, 1.0, shape=3), ss.domains.Box(-1.0, 1.0, shape=1), ss.functions.Zero()
    problem = ss.SaddleProblem(f=zero, g=zero, B=B, X=X, Y=Y)
    result = ss.solve(problem, 0.5)
    assert result.upper >= 1.0 and result.status is not ss.Status.SOLVED
    assert ss.certify(problem, np.ones(3), np.zeros(1)).upper >= 1.0


def test_certified_gaps_of_null_vectors_are_not_below_the_exact_ones():
    """Singular B with x and y in its kernels: the true gap is a rounding error, computed in exact fractions."""
    rng = np.random.default_rng(0)
    for _ in range(40):
        n = int(rng.integers(2, 6))
        left, right = rng.standard_normal((n, n - 1)), rng.standard_normal((n - 1, n))
        B = left @ right
        x, y = np.linalg.svd(B)[2][-1], np.linalg.svd(B.T)[2][-1]
        box = ss.domains.Box(-1.0, 1.0, shape=n)
        problem = ss.SaddleProblem(f=ss.functions.Zero(), g=ss.functions.Zero(), B=B, X=box, Y=box)
        exact = [[Fraction(float(entry)) for entry in row] for row in B]
        fx, fy = [Fraction(float(v)) for v in x], [Fraction(float(v)) for v in y]
        rows = [sum(b * v for b, v in zip(row, fx, strict=True)) for row in exact]
        columns = [sum(exact[i][j] * fy[i] for i in range(n)) for j in range(n)]
        true = sum(map(abs, rows)) + sum(map(abs, columns))
        assert Fraction(ss.certify(problem, x, y).gap) >= true
