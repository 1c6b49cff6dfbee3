"""The catalogue of functions: gradients, constants and certified minima against independent references."""

import math
from decimal import Decimal, localcontext

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse
from scipy.sparse.linalg import aslinearoperator

from saddleslide import Holder
from saddleslide.domains import Ball, Box, FullSpace, NonNegative, Product, Simplex
from saddleslide.errors import NoExactMinimumError
from saddleslide.functions import (
    Custom,
    Function,
    Huber,
    LeastSquares,
    Linear,
    Logistic,
    PoissonTransmission,
    Power,
    Quadratic,
    Zero,
    prox,
    tilted_minimum,
)
from saddleslide.functions.minimum import careful_sum
from saddleslide.operators import FiniteDifferences
from support import central_difference, gathered, inner, points_of

INF = math.inf
N = 4
DATA = np.random.default_rng(3)
TILT, WEIGHT, CURVATURE = DATA.standard_normal(N), DATA.uniform(0.1, 2.0, N), DATA.uniform(0.0, 3.0, N)
TALL, WIDE = DATA.standard_normal((7, N)), DATA.standard_normal((2, N))
SYMMETRIC = TALL.T @ TALL
LABELS = np.array([1, -1, 1, 1, -1, -1, 1])
COUNTS = np.array([3.0, 12.0, 0.0, 9.0, 10.0, 25.0, 7.0])
BOX = Box(-1.0, 1.0, shape=N)

SMOOTH = {
    "zero": Zero(),
    "linear": Linear(TILT),
    "scalar quadratic": Quadratic(2.5),
    "diagonal quadratic": Quadratic(CURVATURE),
    "matrix quadratic": Quadratic(SYMMETRIC),
    "sparse quadratic": Quadratic(scipy.sparse.csr_array(SYMMETRIC)),
    "operator quadratic": Quadratic(aslinearoperator(SYMMETRIC)),
    "power 1": Power(1.0, weight=WEIGHT, tilt=TILT, quadratic=CURVATURE),
    "least squares": LeastSquares(TALL, DATA.standard_normal(7)),
    "wide least squares": LeastSquares(WIDE, DATA.standard_normal(2), ridge=0.3),
    "logistic": Logistic(TALL, LABELS, ridge=0.2),
    "logistic with labels 0 and 1": Logistic(TALL, LABELS > 0),
    "poisson": PoissonTransmission(0.5 * TALL, COUNTS, intensity=10.0, attenuation=0.4, ridge=0.1),
    "huber": Huber(0.5),
    "custom": Custom(gradient=lambda x: x**3, value=lambda x: float(np.sum(x**4)) / 4.0, smoothness=Holder(1.0, 12.0)),
}
HOLDER = {
    "power 0": Power(0.0, weight=0.7),
    "power 1/4": Power(0.25, tilt=TILT),
    "power 1/2": Power(0.5, weight=2.0),
    "power 3/4": Power(0.75, weight=WEIGHT, tilt=TILT),
    "weighted power 0": Power(0.0, weight=WEIGHT),
    "power with a zero weight": Power(0.5, weight=[0.0, 1.0, 0.0, 3.0]),
    "power with quadratic": Power(0.5, weight=WEIGHT, tilt=TILT, quadratic=CURVATURE),
}
COMPOSED = {
    "sum": SMOOTH["matrix quadratic"] + HOLDER["power 1/2"],
    "sum of exponents": HOLDER["power 1/4"] + HOLDER["power 3/4"],
    "scaled": 3.0 * HOLDER["power 1/4"],
    "scaled sum": 0.5 * (SMOOTH["logistic"] + 2.0 * SMOOTH["huber"]),
    "scaled to nothing": 0.0 * HOLDER["power 1/2"],
}
CATALOGUE = {**SMOOTH, **HOLDER, **COMPOSED}
DOMAINS = {
    "box": BOX,
    "shifted box": Box(0.5, 2.0, shape=N),
    "ball": Ball(2.0, shape=N),
    "simplex": Simplex(N),
    "flat box": Box([-1.0, 0.0, 0.0, -0.1], [1.0, 0.0, 1.0, 0.1]),
}


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def every(table, name="f"):
    return gathered(name, table.values(), ids=table.keys())


# --- values and gradients ---------------------------------------------------------------------------------------

