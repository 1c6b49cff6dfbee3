"""Oracles are counted exactly, runs can be watched and stopped, and broken oracles end a run with what is known."""

import itertools
import math
import re

import numpy as np
import pytest

import saddleslide as ss
from saddleslide.certificates.verdict import Status
from saddleslide.functions import Custom, Power, Quadratic, Zero
from saddleslide.oracles.oracles import Calls, Oracles
from support import CountedProblem, gathered

ORDERS = ["".join(order) for order in itertools.permutations("fgB")]
B = np.random.default_rng(0).standard_normal((3, 5))
NORM = float(np.linalg.norm(B, 2))


def counted(**options):
    return CountedProblem(B, norm=NORM, **options)


def plan_for(counted, order="fgB", loops=(4, 2, 3), **options):
    return ss.plan(counted.problem, order=order, loops=loops, **options)


# --- counts -----------------------------------------------------------------------------------------------------


@gathered("loops", [(1, 1, 1), (3, 1, 4), (2, 3, 2), (5, 2, 1)])
@gathered("order", ORDERS)
def test_counts_are_exact_per_oracle_and_as_predicted(order, loops):
    mine = counted()
    plan = plan_for(mine, order, loops)
    assert mine.total == 0
    result = ss.run(mine.problem, plan)
    entries = dict(zip(order, np.cumprod(loops).tolist(), strict=True))
    # The two products at the start, which is 0, and the two of the last correction are spared.
    expected = Calls(f=entries["f"], g=entries["g"], B=4 * entries["B"] - 4)
    assert result.method_calls == expected
    assert result.spared == 4
    assert plan.predicted_calls == vars(result.counted) == {"f": expected.f, "g": expected.g, "B": expected.B + 4}
    # The callables were also asked by the certificate, and by nothing else.
    judged = result.certificate_calls
    assert mine.products == expected.B + judged.B
    for name, gradients, values in (("f", mine.f, mine.f_value), ("g", mine.g, mine.g_value)):
        # A value alone is a call; one at the point of a gradient comes with it.
        calls = getattr(expected + judged, name)
        assert gradients.count <= calls <= gradients.count + values.count


def test_counts_of_the_run_alone_are_those_of_the_callables():
    mine = counted()
    seen = []
    ss.run(mine.problem, plan_for(mine), callback=lambda r: seen.append((r.calls, *mine.gradients, mine.products)))
    for calls, f, g, products in seen:
        assert (calls.f, calls.g, calls.B) == (f, g, products)
    assert len(seen) == 4


def test_forward_and_adjoint_are_called_equally_often():
    mine = counted()
    ss.run(mine.problem, plan_for(mine))
    assert mine.forward.count == mine.adjoint.count


def test_a_coupling_that_is_zero_is_never_called():
    mine = CountedProblem(0.0 * B, norm=0.0)
    plan = plan_for(mine)
    assert plan.predicted_calls["B"] == 0
    seen = []
    result = ss.run(mine.problem, plan, callback=lambda _: seen.append(mine.products))
    assert result.method_calls.B == 0
    assert seen == [0, 0, 0, 0]


def test_oracles_count_time_and_return_the_products():
    mine = counted()
    oracles = Oracles(mine.problem)
    x, y = np.linspace(0.0, 1.0, 5), np.linspace(-1.0, 1.0, 3)
    out = np.empty(3)
    np.testing.assert_allclose(oracles.forward(x, out), B @ x)
    np.testing.assert_allclose(out, B @ x)
    np.testing.assert_allclose(oracles.adjoint(y), B.T @ y)
    np.testing.assert_array_equal(oracles.f_gradient(x), mine.f.call(x))
    np.testing.assert_array_equal(oracles.g_gradient(y), mine.g.call(y))
    oracles.g_gradient(y)
    assert oracles.calls == Calls(f=1, g=2, B=2)
    assert min(oracles.seconds.f, oracles.seconds.g, oracles.seconds.B) > 0.0
    assert oracles.finite(x, y)
    assert not oracles.finite(x, np.array([np.nan]))


