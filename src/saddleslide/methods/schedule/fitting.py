"""A plan of a theorem beside the problem and the start that it is run on: refused, measured anew, or as it is."""

from __future__ import annotations

import math
from dataclasses import replace

from saddleslide.arrays.base import Array, key_of
from saddleslide.errors import InputError
from saddleslide.facts.metric_constants import Norms, noise_in
from saddleslide.methods.schedule.planner import Setting
from saddleslide.metrics.base import Metric
from saddleslide.metrics.record import from_dict
from saddleslide.problem import SaddleProblem
from saddleslide.theory.hypotheses import Constant, all_hold, rests_on_estimate
from saddleslide.theory.levels import Level
from saddleslide.theory.plan import Plan
from saddleslide.theory.schedule import Schedule


def norms_of(schedule: Schedule) -> Norms:
    """The norms of both blocks, which a plan from a file has as data; Algorithm 1 asks for P^-1 alone."""
    given = schedule.given, schedule.given_y
    x, y = (one if one is None or isinstance(one, Metric) else from_dict(one) for one in given)
    return x, y


def fit(plan: Plan, problem: SaddleProblem, start: tuple[Array, Array]) -> Plan:
    """The plan for this problem and start: refused if made for another problem, its Omegas those of this start."""
    schedule = plan.schedule
    assert schedule is not None
    levels = schedule.levels
    if levels and not any(level.term.M > 0.0 for level in levels) and problem.coupling.norm.upper > 0.0:
        raise InputError("run: the plan was made for B = 0; expected a plan with a coupling. Plan this problem anew.")
    if not schedule.has_restarts:
        squares = Setting(problem, schedule.simple, norms_of(schedule), start, {}).squares
        stage = replace(schedule.stages[0], levels=tuple(_level_from(squares, level) for level in levels))
        return replace(plan, schedule=replace(schedule, stages=(stage,)))
    if schedule.proof_constants and _starts_away(schedule, start):
        # Psi at the plan's start says nothing about another one.
        return replace(plan, schedule=replace(schedule, proof_constants=False))
    return plan


def bound_expected_gap(plan: Plan, problem: SaddleProblem, start: tuple[Array, Array]) -> float:
    """What a plan with sampled gradients proves of this run on average over all draws; infinite where nothing.

    It is about this run where no constant is an estimate, the start is the plan's, and there is no more noise.
    """
    schedule = plan.schedule
    assert schedule is not None
    if rests_on_estimate(plan.constants) or not all_hold(plan.hypotheses):
        return math.inf
    if schedule.has_restarts and _starts_away(schedule, start):
        return math.inf
    sides = (("sigma2_x", problem.f, problem.X, start[0]), ("sigma2_y", problem.g, problem.Y, start[1]))
    drawn = [(name, function.variance(domain, point)) for name, function, domain, point in sides if function.sampled]
    noise = {name: Constant(variance.value, "") for name, variance in drawn}
    for name, constant in noise_in(norms_of(schedule), noise, problem).items():
        planned = plan.constants[name].value if name in plan.constants else 0.0
        if not constant.value <= planned * (1.0 + 1e-9):
            return math.inf
    return plan.bound


def _starts_away(schedule: Schedule, start: tuple[Array, Array]) -> bool:
    return schedule.start_key not in ("", key_of(*start))


def _level_from(squares: tuple[float, float], level: Level) -> Level:
    """The level with the Omega of another start. Its steps stay, so its (delta, L)-oracle is frozen."""
    Omega = float(sum(w * square for w, square in zip(level.term.weights, squares, strict=True) if w > 0.0))
    if Omega == level.term.Omega or math.isclose(Omega, level.term.Omega, rel_tol=1e-12):
        return level
    return replace(level, term=replace(level.term, Omega=Omega, inexact=(level.delta, level.L)))
