"""Limits and counts hold from the call on, whoever asks for a product; times are those of the whole call."""

from __future__ import annotations

import io
import time
from dataclasses import replace

import numpy as np
import pytest
import scipy
from rich.console import Console

import saddleslide as ss
from saddleslide.cli.reporting import summary

# Above the size at which a norm comes from all singular values.
N, M, K = 70, 75, 66


class Map:
    """A linear map of the caller's that counts its products; each may take a while on a clock."""

    def __init__(self, seed, rows, columns, clock=None, seconds=0.0):
        self.matrix = np.random.default_rng(seed).standard_normal((rows, columns)) / 8
        self.made, self.clock, self.seconds = 0, clock, seconds

    def __call__(self, matrix, v):
        self.made += 1
        if self.clock is not None:
            self.clock.now += self.seconds
        return matrix @ v

    @property
    def coupling(self):
        rows, columns = self.matrix.shape
        return ss.operators.as_operator(
            (lambda x: self(self.matrix, x), lambda y: self(self.matrix.T, y)), (columns,), (rows,)
        )


class Hands:
    """A clock that stands still but for slow products."""

    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


def problem(kind="one", clock=None, seconds=0.0):
    A, B, C = (Map(seed, *sides, clock, seconds) for seed, sides in enumerate([(M, N), (K, N), (M, K)]))
    b = np.random.default_rng(9).standard_normal(M)
    f, g = ss.functions.LeastSquares(A.coupling, b, ridge=0.1), ss.functions.Zero()
    X, Y = ss.domains.FullSpace(N), ss.domains.Box(-1.0, 1.0, shape=K)
    if kind == "both":
        g, Y = ss.functions.Logistic(C.coupling, np.sign(b), ridge=0.1), ss.domains.FullSpace(K)
    if kind == "boxed":
        X, g = ss.domains.Box(-1.0, 1.0, shape=N), ss.functions.LeastSquares(C.coupling, b)
    if kind == "linear":
        g, Y = ss.functions.Linear(np.ones(K)), ss.domains.Ball(2.0, shape=K)
    if kind == "simple":
        f = ss.functions.Quadratic(1.0) + ss.functions.Linear(b[:N])
    if kind == "operator":
        f = ss.functions.Quadratic(
            ss.operators.as_operator(
                (lambda x: A(A.matrix.T @ A.matrix, x), lambda x: A(A.matrix.T @ A.matrix, x)), (N,), (N,)
            ),
            strong_convexity=0.01,
        ) + ss.functions.Linear(b[:N])
    return ss.SaddleProblem(f=f, g=g, B=B.coupling, X=X, Y=Y), A, B, C


def assert_all_counted(result, A, B, C, kind):
    assert B.made == result.calls.B
    assert (A.made if kind == "operator" else A.made / 2) == result.calls.f or A.made == 0
    assert C.made / 2 == result.calls.g or C.made == 0


@pytest.mark.parametrize("kind", ["one", "both", "boxed", "linear", "simple", "operator"])
def test_every_product_is_counted_by_every_method(kind):
    ran = 0
    for method in ("auto", "adaptive", *ss.methods.by_name):
        asked, *maps = problem(kind)
        try:
            result = ss.solve(asked, reduction=1e-2, method=method, max_steps=2)
        except ss.errors.InputError:
            continue
        assert_all_counted(result, *maps, kind)
        ran += 1
    assert ran >= 7


def test_runs_of_plans_and_measured_prices_are_counted():
    asked, A, B, C = problem("boxed")
    result = ss.solve(asked, reduction=1e-2, costs="measure", max_steps=2)
    assert_all_counted(result, A, B, C, "boxed")
    plan = ss.plan(asked, reduction=1e-2, method="adaptive")
    fresh, A, B, C = problem("boxed")
    assert_all_counted(ss.run(fresh, plan, max_steps=2), A, B, C, "boxed")
    plan = ss.plan(asked, order="fgB", loops=(2, 2, 3))
    fresh, A, B, C = problem("boxed")
    result = ss.run(fresh, plan)
    # The plan was made with another object of the same problem.
    spent = result.calls - ss.Calls(*plan.spent)
    assert (A.made / 2, C.made / 2, B.made) == (spent.f, spent.g, spent.B)