def test_images_pass_through_a_flat_matrix():
    image = ss.domains.Box(-1.0, 1.0, shape=(2, 2))
    f = Quadratic(1.0)
    problem = ss.SaddleProblem(f=f, g=f, B=np.arange(12.0).reshape(3, 4), X=image, Y=ss.domains.Simplex(3))
    result = ss.run(problem, ss.plan(problem, order="fgB", loops=(2, 1, 2)))
    assert (result.x.shape, result.y.shape) == ((2, 2), (3,))
    np.testing.assert_allclose(Oracles(problem).forward(np.ones((2, 2))), [6.0, 22.0, 38.0])


# --- watching and stopping --------------------------------------------------------------------------------------


def test_callback_sees_feasible_running_averages_and_an_honest_status():
    mine = counted()
    seen = []
    result = ss.run(mine.problem, plan_for(mine), callback=seen.append)
    assert [len(moment.history) for moment in seen] == [1, 2, 3, 4]
    for moment in seen:
        assert moment.status is Status.RUNNING
        assert not moment.success
        assert (moment.gap, moment.certificate.kind) == (math.inf, "none")
        assert mine.X.contains(moment.x, 1e-12)
        assert mine.Y.contains(moment.y, 1e-12)
    np.testing.assert_array_equal(seen[-1].x, result.x)
    np.testing.assert_array_equal(seen[-1].y, result.y)
    assert not np.array_equal(seen[0].x, seen[1].x)


def test_intermediate_points_are_copies():
    mine = counted()

    def spoil(moment):
        moment.x[:] = np.nan
        moment.y[:] = np.nan

    spoiled = ss.run(mine.problem, plan_for(mine), callback=spoil)
    plain = ss.run(mine.problem, plan_for(mine))
    np.testing.assert_array_equal(spoiled.x, plain.x)
    np.testing.assert_array_equal(spoiled.y, plain.y)


@gathered("stop_at", [1, 3])
def test_stop_iteration_ends_the_run_at_the_average_it_was_shown(stop_at):
    mine = counted()
    shown = []

    def stop(moment):
        shown.append(moment)
        if moment.nit == stop_at:
            raise StopIteration

    result = ss.run(mine.problem, plan_for(mine), callback=stop)
    assert result.status is Status.STOPPED
    assert result.nit == stop_at == len(shown)
    np.testing.assert_array_equal(result.x, shown[-1].x)
    assert result.method_calls == Calls(f=stop_at, g=2 * stop_at, B=24 * stop_at - 2)
    assert result.spared == 2
    assert not result.success


def test_other_exceptions_of_the_callback_are_the_caller_s():
    mine = counted()

    def fail(_):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        ss.run(mine.problem, plan_for(mine), callback=fail)


def test_any_time_average_is_the_result_of_a_shorter_run():
    # With nu = 1 and no coupling the steps do not depend on the loop count, so prefixes of a run are runs.
    mine = CountedProblem(0.0 * B, norm=0.0)
    seen = []
    ss.run(mine.problem, plan_for(mine, loops=(6, 1, 1)), callback=seen.append)
    for T in (1, 2, 5, 6):
        shorter = ss.run(mine.problem, plan_for(mine, loops=(T, 1, 1)))
        np.testing.assert_array_equal(shorter.x, seen[T - 1].x)
        np.testing.assert_array_equal(shorter.y, seen[T - 1].y)


def test_any_time_averages_follow_the_alphas():
    # A constant slope makes the iterates explicit: z <- z - c / (alpha L), with alpha of eq. alpha_sequence.
    c, L, seen = np.array([1.0, -2.0]), 4.0, []
    p = ss.Component(function=lambda z: c, smoothness=ss.Holder(1.0, L))
    ss.slide([p], ss.domains.FullSpace(2), np.zeros(2), (5,), callback=lambda run: seen.append(run.z))
    alpha, z, average = 1.0, np.zeros(2), np.zeros(2)
    for shown in seen:
        z = z - c / (alpha * L)
        average = alpha * z + (1.0 - alpha) * average
        np.testing.assert_allclose(shown, average, rtol=1e-14)
        alpha = 2.0 / (1.0 + math.sqrt(1.0 + 4.0 / alpha**2))


