"""The inner loop of `solve`: compiled steps against steps in NumPy, and products of differences against a matrix."""

import numpy as np
import pytest

import saddleslide as ss
from saddleslide.certificates.candidate import Split
from saddleslide.kernels.switch import jit, load
from saddleslide.methods.sliding.inner import CompiledSteps, DualModel, InnerLoop, InnerProblem, Work
from saddleslide.methods.sliding.known import known_curve, known_inverse, known_operator, known_set, known_term
from saddleslide.metrics import Blocks, Diagonal, Spectral
from saddleslide.metrics.memory import Memory, Remembered
from saddleslide.oracles.oracles import Oracles
from support import gathered, pairwise

SHAPE, FIELD = (5, 6), (2, 5, 6)
RNG = np.random.default_rng(11)
Q = ss.functions

SIMPLE = {
    "zero": Q.Zero(),
    "quadratic": Q.Quadratic(0.7),
    "diagonal": Q.Quadratic(RNG.uniform(0.1, 2.0, FIELD), diagonal=True) + Q.Linear(RNG.standard_normal(FIELD)),
    "absolute": Q.Power(0.0, weight=0.3) + Q.Quadratic(0.2),
    "root": Q.Power(0.5, weight=0.4) + Q.Quadratic(0.1) + Q.Linear(RNG.standard_normal(FIELD)),
    "both": Q.Power(0.5, weight=0.4) + Q.Power(0.0, weight=0.1),
}
BENT = {"huber": Q.Huber(0.3), "other power": Q.Power(0.25), "uneven": Q.Power(0.0, weight=RNG.uniform(size=FIELD))}
DUAL = {
    "full": ss.domains.FullSpace(FIELD),
    "interval": ss.domains.Box(-0.2, 0.3, shape=FIELD),
    "box": ss.domains.Box(-0.4 * RNG.uniform(size=FIELD), 0.4 * RNG.uniform(size=FIELD)),
}
METRICS = {
    "spectral": Spectral(RNG.uniform(0.5, 3.0, SHAPE)),
    "periodic": Spectral(np.full(SHAPE, 1.7), basis="fft"),
    "blocks": Blocks(1.3, 1.0),
    "diagonal": Diagonal(RNG.uniform(0.5, 3.0, SHAPE)),
}
COUPLINGS = {
    "differences": ss.operators.FiniteDifferences(SHAPE),
    "dense": ss.operators.Matrix(0.2 * RNG.standard_normal((60, 30)), SHAPE, FIELD),
}


HESSIAN = (lambda M: M @ M.T + np.eye(30))(RNG.standard_normal((30, 30)))


def remembered(count):
    """What a Hessian has answered along so many steps."""
    memory, rng = Memory(), np.random.default_rng(6)
    for _ in range(count):
        step = rng.standard_normal(SHAPE)
        image = (HESSIAN @ step.ravel()).reshape(SHAPE)
        memory = memory.with_step(step, image, float(np.vdot(step, image)))
    return memory


def outcomes(metric, g_simple, Y, coupling="differences", model=None, X=None, f_simple=None, steps=7, memory=0):
    """What the loop gives with and without compiling, its products, and whether it was compiled."""
    X = ss.domains.FullSpace(SHAPE) if X is None else X
    f_simple = Q.Zero() if f_simple is None else f_simple
    B = COUPLINGS[coupling]
    problem = ss.SaddleProblem(f=Q.Quadratic(1.0) + f_simple, g=g_simple, B=B, X=X, Y=Y)
    attached = METRICS[metric].with_coupling(B)
    rng = np.random.default_rng(5)
    gradient, center, start = (rng.standard_normal(SHAPE) for _ in range(3))
    begin = (start, Y.project(rng.standard_normal(FIELD)))
    origin = (rng.standard_normal(SHAPE), Y.project(rng.standard_normal(FIELD)))
    hessian = Remembered(attached, 1.9, remembered(memory))
    given = InnerProblem(gradient, center, hessian, begin, origin, 0.8, model)
    found = []
    for on in (True, False):
        with jit(on):
            oracles = Oracles(problem)
            loop = InnerLoop(oracles, attached, Split(Q.Quadratic(1.0), f_simple, Q.Zero(), g_simple))
            result, _ = loop.solve(given, Work(steps, 1e-3), steps)
        found.append((*result[:4], result.Bx, oracles.calls.B, isinstance(loop.steps, CompiledSteps)))
    return found


def assert_twins(found, compiled=True):
    fast, slow = found
    assert (fast[-1], slow[-1]) == (compiled, False)
    # Two products a step, and B^T at the last y.
    assert fast[3] == slow[3] and fast[5] == slow[5] == 2 * slow[3] + 1
    for ours, theirs in zip(fast[:3] + fast[4:5], slow[:3] + slow[4:5], strict=True):
        assert ours.shape == theirs.shape
        assert np.abs(ours - theirs).max() <= 1e-12 * max(1.0, np.abs(theirs).max())


