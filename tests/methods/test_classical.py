"""Each method against its transcription for 20 iterates, and the calls it makes."""

from __future__ import annotations

import gc
import math
import threading

import numpy as np
import pytest

import saddleslide as ss
from arena import Driven
from classical import (
    Block,
    admm,
    apdg,
    chambolle_pock,
    condat,
    gradient_sliding,
    l_bfgs,
    opapc,
    restarted_halpern,
    universal_primal_dual,
)
from saddleslide.methods.restarted_primal_dual import make_measure

STEPS = 20
# Products in another order, and a bound on |B| that lies 1e-14 above it.
TOLERANCE = 1e-12


def run(problem, name, start, steps=STEPS, tol=1e-3, **options):
    """Points after each iteration, and the oracles with their counts."""
    driven, points = Driven(problem, name, start, tol, **options), []
    assert driven.method.lacks(driven.facts) == []
    for _ in range(steps):
        driven.step()
        points.append(driven.point)
    return points, driven.oracles


def assert_same(found, expected, tolerance=TOLERANCE):
    assert len(found) == len(expected)
    for (x, y), (u, v) in zip(found, expected, strict=True):
        assert np.abs(x - u).max() <= tolerance * (1.0 + np.abs(u).max())
        assert np.abs(y - v).max() <= tolerance * (1.0 + np.abs(v).max())


def means(points, weights):
    """Weighted means of all points so far."""
    weights, found = np.array(weights), []
    for n in range(1, len(points) + 1):
        w = weights[:n] / weights[:n].sum()
        found.append(tuple(sum(a * p[i] for a, p in zip(w, points, strict=False)) for i in (0, 1)))
    return found


@pytest.fixture
def rng():
    return np.random.default_rng(7)


def simple_problem(rng, q_x, q_y, swap=False):
    """l1 + quadratic in x on a box, quadratic in y on a box; moduli q_x and q_y."""
    B = rng.standard_normal((5, 7))
    a, b = rng.standard_normal(7), rng.standard_normal(5)
    f = Block(q=q_x, w=0.3, c=-a, low=-2.0, high=2.0)
    g = Block(q=q_y, c=b, low=-1.0, high=1.0)
    problem = ss.SaddleProblem(
        f=ss.functions.Power(0.0, weight=0.3, tilt=a, quadratic=np.full(7, q_x)),
        g=ss.functions.Quadratic(np.full(5, q_y)) + ss.functions.Linear(b),
        B=B,
        X=ss.domains.Box(-2.0, 2.0, shape=7),
        Y=ss.domains.Box(-1.0, 1.0, shape=5),
    )
    return problem, f, g, B, (rng.uniform(-1, 1, 7), rng.uniform(-1, 1, 5))


@pytest.mark.parametrize("output", ["average", "last"])
def test_pdhg_plain(rng, output):
    problem, f, g, B, (x, y) = simple_problem(rng, 0.0, 0.0)
    norm = np.linalg.norm(B, 2)
    points = chambolle_pock(f, g, B, x, y, tau=1 / (0.7 * norm), sigma=0.7 / norm)
    expected = means(points, np.ones(STEPS)) if output == "average" else [(u, v) for u, v, _ in points]
    found, oracles = run(problem, "pdhg", (x, y), variant="plain", weight=0.7, output=output)
    assert_same(found, expected)
    assert (oracles.calls.f, oracles.calls.g, oracles.calls.B) == (0, 0, 2 * STEPS)


def test_pdhg_accelerated(rng):
    problem, f, g, B, (x, y) = simple_problem(rng, 0.8, 0.0)
    norm = np.linalg.norm(B, 2)
    points = chambolle_pock(f, g, B, x, y, tau=1 / (0.7 * norm), sigma=0.7 / norm, gamma=0.8)
    # Chambolle and Pock (2016), Theorem 4: the weights of the average are sigma_n / sigma_0.
    expected = means(points, [sigma for _, _, sigma in points])
    assert_same(run(problem, "pdhg", (x, y), variant="accelerated", weight=0.7)[0], expected)


