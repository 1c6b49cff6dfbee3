"""The weighted cost of each method, predicted from its own bound.

Bounds are promises for the worst case, and loose by different factors. Each is multiplied by the part of it that was
used on a calibration set (`SHARES`; benchmarks/suite/calibrate.py measures them, on other instances than the suite on
which the choice is judged). Adaptive sliding has no bound: it is predicted by that of the accelerated scheme it
follows, with its usual number of coupling steps, and a share of its own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from saddleslide.domains import Domain
from saddleslide.errors import InputError
from saddleslide.functions import Function, Zero
from saddleslide.methods.base import Method
from saddleslide.methods.catalogue import by_name
from saddleslide.methods.reach import reach_from_start
from saddleslide.methods.requirements import smoothness_of
from saddleslide.methods.schedule.planner import theorem_plan
from saddleslide.methods.sliding.primal_dual import CHUNK
from saddleslide.oracles.calls import Calls
from saddleslide.planner.candidates import ADAPTIVE, SHARES, costly_parts, kind_of, pdhg_variant
from saddleslide.problem import SaddleProblem
from saddleslide.theory.holder import Holder
from saddleslide.theory.plan import weighted_cost

PAPER = "paper"
# Coupling steps per outer step of adaptive sliding, two products each; gradients that a certificate may always take.
_INNER_STEPS, _FEWEST_GRADIENTS = 12, 25
# Of one stretch of primal-dual steps.
_FEWEST_PRODUCTS = 2.0 * CHUNK
# Gaps below this part of the scale of the problem are rounding.
_ROUNDING = 1e-16
_LARGEST = 1e100
# Remembered as long as the problem lives: forecasts ask at every distance that they try.
_CONDITIONS: WeakKeyDictionary[SaddleProblem, tuple[Holder | None, Holder | None]] = WeakKeyDictionary()


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


def predictions(problem: SaddleProblem, tol: float, costs: tuple[float, float, float]) -> tuple[Prediction, ...]:
    """Every method and the paper's schedule, cheapest first; last those without a bound, and those that do not apply.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> simplex, zero = ss.domains.Simplex(3), ss.functions.Zero()
    >>> game = ss.SaddleProblem(f=zero, g=zero, B=np.eye(3), X=simplex, Y=simplex)
    >>> predictions(game, 1e-3, (1.0, 1.0, 1.0))[0].method
    'adaptive'
    """
    tol = attainable(problem, tol)
    rows = [predict_adaptive(problem, tol, costs), predict_plan(problem, tol, costs)]
    rows += [predict(name, problem, tol, costs) for name in by_name]
    return tuple(sorted(rows, key=lambda row: (not row.applies, row.cost)))


def predict(name: str, problem: SaddleProblem, tol: float, costs: tuple[float, float, float]) -> Prediction:
    """One method of `ss.methods`.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> simplex, zero = ss.domains.Simplex(3), ss.functions.Zero()
    >>> game = ss.SaddleProblem(f=zero, g=zero, B=np.eye(3), X=simplex, Y=simplex)
    >>> predict("apdg", game, 1e-3, (1.0, 1.0, 1.0)).applies
    False
    """
    method = by_name[name]()
    why_not = tuple(method.lacks(problem))
    if why_not:
        return Prediction(name, None, 1.0, Calls(), math.inf, why_not)
    return foretell(method, problem, tol, costs)


def foretell(method: Method, problem: SaddleProblem, tol: float, costs: tuple[float, float, float]) -> Prediction:
    """One method that is known to apply.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> simplex, zero = ss.domains.Simplex(3), ss.functions.Zero()
    >>> game = ss.SaddleProblem(f=zero, g=zero, B=np.eye(3), X=simplex, Y=simplex)
    >>> foretell(ss.methods.by_name["mirror-prox"](), game, 1e-3, (1.0, 1.0, 1.0)).bound
    Calls(f=0, g=0, B=2668)
    """
    name = method.description.name
    bound, share = _bound(method, problem, tol), SHARES[kind_of(problem)].get(name, 1.0)
    # Shares come from longer runs, and say nothing about the first steps.
    share = share if bound is None else max(share, min(1.0, _FEWEST_PRODUCTS / max(bound.B, 1)))
    return _priced(name, bound, share, _judging(problem, bound, share), costs)


def at_least(method: Method, problem: SaddleProblem, tol: float, costs: tuple[float, float, float]) -> Prediction:
    """What a method that applies and counts with its whole bound is sure to ask for, quickly found.

    Examples
    --------
    >>> import saddleslide as ss
    >>> problem, prices = ss.gallery.synthetic(1.0, 1.0, d=20), (1.0, 1.0, 1.0)
    >>> method = ss.methods.ProvedSliding()
    >>> at_least(method, problem, 0.1, prices).cost < foretell(method, problem, 0.1, prices).cost
    True
    """
    return _priced(method.description.name, method.fewest_calls(problem, tol), 1.0, Calls(), costs)


def _bound(method: Method, problem: SaddleProblem, tol: float) -> Calls | None:
    """Calls of the method's own bound; a number too large for a computer, or for a gap of 0, promises nothing."""
    if not tol > 0.0:
        return None
    try:
        return method.predicted_calls(problem, tol)
    except OverflowError:
        return None


def predict_plan(problem: SaddleProblem, tol: float, costs: tuple[float, float, float]) -> Prediction:
    """The schedule of `ss.plan(..., regime="paper")`: the paper's recursion, or its restarts.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> q, box = ss.functions.Quadratic(1.0), ss.domains.Box(-1.0, 1.0, shape=3)
    >>> problem = ss.SaddleProblem(f=q, g=q, B=np.eye(3), X=box, Y=box)
    >>> predict_plan(problem, 1e-2, (1.0, 1.0, 1.0)).applies
    True
    """
    try:
        made = theorem_plan(problem, tol, costs=costs)
    except InputError as error:
        return Prediction(PAPER, None, 1.0, Calls(), math.inf, (str(error).splitlines()[0],))
    share = made.expected_share
    calls = made.predicted_calls
    return _priced(PAPER, Calls(calls["f"], calls["g"], int(calls["B"])), share, Calls(), costs)


