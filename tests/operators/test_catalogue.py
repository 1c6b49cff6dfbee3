"""The catalogue of operators: each beside its matrix, written out by other code; norms, symbols and rounding bounds."""

import math
import sys

import numpy as np
import pytest
import scipy.fft
import scipy.ndimage
import scipy.sparse

import saddleslide as ss
from saddleslide.arrays.kinds import as_kind
from saddleslide.errors import InputError, MissingExtraError
from saddleslide.kernels.switch import jit, load
from saddleslide.metrics.spectral import from_coordinates, to_coordinates
from saddleslide.operators import (
    Convolution,
    Diagonal,
    FiniteDifferences,
    Fourier,
    Identity,
    Stack,
    SymmetricGradient,
    Wavelet,
    as_operator,
    split_unknowns,
    to_complex,
    to_real,
)
from saddleslide.operators.base import is_own_code
from support import gathered, need

RNG = np.random.default_rng(11)
MATRIX = RNG.standard_normal((5, 12))
SKEW, EVEN = (
    RNG.standard_normal((2, 3)),
    np.outer([1.0, 2.0, 1.0], [-1.0, 4.0, -1.0]) + np.outer([1.0, 0.0, 1.0], [2.0, 1.0, 2.0]),
)
MASK = RNG.random((3, 4)) < 0.5
MASK[1, 1], MASK[2, 3] = True, False


def wavelet(*given, **named):
    need("pywt")
    return Wavelet(*given, **named)


MADE = {
    "differences 1-D": lambda: FiniteDifferences(5),
    "differences 3-D": lambda: FiniteDifferences((3, 2, 4)),
    "differences of colours": lambda: FiniteDifferences((3, 4), channels=3),
    "differences of one point": lambda: FiniteDifferences((1, 1, 1)),
    "complex differences": lambda: FiniteDifferences((3, 4), dtype=complex),
    "symmetric gradient": lambda: SymmetricGradient((3, 4)),
    "symmetric gradient 3-D": lambda: SymmetricGradient((2, 3, 2)),
    "symmetric gradient of colours": lambda: SymmetricGradient((2, 3), channels=2),
    "part of several unknowns": lambda: split_unknowns(2, (2, 3), 4)[1],
    "differences of a part and the rest": lambda: (lambda u, w: FiniteDifferences((2, 3)) @ u - w)(
        *split_unknowns((2, 3), (2, 2, 3))
    ),
    "matrix on complex arrays": lambda: as_operator(MATRIX).of_pairs(),
    "differences on complex arrays": lambda: FiniteDifferences((3, 2), channels=2).of_pairs(),
    "identity": lambda: Identity((3, 2)),
    "diagonal": lambda: Diagonal([[1.0, -3.0], [0.0, 2.0]]),
    "complex diagonal": lambda: Diagonal([1.0 + 2.0j, -3.0j]),
    "real diagonal of complex": lambda: Diagonal([1.0, -2.0], dtype=complex),
    **{
        f"{name} convolution, {boundary}": lambda kernel=kernel, boundary=boundary: Convolution(
            kernel, (4, 5), boundary
        )
        for name, kernel in (("skew", SKEW), ("even", EVEN))
        for boundary in ("periodic", "zero", "reflect")
    },
    "convolution of colours": lambda: Convolution(SKEW, (4, 3, 2), "reflect"),
    "complex convolution": lambda: Convolution(EVEN, (4, 3), "periodic", dtype=complex),
    "fourier": lambda: Fourier((3, 4)),
    "fourier samples": lambda: Fourier((3, 4), MASK),
    "fourier samples of real x": lambda: Fourier((3, 4), MASK, dtype=float),
    "no fourier samples": lambda: Fourier(4, np.zeros(4, bool)),
    "wavelet": lambda: wavelet((8, 4), "db2", 1),
    "wavelet, odd lengths": lambda: wavelet((7, 3), "db3", 2),
    "complex wavelet": lambda: wavelet(8, "sym4", 2, dtype=complex),
    "stack": lambda: Stack(FiniteDifferences((3, 4)), Identity((3, 4)), MATRIX, scales=[1.0, -0.5, 2.0]),
    "stack of grids": lambda: Stack(FiniteDifferences((9, 9)), Identity((9, 9)), scales=[1.0, 3.0]),
    "sum": lambda: Convolution(SKEW, (3, 4)) + 2.0 * Identity(12) - Diagonal(np.arange(12.0)),
    "composition": lambda: as_operator(MATRIX) @ FiniteDifferences((3, 4)).T @ FiniteDifferences((3, 4)),
    "scaled": lambda: -3.0 * FiniteDifferences((3, 4)),
    "transposed": lambda: Convolution(SKEW, (4, 5), "zero").T,
    "large composition": lambda: Convolution(EVEN / 20.0, (9, 9)) @ FiniteDifferences((9, 9)).T,
}


