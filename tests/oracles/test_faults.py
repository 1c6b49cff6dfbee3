"""Every oracle fails at its k-th call, for every k until a run finishes clean: what then holds must be true."""

import functools
import math
import re
from dataclasses import replace

import numpy as np
import pytest

import saddleslide as ss
from small_problems import bits
from support import gathered

ORACLES = ("f gradient", "f value", "g gradient", "g value", "forward", "adjoint")
# Fault -> calls between two that fail: every one raises once; strides of the others have no common factor.
FAULTS = {"raise": 1, "interrupt": 3, "nan": 5, "-inf": 7, "shape": 11, "inf": 13, "none": 17, "complex": 19}
RNG = np.random.default_rng(3)
A, B = RNG.standard_normal((5, 3)), RNG.standard_normal((2, 3)) * 0.4
H, b = A.T @ A / 5.0 + 0.3 * np.eye(3), RNG.standard_normal(3)
START = np.full(3, 0.25), np.full(2, -0.25)


class Broken(Exception):
    """What the user's own code raises."""


class Faulty:
    """f = x^T H x / 2 - <b, x>, g = |y|^2 / 2 + sum of y^4 / 4, and B; one oracle fails at one call."""

    def __init__(self, oracle="", at=0, fault=""):
        self.oracle, self.at, self.fault = oracle, at, fault
        self.calls = dict.fromkeys(ORACLES, 0)
        self.raised = None
        box, small = ss.domains.Box(-1.0, 1.0, shape=3), ss.domains.Box(-1.0, 1.0, shape=2)
        f = ss.functions.Custom(
            lambda x: self.answer("f gradient", H @ x - b),
            lambda x: self.answer("f value", float(x @ H @ x / 2.0 - b @ x)),
            ss.Holder(1.0, float(np.linalg.norm(H, 2))),
            0.3,
        )
        g = ss.functions.Custom(
            lambda y: self.answer("g gradient", y + y**3),
            lambda y: self.answer("g value", float(y @ y / 2.0 + (y**4).sum() / 4.0)),
            ss.Holder(1.0, 4.0),
            1.0,
        )
        pair = (lambda x: self.answer("forward", B @ x), lambda y: self.answer("adjoint", B.T @ y))
        coupling = ss.operators.as_operator(pair, (3,), (2,), norm=float(np.linalg.norm(B, 2)))
        self.problem = ss.SaddleProblem(f=f, g=g, B=coupling, X=box, Y=small)

    def answer(self, name, true):
        self.calls[name] += 1
        if name != self.oracle or self.calls[name] != self.at:
            return true
        if self.fault in ("raise", "interrupt"):
            self.raised = Broken("mine") if self.fault == "raise" else KeyboardInterrupt()
            raise self.raised
        whole = np.ones(np.shape(true))
        wrong = {
            "nan": whole * np.nan, "inf": whole * np.inf, "-inf": -whole * np.inf, "shape": np.ones((2, 7)),
            "none": None, "complex": whole * 1j,
        }[self.fault]  # fmt: skip
        return float(wrong) if np.ndim(true) == 0 and self.fault in ("nan", "inf", "-inf") else wrong

    @property
    def reached(self):
        return self.calls[self.oracle] >= self.at


def saddle_value():
    """By a plain extragradient method that shares no code with the package."""
    x, y = np.zeros(3), np.zeros(2)
    for _ in range(2000):
        u = np.clip(x - 0.2 * (H @ x - b + B.T @ y), -1, 1), np.clip(y + 0.2 * (B @ x - y - y**3), -1, 1)
        x, y = (
            np.clip(x - 0.2 * (H @ u[0] - b + B.T @ u[1]), -1, 1),
            np.clip(y + 0.2 * (B @ u[0] - u[1] - u[1] ** 3), -1, 1),
        )
    return float(x @ H @ x / 2.0 - b @ x + y @ B @ x - y @ y / 2.0 - (y**4).sum() / 4.0)


VALUE = saddle_value()


def fixed_plan(problem, **control):
    plan = ss.plan(problem, 1e-2, order="fgB", loops=(3, 2, 2), start=START)
    return ss.run(problem, plan, start=START, **control)


RUNS = {
    "adaptive": lambda p, **c: ss.solve(p, reduction=0.3, method="adaptive", start=START, **c),
    "mirror-prox": lambda p, **c: ss.solve(p, 1.0, method="mirror-prox", start=START, **c),
    "plan": fixed_plan,
}


def gap_of(x, y):
    """The true gap of a point by brute force: both inner problems are solved by projected gradients."""
    u, v = np.zeros(3), np.zeros(2)
    for _ in range(300):
        u, v = np.clip(u - 0.2 * (H @ u - b + B.T @ y), -1, 1), np.clip(v + 0.2 * (B @ x - v - v**3), -1, 1)
    upper = x @ H @ x / 2.0 - b @ x + v @ B @ x - v @ v / 2.0 - (v**4).sum() / 4.0
    return float(upper - (u @ H @ u / 2.0 - b @ u + y @ B @ u - y @ y / 2.0 - (y**4).sum() / 4.0))


