"""Rough functions: |Ax - b|^p / p on both sides over boxes, by what `solve` chooses and by adaptive sliding.

    OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python -m benchmarks.rough [--out benchmarks/results/rough.json]

Calls, processor time, the certified gap, and whether the bounds enclose the value that Clarabel finds. A and C are
200 x 300 with entries of variance 1/300, B is 300 x 300 of the same kind, b and c are standard normal.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np

import saddleslide as ss

F, D = ss.functions, ss.domains
# Exponent and reduction of the gap at the start.
CASES = ((1.0, 3e-2), (1.25, 1e-2), (1.5, 1e-4), (1.75, 1e-4))
# Gradients after which adaptive sliding is given up.
MOST = 200


def made(p: float, n: int = 300, m: int = 200) -> tuple[ss.SaddleProblem, tuple[np.ndarray, ...]]:
    rng = np.random.default_rng(0)
    A, C, B = (rng.standard_normal(shape) / np.sqrt(n) for shape in ((m, n), (m, n), (n, n)))
    b, c = rng.standard_normal(m), rng.standard_normal(m)
    f, g = F.Power(p - 1.0).translated(b) @ A, F.Power(p - 1.0).translated(c) @ C
    box = D.Box(-1.0, 1.0, shape=n)
    return ss.SaddleProblem(f=f, g=g, B=B, X=box, Y=box), (A, b, C, c, B)


def true_value(p: float, A: np.ndarray, b: np.ndarray, C: np.ndarray, c: np.ndarray, B: np.ndarray) -> float:
    """Min over x of f(x) + min over u of <c, u> + |u|^q / q + |Bx - C^T u|_1, the maximum over y in dual form."""
    import cvxpy as cp

    x, u = cp.Variable(A.shape[1]), cp.Variable(C.shape[0])
    rest, limits = c @ u + cp.norm1(B @ x - C.T @ u), [cp.abs(x) <= 1.0]
    if p == 1.0:
        whole, limits = cp.norm1(A @ x - b) + rest, [*limits, cp.abs(u) <= 1.0]
    else:
        q = p / (p - 1.0)
        whole = cp.sum(cp.power(cp.abs(A @ x - b), p)) / p + cp.sum(cp.power(cp.abs(u), q)) / q + rest
    return float(cp.Problem(cp.Minimize(whole), limits).solve(solver="CLARABEL"))


def run(problem: ss.SaddleProblem, reduction: float, value: float, method: str) -> dict[str, object]:
    began = time.process_time()
    found = ss.solve(problem, reduction=reduction, method=method, max_calls={"f": MOST, "g": 10 * MOST})
    return {
        "method": found.plans[-1].method, "status": found.status.name, "f": found.calls.f, "g": found.calls.g,
        "B": found.calls.B, "gap": found.gap, "target": found.target, "seconds": round(time.process_time() - began, 2),
        "is_true": bool(found.lower <= value + 1e-5 * abs(value) and found.upper >= value - 1e-5 * abs(value)),
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path)
    chosen, rows = parser.parse_args(), []
    for p, reduction in CASES:
        problem, data = made(p)
        value = true_value(p, *data)
        row = {"p": p, "reduction": reduction, "value": value}
        row |= {method: run(problem, reduction, value, method) for method in ("auto", "adaptive")}
        rows.append(row)
        print(row, flush=True)
    if chosen.out:
        kept = {"command": "OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 python -m benchmarks.rough", "rows": rows}
        chosen.out.write_text(json.dumps(kept, indent=1) + "\n")


if __name__ == "__main__":
    main()