def matrix_of(B):
    """All columns, by forward products alone."""
    return (
        np.array([B.forward(unit.reshape(B.x_shape)).ravel() for unit in np.eye(B.shape[1])]).reshape(*B.shape[::-1]).T
    )


@gathered("make", MADE.values(), ids=MADE.keys())
def test_adjoints_norms_symbols_and_roundings_are_those_of_the_matrix(make):
    B = make()
    M, rng = matrix_of(B), np.random.default_rng(3)
    assert not is_own_code(B) and B.norm_at_hand
    back = np.array([B.adjoint(unit.reshape(B.y_shape)).ravel() for unit in np.eye(B.shape[0])]).reshape(B.shape)
    np.testing.assert_allclose(back, M, atol=1e-14 * (1.0 + np.abs(M).max(initial=0.0)))
    true = np.linalg.svd(M, compute_uv=False)
    largest = true.max(initial=0.0)
    assert largest * (1.0 - 1e-15) <= B.norm.upper, "an upper bound"
    assert B.norm.estimate <= largest * (1.0 + 1e-12) + 1e-300
    x, y = rng.standard_normal(B.x_shape), rng.standard_normal(B.y_shape)
    kept_x, kept_y = x.copy(), y.copy()
    error = np.linalg.norm(B.forward(x).ravel() - M @ x.ravel())
    assert error <= (B.product_error + 1e-15 * largest) * np.linalg.norm(x) * 2.0
    assert B.product_error <= 1e-12 * max(B.norm.upper, 1e-300)
    # Given memory is filled, whatever lies in it, strided or not, and arguments stay.
    for shape, product, v in ((B.y_shape, B.forward, x), (B.x_shape, B.adjoint, y)):
        out, strided = np.full(shape, 9.0), np.full((*shape, 2), 9.0)[..., 0]
        assert product(v, out) is out and product(v, strided) is strided
        np.testing.assert_array_equal(out, product(v))
        np.testing.assert_allclose(strided, out, rtol=1e-14, atol=1e-14)
        assert not np.shares_memory(product(v), v)
    assert np.array_equal(x, kept_x) and np.array_equal(y, kept_y)
    for positive in (False, True):
        exact = true[true > 1e-10] if positive else np.pad(true, (0, max(B.shape[1] - len(true), 0)))
        least = B.smallest_singular_value(positive)
        assert least.lower <= (exact.min() if exact.size else 0.0) * (1.0 + 1e-12) + 1e-13
    for basis in ("dct", "fft"):
        symbol = B.gram_symbol(basis)
        if symbol is not None:
            assert symbol.shape == B.x_shape
            gaps = np.linalg.eigvalsh(diagonal_in(basis, symbol) - M.T @ M)
            assert gaps.min() >= -1e-12 * (1.0 + largest**2)


def diagonal_in(basis, symbol):
    """The matrix that is diagonal in a basis of the grid."""
    units = np.eye(symbol.size).reshape(-1, *symbol.shape)
    return np.array([from_coordinates(symbol * to_coordinates(unit, basis), basis).ravel() for unit in units]).T


EXACT = [
    name
    for name in MADE
    if name.split(",")[0] not in ("skew convolution", "even convolution", "convolution of colours")
]
EXACT = [name for name in EXACT if not name.startswith(("large", "symmetric"))]
EXACT += ["skew convolution, periodic", "even convolution, periodic", "even convolution, reflect"]


