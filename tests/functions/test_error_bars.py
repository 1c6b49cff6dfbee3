"""Errors of values and gradients in 120 digits: what a function says of its rounding holds where its terms cancel."""

import numpy as np

import saddleslide as ss
from exact import exactly, mpf, mpmath, norm
from saddleslide.functions.trust import errors_at

F = ss.functions


def entrywise(function):
    return np.frompyfunc(function, 1, 1)


EXP = entrywise(mpmath.exp)
SOFTPLUS, SIGMOID = (
    entrywise(lambda t: mpmath.log1p(mpmath.exp(t))),
    entrywise(lambda t: 1 / (1 + mpmath.exp(-t))),
)
SIGN, CLIPPED = entrywise(mpmath.sign), entrywise(lambda t: max(mpf(-1), min(mpf(1), t)))


def catalogue(rng):
    """A point x0 of any size, and every function of known form with what it is: terms of it cancel at x0.

    A x0 = 0 and Q x0 = 0 up to rounding, C x0 = b up to noise, and tilts balance the rest of the gradient.
    """
    x0 = 10.0 ** rng.uniform(2.0, 9.0) * rng.standard_normal(3)
    A, C = 10.0 ** rng.uniform(-1.0, 1.0) * rng.standard_normal((4, 3)), rng.standard_normal((4, 3))
    A -= np.outer(A @ x0, x0) / (x0 @ x0)
    b, labels, counts = C @ x0 + rng.standard_normal(4), rng.choice([-1.0, 1.0], 4), rng.integers(0, 9, 4) * 1.0
    Q, q, c, delta = A.T @ A, rng.uniform(0.1, 1.0, 3), rng.standard_normal(3), 0.3 * abs(x0[0])
    pull, flat, bent = Q @ x0, q * x0, np.clip(x0 / delta, -1.0, 1.0)
    a, k, many = exactly(A), mpf(0.7), mpf(5.0)
    m, n, e, s, w = exactly(C), exactly(b), exactly(Q), exactly(labels), exactly(counts)
    v, t, p, h, u, d = exactly(q), exactly(c), exactly(pull), exactly(bent), exactly(flat), mpf(delta)

    def huber(x):
        inner = d * CLIPPED(x / d)
        return (inner * inner / (2 * d) + abs(x - inner) - h * x).sum(), CLIPPED(x / d) - h

    def transmission(x):
        rays = many * EXP(-k * (a @ x))
        scale = 1 / (many * k * k)
        return scale * (rays + k * w * (a @ x)).sum(), scale * k * (w - rays) @ a

    def power(x):
        value = (v * (x * x / 2 + abs(x) ** mpf(1.5) / mpf(1.5)) - t * x).sum()
        return value, v * (x + SIGN(x) * abs(x) ** mpf(0.5)) - t

    def squares(x):
        return ((m @ x - n) ** 2).sum() / 2, (m @ x - n) @ m

    def tilted(x):
        return x @ (e @ x) / 2 - p @ x, e @ x - p

    squared, bowl = F.LeastSquares(C, b), F.Quadratic(Q) + F.Linear(-pull)
    return x0, {
        "linear": (F.Linear(c), lambda x: (t @ x, t)),
        "diagonal": (F.Quadratic(q) + F.Linear(-flat), lambda x: ((v * x / 2 - u) @ x, v * x - u)),
        "matrix": (bowl, tilted),
        "least squares": (squared, squares),
        "ridge": (
            F.LeastSquares(C, b, ridge=0.5),
            lambda x: (squares(x)[0] + x @ x / 4, squares(x)[1] + x / 2),
        ),
        "logistic": (F.Logistic(A, labels), lambda x: (SOFTPLUS(-s * (a @ x)).sum(), -(s * SIGMOID(-s * (a @ x))) @ a)),
        "transmission": (F.PoissonTransmission(A, counts, float(many), float(k)), transmission),
        "huber": (F.Huber(delta) + F.Linear(-bent), huber),
        "power": (F.Power(0.5, weight=q, tilt=c, quadratic=q), power),
        "sums": (
            0.3 * squared + 7.0 * (bowl + F.Zero()),
            lambda x: [mpf(0.3) * one + 7 * two for one, two in zip(squares(x), tilted(x), strict=True)],
        ),
        "parts": (
            F.PartSum([squared, bowl], combine="mean"),
            lambda x: [(one + two) / 2 for one, two in zip(squares(x), tilted(x), strict=True)],
        ),
        "noise": (F.Noisy(squared, sigma=1.0), squares),
    }


def test_error_bars_hold_for_every_function_of_the_catalogue():
    for seed in range(30):
        rng = np.random.default_rng(seed)
        x0, functions = catalogue(rng)
        near = [x0, x0 + rng.standard_normal(3), x0 * (1.0 + 1e-9 * rng.standard_normal(3)), rng.standard_normal(3)]
        for name, (f, exact) in functions.items():
            for x in near:
                value, gradient = f.value_and_gradient(x)
                (true_value, true_gradient), bars = exact(exactly(x)), errors_at(f, x, value, np.linalg.norm(gradient))
                assert abs(mpf(value) - true_value) <= bars.value < np.inf, (name, seed)
                assert norm(exactly(gradient) - true_gradient) <= bars.gradient < np.inf, (name, seed)
