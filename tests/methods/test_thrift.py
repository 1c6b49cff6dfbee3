"""Products that a run spares: those at a start of 0, and the last correction. Points stay what they were."""

import itertools
import math

import numpy as np
import pytest

import saddleslide as ss
from plans import stage_plan
from saddleslide.kernels import arguments
from saddleslide.kernels.switch import jit
from saddleslide.methods.sliding import Recursion, bilinear_recursion
from saddleslide.methods.sliding.bilinear import gradient_writers, product_domain, product_writer, take_anchors
from saddleslide.methods.sliding.view import View
from saddleslide.metrics import Diagonal, Spectral
from saddleslide.oracles.oracles import Oracles
from saddleslide.theory.restarts import Stage
from support import CountedProblem, gathered, pairwise, scattered

PICTURE = (5, 4)
RNG = np.random.default_rng(4)
DIFFERENCES = ss.operators.FiniteDifferences(PICTURE)
LARGE = scattered((40, 20), 0.4, np.random.default_rng(5))
COUPLINGS = {
    "differences": DIFFERENCES,
    "sparse": ss.operators.as_operator(LARGE, PICTURE, (2, *PICTURE)),
    "dense": ss.operators.as_operator(LARGE.toarray(), PICTURE, (2, *PICTURE)),
    "callables": ss.operators.as_operator(
        (lambda x: (LARGE @ x.ravel()).reshape(2, *PICTURE), lambda y: (LARGE.T @ y.ravel()).reshape(PICTURE)),
        PICTURE, (2, *PICTURE), norm=float(np.linalg.norm(LARGE.toarray(), 2)),
    ),
}  # fmt: skip
# Which blocks of the start are 0.
STARTS = {"both": (0.0, 0.0), "x": (0.0, 1.0), "y": (1.0, 0.0), "neither": (1.0, 1.0)}
ORDERS = ["".join(order) for order in itertools.permutations("fgB")]


def problem_with(coupling):
    tilt = ss.functions.Linear(np.linspace(-1.0, 1.0, 20).reshape(PICTURE))
    box = ss.domains.Box(-1.0, 1.0, shape=PICTURE)
    return ss.SaddleProblem(
        f=ss.functions.Power(1.0) + tilt,
        g=ss.functions.Power(0.5, tilt=np.linspace(-0.3, 0.7, 40).reshape(2, *PICTURE)),
        B=COUPLINGS[coupling],
        X=box,
        Y=ss.domains.Box(-0.5, 0.5, shape=(2, *PICTURE)),
    )


def start_of(problem, name):
    rng = np.random.default_rng(6)
    return tuple(
        factor * 0.3 * rng.uniform(-1.0, 1.0, domain.shape)
        for factor, domain in zip(STARTS[name], (problem.X, problem.Y), strict=True)
    )


def with_every_product(problem, levels, start):
    """The same levels by the plain recursion: every product of every step."""
    oracles = Oracles(problem)
    gradients, coupling = gradient_writers(oracles, oracles.problem), product_writer(oracles)
    recursion = Recursion(
        levels,
        [gradients.get(level.term.name) for level in levels],
        [coupling if level.term.name == "B" else None for level in levels],
        product_domain(problem),
        np.concatenate([part.ravel() for part in start]),
    )
    return [average.copy() for average in recursion.steps()], oracles


def with_thrift(problem, stage, start, view=None):
    oracles = Oracles(problem)
    steps = [average.copy() for average in bilinear_recursion(oracles, stage, start, view).steps()]
    return steps, oracles


