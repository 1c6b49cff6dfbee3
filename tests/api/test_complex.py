"""Complex data, operators, moduli and results of `ss.minimize`, against CVXPY and against closed forms."""

from __future__ import annotations

import math

import numpy as np
import pytest

import saddleslide as ss
from support import need

F, D = ss.functions, ss.domains
cp = need("cvxpy")


def _complex(rng, *shape):
    return rng.standard_normal(shape) + 1j * rng.standard_normal(shape)


@pytest.fixture
def data():
    rng = np.random.default_rng(3)
    return _complex(rng, 9, 6), _complex(rng, 9), _complex(rng, 5, 6), _complex(rng, 6)


def _least(objective, *constraints):
    problem = cp.Problem(cp.Minimize(objective), list(constraints))
    problem.solve(solver="CLARABEL", tol_gap_abs=1e-8, tol_gap_rel=1e-8, tol_feas=1e-8)
    return float(problem.value)


def _half(z):
    return 0.5 * cp.sum_squares(cp.abs(z))


def _huber(z, delta):
    # h(t) is huber(t, delta) / (2 delta), and of moduli.
    return cp.sum(cp.huber(cp.abs(z), delta)) / (2.0 * delta)


def _statements(A, b, K, c):
    """Objectives of ours beside those of CVXPY, for a complex or a real variable."""
    w = np.linspace(0.5, 2.0, 6)
    groups = [[0, 1, 2], [3, 4, 5]]
    rows = ss.operators.as_operator(A, dtype=(float, complex))
    wide, few = K[:3], _complex(np.random.default_rng(5), 3)
    return {
        "lasso": (F.LeastSquares(A, b) + 0.8 * F.L1(), lambda x: _half(A @ x - b) + 0.8 * cp.norm1(x)),
        "weighted l1 first": (
            F.L1(w) + F.LeastSquares(A, b, ridge=0.3),
            lambda x: _half(A @ x - b) + cp.sum(cp.multiply(w, cp.abs(x))) + 0.3 * _half(x),
        ),
        "weighted data": (
            F.LeastSquares(A, b, weights=np.arange(1.0, 10.0)) + F.L2(),
            lambda x: _half(cp.multiply(np.sqrt(np.arange(1.0, 10.0)), A @ x - b)) + cp.norm(x, 2),
        ),
        "real A": (F.LeastSquares(A.real, b) + F.L1(), lambda x: _half(A.real @ x - b) + cp.norm1(x)),
        "real b": (F.LeastSquares(A, b.real) + F.L1(), lambda x: _half(A @ x - b.real) + cp.norm1(x)),
        "group lasso": (
            F.LeastSquares(A, b, x_shape=(2, 3)) + 1.5 * F.L21(axis=-1),
            lambda x: _half(A @ x - b) + 1.5 * sum(cp.norm(x[g], 2) for g in groups),
        ),
        "absolute deviations": (
            F.L1().translated(b) @ A + F.Quadratic(1.0),
            lambda x: cp.norm1(A @ x - b) + _half(x),
        ),
        "Huber behind a complex and a real matrix": (
            F.LeastSquares(None, c) + 0.4 * F.Huber(0.3) @ K + F.L1() @ K.real,
            lambda x: _half(x - c) + 0.4 * _huber(K @ x, 0.3) + cp.norm1(K.real @ x),
        ),
        "within a ball": (
            F.LeastSquares(A, b) + F.Indicator(D.Ball(0.5, 6)),
            lambda x: (_half(A @ x - b), cp.norm(x, 2) <= 0.5),
        ),
        "|K x - few| <= eps": (
            F.Quadratic(w) + F.Indicator(D.Ball(0.4, center=few)) @ wide,
            lambda x: (_half(cp.multiply(np.sqrt(w), x)), cp.norm(wide @ x - few, 2) <= 0.4),
        ),
        "Linear": (
            F.Quadratic(1.0) + F.Linear(c) + F.L1() @ K,
            lambda x: _half(x) + cp.real(c.conj() @ x) + cp.norm1(K @ x),
        ),
        "real operators": (
            F.LeastSquares(ss.operators.as_operator(A.real), b) + 0.5 * F.L1() @ ss.operators.FiniteDifferences(6)
            + 0.3 * F.L2().translated(few) @ ss.operators.as_operator(wide.real)
            + F.LeastSquares(A.imag, b.real, weights=np.arange(9.0)),
            lambda x: _half(A.real @ x - b) + 0.5 * cp.norm1(x[1:] - x[:-1]) + 0.3 * cp.norm(wide.real @ x - few, 2)
            + _half(cp.multiply(np.sqrt(np.arange(9.0)), A.imag @ x - b.real)),
        ),
        "real x": (F.LeastSquares(rows, b) + 0.8 * F.L1(), lambda x: _half(A @ x - b) + 0.8 * cp.norm1(x)),
        "real x, moduli": (
            F.L1().translated(b) @ rows + F.Quadratic(1.0),
            lambda x: cp.norm1(A @ x - b) + _half(x),
        ),
    }  # fmt: skip