SEPARATE = {
    "zero": (SMOOTH["zero"], lambda x: 0.0),
    "linear": (SMOOTH["linear"], lambda x: TILT @ x),
    "scalar quadratic": (SMOOTH["scalar quadratic"], lambda x: 1.25 * (x @ x)),
    "diagonal quadratic": (SMOOTH["diagonal quadratic"], lambda x: 0.5 * (CURVATURE @ x**2)),
    "matrix quadratic": (SMOOTH["matrix quadratic"], lambda x: 0.5 * (x @ SYMMETRIC @ x)),
    "sparse quadratic": (SMOOTH["sparse quadratic"], lambda x: 0.5 * (x @ SYMMETRIC @ x)),
    "operator quadratic": (SMOOTH["operator quadratic"], lambda x: 0.5 * (x @ SYMMETRIC @ x)),
    "power": (
        HOLDER["power with quadratic"],
        lambda x: 0.5 * CURVATURE @ x**2 + WEIGHT @ np.abs(x) ** 1.5 / 1.5 - TILT @ x,
    ),
    "absolute value": (HOLDER["power 0"], lambda x: 0.7 * np.abs(x).sum()),
    "wide least squares": (
        SMOOTH["wide least squares"],
        lambda x: 0.5 * np.sum((WIDE @ x - SMOOTH["wide least squares"].b) ** 2) + 0.15 * (x @ x),
    ),
    "poisson": (
        SMOOTH["poisson"],
        lambda x: (
            np.sum(10.0 * np.exp(-0.4 * (0.5 * TALL @ x)) + COUNTS * 0.4 * (0.5 * TALL @ x)) / (10.0 * 0.16)
            + 0.05 * (x @ x)
        ),
    ),
    "logistic": (
        SMOOTH["logistic"],
        lambda x: sum(math.log(1.0 + math.exp(-m)) for m in LABELS * (TALL @ x)) + 0.1 * (x @ x),
    ),
    "logistic with labels 0 and 1": (
        SMOOTH["logistic with labels 0 and 1"],
        lambda x: sum(math.log(1.0 + math.exp(-m)) for m in LABELS * (TALL @ x)),
    ),
    "huber": (SMOOTH["huber"], lambda x: sum(t * t if abs(t) <= 0.5 else abs(t) - 0.25 for t in x)),
    "scaled sum": (
        2.0 * (SMOOTH["huber"] + SMOOTH["linear"]),
        lambda x: 2.0 * SMOOTH["huber"].value(x) + 2.0 * TILT @ x,
    ),
}


@gathered(("f", "formula"), SEPARATE.values(), ids=SEPARATE.keys())
def test_values_are_the_documented_formula(f, formula, rng):
    for x in 1.5 * rng.standard_normal((10, N)):
        assert f.value(x) == pytest.approx(float(formula(x)), rel=1e-13, abs=1e-14)


@every(CATALOGUE)
def test_gradients_are_the_derivatives_of_the_values(f, rng):
    for x in 1.5 * rng.standard_normal((5, N)):
        np.testing.assert_allclose(f.gradient(x), central_difference(f.value, x), rtol=1e-5, atol=1e-6)


@every(CATALOGUE)
def test_value_and_gradient_agree_with_value_and_with_gradient(f, rng):
    x = rng.standard_normal(N)
    kept, out = x.copy(), np.full(N, np.nan)
    value, gradient = f.value_and_gradient(x)
    # A x and the gradient in one pass add up in another order than a product, and BLAS in an order of its own.
    apart = 2.0 * f.error_model.at(f.term_size(x), value, float(np.linalg.norm(gradient)), N).value
    assert abs(value - f.value(x)) <= (apart if getattr(f, "one_pass", False) else 0.0)
    np.testing.assert_array_equal(gradient, f.gradient(x))
    assert f.gradient(x, out) is out
    np.testing.assert_array_equal(out, gradient)
    assert f.value_and_gradient(x, out)[1] is out
    np.testing.assert_array_equal(out, gradient)
    np.testing.assert_array_equal(x, kept)


@every(CATALOGUE)
def test_gradients_never_alias_their_argument_or_the_function(f, rng):
    x = rng.standard_normal(N)
    first = f.gradient(x)
    expected = first.copy()
    first += 100.0
    np.testing.assert_array_equal(f.gradient(x), expected)


@every(CATALOGUE)
def test_subgradient_inequality_with_points_at_the_kinks(f, rng):
    points = [*rng.standard_normal((12, N)), np.zeros(N), np.array([0.0, 1.0, 0.0, -1.0]), np.full(N, 0.5)]
    for u in points:
        value, gradient = f.value_and_gradient(u)
        for v in points:
            assert f.value(v) >= value + inner(gradient, v - u) - 1e-12


def test_subgradient_of_the_absolute_value_at_zero_is_zero():
    np.testing.assert_array_equal(Power(0.0).gradient(np.zeros(2)), np.zeros(2))