@pytest.mark.parametrize("kind", ["one", "both", "boxed", "linear", "simple", "operator"])
def test_every_door_says_what_it_made(kind):
    """Comparisons, plans and certificates count norms, prices and what they look at, as runs do."""
    doors = {
        "compare": lambda asked: ss.compare(asked, tol=0.1).calls,
        "compare with runs": lambda asked: ss.compare(asked, tol=1.0, run=True, only=("condat-vu", "paper")).calls,
        "crossover": lambda asked: ss.crossover(asked, tol=20.0).calls,
        "certify": lambda asked: ss.certify(asked, *asked.start(), max_gradients=20).calls,
        "adaptive": lambda asked: ss.Calls(*ss.plan(asked, tol=0.1, method="adaptive", costs="measure").spent),
        "plan": lambda asked: ss.Calls(*ss.plan(asked, tol=0.1, costs="measure").spent),
        "anchors": lambda asked: ss.Calls(*ss.plan(asked, tol=0.1, regime="restarts", anchors=True).spent),
        "metric": lambda asked: ss.Calls(*ss.plan(asked, tol=0.1, regime="restarts", metric=twice()).spent),
    }
    went = 0
    for name, door in doors.items():
        asked, A, B, C = problem(kind)
        try:
            calls = door(asked)
        except ss.errors.InputError:
            continue
        calls = calls.by_oracle
        assert B.made == calls["B"], name
        assert (A.made if kind == "operator" else A.made / 2) == calls["f"] or A.made == 0, name
        assert C.made / 2 == calls["g"] or C.made == 0, name
        went += 1
    assert went >= 6


def twice():
    return ss.metrics.Operator(lambda x: 2.0 * x, lambda x: 0.5 * x, largest=2.0)


def test_products_of_an_operator_with_a_short_side_are_counted():
    """Too many entries to write out: its norm comes from the products B B^T with the unit vectors of the short side."""
    rows, columns, made = 60, 100_000, []

    def forward(x):
        made.append("B")
        return x[:rows].copy()

    def adjoint(y):
        made.append("B^T")
        return np.concatenate([y, np.zeros(columns - rows)])

    q, free = ss.functions.Quadratic(1.0) + ss.functions.Linear(np.ones(columns)), ss.domains.FullSpace(columns)
    B = ss.operators.as_operator((forward, adjoint), (columns,), (rows,))
    asked = ss.SaddleProblem(f=q, g=ss.functions.Quadratic(1.0), B=B, X=free, Y=ss.domains.FullSpace(rows))
    for _ in range(2):
        made.clear()
        result = ss.solve(asked, tol=1e-3, max_steps=2)
        assert len(made) == result.calls.B
    assert B.norm.method == "Gram matrix"


# Both sides too long for a factorisation.
LONG = (1300, 1250)


def banded(own=False, norm=None):
    """A problem with a sparse B, or with callables that compute it and count; the norm takes 120 products."""
    n, m = LONG
    B = scipy.sparse.diags_array([np.ones(m), np.linspace(0.0, 1.0, m)], offsets=(0, 1), shape=(m, n)).tocsr()
    made = []

    def counted(matrix):
        return lambda v: made.append(1) or matrix @ v

    pair = ss.operators.as_operator((counted(B), counted(B.T)), (n,), (m,))
    f = ss.functions.Quadratic(1.0) + ss.functions.Linear(np.linspace(-2.0, 1.0, n))
    X, Y = ss.domains.Box(-1.0, 1.0, shape=n), ss.domains.Box(-1.0, 1.0, shape=m)
    given = ss.operators.as_operator(pair if own else B, norm=norm)
    return ss.SaddleProblem(f=f, g=ss.functions.Quadratic(1.0), B=given, X=X, Y=Y), made


