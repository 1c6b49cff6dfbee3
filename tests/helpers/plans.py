"""Plans of given levels and stages, as a test states them."""

from dataclasses import replace

from saddleslide.facts.facts import Facts
from saddleslide.methods.catalogue import find_method, method_plan
from saddleslide.theory.plan import DISTANCES, RECURSIVE_SLIDING, Constant, Plan
from saddleslide.theory.schedule import Schedule, one_stage


def sliding_plan(levels, **settings):
    """One run of the recursion with these levels."""
    return Plan(method=RECURSIVE_SLIDING, schedule=one_stage(levels), **settings)


def stage_plan(stages, tol, **settings):
    """Restarts with these stages."""
    schedule = Schedule(stages, "restarts", fixed=False, **settings)
    return Plan(method=RECURSIVE_SLIDING, schedule=schedule, tol=tol)


def rescheduled(plan, **changes):
    """The plan with another schedule."""
    return replace(plan, schedule=replace(plan.schedule, **changes))


def first_stages(plan, count, **changes):
    """The plan with so many of its stages."""
    return replace(rescheduled(plan, stages=plan.schedule.stages[:count]), **changes)


def on_allowance(problem, name, prices, tol=0.0, reduction=0.0, **settings):
    """The plan of a method as if auto had preferred it at these prices."""
    facts = Facts(problem)
    made = replace(method_plan(facts, find_method(name, settings)), tol=tol, reduction=reduction)
    known = {name: Constant(D, "seen from the start") for name, D in zip(DISTANCES, facts.distances, strict=True)}
    return replace(made, on_allowance=True, costs=prices, constants=known)
