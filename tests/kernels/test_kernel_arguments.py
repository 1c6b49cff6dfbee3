"""What kernels are handed: nothing looks at the types of arrays once a kernel is compiled, so the tests do."""

import importlib
import os
import subprocess
import sys
import time

import numpy as np
import pytest
import scipy.sparse
from numba import typeof, types

import saddleslide as ss
from saddleslide.kernels import building, switch
from saddleslide.kernels.arguments import Dense, Differences, Pairs, Rows, Sparse
from saddleslide.kernels.switch import Kernels, clock, compile_seconds, jit
from saddleslide.methods.sliding import innermost
from saddleslide.methods.sliding.bilinear import Stage, bilinear_recursion
from saddleslide.methods.sliding.view import View
from saddleslide.operators.explicit import Matrix
from saddleslide.operators.sparse import SparseRows
from saddleslide.oracles.oracles import Oracles

pytestmark = pytest.mark.usefixtures("compiled")

F, D = ss.functions, ss.domains
MODULES = ("compiled", "products", "passes", "primal_dual", "sweeps", "pictures", "grids")
MATRICES, PICTURES = [{"coupling": Dense}, {"coupling": Sparse}], [{"coupling": Differences}]
COLUMNS = [{"columns": "uint16"}, {"columns": "uint32"}]
# What kernels are compiled for, where it is not one thing alone.
KINDS = {
    "sweeps.sweep_operator": MATRICES,
    "sweeps.sweep_anchored": MATRICES + PICTURES,
    "sweeps.primal_dual_sweep": MATRICES,
    "pictures.picture_sweep": PICTURES,
    "pictures.difference_sweep": PICTURES,
    "passes.pair_up": COLUMNS,
}
PASSES = ("product", "two_products", "there_and_back", "two_grams")
KINDS |= {f"passes.{name}": [width | {"rows": rows} for width in COLUMNS for rows in (Rows, Pairs)] for name in PASSES}


def all_kernels():
    """Every kernel by its name, with each of the kinds that it is compiled for."""
    found = {}
    for module in MODULES:
        for name, made in vars(importlib.import_module(f"saddleslide.kernels.{module}")).items():
            # Some are imported by others.
            if hasattr(made, "nogil") and made.py_func.__module__ == f"saddleslide.kernels.{module}":
                found |= {
                    called_for(f"{module}.{name}", kinds): (made, kinds)
                    for kinds in KINDS.get(f"{module}.{name}", [{}])
                }
    return found


def called_for(name, kinds):
    return name, frozenset(kinds.items())


def fits(found, stated):
    """Whether an argument of one type can be read as another: write-protected arrays where nothing is written."""
    if isinstance(stated, types.BaseTuple):
        same = getattr(found, "instance_class", tuple) is getattr(stated, "instance_class", tuple)
        return same and all(fits(*pair) for pair in zip(found, stated, strict=True))
    if isinstance(stated, types.Array):
        kind = (found.dtype, found.ndim, found.layout) == (stated.dtype, stated.ndim, stated.layout)
        return kind and (found.mutable or not stated.mutable)
    return found == stated


@pytest.fixture
def called(monkeypatch):
    """Names of the kernels that a test calls; their arguments have the stated types."""
    compiled, seen = building.compile_kernel, set()

    def watched(made, **kinds):
        entry, signature = compiled(made, **kinds), building.signature_of(made, **kinds)
        name = f"{made.py_func.__module__.rpartition('.')[2]}.{made.py_func.__name__}"

        def call(*given):
            for value, stated in zip(given, signature.args, strict=True):
                assert fits(typeof(value), stated), f"{name}: {typeof(value)} for {stated}"
            seen.add(called_for(name, kinds))
            return entry(*given)

        return call

    monkeypatch.setattr(building, "compile_kernel", watched)
    switch.load.cache_clear()
    with jit(True):
        yield seen
    switch.load.cache_clear()


def test_a_kernel_takes_at_most_eight_arguments():
    assert all(len(building.signature_of(made, **kinds).args) <= 8 for made, kinds in all_kernels().values())


def test_every_part_of_a_kernel_says_how_it_rounds():
    """What says nothing is rounded like the first kernel that it is compiled with: bits would depend on their order."""
    for module in (*MODULES, "base_case"):
        parts = vars(importlib.import_module(f"saddleslide.kernels.{module}"))
        silent = [
            name for name, made in parts.items() if "fastmath" not in getattr(made, "targetoptions", ["fastmath"])
        ]
        assert not silent, (module, silent)


def couplings():
    dense = np.random.default_rng(0).standard_normal((2 * 24, 24)) / 5.0
    return {
        "dense": Matrix(dense, x_shape=(4, 6), y_shape=(2, 4, 6)),
        "sparse": Matrix(scipy.sparse.csr_array(np.where(dense > 0.1, dense, 0.0)), (4, 6), (2, 4, 6)),
        "differences": ss.operators.FiniteDifferences((4, 6)),
    }


def sweep(B, betas=(0.0, 0.0), metric=None, primal_dual=False):
    """Two outermost steps of a plan with the coupling innermost."""
    q = F.Quadratic(1.0)
    problem = ss.SaddleProblem(f=q, g=q, B=B, X=D.FullSpace(B.x_shape), Y=D.Box(-1.0, 1.0, shape=B.y_shape))
    levels = ss.plan(problem, order="fgB", loops=(2, 1, 3)).schedule.levels
    view = View(problem, norms=(None if metric is None else metric.with_coupling(B), None), primal_dual=primal_dual)
    start = np.full(B.x_shape, 0.1), np.full(B.y_shape, 0.1)
    list(bilinear_recursion(Oracles(problem), Stage(levels, 1.0, *betas), start, view).steps())


