"""The weighted cost of each method, predicted from its own bound.

Bounds are promises for the worst case, and loose by different factors. Each is multiplied by the part of it that was
used on a calibration set (`SHARES`; benchmarks/suite/calibrate.py measures them, on other instances than the suite on
which the choice is judged). Adaptive sliding has no bound: it is predicted by that of the accelerated scheme it
follows, with its usual number of coupling steps, and a share of its own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np

from saddleslide.arrays.base import as_number
from saddleslide.errors import InputError, raise_all
from saddleslide.facts.facts import Facts, FunctionFacts
from saddleslide.functions.base import gradient_aside
from saddleslide.methods.base import Method
from saddleslide.methods.catalogue import by_name, named_method
from saddleslide.methods.metric_choice import METRICS
from saddleslide.methods.restarted_primal_dual import CHUNK
from saddleslide.methods.schedule.planner import theorem_plan
from saddleslide.metrics import Metric
from saddleslide.operators import Coupling, FiniteDifferences, ForeignMatrix, Matrix
from saddleslide.oracles.calls import Calls
from saddleslide.problem import SaddleProblem
from saddleslide.theory.plan import weighted_cost


@dataclass(frozen=True)
class SolveRequest:
    """The arguments that `ss.solve` and `ss.plan` share; `ss.solve` documents them.

    Examples
    --------
    >>> SolveRequest(1e-3).method
    'auto'
    """

    tol: float | None = None
    rtol: float | None = None
    method: str | Method = "auto"
    metric: str | Metric = "auto"
    start: tuple[Any, Any] | None = None
    costs: Sequence[float] | str | None = None
    seed: int = 0
    # Which of the two errors are about.
    caller: str = "solve"

    def targets(self, problem: SaddleProblem) -> tuple[float, float]:
        """Absolute and relative target, after refusing what can not be one."""
        if not isinstance(problem, SaddleProblem):
            raise InputError(f"{self.caller}: problem is {type(problem).__name__}; expected a SaddleProblem.")
        complaints = []
        if isinstance(self.seed, bool) or not isinstance(self.seed, Integral) or self.seed < 0:
            complaints.append(f"rng is {self.seed!r}; expected a seed >= 0 or a numpy.random.Generator.")
        if self.tol is None and self.rtol is None:
            complaints.append("tol and rtol are both missing; expected a target gap.")
        if not (isinstance(self.metric, Metric) or (isinstance(self.metric, str) and self.metric in METRICS)):
            complaints.append(f"metric is {self.metric!r}; expected one of {METRICS} or an object of ss.metrics.")
        raise_all(self.caller, complaints)
        absolute = 0.0 if self.tol is None else as_number(self.tol, f"{self.caller}: tol", 0.0)
        relative = 0.0 if self.rtol is None else as_number(self.rtol, f"{self.caller}: rtol", 0.0)
        if absolute == 0.0 and relative == 0.0:
            raise InputError(f"{self.caller}: tol and rtol are 0; expected a target > 0.")
        return absolute, relative


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


Prices = tuple[float, float, float]
PAPER = "paper"
# Coupling steps per outer step of adaptive sliding, two products each; gradients that a certificate may always take.
_INNER_STEPS, _FEWEST_GRADIENTS = 12, 25
# Of one stretch of primal-dual steps.
_FEWEST_PRODUCTS = 2.0 * CHUNK
# Gaps below this part of the scale of the problem are rounding.
_ROUNDING = 1e-16
_LARGEST = 1e100


@dataclass(frozen=True)
class Prediction:
    """What a method is expected to need on a problem.

    Parameters
    ----------
    method : str
        "adaptive", "paper", or a name in `ss.methods`.
    bound : Calls or None
        Calls that its own bound asks for; None where it promises nothing.
    share : float
        Part of the bound that is expected to be used.
    judging : Calls
        Expected calls of certificates on the way.
    cost : float
        Weighted cost of both at the prices given; infinite without a bound.
    why_not : tuple of str
        What the method lacks on this problem; empty where it applies.

    Examples
    --------
    >>> Prediction("mirror-prox", Calls(4, 4, 8), 0.5, Calls(), 12.0).expected
    Calls(f=2, g=2, B=4)
    """

    method: str
    bound: Calls | None
    share: float
    judging: Calls
    cost: float
    why_not: tuple[str, ...] = ()

    @property
    def expected(self) -> Calls | None:
        """Calls without judging."""
        if self.bound is None:
            return None
        return Calls(self.share * self.bound.f, self.share * self.bound.g, math.ceil(self.share * self.bound.B))

    @property
    def applies(self) -> bool:
        """Whether the method can run on the problem."""
        return not self.why_not


def predictions(facts: Facts, tol: float, costs: Prices) -> tuple[Prediction, ...]:
    """Every method and the paper's schedule, cheapest first; last those that promise nothing or lack something."""
    tol = attainable(facts, tol)
    rows = [predict_adaptive(facts, tol, costs), predict_plan(facts, tol, costs)]
    rows += [predict(name, facts, tol, costs) for name in by_name]
    return tuple(sorted(rows, key=lambda row: (not row.applies, row.cost)))


def predict(name: str, facts: Facts, tol: float, costs: Prices) -> Prediction:
    """One method of `ss.methods`."""
    method = by_name[name]()
    why_not = tuple(method.lacks(facts))
    if why_not:
        return Prediction(name, None, 1.0, Calls(), math.inf, why_not)
    return foretell(method, facts, tol, costs)


