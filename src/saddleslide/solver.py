"""`solve`: any problem of the class to a certified gap, with nothing to tune."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from numbers import Integral
from typing import Any

from saddleslide.adaptive_run import MOST_STEPS, Callback, carry_out, check_limits, first_curvature, mirror
from saddleslide.arrays import as_number
from saddleslide.choice import ADAPTIVE, Choice, choose
from saddleslide.domains import Ball, FullSpace
from saddleslide.errors import InputError, raise_all
from saddleslide.functions import Zero, split_simple
from saddleslide.method_run import carry_out_method, method_plan
from saddleslide.oracles import Oracles
from saddleslide.planning.adaptive import METHODS, AdaptivePlan
from saddleslide.planning.method_plan import MethodPlan
from saddleslide.problem import SaddleProblem
from saddleslide.progress import Progress
from saddleslide.result import Result
from saddleslide.work import chosen_costs, inner_steps_per_gradient

METRICS = ("auto", "blocks", "spectral")


def solve(
    problem: SaddleProblem,
    tol: float | None = None,
    *,
    rtol: float | None = None,
    method: str = "auto",
    options: Mapping[str, Any] | None = None,
    metric: str = "auto",
    start: tuple[Any, Any] | None = None,
    costs: Sequence[float] | str | None = None,
    max_calls: Mapping[str, float] | None = None,
    max_steps: int = MOST_STEPS,
    callback: Callback | None = None,
    progress: bool = False,
    rng: int = 0,
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
    metric : "auto", "blocks" or "spectral"
        Norm of the block with the costly function; for adaptive sliding.
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
    rng : int, optional
        Seed of the random probes that fit a spectral metric.

    Returns
    -------
    Result
        `status` SOLVED means that the true gap at (x, y) is at most the target.

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
    unnamed = method in ("auto", ADAPTIVE)
    raise_all("solve", ["options is given; expected a named method with it."] * (unnamed and options is not None))
    choice = _chosen(problem, tol, rtol, metric, start, costs, rng) if method == "auto" else Choice(method, "as asked")
    with Progress(then=callback) if progress else nullcontext(callback) as watched:
        limits: dict[str, Any] = {
            "start": start, "max_calls": max_calls, "max_steps": max_steps, "callback": watched,
        }  # fmt: skip
        if choice.method == ADAPTIVE:
            plan = adaptive_plan(problem, tol, rtol=rtol, metric=metric, start=start, costs=costs, rng=rng)
            result = carry_out(problem, plan, **limits)
        else:
            named = _named_plan(problem, tol, rtol, choice.method, options, metric, rng)
            result = carry_out_method(problem, named, **limits)
    return replace(result, calls=result.calls + choice.calls)


def _chosen(
    problem: SaddleProblem,
    tol: float | None,
    rtol: float | None,
    metric: str,
    start: tuple[Any, Any] | None,
    costs: Any,
    rng: int,
) -> Choice:
    """What "auto" stands for; a metric that was asked for belongs to adaptive sliding."""
    absolute, relative = _targets(problem, tol, rtol, metric, rng)
    # All that can be wrong is refused before any oracle is called.
    problem.start(start)
    if metric != "auto" or not (problem.f.has_value and problem.g.has_value):
        return Choice(ADAPTIVE, "a metric was asked for, or values are missing")
    return choose(problem, absolute, relative, chosen_costs(problem, costs, "solve"), estimated=costs is None)


def adaptive_plan(
    problem: SaddleProblem,
    tol: float | None = None,
    *,
    rtol: float | None = None,
    metric: str = "auto",
    start: tuple[Any, Any] | None = None,
    costs: Sequence[float] | str | None = None,
    rng: int = 0,
) -> AdaptivePlan:
    """What `solve` would do, without doing it.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> simplex, zero = ss.domains.Simplex(3), ss.functions.Zero()
    >>> game = ss.SaddleProblem(f=zero, g=zero, B=np.eye(3), X=simplex, Y=simplex)
    >>> adaptive_plan(game, tol=1e-6).method
    'restarted primal-dual'
    """
    absolute, relative = _targets(problem, tol, rtol, metric, rng)
    silent = [name for name, function in (("f", problem.f), ("g", problem.g)) if not function.has_value]
    raise_all(
        "solve",
        [f"{name} has no value, so no gap can be certified; pass value=, or run a plan of ss.plan." for name in silent],
    )
    problem.start(start)
    f_rest, f_simple = split_simple(problem.f, problem.X)
    g_rest, g_simple = split_simple(problem.g, problem.Y)
    mirrored = isinstance(f_rest, Zero) and not isinstance(g_rest, Zero)
    simple = tuple(
        f"{name} = {part!r} by its proximal step"
        for name, part in (("f", f_simple), ("g", g_simple))
        if not isinstance(part, Zero)
    )
    if isinstance(f_rest, Zero) and isinstance(g_rest, Zero):
        reason = "f and g are simple terms: no gradient is called"
        return AdaptivePlan(METHODS[1], "blocks", False, 1, 1.0, absolute, relative, rng, simple, (reason,))
    seen = mirror(problem) if mirrored else problem
    chosen, why = _choose_metric(seen, metric)
    steps = inner_steps_per_gradient(seen, _seen_costs(problem, costs, mirrored), chosen)
    curvature = 1.0 if chosen == "spectral" else first_curvature(seen)
    reasons = (*why, *(("g is costly and f is simple: the roles of x and y are exchanged",) if mirrored else ()))
    return AdaptivePlan(
        METHODS[0], chosen, mirrored, steps, curvature, absolute, relative, rng, simple, reasons
    )  # fmt: skip


def _named_plan(
    problem: SaddleProblem,
    tol: float | None,
    rtol: float | None,
    method: str,
    options: Mapping[str, Any] | None,
    metric: str,
    rng: int,
) -> MethodPlan:
    absolute, relative = _targets(problem, tol, rtol, metric, rng)
    raise_all("solve", [f"metric is {metric!r}; expected 'auto' with a named method."] * (metric != "auto"))
    return method_plan(problem, method, absolute, relative, options)


def _seen_costs(problem: SaddleProblem, costs: Any, mirrored: bool) -> tuple[float, float, float] | None:
    """Prices as the method sees them; None leaves the estimate to sizes."""
    if costs is None:
        return None
    f, g, B = chosen_costs(problem, costs, "solve")
    return (g, f, B) if mirrored else (f, g, B)


def _targets(
    problem: SaddleProblem, tol: float | None, rtol: float | None, metric: str, rng: int
) -> tuple[float, float]:
    if not isinstance(problem, SaddleProblem):
        raise InputError(f"solve: problem is {type(problem).__name__}; expected a SaddleProblem.")
    complaints = []
    if isinstance(rng, bool) or not isinstance(rng, Integral) or rng < 0:
        complaints.append(f"rng is {rng!r}; expected a seed >= 0.")
    if tol is None and rtol is None:
        complaints.append("tol and rtol are both missing; expected a target gap.")
    if metric not in METRICS:
        complaints.append(f"metric is {metric!r}; expected one of {METRICS}.")
    raise_all("solve", complaints)
    absolute = 0.0 if tol is None else as_number(tol, "solve: tol", 0.0)
    relative = 0.0 if rtol is None else as_number(rtol, "solve: rtol", 0.0)
    if absolute == 0.0 and relative == 0.0:
        raise InputError("solve: tol and rtol are 0; expected a target > 0.")
    return absolute, relative


def _choose_metric(problem: SaddleProblem, wanted: str) -> tuple[str, tuple[str, ...]]:
    """Spectral where the x block is a free image and f has a Hessian to fit; the reason otherwise."""
    obstacles = []
    if not isinstance(problem.X, FullSpace | Ball):
        obstacles.append(f"X is {problem.X}, whose constraint can be active")
    elif not Oracles(problem).lifted(problem.f).has_hessian:
        obstacles.append("f offers no products with its Hessian")
    if wanted == "spectral" and obstacles:
        raise InputError(f"solve: metric 'spectral' can not be used: {'; '.join(obstacles)}.")
    if wanted == "spectral":
        return "spectral", ("metric spectral as asked",)
    if wanted == "blocks":
        return "blocks", ("metric blocks as asked",)
    if len(problem.X.shape) < 2:
        obstacles.append("x is not an image")
    if obstacles:
        return "blocks", (f"no spectral metric: {'; '.join(obstacles)}",)
    return "spectral", ("x is an image on a free domain: the Hessian of f is fitted in the cosine basis",)
