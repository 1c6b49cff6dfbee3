"""Products that are known already are not made again: at 0, at the end of a step, and where a step is repeated."""

from dataclasses import replace

import numpy as np
import pytest

import saddleslide as ss
from saddleslide.certificates.candidate import Split
from saddleslide.facts.facts import Facts
from saddleslide.kernels.switch import jit
from saddleslide.methods.adaptive_sliding import AdaptiveSliding
from saddleslide.methods.restarted_primal_dual import PrimalDualState, RestartedPrimalDual
from saddleslide.methods.sliding.inner import InnerLoop, InnerProblem, Linearised, Proximal, Slid, Work
from saddleslide.metrics import Blocks, Spectral
from saddleslide.metrics.memory import Memory, Remembered
from saddleslide.oracles.oracles import Oracles
from saddleslide.planner.choice import adaptive_plan
from saddleslide.planner.forecast import SolveRequest
from saddleslide.runs.control import Control
from saddleslide.runs.loop import Run
from watched import Both, Watched

pytestmark = pytest.mark.usefixtures("either_way")

F, D = ss.functions, ss.domains
SHAPE, FIELD = (5, 6), (2, 5, 6)


def loop_on_differences(metric):
    B = ss.operators.FiniteDifferences(SHAPE)
    problem = ss.SaddleProblem(
        f=F.Quadratic(1.0), g=F.Zero(), B=B, X=D.FullSpace(SHAPE), Y=D.Box(-0.3, 0.3, shape=FIELD)
    )
    oracles = Oracles(problem)
    return InnerLoop(oracles, metric.with_coupling(B), Split(problem.f, F.Zero(), F.Zero(), F.Zero())), oracles


def given(loop, start, seed=0):
    gradient = np.random.default_rng(seed).standard_normal(SHAPE)
    hessian = Remembered(loop.metric, 1.0, Memory())
    return InnerProblem(gradient, np.zeros(SHAPE), hessian, start, start, 0.5, None)


def spent(loop, oracles, problem, work=None):
    before = oracles.calls.B
    found, work = loop.solve(problem, work or Work(4, 0.0), 4)
    return oracles.calls.B - before, found, work


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("metric", [Blocks(1.0, 3.0), Spectral(np.full(SHAPE, 2.0))])
def test_a_loop_that_begins_where_one_ended_saves_its_first_product(compiled, metric):
    rng = np.random.default_rng(1)
    with jit(compiled):
        loop, oracles = loop_on_differences(metric)
        start = rng.standard_normal(SHAPE), np.clip(rng.standard_normal(FIELD), -0.3, 0.3)
        count, begun, work = spent(loop, oracles, given(loop, start))
        assert count == 2 * 4 + 1
        np.testing.assert_allclose(begun.BTy, oracles.problem.coupling.adjoint(begun.y), atol=1e-14)
        again = given(loop, (begun.X, begun.y), seed=2)
        count, first, work = spent(loop, oracles, again, work)
        assert count == 2 * 4
        # Repeated from the same point, as after a failed curvature test; then from a point of its own.
        count, second, work = spent(loop, oracles, again, work)
        assert count == 2 * 4
        assert all(np.array_equal(one, other) for one, other in zip(first[:3], second[:3], strict=True))
        fresh, others = loop_on_differences(metric)
        count, alone, _ = spent(fresh, others, again)
        assert count == 2 * 4 + 1
        for one, other in zip(first[:3], alone[:3], strict=True):
            np.testing.assert_allclose(one, other, rtol=0.0, atol=1e-13)
        assert spent(loop, oracles, given(loop, start), work)[0] == 2 * 4 + 1


def test_the_product_of_zero_is_known():
    loop, oracles = loop_on_differences(Blocks(1.0, 3.0))
    assert spent(loop, oracles, given(loop, (np.ones(SHAPE), np.zeros(FIELD))))[0] == 2 * 4
    assert not oracles.pull(np.zeros(FIELD)).any() and not oracles.image(np.zeros(SHAPE)).any()
    assert oracles.calls.B == 2 * 4
    ones = np.ones(FIELD)
    assert np.array_equal(oracles.pull(ones), oracles.problem.coupling.adjoint(ones)) and oracles.calls.B == 2 * 4 + 1


