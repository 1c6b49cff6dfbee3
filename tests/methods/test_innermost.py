"""The innermost level with simple terms and norms of x: compiled loops against the recursion in NumPy."""

import tracemalloc

import numpy as np
import pytest

import saddleslide as ss
from level_cases import COLUMNS, COUPLINGS, FIELD, LEVELS, METRICS, PICTURE, RNG, ROWS, Q, sets, terms
from saddleslide.functions import prox
from saddleslide.kernels.switch import jit
from saddleslide.methods.sliding import bilinear_recursion
from saddleslide.methods.sliding.known import known_term
from saddleslide.methods.sliding.view import View
from saddleslide.metrics import Diagonal, Spectral
from saddleslide.oracles.oracles import Oracles
from saddleslide.theory.restarts import Stage
from support import gathered, is_compiled, pairwise


def recursion_of(coupling, X="full", Y="full", f="nothing", g="nothing", metric="none", betas=(0.0, 0.0)):
    rest = Q.Quadratic(1.3) + Q.Linear(np.random.default_rng(1).standard_normal(PICTURE))
    B = COUPLINGS[coupling]
    problem = ss.SaddleProblem(f=rest, g=Q.Quadratic(0.6), B=B, X=sets(PICTURE)[X], Y=sets(FIELD)[Y])
    norm = METRICS[metric]
    view = View(problem, terms(PICTURE)[f], terms(FIELD)[g], (None if norm is None else norm.with_coupling(B), None))
    oracles, rng = Oracles(problem), np.random.default_rng(2)
    start = tuple(D.project(0.3 * rng.standard_normal(D.shape)) for D in (problem.X, problem.Y))
    return bilinear_recursion(oracles, Stage(LEVELS, 1.0, *betas), start, view), oracles


def assert_twins(*given, **named):
    found = []
    for on in (True, False):
        with jit(on):
            recursion, oracles = recursion_of(*given, **named)
            found.append((np.array([step.copy() for step in recursion.steps()]), oracles.calls))
            assert is_compiled(recursion) == on
    (fast, calls), (slow, slow_calls) = found
    assert calls == slow_calls
    assert np.abs(fast - slow).max() <= 1e-12 * np.abs(slow).max()
    assert np.abs(slow[0] - slow[-1]).max() > 1e-6 * np.abs(slow).max()
    return slow


@pairwise(coupling=COUPLINGS, f=terms(PICTURE), g=terms(FIELD))
def test_simple_terms_are_part_of_the_compiled_level(coupling, f, g):
    with_terms = assert_twins(coupling, "interval", "box", f, g)
    if (f, g) != ("nothing", "nothing"):
        assert np.abs(with_terms - assert_twins(coupling, "interval", "box")).max() > 1e-3


@pairwise(coupling=COUPLINGS, X=sets(PICTURE), Y=sets(FIELD))
def test_simple_terms_on_every_set(coupling, X, Y):
    bent, even = "both", "number"
    coupled = ("ball", "simplex")
    assert_twins(coupling, X, Y, even if X in coupled else bent, even if Y in coupled else bent)


@pairwise(coupling=COUPLINGS, metric=METRICS, g=["nothing", "both"], Y=["interval", "ball"])
def test_norms_of_x_are_part_of_the_compiled_level(coupling, metric, g, Y):
    g = "number" if Y == "ball" and g == "both" else g
    in_norm = assert_twins(coupling, "full", Y, "nothing", g, metric)
    if metric not in ("none", "fourier"):
        assert np.abs(in_norm - assert_twins(coupling, "full", Y, "nothing", g)).max() > 1e-4


@pairwise(coupling=COUPLINGS, f=terms(PICTURE), X=["full", "interval", "box"])
def test_simple_terms_in_a_diagonal_norm(coupling, f, X):
    assert_twins(coupling, X, "interval", f, "root", "diagonal")


