"""Schedules as readable lines: what `Plan.explain` says of them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING

from saddleslide.theory.bounds import drift, is_felt, noise_weights
from saddleslide.theory.hypotheses import ESTIMATE, name_missing, rests_on_estimate
from saddleslide.theory.noise import is_noisy
from saddleslide.theory.restarts import CONTRACTION

if TYPE_CHECKING:
    from saddleslide.theory.plan import Plan
    from saddleslide.theory.schedule import Schedule


def schedule_lines(plan: Plan, schedule: Schedule) -> list[str]:
    """What a schedule does and promises, without constants, hypotheses and costs."""
    lines, noise = _stage_lines(plan, schedule) if schedule.has_restarts else _level_lines(plan, schedule)
    for block, given in (("x", schedule.given), ("y", schedule.given_y)):
        if given is not None:
            lines.append(f"  norm     of {block}: {given['kind'] if isinstance(given, dict) else given.name}")
    return lines + noise


def _level_lines(plan: Plan, schedule: Schedule) -> tuple[list[str], list[str]]:
    """Of one run of Algorithm 1: what it does and promises; how, and the noise in it."""
    estimate = "; it rests on an estimate: " + ESTIMATE if rests_on_estimate(plan.constants) else ""
    proved = "" if plan.tol is None else ", proved" if plan.proved else ", not proved: judge by the gap"
    lines = [
        f"Plan {schedule.order}, loops {schedule.loops}, metric {schedule.metric}",
        f"  bound    {plan.bound:.4g} ({plan.theorem}; as printed {schedule.printed_bound:.4g}){estimate}",
        f"  target   {'none' if plan.tol is None else f'{plan.tol:g}'}{proved}",
        f"  calls    {_format_calls(schedule.calls)}",
    ]
    if open_ones := name_missing(plan.hypotheses):
        lines.append(f"  open     nothing is proved: {open_ones}")
    lines += [
        f"  level {i}  {level.term.name}: T = {level.T}, N = {level.N}, L = {level.L:.4g}, "
        f"M = {level.term.M:.4g}, delta = {level.delta:.3g}, Omega = {level.term.Omega:.4g}"
        for i, level in enumerate(schedule.levels, start=1)
    ]
    lines += [f"  simple   {term}" for term in plan.simple_terms]
    noise = []
    if schedule.is_primal_dual:
        noise.append("  coupling primal-dual steps, 2 products each, proved like the paper's 4 (docs/theory.md)")
    if is_noisy(level.term for level in schedule.levels):
        samples = plan.predicted_samples
        noise.append(f"  samples  of f' {samples['f']:,}   of g' {samples['g']:,}")
    for level, (spread, squares) in zip(schedule.levels, noise_weights(schedule.levels), strict=True):
        term = level.term
        if term.variance > 0.0:
            noise.append(f"  noise    {term.name}': sigma^2 = {term.variance:.4g}, tau = {term.tau:.4g}")
        if is_felt(level):
            curvature = 0.5 * term.tau * level.last_alphas**2 * term.Omega
            sup = math.sqrt(term.variance * term.Omega) * math.sqrt(squares)
            noise[-1] += f"; in the bound {drift(level, spread):.3g} + {curvature:.3g} (tau)"
            noise[-1] += f" + {sup:.3g} (sup over the domain)"
    return lines, noise


def _stage_lines(plan: Plan, schedule: Schedule) -> tuple[list[str], list[str]]:
    """Of restarts: what they do and promise; the noise in them."""
    stages, extra, samples = schedule.stages, schedule.regularisation, plan.predicted_samples
    proof = "proved constants" if schedule.proof_constants else "practical constants: judge by the gap"
    estimate = "; a constant is an estimate: " + ESTIMATE if rests_on_estimate(plan.constants) else ""
    lines = [
        f"Plan {schedule.regime}, {len(stages)} stages, first {schedule.order} with loops {schedule.loops}",
        f"  theory   {plan.theorem}, {proof}",
        f"  target   {plan.tol:g}; {_promise(plan, schedule)}{estimate}",
        f"  calls    at most {_format_calls(schedule.calls)}",
    ]
    if extra is not None:
        lines.append(f"  lambda   {extra.weight:.4g} on {extra.block}; Psi must reach {extra.target:.4g}")
    x, y = ("" if given is None else f" P_{b}" for b, given in (("x", schedule.given), ("y", schedule.given_y)))
    lines.append(f"  metric   P = diag(delta_x{x}, delta_y{y}), the norm of Section 4")
    if not plan.sampled:
        return lines, []
    noise = [f"  samples  at most of f' {samples['f']:,}   of g' {samples['g']:,}"]
    # Without stages the start meets the target already.
    for label, stage in (("first", stages[0]), ("last", stages[-1])) if stages else ():
        noise += [
            f"  noise    {level.term.name}', {label} stage: sigma^2 / delta = {level.term.variance:.4g}, tau = "
            f"{level.term.tau:.4g}, N = {level.N:,}, Gamma = {stage.Omega:.4g}"
            for level in stage.levels
            if level.term.variance > 0.0
        ]
    if stages and stages[-1].anchor_error > 0.0:
        floor, batch = stages[-1].anchor_error / (1.0 - CONTRACTION), stages[-1].anchor_batch
        noise.append(f"  anchors  {batch} samples each; E[Psi] has the floor {floor:.4g} (4 C_anc Delta_anc / b)")
    return lines, noise


def _promise(plan: Plan, schedule: Schedule) -> str:
    """What is proved of Psi and the gap, in words."""
    if plan.proved:
        return f"proved: gap at most {plan.bound:.4g}, Psi at most {plan.Psi_bound:.4g}"
    if math.isfinite(plan.Psi_bound):
        return f"proved: Psi at most {plan.Psi_bound:.4g}, which bounds no gap here (an active constraint, or a floor)"
    open_ones = name_missing(one for one in plan.hypotheses if not one.for_gap)
    if schedule.proof_constants and open_ones:
        return f"nothing is proved, because of: {open_ones}"
    return "nothing is proved beforehand"


def _format_calls(calls: Mapping[str, int]) -> str:
    return f"f' {calls['f']:,}   g' {calls['g']:,}   B and B^T {calls['B']:,}"
