"""Sums of parts in one process: the fixed tree, constants, and sampling of parts."""

from __future__ import annotations

import functools
import itertools
import math
import operator

import numpy as np
import pytest

import saddleslide as ss
from remote_parts import PARTS, SIZE, answer, parts, problem_with
from saddleslide.facts.costs import estimate_costs, gradient_cost
from saddleslide.functions.parts import halves, sum_block, sum_in_pieces, whole_blocks
from support import central_difference, gathered


def tree(count):
    """All blocks of the tree, written from its definition: the left half is a power of two, as large as fits."""
    found, waiting = set(), [(0, count)]
    while waiting:
        first, last = waiting.pop()
        found.add((first, last))
        length = last - first
        if length > 1:
            power = max(2**k for k in range(30) if 2**k < length)
            waiting += [(first, first + power), (first + power, last)]
    return found


@gathered("count", range(1, 20))
def test_whole_blocks_are_the_fewest_blocks_of_the_tree_that_cover_what_is_held(count):
    blocks = tree(count)
    rng = np.random.default_rng(count)
    for held in [set(), set(range(count)), *(set(np.flatnonzero(rng.random(count) < 0.7)) for _ in range(20))]:
        found = whole_blocks(count, held)
        assert set(found) <= blocks
        assert sorted(i for block in found for i in range(*block)) == sorted(held)
        # None of them has a parent that is held as a whole.
        parents = {half: block for block in blocks if block[1] - block[0] > 1 for half in halves(block)}
        assert not any(set(range(*parents[block])) <= held for block in found if block in parents)


@gathered("size", [1, 7, 2**15, 2**16 + 3])
@gathered("left_out", [(), (1, 2, 4), (0, 1, 3, 4)])
def test_a_sum_in_pieces_has_the_bits_of_the_sum(size, left_out):
    rng = np.random.default_rng(size)
    terms = {(i, i + 1): ((rng.random(),), rng.standard_normal(size) * 10.0 ** (4 - 2 * i)) for i in range(5)}
    known = {block: found for block, found in terms.items() if block[0] not in left_out}
    before = {block: found[1].tobytes() for block, found in known.items()}
    numbers, array = sum_block((0, 5), known.get)
    out = np.full(size, np.nan)
    found = sum_in_pieces((0, 5), known, out)
    assert found[1] is out and (found[0], out.tobytes()) == (numbers, array.tobytes())
    # With a place for the sum, too, and no term was written to.
    assert sum_block((0, 5), known.get, np.full(size, np.nan))[1].tobytes() == array.tobytes()
    assert {block: found[1].tobytes() for block, found in known.items()} == before


@gathered("count", [1, 2, 3, 5, 8, 13])
def test_the_sum_has_the_same_bits_whoever_adds_the_blocks(count):
    rng = np.random.default_rng(0)
    terms = [
        (float(v), rng.standard_normal(4) * 10.0**e)
        for v, e in zip(rng.random(count), rng.integers(-8, 8, count), strict=True)
    ]

    def leaf(block):
        i = block[0]
        return ((terms[i][0],), terms[i][1].copy()) if block[1] - i == 1 else None

    whole = sum_block((0, count), leaf)
    for _ in range(10):
        # Deal the terms to three workers; each adds the blocks that it holds, the rest is added at the end.
        owner = rng.integers(0, 3, count)
        known = {}
        for worker in range(3):
            for block in whole_blocks(count, np.flatnonzero(owner == worker)):
                known[block] = sum_block(block, leaf)
        joined = sum_block((0, count), known.get)
        assert joined[0] == whole[0]
        assert joined[1].tobytes() == whole[1].tobytes()


def test_a_sum_that_follows_the_arrival_would_have_other_bits():
    """The bits of the test above are no accident of exact sums."""
    values = [1.0, 1e16, -1e16, 1.0]
    # One addition after another: `sum` itself makes up for rounding since Python 3.12.
    sums = {functools.reduce(operator.add, order) for order in itertools.permutations(values)}
    assert len(sums) > 1


