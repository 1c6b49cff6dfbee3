"""What a class of the caller's says of itself is declared and never certain: no false SOLVED rests on it."""

import math

import numpy as np
import pytest

import saddleslide as ss
from exact_minima import Bowl
from saddleslide.certificates.guards import check_own_steps
from saddleslide.oracles.calls import RunEnded
from saddleslide.oracles.oracles import Oracles

F, D = ss.functions, ss.domains


class Overstated(F.Function):
    """1/2 <x, Q x> + <c, x>, with whatever it is told to say of itself."""

    def __init__(self, Q, c, modulus=0.0, **claims):
        self.Q, self.c, self.modulus = Q, c, modulus
        for name, claim in claims.items():
            setattr(self, name, claim)

    @property
    def shape(self):
        return self.c.shape

    def value_and_gradient(self, x, out=None):
        gradient = self.Q @ x + self.c
        value = 0.5 * float(x @ (self.Q @ x)) + float(self.c @ x)
        if out is None:
            return value, gradient
        out[...] = gradient
        return value, out

    def smoothness(self, domain):
        return ss.Holder(1.0, float(np.linalg.norm(self.Q, 2)))

    def strong_convexity(self, domain):
        return self.modulus

    def hessian_product(self, v):
        return self.Q @ v


class Insisting(Overstated):
    """It says that it is certain, and no code of the caller's."""

    own_code = False

    def certain_convexity(self, domain):
        return self.modulus


def told(Q, c, modulus, how):
    """The function in a wrapping, and the bowl that it is."""
    bowl, n = Bowl.form(Q, c), len(c)
    if how == "multiple":
        return 0.5 * Insisting(Q, c, modulus), 0.5 * bowl
    if how == "noise":
        return F.Noisy(Insisting(Q, c, modulus), sigma=0.0), bowl
    if how == "parts":
        return F.PartSum([Insisting(Q, c, modulus), F.Linear(np.ones(n))]), bowl + Bowl.form(0.0 * Q, np.ones(n))
    if how == "quadratic":
        return Insisting(Q, c, modulus, quadratic=True), bowl
    return (Insisting if how == "insisting" else Overstated)(Q, c, modulus), bowl


@pytest.mark.parametrize("how", ["plain", "insisting", "multiple", "noise", "parts", "quadratic"])
def test_an_overstated_modulus_of_an_own_class_is_never_solved_falsely(how):
    rng = np.random.default_rng(len(how))
    solved = 0
    for _ in range(3):
        n = 2
        turn = np.linalg.qr(rng.standard_normal((n, n)))[0]
        Q = np.round(turn @ np.diag([1.0, 10.0 ** -rng.integers(0, 5)]) @ turn.T, 6)
        Q, c = 0.5 * (Q + Q.T) + 1e-6 * np.eye(n), np.round(rng.standard_normal(n), 3)
        true = max(float(np.linalg.eigvalsh(Q)[0]), 1e-9)
        f, bowl = told(Q, c, true * 10.0 ** float(rng.choice([0, 0, 1, 3, 6])), how)
        for domain in (D.Box(-1.0, 2.0, shape=n), D.Ball(3.0, shape=n), D.FullSpace(n)):
            problem = ss.SaddleProblem(f=f, g=F.Zero(), B=np.zeros((1, n)), X=domain, Y=D.FullSpace(1))
            tol = float(10.0 ** -rng.integers(2, 6))
            result = ss.solve(problem, tol=tol, method="adaptive", max_calls={"f": 200})
            lower, upper = bowl.minimum(domain)
            certificate = ss.certify(problem, result.x, result.y, max_gradients=50)
            for found in (result.certificate, certificate):
                if not found.assumes:
                    assert found.lower <= upper and found.upper >= lower, (how, domain, result.status)
                assert math.isnan(found.gap) or found.gap >= 0.0
            assert domain.bounded or result.status is not ss.Status.SOLVED
            solved += result.status is ss.Status.SOLVED
            if result.status is ss.Status.MET_AS_DECLARED:
                assert result.certificate.assumes and not result.success
    # What does not rest on a claim is solved all the same, by convexity alone.
    assert solved >= 1 or how in ("quadratic", "parts")


@pytest.mark.parametrize(
    "claims",
    [
        {"linear": True},
        {"separable": True},
        {"quadratic": True},
        {"separable": True, "separable_form": F.Zero().separable_form},
    ],
)
def test_forms_that_an_own_class_declares_are_named_and_never_solved(claims):
    Q, c = np.array([[2.0, 1.0], [1.0, 2.0]]), np.array([0.3, -0.7])
    name = "separable" if "separable_form" in claims else next(iter(claims))
    for f in (Overstated(Q, c, 0.0, **claims), 2.0 * Overstated(Q, c, 0.0, **claims) + F.Huber(1.0)):
        for domain in (D.Box(-1.0, 1.0, shape=2), D.Ball(1.0, shape=2)):
            problem = ss.SaddleProblem(f=f, g=F.Zero(), B=np.zeros((1, 2)), X=domain, Y=D.FullSpace(1))
            result = ss.solve(problem, tol=1e-2, max_calls={"f": 200}, max_steps=30)
            assert result.status is not ss.Status.SOLVED and not result.success
            assert f"f is {name}, as its class declares" in problem.assumptions


