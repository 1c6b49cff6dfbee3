"""Theorem 4.4 and Corollary 4.5: one stage contracts Psi by 3/4, restarts reach the target."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from saddleslide.errors import InputError
from saddleslide.theory.holder import Holder
from saddleslide.theory.levels import Level, Term, nest_loops, place
from saddleslide.theory.noise import comparator_noise, steady

CONTRACTION = 0.75
# Theorem 4.4 with the actual alphas (docs/theory.md). With anchors 16 times its lower bound gives Psi, and 8 (D_f +
# D_g) of the start come back. Without them 14 (D_f + D_g) is at least Psi, and |z - z*|_P^2 <= Psi/7 at the start.
ANCHORED_FACTOR, ANCHORED_SHARE = 16.0, 2.0 / 3.0
FREE_FACTOR, FREE_SQUARES = 14.0, 1.0 / 7.0
_HALVINGS = 20
# D_f + D_g <= gap, and |z - z*|_P^2 <= 2 gap by strong convexity, so Psi = |.|^2 + 12 (D_f + D_g) <= 14 gap.
SQUARE_PER_GAP = 2.0
BREGMAN_PER_GAP = 12.0


@dataclass(frozen=True)
class Curvature:
    """Anchors beta, effective moduli delta and what follows from them (eqs. SPP_beta_xy_holder to kappa_s).

    f, g are Euclidean Hölder conditions, mu_x, mu_y strong convexities, L_xy bounds the norm of B from above and mu_xy,
    mu_yx its (positive) singular values from below. beta_x, beta_y weigh the anchor terms of p_3; 0 leaves delta = mu.
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
    def is_anchored(self) -> bool:
        """Whether p_3 is active."""
        return self.beta_x > 0.0 or self.beta_y > 0.0


def with_anchors(
    curvature: Curvature, mu_xy: float, mu_yx: float, inactive: tuple[bool, bool] = (True, True)
) -> Curvature:
    """The paper's anchors: beta_x = 1/(4 L_y) when nu_y = 1, beta_y = 1/(4 L_x) when nu_x = 1.

    A linear function (H = 0) has no such beta; its anchor stays 0. So does beta_x where the constraint of Y can be
    active and beta_y where that of X can: `inactive` says so for X and Y.

    Assumption properties_of_B takes any smaller moduli as well, so they are lowered where Theorem 4.4 asks for it: to
    be equal where both are positive, and to beta_x delta_y, beta_y delta_x <= 1/4. One of the two may be dropped for
    the other's sake, whatever leaves the stages with fewer calls.
    """
    if min(mu_xy, mu_yx) < 0.0:
        raise InputError(f"anchors: mu_xy and mu_yx are {(mu_xy, mu_yx)}; expected numbers >= 0.")
    beta_x, beta_y = (
        1.0 / (4.0 * other.H) if free and other.nu == 1.0 and other.H > 0.0 else 0.0
        for other, free in ((curvature.g, inactive[1]), (curvature.f, inactive[0]))
    )
    bare = replace(curvature, beta_x=beta_x, beta_y=beta_y)
    x, y = _compatible(mu_xy, beta_x, beta_y, curvature.mu_x), _compatible(mu_yx, beta_y, beta_x, curvature.mu_y)
    options = [(min(x, y),) * 2, (x, 0.0), (0.0, y)] if min(x, y) > 0.0 else [(x, y)]
    found = [replace(bare, mu_xy=one, mu_yx=other) for one, other in options]
    return min(found, key=_calls_of_a_stage)


def _compatible(modulus: float, own: float, other: float, mu: float) -> float:
    """The largest modulus up to the given one with other (mu + 4 own modulus^2) <= 1/4; `own` is its own beta."""
    if own == 0.0 or other == 0.0:
        return modulus
    room = max(0.25 / other - mu, 0.0) / (4.0 * own)
    # Rounded down, so that the product is at most 1/4 in double precision.
    return min(modulus, math.sqrt(room) * (1.0 - 1e-12))


def _calls_of_a_stage(curvature: Curvature) -> float:
    """What the calls of a stage grow like: the roots of the condition numbers; infinite without curvature."""
    if min(curvature.delta_x, curvature.delta_y) <= 0.0:
        return math.inf
    sides = (curvature.f.H / curvature.delta_x, curvature.g.H / curvature.delta_y, curvature.kappa_xy)
    return math.fsum(max(math.sqrt(kappa), 1.0) for kappa in sides)


