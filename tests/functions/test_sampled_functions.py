"""Sampled gradients: unbiased, with the variance they declare, fresh at every call, the same bits for the same seed."""

import itertools

import numpy as np
import pytest
import scipy.sparse

import saddleslide as ss
from saddleslide.errors import InputError
from saddleslide.functions import Custom, LeastSquares, Logistic, MiniBatch, Noisy, PoissonTransmission, Quadratic
from support import gathered

RNG = np.random.default_rng(7)
A, b = RNG.standard_normal((9, 4)), RNG.standard_normal(9)
POINT = np.array([0.3, -0.7, 0.2, 0.9])
MODELS = {
    "least squares": LeastSquares(A, b, ridge=0.4),
    "sparse least squares": LeastSquares(scipy.sparse.csr_matrix(np.where(abs(A) > 0.4, A, 0.0)), b),
    "logistic": Logistic(A, np.sign(b), ridge=0.1),
    "Poisson": PoissonTransmission(abs(A), np.round(5 * abs(b)), intensity=5.0, attenuation=0.3),
}


def all_batches(f, x, batch):
    """Every batch of rows, written from the definition of a finite sum: the gradient of m/b times the chosen rows."""
    dense = f.A.dense()
    slopes = f.loss_gradient(dense @ x)
    m = len(slopes)
    return np.array(
        [
            m / batch * sum(slopes[i] * dense[i] for i in rows) + f.ridge * x
            for rows in itertools.combinations(range(m), batch)
        ]
    )


@gathered("name", MODELS)
@gathered("batch", [1, 3, 8])
def test_a_mini_batch_is_unbiased_with_the_variance_it_says(name, batch):
    f = MODELS[name]
    draws = all_batches(f, POINT, batch)
    gradient = f.gradient(POINT)
    assert draws.mean(axis=0) == pytest.approx(gradient, abs=1e-12)
    spread = float(np.mean(np.sum((draws - gradient) ** 2, axis=1)))
    sampled = MiniBatch(f, batch)
    assert sampled.variance_at(POINT) == pytest.approx(spread, rel=1e-9)
    # Every draw is one of these, and all of them occur.
    rng = np.random.default_rng(0)
    seen = {int(np.argmin(np.abs(draws - sampled.sample(POINT, rng)).sum(axis=1))) for _ in range(40 * len(draws))}
    assert np.abs(draws - sampled.sample(POINT, rng)).sum(axis=1).min() < 1e-9
    assert len(seen) > 0.9 * len(draws)


@gathered("name", MODELS)
@gathered(
    "domain",
    [ss.domains.Box(-1.0, 1.0, shape=4), ss.domains.Ball(0.7, shape=4), ss.domains.Simplex(4)],
    ids=["box", "ball", "simplex"],
)
def test_the_variance_on_a_bounded_domain_is_a_bound_and_not_a_wild_one(name, domain):
    sampled = MiniBatch(MODELS[name], 2)
    found = sampled.variance(domain)
    assert not found.estimate
    rng = np.random.default_rng(3)
    corners = [np.array(corner) for corner in itertools.product((-1.0, 1.0), repeat=4)]
    points = [domain.project(3.0 * v) for v in [*corners, *rng.standard_normal((300, 4))]]
    worst = max(sampled.variance_at(x) for x in points)
    assert worst <= found.value <= 8.0 * worst


def test_the_variance_of_least_squares_on_the_full_space_is_marked_as_an_estimate():
    free = ss.domains.FullSpace(4)
    found = MiniBatch(MODELS["least squares"], 2).variance(free)
    assert found.estimate and found.value > 0.0
    assert MiniBatch(MODELS["least squares"], 2).variance(free) == found
    # The slope of the logistic loss is bounded everywhere, so no estimate is needed.
    assert not MiniBatch(MODELS["logistic"], 2).variance(free).estimate
    declared = MiniBatch(MODELS["least squares"], 2, variance=5.0).variance(free)
    assert (declared.value, declared.origin, declared.estimate) == (5.0, "declared", False)


def test_noise_has_mean_zero_and_its_variance():
    f = Noisy(Quadratic(2.0), sigma=0.6)
    rng = np.random.default_rng(0)
    errors = np.array([f.sample(POINT, rng) - 2.0 * POINT for _ in range(4000)])
    assert np.mean(np.sum(errors**2, axis=1)) == pytest.approx(0.36, rel=0.05)
    assert np.linalg.norm(errors.mean(axis=0)) < 4.0 * 0.6 / np.sqrt(4000)
    assert f.variance(ss.domains.FullSpace(4)).value == pytest.approx(0.36)


