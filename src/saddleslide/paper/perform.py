"""One run into one row: builds the problem, runs the method, judges the point, writes down what came."""

from __future__ import annotations

import platform
import statistics
import time
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy

import saddleslide
from saddleslide.gallery.pictures import psnr
from saddleslide.oracles.oracles import Oracles
from saddleslide.paper.instances import Instance, instance
from saddleslide.paper.judge import Judge
from saddleslide.paper.kinds import carried_out
from saddleslide.paper.rows import Row, pack
from saddleslide.paper.spec import Run

# On a busy machine the wall clock stretches long calls, which are interrupted, and not short ones: prices would compare
# the load. The processor's clock is coarse on some systems.
_FINE = time.get_clock_info("process_time").resolution <= 1e-6
CLOCK = time.process_time if _FINE else time.perf_counter


def perform(run: Run) -> Row:
    """Carry out one run; a crash becomes a row with the status "failed".

    Examples
    --------
    >>> problem = {"family": "synthetic", "nu_x": 1.0, "nu_y": 0.5}
    >>> row = perform(Run("budgets", "main", "recursion", problem, {"tol": 0.5}))
    >>> row["status"], row["order"], row["calls"]
    ('done', 'fgB', {'f': 16, 'g': 96, 'B': 1920})
    """
    row: Row = {"key": run.key, **run.identity(), "seed": run.problem.get("seed"), "versions": versions()}
    began, spent = time.perf_counter(), time.process_time()
    try:
        row |= {"status": "done", **_carried_out(run)}
    except Exception as error:
        trace = traceback.format_exc(limit=-4)
        row |= {"status": "failed", "error": f"{type(error).__name__}: {error}", "trace": trace}
    # On a machine that others use too, the processor's time says more than the clock's.
    return row | {"total_seconds": time.perf_counter() - began, "cpu_seconds": time.process_time() - spent}


def versions() -> dict[str, str]:
    """Versions that a number may depend on.

    Examples
    --------
    >>> sorted(versions())
    ['numpy', 'python', 'saddleslide', 'scipy']
    """
    return {
        "saddleslide": saddleslide.__version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
    }


def _carried_out(run: Run) -> Row:
    given = instance(run.problem)
    judge = Judge(given, bool(run.settings.get("relative", False)))
    found = carried_out(run, given, judge)
    row: Row = {
        "calls": vars(found.calls),
        "gap": judge(found.x, found.y),
        "seconds": statistics.median(found.seconds),
        "curve": found.curve,
        "plan": found.plan,
        "order": found.order,
        "bound": found.bound,
        **found.more,
    }
    if given.truth is not None:
        row["psnr"] = psnr(found.x, given.truth)
    if run.settings.get("prices", False):
        row["prices"] = prices(given)
    if run.settings.get("picture", False):
        row["picture"] = pack(found.x)
    return row


def prices(given: Instance) -> dict[str, float]:
    """Median isolated latencies of f', g' and one product, in seconds of the processor.

    Examples
    --------
    >>> sorted(prices(instance({"family": "synthetic"})))
    ['B', 'f', 'g']
    """
    oracles = Oracles(given.problem)
    rng = np.random.default_rng(0)
    x = given.problem.X.project(rng.standard_normal(given.problem.X.shape))
    y = given.problem.Y.project(rng.standard_normal(given.problem.Y.shape))
    into_x, into_y = np.empty_like(x), np.empty_like(y)
    calls = {
        "f": [lambda: oracles.f_gradient(x, into_x)],
        "g": [lambda: oracles.g_gradient(y, into_y)],
        "B": [lambda: oracles.forward(x, into_y), lambda: oracles.adjoint(y, into_x)],
    }
    return {name: statistics.median(latency(call) for call in pair for _ in range(60)) for name, pair in calls.items()}


def latency(call: Callable[[], Any]) -> float:
    """Seconds that one call takes of the processor.

    Examples
    --------
    >>> latency(lambda: sum(range(1000))) > 0.0
    True
    """
    began = CLOCK()
    call()
    return CLOCK() - began