def test_logistic_survives_margins_of_any_size():
    f = Logistic(np.array([[1.0]]), [1])
    assert f.value_and_gradient(np.array([800.0])) == (0.0, pytest.approx([0.0], abs=1e-300))
    value, gradient = f.value_and_gradient(np.array([-800.0]))
    assert (value, gradient.tolist()) == (800.0, [-1.0])


def test_functions_take_images():
    D = FiniteDifferences((3, 4))
    rng = np.random.default_rng(8)
    x, b = rng.standard_normal((3, 4)), rng.standard_normal((2, 3, 4))
    f = LeastSquares(D, b, ridge=0.5) + Power(0.5, tilt=x) + Quadratic(np.abs(x), diagonal=True)
    np.testing.assert_allclose(f.gradient(x), central_difference(f.value, x), rtol=1e-5, atol=1e-6)
    assert f.shape == (3, 4)
    flat = LeastSquares(np.eye(12), b[0].ravel(), x_shape=(3, 4))
    np.testing.assert_allclose(flat.gradient(x), x - b[0])


def test_square_array_is_a_matrix_unless_called_a_diagonal():
    q, x = np.array([[2.0, 1.0], [1.0, 2.0]]), np.array([[1.0, 2.0], [3.0, 4.0]])
    np.testing.assert_array_equal(Quadratic(q).gradient(np.array([1.0, 0.0])), [2.0, 1.0])
    np.testing.assert_array_equal(Quadratic(q, diagonal=True).gradient(x), q * x)


@every({name: f for name, f in CATALOGUE.items() if f.quadratic})
def test_hessian_products_are_differences_of_gradients(f, rng):
    u, v = rng.standard_normal((2, N))
    np.testing.assert_allclose(f.hessian_product(v), f.gradient(u + v) - f.gradient(u), atol=1e-12)


@every({name: f for name, f in CATALOGUE.items() if f.separable})
def test_separable_functions_have_gradients_entry_by_entry(f, rng):
    u, v = rng.standard_normal((2, N))
    mixed = np.array([u[0], v[1], u[2], v[3]])
    expected = np.choose([0, 1, 0, 1], [f.gradient(u), f.gradient(v)])
    np.testing.assert_array_equal(f.gradient(mixed), expected)


# --- constants --------------------------------------------------------------------------------------------------


def quotients(f, domain, nu, pairs):
    for u, v in pairs:
        distance = float(np.linalg.norm(u - v))
        if distance > 1e-9:
            yield float(np.linalg.norm(f.gradient(u) - f.gradient(v))) / distance**nu


@every(DOMAINS, "domain")
@every(CATALOGUE)
def test_holder_constant_bounds_every_sampled_pair(f, domain, rng):
    found = f.smoothness(domain)
    points = points_of(domain, rng, 25)
    mirrored = [(u, domain.project(-u)) for u in points]
    near = [(u, domain.project(u + 1e-4 * rng.standard_normal(N))) for u in points]
    pairs = [(u, v) for u in points for v in points] + mirrored + near
    assert max(quotients(f, domain, found.nu, pairs)) <= found.H * (1.0 + 1e-9) + 1e-9


def equality_pair(weight, nu):
    """Where Hölder's inequality over the entries is an equality."""
    d = np.broadcast_to(weight, (N,)) ** (1.0 / (1.0 - nu))
    return d / d.max(), -d / d.max()


TOP = np.linalg.eigh(SYMMETRIC)[1][:, -1] / 2.0
TIGHT = {
    **{f"power {nu}": (Power(nu, weight=1.3), equality_pair(1.3, nu)) for nu in (0.0, 0.25, 0.5, 0.75)},
    **{f"weighted power {nu}": (Power(nu, weight=WEIGHT), equality_pair(WEIGHT, nu)) for nu in (0.0, 0.25, 0.5, 0.75)},
    "matrix quadratic": (SMOOTH["matrix quadratic"], (TOP, -TOP)),
    "diagonal quadratic": (SMOOTH["diagonal quadratic"], (np.eye(N)[CURVATURE.argmax()], np.zeros(N))),
    "least squares": (LeastSquares(TALL, np.zeros(7), ridge=0.5), (TOP, -TOP)),
    "logistic": (Logistic(TALL, LABELS, ridge=0.5), (1e-5 * TOP, -1e-5 * TOP)),
    "huber": (Huber(0.5), (np.full(N, 0.5), np.full(N, -0.5))),
    "scaled": (3.0 * Power(0.5, weight=WEIGHT), equality_pair(WEIGHT, 0.5)),
    "sum": (Power(0.5) + Power(0.5, weight=2.0), equality_pair(1.0, 0.5)),
}