@pytest.mark.parametrize("norm", [None, 2.0])
def test_products_count_the_same_with_a_matrix_and_with_callables_of_it(norm):
    asked = {"tol": 1e-3, "costs": (1.0, 1.0, 1.0), "max_steps": 3}
    for method in ("pdhg", "mirror-prox", "l-bfgs", "universal-gradient"):
        (matrix, _), (own, made) = banded(norm=norm), banded(own=True, norm=norm)
        first = ss.solve(matrix, method=method, **asked)
        second = ss.solve(own, method=method, check_adjoint=False, **asked)
        assert second.calls == first.calls and len(made) == second.calls.B
        assert second.certificate_calls == first.certificate_calls
        # A line search asks for no norm.
        assert (first.calls.B >= 120) == (norm is None and method != "l-bfgs")
        # What differs is the test of the adjoint, which a matrix does not need.
        assert ss.solve(banded(own=True, norm=norm)[0], method=method, **asked).calls.B == first.calls.B + 2
    # Restarted steps, which ask for no norm, scale the rows and columns of a matrix alone.
    first, second = (
        ss.solve(banded(own=own)[0], method="adaptive", check_adjoint=False, **asked) for own in (False, True)
    )
    assert max(first.calls.B, second.calls.B) < 120
    plan = ss.plan(banded(norm=norm)[0], order="fgB", loops=(3, 2, 4))
    assert plan.spent == (0, 0, 120 if norm is None else 0)
    first, second = ss.run(matrix, plan), ss.run(own, plan)
    assert first.method_calls == second.method_calls
    assert second.certificate_calls.B == first.certificate_calls.B + 2


def test_the_norm_of_a_long_matrix_is_in_the_checkpoint(tmp_path):
    ss.solve(banded()[0], 1e-9, method="mirror-prox", max_steps=2, checkpoint=tmp_path / "run.npz")
    on = ss.resume(tmp_path / "run.npz", banded()[0], max_steps=4)
    assert on.calls == ss.solve(banded()[0], 1e-9, method="mirror-prox", max_steps=4).calls


def test_no_norm_is_bounded_that_nobody_needs():
    """Adaptive sliding finds the curvature of f on the way; the norm of B is found once, and changes nothing."""
    asked, A, B, _ = problem("one")
    first = ss.solve(asked, reduction=1e-3)
    assert A.made <= 40
    assert "norm" not in asked.f.A.__dict__
    before, again = (A.made, B.made), ss.solve(asked, reduction=1e-3)
    assert (again.x.tobytes(), again.y.tobytes()) == (first.x.tobytes(), first.y.tobytes())
    # What is learned of a map is learned once: its norm, and by two products that its adjoint is right.
    assert (A.made - before[0], B.made - before[1]) == (2 * again.calls.f, again.calls.B)
    assert (first.calls.f - again.calls.f, first.calls.B - again.calls.B) == (1, 120)
    # A norm that is known already makes no other choice.
    other, *_ = problem("one")
    assert other.f.A.norm.upper > 0.0
    assert ss.solve(other, reduction=1e-3).x.tobytes() == first.x.tobytes()


@pytest.mark.parametrize("seconds", [0.05, 2.0])
@pytest.mark.parametrize("kind", ["one", "both", "linear", "simple"])
def test_the_clock_holds_from_the_call_on(kind, seconds, monkeypatch):
    hands = Hands()
    monkeypatch.setattr(time, "perf_counter", hands)
    for method in ("auto", "adaptive", "mirror-prox", "condat-vu", "opapc", "universal-mirror-prox"):
        asked, *_ = problem(kind, hands, seconds)
        before = hands.now
        try:
            result = ss.solve(asked, tol=1e-9, method=method, time_limit=0.5)
        except ss.errors.InputError:
            continue
        assert result.status is ss.Status.TIME_LIMIT
        assert hands.now - before <= 0.5 + seconds + 0.5
        assert result.seconds == hands.now - before
        assert asked.X.contains(result.x) and asked.Y.contains(result.y)


