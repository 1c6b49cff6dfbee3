"""SCS, operator splitting with one factorisation."""

from __future__ import annotations

import numpy as np
import scs
from qp import Answer, Program, conic, solver


def solve(program: Program, tolerance: float, seconds: float) -> Answer:
    P, A, b, equations = conic(program)
    data = {"P": P if program.p.any() else None, "A": A, "b": b, "c": program.q}
    cone = {"z": equations, "l": b.size - equations}
    limits = {"time_limit_secs": seconds, "max_iters": 10**7, "verbose": False}
    found = scs.SCS(data, cone, eps_abs=tolerance, eps_rel=tolerance, **limits).solve()
    x, y = found["x"], found["y"]
    ended = np.isfinite(x).all() and np.isfinite(y).all()
    return (x, y) if ended else "no finite point"


if __name__ == "__main__":
    solver(solve, f"scs {scs.__version__}")
