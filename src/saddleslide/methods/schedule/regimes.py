"""Restarted plans: reads curvature and spectrum off a problem and builds the stages of Theorem 4.4."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from saddleslide.arrays.base import Array, as_number
from saddleslide.certificates.certificate import judged
from saddleslide.domains import Domain, FullSpace
from saddleslide.errors import InputError, raise_all
from saddleslide.facts.noise import refuse_mixed, variances
from saddleslide.facts.requirements import restart_hypotheses
from saddleslide.functions.base import Function, gradient_aside
from saddleslide.functions.entrywise import Linear
from saddleslide.functions.quadratic import Quadratic
from saddleslide.operators import Coupling, Mirrored
from saddleslide.operators.spectrum import as_dense, note
from saddleslide.problem import SaddleProblem
from saddleslide.theory import Constant, Plan
from saddleslide.theory.holder import Holder
from saddleslide.theory.hypotheses import COMPUTED, DECLARED
from saddleslide.theory.mixed import Regularisation, gap_target, regularise
from saddleslide.theory.noise import rests_on_estimate
from saddleslide.theory.noisy_restarts import NoisyStages, noisy_stages
from saddleslide.theory.plan import RECURSIVE_SLIDING
from saddleslide.theory.restarts import (
    CONTRACTION,
    Curvature,
    Stage,
    practical_stage,
    proved_stage,
    restart_count,
    with_anchors,
)
from saddleslide.theory.schedule import Schedule

REGIMES = ("degenerate", "restarts", "mixed")
# D_f + D_g <= gap, and |z - z*|_P^2 <= 2 gap by strong convexity, so Psi = |.|^2 + 12 (D_f + D_g) <= 14 gap.
SQUARE_PER_GAP = 2.0
BREGMAN_PER_GAP = 12.0
# Factor on the budgets R_i of a practical stage: 1 meets the contraction on quadratics; a run raises it on evidence.
PRACTICAL_FACTOR = 1.0
# Sampled stages are not judged on the way, so they get what is cheapest per digit on quadratics.
SAMPLED_FACTOR = 4.0


def restarted_plan(
    problem: SaddleProblem,
    tol: float,
    regime: str,
    *,
    start: tuple[Any, Any] | None,
    proved: bool,
    anchors: bool,
    factor: float | None,
    range_conditions: Collection[str],
    interior: Collection[str],
    Psi0: float | None,
    constants: Mapping[str, Constant],
    squares: tuple[float, float],
    without_calls: bool = False,
    anchor_batch: int | None = None,
) -> Plan:
    """The plan of regime "restarts" or "mixed" for a target gap; Psi0 without any call where that is wanted.

    `squares` are the largest squared distances from the start, in the norms in which the constants are.
    """
    noise = variances(constants)
    if any(noise):
        refuse_mixed(regime)
    bare = curvature_of(constants)
    x, y = problem.start(start)
    extra: Regularisation | None = None
    moduli, ranges = (0.0, 0.0), dict[str, str]()
    if anchors:
        moduli, ranges = _coupling_moduli(problem, range_conditions, interior, any(noise))
    if regime == "mixed":
        bare, extra = _regularised_curvature(problem, bare, moduli, tol, x, y)
        # The regularised block keeps lambda alone (appendix "Mixed Cases": mu_yx = 0 there).
        moduli = (0.0, moduli[1]) if extra.block == "x" else (moduli[0], 0.0)
        ranges.pop(extra.block, None)
    if anchors:
        bare = with_anchors(bare, *moduli, _inactive(problem, interior))
    if extra is not None:
        extra = replace(extra, target=_mixed_target(problem, bare, extra, tol))
    if min(bare.delta_x, bare.delta_y) <= 0.0:
        raise InputError(
            f"plan: delta_x, delta_y are {(bare.delta_x, bare.delta_y)}; regime 'restarts' expects both > 0. "
            "Use regime='mixed' when one is 0, regime='degenerate' when both are, or anchors=True where the spectrum "
            "of B can give a block its curvature."
        )
    first, origin = _first_Psi(problem, bare, extra, (x, y), Psi0, squares if without_calls else None)
    target = extra.target if extra is not None else _Psi_target(tol, bare)
    count = restart_count(first, target) if first > target else 0
    # Proved lengths and those that were asked for are kept; one draw is no evidence about sampled ones.
    fixed = proved or factor is not None or any(noise)
    usual = SAMPLED_FACTOR if any(noise) else PRACTICAL_FACTOR
    factor = usual if factor is None else as_number(factor, "plan: factor", 0.0)
    used = dict(constants) | _derived_constants(bare, first, origin, target)
    if any(noise):
        noisy = noisy_stages(bare, first, target, noise, proved, factor, anchor_batch)
        stages, used = noisy.stages, used | _anchor_constants(noisy)
    else:
        stages = tuple(_stage(bare, first * CONTRACTION**s, proved, factor) for s in range(count))
    transfers = _transfers(problem, bare, extra, interior)
    # Constants of the proofs prove nothing where a constant of the problem is an estimate.
    promised = proved and not rests_on_estimate(used)
    hypotheses = restart_hypotheses(problem, used, bare, extra, interior, ranges)
    schedule = Schedule(
        stages, regime, proof_constants=promised, regularisation=extra, transfers=transfers, fixed=fixed
    )
    return Plan(method=RECURSIVE_SLIDING, schedule=schedule, tol=tol, constants=used, hypotheses=hypotheses)


def _stage(curvature: Curvature, Omega: float, proved: bool, factor: float) -> Stage:
    return proved_stage(curvature, Omega) if proved else practical_stage(curvature, Omega, factor)


def curvature_of(constants: Mapping[str, Constant]) -> Curvature:
    """The curvature of a plan's constants: as read off a problem, or with the anchors that the plan has derived."""
    f = Holder(constants["nu_x"].value, constants["H_x"].value)
    g = Holder(constants["nu_y"].value, constants["H_y"].value)
    beta_x, beta_y = (constants[name].value if name in constants else 0.0 for name in ("beta_x", "beta_y"))
    return Curvature(f, g, constants["L_xy"].value, constants["mu_x"].value, constants["mu_y"].value, beta_x, beta_y)


