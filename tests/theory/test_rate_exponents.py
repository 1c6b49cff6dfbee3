"""Measured exponents against those of the theory, each within 15 %.

A bound is visible on problems that are as hard as the bound allows. Three families have lower bounds of the same order:
quadratic and bilinear chains, where information travels one coordinate a step, of a length that grows with the number
of steps; and the largest coordinate, whose subgradients show one coordinate each. Others are measured where the gap
falls no faster than promised. Linear rates: how the rate depends on the condition number.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

import saddleslide as ss
from arena import Driven, slope, trace

ZERO = ss.functions.Zero()
TOLERANCE = 0.15
LENGTHS = [16, 32, 64, 128]


def assert_exponent(xs, ys, theory):
    assert slope(xs, ys) == pytest.approx(theory, rel=TOLERANCE)


def step_until(driven, reached, most=10_000):
    """Iterate until a condition holds; a method that never gets there fails instead of hanging."""
    for _ in range(most):
        if reached(driven):
            return
        driven.step()
    raise AssertionError(f"not there after {most} iterations")


def quadratic_chain(N):
    """1/2 <x, Tx> - x_1 with the second differences T of 2N + 1 numbers; |x*| is the radius of X, L = 4."""
    d = 2 * N + 1
    T, e = 2.0 * np.eye(d) - np.eye(d, k=1) - np.eye(d, k=-1), np.eye(d)[0]
    R = float(np.linalg.norm(1.0 - np.arange(1, d + 1) / (d + 1.0)))
    X, Y = ss.domains.Ball(R, shape=d), ss.domains.Box(-1.0, 1.0, shape=1)
    f = ss.functions.Quadratic(T) + ss.functions.Linear(-e)
    return ss.SaddleProblem(f=f, g=ss.functions.Quadratic(1.0), B=np.zeros((1, d)), X=X, Y=Y), 4.0 * R * R


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("accelerated-gradient", lambda N: {}),
        ("universal-gradient", lambda N: {"accuracy": 1e-3 / N}),
        ("accelerated-mirror-prox", lambda N: {"metric": "identity"}),
        ("accelerated-mirror-prox", lambda N: {"metric": "identity", "horizon": N}),
        ("mirror-prox-sliding", lambda N: {"metric": "identity"}),
        ("lockstep", lambda N: {"metric": "identity", "steps": N}),
        ("two-level-sliding", lambda N: {"metric": "identity", "outer": "f", "outer_steps": N, "inner_steps": 1}),
    ],
)
def test_accelerated_methods_are_of_order_one_over_n_squared_on_quadratic_chains(name, options):
    found = []
    for N in LENGTHS:
        problem, scale = quadratic_chain(N)
        found.append(trace(problem, ss.methods.by_name[name](**options(N)), [N])[0][1] / scale)
    assert_exponent(LENGTHS, found, -2.0)


@pytest.mark.parametrize(("name", "part"), [("recursive-sliding", 1.0), ("proved-sliding", 2.0)])
def test_one_stage_has_a_certified_gap_of_order_one_over_n_squared_on_quadratic_chains(name, part):
    counts, found = [], []
    for N in LENGTHS:
        problem, scale = quadratic_chain(N)
        options = {"loose": 1.0} if name == "recursive-sliding" else {}
        driven = Driven(problem, name, None, part * scale / N**2, metric="identity", **options)
        for _ in range(driven.state.stages[0][0].T):
            driven.step()
        assert N / 2 <= driven.calls.f <= 3 * N
        counts.append(driven.calls.f)
        found.append(driven.gap / scale)
    assert_exponent(counts, found, -2.0)


def test_gradient_sliding_is_of_order_one_over_n_squared_on_quadratic_chains():
    found = []
    for N in LENGTHS:
        problem, scale = quadratic_chain(N)
        # The target for which it plans N gradients.
        tol = 6.0 * scale / (N * (N + 1.0)) * (1.0 + 1e-9)
        _, gap, calls = trace(problem, ss.methods.by_name["gradient-sliding"](), [N], tol=tol)[0]
        # One more measures the distance to the solution.
        assert (calls.f, gap <= tol) == (N + 1, True)
        found.append(gap / scale)
    assert_exponent(LENGTHS, found, -2.0)


def test_gradient_sliding_needs_products_like_one_over_the_squared_target():
    rng = np.random.default_rng(0)
    f = ss.functions.LeastSquares(rng.standard_normal((30, 20)), rng.standard_normal(30))
    X, Y = ss.domains.Ball(1.0, shape=20), ss.domains.Box(-0.2, 0.2, shape=10)
    problem = ss.SaddleProblem(f=f, g=ZERO, B=rng.standard_normal((10, 20)), X=X, Y=Y)
    targets, products, gradients = [4.0, 2.0, 1.0], [], []
    for tol in targets:
        driven = Driven(problem, "gradient-sliding", None, tol)
        step_until(driven, lambda d: d.state.k == d.state.planned and d.state.t == d.state.T)
        assert driven.gap <= tol
        products.append(driven.calls.B)
        gradients.append(driven.calls.f)
    assert_exponent(targets, products, -2.0)
    assert_exponent(targets, gradients, -0.5)


def bilinear_chain(N):
    """<y, Bx - b> with first differences B of 2N + 1 numbers; the solution, all ones, has the radius of X."""
    d = 2 * N + 1
    B = ss.operators.as_operator(0.5 * (np.eye(d) - np.eye(d, k=-1)), norm=1.0)
    X, Y = ss.domains.Ball(math.sqrt(d), shape=d), ss.domains.Ball(1.0, shape=d)
    return ss.SaddleProblem(f=ZERO, g=ss.functions.Linear(np.eye(d)[0]), B=B, X=X, Y=Y), math.sqrt(d)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("mirror-prox", {}),
        ("accelerated-mirror-prox", {}),
        ("universal-mirror-prox", {"accuracy": 1e-3}),
        ("pdhg", {"variant": "plain"}),
        ("condat-vu", {}),
    ],
)
def test_coupled_methods_are_of_order_one_over_n_on_bilinear_chains(name, options):
    found = []
    for N in LENGTHS:
        problem, scale = bilinear_chain(N)
        found.append(trace(problem, ss.methods.by_name[name](**options), [N])[0][1] / scale)
    assert_exponent(LENGTHS, found, -1.0)


def largest_coordinate(eps):
    """max_i x_i on the unit ball of dimension 1 / (4 eps^2): subgradients of length 1, minimum -2 eps."""
    d = math.ceil(0.25 / eps**2)
    f = ss.functions.Custom(
        gradient=lambda x: np.eye(1, d, int(np.argmax(x)))[0],
        value=lambda x: float(x.max()),
        smoothness=ss.Holder(0.0, 2.0),
    )
    X, Y = ss.domains.Ball(1.0, shape=d), ss.domains.Box(-1.0, 1.0, shape=1)
    return ss.SaddleProblem(f=f, g=ZERO, B=np.zeros((1, d)), X=X, Y=Y)


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("universal-mirror-prox", {"metric": "identity"}),
        ("universal-gradient", {}),
        ("recursive-sliding", {"metric": "identity", "loose": 1.0}),
        ("proved-sliding", {"metric": "identity"}),
        ("lockstep", {"metric": "identity"}),
        ("two-level-sliding", {"metric": "identity"}),
    ],
)
def test_nonsmooth_functions_take_one_over_the_squared_target(name, options):
    targets, counts = [0.2, 0.1, 0.05], []
    for eps in targets:
        problem = largest_coordinate(eps)
        driven = Driven(problem, name, None, eps, **options)
        lowest = -1.0 / math.sqrt(problem.X.size)
        step_until(driven, lambda d, least=lowest, eps=eps: d.point[0].max() - least <= eps)
        counts.append(driven.calls.f)
    assert_exponent(targets, counts, -2.0)


def test_universal_primal_dual_takes_one_over_the_squared_target_where_the_dual_is_not_smooth():
    targets, counts = [0.2, 0.1, 0.05], []
    for eps in targets:
        d = math.ceil(0.25 / eps**2)
        X, Y = ss.domains.Simplex(d), ss.domains.Ball(1.0, shape=d)
        problem = ss.SaddleProblem(f=ZERO, g=ZERO, B=np.eye(d), X=X, Y=Y)
        driven = Driven(problem, "universal-primal-dual", None, eps)
        step_until(driven, lambda d, eps=eps: d.gap <= eps)
        counts.append(driven.calls.B)
    assert_exponent(targets, counts, -2.0)


def one_strong(kind):
    """f strongly convex, g = 0: nonsmooth in x, or a quadratic on a box."""
    rng = np.random.default_rng(0)
    B, c, Y = rng.standard_normal((60, 40)), rng.standard_normal(40), ss.domains.Ball(3.0, shape=60)
    if kind == "nonsmooth":
        f = ss.functions.Power(0.0, weight=0.2, tilt=c, quadratic=np.full(40, 0.5))
        return ss.SaddleProblem(f=f, g=ZERO, B=B, X=ss.domains.FullSpace(40), Y=Y)
    f = ss.functions.Quadratic(np.full(40, 0.5)) + ss.functions.Linear(c)
    return ss.SaddleProblem(f=f, g=ZERO, B=B, X=ss.domains.Box(-1.0, 0.5, shape=40), Y=Y)


def least_squares_box():
    rng = np.random.default_rng(0)
    f = ss.functions.LeastSquares(rng.standard_normal((10, 8)), 10.0 * rng.standard_normal(10))
    g, B = ss.functions.Linear(rng.standard_normal(12)), rng.standard_normal((12, 8))
    return ss.SaddleProblem(f=f, g=g, B=B, X=ss.domains.FullSpace(8), Y=ss.domains.Box(-1.0, 1.0, shape=12))


EXACT_STEPS = {"penalty": 0.05, "cg_steps": 20, "cg_tolerance": 1e-10, "output": "average"}


@pytest.mark.parametrize(
    ("name", "options", "problem", "theory"),
    [
        ("pdhg", {"variant": "accelerated", "weight": 0.5}, one_strong("nonsmooth"), -2.0),
        ("universal-primal-dual", {}, one_strong("box"), -2.0),
        ("admm", EXACT_STEPS, least_squares_box(), -1.0),
    ],
    ids=["pdhg", "universal-primal-dual", "admm"],
)
def test_the_certified_gap_falls_with_the_exponent_of_the_bound(name, options, problem, theory):
    marks = [64, 128, 256, 512]
    rows = trace(problem, ss.methods.by_name[name](**options), marks, tol=1e-6)
    assert_exponent(marks, [gap for _, gap, _ in rows], theory)


def conditioned(kappa, d=12):
    """Quadratics with spectra from 1/kappa to 1 on the full space, coupled by a norm of 1/kappa."""
    rng, q, free = np.random.default_rng(0), np.linspace(1.0 / kappa, 1.0, d), ss.domains.FullSpace(d)
    U = np.linalg.qr(rng.standard_normal((d, d)))[0]
    f, g = (ss.functions.Quadratic(q) + ss.functions.Linear(q * rng.standard_normal(d)) for _ in "fg")
    return ss.SaddleProblem(f=f, g=g, B=ss.operators.as_operator(U / kappa, norm=1.0 / kappa), X=free, Y=free)


def coupled(kappa, d=8):
    """Moduli 1, a coupling of norm kappa."""
    rng, q, free = np.random.default_rng(0), ss.functions.Quadratic(1.0), ss.domains.FullSpace(d)
    U = np.linalg.qr(rng.standard_normal((d, d)))[0]
    B = ss.operators.as_operator((U * np.geomspace(0.01, 1.0, d) * kappa) @ U.T, norm=kappa)
    f, g = (q + ss.functions.Linear(rng.standard_normal(d)) for _ in "fg")
    return ss.SaddleProblem(f=f, g=g, B=B, X=free, Y=free)


def ring(kappa, nodes=8):
    """Consensus on a ring, two numbers a node, curvatures 1/kappa and 1."""
    rng, q = np.random.default_rng(0), np.tile([1.0 / kappa, 1.0], nodes)
    B = np.kron(np.eye(nodes) - np.roll(np.eye(nodes), 1, axis=1), np.eye(2))
    f = ss.functions.Quadratic(q) + ss.functions.Linear(q * rng.standard_normal(2 * nodes))
    X, Y = ss.domains.FullSpace(2 * nodes), ss.domains.Ball(50.0, shape=2 * nodes)
    return ss.SaddleProblem(f=f, g=ZERO, B=B, X=X, Y=Y)


@pytest.mark.parametrize(
    ("name", "options", "make", "kappas", "steps", "theory"),
    [
        ("mirror-prox", {"output": "last", "metric": "identity"}, conditioned, (100, 200, 400), 6.0, -1.0),
        ("apdg", {}, conditioned, (100, 400, 1600), 30.0, -0.5),
        ("opapc", {}, ring, (100, 400, 1600), 20.0, -0.5),
        ("pdhg", {"variant": "linear"}, coupled, (10, 40, 160), 6.0, -1.0),
    ],
    ids=["mirror-prox", "apdg", "opapc", "pdhg"],
)
def test_linear_rates_depend_on_the_condition_number_as_promised(name, options, make, kappas, steps, theory):
    rates = []
    for kappa in kappas:
        last = math.ceil(steps * kappa**-theory)
        rows = trace(make(kappa), ss.methods.by_name[name](**options), [last // 2, last], tol=1e-12)
        rates.append(math.log(rows[0][1] / rows[1][1]) / (last - last // 2))
    assert_exponent(kappas, rates, theory)


def test_l_bfgs_converges_at_least_linearly():
    """No constant is promised: every block of 15 steps gains a digit, down to rounding."""
    marks = [15, 30, 45, 60, 75]
    gaps = [gap for _, gap, _ in trace(conditioned(1000, 80), ss.methods.by_name["l-bfgs"](side="primal"), marks)]
    assert (np.log10(np.array(gaps[:-1]) / np.array(gaps[1:])) > 1.0).all()
