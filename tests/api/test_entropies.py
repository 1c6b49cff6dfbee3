"""Objectives that are infinite somewhere, against an interior-point solver, Sinkhorn's iteration and brute force."""

from __future__ import annotations

import numpy as np
import pytest

import saddleslide as ss
from saddleslide.functions.direct_sum import DirectSum
from saddleslide.functions.minimum import minimiser_distance, tilted_minimum
from saddleslide.problem.objectives import split_objective
from support import need

F, OP, D = ss.functions, ss.operators, ss.domains
RNG = np.random.default_rng(0)
N = 20
A = np.abs(RNG.standard_normal((40, N)))
SPARSE = np.where(RNG.random((40, N)) < 0.7, 0.0, A)
MANY = RNG.poisson(20.0 * A @ np.ones(N)).astype(float)
FEW = np.where(RNG.random(40) < 0.4, 0, RNG.poisson(3.0, 40)).astype(float)
WIDE = RNG.standard_normal((8, N))
LEVELS = WIDE @ RNG.random(N)
PAYOFFS = RNG.standard_normal((5, N))
TILT = RNG.standard_normal(N)
PICTURE = np.kron(np.eye(4), np.ones((4, 4)))
KERNEL = np.ones((3, 3)) / 9.0
BLUR = OP.Convolution(KERNEL, (16, 16))
PHOTONS = np.random.default_rng(2).poisson(30.0 * (BLUR.forward(PICTURE) + 0.1)).astype(float)


def kl(cp, z, b):
    # Means of no counts are >= 0 too: -log(0) would not say so.
    return cp.sum(cp.rel_entr(b, z)) + cp.sum(z) - b.sum()


def entropy(cp, x):
    return -cp.sum(cp.entr(x))


def walk(cp, x):
    return 0.5 * cp.norm1(cp.diff(x))