@dataclass(frozen=True)
class Stage:
    """One call of Algorithm 1 between restarts: levels, outermost first, Omega >= Psi at its start, active anchors.

    Each sampled anchor is the mean of `anchor_batch` gradients; together they add `anchor_error` to E[Psi] at its end.
    """

    levels: tuple[Level, ...]
    # It follows from the rest, and is NaN where nobody knows it, which equals nothing since Python 3.13.
    Omega: float = field(compare=False)
    beta_x: float = 0.0
    beta_y: float = 0.0
    anchor_batch: int = 1
    anchor_error: float = 0.0

    @property
    def is_anchored(self) -> bool:
        """Whether p_3 is active."""
        return self.beta_x > 0.0 or self.beta_y > 0.0


def anchor_calls(stage: Stage, name: str) -> int:
    """Calls that the anchor of "f" or "g" takes: b where its gradient is sampled, one where it is exact."""
    own = [level.term for level in stage.levels if level.term.name == name]
    return max(stage.anchor_batch if term.variance > 0.0 else 1 for term in own)


# With errors stages end where one gains less than this; and so many are enough for any target.
_STANDSTILL, _MOST_STAGES = 0.99, 2000


def restart_count(Psi0: float, eps: float) -> int:
    """S of Corollary 4.5."""
    return max(0, math.ceil(math.log(Psi0 / eps) / math.log(1.0 / CONTRACTION)))


def list_stages(
    make: Callable[[Curvature, float], Stage], curvature: Curvature, Psi0: float, target: float,
    deltas: Mapping[str, float],
) -> tuple[Stage, ...]:  # fmt: skip
    """Stages down to the target: Omega_0 = Psi0, Omega_{s+1} = 3/4 Omega_s + the errors of (delta, L)-oracles.

    They end where these are as large as what a stage gains.
    """
    stages: list[Stage] = []
    Omega = Psi0
    for _ in range(restart_count(Psi0, target) if Psi0 > target and not deltas else _MOST_STAGES * (Psi0 > target)):
        stage = make(curvature, Omega)
        if deltas:
            levels = tuple(_with_delta(level, deltas.get(level.term.name, 0.0)) for level in stage.levels)
            stage = replace(stage, levels=levels, anchor_error=_error_of_oracles(stage, deltas))
        after = CONTRACTION * Omega + stage.anchor_error if deltas else Psi0 * CONTRACTION ** (len(stages) + 1)
        if deltas and not after < _STANDSTILL * Omega:
            break
        stages.append(stage)
        Omega = after
        if deltas and Omega <= target:
            break
    return tuple(stages)


def _error_of_oracles(stage: Stage, deltas: Mapping[str, float]) -> float:
    """What (delta, L)-oracles of f and g add to Psi in a stage, by the bound of Theorem 3.3 and by their anchors.

    With anchors |f~'(x_in) - f'(x*)|^2 <= 2 L_x (D_f(x_in, x*) + delta_f): half a delta for each (docs/theory.md).
    """
    error = math.fsum(deltas.get(level.term.name, 0.0) / level.last_alphas for level in stage.levels)
    if not stage.is_anchored:
        return FREE_FACTOR * error
    halves = 0.5 * (deltas.get("f", 0.0) * (stage.beta_y > 0.0) + deltas.get("g", 0.0) * (stage.beta_x > 0.0))
    return ANCHORED_FACTOR * (error + halves)


def _with_delta(level: Level, delta: float) -> Level:
    """The level with the error of its oracle beside its L."""
    if delta == 0.0:
        return level
    return replace(level, delta=delta, term=replace(level.term, inexact=(delta, level.L)))


def stage_budget(smoothness: Holder, Omega: float) -> float:
    """R-hat_1 or R-hat_2 of Theorem 4.4 for a Hölder condition in the P-norm; R_i is at least 1."""
    if smoothness.H == 0.0:
        return 0.0
    nu = smoothness.nu
    return float(smoothness.H ** (2.0 / (1.0 + 3.0 * nu)) * Omega ** ((nu - 1.0) / (1.0 + 3.0 * nu)))


