"""Bounds within a radius against closed forms and brute force."""

import math

import numpy as np
import pytest
import scipy.optimize
from hypothesis import given
from hypothesis import strategies as st

import saddleslide as ss
from saddleslide.certificates.within import least_within
from saddleslide.functions.roundings import Errors

F, D = ss.functions, ss.domains
EXACT = Errors(0.0, 0.0)
SIMPLE = {
    "zero": F.Zero(),
    "l1": 0.7 * F.Power(0.0),
    "quadratic": F.Quadratic(0.4) + F.Linear(np.array([0.3, -1.0])),
    "huber": F.Huber(0.5),
}
SETS = {
    "space": D.FullSpace(2),
    "orthant": D.NonNegative(2),
    "box": D.Box(-0.5, [0.2, np.inf]),
    "ball": D.Ball(1.5, shape=2),
    "simplex": D.Simplex(2),
}


def brute_minimum(slope, center, radius, simple, domain):
    """The least value on a fine grid of the set within the radius: nothing of the package but values and membership."""
    if isinstance(domain, D.Simplex):
        parts = np.linspace(0.0, 1.0, 1001)
        points = np.stack([parts, 1.0 - parts], axis=1)
    else:
        turns, lengths = np.meshgrid(np.linspace(0.0, 2.0 * np.pi, 181), np.linspace(0.0, radius, 41))
        points = center + np.stack([lengths * np.cos(turns), lengths * np.sin(turns)], axis=-1).reshape(-1, 2)
    inside = [x for x in points if np.linalg.norm(x - center) <= radius * (1 + 1e-12) and domain.violation(x) <= 1e-12]
    return min(float(slope @ (x - center)) + simple.value(x) for x in inside)


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("kind", SIMPLE)
def test_the_bound_is_never_above_the_minimum_and_close_to_it(name, kind):
    rng, simple, domain = np.random.default_rng(5), SIMPLE[kind], SETS[name]
    for radius in (0.3, 2.0):
        slope, center = rng.standard_normal(2), domain.project(rng.standard_normal(2))
        least = brute_minimum(slope, center, radius, simple, domain)
        bound = least_within(0.0, slope, center, radius, simple, domain, EXACT, math.nan)
        assert bound.value <= least + 1e-9
        # The grid has about 40 points along a radius.
        assert bound.value >= least - 0.05 * radius


@given(st.integers(0, 10**6), st.floats(1e-3, 1e3))
def test_on_the_whole_space_it_is_the_slope_times_the_radius(seed, radius):
    rng = np.random.default_rng(seed)
    slope, center = rng.standard_normal(5), rng.standard_normal(5)
    bound = least_within(1.0, slope, center, radius, F.Zero(), D.FullSpace(5), EXACT, math.nan)
    assert bound.value == pytest.approx(1.0 - radius * np.linalg.norm(slope), rel=1e-12)


def test_a_linear_program_within_a_radius_is_that_of_a_cone_solver():
    rng = np.random.default_rng(2)
    slope, center = rng.standard_normal(6), np.abs(rng.standard_normal(6))
    ball = {"type": "ineq", "fun": lambda x: 4.0 - (x - center) @ (x - center), "jac": lambda x: 2.0 * (center - x)}
    found = scipy.optimize.minimize(
        lambda x: slope @ (x - center), center, jac=lambda x: slope, bounds=[(0, None)] * 6, method="SLSQP",
        constraints=ball,
    )  # fmt: skip
    bound = least_within(0.0, slope, center, 2.0, F.Zero(), D.NonNegative(6), EXACT, math.nan)
    assert bound.value == pytest.approx(found.fun, rel=2e-3) and bound.value <= found.fun + 1e-9


def test_errors_of_value_and_slope_lower_the_bound():
    slope, center = np.array([1.0, -2.0]), np.zeros(2)
    for domain in (D.FullSpace(2), D.NonNegative(2)):
        clean = least_within(0.0, slope, center, 3.0, F.Zero(), domain, EXACT, math.nan)
        rough = least_within(0.0, slope, center, 3.0, F.Zero(), domain, Errors(0.5, 0.1), math.nan)
        assert rough.value <= clean.value - 0.5 - 0.1 * 3.0 + 1e-9
