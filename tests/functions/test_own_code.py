"""Every run of the caller's own callables is in `calls`, exactly, and no limit on calls is passed by one of them."""

import dataclasses
from functools import partial

import numpy as np
import pytest

import saddleslide as ss
from saddleslide.facts.facts import Facts
from support import gathered

RNG = np.random.default_rng(11)
N, M = 4, 3
B = RNG.standard_normal((M, N))
X, Y = ss.domains.Box(-1.0, 1.0, shape=N), ss.domains.Ball(1.5, shape=M)
FREE = ss.domains.FullSpace(N), ss.domains.FullSpace(M)
METHODS = ("auto", "adaptive", *ss.methods.by_name)


def smooth(size, seed):
    """Value and gradient of a strongly convex function that is not quadratic, its H and its modulus."""
    rng = np.random.default_rng(seed)
    A, b = rng.standard_normal((size, size)), rng.standard_normal(size)

    def both(v):
        q = A @ v - b
        root = np.sqrt(1.0 + q * q)
        return float(root.sum() + 0.15 * v @ v), A.T @ (q / root) + 0.3 * v

    return both, ss.Holder(1.0, float(np.linalg.norm(A, 2) ** 2) + 0.3), 0.3


class Own(ss.functions.Function):
    """A function class of the caller's: every method of it that is run counts."""

    def __init__(self, both, smoothness, modulus, ran):
        self.both, self.known, self.modulus, self.ran = both, smoothness, modulus, ran

    def _run(self, x):
        self.ran()
        return self.both(x)

    def value_and_gradient(self, x, out=None):
        value, gradient = self._run(x)
        if out is None:
            return value, gradient
        out[...] = gradient
        return value, out

    def value(self, x):
        return self._run(x)[0]

    def gradient(self, x, out=None):
        return self.value_and_gradient(x, out)[1]

    def smoothness(self, domain):
        return self.known

    def strong_convexity(self, domain):
        return self.modulus


class Counted:
    """A problem whose f and g count their runs."""

    def __init__(self, kind="from_callable", sides="fg", domains=(X, Y), interrupt=0):
        self.ran, self.interrupt = {"f": 0, "g": 0}, interrupt
        given = {name: self._function(kind, name, size) for name, size in (("f", N), ("g", M)) if name in sides}
        # What callables can not promise is left to ours: a linear g on a bounded Y, a curved one elsewhere.
        g = ss.functions.Linear(np.ones(M)) if domains[1].bounded else ss.functions.Quadratic(1.0)
        given = {"f": ss.functions.Quadratic(1.0), "g": g} | given
        self.problem = ss.SaddleProblem(**given, B=B, X=domains[0], Y=domains[1])

    def _count(self, name):
        self.ran[name] += 1
        if name == "f" and self.ran["f"] == self.interrupt:
            raise KeyboardInterrupt

    def _function(self, kind, name, size):
        both, smoothness, modulus = smooth(size, len(name) + size)
        ran = partial(self._count, name)
        if kind == "class":
            return Own(both, smoothness, modulus, ran)

        def run(v):
            ran()
            return both(v)

        made = ss.functions.from_callable(run, smoothness=smoothness, strong_convexity=modulus)
        return 0.5 * made + ss.functions.Quadratic(0.1) if kind == "sum" else made

    def seen(self):
        ran, self.ran = self.ran, {"f": 0, "g": 0}
        return ran

    def expect(self, calls, sides):
        ran = self.seen()
        assert {name: ran[name] for name in sides} == {name: getattr(calls, name) for name in sides}


def applies(problem, method):
    if method in ss.methods.by_name:
        return not ss.methods.by_name[method]().lacks(Facts(problem))
    return True


CASES = [
    ("from_callable", "fg", (X, Y)),
    ("class", "fg", (X, Y)),
    ("sum", "fg", (X, Y)),
    ("from_callable", "f", (X, Y)),
    ("from_callable", "g", (X, Y)),
    ("from_callable", "fg", FREE),
    ("from_callable", "f", (FREE[0], Y)),
    ("from_callable", "f", FREE),
]


@gathered("case", CASES)
def test_every_run_is_counted_by_every_method(case):
    counted, ran = Counted(*case), []
    for number, method in enumerate(METHODS, CASES.index(case)):
        if not applies(counted.problem, method):
            continue
        # Each kind of target in every other case; plans of the paper grow with the accuracy.
        target = ({"tol": 0.2}, {"reduction": 0.05})[number % 2]
        counted.seen()
        result = ss.solve(counted.problem, method=method, max_steps=12, **target)
        counted.expect(result.calls, case[1])
        ran.append(method)
    assert len(ran) >= 4


