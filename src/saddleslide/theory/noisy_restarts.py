"""Restarts with sampled gradients: Gamma_s, stage budgets, anchors and their floor.

Appendix "Stochastic strongly convex--strongly concave regime". The paper leaves its universal factors open; here they
are numbers from the proof of Theorem 4.4, or searched so that the sharp form of the bound proves the contraction.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from saddleslide.errors import InputError
from saddleslide.theory.restarts import (
    ANCHORED_FACTOR,
    CONTRACTION,
    Curvature,
    Stage,
    place_by_budget,
    prove_smallest,
    restart_count,
    stage_terms,
)

# Practical factor on sigma^2 / Gamma_s: measured contractions are below 3/4 (docs/stochastic.md).
PRACTICAL_NOISE = 8.0


@dataclass(frozen=True)
class NoisyStages:
    """Stages of a run with sampled gradients, the residual of its anchors and the samples each anchor takes."""

    stages: tuple[Stage, ...]
    residual: float
    batch: int

    @property
    def floor(self) -> float:
        """4 C_anc Delta_anc / b: what E[Psi] is not proved to fall below."""
        return 4.0 * ANCHORED_FACTOR * self.residual / self.batch


def noisy_stages(
    curvature: Curvature,
    Psi0: float,
    target: float,
    variances: tuple[float, float],
    proved: bool,
    factor: float,
    batch: int | None = None,
    names: str = "fgB",
) -> NoisyStages:
    """All stages down to E[Psi] <= target; with anchors half of it is left to their residual. `names` have a level.

    Gamma_0 = Psi_0 and Gamma_{s+1} = 3/4 Gamma_s + C_anc Delta_anc / b bound E[Psi] at the starts of the stages, where
    Delta_anc = beta_y sigma_x^2 + beta_x sigma_y^2. The paper's b = max(1, ceil(4 C_anc Delta_anc / eps)) gives 2 eps.
    """
    if curvature.f.nu < 1.0 or curvature.g.nu < 1.0:
        raise InputError(
            f"plan: nu_x, nu_y are {(curvature.f.nu, curvature.g.nu)}; restarts with sampled gradients expect both 1. "
            "Use regime='degenerate' on bounded domains."
        )
    residual = curvature.beta_y * variances[0] + curvature.beta_x * variances[1]
    eps = 0.5 * target if residual > 0.0 else target
    batch = max(1, math.ceil(4.0 * ANCHORED_FACTOR * residual / eps)) if batch is None else batch
    error = ANCHORED_FACTOR * residual / batch
    stages, Gamma = [], Psi0
    for _ in range(restart_count(Psi0, eps) if Psi0 > eps else 0):
        if proved:
            stage = prove_noisy_stage(curvature, Gamma, variances, names)
        else:
            stage = noisy_stage(curvature, Gamma, variances, factor, PRACTICAL_NOISE, names)
        stages.append(replace(stage, anchor_batch=batch, anchor_error=error))
        Gamma = CONTRACTION * Gamma + error
    return NoisyStages(tuple(stages), residual, batch)


def noisy_stage(
    curvature: Curvature, Gamma: float, variances: tuple[float, float], factor: float, noise_factor: float,
    names: str = "fgB",
) -> Stage:  # fmt: skip
    """Budgets factor * max(sqrt(kappa), 1) + noise_factor * sigma^2 / (delta Gamma_s), tau with R^2 = Gamma_s."""
    terms, needs = stage_terms(curvature, Gamma, curvature.anchor_smoothness)
    for name, variance, weight in zip("fg", variances, terms["B"].weights, strict=True):
        terms[name] = replace(terms[name], variance=variance / weight)
    calls = {
        name: max(factor * max(need, 1.0), 1.0) + noise_factor * terms[name].variance / Gamma
        for name, need in needs.items()
        if name in names
    }
    return Stage(place_by_budget(terms, calls), Gamma, curvature.beta_x, curvature.beta_y)


def prove_noisy_stage(curvature: Curvature, Gamma: float, variances: tuple[float, float], names: str = "fgB") -> Stage:
    """The smallest budgets, one factor c on the square roots and c^2 on the noise, whose contraction is proved."""
    return prove_smallest(lambda c: noisy_stage(curvature, Gamma, variances, c, c * c, names))
