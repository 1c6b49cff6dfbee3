"""Arrays of PyTorch, JAX and CuPy: the same numbers, the same calls, results of the same kind."""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np
import pytest

import saddleslide as ss
from accelerated import Accelerated, Cupy
from saddleslide.arrays.kinds import NUMPY, ArrayKind, as_kind, kind_of, origin_of, to_host
from saddleslide.certificates import residuals
from saddleslide.errors import CheckpointError, InputError, MissingExtraError
from saddleslide.functions import minimum
from support import need


@pytest.fixture(autouse=True)
def _no_factors(monkeypatch):
    """Factors are made of NumPy's matrices alone, and end runs earlier: steps are compared without them."""
    monkeypatch.setattr(residuals, "factor_of", lambda *given: None)
    monkeypatch.setattr(minimum, "factor_of", lambda *given: None)


LIBRARIES = ["torch", "jax"]
# One operation takes JAX as long as a whole step takes PyTorch: less accuracy and fewer steps show the same.
TOL, STEPS = {"torch": 1e-8, "jax": 1e-3}, {"torch": 1000, "jax": 3}
rng = np.random.default_rng(0)
A, b, B = rng.standard_normal((12, 5)), rng.standard_normal(12), rng.standard_normal((3, 5))


def there(library, array):
    """An array of the library, made by its own means, in double precision."""
    module = need(library)
    if library == "torch":
        return module.tensor(array, dtype=module.float64)
    with module.enable_x64(True):
        return module.numpy.asarray(array, dtype="float64")


def problem(A, b, B, low, high):
    return ss.SaddleProblem(
        f=ss.functions.LeastSquares(A, b, ridge=0.1),
        g=ss.functions.Quadratic(1.0) + ss.functions.Linear(0.1),
        B=B,
        X=ss.domains.Box(low, high),
        Y=ss.domains.FullSpace(3),
    )


LOW, HIGH = -0.3 * np.ones(5), 0.4 * np.ones(5)


def is_kind(array, library):
    return kind_of(array).library == library and "float64" in str(array.dtype) and array.shape in [(5,), (3,)]


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_problem_on_other_arrays_takes_the_same_steps_and_comes_back_as_them(library):
    ours = problem(A, b, B, LOW, HIGH)
    theirs = problem(*(there(library, part) for part in (A, b, B, LOW, HIGH)))
    assert theirs.arrays.library == library and ours.arrays == NUMPY
    for options in ({"method": "adaptive"}, {}):
        first, second = (ss.solve(one, tol=TOL[library], **options) for one in (ours, theirs))
        assert second.success and first.calls.f == second.calls.f
        assert isinstance(first.x, np.ndarray)
        assert is_kind(second.x, library) and is_kind(second.y, library)
        assert to_host(second.x) == pytest.approx(first.x, abs=1e-9)
    plan = ss.plan(theirs, order="fgB", loops=(4, 2, 3))
    assert is_kind(ss.run(theirs, plan).x, library)
    # A start, and a point to judge, may be theirs too.
    assert ss.certify(theirs, second.x, second.y).gap <= TOL[library]
    assert ss.solve(theirs, tol=TOL[library], start=(second.x, second.y)).success


@pytest.mark.parametrize("library", LIBRARIES)
def test_products_with_their_matrices_run_there(library, monkeypatch):
    coupling = ss.operators.as_operator(there(library, B))
    assert kind_of(coupling.matrix).library == library
    seen = []
    wrap = ArrayKind.wrap
    monkeypatch.setattr(ArrayKind, "wrap", lambda kind, array: seen.append(kind) or wrap(kind, array))
    assert coupling.forward(np.ones(5)) == pytest.approx(B.sum(axis=1), rel=1e-14)
    assert coupling.adjoint(np.ones(3), np.empty(5)) == pytest.approx(B.sum(axis=0), rel=1e-14)
    assert [kind.library for kind in seen] == [library, library]
    assert coupling.norm.upper == pytest.approx(np.linalg.norm(B, 2), rel=1e-9)
    image = ss.operators.as_operator(there(library, np.ones((3, 4))), x_shape=(2, 2))
    assert image.forward(np.ones((2, 2))).shape == (3,)


