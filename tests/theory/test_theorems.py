"""Theorems 3.3 and 3.5 as tests: the exact gap never exceeds the bound, and wrong step sizes break it."""

from __future__ import annotations

import dataclasses
import functools
import math
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import saddleslide as ss
from saddleslide.methods.sliding import Recursion
from saddleslide.theory import Term, place, printed_holder_bound, printed_inexact_bound, sharp_bound
from support import component_levels, gathered
from transcriptions import writers_of

EXPONENTS = (0.0, 0.25, 0.5, 0.75, 1.0)
PIECES = ("f1", "f2", "g", "B1", "B2")
# Rounding of a gap or of a bound, relative to the numbers they are differences of.
ROUNDING = 1e-11

random_problems = settings(max_examples=120, deadline=None)


@dataclass(frozen=True)
class Game:
    """min over X, max over Y of f1 + f2 + <y, (B1 + B2) x> - g: five pieces to share out among the levels."""

    functions: dict
    matrices: dict
    X: ss.domains.Domain
    Y: ss.domains.Domain

    @property
    def domain(self):
        return ss.domains.Product(self.X, self.Y)

    @property
    def f(self):
        return self.functions["f1"] + self.functions["f2"]

    @property
    def g(self):
        return self.functions["g"]

    @property
    def B(self):
        return self.matrices["B1"] + self.matrices["B2"]

    def gap(self, z):
        """The exact gap."""
        x, y = z[: self.X.size], z[self.X.size :]
        if isinstance(self.X, ss.domains.Box) and isinstance(self.Y, ss.domains.Box):
            problem = ss.SaddleProblem(f=self.f, g=self.g, B=self.B, X=self.X, Y=self.Y)
            certificate = ss.certify(problem, x, y)
            assert certificate.kind == "exact"
            return certificate.gap - certificate.error
        f_parts = [self.functions["f1"], self.functions["f2"]]
        lower = power_minimum(f_parts, self.B.T @ y, self.X) - self.g.value(y)
        upper = self.f.value(x) - power_minimum([self.g], -self.B @ x, self.Y)
        return upper - lower

    def component(self, pieces, weights):
        """The pieces of one level as one component, constants in the P-norm."""
        functions = [(piece, self.functions[piece]) for piece in pieces if piece in self.functions]
        operators = [self.matrices[piece] for piece in pieces if piece in self.matrices]
        B = sum(operators)
        return ss.Component(
            function=(lambda z: sum(self.lifted_gradient(*pair, z) for pair in functions)) if functions else None,
            smoothness=self.smoothness(functions, weights) if functions else None,
            operator=(lambda z: self.coupling(B, z)) if operators else None,
            lipschitz=np.linalg.norm(B, 2) / math.sqrt(weights[0] * weights[1]) if operators else 0.0,
            name="+".join(pieces),
        )

    def lifted_gradient(self, piece, function, z):
        x, y = z[: self.X.size], z[self.X.size :]
        on_x = piece != "g"
        return np.concatenate([function.gradient(x) if on_x else 0.0 * x, 0.0 * y if on_x else function.gradient(y)])

    def coupling(self, B, z):
        return np.concatenate([B.T @ z[self.X.size :], -B @ z[: self.X.size]])

    def smoothness(self, functions, weights):
        blocks = {True: (self.Y, weights[1]), False: (self.X, weights[0])}
        parts = [
            function.smoothness(blocks[piece == "g"][0]).in_metric(blocks[piece == "g"][1])
            for piece, function in functions
        ]
        diameter = math.hypot(math.sqrt(weights[0]) * self.X.diameter(), math.sqrt(weights[1]) * self.Y.diameter())
        return functools.reduce(lambda one, other: one.plus(other, diameter), parts)


def power_minimum(parts, c, domain):
    """Minimum of a sum of powers of one exponent and one weight each, plus <c, x>."""
    (nu,) = {part.nu for part in parts}
    weight, slope = sum(float(part.weight) for part in parts), c - sum(part.tilt for part in parts)
    if nu < 1.0:
        return power_minimum_on_simplex(nu, weight, slope)
    # An isotropic quadratic is smallest at a projection, on any domain.
    point = domain.project(-slope / weight)
    return 0.5 * weight * float(point @ point) + float(slope @ point)


def power_minimum_on_simplex(nu, weight, slope):
    """Largest value of the dual in the multiplier of sum x = 1; every multiplier gives a true lower bound."""
    if nu == 0.0:
        return weight + float(slope.min())

    def minimiser(multiplier):
        return np.clip(np.maximum((multiplier - slope) / weight, 0.0) ** (1.0 / nu), 0.0, 1.0)

    low, high = float(slope.min()), float(slope.max()) + weight
    for _ in range(100):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if minimiser(middle).sum() >= 1.0 else (middle, high)
    point = minimiser(high)
    return high + float(np.sum(weight * point ** (1.0 + nu) / (1.0 + nu) + (slope - high) * point))


