"""The weighted cost of each method, predicted from its own bound.

Bounds are promises for the worst case, and loose by different factors. Each is multiplied by the part of it that was
used on a calibration set (`SHARES`; benchmarks/suite/calibrate.py measures them, on other instances than the suite on
which the choice is judged). Adaptive sliding has no bound: it is predicted by that of the accelerated scheme it
follows, with its usual number of coupling steps, and a share of its own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from numbers import Integral
from typing import Any

import numpy as np

from saddleslide.arrays.base import as_number
from saddleslide.errors import InputError, raise_all
from saddleslide.facts.facts import Facts, FunctionFacts
from saddleslide.functions.trust import diagonal_of, gradient_aside
from saddleslide.methods import schedule
from saddleslide.methods.base import CHUNK, Method
from saddleslide.methods.catalogue import by_name
from saddleslide.methods.metric_choice import METRICS
from saddleslide.metrics.base import Metric
from saddleslide.oracles.calls import Calls
from saddleslide.problem import SaddleProblem
from saddleslide.theory.plan import RADIUS, Target, weigh_calls

# The target where none is named: relative to the size of the saddle value.
DEFAULT_RTOL = 1e-4


@dataclass(frozen=True)
class SolveRequest:
    """The arguments that `ss.solve` and `ss.plan` share; `ss.solve` documents them."""

    tol: float | None = None
    reduction: float | None = None
    method: str | Method = "auto"
    metric: str | Metric = "auto"
    start: tuple[Any, Any] | None = None
    costs: Sequence[float] | str | None = None
    seed: int = 0
    # Which of the two errors are about.
    caller: str = "solve"
    rtol: float | None = None
    radius: float = RADIUS
    # The method of the result that the start came from.
    known: str = ""

    def target(self, problem: SaddleProblem) -> Target:
        """What is asked for, after refusing what can not be; relative to the saddle value where nothing is said."""
        if not isinstance(problem, SaddleProblem):
            came = f"{self.caller}: problem is {type(problem).__name__}"
            raise InputError(f"{came}; expected a SaddleProblem. ss.minimize takes an objective.")
        complaints = []
        if isinstance(self.seed, bool) or not isinstance(self.seed, Integral) or self.seed < 0:
            complaints.append(f"rng is {self.seed!r}; expected a seed >= 0 or a numpy.random.Generator.")
        if not (isinstance(self.metric, Metric) or (isinstance(self.metric, str) and self.metric in METRICS)):
            complaints.append(f"metric is {self.metric!r}; expected one of {METRICS} or an object of ss.metrics.")
        raise_all(self.caller, complaints)
        asked = {"tol": self.tol, "reduction": self.reduction, "rtol": self.rtol}
        if all(value is None for value in asked.values()):
            asked["rtol"] = DEFAULT_RTOL
        named = {name: value for name, value in asked.items() if value is not None}
        found = {name: as_number(value, f"{self.caller}: {name}", 0.0) for name, value in named.items()}
        if not any(found.values()):
            raise InputError(f"{self.caller}: all targets are 0; expected tol, rtol or reduction > 0.")
        return Target(**found, radius=as_number(self.radius, f"{self.caller}: radius", 0.0, finite=False))


ADAPTIVE = "adaptive"
# Part of the bound that runs to a certified gap have used: medians. Only of methods that mostly reached the target on
# problems of that kind, with parts that agree within a factor of 20; any other method counts with its whole bound.
SHARES: dict[str, dict[str, float]] = {
    "both costly": {ADAPTIVE: 0.166, "apdg": 0.110},
    "one costly": {ADAPTIVE: 0.364, "opapc": 0.0764},
    "simple, curved": {
        ADAPTIVE: 0.277, "pdhg": 0.594, "admm": 0.00425, "l-bfgs": 0.0847, "universal-primal-dual": 0.0788
    },
    "one costly, rough": {ADAPTIVE: 8.78e-6},
    "both costly, rough": {
        ADAPTIVE: 0.197, "universal-mirror-prox": 0.000416, "recursive-sliding": 0.158, "two-level-sliding": 0.485,
        "lockstep": 0.291,
    },
    "simple, flat": {ADAPTIVE: 0.0110, "pdhg": 0.0101, "accelerated-mirror-prox": 0.00298},
}  # fmt: skip
# What these predict is no bound of what they run: they count only where it was measured.
_STAND_INS = ("admm", "l-bfgs", "recursive-sliding", "two-level-sliding", "lockstep")
# Operations that finding out the singular values of B may take.
_MOST_FACTORING = 2e8
# Of f, for the share of OPAPC to count: it was measured at 7 to 38. OPAPC steps by the declared modulus, while adaptive
# sliding follows the curvature that it meets: far above that range it may take a fortieth of what is predicted.
_MOST_CONDITION = 100.0


def kind_of(facts: Facts) -> str:
    """What the shares depend on: how many of f and g are costly, and if these are rough, or the others curved."""
    # Rough is what has no Lipschitz gradient; an unknown exponent counts as smooth.
    found = [rest.exponent for rest in (facts.f.rest, facts.g.rest) if not rest.is_zero]
    if not found:
        return "simple, flat" if max(facts.moduli) == 0.0 else "simple, curved"
    return ("one costly", "both costly")[len(found) - 1] + (", rough" if any(nu < 1.0 for nu in found) else "")


def rivals_on(facts: Facts) -> list[str]:
    """Methods with a measured share that apply, and whose assumptions are not known to fail; no oracle is called."""
    return [name for name in SHARES[kind_of(facts)] if name != ADAPTIVE and _is_worth_asking(name, facts)]


def list_promised(facts: Facts) -> list[str]:
    """All other methods that apply and have a bound of their own, with which they count as a whole."""
    known = (*SHARES[kind_of(facts)], *_STAND_INS)
    others = [name for name in by_name if name not in known and by_name[name].promises()]
    return [name for name in others if _is_worth_asking(name, facts)]


def _is_worth_asking(name: str, facts: Facts) -> bool:
    if name == "opapc" and not _may_do_for_opapc(facts):
        return False
    return not by_name[name]().lacks_at_a_glance(facts)


def _may_do_for_opapc(facts: Facts) -> bool:
    """Whether the share of OPAPC counts, its assumption is not known to fail, and its constants come at little work."""
    problem, coupling = facts.problem, facts.problem.coupling
    if not (problem.Y.size and problem.g.linear):
        return False
    # No entry of the diagonal is above the curvature, whose bound may take all singular values of a matrix.
    diagonal = diagonal_of(problem.f, problem.X.shape)
    if diagonal is not None and _MOST_CONDITION * facts.f.modulus < float(np.max(diagonal, initial=0.0)):
        return False
    if not ((known := facts.f.holder) and _MOST_CONDITION * facts.f.modulus >= known.H):
        return False
    # A multiplier inside Y needs a solution of Bx = b, where g = <b, y>.
    if gradient_aside(problem.g, np.zeros(problem.Y.shape)).any() and problem.Y.size > problem.X.size:
        return False
    if coupling.entry_count is None:
        return coupling.has_closed_spectrum
    sides = math.prod(coupling.y_shape), math.prod(coupling.x_shape)
    return math.prod(sides) * min(sides) <= _MOST_FACTORING


Costs = tuple[float, float, float]
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
    """What a method ("adaptive", "paper", or a name in `ss.methods`) is expected to need: calls, and their cost.

    A share of the calls that its own `bound` asks for, None where it promises nothing, and what certificates take.
    """

    method: str
    bound: Calls | None = None
    share: float = 1.0
    judging: Calls = field(default_factory=Calls)
    cost: float = math.inf
    # What the method lacks on the problem.
    why_not: tuple[str, ...] = ()

    @property
    def method_calls(self) -> Calls | None:
        """Calls without judging."""
        share, bound = self.share, self.bound
        return None if bound is None else Calls(share * bound.f, share * bound.g, math.ceil(share * bound.B))

    @property
    def applies(self) -> bool:
        """Whether the method can run on the problem."""
        return not self.why_not


def predictions(facts: Facts, tol: float, costs: Costs) -> tuple[Prediction, ...]:
    """Every method and the paper's schedule, cheapest first; last those that promise nothing or lack something."""
    tol = within_scale(tol, start_scale(facts))
    rows = [predict_adaptive(facts, tol, costs), _predict_paper(facts, tol, costs)]
    rows += [predict(name, facts, tol, costs) for name in by_name]
    return tuple(sorted(rows, key=lambda row: (not row.applies, row.cost)))


