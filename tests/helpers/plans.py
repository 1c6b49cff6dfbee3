"""Plans of given levels and stages, as a test states them."""

from dataclasses import replace

from saddleslide.theory.plan import RECURSIVE_SLIDING, Plan
from saddleslide.theory.schedule import Schedule, one_stage


def sliding_plan(levels, **settings):
    """One run of the recursion with these levels."""
    return Plan(method=RECURSIVE_SLIDING, schedule=one_stage(levels), **settings)


def stage_plan(stages, tol, **settings):
    """Restarts with these stages."""
    schedule = Schedule(stages, "restarts", fixed=False, **settings)
    return Plan(method=RECURSIVE_SLIDING, schedule=schedule, tol=tol)


def first_stages(plan, count, **changes):
    """The plan with so many of its stages."""
    return replace(plan, schedule=replace(plan.schedule, stages=plan.schedule.stages[:count]), **changes)
