"""Time per inner iteration: small dense problems, growth with the size of a picture, overhead of outer iterations."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

import saddleslide as ss
from benchmarks.speed.timing import interleaved
from saddleslide.kernels.switch import jit
from saddleslide.oracles import Oracles
from saddleslide.planning.restarts import Stage
from saddleslide.sliding import bilinear_recursion

SIDES = (64, 128, 256, 512, 1024)


def pass_through(problem: ss.SaddleProblem, loops: tuple[int, int, int]) -> Callable[[], object]:
    """A whole run of a plan, built anew each time."""
    plan = ss.plan(problem, order="fgB", loops=loops, metric="identity", regime="degenerate")
    stage = Stage(plan.levels, math.nan)

    def work() -> object:
        return [None for _ in bilinear_recursion(Oracles(problem), stage, problem.start()).steps()]

    return work


def total_variation(side: int) -> ss.SaddleProblem:
    """Denoising with total variation: every oracle is as cheap as a vector update."""
    rng = np.random.default_rng(0)
    f = ss.functions.Power(1.0, tilt=rng.standard_normal((side, side)))
    box, field = ss.domains.Box(-2.0, 2.0, shape=(side, side)), ss.domains.Box(-0.1, 0.1, shape=(2, side, side))
    return ss.SaddleProblem(f=f, g=ss.functions.Zero(), B=ss.couplings.FiniteDifferences((side, side)), X=box, Y=field)


def small(rounds: int) -> dict[str, Any]:
    """60 x 60 dense: microseconds of an inner iteration above two dense products, compiled and in NumPy."""
    problem = ss.gallery.synthetic(nu_x=1.0, nu_y=1.0, seed=0)
    B = np.asarray(problem.coupling.dense())
    x, out, inner = np.ones(B.shape[1]), np.empty(B.shape[0]), 1000
    run = pass_through(problem, (2, 1, inner // 2))

    def in_numpy() -> object:
        with jit(False):
            return run()

    def products() -> object:
        return [(np.dot(B, x, out=out), np.dot(B.T, x, out=out)) for _ in range(inner)]

    found = interleaved({"compiled": run, "numpy": in_numpy, "two products": products}, rounds)
    each, cpu = ({name: 1e6 * times[unit] / inner for name, times in found.items()} for unit in ("wall", "cpu"))
    return {
        "microseconds": each,
        "overhead": each["compiled"] - each["two products"],
        "cpu_overhead": cpu["compiled"] - cpu["two products"],
    }


def growth(rounds: int) -> dict[str, Any]:
    """Exponent of the number of pixels in the time of an inner iteration, fitted to all sizes."""
    rows = []
    for side in SIDES:
        loops = (2, 1, 40 if side < 512 else 10)
        found = interleaved({"run": pass_through(total_variation(side), loops)}, rounds)["run"]
        rows.append({"side": side, **{name: 1e6 * t / (loops[0] * loops[2]) for name, t in found.items()}})
    pixels = np.log([row["side"] ** 2 for row in rows])
    fits = {name: float(np.polyfit(pixels, np.log([row[name] for row in rows]), 1)[0]) for name in ("wall", "cpu")}
    return {"microseconds": rows, "exponent": fits["wall"], "cpu_exponent": fits["cpu"]}


def outer(rounds: int) -> dict[str, Any]:
    """Overhead of an outer iteration at 64 x 64 in microseconds of the processor, as T_3 goes to 0."""
    problem, count = total_variation(64), 40
    works = {str(T): pass_through(problem, (count, 1, T)) for T in (10, 20, 40, 80)}
    times = {int(T): 1e6 * found["cpu"] / count for T, found in interleaved(works, rounds).items()}
    return {"overhead": {f"{T} and {2 * T}": 2.0 * times[T] - times[2 * T] for T in (10, 40)}, "microseconds": times}