@gathered(("f", "pair"), TIGHT.values(), ids=TIGHT.keys())
def test_holder_constant_is_attained_where_it_is_sharp(f, pair):
    found = f.smoothness(BOX)
    assert found.H > 0.0
    # Logistic curvature 1/4 is met by all samples at once only at 0, and only by the top direction.
    assert max(quotients(f, BOX, found.nu, [pair])) == pytest.approx(found.H, rel=1e-6)


@gathered("nu", [0.0, 0.25, 0.5, 0.75, 1.0])
def test_holder_exponent_of_a_power_can_not_be_raised(nu):
    found = Power(nu, tilt=TILT).smoothness(BOX)
    assert found.nu == nu
    if nu < 1.0:
        steeper = list(quotients(Power(nu), BOX, nu + 0.1, [(np.full(N, t), np.full(N, -t)) for t in (1e-2, 1e-7)]))
        assert steeper[1] > 2.0 * steeper[0]


def test_quadratic_part_of_a_power_enters_through_the_diameter():
    f = Power(0.5, quadratic=3.0)
    small, large = Box(-0.1, 0.1, shape=N), Box(-10.0, 10.0, shape=N)
    power = Power(0.5).smoothness(small).H
    for domain, diameter in ((small, 0.4), (large, 40.0)):
        found = f.smoothness(domain).H
        assert found == pytest.approx(power + 3.0 * math.sqrt(diameter))
    with pytest.raises(ValueError, match="unbounded"):
        f.smoothness(FullSpace(N))


CURVED = {
    "power 1/4": Power(0.25),
    "power 3/4": Power(0.75, weight=WEIGHT, tilt=TILT),
    "power with quadratic": Power(0.5, weight=WEIGHT, quadratic=CURVATURE + 0.1),
    "power 1": Power(1.0, weight=WEIGHT, quadratic=CURVATURE),
    "huber": Huber(2.0),
    "narrow huber": Huber(0.5),
    "full column rank": LeastSquares(TALL, np.ones(7)),
    "ridge only": LeastSquares(WIDE, np.ones(2), ridge=0.3),
    "logistic": Logistic(TALL, LABELS, ridge=0.4),
    "matrix quadratic": Quadratic(SYMMETRIC),
    "diagonal quadratic": Quadratic(CURVATURE),
    "sum": 2.0 * Power(0.5) + LeastSquares(TALL, np.ones(7)),
    "absolute value": Power(0.0),
}


@every(DOMAINS, "domain")
@every(CURVED)
def test_strong_convexity_holds_on_samples(f, domain, rng):
    mu = f.strong_convexity(domain)
    points = points_of(domain, rng, 25)
    for u in points:
        value, gradient = f.value_and_gradient(u)
        for v in points:
            model = value + inner(gradient, v - u) + 0.5 * mu * inner(v - u, v - u)
            assert f.value(v) >= model - 1e-10 * (1.0 + abs(value))


def test_strong_convexity_is_sharp_where_it_can_be():
    assert Power(0.5, weight=2.0).strong_convexity(Box(-4.0, 1.0, shape=N)) == pytest.approx(2.0 * 0.5 * 4.0**-0.5)
    assert Power(0.5, weight=2.0).strong_convexity(FullSpace(N)) == 0.0
    assert Power(0.0).strong_convexity(BOX) == 0.0
    assert Power(1.0, weight=WEIGHT, quadratic=CURVATURE).strong_convexity(FullSpace(N)) == min(WEIGHT + CURVATURE)
    assert Huber(0.5).strong_convexity(Box(-0.5, 0.25, shape=N)) == 2.0
    assert Huber(0.5).strong_convexity(Box(-0.51, 0.25, shape=N)) == 0.0
    smallest = np.linalg.svd(TALL, compute_uv=False)[-1] ** 2
    assert LeastSquares(TALL, np.ones(7), ridge=0.5).strong_convexity(BOX) == pytest.approx(smallest + 0.5)
    assert LeastSquares(TALL, np.ones(7)).strong_convexity(BOX) <= smallest
    assert Quadratic(SYMMETRIC).strong_convexity(BOX) == pytest.approx(smallest)
    assert LeastSquares(WIDE, np.ones(2)).strong_convexity(BOX) == 0.0
    assert Quadratic(CURVATURE).strong_convexity(BOX) == CURVATURE.min()