def test_pdhg_accelerated_by_g(rng):
    problem, f, g, B, (x, y) = simple_problem(rng, 0.0, 0.5)
    norm = np.linalg.norm(B, 2)
    # The same problem with the players exchanged: min over y of g + max over x of <x, -B^T y> - f.
    points = chambolle_pock(g, f, -B.T, y, x, tau=0.7 / norm, sigma=1 / (0.7 * norm), gamma=0.5)
    expected = means([(u, v) for v, u, _ in points], [sigma for _, _, sigma in points])
    assert_same(run(problem, "pdhg", (x, y), variant="accelerated", weight=0.7)[0], expected)


def test_pdhg_linear(rng):
    problem, f, g, B, (x, y) = simple_problem(rng, 0.8, 0.5)
    norm = np.linalg.norm(B, 2)
    q = 0.8 * 0.5 / norm**2
    m = 0.5 * (q + math.sqrt(q * q + 4 * q))
    assert (m / 0.8) * (m / 0.5) * norm**2 == pytest.approx(1 + m)
    points = chambolle_pock(f, g, B, x, y, tau=m / 0.8, sigma=m / 0.5, theta=1 / (1 + m))
    expected = means(points, [(1 + m) ** n for n in range(STEPS)])
    assert_same(run(problem, "pdhg", (x, y), variant="linear")[0], expected)


@pytest.mark.parametrize("spread", [0.0, 3.0])
def test_pdhg_restarted(rng, spread):
    problem, f, g, B, (x, y) = simple_problem(rng, 0.0, 0.0)
    if spread:
        # Rows and columns of very different sizes: every entry has a step of its own.
        B = np.exp(spread * rng.standard_normal((5, 1))) * B * np.exp(spread * rng.standard_normal(7))
        problem = ss.SaddleProblem(problem.f, problem.g, B, problem.X, problem.Y)
    driven = Driven(problem, "pdhg", (x, y), 1e-3, variant="restarted", weight=0.7)
    measure, norm, found = make_measure(driven.oracles), driven.state.norm, []
    s, t = measure.x * np.ones(7), measure.y * np.ones(5)
    assert (np.ptp(s) > 0.0 and np.ptp(t) > 0.0) or not spread
    true = np.linalg.norm(np.sqrt(t)[:, None] * B * np.sqrt(s), 2)
    assert 0.97 * true <= norm <= 1.03 * true
    expected = restarted_halpern(f, g, B, x, y, 0.7, norm, s, t)
    for _ in range(STEPS):
        driven.step()
        found.append(driven.point)
    assert 1 < driven.state.restarts < STEPS and driven.state.norm == norm
    # Rounding grows over some 300 steps.
    assert_same(found, expected, 1e-9)


def test_a_norm_that_was_taken_too_low_is_raised_by_what_steps_show(rng):
    problem, *_, start = simple_problem(rng, 0.0, 0.0)
    driven = Driven(problem, "pdhg", start, 1e-3, variant="restarted")
    norm, driven.state.norm = driven.state.norm, 0.2 * driven.state.norm
    driven.step(40)
    assert 0.8 * norm <= driven.state.norm <= 1.05 * norm
    assert driven.gap < 1e-6


def test_pdhg_takes_the_variant_that_the_moduli_allow(rng):
    for q_x, q_y, variant in ((0.0, 0.0, "restarted"), (1.0, 0.0, "accelerated"), (1.0, 1.0, "linear")):
        problem, *_, start = simple_problem(rng, q_x, q_y)
        driven = Driven(problem, "pdhg", start, 1e-3)
        assert driven.method.notes(driven.state, driven.facts)[0].startswith(f"variant {variant},")


