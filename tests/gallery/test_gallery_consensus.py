"""Agents on graphs against a centralised solve; gossip matrices against their eigenvalues."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse as sp

import saddleslide as ss
from saddleslide.errors import InputError
from support import gathered, need

nx = need("networkx")

GRAPHS = {
    "ring": nx.cycle_graph(9),
    "path": nx.path_graph(6),
    "star": nx.star_graph(6),
    "complete": nx.complete_graph(5),
    "random": nx.erdos_renyi_graph(14, 0.5, seed=3),
    "grid": nx.grid_2d_graph(3, 4),
}


def local_data(n, seed, d=3):
    rng = np.random.default_rng(seed)
    return [(rng.standard_normal((8, d)), rng.standard_normal(8) + i / n) for i in range(n)]


@pytest.mark.parametrize("method", ["auto", "opapc"])
@gathered("name", GRAPHS)
def test_least_squares_on_a_graph_is_the_centralised_solution(name, method):
    graph = GRAPHS[name]
    data = local_data(len(graph), len(name))
    problem = ss.gallery.consensus([ss.functions.LeastSquares(A, b, ridge=0.5) for A, b in data], graph)
    result = ss.solve(problem, tol=1e-6, method=method, max_steps=3000)
    solution = problem.read(result)
    A, b = np.vstack([A for A, _ in data]), np.concatenate([b for _, b in data])
    ridge = 0.5 * len(graph)
    x = np.linalg.solve(A.T @ A + ridge * np.eye(3), A.T @ b)
    minimum = 0.5 * np.sum((A @ x - b) ** 2) + 0.5 * ridge * x @ x
    assert result.status is ss.Status.SOLVED and solution.inside
    assert result.lower - 1e-10 <= minimum <= solution.objective + 1e-10
    # The agents together are as good as the gap says.
    assert problem.f.value(result.x) - minimum <= result.gap + 1e-10
    assert solution.point == pytest.approx(x, abs=1e-3)
    assert solution.consensus_error <= 1e-5
    assert solution.local_gradients == result.calls.f and solution.rounds == result.calls.B / 2


@gathered("seed", range(5))
def test_logistic_agents_find_the_minimum_of_lbfgs(seed):
    rng = np.random.default_rng(seed)
    data = [(rng.standard_normal((10, 2)), np.sign(rng.standard_normal(10))) for _ in range(5)]
    problem = ss.gallery.consensus(
        [ss.functions.Logistic(A, labels, ridge=0.2) for A, labels in data], nx.cycle_graph(5)
    )
    solution = problem.read(ss.solve(problem, tol=1e-6, max_steps=3000))
    A, labels = np.vstack([A for A, _ in data]), np.concatenate([labels for _, labels in data])

    def joint(x):
        margin = -labels * (A @ x)
        return np.logaddexp(0.0, margin).sum() + 0.5 * x @ x, A.T @ (-labels / (1 + np.exp(-margin))) + x

    best = scipy.optimize.minimize(joint, np.zeros(2), jac=True, method="L-BFGS-B", options={"gtol": 1e-10})
    assert solution.result.lower - 1e-10 <= best.fun
    assert solution.objective == pytest.approx(best.fun, abs=2e-6)
    assert solution.point == pytest.approx(best.x, abs=1e-3)


@gathered("name", GRAPHS)
def test_gossip_is_the_square_root_of_the_laplacian(name):
    W = nx.laplacian_matrix(GRAPHS[name]).toarray().astype(float)
    B = ss.operators.Gossip(W, 2)
    x = np.random.default_rng(0).standard_normal((len(W), 2))
    # The pair of products that a method makes of u = B^T y is one exchange with the neighbours.
    assert B.adjoint(B.forward(x)) == pytest.approx(W @ x, abs=1e-12)
    assert B.forward(np.ones((len(W), 2))) == pytest.approx(np.zeros((len(W), 2)), abs=1e-13)
    values = np.sort(np.linalg.eigvalsh(W))
    assert B.norm.upper**2 >= values[-1] * (1 - 1e-14) and B.norm.estimate**2 == pytest.approx(values[-1])
    smallest = B.smallest_singular_value(positive=True)
    assert smallest.lower <= smallest.estimate == pytest.approx(np.sqrt(values[1]), rel=1e-6)
    ss.operators.check_adjoint(B)


def test_every_form_of_one_graph_is_the_same_problem():
    graph = GRAPHS["random"]
    forms = [graph, nx.to_numpy_array(graph), nx.adjacency_matrix(graph), nx.laplacian_matrix(graph).toarray()]
    local = [ss.functions.Quadratic(1.0) + ss.functions.Linear([float(i)]) for i in range(len(graph))]
    solutions = []
    for form in forms:
        problem = ss.gallery.consensus(local, form)
        solutions.append(problem.read(ss.solve(problem, tol=1e-6)))
    assert all((solution.points == solutions[0].points).all() for solution in solutions)
    assert solutions[0].point == pytest.approx([-6.5], abs=1e-4)


def test_no_metric_mixes_the_agents():
    local = [ss.functions.LeastSquares(np.eye(4), np.ones(4)) for _ in range(4)]
    assert ss.adaptive_plan(ss.gallery.consensus(local, nx.path_graph(4)), tol=1e-3).metric in ("blocks", "diagonal")


def test_a_bound_that_is_too_small_is_reported():
    local = [ss.functions.Quadratic(1.0) + ss.functions.Linear([10.0 * i]) for i in range(4)]
    problem = ss.gallery.consensus(local, nx.path_graph(4), bound=1.0)
    solution = problem.read(ss.solve(problem, tol=1e-6))
    assert not solution.inside and solution.consensus_error > 1.0


@gathered(
    ("graph", "words"),
    [
        (nx.Graph([(0, 1), (2, 3)]), r"falls into 2 parts, such as agents \[0, 1\] and \[2, 3\]"),
        (sp.csr_array((4, 4)), "falls into 4 parts"),
        (nx.path_graph(3), "4 functions for 3 agents"),
        (np.triu(np.ones((4, 4)), 1), "not symmetric"),
        (np.ones((4, 3)), "square"),
        (np.eye(4) * 2 - nx.to_numpy_array(nx.path_graph(4)), "expected 0, so that W 1 = 0"),
        (-nx.laplacian_matrix(nx.path_graph(4)).toarray(), "eigenvalue"),
        (nx.DiGraph([(0, 1), (1, 2), (2, 3)]), "directed"),
    ],
)
def test_graphs_that_can_not_agree_are_refused(graph, words):
    with pytest.raises(InputError, match=words):
        ss.gallery.consensus([ss.functions.Quadratic(1.0)] * 4, graph, shape=2)


def test_functions_of_different_shapes_or_none_are_refused():
    with pytest.raises(InputError, match="pass shape="):
        ss.gallery.consensus([ss.functions.Quadratic(1.0)] * 3, nx.path_graph(3))
    with pytest.raises(InputError, match=r"function 1 takes arrays of shape \(3,\); expected \(2,\)"):
        ss.gallery.consensus([ss.functions.Linear([1.0] * k) for k in (2, 3)], nx.path_graph(2))


@gathered("name", ["path", "ring", "random"])
def test_agents_that_agree_from_the_start_do_not_stall(name):
    # B sees nothing of the first step but rounding, which must not set the scale of the steps.
    graph = GRAPHS[name]
    A, b = local_data(1, 5)[0]
    problem = ss.gallery.consensus([ss.functions.LeastSquares(A, b, ridge=0.5)] * len(graph), graph)
    solution = problem.read(ss.solve(problem, tol=1e-8, max_steps=60))
    assert solution.result.success
    x = np.linalg.solve(A.T @ A + 0.5 * np.eye(3), A.T @ b)
    assert solution.point == pytest.approx(x, abs=1e-4)


def test_one_agent_and_what_are_no_functions_are_refused():
    q = ss.functions.Linear([1.0])
    with pytest.raises(InputError, match="received 1 agent; expected at least 2"):
        ss.gallery.consensus([q], np.zeros((1, 1)))
    with pytest.raises(InputError, match="functions is Linear; expected a list"):
        ss.gallery.consensus(q, nx.path_graph(2))
    with pytest.raises(InputError, match=r"function 1 is function; expected a function from ss\.functions"):
        ss.gallery.consensus([q, lambda x: x], nx.path_graph(2))


def test_blocks_add_up_and_their_constants_hold():
    parts = [ss.functions.Power(0.5), ss.functions.Power(0.5, weight=3.0), ss.functions.Power(0.5, weight=0.2)]
    f = ss.functions.Blockwise(parts, 4)
    rng = np.random.default_rng(0)
    box = ss.domains.Box(-1.0, 1.0, shape=(3, 4))
    condition = f.smoothness(box)
    for _ in range(200):
        x, z = rng.uniform(-1, 1, (3, 4)), rng.uniform(-1, 1, (3, 4)) * rng.random()
        gap = np.linalg.norm(f.gradient(x) - f.gradient(z))
        assert gap <= condition.H * np.linalg.norm(x - z) ** condition.nu * (1 + 1e-12)
    assert f.value(x) == pytest.approx(sum(part.value(x[i]) for i, part in enumerate(parts)))
    assert (f.value_and_gradient(x)[1] == f.gradient(x)).all()
    mixed = ss.functions.Blockwise([parts[0], ss.functions.Quadratic(2.0)], 4)
    assert mixed.smoothness(ss.domains.Box(-1.0, 1.0, shape=(2, 4))).nu == 0.5
    assert (
        ss.functions.Blockwise([ss.functions.Quadratic(1.0), ss.functions.Quadratic(2.0)], 2).strong_convexity(box) == 1
    )
