"""`solve`: any problem of the class to a certified gap, with nothing to tune."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from numbers import Integral
from typing import Any

import numpy as np

from saddleslide.adaptive_run import MOST_STEPS, Callback, carry_out, check_limits, first_curvature, mirror
from saddleslide.arrays import as_number
from saddleslide.choice import ADAPTIVE, Choice, choose
from saddleslide.domains import Ball, Box, Domain, FullSpace
from saddleslide.errors import InputError, UnknownConstantError, raise_all
from saddleslide.functions import Function, Zero, hessian_diagonal, split_simple
from saddleslide.method_run import carry_out_method, method_plan
from saddleslide.metrics import Blocks, Entrywise, Metric
from saddleslide.oracles import Oracles
from saddleslide.planning.adaptive import METHODS, AdaptivePlan
from saddleslide.planning.method_plan import MethodPlan
from saddleslide.problem import SaddleProblem
from saddleslide.progress import Progress
from saddleslide.result import Result
from saddleslide.work import (
    FEWEST_ON_G,
    chosen_costs,
    estimated_costs,
    g_steps_per_gradient,
    inner_steps_per_gradient,
)

METRICS = ("auto", "blocks", "diagonal", "spectral", "fft")
# Entries whose curvatures differ by less than this are as well served by one number.
_UNEVEN = 10.0


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
    if method == "auto":
        _targets(problem, tol, rtol, metric, rng)
        # A start that can not be used is refused before the choice looks at gradients.
        problem.start(start)
    choice = _chosen(problem, tol, rtol, metric, costs, rng) if method == "auto" else Choice(method, "as asked")
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
    problem: SaddleProblem, tol: float | None, rtol: float | None, metric: str | Metric, costs: Any, rng: int
) -> Choice:
    """What "auto" stands for; a metric that was asked for belongs to adaptive sliding."""
    absolute, relative = _targets(problem, tol, rtol, metric, rng)
    if metric != "auto" or not (problem.f.has_value and problem.g.has_value):
        return Choice(ADAPTIVE, "a metric was asked for, or values are missing")
    return choose(problem, absolute, relative, chosen_costs(problem, costs, "solve"), estimated=costs is None)


def adaptive_plan(
    problem: SaddleProblem,
    tol: float | None = None,
    *,
    rtol: float | None = None,
    metric: str | Metric = "auto",
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
        unused = not (isinstance(metric, str) and metric in ("auto", "blocks"))
        why_not = ", and the metric asked for has no use" if unused else ""
        reason = f"f and g are simple terms: no gradient is called{why_not}"
        return AdaptivePlan(METHODS[1], "blocks", False, 1, 1.0, absolute, relative, rng, simple, (reason,))
    seen = mirror(problem) if mirrored else problem
    chosen, why = _choose_metric(seen, f_rest if not mirrored else g_rest, metric)
    prices = None if costs is None else chosen_costs(problem, costs, "solve")
    steps = inner_steps_per_gradient(seen, _swapped(prices) if mirrored else prices, chosen)
    reasons = (*why, *(("g is costly and f is simple: the roles of x and y are exchanged",) if mirrored else ()))
    reasons += tuple(
        f"smoothness of {name} was not declared: its curvature is found by backtracking"
        for name, part, domain in (("f", f_rest, problem.X), ("g", g_rest, problem.Y))
        if not _declared(part, domain)
    )
    g_steps = steps_per_g = 0
    entrywise = chosen in ("blocks", "diagonal") or isinstance(metric, Entrywise)
    if entrywise and not (isinstance(f_rest, Zero) or isinstance(g_rest, Zero)):
        g_steps = g_steps_per_gradient(prices or estimated_costs(problem))
        steps_per_g = inner_steps_per_gradient(mirror(problem), _swapped(prices), "blocks", FEWEST_ON_G)
        reasons = (*reasons, "f and g are costly: g is slid inside the steps on f")
    return AdaptivePlan(
        METHODS[0], chosen, mirrored, steps, first_curvature(seen) if chosen == "blocks" else 1.0,
        absolute, relative, rng, simple, reasons, g_steps, steps_per_g,
        None if isinstance(metric, str) else metric,
    )  # fmt: skip


def _declared(part: Function, domain: Domain) -> bool:
    try:
        part.smoothness(domain)
    except UnknownConstantError:
        return False
    except InputError:
        return True
    return True


def _swapped(costs: tuple[float, float, float] | None) -> tuple[float, float, float] | None:
    """Prices as seen with the roles exchanged; None leaves the estimate to sizes."""
    return None if costs is None else (costs[1], costs[0], costs[2])


def _named_plan(
    problem: SaddleProblem,
    tol: float | None,
    rtol: float | None,
    method: str,
    options: Mapping[str, Any] | None,
    metric: str | Metric,
    rng: int,
) -> MethodPlan:
    absolute, relative = _targets(problem, tol, rtol, metric, rng)
    raise_all("solve", [f"metric is {metric!r}; expected 'auto' with a named method."] * (metric != "auto"))
    return method_plan(problem, method, absolute, relative, options)


def _targets(
    problem: SaddleProblem, tol: float | None, rtol: float | None, metric: str | Metric, rng: int
) -> tuple[float, float]:
    if not isinstance(problem, SaddleProblem):
        raise InputError(f"solve: problem is {type(problem).__name__}; expected a SaddleProblem.")
    complaints = []
    if isinstance(rng, bool) or not isinstance(rng, Integral) or rng < 0:
        complaints.append(f"rng is {rng!r}; expected a seed >= 0.")
    if tol is None and rtol is None:
        complaints.append("tol and rtol are both missing; expected a target gap.")
    if not (isinstance(metric, Metric) or (isinstance(metric, str) and metric in METRICS)):
        complaints.append(f"metric is {metric!r}; expected one of {METRICS} or an object of ss.metrics.")
    raise_all("solve", complaints)
    absolute = 0.0 if tol is None else as_number(tol, "solve: tol", 0.0)
    relative = 0.0 if rtol is None else as_number(rtol, "solve: rtol", 0.0)
    if absolute == 0.0 and relative == 0.0:
        raise InputError("solve: tol and rtol are 0; expected a target > 0.")
    return absolute, relative


def _choose_metric(problem: SaddleProblem, rest: Function, wanted: str | Metric) -> tuple[str, tuple[str, ...]]:
    """The metric that is used, and why the better ones are not."""
    if isinstance(wanted, Metric):
        _check_given(problem, wanted)
        return "given", (f"metric {wanted.name} as given",)
    free, uneven = _spectral_obstacles(problem), _diagonal_obstacles(problem, rest)
    hard = {"spectral": free, "fft": free, "diagonal": uneven}.get(wanted, [])
    if hard:
        raise InputError(f"solve: metric {wanted!r} can not be used: {'; '.join(hard)}.")
    if wanted != "auto":
        return wanted, (f"metric {wanted} as asked",)
    if len(problem.X.shape) < 2:
        free.append("x is not an image")
    if not free:
        return "spectral", ("x is an image on a free domain: the Hessian of f is fitted in the cosine basis",)
    why = (f"no spectral metric: {'; '.join(free)}",)
    if not uneven:
        weights = hessian_diagonal(rest, problem.X.shape)
        assert weights is not None
        spread = float(weights.max() / weights.min())
        if spread >= _UNEVEN:
            return "diagonal", (*why, f"curvatures of the entries of x differ by {spread:.2g}: each has its own weight")
        uneven.append(f"curvatures of the entries of x differ by {spread:.2g} only")
    return "blocks", (*why, f"no diagonal metric: {'; '.join(uneven)}")


def _spectral_obstacles(problem: SaddleProblem) -> list[str]:
    """What keeps a metric that is not entrywise, fitted to the Hessian of f, from being used."""
    if not isinstance(problem.X, FullSpace | Ball):
        return [f"X is {problem.X}, whose constraint can be active"]
    return [] if Oracles(problem).lifted(problem.f).has_hessian else ["f offers no products with its Hessian"]


def _diagonal_obstacles(problem: SaddleProblem, rest: Function) -> list[str]:
    obstacles = []
    if not isinstance(problem.X, FullSpace | Box):
        obstacles.append(f"X is {problem.X}, whose projection mixes the entries")
    if hessian_diagonal(rest, problem.X.shape) is None:
        obstacles.append("f does not show the diagonal of its Hessian")
    return obstacles


def _check_given(problem: SaddleProblem, metric: Metric) -> None:
    """Refuse a metric that does not fit the block, before any work."""
    shape = getattr(metric, "symbol", np.empty(problem.X.shape))
    complaints = []
    if np.shape(shape) not in ((), problem.X.shape):
        complaints.append(f"metric {metric.name!r} has shape {np.shape(shape)}; expected {problem.X.shape}.")
    allowed = (FullSpace | Box) if isinstance(metric, Entrywise) else (FullSpace | Ball)
    if not isinstance(metric, Blocks) and not isinstance(problem.X, allowed):
        complaints.append(f"metric {metric.name!r} can not be used: X is {problem.X}, whose constraint mixes with it.")
    if not isinstance(metric, Entrywise) and _is_rough(problem.f, problem.X):
        complaints.append(f"metric {metric.name!r} needs a smooth f: a proximal step of f does not fit it.")
    raise_all("solve", complaints)


def _is_rough(f: Function, X: Domain) -> bool:
    """Whether f is known to have kinks or a Hölder gradient; a simple part says so on unbounded sets too."""
    form = split_simple(f, X)[1].separable_form()
    if form is not None and form.powers:
        return True
    try:
        return f.smoothness(X).nu < 1.0
    except InputError:
        return False