def test_declared_constants_of_custom_functions_are_passed_on():
    f = Custom(gradient=lambda x: x, smoothness=Holder(0.5, 2.0), strong_convexity=0.25)
    assert f.smoothness(BOX) == Holder(0.5, 2.0)
    assert f.strong_convexity(BOX) == 0.25
    assert not f.has_value
    assert math.isnan(f.value(np.ones(2)))
    assert not (f + Zero()).has_value
    assert not (2.0 * f).has_value


# --- minima -----------------------------------------------------------------------------------------------------


def exact_entry_minimum(slope, value, lower, upper):
    """Minimum of a convex function of one number by bisection in 50 digits."""
    low, high = Decimal(lower), Decimal(upper)
    for _ in range(140):
        middle = (low + high) / 2
        low, high = (low, middle) if slope(middle) >= 0 else (middle, high)
    return min(value(low), value(high), value(Decimal(lower)), value(Decimal(upper)))


def exact_power_minimum(f, c, lower, upper):
    """Minimum of f(x) + <c, x> for a Power, every operation in 50 digits."""
    total = Decimal(0)
    with localcontext() as context:
        context.prec = 50
        nu = Decimal(f.nu)
        parts = (f.weight, f.tilt, f.curvature, c, lower, upper)
        rows = zip(*(np.broadcast_to(0.0 if part is None else part, c.shape).tolist() for part in parts), strict=True)
        for row in rows:
            w, tilt, q, tilt2, low, high = map(Decimal, row)

            def slope(x, w=w, tilt=tilt, q=q, tilt2=tilt2):
                power = w * (abs(x) ** nu if x else Decimal(0))
                return q * x + (power if x > 0 else -power) - tilt + tilt2

            def value(x, w=w, tilt=tilt, q=q, tilt2=tilt2):
                power = w * (abs(x) ** (1 + nu) if x else Decimal(0)) / (1 + nu)
                return q * x * x / 2 + power + (tilt2 - tilt) * x

            candidates = [exact_entry_minimum(slope, value, low, high)]
            total += min(candidates + [value(Decimal(0))] * (low <= 0 <= high))
    return total


def assert_certified(found, true):
    """The true minimum lies between the certified bound and the value, where the value has its own last rounding."""
    true = Decimal(true)
    assert Decimal(found.value) - Decimal(found.error) <= true
    assert true <= Decimal(found.value) + Decimal(found.error)


POWER_CASES = {
    "smooth": (Power(1.0, tilt=TILT), -1.0, 1.0),
    "nu 3/4": (Power(0.75, weight=WEIGHT, tilt=TILT), -1.0, 1.0),
    "nu 1/4": (Power(0.25, tilt=TILT, quadratic=CURVATURE), -2.0, 0.5),
    "kinks": (Power(0.0, weight=WEIGHT, tilt=TILT), -1.0, 1.0),
    "kinks with quadratic": (Power(0.0, weight=1.0, tilt=3.0 * TILT, quadratic=0.5), -10.0, 10.0),
    "away from zero": (Power(0.5, tilt=TILT), 0.5, 2.0),
    "one-point sides": (Power(0.5, tilt=TILT), np.array([0.5, -1.0, 0.0, 0.0]), np.array([0.5, 1.0, 0.0, 2.0])),
    "terms that cancel": (Power(0.1, tilt=np.array([0.9, -0.95, 0.8, 1.01])), -2.0, 2.0),
    "terms that cancel more": (Power(0.01, tilt=np.array([0.9, -0.95, 0.8, 1.01])), -2.0, 2.0),
    "large tilts that cancel": (Power(1.0, tilt=np.full(N, 1e8 + 0.1)), -1.0, 1.0),
}


@gathered(("f", "lower", "upper"), POWER_CASES.values(), ids=POWER_CASES.keys())
def test_separable_minimum_on_a_box_is_certified_to_the_last_digits(f, lower, upper, rng):
    domain = Box(lower, upper, shape=N)
    shift = np.full(N, 1e8) if f.tilt is not None and f.tilt.max() > 1e7 else 0.0
    for c in [np.zeros(N) + shift, rng.standard_normal(N) + shift]:
        found = tilted_minimum(f, c, domain)
        assert domain.contains(found.point)
        assert_certified(found, exact_power_minimum(f, c, lower, upper))
        scale = np.sum((np.abs(c) + (0.0 if f.tilt is None else np.abs(f.tilt)) + 3.0) * (1.0 + np.abs(found.point)))
        assert 0.0 <= found.error <= 1e-13 * scale


# No curvature in some entries: unbounded below for most tilts.
FLAT = ("scaled to nothing", "power with a zero weight")


