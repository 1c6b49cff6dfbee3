"""`plan`: the cheapest of the theorems' plans and adaptive sliding."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

from saddleslide.arrays.arguments import as_word
from saddleslide.certificates.books import counted
from saddleslide.errors import InputError
from saddleslide.methods.metric_choice import METRICS as ADAPTIVE_METRICS
from saddleslide.methods.schedule.planner import theorem_plan
from saddleslide.methods.schedule.regimes import REGIMES
from saddleslide.methods.schedule.request import Request
from saddleslide.metrics import Metric
from saddleslide.oracles.sampling import is_sampled
from saddleslide.planner.adaptive import planned, predicted
from saddleslide.problem import SaddleProblem
from saddleslide.theory import Plan
from saddleslide.theory.adaptive import AdaptivePlan
from saddleslide.theory.plan import weighted_cost
from saddleslide.theory.restart_plan import RestartPlan

ADAPTIVE = "adaptive"


def plan(
    problem: SaddleProblem,
    tol: float | None = None,
    *,
    order: str | None = None,
    loops: Sequence[int] | None = None,
    metric: str | float | Sequence[float] | Metric = "auto",
    start: tuple[Any, Any] | None = None,
    kappa: float | None = None,
    proved: bool | str = False,
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
    simple: str | Collection[str] = "auto",
    coupling_step: str = "auto",
) -> Plan | RestartPlan | AdaptivePlan:
    """Plan a run: explicit order and loops, or both from the target `tol`.

    Three regimes of the paper: "degenerate" (bounded domains, Theorem 3.5 and Corollary 3.6), "restarts" (both
    effective moduli of curvature positive, Theorem 4.4 and Corollary 4.5) and "mixed" (one of them zero, regularised);
    and "adaptive", the plan of `ss.solve`, which promises nothing beforehand and is proved by its certificate.

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
    metric : "auto", "identity", "balanced", "levelwise", "diagonal", "spectral", "fft", weights or one of `ss.metrics`
        Weights w or (w_x, w_y) of P on the two blocks. "balanced" makes both equally large, "levelwise" gives each
        level its own norm (both for bounded domains). "diagonal" is read off f; "spectral" and "fft" are fitted to its
        Hessian in the cosine or Fourier basis, by a few products; these and those of `ss.metrics` are norms of x, with
        the weight of y chosen beside them. "auto" takes the smallest predicted cost, or for explicit loops the smallest
        bound.
    start : (x, y), optional
        Starting point, as for `run`.
    kappa : float, optional
        kappa_n of Corollary 3.6; 1 unless given.
    proved : bool or "sharp", optional
        Use the constants that the corollary proves: kappa_n = 256 and eps = tol / 3. "sharp" takes the largest eps,
        with kappa_n = 1, whose own bound by Theorem 3.5 meets `tol`: as much is proved, with far fewer calls.
    constants : mapping, optional
        Declared values of nu_x, H_x, nu_y, H_y (a nu only with its H), L_xy, mu_x and mu_y, in place of computed ones.
    regime : "auto", "degenerate", "restarts", "mixed" or "adaptive"
        What to plan by; "auto" takes the one with the smallest predicted cost that applies. Settings that only a
        theorem knows leave adaptive sliding out; a metric of x, unless a theorem is named, is for adaptive sliding.
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
        calls of each.
    inexact : mapping, optional
        (delta, L) of "f" and "g" whose values and gradients are (delta, L)-oracles (Definition inexact_oracle), in
        place of their smoothness. Theorem 3.3 then gives the bound, with the sum of N_i delta_i.
    anchor_batch : int, optional
        Samples averaged for each anchor where gradients are sampled (b of the paper); from the target when missing.
        Refused where the plan has no sampled anchors.
    simple : "auto" or collection of "f", "g", optional
        Functions whose simple terms go into the projection step instead of costing a level (docs/theory.md). "auto" is
        where that is cheaper, and nowhere once a regime, a metric, an order or loops are asked for. Adaptive sliding
        always does so.
    coupling_step : "auto", "extragradient" or "primal-dual", optional
        What an innermost coupling does: the paper's step with four products, or a primal-dual one with two, which has
        the same bound (docs/theory.md) and needs exact gradients. "auto" is the paper's step wherever a regime, an
        order, loops or anything else of a theorem is asked for, and the cheaper one where all is left to the plan.

    Returns
    -------
    Plan, RestartPlan or AdaptivePlan
        For `ss.run`; all have `explain`, `to_dict` and `from_dict`. `planning_calls` are the calls that planning made:
        norms that nobody declared, gradients at the start, prices that were measured. No result counts them.

    Notes
    -----
    With sampled gradients (docs/stochastic.md) "degenerate" and "restarts" plan by the stochastic theorems: bounds are
    in expectation, and `proved=True` searches the budgets whose bound meets `tol`.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> f, box = ss.functions.Power(nu=1.0), ss.domains.Box(-1.0, 1.0, shape=60)
    >>> g, B = ss.functions.Power(nu=0.5), ss.operators.as_coupling(2.0 * np.eye(60), norm=2.0)
    >>> problem = ss.SaddleProblem(f=f, g=g, B=B, X=box, Y=box)
    >>> paper = ss.plan(problem, tol=0.5, regime="degenerate", metric="identity")
    >>> paper.order, paper.predicted_calls
    ('fgB', {'f': 16, 'g': 96, 'B': 1920})
    >>> wide, narrow = ss.domains.Box(-20.0, 20.0, shape=60), ss.domains.Box(-0.01, 0.01, shape=60)
    >>> ss.plan(ss.SaddleProblem(f=f, g=g, B=B, X=wide, Y=narrow), tol=0.5, regime="degenerate").metric
    'balanced'
    >>> loss = ss.functions.Logistic(np.eye(60), np.ones(60))
    >>> automatic = ss.plan(ss.SaddleProblem(f=loss, g=g, B=B, X=box, Y=box), tol=0.01)
    >>> automatic.regime, automatic.order, len(automatic.simple_terms)
    ('adaptive', 'fB', 1)
    """
    asked = Request(
        tol, order, loops, metric, start, kappa, proved, constants, regime, anchors, factor, range_conditions, interior,
        Psi0, costs, inexact, anchor_batch, simple, coupling_step,
    )  # fmt: skip
    as_word(regime, "plan: regime", ("auto", ADAPTIVE, *REGIMES))
    with counted(problem) as books:
        made = _planned(problem, asked)
    return replace(made, planning_calls=books.calls.by_oracle)


def _planned(problem: SaddleProblem, asked: Request) -> Plan | RestartPlan | AdaptivePlan:
    free = asked.regime == "auto" and not asked.theorem_settings
    if asked.regime == ADAPTIVE or (free and _is_norm_of_x(asked.metric)):
        return _adaptive(problem, asked)
    made = theorem_plan(problem, **{entry.name: getattr(asked, entry.name) for entry in fields(asked)})
    if not free or not asked.plain_metric or not _can_adapt(problem):
        return made
    return _cheaper(made, _adaptive(problem, asked))


def _is_norm_of_x(metric: Any) -> bool:
    return isinstance(metric, Metric) or (isinstance(metric, str) and metric in ADAPTIVE_METRICS and metric != "auto")


def _can_adapt(problem: SaddleProblem) -> bool:
    """Adaptive sliding is judged on the way, which takes values and exact gradients."""
    return problem.f.has_value and problem.g.has_value and not is_sampled(problem)


def _adaptive(problem: SaddleProblem, asked: Request) -> AdaptivePlan:
    if asked.theorem_settings:
        raise InputError(
            f"plan: {', '.join(asked.theorem_settings)} are settings of the theorems; expected none of them for "
            "adaptive sliding. Name a regime of the paper, or leave them out."
        )
    if is_sampled(problem):
        raise InputError(
            "plan: regime 'adaptive' needs exact gradients; expected a regime of the paper for sampled ones."
        )
    metric: Any = asked.metric
    return predicted(problem, planned(problem, asked.tol, None, metric, asked.start, asked.costs, 0))


def _cheaper(made: Plan | RestartPlan, other: AdaptivePlan) -> Plan | RestartPlan | AdaptivePlan:
    """The plan with the smaller expected cost, the other one in its list of alternatives.

    One run of the recursion ends after its loops, whether or not the target is met, so it must prove it. Restarts are
    judged after every stage, as adaptive sliding is after every step.
    """
    assert made.costs is not None
    kept = made.proved or (isinstance(made, RestartPlan) and other.predicted is not None)
    share = made.expected_share if isinstance(made, RestartPlan) else 1.0
    own = share * weighted_cost(made.predicted_calls, made.costs)
    rival = math.inf if other.predicted is None else weighted_cost(other.predicted, made.costs)
    if kept and own < rival:
        # Why adaptive sliding would not use the better metrics belongs to what was rejected.
        label = f"{other.method}, metric {other.metric} ({'; '.join(other.reasons)})"
        return replace(made, alternatives=((label, rival), *made.alternatives))
    label = f"plan {made.regime}" if isinstance(made, RestartPlan) else f"plan degenerate, metric {made.metric}"
    rejected = tuple((f"plan {name}", cost) for name, cost in made.alternatives)
    return replace(other, alternatives=((label, own), *rejected, *other.alternatives))
