"""Which methods auto may prefer to adaptive sliding, and what part of their bounds they use.

Both are measured by kind of problem. `python -m benchmarks.suite.calibrate` makes the numbers, on other instances than
the suite on which the choice is judged.
"""

from __future__ import annotations

import math

import numpy as np

from saddleslide.facts.facts import Facts
from saddleslide.functions.base import gradient_aside
from saddleslide.methods.catalogue import by_name
from saddleslide.operators import Coupling, FiniteDifferences, ForeignMatrix, Matrix
from saddleslide.problem import SaddleProblem

ADAPTIVE = "adaptive"
# Part of the bound that runs to a certified gap have used: medians. Only of methods that mostly reached the target on
# problems of that kind, with parts that agree within a factor of 20; any other method counts with its whole bound.
SHARES: dict[str, dict[str, float]] = {
    "both costly": {ADAPTIVE: 0.166, "apdg": 0.110},
    "one costly": {ADAPTIVE: 0.364, "opapc": 0.0764},
    "simple, curved": {
        ADAPTIVE: 0.277,
        "pdhg": 0.594,
        "admm": 0.00425,
        "l-bfgs": 0.0847,
        "universal-primal-dual": 0.0788,
    },
    "one costly, rough": {ADAPTIVE: 8.78e-6},
    "both costly, rough": {
        ADAPTIVE: 0.197,
        "universal-mirror-prox": 0.000416,
        "recursive-sliding": 0.158,
        "two-level-sliding": 0.485,
        "lockstep": 0.291,
    },
    "simple, flat": {ADAPTIVE: 0.0110, "pdhg": 0.0101, "accelerated-mirror-prox": 0.00298},
}
# What these predict is no bound of what they run: they count only where it was measured.
_STAND_INS = ("admm", "l-bfgs", "recursive-sliding", "two-level-sliding", "lockstep")
# Operations that finding out the singular values of B may take.
_MOST_FACTORING = 2e8
# Of f, for the share of OPAPC to count: it was measured at 7 to 38. OPAPC steps by the declared modulus, while adaptive
# sliding follows the curvature that it meets: far above that range it may take a fortieth of what is predicted.
_MOST_CONDITION = 100.0


def kind_of(facts: Facts) -> str:
    """What the shares depend on.

    How many of f and g are costly, whether one of these has no Lipschitz gradient ("rough"), and whether there is
    curvature where none is costly.
    """
    # An unknown exponent counts as smooth.
    found = [rest.exponent for rest in (facts.f.rest, facts.g.rest) if not rest.is_zero]
    if found:
        rough = any(nu < 1.0 for nu in found)
        return ("one costly", "both costly")[len(found) - 1] + (", rough" if rough else "")
    return "simple, flat" if pdhg_variant(facts) == "plain" else "simple, curved"


def pdhg_variant(facts: Facts) -> str:
    """The bound of PDHG that the moduli allow."""
    return ("plain", "accelerated", "linear")[sum(modulus > 0.0 for modulus in facts.moduli)]


def rivals_on(facts: Facts) -> list[str]:
    """Methods with a measured share that apply, and whose assumptions are not known to fail; no oracle is called."""
    measured = [name for name in SHARES[kind_of(facts)] if name != ADAPTIVE]
    return [name for name in measured if _worth_asking(name, facts)]


def promised_on(facts: Facts) -> list[str]:
    """All other methods that apply and have a bound of their own, with which they count as a whole."""
    known = (*SHARES[kind_of(facts)], *_STAND_INS)
    return [name for name in by_name if name not in known and _worth_asking(name, facts)]


def free_distances(facts: Facts) -> bool:
    """Whether the distances from the start, on which all bounds rest, are known without calling a costly function."""
    return max(facts.moduli) == 0.0 or (facts.f.rest.is_zero and facts.g.rest.is_zero)


def _worth_asking(name: str, facts: Facts) -> bool:
    problem = facts.problem
    if name == "opapc" and not (
        problem.g.linear and _well_conditioned(facts) and _solvable(problem) and _known_spectrum(problem.coupling)
    ):
        return False
    return not by_name[name]().lacks_at_a_glance(facts)


def _well_conditioned(facts: Facts) -> bool:
    """Whether f is, by its declared constants, where the share of OPAPC was measured or not far from it."""
    return facts.f.holder is not None and _MOST_CONDITION * facts.f.modulus >= facts.f.holder.H


def _solvable(problem: SaddleProblem) -> bool:
    """Whether Bx = b may have a solution for g = <b, y>: a multiplier inside Y needs one."""
    b = gradient_aside(problem.g, np.zeros(problem.Y.shape))
    return not b.any() or problem.Y.size <= problem.X.size


def _known_spectrum(coupling: Coupling) -> bool:
    """Whether the singular values come without products, and at little work."""
    if not isinstance(coupling, Matrix | ForeignMatrix):
        return isinstance(coupling, FiniteDifferences)
    sides = math.prod(coupling.y_shape), math.prod(coupling.x_shape)
    return math.prod(sides) * min(sides) <= _MOST_FACTORING
