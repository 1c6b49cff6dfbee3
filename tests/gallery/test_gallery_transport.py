"""Optimal transport: the linear program against HiGHS, the regularised one against Clarabel."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import saddleslide as ss
from saddleslide.errors import InputError
from support import gathered
from trusted import linear_program, quadratic_program

SHAPES = [(2, 3), (5, 5), (8, 12), (15, 9), (1, 6), (6, 1)]
CASES = list(enumerate(SHAPES))


def instance(seed, shape):
    rng = np.random.default_rng(seed)
    costs = rng.random(shape) - 0.2 * (seed % 2)
    source, target = rng.dirichlet(np.ones(shape[0])), 3.0 * rng.dirichlet(np.ones(shape[1]))
    source *= target.sum()
    return costs, source, target


def sums_matrix(m, n):
    """Row sums, then column sums of a raveled plan, written as a sparse matrix."""
    rows = sp.kron(sp.eye_array(m), np.ones((1, n)))
    return sp.vstack([rows, sp.kron(np.ones((1, m)), sp.eye_array(n))]).tocsr()


def solved(costs, source, target, regularisation, tol=1e-8):
    problem = ss.gallery.transport(costs, source, target, regularisation=regularisation)
    result = ss.solve(problem, tol=tol, max_steps=20_000)
    assert result.status is ss.Status.SOLVED
    return problem.read(result)


@gathered(("seed", "shape"), CASES)
def test_without_regularisation_it_is_the_linear_program_of_highs(seed, shape):
    costs, source, target = instance(seed, shape)
    solution = solved(costs, source, target, 0.0)
    minimum, plan = linear_program(costs.ravel(), sums_matrix(*shape), np.r_[source, target])
    assert solution.facts()["entries in use"] == (plan > 1e-3 * plan.max()).sum()
    assert solution.result.lower - 1e-10 <= minimum <= solution.cost + 1e-10
    assert solution.cost - minimum <= 2e-7
    # Potentials are feasible for the dual program and attain the minimum.
    u, v = solution.potentials
    assert (u[:, None] + v[None, :] - costs).max() <= 1e-14
    assert u @ source + v @ target == pytest.approx(minimum, abs=1e-6)


@gathered(("seed", "shape"), CASES)
def test_regularised_it_is_the_quadratic_program_of_clarabel(seed, shape):
    costs, source, target = instance(10 + seed, shape)
    solution = solved(costs, source, target, 0.7)
    size = costs.size
    # One of the m + n equations follows from the others.
    minimum, plan, _ = quadratic_program(
        0.7 * sp.eye_array(size), costs.ravel(), sums_matrix(*shape)[:-1], np.r_[source, target][:-1],
        -sp.eye_array(size), np.zeros(size),
    )  # fmt: skip
    assert solution.result.lower - 1e-8 <= minimum <= solution.objective + 1e-8
    assert solution.plan == pytest.approx(plan.reshape(shape), abs=1e-3)
    u, v = solution.potentials
    slack = costs + 0.7 * solution.plan - u[:, None] - v[None, :]
    assert slack.min() >= -1e-14 and np.abs(slack[solution.plan > 1e-2]).max() <= 1e-3


@gathered(("seed", "shape"), CASES)
def test_the_plan_has_the_marginals_and_no_negative_entry(seed, shape):
    costs, source, target = instance(20 + seed, shape)
    plan = solved(costs, source, target, 0.1, tol=1e-3).plan
    assert plan.min() >= 0.0
    assert plan.sum(axis=1) == pytest.approx(source, abs=1e-14)
    assert plan.sum(axis=0) == pytest.approx(target, abs=1e-14)


def test_the_cost_tends_to_the_linear_program_as_the_regularisation_vanishes():
    costs, source, target = instance(3, (6, 7))
    minimum, _ = linear_program(costs.ravel(), sums_matrix(6, 7), np.r_[source, target])
    excess = [solved(costs, source, target, weight).cost - minimum for weight in (3.0, 0.3, 0.03, 0.0)]
    assert excess[0] > excess[1] >= excess[2] - 1e-7 and excess[0] > 1e-3
    assert abs(excess[-1]) <= 2e-7


def test_bins_without_mass_receive_nothing():
    costs = np.arange(12.0).reshape(3, 4) % 5
    solution = solved(costs, [0.5, 0.0, 0.5], [0.25, 0.25, 0.0, 0.5], 0.1)
    assert not solution.plan[1].any() and not solution.plan[:, 2].any()
    u, v = solution.potentials
    assert (u[:, None] + v[None, :] <= costs + 0.1 * solution.plan + 1e-14).all()


@gathered("shape", [(3, 5), (1, 4), (4, 1), (1, 1), (7, 7)])
def test_marginals_are_the_matrix_with_its_singular_values(shape):
    coupling = ss.operators.Marginals(shape)
    matrix = sums_matrix(*shape).toarray()
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal(shape), rng.standard_normal(sum(shape))
    assert coupling.forward(x) == pytest.approx(matrix @ x.ravel())
    assert coupling.adjoint(y) == pytest.approx((matrix.T @ y).reshape(shape))
    out_x, out_y = np.empty(shape), np.empty(sum(shape))
    assert coupling.forward(x, out_y) is out_y and coupling.adjoint(y, out_x) is out_x
    assert (out_x == coupling.adjoint(y)).all() and (out_y == coupling.forward(x)).all()
    values = np.linalg.svd(matrix, compute_uv=False)
    positive = values[values > 1e-9]
    assert coupling.norm.estimate == pytest.approx(values[0]) and coupling.norm.upper >= values[0] * (1 - 1e-15)
    assert coupling.smallest_singular_value(positive=True).estimate == pytest.approx(positive[-1])
    injective = positive.size == x.size
    assert coupling.smallest_singular_value().estimate == pytest.approx(positive[-1] if injective else 0.0)


@gathered(
    ("source", "target", "words"),
    [
        ([0.5, 0.5], [0.5, 0.25, 0.125], "source sums to 1 and target to 0.875; expected equal sums"),
        ([1.5, -0.5], [0.5, 0.25, 0.25], "source has a negative entry -0.5"),
        ([0.5, 0.5], [0.5, 0.5], "expected \\(m, n\\), \\(m,\\) and \\(n,\\)"),
        ([0.0, 0.0], [0.0, 0.0, 0.0], "some mass"),
        ([np.nan, 1.0], [0.5, 0.25, 0.25], "NaN"),
    ],
)
def test_marginals_that_can_not_be_are_refused(source, target, words):
    with pytest.raises(InputError, match=words):
        ss.gallery.transport(np.ones((2, 3)), source, target)


def test_histograms_of_single_precision_are_taken_and_have_one_mass():
    rng = np.random.default_rng(0)
    source, target = (rng.random(n).astype(np.float32) for n in (30, 20))
    source, target = source / source.sum(), target / target.sum()
    assert abs(source.astype(float).sum() - target.astype(float).sum()) > 1e-9
    solution = solved(rng.random((30, 20)), source, target, 0.5, tol=1e-4)
    assert solution.plan.sum(axis=1) == pytest.approx(source.astype(float), abs=1e-14)
    assert solution.plan.sum(axis=0) == pytest.approx(target.astype(float), rel=1e-6)
    with pytest.raises(InputError, match="expected equal sums"):
        ss.gallery.transport(np.ones((2, 2)), [0.5, 0.5], [0.5, 0.5 + 2e-6])


def test_a_negative_regularisation_and_shapeless_marginals_are_refused():
    with pytest.raises(InputError, match="regularisation is -1"):
        ss.gallery.transport(np.ones((1, 1)), [1.0], [1.0], regularisation=-1.0)
    with pytest.raises(InputError, match="Marginals: shape"):
        ss.operators.Marginals((3,))