@gathered("name", EXACT)
def test_norms_that_are_said_to_be_exact_are_tight(name):
    B = MADE[name]()
    largest = np.linalg.norm(matrix_of(B), 2) if min(B.shape) else 0.0
    assert B.norm.upper == pytest.approx(largest, rel=1e-9, abs=1e-300)
    assert name == "stack of grids" or B.norm.estimate == pytest.approx(largest, rel=1e-9, abs=1e-300)


def test_exact_symbols_are_the_spectrum():
    for B, basis in (
        (FiniteDifferences((3, 2, 4)), "dct"),
        (FiniteDifferences((3, 4), channels=2), "dct"),
        (Convolution(SKEW, (4, 5)), "fft"),
        (Convolution(EVEN, (4, 5), "reflect"), "dct"),
        (Fourier((3, 4), MASK, dtype=float), "fft"),
        (Stack(FiniteDifferences((4, 5)), Convolution(EVEN, (4, 5), "reflect"), scales=[2.0, 1.0]), "dct"),
    ):
        M = matrix_of(B)
        np.testing.assert_allclose(diagonal_in(basis, B.gram_symbol(basis)), M.T @ M, atol=1e-11)


# --- differences ------------------------------------------------------------------------------------------------


@gathered("shape", [(6,), (1,), (3, 4), (2, 3, 4), (3, 1, 2), (2, 3, 2, 2)])
def test_differences_are_those_of_numpy_the_last_axis_first(shape):
    for channels in (None, 1, 3):
        whole = shape if channels is None else (*shape, channels)
        x, D = RNG.standard_normal(whole), FiniteDifferences(shape, channels)
        found = D.forward(x)
        assert found.shape == (len(shape), *whole)
        for block, axis in enumerate(reversed(range(len(shape)))):
            ends = [(0, 0)] * x.ndim
            ends[axis] = (0, 1)
            np.testing.assert_array_equal(found[block], np.pad(np.diff(x, axis=axis), ends))


@gathered("shape", [(6,), (3, 4), (2, 3, 4), (1, 5, 1), (2, 3, 2, 2)])
def test_compiled_differences_have_the_bits_of_numpy(shape):
    kernels = load("products")
    for channels in (None, 3):
        D, width = FiniteDifferences(shape, channels), channels or 1
        x, y = RNG.standard_normal(D.x_shape), RNG.standard_normal(D.y_shape)
        y[:, 0] = 0.0
        image, pulled = np.full(D.y_shape, 9.0).ravel(), np.full(D.x_shape, 9.0).ravel()
        kernels.grid_forward(np.array(shape), width, 1.0, x.ravel(), image)
        kernels.grid_adjoint(np.array(shape), width, y.ravel(), pulled)
        assert image.tobytes() == D.forward(x).tobytes()
        assert pulled.tobytes() == D.adjoint(y).tobytes()
        kernels.grid_forward(np.array(shape), width, -1.0, x.ravel(), image)
        np.testing.assert_array_equal(image, -D.forward(x).ravel())


@gathered("B", [FiniteDifferences((4, 5, 3)), FiniteDifferences((4, 5), channels=3)])
def test_volumes_and_colours_are_solved_alike_with_and_without_compiling(B):
    # A costly f: its steps on the coupling are the compiled ones. A^T A = I, so that the dual is known.
    n, rng = B.shape[1], np.random.default_rng(2)
    A, b = np.linalg.qr(rng.standard_normal((n + 5, n)))[0], rng.standard_normal(n + 5)
    f = ss.functions.LeastSquares(A, b, x_shape=B.x_shape)
    sets = {"X": ss.domains.FullSpace(B.x_shape), "Y": ss.domains.Box(-0.3, 0.3, shape=B.y_shape)}
    problem = ss.SaddleProblem(f=f, g=ss.functions.Zero(), B=B, **sets)
    results = []
    for on in (False, True):
        with jit(on):
            results.append(ss.solve(problem, tol=1e-8))
    assert all(result.success for result in results)
    # The truth by other means: projected gradients on the dual, |A^T b - D^T y|^2 / 2 over the box.
    D, y, c = scipy.sparse.csr_array(matrix_of(B)), np.zeros(B.shape[0]), A.T @ b
    ahead, t = y, 1.0
    for _ in range(1500):
        new = np.clip(ahead + D @ (c - D.T @ ahead) / B.norm.upper**2, -0.3, 0.3)
        t, before = 0.5 + math.sqrt(0.25 + t * t), t
        y, ahead = new, new + (before - 1.0) / t * (new - y)
    for result in results:
        np.testing.assert_allclose(result.x.ravel(), c - D.T @ y, atol=3e-4)