@pytest.mark.parametrize("costly_g", [False, True])
def test_condat_vu(rng, costly_g):
    A, b, B = rng.standard_normal((9, 7)), rng.standard_normal(9), rng.standard_normal((5, 7))
    C, d = rng.standard_normal((6, 5)), rng.standard_normal(6)
    g = ss.functions.LeastSquares(C, d) if costly_g else ss.functions.Power(0.0, weight=0.2)
    problem = ss.SaddleProblem(
        f=ss.functions.LeastSquares(A, b),
        g=g,
        B=B,
        X=ss.domains.Box(-1.0, 1.0, shape=7),
        Y=ss.domains.Box(-1.0, 1.0, shape=5),
    )
    L_f, L_g = np.linalg.norm(A, 2) ** 2, np.linalg.norm(C, 2) ** 2 if costly_g else 0.0
    norm = np.linalg.norm(B, 2)
    start = (rng.uniform(-1, 1, 7), rng.uniform(-1, 1, 5))
    expected = condat(
        lambda x: A.T @ (A @ x - b),
        Block(w=0.0 if costly_g else 0.2, low=-1.0, high=1.0),
        B,
        *start,
        tau=1 / (L_f + 0.4 * norm),
        sigma=1 / (L_g + norm / 0.4),
        project=lambda x: np.clip(x, -1, 1),
        g_gradient=(lambda y: C.T @ (C @ y - d)) if costly_g else None,
    )
    found, oracles = run(problem, "condat-vu", start, weight=0.4, output="last")
    assert_same(found, expected)
    assert_same(run(problem, "condat-vu", start, weight=0.4)[0], means(expected, np.ones(STEPS)))
    assert (oracles.calls.f, oracles.calls.g, oracles.calls.B) == (STEPS, STEPS if costly_g else 0, 2 * STEPS)


@pytest.mark.parametrize(("cg_steps", "part"), [(5, 0.1), (3, 1e-9)])
def test_admm(rng, cg_steps, part):
    A, b, B = rng.standard_normal((9, 7)), rng.standard_normal(9), rng.standard_normal((5, 7))
    f = ss.functions.LeastSquares(A, b, ridge=0.1)
    Y = ss.domains.Box(-0.5, 0.5, shape=5)
    problem = ss.SaddleProblem(f=f, g=ss.functions.Power(0.0, weight=0.1), B=B, X=ss.domains.FullSpace(7), Y=Y)
    start = (rng.standard_normal(7), rng.uniform(-0.5, 0.5, 5))
    g = Block(w=0.1, low=-0.5, high=0.5)
    expected = admm(A.T @ A + 0.1 * np.eye(7), -A.T @ b, g, B, *start, 0.6, cg_steps, part)
    found, oracles = run(problem, "admm", start, penalty=0.6, cg_steps=cg_steps, cg_tolerance=part)
    # Residuals are updated here and computed afresh there; CG amplifies the difference.
    assert_same(found, expected, 1e-10)
    # One CG step: one product with the Hessian (one gradient) and two products. At the start one such product more, and
    # a gradient at 0, of which A 0 is known.
    taken = oracles.calls.f - 1.5
    assert 2 + STEPS + 2 * taken == oracles.calls.B
    assert cg_steps == 5 or taken == 3 * STEPS


def test_admm_candidates_know_the_value_and_the_product(rng):
    A, b, B = rng.standard_normal((9, 7)), rng.standard_normal(9), rng.standard_normal((5, 7))
    f = ss.functions.LeastSquares(A, b) + ss.functions.Quadratic(0.3)
    Y = ss.domains.Box(-0.5, 0.5, shape=5)
    problem = ss.SaddleProblem(f=f, g=ss.functions.Zero(), B=B, X=ss.domains.FullSpace(7), Y=Y)
    driven = Driven(problem, "admm")
    driven.step(30)
    (candidate,) = driven.candidates
    # The quadratic is the simple part; the candidate holds the value of the rest.
    assert candidate.value == pytest.approx(0.5 * np.sum((A @ candidate.x - b) ** 2), rel=1e-12)
    assert np.allclose(candidate.Bx, B @ candidate.x, rtol=0, atol=1e-12)
    assert np.allclose(candidate.linearisation.gradient, A.T @ (A @ candidate.x - b), rtol=0, atol=1e-11)


def ring_of(nodes):
    """Edge-node matrix of a ring: B^T B is the graph Laplacian."""
    return np.eye(nodes) - np.roll(np.eye(nodes), 1, axis=1)


