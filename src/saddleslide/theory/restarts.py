"""Theorem 4.4 and Corollary 4.5: one stage contracts Psi by 3/4, restarts reach the target."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from saddleslide.errors import InputError
from saddleslide.theory.holder import Holder
from saddleslide.theory.levels import Level, Term, place


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


# Proof of Theorem 4.4: rho gives 2/3 + 32 rho = 3/4; C_VI = 2^5 covers the factors of Theorem 3.3 for n = 3.
RHO = 1.0 / 384.0
C_VI = 32.0
CONTRACTION = 0.75


@dataclass(frozen=True)
class Stage:
    """One call of Algorithm 1 between restarts.

    Parameters
    ----------
    levels : tuple of Level
        Sorted, outermost first.
    Omega : float
        Bound on Psi at the start of the stage.
    beta_x, beta_y : float
        Active anchors.
    anchor_batch : int
        Samples averaged for each anchor, where its gradient is sampled.
    anchor_error : float
        What sampled anchors add to E[Psi] at the end of the stage.

    Examples
    --------
    >>> curvature = Curvature(Holder(1.0, 100.0), Holder(1.0, 400.0), L_xy=2.0, mu_x=1.0, mu_y=1.0)
    >>> "".join(level.term.name for level in practical_stage(curvature, Omega=1.0).levels)
    'Bfg'
    """

    levels: tuple[Level, ...]
    Omega: float
    beta_x: float = 0.0
    beta_y: float = 0.0
    anchor_batch: int = 1
    anchor_error: float = 0.0


def anchor_calls(stage: Stage, name: str) -> int:
    """Calls that the anchor of "f" or "g" takes: b where its gradient is sampled, one where it is exact.

    Examples
    --------
    >>> anchor_calls(Stage(place([Term("f", variance=1.0), Term("g")], (1, 1)), 1.0, 0.1, 0.1, anchor_batch=8), "f")
    8
    """
    return max(
        stage.anchor_batch if level.term.variance > 0.0 else 1 for level in stage.levels if level.term.name == name
    )


def restart_count(Psi0: float, eps: float) -> int:
    """S of Corollary 4.5.

    Examples
    --------
    >>> restart_count(1.0, 0.1)
    9
    """
    return max(0, math.ceil(math.log(Psi0 / eps) / math.log(1.0 / CONTRACTION)))


def stage_budget(smoothness: Holder, Omega: float) -> float:
    """R_1 or R_2 of Theorem 4.4 for a Hölder condition in the P-norm.

    Examples
    --------
    >>> stage_budget(Holder(1.0, 100.0), Omega=3.0)
    10.0
    """
    if smoothness.H == 0.0:
        return 1.0
    nu = smoothness.nu
    return max(float(smoothness.H ** (2.0 / (1.0 + 3.0 * nu)) * Omega ** ((nu - 1.0) / (1.0 + 3.0 * nu))), 1.0)


def practical_stage(curvature: Curvature, Omega: float, factor: float = 1.0) -> Stage:
    """Budgets R_i times `factor`, each delta by eq. Holder_delta_star; not proved, judged by the gap."""
    terms, needs = stage_terms(curvature, Omega, curvature.anchor_smoothness)
    calls = {name: max(factor * need, 1.0) for name, need in needs.items()}
    return _stage(terms, calls, curvature, Omega)


def lengthened(stage: Stage, factor: float) -> Stage:
    """A practical stage with `factor` times the calls of each oracle.

    Examples
    --------
    >>> curvature = Curvature(Holder(1.0, 100.0), Holder(1.0, 400.0), L_xy=2.0, mu_x=1.0, mu_y=1.0)
    >>> [level.N for level in lengthened(practical_stage(curvature, Omega=1.0), 2.0).levels]
    [4, 20, 40]
    """
    terms = {level.term.name: level.term for level in stage.levels}
    order, loops = sorted_loops({level.term.name: factor * level.N for level in stage.levels})
    return replace(stage, levels=place([terms[name] for name in order], loops))


def proved_stage(curvature: Curvature, Omega: float) -> Stage:
    """The calls and tolerances that the proof of Theorem 4.4 asks for: Psi falls to 3/4 Omega."""
    terms, _ = stage_terms(curvature, Omega, curvature.kappa_xy if curvature.anchored else 0.0)
    calls = {"B": _proved_coupling_calls(curvature)}
    calls |= {name: _proved_calls(_smoothness(terms[name]), Omega) for name in "fg"}
    stage = _stage(terms, calls, curvature, Omega)
    # delta_f = rho Omega / N_f with the calls that are made: loops are rounded up, so N_f may exceed the need.
    for level in stage.levels:
        if level.term.name in "fg":
            oracle = _proved_oracle(_smoothness(level.term), level.N, Omega)
            terms[level.term.name] = replace(level.term, inexact=oracle)
    return _stage(terms, calls, curvature, Omega)


def stage_terms(curvature: Curvature, Omega: float, anchor: float) -> tuple[dict[str, Term], dict[str, float]]:
    """Terms of f, g and B in the norm of a stage, and the budgets R_i; `anchor` is the smoothness of p_3."""
    weights = (curvature.delta_x, curvature.delta_y)
    if min(weights) <= 0.0:
        raise InputError(f"restarts: delta_x, delta_y are {weights}; Theorem 4.4 expects both > 0.")
    f, g = curvature.f.in_metric(weights[0]), curvature.g.in_metric(weights[1])
    M = math.sqrt(curvature.kappa_xy)
    coupling = Term("B", Holder(1.0, anchor) if curvature.anchored else None, M, weights=weights, Omega=Omega)
    terms = {"f": Term("f", f, weights=weights, Omega=Omega), "g": Term("g", g, weights=weights, Omega=Omega),
             "B": coupling}  # fmt: skip
    return terms, {"f": stage_budget(f, Omega), "g": stage_budget(g, Omega), "B": max(M, 1.0)}


def _smoothness(term: Term) -> Holder:
    assert term.smoothness is not None
    return term.smoothness


def _proved_calls(smoothness: Holder, Omega: float) -> float:
    """Smallest N with C_VI L(delta)/N^2 <= rho/4 at delta = rho Omega / N."""
    a = smoothness.inexactness_exponent
    if smoothness.H == 0.0:
        return 1.0
    N = math.ceil((4.0 * C_VI / RHO ** (1.0 + a) * smoothness.K * Omega ** (-a)) ** (1.0 / (2.0 - a)))
    return float(max(N, 1))


def _proved_oracle(smoothness: Holder, N: int, Omega: float) -> tuple[float, float]:
    """The (delta, L)-oracle with N delta = rho Omega; exact where the gradient is Lipschitz."""
    exact = smoothness.inexactness_exponent == 0.0 or smoothness.H == 0.0
    delta = 0.0 if exact else RHO * Omega / N
    return delta, smoothness.L(delta)


def _proved_coupling_calls(curvature: Curvature) -> float:
    """C_VI kappa_xy/N^2 <= rho/4 and C_VI sqrt(kappa_xy)/N <= rho/4."""
    root = math.sqrt(curvature.kappa_xy)
    return max(math.sqrt(4.0 * C_VI / RHO) * root, 4.0 * C_VI / RHO * root, 1.0)


def sorted_loops(calls: Mapping[str, float]) -> tuple[str, list[int]]:
    """Order of the levels by budget, ties in the order f, g, B, and loop counts that make at least these calls.

    Examples
    --------
    >>> sorted_loops({"f": 12.0, "g": 3.0, "B": 5.0})
    ('gBf', [3, 2, 2])
    """
    order = "".join(sorted("fgB", key=lambda name: calls[name]))
    loops, N = [], 1
    for name in order:
        loops.append(max(1, math.ceil(calls[name] / N)))
        N *= loops[-1]
    return order, loops


def _stage(terms: dict[str, Term], calls: dict[str, float], curvature: Curvature, Omega: float) -> Stage:
    order, loops = sorted_loops(calls)
    levels = place([terms[name] for name in order], loops)
    return Stage(levels, Omega, curvature.beta_x, curvature.beta_y)