@pairwise(metric=METRICS, g=SIMPLE, Y=DUAL)
def test_compiled_steps_are_those_in_numpy(metric, g, Y):
    assert_twins(outcomes(metric, SIMPLE[g], DUAL[Y]))


@pairwise(curvature=["none", "number", "entries"], metric=["spectral", "blocks"], coupling=COUPLINGS)
def test_a_model_of_g_is_part_of_them(curvature, metric, coupling):
    bend = {"none": 0.0, "number": 0.6, "entries": RNG.uniform(size=FIELD)}[curvature]
    model = DualModel(RNG.standard_normal(FIELD), bend, RNG.standard_normal(FIELD))
    assert_twins(outcomes(metric, SIMPLE["quadratic"], DUAL["interval"], coupling, model))


@pytest.mark.parametrize("f", [Q.Zero(), Q.Power(0.0, weight=0.2), Q.Quadratic(0.5) + Q.Linear(np.ones(SHAPE))])
@pytest.mark.parametrize("X", [ss.domains.Box(-0.3, 0.2, shape=SHAPE), ss.domains.FullSpace(SHAPE)])
def test_simple_terms_of_x_in_entrywise_metrics(f, X):
    assert_twins(outcomes("diagonal", SIMPLE["zero"], DUAL["interval"], X=X, f_simple=f))


@gathered("g", BENT)
def test_other_curves_stay_in_numpy(g):
    assert_twins(outcomes("blocks", BENT[g], DUAL["interval"]), compiled=False)


def test_sets_that_couple_entries_stay_in_numpy():
    assert_twins(outcomes("blocks", SIMPLE["zero"], ss.domains.Ball(1.0, shape=FIELD)), compiled=False)
    X = ss.domains.Ball(1.0, shape=SHAPE)
    assert_twins(outcomes("blocks", SIMPLE["zero"], DUAL["interval"], X=X), compiled=False)
    # In the coordinates of a spectral metric x is free, whatever its copy has to keep to.
    assert outcomes("spectral", SIMPLE["zero"], DUAL["interval"], X=X)[0][-1]


@pytest.mark.parametrize("f", [Q.Zero(), Q.Power(0.0, weight=0.2), Q.Quadratic(0.5) + Q.Linear(np.ones(SHAPE))])
@pytest.mark.parametrize("X", [ss.domains.Box(-0.3, 0.2, shape=SHAPE), ss.domains.FullSpace(SHAPE)])
@pytest.mark.parametrize("memory", [0, 3])
def test_what_is_remembered_and_a_copy_of_x_are_alike_in_both(f, X, memory):
    found = outcomes("spectral", SIMPLE["zero"], DUAL["interval"], X=X, f_simple=f, memory=memory)
    fast, slow = found
    assert fast[-1] and not slow[-1] and fast[3] == slow[3] and fast[5] == slow[5]
    for ours, theirs in zip(fast[:3], slow[:3], strict=True):
        assert np.abs(ours - theirs).max() <= 1e-11 * max(1.0, np.abs(theirs).max())
    assert X.contains(slow[1]) and np.array_equal(METRICS["spectral"].to_basis(slow[1]), slow[0]) == (slow[4] is None)


@pytest.mark.parametrize("metric", ["spectral", "blocks"])
@pytest.mark.parametrize("L", [0.2, 500.0])
def test_what_is_remembered_is_exact_and_the_rest_bounded(metric, L):
    """P_k S = H S, and P_k >= H where L P >= H; solves and squares are those of the matrix."""
    P, memory = METRICS[metric], remembered(4)
    model, unit = Remembered(P, L, memory), np.eye(30).reshape(30, *SHAPE)
    matrix = np.stack([model.apply(e).ravel() for e in unit], axis=1)
    S = np.stack([step.ravel() for step in memory.steps], axis=1)
    np.testing.assert_allclose(matrix @ S, HESSIAN @ S, atol=1e-9)
    least = np.linalg.eigvalsh(matrix - HESSIAN).min()
    largest = np.linalg.eigvalsh(L * np.diag(np.broadcast_to(P.symbol, SHAPE).ravel()) - HESSIAN).min()
    assert (largest >= 0.0) == (L == 500.0) and (least >= -1e-8 or largest < 0.0)
    T = np.random.default_rng(1).standard_normal(SHAPE)
    found = model.solver(0.8, 0.3).solve(T).ravel()
    coupling = 0.8 * np.broadcast_to(P.coupling_symbol, SHAPE).ravel() + 0.3
    np.testing.assert_allclose((matrix + np.diag(coupling)) @ found, T.ravel(), atol=1e-9)
    beyond = T.ravel() - S @ np.linalg.solve(S.T @ HESSIAN @ S, S.T @ HESSIAN @ T.ravel())
    step, bent = model.beyond(T, (HESSIAN @ T.ravel()).reshape(SHAPE))
    np.testing.assert_allclose(step.ravel(), beyond, atol=1e-10)
    assert bent == pytest.approx(beyond @ HESSIAN @ beyond, rel=1e-8)
    assert L * model.square_beyond(T) == pytest.approx(beyond @ matrix @ beyond, rel=1e-8)


