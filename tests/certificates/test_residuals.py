"""Residual bounds: never above the true minimum, in rational arithmetic where rounding matters."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import saddleslide as ss
from saddleslide.certificates.candidate import Candidate, Linearisation, Split
from saddleslide.certificates.inspection import Inspection
from saddleslide.certificates.judge import Judge
from saddleslide.certificates.residuals import ResidualBound
from saddleslide.functions.separable import prox
from saddleslide.theory.plan import Target
from support import gathered, pairwise, points_of

F, D = ss.functions, ss.domains
SEEDS = st.integers(0, 10**6)
UNTIMED, FEW = settings(deadline=None, max_examples=60), settings(deadline=None, max_examples=4)


def known_at(h, x):
    value, gradient = h.value_and_gradient(x)
    return Linearisation(x, value, gradient)


def exact(numbers):
    return [Fraction(float(number)) for number in np.ravel(numbers)]


def diagonal_minimum(q, b):
    """min of sum q_i x_i^2 / 2 + b_i x_i over R^n, in rationals."""
    return -sum(s * s / (2 * r) for r, s in zip(exact(q), b, strict=True))


@UNTIMED
@given(SEEDS, st.floats(-13.0, 0.0), st.floats(-3.0, 3.0))
def test_old_points_that_lie_close_together_give_no_false_bound(seed, closeness, size):
    """Rounding of their gradients is multiplied by the reach over the distance: the bound must allow for that."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 6))
    q, b = 10.0 ** rng.uniform(-6.0, 2.0, n), 10.0**size * rng.standard_normal(n)
    pull, base = rng.standard_normal(n), 10.0**size * rng.standard_normal(n)
    h = F.Quadratic(np.diag(q)) + F.Linear(b)
    side = ResidualBound(h, F.Zero(), D.FullSpace(n))
    truth = diagonal_minimum(q, [s + t for s, t in zip(exact(b), exact(pull), strict=True)])
    for _ in range(8):
        x = base + 10.0**closeness * rng.standard_normal(n)
        assert Fraction(side.minimum(pull, known_at(h, x))) <= truth