def test_every_method_is_seen_somewhere():
    # These need a proximal step, a closed minimum or a Hessian of every function.
    problems = [Counted(*case).problem for case in CASES]
    never = {name for name in ss.methods.by_name if not any(applies(problem, name) for problem in problems)}
    assert never == {"admm", "interior-point", "krylov", "pdhg", "universal-primal-dual"}


@gathered("case", CASES)
def test_every_run_is_counted_by_plans_and_certificates(case):
    counted = Counted(*case)
    plans = [ss.plan(counted.problem, order="fgB", loops=(5, 2, 3))]
    if case[2] is FREE:
        plans.append(ss.plan(counted.problem, tol=1e-1, regime="restarts"))
    for plan in plans:
        counted.seen()
        result = ss.run(counted.problem, plan)
        counted.expect(result.method_calls + result.certificate_calls, case[1])
    certificate = ss.certify(counted.problem, *counted.problem.start())
    counted.expect(certificate.calls, case[1])


def spent_on(plan):
    return dict(zip("fgB", plan.spent, strict=True))


@gathered("case", CASES)
def test_every_run_is_counted_by_comparisons_and_plans(case):
    counted, went = Counted(*case), 0
    doors = (
        lambda problem: ss.compare(problem, tol=0.1, costs="measure").calls.by_oracle,
        lambda problem: ss.compare(problem, tol=1.0, run=True, only=("mirror-prox", "paper")).calls.by_oracle,
        lambda problem: ss.crossover(problem, tol=2.0).calls.by_oracle,
        lambda problem: spent_on(ss.plan(problem, tol=0.1, method="adaptive")),
        lambda problem: spent_on(ss.plan(problem, tol=0.1)),
        lambda problem: spent_on(ss.plan(problem, tol=0.1, regime="restarts")),
    )
    for door in doors:
        counted.seen()
        try:
            calls = door(counted.problem)
        except ss.errors.InputError:
            continue
        ran = counted.seen()
        assert {name: ran[name] for name in case[1]} == {name: calls[name] for name in case[1]}
        went += 1
    assert went >= 4


def test_estimates_of_a_plan_are_counted():
    """Of a function without constants a few gradients are taken, of a sample without a variance many draws."""
    ran = []

    def gradient(v):
        ran.append("gradient")
        return v

    def sample(v, rng):
        ran.append("sample")
        return v + 0.1 * rng.standard_normal(v.shape)

    rough = ss.functions.Custom(gradient, lambda v: 0.5 * float(v @ v))
    drawn = ss.functions.Custom(gradient, smoothness=ss.Holder(1.0, 1.0), sample=sample, variance="estimate")
    for f in (rough, drawn, 2.0 * drawn + ss.functions.Quadratic(1.0)):
        ran.clear()
        plan = ss.plan(ss.SaddleProblem(f=f, g=ss.functions.Zero(), B=B, X=X, Y=Y), order="fgB", loops=(2, 2, 2))
        assert plan.spent == (len(ran), 0, 0) and ran
        # What making it took does not make two plans differ, and is written down.
        again = ss.Plan.from_dict(plan.to_dict())
        assert again == plan == dataclasses.replace(plan, spent=(0, 0, 0)) and again.spent == plan.spent


CLAIMS = {
    "none": {},
    "linear": {"linear": True},
    "separable": {"separable": True},
    "quadratic": {"quadratic": True},
    "separable quadratic": {"separable": True, "quadratic": True},
    "form": {"separable": True, "quadratic": True, "separable_form": ss.functions.Quadratic(1.0).separable_form},
}


def claiming(claims, ran, size):
    """1/2 |x|^2 (or a linear function) as a class of the caller's that says what it is."""

    def both(v):
        return (float(v.sum()), np.ones_like(v)) if "linear" in claims else (0.5 * float(v @ v), v.copy())

    f = Own(both, ss.Holder(1.0, 1.0), 0.0 if "linear" in claims else 1.0, ran)
    f.hessian_product = lambda v: (ran(), v.copy())[1]
    vars(f).update(claims)
    return f