@pairwise(coupling=COUPLINGS, order=["fgB", "B", "Bfg"], zero=STARTS, compiled=[True, False])
def test_points_stay_and_products_are_fewer(coupling, order, zero, compiled):
    problem = problem_with(coupling)
    start = start_of(problem, zero)
    levels = ss.plan(problem, order="fgB", loops=(3, 2, 5), metric=(1.0, 2.0)).schedule.levels
    if order == "B":
        levels = ss.plan(problem, order="Bfg", loops=(4, 1, 1), metric=(1.0, 2.0)).schedule.levels[:1]
    elif order == "Bfg":
        levels = ss.plan(problem, order="Bfg", loops=(4, 2, 2), metric=(1.0, 2.0)).schedule.levels
    with jit(compiled):
        whole, every = with_every_product(problem, levels, start)
        found, oracles = with_thrift(problem, Stage(levels, math.nan), start)
    np.testing.assert_allclose(found, whole, rtol=0.0, atol=1e-13)
    assert oracles.spared == 2 + STARTS[zero].count(0.0)
    assert every.calls.B - oracles.spared == oracles.calls.B
    assert every.spared == 0 and (oracles.calls.f, oracles.calls.g) == (every.calls.f, every.calls.g)


@gathered("zero", STARTS)
@gathered("order", ORDERS)
def test_the_callables_are_asked_that_much_less_often(order, zero):
    B = np.random.default_rng(0).standard_normal((3, 5))
    mine = CountedProblem(B, norm=float(np.linalg.norm(B, 2)))
    start = tuple(factor * np.full(size, 0.25) for factor, size in zip(STARTS[zero], (5, 3), strict=True))
    asked = []
    plan = ss.plan(mine.problem, order=order, loops=(2, 3, 2))
    result = ss.run(mine.problem, plan, start=start, callback=lambda r: asked.append((mine.products, r.method_calls.B)))
    N = dict(zip(order, np.cumprod((2, 3, 2)).tolist(), strict=True))["B"]
    zeros = STARTS[zero].count(0.0)
    assert asked[0] == (2 * N - zeros, 2 * N - zeros)
    assert asked[1] == (4 * N - zeros - 2, 4 * N - zeros - 2)
    assert result.spared == zeros + 2 and vars(result.counted) == plan.predicted_calls


@pairwise(zero=STARTS, coupling=COUPLINGS, norm=[Diagonal, Spectral])
def test_norms_of_x_spare_the_same(coupling, norm, zero):
    problem = problem_with(coupling)
    levels = ss.plan(problem, order="fgB", loops=(3, 2, 5), metric=(1.0, 2.0)).schedule.levels
    metric = norm(np.linspace(1.0, 3.0, 20).reshape(PICTURE)).with_coupling(problem.coupling)
    start, view = start_of(problem, zero), View(problem, norms=(metric, None))
    found = []
    for compiled in (True, False):
        with jit(compiled):
            found.append(with_thrift(problem, Stage(levels, math.nan), start, view))
    (fast, oracles), (slow, others) = found
    np.testing.assert_allclose(fast, slow, rtol=0.0, atol=1e-12)
    assert oracles.spared == others.spared == 2 + STARTS[zero].count(0.0)
    assert oracles.calls == others.calls and 4 * 30 - oracles.spared == oracles.calls.B


@pairwise(
    compiled=[True, False],
    zero=STARTS,
    coupling=COUPLINGS,
    betas=[(0.3, 0.0), (0.0, 0.2), (0.3, 0.2)],
    order=["fgB", "fBg", "Bfg"],
)
def test_anchors_spare_the_averages_above_as_well(coupling, order, betas, zero, compiled):
    """At the first entry of a run the averages of the levels above have weight 0."""
    problem = problem_with(coupling)
    levels = ss.plan(problem, order=order, loops=(3, 2, 5), metric=(1.0, 2.0)).schedule.levels
    N, entries = {"fgB": (30, 6), "fBg": (6, 3), "Bfg": (3, 1)}[order]
    start, active = start_of(problem, zero), sum(beta > 0.0 for beta in betas)
    at_g = problem.g.gradient(start[1]).ravel()
    at_f = problem.f.gradient(start[0]).ravel()
    with jit(compiled):
        found, oracles = with_thrift(problem, Stage(levels, 1.0, *betas), start)
    assert oracles.spared == 2 + STARTS[zero].count(0.0) + active
    assert (4 + active) * N + entries * active - oracles.spared == oracles.calls.B

    # The same with p_3' by matrices, and no product reused.
    n, matrix = 20, np.stack([problem.coupling.forward(e.reshape(PICTURE)).ravel() for e in np.eye(20)], axis=1)

    def anchors(z, out):
        out[:n] = betas[0] * matrix.T @ (matrix @ z[:n] - at_g)
        out[n:] = betas[1] * matrix @ (matrix.T @ z[n:] + at_f)

    def coupled(z, out):
        out[:n], out[n:] = matrix.T @ z[n:], -matrix @ z[:n]

    gradients = {**gradient_writers(Oracles(problem), problem), "B": anchors}
    z = np.concatenate([part.ravel() for part in start])
    names = [level.term.name for level in levels]
    operators = [coupled if name == "B" else None for name in names]
    plain = Recursion(levels, [gradients[name] for name in names], operators, product_domain(problem), z)
    np.testing.assert_allclose(found, [average.copy() for average in plain.steps()], rtol=0.0, atol=1e-12)


