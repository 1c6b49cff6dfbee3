"""The paper's frozen tomography plan against its weighted cost and against the NumPy twin."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

import saddleslide as ss
from benchmarks.speed.timing import Clock
from saddleslide.kernels.switch import jit
from saddleslide.methods.sliding import bilinear_recursion
from saddleslide.oracles.oracles import Oracles
from saddleslide.paper.instances import instance
from saddleslide.theory.plan import weigh_calls
from saddleslide.theory.restarts import Stage

REGIMES, LOOPS = ("standard", "nonlocal", "holder"), (160, 3, 10)


def measured(rounds: int) -> list[dict[str, Any]]:
    """One row per regime: wall over weighted cost, gain over the twin, distance of the iterates."""
    return [_regime(regime, rounds) for regime in REGIMES]


def _regime(regime: str, rounds: int) -> dict[str, Any]:
    given = instance({"family": "tomography", "regime": regime, "seed": 1, "picture": 0})
    plan = ss.plan(given.problem, order="fgB", loops=LOOPS, metric="identity", regime="degenerate")
    clocks, points = {True: Clock(), False: Clock()}, {}
    costs: dict[str, list[tuple[float, ...]]] = {"wall": [], "cpu": []}
    for _ in range(rounds):
        # Prices are latencies of single calls, by the same oracles, before and after each run.
        before = prices(given.problem)
        for on, clock in clocks.items():
            with jit(on):
                oracles = Oracles(given.problem)
                steps = bilinear_recursion(
                    oracles, Stage(plan.schedule.levels, math.nan), given.problem.start()
                ).steps()
                points[on] = clock.run(lambda steps=steps: [average.copy() for average in steps][-1])
        after = prices(given.problem)
        for unit, seen in costs.items():
            seen.append(tuple(0.5 * (before[unit][name] + after[unit][name]) for name in "fgB"))
    price = {unit: tuple(float(np.median(part)) for part in zip(*seen, strict=True)) for unit, seen in costs.items()}
    weighted = {unit: weigh_calls(vars(oracles.calls), price[unit]) for unit in costs}
    fast, slow = clocks[True].median(), clocks[False].median()
    n = given.problem.X.size
    blocks = [(slice(0, n), "x"), (slice(n, None), "y")]
    return {
        "regime": regime,
        "calls": vars(oracles.calls),
        "microseconds": {name: 1e6 * each for name, each in zip("fgB", price["wall"], strict=True)},
        "weighted": weighted, "compiled": fast, "numpy": slow,
        "wall_over_weighted": fast["wall"] / weighted["wall"], "cpu_over_weighted": fast["cpu"] / weighted["cpu"],
        "numpy_wall_over_weighted": slow["wall"] / weighted["wall"],
        "gain": slow["wall"] / fast["wall"], "cpu_gain": slow["cpu"] / fast["cpu"],
        "distance": {name: _distance(points[True][part], points[False][part]) for part, name in blocks},
    }  # fmt: skip


def _distance(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.abs(a - b).max() / np.abs(b).max())


def prices(problem: ss.SaddleProblem) -> dict[str, dict[str, float]]:
    """Median latencies of single calls, in wall and in processor time: the paper's protocol."""
    oracles, rng = Oracles(problem), np.random.default_rng(0)
    x = problem.X.project(rng.standard_normal(problem.X.shape))
    y = problem.Y.project(rng.standard_normal(problem.Y.shape))
    into_x, into_y = np.empty_like(x), np.empty_like(y)
    calls = {
        "f": [lambda: oracles.f_gradient(x, into_x)],
        "g": [lambda: oracles.g_gradient(y, into_y)],
        "B": [lambda: oracles.forward(x, into_y), lambda: oracles.adjoint(y, into_x)],
    }
    found = {}
    for name, works in calls.items():
        clock = Clock()
        for work in works:
            for _ in range(60):
                clock.run(work)
        found[name] = clock.median()
    return {unit: {name: found[name][unit] for name in "fgB"} for unit in ("wall", "cpu")}
