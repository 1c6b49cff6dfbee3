"""Untuned `solve` on tomography: seconds of the method, with the certificate included, and beside the NumPy twin."""

from __future__ import annotations

from typing import Any

import saddleslide as ss
from benchmarks.speed.timing import Clock
from saddleslide.kernels.switch import jit

REGIMES = ("standard", "nonlocal", "holder")
REALISTIC = ("low_dose", "strong_tv", "sparse_view", "poisson")
TARGETS = (1e-4, 1e-5, 1e-6)


def measured(rounds: int) -> list[dict[str, Any]]:
    """One row per instance and target."""
    problems = {name: ss.gallery.tomography(name) for name in REGIMES}
    problems |= {name: ss.gallery.realistic_tomography(name) for name in REALISTIC}
    return [_row(name, problem, target, rounds) for name, problem in problems.items() for target in TARGETS]


def _row(name: str, problem: ss.SaddleProblem, target: float, rounds: int) -> dict[str, Any]:
    clocks, methods = {True: Clock(), False: Clock()}, {True: [], False: []}
    for _ in range(rounds):
        for on, clock in clocks.items():
            with jit(on):
                result = clock.run(lambda: ss.solve(problem, reduction=target))
            assert result.success
            methods[on].append(result.timings["method"])
    fast, slow = clocks[True].median(), clocks[False].median()
    return {
        "instance": name, "reduction": target, "calls": vars(result.calls),
        "method": sorted(methods[True])[rounds // 2], "numpy method": sorted(methods[False])[rounds // 2],
        "with certificate": fast, "numpy with certificate": slow,
        "gain": slow["wall"] / fast["wall"], "cpu_gain": slow["cpu"] / fast["cpu"],
    }  # fmt: skip
