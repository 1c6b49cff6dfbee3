"""Oracles that contradict each other are found at no extra call, and true ones never are."""

import itertools
import math

import numpy as np
import pytest
from scipy.sparse.linalg import LinearOperator

import saddleslide as ss
import truths
from saddleslide.certificates.books import count_aside
from saddleslide.certificates.candidate import Linearisation
from saddleslide.certificates.guards import (
    PairGuard,
    adjoint_complaint,
    check_adjoint_of,
    check_inner_adjoints,
    known_mismatch,
)
from saddleslide.certificates.rays import excludes
from saddleslide.functions.trust import errors_at
from saddleslide.oracles.oracles import Oracles, RunEnded
from small_problems import quartic
from support import gathered

RNG = np.random.default_rng(0)
B = RNG.standard_normal((4, 5))
X, Y = ss.domains.Box(-1.0, 1.0, shape=5), ss.domains.Box(-1.0, 1.0, shape=4)
START = np.full(5, 0.7), np.full(4, -0.3)


def problem(f=None, g=None, forward=None, adjoint=None):
    pair = (forward or (lambda x: B @ x), adjoint or (lambda y: B.T @ y))
    coupling = ss.operators.as_operator(pair, (5,), (4,), norm=float(np.linalg.norm(B, 2)))
    return ss.SaddleProblem(f=f or quartic(), g=g or ss.functions.Quadratic(1.0), B=coupling, X=X, Y=Y)


WRONG = {
    "sign": lambda y: -B.T @ y,
    "scale": lambda y: 1.001 * (B.T @ y),
    "shifted": lambda y: np.roll(B.T @ y, 1),
    "affine": lambda y: B.T @ y + 0.1,
}


@gathered("check", [None, False])
@pytest.mark.parametrize("method", ["adaptive", "mirror-prox"])
@pytest.mark.parametrize("kind", WRONG)
def test_a_wrong_adjoint_is_found_at_the_start_or_by_the_certificate(kind, method, check):
    calls = itertools.count()

    def adjoint(y):
        next(calls)
        return WRONG[kind](y)

    asked = problem(adjoint=adjoint)
    result = ss.solve(asked, 1e-6, method=method, start=START, check_adjoint=check, max_steps=50)
    assert result.status is ss.Status.INCONSISTENT and not result.success
    assert "adjoint of B" in result.certificate.reason and result.gap == math.inf
    if check is None:
        assert result.calls.B == 2 and next(calls) == 1


def test_a_wrong_adjoint_has_no_certificate():
    assert "adjoint of B" in ss.certify(problem(adjoint=WRONG["sign"]), *START).reason


def test_the_test_at_the_start_costs_two_products_and_can_be_switched_off():
    plain = ss.solve(problem(), 1e-6, method="adaptive", check_adjoint=False)
    tested = ss.solve(problem(), 1e-6, method="adaptive")
    assert tested.calls.B == plain.calls.B + 2 and tested.x.tobytes() == plain.x.tobytes()
    matrix = ss.SaddleProblem(f=quartic(), g=ss.functions.Quadratic(1.0), B=B, X=X, Y=Y)
    assert ss.solve(matrix, 1e-6, method="adaptive", check_adjoint=True).calls.B == 2 + (
        ss.solve(matrix, 1e-6, method="adaptive").calls.B
    )


@gathered("inside", [False, True])
@pytest.mark.parametrize("door", ["auto", "adaptive", "mirror-prox", "a fixed plan", "certify"])
def test_an_adjoint_that_is_off_by_little_is_inside_the_bounds(door, inside):
    """From 1e-9 on no claim is false, and none is made below what the adjoint is off by; a true one loses nothing."""
    for error, seed in itertools.product((0.0, 1e-9, 1e-7), range(2)):
        case = truths.off_by(error, seed, inside)
        case.target = {"tol": 1e-9}
        claim = truths.through(case, door, np.random.default_rng(5))
        assert truths.complaints(case, claim)[0] == []
        if error == 0.0 and door == "adaptive":
            assert claim.status == "SOLVED"
        if error > 1e-9 and not inside:
            assert not claim.success


class OwnCoupling(ss.operators.Operator):
    """A coupling of the caller's, its adjoint wrong by a sign."""

    x_shape, y_shape = (5,), (4,)

    def forward(self, x, out=None):
        return B @ x

    def adjoint(self, y, out=None):
        return -B.T @ y