@pytest.mark.parametrize("combine", ["sum", "mean"])
@pytest.mark.parametrize("loss", ["squares", "logistic"])
def test_values_gradients_and_constants_are_those_of_the_sum(combine, loss):
    built = [part() for part in parts(loss)]
    f = ss.functions.PartSum(parts(loss), combine)
    factor = 1.0 if combine == "sum" else 1.0 / PARTS
    x = np.random.default_rng(1).standard_normal(SIZE)
    assert f.value(x) == pytest.approx(factor * math.fsum(part.value(x) for part in built), rel=1e-14)
    assert np.allclose(f.gradient(x), factor * sum(part.gradient(x) for part in built), rtol=1e-13)
    assert np.allclose(f.gradient(x), central_difference(f.value, x), atol=1e-5)
    assert f.value_and_magnitude(x) == pytest.approx((f.value(x), f.value(x)))
    space = ss.domains.FullSpace(SIZE)
    H, mu = f.smoothness(space).H, f.strong_convexity(space)
    parts_H, parts_mu = (
        factor * sum(part.smoothness(space).H for part in built),
        factor * sum(part.strong_convexity(space) for part in built),
    )
    if loss == "logistic":
        assert (H, mu) == (pytest.approx(parts_H), pytest.approx(parts_mu))
    else:
        # All is known of a small quadratic sum: more than its parts can say one by one.
        assert parts_H > H and mu > parts_mu
    assert (f.shape, f.quadratic, f.has_value) == ((SIZE,), loss == "squares", True)
    # Valid: at least the curvature, at most the modulus, of the whole matrix.
    A = np.vstack([part.A.matrix for part in built])
    largest = np.linalg.norm(A, 2) ** 2 * (1.0 if loss == "squares" else 0.25) + PARTS * 0.05
    assert factor * largest * (1.0 - 1e-12) <= f.smoothness(space).H
    assert f.stacked_norm(space) >= np.linalg.norm(A, 2)
    if loss == "squares":
        smallest = np.linalg.eigvalsh(A.T @ A)[0] + PARTS * 0.05
        assert factor * smallest * (1.0 - 1e-10) <= f.strong_convexity(space) <= factor * smallest * (1.0 + 1e-12)
        assert np.allclose(f.hessian_product(x), factor * (A.T @ (A @ x) + PARTS * 0.05 * x))


def test_the_gradient_is_the_caller_s_own():
    f = ss.functions.PartSum(parts())
    x, out = np.ones(SIZE), np.empty(SIZE)
    first = f.gradient(x)
    kept = first.copy()
    assert f.gradient(x, out) is out
    out *= 0.0
    f.gradient(2.0 * x)
    assert (first == kept).all()


def test_a_sum_of_parts_is_solved_as_one_function():
    A = np.vstack([part().A.matrix for part in parts()])
    b = np.concatenate([part().b for part in parts()])
    one = problem_with(ss.functions.LeastSquares(A, b, ridge=PARTS * 0.05))
    many = problem_with(ss.functions.PartSum(parts()))
    assert estimate_costs(many) == estimate_costs(one)
    found, expected = ss.solve(many, 1e-8), ss.solve(one, 1e-8)
    assert found.success and expected.success
    assert max(found.lower, expected.lower) <= min(found.upper, expected.upper)
    assert np.allclose(found.x, expected.x, atol=1e-4)
    assert answer(found) == answer(ss.solve(many, 1e-8))


def test_samples_are_unbiased_and_their_variance_is_exact():
    f = ss.functions.PartSum(parts("logistic"), "mean")
    x = np.random.default_rng(5).standard_normal(SIZE)
    for batch in (1, 3, 7):
        sampled = ss.functions.SampledParts(f, batch)
        # All draws there are.
        gradients = [part().gradient(x) for part in parts("logistic")]
        draws = [
            np.sum([gradients[i] for i in chosen], axis=0) / batch for chosen in itertools.combinations(range(8), batch)
        ]
        assert np.allclose(np.mean(draws, axis=0), f.gradient(x))
        variance = np.mean([np.sum((draw - f.gradient(x)) ** 2) for draw in draws])
        assert sampled.variance_at(x) == pytest.approx(variance, rel=1e-10)
        found = sampled.sample(x, np.random.default_rng(0))
        assert min(np.abs(found - draw).max() for draw in draws) < 1e-13
        assert sampled.batch == batch
    whole = ss.functions.SampledParts(f, 8)
    assert not whole.sampled and (whole.sample(x, np.random.default_rng(0)) == f.gradient(x)).all()


@pytest.mark.parametrize("loss", ["squares", "logistic"])
def test_the_bound_on_the_variance_holds_on_the_domain(loss):
    sampled = ss.functions.SampledParts(ss.functions.PartSum(parts(loss)), 2)
    box = ss.domains.Box(-0.5, 1.0, shape=SIZE)
    bound = sampled.variance(box)
    assert not bound.estimate
    rng = np.random.default_rng(2)
    corners = [np.where(rng.random(SIZE) < 0.5, -0.5, 1.0) for _ in range(50)]
    assert max(sampled.variance_at(corner) for corner in corners) <= bound.value
    assert sampled.variance(ss.domains.FullSpace(SIZE)).estimate
    assert ss.functions.SampledParts(sampled.function, 2, variance=3.0).variance(box).value == 3.0
    assert gradient_cost(sampled, SIZE) == gradient_cost(sampled.function, SIZE) / 4.0


