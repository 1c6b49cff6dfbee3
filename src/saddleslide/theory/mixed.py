"""The mixed regime: one effective modulus is zero, so that block is regularised (appendix "Mixed Cases")."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from saddleslide.errors import InputError
from saddleslide.theory.holder import Holder
from saddleslide.theory.restarts import Curvature


@dataclass(frozen=True)
class Regularisation:
    """lambda/2 |u - u_0|^2 on the block without curvature, and the target that its restarts must reach.

    Parameters
    ----------
    block : str
        "x" or "y".
    weight : float
        lambda = eps / Omega_block.
    target : float
        epsilon'_star of Theorem mixed_gap_transfer: Psi at most this gives Gap at most eps.

    Examples
    --------
    >>> Regularisation("y", 0.1, 1e-6).block
    'y'
    """

    block: str
    weight: float
    target: float


def regularised_smoothness(smoothness: Holder, weight: float, diameter: float) -> Holder:
    """H_{y,lambda} of eq. mixed_H_y_lambda.

    Examples
    --------
    >>> regularised_smoothness(Holder(1.0, 3.0), 0.5, diameter=10.0)
    Holder(nu=1.0, H=3.5)
    """
    if smoothness.H == 0.0:
        return Holder(1.0, weight)
    return smoothness.plus(Holder(1.0, weight), diameter)


def gap_target(eps: float, weight: float, L_xy: float, delta: float, mu: float, diameter: float) -> float:
    """epsilon'_star of eq. mixed_target, for the block with modulus `delta`, strong convexity `mu` and this diameter.

    Examples
    --------
    >>> round(gap_target(eps=0.1, weight=0.1, L_xy=1.0, delta=1.0, mu=1.0, diameter=2.0), 6)
    0.004918
    """
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


def transferred_gap(
    eps: float, Psi: float, weight: float, L_xy: float, delta: float, mu: float, diameter: float
) -> float:
    """Right-hand side of eq. mixed_gap_transfer: what Psi of the regularised problem says about the true gap.

    Examples
    --------
    >>> round(transferred_gap(0.1, 0.004918, weight=0.1, L_xy=1.0, delta=1.0, mu=1.0, diameter=2.0), 4)
    0.1
    """
    kappa = L_xy**2 / (delta * weight)
    dual = 0.5 * L_xy**2 / (mu * weight) * Psi if mu > 0.0 else L_xy * diameter * math.sqrt(Psi / weight)
    return 0.5 * eps + Psi / 6.0 + 0.5 * kappa * Psi + dual


def regularise(
    curvature: Curvature, eps: float, Omega: float, diameters: tuple[float, float], block: str | None = None
) -> tuple[Curvature, Regularisation]:
    """Curvature of the regularised problem and the regularisation, with beta = 0; its target is set without anchors.

    `Omega` is the squared radius of the block without curvature, `diameters` those of X and Y. `block` names that block
    where the curvature of the other comes from anchors.

    Examples
    --------
    >>> bare = Curvature(Holder(1.0, 4.0), Holder(0.5, 1.0), L_xy=1.0, mu_x=1.0)
    >>> curved, extra = regularise(bare, eps=0.1, Omega=1.0, diameters=(2.0, 2.0))
    >>> extra.block, curved.mu_y
    ('y', 0.1)
    """
    if not (math.isfinite(Omega) and Omega > 0.0):
        raise InputError(f"mixed regime: Omega of the block without curvature is {Omega}; expected a bounded set.")
    weight = eps / Omega
    block = ("y" if curvature.delta_x > 0.0 else "x") if block is None else block
    side = 1 if block == "y" else 0
    if block == "y":
        curved = replace(curvature, g=regularised_smoothness(curvature.g, weight, diameters[1]), mu_y=weight)
    else:
        curved = replace(curvature, f=regularised_smoothness(curvature.f, weight, diameters[0]), mu_x=weight)
    delta, mu = (curved.delta_x, curved.mu_x) if block == "y" else (curved.delta_y, curved.mu_y)
    target = gap_target(eps, weight, curvature.L_xy, delta, mu, diameters[1 - side]) if delta > 0.0 else math.nan
    return curved, Regularisation(block, weight, target)