def test_the_clock_holds_in_runs_of_plans_and_while_they_are_judged(monkeypatch):
    plan = ss.plan(problem("boxed")[0], order="fgB", loops=(50, 2, 3))
    hands = Hands()
    monkeypatch.setattr(time, "perf_counter", hands)
    for limit in (0.5, 3.0, 11.0):
        asked, *_ = problem("boxed", hands, 0.05)
        before = hands.now
        result = ss.run(asked, plan, time_limit=limit)
        assert result.status is ss.Status.TIME_LIMIT
        assert hands.now - before <= limit + 0.05 + 0.5


def test_limits_on_calls_hold_while_norms_are_bounded():
    for method in ("auto", "adaptive", "mirror-prox"):
        asked, A, B, C = problem("one")
        result = ss.solve(asked, tol=1e-9, method=method, max_calls={"B": 10})
        assert result.status is ss.Status.CALL_LIMIT
        assert_all_counted(result, A, B, C, "one")
        # The certificate of the start comes on top.
        assert B.made <= 12
        assert result.lower < result.upper


def test_an_exception_while_a_norm_is_bounded_is_the_callers():
    class Broken(Exception):
        pass

    def product(v):
        raise Broken("no product today")

    zero, box = ss.functions.Zero(), ss.domains.Box(-1.0, 1.0, shape=N)
    asked = ss.SaddleProblem(f=zero, g=zero, B=ss.operators.as_operator((product, product), (N,), (N,)), X=box, Y=box)
    with pytest.raises(Broken) as caught:
        ss.solve(asked, tol=1e-3, costs="measure")
    assert caught.value.__notes__ == ["saddleslide: raised by B while its norm was bounded or its price measured."]


def test_seconds_are_those_of_the_call(monkeypatch):
    """Every product takes a second, so calls and seconds are the same number, wherever they went."""
    hands = Hands()
    monkeypatch.setattr(time, "perf_counter", hands)
    for kind, method in (("one", "auto"), ("simple", "pdhg"), ("both", "mirror-prox")):
        asked, A, B, C = problem(kind, hands, 1.0)
        result = ss.solve(asked, reduction=1e-1, method=method, max_steps=3)
        assert result.seconds == A.made + B.made + C.made
        assert sum(result.timings.values()) == result.seconds
        assert set(result.timings) == {"plan", "compile", "method", "certificate"}
        # Products for the norm, where a method asks for one.
        assert result.timings["plan"] + result.timings["method"] >= (1.0 if method == "auto" else 120.0)
        assert min(result.timings["method"], result.timings["certificate"]) > 0.0
        shown = next(line for line in repr(result).splitlines() if "seconds" in line)
        assert f"{result.seconds:.3g}" in shown and f"{result.timings['method']:.3g}" in shown
        assert "compiling" not in shown and "Compiling" not in result.message
        slow = replace(result, timings=result.timings | {"compile": 0.6 * result.seconds}, status=ss.Status.TIME_LIMIT)
        said = f"{0.6 * result.seconds:.3g}"
        assert f", {said} compiling, once" in repr(slow) and f"Compiling kernels took {said} s of it" in slow.message
        assert [moment.seconds for moment in result.history] == sorted(moment.seconds for moment in result.history)
        assert result.history[-1].seconds <= result.seconds


