"""Small problems of every kind that a run can meet, for tests of the contract; all are solved in a few steps."""

import numpy as np

import saddleslide as ss

F, D = ss.functions, ss.domains


def bits(result):
    """Everything of a result that must not depend on the clock; a claim is one of the point that it holds."""
    assert result.status.name not in ("SOLVED", "SOLVED_WITHIN") or result.gap <= result.known_target, result
    rows = [(row.step, row.calls, np.float64(row.gap).tobytes(), row.samples) for row in result.history]
    point = result.x.tobytes(), result.y.tobytes(), result.x.dtype, result.y.dtype
    bounds = result.status, result.lower, result.upper, result.certificate.kind
    return (*point, *bounds, result.calls, result.certificate_calls, result.samples, rows, result.plans)


def quartic():
    return F.Custom(
        gradient=lambda x: x**3 + x - 0.2,
        value=lambda x: float((x**4).sum() / 4 + (x**2).sum() / 2 - 0.2 * x.sum()),
        smoothness=ss.Holder(1.0, 4.0),
        strong_convexity=1.0,
    )


def problems():
    """Name -> problem."""
    rng = np.random.default_rng(0)
    A, b, B = rng.standard_normal((12, 6)), rng.standard_normal(12), rng.standard_normal((4, 6))
    logistic = F.Logistic(rng.standard_normal((5, 4)), [1, -1, 1, 1, -1])
    tilted = F.Quadratic(1.0) + F.Linear(rng.standard_normal(6))
    box, small = D.Box(-1.0, 1.0, shape=6), D.Box(-1.0, 1.0, shape=4)
    free, free_y = D.FullSpace(6), D.FullSpace(4)

    def problem(f, g, X=box, Y=small):
        return ss.SaddleProblem(f=f, g=g, B=B, X=X, Y=Y)

    return {
        "least squares": problem(F.LeastSquares(A, b, ridge=1e-2), F.Zero(), X=free),
        "costly g": problem(F.LeastSquares(A, b), logistic),
        "simple": problem(tilted, F.Quadratic(0.5)),
        "game": problem(F.Zero(), F.Zero(), X=D.Simplex(6), Y=D.Simplex(4)),
        "custom": problem(quartic(), F.Huber(0.5)),
        "mirrored": problem(F.Huber(0.5), logistic),
        "free": problem(tilted, F.Quadratic(0.5), X=free, Y=free_y),
        "image": ss.gallery.tomography("nonlocal", n=8),
    }


def noisy():
    rng = np.random.default_rng(1)
    f = F.Noisy(F.Quadratic(1.0) + F.Linear(rng.standard_normal(6)), 0.3)
    B, box, small = rng.standard_normal((4, 6)), D.Box(-1.0, 1.0, shape=6), D.Box(-1.0, 1.0, shape=4)
    return ss.SaddleProblem(f=f, g=F.Noisy(F.Quadratic(0.5), 0.2), B=B, X=box, Y=small)