class Wrong(D.Domain):
    """A box [-2, 2]^n that says that it is [-1, 1]^n where bounds ask."""

    def __init__(self, n):
        self.shape, self.box, self.said = (n,), D.Box(-2.0, 2.0, shape=n), D.Box(-1.0, 1.0, shape=n)

    def project(self, point, out=None):
        return self.box.project(point, out)

    def maximizer(self, direction):
        return self.said.maximizer(direction)

    def squared_radius(self, point):
        return self.said.squared_radius(point)

    def diameter(self):
        return self.said.diameter()

    def magnitude(self):
        return self.said.magnitude()

    def violation(self, point):
        return self.box.violation(point)


@pytest.mark.parametrize("nested", [False, True])
def test_a_set_that_an_own_class_declares_is_never_solved(nested):
    X = D.Product(D.Product(Wrong(2)), D.Box(0.0, 1.0, shape=1)) if nested else Wrong(3)
    problem = ss.SaddleProblem(f=F.Linear(np.ones(3)), g=F.Zero(), B=np.zeros((1, 3)), X=X, Y=D.Box(-1.0, 1.0, shape=1))
    result = ss.solve(problem, tol=1e-3, max_steps=20)
    assert result.status is not ss.Status.SOLVED and "X is the set that its code declares" in problem.assumptions


class Dense(ss.operators.Operator):
    """Products with diag(1, 1e-4), and a matrix that says diag(1, 1)."""

    x_shape = y_shape = (2,)

    def forward(self, x, out=None):
        return np.multiply([1.0, 1e-4], x, out=out)

    adjoint = forward

    def dense(self):
        return np.eye(2)


def test_a_matrix_that_an_own_coupling_declares_gives_no_certain_modulus():
    whole = D.FullSpace(2)
    for f in (F.LeastSquares(Dense(), [1.0, 1.0]), F.Quadratic(Dense()) + F.Linear([1.0, 1.0])):
        assert f.strong_convexity(whole) > 0.5 and f.certain_convexity(whole) == 0.0
        problem = ss.SaddleProblem(f=f, g=F.Zero(), B=np.zeros((1, 2)), X=whole, Y=D.FullSpace(1))
        assert ss.solve(problem, tol=1e-3, max_steps=50).status is not ss.Status.SOLVED


def test_a_form_without_the_claim_to_be_separable_is_a_claim_all_the_same():
    class Formed(ss.functions.Function):
        def value_and_gradient(self, x, out=None):
            return float(0.5 * x @ x), x.copy()

        def smoothness(self, domain):
            return ss.Holder(1.0, 1.0)

        def strong_convexity(self, domain):
            return 1.0

        def separable_form(self):
            return ss.functions.Quadratic(1.0).separable_form()

    box = ss.domains.Box(-1.0, 1.0, shape=2)
    problem = ss.SaddleProblem(f=Formed(), g=ss.functions.Zero(), B=np.eye(2), X=box, Y=box)
    assert ss.solve(problem, 1e-6, max_steps=50).status is ss.Status.MET_AS_DECLARED


TILT = np.array([3.0, -2.0])


def moved(base, *given):
    """A function of a class derived from one of ours: the same plus <TILT, x>."""

    class Moved(base):
        def value_and_gradient(self, x, out=None):
            value, gradient = super().value_and_gradient(x)
            return value + float(TILT @ x), np.add(gradient, TILT, out=out)

        def value(self, x):
            return self.value_and_gradient(x)[0]

        def gradient(self, x, out=None):
            return self.value_and_gradient(x, out)[1]

    return Moved(*given)


A_4, LABELS = np.array([[1.0, 2.0], [-1.0, 0.5], [0.5, -1.0], [2.0, 1.0]]), np.array([1.0, -1.0, 1.0, -1.0])
DERIVED = {
    "logistic": (F.Logistic, (A_4, LABELS)),
    "counts": (F.PoissonTransmission, (np.abs(A_4), np.ones(4), 3.0, 0.5)),
    "least squares": (F.LeastSquares, (A_4, LABELS)),
    "sum": (F.Sum, (F.Logistic(A_4, LABELS), F.Huber(1.0))),
    "multiple": (F.Scaled, (2.0, F.Logistic(A_4, LABELS))),
    "noise": (F.Noisy, (F.Logistic(A_4, LABELS), 0.0)),
    "linear": (F.Linear, (np.ones(2),)),
}


