"""Restarted plans: reads curvature and spectrum off a problem and builds the stages of Theorem 4.4."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from saddleslide.arrays.base import Array
from saddleslide.certificates.certificate import judge_point
from saddleslide.domains import Domain, FullSpace
from saddleslide.errors import InputError
from saddleslide.facts.noise import refuse_mixed, variances
from saddleslide.facts.requirements import restart_hypotheses
from saddleslide.functions.base import Function, gradient_aside
from saddleslide.functions.entrywise import Linear
from saddleslide.functions.quadratic import Quadratic
from saddleslide.operators import Mirrored, Operator
from saddleslide.operators.spectrum import as_dense, note
from saddleslide.problem import SaddleProblem
from saddleslide.theory import Constant, Plan, restarts
from saddleslide.theory.holder import Holder
from saddleslide.theory.hypotheses import COMPUTED, DECLARED
from saddleslide.theory.mixed import Regularisation, gap_target, regularise
from saddleslide.theory.noise import rests_on_estimate
from saddleslide.theory.noisy_restarts import noisy_stages
from saddleslide.theory.plan import RECURSIVE_SLIDING
from saddleslide.theory.restarts import CONTRACTION, Curvature, restart_count, with_anchors
from saddleslide.theory.schedule import Schedule

if TYPE_CHECKING:
    from saddleslide.methods.schedule.planner import Setting
    from saddleslide.methods.schedule.request import Request

REGIMES = ("degenerate", "restarts", "mixed")
# D_f + D_g <= gap, and |z - z*|_P^2 <= 2 gap by strong convexity, so Psi = |.|^2 + 12 (D_f + D_g) <= 14 gap.
SQUARE_PER_GAP = 2.0
BREGMAN_PER_GAP = 12.0
# Factor on the budgets R_i of a practical stage: 1 meets the contraction on quadratics; a run raises it on evidence.
PRACTICAL_FACTOR = 1.0
# Sampled stages are not judged on the way, so they get what is cheapest per digit on quadratics.
SAMPLED_FACTOR = 4.0


def plan_restarts(
    setting: Setting, request: Request, constants: Mapping[str, Constant], regime: str, without_calls: bool
) -> Plan:
    """The plan of regime "restarts" or "mixed" for a target gap; Psi0 without any call where that is wanted."""
    noise, proved, tol = variances(constants), bool(request.proved), request.tol
    assert tol is not None
    if any(noise):
        refuse_mixed(regime)
    curvature, extra, ranges = _effective_curvature(setting, request, constants, regime)
    Psi0, origin = _first_Psi(setting, request, curvature, extra, without_calls)
    target = tol if extra is None else extra.target
    if extra is None and min(curvature.mu_x, curvature.mu_y) > 0.0:
        # Psi that gives gap <= tol for interior saddle points (Lemma mixed_gap_identity with lambda = 0).
        moduli = ((curvature.delta_x, curvature.mu_y), (curvature.delta_y, curvature.mu_x))
        target = tol / (1.0 / 6.0 + sum(0.5 * curvature.L_xy**2 / (delta * mu) for delta, mu in moduli))
    used = dict(constants) | {
        "delta_x": Constant(curvature.delta_x, "eq. effective_strong_convexity_holder"),
        "delta_y": Constant(curvature.delta_y, "eq. effective_strong_convexity_holder"),
        "beta_x": Constant(curvature.beta_x, "anchor of x"),
        "beta_y": Constant(curvature.beta_y, "anchor of y"),
        "kappa_xy": Constant(curvature.kappa_xy, "eq. kappa_s"),
        "Psi0": Constant(Psi0, origin),
        "Psi_end": Constant(target, "value of Psi that the restarts aim at"),
    }
    usual = SAMPLED_FACTOR if any(noise) else PRACTICAL_FACTOR
    factor = usual if request.factor is None else float(request.factor)
    if any(noise):
        noisy = noisy_stages(curvature, Psi0, target, noise, proved, factor, request.anchor_batch)
        stages = noisy.stages
        if noisy.residual != 0.0:
            used |= {
                "Delta_anc": Constant(noisy.residual, "beta_y sigma_x^2 + beta_x sigma_y^2"),
                "b": Constant(noisy.batch, "samples per anchor"),
                "floor": Constant(noisy.floor, "4 C_anc Delta_anc / b: E[Psi] is not proved to fall below it"),
            }
    else:
        Omegas = [Psi0 * CONTRACTION**s for s in range(restart_count(Psi0, target) if Psi0 > target else 0)]
        practical = partial(restarts.practical_stage, factor=factor)
        stages = tuple((restarts.prove_stage if proved else practical)(curvature, Omega) for Omega in Omegas)
    schedule = Schedule(
        stages,
        regime,
        # Constants of the proofs prove nothing where a constant of the problem is an estimate.
        proof_constants=proved and not rests_on_estimate(used),
        regularisation=extra,
        # Psi at its target bounds the gap: normal vectors known to be 0, and a modulus on every block used.
        transfers=all(_inactive(setting, request)) and (extra is not None or min(curvature.mu_x, curvature.mu_y) > 0.0),
        # Proved lengths and those that were asked for are kept; one draw is no evidence about sampled ones.
        fixed=proved or request.factor is not None or any(noise),
    )
    hypotheses = restart_hypotheses(setting.problem, used, curvature, extra, request.interior, ranges)
    return Plan(method=RECURSIVE_SLIDING, schedule=schedule, tol=tol, constants=used, hypotheses=hypotheses)


def _effective_curvature(
    setting: Setting, request: Request, constants: Mapping[str, Constant], regime: str
) -> tuple[Curvature, Regularisation | None, dict[str, str]]:
    """The curvature with anchors and a regularised block, that block, and how range conditions in use are known."""
    problem, tol, extra = setting.problem, request.tol, None
    assert tol is not None
    f = Holder(constants["nu_x"].value, constants["H_x"].value)
    g = Holder(constants["nu_y"].value, constants["H_y"].value)
    found = Curvature(f, g, *(constants[name].value for name in ("L_xy", "mu_x", "mu_y")))
    moduli, ranges = (0.0, 0.0), dict[str, str]()
    if request.anchors:
        moduli, ranges = _find_moduli(setting, request, any(variances(constants)))
    if regime == "mixed":
        found, extra = _regularise_curvature(setting, tol, found, moduli)
        # The regularised block keeps lambda alone (appendix "Mixed Cases": mu_yx = 0 there).
        moduli = (0.0, moduli[1]) if extra.block == "x" else (moduli[0], 0.0)
        ranges.pop(extra.block, None)
    if request.anchors:
        found = with_anchors(found, *moduli, _inactive(setting, request))
    if extra is not None:
        # epsilon'_star with the effective modulus of the block that has curvature, anchors included.
        x, y = (found.delta_x, found.mu_x, problem.X.diameter()), (found.delta_y, found.mu_y, problem.Y.diameter())
        extra = replace(extra, target=gap_target(tol, extra.weight, found.L_xy, *(x if extra.block == "y" else y)))
    if min(found.delta_x, found.delta_y) <= 0.0:
        raise InputError(
            f"plan: delta_x, delta_y are {(found.delta_x, found.delta_y)}; regime 'restarts' expects both > 0. "
            "Use regime='mixed' when one is 0, regime='degenerate' when both are, or anchors=True where the spectrum "
            "of B can give a block its curvature."
        )
    return found, extra, ranges


def _first_Psi(
    setting: Setting, request: Request, curvature: Curvature, extra: Regularisation | None, without_calls: bool
) -> tuple[float, str]:
    """A bound on Psi at the start, and where it comes from."""
    problem = setting.problem
    if request.Psi0 is not None:
        return float(request.Psi0), "declared"
    # The gap at the start costs no gradients to speak of where both are separable.
    cheap = problem.f.separable_form() is not None and problem.g.separable_form() is not None
    if without_calls and extra is None and not cheap:
        bound = Psi_of_sizes(curvature, setting.squares)
        if math.isfinite(bound):
            return bound, "sizes of the domains"
    found = judge_point(problem if extra is None else regularise_problem(problem, extra, setting.start), *setting.start)
    note(found.calls)
    # Largest delta/mu over blocks where the gap sees mu alone. What an anchor adds to delta_x is in the gap as the
    # conjugate of g, which is 1/L_y strongly convex only if Y is the whole space; the same for delta_y, f and X.
    blocks = ((curvature.delta_x, curvature.mu_x, problem.Y), (curvature.delta_y, curvature.mu_y, problem.X))
    unseen = [(delta, mu) for delta, mu, other in blocks if delta > mu and not isinstance(other, FullSpace)]
    uncovered = max((delta / mu if mu > 0.0 else math.inf for delta, mu in unseen), default=1.0)
    factor = SQUARE_PER_GAP * uncovered + BREGMAN_PER_GAP
    if not math.isfinite(factor * found.gap):
        raise InputError(
            "plan: the gap at the start bounds no Psi0; expected a bound on Psi there, declared as Psi0= of ss.plan, "
            "and ss.run with that plan."
        )
    return factor * found.gap, f"{factor:g} times the certified gap at the start"


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
    (x, y), X, Y = setting.start, setting.problem.X, setting.problem.Y
    deltas = bare.mu_x, bare.mu_y
    if max(deltas) == 0.0 and max(moduli) > 0.0:
        # No strong convexity anywhere: the anchors alone may give one block its curvature.
        effective = with_anchors(bare, *moduli)
        deltas = effective.delta_x, effective.delta_y
    if (deltas[0] > 0.0) == (deltas[1] > 0.0):
        raise InputError(f"plan: delta_x, delta_y are {deltas}; regime 'mixed' expects exactly one to be 0.")
    block, Omega = ("y", Y.squared_radius(y)) if deltas[0] > 0.0 else ("x", X.squared_radius(x))
    return regularise(bare, tol, Omega, (X.diameter(), Y.diameter()), block)


def regularise_problem(problem: SaddleProblem, extra: Regularisation, center: tuple[Array, Array]) -> SaddleProblem:
    """The problem with lambda/2 |u - u_0|^2 added to the block without curvature (its constant is left out)."""
    f, g, at_y = problem.f, problem.g, extra.block == "y"
    added = Quadratic(extra.weight) + Linear(-extra.weight * center[1 if at_y else 0])
    f, g = (f, g + added) if at_y else (f + added, g)
    return SaddleProblem(f=f, g=g, B=problem.coupling, X=problem.X, Y=problem.Y, arrays=problem.arrays)


def _inactive(setting: Setting, request: Request) -> tuple[bool, bool]:
    """Whether the normal vectors of X and of Y are known to vanish at the solution."""
    X, Y = setting.problem.X, setting.problem.Y
    return isinstance(X, FullSpace) or "x" in request.interior, isinstance(Y, FullSpace) or "y" in request.interior


def _find_moduli(setting: Setting, request: Request, noisy: bool) -> tuple[tuple[float, float], dict[str, str]]:
    """mu_xy and mu_yx, each 0 where its anchor is refused; and how the range conditions are known that they use.

    Theorem 4.4 wants zeta = 0 (the normal vector of Y) for beta_x and xi = 0 (that of X) for beta_y.
    """
    problem, declared, (free_x, free_y) = setting.problem, request.range_conditions, _inactive(setting, request)
    if not (free_x or free_y):
        raise InputError(
            f"plan: anchors can not be used: X is {problem.X} and Y is {problem.Y}, whose constraints can be active. "
            "Theorem 4.4 expects a zero normal vector at the solution. Declare interior=('x',), ('y',) or both if you "
            "know that, or use anchors=False, which is always allowed."
        )
    if noisy:
        # The stochastic statement takes mu_xy = mu_yx = 0: anchors, but delta = mu.
        return (0.0, 0.0), {}
    coupling = problem.coupling
    mu_xy, x = _modulus("x", problem.f, problem.X, coupling, "x" in declared) if free_y else (0.0, "")
    mu_yx, y = _modulus("y", problem.g, problem.Y, Mirrored(coupling), "y" in declared) if free_x else (0.0, "")
    return (mu_xy, mu_yx), {block: how for block, how in (("x", x), ("y", y)) if how}


def _modulus(block: str, function: Function, domain: Domain, coupling: Operator, declared: bool) -> tuple[float, str]:
    """The smallest singular value on a block, and how the range condition is known that it needs, if any."""
    if not isinstance(domain, FullSpace):
        # The range condition is for domain + kernel = domain; without a kernel nobody needs it.
        smallest = coupling.smallest_singular_value(positive=False).lower
        if declared and smallest == 0.0:
            kernel, name = ("ker B", "X") if block == "x" else ("ker B^T", "Y")
            raise InputError(
                f"plan: range_conditions has {block!r}, which needs {name} + {kernel} = {name}; {name} is {domain}, "
                f"expected the whole space, or a B without that kernel. Leave {block!r} out."
            )
        return smallest, ""
    holds = declared or range_condition(function, domain, Mirrored(coupling))
    found = coupling.smallest_singular_value(positive=holds).lower
    if not holds:
        return found, ""
    return found, DECLARED if declared else COMPUTED


def range_condition(function: Function, domain: Domain, coupling: Operator) -> bool:
    """R_x or R_y of Assumption properties_of_B, where it can be checked: a constant gradient in the range of B."""
    # The assumption also wants X + ker B = X, which a bounded set breaks.
    if not function.linear or not isinstance(domain, FullSpace):
        return False
    gradient = gradient_aside(function, np.zeros(domain.shape)).ravel()
    size = float(np.linalg.norm(gradient))
    if size == 0.0:
        return True
    matrix = as_dense(coupling)
    solution = np.linalg.lstsq(matrix, gradient, rcond=None)[0]
    return float(np.linalg.norm(matrix @ solution - gradient)) <= 1e-10 * size
