"""One operator in every form that users have it: dense, sparse, SciPy, PyLops, ODL, callables. The same iterates."""

from __future__ import annotations

import functools

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.linalg import aslinearoperator

import saddleslide as ss
from saddleslide.certificates import residuals
from saddleslide.errors import InputError, MissingAdjointError
from saddleslide.functions import minimum
from saddleslide.methods import restarted_primal_dual
from support import gathered, need


@pytest.fixture(autouse=True)
def _no_factors(monkeypatch):
    """Factors and scales are made of NumPy's matrices alone, and end runs earlier: steps are compared without them."""
    monkeypatch.setattr(residuals, "factor_of", lambda *given: None)
    monkeypatch.setattr(minimum, "factor_of", lambda *given: None)
    monkeypatch.setattr(restarted_primal_dual, "_are_alike", lambda scale: True)


SHAPE = (5, 7)
FORMS = ["dense", "sparse", "scipy", "pylops", "odl", "callables", "torch", "jax"]
# Known by their products alone.
UNKNOWN = ("scipy", "pylops", "odl", "callables")
rng = np.random.default_rng(0)
MATRIX = rng.standard_normal((6, 35)) * (rng.random((6, 35)) < 0.5)
TARGET = rng.standard_normal(6)


def form(name):
    """The matrix acting on pictures, as something that `as_operator` takes."""
    if name == "sparse":
        return sp.csr_array(MATRIX)
    if name == "scipy":
        return aslinearoperator(MATRIX)
    if name == "pylops":
        return need("pylops").MatrixMult(MATRIX)
    if name == "odl":
        odl = need("odl")
        return odl.MatrixOperator(MATRIX, domain=odl.rn(35), range=odl.rn(6))
    if name == "callables":
        return (lambda x: MATRIX @ x.ravel(), lambda y: (MATRIX.T @ y).reshape(SHAPE))
    if name == "torch":
        return need("torch").tensor(MATRIX)
    if name == "jax":
        jax = need("jax")
        with jax.enable_x64(True):
            return jax.numpy.asarray(MATRIX)
    return MATRIX


def problem(name, where, norm=None):
    """The form as the coupling B, or as the forward operator of f, whose norm may be told."""
    free, few = ss.domains.FullSpace(SHAPE), ss.domains.Box(-1.0, 1.0, shape=6)
    if where == "B":
        f = ss.functions.Quadratic(1.0) + ss.functions.Linear(np.linspace(-1.0, 1.0, 35).reshape(SHAPE))
        return ss.SaddleProblem(f=f, g=ss.functions.Linear(TARGET), B=form(name), X=free, Y=few)
    A = form(name) if norm is None else ss.operators.as_operator(form(name), SHAPE, (6,), norm=norm)
    f = ss.functions.LeastSquares(A, TARGET, ridge=0.1, x_shape=SHAPE)
    differences, box = ss.operators.FiniteDifferences(SHAPE), ss.domains.Box(-0.1, 0.1, shape=(2, *SHAPE))
    return ss.SaddleProblem(f=f, g=ss.functions.Zero(), B=differences, X=free, Y=box, arrays="numpy")


def iterates(made, how, steps=6):
    """Points after every outer step, as NumPy arrays; kinds and scales of the norm bound are fixed beforehand."""
    seen = []
    if how == "plan":
        intended = ss.plan(problem("dense", "B"), order="fgB", loops=(6, 2, 3))
        ss.run(made, intended, callback=lambda now: seen.append(now.x.copy()))
    else:
        ss.solve(made, reduction=1e-9, method="adaptive", metric="blocks", max_steps=steps,
                 callback=lambda now: seen.append(now.x.copy()))  # fmt: skip
    return seen


@functools.cache
def dense_iterates(where, how):
    return iterates(problem("dense", where), how)


@gathered("name", FORMS[1:])
@pytest.mark.parametrize(("where", "how"), [("B", "plan"), ("B", "solve"), ("f", "solve")])
def test_every_form_of_one_operator_gives_the_same_iterates(name, where, how):
    # The norm of an A that is known by its products alone is not bounded to find a step; told, it is used.
    told = ss.operators.as_operator(MATRIX).norm.upper if where == "f" and name in UNKNOWN else None
    expected, found = dense_iterates(where, how), iterates(problem(name, where, told), how)
    assert len(found) == len(expected) > 2
    for first, second in zip(expected, found, strict=True):
        assert second.shape == SHAPE
        assert second == pytest.approx(first, rel=1e-9, abs=1e-10)