def test_couplings_of_the_callers_own_are_tested_at_the_start():
    own = ss.SaddleProblem(f=quartic(), g=ss.functions.Quadratic(1.0), B=OwnCoupling(), X=X, Y=Y)
    operator = LinearOperator((4, 5), matvec=lambda x: B @ x, rmatvec=lambda y: -B.T @ y, dtype=float)
    linear = ss.SaddleProblem(f=quartic(), g=ss.functions.Quadratic(1.0), B=operator, X=X, Y=Y)
    for asked in (own, linear):
        result = ss.solve(asked, 1e-6, method="adaptive", start=START)
        # Two products test its adjoint, before anybody asks for its norm.
        assert result.status is ss.Status.INCONSISTENT and result.calls.B == 2
    plan = ss.plan(problem(), order="fgB", loops=(2, 1, 1))
    tested = ss.run(problem(), plan, check_adjoint=True)
    assert tested.method_calls.B == 2 + ss.run(problem(), plan).method_calls.B
    assert ss.run(problem(adjoint=WRONG["sign"]), plan, check_adjoint=True).status is ss.Status.INCONSISTENT


@gathered("kind", ["not convex", "modulus too large", "H too small"])
def test_plans_of_the_theorems_find_functions_that_are_not_what_they_claim(kind):
    asked = problem(f=FALSE[kind])
    result = ss.run(asked, ss.plan(asked, order="fgB", loops=(30, 1, 2)), start=START)
    assert result.status is ss.Status.INCONSISTENT and result.certificate.reason.startswith("f is not")
    assert "Seen: f is not" in result.message


def test_a_modulus_declared_too_large_never_makes_a_false_claim():
    """On a bounded set no bound uses it; on an unbounded one the status says what the bound rests on."""
    H = np.diag([1e-3, 1.0, 1.0, 1.0, 1.0])
    h = RNG.standard_normal(5)

    def gradient(x):
        return H @ x - h

    def value(x):
        return float(0.5 * x @ H @ x - h @ x)

    met = []
    for modulus in (1e-3, 0.1, 1.0, 10.0):
        f = claimed(gradient, value, ss.Holder(1.0, 1.0), modulus)
        free = ss.SaddleProblem(f=f, g=ss.functions.Quadratic(1.0), B=B, X=ss.domains.FullSpace(5), Y=Y)
        bounded = ss.SaddleProblem(f=f, g=ss.functions.Quadratic(1.0), B=B, X=X, Y=Y)
        true = ss.SaddleProblem(
            f=ss.functions.Quadratic(np.diag(H)) + ss.functions.Linear(-h), g=ss.functions.Quadratic(1.0), B=B, X=X, Y=Y
        )
        for method in ("adaptive", "mirror-prox"):
            loose = ss.solve(free, 1e-3, method=method, max_steps=300)
            assert loose.status is not ss.Status.SOLVED and not loose.success
            if loose.gap <= loose.target:
                assumed = f"f is strongly convex with the declared modulus {modulus:g}"
                assert loose.status is ss.Status.MET_AS_DECLARED and loose.certificate.assumes == assumed
                assert "solved" not in loose.message.lower() and loose.message.endswith(f"Assumed: {assumed}.")
                with pytest.raises(ss.errors.OutcomeError, match=r"^MET_AS_DECLARED: The bounds meet the target prov"):
                    ss.solve(free, 1e-3, method=method, max_steps=300, strict=True)
                met.append(modulus)
            result = ss.solve(bounded, 1e-3, method=method, max_steps=300)
            known = ss.certify(true, result.x, result.y)
            assert result.lower <= known.upper and result.upper >= known.lower and result.certificate.assumes == ""
            if result.status is ss.Status.SOLVED:
                assert known.lower >= result.lower - 1e-12 and known.gap <= 1e-3
    assert met


def claimed(gradient, value, smoothness=None, modulus=0.0):
    return ss.functions.Custom(gradient, value, smoothness or ss.Holder(1.0, 100.0), modulus)


FALSE = {
    "not convex": claimed(lambda x: -4.0 * x, lambda x: float(-2.0 * x @ x)),
    "modulus too large": claimed(lambda x: x - 0.2, lambda x: float(0.5 * (x - 0.2) @ (x - 0.2)), None, 50.0),
    "H too small": claimed(lambda x: 9 * (x - 0.2), lambda x: 4.5 * (x - 0.2) @ (x - 0.2), ss.Holder(1.0, 0.1)),
}


