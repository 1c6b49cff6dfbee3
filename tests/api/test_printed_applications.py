"""The applications as the paper prints them, multipliers in the whole space, through `ss.solve` and nothing else."""

import numpy as np
import scipy.optimize
import scipy.sparse

import saddleslide as ss
from support import gathered

F, D = ss.functions, ss.domains
RTOL = 1e-4


def agrees(problem, value, x=None, **options):
    """Success at 1e-4, with bounds around the trusted value, and the trusted point."""
    result = ss.solve(problem, rtol=RTOL, max_steps=5000, **options)
    assert result.success, result
    slack = 1e-7 * max(abs(value), 1e-6)
    assert result.lower - slack <= value <= result.upper + slack, (value, result)
    assert result.upper - result.lower <= RTOL * max(abs(result.lower), abs(result.upper)) * (1.0 + 1e-9)
    if x is not None:
        assert np.linalg.norm(result.x - x) <= 0.02 * (1.0 + np.linalg.norm(x))
    return result


def bounded_least_squares(A, b, C, d, low):
    """min 1/2 |Ax - b|^2 with Cx = d and x >= low, by SciPy's SLSQP from a feasible point."""
    n = A.shape[1]
    found = scipy.optimize.minimize(
        lambda x: (0.5 * np.sum((A @ x - b) ** 2), A.T @ (A @ x - b)), np.linalg.lstsq(C, d, rcond=None)[0], jac=True,
        method="SLSQP", bounds=[(low, None)] * n, options={"ftol": 1e-14, "maxiter": 500},
        constraints={"type": "eq", "fun": lambda x: C @ x - d, "jac": lambda x: C},
    )  # fmt: skip
    assert found.success
    return found.fun, found.x


@gathered("low", (None, 0.0))
def test_linearly_constrained_optimization(low):
    """min f(x) over X with Ax = b; X the space or the orthant."""
    rng = np.random.default_rng(11)
    A, b, C = rng.standard_normal((14, 8)), rng.standard_normal(14), rng.standard_normal((3, 8))
    d = C @ np.abs(rng.standard_normal(8))
    X = D.FullSpace(8) if low is None else D.NonNegative(8)
    problem = ss.SaddleProblem(f=F.LeastSquares(A, b), g=F.Linear(d), B=C, X=X, Y=D.FullSpace(3))
    result = agrees(problem, *bounded_least_squares(A, b, C, d, low))
    assert np.linalg.norm(C @ result.x - d) <= 1e-2 * np.linalg.norm(d)


@gathered("bounded", (False, True))
def test_decentralized_optimization(bounded):
    """B = W x I for the Laplacian of a ring, f the mean of f_i, agents in R^d or in a box."""
    rng = np.random.default_rng(11)
    agents, d = 6, 3
    parts = [(rng.standard_normal((4, d)), rng.standard_normal(4)) for _ in range(agents)]
    ring = np.roll(np.eye(agents), 1, axis=1)
    W = 2.0 * np.eye(agents) - ring - ring.T
    f = (1.0 / agents) * F.Blockwise([F.LeastSquares(A, b) for A, b in parts], shape=d)
    shape = (agents, d)
    X = D.Box(-0.1, 0.1, shape=shape) if bounded else D.FullSpace(shape)
    B = ss.operators.as_operator(scipy.sparse.kron(W, scipy.sparse.eye_array(d)).tocsr(), x_shape=shape, y_shape=shape)
    problem = ss.SaddleProblem(f=f, g=F.Zero(), B=B, X=X, Y=D.FullSpace(shape))
    A, b = (np.concatenate(rows) for rows in zip(*parts, strict=True))
    side = 0.1 if bounded else np.inf
    best = scipy.optimize.lsq_linear(A, b, bounds=(-side, side), tol=1e-14)
    agrees(problem, best.cost / agents, np.tile(best.x, (agents, 1)))