def test_operators_known_by_products_alone_go_one_way_to_the_same_point():
    """Their curvature is found by steps: other iterates than with a norm at hand, the same ones for all of them."""
    dense = iterates(problem("dense", "f"), "solve", steps=250)[-1]
    ways = [iterates(problem(name, "f"), "solve", steps=250) for name in UNKNOWN]
    for way in ways:
        assert way[-1] == pytest.approx(dense, rel=1e-4, abs=1e-4)
        assert way[:6] == [pytest.approx(point, rel=1e-9, abs=1e-10) for point in ways[0][:6]]


def test_gradients_of_odl_keep_their_pictures_and_lose_their_weights():
    odl = need("odl")
    # Cells of size 1/4 x 1/5 weigh the inner products of ODL; differences are divided by their sides.
    space = odl.uniform_discr([0.0, 0.0], [1.0, 1.0], (4, 5))
    coupling = ss.operators.as_operator(odl.Gradient(space, method="forward", pad_mode="symmetric"))
    assert (coupling.x_shape, coupling.y_shape) == ((4, 5), (2, 4, 5))
    ss.operators.check_adjoint(coupling, tolerance=1e-12)
    picture = np.random.default_rng(1).standard_normal((4, 5))
    rows, columns = coupling.forward(picture)
    assert rows[:-1] == pytest.approx(np.diff(picture, axis=0) * 4) and rows[-1] == pytest.approx(np.zeros(5))
    assert columns[:, :-1] == pytest.approx(np.diff(picture, axis=1) * 5)


@pytest.mark.parametrize("weights", [None, 3.0, [1.0, 2.0, 5.0]])
def test_the_adjoint_of_weighted_spaces_is_turned_into_the_transpose(weights):
    odl = need("odl")
    domain = odl.rn(3) if weights is None else odl.rn(3, weighting=weights)
    matrix = np.array([[1.0, 2.0, 3.0], [0.0, -1.0, 4.0]])
    target = odl.rn(2, weighting=0.5)
    # This operator of ODL forgets the weights; the second one has the adjoint that the weights ask for.
    forgetful = odl.MatrixOperator(matrix, domain=domain, range=target)
    w = np.ones(3) if weights is None else np.broadcast_to(np.array(weights), (3,))

    class Honest(odl.Operator):
        def __init__(self):
            super().__init__(domain, target, linear=True)

        def _call(self, x):
            return matrix @ x.asarray()

        @property
        def adjoint(self):
            return odl.MatrixOperator(0.5 * matrix.T / w[:, None], domain=target, range=domain)

    class Wrong(Honest):
        @property
        def adjoint(self):
            return odl.MatrixOperator(7.0 * matrix.T, domain=target, range=domain)

    for operator in (forgetful, Honest()):
        coupling = ss.operators.as_operator(operator)
        assert coupling.forward(np.ones(3)) == pytest.approx(matrix.sum(axis=1))
        assert coupling.adjoint(np.array([1.0, 0.5])) == pytest.approx(matrix.T @ [1.0, 0.5])
    with pytest.raises(InputError, match="is not its transpose"):
        ss.operators.as_operator(Wrong())


def test_operators_of_odl_that_do_not_fit_are_refused():
    odl = need("odl")
    space = odl.rn(3)
    with pytest.raises(InputError, match="is not linear"):
        ss.operators.as_operator(odl.PowerOperator(space, 2))

    class Bare(odl.Operator):
        def __init__(self):
            super().__init__(space, space, linear=True)

        def _call(self, x):
            return x

    with pytest.raises(MissingAdjointError, match="Bare has no adjoint"):
        ss.operators.as_operator(Bare())
    mixed = odl.BroadcastOperator(odl.IdentityOperator(space), odl.MatrixOperator(np.ones((2, 3))))
    with pytest.raises(InputError, match="joins spaces of different shapes"):
        ss.operators.as_operator(mixed)
    with pytest.raises(InputError, match="its shape is"):
        ss.operators.as_operator(odl.IdentityOperator(space), x_shape=(4,))
