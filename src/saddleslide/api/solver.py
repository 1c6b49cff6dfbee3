"""`solve`: any problem of the class to a certified gap, with nothing to tune."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import astuple, replace
from functools import partial
from os import PathLike
from typing import Any

import numpy as np

from saddleslide import runs
from saddleslide.api.runner import carry_out, hold_to_limits
from saddleslide.api.starts import take_start
from saddleslide.certificates.verdict import Status
from saddleslide.facts.facts import Facts
from saddleslide.kernels.threads import use_threads
from saddleslide.methods.base import Former, Method
from saddleslide.methods.catalogue import as_method
from saddleslide.metrics.base import Metric
from saddleslide.oracles.sampling import as_seed, is_sampled, quiet_problem
from saddleslide.planner.courses import plan_sampled
from saddleslide.planner.forecast import SolveRequest
from saddleslide.planner.plans import solve_plan
from saddleslide.problem import SaddleProblem
from saddleslide.runs.control import EVERY, MOST_STEPS, Callback, Control, as_control
from saddleslide.runs.result import Result
from saddleslide.theory.plan import RADIUS, Plan


def solve(
    problem: SaddleProblem,
    tol: float | None = None,
    *,
    rtol: float | None = None,
    reduction: float | None = None,
    radius: float = RADIUS,
    method: str | Method = "auto",
    options: Mapping[str, Any] | None = None,
    metric: str | Metric = "auto",
    start: tuple[Any, Any] | Result | None = None,
    costs: Sequence[float] | str | None = None,
    max_calls: Mapping[str, float] | None = None,
    max_steps: int = MOST_STEPS,
    time_limit: float | None = None,
    callback: Callback | None = None,
    progress: bool = False,
    rng: int | np.random.Generator = 0,
    threads: int = 1,
    strict: bool = False,
    on_interrupt: str = "raise",
    checkpoint: str | PathLike[str] | None = None,
    checkpoint_every: int = EVERY,
    check_adjoint: bool | None = None,
) -> Result:
    """Solve a saddle problem to a certified gap.

    Parameters
    ----------
    problem : SaddleProblem
        The problem.
    tol : float, optional
        Target gap.
    rtol : float, optional
        Target relative to max(|lower|, |upper|), the size of the saddle value; 1e-4 where no target is named. Values
        near 0 are no target: it is at least a reduction of rtol / 1000.
    reduction : float, optional
        Target relative to the gap at the start. The largest of the three targets counts.
    radius : float, optional
        How far a claim within a radius reaches, where nothing bounds the sets: a multiple of the size of the point
        (docs/certificates.md). 0 asks for a global proof.
    method : str or Method, optional
        "auto" (the cheapest by prediction; see `ss.compare`), "adaptive" (adaptive sliding), a method such as
        `ss.methods.PDHG(variant="restarted")` or one of your own class (docs/extending.md), or a name in `ss.methods`.
    options : mapping, optional
        Settings of a method that was given by its name.
    metric : "auto", "blocks", "diagonal", "spectral", "fft" or Metric
        Norm of the block with the costly function, or one of your own from `ss.metrics`; for adaptive sliding.
    start : (x, y) or Result, optional
        Feasible starting point; the projections of 0 when missing. Of a result, perhaps of another problem, the nearest
        feasible point and what its method has learnt are taken; `ss.path` makes a chain of that (docs/paths.md).
    costs : (c_f, c_g, c_B) or "measure", optional
        Prices of one gradient of f, one of g and one product; estimated from sizes when missing.
    max_calls : mapping, optional
        Limits on the calls of "f", "g" and "B", the certificate's included.
    max_steps : int, optional
        Limit on outer steps.
    time_limit : float, optional
        Limit in seconds. Where the clock decides, the same run may end elsewhere the next time.
    callback : callable, optional
        Called with an intermediate Result after every outer step that is judged; raising StopIteration ends the run.
    progress : bool, optional
        Show calls, gap and time while it runs: see `ss.Progress`. Each plan and how it ended is also logged under
        "saddleslide" (level INFO), each judged step at DEBUG.
    rng : int or numpy.random.Generator, optional
        All that is random: probes that fit a spectral metric, and draws of sampled gradients. The same seed, or a
        generator in the same state, gives the same bits.
    threads : int, optional
        Threads for products with large sparse matrices; the bits of the result do not depend on it.
    strict : bool, optional
        Raise `ss.errors.OutcomeError`, with the result attached, unless what was asked was reached.
    on_interrupt : "raise" or "return", optional
        What Ctrl-C does: raise KeyboardInterrupt, or return the best certified point with status INTERRUPTED.
    checkpoint : path, optional
        A file from which `ss.resume` continues: written every `checkpoint_every` outer steps, and when the run ends
        early.
    checkpoint_every : int, optional
        Outer steps between two writes.
    check_adjoint : bool, optional
        Test at one seeded pair that the adjoint of B is its transpose, before the first step: two products, counted. By
        default where B is your own code: callables, operators, an Operator of yours. A matrix can not have a wrong one.

    Returns
    -------
    Result
        `status` SOLVED means that the true gap at (x, y) is at most the target, SOLVED_WITHIN that no points of the
        sets within `result.radius` are better by more (docs/certificates.md).

    Notes
    -----
    Where f or g has a sampled gradient, plans of `ss.plan` are run instead (docs/stochastic.md).

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> A, b = np.array([[2.0, 0.0], [0.0, 1.0], [1.0, 1.0]]), np.array([1.0, -1.0, 0.5])
    >>> problem = ss.SaddleProblem(
    ...     f=ss.functions.LeastSquares(A, b), g=ss.functions.Zero(), B=np.array([[1.0, -1.0]]),
    ...     X=ss.domains.FullSpace(2), Y=ss.domains.Box(-0.5, 0.5, shape=1))
    >>> result = ss.solve(problem, tol=1e-8)
    >>> result.status.name, result.gap <= 1e-8
    ('SOLVED', True)
    """
    control = as_control(
        "solve", max_calls=max_calls, max_steps=max_steps, time_limit=time_limit, callback=callback,
        on_interrupt=on_interrupt, checkpoint=checkpoint, checkpoint_every=checkpoint_every,
        check_adjoint=check_adjoint, progress=progress, strict=strict,
    )  # fmt: skip
    chosen, (point, former) = as_method(method, options, "solve"), take_start(problem, start)
    with use_threads(threads, "solve"), runs.Progress(then=callback) if progress else nullcontext(callback) as watched:
        control = replace(control, callback=watched)
        if isinstance(problem, SaddleProblem) and is_sampled(problem):
            seed = 0 if isinstance(rng, np.random.Generator) else rng
            request = SolveRequest(tol, reduction, chosen, metric, point, costs, seed, rtol=rtol)
            goal = request.target(problem)
            work = partial(_solve_sampled, problem, request, control, rng)
        else:
            request = SolveRequest(
                tol, reduction, chosen, metric, point, costs, as_seed(rng), rtol=rtol, radius=radius,
                known="" if former is None else former.plan.method,
            )  # fmt: skip
            goal = request.target(problem)
            problem = quiet_problem(problem)
            work = partial(_solve_exact, problem, request, control, former)
        result = hold_to_limits(problem, point, control, goal, work)
    return result.or_raise() if strict else result


def _solve_exact(problem: SaddleProblem, request: SolveRequest, control: Control, former: Former | None) -> Result:
    facts = Facts(problem)
    made, calls = solve_plan(facts, request), control.books.calls
    plan = replace(made, spent=(calls.f, calls.g, calls.B)) if any(calls.by_oracle.values()) else made
    return carry_out(problem, plan, request.start, control, former=former, facts=facts)


def _solve_sampled(problem: SaddleProblem, request: SolveRequest, control: Control, rng: Any) -> Result:
    """Run to the target with sampled gradients; the gap of the output is judged with exact ones where there are any.

    Without exact gradients the result says EXPECTED and gives the bound of its plan, not a gap.
    """
    books, made = control.books, plan_sampled(problem, request, control.books)
    if isinstance(made, Plan):
        # As in `run`: what a schedule took is in its plan, and on top of all limits.
        is_ready = made.schedule is not None and made.schedule.accuracy is None
        spent = astuple(books.take() if is_ready else books.calls)
        return carry_out(problem, replace(made, spent=spent), request.start, control, rng)
    found, target = made
    status = found.claim if found.gap <= target else Status.NUMERICAL_LIMIT
    point = problem.start(request.start)
    early = Result(*point, status, found, books.calls, 0.0, (), target=target, time_limit=control.time_limit)
    return replace(early, aside=books.calls - found.calls)
