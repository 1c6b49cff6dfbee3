"""The mixed regime: one effective modulus is zero, so that block is regularised (appendix "Mixed Cases")."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from saddleslide.errors import InputError
from saddleslide.theory.holder import Holder
from saddleslide.theory.restarts import Curvature


@dataclass(frozen=True)
class Regularisation:
    """lambda/2 |u - u_0|^2 on the block ("x" or "y") without curvature, and the target that its restarts must reach.

    weight is lambda = eps / Omega_block, target is epsilon'_star of Theorem mixed_gap_transfer: Psi at most this gives
    Gap at most eps.
    """

    block: str
    weight: float
    target: float


def regularise_smoothness(smoothness: Holder, weight: float, diameter: float) -> Holder:
    """H_{y,lambda} of eq. mixed_H_y_lambda."""
    return Holder(1.0, weight) if smoothness.H == 0.0 else smoothness.plus(Holder(1.0, weight), diameter)


def gap_target(eps: float, weight: float, L_xy: float, delta: float, mu: float, diameter: float) -> float:
    """epsilon'_star of eq. mixed_target, for a block of modulus `delta`, strong convexity `mu` and this diameter."""
    kappa = L_xy**2 / (delta * weight)
    if mu > 0.0:
        return eps / (2.0 * (1.0 / 6.0 + 0.5 * kappa + 0.5 * L_xy**2 / (mu * weight)))
    if not math.isfinite(diameter):
        raise InputError(
            "mixed regime: the block with curvature has mu = 0 and is unbounded; Theorem mixed_gap_transfer expects "
            "mu > 0 or a bounded set."
        )
    by_diameter = weight * eps**2 / (16.0 * L_xy**2 * diameter**2) if diameter > 0.0 else math.inf
    return min(eps / (4.0 * (1.0 / 6.0 + 0.5 * kappa)), by_diameter)


def regularise(
    curvature: Curvature, eps: float, Omega: float, diameters: tuple[float, float], block: str | None = None
) -> tuple[Curvature, Regularisation]:
    """Curvature of the regularised problem and the regularisation, with beta = 0; its target is set without anchors.

    `Omega` is the squared radius of the block without curvature, `diameters` those of X and Y. `block` names that block
    where the curvature of the other comes from anchors.
    """
    if not (math.isfinite(Omega) and Omega > 0.0):
        raise InputError(f"mixed regime: Omega of the block without curvature is {Omega}; expected a bounded set.")
    weight = eps / Omega
    if block is None:
        block = "y" if curvature.delta_x > 0.0 else "x"
    if block == "y":
        curved = replace(curvature, g=regularise_smoothness(curvature.g, weight, diameters[1]), mu_y=weight)
        delta, mu, diameter = curved.delta_x, curved.mu_x, diameters[0]
    else:
        curved = replace(curvature, f=regularise_smoothness(curvature.f, weight, diameters[0]), mu_x=weight)
        delta, mu, diameter = curved.delta_y, curved.mu_y, diameters[1]
    target = gap_target(eps, weight, curvature.L_xy, delta, mu, diameter) if delta > 0.0 else math.nan
    return curved, Regularisation(block, weight, target)
