"""The catalogue: one table of functions, and what must hold of each, against brute force and an independent solver."""

import math

import numpy as np
import pytest
import scipy.optimize

import saddleslide as ss
from saddleslide.domains import Box, FullSpace, NonNegative, Simplex
from saddleslide.functions import Conjugate
from support import gathered

F = ss.functions
COUNTS = np.array([1.0, 0.0, 3.0, 0.5, 2.0, 0.25])
ROWS = np.array([0.5, 2.0, 1.0])
# Name, function, shape of its argument; formulas written a second time, without the library.
TABLE = {
    "l1": (F.L1([1.0, 0.0, 2.0, 1.0, 0.5, 3.0]), 6, lambda x: abs(x) @ [1.0, 0.0, 2.0, 1.0, 0.5, 3.0]),
    "l2": (F.L2(), 6, lambda x: math.sqrt(x @ x)),
    "l21": (F.L21(axis=0), (2, 3), lambda x: sum(math.hypot(*column) for column in x.T)),
    "l21 weights": (
        F.L21(axis=1, weights=ROWS), (3, 2),
        lambda x: sum(w * math.hypot(*r) for w, r in zip(ROWS, x, strict=True)),
    ),
    "l21 axes": (F.L21(axis=(0, -1)), (2, 2, 2), lambda x: sum(np.linalg.norm(x[:, j]) for j in range(2))),
    "linf": (F.LInf(), 6, lambda x: max(abs(x))),
    "max": (F.Max(), 6, max),
    "nuclear": (F.Nuclear(), (2, 3), lambda x: np.sqrt(np.maximum(np.linalg.eigvalsh(x @ x.T), 0.0)).sum()),
    "p 1.5": (F.PNorm(1.5), 6, lambda x: (abs(x) ** 1.5).sum() ** (2 / 3)),
    "p 3": (F.PNorm(3.0), 6, lambda x: (abs(x) ** 3).sum() ** (1 / 3)),
    "entropy": (F.Entropy(), 6, lambda x: scipy.special.xlogy(x, x).sum() if (x >= 0).all() else math.inf),
    "kl": (F.KullbackLeibler(COUNTS), 6, lambda x: scipy.special.kl_div(COUNTS, x).sum()),
    "hinge": (F.Hinge(), 6, lambda x: sum(max(0.0, 1.0 - t) for t in x)),
    "squared hinge": (F.SquaredHinge(), 6, lambda x: sum(max(0.0, 1.0 - t) ** 2 / 2 for t in x)),
    "quantile": (F.Quantile(0.7), 6, lambda x: sum(max(0.7 * t, -0.3 * t) for t in x)),
    "positive part": (F.PositivePart(), 6, lambda x: sum(max(t, 0.0) for t in x)),
    "insensitive": (F.EpsilonInsensitive(0.5), 6, lambda x: sum(max(abs(t) - 0.5, 0.0) for t in x)),
    "log-sum-exp": (F.LogSumExp(), 6, lambda x: math.log(sum(math.exp(t) for t in x))),
    "huber": (F.Huber(0.5), 6, lambda x: sum(t * t if abs(t) < 0.5 else abs(t) - 0.25 for t in x)),
    "group huber": (
        F.Huber(0.5, axis=0), (2, 3),
        lambda x: sum(n * n if n < 0.5 else n - 0.25 for n in (math.hypot(*column) for column in x.T)),
    ),
    "quadratic": (F.Quadratic(np.arange(6.0)), 6, lambda x: 0.5 * np.arange(6.0) @ (x * x)),
    "squares": (
        F.LeastSquares(None, COUNTS, weights=COUNTS + 0.5), 6, lambda x: 0.5 * (COUNTS + 0.5) @ (x - COUNTS) ** 2
    ),
    "power": (F.Power(0.5), 6, lambda x: (abs(x) ** 1.5).sum() / 1.5),
    "elastic net": (F.L1() + F.Quadratic(0.5), 6, lambda x: abs(x).sum() + 0.25 * x @ x),
    "box": (F.Indicator(Box([-1.0, 0.0, -np.inf, 2.0, 0.0, -np.inf], [1.0, np.inf, 0.5, 2.0, 3.0, np.inf])), 6, None),
    "nonnegative": (F.Indicator(NonNegative(6)), 6, None),
    "ball": (F.Indicator(ss.domains.Ball(0.7, center=np.arange(6.0) / 5)), 6, None),
    "simplex": (F.Indicator(Simplex(6, scale=2.0)), 6, None),
    "group balls": (F.Indicator(ss.domains.GroupBalls(0.5, axis=0, shape=(2, 3))), (2, 3), None),
    "l1 ball": (F.Indicator(ss.domains.L1Ball(0.5, 6)), 6, None),
    "spectral ball": (F.Indicator(ss.domains.SpectralBall(0.5, (2, 3))), (2, 3), None),
    "half-space": (F.Indicator(ss.domains.HalfSpace(np.arange(1.0, 7.0), 1.0)), 6, None),
    "sparse groups": (0.3 * F.L1() + 0.5 * F.L21(axis=0), (2, 3),
                      lambda x: 0.3 * abs(x).sum() + 0.5 * sum(math.hypot(*column) for column in x.T)),
}  # fmt: skip
# The sum has no closed conjugate.
CLOSED = [name for name in TABLE if name != "sparse groups"]
HOLDER = [name for name in TABLE if name not in ("entropy", "kl", "elastic net") and TABLE[name][2] is not None]


