"""Compiled kernels against their NumPy twins, the switch between them, and caches that can not be used."""

import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse

import saddleslide as ss
from saddleslide.errors import InputError
from saddleslide.kernels import reference, switch
from saddleslide.kernels.arguments import Above
from saddleslide.kernels.switch import compile_seconds, is_asked_for, jit, jit_enabled, load
from saddleslide.kernels.threads import over_rows, together, use_threads
from saddleslide.kernels.updates import updates
from saddleslide.methods.sliding import bilinear_recursion
from saddleslide.methods.sliding.innermost import CompiledSweep
from saddleslide.methods.sliding.known import known_parts
from saddleslide.methods.sliding.recursion import Ends
from saddleslide.methods.sliding.view import View
from saddleslide.oracles.oracles import Oracles
from saddleslide.theory import Term, place
from saddleslide.theory.restarts import Stage
from support import gathered, is_compiled, pairwise

pytestmark = pytest.mark.usefixtures("compiled")

TOLERANCE = 1e-12
ROWS, COLUMNS = 5, 7


def vectors(count, size, seed=0):
    rng = np.random.default_rng(seed)
    return [rng.standard_normal(size) for _ in range(count)]


@gathered("size", [1, 2, 7, 64, 1001])
def test_vector_updates_agree_with_their_twins(size):
    fast = load("compiled")
    a, b, c, d, e = vectors(5, size, size)
    edges, weights = np.array([0, size // 3, size]), np.array([0.7, 3.0])
    cases = [
        ("combine", (0.3, a, -1.7, b, e)),
        ("compose", (e.copy(), 0.3, a, b, -1.7, c, e)),
        ("settle", (e.copy(), a, 0.3, e)),
        ("collect", (e.copy(), a, b, c, a, weights, edges)),
        ("resolve", (a, b, weights, edges)),
        ("correct", (a, b, c, weights, edges)),
    ]
    for name, arguments in cases:
        ours, theirs = d.copy(), d.copy()
        getattr(fast, name)(ours, *arguments)
        getattr(reference, name)(theirs, *arguments)
        np.testing.assert_allclose(ours, theirs, rtol=0.0, atol=1e-14 * max(1.0, np.abs(theirs).max()), err_msg=name)


def test_collecting_adds_the_slopes_too():
    above, above_slope, z, gradient = vectors(4, 10)
    for kernels in (load("compiled"), reference):
        pull, slope = np.empty(10), np.empty(10)
        kernels.collect(pull, slope, above, above_slope, z, gradient, np.array([2.0]), np.array([0, 10]))
        np.testing.assert_allclose(pull, above + 2.0 * z, rtol=0.0, atol=1e-15)
        assert np.array_equal(slope, above_slope + gradient)


def test_centres_and_corrections_are_made_block_by_block():
    edges = np.array([0, 1, 2])
    for kernels in (load("compiled"), reference):
        out, there = np.zeros(2), np.ones(2)
        kernels.resolve(out, np.array([3.0, 5.0]), there, np.array([2.0, 4.0]), edges)
        assert np.array_equal(out, [1.0, 1.0])
        kernels.correct(out, np.ones(2), np.array([3.0, 5.0]), there, np.array([2.0, 0.5]), edges)
        assert np.array_equal(out, [5.0, 3.0])


def test_composing_and_settling_write_two_vectors_each():
    average, above, z = vectors(3, 10)
    for kernels in (load("compiled"), reference):
        base, point, mean, iterate = np.empty(10), np.empty(10), average.copy(), np.empty(10)
        kernels.compose(base, point, 0.3, average, above, 0.7, z, np.empty(10))
        np.testing.assert_allclose(base, 0.3 * average + above, rtol=0.0, atol=1e-15)
        np.testing.assert_allclose(point, 0.7 * z + 0.3 * average + above, rtol=0.0, atol=1e-15)
        kernels.settle(mean, iterate, z, 0.25, np.empty(10))
        np.testing.assert_allclose(mean, 0.25 * z + 0.75 * average, rtol=0.0, atol=1e-15)
        assert np.array_equal(iterate, z)


def test_a_sum_may_be_written_onto_one_of_its_terms():
    for kernels in (load("compiled"), reference):
        x, y = vectors(2, 33)
        expected = 0.25 * x + 0.75 * y
        kernels.combine(y, 0.25, x, 0.75, y, np.empty(33))
        np.testing.assert_allclose(y, expected, rtol=0.0, atol=1e-15)


def matrix(rows=2 * ROWS * COLUMNS, columns=ROWS * COLUMNS):
    return np.random.default_rng(3).standard_normal((rows, columns)) / math.sqrt(columns)


def sparse_matrix():
    dense = matrix()
    return scipy.sparse.csr_array(np.where(np.abs(dense) > 0.15, dense, 0.0))


PICTURE, FIELD = (ROWS, COLUMNS), (2, ROWS, COLUMNS)
COUPLINGS = {
    "differences": lambda: ss.operators.FiniteDifferences(PICTURE),
    "dense": lambda: ss.operators.Matrix(matrix(), PICTURE, FIELD),
    "sparse": lambda: ss.operators.Matrix(sparse_matrix(), PICTURE, FIELD),
}


def sets(shape):
    """All kinds of domain, small enough for their constraints to be active on the way."""
    rng = np.random.default_rng(len(shape))
    return {
        "full": ss.domains.FullSpace(shape),
        "interval": ss.domains.Box(-0.02, 0.03, shape=shape),
        "half": ss.domains.NonNegative(shape),
        "box": ss.domains.Box(-0.1 * rng.uniform(size=shape), 0.1 * rng.uniform(size=shape)),
        "ball": ss.domains.Ball(0.1, shape=shape),
        "shifted ball": ss.domains.Ball(0.1, center=0.05 * rng.standard_normal(shape)),
        "simplex": ss.domains.Simplex(shape),
    }


def problem_on(B, X, Y):
    rng = np.random.default_rng(1)
    f = ss.functions.Quadratic(1.3) + ss.functions.Linear(rng.standard_normal(X.shape))
    g = ss.functions.Quadratic(0.7) + ss.functions.Linear(rng.standard_normal(Y.shape))
    return ss.SaddleProblem(f=f, g=g, B=B, X=X, Y=Y)


def averages(problem, order="fgB", loops=(3, 2, 5), weights=(0.5, 2.0), betas=(0.0, 0.0)):
    """Averages after every outer step and the calls made, with and without compiling."""
    plan = ss.plan(problem, order=order, loops=loops, metric=weights)
    stage = Stage(plan.schedule.levels, 1.0, *betas)
    rng = np.random.default_rng(2)
    start = tuple(D.project(0.05 * rng.standard_normal(D.shape)) for D in (problem.X, problem.Y))
    found = []
    for on in (True, False):
        with jit(on):
            oracles = Oracles(problem)
            recursion = bilinear_recursion(oracles, stage, start)
            steps = [average.copy() for average in recursion.steps()]
        found.append((np.array(steps), oracles.calls, is_compiled(recursion)))
    return found


def assert_twins(found, compiled=True):
    (fast, calls, is_compiled), (slow, slow_calls, slow_is_compiled) = found
    assert (is_compiled, slow_is_compiled) == (compiled, False)
    assert calls == slow_calls
    assert np.abs(fast - slow).max() <= TOLERANCE * np.abs(slow).max()
    assert np.abs(slow[0] - slow[-1]).max() > 1e-6 * np.abs(slow).max()


@pairwise(coupling=COUPLINGS, X=sets(PICTURE), Y=sets(FIELD))
def test_the_compiled_innermost_level_makes_the_same_steps(coupling, X, Y):
    problem = problem_on(COUPLINGS[coupling](), sets(PICTURE)[X], sets(FIELD)[Y])
    assert_twins(averages(problem))


@pairwise(
    coupling=COUPLINGS,
    betas=[(0.3, 0.0), (0.0, 0.2), (0.3, 0.2)],
    on=[("full", "full"), ("ball", "interval"), ("box", "simplex")],
)
def test_anchors_are_part_of_the_compiled_level(coupling, betas, on):
    problem = problem_on(COUPLINGS[coupling](), sets(PICTURE)[on[0]], sets(FIELD)[on[1]])
    found = averages(problem, betas=betas)
    assert_twins(found)
    plain = averages(problem)
    active = sum(beta > 0.0 for beta in betas)
    # One product a step for every anchor, and one at each of the six entries but the first; four a step without the
    # last correction.
    steps, rest = divmod(plain[0][1].B + 2, 4)
    assert rest == 0 and steps * (4 + active) + 5 * active - 2 == found[0][1].B
    assert np.abs(found[0][0] - plain[0][0]).max() > 1e-6


@gathered("shape", [(1, 2), (2, 1), (1, 9), (9, 1), (2, 2), (2, 3), (3, 2), (3, 3), (8, 16)])
@pytest.mark.parametrize("anchored", [False, True])
def test_pictures_of_every_shape(shape, anchored):
    field = (2, *shape)
    problem = problem_on(
        ss.operators.FiniteDifferences(shape), ss.domains.Ball(3.0, shape=shape), ss.domains.Box(-0.5, 0.4, shape=field)
    )
    assert_twins(averages(problem, betas=(0.3, 0.2) if anchored else (0.0, 0.0)))


@pairwise(strip=[1, 9, 20, 1000], X=["full", "interval", "box", "ball"], Y=["full", "box"])
def test_strips_of_every_height(monkeypatch, strip, X, Y):
    monkeypatch.setattr("saddleslide.methods.sliding.innermost._BAND", strip)
    assert_twins(averages(problem_on(COUPLINGS["differences"](), sets(PICTURE)[X], sets(FIELD)[Y])))


@pytest.mark.parametrize("order", ["fgB", "gfB", "fBg", "Bfg"])
@gathered("loops", [(1, 1, 1), (2, 3, 4), (4, 1, 7)])
def test_every_order_and_length(order, loops):
    problem = problem_on(COUPLINGS["sparse"](), sets(PICTURE)["interval"], sets(FIELD)["ball"])
    (fast, calls, compiled), (slow, slow_calls, _) = averages(problem, order, loops)
    assert compiled == (order[-1] == "B")
    assert calls == slow_calls
    assert np.abs(fast - slow).max() <= TOLERANCE * np.abs(slow).max()


def test_a_single_level_stays_in_python():
    problem = problem_on(COUPLINGS["dense"](), sets(PICTURE)["interval"], sets(FIELD)["interval"])
    alone = place([Term("B", M=problem.coupling.norm.upper, weights=(1.0, 1.0), Omega=1.0)], (4,))
    with jit(True):
        recursion = bilinear_recursion(Oracles(problem), Stage(alone, 1.0), problem.start())
    assert recursion.innermost is None
    assert sum(1 for _ in recursion.steps()) == 4


def test_unknown_parts_leave_the_loop_in_python():
    B = COUPLINGS["dense"]()
    X, Y = sets(PICTURE)["interval"], sets(FIELD)["interval"]
    callables = ss.operators.as_operator((B.forward, B.adjoint), x_shape=PICTURE, y_shape=FIELD, norm=B.norm.upper)
    assert_twins(averages(problem_on(callables, X, Y)), compiled=False)
    whole = ss.domains.Product(ss.domains.Box(-0.1, 0.1, shape=10), ss.domains.Ball(0.2, shape=25))
    flat = ss.operators.Matrix(matrix(), (35,), FIELD)
    assert_twins(averages(problem_on(flat, whole, Y)), compiled=False)


def test_wide_indices_become_narrow_ones():
    wide = sparse_matrix()
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    B = ss.operators.Matrix(wide, PICTURE, FIELD)
    assert B.matrix.indices.dtype == B.transpose.indptr.dtype == np.int32
    assert wide.indices.dtype == np.int64
    assert_twins(averages(problem_on(B, sets(PICTURE)["full"], sets(FIELD)["interval"])))


@gathered("density", [0.0, 0.02, 0.3, 1.0])
@gathered("into", ["new", "given", "strided"])
def test_sparse_products_agree_with_the_dense_matrix(density, into):
    rng = np.random.default_rng(7)
    dense = rng.standard_normal((31, 17)) * (rng.uniform(size=(31, 17)) < density)
    B = ss.operators.Matrix(scipy.sparse.csr_array(dense))
    with jit(True):
        for product, matrix in ((B.forward, dense), (B.adjoint, dense.T)):
            v = rng.standard_normal(2 * matrix.shape[1])[::2]
            out = {"new": None, "given": np.empty(len(matrix)), "strided": np.empty(2 * len(matrix))[::2]}[into]
            found = product(v, out)
            assert out is None or found is out
            np.testing.assert_allclose(found, matrix @ v, rtol=0.0, atol=1e-13)


@pairwise(coupling=COUPLINGS, kind=["full", "interval", "box", "ball", "simplex"], first=[True, False])
def test_a_number_that_is_none_is_never_projected_away(coupling, kind, first):
    problem = problem_on(COUPLINGS[coupling](), sets(PICTURE)[kind], sets(FIELD)[kind])
    level = ss.plan(problem, order="fgB", loops=(1, 1, 2), metric=(1.0, 1.0)).schedule.levels[-1]
    with jit(True):
        sweep = CompiledSweep(Oracles(problem), level, known_parts(View(problem)))

    above = Above(*(np.zeros(3 * ROWS * COLUMNS) for _ in range(3)), np.ones(2))
    above.slope[[3, -3]] = np.nan
    z, average = np.zeros(3 * ROWS * COLUMNS), np.zeros(3 * ROWS * COLUMNS)
    sweep(1.0, above, z, average, Ends(first, last=False))
    assert np.isnan(average[3]) and np.isnan(average[-3])


def test_a_ball_takes_numbers_whose_squares_overflow():
    big = ss.domains.Ball(1.0, shape=(3, 3))
    f = ss.functions.Linear(np.full((3, 3), 1e250))
    Y = ss.domains.Ball(1.0, shape=(2, 3, 3))
    problem = ss.SaddleProblem(f=f, g=ss.functions.Zero(), B=ss.operators.FiniteDifferences((3, 3)), X=big, Y=Y)
    plan = ss.plan(problem, order="fgB", loops=(2, 1, 2), metric=(1.0, 1.0))
    with jit(True):
        fast = ss.run(problem, plan).x
    with jit(False), np.errstate(over="ignore"):
        slow = ss.run(problem, plan).x
    np.testing.assert_allclose(fast, slow, rtol=TOLERANCE)
    assert np.linalg.norm(slow) > 0.5


# Threads.


@pytest.mark.parametrize("count", [2, 3, 7])
def test_threads_change_no_bit(monkeypatch, count):
    monkeypatch.setattr("saddleslide.kernels.threads.WORTHWHILE", 1)
    rng = np.random.default_rng(9)
    dense = rng.standard_normal((50, 40)) * (rng.uniform(size=(50, 40)) < 0.2)
    A = ss.operators.Matrix(scipy.sparse.csr_array(dense))
    f = ss.functions.LeastSquares(A, rng.standard_normal(50), ridge=0.1)
    box = ss.domains.Box(-0.3, 0.3, shape=40)
    problem = ss.SaddleProblem(f=f, g=ss.functions.Quadratic(0.5), B=np.eye(40), X=box, Y=box)
    plan = ss.plan(problem, order="fgB", loops=(5, 2, 3))
    with jit(True):
        for work in (lambda **more: ss.solve(problem, tol=1e-6, **more), lambda **more: ss.run(problem, plan, **more)):
            alone, together = work(), work(threads=count)
            assert np.array_equal(alone.x, together.x) and alone.calls == together.calls


@gathered("count", [1, 2, 3, 10, 100])
def test_threads_share_out_all_rows_once(monkeypatch, count):
    monkeypatch.setattr("saddleslide.kernels.threads.WORTHWHILE", 1)
    starts, seen = np.array([0, 0, 5, 5, 30, 31, 40]), []
    with use_threads(count, "test"):
        over_rows(lambda first, last: seen.extend(range(first, last)), starts)
        together([lambda: seen.append(6), lambda: seen.append(7)])
    assert sorted(seen) == list(range(8))


@gathered("wrong", [0, -1, 1.5, True, "2", None])
def test_wrong_numbers_of_threads_are_refused(wrong):
    problem = problem_on(COUPLINGS["dense"](), sets(PICTURE)["interval"], sets(FIELD)["interval"])
    with pytest.raises(InputError, match=r"threads is .*; expected a whole number >= 1"):
        ss.solve(problem, tol=1e-2, threads=wrong)
    with pytest.raises(InputError, match="threads is"):
        ss.run(problem, ss.plan(problem, order="fgB", loops=(1, 1, 1)), threads=wrong)


# The switch.


@gathered(
    ("name", "value", "expected"),
    [("SADDLESLIDE_JIT", "0", False), ("SADDLESLIDE_JIT", "off", False), ("SADDLESLIDE_JIT", "1", True),
     ("NUMBA_DISABLE_JIT", "1", False), ("NUMBA_DISABLE_JIT", "0", True)],
)  # fmt: skip
def test_the_environment_switches_compiling_off(monkeypatch, name, value, expected):
    for known in ("SADDLESLIDE_JIT", "NUMBA_DISABLE_JIT"):
        monkeypatch.delenv(known, raising=False)
    assert is_asked_for()
    monkeypatch.setenv(name, value)
    assert is_asked_for() is expected


def test_without_numba_nothing_is_compiled(monkeypatch):
    for known in ("SADDLESLIDE_JIT", "NUMBA_DISABLE_JIT"):
        monkeypatch.delenv(known, raising=False)
    monkeypatch.setitem(sys.modules, "numba", None)
    assert not is_asked_for()


def test_small_arrays_are_left_to_numpy_unless_compiling_was_asked_for(monkeypatch):
    monkeypatch.setattr(switch._Switch, "on", True)
    for always in (False, True):
        monkeypatch.setattr(switch._Switch, "always", always)
        sizes = (None, 1, switch.SMALL - 1, switch.SMALL)
        assert [jit_enabled(size) for size in sizes] == [True, always, always, True]
        # Beside a matrix whose products are compiled, half of that is enough.
        half = [jit_enabled(size, beside=switch.SMALL) for size in (switch.SMALL // 2 - 1, switch.SMALL // 2)]
        assert half == [always, True] and jit_enabled(switch.SMALL // 2, beside=switch.SMALL - 1) is always
    with jit(False):
        assert not jit_enabled(switch.SMALL)


@gathered("on", [True, False])
def test_the_switch_goes_back_to_where_it_was(on):
    with jit(on):
        with pytest.raises(ZeroDivisionError), jit(not on):
            assert jit_enabled() is not on
            raise ZeroDivisionError
        assert jit_enabled() is on
        assert (updates() is reference) is not on


# An unknown coupling takes the vector updates alone, which compile in a second.
SMALL = """
import numpy as np, sys, saddleslide as ss
box = ss.domains.Box(-1.0, 1.0, shape=3)
q = ss.functions.Quadratic(1.0)
B = ss.operators.as_operator((lambda x: 2.0 * x, lambda y: 2.0 * y), x_shape=(3,), y_shape=(3,), norm=2.0)
problem = ss.SaddleProblem(f=q, g=q, B=B, X=box, Y=box)
assert "numba" not in sys.modules
result = ss.run(problem, ss.plan(problem, order="fgB", loops=(4, 2, 3)), start=(np.ones(3), np.ones(3)))
print("numba" in sys.modules, result.timings["compile"] > 0.0, result.x[0].hex())
"""


def fresh(**environment):
    kept = {key: value for key, value in os.environ.items() if key not in ("SADDLESLIDE_JIT", "NUMBA_DISABLE_JIT")}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", SMALL], capture_output=True, text=True, env=kept | environment
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_numba_is_imported_by_the_first_run_and_not_without_compiling():
    assert fresh()[:2] == ["True", "True"]
    assert fresh(SADDLESLIDE_JIT="0")[:2] == ["False", "False"]


TRANSFORMED = """
import sys, saddleslide as ss
from saddleslide.methods.adaptive_sliding import AdaptiveSliding
problem, init, seen = ss.gallery.tomography(n=8), AdaptiveSliding.init, []
assert "scipy.fft" not in sys.modules
def watched(self, *given):
    seen.append("scipy.fft" in sys.modules)
    return init(self, *given)
AdaptiveSliding.init = watched
result = ss.solve(problem, reduction=1e-3, metric=sys.argv[1])
print(seen[0], result.timings["compile"] > 0.0)
"""


@pytest.mark.parametrize(("metric", "needed"), [("spectral", "True"), ("blocks", "False")])
def test_transforms_are_loaded_before_the_clock_of_a_run_that_needs_them(metric, needed):
    environment = os.environ | {"SADDLESLIDE_JIT": "0"}
    command = [sys.executable, "-W", "error", "-c", TRANSFORMED, metric]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.stdout.split() == [needed, needed], done.stderr


def test_caches_that_are_damaged_or_forbidden_are_no_failure(tmp_path):
    folder = tmp_path / "cache"
    first = fresh(NUMBA_CACHE_DIR=str(folder))
    kept = sorted(path for path in folder.rglob("*") if path.is_file())
    assert kept
    for number, path in enumerate(kept):
        path.write_bytes([b"", b"garbage", path.read_bytes()[:40]][number % 3])
    assert fresh(NUMBA_CACHE_DIR=str(folder)) == first
    blocked = tmp_path / "blocked"
    blocked.write_text("a file where a folder should be")
    assert fresh(NUMBA_CACHE_DIR=str(blocked)) == first


def test_compiling_is_reported_apart():
    problem = problem_on(COUPLINGS["dense"](), sets(PICTURE)["interval"], sets(FIELD)["interval"])
    plan = ss.plan(problem, order="fgB", loops=(1, 1, 1))
    with jit(True):
        ss.run(problem, plan)
        before = compile_seconds()
        again = ss.run(problem, plan)
    assert again.timings["compile"] == 0.0 and compile_seconds() == before


def test_every_compiled_kernel_has_a_twin():
    public = {name for name in vars(reference) if not name.startswith("_") and callable(getattr(reference, name))}
    twins = {name for name in public if getattr(reference, name).__module__ == reference.__name__}
    source = Path(reference.__file__).with_name("compiled.py").read_text(encoding="utf-8")
    assert twins == {line.split("(")[0][4:] for line in source.splitlines() if line.startswith("def ")}


@gathered(
    "tied",
    [
        [0.25886459317093224, 0.5039601008284132, 1.0137690855134511],
        [0.377463431532434, 0.377463431532434, 0.377463431532434, 1.377463431532434],
        [0.9309770745404193, 0.027815906197269258, 0.1246547378541191, 0.027815906197269258, 0.027815906197269258],
    ],
)
def test_projections_onto_the_simplex_end_at_ties(tied):
    """Rounding of the threshold brings an entry back here: a loop that waits for it to stay away never ends."""
    from saddleslide.kernels.base_case import _into_simplex

    v = np.array(tied)
    _into_simplex(v)
    np.testing.assert_allclose(v, ss.domains.Simplex(len(tied)).project(np.array(tied)), atol=1e-15)