def run_of(problem, tol=1e-9, start=None):
    plan = adaptive_plan(Facts(problem), SolveRequest(tol))
    return Run(problem, plan, problem.start(start), Control())


def costly_prox(kind):
    """A problem for each way in which g is treated inside a step, its coupling behind counted callables."""
    rng = np.random.default_rng(3)
    B = Watched(rng.standard_normal((8, 12)) / 5.0)
    f = F.LeastSquares(rng.standard_normal((15, 12)), rng.standard_normal(15), ridge=0.1)
    M = rng.standard_normal((8, 8))
    g = {"proximal": F.Quadratic(0.5), "linearised": F.Quadratic(M @ M.T / 8.0) + F.Quadratic(0.5)}[kind]
    return ss.SaddleProblem(f=f, g=g, B=B.coupling, X=D.FullSpace(12), Y=D.Box(-1.0, 1.0, shape=8)), B


@pytest.mark.parametrize(("kind", "inner"), [("proximal", Proximal), ("linearised", Linearised), ("slid", Slid)])
def test_candidates_bring_both_products_along(kind, inner):
    if kind == "slid":
        both = Both(10.0, 1e4, reach=2.0)
        problem, B = both.problem, both.B
    else:
        problem, B = costly_prox(kind)
    plan = adaptive_plan(Facts(problem), SolveRequest(1e-9))
    if kind == "linearised":
        plan = replace(plan, settings={**plan.settings, "g_steps": 0})
    method, oracles = AdaptiveSliding.of(plan), Oracles(problem)
    state = method.init(oracles, Facts(problem), problem.start(), tol=1e-9)
    assert isinstance(method._iteration(oracles, state.metric).inner, inner)
    shown = 0
    for _ in range(12):
        state = method.step(state, oracles)
        (candidate,) = method.candidates(state, oracles)
        np.testing.assert_allclose(candidate.BTy, B.matrix.T @ candidate.y, rtol=0.0, atol=1e-13)
        if candidate.Bx is not None:
            shown += 1
            np.testing.assert_allclose(candidate.Bx, B.matrix @ candidate.x, rtol=0.0, atol=1e-13)
    assert shown >= 6


def test_the_judge_of_a_run_makes_no_product_of_its_own():
    problem, B = costly_prox("proximal")
    run = run_of(problem)
    before = B.products
    result = run.carry_out()
    assert result.success and len(result.history) > 3
    assert run.oracles.calls.B + run.judge.oracles.calls.B == result.calls.B == B.products - before
    # After a shortened step x is a point between others, and its image is asked for.
    assert run.state.iterate.violations >= run.judge.oracles.calls.B


def test_what_is_judged_of_primal_dual_steps_comes_with_its_products():
    rng = np.random.default_rng(4)
    B = Watched(rng.standard_normal((6, 9)))
    problem = ss.SaddleProblem(
        f=F.Zero(), g=F.Zero(), B=B.coupling, X=D.Box(-1.0, 1.0, shape=9), Y=D.Box(-1.0, 1.0, shape=6)
    )
    start = rng.uniform(-1.0, 1.0, 9), rng.uniform(-1.0, 1.0, 6)
    oracles = Oracles(problem)
    state = PrimalDualState.at(oracles, start, float(np.linalg.norm(B.matrix, 2)), 1.0)
    made = 1
    while state.restarts == 0:
        state = RestartedPrimalDual().step(replace(state, chunk=5), oracles)
        # One more in each chunk: that of z, for the residual.
        made += 11
        assert B.products == made
        (last,) = state.points
        np.testing.assert_allclose(last.BTy, B.matrix.T @ last.y, rtol=0.0, atol=1e-14)
        np.testing.assert_allclose(last.Bx, B.matrix @ last.x, rtol=0.0, atol=1e-14)
        np.testing.assert_allclose(state.pull, B.matrix.T @ state.y, rtol=0.0, atol=1e-13)
    assert state.x is last.x and state.y is last.y
    assert not PrimalDualState.at(oracles, (start[0], np.zeros(6)), 1.0, 1.0).pull.any()
    assert B.products == made