def points(shape, count, scale=1.5):
    rng = np.random.default_rng(5)
    return [scale * rng.standard_normal(shape) for _ in range(count)]


def inside(h, x):
    """A point of the function's domain near x."""
    return h.prox(x, 1e-3)


@gathered("name", [name for name in TABLE if TABLE[name][2] is not None])
def test_values_are_those_of_the_formula(name):
    h, shape, formula = TABLE[name]
    for x in points(shape, 5):
        for at in (x, np.abs(x)):
            assert h.value(at) == pytest.approx(formula(at), rel=1e-12, abs=1e-12)
            assert h.value_and_gradient(at)[0] == pytest.approx(h.value(at), rel=1e-14)


@gathered("name", TABLE)
def test_steps_are_minima(name):
    """(center - p) / step is a subgradient at p, tested at random points and at small distances from p."""
    h, shape, _ = TABLE[name]
    for step in (0.05, 0.8, 30.0):
        for center in points(shape, 6):
            before = center.copy()
            p = h.prox(center, step)
            assert np.array_equal(center, before) and math.isfinite(h.value(p))
            slope = (center - p) / step
            for z in (*points(shape, 12), *(p + d for d in points(shape, 12, 1e-4))):
                for at in (z, np.abs(z), inside(h, z)):
                    scale = 1.0 + abs(h.value(p)) + np.linalg.norm(slope) * (1.0 + np.linalg.norm(p))
                    assert h.value(at) >= h.value(p) + np.vdot(slope, at - p) - 1e-12 * scale


@gathered("name", [name for name in TABLE if TABLE[name][0].has_entry_steps])
def test_a_step_for_each_entry(name):
    h, shape, _ = TABLE[name]
    steps = np.linspace(0.1, 2.0, 6)
    for center in points(shape, 3):
        p, alone = h.prox(center, steps), [h.prox(center, float(step)) for step in steps]
        assert np.allclose(p, [alone[i][i] for i in range(6)], rtol=1e-14, atol=1e-15)


@gathered("name", CLOSED)
def test_conjugates(name):
    """Fenchel's inequality at random pairs, equality at a step and its subgradient, Moreau's identity."""
    h, shape, _ = TABLE[name]
    for step in (0.1, 1.0, 4.0):
        for center in points(shape, 5):
            p = h.prox(center, step)
            y = (center - p) / step
            found = h.conjugate_value(y)
            if not math.isfinite(found):
                # Rounding may have put a point beside a set; on the set itself it is finite.
                assert name in ("nuclear", "simplex", "max", "log-sum-exp", "box", "nonnegative", "half-space")
            else:
                scale = 1.0 + np.linalg.norm(p) * np.linalg.norm(y)
                assert h.value(p) + found == pytest.approx(np.vdot(p, y), abs=2e-12 * scale)
            moreau = h.conjugate().prox(center / step, 1.0 / step)
            assert np.allclose(p + step * moreau, center, atol=1e-12 * (1.0 + np.abs(center).max()))
            for z in points(shape, 6):
                other, at = h.conjugate_value(z), inside(h, center)
                assert h.value(at) + other >= np.vdot(at, z) - 1e-9 * (1.0 + abs(h.value(at)))


@gathered("factor", [0.3, 1.0, 2.5])
@pytest.mark.parametrize("name", CLOSED)
def test_duals_are_conjugates_of_multiples(name, factor):
    """(g, Y) has the steps and, where it is finite, the values of the conjugate of factor times h."""
    h, shape, _ = TABLE[name]
    shape = (shape,) if isinstance(shape, int) else shape
    g, Y = (0.5 * h).dual(shape, 2.0 * factor)
    plain = Conjugate(factor * h)
    assert Y.shape == shape and F.has_prox(g, Y)
    for center in points(shape, 6):
        y = F.prox(g, center, 2.0, Y)
        assert Y.contains(y, 1e-12)
        assert np.allclose(y, plain.prox(center, 0.5), atol=1e-11)
        # The value at y is <y, p> - factor h(p) for the p whose subgradient it is.
        if name == "half-space":
            # Finite on a ray alone, which rounding leaves.
            continue
        p = h.prox(2.0 * center, 2.0 * factor)
        assert g.value(y) == pytest.approx(np.vdot(y, p) - factor * h.value(p), abs=1e-9)


