"""`ss.solve` as one more program: a fresh problem for every target, its own certificates timed and counted."""

from __future__ import annotations

import sys
import time

import numpy as np

import saddleslide as ss
from benchmarks.peers.problems import LARGE, NAMES
from benchmarks.peers.programs.form import write


def main() -> None:
    name, out, targets = sys.argv[1:]
    small = ss.SaddleProblem(
        f=ss.functions.LeastSquares(np.eye(2), np.ones(2)), g=ss.functions.Zero(), B=np.eye(2),
        X=ss.domains.FullSpace(2), Y=ss.domains.Box(-1.0, 1.0, shape=2),
    )  # fmt: skip
    ss.solve(small, tol=1e-3)  # imports on first use are not part of a solve, as for the peers
    points, taken = [], []
    for target in map(float, targets.split(",")):
        problem = {**NAMES, **LARGE}[name]()
        began = time.perf_counter()
        result = ss.solve(problem, reduction=target)
        spent = time.perf_counter() - began
        own = {
            "own_f": result.calls.f - result.certificate_calls.f,
            "own_B": result.calls.B - result.certificate_calls.B,
        }
        counted = {"f": result.calls.f, "B": result.calls.B, "iterations": result.nit, **own}
        points.append({"x": result.x.ravel(), "y": result.y.ravel(), "seconds": spent, **counted})
        taken.append(getattr(result.plans[0], "method", "adaptive"))
    write(out, points, f"saddleslide {ss.__version__}, took {', '.join(dict.fromkeys(taken))}")


if __name__ == "__main__":
    main()