def test_the_certificate_of_a_plan_is_in_its_seconds_and_both_times_are_printed(monkeypatch):
    """A plan whose norms are known: what its own calls leave of the time is the judging of its point."""
    plan = ss.plan(problem("boxed")[0], order="fgB", loops=(2, 2, 3))
    hands = Hands()
    monkeypatch.setattr(time, "perf_counter", hands)
    asked, A, B, C = problem("boxed", hands, 1.0)
    result = ss.run(asked, plan)
    assert result.seconds == A.made + B.made + C.made
    assert result.seconds == sum(result.timings.values())
    own, judging = (
        2.0 * calls.f + 2.0 * calls.g + calls.B for calls in (result.method_calls, result.certificate_calls)
    )
    # In the first step the adjoints inside f and g are tested, two products each: no calls of the method's own.
    own += 4.0
    assert (result.timings["method"], result.timings["certificate"]) == (own, judging) and judging > own
    printed = io.StringIO()
    Console(file=printed, width=100).print(summary(result))
    for row, number in (("seconds, in all", result.seconds), ("seconds, method", own)):
        assert f"{number:.3g}" in next(line for line in printed.getvalue().splitlines() if row in line)


def test_times_and_norms_of_a_run_that_is_taken_up_again_add_up(monkeypatch, tmp_path):
    hands = Hands()
    monkeypatch.setattr(time, "perf_counter", hands)
    asked, *first = problem("one", hands, 1.0)
    ss.solve(asked, reduction=1e-2, max_steps=2, checkpoint=tmp_path / "run.npz")
    hands.now += 1000.0
    fresh, *second = problem("one", hands, 1.0)
    result = ss.resume(tmp_path / "run.npz", fresh, max_steps=4)
    assert result.seconds == sum(found.made for found in (*first, *second))
    assert sum(result.timings.values()) <= result.seconds
    # No norm is bounded anew.
    assert result.calls == ss.solve(problem("one")[0], reduction=1e-2, max_steps=4).calls
    assert second[1].made < 120


@pytest.mark.parametrize("kind", ["one", "both"])
def test_a_run_that_is_taken_up_again_tests_no_adjoint_anew(kind, tmp_path):
    """What a test of the adjoint of A has shown is in the file: getting ready makes no product."""
    ss.solve(problem(kind)[0], 1e-9, method="adaptive", max_steps=2, checkpoint=tmp_path / "run.npz")
    fresh, *maps = problem(kind)
    ss.resume(tmp_path / "run.npz", fresh, time_limit=0.0)
    assert [found.made for found in maps] == [0, 0, 0]


def test_a_plan_that_is_taken_up_again_has_the_calls_of_one_that_was_not(tmp_path):
    """Its judging tests the adjoints of A and B once, in whichever part of the run that comes."""
    plan = ss.plan(problem("both")[0], tol=0.5, regime="restarts")
    whole = ss.run(problem("both")[0], plan, max_steps=4)
    ss.run(problem("both")[0], plan, max_steps=2, checkpoint=tmp_path / "run.npz")
    on = ss.resume(tmp_path / "run.npz", problem("both")[0], max_steps=4)
    assert (on.calls, on.certificate_calls) == (whole.calls, whole.certificate_calls)


@pytest.mark.parametrize("metric", ["spectral", "fft"])
def test_the_clock_is_looked_at_between_the_probes_of_a_metric(metric, monkeypatch):
    """Each probe takes two products, 1 s each: at most one gradient is made after the time is up."""
    hands = Hands()
    monkeypatch.setattr(time, "perf_counter", hands)

    def slow(x):
        hands.now += 1.0
        return 0.5 * x

    f = ss.functions.LeastSquares(ss.operators.as_operator((slow, slow), (8, 8), (8, 8), norm=0.5), np.ones((8, 8)))
    X, Y = ss.domains.FullSpace((8, 8)), ss.domains.FullSpace((2, 8, 8))
    for limit in (2.5, 3.5, 4.5):
        B = ss.operators.FiniteDifferences((8, 8))
        asked = ss.SaddleProblem(f=f, g=ss.functions.Quadratic(1.0), B=B, X=X, Y=Y)
        before = hands.now
        assert ss.solve(asked, 1e-9, metric=metric, time_limit=limit).status is ss.Status.TIME_LIMIT
        assert hands.now - before <= limit + 2.0