def predict(name: str, facts: Facts, tol: float, costs: Costs) -> Prediction:
    """One method of `ss.methods`."""
    method = by_name[name]()
    why_not = tuple(method.lacks(facts))
    return Prediction(name, why_not=why_not) if why_not else foretell(method, facts, tol, costs)


def foretell(method: Method, facts: Facts, tol: float, costs: Costs) -> Prediction:
    """One method that is known to apply."""
    name, bound, judging = method.description.name, _bound(method, facts, tol), Calls()
    share = SHARES[kind_of(facts)].get(name, 1.0)
    if bound is not None:
        # Shares come from longer runs, and say nothing about the first steps.
        share = max(share, min(1.0, _FEWEST_PRODUCTS / max(bound.B, 1)))
        # Certificates of a named method solve for a costly function as often as the method calls it, or 25 times.
        f = 0.0 if facts.f.rest.is_zero else max(share * bound.f, _FEWEST_GRADIENTS)
        g = 0.0 if facts.g.rest.is_zero else max(share * bound.g, _FEWEST_GRADIENTS)
        judging = Calls(f, g, math.ceil(0.1 * share * bound.B))
    return _with_cost(name, bound, share, costs, judging)


def at_least(method: Method, facts: Facts, tol: float, costs: Costs) -> Prediction:
    """What a method that applies and counts with its whole bound is sure to ask for, quickly found."""
    return _with_cost(method.description.name, method.fewest_calls(facts, tol), 1.0, costs)