@pytest.mark.parametrize("library", LIBRARIES)
def test_callables_get_their_own_arrays(library):
    need(library)
    matrix, kinds = there(library, B), set()

    def forward(x):
        kinds.add((kind_of(x).library, str(x.dtype).rpartition(".")[2]))
        return matrix @ x

    def value_and_gradient(x):
        kinds.add((kind_of(x).library, str(x.dtype).rpartition(".")[2]))
        return 0.5 * (x @ x), x

    pair = ss.operators.as_operator((forward, lambda y: matrix.T @ y), (5,), (3,), like=library)
    f = ss.functions.from_callable(value_and_gradient, strong_convexity=1.0, like=matrix)
    box = ss.domains.Box(1.0, 2.0, shape=3)
    made = ss.SaddleProblem(f=f, g=ss.functions.Zero(), B=pair, X=ss.domains.FullSpace(5), Y=box)
    result = ss.solve(made, tol=1e-8)
    assert result.status is ss.Status.MET_AS_DECLARED and is_kind(result.x, library)
    assert kinds == {(library, "float64")}
    plain = ss.SaddleProblem(f=ss.functions.Quadratic(1.0), g=ss.functions.Zero(), B=B, X=made.X, Y=box)
    assert to_host(result.x) == pytest.approx(ss.solve(plain, tol=1e-8).x, abs=1e-3)


@pytest.mark.parametrize("library", LIBRARIES)
def test_single_precision_is_raised_and_what_was_passed_is_left_alone(library):
    module = need(library)
    single = module.ones((3, 5)) if library == "torch" else module.numpy.ones((3, 5))
    assert "float32" in str(single.dtype)
    coupling = ss.operators.as_operator(single)
    assert "float64" in str(coupling.matrix.dtype) and "float32" in str(single.dtype)
    with pytest.raises(InputError, match="NaN"):
        ss.operators.as_operator(single * float("nan"))


@pytest.mark.parametrize("library", LIBRARIES)
def test_gallery_problems_keep_the_kind(library):
    limit = {"tol": TOL[library], "max_steps": STEPS[library]}
    game = ss.gallery.matrix_game(there(library, [[3.0, 0.0], [1.0, 2.0]]))
    result = ss.solve(game, **limit)
    assert kind_of(result.x).library == library
    host = ss.solve(ss.gallery.matrix_game([[3.0, 0.0], [1.0, 2.0]]), **limit)
    assert to_host(result.x) == pytest.approx(host.x, abs=1e-9)
    if library == "torch":
        assert game.read(result).value == pytest.approx(1.5, abs=1e-7)
    picture = np.array([[0.0, 0.1, 0.9, 1.0]] * 4)
    known = (need(library).numpy if library == "jax" else need(library)).ones((4, 4)) > 0.5
    cases = {
        "denoise": lambda p: ss.gallery.denoise(p, 0.1),
        "inpaint": lambda p: ss.gallery.inpaint(p, known if kind_of(p) != NUMPY else np.ones((4, 4), bool), 0.1),
        "transport": lambda p: ss.gallery.transport(p, [0.25] * 4, [0.25] * 4, regularisation=0.1),
        "inverse": lambda p: ss.gallery.lp_inverse(p, np.ones(4), weight=1.0, ridge=0.1),
        "constrained": lambda p: ss.gallery.constrained(ss.functions.Quadratic(1.0), p, p @ p[0]),
    }
    for name in ["inverse"] if library == "jax" else cases:
        make = cases[name]
        with ArrayKind(library).scope():
            theirs = make(there(library, picture))
        some = {"tol": 1e-6, "max_steps": min(20, STEPS[library])}
        found = ss.solve(theirs, **some)
        assert kind_of(found.x).library == library, name
        # Scales of rows are made of matrices on the host alone: the same point to the target, by other steps.
        assert to_host(found.x) == pytest.approx(ss.solve(make(picture), **some).x, abs=1e-6), name
        assert all(isinstance(array, np.ndarray) for array in theirs.read(found).arrays().values())


def test_two_libraries_in_one_problem_are_refused():
    need("torch"), need("jax")
    with pytest.raises(InputError, match="arrays of torch and of jax; expected one kind"):
        ss.SaddleProblem(
            f=ss.functions.LeastSquares(there("torch", A), b),
            g=ss.functions.Zero(),
            B=there("jax", B),
            X=ss.domains.FullSpace(5),
            Y=ss.domains.FullSpace(3),
        )