@pairwise(compiled=[True, False], zero=STARTS, coupling=COUPLINGS, band=[4, 1000])
def test_primal_dual_steps_spare_the_first_adjoint(monkeypatch, coupling, zero, compiled, band):
    monkeypatch.setattr("saddleslide.methods.sliding.innermost._BAND", band)
    problem = problem_with(coupling)
    plan = ss.plan(problem, order="fgB", loops=(3, 2, 5), metric=(1.0, 2.0), coupling_step="primal-dual")
    start = start_of(problem, zero)
    with jit(compiled):
        result = ss.run(problem, plan, start=start)
        # From almost 0 every product is made, and the points are almost the same.
        nearly = ss.run(problem, plan, start=(start[0], start[1] + 1e-300))
    assert result.spared == (STARTS[zero][1] == 0.0) and nearly.spared == 0
    assert 60 - result.spared == result.method_calls.B
    np.testing.assert_allclose(result.x, nearly.x, rtol=0.0, atol=1e-13)
    np.testing.assert_allclose(result.y, nearly.y, rtol=0.0, atol=1e-13)


@pairwise(band=[4, 1000], kind=["plain", "anchors", "primal-dual"], coupling=["differences", "sparse", "dense"])
def test_compiled_loops_do_not_make_what_they_spare(monkeypatch, coupling, kind, band):
    """Of a block that is said to be 0 and is not a number nothing may be seen in the other block."""
    problem = problem_with(coupling)
    levels = ss.plan(problem, order="fgB", loops=(1, 1, 1), metric=(1.0, 2.0)).schedule.levels
    stage = Stage(levels, math.nan, *((0.3, 0.2) if kind == "anchors" else ()))
    view, n = View(problem, primal_dual=kind == "primal-dual"), 20
    monkeypatch.setattr("saddleslide.methods.sliding.innermost._BAND", band)

    def after_one_step(spares, start):
        monkeypatch.setattr("saddleslide.methods.sliding.innermost.find_spared", lambda ends, z, n: spares)
        oracles = Oracles(problem)
        anchors = take_anchors(oracles, stage, start_of(problem, "neither"), problem)
        with jit(True):
            recursion = bilinear_recursion(oracles, stage, start, view, anchors)
            assert recursion.innermost is not None
            return recursion.step(0), recursion.levels[-1].iterate

    x, y = start_of(problem, "neither")
    average, _ = after_one_step(arguments.ZERO_Y, (x, np.full(y.shape, math.nan)))
    assert np.isfinite(average[:n]).all() and not np.isfinite(average[n:]).any()
    if kind != "primal-dual":
        average, _ = after_one_step(arguments.ZERO_X, (np.full(x.shape, math.nan), y))
        assert np.isfinite(average[n:]).all() and not np.isfinite(average[:n]).any()
        # Without its correction the iterate stays where it is; entries of y that no difference reaches have none.
        average, iterate = after_one_step(arguments.LAST, (x, y))
        assert np.array_equal(iterate[:n], x.ravel()) and not np.array_equal(average[:n], x.ravel())
        reached = problem.coupling.forward(x).ravel() != 0.0
        assert np.array_equal(iterate[n:][reached], y.ravel()[reached])


