"""Code of the caller's that wants to write to its argument is told that it is a view, through whatever door it came."""

import numpy as np
import pytest
from scipy.sparse.linalg import LinearOperator

import saddleslide as ss
from saddleslide.errors import InputError
from saddleslide.functions import Custom, Function, LeastSquares, Logistic, PoissonTransmission, Quadratic, Zero
from support import gathered

BOX = ss.domains.Box(-1.0, 1.0, shape=3)
NOTE = "np.array(x)"


def compiled(x):
    """What a compiled library does with a buffer that it asked for without `const`."""
    if not x.flags.writeable:
        raise ValueError("buffer source array is read-only")
    return 2.0 * x


def operator():
    return LinearOperator((3, 3), matvec=compiled, rmatvec=compiled, dtype=float)


class Own(Function):
    def value_and_gradient(self, x, out=None):
        return 0.0, compiled(x)

    def smoothness(self, domain):
        return ss.Holder(1.0, 2.0)

    def strong_convexity(self, domain):
        return 0.0


def problem(f=None, B=None, g=None):
    return ss.SaddleProblem(f=f or Quadratic(1.0), g=g or Quadratic(1.0), B=np.eye(3) if B is None else B, X=BOX, Y=BOX)


def squares():
    return LeastSquares(operator(), np.ones(3))


def free():
    f = LeastSquares(np.eye(3), np.ones(3))
    return ss.SaddleProblem(f=f, g=Quadratic(1.0), B=np.eye(3), X=ss.domains.FullSpace(3), Y=BOX)


DOORS = {
    "B of solve": lambda: ss.solve(problem(B=operator()), tol=1e-3),
    "B of run": lambda: ss.run(
        problem(B=ss.operators.as_operator(operator(), norm=2.0)), ss.plan(problem(), 0.1, method="adaptive")
    ),
    "B of certify": lambda: ss.certify(problem(B=operator()), np.zeros(3), np.zeros(3)),
    "B of check_adjoint": lambda: ss.operators.check_adjoint(ss.operators.as_operator(operator())),
    "A of solve": lambda: ss.solve(problem(squares()), tol=1e-3),
    "A of certify": lambda: ss.certify(problem(squares()), np.zeros(3), np.zeros(3)),
    "A of value": lambda: squares().value(np.ones(3)),
    "pair of callables": lambda: ss.operators.as_operator((compiled, compiled), 3, 3).forward(np.ones(3)),
    "Custom": lambda: ss.solve(problem(Custom(compiled, lambda x: 0.0)), tol=1e-3),
    "Custom value": lambda: Custom(np.copy, compiled).value(np.ones(3)),
    "Custom sample": lambda: Custom(sample=lambda x, rng: compiled(x), variance=1.0).sample(
        np.ones(3), np.random.default_rng(0)
    ),
    "own class of solve": lambda: ss.solve(problem(Own()), tol=1e-3),
    "own class of certify": lambda: ss.certify(problem(g=Own()), np.zeros(3), np.zeros(3)),
    "part": lambda: ss.solve(problem(ss.functions.PartSum([Own(), Zero()], shape=3)), tol=1e-3),
    "slide": lambda: ss.slide([ss.Component(compiled, smoothness=ss.Holder(1.0, 2.0))], BOX, np.zeros(3), (2,)),
    "own class of slide": lambda: ss.slide([ss.Component(Own())], BOX, np.zeros(3), (2,)),
    "operator of slide": lambda: ss.slide([ss.Component(operator=compiled, lipschitz=2.0)], BOX, np.zeros(3), (2,)),
    "metric": lambda: ss.solve(free(), tol=1e-3, metric=ss.metrics.Operator(compiled, compiled, largest=4.0)),
    "NumPy's own words": lambda: ss.operators.as_operator((lambda x: x.sort(), np.copy), 3, 3).forward(np.ones(3)),
}


@gathered("door", DOORS)
def test_code_that_writes_to_its_argument_is_told_to_copy(door):
    with pytest.raises(ValueError, match="read-only") as caught:
        DOORS[door]()
    notes = [note for note in getattr(caught.value, "__notes__", ()) if NOTE in note]
    assert len(notes) == 1


def test_other_exceptions_have_no_such_note():
    def fails(x):
        raise ValueError("no")

    with pytest.raises(ValueError, match="no") as caught:
        ss.solve(problem(B=(fails, fails)), tol=1e-3)
    assert not any(NOTE in note for note in getattr(caught.value, "__notes__", ()))


def short(x):
    return x[:1]


def raising(_):
    raise AssertionError


NAMES = {
    "LeastSquares": lambda A: LeastSquares(A, np.ones(3)),
    "Logistic": lambda A: Logistic(A, np.array([1, -1, 1])),
    "PoissonTransmission": lambda A: PoissonTransmission(A, np.ones(3), 1.0, 1.0),
    "Quadratic": lambda A: Quadratic(A, x_shape=(3,)),
    "constrained": lambda A: ss.gallery.constrained(Quadratic(1.0), A, np.ones(3)),
    "lp_inverse": lambda A: ss.gallery.lp_inverse(np.eye(3), np.ones(3), weight=1.0, D=A),
    "matrix_game": ss.gallery.matrix_game,
}
WORDS = {"Quadratic": "q", "lp_inverse": "D", "matrix_game": "payoff"}
WRONG = {
    "NaN": np.full((3, 3), np.nan),
    "words": np.array([["a"] * 3] * 3),
    "cube": np.ones((3, 3, 3)),
    "one callable": raising,
    "pair without shapes": (raising, raising),
    "complex operator": LinearOperator((3, 3), matvec=raising, rmatvec=raising, dtype=complex),
    "operator without an adjoint": LinearOperator((3, 3), matvec=raising, dtype=float),
}


@gathered("wrong", WRONG)
@gathered("maker", NAMES)
def test_what_is_wrong_with_an_operator_is_said_under_the_name_of_its_argument(maker, wrong):
    if maker == "Quadratic" and wrong in ("pair without shapes", "cube"):
        return
    if maker == "LeastSquares" and wrong == "complex operator":
        # Nothing is wrong with it: x is complex.
        return
    with pytest.raises(InputError, match=rf"^{maker}: {WORDS.get(maker, 'A')}: "):
        NAMES[maker](WRONG[wrong])


def test_a_product_of_another_shape_is_said_of_A():
    f = LeastSquares(LinearOperator((3, 3), matvec=short, rmatvec=short, dtype=float), np.ones(3))
    with pytest.raises(ValueError, match="into shape"):
        f.value(np.ones(3))
    with pytest.raises(InputError, match=r"^LeastSquares: A x: received shape \(1,\)"):
        LeastSquares((short, short), np.ones(3), x_shape=(3,)).value(np.ones(3))