@gathered("kind", FALSE)
def test_functions_that_are_not_what_they_claim_are_found(kind):
    result = ss.solve(problem(f=FALSE[kind]), 1e-9, method="adaptive", start=START, max_steps=100)
    assert result.status is ss.Status.INCONSISTENT
    assert result.certificate.reason.startswith("f is not")
    assert (result.lower, result.upper) == (-math.inf, math.inf)


def test_a_gradient_of_the_wrong_sign_is_never_a_success():
    f = claimed(lambda x: -3.0 * (x - 0.2), lambda x: float(1.5 * (x - 0.2) @ (x - 0.2)))
    for method in ("adaptive", "mirror-prox"):
        assert not ss.solve(problem(f=f), 1e-6, method=method, start=START, max_steps=60).success


def test_true_functions_pass_in_single_precision_and_far_from_zero():
    H = np.diag([1e-4, 1.0, 30.0]).astype(np.float32)
    for shift in (0.0, 1e3):
        f = claimed(lambda x: x, lambda x: 0.0, ss.Holder(1.0, 30.0), 1e-4)
        guard = PairGuard("f", f, ss.domains.FullSpace(3))
        for _ in range(200):
            x = shift + RNG.standard_normal(3) * 10.0 ** RNG.uniform(-8, 2)
            single = x.astype(np.float32)
            guard.look(Linearisation(x, float(single @ H @ single / 2), (H @ single).astype(np.float64)))
    coupling = ss.operators.as_operator(B)
    for _ in range(200):
        x, y = RNG.standard_normal(5), RNG.standard_normal(4)
        y -= (y @ B @ x) / (x @ B.T @ B @ x) * (B @ x)
        products = (B.astype(np.float32) @ x.astype(np.float32), B.T.astype(np.float32) @ y.astype(np.float32))
        assert coupling.norm.upper > 0.0
        assert adjoint_complaint(coupling, x, products[0], y, products[1]) == ""


def test_products_of_points_whose_squares_underflow_are_compared_by_their_sizes():
    """B^T y cancels to its rounding beside an x of 1e-170, whose length is not 0."""
    matrix = np.array([[-2.32545819], [3.10846447], [2.93693445], [-0.0532982], [-5.04377488]])
    coupling, x, y = ss.operators.as_operator(matrix), np.array([9e-170]), np.ones(5)
    y[-1] = float(-(matrix[:-1].sum() / matrix[-1, 0]))
    Bx, BTy = coupling.forward(x), coupling.adjoint(y) + 1e-12
    assert adjoint_complaint(coupling, x, Bx, y, BTy) == ""
    assert adjoint_complaint(coupling, x, Bx, y, BTy + 1e-3) != ""


def test_gradients_that_cancel_near_a_minimum_are_no_contradiction():
    A = np.array([[0.13352832], [-0.18336926], [0.10571827], [0.13307263], [-0.11046788]])
    line = ss.domains.FullSpace(1)
    f = ss.functions.Logistic(A, [-1.0, 1.0, 1.0, 1.0, -1.0], ridge=0.77)
    coupled = [[7.8e-6], [-8.4e-7], [-6.5e-6]]
    asked = ss.SaddleProblem(f=f, g=ss.functions.Huber(2.6e-4), B=coupled, X=line, Y=ss.domains.FullSpace(3))
    assert ss.solve(asked, 1e-6, max_steps=50).status is not ss.Status.INCONSISTENT
    for seed in range(5):
        rng = np.random.default_rng(seed)
        D, b = rng.standard_normal((6, 2)), rng.standard_normal(6).astype(np.float32)
        single, modulus = D.astype(np.float32), 0.99 * float(np.linalg.eigvalsh(D.T @ D)[0])

        def missed(x, single=single, b=b):
            return single @ x.astype(np.float32) - b

        own = ss.functions.Custom(
            lambda x, single=single, missed=missed: (single.T @ missed(x)).astype(np.float64),
            lambda x, missed=missed: float(0.5 * (missed(x) ** 2).sum()),
            strong_convexity=modulus,
        )
        square = ss.domains.Box(-3.0, 3.0, shape=2)
        asked = ss.SaddleProblem(f=own, g=ss.functions.Quadratic(1.0), B=[[0.1, 0.2]], X=square, Y=line)
        assert ss.solve(asked, 1e-9, max_steps=100).status is not ss.Status.INCONSISTENT