def marginals(n):
    """Row sums and column sums of an n x n plan as one matrix."""
    eye = scipy.sparse.eye_array(n)
    return scipy.sparse.vstack(
        [scipy.sparse.kron(eye, np.ones((1, n))), scipy.sparse.kron(np.ones((1, n)), eye)]
    ).tocsr()


@gathered("case", ("printed", "orthant", "plain"))
def test_regularized_optimal_transport(case):
    """Squared Frobenius norm over all plans as printed, over plans >= 0, and without a regulariser."""
    rng = np.random.default_rng(11)
    n, B = 5, marginals(5)
    C, sums = rng.random((n, n)), np.concatenate([rng.dirichlet(np.ones(n)) for _ in range(2)])
    weight = 0.0 if case == "plain" else 0.3
    f = F.Linear(C.ravel()) + F.Quadratic(weight) if weight else F.Linear(C.ravel())
    X = D.FullSpace(n * n) if case == "printed" else D.NonNegative(n * n)
    problem = ss.SaddleProblem(f=f, g=F.Linear(sums), B=B, X=X, Y=D.FullSpace(2 * n))
    dense, x = B.toarray(), None
    if case == "plain":
        value = scipy.optimize.linprog(C.ravel(), A_eq=dense, b_eq=sums).fun
    elif case == "printed":
        system = np.block([[weight * np.eye(n * n), dense.T], [dense, np.zeros((2 * n, 2 * n))]])
        x = np.linalg.lstsq(system, np.concatenate([-C.ravel(), sums]), rcond=None)[0][: n * n]
        value = C.ravel() @ x + 0.5 * weight * x @ x
    else:
        # weight/2 |x + C/weight|^2 less a constant.
        root = np.sqrt(weight)
        value, x = bounded_least_squares(root * np.eye(n * n), -C.ravel() / root, dense[:-1], sums[:-1], 0.0)
        value -= 0.5 * np.sum(C**2) / weight
    agrees(problem, value, x)


@gathered("p", (2.0, 3.0))
def test_inverse_problems_with_powers(p):
    """1/2 |Ax - b|^2 + lambda/p |Dx|_p^p through the conjugate power, y in the whole space."""
    rng = np.random.default_rng(11)
    A, b, lam = rng.standard_normal((10, 8)), rng.standard_normal(10), 0.5
    steps = np.eye(8)[:-1] - np.eye(8, k=1)[:-1]
    q = p / (p - 1.0)
    g = F.Power(q - 1.0, weight=lam ** (1.0 - q))
    problem = ss.SaddleProblem(f=F.LeastSquares(A, b), g=g, B=steps, X=D.FullSpace(8), Y=D.FullSpace(7))

    def primal(x):
        r, s = A @ x - b, steps @ x
        slope = A.T @ r + lam * steps.T @ (np.sign(s) * np.abs(s) ** (p - 1.0))
        return 0.5 * r @ r + lam / p * np.sum(np.abs(s) ** p), slope

    found = scipy.optimize.minimize(primal, np.zeros(8), jac=True, method="BFGS", options={"gtol": 1e-11})
    agrees(problem, found.fun, found.x)


def test_matrix_games_with_regularisers_on_free_strategies():
    rng = np.random.default_rng(11)
    A = rng.standard_normal((6, 5))
    c, e = rng.standard_normal(5), rng.standard_normal(6)
    f, g = F.Quadratic(0.5) + F.Linear(c), F.Quadratic(0.2) + F.Linear(e)
    problem = ss.SaddleProblem(f=f, g=g, B=A, X=D.FullSpace(5), Y=D.FullSpace(6))
    z = np.linalg.solve(np.block([[0.5 * np.eye(5), A.T], [A, -0.2 * np.eye(6)]]), np.concatenate([-c, e]))
    x, y = z[:5], z[5:]
    value = 0.25 * x @ x + c @ x + y @ A @ x - 0.1 * y @ y - e @ y
    assert agrees(problem, value, x).status is ss.Status.SOLVED