def foretell(method: Method, facts: Facts, tol: float, costs: Prices) -> Prediction:
    """One method that is known to apply."""
    name = method.description.name
    bound, share = _bound(method, facts, tol), SHARES[kind_of(facts)].get(name, 1.0)
    # Shares come from longer runs, and say nothing about the first steps.
    share = share if bound is None else max(share, min(1.0, _FEWEST_PRODUCTS / max(bound.B, 1)))
    return _priced(name, bound, share, _judging(facts, bound, share), costs)


def at_least(method: Method, facts: Facts, tol: float, costs: Prices) -> Prediction:
    """What a method that applies and counts with its whole bound is sure to ask for, quickly found."""
    return _priced(method.description.name, method.fewest_calls(facts, tol), 1.0, Calls(), costs)


def _bound(method: Method, facts: Facts, tol: float) -> Calls | None:
    """Calls of the method's own bound; a number too large for a computer, or for a gap of 0, promises nothing."""
    if not tol > 0.0:
        return None
    try:
        return method.calls(facts, tol)
    except OverflowError:
        return None


def predict_plan(facts: Facts, tol: float, costs: Prices) -> Prediction:
    """The schedule of `ss.plan(..., regime="paper")`: the paper's recursion, or its restarts."""
    try:
        made = theorem_plan(facts.problem, tol, costs=costs)
    except InputError as error:
        return Prediction(PAPER, None, 1.0, Calls(), math.inf, (str(error).splitlines()[0],))
    calls = made.predicted_calls
    return _priced(PAPER, Calls(calls["f"], calls["g"], int(calls["B"])), made.expected_share, Calls(), costs)


def predict_adaptive(facts: Facts, tol: float, costs: Prices) -> Prediction:
    """What `solve` does by itself: adaptive sliding, or restarted primal-dual steps where f and g are simple."""
    f_rest, g_rest, share = facts.f.rest, facts.g.rest, SHARES[kind_of(facts)][ADAPTIVE]
    if f_rest.is_zero and g_rest.is_zero:
        bound = _bound(named_method("pdhg", {"variant": pdhg_variant(facts)}), facts, tol)
        # Nothing is judged before the first stretch of steps.
        share = share if bound is None else max(share, _FEWEST_PRODUCTS / max(bound.B, 1))
        return _priced(ADAPTIVE, bound, share, Calls(), costs)
    D_x, D_y = facts.distances
    f, g = _gradients(f_rest, D_x, tol), _gradients(g_rest, D_y, tol)
    if not math.isfinite(f + g):
        return _priced(ADAPTIVE, None, 1.0, Calls(), costs)
    outer = math.ceil(g if f_rest.is_zero else f)
    # A costly g inside is linearised at least once an outer step.
    inner_g = 0 if g_rest.is_zero else max(outer, math.ceil(g))
    calls = Calls(0 if f_rest.is_zero else outer, inner_g, 2 * _INNER_STEPS * outer)
    return _priced(ADAPTIVE, calls, share, Calls(), costs)


def _priced(name: str, bound: Calls | None, share: float, judging: Calls, costs: Prices) -> Prediction:
    if bound is None:
        return Prediction(name, None, share, judging, math.inf)
    total = {"f": share * bound.f + judging.f, "g": share * bound.g + judging.g, "B": share * bound.B + judging.B}
    return Prediction(name, bound, share, judging, weighted_cost(total, costs))


def _judging(facts: Facts, bound: Calls | None, share: float) -> Calls:
    """Certificates of a named method solve for a costly function as often as the method calls it, or 25 times."""
    if bound is None:
        return Calls()
    f = 0.0 if facts.f.rest.is_zero else max(share * bound.f, _FEWEST_GRADIENTS)
    g = 0.0 if facts.g.rest.is_zero else max(share * bound.g, _FEWEST_GRADIENTS)
    return Calls(f, g, math.ceil(0.1 * share * bound.B))


def _gradients(rest: FunctionFacts, D: float, tol: float) -> float:
    """Gradients that an accelerated scheme needs: the smaller of sqrt(2 L D^2 / eps) and sqrt(L / mu) log(L D^2 / eps).

    With a Hölder gradient, (H D^(1 + nu) / eps)^(2 / (1 + 3 nu)). A relative target at an optimal start is 0: no number
    of gradients is known to reach that.
    """
    if rest.is_zero:
        return 0.0
    smoothness, mu = rest.holder, rest.modulus
    if smoothness is None or not (math.isfinite(D) and tol > 0.0):
        return math.inf
    ratio = min(smoothness.H * D ** (1.0 + smoothness.nu) / tol, _LARGEST)
    rate = float((2.0 * ratio) ** (2.0 / (1.0 + 3.0 * smoothness.nu)))
    if smoothness.nu == 1.0 and mu > 0.0:
        rate = min(rate, math.sqrt(smoothness.H / mu) * math.log(max(ratio, math.e)))
    return max(rate, 1.0)


def attainable(facts: Facts, tol: float) -> float:
    """The target, between rounding and the scale of the gap at the start: no bound has a meaning beyond these."""
    return within_scale(tol, start_scale(facts))


def within_scale(tol: float, scale: float) -> float:
    """The target, between rounding and a scale."""
    return min(max(tol, _ROUNDING * scale), scale) if 0.0 < scale < math.inf else tol


def start_scale(facts: Facts) -> float:
    """Size of the gap at the start, for a relative target: what the curvatures and distances allow."""
    D_x, D_y = facts.distances
    terms = [facts.norm * D_x * D_y]
    try:
        terms += [part.H * D ** (1.0 + part.nu) for part, D in ((facts.f.holder, D_x), (facts.g.holder, D_y)) if part]
        return math.fsum(terms)
    except OverflowError:
        return math.inf