@gathered("domain", [FullSpace(N), NonNegative(N), Box([-INF, 0.0, -1.0, -INF], [0.0, INF, 1.0, INF])])
@every({name: f for name, f in CATALOGUE.items() if f.separable and not f.linear and name not in FLAT})
def test_separable_minimum_with_infinite_sides(f, domain, rng):
    c = 0.05 * rng.standard_normal(N)
    c += 0.0 if f.shape is None or not isinstance(f, Power) or f.tilt is None else f.tilt
    found = tilted_minimum(f, c, domain)
    lower = np.maximum(getattr(domain, "lower", -50.0), -50.0)
    upper = np.minimum(getattr(domain, "upper", 50.0), 50.0)
    bounds = list(zip(np.broadcast_to(lower, N), np.broadcast_to(upper, N), strict=True))
    searched = scipy.optimize.minimize(
        lambda x: f.value(x) + c @ x,
        domain.project(np.full(N, 0.01)),
        bounds=bounds,
        method="Powell",
        options={"xtol": 1e-12, "ftol": 1e-14},
    )
    assert domain.contains(found.point)
    assert found.value == pytest.approx(f.value(found.point) + c @ found.point, abs=1e-13)
    assert found.value <= searched.fun + found.error + 1e-13
    assert found.value >= searched.fun - 1e-6
    assert found.error <= 1e-13 * (1.0 + abs(found.value))


UNBOUNDED = {
    "slope beyond the kink": (Power(0.0), np.array([0.5, -1.5]), FullSpace(2)),
    "one open side": (Power(0.0), np.array([0.5, -1.5]), NonNegative(2)),
    "huber": (Huber(1.0), np.array([0.0, 1.0 + 1e-9]), FullSpace(2)),
    "no curvature in one entry": (Quadratic([1.0, 0.0]), np.array([1.0, 1e-3]), FullSpace(2)),
    "scaled to nothing": (0.0 * Power(0.5), np.array([1.0, 0.0]), FullSpace(2)),
    "linear": (Linear([1.0, 0.0]), np.array([0.0, -1e-30]), NonNegative(2)),
}


@gathered(("f", "c", "domain"), UNBOUNDED.values(), ids=UNBOUNDED.keys())
def test_functions_without_a_minimum_are_reported_as_unbounded(f, c, domain):
    found = tilted_minimum(f, c, domain)
    assert found.value == -INF
    assert found.lower == -INF


@gathered("c", [np.array([1.0, -1.0]), np.array([0.5, 1.0]), np.zeros(2)])
def test_slopes_that_just_balance_the_kink_are_bounded(c):
    assert tilted_minimum(Power(0.0), c, FullSpace(2)).value == 0.0
    assert tilted_minimum(Huber(1.0), 0.0 * c, NonNegative(2)).value == pytest.approx(0.0, abs=1e-12)


LINEAR_DOMAINS = {
    "box": BOX,
    "box with infinite sides": Box([-INF, 0.0, -1.0, -1.0], [0.0, INF, 1.0, 1.0]),
    "ball": Ball(2.0, center=TILT),
    "simplex": Simplex(N),
    "product": Product(Simplex(2), Ball(1.0, shape=2)),
}


@every(LINEAR_DOMAINS, "domain")
def test_linear_minimum_is_attained_and_not_beaten(domain, rng):
    for f in (Linear(TILT), 2.0 * Linear(TILT) + Zero()):
        c = rng.standard_normal(N)
        c[:2] = [-1.0 - 2.0 * abs(TILT[0]), 1.0 + 2.0 * abs(TILT[1])]
        found = tilted_minimum(f, c, domain)
        slope = f.gradient(np.zeros(N)) + c
        assert domain.contains(found.point, 1e-12)
        assert found.value == pytest.approx(inner(slope, found.point), abs=1e-13)
        assert 0.0 <= found.error <= 1e-13
        assert min(inner(slope, z) for z in points_of(domain, rng, 200)) >= found.lower


QUADRATICS = {
    "matrix": Quadratic(SYMMETRIC) + Linear(TILT),
    "least squares": LeastSquares(TALL, np.arange(7.0)),
    "ridge": LeastSquares(WIDE, np.ones(2), ridge=1e-3),
    "badly conditioned": Quadratic(np.diag([1e4, 1.0, 1e-2, 1e-3]) + 1e-4 * np.ones((N, N))),
}


def hessian_of(f):
    return np.array([f.hessian_product(unit) for unit in np.eye(N)]).T


def free_minimum(f, c):
    H = hessian_of(f)
    x = np.linalg.solve(H, -(f.gradient(np.zeros(N)) + c))
    return x, f.value(x) + c @ x