def draw_domain(draw, size, kind):
    radius = draw(st.sampled_from([0.3, 1.0, 5.0]))
    if kind == "box":
        return ss.domains.Box(-radius, 0.5 * radius, shape=size)
    if kind == "ball":
        return ss.domains.Ball(radius, center=np.linspace(-radius, radius, size))
    if kind == "simplex":
        return ss.domains.Simplex(size)
    return ss.domains.Product(ss.domains.Ball(radius, shape=size - 1), ss.domains.Box(-radius, 2.0, shape=1))


@st.composite
def games(draw):
    """Powers on sets where the gap is exact: all on boxes, one exponent on a simplex, quadratics on other sets."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    sizes = draw(st.integers(2, 5)), draw(st.integers(2, 5))
    boxes = draw(st.booleans())
    kinds = ("box", "box") if boxes else draw(st.tuples(*[st.sampled_from(["ball", "simplex", "product"])] * 2))
    exponents = [draw(st.sampled_from(EXPONENTS)) if kind in ("box", "simplex") else 1.0 for kind in kinds]
    scale = st.sampled_from([0.1, 1.0, 10.0])

    def power(block):
        nu = draw(st.sampled_from(EXPONENTS)) if boxes else exponents[block]
        weight = draw(scale) * (rng.uniform(0.1, 1.0, sizes[block]) if boxes and draw(st.booleans()) else 1.0)
        return ss.functions.Power(nu, weight=weight, tilt=draw(scale) * rng.standard_normal(sizes[block]))

    return Game(
        functions={"f1": power(0), "f2": power(0), "g": power(1)},
        matrices={name: draw(scale) * rng.standard_normal(sizes[::-1]) for name in ("B1", "B2")},
        X=draw_domain(draw, sizes[0], kinds[0]),
        Y=draw_domain(draw, sizes[1], kinds[1]),
    )


@st.composite
def levels_of_pieces(draw):
    """The five pieces shared out among 1 to 4 levels in random order, with random loops."""
    n = draw(st.integers(1, 4))
    pieces = draw(st.permutations(PIECES))
    cuts = sorted(draw(st.sets(st.integers(1, len(PIECES) - 1), min_size=n - 1, max_size=n - 1)))
    shares = [pieces[start:stop] for start, stop in zip([0, *cuts], [*cuts, len(PIECES)], strict=True)]
    return shares, tuple(draw(st.integers(1, (60, 8, 5, 3)[n - 1])) for _ in range(n))


@random_problems
@given(game=games())
def test_the_exact_gap_used_here_is_reached_by_no_sampled_point(game):
    """The reference itself: at random points no response beats the extrema, and the gap is not negative."""
    rng = np.random.default_rng(0)
    z = game.domain.project(rng.standard_normal(game.domain.size))
    x, y = z[: game.X.size], z[game.X.size :]
    gap, scale = game.gap(z), 1.0 + abs(game.f.value(x)) + abs(game.g.value(y)) + float(np.abs(game.B).sum())
    for u in (game.domain.project(size * rng.standard_normal(z.size)) for size in (0.1, 1.0, 10.0)):
        other_x, other_y = u[: game.X.size], u[game.X.size :]
        reached = game.f.value(x) - game.f.value(other_x) + game.g.value(y) - game.g.value(other_y)
        reached += float(other_y @ game.B @ x) - float(y @ game.B @ other_x)
        assert reached <= gap + 1e-9 * scale


block_weights = st.tuples(*[st.sampled_from([1.0, 0.1, 0.5, 7.0])] * 2)


@random_problems
@given(game=games(), shared=levels_of_pieces(), weights=block_weights, seed=st.integers(0, 100))
def test_the_gap_never_exceeds_the_sharp_bound_which_never_exceeds_the_printed_one(game, shared, weights, seed):
    shares, loops = shared
    components = [game.component(pieces, weights) for pieces in shares]
    start = game.domain.project(np.random.default_rng(seed).standard_normal(game.domain.size))
    levels = component_levels(components, game.domain, start, loops, weights)
    z = ss.slide(components, game.domain, start, loops, weights).z
    assert game.gap(z) <= sharp_bound(levels) * (1.0 + ROUNDING) + ROUNDING
    assert sharp_bound(levels) <= printed_holder_bound(levels) * (1.0 + ROUNDING)


@settings(max_examples=50, deadline=None)
@given(game=games(), order=st.permutations("fgB"), loops=st.tuples(*[st.integers(1, 6)] * 3), weights=block_weights)
def test_the_gap_of_a_planned_run_never_exceeds_the_bound_of_the_plan(game, order, loops, weights):
    problem = ss.SaddleProblem(f=game.f, g=game.g, B=game.B, X=game.X, Y=game.Y)
    plan = ss.plan(problem, order="".join(order), loops=loops, metric=weights)
    result = ss.run(problem, plan)
    gap = game.gap(np.concatenate([result.x, result.y]))
    assert gap <= plan.bound * (1.0 + ROUNDING) + ROUNDING
    assert plan.bound <= plan.schedule.printed_bound * (1.0 + ROUNDING)


# The bounds are not vacuous: step sizes from wrong constants break them.


def game_with_constants(L, M):
    """A game on the whole space whose saddle point is about 0.05."""
    rotation = np.linalg.qr(np.random.default_rng(0).standard_normal((6, 6)))[0]
    power, X = functools.partial(ss.functions.Power, nu=1.0), ss.domains.FullSpace(6)
    return Game(
        functions={
            "f1": power(weight=0.5, tilt=np.full(6, 0.025)),
            "f2": power(weight=np.linspace(0.0, L, 6), tilt=np.zeros(6)),
            "g": power(weight=0.5, tilt=np.full(6, 0.025)),
        },
        matrices={"B1": M * rotation, "B2": np.zeros((6, 6))},
        X=X,
        Y=X,
    )


def at_the_saddle_point(game, shares, loops):
    """Levels, what steps with their constants end with of the gap at the solution alone, and its bound.

    Without constraints Theorem 3.3 still bounds the gap at every single point.
    """
    start, size = np.ones(12), game.domain.size
    F = np.column_stack([operator_at(game, unit) - operator_at(game, np.zeros(size)) for unit in np.eye(size)])
    solution = np.linalg.solve(F, -operator_at(game, np.zeros(size)))
    levels, output = levels_of(game, shares, loops, start)
    radius = float((start - solution) @ (start - solution))
    bound = sharp_bound(
        [dataclasses.replace(level, term=dataclasses.replace(level.term, Omega=radius)) for level in levels]
    )

    def gap(levels):
        z = output(levels)
        x, y, saddle_x, saddle_y = z[:6], z[6:], solution[:6], solution[6:]
        functions = game.f.value(x) + game.g.value(y) - game.f.value(saddle_x) - game.g.value(saddle_y)
        return functions + float(game.coupling(game.B, solution) @ (z - solution))

    return levels, gap, bound


def levels_of(game, shares, loops, start):
    components = [game.component(pieces, (1.0, 1.0)) for pieces in shares]
    gradients, operators = writers_of(components, game.domain)

    def output(levels):
        *_, z = Recursion(levels, gradients, operators, game.domain, start).steps()
        return z.copy()

    return component_levels(components, game.domain, start, loops), output


def with_smaller_L(levels, position, factor):
    return replaced(levels, position, L=levels[position].L / factor)


def with_smaller_M(levels, position, factor):
    term = levels[position].term
    return replaced(levels, position, term=dataclasses.replace(term, M=term.M / factor))


def replaced(levels, position, **changes):
    return [dataclasses.replace(level, **changes) if i == position else level for i, level in enumerate(levels)]


@gathered(
    ("shares", "loops", "position"),
    [
        ([("f1", "g", "B1")], (40,), 0),
        ([("f1",), ("g",), ("B1",)], (10, 2, 20), 2),
        ([("B1",), ("f1",), ("g",)], (40, 5, 1), 0),
        ([("f1",), ("B1",), ("g",)], (10, 10, 1), 1),
    ],
)
def test_steps_from_too_small_an_M_break_the_bound(shares, loops, position):
    levels, gap, bound = at_the_saddle_point(game_with_constants(L=0.0, M=4.0), shares, loops)
    assert 0.0 <= gap(levels) <= bound
    # A third of M is too little.
    assert gap(with_smaller_M(levels, position, 3.0)) > 2.0 * bound


@gathered(
    ("shares", "loops", "position"),
    [
        ([("f1", "f2", "g", "B1")], (20,), 0),
        ([("f1", "f2"), ("g",), ("B1",)], (20, 1, 3), 0),
        ([("g",), ("f1", "f2"), ("B1",)], (3, 10, 2), 1),
        ([("g",), ("B1",), ("f1", "f2")], (2, 3, 10), 2),
    ],
)
def test_steps_from_too_small_an_L_break_the_bound_at_the_saddle_point(shares, loops, position):
    levels, gap, bound = at_the_saddle_point(game_with_constants(L=40.0, M=0.1), shares, loops)
    assert 0.0 <= gap(levels) <= bound
    # Half of L is too little.
    assert gap(with_smaller_L(levels, position, 2.0)) > 2.0 * bound


def operator_at(game, z):
    """p' + Q of the whole game."""
    gradients = (game.lifted_gradient(piece, function, z) for piece, function in game.functions.items())
    return sum(gradients) + game.coupling(game.B, z)