@gathered("entries", [1, 200, 2**25])
def test_pieces_of_a_long_loop_spare_no_more(monkeypatch, entries):
    monkeypatch.setattr("saddleslide.methods.sliding.innermost._MOST_ENTRIES", entries)
    problem = problem_with("sparse")
    with jit(True):
        result = ss.run(problem, ss.plan(problem, order="fgB", loops=(2, 2, 9)))
        once = ss.run(problem, ss.plan(problem, order="fgB", loops=(1, 1, 1)))
    assert (result.method_calls.B, result.spared) == (4 * 36 - 4, 4)
    assert (once.method_calls.B, once.spared) == (0, 4)


def test_every_stage_of_a_restarted_run_leaves_its_last_correction_out():
    q, free = ss.functions.Quadratic([1.0, 4.0]), ss.domains.FullSpace(2)
    f, g = q + ss.functions.Linear([1.0, -1.0]), q + ss.functions.Linear([0.5, 2.0])
    problem = ss.SaddleProblem(f=f, g=g, B=np.array([[1.0, 0.5], [0.0, 1.0]]), X=free, Y=free)
    plan = ss.plan(problem, 1e-9, regime="restarts", Psi0=10.0)
    result = ss.run(problem, plan)
    assert result.success
    stages, rest = divmod(result.spared - 2, 2)
    assert rest == 0 and 1 < stages <= len(plan.schedule.stages)
    used = sum(
        4 * level.N for stage in plan.schedule.stages[:stages] for level in stage.levels if level.term.name == "B"
    )
    assert used == result.counted.B


def test_a_run_that_is_taken_up_again_spares_what_it_would_have(tmp_path):
    problem = problem_with("callables")
    plan, path = ss.plan(problem, order="fgB", loops=(4, 2, 3)), tmp_path / "run.npz"
    whole = ss.run(problem, plan)

    cut = ss.run(problem, plan, checkpoint=path, max_steps=2)
    assert (cut.nit, cut.spared) == (2, 2)
    after = ss.resume(path, problem, max_steps=4)
    assert (after.calls, after.spared) == (whole.calls, whole.spared) == (after.calls, 4)
    np.testing.assert_array_equal(after.x, whole.x)


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("order", ["fgB", "fBg", "Bfg"])
def test_an_anchored_run_that_is_taken_up_again_knows_its_averages(tmp_path, order, compiled):
    problem, path = problem_with("dense"), tmp_path / "run.npz"
    levels = ss.plan(problem, order=order, loops=(4, 3, 2), metric=(1.0, 2.0)).schedule.levels
    plan = stage_plan((Stage(levels, 1.0, 0.3, 0.2),), tol=1e-300)
    start = start_of(problem, "neither")

    with jit(compiled):
        whole = ss.run(problem, plan, start=start)
        assert ss.run(problem, plan, start=start, checkpoint=path, max_steps=2).nit == 2
        after = ss.resume(path, problem, max_steps=4)
    np.testing.assert_array_equal(np.concatenate([after.x.ravel(), after.y.ravel()]),
                                  np.concatenate([whole.x.ravel(), whole.y.ravel()]))  # fmt: skip
    assert (after.calls, after.spared) == (whole.calls, whole.spared) == (after.calls, 4)
    assert vars(after.counted) == plan.predicted_calls


def test_a_limit_of_the_calls_made_is_no_limit():
    problem = problem_with("dense")
    plan = ss.plan(problem, order="fgB", loops=(4, 2, 3))
    whole = ss.run(problem, plan)
    enough = ss.run(problem, plan, max_calls={"B": whole.method_calls.B})
    short = ss.run(problem, plan, max_calls={"B": whole.method_calls.B - 1})
    assert enough.status is whole.status is ss.Status.COMPLETED
    assert short.status is ss.Status.CALL_LIMIT


def test_a_start_of_minus_0_counts_as_0():
    problem = problem_with("dense")
    plan = ss.plan(problem, order="fgB", loops=(2, 1, 2))
    assert ss.run(problem, plan, start=(np.zeros(PICTURE), -np.zeros((2, *PICTURE)))).spared == 4
