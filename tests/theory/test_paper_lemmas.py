"""Lemmas of the paper's appendices on random instances: identities to rounding, inequalities never violated."""

from __future__ import annotations

import numpy as np
import pytest

import saddleslide as ss
from plans import first_stages
from saddleslide.methods.sliding import Recursion
from saddleslide.theory.levels import Term, place
from saddleslide.theory.noise import comparator_noise
from support import with_spectrum

F, D = ss.functions, ss.domains


def positive(rng, size, low, high):
    """A symmetric matrix with eigenvalues in [low, high]."""
    V = np.linalg.qr(rng.standard_normal((size, size)))[0]
    return (V * rng.uniform(low, high, size)) @ V.T


@pytest.mark.parametrize("seed", range(5))
def test_on_full_spaces_the_gap_is_four_bregman_distances(seed):
    """Lemma mixed_gap_identity, D_h* and D_q* by inverses, the gap by responses; Lemma mixed_conjugate_smoothness."""
    rng = np.random.default_rng(seed)
    n, m, mu, weight = 4, 3, 0.5, 0.2
    A, C, B = positive(rng, n, mu, 3.0), positive(rng, m, weight, 2.0), rng.standard_normal((m, n))
    a, c = rng.standard_normal(n), rng.standard_normal(m)
    x_star, y_star = np.split(np.linalg.solve(np.block([[A, B.T], [-B, C]]), np.concatenate([a, c])), [n])
    x, y = x_star + rng.standard_normal(n), y_star + rng.standard_normal(m)
    u, v = np.linalg.solve(A, a - B.T @ y), np.linalg.solve(C, c + B @ x)

    def value(x, y):
        return 0.5 * x @ A @ x - a @ x + y @ B @ x - (0.5 * y @ C @ y - c @ y)

    gap = value(x, v) - value(u, y)
    dx, dy = x - x_star, y - y_star
    h_star, q_star = 0.5 * dx @ B.T @ np.linalg.solve(C, B @ dx), 0.5 * dy @ B @ np.linalg.solve(A, B.T @ dy)
    assert gap == pytest.approx(0.5 * dx @ A @ dx + h_star + 0.5 * dy @ C @ dy + q_star, rel=1e-10)
    assert h_star <= np.sum((B @ dx) ** 2) / (2.0 * weight)
    assert q_star <= np.sum((B.T @ dy) ** 2) / (2.0 * mu)
    # The moduli are needed: with those of stronger convexity than there is both are false somewhere.
    low = np.linalg.eigh(C)[1][:, 0]
    assert 0.5 * low @ np.linalg.solve(C, low) > 1.0 / (2.0 * 1.05 * np.linalg.eigvalsh(C)[0])


def test_iterates_stay_in_the_range_where_the_condition_holds_and_leave_it_where_it_does_not():
    """Lemma subspace_invariance and Corollary mu_xy_valid: x - x_in in the range of B^T, |B dx| >= mu_xy |dx|."""
    rng = np.random.default_rng(2)
    B, K, b = with_spectrum([0.8, 1.3], 4, 3, rng), rng.standard_normal((5, 3)), rng.standard_normal(5)
    kernel, start = np.linalg.svd(B)[2][2], (rng.standard_normal(3), np.zeros(4))

    def moved(f, **settings):
        """x_out - x_in after a stage."""
        problem = ss.SaddleProblem(f=f, g=F.Quadratic(2.0), B=B, X=D.FullSpace(3), Y=D.FullSpace(4))
        plan = ss.plan(problem, 1e-3, regime="restarts", Psi0=50.0, start=start, **settings)
        return ss.run(problem, first_stages(plan, 1, tol=1e-300), start=start).x - start[0]

    range_only = K - np.outer(K @ kernel, kernel)
    dx = moved(F.LeastSquares(range_only, b), anchors=True, constants={"mu_xy": 0.8}, range_conditions=("x",))
    assert abs(kernel @ dx) <= 1e-12
    assert np.linalg.norm(B @ dx) >= 0.8 * np.linalg.norm(dx)
    # Data that see the kernel move x along it.
    dx = moved(F.LeastSquares(K, b) + F.Quadratic(1.0))
    assert abs(kernel @ dx) > 1e-3


def test_the_three_point_inequality_with_noise_holds_path_by_path_and_needs_its_terms():
    """Lemma stoch_three_point for h(z) = L/2 |z|^2, with y chosen after the error was drawn."""
    rng, L, tight, without = np.random.default_rng(5), 3.0, [], 0
    for _ in range(300):
        v, error = rng.standard_normal((2, 2))
        u = v + rng.integers(2) * rng.standard_normal(2)
        tau = 10.0 ** rng.uniform(-1.0, 1.0)
        # The y for which Young's inequality is an equality, and a random one.
        for y in (v - error / tau, rng.standard_normal(2)):
            left = 0.5 * L * (u @ u - y @ y)
            right = (L * v + error) @ (u - y) - 0.5 * (L + tau) * np.sum((y - v) ** 2)
            noise = error @ error / (2.0 * tau) + error @ (u - v)
            assert left >= right - noise - 1e-12
            tight.append(left - right + noise - 0.5 * L * np.sum((u - v) ** 2))
            without += left < right - 0.9 * error @ error / (2.0 * tau) - error @ (u - v)
    # Only the convexity at u is left over; nine tenths of the squared error would not do.
    assert min(tight) == pytest.approx(0.0, abs=1e-10)
    assert without > 50


def test_a_residual_at_the_solution_alone_says_nothing_of_a_bilinear_game():
    """Remark stoch_fixed_comparator: 0 at z* = 0 for every z_out, while the gap is not."""
    K = np.random.default_rng(6).standard_normal((4, 4))
    S, z = K - K.T, np.ones(4)
    assert (S @ np.zeros(4)) @ (z - np.zeros(4)) == 0.0
    Q = ss.Component(operator=lambda z: S @ z, lipschitz=np.linalg.norm(S, 2), name="Q")
    result = ss.slide([Q], D.Box(-1.0, 1.0, shape=4), z, loops=(1,))
    assert result.gap == pytest.approx(np.sum(np.abs(S @ result.z)), rel=1e-9)
    assert result.gap > 0.0


@pytest.mark.parametrize("T", [1, 2, 7])
def test_the_expected_residual_at_one_point_is_below_the_stochastic_bound_and_a_fifth_of_it_is_too_little(T):
    """Theorem VI_sliding_stochastic for h = L/2 z^2 from its minimum: sigma^2 spread / (2 tau) and no more."""
    L, sigma, tau, rng = 2.0, 0.7, 2.0, np.random.default_rng(T)
    levels = place([Term("h", inexact=(0.0, L), tau=tau, variance=sigma**2, Omega=1.0)], (T,))
    # Each entry of z is a draw of its own.
    draws = 4000

    def write(z, out):
        out[:] = L * z + sigma * rng.standard_normal(draws)

    *_, z = Recursion(levels, [write], [None], D.FullSpace(draws), np.zeros(draws)).steps()
    mean = 0.5 * L * float(np.mean(z**2))
    bound = comparator_noise(levels)
    assert mean <= bound
    if T == 1:
        # z = -e / (L + tau): L tau / (L + tau)^2 of it, a quarter for tau = L.
        assert mean == pytest.approx(bound / 4.0, rel=0.1)
        assert mean > bound / 5.0