def test_every_kernel_is_handed_what_it_states(called, monkeypatch):
    for B in couplings().values():
        sweep(B)
        sweep(B, betas=(0.1, 0.1))
        sweep(B, primal_dual=True)
    B = couplings()["differences"]
    sweep(B, metric=ss.metrics.Spectral(np.linspace(1.0, 2.0, 24).reshape(4, 6)))
    monkeypatch.setattr(innermost, "_BAND", 12)
    sweep(B)
    sweep(B, primal_dual=True)
    # An operator that is no level's last: all updates of the recursion.
    q, box = F.Quadratic(1.0), D.Box(-1.0, 1.0, shape=3)
    problem = ss.SaddleProblem(f=q, g=q, B=np.eye(3), X=box, Y=box)
    ss.run(problem, ss.plan(problem, order="Bfg", loops=(2, 2, 2)), start=(np.ones(3), np.ones(3)))
    ss.solve(ss.gallery.tomography(n=8), reduction=1e-3)
    volume = ss.operators.FiniteDifferences((2, 3, 2))
    f, Y = F.LeastSquares(np.eye(12), np.ones(12), x_shape=(2, 3, 2)), D.Box(-1.0, 1.0, shape=volume.y_shape)
    problem = ss.SaddleProblem(f=f, g=F.Zero(), B=volume, X=D.FullSpace((2, 3, 2)), Y=Y)
    ss.solve(problem, reduction=1e-3, method="adaptive")
    ss.solve(ss.gallery.denoise(np.eye(4), 0.1, tv="isotropic"), rtol=1e-3)
    F.LeastSquares(np.eye(3), np.ones(3)).gradient(np.ones(3))
    rng = np.random.default_rng(1)
    for columns in (300, 2**16 + 300):
        for width in (1, 2):
            places = rng.choice(columns // 4, (40, 6)) * 4
            indices = np.concatenate([places + k for k in range(width)], axis=1)
            indices.sort(axis=1)
            shape = (40, columns)
            starts = np.arange(0, indices.size + 1, indices.shape[1])
            S = scipy.sparse.csr_array((np.ones(indices.size), indices.ravel(), starts), shape=shape)
            made, x, y = SparseRows(S), rng.standard_normal(columns), rng.standard_normal(40)
            made.product(x, (40,), None), made.there_and_back(x, y), made.products(x[None]), made.grams(x[None], y)
    Matrix(scipy.sparse.diags_array([1.0, -1.0], offsets=[0, 1], shape=(90, 91), format="csr")).forward(np.ones(91))
    assert called == set(all_kernels())


FIRST_SOLVE = """
import sys, numpy as np, saddleslide as ss
q, box, b = ss.functions.Quadratic(1.0), ss.domains.Box(-1.0, 1.0, shape=3), ss.functions.Linear(np.ones(3))
f = {"simple": q, "least squares": ss.functions.LeastSquares(np.eye(4, 3), np.ones(4))}[sys.argv[1]]
ss.solve(ss.SaddleProblem(f=f, g=q + b, B=np.eye(3), X=box, Y=box), tol=1e-6, method=sys.argv[2])
print("numba" in sys.modules)
"""


@pytest.mark.parametrize(
    ("f", "method", "asked", "names"),
    [
        # Restarted primal-dual steps on a matrix are NumPy's.
        ("simple", "adaptive", {"SADDLESLIDE_JIT": "1"}, set()),
        ("simple", "auto", {"SADDLESLIDE_JIT": "1"}, set()),
        ("least squares", "adaptive", {"SADDLESLIDE_JIT": "1"}, {"primal_dual.primal_step", "primal_dual.dual_step"}),
        # Interior points, whose gradients the certificate asks for.
        ("least squares", "auto", {"SADDLESLIDE_JIT": "1"}, {"passes.dense_there_and_back"}),
        # Too small to compile anything, unless that is asked for.
        ("least squares", "adaptive", {}, set()),
        ("least squares", "auto", {}, set()),
    ],
)
def test_a_run_compiles_what_it_uses_and_nothing_else(tmp_path, f, method, asked, names):
    kept = {key: value for key, value in os.environ.items() if key not in ("SADDLESLIDE_JIT", "NUMBA_DISABLE_JIT")}
    command = [sys.executable, "-W", "error", "-c", FIRST_SOLVE, f, method]
    environment = {"NUMBA_CACHE_DIR": str(tmp_path)}
    done = subprocess.run(command, capture_output=True, text=True, env=kept | environment | asked)
    assert done.stdout.split() == [str(bool(names))], done.stderr
    assert {path.name.split("-")[0] for path in tmp_path.rglob("*.nbi")} == names


def test_the_clock_of_methods_stands_still_while_a_kernel_is_compiled(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])

    def slowly(made):
        now[0] += 0.25
        return made

    monkeypatch.setattr(building, "compile_kernel", slowly)
    before, compiled = clock(), compile_seconds()
    assert Kernels("compiled").combine is importlib.import_module("saddleslide.kernels.compiled").combine
    assert compile_seconds() - compiled == pytest.approx(0.25) and clock() == pytest.approx(before)
    now[0] += 1.0
    assert clock() == pytest.approx(before + 1.0)
    with pytest.raises(AttributeError):
        Kernels("compiled").no_such_kernel  # noqa: B018