def check_truth(result):
    """Whatever the status: finite feasible points, bounds around the saddle value, no claim that is not so."""
    assert np.isfinite(result.x).all() and np.isfinite(result.y).all()
    assert np.abs(result.x).max() <= 1.0 and np.abs(result.y).max() <= 1.0
    assert result.lower <= VALUE + 1e-9 and result.upper >= VALUE - 1e-9
    assert not math.isnan(result.lower) and not math.isnan(result.upper)
    assert result.success == (result.status is ss.Status.SOLVED)
    if result.success:
        assert gap_of(result.x, result.y) <= result.known_target + 1e-6


@functools.cache
def without_fault(name):
    """Bits of a run on fresh objects, and of one on objects that were used once."""
    fresh = Faulty().problem
    first, second = RUNS[name](fresh), RUNS[name](fresh)
    # The adjoint of an own operator is tested once for an object, where a plan is judged: exactly two products less.
    spared = 2 if name == "plan" else 0
    assert spared == first.certificate_calls.B - second.certificate_calls.B
    assert first.method_calls == second.method_calls
    clean, again = bits(first), bits(second)
    judged_alike = {"certificate": first.certificate, "calls": first.calls, "history": first.history}
    assert bits(replace(second, **judged_alike)) == clean
    return clean, again


@gathered("fault", FAULTS)
@pytest.mark.parametrize("oracle", ORACLES)
@pytest.mark.parametrize("name", RUNS)
def test_every_oracle_may_fail_at_every_call(name, oracle, fault):
    run, x, y = RUNS[name], START[0].copy(), START[1].copy()
    clean, again = without_fault(name)
    k = 1 - FAULTS[fault]
    while True:
        k += FAULTS[fault]
        faulty = Faulty(oracle, k, fault)
        try:
            result = run(faulty.problem, on_interrupt="return", max_steps=60)
        except Broken as error:
            assert fault == "raise" and error is faulty.raised
            assert any("saddleslide: raised" in note for note in error.__notes__)
        except ss.errors.InputError as error:
            assert fault in ("shape", "none", "complex"), error
            assert "received" in str(error) or "expected" in str(error)
        else:
            if not faulty.reached:
                assert bits(result) == clean
                break
            assert fault in ("interrupt", "nan", "inf", "-inf"), (k, result.status)
            if fault == "interrupt":
                # Cut short while judging, the bounds may already meet the target.
                assert result.status in (ss.Status.INTERRUPTED, ss.Status.SOLVED)
            check_truth(result)
        # The same objects again, now without a fault: as if nothing had happened. A whole run, so not after each fault.
        if k % 10 == 1:
            faulty.at = 0
            tested = "adjoint_test" in vars(faulty.problem.coupling)
            assert bits(run(faulty.problem)) == (again if tested else clean)
        np.testing.assert_array_equal(START[0], x)
        np.testing.assert_array_equal(START[1], y)
    assert k < 400


def test_the_note_names_oracle_call_level_and_step():
    faulty = Faulty("f gradient", 3, "raise")
    plan = ss.plan(faulty.problem, order="gfB", loops=(2, 2, 2))
    with pytest.raises(Broken) as caught:
        ss.run(faulty.problem, plan)
    assert caught.value.__notes__ == ["saddleslide: raised by f' in call 3 of level 2 of gfB, outer step 2."]
    faulty = Faulty("adjoint", 2, "raise")
    with pytest.raises(Broken) as caught:
        ss.solve(faulty.problem, 1e-9, method="mirror-prox")
    assert "by B in call 3 of the method mirror-prox, outer step 1" in caught.value.__notes__[0]


def test_exceptions_of_a_g_that_is_slid_inside_the_steps_on_f_pass_with_the_same_note():
    """An ArithmeticError too: it is the caller's own, and no overflow of ours."""
    rng = np.random.default_rng(1)
    wide, own = rng.standard_normal((30, 20)), ZeroDivisionError("mine")
    square, calls, values = wide.T @ wide, [], []

    def gradient(y):
        calls.append(1)
        if len(calls) == 9:
            raise own
        return square @ y

    def value(y):
        values.append(1)
        return float(y @ square @ y / 2.0)

    g = ss.functions.Custom(gradient, value, ss.Holder(1.0, 200.0))
    box = ss.domains.Box(-1.0, 1.0, shape=20)
    f = ss.functions.LeastSquares(wide, rng.standard_normal(30), ridge=1e-4)
    problem = ss.SaddleProblem(f=f, g=g, B=rng.standard_normal((20, 20)), X=box, Y=box)
    assert ss.plan(problem, 1e-6, method="adaptive").settings["g_steps"] > 0
    with pytest.raises(ZeroDivisionError) as caught:
        ss.solve(problem, 1e-6, method="adaptive")
    assert caught.value is own
    found = re.fullmatch(r"saddleslide: raised by g' in call (\S+) of level 2 of fgB, outer step 4.", own.__notes__[0])
    # Values alone are calls too.
    assert max(len(calls), len(values)) <= int(found[1]) <= len(calls) + len(values)


