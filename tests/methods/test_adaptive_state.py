"""The state of adaptive sliding is plain data and all there is: a copy goes on with the same bits in fresh oracles."""

from copy import deepcopy
from dataclasses import fields, is_dataclass

import numpy as np
import pytest

import saddleslide as ss
from saddleslide.certificates.candidate import Candidate, Linearisation
from saddleslide.facts.facts import Facts
from saddleslide.kernels.switch import jit
from saddleslide.methods.adaptive_sliding import AdaptiveSliding
from saddleslide.methods.base import State
from saddleslide.oracles.calls import Calls
from saddleslide.oracles.oracles import Oracles

F, D = ss.functions, ss.domains
RNG = np.random.default_rng(8)
A, C, B = RNG.standard_normal((9, 6)), RNG.standard_normal((7, 4)), RNG.standard_normal((4, 6))
WEIGHTS = RNG.uniform(0.5, 2.0, 6)


class Own(F.Function):
    """A quadratic of the caller's, of which value and gradient at 0 have to be asked for."""

    own_code = quadratic = has_value = True

    def __init__(self, matrix):
        self.H = matrix.T @ matrix

    def value(self, x):
        return float(0.5 * x @ self.H @ x + x.sum() + 1.0)

    def value_and_gradient(self, x, out=None):
        return self.value(x), self.H @ x + 1.0

    def smoothness(self, domain):
        return ss.Holder(1.0, float(np.linalg.norm(self.H, 2)))

    def strong_convexity(self, domain):
        return 1e-3


FITTED, SQUARES = F.LeastSquares(A, np.ones(9), ridge=1e-2), F.LeastSquares(C, np.ones(7), ridge=1e-2)
OPERATOR = ss.metrics.Operator(lambda x: WEIGHTS * x, lambda x: x / WEIGHTS, largest=2.0)
# f, g, X, and settings of the method.
CASES = {
    "proximal": (FITTED, F.Quadratic(0.5), D.Box(-1.0, 1.0, shape=6), {}),
    "linearised": (FITTED, SQUARES, D.Box(-1.0, 1.0, shape=6), {}),
    "slid": (FITTED, SQUARES, D.Box(-1.0, 1.0, shape=6), {"g_steps": 4, "steps_per_g": 4}),
    "own code": (Own(A), Own(C), D.Box(-1.0, 1.0, shape=6), {"g_steps": 4, "steps_per_g": 4}),
    "kinks": (FITTED + F.Power(0.0), F.Huber(0.1), D.Simplex(6), {}),
    "diagonal": (FITTED, F.Zero(), D.FullSpace(6), {"metric": "diagonal"}),
    "spectral": (FITTED, SQUARES, D.FullSpace(6), {"metric": "spectral"}),
    "fft": (FITTED, F.Zero(), D.FullSpace(6), {"metric": "fft"}),
    "given": (FITTED, F.Zero(), D.FullSpace(6), {"metric": "given", "given": ss.metrics.Spectral(WEIGHTS)}),
    "operator": (FITTED, F.Zero(), D.FullSpace(6), {"metric": "given", "given": OPERATOR}),
    "a ball that is met": (FITTED, SQUARES, D.Ball(0.1, shape=6), {"metric": "spectral"}),
    "bent": (FITTED + F.Power(0.0), F.Zero(), D.Box(0.0, 1.0, shape=6), {"metric": "spectral"}),
    "constrained": (FITTED, F.Zero(), D.Simplex(6), {"metric": "given", "given": OPERATOR}),
}


def leaves(value):
    """Arrays as bytes and everything else that a state holds; nothing but plain data."""
    if isinstance(value, np.ndarray):
        return [value.tobytes()]
    if isinstance(value, tuple):
        return [leaf for part in value for leaf in leaves(part)]
    if is_dataclass(value):
        assert isinstance(value, State | Candidate | Linearisation)
        return [leaf for field in fields(value) for leaf in leaves(getattr(value, field.name))]
    assert value is None or value == {} or isinstance(value, float | int | str)
    return [repr(value)]


def went_on(method, state, oracles, steps):
    for _ in range(steps):
        state = method.step(state, oracles)
    return state


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("name", CASES)
def test_a_copy_of_the_state_goes_on_with_the_same_bits(name, compiled):
    f, g, X, settings = CASES[name]
    problem = ss.SaddleProblem(f=f, g=g, B=B, X=X, Y=D.Box(-1.0, 1.0, shape=4))
    with jit(compiled):
        method, oracles = AdaptiveSliding(inner_steps=8, **settings), Oracles(problem, guarded=True)
        state = method.init(oracles, Facts(problem), problem.start(), 1e-6)
        state = went_on(method, state, oracles, 6)
        kept, before, spent = leaves(state), deepcopy(state), oracles.calls.copy()
        fresh = Oracles(problem, dry=True, guarded=True)
        method.init(fresh, Facts(problem), problem.start(), 1e-6)
        assert fresh.calls == Calls()
        fresh.dry = False
        ours, theirs = went_on(method, state, oracles, 4), went_on(method, before, fresh, 4)
    assert leaves(ours) == leaves(theirs) and oracles.calls == spent + fresh.calls
    # Steps leave the states alone that they begin with.
    assert leaves(state) == kept