def test_a_guard_tells_what_it_saw():
    own = ss.functions.Custom(lambda y: y, lambda y: 0.5 * float(y @ y), strong_convexity=1.0)
    guard = PairGuard("g", own, ss.domains.FullSpace(1))
    guard.look(Linearisation(np.zeros(1), 0.0, np.ones(1)))
    with pytest.raises(RunEnded, match="g is not strongly convex with the modulus 1"):
        guard.look(Linearisation(np.ones(1), 0.5, np.ones(1)))


class OwnCap(ss.functions.Function):
    """-|x|^2 / 2 as a class of the caller's."""

    shape, has_value = None, True

    def value(self, x):
        return -0.5 * float(np.vdot(x, x))

    def gradient(self, x, out=None):
        return -x

    def value_and_gradient(self, x, out=None):
        return self.value(x), -x

    def smoothness(self, domain):
        return ss.Holder(1.0, 1.0)

    def strong_convexity(self, domain):
        return 0.0


CAPS = {
    "quadratic": ss.functions.Custom(lambda x: -x, lambda x: -0.5 * x @ x, smoothness=ss.Holder(1.0, 1.0)),
    "cosine": ss.functions.Custom(lambda x: -np.sin(x), lambda x: np.cos(x).sum(), smoothness=ss.Holder(1.0, 1.0)),
    "saddle": ss.functions.Custom(lambda x: x * [1, 1, 1, 1, -1], lambda x: 0.5 * x @ (x * [1, 1, 1, 1, -1])),
    "own class": OwnCap(),
    "operator": ss.functions.Quadratic(LinearOperator((5, 5), matvec=lambda x: -x, rmatvec=lambda y: -y, dtype=float)),
}


@gathered("method", ["auto", "adaptive", "mirror-prox", "condat-vu", "l-bfgs", "universal-mirror-prox"])
@pytest.mark.parametrize("kind", CAPS)
def test_a_stationary_start_hides_no_lack_of_convexity(kind, method):
    cap, bowl = CAPS[kind], ss.functions.Quadratic(1.0)
    below = ss.SaddleProblem(f=cap, g=bowl, B=B, X=X, Y=Y)
    above = ss.SaddleProblem(f=bowl, g=cap, B=B.T, X=Y, Y=X)
    for name, asked in (("f", below), ("g", above)):
        try:
            result = ss.solve(asked, tol=1e-3, method=method)
        except ss.errors.InputError:
            assert kind == "saddle", "no constant was declared"
            continue
        assert result.status is ss.Status.INCONSISTENT and result.certificate.reason.startswith(f"{name} is not convex")


def test_plans_probe_own_code_that_they_hardly_call():
    asked = ss.SaddleProblem(f=CAPS["quadratic"], g=ss.functions.Quadratic(1.0), B=B, X=X, Y=Y)
    result = ss.run(asked, ss.plan(asked, order="fgB", loops=(1, 1, 2)))
    assert result.status is ss.Status.INCONSISTENT and result.method_calls.f == 1


@pytest.mark.parametrize("kind", CAPS)
def test_plans_probe_own_code_that_they_call_at_one_point_only(kind):
    asked = ss.SaddleProblem(f=CAPS[kind], g=ss.functions.Quadratic(1.0), B=B, X=X, Y=Y)
    result = ss.run(asked, ss.plan(asked, 1e-2, order="fgB", loops=(8, 2, 8)))
    assert result.status is ss.Status.INCONSISTENT and result.method_calls.f > 5


