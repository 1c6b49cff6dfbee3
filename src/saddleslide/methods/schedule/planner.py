"""The plans that a theorem stands behind: candidates for regime, norm and simple terms, and the cheapest of them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from saddleslide.arrays.base import Array, key_of
from saddleslide.certificates.foresight import possible_claim
from saddleslide.errors import InputError, raise_all
from saddleslide.facts import metric_constants
from saddleslide.facts.costs import choose_costs
from saddleslide.facts.facts import CONSTANT_NAMES, SMOOTHNESS_NAMES, plan_constants
from saddleslide.facts.metric_constants import (
    BUILT_METRICS,
    Norms,
    Omega_in,
    block_norms,
    constants_in_norms,
    is_matrix,
    is_pair,
    noise_in,
)
from saddleslide.facts.noise import check_anchor_batch, noise_constants, refuse_unbounded, with_variances
from saddleslide.facts.requirements import run_hypotheses
from saddleslide.functions.entrywise import Zero
from saddleslide.methods.metric_choice import build_metric, choose_metric
from saddleslide.methods.schedule.moduli import CouplingModuli, find_moduli, free_anchors
from saddleslide.methods.schedule.regimes import bare_curvature, inexact_oracles, plan_restarts
from saddleslide.methods.schedule.request import SHARP, Request
from saddleslide.methods.sliding.view import view_of
from saddleslide.metrics.base import Metric, as_metric
from saddleslide.operators.base import Mirrored
from saddleslide.oracles.oracles import Oracles
from saddleslide.oracles.sampling import is_sampled
from saddleslide.problem import SaddleProblem
from saddleslide.theory.bounds import PRACTICAL_KAPPA, loop_counts, proved_kappa, sorted_by_budget
from saddleslide.theory.holder import Holder
from saddleslide.theory.hypotheses import ESTIMATE, Constant
from saddleslide.theory.levels import Term, check_loops, place
from saddleslide.theory.noise import is_noisy, prove_accuracy, steady
from saddleslide.theory.plan import RECURSIVE_SLIDING, Plan, weigh_calls
from saddleslide.theory.restarts import with_anchors
from saddleslide.theory.schedule import EXTRAGRADIENT, PRIMAL_DUAL, one_stage
from saddleslide.watcher import note

Costs = tuple[float, float, float]
# Description, plan, and what decides: the predicted cost, or the bound of explicit loops.
Candidate = tuple[str, Plan, float]


def theorem_plan(problem: SaddleProblem, tol: float | None = None, **options: Any) -> Plan:
    """The plan of `ss.plan` where a theorem is asked for; the options are the fields of `Request`."""
    # Everything that costs no oracle call is checked first; the norm of B costs products.
    request = Request(tol, **options)
    request.check(problem)
    check_anchor_batch(request.anchor_batch, request.anchors, None)
    costs = choose_costs(problem, request.costs, "plan")
    try:
        found = list(_candidates(problem, request, costs))
    except ArithmeticError:
        raise InputError(
            f"plan: tol is {tol!r}, whose budgets are beyond double precision; expected a larger one."
        ) from None
    # A proof that was asked for comes before the cost.
    promised = [entry for entry in found if request.proved and tol is not None and entry[1].bound <= tol]
    _, chosen, _ = min(promised or found, key=lambda entry: entry[2])
    check_anchor_batch(request.anchor_batch, request.anchors, chosen.constants)
    others = tuple((name, cost) for name, made, cost in found if made is not chosen)
    shapes = (problem.X.shape, problem.Y.shape)
    # Schedules are judged on whole sets alone.
    claim = possible_claim(problem).without_radius()
    others = others if request.loops is None else ()
    return replace(chosen, costs=costs, alternatives=others, shapes=shapes, certificate=claim)


@dataclass(frozen=True)
class Setting:
    """What a plan may vary besides regime, order and loops: simple terms, and the norms of the blocks."""

    problem: SaddleProblem
    simple: tuple[str, ...]
    norms: Norms
    start: tuple[Array, Array]
    declared: Mapping[str, float]

    @property
    def levels(self) -> tuple[str, ...]:
        """Names that have a level: a function that is simple as a whole has none."""
        rest = view_of(self.problem, self.simple).problem
        gone = {name for name, part in (("f", rest.f), ("g", rest.g)) if name in self.simple and isinstance(part, Zero)}
        return tuple(name for name in "fgB" if name not in gone)

    @property
    def label(self) -> str:
        """For people, in the list of alternatives."""
        metric = "".join(f", {norm.name} metric of {b}" for b, norm in zip("xy", self.norms, strict=True) if norm)
        return metric + (f", {' and '.join(self.simple)} simple" if self.simple else "")

    @property
    def squares(self) -> tuple[float, float]:
        """Largest squared distances from the start on X and Y."""
        (x, y), (x_norm, y_norm) = self.start, self.norms
        return Omega_in(x_norm, self.problem.X, x), Omega_in(y_norm, self.problem.Y, y)

    @property
    def plain(self) -> bool:
        """Whether both norms are numbers."""
        return self.norms == (None, None)

    def constants(self, regimes: Sequence[str], proved: bool) -> dict[str, Constant]:
        """The constants of what has a level, in the norms; a proof can not rest on estimates."""
        alone, rest = list(regimes) == ["degenerate"], view_of(self.problem, self.simple).problem
        used = plan_constants(rest, self.declared, SMOOTHNESS_NAMES if alone else CONSTANT_NAMES)
        if self.simple and not alone:
            # Levels have the curvature of the rest; Psi falls by the moduli of the whole functions.
            whole = (("mu_x", "f", self.problem.f, self.problem.X), ("mu_y", "g", self.problem.g, self.problem.Y))
            for name, said, function, domain in whole:
                if name not in self.declared:
                    used[name] = Constant(
                        function.strong_convexity(domain), f"strong convexity of {said}, simple terms too"
                    )
        used = constants_in_norms(self.norms, rest, used, self.declared)
        names = [name for name, constant in used.items() if ESTIMATE in constant.origin]
        if proved and names:
            raise InputError(
                f"plan: proved=True needs declared or computed constants, but {names} are estimates; declare."
            )
        if is_sampled(self.problem) and alone:
            refuse_unbounded(self.problem)
        return used | noise_in(self.norms, noise_constants(self.problem, self.start), self.problem)


def _settings(problem: SaddleProblem, request: Request) -> list[Setting]:
    """The settings to compare: those asked for, or where nothing is asked for also what may be cheaper."""
    start, simple, declared = problem.start(request.start), request.simple, request.known_constants
    plain, sampled = request.plain_metric, is_sampled(problem)
    automatic = plain and request.regime == "auto" and not (request.is_narrow or sampled)
    norms = [_norms_asked_for(problem, request.metric, start)]
    if automatic and choose_metric(problem, problem.f, "auto")[0] == "diagonal":
        # Where the curvatures of the entries differ much; it is read off at no call.
        norms.append((build_metric("diagonal", Oracles(problem), problem.f, start[0], 0), None))
    kinds = [tuple(name for name in "fg" if name in simple)] if simple != "auto" else [()]
    if automatic and simple == "auto":
        # Functions with a simple part. A declared H is that of the whole function.
        whole = view_of(problem, "fg")
        parts = (("f", "H_x", whole.f_simple), ("g", "H_y", whole.g_simple))
        able = tuple(name for name, H, part in parts if H not in declared and not isinstance(part, Zero))
        kinds += [able] if able else []
    found = [Setting(problem, names, norm, start, declared) for norm in norms for names in kinds]
    idle = problem.coupling.norm.upper == 0.0
    return [setting for setting in found if not (idle and setting.simple)] or found[:1]


def _norms_asked_for(problem: SaddleProblem, metric: Any, start: tuple[Array, Array]) -> Norms:
    """The norms of x and y that were asked for: None where one is a number beside another number."""
    if isinstance(metric, Metric) or is_matrix(metric) or is_pair(metric):
        blocks = (problem.X, problem.coupling), (problem.Y, Mirrored(problem.coupling))
        x, y = (
            None if (norm := as_metric(given, domain.shape, "plan: metric")) is None else norm.with_coupling(B)
            for given, (domain, B) in zip(metric if is_pair(metric) else (metric, None), blocks, strict=True)
        )
        return x, y
    if not (isinstance(metric, str) and metric in BUILT_METRICS):
        return None, None
    choose_metric(problem, problem.f, metric)
    oracles = Oracles(problem)
    try:
        return build_metric(metric, oracles, problem.f, start[0], seed=0), None
    finally:
        note(oracles.calls)


def _candidates(problem: SaddleProblem, request: Request, costs: Costs) -> Iterator[Candidate]:
    for setting in _settings(problem, request):
        bounded = all(map(math.isfinite, setting.squares))
        if setting.simple and not bounded and request.loops is None and request.regime not in ("restarts", "mixed"):
            if request.simple == "auto":
                continue
            raise InputError(
                f"plan: simple={setting.simple} needs bounded domains, but X is {problem.X} and Y is {problem.Y}; "
                "expected both bounded, or regime='adaptive', which takes simple terms anywhere."
            )
        through = _curvature_through_B(setting, request)
        regimes = _regimes(setting, request, bounded, through)
        _check_setting(setting, regimes, request)
        used = setting.constants(regimes, bool(request.proved))
        if "degenerate" in regimes:
            yield from _degenerate(setting, request, used, costs)
        # The automatic diagonal norm is for one run of the recursion.
        if not setting.plain and request.plain_metric:
            continue
        for regime in [name for name in regimes if name != "degenerate"]:
            made = plan_restarts(setting, request, used, regime, through, without_calls=len(regimes) > 1)
            assert made.schedule is not None
            placed = replace(
                made.schedule,
                simple=setting.simple,
                given=setting.norms[0],
                given_y=setting.norms[1],
                start_key=key_of(*setting.start),
            )
            merit = made.expected_share * weigh_calls(made.predicted_calls, costs)
            yield regime + setting.label, replace(made, schedule=placed), merit


def _curvature_through_B(setting: Setting, request: Request) -> CouplingModuli:
    """What B gives the blocks of curvature, where anchors are asked for."""
    if not request.anchors or request.is_narrow or (request.plain_metric and not setting.plain):
        return CouplingModuli()
    noisy, L_xy = is_sampled(setting.problem), request.known_constants.get("L_xy")
    norm = setting.problem.coupling.norm.upper if L_xy is None else L_xy
    return find_moduli(setting.problem, request, noisy, norm, setting.norms, setting.simple)


def _regimes(setting: Setting, request: Request, bounded: bool, through: CouplingModuli) -> list[str]:
    """The regimes to compare; the mixed one, pessimistic by orders of magnitude, only where nothing else applies."""
    if request.regime != "auto":
        return [request.regime]
    if request.Psi is not None:
        return ["restarts"]
    # Restarts have the norm and the oracles of their theorem: a metric or oracles asked for leave them out.
    if request.is_narrow or setting.simple or not (request.plain_metric or not setting.plain):
        return ["degenerate"]
    problem, declared = setting.problem, request.known_constants
    curved = [
        setting.squares[0] == 0.0 or declared.get("mu_x", problem.f.strong_convexity(problem.X)) > 0.0,
        setting.squares[1] == 0.0 or declared.get("mu_y", problem.g.strong_convexity(problem.Y)) > 0.0,
    ]
    if max(through.values) > 0.0:
        # Anchors give a block what B has there, if the other function is smooth.
        used = setting.constants(["restarts"], proved=False)
        free = free_anchors(problem, request, setting.simple)
        effective = with_anchors(bare_curvature(used), *through.values, free)
        curved = [effective.delta_x > 0.0, effective.delta_y > 0.0]
    other = {2: ["restarts"], 1: ["mixed"], 0: []}[sum(curved)]
    if not bounded:
        return other or ["degenerate"]
    return ["degenerate", *(other if other == ["restarts"] else [])]


def _check_setting(setting: Setting, regimes: Sequence[str], request: Request) -> None:
    order, simple, complaints = request.order, setting.simple, list[str]()
    if order is not None and sorted(order) != sorted(setting.levels):
        raise InputError(
            f"plan: order is {order!r}; expected a permutation of {''.join(setting.levels)!r}, outermost level first."
        )
    if request.loops is not None:
        check_loops(request.loops, len(setting.levels))
    drawn = [name for name in simple if getattr(setting.problem, name).sampled]
    if drawn:
        complaints.append(f"simple has {drawn}, whose gradients are sampled; a proximal step would use exact values.")
    raise_all("plan", complaints)


def _degenerate(setting: Setting, request: Request, used: dict[str, Constant], costs: Costs) -> Iterator[Candidate]:
    oracles = metric_constants.oracles_in(setting.norms, request.oracles, setting.problem)
    oracles = inexact_oracles(setting.problem, used) | oracles
    norms = metric_constants.usable_norms(block_norms(request.metric, setting.squares), used)
    for name, weights in norms:
        terms = with_variances(metric_constants.terms_in(used, weights, setting.squares), used)
        terms = [_with_oracle(term, oracles) for term in terms if term.name in setting.levels]
        hypotheses = run_hypotheses(setting.problem, used, setting.squares, tuple(oracles))
        made = replace(_one_run(terms, used, name, request), hypotheses=hypotheses)
        assert made.schedule is not None
        schedule = replace(made.schedule, simple=setting.simple, given=setting.norms[0], given_y=setting.norms[1])
        for step in _list_steps(made, setting, request):
            stepped = replace(made, schedule=replace(schedule, coupling_step=step))
            merit = stepped.bound if request.loops is not None else weigh_calls(stepped.predicted_calls, costs)
            label = f", {step} steps" if step != EXTRAGRADIENT else ""
            yield f"degenerate, metric {name}{setting.label}{label}", stepped, merit


def _with_oracle(term: Term, oracles: Mapping[str, tuple[float, float]]) -> Term:
    """A declared (delta, L)-oracle in the norm of its term; L alone sets the budget, delta enters the bound."""
    if term.name not in oracles:
        return term
    delta, L = oracles[term.name]
    L /= term.weights["fg".index(term.name)]
    return replace(term, smoothness=Holder(1.0, L), inexact=(delta, L))


def _one_run(terms: list[Term], used: dict[str, Constant], metric: str, request: Request) -> Plan:
    """One run of Algorithm 1 (Theorem 3.5), with what is missing of order and loops from Corollary 3.6."""
    tol, order, loops, kappa, proved = request.tol, request.order, request.loops, request.kappa, request.proved
    eps = math.nan if tol is None else (tol / len(terms) if proved else tol)
    if order is None:
        terms = sorted_by_budget(terms, eps)
    else:
        terms = [{term.name: term for term in terms}[letter] for letter in order]
    if loops is None and (proved == SHARP or (proved and is_noisy(terms))):
        assert tol is not None
        eps, kappa = prove_accuracy(terms, tol, sort=order is None), PRACTICAL_KAPPA
        terms = terms if order is not None else sorted_by_budget(terms, eps)
    if loops is None:
        kappa = (proved_kappa(len(terms)) if proved else PRACTICAL_KAPPA) if kappa is None else float(kappa)
        loops = loop_counts(terms, eps, kappa)
    schedule = one_stage(place(steady(terms, loops), loops), metric=metric, kappa=kappa)
    return Plan(method=RECURSIVE_SLIDING, schedule=schedule, constants=used, tol=tol)


def _list_steps(made: Plan, setting: Setting, request: Request) -> tuple[str, ...]:
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