def test_slide_shows_its_averages_and_hands_out_copies():
    seen = []

    def watch(run):
        seen.append((len(run.history), run.z.copy()))
        run.z[:] = np.nan

    p = ss.Component(function=Quadratic(1.0))
    z = ss.slide([p], ss.domains.Box(0.5, 1.0, shape=(2, 2)), np.ones((2, 2)), (3,), callback=watch).z
    assert [step for step, _ in seen] == [1, 2, 3]
    np.testing.assert_array_equal(z, seen[-1][1])
    assert z.shape == (2, 2)


def test_history_has_one_exact_row_per_outermost_step():
    mine = counted()
    result = ss.run(mine.problem, plan_for(mine, "gBf", (5, 2, 3)))
    assert [row.step for row in result.history] == [1, 2, 3, 4, 5]
    made = [Calls(f=6 * k, g=k, B=8 * k - (4 if k == 5 else 2)) for k in range(1, 6)]
    # At the end of the stage its point is judged.
    made[-1] = made[-1] + result.certificate_calls
    assert [row.calls for row in result.history] == made
    seconds = [row.seconds for row in result.history]
    assert seconds == sorted(seconds)
    assert seconds[0] > 0.0
    assert seconds[-1] <= result.seconds
    assert all(math.isnan(row.gap) for row in result.history[:-1]) and result.history[-1].gap == result.gap
    assert result.nit == 5
    assert result.plans[0].loops == (5, 2, 3)


# --- verdicts ---------------------------------------------------------------------------------------------------


def powers(tol=None, **options):
    box = ss.domains.Box(-1.0, 1.0, shape=3)
    problem = ss.SaddleProblem(f=Power(1.0, tilt=np.ones(3)), g=Power(1.0), B=B[:, :3], X=box, Y=box)
    return problem, ss.plan(problem, tol, **options)


def test_a_run_that_meets_its_target_is_solved_and_one_without_target_is_completed():
    solved = ss.run(*powers(tol=1.0))
    assert solved.status is Status.SOLVED
    assert 0.0 <= solved.gap <= 1.0
    assert solved.lower <= solved.upper
    assert solved.gap == solved.upper - solved.lower
    completed = ss.run(*powers(order="fgB", loops=(2, 2, 2)))
    assert completed.status is Status.COMPLETED
    assert 0.0 < completed.gap < math.inf
    missed = ss.run(*powers(tol=1e-9, order="fgB", loops=(2, 2, 2)))
    assert missed.status is Status.COMPLETED
    assert missed.gap > 1e-9


@pytest.mark.parametrize("side", ["f", "g"])
def test_without_a_value_there_is_no_certificate_and_the_gap_is_infinite(side):
    blind = Custom(gradient=lambda x: x, smoothness=ss.Holder(1.0, 1.0))
    box = ss.domains.Box(-1.0, 1.0, shape=3)
    parts = {"f": Quadratic(1.0), "g": Quadratic(1.0), side: blind}
    problem = ss.SaddleProblem(**parts, B=B[:, :3], X=box, Y=box)
    result = ss.run(problem, ss.plan(problem, tol=100.0, order="fgB", loops=(3, 2, 2)))
    assert result.status is Status.NO_CERTIFICATE
    assert (result.lower, result.upper, result.gap) == (-math.inf, math.inf, math.inf)
    assert result.certificate.kind == "none"
    assert "value" in result.certificate.reason
    assert np.isfinite(result.x).all()


def test_an_unbounded_inner_problem_has_an_infinite_gap():
    problem = ss.SaddleProblem(
        f=Zero(), g=Zero(), B=B[:, [0, 1, 1]], X=ss.domains.FullSpace(3), Y=ss.domains.Box(-1.0, 1.0, shape=3)
    )
    y = np.ones(3)
    certificate = ss.certify(problem, np.zeros(3), y)
    assert certificate.gap == math.inf
    assert certificate.kind == "none"
    assert certificate.reason


def turns_bad(bad, good_calls):
    """A gradient that returns `bad` entries after some good calls."""
    calls = itertools.count()

    def gradient(v):
        return v - np.linspace(-1.0, 1.0, len(v)) if next(calls) < good_calls else np.full(v.shape, bad)

    return gradient


