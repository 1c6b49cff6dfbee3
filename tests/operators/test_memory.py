"""The recursion works in place: no vector is allocated after the first step."""

import math
import tracemalloc

import numpy as np
import pytest

import saddleslide as ss
from saddleslide.methods.sliding import bilinear_recursion
from saddleslide.oracles.oracles import Oracles
from saddleslide.theory.restarts import Stage

# Large enough that NumPy's fixed buffers (0.2 MB) do not count as a vector.
SIDE = 600


@pytest.mark.parametrize("order", ["fgB", "Bfg", "gBf"])
@pytest.mark.parametrize("metric", ["identity", (0.5, 2.0)])
def test_no_vector_is_allocated_per_step(order, metric):
    problem = ss.SaddleProblem(
        f=ss.functions.Power(1.0),
        g=ss.functions.Power(0.5),
        B=ss.operators.FiniteDifferences((SIDE, SIDE)),
        X=ss.domains.Box(-1.0, 1.0, shape=(SIDE, SIDE)),
        Y=ss.domains.Box(-0.5, 0.5, shape=(2, SIDE, SIDE)),
    )
    plan = ss.plan(problem, order=order, loops=(3, 2, 2), metric=metric)
    start = (np.full((SIDE, SIDE), 0.5), np.full((2, SIDE, SIDE), 0.25))
    steps = bilinear_recursion(Oracles(problem), Stage(plan.schedule.levels, math.nan), start).steps()
    next(steps)
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        next(steps)
        peak = tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()
    smallest_vector = 8 * SIDE * SIDE
    assert peak < 0.1 * smallest_vector
