"""What a second thread brings to products with large sparse matrices, and that it changes no bit."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

import saddleslide as ss
from benchmarks.speed.timing import interleaved
from saddleslide.kernels.threads import use_threads


def measured(rounds: int) -> dict[str, Any]:
    """Wall time with one thread over wall time with two: one gradient of f, and a whole `solve`."""
    problem = ss.gallery.tomography("standard", n=128)
    x = np.random.default_rng(0).standard_normal(problem.X.shape)

    def gradient(count: int) -> object:
        with use_threads(count, "benchmarks"):
            return [problem.f.gradient(x) for _ in range(5)][-1]

    def solved(count: int) -> ss.Result:
        return ss.solve(problem, reduction=1e-5, threads=count)

    works = {
        f"{name}, {count}": (lambda work=work, count=count: work(count))
        for name, work in (("f'", gradient), ("solve", solved))
        for count in (1, 2)
    }
    found = interleaved(works, rounds)
    return {
        "cores": os.cpu_count(),
        "gain": {name: found[f"{name}, 1"]["wall"] / found[f"{name}, 2"]["wall"] for name in ("f'", "solve")},
        "same bits": bool(np.array_equal(gradient(1), gradient(2)) and np.array_equal(solved(1).x, solved(2).x)),
    }
