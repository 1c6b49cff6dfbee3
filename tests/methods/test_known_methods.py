"""One level is Nesterov's method, Tseng's extragradient and Accelerated Mirror-Prox, iterate by iterate.

Each method is written in its own textbook form: momentum numbers t_k instead of alphas, sums of step sizes instead of
running averages.
"""

from __future__ import annotations

import math

import numpy as np

import saddleslide as ss
from saddleslide.methods.sliding import Recursion
from support import component_levels, gathered
from transcriptions import Space, assert_projection_is_active, assert_same_iterates, feasible_start, writers_of

STEPS = 20
DOMAINS = {
    "box": ss.domains.Box(-0.2, 0.3, shape=6),
    "ball": ss.domains.Ball(0.4, shape=6),
    "simplex": ss.domains.Simplex(6),
}
FREE = ss.domains.FullSpace(6)
constrained = gathered("domain", DOMAINS.values(), ids=DOMAINS)


class Instance:
    """A smooth convex p and a nonlinear monotone Q on R^6 with their constants."""

    def __init__(self, domain, seed=0):
        rng = np.random.default_rng(seed)
        A, self.b = rng.standard_normal((8, 6)), 2.0 * rng.standard_normal(8)
        K, self.c = rng.standard_normal((6, 6)), 2.0 * rng.standard_normal(6)
        self.A, self.K = A, K - K.T
        self.L, self.M = np.linalg.norm(A, 2) ** 2, np.linalg.norm(self.K, 2) + 1.0
        self.start = feasible_start(rng, Space(domain))

    def dp(self, z):
        return self.A.T @ np.tanh(self.A @ z - self.b)

    def Q(self, z):
        return self.K @ z + np.tanh(z) + self.c


def library_run(instance, domain, function, operator):
    """Iterates z_t and averages of the library's one-level method."""
    component = ss.Component(
        function=instance.dp if function else None,
        smoothness=ss.Holder(1.0, instance.L) if function else None,
        operator=instance.Q if operator else None,
        lipschitz=instance.M if operator else 0.0,
    )
    levels = component_levels([component], domain, instance.start, [STEPS])
    writers = writers_of([component], domain)
    recursion = Recursion(levels, *writers, ss.domains.Product(domain), instance.start)
    pairs = [(recursion.levels[0].iterate.copy(), average.copy()) for average in recursion.steps()]
    averages: list = []
    ss.slide([component], domain, instance.start, [STEPS], callback=lambda seen: averages.append(seen.z))
    assert_same_iterates(averages, [average for _, average in pairs], tolerance=0.0)
    return [iterate for iterate, _ in pairs], averages


def momenta():
    """t_1 = 1, t_{k+1} = (1 + sqrt(1 + 4 t_k^2)) / 2."""
    t = [1.0]
    while len(t) < STEPS + 1:
        t.append((1.0 + math.sqrt(1.0 + 4.0 * t[-1] ** 2)) / 2.0)
    return t


def nesterov_with_momentum(instance):
    """x_{k+1} = y_k - p'(y_k)/L, y_{k+1} = x_{k+1} + (t_k - 1)/t_{k+1} (x_{k+1} - x_k), unconstrained."""
    x = y = instance.start
    points, t = [], momenta()
    for k in range(STEPS):
        following = y - instance.dp(y) / instance.L
        y = following + (t[k] - 1.0) / t[k + 1] * (following - x)
        x = following
        points.append(x)
    return points


def nesterov_with_estimates(instance, project):
    """Three sequences: y mixes x and the estimate v, v takes a step of length t_k/L, x mixes in the new v."""
    x = v = instance.start
    estimates, points = [], []
    for t in momenta()[:STEPS]:
        y = x + (v - x) / t
        v = project(v - t / instance.L * instance.dp(y))
        x = x + (v - x) / t
        estimates.append(v)
        points.append(x)
    return estimates, points