def test_solve_with_sampled_parts_is_certified():
    sampled = ss.functions.SampledParts(ss.functions.PartSum(parts("logistic"), "mean"), 4)
    result = ss.solve(problem_with(sampled), 2.0, rng=0)
    assert result.success and result.gap <= 2.0
    assert result.samples.f == 4 * result.method_calls.f
    exact = ss.solve(problem_with(sampled.function), 1e-6)
    assert result.lower <= exact.upper and exact.lower <= result.upper


@gathered(
    ("make", "words"),
    [
        (lambda: ss.functions.PartSum([]), "received no parts"),
        (lambda: ss.functions.PartSum(parts(), "median"), "combine is 'median'; expected 'sum' or 'mean'"),
        (lambda: ss.functions.PartSum([3]), "part 0 gave int; expected a function"),
        (lambda: ss.functions.PartSum([lambda: 3]), "part 0 gave int; expected a function"),
        (lambda: ss.functions.PartSum([*parts(), ss.functions.Linear([1.0, 2.0])]), "expected one shape"),
        (lambda: ss.functions.PartSum(parts(), shape=5), "expected one shape"),
        (lambda: ss.functions.PartSum([ss.functions.Noisy(ss.functions.Quadratic(1.0), 0.1)]), "expected exact parts"),
        (lambda: ss.functions.SampledParts(ss.functions.Quadratic(1.0), 1), "expected a PartSum or a DaskSum"),
        (lambda: ss.functions.SampledParts(ss.functions.PartSum(parts()), 9), "expected a whole number from 1 to 8"),
        (lambda: ss.functions.SampledParts(ss.functions.PartSum(parts()), True), "expected a whole number from 1 to 8"),
    ],
)
def test_bad_input_is_refused(make, words):
    with pytest.raises(ss.errors.InputError, match=words):
        make()


def test_an_unknown_constant_names_its_part():
    f = ss.functions.PartSum([*parts(), ss.functions.from_callable(lambda x: (0.0, 0.0 * x))])
    with pytest.raises(ss.errors.UnknownConstantError, match="part 8 has no known smoothness"):
        f.smoothness(ss.domains.FullSpace(SIZE))


def test_what_is_declared_of_a_part_is_no_more_certain_in_a_sum():
    def evaluate(x):
        return float(np.logaddexp(0.0, x).sum()), 1.0 / (1.0 + np.exp(-x))

    # Far out the modulus is nearly 0, whatever is declared.
    false = ss.functions.from_callable(evaluate, smoothness=ss.Holder(1.0, 0.25), strong_convexity=0.2)
    box, whole, quadratic = ss.domains.Box(-5.0, 5.0, shape=2), ss.domains.FullSpace(2), ss.functions.Quadratic(1.0)
    f = ss.functions.PartSum([false, false])
    assert f.strong_convexity(box) == 0.4 and f.certain_convexity(box) == 0.0
    assert ss.functions.PartSum([false, quadratic], "mean").certain_convexity(box) == 0.5

    def problem(X):
        return ss.SaddleProblem(f=f, g=quadratic, B=0.1 * np.eye(2), X=X, Y=ss.domains.Box(-1.0, 1.0, shape=2))

    least = 4.0 * np.logaddexp(0.0, -5.0)
    rough = ss.certify(problem(box), [2.0, 2.0], [0.0, 0.0], max_gradients=1)
    assert rough.lower <= least
    # Where there is no bound without the modulus, it is named.
    assert "declared modulus 0.4" in problem(whole).assumptions


def test_a_sum_of_own_functions_is_certified():
    def part(i):
        a = np.random.default_rng(i).standard_normal(3)
        return ss.functions.from_callable(lambda x: (float(0.5 * (a @ x - 1.0) ** 2), (a @ x - 1.0) * a))

    f = ss.functions.PartSum([lambda i=i: part(i) for i in range(4)])
    box = ss.domains.Box(-1.0, 1.0, shape=3)
    problem = ss.SaddleProblem(f=f, g=ss.functions.Quadratic(1.0), B=np.eye(3), X=box, Y=box)
    assert ss.solve(problem, 1e-6).status is ss.Status.SOLVED
