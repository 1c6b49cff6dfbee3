"""The plans that a theorem stands behind: candidates for regime, norm and simple terms, and the cheapest of them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from saddleslide.arrays.base import key_of
from saddleslide.errors import InputError, raise_all
from saddleslide.facts.costs import chosen_costs
from saddleslide.facts.facts import CONSTANT_NAMES, SMOOTHNESS_NAMES
from saddleslide.facts.metric_constants import block_norms, noise_in, oracles_in, terms_in, usable_norms
from saddleslide.facts.noise import check_anchor_batch, noise_constants, refuse_unbounded, with_variances
from saddleslide.facts.requirements import run_hypotheses
from saddleslide.methods.schedule.regimes import restarted_plan
from saddleslide.methods.schedule.request import SHARP, Request
from saddleslide.methods.schedule.settings import Setting, settings
from saddleslide.oracles.sampling import is_sampled
from saddleslide.problem import SaddleProblem
from saddleslide.theory import Constant, Plan, Term, loop_counts, place, proved_kappa, sorted_by_budget
from saddleslide.theory.bounds import PRACTICAL_KAPPA
from saddleslide.theory.holder import Holder
from saddleslide.theory.levels import check_loops
from saddleslide.theory.noise import ESTIMATE, is_noisy, proved_accuracy, steadied
from saddleslide.theory.plan import RECURSIVE_SLIDING, weighted_cost
from saddleslide.theory.schedule import EXTRAGRADIENT, PRIMAL_DUAL, one_stage

Prices = tuple[float, float, float]
# Description, plan, and what decides: the predicted cost, or the bound of explicit loops.
Candidate = tuple[str, Plan, float]


def theorem_plan(problem: SaddleProblem, tol: float | None = None, **options: Any) -> Plan:
    """The plan of `ss.plan` where a theorem is asked for; the options are the fields of `Request`.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> simplex, zero = ss.domains.Simplex(3), ss.functions.Zero()
    >>> game = ss.SaddleProblem(f=zero, g=zero, B=np.eye(3), X=simplex, Y=simplex)
    >>> theorem_plan(game, 0.1, simple=("f", "g"), regime="degenerate").order
    'B'
    """
    # Everything that costs no oracle call is checked first; the norm of B costs products.
    request = Request(tol, **options)
    request.check(problem)
    check_anchor_batch(request.anchor_batch, request.anchors, None)
    prices = chosen_costs(problem, request.costs, "plan")
    found = list(_candidates(problem, request, prices))
    # A proof that was asked for comes before the price.
    promised = [entry for entry in found if request.proved and tol is not None and entry[1].bound <= tol]
    _, chosen, _ = min(promised or found, key=lambda entry: entry[2])
    check_anchor_batch(request.anchor_batch, request.anchors, chosen.constants)
    others = tuple((name, cost) for name, made, cost in found if made is not chosen)
    shapes = (problem.X.shape, problem.Y.shape)
    return replace(chosen, costs=prices, alternatives=others if request.loops is None else (), shapes=shapes)


def _candidates(problem: SaddleProblem, request: Request, prices: Prices) -> Iterator[Candidate]:
    origin, plain = problem.start(request.start), request.plain_metric
    automatic = plain and request.regime == "auto" and not (request.narrowed or is_sampled(problem))
    for setting in settings(problem, request.metric, request.simple, origin, request.declared, automatic):
        bounded = all(map(math.isfinite, setting.squares))
        if setting.simple and not bounded and request.loops is None:
            if request.simple == "auto":
                continue
            raise InputError(
                f"plan: simple={setting.simple} needs bounded domains, but X is {problem.X} and Y is {problem.Y}; "
                "expected both bounded, or regime='adaptive', which takes simple terms anywhere."
            )
        # Restarts have the norm and the oracles of their theorem: a metric or oracles asked for leave them out.
        asked = request.narrowed or bool(setting.simple) or not (plain or setting.metric is not None)
        regimes = _regimes(request.regime, problem, request.declared, bounded, asked)
        _check_setting(setting, regimes, request)
        used = _used(setting, regimes, bool(request.proved))
        if "degenerate" in regimes:
            yield from _degenerate(setting, request, used, prices)
        # The automatic diagonal norm is for one run of the recursion.
        if not (setting.metric is not None and plain):
            for name in regimes:
                if name != "degenerate":
                    yield _restarted(setting, request, used, prices, name, len(regimes) > 1)


def _degenerate(setting: Setting, request: Request, used: dict[str, Constant], prices: Prices) -> Iterator[Candidate]:
    for name, weights in usable_norms(block_norms(request.metric, setting.squares), used):
        terms = with_variances(terms_in(used, weights, setting.squares), used)
        terms = [term for term in terms if term.name in setting.levels]
        terms = _with_oracles(terms, oracles_in(setting.metric, request.oracles, setting.problem.X.shape))
        hypotheses = run_hypotheses(setting.problem, used, setting.squares, tuple(request.oracles))
        made = replace(_fixed_plan(terms, used, name, request), hypotheses=hypotheses)
        assert made.schedule is not None
        schedule = replace(made.schedule, simple=setting.simple, given=setting.metric)
        for step in _coupling_steps(made, setting, request):
            stepped = replace(made, schedule=replace(schedule, coupling_step=step))
            merit = stepped.bound if request.loops is not None else weighted_cost(stepped.predicted_calls, prices)
            label = f", {step} steps" if step != EXTRAGRADIENT else ""
            yield f"degenerate, metric {name}{setting.label}{label}", stepped, merit


def _coupling_steps(made: Plan, setting: Setting, request: Request) -> tuple[str, ...]:
    """The steps to compare: the one asked for, or the paper's, and where all is left to the plan also the other."""
    # The outermost loop is seen step by step, so a coupling alone keeps the paper's step.
    assert made.schedule is not None
    levels = made.schedule.levels
    inside = len(levels) > 1 and made.order.endswith("B")
    able = inside and levels[-1].term.M > 0.0 and not is_sampled(setting.problem)
    if request.coupling_step == PRIMAL_DUAL and not able:
        raise InputError(
            "plan: coupling_step 'primal-dual' needs exact gradients and a coupling inside other levels; the order is "
            f"{made.order!r}. Use order=, or coupling_step='extragradient'."
        )
    if request.coupling_step != "auto":
        return (request.coupling_step,)
    free = not request.theorem_settings and request.regime == "auto" and request.plain_metric
    return (EXTRAGRADIENT, PRIMAL_DUAL) if able and free else (EXTRAGRADIENT,)