NAMES = list(_statements(*(np.ones(s, complex) for s in ((9, 6), (9,), (5, 6), (6,)))))


@pytest.mark.parametrize("name", NAMES)
def test_statements_agree_with_cvxpy(name, data):
    objective, statement = _statements(*data)[name]
    result = ss.minimize(objective, tol=1e-6)
    is_real = name.startswith("real x")
    assert result.success and result.x.dtype == (np.float64 if is_real else np.complex128)
    assert math.prod(result.x.shape) == 6
    stated = statement(cp.Variable(6, complex=not is_real))
    least = _least(*stated) if isinstance(stated, tuple) else _least(stated)
    assert result.objective == pytest.approx(least, abs=3e-6) and result.lower <= least + 1e-6
    assert result.violation <= 1e-5
    # The answer itself has that value.
    at = cp.Variable(6, complex=not is_real, value=result.x.ravel())
    again = statement(at)
    assert float(np.real((again[0] if isinstance(again, tuple) else again).value)) == pytest.approx(result.objective)


def test_duals_are_complex_subgradients_of_moduli(data):
    A, b, K, c = data
    result = ss.minimize(F.LeastSquares(None, c) + 0.1 * F.L1() @ K + F.LeastSquares(None, b) @ A, tol=1e-9)
    image = K @ result.x
    first, second = result.duals
    assert first.dtype == second.dtype == np.complex128
    assert (np.abs(first) <= 0.1 + 1e-9).all() and np.sum(first.conj() * image).real == pytest.approx(
        0.1 * np.abs(image).sum(), abs=1e-6
    )
    np.testing.assert_allclose(second, A @ result.x - b, atol=1e-12)
    # Stationarity, with the conjugate transpose.
    np.testing.assert_allclose(result.x - c + K.conj().T @ first + A.conj().T @ second, 0.0, atol=1e-3)