def _bound(method: Method, facts: Facts, tol: float) -> Calls | None:
    """Calls of the method's own bound; a number too large for a computer, or for a gap of 0, promises nothing."""
    if not tol > 0.0:
        return None
    try:
        return method.calls(facts, tol)
    except OverflowError:
        return None


def _predict_paper(facts: Facts, tol: float, costs: Costs) -> Prediction:
    """The schedule of `ss.plan(..., regime="paper")`: the paper's recursion, or its restarts."""
    try:
        made = schedule.theorem_plan(facts.problem, tol, costs=costs)
    except InputError as error:
        return Prediction(PAPER, why_not=(str(error).splitlines()[0],))
    calls = made.predicted_calls
    return _with_cost(PAPER, Calls(calls["f"], calls["g"], int(calls["B"])), made.expected_share, costs)


def predict_adaptive(facts: Facts, tol: float, costs: Costs) -> Prediction:
    """What `solve` does by itself: adaptive sliding, or restarted primal-dual steps where f and g are simple."""
    f_rest, g_rest, share = facts.f.rest, facts.g.rest, SHARES[kind_of(facts)][ADAPTIVE]
    if f_rest.is_zero and g_rest.is_zero:
        bound = _bound(by_name["pdhg"](), facts, tol)
        # Nothing is judged before the first stretch of steps.
        share = share if bound is None else max(share, _FEWEST_PRODUCTS / max(bound.B, 1))
        return _with_cost(ADAPTIVE, bound, share, costs)
    D_x, D_y = facts.distances
    f, g = _gradients(f_rest, D_x, tol), _gradients(g_rest, D_y, tol)
    if not math.isfinite(f + g):
        return Prediction(ADAPTIVE)
    outer = math.ceil(g if f_rest.is_zero else f)
    # A costly g inside is linearised at least once an outer step.
    inner_g = 0 if g_rest.is_zero else max(outer, math.ceil(g))
    calls = Calls(0 if f_rest.is_zero else outer, inner_g, 2 * _INNER_STEPS * outer)
    return _with_cost(ADAPTIVE, calls, share, costs)


def _with_cost(name: str, bound: Calls | None, share: float, costs: Costs, judging: Calls | None = None) -> Prediction:
    judging = judging or Calls()
    if bound is None:
        return Prediction(name, None, share, judging)
    total = {"f": share * bound.f + judging.f, "g": share * bound.g + judging.g, "B": share * bound.B + judging.B}
    return Prediction(name, bound, share, judging, weigh_calls(total, costs))


def _gradients(rest: FunctionFacts, D: float, tol: float) -> float:
    """Gradients that an accelerated scheme needs: the smaller of sqrt(2 L D^2 / eps) and sqrt(L / mu) log(L D^2 / eps).

    With a Hölder gradient, (H D^(1 + nu) / eps)^(2 / (1 + 3 nu)). None are known to reach an eps of 0.
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


def within_scale(tol: float, scale: float) -> float:
    """The target, between rounding and the scale of the gap at the start: no bound has a meaning beyond these."""
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
