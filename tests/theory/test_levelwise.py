"""The level-wise theorem of docs/theory.md as tests: every level in its own seminorm, with its own Omega."""

from __future__ import annotations

import dataclasses
import itertools
import math
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import saddleslide as ss
from composite import Composite
from plans import sliding_plan
from saddleslide.errors import InputError
from saddleslide.methods.sliding import Recursion
from saddleslide.theory import Term, alpha_sequence, place, printed_holder_bound, sharp_bound
from saddleslide.theory.levels import best_w, levelwise_terms
from support import gathered, pairwise

ORDERS = ["".join(letters) for letters in itertools.permutations("fgB")]
EXPONENTS = (0.0, 0.25, 0.5, 0.75, 1.0)
# Rounding of a bound; that of a gap is in its certificate.
ROUNDING = 1e-10

every_order = gathered("order", ORDERS)
positive = st.integers(-30, 30).map(lambda tenths: 10.0 ** (tenths / 10.0))
three_loops = st.tuples(*[st.integers(1, 7)] * 3)


@dataclass(frozen=True)
class Saddle:
    """Powers on boxes with a start: all that a run and an exact gap need."""

    f: ss.functions.Power
    g: ss.functions.Power
    B: np.ndarray
    X: ss.domains.Box
    Y: ss.domains.Box
    start: tuple

    @property
    def problem(self):
        return ss.SaddleProblem(f=self.f, g=self.g, B=self.B, X=self.X, Y=self.Y)

    @property
    def radii(self):
        return self.X.squared_radius(self.start[0]), self.Y.squared_radius(self.start[1])

    @property
    def constants(self):
        return self.f.smoothness(self.X), self.g.smoothness(self.Y), float(np.linalg.norm(self.B, 2))

    def levels(self, order, loops, w=None):
        terms = {term.name: term for term in levelwise_terms(*self.constants, *self.radii, w)}
        return place([terms[letter] for letter in order], loops)

    def common_levels(self, order, loops, w_x, w_y):
        """All three in one norm diag(w_x, w_y), as the printed theorem has it."""
        return place(common_terms(*self.constants, *self.radii, w_x, w_y, order), loops)

    def run(self, levels, kind=Recursion, **options):
        size = self.X.size

        def f_writer(z, out):
            out[:size] = self.f.gradient(z[:size])

        def g_writer(z, out):
            out[size:] = self.g.gradient(z[size:])

        def coupling(z, out):
            out[:size], out[size:] = self.B.T @ z[size:], -self.B @ z[:size]

        names = [level.term.name for level in levels]
        gradients = [{"f": f_writer, "g": g_writer}.get(name) for name in names]
        # A coupling with norm 0 is no operator, as in bilinear_recursion.
        operators = [coupling if level.term.M > 0.0 else None for level in levels]
        domain = ss.domains.Product(self.X, self.Y)
        *_, z = kind(levels, gradients, operators, domain, np.concatenate(self.start), **options).steps()
        return z[:size].copy(), z[size:].copy()

    def gap(self, point, f_simple=None, g_simple=None):
        """The exact gap, less all that rounding may have added."""
        f = self.f if f_simple is None else self.f + f_simple
        g = self.g if g_simple is None else self.g + g_simple
        certificate = ss.certify(ss.SaddleProblem(f=f, g=g, B=self.B, X=self.X, Y=self.Y), *point)
        assert certificate.error <= 1e-9 * (1.0 + abs(certificate.lower))
        return certificate.gap - certificate.error

    def in_units(self, s, t):
        """The same problem in x / s and y / t."""

        def power(p, unit):
            return ss.functions.Power(p.nu, weight=p.weight * unit ** (1.0 + p.nu), tilt=p.tilt * unit)

        return Saddle(
            power(self.f, s),
            power(self.g, t),
            self.B * (s * t),
            ss.domains.Box(self.X.lower / s, self.X.upper / s),
            ss.domains.Box(self.Y.lower / t, self.Y.upper / t),
            (self.start[0] / s, self.start[1] / t),
        )