@gathered("name", TABLE)
def test_subgradients_and_what_is_said_of_them(name):
    h, shape, _ = TABLE[name]
    domain = FullSpace(shape)
    known = h.smoothness(domain) if name in HOLDER else None
    for x in points(shape, 6):
        for z in points(shape, 6, 0.7):
            x, z = inside(h, x), inside(h, z)
            (value, slope), (other, slope_z) = h.value_and_gradient(x), h.value_and_gradient(z)
            if not np.isfinite(slope).all():
                continue
            scale = 1.0 + abs(value) + abs(other)
            bound = 0.5 * h.strong_convexity(domain) * np.sum((z - x) ** 2)
            assert other >= value + np.vdot(slope, z - x) + bound - 1e-12 * scale
            if known is not None:
                assert np.linalg.norm(slope - slope_z) <= known.H * np.linalg.norm(x - z) ** known.nu * (1.0 + 1e-12)
            out = np.empty_like(x)
            assert np.array_equal(h.value_and_gradient(x, out)[1], slope) and np.array_equal(out, slope)


@pytest.mark.parametrize(
    "h, domain",
    [
        (F.Entropy(), Box(0.0, 3.0, shape=4)),
        (F.Entropy(), Simplex(4)),
        (F.Entropy(), Box(0.5, 3.0, shape=4)),
        (F.KullbackLeibler([1.0, 2.0, 0.5, 4.0]), Box(0.25, 3.0, shape=4)),
        (F.SquaredHinge(), Box(-2.0, 1.0, shape=4)),
        (F.Huber(2.0, axis=0), ss.domains.Ball(2.0, shape=(2, 2))),
    ],
)
def test_moduli_and_curvatures_on_sets(h, domain):
    mu = h.strong_convexity(domain)
    assert mu > 0.0
    closest = math.inf
    for x, z in zip(points(domain.shape, 60, 2.0), points(domain.shape, 120, 2.0)[60:], strict=True):
        x, z = (domain.project(part) + 1e-9 * (isinstance(h, F.Entropy)) for part in (x, z))
        change = h.gradient(x) - h.gradient(z)
        square = float(np.sum((x - z) ** 2))
        if square > 1e-8:
            closest = min(closest, float(np.vdot(change, x - z)) / square)
    assert closest >= mu * (1.0 - 1e-6)
    if isinstance(domain, Box) and domain.lower[0] > 0.0:
        known = h.smoothness(domain)
        x, z = domain.project(np.full(4, -9.0)), domain.project(np.full(4, -9.0)) + 1e-6
        assert np.max(np.abs(h.gradient(x) - h.gradient(z))) <= known.H * 1e-6 * (1.0 + 1e-6)


@gathered("name", TABLE)
def test_minima_with_a_tilt_are_bounds(name):
    """The closed minimum over the whole space, a box and, for groups, x >= 0: below every value, and attained."""
    h, shape, _ = TABLE[name]
    tilts = [*points(shape, 4), *(0.1 * c for c in points(shape, 2))]
    tried = 0
    for domain in (FullSpace(shape), Box(-0.75, 1.25, shape=shape), NonNegative(shape), Simplex(shape)):
        for c in tilts:
            found = h.closed_minimum(c, domain)
            assert h.can_minimise(domain) == (found is not None)
            if found is None:
                continue
            tried += 1
            # Far from the minimiser, and beside it, where one that is not quite it would show.
            beside = [found.point + d for d in points(shape, 12, 1e-4)] if math.isfinite(found.value) else []
            for x in (*(inside(h, x) for x in points(shape, 20)), *beside):
                at = domain.project(x)
                assert h.value(at) + np.vdot(c, at) >= found.value - 1e-11
            if math.isfinite(found.value):
                at = h.value(found.point) + np.vdot(c, found.point)
                assert at == pytest.approx(found.value, abs=1e-12 + 2.0 * found.error)
                assert domain.contains(found.point, 1e-12) and found.error < 1e-12
    assert tried or h.separable_form() is not None or name in ("group huber", "sparse groups")


