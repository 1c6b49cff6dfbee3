"""`solve`: any problem of the class to a certified gap, with nothing to tune."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import numpy as np

from saddleslide.adaptive_planner import planned, targets
from saddleslide.adaptive_run import MOST_STEPS, Callback, carry_out, check_limits
from saddleslide.choice import ADAPTIVE, Choice, choose
from saddleslide.errors import InputError, raise_all
from saddleslide.kernels.switch import compile_seconds
from saddleslide.kernels.threads import working_threads
from saddleslide.method_run import carry_out_method, method_plan
from saddleslide.metrics import Metric
from saddleslide.planning.method_plan import MethodPlan
from saddleslide.problem import SaddleProblem
from saddleslide.progress import Progress
from saddleslide.result import Result
from saddleslide.sampled_solve import solve_sampled
from saddleslide.sampling import as_seed, is_sampled, quiet_problem
from saddleslide.work import chosen_costs


def solve(
    problem: SaddleProblem,
    tol: float | None = None,
    *,
    rtol: float | None = None,
    method: str = "auto",
    options: Mapping[str, Any] | None = None,
    metric: str | Metric = "auto",
    start: tuple[Any, Any] | None = None,
    costs: Sequence[float] | str | None = None,
    max_calls: Mapping[str, float] | None = None,
    max_steps: int = MOST_STEPS,
    callback: Callback | None = None,
    progress: bool = False,
    rng: int | np.random.Generator = 0,
    threads: int = 1,
) -> Result:
    """Solve a saddle problem to a certified gap.

    Parameters
    ----------
    problem : SaddleProblem
        The problem.
    tol : float, optional
        Target gap.
    rtol : float, optional
        Target relative to the gap at the start. At least one of the two is needed; the larger target counts.
    method : str, optional
        "auto" (the cheapest by prediction; see `ss.compare`), "adaptive" (adaptive sliding), or a name in `ss.methods`.
    options : mapping, optional
        Settings of the named method.
    metric : "auto", "blocks", "diagonal", "spectral", "fft" or Metric
        Norm of the block with the costly function, or one of your own from `ss.metrics`; for adaptive sliding.
    start : (x, y), optional
        Feasible starting point; the projections of 0 when missing.
    costs : (c_f, c_g, c_B) or "measure", optional
        Prices of one gradient of f, one of g and one product; estimated from sizes when missing.
    max_calls : mapping, optional
        Limits on the calls of "f", "g" and "B", the certificate's included.
    max_steps : int, optional
        Limit on outer steps.
    callback : callable, optional
        Called with an intermediate Result after every outer step; raising StopIteration ends the run.
    progress : bool, optional
        Show calls, gap and time on the terminal while it runs.
    rng : int or numpy.random.Generator, optional
        All that is random: probes that fit a spectral metric, and draws of sampled gradients. The same seed, or a
        generator in the same state, gives the same bits.
    threads : int, optional
        Threads for products with large sparse matrices; the bits of the result do not depend on it.

    Returns
    -------
    Result
        `status` SOLVED means that the true gap at (x, y) is at most the target.

    Notes
    -----
    Where f or g has a sampled gradient, plans of `ss.plan` are run instead (docs/stochastic.md), and `calls` leaves out
    the exact gradients that judging takes: they are in `certificate_calls`.

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
    check_limits(max_calls, max_steps, callback)
    with working_threads(threads, "solve"):
        if isinstance(problem, SaddleProblem) and is_sampled(problem):
            targets(problem, tol, rtol, metric, 0 if isinstance(rng, np.random.Generator) else rng)
            if method != "auto" or options is not None:
                raise InputError(
                    f"solve: method is {method!r}; expected 'auto' without options for sampled gradients. Pass exact "
                    "functions for a method by name."
                )
            with Progress(then=callback) if progress else nullcontext(callback) as watched:
                # The plans that it runs hand their points on: as NumPy arrays.
                inner = replace(problem, B=problem.coupling, arrays="numpy")
                result = solve_sampled(
                    inner, tol, rtol=rtol, metric=metric, start=start, costs=costs, max_calls=max_calls,
                    max_steps=max_steps, callback=watched, rng=rng,
                )  # fmt: skip
            return result.of_kind(problem.arrays)
        seed = as_seed(rng)
        problem = quiet_problem(problem) if isinstance(problem, SaddleProblem) else problem
        compiled_before = compile_seconds()
        unnamed = method in ("auto", ADAPTIVE)
        raise_all("solve", ["options is given; expected a named method with it."] * (unnamed and options is not None))
        choice = (
            _chosen(problem, tol, rtol, metric, start, costs, seed) if method == "auto" else Choice(method, "as asked")
        )
        with Progress(then=callback) if progress else nullcontext(callback) as watched:
            limits: dict[str, Any] = {
                "start": start, "max_calls": max_calls, "max_steps": max_steps, "callback": watched,
            }  # fmt: skip
            if choice.method == ADAPTIVE:
                plan = planned(problem, tol, rtol, metric, start, costs, seed)
                result = carry_out(problem, plan, **limits)
            else:
                named = _named_plan(problem, tol, rtol, choice.method, options, metric, seed)
                result = carry_out_method(problem, named, **limits)
        # What the choice looked at was spent before the first step.
        history = tuple(replace(moment, calls=moment.calls + choice.calls) for moment in result.history)
        # Planning makes products too, and may be the first to load their kernels.
        compiled = compile_seconds() - compiled_before
        spent = result.calls + choice.calls
        result = replace(result, calls=spent, history=history, compile_seconds=compiled)
        return result.of_kind(problem.arrays)


def _chosen(
    problem: SaddleProblem,
    tol: float | None,
    rtol: float | None,
    metric: str | Metric,
    start: tuple[Any, Any] | None,
    costs: Any,
    rng: int,
) -> Choice:
    """What "auto" stands for; a metric that was asked for belongs to adaptive sliding."""
    absolute, relative = targets(problem, tol, rtol, metric, rng)
    # All that can be wrong is refused before any oracle is called.
    problem.start(start)
    if metric != "auto" or not (problem.f.has_value and problem.g.has_value):
        return Choice(ADAPTIVE, "a metric was asked for, or values are missing")
    return choose(problem, absolute, relative, chosen_costs(problem, costs, "solve"), estimated=costs is None)


def _named_plan(
    problem: SaddleProblem,
    tol: float | None,
    rtol: float | None,
    method: str,
    options: Mapping[str, Any] | None,
    metric: str | Metric,
    rng: int,
) -> MethodPlan:
    absolute, relative = targets(problem, tol, rtol, metric, rng)
    raise_all("solve", [f"metric is {metric!r}; expected 'auto' with a named method."] * (metric != "auto"))
    return method_plan(problem, method, absolute, relative, options)
