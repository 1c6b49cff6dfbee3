"""`plan`: what `solve` will do, or the schedule of a theorem."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import fields, replace
from operator import itemgetter
from typing import Any

import numpy as np

from saddleslide.arrays.arguments import as_word
from saddleslide.certificates.books import count_aside
from saddleslide.errors import InputError, raise_all
from saddleslide.facts.costs import choose_costs
from saddleslide.facts.facts import Facts
from saddleslide.methods import schedule
from saddleslide.methods.base import Method
from saddleslide.methods.catalogue import as_method, by_name, method_plan
from saddleslide.methods.metric_choice import METRICS
from saddleslide.metrics.base import Metric
from saddleslide.oracles.sampling import as_seed, is_sampled, quiet_problem
from saddleslide.planner.choice import INTERIOR, Choice, adaptive_plan, choose
from saddleslide.planner.courses import plan_sampled
from saddleslide.planner.forecast import ADAPTIVE, PAPER, SolveRequest
from saddleslide.problem import SaddleProblem
from saddleslide.theory.hypotheses import Constant
from saddleslide.theory.plan import ADAPTIVE_SLIDING, DISTANCES, RADIUS, RESTARTED_PRIMAL_DUAL, Plan

AUTO = "auto"


def plan(
    problem: SaddleProblem,
    tol: float | None = None,
    *,
    rtol: float | None = None,
    reduction: float | None = None,
    radius: float = RADIUS,
    method: str | Method = "auto",
    options: Mapping[str, Any] | None = None,
    metric: Any = "auto",
    start: tuple[Any, Any] | None = None,
    costs: Sequence[float] | str | None = None,
    rng: int | np.random.Generator = 0,
    order: str | None = None,
    loops: Sequence[int] | None = None,
    kappa: float | None = None,
    proved: bool | str = False,
    constants: Mapping[str, float] | None = None,
    regime: str = "auto",
    anchors: bool = False,
    factor: float | None = None,
    range_conditions: Collection[str] = (),
    interior: Collection[str] = (),
    Psi0: float | None = None,
    inexact: Mapping[str, Sequence[float]] | None = None,
    anchor_batch: int | None = None,
    simple: str | Collection[str] = "auto",
    coupling_step: str = "auto",
    Psi: float | None = None,
) -> Plan:
    """What `ss.solve` will do, with the reasons; or the schedule of recursive sliding that a theorem sets.

    The plan is the one that `ss.solve` begins with for the same arguments, and `ss.run` carries it out to the same bits
    and calls. All settings from `order` on ask for recursive sliding by a theorem instead, in one of three regimes of
    the paper: "degenerate" (bounded domains, Theorem 3.5 and Corollary 3.6), "restarts" (both effective moduli of
    curvature positive, Theorem 4.4 and Corollary 4.5) and "mixed" (one of them zero, regularised). So does a problem
    without values, where nothing can be judged on the way.

    Parameters
    ----------
    problem : SaddleProblem
        What is to be solved.
    tol, rtol, reduction, radius : float, optional
        As in `ss.solve`. A schedule takes `tol`; it needs it unless `order` and `loops` are given.
    method, options, rng : optional
        As in `ss.solve`.
    metric : "auto", "identity", "balanced", "levelwise", "diagonal", "spectral", "fft", weights, matrix or `ss.metrics`
        As in `ss.solve`, where no theorem is asked for. Of a schedule: weights w or (w_x, w_y) of P on the two blocks.
        "balanced" makes both equally large, "levelwise" gives each level its own norm (both for bounded domains).
        "diagonal" is read off f; "spectral" and "fft" are fitted to its Hessian in the cosine or Fourier basis, by a
        few products that no result counts; these, a matrix and those of `ss.metrics` are norms of x, with the weight of
        y chosen beside them. (P_x, P_y) are the norms of both blocks: numbers, matrices, `ss.metrics`. "auto" takes the
        smallest predicted cost, or for explicit loops the smallest bound.
    start : (x, y), optional
        Starting point, as for `run`.
    costs : (c_f, c_g, c_B) or "measure", optional
        Prices of one gradient of f, one of g and one product; estimated from sizes when missing. Measuring makes three
        calls of each; the plan records what was measured.
    order : str, optional
        A permutation of "fgB", outermost level first. Sorted by budget when missing.
    loops : sequence of int, optional
        T_1, T_2, T_3, one per level. From the budgets when missing.
    kappa : float, optional
        kappa_n of Corollary 3.6; 1 unless given.
    proved : bool or "sharp", optional
        Use the constants that the corollary proves: kappa_n = 256 and eps = tol / 3. "sharp" takes the largest eps,
        with kappa_n = 1, whose own bound by Theorem 3.5 meets `tol`: as much is proved, with far fewer calls.
    constants : mapping, optional
        Declared values of nu_x, H_x, nu_y, H_y (a nu only with its H), L_xy, mu_x and mu_y, in place of computed ones.
    regime : "auto", "paper", "degenerate", "restarts", "mixed" or "adaptive"
        "paper" takes the regime with the smallest predicted cost that applies, and so does "auto" once another setting
        of a theorem is given. "adaptive" is `method="adaptive"`.
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
        Bound on Psi at the start; when missing 14 times the certified gap there, or from sizes and slopes.
    Psi : float, optional
        Target of restarts in place of `tol`: Psi(z) = |z - z*|_P^2 + 12 D_f(x, x*) + 12 D_g(y, y*) at most this
        (Corollary 4.5). `result.Psi` is what is known of it.
    inexact : mapping, optional
        (delta, L) of "f" and "g" whose values and gradients are (delta, L)-oracles (Definition inexact_oracle), in
        place of their smoothness. Theorem 3.3 then gives the bound, with the sum of N_i delta_i.
    anchor_batch : int, optional
        Samples averaged for each anchor where gradients are sampled (b of the paper); from the target when missing.
        Refused where the plan has no sampled anchors.
    simple : "auto" or collection of "f", "g", optional
        Functions whose simple terms go into the projection step instead of costing a level (docs/theory.md). "auto" is
        where that is cheaper, and nowhere once one regime, a metric, an order or loops are asked for.
    coupling_step : "auto", "extragradient" or "primal-dual", optional
        What an innermost coupling does: the paper's step with four products, or a primal-dual one with two, which has
        the same bound (docs/theory.md) and needs exact gradients. "auto" is the paper's, and with regime="paper" the
        cheaper one.

    Returns
    -------
    Plan
        For `ss.run`, with `explain` and `to_dict`; `ss.Plan.from_dict` reads it back. `plan.spent` are the calls that
        making it took.

    Notes
    -----
    With sampled gradients (docs/stochastic.md) "degenerate" and "restarts" plan by the stochastic theorems: bounds are
    in expectation, and `proved=True` searches the budgets whose bound meets `tol`.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> f, box = ss.functions.Power(nu=1.0), ss.domains.Box(-1.0, 1.0, shape=60)
    >>> g, B = ss.functions.Power(nu=0.5), ss.operators.as_operator(2.0 * np.eye(60), norm=2.0)
    >>> problem = ss.SaddleProblem(f=f, g=g, B=B, X=box, Y=box)
    >>> paper = ss.plan(problem, tol=0.5, regime="degenerate", metric="identity")
    >>> paper.order, paper.predicted_calls
    ('fgB', {'f': 16, 'g': 96, 'B': 1920})
    >>> wide, narrow = ss.domains.Box(-20.0, 20.0, shape=60), ss.domains.Box(-0.01, 0.01, shape=60)
    >>> ss.plan(ss.SaddleProblem(f=f, g=g, B=B, X=wide, Y=narrow), tol=0.5, regime="degenerate").metric
    'balanced'
    >>> loss = ss.functions.Logistic(np.eye(60), np.ones(60))
    >>> automatic = ss.plan(ss.SaddleProblem(f=loss, g=g, B=B, X=box, Y=box), tol=0.01)
    >>> automatic.method, automatic.order, len(automatic.simple_terms)
    ('adaptive sliding', 'fB', 1)
    """
    chosen = as_method(method, options, "plan")
    asked = schedule.Request(
        tol, order, loops, metric, start, kappa, proved, constants, regime, anchors, factor, range_conditions, interior,
        Psi0, costs, inexact, anchor_batch, simple, coupling_step, Psi,
    )  # fmt: skip
    as_word(regime, "plan: regime", (AUTO, ADAPTIVE, PAPER, *schedule.REGIMES))
    if isinstance(problem, SaddleProblem):
        problem = quiet_problem(problem)
    with count_aside(problem) as books:
        if _asks_for_a_schedule(problem, asked, chosen, relative=not (rtol is None and reduction is None)):
            idle = {
                "rtol": rtol,
                "reduction": reduction,
                "options": options,
                "method": None if chosen == AUTO else method,
            }
            wrong = [f"{name} is {given!r}; a schedule has none." for name, given in idle.items() if given is not None]
            raise_all("plan", wrong)
            asked = replace(asked, regime=AUTO) if regime == PAPER else asked
            made = schedule.theorem_plan(problem, **{entry.name: getattr(asked, entry.name) for entry in fields(asked)})
        else:
            chosen = ADAPTIVE if regime == ADAPTIVE and chosen == AUTO else chosen
            if asked.theorem_settings:
                raise InputError(
                    f"plan: {', '.join(asked.theorem_settings)} are settings of the theorems; expected none of them "
                    "for adaptive sliding. Name a regime of the paper, or leave them out."
                )
            norm: Any = metric
            sampled = isinstance(problem, SaddleProblem) and is_sampled(problem)
            seed = 0 if sampled else as_seed(rng)
            request = SolveRequest(tol, reduction, chosen, norm, start, costs, seed, "plan", rtol, radius)
            goal = request.target(problem)
            if sampled:
                first = plan_sampled(problem, request, books)
                if not isinstance(first, Plan):
                    raise InputError(
                        f"plan: the start has a gap of {first[0].gap:.4g}, and reduction={goal.reduction:g} of that is "
                        "met or beyond rounding: there is nothing to plan. Expected another start, or tol=."
                    )
                made = first
            else:
                made = solve_plan(Facts(problem), request)
    return replace(made, spent=(books.calls.f, books.calls.g, books.calls.B))


def _asks_for_a_schedule(problem: SaddleProblem, asked: schedule.Request, method: str | Method, relative: bool) -> bool:
    """Whether recursive sliding by a theorem is asked for, or is all that can be done."""
    if asked.regime != AUTO or not isinstance(problem, SaddleProblem):
        return asked.regime != ADAPTIVE
    norm_of_x = isinstance(asked.metric, Metric) or (isinstance(asked.metric, str) and asked.metric in METRICS)
    if asked.theorem_settings or not norm_of_x:
        return True
    # All that `solve` does is judged on the way, or promised on average where gradients are sampled.
    judged = (problem.f.has_value and problem.g.has_value) or is_sampled(problem)
    return not (judged or relative) and method == AUTO


def solve_plan(facts: Facts, request: SolveRequest) -> Plan:
    """What `solve` begins with: the one answer of `plan`, `solve`, `compare` and the command line."""
    made = _solve_plan(facts, request)
    if made.radius > 0.0 or made.certificate is None:
        return made
    return replace(made, certificate=made.certificate.without_radius())


def _solve_plan(facts: Facts, request: SolveRequest) -> Plan:
    problem, target, method = facts.problem, request.target(facts.problem), request.method
    # All that can be wrong is refused before any oracle is called.
    problem.start(request.start)
    plain = isinstance(request.metric, str) and request.metric == AUTO
    if not isinstance(method, str):
        complaint = f"metric is {request.metric!r}; expected 'auto' with a named method."
        raise_all(request.caller, [complaint] * (not plain))
        return replace(method_plan(facts, method), **target._asdict(), seed=request.seed)
    if method != AUTO or not plain:
        # A metric that was asked for belongs to adaptive sliding.
        return adaptive_plan(facts, request)
    costs, estimated = choose_costs(problem, request.costs, request.caller), request.costs is None
    # The size of the saddle value is not known beforehand: the gap at the start stands for it in predictions.
    relative = max(target.reduction, target.rtol)
    choice = _known_choice(facts, request) or choose(facts, target.tol, relative, costs, estimated, request.start)
    settings: dict[str, Any]
    if choice.method == ADAPTIVE:
        # What was measured is not measured again.
        made = adaptive_plan(facts, replace(request, costs=None if estimated else costs))
        settings = {"on_allowance": choice.races}
    else:
        # Newton's steps ask for no distance.
        distances = () if choice.method == INTERIOR else zip(DISTANCES, facts.distances, strict=True)
        known = {name: Constant(D, "seen from the start") for name, D in distances if math.isfinite(D)}
        made = method_plan(facts, by_name[choice.method]())
        settings = {**target._asdict(), "seed": request.seed, "constants": known, "on_allowance": True}
    # Calls that the method is expected to take, judging included; other methods with their costs, cheapest first.
    calls = [row.method_calls + row.judging for row in choice.rows if row.method == choice.method and row.method_calls]
    predicted = {name: float(count) for name, count in calls[0].by_oracle.items()} if calls else None
    others = [(row.method, row.cost) for row in choice.rows if row.method != choice.method and row.cost < math.inf]
    alternatives, reasons = tuple(sorted(others, key=itemgetter(1))), (choice.reason, *made.reasons)
    return replace(made, costs=costs, reasons=reasons, predicted=predicted, alternatives=alternatives, **settings)


def _known_choice(facts: Facts, request: SolveRequest) -> Choice | None:
    """The method that an earlier result came from, where it can be used here too: nothing is predicted anew."""
    name, reason = request.known, "the method of the result that the start came from"
    if name in (ADAPTIVE_SLIDING, RESTARTED_PRIMAL_DUAL):
        return Choice(ADAPTIVE, reason)
    if name not in by_name or by_name[name]().lacks(facts):
        return None
    return Choice(name, reason)
