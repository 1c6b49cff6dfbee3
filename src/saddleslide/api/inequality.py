"""`slide`: Algorithm 1 on any monotone variational inequality of the paper's Section 3, given by its components."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from os import PathLike
from typing import Any

import numpy as np

from saddleslide.arrays.arguments import as_flag, as_path
from saddleslide.arrays.base import as_number, as_real
from saddleslide.arrays.kinds import ArrayKind, kind_of
from saddleslide.certificates.books import count_aside
from saddleslide.certificates.verdict import Status
from saddleslide.domains.base import Domain
from saddleslide.domains.entrywise import FullSpace
from saddleslide.domains.product import Product
from saddleslide.errors import CheckpointError, InputError, OutcomeError, raise_all
from saddleslide.functions.entrywise import Zero
from saddleslide.methods.component_sliding import FIELD, ComponentSliding, ComponentState
from saddleslide.methods.sliding.component import (
    AUTO,
    Component,
    block_norms_of,
    component_terms,
    components_of,
    names_of,
)
from saddleslide.operators.void import Void
from saddleslide.oracles.clock import Clock
from saddleslide.oracles.sampling import as_generator
from saddleslide.problem import SaddleProblem
from saddleslide.runs.checkpoint import digest_of, read_checkpoint
from saddleslide.runs.control import EVERY, as_control
from saddleslide.runs.inequality import InequalityJudge, InequalityMoment, InequalityResult, as_component_calls
from saddleslide.runs.loop import Run, Subject
from saddleslide.runs.result import Result
from saddleslide.runs.snapshot import restore
from saddleslide.theory.bounds import sharp_bound
from saddleslide.theory.components import place_components, schedule_components
from saddleslide.theory.levels import Level
from saddleslide.theory.plan import Plan

NAME = "component sliding"


def slide(
    components: Sequence[Component] | SaddleProblem,
    domain: Domain | None = None,
    start: Any = None,
    loops: Sequence[int] | None = None,
    metric: Any = AUTO,
    *,
    tol: float | None = None,
    proved: bool = True,
    costs: Mapping[str, float] | None = None,
    callback: Callable[[InequalityResult], object] | None = None,
    rng: int | np.random.Generator = 0,
    max_calls: Mapping[str, float] | None = None,
    max_steps: int | None = None,
    time_limit: float | None = None,
    strict: bool = False,
    on_interrupt: str = "raise",
    checkpoint: str | PathLike[str] | None = None,
    checkpoint_every: int = EVERY,
    resume: str | PathLike[str] | None = None,
) -> InequalityResult:
    """Solve the variational inequality of the components by recursive sliding (Algorithm 1).

    Finds z in the domain with p(z) - p(u) + <Q(u), z - u> <= tol for all u, where p and Q are the sums over the
    components. Each component is called as often as it needs: those that need few calls stand on outer levels.

    Parameters
    ----------
    components : sequence of Component, or SaddleProblem
        In any order with `tol`, outermost level first with `loops`. A SaddleProblem is taken apart: terms of f = f1 +
        f2, of g, and couplings of B = [B1, B2] are components, called f1, f2, g, B1, B2 (f, g, B where there is one).
    domain : Domain
        The set Z; that of a problem is X x Y.
    start : array or (x, y), optional
        Feasible point; by default the projection of 0. Where it is of PyTorch, JAX or CuPy the run stays there:
        callables get, and the run returns, arrays of that kind.
    loops : sequence of int, optional
        T_1, ..., T_n in place of a plan; component i is called T_1 * ... * T_i times.
    metric : "auto", "levelwise", float, matrix, one of `ss.metrics`, or one of these per block
        P on each block, the factors of a Product domain. Declared constants are in this norm, others are found in it.
        "levelwise", where all components are functions of one of two bounded blocks and couplings of both, gives each
        the norm of its own (docs/theory.md); "auto" takes it there, and elsewhere P = I.
    tol : float, optional
        The weak gap to reach. Levels are sorted by their budgets (Corollary 3.6) and loops are set.
    proved : bool
        Loops whose bound is at most `tol`; else those of the budgets with kappa_n = 1, which usually reach it.
    costs : mapping, optional
        Price of a call of each component, by name, in place of `Component.cost`. Where prices differ, accuracy is
        shared so that the planned calls cost least.
    callback : callable, optional
        Called with an intermediate `InequalityResult` after every outermost step; StopIteration ends the run.
    rng : int or numpy.random.Generator
        Where sampled gradients draw from.
    max_calls : mapping, optional
        Most calls of a component's function and operator together, by name; judging comes on top.
    max_steps, time_limit, strict, on_interrupt, checkpoint, checkpoint_every : optional
        As in `ss.solve`.
    resume : path, optional
        A checkpoint of the same call, to go on with: the result is what it would have been, with the same bits.

    Returns
    -------
    InequalityResult
        The running average z of the outermost level, a certified bound on its weak gap, the bound of the theorem, the
        calls of every component, and the history.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> p = ss.Component(function=ss.functions.Quadratic(1.0), smoothness=ss.Holder(1.0, 1.0))
    >>> Q = ss.Component(operator=lambda z: np.array([z[1], -z[0]]), lipschitz=1.0)
    >>> result = ss.slide([p, Q], ss.domains.Ball(1.0, shape=2), np.array([1.0, 0.0]), tol=0.02)
    >>> result.status.name, bool(np.abs(result.z).max() < 0.02)
    ('SOLVED', True)
    """
    entered = time.perf_counter()
    problem_costs = None if costs is None else dict(costs)
    if isinstance(components, SaddleProblem):
        if domain is not None:
            raise InputError("slide: domain is given beside a problem, which has its own; expected one of them.")
        whole = components
        components, domain = components_of(whole, problem_costs), Product(whole.X, whole.Y)
        start = np.concatenate([part.ravel() for part in whole.start(start)])
    elif problem_costs:
        components = _with_costs(components, problem_costs)
    if start is None and isinstance(domain, Domain):
        start = domain.project(np.zeros(domain.shape))
    if (loops is None) == (tol is None):
        raise InputError(f"slide: tol is {tol!r} and loops is {loops!r}; expected one of them.")
    as_flag(proved, "slide: proved")
    as_flag(strict, "slide: strict")
    levels, parts, estimated = _levels(components, domain, start, loops, metric, tol, proved)
    assert isinstance(domain, Domain)
    names = [level.term.name for level in levels]
    limits = _limits(max_calls, names)
    kind, target = kind_of(start), None if tol is None else as_number(tol, "slide: tol", 0.0)
    z = domain.project(as_real(start, "start", domain.shape))
    problem = SaddleProblem(Zero(), Zero(), Void(domain.shape), domain, FullSpace(0), arrays=kind)
    norms = () if isinstance(metric, str) else block_norms_of(metric, domain)
    method = ComponentSliding(parts, levels, domain, limits, target is not None, norms, as_generator(rng, "slide"))
    bound = math.inf if estimated else sharp_bound(levels)
    if callback is not None and not callable(callback):
        raise InputError(f"slide: callback is {callback!r}; expected a function of an intermediate InequalityResult.")

    def report(result: Result) -> None:
        assert callback is not None
        callback(_result_of(run, result, bound, kind, finished=False))

    control = as_control(
        "slide", max_steps=sys.maxsize if max_steps is None else max_steps, time_limit=time_limit,
        callback=None if callback is None else report, on_interrupt=on_interrupt, checkpoint=checkpoint,
        checkpoint_every=checkpoint_every, clock=Clock(entered),
    )  # fmt: skip
    seen = [norm.product(np.ones(block.shape)) for norm, block in zip(norms, domain.blocks, strict=False) if norm]
    digest = digest_of(list(parts), domain, [[level.term.name, level.T, level.L] for level in levels], z, target, seen)
    found = None if resume is None else _read(resume, digest)
    if found is not None:
        elapsed, timings = float(found[0]["elapsed"]), dict(found[0]["timings"])
        control = replace(control, clock=Clock(entered - elapsed, timings), dry=True)
    start_pair = (z, np.zeros(0))
    control = replace(control, header={"components": digest}, start=start_pair)
    plan = Plan(method=NAME, tol=target)
    run = Run(problem, plan, start_pair, control, subject=Subject(method, InequalityJudge.of(method)))
    if found is not None:
        restore(run, found[0]["state"], found[1][:-2], problem.arrays)
        run.control = replace(run.control, dry=False)
    with count_aside(problem, control.books):
        ended = run.carry_out()
    result = _result_of(run, ended, bound, kind)
    if strict and not result.success:
        raise OutcomeError(f"{result.status.name}: {result.message}", result)
    return result


def _levels(
    components: Any, domain: Any, start: Any, loops: Any, metric: Any, tol: float | None, proved: bool
) -> tuple[tuple[Level, ...], tuple[Component, ...], bool]:
    """Levels, the components in their order, and whether a variance is only an estimate."""
    terms = component_terms(components, domain, start, metric)
    by_name = dict(zip(names_of(components), components, strict=True))
    if tol is None:
        levels = place_components(terms, loops)
    else:
        tol = as_number(tol, "slide: tol", 0.0)
        if tol == 0.0:
            raise InputError("slide: tol is 0; expected a number > 0.")
        equal = len({one.cost for one in components}) == 1
        prices = [1.0 if equal else one.cost * (one.has_gradient + 2 * one.has_operator) for one in components]
        levels = schedule_components(terms, tol, prices, proved)
    z = as_real(start, "start", domain.shape)
    weights = [1.0] * len(domain.blocks)
    sampled = [one for one in components if one.is_sampled]
    estimated = any(one.level_variance(domain, z, weights).estimate for one in sampled)
    return levels, tuple(by_name[level.term.name] for level in levels), estimated


def _with_costs(components: Sequence[Component], costs: Mapping[str, float]) -> tuple[Component, ...]:
    names = names_of(components)
    raise_all("slide", [f"costs has {name!r}; expected names among {names}." for name in costs if name not in names])
    return tuple(replace(one, cost=costs.get(name, one.cost)) for name, one in zip(names, components, strict=True))


def _limits(max_calls: Any, names: Sequence[str]) -> dict[str, float]:
    if max_calls is None:
        return {}
    if not isinstance(max_calls, Mapping) or set(max_calls) - set(names):
        raise InputError(f"slide: max_calls is {max_calls!r}; expected a mapping with names among {list(names)}.")
    return {name: as_number(limit, f"slide: max_calls[{name!r}]", 0.0) for name, limit in max_calls.items()}


def _read(path: Any, digest: str) -> tuple[dict[str, Any], list[Any]]:
    place = as_path(path, "slide: resume", "run.npz")
    header, arrays = read_checkpoint(place)
    if header.get("components") != digest:
        raise CheckpointError(
            f"checkpoint {str(place)!r} belongs to another call of ss.slide: components, domain, start, loops or tol "
            "differ. Pass what it was written with."
        )
    return header, arrays


def _result_of(run: Run, found: Result, bound: float, kind: ArrayKind, finished: bool = True) -> InequalityResult:
    """What is given back of a run, or seen of it on the way."""
    method, state, judge = run.method, run.state, run.judge
    assert isinstance(method, ComponentSliding)
    assert isinstance(judge, InequalityJudge)
    begun = state if isinstance(state, ComponentState) else None
    own = {} if begun is None else begun.calls
    names, levels, T = method.names, method.levels, method.levels[0].T
    at_end = begun is not None and begun.step == T
    sampled = any(one.draws for one in method.components)
    target = math.nan if run.plan.tol is None else run.plan.tol
    status = found.status
    if finished and at_end and bound <= target and status in (Status.NO_CERTIFICATE, Status.COMPLETED):
        status = Status.EXPECTED if sampled else Status.MET_AS_DECLARED
    per_step = {name: (level.N // T) for name, level in zip(names, levels, strict=True)}
    kinds = {name: (one.has_gradient, 2 * one.has_operator) for name, one in zip(names, method.components, strict=True)}

    def row(step: int) -> dict[str, Any]:
        counts = {name: step * per_step[name] * kinds[name][0] for name in names}
        counts |= {name + FIELD: step * per_step[name] * kinds[name][1] for name in names}
        return as_component_calls(names, counts)

    moments = (InequalityMoment(one.step, row(one.step), one.seconds, one.gap) for one in found.history)
    point = kind.place(found.x)
    return InequalityResult(
        point.copy() if isinstance(point, np.ndarray) else kind.wrap(point), status, found.certificate, bound, target,
        levels, as_component_calls(names, own, judge.spent), as_component_calls(names, judge.spent),
        {} if begun is None else dict(begun.samples), tuple(moments), found.seconds,
        {name: one.cost for name, one in zip(names, method.components, strict=True)}, method.domain, found.detail,
    )  # fmt: skip
