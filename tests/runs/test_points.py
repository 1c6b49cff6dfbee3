"""Where no finite bound exists, as for constraints B x = b with free multipliers, the method's own point comes back."""

import time
from dataclasses import replace

import numpy as np
import pytest

import saddleslide as ss
from saddleslide.certificates.levels import LevelSets
from small_problems import bits

RNG = np.random.default_rng(7)
A, b, SLOPES = RNG.standard_normal((3, 6)), RNG.standard_normal(3), np.linspace(1.0, 2.0, 6)
# The minimiser of sum SLOPES x^2 / 2 with A x = b, and its multipliers.
SADDLE = np.linalg.solve(np.block([[np.diag(SLOPES), A.T], [A, np.zeros((3, 3))]]), np.concatenate([np.zeros(6), b]))
FREE, MULTIPLIERS = ss.domains.FullSpace(6), ss.domains.FullSpace(3)
LINEAR = ss.functions.Linear(b)


def own(at=10**9, fault=None, last=0):
    """f as own code, that misbehaves at a call, or from it to another."""
    calls = []

    def gradient(x):
        calls.append(None)
        if len(calls) == at or at < len(calls) <= last:
            return fault(x)
        return SLOPES * x

    def value(x):
        return 0.5 * x @ (SLOPES * x)

    return ss.functions.Custom(gradient, value, smoothness=ss.Holder(1.0, 2.0), strong_convexity=1.0)


@pytest.fixture(autouse=True)
def _nothing_bounds_multipliers(monkeypatch):
    """As of constraints that are not onto: points come back although no bound speaks of them."""
    monkeypatch.setattr(LevelSets, "is_onto", lambda self, other: False)


def constraints(f=None, mirrored=False, X=FREE):
    f = ss.functions.LeastSquares(np.diag(np.sqrt(SLOPES)), np.zeros(6)) if f is None else f
    if mirrored:
        return ss.SaddleProblem(f=LINEAR, g=f, B=-A.T, X=MULTIPLIERS, Y=X)
    return ss.SaddleProblem(f=f, g=LINEAR, B=A, X=X, Y=MULTIPLIERS)


def missed(result, mirrored=False):
    """Distance of the minimiser, as a part of that of the start."""
    x = result.y if mirrored else result.x
    return float(np.linalg.norm(np.asarray(x, dtype=float) - SADDLE[:6]) / np.linalg.norm(SADDLE[:6]))


def raises(error):
    def fault(x):
        raise error

    return fault


def stop(result):
    if len(result.history) == 40:
        assert missed(result) < 1e-3
        raise StopIteration


class Hands:
    """A clock that goes on by a minute after forty steps, and stands still else."""

    now = 0.0

    def __call__(self):
        return self.now

    def turned(self, result):
        if len(result.history) == 40:
            self.now += 60.0


HANDS = Hands()
ENDINGS = {
    "NO_CERTIFICATE": {},
    "STEP_LIMIT": {"max_steps": 40},
    "CALL_LIMIT": {"max_calls": {"B": 700}},
    "TIME_LIMIT": {"time_limit": 0.5, "callback": HANDS.turned},
    "STOPPED": {"callback": stop},
    "INTERRUPTED": {"f": own(60, raises(KeyboardInterrupt)), "on_interrupt": "return"},
    "NON_FINITE": {"f": own(60, lambda x: np.full(6, np.nan), last=10**9)},
}


@pytest.mark.parametrize("status", ENDINGS)
def test_the_methods_own_point_comes_back_in_every_status(status, monkeypatch):
    monkeypatch.setattr(time, "perf_counter", HANDS)
    asked = dict(ENDINGS[status])
    result = ss.solve(constraints(asked.pop("f", None)), tol=1e-8, radius=0.0, method="adaptive", **asked)
    assert (result.status.name, result.upper) == (status, np.inf)
    assert missed(result) < 1e-3
    assert "No upper bound is known: x is the method's own last point" in result.message


@pytest.mark.parametrize("method", ["auto", "adaptive"])
@pytest.mark.parametrize("X", [FREE, ss.domains.Box(-5.0, 5.0, shape=6)], ids=["free", "box"])
def test_the_same_with_the_blocks_exchanged(method, X):
    result = ss.solve(constraints(mirrored=True, X=X), tol=1e-8, radius=0.0, method=method)
    assert result.lower == -np.inf
    assert missed(result, mirrored=True) < 1e-6
    assert "No lower bound is known: y is the method's own last point" in result.message