def _mri(shape):
    rng = np.random.default_rng(1)
    image = np.kron(np.eye(2), np.ones((shape[0] // 2, shape[1] // 2))) * np.exp(0.5j)
    return rng.random(shape) < 0.6, image + 0.1 * _complex(rng, *shape)


def test_mri_with_isotropic_total_variation():
    shape = (6, 6)
    seen, image = _mri(shape)
    kspace = ss.operators.Fourier(shape, mask=seen)
    measured = kspace @ image
    np.testing.assert_allclose(measured, np.fft.fft2(image, norm="ortho")[seen], atol=1e-12)
    tv = 0.1 * F.L21(axis=0) @ ss.operators.FiniteDifferences(shape, dtype=complex)
    result = ss.minimize(F.LeastSquares(kspace, measured) + tv, tol=1e-5)
    assert result.success and result.x.shape == shape and result.duals[0].shape == (2, *shape)

    dft = np.array([np.fft.fft2(e.reshape(shape), norm="ortho")[seen] for e in np.eye(36)]).T
    x = cp.Variable(shape, complex=True)
    parts = []
    for i in range(6):
        for j in range(6):
            steps = [x[k] - x[i, j] for k in ((i, j + 1), (i + 1, j)) if max(k) < 6]
            parts += [cp.norm(cp.hstack(steps), 2)] if steps else []
    least = _least(_half(dft @ cp.vec(x, order="C") - measured) + 0.1 * sum(parts))
    assert result.objective == pytest.approx(least, abs=2e-5) and result.lower <= least + 1e-6

    pylops = need("pylops")
    transform = pylops.signalprocessing.FFT2D(shape, norm="none", dtype=complex) * (1 / 6)
    sampled = pylops.Restriction(36, np.flatnonzero(seen.ravel()), dtype=complex) * transform
    again = ss.minimize(F.LeastSquares(sampled, measured, x_shape=shape) + tv, tol=1e-5)
    assert again.success and again.objective == pytest.approx(least, abs=2e-5)
    np.testing.assert_allclose(again.x, result.x, atol=0.05)


def test_a_pylops_operator_of_real_arrays_keeps_x_real():
    pylops = need("pylops")
    rng = np.random.default_rng(2)
    transform = pylops.signalprocessing.FFT2D((4, 5), dtype=float)
    measured = _complex(rng, 20)
    result = ss.minimize(F.LeastSquares(transform, measured, x_shape=(4, 5), ridge=0.1), tol=1e-8)
    matrix = np.array([np.fft.fft2(e.reshape(4, 5), norm="ortho").ravel() for e in np.eye(20)]).T
    expected = np.linalg.solve((matrix.conj().T @ matrix).real + 0.1 * np.eye(20), (matrix.conj().T @ measured).real)
    assert result.x.dtype == np.float64
    np.testing.assert_allclose(result.x.ravel(), expected, atol=1e-4)


def test_dtype_and_over_make_x_complex(data):
    A, b, _, _ = data
    own = F.LeastSquares(A, b)
    box = ss.minimize(own, over=D.FullSpace(6), tol=1e-8)
    np.testing.assert_allclose(box.x, np.linalg.lstsq(A, b, rcond=None)[0], atol=1e-3)
    start = (box.x, np.zeros(0))
    assert ss.minimize(own, tol=1e-8, start=start).calls.f <= box.calls.f
    near = ss.minimize(F.L2(), over=D.Ball(1.0, center=np.array([2.0j, 0.0])), tol=1e-8)
    np.testing.assert_allclose(near.x, [1j, 0.0], atol=1e-3)
    forced = ss.minimize(F.LeastSquares(None, [1.0, 2.0]), dtype=complex)
    assert forced.x.dtype == np.complex128
    np.testing.assert_allclose(forced.x, [1.0, 2.0], atol=1e-3)


def _own_codes(A, b):
    """The gradient A^H (A x - b) said in five ways."""
    value = lambda x: 0.5 * np.sum(np.abs(A @ x - b) ** 2)  # noqa: E731
    slope = lambda x: A.conj().T @ (A @ x - b)  # noqa: E731
    yield F.Custom(slope, value, dtype=complex)
    yield F.from_callable(lambda x: (value(x), slope(x)), dtype=complex)
    torch, jax = need("torch"), need("jax")
    At, bt = torch.tensor(A), torch.tensor(b)
    yield F.from_torch(lambda x: 0.5 * torch.sum(torch.abs(At @ x - bt) ** 2), dtype=complex)
    yield F.from_jax(lambda x: 0.5 * jax.numpy.sum(jax.numpy.abs(A @ x - b) ** 2), dtype=complex)

    def by_autograd(x):
        x = x.requires_grad_()
        found = 0.5 * torch.sum(torch.abs(At @ x - bt) ** 2)
        return found.detach(), torch.autograd.grad(found, x)[0]

    yield F.from_callable(by_autograd, like="torch", dtype=complex)

    def by_jax(x):
        found, conjugate = jax.value_and_grad(lambda x: 0.5 * jax.numpy.sum(jax.numpy.abs(A @ x - b) ** 2))(x)
        return found, conjugate.conj()

    yield F.from_callable(by_jax, like="jax", dtype=complex)


def test_own_gradients_have_one_convention(data):
    A, b, _, c = data
    rng = np.random.default_rng(4)
    for own in _own_codes(A, b):
        value, gradient = own.value_and_gradient(ss.operators.to_real(c))
        np.testing.assert_allclose(ss.operators.to_complex(gradient), A.conj().T @ (A @ c - b), atol=1e-12)
        # f(x + h) = f(x) + Re <g, h> + O(h^2)
        h = 1e-6 * _complex(rng, 6)
        change = own.value(ss.operators.to_real(c + h)) - value
        assert change == pytest.approx(np.vdot(ss.operators.to_complex(gradient), h).real, abs=1e-9)
    shrink = F.Custom(
        prox=lambda z, t: z * np.maximum(1.0 - t / np.maximum(np.abs(z), 1e-300), 0.0),
        value=lambda z: np.abs(z).sum(),
        dtype=complex,
    )
    result = ss.minimize(F.LeastSquares(A, b) + 0.8 * shrink, tol=1e-6)
    assert result.x.dtype == np.complex128
    assert result.objective == pytest.approx(
        ss.minimize(F.LeastSquares(A, b) + 0.8 * F.L1(), tol=1e-6).objective, abs=2e-6
    )
    # Own code alone decides that x is complex; over= is of complex arrays.
    own = ss.minimize(next(_own_codes(A, b)) + 0.8 * F.L1(), over=D.FullSpace(6), tol=1e-5)
    assert own.x.shape == (6,) and own.objective == pytest.approx(result.objective, abs=2e-5)


@pytest.mark.parametrize(
    ("statement", "says"),
    [
        (lambda A, b: F.LeastSquares(A, b) + F.Max(), "is no function of complex numbers"),
        (lambda A, b: F.LInf() @ A, "is no function of complex numbers"),
        (lambda A, b: F.LeastSquares(A, b) + F.Indicator(D.Box(0.0, 1.0, shape=6)), "no set of complex arrays"),
        (
            lambda A, b: F.LeastSquares(A, b) + F.L1() @ ss.operators.as_operator(A, dtype=(float, complex)),
            "K takes a real x, and x is complex",
        ),
        (lambda A, b: F.L1().translated(1j) @ A, "one complex number"),
        (lambda A, b: F.LeastSquares(A, b[:8]), "its shape is"),
        (lambda A, b: F.Custom(prox=lambda c, t: c, entry_steps=True, dtype=complex), "entry_steps"),
    ],
)
def test_what_has_no_meaning_is_refused(statement, says, data):
    with pytest.raises(ss.errors.InputError, match=says):
        ss.minimize(statement(*data[:2]))


def test_refused_sets_and_dtypes(data):
    own = F.LeastSquares(*data[:2])
    with pytest.raises(ss.errors.InputError, match="no set of complex arrays"):
        ss.minimize(own, over=D.NonNegative(6))
    with pytest.raises(ss.errors.InputError, match="a term takes a complex x"):
        ss.minimize(own, dtype=float)
