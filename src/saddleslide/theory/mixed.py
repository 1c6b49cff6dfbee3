"""The mixed regime: one effective modulus is zero, so that block is regularised (appendix "Mixed Cases")."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from saddleslide.errors import InputError
from saddleslide.theory.holder import Holder
from saddleslide.theory.levels import Level, Term, place, shortest_loop
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


# Restarts on the gap (docs/open.md): parts of the modulus that the function and B may take of distances in the block
# with curvature, and parts of a stage's gap for distances in the other block, oracle errors, and sampled gradients.


@dataclass(frozen=True)
class _Parts:
    modulus: float
    distance: float
    error: float
    steep: float = 0.0
    level: float = 0.0


_EXACT, _SAMPLED = _Parts(1.0 / 20.0, 0.1, 0.1), _Parts(1.0 / 40.0, 0.08, 0.04, 0.06, 0.07)


def gap_stages(
    curved: Holder, flat: Holder, L_xy: float, modulus: float, diameter: float, gaps: tuple[float, float],
    block: str = "x", variances: tuple[float, float] = (0.0, 0.0),
) -> tuple[tuple[Level, ...], ...]:  # fmt: skip
    """Levels of stages that halve the (expected) gap each, from the first of `gaps` to the second: no lambda, no Psi.

    `curved` and `modulus` are the Hölder condition and the strong convexity of the function of `block`, `flat` is the
    condition of the other one, whose set has this diameter; `variances` are those of their sampled gradients.
    """
    # A start that meets the target, as a solution does, leaves nothing to halve.
    count = max(0, math.ceil(math.log2(gaps[0] / gaps[1]) - 1e-9)) if gaps[0] > gaps[1] else 0
    own, other = ("f", "g") if block == "x" else ("g", "f")
    functions = {own: (curved, variances[0]), other: (flat, variances[1])}
    return tuple(_gap_stage(functions, own, L_xy, modulus, diameter, 0.5**s * gaps[0]) for s in range(1, count + 1))


def _gap_stage(
    functions: dict[str, tuple[Holder, float]], own: str, L_xy: float, modulus: float, diameter: float, gap: float
) -> tuple[Level, ...]:
    parts = _SAMPLED if any(variance > 0.0 for _, variance in functions.values()) else _EXACT
    error, kept = parts.error * gap, parts.modulus * modulus

    def depth(name: str) -> float:
        """The least 1 / alpha with K (error alpha)^-a alpha^2 <= allowed, and with little enough noise."""
        (p, variance), curved = functions[name], name == own
        allowed = kept if curved else 2.0 * parts.distance * gap / diameter**2 if diameter > 0.0 else math.inf
        a = p.inexactness_exponent
        exact = float((p.K * error**-a / allowed) ** (1.0 / (2.0 - a))) if p.H > 0.0 else 1.0
        noisy = 0.0
        if variance > 0.0:
            noisy = variance / (2.0 * kept * parts.steep * gap) if curved else (
                variance * (diameter / (parts.level * gap)) ** 2
            )  # fmt: skip
        return max(1.0, exact, noisy)

    depths = {name: depth(name) for name in functions}
    # w |B| alpha = kept and |B| alpha D^2 / (2 w) <= the part of the distances.
    depths["B"] = max(1.0, L_xy * diameter / math.sqrt(2.0 * kept * parts.distance * gap))
    terms: list[Term] = []
    loops: list[int] = []
    product = 1.0
    for name in sorted("fgB", key=lambda name: depths[name]):
        loops.append(shortest_loop(product * depths[name]))
        product = place([Term(name, Holder(1.0, 1.0))] * len(loops), loops)[-1].last_alphas
        if name == "B":
            w = kept / (L_xy * product) if L_xy > 0.0 else 1.0
            terms.append(Term("B", M=L_xy, weights=(w, 1.0 / w) if own == "f" else (1.0 / w, w)))
            continue
        p, variance = functions[name]
        delta = 0.0 if p.nu == 1.0 or p.H == 0.0 else error * product
        weights, tau = (1.0, 0.0) if name == "f" else (0.0, 1.0), 0.0
        if variance > 0.0:
            tau = kept / product**2 if name == own else math.sqrt(variance) / (diameter * product**1.5)
        terms.append(Term(name, inexact=(delta, p.L(delta)), tau=tau, weights=weights, variance=variance))
    return place(terms, loops)