# Declared inexact oracles (Definition inexact_oracle).


class DisplacedOracle:
    """Gradients of q/2 |z - c|^2 taken at z + e: a (q |e|^2, 2 q)-oracle, for any bounded displacement e."""

    def __init__(self, q, c, displacement):
        self.q, self.c, self.displacement = q, c, displacement

    def h(self, z):
        return 0.5 * self.q * float(np.sum((z - self.c) ** 2))

    def inexact_value(self, z):
        at = z + self.displacement(z)
        return self.h(at) + float(self.gradient(z) @ (z - at))

    def gradient(self, z):
        return self.q * (z + self.displacement(z) - self.c)

    def declared(self, size):
        return self.q * size**2, 2.0 * self.q


@settings(max_examples=50, deadline=None)
@given(
    seed=st.integers(0, 2**32 - 1),
    noise=st.sampled_from([1e-3, 0.05, 0.3]),
    loops=st.tuples(st.integers(1, 30), st.integers(1, 6)),
    weight=st.sampled_from([1.0, 0.2, 5.0]),
    outside=st.booleans(),
)
def test_the_bound_holds_for_declared_inexact_oracles(seed, noise, loops, weight, outside):
    rng = np.random.default_rng(seed)
    d, half, domain = 6, 3, ss.domains.Ball(1.0, shape=6)
    K, c, q = rng.standard_normal((half, half)), rng.standard_normal(d), float(rng.uniform(0.1, 5.0))
    signs = rng.choice([-1.0, 1.0], d)
    oracle = DisplacedOracle(q, c, lambda z: noise / math.sqrt(d) * signs * np.sign(np.sin(40.0 * z)))
    delta, L = oracle.declared(noise)
    points = [domain.project(2.0 * rng.standard_normal(d)) for _ in range(20)]
    for v in points:
        for u in points:
            excess = oracle.h(u) - oracle.inexact_value(v) - float(oracle.gradient(v) @ (u - v))
            assert -ROUNDING <= excess <= 0.5 * L * float((u - v) @ (u - v)) + delta + ROUNDING
    skew = np.block([[np.zeros((half, half)), K.T], [-K, np.zeros((half, half))]])
    function = ss.Component(oracle.gradient, inexact=(delta, L / weight))
    operator = ss.Component(operator=lambda z: skew @ z, lipschitz=np.linalg.norm(K, 2) / weight)
    components = [function, operator] if outside else [operator, function]
    levels = component_levels(components, domain, np.zeros(d), loops, weight)
    z = ss.slide(components, domain, np.zeros(d), loops, weight).z
    farthest = domain.project(c - skew.T @ z / q)
    gap = oracle.h(z) - oracle.h(farthest) + float(farthest @ (skew.T @ z))
    assert gap <= sharp_bound(levels) * (1.0 + ROUNDING) + ROUNDING
    assert sharp_bound(levels) <= printed_inexact_bound(levels) * (1.0 + ROUNDING)