def test_opapc_on_a_ring(rng):
    nodes = 12
    B, q, c = ring_of(nodes), rng.uniform(1.0, 20.0, nodes), rng.standard_normal(nodes)
    f = ss.functions.Quadratic(q) + ss.functions.Linear(c)
    Y = ss.domains.Ball(100.0, shape=nodes)
    problem = ss.SaddleProblem(f=f, g=ss.functions.Zero(), B=B, X=ss.domains.FullSpace(nodes), Y=Y)
    x = rng.standard_normal(nodes)
    expected = opapc(lambda v: q * v + c, B.T @ B, np.zeros(nodes), x, q.max(), q.min())
    found, oracles = run(problem, "opapc", (x, np.zeros(nodes)))
    assert_same([(u, B.T @ v) for u, v in found], expected, 1e-11)
    chi = np.linalg.eigvalsh(B.T @ B)
    T = math.floor(math.sqrt(chi[-1] / chi[1]))
    assert T > 2
    assert (oracles.calls.f, oracles.calls.B) == (STEPS, 1 + 2 * T * STEPS)


def test_opapc_with_a_right_hand_side(rng):
    B, q, c = rng.standard_normal((4, 9)), rng.uniform(1.0, 5.0, 9), rng.standard_normal(9)
    inside = rng.standard_normal(9)
    g = ss.functions.Linear(B @ inside)
    f = ss.functions.Quadratic(q) + ss.functions.Linear(c)
    Y = ss.domains.Ball(1000.0, shape=4)
    problem = ss.SaddleProblem(f=f, g=g, B=B, X=ss.domains.FullSpace(9), Y=Y)
    expected = opapc(lambda v: q * v + c, B.T @ B, inside, np.zeros(9), q.max(), q.min())
    found, _ = run(problem, "opapc", problem.start())
    assert_same([(u, B.T @ v) for u, v in found], expected, 1e-10)


def test_apdg(rng):
    B, q, p = rng.standard_normal((5, 7)), rng.uniform(0.5, 9.0, 7), rng.uniform(2.0, 3.0, 5)
    a, b = rng.standard_normal(7), rng.standard_normal(5)
    problem = ss.SaddleProblem(
        f=ss.functions.Quadratic(q) + ss.functions.Linear(a),
        g=ss.functions.Quadratic(p) + ss.functions.Linear(b),
        B=B,
        X=ss.domains.FullSpace(7),
        Y=ss.domains.FullSpace(5),
    )
    start = (rng.standard_normal(7), rng.standard_normal(5))
    expected = apdg(
        lambda x: q * x + a, lambda y: p * y + b, B, *start, q.min(), p.min(), q.max(), p.max()
    )  # fmt: skip
    found, oracles = run(problem, "apdg", start)
    assert_same(found, expected)
    assert (oracles.calls.f, oracles.calls.g, oracles.calls.B) == (STEPS, STEPS, 2 * STEPS + 1)


def test_gradient_sliding(rng):
    A, b, B = rng.standard_normal((9, 7)), rng.standard_normal(9), 0.3 * rng.standard_normal((5, 7))
    X, Y = ss.domains.Ball(1.5, shape=7), ss.domains.Box(-0.2, 0.2, shape=5)
    problem = ss.SaddleProblem(f=ss.functions.LeastSquares(A, b), g=ss.functions.Quadratic(0.5), B=B, X=X, Y=Y)
    start = problem.start()
    planned = Driven(problem, "gradient-sliding", start, 1e-2).state
    N, D = planned.planned, planned.D
    assert N > STEPS
    assert D <= 1.5
    L, M = np.linalg.norm(A, 2) ** 2, np.linalg.norm(B, 2) * 0.4 * math.sqrt(5)
    expected = gradient_sliding(
        lambda x: A.T @ (A @ x - b),
        lambda v: np.clip(v / 0.5, -0.2, 0.2),
        B,
        start[0],
        lambda x: x * min(1.0, 1.5 / np.linalg.norm(x)),
        *(L, M, D, N, STEPS),
    )
    found, oracles = run(problem, "gradient-sliding", start, tol=1e-2)
    assert_same(found, expected, 1e-10)
    # One more for the distance to the solution; the first step knows A 0.
    assert oracles.calls.f == STEPS + 0.5
    assert oracles.calls.B > 4 * STEPS