def _derived_constants(curvature: Curvature, Psi0: float, origin: str, target: float) -> dict[str, Constant]:
    return {
        "delta_x": Constant(curvature.delta_x, "eq. effective_strong_convexity_holder"),
        "delta_y": Constant(curvature.delta_y, "eq. effective_strong_convexity_holder"),
        "beta_x": Constant(curvature.beta_x, "anchor of x"),
        "beta_y": Constant(curvature.beta_y, "anchor of y"),
        "kappa_xy": Constant(curvature.kappa_xy, "eq. kappa_s"),
        "Psi0": Constant(Psi0, origin),
        "Psi_end": Constant(target, "value of Psi that the restarts aim at"),
    }


def _anchor_constants(noisy: NoisyStages) -> dict[str, Constant]:
    if noisy.residual == 0.0:
        return {}
    return {
        "Delta_anc": Constant(noisy.residual, "beta_y sigma_x^2 + beta_x sigma_y^2"),
        "b": Constant(noisy.batch, "samples per anchor"),
        "floor": Constant(noisy.floor, "4 C_anc Delta_anc / b: E[Psi] is not proved to fall below it"),
    }


def _first_Psi(
    problem: SaddleProblem,
    curvature: Curvature,
    extra: Regularisation | None,
    start: tuple[Array, Array],
    given: float | None,
    squares: tuple[float, float] | None,
) -> tuple[float, str]:
    if given is not None:
        return as_number(given, "plan: Psi0", 0.0), "declared"
    if squares is not None and extra is None and not _cheap(problem):
        bound = Psi_of_sizes(curvature, squares)
        if math.isfinite(bound):
            return bound, "sizes of the domains"
    seen = problem if extra is None else regularised_problem(problem, extra, start)
    found = judged(seen, *start)
    note(found.calls)
    gap = found.gap
    factor = SQUARE_PER_GAP * _uncovered(problem, curvature) + BREGMAN_PER_GAP
    if not math.isfinite(factor * gap):
        raise InputError(
            "plan: the gap at the start bounds no Psi0; expected a bound on Psi there, declared as Psi0= of ss.plan, "
            "and ss.run with that plan."
        )
    return factor * gap, f"{factor:g} times the certified gap at the start"


def _cheap(problem: SaddleProblem) -> bool:
    """Whether the gap at the start costs no gradients to speak of."""
    return problem.f.separable_form() is not None and problem.g.separable_form() is not None


def Psi_of_sizes(curvature: Curvature, squares: tuple[float, float]) -> float:
    """|z - z*|_P^2 + 12 (D_f + D_g) on bounded sets, each Bregman distance at most H/(1 + nu) radius^(1 + nu)."""
    total = 0.0
    for delta, smoothness, square in (
        (curvature.delta_x, curvature.f, squares[0]),
        (curvature.delta_y, curvature.g, squares[1]),
    ):
        radius, power = math.sqrt(square), 1.0 + smoothness.nu
        total += delta * radius**2 + BREGMAN_PER_GAP * smoothness.H / power * float(radius**power)
    return total


def _uncovered(problem: SaddleProblem, curvature: Curvature) -> float:
    """Largest delta/mu over blocks where the gap sees mu alone.

    What an anchor adds to delta_x is in the gap as the conjugate of g, which is 1/L_y strongly convex only if Y is the
    whole space; the same for delta_y, f and X.
    """
    blocks = ((curvature.delta_x, curvature.mu_x, problem.Y), (curvature.delta_y, curvature.mu_y, problem.X))
    ratios = [
        (delta / mu if mu > 0.0 else math.inf)
        for delta, mu, other in blocks
        if delta > mu and not isinstance(other, FullSpace)
    ]
    return max(ratios, default=1.0)