@pytest.mark.parametrize("side", "fg")
@pytest.mark.parametrize("claim", CLAIMS)
def test_what_a_class_says_of_itself_saves_no_count(claim, side):
    """A closed minimum or a proximal step of the caller's class runs its values and gradients."""
    claims, made, ran = CLAIMS[claim], [], []
    own = claiming(claims, lambda: made.append(1), N if side == "f" else M)
    given = {"f": ss.functions.Quadratic(1.0), "g": ss.functions.Quadratic(1.0), side: own}
    for domains in ((X, Y), FREE):
        problem = ss.SaddleProblem(**given, B=B, X=domains[0], Y=domains[1])
        for method in METHODS:
            if not applies(problem, method) or (claim == "linear" and domains is FREE):
                continue
            made.clear()
            result = ss.solve(problem, reduction=1e-2, method=method, max_steps=4)
            assert len(made) == getattr(result.calls, side), method
            ran.append(method)
        plan = ss.plan(problem, order="fgB", loops=(2, 2, 2))
        made.clear()
        result = ss.run(problem, plan)
        assert len(made) == getattr(result.method_calls + result.certificate_calls, side)
        made.clear()
        certificate = ss.certify(problem, *problem.start())
        assert len(made) == getattr(certificate.calls, side)
    assert len(ran) >= 8


@pytest.mark.parametrize(
    ("case", "method"),
    [
        (CASES[0], "auto"),
        (CASES[0], "adaptive"),
        (CASES[1], "mirror-prox"),
        (CASES[5], "mirror-prox"),
        (CASES[5], "condat-vu"),
        (CASES[7], "l-bfgs"),
    ],
)
def test_no_limit_is_passed_whatever_it_is(case, method):
    counted = Counted(*case)
    for name in case[1]:
        for most in range(1, 40, 3):
            counted.seen()
            result = ss.solve(counted.problem, 1e-2, method=method, max_calls={name: most}, max_steps=20)
            ran = counted.ran[name]
            counted.expect(result.calls, case[1])
            # Beyond the limit come the start's certificate, where there was no step, and what the choice looks at.
            assert ran <= most + (method == "auto") or not result.history, (name, most)
            if result.status is not ss.Status.CALL_LIMIT:
                break
        else:
            assert result.status is ss.Status.CALL_LIMIT


@pytest.mark.parametrize("method", ["adaptive", "mirror-prox"])
def test_an_interrupted_search_is_counted(method):
    """Ctrl-C inside the k-th run of f, for many k."""
    whole = ss.solve(Counted().problem, 1e-3, method=method, max_steps=12)
    for k in range(1, int(whole.calls.f) + 1, 4):
        counted = Counted(interrupt=k)
        result = ss.solve(counted.problem, 1e-3, method=method, max_steps=12, on_interrupt="return")
        assert result.status is ss.Status.INTERRUPTED
        counted.expect(result.calls, "fg")


def test_single_precision_is_counted_too():
    counted = Counted()
    lean = ss.SaddleProblem(
        f=counted.problem.f,
        g=counted.problem.g,
        B=B.astype(np.float32),
        X=ss.domains.Box(*np.ones((2, N), np.float32) * [[-1], [1]]),
        Y=ss.domains.Ball(1.5, center=np.zeros(M, np.float32)),
    )
    result = ss.solve(lean, 1e-3)
    counted.expect(result.calls, "fg")


@pytest.mark.parametrize("method", ["adaptive", "mirror-prox"])
def test_custom_runs_neither_callable_more_often_than_counted(method):
    ran = {"value": 0, "gradient": 0}
    both, smoothness, modulus = smooth(N, 3)

    def called(name, answer):
        def run(v):
            ran[name] += 1
            return both(v)[answer]

        return run

    f = ss.functions.Custom(called("gradient", 1), called("value", 0), smoothness, modulus)
    problem = ss.SaddleProblem(f=f, g=ss.functions.Quadratic(1.0), B=B, X=X, Y=Y)
    result = ss.solve(problem, 1e-6, method=method, max_steps=40)
    # Both at one point are one call; a value alone is one.
    assert max(ran.values()) <= result.calls.f <= sum(ran.values())


@pytest.mark.parametrize("regime", ["degenerate", "restarts"])
def test_ctrl_c_in_a_plan_starts_no_search(regime):
    """The best point that is certified, or a gradient and a value for a first certificate: an oracle may be slow."""
    domains = (X, Y) if regime == "degenerate" else FREE
    plan = ss.plan(Counted(domains=domains).problem, tol=0.3, regime=regime)
    more = []
    for k in (2, 9, 30) if regime == "degenerate" else (2, 9, 30, 60):
        counted = Counted(domains=domains, interrupt=k)
        result = ss.run(counted.problem, plan, on_interrupt="return")
        assert result.status is ss.Status.INTERRUPTED
        more.append(counted.ran["f"] - k)
        assert more[-1] <= 2
        counted.expect(result.method_calls + result.certificate_calls, "fg")
        exact = ss.certify(Counted(domains=domains).problem, result.x, result.y)
        assert result.lower <= exact.upper and exact.lower <= result.upper and result.gap < np.inf
    assert (0 in more) == (regime == "restarts")