@UNTIMED
@given(SEEDS)
def test_bounds_at_the_minimiser_leave_room_for_rounding(seed):
    """Whole numbers make the true minimum exact; values and products cancel, so rounding is relative to their terms."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 30))
    A = rng.integers(-8, 9, (n + 5, n)).astype(float)
    x, data = rng.integers(-20, 20, n).astype(float), A @ rng.integers(-20, 20, n).astype(float)
    ridge = float(2.0 ** rng.integers(-14, 1))
    residual = A @ x - data
    pull = -(A.T @ residual + ridge * x)
    linear = sum(s * t for s, t in zip(exact(pull), exact(x), strict=True))
    truth = sum(s * s for s in exact(residual)) / 2 + Fraction(ridge) * sum(s * s for s in exact(x)) / 2 + linear
    h = F.LeastSquares(A, data, ridge=ridge)
    side = ResidualBound(h, F.Zero(), D.FullSpace(n))
    terms = float(residual @ residual) + float(np.abs(pull * x).sum())
    for distance in (1.0, 1e-3, 1e-6, 1e-9, 1e-12, 0.0):
        found = side.minimum(pull, known_at(h, x + distance * rng.standard_normal(n)))
        assert Fraction(found) <= truth
    # At the minimiser itself nothing but the margin is left.
    assert float(truth) - found <= 1e-12 * (1.0 + terms)


def brute_force(h, pull, domain, rng, start):
    """An upper bound of the minimum: many points, and proximal steps from the best by plain projections."""
    points = points_of(domain, rng, 30)
    x = min([start, *points], key=lambda p: h.value(p) + float(np.vdot(pull, p)))
    best, step = h.value(x) + float(np.vdot(pull, x)), 1.0
    for _ in range(100):
        y = domain.project(x - step * (h.gradient(x) + pull))
        value = h.value(y) + float(np.vdot(pull, y))
        if value < best:
            x, best, step = y, value, 1.5 * step
        else:
            step *= 0.5
    return best


SIDES = {
    "box": D.Box(-1.0, 0.5, shape=3),
    "simplex": D.Simplex(3),
    "ball": D.Ball(1.5, center=[0.5, -1.0, 2.0]),
    "space": D.FullSpace(3),
}
SIMPLE = {
    "none": F.Zero(),
    "kinks": F.Power(0.0, weight=0.7),
    "huber": F.Huber(0.1),
    "tilt": F.Linear([1.0, -2.0, 0.3]),
}


@pairwise(simple=SIMPLE, name=SIDES, ridge=[0.0, 1e-6, 0.5])
@FEW
@given(seed=SEEDS)
def test_bounds_are_below_every_value_found(name, simple, ridge, seed):
    domain, part = SIDES[name], SIMPLE[simple]
    rng = np.random.default_rng(seed)
    rest = F.LeastSquares(rng.standard_normal((2, 3)), rng.standard_normal(2), ridge=ridge)
    side = ResidualBound(rest, part, domain)
    assert side.possible == (ridge > 0.0 or domain.bounded)
    pull, total = 3.0 * rng.standard_normal(3), rest + part
    lows = []
    for point in points_of(domain, rng, 4):
        lows.append(side.minimum(pull, known_at(rest, point)))
        if not side.possible:
            assert lows[-1] == -math.inf
    low = max(lows)
    if math.isfinite(low):
        best = brute_force(total, pull, domain, rng, domain.project(np.zeros(3)))
        assert low <= best + 1e-14 * (1.0 + abs(best))


@UNTIMED
@given(SEEDS)
def test_the_bound_is_the_minimum_for_a_multiple_of_the_identity(seed):
    """There the linearisation with its modulus is the function itself, at any point of any domain."""
    rng = np.random.default_rng(seed)
    for domain in SIDES.values():
        rest = F.LeastSquares(np.zeros((1, 3)), np.zeros(1), ridge=2.0)
        side, pull = ResidualBound(rest, F.Zero(), domain), rng.standard_normal(3)
        x = domain.project(-pull / 2.0)
        truth = float(x @ x) + float(pull @ x)
        known = known_at(rest, points_of(domain, rng, 1)[0])
        found = side.minimum(pull, known)
        # The margin is a few units of rounding of the terms, and no more: a slope is wrong all the way to the minimum.
        way = np.linalg.norm(known.point) + np.linalg.norm(x - known.point)
        terms = known.value + (np.linalg.norm(known.gradient) + np.linalg.norm(pull)) * way
        assert truth - 6e-15 * (1.0 + terms) <= found <= truth + 1e-15 * (1.0 + abs(truth))


@UNTIMED
@given(SEEDS)
def test_old_points_never_make_the_bound_worse_and_in_the_end_make_it_exact(seed):
    rng = np.random.default_rng(seed)
    h = F.LeastSquares(rng.standard_normal((6, 3)), rng.standard_normal(6), ridge=0.01)
    pull = rng.standard_normal(3)
    together = ResidualBound(h, F.Zero(), D.FullSpace(3))
    for _ in range(5):
        known = known_at(h, rng.standard_normal(3))
        alone = ResidualBound(h, F.Zero(), D.FullSpace(3)).minimum(pull, known)
        assert together.minimum(pull, known) >= alone - 1e-12 * (1.0 + abs(alone))
    # Five points in general position span R^3, so the best combination is the minimiser.
    H = h.A.dense().T @ h.A.dense() + 0.01 * np.eye(3)
    x = np.linalg.solve(H, h.A.dense().T @ h.b - pull)
    truth = h.value(x) + float(pull @ x)
    found = together.minimum(pull, known_at(h, rng.standard_normal(3)))
    assert truth - 1e-6 * (1.0 + abs(truth)) <= found <= truth + 1e-13 * (1.0 + abs(truth))


def test_a_modulus_is_not_used_at_points_outside_its_domain():
    """mu holds on the box only; outside the function is flat, and the linear bound is all there is."""
    f = F.Custom(
        gradient=lambda x: x, value=lambda x: 0.5 * float(x @ x), smoothness=ss.Holder(1.0, 1.0), strong_convexity=1.0
    )
    side = ResidualBound(f, F.Zero(), D.Box(-1.0, 1.0, shape=1))
    outside = Linearisation(np.array([2.0]), 1.5, np.array([1.0]))
    assert side.minimum(np.zeros(1), outside) == pytest.approx(1.5 + 1.0 * (-1.0 - 2.0))


# What is not a number is not a bound


def judge():
    box = D.Box(-1.0, 1.0, shape=2)
    f = F.LeastSquares(np.eye(2) + 0.1, np.ones(2))
    problem = ss.SaddleProblem(f=f, g=f, B=np.eye(2), X=box, Y=box)
    return Judge(problem, Split(f, F.Zero(), f, F.Zero()), Target(1e-3), problem.start())


BAD = [math.nan, math.inf, -math.inf]


@gathered("bad", BAD)
@gathered("field", ["value", "gradient"])
@gathered("which", ["f", "g"])
def test_linearisations_that_are_not_finite_never_become_bounds(bad, field, which):
    """Neither a NaN nor an infinite bound is accepted: those of the true linearisations stay."""
    subject, point = judge(), np.array([0.2, -0.3])
    f = subject.problem.f
    good = known_at(f, point)
    value = bad if field == "value" else good.value
    gradient = np.array([bad, 0.0]) if field == "gradient" else good.gradient
    wrong = Linearisation(point, value, gradient)
    candidate = Candidate(point, point, good.value, None, good, None, good.value, good)
    subject.judge(candidate)
    lower, upper = subject.lower, subject.upper
    assert math.isfinite(lower) and math.isfinite(upper) and lower <= upper
    with np.errstate(invalid="ignore"):
        side = subject.below if which == "f" else subject.above
        found = side.minimum(np.zeros(2), wrong)
    if which == "f":
        subject.accept_lower(found, point, "residual")
    else:
        subject.accept_upper(-found, Inspection(candidate, subject.asked))
    assert (subject.lower, subject.upper) == (lower, upper)


def test_both_sides_use_the_same_bound():
    """With f = g and roles exchanged, the upper bound is the mirror image of the lower one."""
    subject, point = judge(), np.array([0.2, -0.3])
    f = subject.problem.f
    known = known_at(f, point)
    below, above = subject.below.minimum(point, known), subject.above.minimum(point, known)
    assert below == above and isinstance(subject.above, ResidualBound)


@UNTIMED
@given(SEEDS, st.floats(-13.0, 0.0), st.floats(-3.0, 3.0))
def test_old_gradients_on_a_box_give_no_false_bound_and_better_ones(seed, closeness, size):
    """A diagonal quadratic on a box has its minimum entry by entry, here in rationals, however close the points lie."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(2, 6))
    q, b = 10.0 ** rng.uniform(-6.0, 2.0, n), 10.0**size * rng.standard_normal(n)
    pull, base = rng.standard_normal(n), 10.0**size * rng.standard_normal(n)
    low, high = base - 10.0**size * rng.uniform(0.0, 1.0, n), base + 10.0**size * rng.uniform(0.0, 1.0, n)
    h = F.Quadratic(np.diag(q)) + F.Linear(b)
    truth = Fraction(0)
    for curved, s, t, below, above in zip(*map(exact, (q, b, pull, low, high)), strict=True):
        x = min(max(-(s + t) / curved, below), above)
        truth += curved * x * x / 2 + (s + t) * x
    side = ResidualBound(h, F.Zero(), D.Box(low, high))
    for _ in range(8):
        x = np.clip(base + 10.0**closeness * rng.standard_normal(n), low, high)
        assert Fraction(side.minimum(pull, known_at(h, x))) <= truth


