"""`solve` on random planted problems, checked by code that shares nothing with the package (see independent.py)."""

import math

import numpy as np
import pytest

import saddleslide as ss
from independent import ROUNDING, Truth
from planted import planted
from saddleslide.certificates.guards import ENOUGH

CHUNK = 12
CHUNKS = 5


def check(seed):
    """Solve the problem of a seed; what is wrong with the answer."""
    p = planted(seed)
    result = ss.solve(p.problem, reduction=p.reduction)
    truth = Truth(p)
    found = truth.complaints(result.x, result.y, result.lower, result.upper)
    x, y = p.problem.start()
    start_gap = truth.gap(x, y)
    # A start that is already optimal leaves no relative target: the gap must then be as small as rounding allows.
    trivial = start_gap <= 1e3 * ROUNDING * truth.size(x, y)
    # Where nothing but a declared modulus can bound the gap, the status says so.
    solved = ss.Status.MET_AS_DECLARED if p.problem.assumptions else ss.Status.SOLVED
    wanted = (solved, ss.Status.NUMERICAL_LIMIT) if trivial else (solved,)
    if result.status not in wanted:
        found.append(f"status {result.status.name}, gap {result.gap:.3e}, {result.calls}")
    target = p.reduction * start_gap + ROUNDING * truth.size(x, y)
    if result.status is solved and not result.gap <= target * (1.0 + 1e-6):
        found.append(f"gap {result.gap:.3e} exceeds the target {target:.3e}")
    return [f"{p.label}, reduction {p.reduction:g}: {complaint}" for complaint in found]


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_planted_problems_are_solved_and_their_gaps_are_true(chunk):
    seeds = range(CHUNK * chunk, CHUNK * (chunk + 1))
    assert [complaint for seed in seeds for complaint in check(seed)] == []


def test_planted_points_are_saddle_points():
    """The generator itself: F(x*, y) <= F(x*, y*) <= F(x, y*) at the best replies found."""
    for seed in range(30):
        p = planted(seed)
        if p.saddle is None:
            continue
        truth = Truth(p, steps=20)
        x, y = p.saddle
        slack = 10.0 * ROUNDING * truth.size(x, y)
        assert truth.best_y(x)[0] <= p.value + slack, p.label
        assert truth.best_x(y)[0] >= p.value - slack, p.label
        assert np.isfinite(p.value) and math.isfinite(truth.gap(x, y))


def test_judging_takes_no_more_gradients_than_the_method():
    """Up to one gradient that the scale of a relative target may cost, and the probes of own code before a success."""
    for seed in (0, 9, 12, 13, 26, 32, 39, 56, 68, 85, 98, 108, 127, 150, 164, 188, 219):
        p = planted(seed)
        result = ss.solve(p.problem, reduction=p.reduction)
        judging, total = result.certificate_calls, result.calls
        # Every row of the history has compared one point more, up to where no probe is made.
        probes = max(ENOUGH - len(result.history), 0)
        more_f, more_g = (1.0 + probes * part.own_code for part in (p.problem.f, p.problem.g))
        assert judging.f <= total.f - judging.f + more_f, p.label
        assert judging.g <= total.g - judging.g + more_g, p.label
