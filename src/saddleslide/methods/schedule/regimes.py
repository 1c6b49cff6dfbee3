"""Restarted plans: reads curvature and spectrum off a problem and builds the stages of Theorem 4.4."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from saddleslide.arrays.base import Array
from saddleslide.certificates.certificate import judge_point
from saddleslide.domains.entrywise import FullSpace
from saddleslide.errors import InputError
from saddleslide.facts.metric_constants import Norms, diameter_in, dual_length, quadratic_in
from saddleslide.facts.noise import refuse_unbounded_block, variances
from saddleslide.facts.requirements import restart_hypotheses
from saddleslide.functions.entrywise import Linear
from saddleslide.methods.schedule.moduli import CouplingModuli, free_anchors, inactive_blocks
from saddleslide.oracles.oracles import Oracles
from saddleslide.oracles.sampling import is_sampled
from saddleslide.problem import SaddleProblem
from saddleslide.theory import restarts
from saddleslide.theory.holder import Holder
from saddleslide.theory.hypotheses import Constant, rests_on_estimate
from saddleslide.theory.mixed import Regularisation, gap_target, regularise
from saddleslide.theory.noisy_restarts import noisy_stages
from saddleslide.theory.plan import RECURSIVE_SLIDING, Plan
from saddleslide.theory.restarts import BREGMAN_PER_GAP, CONTRACTION, SQUARE_PER_GAP, Curvature, with_anchors
from saddleslide.theory.schedule import Schedule
from saddleslide.watcher import note

if TYPE_CHECKING:
    from saddleslide.methods.schedule.planner import Setting
    from saddleslide.methods.schedule.request import Request

# What a gap bounds Psi by.
PSI_PER_GAP = SQUARE_PER_GAP + BREGMAN_PER_GAP
REGIMES = ("degenerate", "restarts", "mixed")
# Factor on the budgets R_i of a practical stage: 1 meets the contraction on quadratics; a run raises it on evidence.
PRACTICAL_FACTOR = 1.0
# Sampled stages are not judged on the way, so they get what is cheapest per digit on quadratics.
SAMPLED_FACTOR = 4.0


def plan_restarts(
    setting: Setting, request: Request, constants: Mapping[str, Constant], regime: str, through: CouplingModuli,
    without_calls: bool,
) -> Plan:  # fmt: skip
    """The plan of regime "restarts" or "mixed" for a target gap; Psi0 without any call where that is wanted."""
    noise, proved, tol = variances(constants), bool(request.proved), request.tol
    curvature, extra, ranges, found = _effective_curvature(setting, request, constants, regime, through)
    Psi0, origin = _first_Psi(setting, request, curvature, extra, without_calls)
    per_gap = Psi_per_gap(curvature, setting.problem) if extra is None else math.inf
    asked = tol if request.Psi is None else float(request.Psi)
    target = asked if extra is None else extra.target
    assert target is not None
    if tol is not None and extra is None and min(curvature.mu_x, curvature.mu_y) > 0.0:
        # Psi that gives gap <= tol for interior saddle points (Lemma mixed_gap_identity with lambda = 0).
        moduli = ((curvature.delta_x, curvature.mu_y), (curvature.delta_y, curvature.mu_x))
        target = tol / (1.0 / 6.0 + sum(0.5 * curvature.L_xy**2 / (delta * mu) for delta, mu in moduli))
    used = (
        dict(constants)
        | found
        | {
            "delta_x": Constant(curvature.delta_x, "eq. effective_strong_convexity_holder"),
            "delta_y": Constant(curvature.delta_y, "eq. effective_strong_convexity_holder"),
            "beta_x": Constant(curvature.beta_x, "anchor of x"),
            "beta_y": Constant(curvature.beta_y, "anchor of y"),
            "kappa_xy": Constant(curvature.kappa_xy, "eq. kappa_s"),
            "Psi0": Constant(Psi0, origin),
            "Psi_end": Constant(target, "value of Psi that the restarts aim at" if tol is not None else "asked for"),
        }
    )
    if math.isfinite(per_gap):
        used["Psi_per_gap"] = Constant(per_gap, "Psi is at most this many certified gaps")
        # A practical run may end where its gap says that Psi is small enough; a proved one carries its stages out.
        tol = target / per_gap if tol is None and not proved else tol
    usual = SAMPLED_FACTOR if any(noise) else PRACTICAL_FACTOR
    factor = usual if request.factor is None else float(request.factor)
    # A block that is regularised has a level for that, also where its function is simple as a whole.
    added = "" if extra is None else "fg"["xy".index(extra.block)]
    names = "".join(name for name in "fgB" if name in (*setting.levels, added))
    if any(noise):
        noisy = noisy_stages(curvature, Psi0, target, noise, proved, factor, request.anchor_batch, names)
        stages = noisy.stages
        if noisy.residual != 0.0:
            used |= {
                "Delta_anc": Constant(noisy.residual, "beta_y sigma_x^2 + beta_x sigma_y^2"),
                "b": Constant(noisy.batch, "samples per anchor"),
                "floor": Constant(noisy.floor, "4 C_anc Delta_anc / b: E[Psi] is not proved to fall below it"),
            }
    else:
        practical, proven = (
            partial(restarts.practical_stage, factor=factor, names=names),
            partial(restarts.prove_stage, names=names),
        )
        deltas = {name: delta for name, (delta, _) in inexact_oracles(setting.problem, constants).items()}
        stages = restarts.list_stages(proven if proved else practical, curvature, Psi0, target, deltas)
        if deltas:
            ends = CONTRACTION * stages[-1].Omega + stages[-1].anchor_error if stages else Psi0
            used["Psi_proved"] = Constant(ends, "what Psi falls to with the declared errors of the oracles")
            if proved and ends > target:
                raise InputError(
                    f"plan: with the declared delta Psi is not proved to fall below {ends:.3g}, and {target:.3g} is "
                    "wanted; expected a larger target or a smaller delta."
                )
    schedule = Schedule(
        stages,
        regime,
        # Constants of the proofs prove nothing where a constant of the problem is an estimate.
        proof_constants=proved and not rests_on_estimate(used),
        regularisation=extra,
        # Psi at its target bounds the gap: normal vectors known to be 0, and a modulus on every block used.
        transfers=all(inactive_blocks(setting.problem, request))
        and (extra is not None or min(curvature.mu_x, curvature.mu_y) > 0.0),
        # Proved lengths and those that were asked for are kept; one draw is no evidence about sampled ones.
        fixed=proved or request.factor is not None or any(noise),
    )
    hypotheses = restart_hypotheses(setting.problem, used, curvature, extra, request.interior, ranges)
    return Plan(method=RECURSIVE_SLIDING, schedule=schedule, tol=tol, constants=used, hypotheses=hypotheses)


def inexact_oracles(problem: SaddleProblem, used: Mapping[str, Constant]) -> dict[str, tuple[float, float]]:
    """(delta, L) of f and of g, where what they are made of declares an error; L as the plan has it."""
    found = {}
    for name, side, function in (("f", "x", problem.f), ("g", "y", problem.g)):
        if function.inexactness > 0.0:
            if used[f"nu_{side}"].value < 1.0:
                raise InputError(
                    f"plan: {name} has an inexact oracle beside a rough part; expected "
                    f"one oracle of all of {name}, ss.functions.Inexact(..., delta, L)."
                )
            found[name] = (function.inexactness, used[f"H_{side}"].value)
    return found


def bare_curvature(constants: Mapping[str, Constant]) -> Curvature:
    """The curvature of f and g themselves."""
    f = Holder(constants["nu_x"].value, constants["H_x"].value)
    g = Holder(constants["nu_y"].value, constants["H_y"].value)
    return Curvature(f, g, *(constants[name].value for name in ("L_xy", "mu_x", "mu_y")))


def _effective_curvature(
    setting: Setting, request: Request, constants: Mapping[str, Constant], regime: str, through: CouplingModuli
) -> tuple[Curvature, Regularisation | None, dict[str, str], dict[str, Constant]]:
    """The curvature with anchors and a regularised block, that block, how range conditions in use are known; moduli."""
    tol, extra = request.tol, None
    found, moduli, ranges = bare_curvature(constants), through.values, dict(through.ranges)
    found = _at_points(found, setting.squares)
    if regime == "mixed" and min(setting.squares) > 0.0:
        assert tol is not None
        found, extra = _regularise_curvature(setting, tol, found, moduli)
        # The regularised block keeps lambda alone (appendix "Mixed Cases": mu_yx = 0 there).
        moduli = (0.0, moduli[1]) if extra.block == "x" else (moduli[0], 0.0)
        ranges.pop(extra.block, None)
    if request.anchors:
        found = with_anchors(found, *moduli, free_anchors(setting.problem, request, setting.simple))
    if extra is not None:
        assert tol is not None
        # epsilon'_star with the effective modulus of the block that has curvature, anchors included.
        (D_x, D_y) = _diameters(setting)
        x, y = (found.delta_x, found.mu_x, D_x), (found.delta_y, found.mu_y, D_y)
        extra = replace(extra, target=gap_target(tol, extra.weight, found.L_xy, *(x if extra.block == "y" else y)))
    if min(found.delta_x, found.delta_y) <= 0.0:
        raise InputError(
            f"plan: delta_x, delta_y are {(found.delta_x, found.delta_y)}; regime 'restarts' expects both > 0. "
            "Use regime='mixed' when one is 0, regime='degenerate' when both are, or anchors=True where the spectrum "
            "of B can give a block its curvature."
        )
    return found, extra, ranges, through.constants(found)


def _first_Psi(
    setting: Setting, request: Request, curvature: Curvature, extra: Regularisation | None, without_calls: bool
) -> tuple[float, str]:
    """A bound on Psi at the start, and where it comes from."""
    problem = setting.problem
    if request.Psi0 is not None:
        return float(request.Psi0), "declared"
    # The gap at the start costs no gradients to speak of where both are separable.
    cheap = problem.f.separable_form() is not None and problem.g.separable_form() is not None
    # Sizes and slopes bound the Bregman distances of what is smooth; a simple term may have any.
    if without_calls and extra is None and not cheap and not setting.simple:
        bound = Psi_of_sizes(curvature, setting.squares)
        if math.isfinite(bound):
            return bound, "sizes of the domains"
    seen = problem if extra is None else regularise_problem(problem, extra, setting.start, setting.norms)
    found = judge_point(seen, *setting.start)
    note(found.calls)
    factor = Psi_per_gap(curvature, problem)
    if math.isfinite(factor * found.gap):
        return factor * found.gap, f"{factor:g} times the certified gap at the start"
    if setting.simple:
        raise InputError(
            "plan: the gap at the start bounds no Psi0, and there are simple terms; expected Psi0=, or simple=()."
        )
    # Where no gap is finite: sizes of the domains, and the slopes at the start.
    bound = Psi_of_sizes(curvature, setting.squares) if extra is None else math.inf
    exact = seen.f.has_gradient and seen.g.has_gradient
    slopes = Psi_of_slopes(curvature, _slopes(seen, setting.start, setting.norms)) if exact else math.inf
    if not (exact or math.isfinite(bound)):
        raise InputError(
            "plan: there are no exact gradients to bound Psi at the start by; expected a bound on Psi there, declared "
            "as Psi0= of ss.plan, and ss.run with that plan."
        )
    return (bound, "sizes of the domains") if bound <= slopes else (slopes, "slopes at the start")


def Psi_per_gap(curvature: Curvature, problem: SaddleProblem) -> float:
    """Psi is at most this many gaps; infinite where a gap says nothing of what an anchor adds to a block."""
    # Largest delta/mu over blocks where the gap sees mu alone. What an anchor adds to delta_x is in the gap as the
    # conjugate of g, which is 1/L_y strongly convex only if Y is the whole space; the same for delta_y, f and X.
    blocks = ((curvature.delta_x, curvature.mu_x, problem.Y), (curvature.delta_y, curvature.mu_y, problem.X))
    unseen = [(delta, mu) for delta, mu, other in blocks if delta > mu and not isinstance(other, FullSpace)]
    uncovered = max((delta / mu if mu > 0.0 else math.inf for delta, mu in unseen), default=1.0)
    return SQUARE_PER_GAP * uncovered + BREGMAN_PER_GAP


def _at_points(curvature: Curvature, squares: tuple[float, float]) -> Curvature:
    """A block that is a single point has any modulus: one that leaves kappa_xy = 1, with kappa = 1 of its function.

    On a point every function is w-strongly convex and w-smooth, for every w; appendix "Mixed Cases" leaves such a block
    out.
    """
    if squares[1] == 0.0:
        w = curvature.L_xy**2 / curvature.mu_x if min(curvature.mu_x, curvature.L_xy) > 0.0 else 1.0
        curvature = replace(curvature, g=Holder(1.0, w), mu_y=w)
    if squares[0] == 0.0:
        w = curvature.L_xy**2 / curvature.mu_y if min(curvature.mu_y, curvature.L_xy) > 0.0 else 1.0
        curvature = replace(curvature, f=Holder(1.0, w), mu_x=w)
    return curvature


def _diameters(setting: Setting) -> tuple[float, float]:
    """Those of X and Y in the norms."""
    x, y = map(diameter_in, setting.norms, (setting.problem.X, setting.problem.Y))
    return x, y


def _slopes(problem: SaddleProblem, start: tuple[Array, Array], norms: Norms) -> tuple[float, float]:
    """|f'(x) + B^T y| and |g'(y) - Bx| at the start, in the dual norms: a gradient of each, and two products."""
    oracles = Oracles(problem)
    try:
        (f_slope, g_slope), (x, y) = oracles.gradients(*start), start
        pull, push = oracles.adjoint(y), oracles.forward(x)
        return dual_length(norms[0], f_slope + pull), dual_length(norms[1], g_slope - push)
    finally:
        note(oracles.calls)


def Psi_of_slopes(curvature: Curvature, slopes: tuple[float, float]) -> float:
    """A bound on Psi from the lengths r_x, r_y of F(z_0), wherever the hypotheses of the plan hold (docs/theory.md).

    With rho = r_x^2/delta_x + r_y^2/delta_y it is 7 rho where no anchor adds to delta; else, with s^2 the sum of
    r_y^2/L_y where beta_x does and of r_x^2/L_x where beta_y does, 16.2 rho + 16.8 s sqrt(rho) + 7.8 s^2.
    """
    (r_x, r_y), delta_x, delta_y = slopes, curvature.delta_x, curvature.delta_y
    rho = r_x**2 / delta_x + r_y**2 / delta_y
    through = delta_x > curvature.mu_x, delta_y > curvature.mu_y
    if not any(through):
        return 7.0 * rho
    s = math.hypot(*(r / math.sqrt(other.H) for r, other, used in (
        (r_y, curvature.g, through[0]), (r_x, curvature.f, through[1])) if used))  # fmt: skip
    return 16.2 * rho + 16.8 * s * math.sqrt(rho) + 7.8 * s**2


def Psi_of_sizes(curvature: Curvature, squares: tuple[float, float]) -> float:
    """|z - z*|_P^2 + 12 (D_f + D_g) on bounded sets, each Bregman distance at most H/(1 + nu) radius^(1 + nu)."""
    total = 0.0
    blocks = (curvature.delta_x, curvature.f, squares[0]), (curvature.delta_y, curvature.g, squares[1])
    for delta, smoothness, square in blocks:
        radius, power = math.sqrt(square), 1.0 + smoothness.nu
        total += delta * radius**2 + BREGMAN_PER_GAP * smoothness.H / power * float(radius**power)
    return total


def _regularise_curvature(
    setting: Setting, tol: float, bare: Curvature, moduli: tuple[float, float]
) -> tuple[Curvature, Regularisation]:
    """The curvature with lambda in the block that has none, and that regularisation."""
    X, Y = setting.problem.X, setting.problem.Y
    deltas = bare.mu_x, bare.mu_y
    if max(deltas) == 0.0 and max(moduli) > 0.0:
        # No strong convexity anywhere: the anchors alone may give one block its curvature.
        effective = with_anchors(bare, *moduli)
        deltas = effective.delta_x, effective.delta_y
    if (deltas[0] > 0.0) == (deltas[1] > 0.0):
        raise InputError(f"plan: delta_x, delta_y are {deltas}; regime 'mixed' expects exactly one to be 0.")
    block, Omega = ("y", setting.squares[1]) if deltas[0] > 0.0 else ("x", setting.squares[0])
    if is_sampled(setting.problem) and not math.isfinite(Omega):
        refuse_unbounded_block(block, X if block == "x" else Y)
    return regularise(bare, tol, Omega, _diameters(setting), block)


def regularise_problem(
    problem: SaddleProblem, extra: Regularisation, center: tuple[Array, Array], norms: Norms = (None, None)
) -> SaddleProblem:
    """The problem with lambda/2 |u - u_0|_P^2 added to the block without curvature (its constant is left out)."""
    f, g, at_y = problem.f, problem.g, extra.block == "y"
    norm, at = norms[at_y], center[at_y]
    moved = -extra.weight * (at if norm is None else norm.product(at))
    added = quadratic_in(norm, extra.weight, at.shape) + Linear(moved)
    f, g = (f, g + added) if at_y else (f + added, g)
    return SaddleProblem(f=f, g=g, B=problem.coupling, X=problem.X, Y=problem.Y, arrays=problem.arrays)