@gathered("domain", [ss.domains.Box(-1.0, 1.0, shape=5), ss.domains.Ball(1.0, shape=5)])
@gathered("order", ORDERS)
def test_nan_from_f_ends_the_run_at_the_last_finite_point(order, domain):
    loops = (4, 1, 1)
    mine = counted(f_gradient=turns_bad(np.nan, 2), X=domain)
    seen = []
    result = ss.run(mine.problem, plan_for(mine, order, loops), callback=seen.append)
    assert result.status is Status.NON_FINITE
    assert not result.success
    assert len(seen) == result.nit == 2
    np.testing.assert_array_equal(result.x, seen[-1].x)
    np.testing.assert_array_equal(result.y, seen[-1].y)
    assert result.method_calls.f == 3


def test_nan_at_the_first_call_leaves_the_start():
    mine = counted(g_gradient=turns_bad(np.nan, 0))
    x, y = np.full(5, 0.25), np.full(3, -0.25)
    result = ss.run(mine.problem, plan_for(mine), start=(x, y))
    assert result.status is Status.NON_FINITE
    assert result.history == ()
    np.testing.assert_array_equal(result.x, x)
    np.testing.assert_array_equal(result.y, y)


def test_nan_from_the_coupling_ends_the_run_without_a_certificate():
    calls = itertools.count()
    pair = (lambda x: B @ x * (1.0 if next(calls) < 6 else np.nan), lambda y: B.T @ y)
    coupling = ss.operators.as_operator(pair, x_shape=(5,), y_shape=(3,), norm=NORM)
    f, X, Y = Quadratic(1.0), ss.domains.Box(-1.0, 1.0, shape=5), ss.domains.Box(-1.0, 1.0, shape=3)
    problem = ss.SaddleProblem(f=f, g=f, B=coupling, X=X, Y=Y)
    plan = ss.plan(problem, order="fgB", loops=(10, 1, 1))
    result = ss.run(problem, plan, start=(np.ones(5), np.ones(3)))
    assert result.status is Status.NON_FINITE
    assert 0 < result.nit < 10
    assert np.isfinite(result.x).all()
    assert np.isfinite(result.y).all()
    assert result.gap == math.inf
    assert "not finite" in result.certificate.reason


def test_every_status_says_what_happened_what_it_means_and_what_to_try():
    assert {status.name for status in Status} == {
        "SOLVED", "SOLVED_WITHIN", "INFEASIBLE", "UNBOUNDED",
        "MET_AS_DECLARED", "UNREACHABLE", "EXPECTED", "COMPLETED", "RUNNING", "STOPPED", "INTERRUPTED",
        "CALL_LIMIT",
        "TIME_LIMIT", "STEP_LIMIT", "NUMERICAL_LIMIT", "NON_FINITE", "INCONSISTENT", "NO_CERTIFICATE", "BOUND_REACHED",
    }  # fmt: skip
    for status in Status:
        sentences = re.findall(r"[^.]+(?:\.\w[^.]*)*\.(?: |$)", status.value)
        assert len(sentences) == 3, (status, sentences)
        assert all(sentence[0].isupper() and len(sentence.split()) >= 3 for sentence in sentences)


@gathered("status", list(Status))
def test_only_reached_targets_and_plans_without_one_are_successes(status):
    point = np.zeros(1)
    for target in (0.1, math.nan):
        result = ss.Result(point, point, status, ss.Certificate(), ss.Calls(), 0.0, (), target=target)
        claims = (Status.SOLVED, Status.SOLVED_WITHIN, Status.EXPECTED)
        reached = status in claims or (status is Status.COMPLETED and math.isnan(target))
        assert result.success is reached
        if reached:
            assert result.or_raise() is result
        else:
            with pytest.raises(ss.errors.OutcomeError, match=re.escape(status.value)) as raised:
                result.or_raise()
            assert raised.value.result is result


def test_result_prints_what_it_knows():
    text = repr(ss.run(*powers(order="fgB", loops=(2, 3, 2))))
    for part in ("completed", "f' 2", "g' 6", "B 46 (4 more are in the plan, not needed)", "exact"):
        assert part in text
