"""Clarabel, interior point."""

from __future__ import annotations

import clarabel
import numpy as np
from qp import Answer, Program, conic, solver


def solve(program: Program, tolerance: float, seconds: float) -> Answer:
    P, A, b, equations = conic(program)
    cones = [clarabel.ZeroConeT(equations), clarabel.NonnegativeConeT(b.size - equations)]
    settings = clarabel.DefaultSettings()
    settings.verbose, settings.time_limit = False, seconds
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = tolerance
    found = clarabel.DefaultSolver(P, program.q, A, b, cones if b.size > equations else cones[:1], settings).solve()
    x, z = np.array(found.x), np.array(found.z)
    return (x, z) if np.isfinite(x).all() and np.isfinite(z).all() else "no finite point"


if __name__ == "__main__":
    solver(solve, f"clarabel {clarabel.__version__}")
