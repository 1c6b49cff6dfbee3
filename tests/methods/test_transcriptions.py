"""The library against line-by-line transcriptions of the paper's algorithms."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import saddleslide as ss
from support import gathered, pairwise
from transcriptions import (
    BOUNDED,
    SPACES,
    Part,
    Space,
    algorithm_1,
    algorithm_2,
    algorithm_3,
    algorithm_4,
    assert_projection_is_active,
    assert_same_iterates,
    feasible_start,
    library_averages,
    random_part,
)

pytestmark = pytest.mark.usefixtures("either_way")

ORDERS = ["".join(letters) for letters in itertools.permutations("fgB")]
KINDS_OF_TWO = [("pQ", "pQ"), ("p", "Q"), ("Q", "p"), ("p", "p"), ("Q", "Q")]


def setting(name, kinds, seed=0):
    rng = np.random.default_rng(seed)
    space = SPACES[name]
    return [random_part(rng, space, kind) for kind in kinds], space, feasible_start(rng, space)


@gathered("name", SPACES)
@gathered("kind", ["p", "Q", "pQ"])
def test_one_level_is_algorithm_2(name, kind):
    (part,), space, start = setting(name, [kind])
    assert_same_iterates(library_averages([part], space, start, [20]), algorithm_2(part, space, start, 20))


@pairwise(name=SPACES, kinds=KINDS_OF_TWO, loops=[(20, 4), (1, 7), (7, 1)])
def test_two_levels_are_algorithm_3(name, kinds, loops):
    parts, space, start = setting(name, kinds, seed=1)
    assert_same_iterates(library_averages(parts, space, start, loops), algorithm_3(*parts, space, start, loops))


@gathered("name", BOUNDED)
@gathered("kinds", KINDS_OF_TWO)
def test_the_projections_compared_above_are_active(name, kinds):
    parts, space, start = setting(name, kinds, seed=1)
    free = Space(ss.domains.Product(*map(ss.domains.FullSpace, block_sizes(space))), space.weights)
    assert_projection_is_active(space.domain, algorithm_3(*parts, free, start, (6, 4)))


def block_sizes(space):
    return [block.size for block in space.domain.blocks]


@pairwise(
    name=SPACES,
    order=itertools.permutations(range(3)),
    kinds=[("pQ", "pQ", "pQ"), ("p", "p", "Q"), ("pQ", "p", "Q")],
    loops=[(3, 4, 3), (20, 2, 2)],
)
def test_three_levels_are_algorithm_1_in_every_order(name, order, kinds, loops):
    parts, space, start = setting(name, kinds, seed=2)
    parts = [parts[i] for i in order]
    assert_same_iterates(library_averages(parts, space, start, loops), algorithm_1(parts, space, start, loops))


@pairwise(
    name=SPACES,
    kinds=[("pQ",) * 4, ("p", "Q", "p", "Q"), ("Q", "p", "Q", "p")],
    loops=[(2, 3, 2, 3), (3, 1, 2, 2)],
)
def test_four_levels_are_algorithm_1(name, kinds, loops):
    parts, space, start = setting(name, kinds, seed=3)
    assert_same_iterates(library_averages(parts, space, start, loops), algorithm_1(parts, space, start, loops))


@gathered("name", SPACES)
def test_extra_curvature_against_noise_enters_eta_of_its_own_level(name):
    parts, space, start = setting(name, ("p", "pQ"), seed=4)
    parts = [Part(p.gradient, p.operator, p.L, p.M, tau) for p, tau in zip(parts, (3.0, 0.5), strict=True)]
    assert_same_iterates(library_averages(parts, space, start, (4, 3)), algorithm_1(parts, space, start, (4, 3)))


# The printed algorithms against one another: a slip in one transcription would show here.


@gathered("name", SPACES)
def test_algorithms_2_and_3_are_algorithm_1(name):
    parts, space, start = setting(name, ("pQ", "pQ"), seed=5)
    assert_same_iterates(algorithm_2(parts[0], space, start, 6), algorithm_1(parts[:1], space, start, (6,)))
    assert_same_iterates(algorithm_3(*parts, space, start, (4, 3)), algorithm_1(parts, space, start, (4, 3)))


BOXES = ss.domains.Box(-0.3, 0.4, shape=4), ss.domains.Box(-0.2, 0.2, shape=3)
MIXED = ss.domains.Ball(0.3, shape=4), ss.domains.Simplex(3)
UNBOUNDED = ss.domains.FullSpace(4), ss.domains.FullSpace(3)


def saddle_problem(domains, nu_x, nu_y):
    rng = np.random.default_rng(6)
    return ss.SaddleProblem(
        f=ss.functions.Power(nu_x, weight=1.5, tilt=rng.standard_normal(4)),
        g=ss.functions.Power(nu_y, weight=0.7, tilt=rng.standard_normal(3)),
        B=rng.standard_normal((3, 4)),
        X=domains[0],
        Y=domains[1],
    )


def bilinear_parts(problem, plan):
    """f, g and B as components of z = (x, y), with the constants of the plan."""
    d, B = problem.X.size, problem.B
    level = {level.term.name: level for level in plan.schedule.levels}
    return {
        "f": Part(lambda z: np.concatenate([problem.f.gradient(z[:d]), np.zeros(z.size - d)]), L=level["f"].L),
        "g": Part(lambda z: np.concatenate([np.zeros(d), problem.g.gradient(z[d:])]), L=level["g"].L),
        "B": Part(operator=lambda z: np.concatenate([B.T @ z[d:], -B @ z[:d]]), M=level["B"].term.M),
    }


@pairwise(
    order=ORDERS,
    loops=[(20, 3, 4), (1, 4, 5), (6, 1, 3), (4, 5, 1)],
    given=[(BOXES, 0.5, 0.25), (BOXES, 0.0, 1.0), (MIXED, 1.0, 0.75), (UNBOUNDED, 1.0, 1.0)],
    metric=[(1.0, 1.0), (0.4, 2.5)],
)
def test_the_saddle_method_is_algorithm_4_in_every_order(order, loops, given, metric):
    problem = saddle_problem(*given)
    start = (problem.X.project(np.full(4, 0.2)), problem.Y.project(np.full(3, 0.1)))
    plan = ss.plan(problem, order=order, loops=loops, metric=metric, start=start)
    found: list = []
    ss.run(problem, plan, start=start, callback=lambda now: found.append(np.concatenate([now.x, now.y])))
    space = Space(ss.domains.Product(problem.X, problem.Y), metric)
    expected = algorithm_4(order, bilinear_parts(problem, plan), space, np.concatenate(start), loops)
    assert_same_iterates(found, expected)
