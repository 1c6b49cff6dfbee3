"""Each method against its own rate on a problem that meets its assumptions; refusals where they are not met."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

import saddleslide as ss
from arena import Driven
from saddleslide.facts.facts import Facts
from saddleslide.methods.opapc import apply_polynomial
from saddleslide.oracles.oracles import Oracles
from support import gathered

ZERO = ss.functions.Zero()


def gaps(problem, name, marks, tol=1e-6, **options):
    """Certified gaps of the points after given numbers of iterations, and the state at the end."""
    driven = Driven(problem, name, None, tol, **options)
    assert driven.method.lacks(driven.facts) == []
    found, done = [], 0
    for mark in marks:
        driven.step(mark - done)
        done = mark
        found.append(driven.gap)
    return np.array(found), driven.state


def game(seed=0, n=20):
    simplex = ss.domains.Simplex(n)
    B = np.random.default_rng(seed).standard_normal((n, n))
    return ss.SaddleProblem(f=ZERO, g=ZERO, B=B, X=simplex, Y=simplex)


def one_sided(seed=0):
    """Strongly convex and nonsmooth in x, bilinear in y: a gap that falls like 1 / N^2 and no faster."""
    rng = np.random.default_rng(seed)
    f = ss.functions.Power(0.0, weight=0.2, tilt=rng.standard_normal(40), quadratic=np.full(40, 0.5))
    X, Y = ss.domains.FullSpace(40), ss.domains.Ball(3.0, shape=60)
    return ss.SaddleProblem(f=f, g=ZERO, B=rng.standard_normal((60, 40)), X=X, Y=Y)


def clipped(seed=0):
    """A strongly convex quadratic on a box, whose tilted minimum is a projection; bilinear in y."""
    rng = np.random.default_rng(seed)
    f = ss.functions.Quadratic(np.full(40, 0.5)) + ss.functions.Linear(rng.standard_normal(40))
    X, Y = ss.domains.Box(-1.0, 0.5, shape=40), ss.domains.Ball(3.0, shape=60)
    return ss.SaddleProblem(f=f, g=ZERO, B=rng.standard_normal((60, 40)), X=X, Y=Y)


def two_sided(seed=0, mu_x=0.1, mu_y=0.2):
    """Quadratics with moduli mu_x and mu_y on the full space."""
    rng = np.random.default_rng(seed)
    q, p = np.linspace(mu_x, 3.0, 30), np.linspace(mu_y, 1.0, 20)
    f = ss.functions.Quadratic(q) + ss.functions.Linear(rng.standard_normal(30))
    g = ss.functions.Quadratic(p) + ss.functions.Linear(rng.standard_normal(20))
    X, Y = ss.domains.FullSpace(30), ss.domains.FullSpace(20)
    return ss.SaddleProblem(f=f, g=g, B=rng.standard_normal((20, 30)) / 10, X=X, Y=Y)


def tomographic(seed=0, ridge=0.01):
    """Least squares with a small modulus, a total variation of an ordered vector."""
    rng = np.random.default_rng(seed)
    f = ss.functions.LeastSquares(rng.standard_normal((50, 40)) / 7, rng.standard_normal(50), ridge=ridge)
    B = np.eye(40)[:-1] - np.eye(40, k=1)[:-1]
    return ss.SaddleProblem(f=f, g=ZERO, B=B, X=ss.domains.FullSpace(40), Y=ss.domains.Box(-0.1, 0.1, shape=39))


def consensus(nodes=12, seed=0):
    rng = np.random.default_rng(seed)
    B = np.eye(nodes) - np.roll(np.eye(nodes), 1, axis=1)
    f = ss.functions.Quadratic(np.geomspace(1.0, 30.0, nodes)) + ss.functions.Linear(rng.standard_normal(nodes))
    return ss.SaddleProblem(f=f, g=ZERO, B=B, X=ss.domains.FullSpace(nodes), Y=ss.domains.Ball(50.0, shape=nodes))


MARKS = np.array([64, 128, 256, 512, 1024])


def test_pdhg_plain_keeps_its_bound():
    problem = game()
    found, _ = gaps(problem, "pdhg", MARKS, variant="plain")
    x, y = problem.start()
    bound = problem.coupling.norm.upper * problem.X.radius(x) * problem.Y.radius(y) / MARKS
    assert (found <= bound).all()


def test_pdhg_accelerated_keeps_its_bound():
    problem = one_sided()
    found, state = gaps(problem, "pdhg", MARKS, variant="accelerated", weight=0.5)
    norm = problem.coupling.norm.upper
    solution = ss.solve(problem, tol=1e-8)
    # Any weight: |dx|^2 / (2 tau_0 T_N) + |dy|^2 / (2 sigma_0 T_N), the y that matters at most 2 * 3 away.
    start = 0.5 * norm * (0.5 * np.sum((solution.x) ** 2) * 4 + 3.0**2 / 0.5)
    growth = 2 * 0.5 / (norm * 0.5) / (2 + 0.5 / (norm * 0.5))
    assert (found <= start / (MARKS + growth * MARKS * (MARKS - 1) / 2)).all()
    assert state.variant == "accelerated"


def test_pdhg_linear_contracts_at_its_rate():
    problem = two_sided()
    # Not beyond 120 steps: there the gap is rounding.
    marks = np.array([20, 60, 120])
    found, state = gaps(problem, "pdhg", marks, variant="linear")
    per_step = (found[-1] / found[0]) ** (1.0 / (marks[-1] - marks[0]))
    assert per_step <= state.theta * 1.001
    assert found[-1] < 1e-3 * found[0]


def test_pdhg_restarts_reach_an_accuracy_that_averages_do_not():
    problem = game(3)
    restarted = ss.solve(problem, tol=1e-10, method="pdhg")
    assert restarted.status is ss.Status.SOLVED
    averaged, _ = gaps(problem, "pdhg", [restarted.calls.B // 2], variant="plain")
    assert averaged[0] > 1e4 * restarted.gap


def test_condat_vu_keeps_its_bound():
    problem = tomographic()
    found, state = gaps(problem, "condat-vu", MARKS)
    solution = ss.solve(problem, tol=1e-9)
    # The point of X that the lower bound is attained at depends on y: a ball around 0 that holds all of them.
    reach_x = 2.0 * np.linalg.norm(solution.x) + 5.0
    bound = (state.weight_x * reach_x**2 + state.weight_y * problem.Y.radius(np.zeros(39)) ** 2) / (2 * MARKS)
    assert (found <= bound).all()


def test_admm_with_exact_steps_keeps_the_bound_of_he_and_yuan():
    problem = tomographic()
    exact = {"penalty": 0.3, "cg_steps": 60, "cg_tolerance": 1e-12}
    found, state = gaps(problem, "admm", MARKS[:3], output="average", **exact)
    solution = ss.solve(problem, tol=1e-9)
    Bx, y = problem.coupling.forward(solution.x), 2.0 * problem.Y.radius(np.zeros(39))
    assert (found <= (0.3 * 9 * (Bx @ Bx) + y**2 / 0.3) / (2 * MARKS[:3])).all()
    assert state.rho == 0.3


def test_admm_converges_linearly_on_a_smooth_strongly_convex_problem():
    f = ss.functions.LeastSquares(np.random.default_rng(0).standard_normal((50, 30)) / 7, np.ones(50))
    problem = two_sided()
    problem = ss.SaddleProblem(f=f, g=problem.g, B=problem.B, X=problem.X, Y=problem.Y)
    found, _ = gaps(problem, "admm", np.array([5, 10, 15, 20]))
    assert found[1] < 0.1 * found[0]
    assert found[2] < 0.1 * found[1]


def test_admm_preconditioned_needs_fewer_gradients():
    rng = np.random.default_rng(0)
    shape = (16, 16)
    rows, columns = np.indices(shape).reshape(2, -1)
    distance = np.hypot(rows[:, None] - rows[None], columns[:, None] - columns[None])
    A = np.exp(-0.5 * (distance / 1.2) ** 2)
    f = ss.functions.LeastSquares(A / np.linalg.norm(A, 2), rng.standard_normal(256), ridge=1e-4, x_shape=shape)
    D = ss.operators.FiniteDifferences(shape)
    Y = ss.domains.Box(-1e-2, 1e-2, shape=D.y_shape)
    problem = ss.SaddleProblem(f=f, g=ZERO, B=D, X=ss.domains.FullSpace(shape), Y=Y)
    used = {}
    for kind in ("none", "spectral"):
        result = ss.solve(problem, rtol=1e-5, method="admm", options={"preconditioner": kind})
        assert result.status is ss.Status.SOLVED
        used[kind] = result.calls.f - result.certificate_calls.f
    assert used["spectral"] < 0.5 * used["none"]


def distances(problem, name, marks, solution):
    driven, found, done = Driven(problem, name, None, 1e-6), [], 0
    for mark in marks:
        driven.step(mark - done)
        done = mark
        found.append(sum(float(np.sum((p - q) ** 2)) for p, q in zip(driven.point, solution, strict=True)))
    return np.array(found), driven.state


def quadratic_solution(problem):
    """The saddle point of quadratics on the full space, from one linear system."""
    n, m = problem.X.size, problem.Y.size
    B = problem.coupling.dense()
    H = np.array([problem.f.hessian_product(e) for e in np.eye(n)])
    G = np.array([problem.g.hessian_product(e) for e in np.eye(m)])
    right = -np.concatenate([problem.f.gradient(np.zeros(n)), problem.g.gradient(np.zeros(m))])
    z = np.linalg.lstsq(np.block([[H, B.T], [-B, G]]), right, rcond=None)[0]
    return z[:n], z[n:]


def test_opapc_contracts_at_its_rate():
    problem = consensus()
    marks = np.array([40, 80, 120, 160])
    found, state = distances(problem, "opapc", marks, quadratic_solution(problem))
    chi = state.condition
    rate = 0.25 * min(math.sqrt(state.mu / (state.L * chi)), 1.0 / chi)
    assert (found[-1] / found[0]) ** (1.0 / 120) <= 1.0 / (1.0 + rate)
    gap, _ = gaps(problem, "opapc", marks)
    assert gap[-1] < 1e-4 * gap[0]


def test_opapc_polynomial_has_the_spectrum_it_promises():
    problem = consensus(30)
    B, P, oracles = problem.coupling, replace(Driven(problem, "opapc").state, b=np.zeros(30)), Oracles(problem)
    matrix = np.array([apply_polynomial(P, oracles, e)[1] for e in np.eye(30)]).T
    values = np.linalg.eigvalsh(0.5 * (matrix + matrix.T))
    assert np.abs(matrix - matrix.T).max() < 1e-12
    assert values[0] == pytest.approx(0.0, abs=1e-12)
    assert values[-1] <= P.top + 1e-12
    assert values[-1] / values[1] <= P.condition * (1 + 1e-9)
    assert P.condition < 2.0 < (B.norm.upper / B.smallest_singular_value(positive=True).estimate) ** 2


def test_apdg_contracts_at_its_rate():
    problem = two_sided()
    marks = np.array([50, 200, 350, 500])
    found, state = distances(problem, "apdg", marks, quadratic_solution(problem))
    assert (found[-1] / found[0]) ** (1.0 / 450) <= state.constants.theta
    gap, _ = gaps(problem, "apdg", marks)
    assert (gap[-1] / gap[0]) ** (1.0 / 450) <= state.constants.theta


def test_gradient_sliding_keeps_its_bound():
    rng = np.random.default_rng(0)
    X, Y = ss.domains.Ball(1.0, shape=20), ss.domains.Box(-0.05, 0.05, shape=10)
    f, B = (
        ss.functions.LeastSquares(rng.standard_normal((30, 20)), rng.standard_normal(30)),
        rng.standard_normal((10, 20)),
    )
    problem = ss.SaddleProblem(f=f, g=ZERO, B=B, X=X, Y=Y)
    for tol in (1.0, 0.25, 0.0625):
        state = Driven(problem, "gradient-sliding", None, tol).state
        N = state.planned
        found, _ = gaps(problem, "gradient-sliding", [N], tol=tol)
        assert found[0] <= 6 * state.L * state.D**2 / (N * (N + 1)) <= tol


def test_universal_primal_dual_needs_no_strong_convexity():
    result = ss.solve(game(), tol=0.05, method="universal-primal-dual")
    assert result.status is ss.Status.SOLVED


def test_l_bfgs_reaches_rounding_on_the_primal_and_on_the_dual():
    problem = two_sided()
    for side in ("primal", "dual"):
        result = ss.solve(problem, tol=1e-10, method="l-bfgs", options={"side": side})
        assert result.status is ss.Status.SOLVED
        assert result.calls.B < 400


def test_l_bfgs_ends_when_scipy_does():
    result = ss.solve(two_sided(), tol=1e-300, method="l-bfgs")
    assert result.status in (ss.Status.NUMERICAL_LIMIT, ss.Status.COMPLETED)


@pytest.mark.parametrize(
    ("name", "problem", "tol", "options"),
    [
        ("pdhg", game(), 0.05, {"variant": "plain"}),
        ("pdhg", one_sided(), 1e-2, {}),
        ("pdhg", two_sided(), 1e-4, {}),
        ("condat-vu", tomographic(ridge=0.1), 0.2, {}),
        ("opapc", consensus(), 1e-3, {}),
        ("apdg", two_sided(), 1e-4, {}),
        ("universal-primal-dual", clipped(), 1e-2, {}),
        ("admm", tomographic(ridge=0.1), 1e-2, {}),
    ],
)
def test_predictions_are_upper_bounds_of_what_is_used(name, problem, tol, options):
    predicted = ss.methods.by_name[name](**options).calls(Facts(problem), tol)
    result = ss.solve(problem, tol=tol, method=name, options=options)
    assert result.status is ss.Status.SOLVED
    own = {letter: getattr(result.calls, letter) - getattr(result.certificate_calls, letter) for letter in "fgB"}
    # Inspections come 10 % apart; a method may spend a few calls on its start.
    assert all(own[letter] <= 1.1 * getattr(predicted, letter) + 8 for letter in "fgB")


def hard():
    """Nonsmooth f and g without proximal steps, no strong convexity, both sets unbounded."""
    rough = ss.Holder(0.0, 2.0)
    f = ss.functions.Custom(gradient=np.sign, value=lambda x: float(np.abs(x).sum()), smoothness=rough)
    free = ss.domains.FullSpace(3)
    return ss.SaddleProblem(f=f, g=f, B=np.eye(3), X=free, Y=free)


@gathered(
    ("name", "words"),
    [
        ("pdhg", ("f = Custom", "g = Custom")),
        ("condat-vu", ("f has a part", "g has a part")),
        ("admm", ("not quadratic", "g = Custom")),
        ("opapc", ("f has a Hölder gradient", "strong convexity", "not linear")),
        ("l-bfgs", ("primal: f has", "primal: g = ", "dual: g has", "dual: f = ")),
        ("apdg", ("f has a Hölder", "g has a Hölder", "f = Custom", "g = Custom")),
        ("gradient-sliding", ("f has a part", "minimum of g", "Y = FullSpace")),
        ("universal-primal-dual", ("minimum of f", "g = Custom", "X = FullSpace")),
    ],
)
def test_a_problem_that_breaks_the_assumptions_is_refused_with_all_that_is_missing(name, words):
    with pytest.raises(ss.errors.InputError) as refused:
        ss.solve(hard(), tol=1e-2, method=name)
    assert all(word in str(refused.value) for word in (name, *words))


def test_variants_and_options_are_refused_where_they_do_not_apply():
    with pytest.raises(ss.errors.InputError, match="neither f nor g"):
        ss.solve(game(), tol=1e-2, method="pdhg", options={"variant": "accelerated"})
    with pytest.raises(ss.errors.InputError, match="expected both > 0"):
        ss.solve(one_sided(), tol=1e-2, method="pdhg", options={"variant": "linear"})
    with pytest.raises(ss.errors.InputError, match="cosine"):
        ss.solve(tomographic(), tol=1e-2, method="admm", options={"preconditioner": "spectral"})
    with pytest.raises(ss.errors.InputError, match="X = Box"):
        boxed = ss.SaddleProblem(
            f=ZERO, g=ZERO, B=np.eye(2), X=ss.domains.Box(0, 1, shape=2), Y=ss.domains.FullSpace(2)
        )
        ss.solve(boxed, tol=1e-2, method="admm")


def test_opapc_flags_a_multiplier_outside_Y():
    problem = consensus()
    tight = ss.SaddleProblem(f=problem.f, g=ZERO, B=problem.B, X=problem.X, Y=ss.domains.Ball(1e-3, shape=12))
    result = ss.solve(tight, tol=1e-8, method="opapc", max_steps=400)
    assert result.status is ss.Status.STEP_LIMIT
    assert result.gap > 1e-8
