"""The two coupling steps of a fixed plan side by side: products, seconds and the gap that they reach."""

from __future__ import annotations

from typing import Any

import saddleslide as ss
from benchmarks.speed.timing import Clock
from saddleslide.paper.instances import instance

STEPS = ("extragradient", "primal-dual")


def problems() -> dict[str, tuple[ss.SaddleProblem, tuple[int, int, int]]]:
    """Problems with loop counts: the paper's frozen plan on tomography, and its synthetic family."""
    found = {
        regime: (instance({"family": "tomography", "regime": regime, "seed": 1, "picture": 0}).problem, (160, 3, 10))
        for regime in ("standard", "nonlocal", "holder")
    }
    smooth, rough = (ss.gallery.synthetic(nu_x=nu, nu_y=nu, seed=0) for nu in (1.0, 0.25))
    return found | {"synthetic, nu = 1": (smooth, (32, 4, 64)), "synthetic, nu = 1/4": (rough, (64, 4, 32))}


def measured(rounds: int) -> list[dict[str, Any]]:
    """One row per problem and norm: the same loops with either step."""
    return [
        _row(name, problem, loops, metric, rounds)
        for name, (problem, loops) in problems().items()
        for metric in ("identity", "levelwise")
    ]


def _row(name: str, problem: ss.SaddleProblem, loops: tuple[int, int, int], metric: str, rounds: int) -> dict[str, Any]:
    row: dict[str, Any] = {"instance": name, "metric": metric, "loops": loops}
    plans = {
        step: ss.plan(problem, order="fgB", loops=loops, metric=metric, regime="degenerate", coupling_step=step)
        for step in STEPS
    }
    clocks, results = {step: Clock() for step in STEPS}, {}
    for _ in range(rounds):
        for step, clock in clocks.items():
            results[step] = clock.run(lambda step=step: ss.run(problem, plans[step]))
    for step in STEPS:
        result = results[step]
        row[step] = {
            "products": result.calls.B, "seconds": result.timings["method"], "gap": result.gap,
            "bound": plans[step].bound, **clocks[step].median(),
        }  # fmt: skip
    return row