def test_gradient_sliding_plans_again_when_its_steps_are_used_up(rng):
    A, b = rng.standard_normal((9, 7)), rng.standard_normal(9)
    X, Y = ss.domains.Ball(1.5, shape=7), ss.domains.Box(-0.2, 0.2, shape=5)
    zero, B = ss.functions.Zero(), 0.3 * rng.standard_normal((5, 7))
    problem = ss.SaddleProblem(f=ss.functions.LeastSquares(A, b), g=zero, B=B, X=X, Y=Y)
    driven = Driven(problem, "gradient-sliding", problem.start(), 1.0)
    planned = driven.state.planned
    driven.step(planned + 1)
    assert (driven.state.planned, driven.state.k) == (2 * planned, 1)


def test_universal_primal_dual(rng):
    problem, f, g, B, (_, y) = simple_problem(rng, 0.8, 0.0)
    expected = universal_primal_dual(f, g, B, y, M=0.05, epsilon=1e-3)
    found, oracles = run(problem, "universal-primal-dual", problem.start((np.zeros(7), y)), curvature=0.05)
    assert_same(found, expected, 1e-11)
    assert oracles.calls.f == oracles.calls.g == 0
    # One product and one adjoint an iteration, one of each at the start, one adjoint per doubling.
    assert 2 * STEPS + 2 < oracles.calls.B < 2 * STEPS + 2 + 20


@pytest.mark.parametrize("side", ["primal", "dual"])
def test_l_bfgs(rng, side):
    A, b, B = rng.standard_normal((60, 40)), rng.standard_normal(60), rng.standard_normal((30, 40))
    smooth, X = ss.functions.LeastSquares(A, b), ss.domains.Box(-0.1, 0.2, shape=40)
    strong, Y = ss.functions.Quadratic(0.5), ss.domains.Box(-1.0, 1.0, shape=30)
    if side == "primal":
        problem = ss.SaddleProblem(f=smooth, g=strong, B=B, X=X, Y=Y)
    else:
        problem = ss.SaddleProblem(f=strong, g=smooth, B=-B.T, X=Y, Y=X)

    def primal(x):
        y = np.clip(B @ x / 0.5, -1, 1)
        r = A @ x - b
        return 0.5 * r @ r + y @ (B @ x) - 0.25 * y @ y, A.T @ r + B.T @ y

    points = l_bfgs(primal, np.zeros(40), [(-0.1, 0.2)] * 40)
    assert len(points) == STEPS
    pairs = [(x, np.clip(B @ x / 0.5, -1, 1)) for x in points]
    expected = pairs if side == "primal" else [(y, x) for x, y in pairs]
    found, oracles = run(problem, "l-bfgs", problem.start(), side=side)
    # Line searches amplify the last bit of values that are summed in another order.
    assert_same(found, expected, 1e-9)
    gradients = oracles.calls.f if side == "primal" else oracles.calls.g
    assert STEPS < gradients < STEPS + 15
    # A 0 is known.
    assert 2 * math.ceil(gradients) == oracles.calls.B


def test_l_bfgs_leaves_no_thread_behind(rng):
    A, b, B = rng.standard_normal((60, 40)), rng.standard_normal(60), rng.standard_normal((30, 40))
    X, Y = ss.domains.FullSpace(40), ss.domains.Box(-1.0, 1.0, shape=30)
    problem = ss.SaddleProblem(f=ss.functions.LeastSquares(A, b), g=ss.functions.Quadratic(0.5), B=B, X=X, Y=Y)
    before = set(threading.enumerate())
    result = ss.solve(problem, tol=1e-3, method="l-bfgs")
    assert result.status is ss.Status.SOLVED
    gc.collect()
    for thread in set(threading.enumerate()) - before:
        thread.join(timeout=60.0)
    assert set(threading.enumerate()) <= before


def test_l_bfgs_passes_errors_of_the_oracles_on():
    def broken(x):
        raise ZeroDivisionError("from the user's code")

    f = ss.functions.Custom(gradient=broken, value=lambda x: 0.0, smoothness=ss.Holder(1.0, 1.0))
    box = ss.domains.Box(-1.0, 1.0, shape=2)
    problem = ss.SaddleProblem(f=f, g=ss.functions.Quadratic(1.0), B=np.eye(2), X=box, Y=box)
    driven = Driven(problem, "l-bfgs")
    with pytest.raises(ZeroDivisionError, match="user's code"):
        driven.step()
