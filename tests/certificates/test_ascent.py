"""A better y, and one product more: bounds that are higher, true, and worth their price."""

import math

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse.linalg

import saddleslide as ss
from saddleslide.certificates.ascent import Ascent, Model
from saddleslide.certificates.candidate import Candidate, Linearisation, Split
from saddleslide.certificates.inspection import Inspection, Questions
from saddleslide.certificates.residuals import ResidualBound
from saddleslide.metrics.base import Blocks
from saddleslide.oracles.oracles import Oracles

F, D = ss.functions, ss.domains


@pytest.mark.parametrize("X", [D.FullSpace(40), D.NonNegative(40)], ids=["free", "x >= 0"])
def test_a_climb_and_a_product_raise_the_bound_but_never_above_the_minimum(X):
    rng = np.random.default_rng(5)
    A, d = rng.standard_normal((12, 40)), rng.standard_normal(12)
    # Known by its products alone: else its factor would say all.
    f, g = F.LeastSquares(scipy.sparse.linalg.aslinearoperator(A), d, ridge=1e-2), F.Quadratic(1e-3)
    Y, R = D.Box(-1.0, 1.0, shape=25), np.linalg.cholesky(A.T @ A + 1e-2 * np.eye(40)).T
    problem = ss.SaddleProblem(f=f, g=g, B=rng.standard_normal((25, 40)), X=X, Y=Y)
    asked = Questions(
        problem, Split(f, F.Zero(), F.Zero(), g), Oracles(problem), np.zeros(25), lambda name: math.inf, lambda: None
    )
    below, y = ResidualBound(f, F.Zero(), X), rng.uniform(-1.0, 1.0, 25)
    assert problem.coupling.norm.upper > 0.0
    for _ in range(5):
        x = X.project(rng.standard_normal(40))
        known = Linearisation(x, *f.value_and_gradient(x))
        below.remember(known)
    ascent = Ascent(asked, below)

    def bound(y):
        """What is proved of F(., y), which must lie below its minimum: 1/2 |R x + c|^2 less a constant."""
        pull = problem.coupling.adjoint(y)
        c = np.linalg.solve(R.T, pull - A.T @ d)
        least = 0.5 * scipy.optimize.nnls(R, -c)[1] ** 2 if isinstance(X, D.Box) else 0.0
        found = below.minimum(pull, known)
        assert found <= least - 0.5 * float(c @ c) + 0.5 * float(d @ d)
        return found - g.value(y)

    def climbed(y):
        y = ascent.climb(Inspection(Candidate(x, y, known.value), asked), known)
        assert Y.contains(y)
        return y

    first = bound(y)
    y = climbed(y)
    second = bound(y)
    # Both are negative.
    assert second > first / 3.0
    ascent.spend(known, problem.coupling.adjoint(y), Blocks(1.0, 0.0))
    assert asked.oracles.calls.f == 1.0
    third = bound(y)
    assert third > second + 10.0
    assert bound(climbed(y)) > third / 2.0
    # At one y, the weights go to where the bound no longer rises with them.
    pull, model = problem.coupling.adjoint(y), Model(below, known, np.zeros(len(below.cuts.ways)))

    def rise():
        s = model.respond(pull)
        return np.linalg.norm(model.across @ model.weights - model.reach.along(s - x))

    first = rise()
    for _ in range(2000):
        last = rise()
    assert last < 1e-3 * first or last < 1e-6


def test_loose_targets_are_proved_steps_earlier_for_one_gradient(monkeypatch):
    """The instance whose proofs came latest: the point is there after three steps."""
    problem = ss.gallery.realistic_tomography("sparse_view", seed=25)
    with_it = ss.solve(problem, reduction=1e-3)
    monkeypatch.setattr(Ascent, "hopes", lambda *_: False)
    without = ss.solve(problem, reduction=1e-3)
    assert with_it.status is without.status is ss.Status.SOLVED
    assert len(with_it.history) <= len(without.history) - 3
    assert with_it.calls.f <= without.calls.f - 2
    # The product is the judge's, and stays within its part.
    assert without.certificate_calls.f + 1 == with_it.certificate_calls.f <= 2
    assert with_it.lower <= without.upper
    assert without.lower <= with_it.upper