def test_symmetric_gradients_vanish_for_constants_and_are_symmetric_parts():
    E, shape = SymmetricGradient((4, 5)), (4, 5)
    assert not E.forward(np.ones(E.x_shape)).any()
    w = RNG.standard_normal(E.x_shape)
    # Axis 1 of the picture is component 0, as in FiniteDifferences.
    d = [lambda v: np.diff(v, axis=1, prepend=v[:, :1]), lambda v: np.diff(v, axis=0, prepend=v[:1])]
    full = np.array([[d[a](w[b]) for b in range(2)] for a in range(2)])
    symmetric = 0.5 * (full + full.transpose(1, 0, 2, 3))
    found = E.forward(w)
    assert found.shape == (3, *shape)
    np.testing.assert_allclose(found[2], math.sqrt(2.0) * symmetric[0, 1], atol=1e-14)
    assert np.sum(found**2) == pytest.approx(np.sum(symmetric**2), rel=1e-12)


# --- convolutions, Fourier samples, wavelets -----------------------------------------------------------------------

WORDS = {"periodic": "wrap", "zero": "constant", "reflect": "reflect"}


@gathered("boundary", WORDS)
def test_convolutions_are_those_of_scipy(boundary):
    for kernel, shape in ((SKEW, (4, 5)), (RNG.standard_normal((3, 4)), (7, 4)), (RNG.standard_normal(5), (6,))):
        x = RNG.standard_normal(shape)
        expected = scipy.ndimage.convolve(x, kernel, mode=WORDS[boundary])
        np.testing.assert_allclose(Convolution(kernel, shape, boundary).forward(x), expected, atol=1e-13)
    colours, B = RNG.standard_normal((4, 5, 3)), Convolution(SKEW, (4, 5, 3), boundary)
    each = [scipy.ndimage.convolve(colours[..., c], SKEW, mode=WORDS[boundary]) for c in range(3)]
    np.testing.assert_allclose(B.forward(colours), np.stack(each, axis=-1), atol=1e-13)


def test_fourier_samples_are_those_of_numpy():
    z = RNG.standard_normal((3, 4)) + 1j * RNG.standard_normal((3, 4))
    for mask in (None, MASK):
        F, real = Fourier((3, 4), mask), Fourier((3, 4), mask, dtype=float)
        chosen = ... if mask is None else mask
        np.testing.assert_allclose(F @ z, np.fft.fftn(z, norm="ortho")[chosen], atol=1e-14)
        np.testing.assert_allclose(
            to_complex(real.forward(z.real)), np.fft.fftn(z.real, norm="ortho")[chosen], atol=1e-14
        )
        back = F.T @ (F @ z)
        filled = np.where(np.ones((3, 4), bool) if mask is None else mask, np.fft.fftn(z, norm="ortho"), 0.0)
        np.testing.assert_allclose(back, np.fft.ifftn(filled, norm="ortho"), atol=1e-14)


@gathered("name", ["haar", "db2", "sym4", "coif1"])
def test_wavelets_are_those_of_pywavelets(name):
    pywt = need("pywt")
    x = RNG.standard_normal((16, 32))
    W = Wavelet(x.shape, name)
    assert W.levels == pywt.dwtn_max_level(x.shape, name)
    expected = pywt.ravel_coeffs(pywt.wavedecn(x, name, "periodization", W.levels))[0]
    np.testing.assert_allclose(W.forward(x), expected, atol=1e-12)
    np.testing.assert_allclose(W.adjoint(W.forward(x)), x, atol=1e-9)
    z = x[0] + 1j * x[1]
    np.testing.assert_allclose(
        Wavelet(32, name, 2, dtype=complex) @ z, Wavelet(32, name, 2) @ x[0] + 1j * (Wavelet(32, name, 2) @ x[1])
    )