@pytest.mark.parametrize("error", [1e-9, 1e-7, 1e-5, 1e-2, 1.0])
def test_an_operator_of_a_quadratic_that_is_not_symmetric_makes_no_false_claim(error):
    q = np.diag([1.0, 2.0, 3.0, 4.0]) + error * np.triu(np.array([1.0, -2.0, 0.5, 1.5])[:, None] * np.ones(4), 1)
    c, symmetric = 1e4 * np.array([3.0, -7.0, 2.0, 11.0]), 0.5 * (q + q.T)
    least = -0.5 * c @ np.linalg.solve(symmetric, c)
    given = LinearOperator((4, 4), matvec=lambda x: q @ x, rmatvec=lambda y: q.T @ y, dtype=float)
    bowl = ss.functions.Quadratic(given, strong_convexity=0.5)
    slope = q @ c
    off = float(np.linalg.norm(slope - symmetric @ c))
    assert errors_at(bowl, c, bowl.value(c), float(np.linalg.norm(slope))).gradient >= off
    f = bowl + ss.functions.Linear(c)
    for domain in (ss.domains.Box(-3e5, 3e5, shape=4), ss.domains.Ball(3e5, shape=4)):
        asked = ss.SaddleProblem(
            f=f, g=ss.functions.Zero(), B=np.zeros((1, 4)), X=domain, Y=ss.domains.Box(-1.0, 1.0, shape=1)
        )
        result = ss.solve(asked, tol=1e-5, max_calls={"f": 400})
        found = ss.certify(asked, result.x, result.y)
        for known in (result.certificate, found):
            assert known.lower - 2e-6 <= least <= known.upper + 2e-6
        gap = 0.5 * result.x @ (symmetric @ result.x) + c @ result.x - least
        assert gap <= 1.2e-5 or not result.success
        assert error < 1e-4 or result.status is ss.Status.INCONSISTENT


@pytest.mark.parametrize("kind", CAPS)
def test_a_certificate_takes_no_convexity_on_trust(kind):
    cap, bowl = CAPS[kind], ss.functions.Quadratic(1.0)
    below = ss.SaddleProblem(f=cap, g=bowl, B=B, X=X, Y=Y)
    above = ss.SaddleProblem(f=bowl, g=cap, B=B.T, X=Y, Y=X)
    for name, asked in (("f", below), ("g", above)):
        for found in (ss.certify(asked, *asked.start(), max_gradients=most) for most in (1, 1000)):
            assert found.kind == "none" and found.reason.startswith(f"{name} is not convex"), name
            assert (found.lower, found.upper) == (-np.inf, np.inf)


@pytest.mark.parametrize("most", [1, 1000])
def test_a_certificate_probes_true_own_code_at_five_points(most):
    runs = []

    def both(x):
        runs.append(x.copy())
        return 0.5 * float(x @ x), x.copy()

    f = ss.functions.from_callable(both, smoothness=ss.Holder(1.0, 1.0))
    asked = ss.SaddleProblem(f=f, g=ss.functions.Quadratic(1.0), B=B, X=X, Y=Y)
    first, second = (ss.certify(asked, *asked.start(), max_gradients=most) for _ in range(2))
    assert first.gap < 1e-6 and first == second
    assert len(runs) == first.calls.f + second.calls.f
    assert all(X.contains(point) for point in runs)
    assert len({point.tobytes() for point in runs}) == 5


def test_true_own_code_is_probed_at_a_few_points_only_and_inside_the_limits():
    runs = []

    def gradient(x):
        runs.append(x.copy())
        return x

    def asked():
        f = ss.functions.Custom(gradient, lambda x: 0.5 * x @ x, smoothness=ss.Holder(1.0, 1.0))
        return ss.SaddleProblem(f=f, g=ss.functions.Quadratic(1.0), B=B, X=X, Y=Y)

    free = ss.solve(asked(), tol=1e-3, method="adaptive")
    assert free.status is ss.Status.SOLVED and len(runs) == free.calls.f <= 8
    assert all(X.contains(point) for point in runs)
    # Fewer, where the limits leave fewer; and none where enough points were compared on the way.
    tight = ss.solve(asked(), tol=1e-3, method="adaptive", max_calls={"f": free.calls.f - 2})
    assert tight.status is ss.Status.SOLVED and tight.calls.f == free.calls.f - 2
    runs.clear()
    long = ss.solve(asked(), tol=1e-10, method="adaptive", start=START)
    assert long.status is ss.Status.SOLVED and len(long.history) > 5
    assert np.linalg.norm(runs[-1] - long.x) < 1e-2


@pytest.mark.parametrize("method", ["universal-gradient", "mirror-prox"])
def test_rounding_at_the_size_of_inner_terms_is_no_contradiction(method):
    """log(cosh(x)) of a small x is what is left of 1 + x^2 / 2."""
    f = ss.functions.Custom(np.tanh, lambda x: float(np.log(np.cosh(x)).sum()), smoothness=ss.Holder(1.0, 1.0))
    tilt = ss.functions.Linear(np.full(3, 1e-6))
    box = ss.domains.Box(-1e-5, 1e-5, shape=3)
    problem = ss.SaddleProblem(f=f + tilt, g=ss.functions.Quadratic(1.0), B=np.eye(3), X=box, Y=box)
    result = ss.solve(problem, tol=1e-18, method=method, max_steps=200)
    assert result.status is not ss.Status.INCONSISTENT, result.certificate.reason