def test_directions_make_bounds_of_a_quadratic_exact_in_their_span():
    """As many directions as unknowns leave nothing but rounding, on the whole space and in a box around it."""
    rng = np.random.default_rng(5)
    q, b, pull = np.array([1e-3, 0.1, 1.0, 5.0]), rng.standard_normal(4), rng.standard_normal(4)
    h = F.Quadratic(np.diag(q)) + F.Linear(b)
    for domain in (D.FullSpace(4), D.Box(-1e4, 1e4, shape=4)):
        best = domain.project(-(b + pull) / q)
        truth = h.value(best) + float(pull @ best)
        side = ResidualBound(h, F.Zero(), domain)
        side._shift = math.nan  # a factor of the Hessian would give the minimum at once
        found = [side.minimum(pull, known_at(h, domain.project(rng.uniform(-0.4, 0.4, 4)))) for _ in range(6)]
        assert truth - 1e-9 * (1.0 + abs(truth)) <= found[-1] <= truth
        assert found[0] < truth - 1e-3 * abs(truth)


@pytest.mark.parametrize(
    ("domain", "simple"),
    [
        (D.Box(-0.3, 0.2, shape=6), F.Zero()),
        (D.Simplex(6), F.Zero()),
        (D.FullSpace(6), F.L1(0.3)),
        (D.Ball(0.7, shape=6), F.L1(0.1)),
    ],
    ids=["box", "simplex", "l1", "ball and l1"],
)
def test_old_gradients_raise_bounds_on_every_set_with_a_proximal_step_and_none_is_false(domain, simple):
    """Against many proximal steps of the same function, whose last point gives a minimum to 1e-12."""
    left = np.zeros(2)
    for seed in range(4):
        rng = np.random.default_rng(seed)
        turned = np.linalg.qr(rng.standard_normal((6, 6)))[0]
        Q = (turned * 10.0 ** rng.uniform(-2.0, 0.0, 6)) @ turned.T
        Q = 0.5 * (Q + Q.T)
        h, pull = F.Quadratic(Q) + F.Linear(0.2 * rng.standard_normal(6)), 0.2 * rng.standard_normal(6)
        side, alone = ResidualBound(h, simple, domain), []
        x = domain.project(rng.standard_normal(6))
        L, best = float(np.linalg.norm(Q, 2)), x
        for _ in range(2000):
            best = prox(simple, best - (h.gradient(best) + pull) / L, L, domain)
        truth = h.value(best) + float(pull @ best) + simple.value(best)
        for _ in range(5):
            known = known_at(h, x)
            alone.append(ResidualBound(h, simple, domain).minimum(pull, known))
            bound = side.minimum(pull, known)
            assert alone[-1] <= bound <= truth + 1e-11
            x = prox(simple, x - (known.gradient + pull) / L, L, domain)
        left += np.array([truth - bound, truth - alone[-1]])
    assert left[0] <= 0.8 * left[1]