def test_user_code_gets_arrays_that_it_can_not_write_and_may_keep_its_buffers():
    seen, buffer = [], np.empty(3)

    def gradient(x):
        with pytest.raises(ValueError, match="read-only"):
            x[0] = 7.0
        np.matmul(H, x, out=buffer)
        np.subtract(buffer, b, out=buffer)
        seen.append(buffer.copy())
        return buffer

    own = Faulty().problem
    f = ss.functions.Custom(gradient, lambda x: float(x @ H @ x / 2.0 - b @ x), ss.Holder(1.0, 9.0), 0.3)
    problem = ss.SaddleProblem(f=f, g=own.g, B=B, X=own.X, Y=own.Y)
    for run in (RUNS["adaptive"], RUNS["mirror-prox"], fixed_plan):
        result = run(problem)
        buffer[:] = np.nan
        assert np.isfinite(result.x).all() and seen


@gathered("value", [None, 1j, "1.0", np.ones(2)], ids=["none", "complex", "text", "array"])
def test_a_value_that_is_no_number_is_refused_with_its_gradient_beside_it(value):
    f = ss.functions.from_callable(lambda x: (value, x))
    box = ss.domains.Box(-1.0, 1.0, shape=3)
    problem = ss.SaddleProblem(f=f, g=ss.functions.Zero(), B=np.eye(3), X=box, Y=box)
    with pytest.raises(ss.errors.InputError, match="from_callable: value: received shape") as caught:
        ss.solve(problem, 1e-3)
    assert "by f' in call 1" in caught.value.__notes__[0]


def test_an_exception_while_a_plan_is_judged_is_the_callers():
    """Also one of arithmetic, which between two calls would be an outcome."""
    own, calls = ZeroDivisionError("mine"), []

    def value(x):
        calls.append(1)
        if len(calls) > 4:
            raise own
        return float(0.5 * x @ x)

    f = ss.functions.Custom(lambda x: x, value, ss.Holder(1.0, 1.0))
    box = ss.domains.Box(-1.0, 1.0, shape=3)
    problem = ss.SaddleProblem(f=f, g=ss.functions.Quadratic(1.0), B=np.eye(3), X=box, Y=box)
    plan = ss.plan(problem, order="fgB", loops=(4, 1, 2))
    with pytest.raises(ZeroDivisionError) as caught:
        ss.run(problem, plan, start=(np.ones(3), np.ones(3)))
    assert caught.value is own and "while the point was judged" in own.__notes__[0]


@gathered("error", [ZeroDivisionError, OverflowError, FloatingPointError, KeyError])
@pytest.mark.parametrize("method", ["adaptive", "mirror-prox", "plan"])
def test_an_exception_of_the_callback_is_the_callers(error, method):
    """Also one of arithmetic, which between two calls would be an outcome."""
    own, problem = error("mine"), Faulty().problem

    def callback(result):
        raise own

    with pytest.raises(error) as caught:
        if method == "plan":
            ss.run(problem, ss.plan(problem, order="gfB", loops=(2, 2, 2)), callback=callback)
        else:
            ss.solve(problem, 1e-9, method=method, callback=callback)
    assert caught.value is own and own.__notes__[0].startswith("saddleslide: raised by the callback, outer step ")


@gathered("settings", [{"all": "ignore"}, {"all": "raise"}, {"over": "call", "divide": "print"}])
@pytest.mark.parametrize("method", ["adaptive", "mirror-prox", "plan"])
def test_the_callers_code_runs_under_the_callers_settings_of_numpy(settings, method):
    """In the method, while a point is judged, and in callbacks."""
    seen = []

    def both(x):
        seen.append(np.geterr())
        return float(0.5 * x @ x), x

    f = ss.functions.from_callable(both, smoothness=ss.Holder(1.0, 1.0))
    box = ss.domains.Box(-1.0, 1.0, shape=3)
    problem = ss.SaddleProblem(f=f, g=ss.functions.Quadratic(1.0), B=np.eye(3), X=box, Y=box)
    start = (np.ones(3), np.ones(3))
    with np.errstate(**settings):
        wanted = np.geterr()
        given = {"start": start, "callback": lambda result: seen.append(np.geterr())}
        if method == "plan":
            assert ss.run(problem, ss.plan(problem, order="fgB", loops=(4, 1, 2)), **given).certificate_calls.f > 0
        else:
            ss.solve(problem, 1e-6, method=method, max_steps=9, **given)
        assert np.geterr() == wanted
    assert seen == [wanted] * len(seen)