def test_the_same_step_again_says_nothing_new():
    memory = remembered(9)
    again = memory.with_step(memory.steps[-1], memory.images[-1], 1.0)
    assert len(memory.steps) == len(again.steps) == 5
    step, image = memory.steps[2] + memory.steps[3], memory.images[2] + memory.images[3]
    model = Remembered(METRICS["spectral"], 500.0, again)
    assert model.seen == 4 and model.beyond(step, image)[1] == 0.0


def test_the_result_is_not_overwritten_by_the_next_problem():
    B = COUPLINGS["differences"]
    saddle = ss.SaddleProblem(
        f=Q.Quadratic(1.0), g=Q.Zero(), B=B, X=ss.domains.FullSpace(SHAPE), Y=DUAL["interval"]
    )  # fmt: skip
    with jit(True):
        loop = InnerLoop(
            Oracles(saddle), METRICS["spectral"].with_coupling(B), Split(saddle.f, Q.Zero(), Q.Zero(), saddle.g)
        )
        start = (np.ones(SHAPE), np.zeros(FIELD))
        one, two = (Remembered(METRICS["spectral"].with_coupling(B), L, remembered(2)) for L in (1.0, 2.0))
        given = InnerProblem(np.eye(*SHAPE), np.zeros(SHAPE), one, start, start, 0.5, None)
        first, work = loop.solve(given, Work(3, 0.0), 3)
        kept = [part.copy() for part in first[:3]]
        product = first.Bx.copy()
        np.testing.assert_allclose(product, B.forward(first[1]), atol=1e-14)
        loop.solve(InnerProblem(-np.eye(*SHAPE), np.ones(SHAPE), two, start, start, 3.0, None), work, 5)
    for part, copy in zip(first[:3], kept, strict=True):
        assert np.array_equal(part, copy)


def test_parts_of_known_kinds_are_what_compiled_loops_take():
    two, free = Q.Power(0.5), ss.domains.FullSpace(2)
    assert known_curve((2.0 * two + Q.Power(0.0)).separable_form()) == (1.0, 2.0)
    assert known_curve((Q.Power(0.0, weight=[1.0, 2.0]) + two).separable_form()) is None
    assert known_operator(ss.operators.FiniteDifferences((4, 5))) == (4, 5)
    assert known_set(ss.domains.Ball(2.0, shape=3)).radius == 2.0
    assert known_term(3.0 * Q.Power(0.0), free).threshold.tolist() == [3.0]
    assert known_inverse(ss.metrics.Diagonal([1.0, 4.0]), free).tolist() == [1.0, 0.25]


@gathered("shape", [(1, 1), (1, 2), (2, 1), (1, 7), (7, 1), (2, 2), (3, 4), (9, 16)])
def test_compiled_differences_are_the_products_of_the_coupling(shape):
    B, kernels = ss.operators.FiniteDifferences(shape), load("products")
    rng = np.random.default_rng(3)
    x, y = rng.standard_normal(shape), rng.standard_normal((2, *shape))
    forward, adjoint = np.full(y.size, np.nan), np.full(x.size, np.nan)
    kernels.difference_forward(*shape, -2.0, x.ravel(), forward)
    kernels.difference_adjoint(*shape, y.ravel(), adjoint)
    np.testing.assert_allclose(forward, -2.0 * B.forward(x).ravel(), rtol=0.0, atol=1e-15)
    np.testing.assert_allclose(adjoint, B.adjoint(y).ravel(), rtol=0.0, atol=1e-15)


@pytest.mark.parametrize("name", ["standard", "nonlocal", "holder"])
def test_solve_takes_the_same_calls_either_way(name):
    problem = ss.gallery.tomography(name, n=16)
    with jit(True):
        fast = ss.solve(problem, reduction=1e-5)
    with jit(False):
        slow = ss.solve(problem, reduction=1e-5)
    assert fast.calls == slow.calls and fast.success and slow.success
    assert np.abs(fast.x - slow.x).max() <= 1e-9 * np.abs(slow.x).max()
