"""Time per inner iteration: small dense problems, growth with the size of a picture, overhead of outer iterations."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

import saddleslide as ss
from benchmarks.speed.timing import interleaved
from saddleslide.kernels.switch import jit
from saddleslide.methods.sliding import bilinear_recursion
from saddleslide.oracles.oracles import Oracles
from saddleslide.theory.restarts import Stage

SIDES = (64, 128, 256, 512, 1024)


def pass_through(problem: ss.SaddleProblem, loops: tuple[int, int, int]) -> Callable[[], object]:
    """A whole run of a plan, built anew each time."""
    plan = ss.plan(problem, order="fgB", loops=loops, metric="identity", regime="degenerate")
    stage = Stage(plan.schedule.levels, math.nan)

    def work() -> object:
        return [None for _ in bilinear_recursion(Oracles(problem), stage, problem.start()).steps()]

    return work


def total_variation(side: int) -> ss.SaddleProblem:
    """Denoising with total variation: every oracle is as cheap as a vector update."""
    rng = np.random.default_rng(0)
    f = ss.functions.Power(1.0, tilt=rng.standard_normal((side, side)))
    box, field = ss.domains.Box(-2.0, 2.0, shape=(side, side)), ss.domains.Box(-0.1, 0.1, shape=(2, side, side))
    return ss.SaddleProblem(f=f, g=ss.functions.Zero(), B=ss.operators.FiniteDifferences((side, side)), X=box, Y=field)


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


def outer_step(problem: ss.SaddleProblem, loops: tuple[int, int, int], count: int = 1) -> Callable[[], object]:
    """Some outermost iterations of a run that stands ready: no memory is taken in here for the first time."""
    plan = ss.plan(problem, order="fgB", loops=loops, metric="identity", regime="degenerate")
    recursion = bilinear_recursion(Oracles(problem), Stage(plan.schedule.levels, math.nan), problem.start())
    recursion.step(0)
    return lambda: [recursion.step(1) for _ in range(count)]


def growth(rounds: int) -> dict[str, Any]:
    """Exponent of the number of pixels in the time of an inner iteration, fitted to all sizes.

    An inner iteration is what one more of them adds to an outer iteration. Beside it stands the time of an outer
    iteration over its inner ones, the outer levels included.
    """
    rows = []
    for side in SIDES:
        T, count = (40 if side < 512 else 10), max(1, 2**16 // side**2)
        problem = total_variation(side)
        works = {str(length): outer_step(problem, (2, 1, length), count) for length in (T, 2 * T)}
        found = interleaved(works, rounds)
        added = {unit: found[str(2 * T)][unit] - found[str(T)][unit] for unit in ("wall", "cpu")}
        rows.append({
            "side": side, "T_3": T, **{unit: 1e6 * t / (count * T) for unit, t in added.items()},
            "with outer levels": {unit: 1e6 * t / (count * 2 * T) for unit, t in found[str(2 * T)].items()},
        })  # fmt: skip
    pixels = np.log([row["side"] ** 2 for row in rows])
    fits = {name: float(np.polyfit(pixels, np.log([row[name] for row in rows]), 1)[0]) for name in ("wall", "cpu")}
    whole = float(np.polyfit(pixels, np.log([row["with outer levels"]["wall"] for row in rows]), 1)[0])
    return {
        "microseconds": rows, "exponent": fits["wall"], "cpu_exponent": fits["cpu"],
        "exponent with outer levels": whole,
    }  # fmt: skip


def outer(rounds: int) -> dict[str, Any]:
    """An outer iteration at 64 x 64 is an overhead plus T_3 inner iterations: both, and the departure from that."""
    problem, count, lengths = total_variation(64), 40, (5, 10, 20, 40, 80)
    works = {str(T): outer_step(problem, (2, 1, T), count) for T in lengths}
    found = interleaved(works, rounds)
    answer: dict[str, Any] = {}
    for unit in ("wall", "cpu"):
        times = np.array([1e6 * found[str(T)][unit] / count for T in lengths])
        inner, overhead = np.polyfit(lengths, times, 1, w=1.0 / times)
        line = overhead + inner * np.array(lengths)
        answer[unit] = {
            "overhead": float(overhead), "inner": float(inner), "departure": float(np.abs(times / line - 1.0).max()),
            "microseconds": dict(zip(map(str, lengths), times.tolist(), strict=True)),
        }  # fmt: skip
    return answer
