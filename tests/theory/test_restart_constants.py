"""The constants of the proof of Theorem 4.4, derived again in rational numbers, and those of docs/theory.md."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np

from saddleslide.theory.holder import Holder
from saddleslide.theory.restarts import Curvature, prove_stage

RHO, C_VI = Fraction(1, 384), 32
# A grid of rational numbers of all signs and sizes.
NUMBERS = [Fraction(n, d) for n, d in product((-7, -1, 0, 2, 5), (1, 3))]
SIZES = [Fraction(n, d) for n, d in product((0, 1, 7), (1, 5))]


def test_the_steps_of_the_lower_bound_are_identities_and_squares():
    for a, b in product(NUMBERS, repeat=2):
        assert (a + b) ** 2 / 2 - b**2 / 2 == a**2 / 4 - b**2 + (a / 2 + b) ** 2
    for L, D in product(SIZES[2:], SIZES):
        # eq. ambient_self_bounding with beta = 1/(4 L): half of the Bregman distance at the start.
        assert Fraction(1, 4) / L * (2 * L * D) == D / 2
    for mu, beta, modulus, square in product(SIZES, repeat=4):
        least = mu / 2 * square
        delta = mu + 4 * beta * modulus**2
        for D in (least, least + 1):
            assert D + beta / 4 * modulus**2 * square >= Fraction(3, 4) * D + delta / 16 * square


def after(first, errors, R2, D):
    """16 (first R^2 + errors + D_i/2): what the lower bound makes of an upper bound, for Omega = 1."""
    return 16 * (first * R2 + errors + D / 2)


def test_the_constants_of_the_paper_follow_in_rational_numbers():
    # Linear in (R^2, D_i) over R^2 + 12 D_i <= 1: largest at a corner.
    corners = [(Fraction(0), Fraction(0)), (Fraction(1), Fraction(0)), (Fraction(0), Fraction(1, 12))]
    assert max(after(RHO, 2 * RHO, *corner) for corner in corners) == Fraction(3, 4)
    assert Fraction(2, 3) >= 16 * RHO
    # No larger rho will do, not by one part in a thousand.
    rho = RHO * Fraction(1001, 1000)
    assert max(after(rho, 2 * rho, *corner) for corner in corners) > Fraction(3, 4)
    # C_VI covers 2^(2i-1) and 2^(i-1), i <= 3, and a quarter of rho goes to each of four terms.
    assert max(max(2 ** (2 * i - 1), 2 ** (i - 1)) for i in (1, 2, 3)) == C_VI
    assert 4 * C_VI / RHO == 49_152
    assert math.isqrt(49_152) + 1 == 222
    # nu = 0: L(delta) = H^2 / (2 delta), delta = rho / N, so C_VI L / N^2 <= rho/4 is N >= 2 C_VI H^2 / rho^2.
    H, N = Fraction(3, 7), 2 * C_VI * Fraction(3, 7) ** 2 / RHO**2
    assert C_VI * (H**2 / (2 * (RHO / N))) / N**2 == RHO / 4


def test_a_proved_stage_makes_far_fewer_calls_than_the_constants_of_the_paper_ask_for():
    for kappas in ((100.0, 400.0, 3.6e5), (10.0, 40.0, 1e4)):
        f, g = (Holder(1.0, kappa) for kappa in kappas[:2])
        stage = prove_stage(Curvature(f, g, math.sqrt(kappas[2]), 1.0, 1.0), Omega=1.0)
        calls = {level.term.name: level.N for level in stage.levels}
        assert all(222.0 * math.sqrt(kappa) > 25.0 * calls[name] for name, kappa in zip("fg", kappas, strict=False))
        assert 49_152.0 * math.sqrt(kappas[2]) > 5_000.0 * calls["B"]
    # Rough functions, which take c^4 times their budgets, leave the products at c times theirs.
    stage = prove_stage(Curvature(Holder(0.0, 10.0), Holder(0.0, 40.0), 10.0, 1.0, 1.0), Omega=1.0)
    assert {level.term.name: level.N for level in stage.levels}["B"] < 100


def test_the_constants_without_anchors_are_those_of_strong_convexity_and_no_others():
    """Psi(z_out) <= 14 E and 7 R^2 <= Psi(z_in) are equalities for quadratics with the modulus mu."""
    for mu, square in product(SIZES[2:], repeat=2):
        D = mu / 2 * square
        assert mu * square + 12 * D == 14 * D == 7 * mu * square
    # So E <= Theta/2 R^2 + e gives Theta Omega + 14 e.
    theta, e = Fraction(3, 11), Fraction(1, 100)
    assert 14 * (theta / 2 * Fraction(1, 7) + e) == theta + 14 * e


def test_anchors_from_oracles_with_errors_gain_half_of_an_error_each():
    """|h~'(v) - h'(u)|^2 <= 2 L (D_h(v, u) + delta): the largest ratio is near 1, and without delta it is false."""
    rng, L, size, ratios, bare = np.random.default_rng(0), 2.0, 0.3, [], []
    # h(z) = z^2/2, called at z + e with |e| <= 0.3: a (|e|^2, 2)-oracle on the whole line.
    for _ in range(2000):
        v, u, e = rng.normal(), rng.normal(), rng.uniform(-size, size)
        square, D = (v + e - u) ** 2, 0.5 * (v - u) ** 2
        ratios.append(square / (2.0 * L * (D + size**2)))
        bare.append(square / (2.0 * L * D))
    assert max(ratios) <= 1.0
    assert max(bare) > 1.0
    # v - u = 2e: 9 e^2 of 4 (2 e^2 + e^2).
    assert max(ratios) > 0.7