@pytest.mark.parametrize("method", ["condat-vu", "mirror-prox", "universal-mirror-prox", "accelerated-mirror-prox"])
def test_a_budget_between_two_inspections_loses_no_step_of_a_method(method):
    problem = constraints()
    plan = ss.solve(problem, tol=1e-8, method=method, max_steps=1).plans[0]
    rare = replace(plan, every=10**6)
    result = ss.run(problem, rare, max_calls={"B": 400})
    assert (result.status.name, len(result.history)) == ("CALL_LIMIT", 0)
    assert missed(result) < 0.2
    assert result.calls.B - result.certificate_calls.B <= 400
    # The start's bound would be 0; the point that is returned was judged.
    assert 0.0 < result.lower <= 0.5 * SADDLE[:6] @ (SLOPES * SADDLE[:6])


def test_printed_forms_of_transport_and_consensus_return_the_plan_and_the_agreement():
    costs, masses = RNG.random((3, 4)), [part / part.sum() for part in (RNG.random(3), RNG.random(4))]
    transport = ss.SaddleProblem(
        f=ss.functions.Linear(costs) + ss.functions.Quadratic(0.1), g=ss.functions.Linear(np.concatenate(masses)),
        B=ss.operators.Marginals((3, 4)), X=ss.domains.Box(0.0, 1.0, shape=(3, 4)), Y=ss.domains.FullSpace(7),
    )  # fmt: skip
    plan = ss.solve(transport, tol=1e-9).x
    assert np.abs(transport.coupling.forward(plan) - np.concatenate(masses)).max() < 1e-6
    data, readings = RNG.standard_normal((3, 3)), RNG.standard_normal(3)
    agents = ss.SaddleProblem(
        f=ss.functions.LeastSquares(np.diag([1.0, 0.7, 1.3]), readings), g=ss.functions.Zero(),
        B=np.linalg.cholesky(data @ data.T) @ np.array([[1.0, -1.0, 0.0], [0.0, 1.0, -1.0], [1.0, 0.0, -1.0]]),
        X=ss.domains.FullSpace(3), Y=ss.domains.FullSpace(3),
    )  # fmt: skip
    weights = np.array([1.0, 0.7, 1.3])
    np.testing.assert_allclose(ss.solve(agents, tol=1e-9).x, weights @ readings / (weights @ weights), atol=1e-6)


def test_resumed_and_single_precision_runs_keep_the_point(tmp_path):
    problem, path = constraints(), tmp_path / "run.npz"
    clean = ss.solve(problem, tol=1e-8, method="adaptive", max_steps=60)
    ss.solve(problem, tol=1e-8, method="adaptive", max_steps=40, checkpoint=path)
    assert bits(ss.resume(path, problem, max_steps=60)) == bits(clean)
    # Stopped at once, it is where the file left off.
    kept = ss.resume(path, problem, max_calls={"B": 1})
    assert kept.status.name == "CALL_LIMIT"
    assert missed(kept) < 1e-3
    narrow = ss.SaddleProblem(
        f=ss.functions.LeastSquares(np.diag(np.sqrt(SLOPES)).astype(np.float32), np.zeros(6, np.float32)),
        g=ss.functions.Linear(b.astype(np.float32)), B=A.astype(np.float32), X=FREE, Y=MULTIPLIERS,
    )  # fmt: skip
    result = ss.solve(narrow, tol=1e-8, method="adaptive")
    assert result.x.dtype == np.float32
    assert missed(result) < 1e-5


def test_a_plan_cut_short_in_its_first_step_returns_what_its_inner_levels_came_to():
    problem = constraints(own())
    plan = ss.plan(problem, order="Bfg", loops=(1, 400, 1), simple=())
    start = (np.ones(6), np.zeros(3))
    result = ss.run(problem, plan, start=start, max_calls={"f": 300})
    assert (result.status.name, len(result.history), result.upper) == ("CALL_LIMIT", 0, np.inf)
    assert not np.array_equal(result.x, start[0])
    assert "x is the method's own last point" in result.message
