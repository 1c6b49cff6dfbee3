"""Hölder constants as numbers: L(delta), the best delta, and the arithmetic of conditions."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

from saddleslide import Holder
from support import gathered

EXPONENTS = [0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0]
exponents = st.floats(0.0, 1.0)
constants = st.floats(1e-3, 1e3)
positive = st.floats(1e-2, 1e2)


def printed_L(nu, H, delta):
    """Eq. Holder_L_of_delta, literally."""
    power = (1.0 - nu) / (1.0 + nu)
    return ((1.0 - nu) / (2.0 * (1.0 + nu)) / delta) ** power * H ** (2.0 / (1.0 + nu))


@given(st.floats(0.0, 0.999), constants, positive)
def test_L_is_the_printed_formula(nu, H, delta):
    assert Holder(nu, H).L(delta) == pytest.approx(printed_L(nu, H, delta), rel=1e-12)


@given(exponents, constants, positive)
def test_L_is_K_times_a_power_of_delta(nu, H, delta):
    holder = Holder(nu, H)
    assert holder.L(delta) == pytest.approx(holder.K * delta ** (-holder.inexactness_exponent), rel=1e-12)


@gathered("nu", EXPONENTS)
def test_L_makes_the_gradient_a_delta_L_oracle(nu):
    # H t^(1+nu) / (1+nu) <= L t^2 / 2 + delta is what the lemma needs; L is the smallest number that gives it.
    H, delta = 1.7, 0.3
    L = Holder(nu, H).L(delta)
    t = np.geomspace(1e-4, 1e4, 4001)
    slack = 0.5 * L * t**2 + delta - H * t ** (1.0 + nu) / (1.0 + nu)
    assert slack.min() >= -1e-9
    if nu < 1.0:
        assert (slack - 0.05 * 0.5 * L * t**2).min() < 0.0


@gathered("nu", EXPONENTS[:-1])
@gathered(("level", "N", "Omega", "H"), [(1, 7, 3.0, 2.0), (2, 40, 120.0, 0.5), (3, 900, 0.1, 30.0)])
def test_best_delta_minimises_the_bound_of_its_level(nu, level, N, Omega, H):
    def bound(log_delta):
        delta = math.exp(log_delta)
        return 2.0 ** (2 * level - 1) * printed_L(nu, H, delta) * Omega / N**2 + delta * N

    found = minimize_scalar(bound, bounds=(-60.0, 30.0), method="bounded", options={"xatol": 1e-12})
    best = Holder(nu, H).best_delta(level, N, Omega)
    assert math.log(best) == pytest.approx(found.x, abs=1e-5)
    assert bound(math.log(best)) <= found.fun * (1.0 + 1e-12)


def test_lipschitz_limit_needs_no_delta():
    holder = Holder(1.0, 3.0)
    assert (holder.L(0.0), holder.L(1e-300), holder.L(5.0), holder.best_delta(2, 10, 4.0)) == (3.0, 3.0, 3.0, 0.0)


def test_constants_approach_the_lipschitz_limit():
    assert Holder(1.0 - 1e-9, 3.0).L(0.1) == pytest.approx(3.0, rel=1e-6)
    assert Holder(1.0 - 1e-12, 3.0).best_delta(1, 10, 4.0) == pytest.approx(0.0, abs=1e-10)


@gathered("nu", EXPONENTS)
def test_constant_gradient_costs_nothing(nu):
    flat = Holder(nu, 0.0)
    assert (flat.K, flat.L(0.0), flat.L(2.0), flat.best_delta(1, 5, math.inf)) == (0.0, 0.0, 0.0, 0.0)


def test_exact_gradients_of_a_nonsmooth_function_have_no_finite_L():
    assert Holder(0.5, 1.0).L(0.0) == math.inf


@given(exponents, constants, positive, positive)
def test_metric_change_is_the_same_inequality_in_the_new_norm(nu, H, weight, distance):
    # |g|_dual = |g| / sqrt(w) and |u|_P = sqrt(w) |u|: the bound on the gradient must not change.
    euclidean = H * distance**nu
    in_metric = Holder(nu, H).in_metric(weight).H * (math.sqrt(weight) * distance) ** nu * math.sqrt(weight)
    assert in_metric == pytest.approx(euclidean, rel=1e-10)


@given(exponents, exponents, constants, positive, st.floats(0.0, 1.0))
def test_weaker_exponent_holds_at_every_distance_and_is_tight_at_the_diameter(first, second, H, diameter, share):
    strong, weak = max(first, second), min(first, second)
    weaker = Holder(strong, H).at_exponent(weak, diameter)
    distance = share * diameter
    assert weaker.nu == weak
    assert H * distance**strong <= weaker.H * distance**weak * (1.0 + 1e-10)
    assert weaker.H * diameter**weak == pytest.approx(H * diameter**strong, rel=1e-10)
    if strong == 1.0:
        assert Holder.from_lipschitz(H, weak, diameter) == weaker


@given(exponents, exponents, constants, constants, positive, st.floats(0.0, 1.0))
def test_sum_bounds_both_parts_together(nu1, nu2, H1, H2, diameter, share):
    total = Holder(nu1, H1).plus(Holder(nu2, H2), diameter)
    distance = share * diameter
    assert total.nu == min(nu1, nu2)
    assert H1 * distance**nu1 + H2 * distance**nu2 <= total.H * distance**total.nu * (1.0 + 1e-10)
    assert total.H * diameter**total.nu == pytest.approx(H1 * diameter**nu1 + H2 * diameter**nu2, rel=1e-10)


def test_equal_exponents_add_without_a_diameter_and_zero_is_neutral():
    assert Holder(0.5, 1.0) + Holder(0.5, 2.0) == Holder(0.5, 3.0)
    assert Holder(0.5, 1.0) + Holder(1.0, 0.0) == Holder(0.5, 1.0)
    assert Holder(1.0, 0.0) + Holder(0.25, 2.0) == Holder(0.25, 2.0)


@given(exponents, constants, st.floats(0.0, 1e3))
def test_scaling_multiplies_the_constant_only(nu, H, factor):
    assert factor * Holder(nu, H) == Holder(nu, factor * H) == Holder(nu, H) * factor


def test_no_condition_crosses_exponents_on_a_set_without_diameter():
    with pytest.raises(ValueError, match="unbounded"):
        Holder(1.0, 1.0) + Holder(0.5, 1.0)
    with pytest.raises(ValueError, match=r"nu is 0\.75; expected at most 0\.5"):
        Holder(0.5, 1.0).at_exponent(0.75, diameter=1.0)