def test_sums_and_multiples_draw_independently_and_add_their_variances():
    box = ss.domains.Box(-1.0, 1.0, shape=4)
    first, second = Noisy(Quadratic(1.0), 0.5), MiniBatch(MODELS["logistic"], 2)
    f = 3.0 * first + 0.5 * second + Quadratic(1.0)
    expected = 9.0 * 0.25 + 0.25 * second.variance(box).value
    assert f.variance(box).value == pytest.approx(expected, rel=1e-12)
    assert f.sampled and f.batch == 3
    rng = np.random.default_rng(1)
    errors = np.array([f.sample(POINT, rng) - f.gradient(POINT) for _ in range(6000)])
    spread = 9.0 * 0.25 + 0.25 * second.variance_at(POINT)
    assert np.mean(np.sum(errors**2, axis=1)) == pytest.approx(spread, rel=0.08)
    assert np.linalg.norm(errors.mean(axis=0)) < 4.0 * np.sqrt(spread / 6000)


@gathered(
    "f",
    [
        Noisy(Quadratic(1.0), 0.0),
        MiniBatch(MODELS["logistic"], 9),
        0.0 * Noisy(Quadratic(1.0), 1.0),
        Quadratic(1.0) + 2.0 * MiniBatch(MODELS["least squares"], 9),
    ],
    ids=repr,
)
def test_no_noise_is_the_exact_function_to_the_bit(f):
    assert not f.sampled and f.batch == 0
    assert f.variance(ss.domains.FullSpace(4)).value == 0.0
    assert (f.sample(POINT, np.random.default_rng(0)) == f.gradient(POINT)).all()


@gathered(
    "f", [Noisy(Quadratic(1.0), 0.3), MiniBatch(MODELS["logistic"], 2), 2.0 * Noisy(Quadratic(1.0), 0.3)], ids=repr
)
def test_draws_are_fresh_and_follow_the_seed(f):
    one, two = np.random.default_rng(5), np.random.default_rng(5)
    first, again = [f.sample(POINT, one) for _ in range(6)], [f.sample(POINT, two) for _ in range(6)]
    assert (np.array(first) == np.array(again)).all()
    assert len({tuple(draw) for draw in first}) > 1
    out = np.empty(4)
    assert f.sample(POINT, np.random.default_rng(5), out) is out
    assert (out == first[0]).all()


def test_a_sampled_function_keeps_value_gradient_and_constants():
    base, box = MODELS["least squares"], ss.domains.Box(-1.0, 1.0, shape=4)
    f = MiniBatch(base, 2)
    assert f.value(POINT) == base.value(POINT) and (f.gradient(POINT) == base.gradient(POINT)).all()
    assert f.smoothness(box) == base.smoothness(box) and f.strong_convexity(box) == base.strong_convexity(box)
    tilt = np.ones(4)
    assert ss.functions.tilted_minimum(f, tilt, box).value == pytest.approx(
        ss.functions.tilted_minimum(base, tilt, box).value, abs=1e-9
    )


def test_a_custom_sample_with_an_estimated_variance():
    f = Custom(
        sample=lambda x, rng: x + 0.5 * rng.standard_normal(x.shape),
        variance="estimate",
        smoothness=ss.Holder(1.0, 1.0),
    )
    found = f.variance(ss.domains.FullSpace(4))
    assert found.estimate and found.value == pytest.approx(1.0, rel=0.3)
    assert not f.has_value
    with pytest.raises(InputError, match="sampled gradient only"):
        f.gradient(POINT)


HOLDER = ss.Holder(1.0, 1.0)


@gathered(
    ("make", "message"),
    [
        (lambda: MiniBatch(Quadratic(1.0), 2), "expected LeastSquares, Logistic"),
        (lambda: MiniBatch(MODELS["logistic"], 0), "batch is 0; expected a whole number from 1 to 9"),
        (lambda: MiniBatch(MODELS["logistic"], 10), "batch is 10"),
        (lambda: MiniBatch(MODELS["logistic"], 2.5), "batch is 2.5"),
        (lambda: MiniBatch(MODELS["logistic"], 2, variance=-1.0), "variance is -1.0"),
        (lambda: Noisy(Quadratic(1.0), -0.1), "sigma is -0.1"),
        (lambda: Noisy(3.0, 0.1), "expected a function from ss.functions"),
        (lambda: Custom(sample=lambda x, rng: x, smoothness=HOLDER), "variance is missing with sample"),
        (lambda: Custom(sample=3, variance=1.0, smoothness=HOLDER), "sample is not callable"),
        (
            lambda: Custom(sample=lambda x: x, variance=1.0, smoothness=HOLDER),
            "sample can not be called with x and rng",
        ),
        (lambda: Custom(gradient=lambda x: x, variance=1.0, smoothness=HOLDER), "variance is given without sample"),
        (lambda: Custom(sample=lambda x, rng: x, variance="guess", smoothness=HOLDER), "variance is 'guess'"),
        (lambda: Custom(sample=lambda x, rng: x, variance=-1.0, smoothness=HOLDER), "variance is -1.0"),
        (lambda: Custom(sample=lambda x, rng: x, variance=1.0, batch=0, smoothness=HOLDER), "batch is 0"),
        (lambda: Custom(smoothness=HOLDER), "gradient and prox are missing"),
    ],
)
def test_misuse_is_refused_with_a_reason(make, message):
    with pytest.raises(InputError, match=message):
        make()
