"""Every method against its own guarantee: the bound at every count, and the measured slope of the exact gap."""

from __future__ import annotations

import math

import numpy as np
import pytest

import saddleslide as ss
from arena import Arena, Driven, slope, trace
from saddleslide.facts.facts import Facts

GRID = [8, 16, 32, 64, 128, 256, 512]


def game():
    rng, zero = np.random.default_rng(0), ss.functions.Zero()
    B = rng.standard_normal((15, 20))
    return ss.SaddleProblem(f=zero, g=zero, B=B, X=ss.domains.Simplex(20), Y=ss.domains.Simplex(15))


def flat_quadratics(norm, d=40):
    """Quadratics with spectra from 1e-6 to 1 on boxes: no useful strong convexity."""
    rng, q = np.random.default_rng(0), np.geomspace(1e-6, 1.0, d)
    U = np.linalg.qr(rng.standard_normal((d, d)))[0]
    f, g = (ss.functions.Quadratic(q) + ss.functions.Linear(0.3 * np.sqrt(q) * rng.standard_normal(d)) for _ in "fg")
    box = ss.domains.Box(-1.0, 1.0, shape=d)
    return ss.SaddleProblem(f=f, g=g, B=ss.operators.as_operator(norm * U, norm=norm), X=box, Y=box)


def squared_radius(problem):
    x, y = problem.start()
    return problem.X.squared_radius(x) + problem.Y.squared_radius(y)


def gaps_below(rows, bound):
    for N, gap, _ in rows:
        assert 0.0 <= gap <= bound(N) * (1.0 + 1e-9), N
    return [N for N, _, _ in rows], [gap for _, gap, _ in rows]


def test_averaged_mirror_prox_is_of_order_one_over_n():
    problem = game()
    L, Omega = problem.coupling.norm.upper, squared_radius(problem)
    rows = trace(problem, ss.methods.by_name["mirror-prox"](metric="identity"), GRID)
    N, gaps = gaps_below(rows, lambda N: L * Omega / (2.0 * N))
    assert -1.1 < slope(N, gaps) < -0.9
    assert rows[-1][2] == ss.Calls(0, 0, 4 * 512)


def test_the_last_iterate_contracts_as_promised():
    arena = Arena(seed=1)
    mu, L = min(arena.mu_f, arena.mu_g), sum(arena.constants("identity"))
    points = arena.library("mirror-prox", 400, output="last", metric="identity")
    solution = arena.library("mirror-prox", 8000, output="last", metric="identity")[-1]
    before = np.sum((arena.start - solution) ** 2)
    for k, z in enumerate(points, start=1):
        assert np.sum((z - solution) ** 2) <= (1.0 - 3.0 * mu / (8.0 * L)) ** k * before + 1e-24
    # The average of the same run is far behind: its rate is 1/N.
    average = arena.library("mirror-prox", 400, eta=0.5 / L, metric="identity")[-1]
    assert np.sum((average - solution) ** 2) > 1e4 * np.sum((points[-1] - solution) ** 2)


@pytest.mark.parametrize("norm", [1e-4, 0.02, 1.0])
def test_accelerated_mirror_prox_keeps_the_bound_with_both_rates(norm):
    problem = flat_quadratics(norm)
    D2, Omega = 320.0, 80.0
    rows = trace(problem, ss.methods.by_name["accelerated-mirror-prox"](metric="identity"), GRID)
    gaps_below(rows, lambda N: (2.0 / (N * (N + 1)) + 2.0 * norm / (N + 1)) * D2)
    for horizon in (16, 128):
        method = ss.methods.by_name["accelerated-mirror-prox"](metric="identity", horizon=horizon)
        gaps_below(trace(problem, method, [horizon]), lambda N: (2.0 / (N * (N + 1)) + norm / (N + 1)) * Omega)
        driven = Driven(problem, method)
        driven.step(horizon - 1)
        assert not method.is_finished(driven.state)
        driven.step()
        assert method.is_finished(driven.state)


def test_mirror_prox_sliding_needs_few_gradients_and_as_many_products_as_it_says():
    norm = 0.05
    rows = trace(
        flat_quadratics(norm), ss.methods.by_name["mirror-prox-sliding"](metric="identity"), [4, 8, 16, 32, 64, 128]
    )
    gaps_below(rows, lambda N: 3.0 * 80.0 / (N * (N + 1)))
    for n, _, calls in rows:
        assert (calls.f, calls.g) == (n, n)
        assert 4 * sum(max(1, math.ceil(k * norm)) for k in range(1, n + 1)) == calls.B