def test_points_whose_norms_underflow_contradict_nothing():
    B = ss.operators.as_operator(np.array([[3.0]]))
    x, y = np.array([1e-170]), np.array([0.7])
    assert adjoint_complaint(B, x, 3.0 * x, y, np.array([3.0 * 0.7 * (1.0 + 1e-15)])) == ""
    assert adjoint_complaint(B, x, 3.0 * x, y, np.array([2.0 * 0.7])) != ""


def test_last_digits_and_underflow_are_no_contradiction():
    """Points that differ by one rounding, of an operator whose terms cancel; products that are 0 or a denormal."""
    A = np.array([[3.0, 1.0], [1.0, 2.0], [-2.0, 5.0]])
    given = ss.operators.as_operator((lambda x: A @ x, lambda y: A.T @ y), (2,), (3,))
    f = ss.functions.LeastSquares(given, A @ np.array([1e5, -2e5]))
    x = np.array([1e5, -2e5])
    guard = PairGuard("f", f, ss.domains.FullSpace(2))
    guard.look(Linearisation(x, 0.0, np.array([1e-10, 2e-10])))
    guard.look(Linearisation(np.nextafter(x, np.inf), 0.0, np.array([-3e-10, 1e-10])))
    tiny = ss.operators.as_operator(np.array([[1.0]]))
    zero, least = np.zeros(1), np.full(1, 5e-324)
    assert adjoint_complaint(tiny, np.full(1, 0.4), zero, np.full(1, 1e-200), least) == ""


def test_adjoints_are_tested_once_and_counted_then():
    box, zero = ss.domains.Box(-1.0, 1.0, shape=2), ss.functions.Zero()
    wrong, right = (
        ss.operators.as_operator((lambda x: 2 * x, lambda y, factor=factor: factor * y), (2,), (2,), norm=2.0)
        for factor in (3, 2)
    )
    with pytest.raises(RunEnded, match=r"^<Bx, y> = "):
        check_adjoint_of(Oracles(ss.SaddleProblem(f=zero, g=zero, B=wrong, X=box, Y=box)))
    f = ss.functions.LeastSquares(wrong, np.ones(2))
    with pytest.raises(RunEnded, match=r"^the adjoint of A in f "):
        check_inner_adjoints(Oracles(ss.SaddleProblem(f=f, g=zero, B=np.eye(2), X=box, Y=box)))
    asked = ss.SaddleProblem(f=zero, g=zero, B=right, X=box, Y=box)
    with count_aside(asked) as books:
        assert (known_mismatch(Oracles(asked)), known_mismatch(Oracles(asked))) == (0.0, 0.0)
    assert books.calls.B == 2


def test_a_hyperplane_separates_a_level_out_of_reach():
    A, box = ss.operators.as_operator([[1.0, 1.0]]), ss.domains.Box(0.0, 1.0, shape=2)
    levels = [excludes(A, np.array([level]), box, -np.ones(1), -np.ones(2)) for level in (1.9, 2.1)]
    assert levels == [False, True]


@pytest.mark.parametrize("end", [0.0, np.inf])
def test_no_hyperplane_excludes_a_point_of_the_set_where_sums_cancel(end):
    """x = b with b in X, and a direction to which b is orthogonal: sums of 1e8 leave 1e-8 of any sign."""
    rng, identity = np.random.default_rng(0), ss.operators.Identity((5,))
    for _ in range(200):
        d, b = rng.standard_normal((2, 5)) * [[1.0], [1e8]]
        d = np.abs(d) if end else d
        b = b - d * (d @ b) / (d @ d)
        assert not excludes(identity, b, ss.domains.Box(b, b + end), d, d.copy())
        # A part in a million more is excluded, whatever its sums are.
        assert excludes(identity, b - 1e2 * d, ss.domains.Box(b, b + end), d, d.copy())


def test_gaps_of_rounding_are_told_from_others():
    assert ss.Certificate(1.0, 1.0 + 1e-15).at_rounding and not ss.Certificate(1.0, 1.1).at_rounding