def test_wavelets_need_their_package_and_an_orthogonal_one(monkeypatch):
    need("pywt")
    for wrong in ("bior2.2", "no wavelet"):
        with pytest.raises(InputError, match=r"^Wavelet: wavelet is .*expected an orthogonal one"):
            Wavelet(8, wrong)
    monkeypatch.setitem(sys.modules, "pywt", None)
    with pytest.raises(MissingExtraError, match=r"saddleslide\[wavelets\]"):
        Wavelet(8)


# --- algebra ----------------------------------------------------------------------------------------------------


def test_algebra_is_that_of_matrices():
    A, C = RNG.standard_normal((4, 6)), RNG.standard_normal((6, 4))
    a, c = as_operator(A), as_operator(C)
    x = RNG.standard_normal(6)
    for found, expected in (
        (a @ c, A @ C), (c @ a, C @ A), (a + c.T, A + C.T), (a - c.T, A - C.T), (2.0 * a, 2 * A), (a * 2, 2 * A),
        (-a, -A), (a.T, A.T), (np.float64(3.0) * a, 3 * A), (2.0 * (a + a) @ (c @ a), 4 * A @ C @ A),
    ):  # fmt: skip
        assert isinstance(found, ss.operators.Operator) and found.shape == expected.shape
        np.testing.assert_allclose(matrix_of(found), expected, atol=1e-12)
        assert found.norm.upper >= np.linalg.norm(expected, 2) * (1.0 - 1e-14)
    assert a.T.T is a
    np.testing.assert_allclose(a @ x, A @ x)
    D = FiniteDifferences((2, 3))
    assert (D @ x).shape == (12,) and (D @ x.reshape(2, 3)).shape == (2, 2, 3)
    for wrong in ("text", [1.0], 3.0):
        with pytest.raises(TypeError):
            a @ wrong
    for wrong in (1j, True, np.ones(6)):
        with pytest.raises(TypeError):
            wrong * a
    for wrong, message in (
        (lambda: a @ a, "A @ B: .*expected equal sizes"),
        (lambda: a + c, r"A \+ B: .*expected equal sizes"),
        (lambda: a @ np.ones(5), r"B @ x: received shape \(5,\).*expected real numbers of shape \(6,\)"),
        (lambda: a @ (1j * x), "B @ x: .*complex128; expected real"),
        (lambda: math.inf * a, "factor is inf"),
        (lambda: Stack(), "no operators"),
        (lambda: Stack(a, c), "part 2 takes arrays"),
        (lambda: Stack(a, scales=[1.0, 2.0]), "scales"),
        (lambda: Diagonal(2.0), "one number"),
        (lambda: Convolution(np.ones(9), (4,)), "no larger than"),
        (lambda: Fourier(4, [1, 0, 1, 0]), "expected True or False"),
        (lambda: FiniteDifferences((3, 0)), "lengths of at least 1"),
        (lambda: FiniteDifferences((3, 4), channels=0), "channels is 0"),
        (lambda: Identity(3, dtype=str), "expected float or complex"),
    ):
        with pytest.raises(InputError, match=message):
            wrong()


def test_what_operators_do_not_know_is_left_to_the_other_side():
    class Term:
        def __matmul__(self, other):
            return "after", other

        def __rmatmul__(self, other):
            return "before", other

    B = Identity(2)
    assert Term() @ B == ("after", B) and B @ Term() == ("before", B)


def test_stacks_give_views_of_their_blocks():
    B = Stack(FiniteDifferences((2, 3)), np.ones((2, 6)), scales=[2.0, 1.0])
    y = np.zeros(B.y_shape)
    field, sums = B.split(y)
    assert (field.shape, sums.shape) == ((2, 2, 3), (2,))
    field[...], sums[...] = 1.0, 2.0
    assert y.tolist() == [1.0] * 12 + [2.0] * 2