def stage_terms(curvature: Curvature, Omega: float, anchor: float) -> tuple[dict[str, Term], dict[str, float]]:
    """Terms of f, g and B in the norm of a stage, and the budgets R-hat_i; `anchor` is the smoothness of p_3."""
    weights = (curvature.delta_x, curvature.delta_y)
    if min(weights) <= 0.0:
        raise InputError(f"restarts: delta_x, delta_y are {weights}; Theorem 4.4 expects both > 0.")
    f, g = curvature.f.in_metric(weights[0]), curvature.g.in_metric(weights[1])
    p_3, M = Holder(1.0, anchor) if curvature.is_anchored else None, math.sqrt(curvature.kappa_xy)
    terms = (Term("f", f), Term("g", g), Term("B", p_3, M))
    needs = {"f": stage_budget(f, Omega), "g": stage_budget(g, Omega), "B": M}
    return {term.name: replace(term, weights=weights, Omega=Omega) for term in terms}, needs


def place_by_budget(terms: Mapping[str, Term], calls: Mapping[str, float]) -> tuple[Level, ...]:
    """Levels by budget, ties in the order f, g, B, with loops for at least these calls; sampled terms get their tau."""
    order = sorted((name for name in "fgB" if name in calls), key=lambda name: calls[name])
    loops = nest_loops(calls[name] for name in order)
    return place(steady([terms[name] for name in order], loops), loops)


def practical_stage(curvature: Curvature, Omega: float, factor: float = 1.0, names: str = "fgB") -> Stage:
    """Budgets R_i times `factor`, each delta by eq. Holder_delta_star; not proved, judged by the gap.

    `names` are those with a level: a function that is a simple term as a whole has none.
    """
    terms, needs = stage_terms(curvature, Omega, curvature.anchor_smoothness)
    calls = {name: max(factor * max(need, 1.0), 1.0) for name, need in needs.items() if name in names}
    return Stage(place_by_budget(terms, calls), Omega, curvature.beta_x, curvature.beta_y)


def lengthen(stage: Stage, factor: float) -> Stage:
    """A practical stage with `factor` times the calls of each oracle."""
    terms = {level.term.name: level.term for level in stage.levels}
    return replace(stage, levels=place_by_budget(terms, {level.term.name: factor * level.N for level in stage.levels}))


def prove_stage(curvature: Curvature, Omega: float, names: str = "fgB") -> Stage:
    """The smallest budgets with which Psi is proved to fall to 3/4 Omega.

    They are c^(4/(1 + 3 nu)) times R-hat_1 and R-hat_2, which leaves errors like 1/c^2 for every nu, and c R-hat_3.
    """
    terms, needs = stage_terms(curvature, Omega, curvature.anchor_smoothness)
    powers = {"f": 4.0 / (1.0 + 3.0 * curvature.f.nu), "g": 4.0 / (1.0 + 3.0 * curvature.g.nu), "B": 1.0}

    def make(factor: float) -> Stage:
        calls = {name: max(factor ** powers[name] * needs[name], 1.0) for name in names}
        return Stage(place_by_budget(terms, calls), Omega, curvature.beta_x, curvature.beta_y)

    return prove_smallest(make)


def prove_smallest(make: Callable[[float], Stage]) -> Stage:
    """The stage of the smallest factor whose contraction is proved."""
    good = 1.0
    while not prove_contraction(make(good)) <= CONTRACTION:
        good *= 2.0
    bad = good / 2.0
    for _ in range(_HALVINGS):
        middle = math.sqrt(good * bad)
        good, bad = (middle, bad) if prove_contraction(make(middle)) <= CONTRACTION else (good, middle)
    return make(good)


def prove_contraction(stage: Stage) -> float:
    """A factor that (the expected) Psi falls by in this stage, beside the error of anchors.

    The bound of Theorem VI_sliding_stochastic with the actual alphas is first |z_s - z*|_P^2 + second Omega. The proof
    of Theorem 4.4 makes of it max(16 first, 2/3) + 16 second with anchors and 2 first + 14 second without.
    """
    first = 0.5 * math.fsum(
        (level.L + level.term.tau) * level.last_alphas**2 + level.term.M * level.last_alphas for level in stage.levels
    )
    errors = math.fsum(level.delta / level.last_alphas for level in stage.levels)
    second = (comparator_noise(stage.levels) + errors) / stage.Omega
    if stage.is_anchored:
        return max(ANCHORED_FACTOR * first, ANCHORED_SHARE) + ANCHORED_FACTOR * second
    return FREE_FACTOR * (FREE_SQUARES * first + second)