def common_terms(f, g, L_xy, Omega_x, Omega_y, w_x, w_y, order="fgB"):
    Omega, M = w_x * Omega_x + w_y * Omega_y, L_xy / math.sqrt(w_x * w_y)
    terms = {
        "f": Term("f", f.in_metric(w_x), weights=(w_x, w_y), Omega=Omega),
        "g": Term("g", g.in_metric(w_y), weights=(w_x, w_y), Omega=Omega),
        "B": Term("B", M=M, weights=(w_x, w_y), Omega=Omega),
    }
    return [terms[letter] for letter in order]


@st.composite
def saddles(draw, exponents=EXPONENTS):
    """Powers on boxes of order one; `in_units` makes x and y as unlike as wanted."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    scale = st.sampled_from([0.1, 1.0, 10.0])
    sizes = draw(st.integers(1, 5)), draw(st.integers(1, 5))

    def power(size):
        weight = draw(scale) * rng.uniform(0.1, 1.0, size)
        return ss.functions.Power(draw(st.sampled_from(exponents)), weight=weight, tilt=rng.standard_normal(size))

    boxes = [ss.domains.Box(-rng.uniform(0.5, 1.5, size), rng.uniform(0.1, 1.5, size)) for size in sizes]
    return Saddle(
        power(sizes[0]),
        power(sizes[1]),
        draw(scale) * rng.standard_normal(sizes[::-1]),
        *boxes,
        start=tuple(box.project(rng.standard_normal(box.size)) for box in boxes),
    )


# The bound.


@settings(max_examples=120, deadline=None)
@given(saddles(), st.sampled_from(ORDERS), three_loops, st.tuples(positive, positive), st.none() | positive)
def test_the_gap_never_exceeds_the_levelwise_bound(saddle, order, loops, units, factor):
    saddle = saddle.in_units(*units)
    w = None if factor is None else factor * best_w(*saddle.radii)
    levels = saddle.levels(order, loops, w)
    bound = sharp_bound(levels)
    assert saddle.gap(saddle.run(levels)) <= bound * (1.0 + ROUNDING)
    assert bound <= printed_holder_bound(levels) * (1.0 + ROUNDING)


@every_order
def test_a_levelwise_plan_runs_like_any_other(order):
    saddle = pressed(L=1.0, M=2.0).in_units(40.0, 0.01)
    plan = sliding_plan(saddle.levels(order, (4, 3, 5)))
    result = ss.run(saddle.problem, plan, start=saddle.start)
    x, y = saddle.run(plan.schedule.levels)
    np.testing.assert_allclose(result.x, x, rtol=0.0, atol=1e-12 * np.abs(x).max())
    np.testing.assert_allclose(result.y, y, rtol=0.0, atol=1e-12 * np.abs(y).max())
    assert ss.Plan.from_dict(plan.to_dict()) == plan
    assert result.gap <= plan.bound


def pressed(L, M, size=6):
    """A saddle point at about 0.05, in a box [-1, 0.1] that reaches much further down than up."""
    rotation = np.linalg.qr(np.random.default_rng(0).standard_normal((size, size)))[0]
    box = ss.domains.Box(-1.0, 0.1, shape=size)
    power = ss.functions.Power(1.0, weight=np.full(size, 0.5), tilt=np.full(size, 0.025))
    steep = ss.functions.Power(1.0, weight=np.linspace(0.5, 0.5 + L, size), tilt=np.full(size, 0.025))
    return Saddle(steep, power, M * rotation, box, box, (np.zeros(size), np.zeros(size)))


def with_term(levels, name, **changes):
    return [
        dataclasses.replace(level, term=dataclasses.replace(level.term, **changes))
        if level.term.name == name
        else level
        for level in levels
    ]


breaking = gathered(("order", "loops"), [("fgB", (10, 2, 20)), ("Bfg", (100, 1, 1)), ("fBg", (10, 10, 1))])


@breaking
@pytest.mark.parametrize("units", [(1.0, 1.0), (100.0, 0.01)])
def test_a_coupling_norm_whose_weights_have_a_product_below_one_breaks_the_bound(order, loops, units):
    saddle = pressed(L=0.0, M=40.0).in_units(*units)
    levels = saddle.levels(order, loops)
    (w, inverse) = next(level.term.weights for level in levels if level.term.name == "B")
    assert saddle.gap(saddle.run(levels)) <= sharp_bound(levels)
    # As if M were a fifth of what it is.
    assert saddle.gap(saddle.run(with_term(levels, "B", weights=(w, inverse / 25.0)))) > 1.4 * sharp_bound(levels)


@breaking
def test_too_small_an_M_breaks_the_bound(order, loops):
    saddle = pressed(L=0.0, M=4.0).in_units(100.0, 0.01)
    levels = saddle.levels(order, loops)
    M = next(level.term.M for level in levels if level.term.name == "B")
    assert saddle.gap(saddle.run(with_term(levels, "B", M=M / 4.0))) > 1.2 * sharp_bound(levels)


# The theorem with full matrices P_k, singular ones at every level, on the full space: quadratics, where the largest
# excess of the gap over the bound, over all comparison points z, is the maximum of a concave quadratic.


@dataclass(frozen=True)
class Part:
    """p = z^T A z / 2 - b^T z and the operator K z, in the seminorm P, with constants L and M."""

    A: np.ndarray
    b: np.ndarray
    K: np.ndarray
    P: np.ndarray
    L: float
    M: float


def singular_parts(rng, rho):
    """f and g in their own Hessians, B of rank 2 in diag(rho B^T B, I / rho): L = 1 and M = 1, no P_k definite."""
    n, m = 5, 4
    U, V = np.linalg.qr(rng.standard_normal((n, n)))[0], rng.standard_normal((m, 2))
    B = V @ U[:, :2].T
    zero = np.zeros((n + m, n + m))

    def blocks(x, y):
        out = zero.copy()
        out[:n, :n], out[n:, n:] = x, y
        return out

    # The Hessian of f is singular along one direction, which B sees, so that the sum of all P_k is definite.
    hessian_f = blocks((U[:, 1:] * rng.uniform(0.1, 10.0, n - 1)) @ U[:, 1:].T, 0.0)
    direction = rng.standard_normal(m)
    hessian_g = blocks(0.0, np.outer(direction, direction))
    K = zero.copy()
    K[:n, n:], K[n:, :n] = B.T, -B
    tilt_f, tilt_g = np.concatenate([rng.standard_normal(n), np.zeros(m)]), np.concatenate([np.zeros(n), direction])
    return {
        "f": Part(hessian_f, tilt_f, zero, hessian_f, 1.0, 0.0),
        "g": Part(hessian_g, tilt_g, zero, hessian_g, 1.0, 0.0),
        "B": Part(zero, np.zeros(n + m), K, blocks(rho * B.T @ B, np.eye(m) / rho), 0.0, 1.0),
    }


def literal_levelwise(parts, loops, start):
    """Algorithm 1 with the seminorm P_k at level k, written from the text of docs/theory.md."""
    alphas = alpha_sequence(max(loops))
    last = np.cumprod([alphas[T - 1] for T in loops])
    iterates = [start.copy() for _ in parts]

    def sweep(k, Gamma, base, frozen):
        if k == len(parts):
            return np.linalg.solve(sum(H for H, _, _ in frozen), sum(H @ z - slope for H, z, slope in frozen))
        part, average = parts[k], iterates[k].copy()
        for alpha in alphas[: loops[k]]:
            z, eta = iterates[k], Gamma * alpha * (part.L + part.M / last[k])
            below = base + Gamma * (1.0 - alpha) * average
            slope = part.A @ (Gamma * alpha * z + below) - part.b + part.K @ z
            ahead = sweep(k + 1, Gamma * alpha, below, [*frozen, (eta * part.P, z, slope)])
            average = alpha * ahead + (1.0 - alpha) * average
            iterates[k] = ahead - np.linalg.pinv(part.P) @ (part.K @ (ahead - z)) / eta
        return average

    return sweep(0, 1.0, np.zeros_like(start), [])


def largest_excess(true_parts, loops, start, out):
    """The largest value over all z of the gap at z minus the bound at z, and the size of the numbers in it."""
    last = np.cumprod([alpha_sequence(T)[-1] for T in loops])
    W = sum((part.L * a**2 + part.M * a) * part.P for part, a in zip(true_parts, last, strict=True))
    A, b, K = (sum(getattr(part, name) for part in true_parts) for name in "AbK")
    z = np.linalg.lstsq(A + W, b + K.T @ out + W @ start, rcond=None)[0]

    def p(u):
        return 0.5 * u @ A @ u - b @ u

    gap, bound = p(out) - p(z) + (K @ z) @ (out - z), 0.5 * (start - z) @ W @ (start - z)
    return gap - bound, abs(p(out)) + abs(p(z)) + bound


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from(ORDERS), three_loops, positive)
def test_the_bound_holds_at_every_point_for_singular_matrices(seed, order, loops, rho):
    rng = np.random.default_rng(seed)
    parts = singular_parts(rng, rho)
    chosen, start = [parts[letter] for letter in order], rng.standard_normal(9)
    assert all(np.linalg.matrix_rank(part.P) < 9 for part in chosen)
    excess, size = largest_excess(chosen, loops, start, literal_levelwise(chosen, loops, start))
    assert excess <= 1e-8 * size


@gathered(("name", "constant"), [("f", "L"), ("B", "M")])
@every_order
def test_too_small_a_constant_at_any_level_breaks_the_bound_for_singular_matrices(order, name, constant):
    rng = np.random.default_rng(3)
    parts, start, loops = singular_parts(rng, 1.0), rng.standard_normal(9), (4, 4, 4)
    wrong = {**parts, name: dataclasses.replace(parts[name], **{constant: 0.3})}
    out = literal_levelwise([wrong[letter] for letter in order], loops, start)
    excess, size = largest_excess([parts[letter] for letter in order], loops, start, out)
    assert excess > 0.5 * size


def test_the_recursion_is_the_literal_one_for_block_weights():
    """On the full space both must give the same point, in all orders."""
    rng, n, m, w = np.random.default_rng(5), 3, 2, 0.03
    B, C, D = rng.standard_normal((m, n)), rng.uniform(0.5, 2.0, n), rng.uniform(0.5, 2.0, m)
    K = np.block([[np.zeros((n, n)), B.T], [-B, np.zeros((m, m))]])
    x_block, y_block = np.diag([1.0] * n + [0.0] * m), np.diag([0.0] * n + [1.0] * m)
    zero, tilt, start = np.zeros((n + m, n + m)), rng.standard_normal(n + m), rng.standard_normal(n + m)
    A_f, A_g, L_xy = np.diag([*C, *np.zeros(m)]), np.diag([*np.zeros(n), *D]), float(np.linalg.norm(B, 2))
    parts = {
        "f": Part(A_f, x_block @ tilt, zero, x_block, float(C.max()), 0.0),
        "g": Part(A_g, y_block @ tilt, zero, y_block, float(D.max()), 0.0),
        "B": Part(zero, 0.0 * tilt, K, w * x_block + y_block / w, 0.0, L_xy),
    }
    f, g = ss.functions.Power(1.0, weight=C, tilt=tilt[:n]), ss.functions.Power(1.0, weight=D, tilt=tilt[n:])
    saddle = Saddle(f, g, B, ss.domains.FullSpace(n), ss.domains.FullSpace(m), (start[:n], start[n:]))
    for order in ORDERS:
        z = np.concatenate(saddle.run(saddle.levels(order, (4, 3, 2), w)))
        literal = literal_levelwise([parts[letter] for letter in order], (4, 3, 2), start)
        np.testing.assert_allclose(z, literal, rtol=1e-10, atol=1e-12)


# Units.


@pairwise(order=ORDERS, nus=[(1.0, 1.0), (0.5, 0.75), (0.25, 0.0)], units=[(3.0, 1.0), (1.0, 0.07), (1e3, 1e-2)])
def test_units_change_neither_the_points_nor_the_bound(order, nus, units):
    rng, (s, t) = np.random.default_rng(11), units
    boxes = [ss.domains.Box(-rng.uniform(0.5, 1.5, size), rng.uniform(0.1, 1.5, size)) for size in (5, 4)]
    f, g = (
        ss.functions.Power(nu, weight=rng.uniform(0.1, 1.0, box.size), tilt=rng.standard_normal(box.size))
        for nu, box in zip(nus, boxes, strict=True)
    )
    start = tuple(box.project(0.2 * rng.standard_normal(box.size)) for box in boxes)
    saddle = Saddle(f, g, rng.standard_normal((4, 5)), *boxes, start)
    other, loops, w = saddle.in_units(s, t), (6, 3, 4), 0.4

    def moved(levels):
        x, y = other.run(levels)
        return np.concatenate([s * x, t * y])

    # w is a ratio of y to x: in the new units it is w s / t. The default follows by itself.
    for old_w, new_w in ((w, w * s / t), (None, None)):
        levels, new_levels = saddle.levels(order, loops, old_w), other.levels(order, loops, new_w)
        assert sharp_bound(new_levels) == pytest.approx(sharp_bound(levels), rel=1e-12)
        assert printed_holder_bound(new_levels) == pytest.approx(printed_holder_bound(levels), rel=1e-12)
        point = np.concatenate(saddle.run(levels))
        np.testing.assert_allclose(moved(new_levels), point, rtol=1e-8, atol=1e-9)
    # The same w in other units is another method.
    assert (
        np.abs(moved(other.levels(order, loops, w)) - np.concatenate(saddle.run(saddle.levels(order, loops, w)))).max()
        > 1e-4
    )


# Against one norm for all levels.

holders = st.builds(ss.Holder, st.sampled_from(EXPONENTS), positive)


@settings(max_examples=120, deadline=None)
@given(
    holders,
    holders,
    positive,
    st.tuples(positive, positive),
    st.tuples(positive, positive),
    st.sampled_from(ORDERS),
    three_loops,
)
def test_the_bound_is_never_above_that_of_a_common_norm_and_balancing_loses_at_most_a_factor_two(
    f, g, L_xy, radii, weights, order, loops
):
    terms = {term.name: term for term in levelwise_terms(f, g, L_xy, *radii)}
    own = place([terms[letter] for letter in order], loops)
    common = place(common_terms(f, g, L_xy, *radii, *weights, order), loops)
    balanced = place(common_terms(f, g, L_xy, *radii, 1.0 / radii[0], 1.0 / radii[1], order), loops)
    for bound in (sharp_bound, printed_holder_bound):
        # Term by term, each in its own position.
        for position in range(3):
            mine, theirs = alone(own, position), alone(common, position)
            assert bound(mine) <= bound(theirs) * (1.0 + ROUNDING)
            nu = 1.0 if own[position].term.smoothness is None else own[position].term.smoothness.nu
            factor = 1.0 if order[position] == "B" else 2.0 ** ((1.0 + nu) / 2.0)
            assert bound(alone(balanced, position)) == pytest.approx(factor * bound(mine), rel=1e-9)


def alone(levels, position):
    """The same levels, of which only one counts in the bound."""
    silent = Term("none", Omega=0.0)
    return [
        level if i == position else dataclasses.replace(level, term=silent, L=0.0, delta=0.0)
        for i, level in enumerate(levels)
    ]


@settings(max_examples=50, deadline=None)
@given(positive, st.tuples(positive, positive), positive)
def test_the_default_w_is_the_best_one(L_xy, radii, w):
    smooth = ss.Holder(1.0, 1.0)
    default, other = (
        levelwise_terms(smooth, smooth, L_xy, *radii)[2],
        levelwise_terms(smooth, smooth, L_xy, *radii, w)[2],
    )
    assert default.Omega <= other.Omega * (1.0 + ROUNDING)
    assert default.Omega == pytest.approx(2.0 * math.sqrt(radii[0] * radii[1]), rel=1e-12)
    assert default.M == other.M == L_xy


def test_the_coupling_has_norm_L_xy_for_every_w():
    B = np.random.default_rng(2).standard_normal((4, 3))
    K = np.block([[np.zeros((3, 3)), B.T], [-B, np.zeros((4, 4))]])
    for w in (1e-3, 0.7, 50.0):
        term = levelwise_terms(ss.Holder(1.0, 1.0), ss.Holder(1.0, 1.0), float(np.linalg.norm(B, 2)), 1.0, 1.0, w)[2]
        root = np.repeat(np.sqrt(term.weights), (3, 4))
        assert np.linalg.norm(K / np.outer(root, root), 2) == pytest.approx(term.M, rel=1e-12)


def test_a_problem_with_unlike_blocks_gains_orders_of_magnitude():
    """Sizes of a tomography problem: |x| about 15, |y| about 5e-3 (the numbers of docs/theory.md)."""
    f, g, L_xy, radii = ss.Holder(1.0, 1.011), ss.Holder(1.0, 0.1213), math.sqrt(8.0), (15.0**2, 5e-3**2)
    own, identity = levelwise_terms(f, g, L_xy, *radii), common_terms(f, g, L_xy, *radii, 1.0, 1.0)
    levels, one_norm = place(own, (40, 1, 1)), place(identity, (40, 1, 1))
    coupling = sharp_bound(alone(one_norm, 2)) / sharp_bound(alone(levels, 2))
    assert coupling == pytest.approx(1500.0, rel=1e-3)
    assert round(sharp_bound(one_norm) / sharp_bound(levels)) == 58
    assert round(printed_holder_bound(one_norm) / printed_holder_bound(levels)) == 196


# Degenerate sets and refusals.


@pairwise(order=ORDERS, point_set=["x", "y", "both"], M=[0.0, 2.0])
def test_a_set_that_is_a_single_point_is_no_trouble(order, point_set, M):
    saddle, sharp = pressed(L=1.0, M=M), ss.functions.Power(0.0, weight=np.ones(6), tilt=np.full(6, 0.5))
    point, spot = ss.domains.Box(0.05, 0.05, shape=6), np.full(6, 0.05)
    on_x, on_y = point_set in ("x", "both"), point_set in ("y", "both")
    saddle = dataclasses.replace(
        saddle,
        f=sharp,
        g=sharp,
        X=point if on_x else saddle.X,
        Y=point if on_y else saddle.Y,
        start=(spot if on_x else saddle.start[0], spot if on_y else saddle.start[1]),
    )
    levels = saddle.levels(order, (3, 2, 4))
    x, y = saddle.run(levels)
    assert not on_x or np.array_equal(x, spot)
    assert not on_y or np.array_equal(y, spot)
    assert saddle.gap((x, y)) <= sharp_bound(levels) * (1.0 + ROUNDING)
    # In any norm, of a rough function too.
    problem = ss.SaddleProblem(f=sharp, g=sharp, B=np.eye(6), X=point, Y=point)
    alone = ss.run(problem, ss.plan(problem, order=order, loops=(3, 2, 4), metric=(2.0, 0.5)))
    assert alone.plans[0].bound == 0.0 and alone.gap <= 1e-12


def test_only_a_level_without_operator_has_a_zero_weight():
    for w in (None, 1e-8, 1e8):
        for term in levelwise_terms(ss.Holder(0.5, 1.0), ss.Holder(1.0, 0.0), 3.0, 1e10, 1e-10, w):
            assert (min(term.weights) > 0.0) == (term.name == "B") == (term.M > 0.0)
            assert all(math.isfinite(weight) for weight in term.weights)


def test_without_coupling_the_two_functions_hold_their_own_blocks():
    f, g, B = levelwise_terms(ss.Holder(1.0, 2.0), ss.Holder(0.0, 1.0), 0.0, math.inf, 4.0)
    assert (f.weights, g.weights, B.M) == ((1.0, 0.0), (0.0, 1.0), 0.0)
    with pytest.raises(InputError, match="f has H = 0 and L_xy is 0, so that no level has curvature on x"):
        levelwise_terms(ss.Holder(1.0, 0.0), ss.Holder(1.0, 1.0), 0.0, 1.0, 1.0)
    with pytest.raises(InputError, match="g has H = 0 and L_xy is 0, so that no level has curvature on y"):
        levelwise_terms(ss.Holder(1.0, 1.0), ss.Holder(0.5, 0.0), 0.0, 1.0, 1.0)


@gathered(
    ("change", "message"),
    [
        ({"L_xy": -1.0}, "L_xy is -1.0; expected a number >= 0"),
        ({"L_xy": math.nan}, "L_xy is nan"),
        ({"L_xy": math.inf}, "L_xy is inf; expected a finite number"),
        ({"Omega_x": -1.0}, "Omega_x is -1.0"),
        ({"Omega_y": math.nan}, "Omega_y is nan"),
        ({"Omega_x": math.inf}, "squared radii are inf and 1.0; expected bounded domains, or w="),
        ({"w": 0.0}, "w is 0.0; expected a finite number > 0"),
        ({"w": -2.0}, "w is -2.0"),
        ({"w": math.inf}, "w is inf"),
        ({"w": 5e-324}, "w is 5e-324"),
    ],
)
def test_refusals(change, message):
    smooth = ss.Holder(1.0, 1.0)
    with pytest.raises(InputError, match=message):
        levelwise_terms(**{"f": smooth, "g": smooth, "L_xy": 1.0, "Omega_x": 1.0, "Omega_y": 1.0, **change})


def test_an_unbounded_set_is_fine_with_a_declared_w():
    f, _, B = levelwise_terms(ss.Holder(1.0, 1.0), ss.Holder(1.0, 1.0), 1.0, math.inf, 1.0, w=0.5)
    assert f.Omega == B.Omega == math.inf and B.weights == (0.5, 2.0)


# Simple terms: docs/theory.md says that the base case takes them and the correction step does not.


@settings(max_examples=75, deadline=None)
@given(
    saddles(),
    st.sampled_from(ORDERS),
    three_loops,
    st.tuples(positive, positive),
    st.tuples(*[st.sampled_from([0.1, 1.0])] * 2),
)
def test_simple_terms_in_the_base_case_leave_the_bound_as_it_is(saddle, order, loops, units, sizes):
    saddle = saddle.in_units(*units)
    thresholds = [size * unit for size, unit in zip(sizes, units, strict=True)]
    simple = [ss.functions.Power(0.0, weight=threshold) for threshold in thresholds]
    levels = saddle.levels(order, loops)
    point = saddle.run(levels, Composite, thresholds=thresholds)
    assert saddle.gap(point, *simple) <= sharp_bound(levels) * (1.0 + ROUNDING)


def test_simple_terms_in_the_correction_too_break_the_bound():
    saddle, thresholds = pressed(L=0.0, M=4.0), (0.5, 0.5)
    zero = ss.functions.Power(1.0, weight=np.full(6, 1e-3), tilt=np.full(6, -2.0))
    saddle = dataclasses.replace(saddle, f=zero, g=zero)
    simple = [ss.functions.Power(0.0, weight=threshold) for threshold in thresholds]
    levels = saddle.levels("fgB", (1, 1, 400))
    right = saddle.run(levels, Composite, thresholds=thresholds)
    wrong = saddle.run(levels, Composite, thresholds=thresholds, in_correction=True)
    assert saddle.gap(right, *simple) <= sharp_bound(levels)
    assert saddle.gap(wrong, *simple) > sharp_bound(levels)