def test_own_code_inside_stays_own_code_and_is_asked_as_a_whole():
    asked = []

    def product(v):
        asked.append(v.shape)
        return 2.0 * v

    own = as_operator((product, product), 100, 100)
    made = {
        "composition": Diagonal(np.arange(100.0)) @ own,
        "sum": own + Identity(100),
        "stack": Stack(own, Identity(100)),
        "scaled": 2.0 * own,
        "transposed": own.T,
    }
    for B in made.values():
        assert is_own_code(B) and not B.norm_at_hand and B.norm_takes_products
        # Nothing is asked to learn about rounding.
        assert B.product_error == 0.0
    assert not asked
    largest = np.linalg.norm(matrix_of(made["composition"]), 2)
    assert largest <= made["composition"].norm.upper <= 1.1 * largest
    wrong = Stack(as_operator((lambda v: 2.0 * v, lambda v: 2.1 * v), 4, 4), Identity(4))
    assert wrong.adjoint_test.bound > 0.1
    declared = as_operator(made["sum"], norm=3.0)
    assert declared.norm_at_hand and not declared.norm_takes_products and not made["sum"].norm_at_hand
    assert (2.0 * as_operator(own, norm=2.0)).norm.upper == pytest.approx(4.0)


# --- complex numbers ----------------------------------------------------------------------------------------------

C = RNG.standard_normal((5, 6)) + 1j * RNG.standard_normal((5, 6))
Z, V = RNG.standard_normal(6) + 1j * RNG.standard_normal(6), RNG.standard_normal(5) + 1j * RNG.standard_normal(5)
COMPLEX = {
    "dense": lambda: (C, {}),
    "sparse": lambda: (scipy.sparse.csr_array(C), {}),
    "coordinates": lambda: (scipy.sparse.coo_array(C), {}),
    "scipy operator": lambda: (scipy.sparse.linalg.aslinearoperator(C), {}),
    "pylops": lambda: (need("pylops").MatrixMult(C, dtype="complex128"), {}),
    "callables": lambda: (
        (lambda z: C @ z, lambda v: C.conj().T @ v), {"x_shape": 6, "y_shape": 5, "dtype": complex},
    ),
}  # fmt: skip


@gathered("form", COMPLEX.values(), ids=COMPLEX.keys())
def test_complex_operators_act_on_pairs(form):
    given, named = form()
    B = as_operator(given, **named)
    assert (B.x_shape, B.y_shape, B.x_dtype, B.y_dtype) == ((6, 2), (5, 2), complex, complex)
    np.testing.assert_allclose(to_complex(B.forward(to_real(Z))), C @ Z, rtol=1e-13)
    np.testing.assert_allclose(to_complex(B.adjoint(to_real(V))), C.conj().T @ V, rtol=1e-13)
    np.testing.assert_allclose(B @ Z, C @ Z, rtol=1e-13)
    assert np.vdot(B.forward(to_real(Z)), to_real(V)) == pytest.approx(np.vdot(V, C @ Z).real)
    assert B.norm.upper == pytest.approx(np.linalg.norm(C, 2), rel=1e-9)
    # Real x beside complex data, by dtype and by the shapes of the sets.
    shapes = {"x_shape": 6, "y_shape": 5} if named else {}
    for real in (
        as_operator(given, **shapes, dtype=(float, complex)),
        None if named else as_operator(given, x_shape=(6,), y_shape=(5, 2)),
    ):
        if real is not None:
            assert (real.x_shape, real.y_shape, real.x_dtype, real.y_dtype) == ((6,), (5, 2), float, complex)
            np.testing.assert_allclose(to_complex(real.forward(Z.real)), C @ Z.real, rtol=1e-13)
            np.testing.assert_allclose(real.adjoint(to_real(V)), (C.conj().T @ V).real, rtol=1e-13)