@pytest.mark.parametrize("name", DERIVED)
def test_a_class_derived_from_one_of_ours_is_called_and_not_taken_apart(name):
    base, given = DERIVED[name]
    f, plain, box = moved(base, *given), base(*given), D.Box(-1.0, 2.0, shape=2)
    # Some point of the box, and what the true function has there: no lower bound may exceed it.
    corners = [np.array([a, b]) for a in np.linspace(-1.0, 2.0, 13) for b in np.linspace(-1.0, 2.0, 13)]
    least = min(plain.value(x) + float(TILT @ x) for x in corners)
    for h, factor in ((f, 1.0), (2.0 * f + F.Zero(), 2.0)):
        for g, side in ((F.Zero(), "f"), (h, "g")):
            one, B = D.Box(-1.0, 1.0, shape=1), np.zeros((1, 2))
            given = (h, g, B, box, one) if side == "f" else (F.Zero(), h, B.T, one, box)
            problem = ss.SaddleProblem(**dict(zip(("f", "g", "B", "X", "Y"), given, strict=True)))
            result = ss.solve(problem, tol=1e-2, max_calls={"f": 200, "g": 200})
            bound = result.lower if side == "f" else -result.upper
            assert bound <= factor * least + 1e-9 or result.certificate.assumes
            assert result.status is not ss.Status.SOLVED or name not in ("least squares", "linear")


def test_what_is_put_in_the_place_of_a_method_is_declared():
    f = F.LeastSquares(math.sqrt(1e-3) * np.eye(2), np.zeros(2))
    f.strong_convexity = f.certain_convexity = lambda domain: 1.0
    disguised = type("Disguised", (Insisting,), {"__module__": "saddleslide.functions.quadratic"})
    for h in (f, disguised(1e-3 * np.eye(2), np.zeros(2), 1.0)):
        problem = ss.SaddleProblem(
            f=h, g=F.Zero(), B=np.array([[1.0, -2.0]]), X=D.FullSpace(2), Y=D.Box(1.0, 1.0, shape=1)
        )
        result = ss.solve(problem, tol=1e-3, max_calls={"f": 300})
        assert not result.success
        assert result.certificate.assumes or not math.isfinite(result.gap)


def shrink(center, threshold):
    return np.sign(center) * np.maximum(np.abs(center) - threshold, 0.0)


@pytest.mark.parametrize("factor", [0.5, 0.9, 1.0, 1.1, 2.0])
def test_own_steps_that_do_not_fit_their_values_are_found(factor):
    """Each too long or too short; and projections on a set that is not where the value says."""
    rng = np.random.default_rng(1)
    A = rng.standard_normal((15, 10))
    fit = ss.functions.LeastSquares(A, A @ rng.standard_normal(10))
    steps = {
        "l1": (lambda x: float(np.abs(x).sum()), lambda c, t: shrink(c, factor * t)),
        "l2": (
            lambda x: float(np.linalg.norm(x)), lambda c, t: c * max(1.0 - factor * t / float(np.linalg.norm(c)), 0.0)
        ),
        "square": (lambda x: 0.5 * float(x @ x), lambda c, t: c / (1.0 + factor * t)),
        "box": (lambda x: 0.0 if (np.abs(x) <= 1.0).all() else np.inf, lambda c, t: np.clip(c, -factor, factor)),
    }  # fmt: skip
    for name, (value, prox) in steps.items():
        if name == "box" and factor > 1.0:
            continue
        found = ss.minimize(fit + 2.0 * ss.functions.Custom(value=value, prox=prox), max_steps=2000)
        expected = (ss.Status.SOLVED,) if factor == 1.0 else (ss.Status.INCONSISTENT,)
        assert found.status in expected, name


@pytest.mark.parametrize("off", [1e-4, 1e-5])
def test_steps_that_are_off_by_a_constant_are_found(off):
    """Values and subgradients along a ray fit each other; the point of a longer step is another one."""

    def problem(off):
        def soft(z, step):
            return np.sign(z) * np.maximum(np.abs(z) - 1.2194 * step, 0.0) + off

        own = F.Custom(prox=soft, value=lambda x: 1.2194 * float(np.abs(x).sum()))
        return ss.SaddleProblem(f=F.LeastSquares(np.eye(5), np.ones(5)) + own, g=F.Zero(), B=np.ones((1, 5)),
                                X=D.Box(-1.0, 1.0, shape=5), Y=D.Box(-1.0, 1.0, shape=1))  # fmt: skip

    check_own_steps(Oracles(problem(0.0)))
    with pytest.raises(RunEnded, match="belong to one subgradient"):
        check_own_steps(Oracles(problem(off)))