def predict_adaptive(problem: SaddleProblem, tol: float, costs: tuple[float, float, float]) -> Prediction:
    """What `solve` does by itself: adaptive sliding, or restarted primal-dual steps where f and g are simple.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> f = ss.functions.LeastSquares(np.diag([3.0, 1.0]), np.ones(2))
    >>> X, Y = ss.domains.FullSpace(2), ss.domains.Box(-1.0, 1.0, shape=1)
    >>> problem = ss.SaddleProblem(f=f, g=ss.functions.Zero(), B=np.array([[1.0, -1.0]]), X=X, Y=Y)
    >>> predict_adaptive(problem, 1e-3, (1.0, 1.0, 1.0)).bound
    Calls(f=35, g=0, B=840)
    """
    (f_rest, g_rest), share = costly_parts(problem), SHARES[kind_of(problem)][ADAPTIVE]
    if isinstance(f_rest, Zero) and isinstance(g_rest, Zero):
        bound = _bound(by_name["pdhg"](variant=pdhg_variant(problem)), problem, tol)
        # Nothing is judged before the first stretch of steps.
        share = share if bound is None else max(share, _FEWEST_PRODUCTS / max(bound.B, 1))
        return _priced(ADAPTIVE, bound, share, Calls(), costs)
    D_x, D_y = reach_from_start(problem)
    f, g = _gradients(f_rest, problem.X, D_x, tol), _gradients(g_rest, problem.Y, D_y, tol)
    if not math.isfinite(f + g):
        return _priced(ADAPTIVE, None, 1.0, Calls(), costs)
    outer = math.ceil(g if isinstance(f_rest, Zero) else f)
    # A costly g inside is linearised at least once an outer step.
    inner_g = 0 if isinstance(g_rest, Zero) else max(outer, math.ceil(g))
    calls = Calls(0 if isinstance(f_rest, Zero) else outer, inner_g, 2 * _INNER_STEPS * outer)
    return _priced(ADAPTIVE, calls, share, Calls(), costs)


def _priced(
    name: str, bound: Calls | None, share: float, judging: Calls, costs: tuple[float, float, float]
) -> Prediction:
    if bound is None:
        return Prediction(name, None, share, judging, math.inf)
    total = {"f": share * bound.f + judging.f, "g": share * bound.g + judging.g, "B": share * bound.B + judging.B}
    return Prediction(name, bound, share, judging, weighted_cost(total, costs))


def _judging(problem: SaddleProblem, bound: Calls | None, share: float) -> Calls:
    """Certificates of a named method solve for a costly function as often as the method calls it, or 25 times."""
    if bound is None:
        return Calls()
    f_rest, g_rest = costly_parts(problem)
    f = 0.0 if isinstance(f_rest, Zero) else max(share * bound.f, _FEWEST_GRADIENTS)
    g = 0.0 if isinstance(g_rest, Zero) else max(share * bound.g, _FEWEST_GRADIENTS)
    return Calls(f, g, math.ceil(0.1 * share * bound.B))


def _gradients(rest: Function, domain: Domain, D: float, tol: float) -> float:
    """Gradients that an accelerated scheme needs: the smaller of sqrt(2 L D^2 / eps) and sqrt(L / mu) log(L D^2 / eps).

    With a Hölder gradient, (H D^(1 + nu) / eps)^(2 / (1 + 3 nu)). A relative target at an optimal start is 0: no number
    of gradients is known to reach that.
    """
    if isinstance(rest, Zero):
        return 0.0
    smoothness, mu = smoothness_of(rest, domain), rest.strong_convexity(domain)
    if smoothness is None or not (math.isfinite(D) and tol > 0.0):
        return math.inf
    ratio = min(smoothness.H * D ** (1.0 + smoothness.nu) / tol, _LARGEST)
    rate = float((2.0 * ratio) ** (2.0 / (1.0 + 3.0 * smoothness.nu)))
    if smoothness.nu == 1.0 and mu > 0.0:
        rate = min(rate, math.sqrt(smoothness.H / mu) * math.log(max(ratio, math.e)))
    return max(rate, 1.0)


def attainable(problem: SaddleProblem, tol: float) -> float:
    """The target, between rounding and the scale of the gap at the start: no bound has a meaning beyond these."""
    return within_scale(tol, start_scale(problem))


def within_scale(tol: float, scale: float) -> float:
    """The target, between rounding and a scale.

    Examples
    --------
    >>> within_scale(3.0, 2.0), within_scale(0.0, 2.0), within_scale(3.0, math.inf)
    (2.0, 2e-16, 3.0)
    """
    return min(max(tol, _ROUNDING * scale), scale) if 0.0 < scale < math.inf else tol


def start_scale(problem: SaddleProblem) -> float:
    """Size of the gap at the start, for a relative target: what the curvatures and distances allow."""
    D_x, D_y = reach_from_start(problem)
    if problem not in _CONDITIONS:
        _CONDITIONS[problem] = smoothness_of(problem.f, problem.X), smoothness_of(problem.g, problem.Y)
    f, g = _CONDITIONS[problem]
    terms = [problem.coupling.norm.upper * D_x * D_y]
    try:
        terms += [part.H * D ** (1.0 + part.nu) for part, D in ((f, D_x), (g, D_y)) if part is not None]
        return math.fsum(terms)
    except OverflowError:
        return math.inf