def test_two_libraries_in_one_gallery_problem_or_function_are_refused():
    need("torch"), need("jax")
    half = there("jax", [0.5, 0.5])
    for make in (
        lambda: ss.gallery.transport(there("torch", np.eye(2)), half, half),
        lambda: ss.gallery.matrix_game(there("torch", np.eye(2)), row=ss.functions.Linear(half)),
        lambda: ss.functions.LeastSquares(there("torch", np.eye(2)), half),
    ):
        with pytest.raises(InputError, match="arrays of torch and of jax; expected one kind"):
            make()


def test_the_kind_of_results_can_be_asked_for():
    torch = need("torch")
    asked = replace(problem(A, b, B, LOW, HIGH), arrays="torch")
    assert isinstance(ss.solve(asked, tol=1e-6).x, torch.Tensor)
    back = replace(problem(A, b, there("torch", B), LOW, HIGH), arrays="numpy")
    assert isinstance(ss.solve(back, tol=1e-6).x, np.ndarray)
    with pytest.raises(InputError, match="arrays is 'tensor'; expected one of numpy, torch, jax, cupy"):
        replace(asked, arrays="tensor")


def test_tensors_that_carry_gradients_or_are_sparse():
    torch = need("torch")
    parts = [there("torch", part).requires_grad_() for part in (A, b, B, LOW, HIGH)]
    carried, plain = ss.solve(problem(*parts), tol=1e-8), ss.solve(problem(A, b, B, LOW, HIGH), tol=1e-8)
    assert not carried.x.requires_grad and carried.calls == plain.calls
    assert carried.x.numpy() == pytest.approx(plain.x, abs=1e-12)
    assert all(part.requires_grad and part.grad is None for part in parts)
    assert to_host(torch.ones(2, requires_grad=True)).tolist() == [1.0, 1.0]
    assert to_host(torch.ones(2, dtype=torch.bfloat16)).dtype == np.float64
    with pytest.raises(InputError, match="expected a dense one"):
        ss.operators.as_operator(torch.eye(3).to_sparse())


def test_arrays_on_an_accelerator_go_there_and_come_back(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", Cupy)
    result = ss.solve(problem(A, b, Accelerated(B, device=1), LOW, HIGH), tol=1e-8)
    assert isinstance(result.x, Accelerated) and result.x.number == 1
    assert result.x.get() == pytest.approx(ss.solve(problem(A, b, B, LOW, HIGH), tol=1e-8).x, abs=1e-9)


def test_other_libraries_of_the_array_api_are_taken(monkeypatch):
    class Strict:
        __name__ = "strict_arrays"
        float64 = np.float64

        @staticmethod
        def asarray(values, dtype, device, copy):
            assert copy and device == "cpu"
            return StrictArray(np.array(values, dtype=dtype))

    namespace = Strict()

    class StrictArray:
        __module__ = "strict_arrays"
        device = "cpu"

        def __init__(self, values):
            self.values = values

        def __array_namespace__(self):
            return namespace

        def __dlpack__(self, **options):
            return self.values.__dlpack__(**options)

        def __dlpack_device__(self):
            return self.values.__dlpack_device__()

    monkeypatch.setitem(sys.modules, "strict_arrays", namespace)
    given = StrictArray(np.ones(3))
    kind = kind_of(given)
    assert kind == ArrayKind("strict_arrays", "cpu") and to_host(given).tolist() == [1.0, 1.0, 1.0]
    assert isinstance(kind.wrap(np.ones(2)), StrictArray)


def test_kinds_by_name():
    assert as_kind(None, "like") == NUMPY and origin_of({"a": [1.0, np.ones(2)]}) == NUMPY
    with pytest.raises(InputError, match="like is 'x'"):
        as_kind("x", "like")


def test_a_missing_library_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(MissingExtraError, match="cupy is not installed"):
        as_kind("cupy", "like")


@pytest.mark.parametrize("library", LIBRARIES)
def test_runs_on_other_arrays_can_be_saved_and_resumed(library, tmp_path):
    made = problem(*(there(library, part) for part in (A, b, B, LOW, HIGH)))
    settings = {"tol": 1e-8}
    ss.solve(made, **settings, max_steps=2, checkpoint=tmp_path / "run.npz")
    resumed = ss.resume(tmp_path / "run.npz", made, max_steps=1000)
    assert is_kind(resumed.x, library)
    assert (to_host(resumed.x) == to_host(ss.solve(made, **settings).x)).all()
    other = problem(*(there(library, part) for part in (A, b, 2.0 * B, LOW, HIGH)))
    with pytest.raises(CheckpointError, match="belongs to another problem"):
        ss.resume(tmp_path / "run.npz", other)