def tseng_extragradient(instance, project):
    """Forward-backward-forward with steps that grow like t_k up to 1/M, and the step-weighted mean."""
    z, steps, forward = instance.start, [t / (momenta()[STEPS - 1] * instance.M) for t in momenta()[:STEPS]], []
    iterates, means = [], []
    for k, step in enumerate(steps, start=1):
        half = project(z - step * instance.Q(z))
        z = project(half - step * (instance.Q(half) - instance.Q(z)))
        forward.append(half)
        iterates.append(z)
        means.append(np.average(forward, axis=0, weights=steps[:k]))
    return iterates, means


def accelerated_mirror_prox(instance, project, correct):
    """Chen, Lan and Ouyang: w_md, w, r, w_ag with alpha_k = 1/t_k and gamma_k = 1/(L/t_k + M t_N/t_k)."""
    r = w_ag = instance.start
    iterates, aggregates, t = [], [], momenta()
    for t_k in t[:STEPS]:
        gamma = t_k / (instance.L + instance.M * t[STEPS - 1])
        w_md = (1.0 - 1.0 / t_k) * w_ag + r / t_k
        gradient = instance.dp(w_md)
        w = project(r - gamma * (instance.Q(r) + gradient))
        r = correct(r, w, gamma, gradient)
        w_ag = (1.0 - 1.0 / t_k) * w_ag + w / t_k
        iterates.append(r)
        aggregates.append(w_ag)
    return iterates, aggregates


def test_without_operator_and_constraints_it_is_nesterovs_momentum_method():
    instance = Instance(FREE)
    _, averages = library_run(instance, FREE, function=True, operator=False)
    assert_same_iterates(averages, nesterov_with_momentum(instance))


@constrained
def test_without_operator_it_is_nesterovs_projected_method(domain):
    instance = Instance(domain)
    iterates, averages = library_run(instance, domain, function=True, operator=False)
    estimates, points = nesterov_with_estimates(instance, domain.project)
    assert_same_iterates(iterates, estimates)
    assert_same_iterates(averages, points)
    assert_projection_is_active(domain, nesterov_with_estimates(instance, np.copy)[0])


@constrained
def test_without_function_it_is_extragradient_in_tsengs_form(domain):
    instance = Instance(domain)
    found = library_run(instance, domain, function=False, operator=True)
    expected = tseng_extragradient(instance, domain.project)
    assert_same_iterates(found[0], expected[0])
    assert_same_iterates(found[1], expected[1])
    assert_projection_is_active(domain, tseng_extragradient(instance, np.copy)[0])


@constrained
def test_with_both_it_is_accelerated_mirror_prox_with_tsengs_correction(domain):
    instance = Instance(domain)

    def corrected(project):
        return lambda r, w, gamma, gradient: project(w - gamma * (instance.Q(w) - instance.Q(r)))

    found = library_run(instance, domain, function=True, operator=True)
    expected = accelerated_mirror_prox(instance, domain.project, corrected(domain.project))
    assert_same_iterates(found[0], expected[0])
    assert_same_iterates(found[1], expected[1])
    assert_projection_is_active(domain, accelerated_mirror_prox(instance, np.copy, corrected(np.copy))[0])


def published_correction(instance, project):
    """The second prox step from r, as Chen, Lan and Ouyang print it."""
    return lambda r, w, gamma, gradient: project(r - gamma * (instance.Q(w) + gradient))


def test_without_constraints_it_is_accelerated_mirror_prox_as_published():
    instance = Instance(FREE)
    found = library_run(instance, FREE, function=True, operator=True)
    expected = accelerated_mirror_prox(instance, np.copy, published_correction(instance, np.copy))
    assert_same_iterates(found[0], expected[0])
    assert_same_iterates(found[1], expected[1])


@constrained
def test_the_published_second_prox_step_is_another_method_once_a_constraint_is_active(domain):
    instance = Instance(domain)
    iterates, _ = library_run(instance, domain, function=True, operator=True)
    published, _ = accelerated_mirror_prox(instance, domain.project, published_correction(instance, domain.project))
    assert np.max(np.abs(np.subtract(iterates, published))) > 1e-3