def test_entropy_on_simplices():
    """The step on a simplex solves its conditions; the minimum is that of an independent formula."""
    for scale, weight in ((1.0, 0.01), (3.0, 1.0), (0.5, 500.0)):
        Y = Simplex(7, scale=scale)
        for center in points(7, 4):
            y = F.prox(F.Entropy(), center, weight, Y)
            seen = y > 1e-200
            slope = np.log(np.where(seen, y, 1.0)) + weight * (y - center)
            assert y.sum() == pytest.approx(scale, rel=1e-14)
            assert np.ptp(slope[seen]) <= 1e-10 * (1.0 + np.abs(slope[seen]).max())
            found = F.tilted_minimum(F.Entropy(), center, Y)
            exact = scale * math.log(scale) - scale * scipy.special.logsumexp(-center)
            assert found.lower <= exact <= found.value and found.error < 1e-12


def test_infinite_values():
    assert F.Entropy().value(np.array([1.0, -1e-300])) == math.inf
    assert F.KullbackLeibler([1.0, 0.0]).value(np.array([0.0, 1.0])) == math.inf
    assert F.KullbackLeibler([1.0, 0.0]).value(np.array([1.0, 0.0])) == 0.0
    assert F.Hinge().conjugate_value(np.array([0.1])) == F.Quantile(0.5).conjugate_value(np.array([-0.6])) == math.inf
    assert F.LogSumExp().conjugate_value(np.array([0.5, 0.4])) == math.inf
    empty = F.Indicator(Box(0.0, 1.0, shape=2)).closed_minimum(np.ones(2), Box(2.0, 3.0, shape=2))
    assert empty.value == math.inf


@gathered(
    "make, word",
    [
        (lambda: F.L21(axis=0.5), "axis is 0.5"),
        (lambda: F.L21(axis=(1, 1)), "different axes"),
        (lambda: F.L21(axis=2).value(np.ones((2, 2))), "shape (2, 2)"),
        (lambda: F.L21(weights=-1.0), "negative entry"),
        (lambda: F.L21(axis=0, weights=[1.0, 2.0]).value(np.ones((2, 3))), "3 groups"),
        (lambda: F.PNorm(1.0), "L1()"),
        (lambda: F.PNorm(math.inf), "LInf()"),
        (lambda: F.Hinge(np.ones(3)), "expected none"),
        (lambda: F.Quantile(1.5), "[0, 1]"),
        (lambda: F.EpsilonInsensitive(-1.0), "epsilon"),
        (lambda: F.KullbackLeibler(1.0), "a number"),
        (lambda: F.KullbackLeibler([-1.0]), "-1"),
        (lambda: F.Indicator(3), "int"),
        (lambda: F.Huber(1.0, axis="x"), "axis is 'x'"),
        (lambda: F.Entropy().smoothness(NonNegative(2)), "lower > 0"),
        (lambda: F.Indicator(NonNegative(2)).smoothness(NonNegative(2)), "Hölder"),
    ],
)
def test_refusals(make, word):
    with pytest.raises(ss.errors.InputError) as refused:
        make()
    assert word in str(refused.value)


def test_representations():
    shown = {repr(h): h for h, *_ in TABLE.values()}
    for text in ("L21(axis=0)", "L21(axis=1, weights=array)", "L21(axis=(0, -1))", "Huber(0.5, axis=0)", "PNorm(3)"):
        assert text in shown
    assert repr(F.Quantile(0.5)) == "Quantile(0.5)" and "Simplex" in repr(F.Indicator(Simplex(2)))
    assert repr(F.L21(weights=2.0)) == "L21(axis=0, weights=2.0)"


def test_small_entries_beside_a_large_one_keep_their_digits():
    """Of (c - p) / step = (|p| / |p|_50)^49 little is left there, whatever the step."""
    center = np.array([-1.876, 8e-10, 4e-4, 0.0])
    assert np.allclose(F.PNorm(50.0).prox(center, 1e-8)[1:], center[1:], rtol=1e-12, atol=0.0)
    # Nor does the unit matter, at either end of the range of numbers.
    center, plain = np.array([0.0, 1.2, 0.0, 1.4]), F.PNorm(3.0).prox(np.array([0.0, 1.2, 0.0, 1.4]), 1.446)
    for unit in (1e-164, 1e-250, 1e200):
        assert np.allclose(F.PNorm(3.0).prox(center * unit, 1.446 * unit) / unit, plain, rtol=0.0, atol=1e-14)


def test_groups_of_zeros_stay_at_any_step():
    x = np.array([[0.0, 0.0], [3.0, 4.0]])
    with np.errstate(all="raise"):
        assert np.array_equal(ss.functions.L21(axis=1).prox(x, 1e12), np.zeros((2, 2)))
        assert np.allclose(ss.functions.L21(axis=1).prox(x, 1.0), 0.8 * x)
