"""Restarts with sampled gradients: Gamma_s, stage budgets, anchors and their floor.

Appendix "Stochastic strongly convex--strongly concave regime". The paper leaves its universal factors open; here they
are numbers from the proof of Theorem 4.4, or searched so that the sharp form of the bound proves the contraction.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from saddleslide.errors import InputError
from saddleslide.theory.levels import Level, Term, place
from saddleslide.theory.noise import fixed_comparator_noise, steadied
from saddleslide.theory.restarts import CONTRACTION, Curvature, Stage, restart_count, sorted_loops, stage_terms

# 16 times the lower bound of Theorem 4.4 gives Psi, so the anchors' error enters as 16 Delta_anc.
C_ANC = 16.0
# Without anchors D_f + D_g >= Psi / 14: a share of 1/7 of them as squares, the rest as 12 D.
FREE_FACTOR = 14.0
# With anchors 8 (D_f + D_g) at the start comes back, 2/3 of Psi.
ANCHORED_FACTOR, ANCHORED_SHARE = 16.0, 2.0 / 3.0
# Practical factor on sigma^2 / Gamma_s: measured contractions are below 3/4 (docs/stochastic.md).
PRACTICAL_NOISE = 8.0
_HALVINGS = 20


@dataclass(frozen=True)
class NoisyStages:
    """Stages of a run with sampled gradients, the residual of its anchors and the samples each anchor takes.

    Examples
    --------
    >>> NoisyStages((), residual=0.0, batch=1).floor
    0.0
    """

    stages: tuple[Stage, ...]
    residual: float
    batch: int

    @property
    def floor(self) -> float:
        """4 C_anc Delta_anc / b: what E[Psi] is not proved to fall below."""
        return 4.0 * C_ANC * self.residual / self.batch


def anchor_residual(curvature: Curvature, variances: tuple[float, float]) -> float:
    """Delta_anc = beta_y sigma_x^2 + beta_x sigma_y^2.

    Examples
    --------
    >>> from saddleslide.theory.holder import Holder
    >>> anchored = Curvature(Holder(1.0, 2.0), Holder(1.0, 4.0), 1.0, 1.0, 1.0, beta_x=0.25, beta_y=0.5)
    >>> anchor_residual(anchored, (2.0, 4.0))
    2.0
    """
    return curvature.beta_y * variances[0] + curvature.beta_x * variances[1]


def anchor_batch(residual: float, eps: float) -> int:
    """The paper's b = max(1, ceil(4 C_anc Delta_anc / eps)): then E[Psi] ends at most at 2 eps.

    Examples
    --------
    >>> anchor_batch(0.01, 0.1)
    7
    """
    return max(1, math.ceil(4.0 * C_ANC * residual / eps))


def radii(Psi0: float, count: int, anchor_error: float) -> list[float]:
    """Gamma_0 = Psi_0, Gamma_{s+1} = 3/4 Gamma_s + C_anc Delta_anc / b, for the starts of `count` stages.

    Examples
    --------
    >>> radii(16.0, 3, 1.0)
    [16.0, 13.0, 10.75]
    """
    found, Gamma = [], Psi0
    for _ in range(count):
        found.append(Gamma)
        Gamma = CONTRACTION * Gamma + anchor_error
    return found


def noisy_stages(
    curvature: Curvature,
    Psi0: float,
    target: float,
    variances: tuple[float, float],
    proved: bool,
    factor: float,
    batch: int | None = None,
) -> NoisyStages:
    """All stages down to E[Psi] <= target; with anchors half of it is left to their residual."""
    if curvature.f.nu < 1.0 or curvature.g.nu < 1.0:
        raise InputError(
            f"plan: nu_x, nu_y are {(curvature.f.nu, curvature.g.nu)}; restarts with sampled gradients expect both 1. "
            "Use regime='degenerate' on bounded domains."
        )
    residual = anchor_residual(curvature, variances)
    eps = 0.5 * target if residual > 0.0 else target
    batch = anchor_batch(residual, eps) if batch is None else batch
    error = C_ANC * residual / batch
    count = restart_count(Psi0, eps) if Psi0 > eps else 0
    made = (
        replace(_stage(curvature, Gamma, variances, proved, factor), anchor_batch=batch, anchor_error=error)
        for Gamma in radii(Psi0, count, error)
    )
    return NoisyStages(tuple(made), residual, batch)


def _stage(curvature: Curvature, Gamma: float, variances: tuple[float, float], proved: bool, factor: float) -> Stage:
    if not proved:
        return noisy_stage(curvature, Gamma, variances, factor, PRACTICAL_NOISE)
    return proved_noisy_stage(curvature, Gamma, variances)


def noisy_stage(
    curvature: Curvature, Gamma: float, variances: tuple[float, float], factor: float, noise_factor: float
) -> Stage:
    """Budgets factor * max(sqrt(kappa), 1) + noise_factor * sigma^2 / (delta Gamma_s), tau with R^2 = Gamma_s.

    Examples
    --------
    >>> from saddleslide.theory.holder import Holder
    >>> curvature = Curvature(Holder(1.0, 4.0), Holder(1.0, 1.0), 0.0, 1.0, 1.0)
    >>> stage = noisy_stage(curvature, 0.5, (3.0, 0.0), factor=1.0, noise_factor=1.0)
    >>> [(level.term.name, level.N) for level in stage.levels]
    [('g', 1), ('B', 1), ('f', 8)]
    """
    terms, needs = stage_terms(curvature, Gamma, curvature.anchor_smoothness)
    for name, variance in zip("fg", variances, strict=True):
        weight = terms[name].weights["fg".index(name)]
        terms[name] = replace(terms[name], variance=variance / weight)
    calls = {
        name: max(factor * need, 1.0) + noise_factor * terms[name].variance / Gamma for name, need in needs.items()
    }
    return Stage(_steady_levels(terms, calls), Gamma, curvature.beta_x, curvature.beta_y)


def _steady_levels(terms: Mapping[str, Term], calls: Mapping[str, float]) -> tuple[Level, ...]:
    order, loops = sorted_loops(calls)
    return place(steadied([terms[name] for name in order], loops), loops)


def proved_noisy_stage(curvature: Curvature, Gamma: float, variances: tuple[float, float]) -> Stage:
    """The smallest budgets, one factor c on the square roots and c^2 on the noise, whose contraction is proved."""

    def made(c: float) -> Stage:
        return noisy_stage(curvature, Gamma, variances, c, c * c)

    good = 1.0
    while proved_contraction(made(good)) > CONTRACTION:
        good *= 2.0
    bad = good / 2.0
    for _ in range(_HALVINGS):
        middle = math.sqrt(good * bad)
        good, bad = (middle, bad) if proved_contraction(made(middle)) <= CONTRACTION else (good, middle)
    return made(good)


def proved_contraction(stage: Stage) -> float:
    """A factor that E[Psi] falls by in this stage, beside the anchors' error.

    The bound of Theorem VI_sliding_stochastic with the actual alphas is first * |z_s - z*|_P^2 + second * Gamma_s. The
    lower bound of Theorem 4.4 turns it into max(16 first, 2/3) + 16 second with anchors, 14 (first + second) without.

    Examples
    --------
    >>> from saddleslide.theory.holder import Holder
    >>> curvature = Curvature(Holder(1.0, 4.0), Holder(1.0, 1.0), 1.0, 1.0, 1.0)
    >>> proved_contraction(proved_noisy_stage(curvature, 0.5, (3.0, 0.0))) <= 0.75
    True
    """
    first = 0.5 * math.fsum(
        (level.L + level.term.tau) * level.last_alphas**2 + level.term.M * level.last_alphas for level in stage.levels
    )
    second = fixed_comparator_noise(stage.levels) / stage.Omega
    if stage.beta_x > 0.0 or stage.beta_y > 0.0:
        return max(ANCHORED_FACTOR * first, ANCHORED_SHARE) + ANCHORED_FACTOR * second
    return FREE_FACTOR * (first + second)


def stage_noise_lines(stages: Sequence[Stage], samples: Mapping[str, int]) -> list[str]:
    """For people: samples in all, the noise of each sampled oracle in the first and the last stage, the anchors."""
    lines = [f"  samples  at most of f' {samples['f']:,}   of g' {samples['g']:,}"]
    if not stages:
        # The start meets the target already.
        return lines
    for label, stage in (("first", stages[0]), ("last", stages[-1])):
        lines += [
            f"  noise    {level.term.name}', {label} stage: sigma^2 / delta = {level.term.variance:.4g}, tau = "
            f"{level.term.tau:.4g}, N = {level.N:,}, Gamma = {stage.Omega:.4g}"
            for level in stage.levels
            if level.term.variance > 0.0
        ]
    if stages[-1].anchor_error > 0.0:
        floor, batch = stages[-1].anchor_error / (1.0 - CONTRACTION), stages[-1].anchor_batch
        lines.append(f"  anchors  {batch} samples each; E[Psi] has the floor {floor:.4g} (4 C_anc Delta_anc / b)")
    return lines
