"""SCS, operator splitting with one factorisation. Products are not countable."""

from __future__ import annotations

import math

import numpy as np
import scs
from qp import TOLERANCES, Answer, Program, answers, conic


def solve(program: Program, tolerance: float, seconds: float) -> Answer | str:
    P, A, b, equations = conic(program)
    data = {"P": P if program.p.any() else None, "A": A, "b": b, "c": program.q}
    cone = {"z": equations, "l": b.size - equations}
    limits = {"time_limit_secs": seconds, "max_iters": 10**7, "verbose": False}
    found = scs.SCS(data, cone, eps_abs=tolerance, eps_rel=tolerance, **limits).solve()
    x, y = found["x"], found["y"]
    ended = np.isfinite(x).all() and np.isfinite(y).all()
    return (x, y, found["info"]["iter"], math.nan) if ended else "no finite point"


if __name__ == "__main__":
    answers(solve, TOLERANCES, f"scs {scs.__version__}")