def nesterov_chain(d=200):
    """The quadratic on which no first-order method is faster than 1/N^2 for N < d/2; B = 0, and a g to minimise."""
    T = 2.0 * np.eye(d) - np.eye(d, k=1) - np.eye(d, k=-1)
    e = np.zeros(d)
    e[0] = 1.0
    f = ss.functions.Quadratic(T) + ss.functions.Linear(-e)
    X, Y = ss.domains.Ball(math.sqrt(d / 3.0), shape=d), ss.domains.Box(-1.0, 1.0, shape=3)
    g = ss.functions.Quadratic(1.0) + ss.functions.Linear([1.0, 0.5, -2.0])
    return ss.SaddleProblem(f=f, g=g, B=np.zeros((3, d)), X=X, Y=Y)


def test_accelerated_gradient_on_the_worst_case():
    problem = nesterov_chain()
    rows = trace(problem, ss.methods.by_name["accelerated-gradient"](), [8, 16, 32, 64])
    gaps_below(rows, lambda N: 2.0 * 4.0 * (200.0 / 3.0) / (N * (N + 1)))
    # B = 0 costs no product.
    assert rows[-1][2] == ss.Calls(64, 0, 0)


def test_accelerated_gradient_counts_the_smoothed_maximum():
    problem = flat_quadratics(1.0)
    problem = ss.SaddleProblem(f=problem.f, g=ss.functions.Quadratic(0.01), B=problem.B, X=problem.X, Y=problem.Y)
    rows = trace(problem, ss.methods.by_name["accelerated-gradient"](), GRID)
    gaps_below(rows, lambda N: 2.0 * (1.0 + 1.0 / 0.01) * 40.0 / (N * (N + 1)))


@pytest.mark.parametrize(
    ("name", "options", "nus", "rate"),
    [
        ("universal-mirror-prox", {"metric": "identity"}, (1.0, 1.0), 1.0),
        ("universal-mirror-prox", {"metric": "identity"}, (0.5, 0.5), 4.0 / 3.0),
        ("universal-mirror-prox", {"metric": "identity"}, (0.0, 0.0), 2.0),
        ("universal-gradient", {}, (1.0, 1.0), 0.5),
        ("universal-gradient", {}, (0.5, 0.5), 0.8),
    ],
)
def test_universal_methods_are_no_slower_than_promised_without_the_exponent(name, options, nus, rate):
    problem, targets, counts = ss.gallery.synthetic(*nus, seed=0, d=30), [4.0, 2.0, 1.0], []
    for eps in targets:
        driven, steps = Driven(problem, name, None, eps, **options), 0
        while driven.gap > eps:
            more = 1 + steps // 20
            driven.step(more)
            steps += more
        counts.append(driven.calls.f)
        promised = driven.method.calls(driven.facts, eps)
        assert driven.calls.f <= promised.f
        assert driven.calls.B <= promised.B
    assert slope(targets, counts) > -rate - 0.3


PROMISES = [
    ("mirror-prox", {}, 0.5),
    ("mirror-prox", {"output": "last"}, 1e-6),
    ("accelerated-mirror-prox", {}, 0.5),
    ("mirror-prox-sliding", {}, 0.2),
    ("universal-mirror-prox", {}, 2.0),
    ("accelerated-gradient", {}, 1e-2),
    ("universal-gradient", {}, 1e-2),
]


@pytest.mark.parametrize(("name", "options", "tol"), PROMISES, ids=[f"{p[0]} {p[1]}" for p in PROMISES])
def test_after_the_predicted_calls_the_gap_is_below_the_target(name, options, tol):
    problem = ss.gallery.synthetic(1.0, 1.0, seed=0, d=20)
    driven = Driven(problem, name, None, tol, **options)
    promised = driven.method.calls(driven.facts, tol)
    while driven.calls.f < promised.f:
        driven.step()
    assert driven.gap <= tol
    # A universal method may stop inside its last search.
    assert driven.calls.f <= promised.f + 3
    assert driven.calls.B <= promised.B * 1.1 + 12


def test_no_promise_where_the_theory_has_none():
    q, free = ss.functions.Quadratic(1.0), ss.domains.FullSpace(3)
    open_problem = ss.SaddleProblem(f=q, g=q, B=np.eye(3), X=free, Y=free)
    for name in ("mirror-prox", "accelerated-mirror-prox", "universal-mirror-prox", "universal-gradient"):
        assert ss.methods.by_name[name]().calls(Facts(open_problem), 0.1) is None
    linear = ss.methods.by_name["mirror-prox"](output="last")
    assert linear.calls(Facts(game()), 0.1) is None
