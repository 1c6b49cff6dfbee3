"""Problems of the suite whose parts the peers can be told: the saddle problem, and the same numbers as plain arrays."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.sparse

from benchmarks.peers.programs.form import Form, Set
from benchmarks.suite import problems as suite
from saddleslide.domains import Ball, Box, Domain, FullSpace, Simplex
from saddleslide.problem import SaddleProblem

NAMES: dict[str, Callable[[], SaddleProblem]] = {
    "tomography": suite.tomography,
    "deblurring": suite.deblurring,
    "denoising": suite.denoising,
    "matrix game": suite.matrix_game,
    "linear program": suite.linear_program,
    "transport": suite.transport,
    "constrained": suite.constrained,
    "consensus": suite.consensus,
    "robust regression": suite.robust_regression,
}
# Measured when asked for: general solvers take long on it.
LARGE: dict[str, Callable[[], SaddleProblem]] = {"large tomography": suite.large_tomography}


def form_of(problem: SaddleProblem) -> Form:
    """Read off values and gradients, so that no formula is written twice; `check` compares both."""
    n, m = int(np.prod(problem.X.shape)), int(np.prod(problem.Y.shape))
    zero = np.zeros(problem.X.shape)
    A = getattr(problem.f, "A", None)
    if A is not None:
        matrix, b, d = A.matrix, np.ravel(problem.f.b), np.full(n, problem.f.ridge)
        c = np.zeros(n)
    else:
        H = hessian(problem.f.gradient, problem.X.shape)
        diagonal = H is None or np.count_nonzero(H - np.diag(np.diag(H))) == 0
        c = np.ravel(problem.f.gradient(zero))
        d = np.ravel(problem.f.gradient(np.ones(problem.X.shape))) - c if diagonal else np.zeros(n)
        matrix, b = (None, np.zeros(0)) if diagonal else (np.linalg.cholesky(H).T, np.zeros(n))
    h = np.ravel(problem.g.gradient(np.zeros(problem.Y.shape)))
    beta = float(np.ravel(problem.g.gradient(np.ones(problem.Y.shape)))[0] - h[0])
    return Form(matrix, b, d, c, coupling(problem), h, beta, plain(problem.X, n), plain(problem.Y, m))


def hessian(gradient: Callable[[np.ndarray], np.ndarray], shape: tuple[int, ...]) -> np.ndarray | None:
    """Columns of the Hessian of a quadratic; None for an image, whose quadratic terms are diagonal here."""
    if len(shape) > 1:
        return None
    base = gradient(np.zeros(shape))
    H = np.stack([gradient(row) - base for row in np.eye(shape[0])])
    # Rounding must not turn a diagonal into a full matrix.
    H[np.abs(H) <= 1e-14 * np.abs(H).max(initial=0.0)] = 0.0
    return 0.5 * (H + H.T)


def coupling(problem: SaddleProblem) -> object:
    dense = getattr(problem.coupling, "matrix", None)
    if dense is not None:
        return dense
    n = int(np.prod(problem.X.shape))
    columns = [problem.coupling.forward(row.reshape(problem.X.shape)).ravel() for row in np.eye(n)]
    return scipy.sparse.csr_array(np.stack(columns, axis=1))


def plain(domain: Domain, size: int) -> Set:
    if isinstance(domain, FullSpace):
        return Set("box", np.full(size, -np.inf), np.full(size, np.inf))
    if isinstance(domain, Box):
        lower, upper = (np.array(np.broadcast_to(side, domain.shape)).ravel() for side in (domain.lower, domain.upper))
        return Set("box", lower, upper)
    if isinstance(domain, Simplex):
        return Set("simplex", np.zeros(0), np.zeros(0))
    assert isinstance(domain, Ball)
    return Set("ball", np.zeros(0), np.array(domain.ball_radius))


def check(problem: SaddleProblem, form: Form) -> float:
    """Largest relative difference between the saddle function and the plain form at random points."""
    rng, worst = np.random.default_rng(0), 0.0
    for _ in range(3):
        x, y = (side.project(rng.standard_normal(side.shape)) for side in (problem.X, problem.Y))
        ours = problem.f.value(x) - problem.f.value(0 * x) - problem.g.value(y) + problem.g.value(0 * y)
        ours += float(np.vdot(y, problem.coupling.forward(x)))
        v, w = x.ravel(), y.ravel()
        theirs = 0.5 * float(form.d * v @ v) + float(form.c @ v) + float(w @ (form.B @ v))
        theirs -= float(form.h @ w) + 0.5 * form.beta * float(w @ w)
        if form.A is not None:
            theirs += 0.5 * float(np.sum((form.A @ v - form.b) ** 2) - np.sum(form.b**2))
        worst = max(worst, abs(ours - theirs) / (1.0 + abs(ours)))
    return worst
