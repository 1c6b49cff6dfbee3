"""Trial steps at which a caller's function overflows are shortened; NON_FINITE says what was returned, and where."""

import math
import re

import numpy as np
import pytest

import saddleslide as ss
from saddleslide.functions import tilted_minimum
from support import gathered

F, D = ss.functions, ss.domains
STEEP = 40.0


def naive(value, gradient):
    """A function as people write it: it overflows, and NumPy is told not to mind."""

    def called(x):
        with np.errstate(over="ignore", invalid="ignore"):
            return float(np.sum(value(STEEP * (x - 3.0)))), STEEP * gradient(STEEP * (x - 3.0))

    return called


# The value alone overflows; value and gradient do; the value is no number, inf - inf.
NAIVE = {
    "log-cosh": naive(lambda t: np.log(np.cosh(t)), np.tanh),
    "cosh": naive(lambda t: np.cosh(0.01 * t), lambda t: 0.01 * np.sinh(0.01 * t)),
    "softplus": naive(lambda t: np.log(np.exp(t) + np.exp(-t)) - np.exp(t) * 0.0, np.tanh),
}


def problem(f, scale=1.0):
    rng = np.random.default_rng(0)
    B = scale * rng.standard_normal((3, 4))
    return ss.SaddleProblem(
        f=f + F.Quadratic(0.1), g=F.Quadratic(1.0), B=B, X=D.FullSpace(4), Y=D.Box(-0.5, 0.5, shape=3)
    )  # fmt: skip


METHODS = ["auto", "universal-gradient", "l-bfgs"]
CASES = [(kind, method) for kind in NAIVE for method in METHODS] + [("cosh", "universal-mirror-prox")]


@gathered(("kind", "method"), CASES)
def test_a_trial_step_that_overflows_is_shortened(kind, method):
    """It was the second call, and the end of the run; or was taken for an acceptable step."""
    overflown = []

    def watched(x):
        value, gradient = NAIVE[kind](x)
        overflown.append(not math.isfinite(value))
        return value, gradient

    known = {"smoothness": ss.Holder(1.0, 1e4)} if method == "l-bfgs" else {}
    far = 25.0 if method == "universal-mirror-prox" else 30.0
    start = np.full(4, far if kind == "cosh" else 0.0), np.zeros(3)
    tol = 5.0 if method == "universal-mirror-prox" else 0.1
    result = ss.solve(problem(F.from_callable(watched, **known)), tol, method=method, start=start)
    assert result.status is ss.Status.SOLVED, result.message
    assert len(overflown) == result.calls.f <= 2000
    # All methods but L-BFGS, whose first step is of length 1, try at least one step that is too long.
    assert any(overflown) or method == "l-bfgs"


@pytest.mark.parametrize("costly", [1, 100])
def test_the_same_holds_for_g_whichever_way_it_is_slid(costly):
    f, g = (F.from_callable(NAIVE[kind]) for kind in ("log-cosh", "cosh"))
    made = ss.SaddleProblem(
        f=f + F.Quadratic(0.1), g=g + F.Quadratic(0.1), B=np.eye(2), X=D.FullSpace(2), Y=D.FullSpace(2)
    )  # fmt: skip
    result = ss.solve(made, tol=1e-2, costs=(costly, 1.0, 0.01), max_calls={"f": 3000, "g": 3000})
    assert result.status is ss.Status.SOLVED, result.message


def test_certified_searches_shorten_their_steps_too():
    """A trial value that was no number counted as an accepted step, and an overflow beyond x ended in no number."""
    for called in NAIVE.values():
        f = F.from_callable(called) + F.Quadratic(0.1)
        found = tilted_minimum(f, np.zeros(2), D.Box(-50.0, 50.0, shape=2), start=np.array([-10.0, 20.0]))
        assert math.isfinite(found.value) and math.isfinite(found.lower)
        assert found.value - found.lower <= 1e-6 * (1.0 + abs(found.value))


@pytest.mark.parametrize("method", ["auto", "universal-gradient", "universal-mirror-prox"])
def test_where_no_step_is_short_enough_the_message_says_what_was_returned_where(method):
    asked = []

    def finite_at_the_start_alone(x):
        asked.append(float(np.abs(x).max()))
        return (1.0, np.array([1.0, 2.0])) if not x.any() else (math.nan, np.full(2, math.nan))

    made = ss.SaddleProblem(
        f=F.from_callable(finite_at_the_start_alone), g=F.Quadratic(1.0), B=np.eye(2), X=D.Box(-1e6, 1e6, shape=2),
        Y=D.Box(-1.0, 1.0, shape=2),
    )  # fmt: skip
    result = ss.solve(made, tol=1e-6, method=method)
    assert result.status is ss.Status.NON_FINITE and not result.success
    assert 60 <= len(asked) <= 140
    assert len(asked) == result.calls.f
    place = r"at a point of norm (\S+) with entries up to (\S+) in size, in its set"
    told = re.search(rf"Returned by f' in call (\d+) .*, {place}\.", result.message)
    assert told, result.message
    assert 50 <= int(told[1]) <= len(asked) and 0.0 < float(told[3]) <= float(told[2]) < 1e-60
    assert math.isfinite(result.x.sum())


def test_counts_on_an_unbounded_set_are_refused_where_a_method_needs_a_curvature():
    A = np.array([[1.0, 0.5], [0.2, 2.0]])
    given = ss.operators.as_operator((lambda x: A @ x, lambda y: A.T @ y), (2,), (2,))
    f = ss.functions.PoissonTransmission(given, np.ones(2), intensity=3.0, attenuation=0.5)
    for X in (ss.domains.FullSpace(2), ss.domains.Box(-1e4, 1e4, shape=2)):
        Y = ss.domains.Box(-1.0, 1.0, shape=1)
        problem = ss.SaddleProblem(f=f, g=ss.functions.Zero(), B=np.ones((1, 2)), X=X, Y=Y)
        with pytest.raises(ss.errors.InputError):
            ss.solve(problem, tol=1e-2, method="mirror-prox-sliding", max_calls={"f": 100, "B": 100})