def test_without_its_delta_the_bound_of_an_inexact_oracle_is_false():
    oracle = DisplacedOracle(1.0, np.zeros(4), lambda z: np.full(4, 0.25))
    delta, L = oracle.declared(0.5)
    domain = ss.domains.Ball(1.0, shape=4)

    def bound_and_gap(declared):
        component = ss.Component(oracle.gradient, inexact=(declared, L))
        levels = component_levels([component], domain, np.zeros(4), (50,))
        return sharp_bound(levels), oracle.h(ss.slide([component], domain, np.zeros(4), (50,)).z)

    assert np.greater_equal(*bound_and_gap(delta))
    assert np.less(*bound_and_gap(0.0))


# Extra curvature tau (eq. eta_stochastic): the method of L + tau, with nothing else changed.


@settings(max_examples=30, deadline=None)
@given(
    tau=st.floats(0.01, 100.0),
    L=st.floats(0.01, 100.0),
    M=st.sampled_from([0.0, 3.0]),
    loops=st.tuples(*[st.integers(1, 9)] * 2),
)
def test_extra_curvature_adds_to_L_in_the_steps_and_in_the_bound(tau, L, M, loops):
    def levels(**constants):
        return place([Term("a", M=1.0, Omega=4.0), Term("b", M=M, Omega=4.0, **constants)], loops)

    noisy, plain = levels(inexact=(0.1, L), tau=tau), levels(inexact=(0.1, L + tau))
    alphas = noisy[1].last_alphas
    assert noisy[1].step == pytest.approx(L + tau + M / alphas, rel=1e-14)
    assert noisy[0].step == plain[0].step
    assert noisy[1].step == pytest.approx(plain[1].step, rel=1e-14)
    assert sharp_bound(noisy) == pytest.approx(sharp_bound(plain), rel=1e-14)
    assert printed_inexact_bound(noisy) == pytest.approx(printed_inexact_bound(plain), rel=1e-14)
