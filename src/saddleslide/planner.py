"""`plan`: reads the constants of a problem and turns them into a Plan."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from numbers import Real
from typing import Any

import numpy as np

from saddleslide.arrays import Array, as_number
from saddleslide.domains import Domain
from saddleslide.errors import InputError, UnknownConstantError, raise_all
from saddleslide.functions import Function, estimated_smoothness
from saddleslide.holder import Holder
from saddleslide.metrics import Metric
from saddleslide.planning import Constant, Plan, Term, loop_counts, place, proved_kappa, sorted_by_budget
from saddleslide.planning.budgets import PRACTICAL_KAPPA
from saddleslide.planning.levels import check_loops
from saddleslide.planning.levelwise import levelwise_terms
from saddleslide.planning.noise import ESTIMATE, is_noisy, proved_accuracy, steadied
from saddleslide.planning.plan import weighted_cost
from saddleslide.planning.restart_plan import RestartPlan
from saddleslide.problem import SaddleProblem
from saddleslide.regimes import REGIMES, restarted_plan
from saddleslide.sampling import is_sampled
from saddleslide.stochastic import check_anchor_batch, noise_constants, refuse_unbounded, with_variances
from saddleslide.work import chosen_costs

SMOOTHNESS_NAMES = ("nu_x", "H_x", "nu_y", "H_y", "L_xy")
CONSTANT_NAMES = (*SMOOTHNESS_NAMES, "mu_x", "mu_y")
METRICS = ("auto", "identity", "balanced", "levelwise")
Weights = tuple[float, float]


def plan(
    problem: SaddleProblem,
    tol: float | None = None,
    *,
    order: str | None = None,
    loops: Sequence[int] | None = None,
    metric: str | float | Sequence[float] = "auto",
    start: tuple[Any, Any] | None = None,
    kappa: float | None = None,
    proved: bool = False,
    constants: Mapping[str, float] | None = None,
    regime: str = "auto",
    anchors: bool = False,
    factor: float | None = None,
    range_conditions: Collection[str] = (),
    interior: Collection[str] = (),
    Psi0: float | None = None,
    costs: Sequence[float] | str | None = None,
    inexact: Mapping[str, Sequence[float]] | None = None,
    anchor_batch: int | None = None,
) -> Plan | RestartPlan:
    """Plan a run: explicit order and loops, or both from the target `tol`.

    Three regimes of the paper: "degenerate" (bounded domains, Theorem 3.5 and Corollary 3.6), "restarts" (both
    effective moduli of curvature positive, Theorem 4.4 and Corollary 4.5) and "mixed" (one of them zero, regularised).

    Parameters
    ----------
    problem : SaddleProblem
        What is to be solved.
    tol : float, optional
        Target gap. Needed unless `order` and `loops` are given.
    order : str, optional
        A permutation of "fgB", outermost level first. Sorted by budget when missing.
    loops : sequence of int, optional
        T_1, T_2, T_3, one per level. From the budgets when missing.
    metric : "auto", "identity", "balanced", "levelwise", a number or (w_x, w_y)
        Weights of P on the two blocks. "balanced" makes both equally large, "levelwise" gives each level its own norm
        (both for bounded domains). "auto" takes the smallest predicted cost, or for explicit loops the smallest bound.
    start : (x, y), optional
        Starting point, as for `run`.
    kappa : float, optional
        kappa_n of Corollary 3.6; 1 unless given.
    proved : bool, optional
        Use the constants that the corollary proves: kappa_n = 256 and eps = tol / 3.
    constants : mapping, optional
        Declared values of nu_x, H_x, nu_y, H_y (a nu only with its H), L_xy, mu_x and mu_y, in place of computed ones.
    regime : "auto", "degenerate", "restarts" or "mixed"
        Which theorem to plan by; "auto" takes the one with the smallest predicted cost that applies.
    anchors : bool, optional
        Use the anchor terms p_3 of Theorem 4.4; refused where a constraint can be active. The default is beta = 0.
    factor : float, optional
        Factor on the budgets of a practical stage, kept as given. By default 1, raised by a run when the certificate
        asks for it, and 4 with sampled gradients; proved stages have their own.
    range_conditions : collection of "x", "y", optional
        Range conditions R_x, R_y that you declare to hold; checked ones need not be named.
    interior : collection of "x", "y", optional
        Blocks whose constraint you declare to be inactive at the solution (anchors need that).
    Psi0 : float, optional
        Bound on Psi at the start; 14 times the certified gap there when missing.
    costs : (c_f, c_g, c_B) or "measure", optional
        Prices of one gradient of f, one of g and one product; estimated from sizes when missing. Measuring makes a few
        calls of each that no result counts.
    inexact : mapping, optional
        (delta, L) of "f" and "g" whose values and gradients are (delta, L)-oracles (Definition inexact_oracle), in
        place of their smoothness. Theorem 3.3 then gives the bound, with the sum of N_i delta_i.
    anchor_batch : int, optional
        Samples averaged for each anchor where gradients are sampled (b of the paper); from the target when missing.
        Refused where the plan has no sampled anchors.

    Notes
    -----
    With sampled gradients (docs/stochastic.md) "degenerate" and "restarts" plan by the stochastic theorems: bounds are
    in expectation, and `proved=True` searches the budgets whose bound meets `tol`.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> f, box = ss.functions.Power(nu=1.0), ss.domains.Box(-1.0, 1.0, shape=60)
    >>> g, B = ss.functions.Power(nu=0.5), ss.couplings.as_coupling(2.0 * np.eye(60), norm=2.0)
    >>> problem = ss.SaddleProblem(f=f, g=g, B=B, X=box, Y=box)
    >>> paper = ss.plan(problem, tol=0.5, regime="degenerate", metric="identity")
    >>> paper.order, paper.predicted_calls
    ('fgB', {'f': 16, 'g': 96, 'B': 1920})
    >>> wide, narrow = ss.domains.Box(-20.0, 20.0, shape=60), ss.domains.Box(-0.01, 0.01, shape=60)
    >>> ss.plan(ss.SaddleProblem(f=f, g=g, B=B, X=wide, Y=narrow), tol=0.5, regime="degenerate").metric
    'levelwise'
    """
    # Everything that costs no oracle call is checked first; the norm of B costs products.
    _check_request(problem, tol, order, loops, kappa)
    _check_regime(regime, tol, order, loops)
    if anchor_batch is not None:
        check_loops((anchor_batch,), 1)
    check_anchor_batch(anchor_batch, anchors, None)
    for setting, number in (("factor", factor), ("Psi0", Psi0)):
        if number is not None:
            as_number(number, f"plan: {setting}", 0.0)
    x, y = problem.start(start)
    metrics = _metrics(metric, problem, x, y)
    declared = _declared(constants or {})
    prices = chosen_costs(problem, costs, "plan")
    squares = problem.X.squared_radius(x), problem.Y.squared_radius(y)
    explicit = order is not None or loops is not None
    oracles = _inexact_oracles(inexact or {}, regime)
    # Restarts have the norm and the oracles of their theorem: a metric or an oracle that was asked for leaves them out.
    asked = explicit or bool(oracles) or not (isinstance(metric, str) and metric == "auto")
    regimes = _regimes(regime, problem, declared, all(map(math.isfinite, squares)), asked)
    used = _constants(problem, declared, SMOOTHNESS_NAMES if regimes == ["degenerate"] else CONSTANT_NAMES)
    names = [name for name, constant in used.items() if ESTIMATE in constant.origin]
    if proved and names:
        raise InputError(f"plan: proved=True needs declared or computed constants, but {names} are estimates; declare.")
    if is_sampled(problem) and regimes == ["degenerate"]:
        refuse_unbounded(problem)
    used |= noise_constants(problem, (x, y))
    found: list[tuple[str, Plan | RestartPlan, float]] = []
    if "degenerate" in regimes:
        for name, weights in _usable(metrics, used):
            terms = _with_oracles(with_variances(_terms(used, weights, squares), used), oracles)
            made = _fixed_plan(terms, used, name, tol, order, loops, kappa, proved)
            merit = made.bound if loops is not None else weighted_cost(made.predicted_calls, prices)
            found.append((f"degenerate, metric {name}", made, merit))
    for other in (name for name in regimes if name != "degenerate"):
        assert tol is not None
        restarted = restarted_plan(
            problem,
            tol,
            other,
            start=start,
            proved=proved,
            anchors=anchors,
            factor=factor,
            range_conditions=range_conditions,
            interior=interior,
            Psi0=Psi0,
            constants=used,
            without_calls=len(regimes) > 1,
            anchor_batch=anchor_batch,
        )
        found.append((other, restarted, restarted.expected_share * weighted_cost(restarted.predicted_calls, prices)))
    # A proof that was asked for comes before the price.
    promised = [entry for entry in found if proved and tol is not None and entry[1].bound <= tol]
    _, chosen, _ = min(promised or found, key=lambda entry: entry[2])
    check_anchor_batch(anchor_batch, anchors, chosen.constants)
    others = tuple((name, cost) for name, made, cost in found if made is not chosen)
    shapes = (problem.X.shape, problem.Y.shape)
    return replace(chosen, costs=prices, alternatives=others if loops is None else (), shapes=shapes)


def _usable(
    metrics: list[tuple[str, Weights | None]], used: Mapping[str, Constant]
) -> list[tuple[str, Weights | None]]:
    """Level-wise norms leave a block without curvature when neither its function nor B has any."""
    bare = used["L_xy"].value == 0.0 and min(used["H_x"].value, used["H_y"].value) == 0.0
    return [(name, weights) for name, weights in metrics if len(metrics) == 1 or weights is not None or not bare]


def _inexact_oracles(declared: Mapping[str, Sequence[float]], regime: str) -> dict[str, tuple[float, float]]:
    unknown = sorted(set(declared) - {"f", "g"})
    raise_all("plan", [f"inexact has {unknown}; expected names among ['f', 'g']."] * bool(unknown))
    if declared and regime not in ("auto", "degenerate"):
        raise InputError(f"plan: inexact oracles are for regime 'degenerate' (Theorem 3.3); received {regime!r}.")
    oracles = {}
    for name, pair in declared.items():
        if not isinstance(pair, Sequence) or len(pair) != 2:
            raise InputError(f"plan: inexact[{name!r}] is {pair!r}; expected (delta, L).")
        delta, L = (as_number(number, f"plan: inexact[{name!r}]", 0.0) for number in pair)
        oracles[name] = (delta, L)
    return oracles


def _with_oracles(terms: list[Term], oracles: Mapping[str, tuple[float, float]]) -> list[Term]:
    """Declared (delta, L)-oracles in the norm of each term; L alone sets the budget, delta enters the bound."""
    placed = []
    for term in terms:
        if term.name in oracles:
            delta, L = oracles[term.name]
            L /= term.weights["fg".index(term.name)]
            term = replace(term, smoothness=Holder(1.0, L), inexact=(delta, L))
        placed.append(term)
    return placed


def _fixed_plan(
    terms: list[Term],
    used: dict[str, Constant],
    metric: str,
    tol: float | None,
    order: str | None,
    loops: Sequence[int] | None,
    kappa: float | None,
    proved: bool,
) -> Plan:
    """One run of Algorithm 1 (Theorem 3.5), with what is missing of order and loops from Corollary 3.6."""
    eps = math.nan if tol is None else (tol / len(terms) if proved else tol)
    if order is None:
        terms = sorted_by_budget(terms, eps)
    else:
        terms = [{term.name: term for term in terms}[letter] for letter in order]
    if loops is None and proved and is_noisy(terms):
        assert tol is not None
        eps, kappa = proved_accuracy(terms, tol, sort=order is None), PRACTICAL_KAPPA
        terms = terms if order is not None else sorted_by_budget(terms, eps)
    if loops is None:
        kappa = (proved_kappa(len(terms)) if proved else PRACTICAL_KAPPA) if kappa is None else kappa
        loops = loop_counts(terms, eps, kappa)
    return Plan(place(steadied(terms, loops), loops), used, metric, tol, kappa)


def _regimes(
    wanted: str, problem: SaddleProblem, declared: Mapping[str, float], bounded: bool, explicit: bool
) -> list[str]:
    """The regimes to compare; the mixed one, pessimistic by orders of magnitude, only where nothing else applies."""
    if wanted != "auto":
        return [wanted]
    if explicit:
        return ["degenerate"]
    curved = [
        declared.get("mu_x", problem.f.strong_convexity(problem.X)) > 0.0,
        declared.get("mu_y", problem.g.strong_convexity(problem.Y)) > 0.0,
    ]
    other = {2: ["restarts"], 1: ["mixed"], 0: []}[sum(curved)]
    if not bounded:
        return other or ["degenerate"]
    return ["degenerate", *(other if other == ["restarts"] else [])]


def _check_request(
    problem: SaddleProblem, tol: float | None, order: str | None, loops: Sequence[int] | None, kappa: float | None
) -> None:
    complaints = []
    if not isinstance(problem, SaddleProblem):
        complaints.append(f"problem is {type(problem).__name__}; expected a SaddleProblem.")
    if tol is None and (order is None or loops is None):
        complaints.append("tol is missing; expected a target gap, or both order= and loops=.")
    if tol is not None and not (isinstance(tol, Real) and math.isfinite(tol) and tol > 0.0):
        complaints.append(f"tol is {tol!r}; expected a finite number > 0.")
    if order is not None and (not isinstance(order, str) or sorted(order) != sorted("fgB")):
        complaints.append(f"order is {order!r}; expected a permutation of 'fgB', outermost level first.")
    raise_all("plan", complaints)
    if loops is not None:
        check_loops(loops, len("fgB"))
    if kappa is not None and as_number(kappa, "plan: kappa", 0.0) == 0.0:
        raise InputError("plan: kappa is 0; expected a number > 0.")


def _check_regime(regime: str, tol: float | None, order: str | None, loops: Sequence[int] | None) -> None:
    complaints = []
    if regime not in ("auto", *REGIMES):
        complaints.append(f"regime is {regime!r}; expected 'auto' or one of {REGIMES}.")
    elif regime in ("restarts", "mixed") and (tol is None or order is not None or loops is not None):
        complaints.append(f"regime {regime!r} chooses order and loops itself; expected tol and neither of them.")
    raise_all("plan", complaints)


def _declared(constants: Mapping[str, float]) -> dict[str, float]:
    unknown = sorted(set(constants) - set(CONSTANT_NAMES))
    raise_all("plan", [f"constants has {unknown}; expected names among {list(CONSTANT_NAMES)}."] * bool(unknown))
    values = {name: as_number(value, f"plan: constants[{name!r}]", 0.0) for name, value in constants.items()}
    if values.get("L_xy") == 0.0:
        raise InputError(
            "plan: constants['L_xy'] is 0; expected an upper bound on the norm of B, > 0. Leave it out for B = 0."
        )
    lone = [side for side in "xy" if f"nu_{side}" in values and f"H_{side}" not in values]
    raise_all(
        "plan", [f"constants declares nu_{side} without H_{side}; expected both: H belongs to its nu." for side in lone]
    )
    return values


def _constants(problem: SaddleProblem, values: Mapping[str, float], names: Sequence[str]) -> dict[str, Constant]:
    computed: dict[str, tuple[float, str]] = {}
    for side, name, function, domain, point in zip(
        "xy", ("f on X", "g on Y"), (problem.f, problem.g), (problem.X, problem.Y), problem.start(), strict=True
    ):
        if f"H_{side}" in values:
            computed[f"nu_{side}"] = (values.get(f"nu_{side}", 1.0), "declared with its H")
            continue
        smoothness, source = _smoothness(function, domain, point, name)
        computed |= {f"nu_{side}": (smoothness.nu, source), f"H_{side}": (smoothness.H, source)}
    if "L_xy" not in values:
        norm = problem.coupling.norm
        computed["L_xy"] = (norm.upper, f"norm of B, upper bound: {norm.method}")
    if "mu_x" in names:
        computed["mu_x"] = (problem.f.strong_convexity(problem.X), "strong convexity of f on X")
        computed["mu_y"] = (problem.g.strong_convexity(problem.Y), "strong convexity of g on Y")
    return {name: Constant(values[name], "declared") if name in values else Constant(*computed[name]) for name in names}


def _smoothness(function: Function, domain: Domain, point: Array, name: str) -> tuple[Holder, str]:
    try:
        return function.smoothness(domain), name
    except UnknownConstantError:
        return estimated_smoothness(function, domain, point), f"estimated from a few gradients of {name}; {ESTIMATE}"


def _metrics(metric: Any, problem: SaddleProblem, x: Array, y: Array) -> list[tuple[str, Weights | None]]:
    """The metrics to compare: names with the weights of the two blocks, None for level-wise ones."""
    bounded = all(map(math.isfinite, (problem.X.squared_radius(x), problem.Y.squared_radius(y))))
    if isinstance(metric, str):
        if metric not in METRICS:
            raise InputError(f"plan: metric is {metric!r}; expected one of {METRICS}, a number or (w_x, w_y).")
        if metric in ("balanced", "levelwise") and not bounded:
            raise InputError(f"plan: metric {metric!r} needs bounded domains; pass the weights (w_x, w_y).")
        named = {"identity": (1.0, 1.0), "balanced": _balanced(problem, x, y) if bounded else None, "levelwise": None}
        if metric == "auto":
            return list(named.items()) if bounded else [("identity", (1.0, 1.0))]
        return [(metric, named[metric])]
    if isinstance(metric, Metric):
        raise InputError(
            f"plan: metric is {metric.name!r} of ss.metrics; expected one of {METRICS} or (w_x, w_y). Use solve."
        )
    pair = (metric, metric) if np.isscalar(metric) or metric is None else tuple(metric)
    if len(pair) != 2:
        raise InputError(f"plan: metric has {len(pair)} weights; expected (w_x, w_y).")
    w_x, w_y = (as_number(weight, "plan: metric weight") for weight in pair)
    if min(w_x, w_y) <= 0.0:
        raise InputError(f"plan: metric weights are {(w_x, w_y)}; expected numbers > 0.")
    return [("identity" if (w_x, w_y) == (1.0, 1.0) else f"blocks ({w_x:.4g}, {w_y:.4g})", (w_x, w_y))]


def _balanced(problem: SaddleProblem, x: Array, y: Array) -> Weights:
    """Weights that make both blocks equally large."""
    return 1.0 / (problem.X.squared_radius(x) or 1.0), 1.0 / (problem.Y.squared_radius(y) or 1.0)


def _terms(used: Mapping[str, Constant], weights: Weights | None, squares: tuple[float, float]) -> list[Term]:
    """Terms of f, g and B in the P-norm, or each in its own (docs/theory.md); the order here breaks ties."""
    f = Holder(used["nu_x"].value, used["H_x"].value)
    g = Holder(used["nu_y"].value, used["H_y"].value)
    L_xy = used["L_xy"].value
    if weights is None:
        return levelwise_terms(f, g, L_xy, *squares)
    Omega = float(weights[0] * squares[0] + weights[1] * squares[1])
    return [
        Term("f", f.in_metric(weights[0]), weights=weights, Omega=Omega),
        Term("g", g.in_metric(weights[1]), weights=weights, Omega=Omega),
        Term("B", M=L_xy / math.sqrt(weights[0] * weights[1]), weights=weights, Omega=Omega),
    ]