def _restarted(
    setting: Setting, request: Request, used: dict[str, Constant], prices: Prices, regime: str, without_calls: bool
) -> Candidate:
    assert request.tol is not None
    made = restarted_plan(
        setting.problem,
        request.tol,
        regime,
        start=request.start,
        proved=bool(request.proved),
        anchors=request.anchors,
        factor=request.factor,
        range_conditions=request.range_conditions,
        interior=request.interior,
        Psi0=request.Psi0,
        constants=used,
        squares=setting.squares,
        without_calls=without_calls,
        anchor_batch=request.anchor_batch,
    )
    merit = made.expected_share * weighted_cost(made.predicted_calls, prices)
    assert made.schedule is not None
    placed = replace(made.schedule, given=setting.metric, start_key=key_of(*setting.start))
    return regime + setting.label, replace(made, schedule=placed), merit


def _used(setting: Setting, regimes: Sequence[str], proved: bool) -> dict[str, Constant]:
    """The constants of a setting; a proof can not rest on estimates."""
    used = setting.constants(SMOOTHNESS_NAMES if list(regimes) == ["degenerate"] else CONSTANT_NAMES)
    names = [name for name, constant in used.items() if ESTIMATE in constant.origin]
    if proved and names:
        raise InputError(f"plan: proved=True needs declared or computed constants, but {names} are estimates; declare.")
    if is_sampled(setting.problem) and list(regimes) == ["degenerate"]:
        refuse_unbounded(setting.problem)
    return used | noise_in(setting.metric, noise_constants(setting.problem, setting.start), setting.problem.X.shape)


def _check_levels(levels: Sequence[str], order: str | None, loops: Sequence[int] | None) -> None:
    if order is not None and sorted(order) != sorted(levels):
        raise InputError(
            f"plan: order is {order!r}; expected a permutation of {''.join(levels)!r}, outermost level first."
        )
    if loops is not None:
        check_loops(loops, len(levels))


def _check_setting(setting: Setting, regimes: Sequence[str], request: Request) -> None:
    _check_levels(setting.levels, request.order, request.loops)
    complaints = []
    if setting.metric is not None and "mixed" in regimes:
        complaints.append(f"regime 'mixed' regularises in the Euclidean norm; received metric {setting.metric.name!r}.")
    if setting.metric is not None and request.anchors:
        complaints.append(f"anchors are Euclidean; received metric {setting.metric.name!r}. Use anchors=False.")
    drawn = [name for name in setting.simple if getattr(setting.problem, name).sampled]
    if drawn:
        complaints.append(f"simple has {drawn}, whose gradients are sampled; a proximal step would use exact values.")
    if setting.simple and list(regimes) != ["degenerate"]:
        complaints.append(f"simple terms are for regime 'degenerate'; received simple={setting.simple} with {regimes}.")
    raise_all("plan", complaints)


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


def _fixed_plan(terms: list[Term], used: dict[str, Constant], metric: str, request: Request) -> Plan:
    """One run of Algorithm 1 (Theorem 3.5), with what is missing of order and loops from Corollary 3.6."""
    tol, order, loops, kappa, proved = request.tol, request.order, request.loops, request.kappa, request.proved
    eps = math.nan if tol is None else (tol / len(terms) if proved else tol)
    if order is None:
        terms = sorted_by_budget(terms, eps)
    else:
        terms = [{term.name: term for term in terms}[letter] for letter in order]
    if loops is None and (proved == SHARP or (proved and is_noisy(terms))):
        assert tol is not None
        eps, kappa = proved_accuracy(terms, tol, sort=order is None), PRACTICAL_KAPPA
        terms = terms if order is not None else sorted_by_budget(terms, eps)
    if loops is None:
        kappa = (proved_kappa(len(terms)) if proved else PRACTICAL_KAPPA) if kappa is None else float(kappa)
        loops = loop_counts(terms, eps, kappa)
    schedule = one_stage(place(steadied(terms, loops), loops), metric=metric, kappa=kappa)
    return Plan(method=RECURSIVE_SLIDING, schedule=schedule, constants=used, tol=tol)


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
