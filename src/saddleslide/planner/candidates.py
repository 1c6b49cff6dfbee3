"""Which methods auto may prefer to adaptive sliding, and what part of their bounds they use.

Both are measured by kind of problem. `python -m benchmarks.suite.calibrate` makes the numbers, on other instances than
the suite on which the choice is judged.
"""

from __future__ import annotations

import math
from weakref import WeakKeyDictionary

import numpy as np

from saddleslide.domains import Domain
from saddleslide.errors import InputError
from saddleslide.functions import Function, Zero, split_simple
from saddleslide.functions.at_hand import exponent
from saddleslide.functions.base import gradient_aside
from saddleslide.methods.catalogue import by_name
from saddleslide.methods.requirements import smoothness_of
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
# Remembered as long as the problem lives: every prediction asks.
_KINDS: WeakKeyDictionary[SaddleProblem, str] = WeakKeyDictionary()
_COSTLY: WeakKeyDictionary[SaddleProblem, tuple[Function, Function]] = WeakKeyDictionary()
# Operations that finding out the singular values of B may take.
_MOST_FACTORING = 2e8
# Of f, for the share of OPAPC to count: it was measured at 7 to 38. OPAPC steps by the declared modulus, while adaptive
# sliding follows the curvature that it meets: far above that range it may take a fortieth of what is predicted.
_MOST_CONDITION = 100.0


def kind_of(problem: SaddleProblem) -> str:
    """What the shares depend on.

    How many of f and g are costly, whether one of these has no Lipschitz gradient ("rough"), and whether there is
    curvature where none is costly.

    Examples
    --------
    >>> import saddleslide as ss
    >>> simplex, zero = ss.domains.Simplex(3), ss.functions.Zero()
    >>> kind_of(ss.SaddleProblem(f=zero, g=zero, B=np.eye(3), X=simplex, Y=simplex))
    'simple, flat'
    """
    if problem not in _KINDS:
        _KINDS[problem] = _kind_of(problem)
    return _KINDS[problem]


def _kind_of(problem: SaddleProblem) -> str:
    parts = zip(costly_parts(problem), (problem.X, problem.Y), strict=True)
    found = [_exponent(rest, domain) for rest, domain in parts if not isinstance(rest, Zero)]
    if found:
        rough = any(nu < 1.0 for nu in found)
        return ("one costly", "both costly")[len(found) - 1] + (", rough" if rough else "")
    return "simple, flat" if pdhg_variant(problem) == "plain" else "simple, curved"


def _exponent(rest: Function, domain: Domain) -> float:
    """Of the Hölder condition; unknown ones count as smooth."""
    try:
        return exponent(rest, domain)
    except InputError:
        return 1.0


def costly_parts(problem: SaddleProblem) -> tuple[Function, Function]:
    """The parts of f and g without a proximal step.

    Examples
    --------
    >>> import saddleslide as ss
    >>> simplex, zero = ss.domains.Simplex(3), ss.functions.Zero()
    >>> costly_parts(ss.SaddleProblem(f=zero, g=zero, B=np.eye(3), X=simplex, Y=simplex))
    (Zero(), Zero())
    """
    if problem not in _COSTLY:
        _COSTLY[problem] = split_simple(problem.f, problem.X)[0], split_simple(problem.g, problem.Y)[0]
    return _COSTLY[problem]


def pdhg_variant(problem: SaddleProblem) -> str:
    """The bound of PDHG that the moduli allow.

    Examples
    --------
    >>> import saddleslide as ss
    >>> q, free, zero = ss.functions.Quadratic(1.0), ss.domains.FullSpace(3), ss.functions.Zero()
    >>> pdhg_variant(ss.SaddleProblem(f=q, g=zero, B=np.eye(3), X=free, Y=free))
    'accelerated'
    """
    moduli = problem.f.strong_convexity(problem.X), problem.g.strong_convexity(problem.Y)
    return ("plain", "accelerated", "linear")[sum(modulus > 0.0 for modulus in moduli)]


def rivals_on(problem: SaddleProblem) -> list[str]:
    """Methods with a measured share that apply, and whose assumptions are not known to fail; no oracle is called.

    Examples
    --------
    >>> import saddleslide as ss
    >>> simplex, zero = ss.domains.Simplex(3), ss.functions.Zero()
    >>> rivals_on(ss.SaddleProblem(f=zero, g=zero, B=np.eye(3), X=simplex, Y=simplex))
    ['pdhg', 'accelerated-mirror-prox']
    """
    measured = [name for name in SHARES[kind_of(problem)] if name != ADAPTIVE]
    return [name for name in measured if _worth_asking(name, problem)]


def promised_on(problem: SaddleProblem) -> list[str]:
    """All other methods that apply and have a bound of their own, with which they count as a whole.

    Examples
    --------
    >>> import saddleslide as ss
    >>> box, q = ss.domains.Box(-1.0, 1.0, shape=3), ss.functions.Quadratic(np.diag([1.0, 2.0, 3.0]))
    >>> "proved-sliding" in promised_on(ss.SaddleProblem(f=q, g=q, B=np.eye(3), X=box, Y=box))
    True
    """
    known = (*SHARES[kind_of(problem)], *_STAND_INS)
    return [name for name in by_name if name not in known and _worth_asking(name, problem)]


def free_distances(problem: SaddleProblem) -> bool:
    """Whether the distances from the start, on which all bounds rest, are known without calling a costly function.

    Examples
    --------
    >>> import saddleslide as ss
    >>> simplex, zero = ss.domains.Simplex(3), ss.functions.Zero()
    >>> free_distances(ss.SaddleProblem(f=zero, g=zero, B=np.eye(3), X=simplex, Y=simplex))
    True
    """
    moduli = problem.f.strong_convexity(problem.X), problem.g.strong_convexity(problem.Y)
    return max(moduli) == 0.0 or all(isinstance(rest, Zero) for rest in costly_parts(problem))


def _worth_asking(name: str, problem: SaddleProblem) -> bool:
    if name == "opapc" and not (
        problem.g.linear and _well_conditioned(problem) and _solvable(problem) and _known_spectrum(problem.coupling)
    ):
        return False
    return not by_name[name]().lacks_at_a_glance(problem)


def _well_conditioned(problem: SaddleProblem) -> bool:
    """Whether f is, by its declared constants, where the share of OPAPC was measured or not far from it."""
    smoothness = smoothness_of(problem.f, problem.X)
    largest = _MOST_CONDITION * problem.f.strong_convexity(problem.X)
    return smoothness is not None and largest >= smoothness.H


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
