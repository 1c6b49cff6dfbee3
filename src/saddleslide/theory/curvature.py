"""Effective curvature of the bilinear problem: beta, delta and the condition numbers of Section 4."""

from __future__ import annotations

import math
from dataclasses import dataclass

from saddleslide.errors import InputError
from saddleslide.theory.holder import Holder


@dataclass(frozen=True)
class Curvature:
    """Anchors beta, effective moduli delta and what follows from them (eqs. SPP_beta_xy_holder to kappa_s).

    Parameters
    ----------
    f, g : Holder
        Euclidean Hölder conditions of f and g.
    L_xy : float
        Upper bound on the norm of B.
    mu_x, mu_y : float
        Strong convexity of f and g.
    beta_x, beta_y : float
        Weights of the anchor terms of p_3; 0 leaves delta = mu.
    mu_xy, mu_yx : float
        Lower bounds on the (positive) singular values of B, used only with anchors.

    Examples
    --------
    >>> curvature = Curvature(Holder(1.0, 100.0), Holder(1.0, 400.0), L_xy=2.0, mu_x=1.0, mu_y=1.0)
    >>> curvature.delta_x, curvature.kappa_xy
    (1.0, 4.0)
    """

    f: Holder
    g: Holder
    L_xy: float
    mu_x: float = 0.0
    mu_y: float = 0.0
    beta_x: float = 0.0
    beta_y: float = 0.0
    mu_xy: float = 0.0
    mu_yx: float = 0.0

    @property
    def delta_x(self) -> float:
        """Effective modulus of x (eq. effective_strong_convexity_holder)."""
        return self.mu_x + 4.0 * self.beta_x * self.mu_xy**2

    @property
    def delta_y(self) -> float:
        """Effective modulus of y (eq. effective_strong_convexity_holder)."""
        return self.mu_y + 4.0 * self.beta_y * self.mu_yx**2

    @property
    def kappa_xy(self) -> float:
        """L_xy^2 / (delta_x delta_y) (eq. kappa_s); infinite when a modulus is 0."""
        product = self.delta_x * self.delta_y
        return self.L_xy**2 / product if product > 0.0 else math.inf

    @property
    def anchor_smoothness(self) -> float:
        """Sharp smoothness constant of p_3 in the P-norm, at most kappa_xy / 4 (proof of Theorem 4.4)."""
        return self.kappa_xy * max(self.beta_x * self.delta_y, self.beta_y * self.delta_x)

    @property
    def compatible(self) -> bool:
        """The conditions beta_x delta_y <= 1/4 and beta_y delta_x <= 1/4 of Theorem 4.4."""
        return max(self.beta_x * self.delta_y, self.beta_y * self.delta_x) <= 0.25

    @property
    def anchored(self) -> bool:
        """Whether p_3 is active."""
        return self.beta_x > 0.0 or self.beta_y > 0.0


def with_anchors(
    curvature: Curvature, mu_xy: float, mu_yx: float, inactive: tuple[bool, bool] = (True, True)
) -> Curvature:
    """The paper's anchors: beta_x = 1/(4 L_y) when nu_y = 1, beta_y = 1/(4 L_x) when nu_x = 1.

    A linear function (H = 0) has no such beta; its anchor stays 0. So does beta_x where the constraint of Y can be
    active and beta_y where that of X can: `inactive` says so for X and Y.

    Examples
    --------
    >>> bare = Curvature(Holder(1.0, 2.0), Holder(1.0, 4.0), L_xy=3.0)
    >>> with_anchors(bare, mu_xy=1.0, mu_yx=1.0).delta_x
    0.25
    """
    if min(mu_xy, mu_yx) < 0.0:
        raise InputError(f"anchors: mu_xy and mu_yx are {(mu_xy, mu_yx)}; expected numbers >= 0.")
    if mu_xy > 0.0 and mu_yx > 0.0:
        # Assumption properties_of_B: when both are positive they must be equal.
        mu_xy = mu_yx = min(mu_xy, mu_yx)
    anchored = Curvature(
        curvature.f, curvature.g, curvature.L_xy, curvature.mu_x, curvature.mu_y,
        _beta(curvature.g) if inactive[1] else 0.0, _beta(curvature.f) if inactive[0] else 0.0, mu_xy, mu_yx,
    )  # fmt: skip
    if not anchored.compatible:
        raise InputError(
            f"anchors: beta_x delta_y = {anchored.beta_x * anchored.delta_y:.3g} and beta_y delta_x = "
            f"{anchored.beta_y * anchored.delta_x:.3g}; Theorem 4.4 expects at most 1/4. Use anchors=False."
        )
    return anchored


def _beta(other: Holder) -> float:
    return 1.0 / (4.0 * other.H) if other.nu == 1.0 and other.H > 0.0 else 0.0