STEPS = OP.FiniteDifferences((N,))
CASES = {
    "emission tomography": (
        F.KullbackLeibler(MANY) @ A + 0.5 * F.L1() @ STEPS,
        D.NonNegative(N),
        lambda cp, x: (kl(cp, A @ x, MANY) + walk(cp, x), [x >= 0]),
    ),
    "counts that are 0": (
        F.KullbackLeibler(FEW) @ SPARSE + 0.5 * F.L1() @ STEPS,
        D.NonNegative(N),
        lambda cp, x: (kl(cp, SPARSE @ x, FEW) + walk(cp, x), [x >= 0]),
    ),
    "counts in a box": (
        F.KullbackLeibler(MANY) @ A + 2.0 * F.L1(),
        D.Box(5.0, 30.0, shape=N),
        lambda cp, x: (kl(cp, A @ x, MANY) + 2.0 * cp.norm1(x), [x >= 5.0, x <= 30.0]),
    ),
    "game": (
        F.Max() @ PAYOFFS + 0.1 * F.Entropy(),
        D.Simplex(N),
        lambda cp, x: (cp.max(PAYOFFS @ x) + 0.1 * entropy(cp, x), [x >= 0, cp.sum(x) == 1]),
    ),
    "equalities": (
        F.Entropy() + F.Indicator(D.Box(LEVELS, LEVELS)) @ WIDE,
        None,
        lambda cp, x: (entropy(cp, x), [WIDE @ x == LEVELS]),
    ),
    "inequalities and a slope": (
        F.Linear(TILT) + 0.3 * F.Entropy() + F.Indicator(D.Box(-np.inf, LEVELS - 1.0)) @ WIDE,
        None,
        lambda cp, x: (TILT @ x + 0.3 * entropy(cp, x), [WIDE @ x <= LEVELS - 1.0]),
    ),
    "least squares": (
        F.LeastSquares(WIDE, LEVELS) + 0.3 * F.Entropy(),
        None,
        lambda cp, x: (0.5 * cp.sum_squares(WIDE @ x - LEVELS) + 0.3 * entropy(cp, x), []),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_answers_are_those_of_an_interior_point_solver(name):
    objective, over, model = CASES[name]
    cp = need("cvxpy")
    x = cp.Variable(N)
    minimum, constraints = model(cp, x)
    trusted = cp.Problem(cp.Minimize(minimum), constraints)
    trusted.solve(solver="CLARABEL")
    check(ss.minimize(objective, over=over, rtol=1e-4, max_calls={"B": 5000}), trusted.value, minimum, x)


def test_counts_of_a_blurred_picture_with_isotropic_variation():
    cp = need("cvxpy")
    x = cp.Variable((16, 16))
    # The columns of the blur by its definition: a periodic mean over 3 x 3 pixels.
    units = np.eye(256).reshape(256, 16, 16)
    shifts = [(i, j) for i in (-1, 0, 1) for j in (-1, 0, 1)]
    blurred = sum(np.roll(units, shift, (1, 2)) for shift in shifts) / 9.0
    z = blurred.reshape(256, 256).T @ cp.vec(x, order="C")
    variation = cp.sum(cp.norm(cp.vstack([_differences(cp, x, axis) for axis in (0, 1)]), axis=0))
    minimum = kl(cp, z, PHOTONS.ravel()) + 0.5 * variation
    trusted = cp.Problem(cp.Minimize(minimum), [x >= 0])
    trusted.solve(solver="CLARABEL")
    objective = F.KullbackLeibler(PHOTONS) @ BLUR + 0.5 * F.L21(axis=0) @ OP.FiniteDifferences((16, 16))
    result = ss.minimize(objective, over=D.NonNegative((16, 16)), rtol=1e-4, max_calls={"B": 20000})
    check(result, trusted.value, minimum, x)


def _differences(cp, x, axis):
    """x moved by one pixel less x, 0 at the last one: a vector."""
    n = x.shape[axis]
    shift = np.eye(n, k=1) - np.eye(n)
    shift[-1] = 0.0
    return cp.vec(shift @ x if axis == 0 else x @ shift.T, order="C")


def check(result, value, minimum, x):
    """The trusted minimum lies between the bounds, and the point has the value that it says, by the other's model."""
    assert result.success, result.message
    room = 1e-4 * abs(value)
    assert abs(result.objective - value) <= room
    assert value - 2.0 * room <= result.lower <= value + 1e-6 * (1.0 + abs(value))
    assert result.violation <= 1e-4
    x.value = np.asarray(result.x)
    assert minimum.value == pytest.approx(result.objective, rel=1e-9, abs=1e-9)


def test_entropic_transport_is_what_sinkhorn_finds():
    cost, supply, demand = RNG.random((5, 6)), np.full(5, 1 / 5), RNG.random(6)
    demand /= demand.sum()
    marginals, kernel, v = np.concatenate([supply, demand]), np.exp(-cost / 0.1), np.ones(6)
    for _ in range(2000):
        u = supply / (kernel @ v)
        v = demand / (kernel.T @ u)
    plan = u[:, None] * kernel * v
    result = ss.minimize(
        F.Linear(cost) + 0.1 * F.Entropy() + F.Indicator(D.Box(marginals, marginals)) @ OP.Marginals((5, 6)), rtol=1e-6
    )
    assert result.success, result.message
    assert result.objective == pytest.approx((cost * plan).sum() + 0.1 * (plan * np.log(plan)).sum(), abs=1e-6)
    np.testing.assert_allclose(result.x, plan, atol=1e-4)
    # Multipliers are the logarithms of u and v, up to a number that moves from one to the other.
    potentials = np.add.outer(result.duals[0][:5], result.duals[0][5:])
    np.testing.assert_allclose(potentials, -0.1 * np.add.outer(np.log(u), np.log(v)) - 0.1, atol=1e-3)


def test_x_lies_where_functions_of_it_are_finite():
    for alone in (F.Entropy() + F.Linear(TILT), F.KullbackLeibler(FEW[:N])):
        X = split_objective(alone).problem.X
        assert isinstance(X, D.Box) and X.uniform == (0.0, np.inf)
    # Behind an operator they say nothing of x, and a set of the caller's stays.
    assert isinstance(split_objective(F.KullbackLeibler(MANY) @ A).problem.X, D.FullSpace)
    assert isinstance(split_objective(F.Entropy(), D.Simplex(N)).problem.X, D.Simplex)


def test_minimisers_of_a_sum_over_blocks_stay_within_their_bound():
    counts = np.array([3.0, 1.0, 2.0])
    parts, sets = [F.KullbackLeibler(counts).conjugate(), F.Zero()], [D.FullSpace(3), D.Box(-1.0, 1.0, shape=2)]
    g, Y = DirectSum(parts, [(3,), (2,)]), D.Product(*sets)
    # The first mean is smaller than a thousandth of the largest one: a wide bracket would leave the domain.
    c, change = -np.array([1e-4, 0.5, 4.0, 0.3, -0.2]), 4e-5
    bound = minimiser_distance(g, c, Y, change, tilted_minimum(g, c, Y), 0.0)
    moved = [c + change * d / np.linalg.norm(d) for d in RNG.standard_normal((200, 5))]
    largest = max(np.linalg.norm(tilted_minimum(g, tilt, Y).point) for tilt in moved)
    assert largest <= bound < np.inf
    # Where a mean may be 0, nothing bounds them.
    assert minimiser_distance(g, c, Y, 1e-3, tilted_minimum(g, c, Y), 0.0) == np.inf