@every(QUADRATICS)
def test_quadratic_minimum_on_the_full_space_and_on_an_inactive_ball(f, rng):
    for c in rng.standard_normal((3, N)):
        x, true = free_minimum(f, c)
        for domain in (FullSpace(N), Ball(2.0 * float(np.linalg.norm(x)) + 1.0, shape=N)):
            found = tilted_minimum(f, c, domain)
            scale = 1.0 + abs(true) + np.abs(c * x).sum()
            assert found.lower <= true + 1e-14 * scale
            assert true <= found.value + 1e-12 * scale
            assert found.error <= 1e-9 * scale
            np.testing.assert_allclose(found.point, x, rtol=1e-5, atol=1e-6 * np.abs(x).max())


def ball_minimum(f, c, radius):
    """The trust-region secular equation: H + s I solved for the s at which |x| is the radius."""
    H, slope = hessian_of(f), f.gradient(np.zeros(N)) + c

    def x(s):
        return np.linalg.solve(H + s * np.eye(N), -slope)

    s = scipy.optimize.brentq(lambda s: np.linalg.norm(x(s)) - radius, 0.0, 1e9, xtol=1e-15, rtol=1e-15)
    return f.value(x(s)) + c @ x(s)


@every(QUADRATICS)
def test_error_bar_is_true_when_the_ball_is_active(f, rng):
    for c in rng.standard_normal((3, N)):
        radius = 0.3 * float(np.linalg.norm(free_minimum(f, c)[0]))
        domain = Ball(radius, shape=N)
        found, true = tilted_minimum(f, c, domain), ball_minimum(f, c, radius)
        assert domain.contains(found.point, 1e-12)
        assert found.value == pytest.approx(f.value(found.point) + c @ found.point, rel=1e-12)
        assert found.lower <= true + 1e-9 * (1.0 + abs(true))
        assert true <= found.value + 1e-9 * (1.0 + abs(true))


def test_a_good_start_does_not_change_the_minimum(rng):
    f, c = QUADRATICS["least squares"], rng.standard_normal(N)
    cold = tilted_minimum(f, c, FullSpace(N))
    warm = tilted_minimum(f, c, FullSpace(N), start=cold.point)
    assert warm.value == pytest.approx(cold.value, rel=1e-12)
    assert warm.lower <= cold.value + 1e-12


def test_functions_with_no_certified_minimum_are_refused():
    with pytest.raises(NoExactMinimumError, match="Logistic on FullSpace"):
        tilted_minimum(Logistic(TALL, LABELS), TILT, FullSpace(N))
    with pytest.raises(NoExactMinimumError, match="LeastSquares on FullSpace"):
        tilted_minimum(LeastSquares(WIDE, np.ones(2)), TILT, FullSpace(N))
    with pytest.raises(NoExactMinimumError, match="value is not known"):
        tilted_minimum(Custom(gradient=lambda x: x, smoothness=Holder(1.0, 1.0)), TILT, BOX)


SEARCHED = {
    "logistic on a box": (Logistic(TALL, LABELS), BOX),
    "least squares on a box": (LeastSquares(TALL, np.arange(7.0)), BOX),
    "huber on a ball": (Huber(0.5), Ball(0.3, shape=N)),
    "logistic and absolute values": (Logistic(TALL, LABELS, ridge=0.1) + Power(0.0, weight=0.5), BOX),
    "least squares on a simplex": (LeastSquares(TALL, np.arange(7.0)), Simplex(N)),
}


@gathered(("f", "domain"), SEARCHED.values(), ids=SEARCHED.keys())
def test_searched_minima_have_true_error_bars_at_every_budget(f, domain, rng):
    c = rng.standard_normal(N)
    best = min(f.value(p) + c @ p for p in points_of(domain, rng, 200))
    for budget in (1, 5, 300):
        found = tilted_minimum(f, c, domain, max_gradients=budget)
        assert domain.contains(found.point, 1e-12)
        assert found.value == pytest.approx(f.value(found.point) + c @ found.point, abs=1e-12)
        assert found.lower <= best
        best = min(best, found.value)
        assert found.lower <= best + 1e-14 * (1.0 + abs(best))
    assert found.error <= 1e-2
    assert found.value <= best + 1e-12


# --- proximal steps ---------------------------------------------------------------------------------------------

PROXIMAL = {
    "huber": Huber(0.5),
    "absolute values": Power(0.0, weight=WEIGHT, tilt=TILT),
    "nu 1/2": Power(0.5, weight=2.0, quadratic=CURVATURE),
    "nu 3/4": Power(0.75, weight=WEIGHT),
    "sum": 2.0 * Huber(0.2) + Power(0.25) + Linear(TILT),
    "quadratic": Quadratic(CURVATURE) + Linear(TILT),
}