def test_shapes_beside_a_dtype_are_those_of_complex_arrays():
    B = as_operator(C, x_shape=(2, 3), y_shape=(5, 1), dtype=complex)
    assert (B.x_shape, B.y_shape) == ((2, 3, 2), (5, 1, 2))
    np.testing.assert_allclose(B @ Z.reshape(2, 3), (C @ Z).reshape(5, 1), rtol=1e-13)
    assert as_operator(C, (2, 3, 2), (5, 2)).x_shape == (2, 3, 2)
    real = as_operator(MATRIX, dtype=complex)
    z = RNG.standard_normal(12) + 1j * RNG.standard_normal(12)
    np.testing.assert_allclose(real @ z, MATRIX @ z, rtol=1e-13)
    for wrong in (
        lambda: as_operator(C, dtype=float),
        lambda: as_operator(C, dtype=(complex, float)),
        lambda: as_operator(C, dtype="words"),
        lambda: as_operator(C, x_shape=(7,), dtype=complex),
        lambda: as_operator(B, dtype=float),
        lambda: as_operator((lambda x: x, lambda y: y), 3, 3, dtype=complex, like=need("torch").ones(1)),
        lambda: to_complex(np.ones(3)),
        lambda: ss.SaddleProblem(
            f=ss.functions.Zero(), g=ss.functions.Zero(), B=C, X=ss.domains.FullSpace(6), Y=ss.domains.FullSpace(5)
        ),
    ):
        with pytest.raises(InputError):
            wrong()


def test_complex_code_is_told_how_it_is_taken():
    with pytest.raises(InputError, match=r"as_operator\(..., dtype=complex\)"):
        as_operator((lambda x: 1j * x, lambda y: y), 2, 2).forward(np.ones(2))


def test_pairs_are_there_and_back_without_a_copy():
    z = RNG.standard_normal((2, 3)) + 1j * RNG.standard_normal((2, 3))
    assert np.shares_memory(to_real(z), z) and np.array_equal(to_complex(to_real(z)), z)
    assert np.array_equal(to_complex(to_real(z.T)), z.T) and to_real(1j).shape == (2,)


# --- PyLops -----------------------------------------------------------------------------------------------------


def test_pylops_dims_are_shapes_unless_flat_ones_are_given():
    pylops = need("pylops")
    op = pylops.FirstDerivative((4, 5), axis=0, kind="forward")
    B = as_operator(op)
    assert (B.x_shape, B.y_shape) == ((4, 5), (4, 5))
    x = RNG.standard_normal((4, 5))
    np.testing.assert_allclose(B.forward(x).ravel(), op.matvec(x.ravel()))
    assert as_operator(op, x_shape=20).y_shape == (20,)
    flat = ss.functions.LeastSquares(op, np.ones(20))
    assert flat.shape == (20,) and ss.functions.LeastSquares(op, np.ones((4, 5))).shape == (4, 5)
    problem = ss.SaddleProblem(
        f=flat, g=ss.functions.Zero(), B=op, X=ss.domains.FullSpace(20), Y=ss.domains.Box(-1.0, 1.0, shape=20)
    )
    assert (problem.coupling.x_shape, problem.coupling.y_shape) == ((20,), (20,))
    assert ss.solve(problem, tol=1e-3, max_steps=3).x.shape == (20,)


def test_complex_pylops_operators_keep_their_dims():
    pylops = need("pylops")
    op = pylops.signalprocessing.FFT2D((4, 6), dtype="complex128", norm="ortho")
    B, z = as_operator(op), RNG.standard_normal((4, 6)) + 1j * RNG.standard_normal((4, 6))
    assert (B.x_shape, B.y_shape) == ((4, 6, 2), (4, 6, 2))
    np.testing.assert_allclose(B @ z, np.fft.fft2(z, norm="ortho"), atol=1e-13)
    ss.operators.check_adjoint(B)
    real = as_operator(op, dtype=(float, complex))
    assert real.x_shape == (4, 6)
    ss.operators.check_adjoint(real)
    assert B.norm.upper == pytest.approx(1.0, rel=0.05)


# --- elsewhere --------------------------------------------------------------------------------------------------


@gathered("name", [name for name in MADE if "convolution, " not in name])
def test_products_elsewhere_are_those_on_the_host(name):
    need("torch")
    kind, B = as_kind("torch", "like"), MADE[name]()
    x, y = RNG.standard_normal(B.x_shape), RNG.standard_normal(B.y_shape)
    for product, v in ((B.forward, x), (B.adjoint, y)):
        np.testing.assert_allclose(product(kind.place(v)).host(), product(v), atol=1e-12)