@pairwise(band=[1, 6, 13, 1000], f=["nothing", "both"], metric=["none", "diagonal"])
def test_bands_of_every_height(monkeypatch, band, f, metric):
    monkeypatch.setattr("saddleslide.methods.sliding.innermost._BAND", band)
    assert_twins("differences", "box", "box", f, f, metric)


@gathered("together", [1, 2, 3, 4, 7])
@pytest.mark.parametrize("band", [1, 7, 18])
def test_steps_that_share_a_pass(monkeypatch, together, band):
    monkeypatch.setattr("saddleslide.methods.sliding.innermost._TOGETHER", together)
    monkeypatch.setattr("saddleslide.methods.sliding.innermost._BAND", band)
    assert_twins("differences", "interval", "interval")


@pytest.mark.parametrize("betas", [(0.3, 0.0), (0.3, 0.2)])
@pytest.mark.parametrize("coupling", COUPLINGS)
def test_anchors_beside_simple_terms(coupling, betas):
    assert_twins(coupling, "interval", "box", "absolute", "both", betas=betas)


@gathered("weight", [0.3, 2.0])
@gathered("name", terms(PICTURE))
def test_a_known_term_is_the_function_it_stands_for(weight, name):
    """The scalar equation that compiled loops solve, solved by bisection, is the proximal step."""
    term, center = terms(PICTURE)[name], 2.0 * RNG.standard_normal(PICTURE)
    _, *parts = known_term(term, ss.domains.FullSpace(PICTURE))
    size = ROWS * COLUMNS
    stiffness, threshold, root, linear = (
        np.broadcast_to(part, size) if part.size else np.zeros(size) for part in parts
    )
    pull = weight * center.ravel() - linear
    low, high = np.zeros(size), np.abs(pull) / weight + 1.0
    for _ in range(200):
        middle = 0.5 * (low + high)
        above = (weight + stiffness) * middle + threshold + root * np.sqrt(middle) > np.abs(pull)
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    expected = np.sign(pull) * low
    assert np.abs(prox(term, center, weight, ss.domains.FullSpace(PICTURE)).ravel() - expected).max() < 1e-12


@gathered("unknown", [Q.Huber(0.3), Q.Power(0.25), Q.Logistic(np.eye(3), [1, -1, 1])])
def test_other_terms_keep_the_loop_in_python(unknown):
    assert known_term(unknown, ss.domains.FullSpace(3)) is None


def test_entries_of_their_own_on_a_ball_keep_the_loop_in_python():
    assert known_term(terms(PICTURE)["entries"], sets(PICTURE)["ball"]) is None
    assert known_term(terms(PICTURE)["number"], sets(PICTURE)["ball"]) is not None


@pytest.mark.parametrize("metric", ["none", "diagonal", "cosine"])
@pytest.mark.parametrize("simple", [False, True])
def test_no_vector_is_allocated_per_step(metric, simple):
    side = 600
    picture, field = (side, side), (2, side, side)
    B = ss.operators.FiniteDifferences(picture)
    problem = ss.SaddleProblem(
        f=Q.Power(1.0), g=Q.Zero(), B=B, X=ss.domains.FullSpace(picture), Y=ss.domains.Box(-0.1, 0.1, shape=field)
    )
    norm = {"none": None, "diagonal": Diagonal(np.full(picture, 2.0)), "cosine": Spectral(np.full(picture, 2.0))}[
        metric
    ]
    g = Q.Quadratic(0.5) if simple else Q.Zero()
    with jit(True):
        view = View(problem, Q.Zero(), g, (None if norm is None else norm.with_coupling(B), None))
        start = (np.ones(picture), np.full(field, 0.05))
        steps = bilinear_recursion(Oracles(problem), Stage(LEVELS, 1.0), start, view).steps()
        next(steps)
        tracemalloc.start()
        try:
            before = tracemalloc.get_traced_memory()[0]
            next(steps)
            peak = tracemalloc.get_traced_memory()[1] - before
        finally:
            tracemalloc.stop()
    assert peak < 0.1 * 8 * side * side