@gathered("domain", [BOX, FullSpace(N), NonNegative(N)])
@every(PROXIMAL)
def test_proximal_step_is_the_minimiser_of_its_definition(f, domain, rng):
    for weight in (0.3, 2.0):
        center = 2.0 * rng.standard_normal(N)
        stepped = prox(f, center, weight, domain)
        pulled = f + Quadratic(weight) + Linear(-weight * center)
        found = tilted_minimum(pulled, np.zeros(N), domain)
        assert domain.contains(stepped)
        np.testing.assert_allclose(stepped, found.point, atol=1e-7)
        assert pulled.value(stepped) <= found.value + 1e-12


@gathered("size", [600, 5000, 100_001])
def test_sums_of_many_terms_are_exact_to_the_last_bit(size):
    rng = np.random.default_rng(size)
    terms = rng.standard_normal(size) * 10.0 ** rng.integers(-8, 9, size)
    for many in (terms, np.concatenate([terms, -terms[::-1], [1.0]])):
        exact = math.fsum(many.tolist())
        found, roundings = careful_sum(many)
        assert abs(found - exact) <= roundings * np.finfo(float).eps * abs(exact)
    huge = np.full(size, 1e308)
    huge[::2] *= -1.0
    assert careful_sum(huge)[0] == math.fsum(huge.tolist())


class Cubes(Function):
    """A caller's sum of w_i |x_i|^3 / 3 that names no shape: entries are not alike."""

    separable = True

    def __init__(self, weights):
        self.weights = weights

    def gradient(self, x, out=None):
        return np.multiply(self.weights[: x.size], x * np.abs(x), out=out)

    def value(self, x):
        return float(np.sum(self.weights[: x.size] * np.abs(x) ** 3)) / 3.0

    def value_and_gradient(self, x, out=None):
        return self.value(x), self.gradient(x, out)

    def smoothness(self, domain):
        return Holder(1.0, 2.0 * float(self.weights.max()) * domain.magnitude())

    def strong_convexity(self, domain):
        return 0.0


def test_minima_of_a_callers_separable_function_ask_it_for_whole_points():
    """A bracket that closes at once must not shift the others' weights."""
    weights, tilt = 1.0 + np.arange(6.0), np.array([-1.0, 0.0, 3.0, 40.0, -2.0, 7.0])
    found = tilted_minimum(Cubes(weights), tilt, Box(-2.0, 2.0, shape=6))
    best = np.clip(-np.sign(tilt) * np.sqrt(np.abs(tilt) / weights), -2.0, 2.0)
    assert found.value == pytest.approx(Cubes(weights).value(best) + tilt @ best, rel=1e-12)
    assert found.lower <= Cubes(weights).value(best) + tilt @ best


def test_a_minimum_does_not_depend_on_how_many_brackets_are_halved():
    c, domain = np.random.default_rng(0).standard_normal((6, 50)), Box(-0.3, 0.3, shape=(6, 50))
    # A function of one shape has all its brackets halved, one that takes any shape those that are open.
    found, whole = (
        tilted_minimum(Quadratic(2.0) + Power(0.5, weight), c, domain) for weight in (0.7, np.full((6, 50), 0.7))
    )
    assert np.array_equal(found.point, whole.point)
    assert (found.value, found.error) == (whole.value, whole.error)
    assert 0 < np.count_nonzero(np.abs(found.point) < 0.3) < c.size


class Weighted(Cubes):
    """A caller's power of 3/2 that names its form, with a weight for every entry, and no shape."""

    def gradient(self, x, out=None):
        return np.multiply(self.weights, np.sign(x) * np.sqrt(np.abs(x)), out=out)

    def value(self, x):
        return float(np.sum(self.weights * np.abs(x) ** 1.5)) / 1.5

    def separable_form(self):
        return Power(0.5, self.weights).separable_form()


@gathered("domain", [Box(-3.0, 3.0, shape=6), FullSpace(6), Simplex(6), Ball(2.0, shape=6)])
def test_a_form_with_weights_of_its_own_for_every_entry_needs_no_shape(domain):
    weights, tilt = 1.0 + np.arange(6.0), np.array([1.0, -2.0, 3.0, 0.0, 0.0, 100.0])
    found, known = (tilted_minimum(f, tilt, domain) for f in (Weighted(weights), Power(0.5, weights)))
    assert found.value == pytest.approx(known.value, rel=1e-12)
    assert found.lower == pytest.approx(known.lower, rel=1e-12)