def _transfers(
    problem: SaddleProblem, curvature: Curvature, extra: Regularisation | None, interior: Collection[str]
) -> bool:
    """Whether Psi at its target bounds the gap: normal vectors known to be 0, and a modulus on every block used."""
    inside = all(
        isinstance(domain, FullSpace) or name in interior for name, domain in (("x", problem.X), ("y", problem.Y))
    )
    return inside and (extra is not None or min(curvature.mu_x, curvature.mu_y) > 0.0)


def _Psi_target(tol: float, curvature: Curvature) -> float:
    """Psi that gives gap <= tol for interior saddle points (Lemma mixed_gap_identity with lambda = 0)."""
    L2 = curvature.L_xy**2
    moduli = ((curvature.delta_x, curvature.mu_y), (curvature.delta_y, curvature.mu_x))
    if any(mu == 0.0 for _, mu in moduli):
        return tol
    return tol / (1.0 / 6.0 + sum(0.5 * L2 / (delta * mu) for delta, mu in moduli))


def _regularised_curvature(
    problem: SaddleProblem, bare: Curvature, moduli: tuple[float, float], tol: float, x: Array, y: Array
) -> tuple[Curvature, Regularisation]:
    deltas = bare.mu_x, bare.mu_y
    if max(deltas) == 0.0 and max(moduli) > 0.0:
        # No strong convexity anywhere: the anchors alone may give one block its curvature.
        effective = with_anchors(bare, *moduli)
        deltas = effective.delta_x, effective.delta_y
    if (deltas[0] > 0.0) == (deltas[1] > 0.0):
        raise InputError(f"plan: delta_x, delta_y are {deltas}; regime 'mixed' expects exactly one to be 0.")
    block = "y" if deltas[0] > 0.0 else "x"
    Omega = problem.Y.squared_radius(y) if block == "y" else problem.X.squared_radius(x)
    return regularise(bare, tol, Omega, (problem.X.diameter(), problem.Y.diameter()), block)


def regularised_problem(problem: SaddleProblem, extra: Regularisation, center: tuple[Array, Array]) -> SaddleProblem:
    """The problem with lambda/2 |u - u_0|^2 added to the block without curvature (its constant is left out)."""
    if extra.block == "y":
        return replace_functions(problem, g=problem.g + _quadratic_around(extra.weight, center[1]))
    return replace_functions(problem, f=problem.f + _quadratic_around(extra.weight, center[0]))


def replace_functions(problem: SaddleProblem, f: Function | None = None, g: Function | None = None) -> SaddleProblem:
    """The same coupling and domains with another f or g."""
    return SaddleProblem(
        f=f or problem.f, g=g or problem.g, B=problem.coupling, X=problem.X, Y=problem.Y, arrays=problem.arrays
    )


def _quadratic_around(weight: float, center: Array) -> Function:
    return Quadratic(weight) + Linear(-weight * center)


def _mixed_target(problem: SaddleProblem, curvature: Curvature, extra: Regularisation, tol: float) -> float:
    """epsilon'_star with the effective modulus of the block that has curvature, anchors included."""
    if extra.block == "y":
        delta, mu, diameter = curvature.delta_x, curvature.mu_x, problem.X.diameter()
    else:
        delta, mu, diameter = curvature.delta_y, curvature.mu_y, problem.Y.diameter()
    return gap_target(tol, extra.weight, curvature.L_xy, delta, mu, diameter)


def _inactive(problem: SaddleProblem, interior: Collection[str]) -> tuple[bool, bool]:
    """Whether the normal vectors of X and of Y are known to vanish at the solution."""
    return isinstance(problem.X, FullSpace) or "x" in interior, isinstance(problem.Y, FullSpace) or "y" in interior


def _coupling_moduli(
    problem: SaddleProblem, declared: Collection[str], interior: Collection[str], noisy: bool
) -> tuple[tuple[float, float], dict[str, str]]:
    """mu_xy and mu_yx, each 0 where its anchor is refused; and how the range conditions are known that they use.

    Theorem 4.4 wants zeta = 0 (the normal vector of Y) for beta_x and xi = 0 (that of X) for beta_y.
    """
    for name, given in (("range_conditions", declared), ("interior", interior)):
        unknown = sorted(set(given) - {"x", "y"})
        raise_all("plan", [f"{name} has {unknown}; expected 'x' and 'y'."] * bool(unknown))
    free_x, free_y = _inactive(problem, interior)
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


def _modulus(block: str, function: Function, domain: Domain, coupling: Coupling, declared: bool) -> tuple[float, str]:
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


def range_condition(function: Function, domain: Domain, coupling: Coupling) -> bool:
    """R_x or R_y of Assumption properties_of_B, where it can be checked: a constant gradient in the range of B.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> B = ss.operators.as_coupling(np.array([[1.0, 0.0], [0.0, 0.0]]))
    >>> range_condition(ss.functions.Linear([2.0, 0.0]), ss.domains.FullSpace(2), B)
    True
    >>> range_condition(ss.functions.Linear([0.0, 1.0]), ss.domains.FullSpace(2), B)
    False
    """
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
