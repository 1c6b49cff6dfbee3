"""Compiled levels allocate nothing per step: no array in Python, and no memory inside the kernels."""

import itertools
import tracemalloc

import numba
import numpy as np
import pytest
from numba.core.runtime import _nrt_python as runtime

import saddleslide as ss
from saddleslide.kernels.switch import jit, load
from saddleslide.methods.sliding import bilinear_recursion
from saddleslide.methods.sliding.view import View
from saddleslide.metrics import Diagonal
from saddleslide.oracles.oracles import Oracles
from saddleslide.theory import Term, place
from saddleslide.theory.restarts import Stage
from support import is_compiled, scattered

pytestmark = pytest.mark.usefixtures("compiled")

ROWS, COLUMNS = 240, 250
SIZE = ROWS * COLUMNS
PICTURE = (ROWS, COLUMNS)
RNG = np.random.default_rng(3)
F, D = ss.functions, ss.domains
COUPLINGS = {
    "differences": ss.operators.FiniteDifferences(PICTURE),
    "dense": ss.operators.Matrix(RNG.standard_normal((3, SIZE)) / SIZE, PICTURE, (3,)),
    "sparse": ss.operators.Matrix(scattered((2 * SIZE, SIZE), 2.0 / SIZE, RNG), PICTURE, (2 * SIZE,)),
}
TERMS = [
    Term("f", ss.Holder(1.0, 2.0), weights=(1.0, 0.0)),
    Term("g", ss.Holder(1.0, 1.0), weights=(0.0, 1.0)),
    Term("B", M=3.0, weights=(0.5, 2.0)),
]


def sets(shape):
    return {
        "full": D.FullSpace(shape),
        "interval": D.Box(-0.2, 0.3, shape=shape),
        "box": D.Box(np.full(shape, -0.3), np.linspace(0.1, 0.2, np.prod(shape)).reshape(shape)),
        "ball": D.Ball(0.7, shape=shape),
        "simplex": D.Simplex(shape),
    }


def recursion_of(T, coupling, X="full", Y="interval", betas=(0.0, 0.0), primal_dual=False, metric=None, g_simple=None):
    B = COUPLINGS[coupling]
    problem = ss.SaddleProblem(f=F.Power(1.0), g=F.Power(1.0), B=B, X=sets(PICTURE)[X], Y=sets(B.y_shape)[Y])
    rng = np.random.default_rng(5)
    start = tuple(block.project(0.1 * rng.standard_normal(block.shape)) for block in (problem.X, problem.Y))
    norm = None if metric is None else metric.with_coupling(B)
    view = View(problem, F.Zero(), F.Zero() if g_simple is None else g_simple, (norm, None), primal_dual)
    return bilinear_recursion(Oracles(problem), Stage(place(TERMS, (3, 1, T)), 1.0, *betas), start, view)


@pytest.fixture
def counted():
    """Allocations by compiled code are counted while a test runs."""
    load("compiled")
    before = runtime.memsys_stats_enabled()
    runtime.memsys_enable_stats()
    yield runtime.memsys_get_stats_alloc
    if not before:
        runtime.memsys_disable_stats()


def allocated(recursion, counted):
    """Peak of Python's memory over an outermost step, in parts of x, and allocations inside kernels."""
    recursion.step(0)
    inside = counted()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        recursion.step(1)
        peak = tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()
    return peak / (8.0 * SIZE), counted() - inside


def assert_nothing_new(counted, *given, **named):
    found = []
    with jit(True):
        for T in (3, 6):
            recursion = recursion_of(T, *given, **named)
            assert is_compiled(recursion)
            found.append(allocated(recursion, counted))
    # Numba makes a small record for every array that it is handed, once a call: as many for three steps as for six.
    assert max(part for part, _ in found) < 0.1 and found[0][1] == found[1][1] < 200


@pytest.mark.parametrize("coupling", COUPLINGS)
@pytest.mark.parametrize(("X", "Y"), [(kind, kind) for kind in sets(PICTURE)] + [("ball", "box"), ("box", "ball")])
def test_sets(coupling, X, Y, counted):
    assert_nothing_new(counted, coupling, X, Y)


@pytest.mark.parametrize("coupling", COUPLINGS)
@pytest.mark.parametrize("betas", [(0.3, 0.0), (0.0, 0.2), (0.3, 0.2)])
def test_anchors(coupling, betas, counted):
    assert_nothing_new(counted, coupling, "full", "full", betas=betas)


@pytest.mark.parametrize(
    ("coupling", "kind"), list(itertools.product(COUPLINGS, ["full", "interval", "box", "ball", "simplex"]))
)
def test_primal_dual_steps(coupling, kind, counted):
    assert_nothing_new(counted, coupling, kind, kind, primal_dual=True)


@pytest.mark.parametrize("coupling", COUPLINGS)
@pytest.mark.parametrize("primal_dual", [False, True])
def test_diagonal_norms_and_simple_terms(coupling, primal_dual, counted):
    entries = np.linspace(1.0, 2.0, SIZE).reshape(PICTURE)
    term = F.Quadratic(0.5) + F.Power(0.5, weight=0.1)
    assert_nothing_new(counted, coupling, primal_dual=primal_dual, metric=Diagonal(entries), g_simple=term)


def test_what_is_measured_here_sees_an_array_and_memory_inside_a_kernel(counted):
    @numba.njit
    def grows(steps):
        return sum([np.ones(10).sum() for _ in range(steps)])

    class Careless:
        def __init__(self, T):
            self.T = T

        def step(self, j):
            return np.ones(SIZE), grows(self.T)

    (part, few), (_, more) = (allocated(Careless(T), counted) for T in (3, 6))
    assert part > 0.9 and more > few
