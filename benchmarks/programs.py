"""Simple f and g with a matrix at hand: whole calls of auto, of products alone, and of CVXPY with Clarabel.

    python -m benchmarks.programs [--repeats 3] [--out benchmarks/results/programs.json]

Every call builds its problem anew. Calls are interleaved; of each the smallest processor time of its repeats counts.
One that takes more than 20 s is given up. One thread: OMP_NUM_THREADS=1.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cvxpy as cp
import numpy as np
import scipy.sparse as sparse

import saddleslide as ss

F, D = ss.functions, ss.domains
TARGETS = (1e-2, 1e-4, 1e-6)
MOST_SECONDS = 20.0
Pair = tuple[Callable[[], Any], Callable[[], Any]]


def differences(n: int, order: int) -> Any:
    """Differences of neighbours, or of those."""
    step = sparse.diags_array([-np.ones(n - 1), np.ones(n - 1)], offsets=[0, 1], shape=(n - 1, n)).tocsr()
    return step if order == 1 else (differences(n - 1, 1) @ step).tocsr()


def families(seed: int) -> dict[str, Pair]:
    """By name: our objective or problem, and the same for CVXPY."""
    rng = np.random.default_rng(seed)
    made: dict[str, Pair] = {}

    def add(name: str, ours: Callable[[], Any], theirs: Callable[[], Any]) -> None:
        made[name] = ours, theirs

    A = rng.standard_normal((1500, 120))
    b = A @ rng.standard_normal(120) + rng.standard_t(3, 1500)
    labels = np.sign(A @ rng.standard_normal(120) + 3.0 * rng.standard_normal(1500))

    def quantile(x: Any) -> Any:
        r = b - A @ x
        return cp.sum(cp.maximum(0.3 * r, -0.7 * r))

    add("quantile regression", lambda: F.Quantile(0.3).translated(b) @ A, lambda: (120, quantile, ()))
    add("least absolute deviations", lambda: F.L1().translated(b) @ A, lambda: (120, lambda x: cp.norm1(A @ x - b), ()))
    add(
        "support vectors",
        lambda: F.Quadratic(1.0) + F.Hinge(labels) @ A,
        lambda: (120, lambda x: 0.5 * cp.sum_squares(x) + cp.sum(cp.pos(1 - cp.multiply(labels, A @ x))), ()),
    )
    for n in (2000, 20000):
        signal = np.cumsum(0.3 * rng.standard_normal(n))
        for order, name in ((1, "variation"), (2, "trend")):
            K = differences(n, order)
            add(
                f"{name} of a signal of {n}",
                lambda signal=signal, K=K: F.LeastSquares(None, signal) + 2.0 * F.L1() @ K,
                lambda signal=signal, K=K, n=n: (
                    n, lambda x: 0.5 * cp.sum_squares(x - signal) + 2.0 * cp.norm1(K @ x), ()
                ),
            )  # fmt: skip
    payoffs = rng.standard_normal((300, 340))
    add(
        "matrix game",
        lambda: ss.gallery.matrix_game(payoffs),
        lambda: (340, lambda x: cp.max(payoffs @ x), (lambda x: x >= 0, lambda x: cp.sum(x) == 1)),
    )
    cost, a, c = rng.random((60, 70)), rng.random(60) + 0.1, rng.random(70) + 0.1
    a, c = a / a.sum(), c / c.sum()
    sums = np.vstack([np.kron(np.eye(60), np.ones((1, 70))), np.kron(np.ones((1, 60)), np.eye(70))])
    add(
        "transport",
        lambda: ss.gallery.transport(cost, a, c, regulariser=None),
        lambda: (
            4200, lambda x: cost.ravel() @ x,
            (lambda x: x >= 0, lambda x: sparse.csr_array(sums) @ x == np.concatenate([a, c])),
        ),
    )  # fmt: skip
    E, x = rng.standard_normal((150, 400)), np.maximum(rng.standard_normal(400), 0.0)
    price = E.T @ rng.standard_normal(150) + np.where(x > 0.0, 0.0, rng.random(400))
    add(
        "linear program",
        lambda: ss.SaddleProblem(F.Linear(price), F.Linear(E @ x), E, D.NonNegative(400), D.FullSpace(150)),
        lambda: (400, lambda v: price @ v, (lambda v: v >= 0, lambda v: E @ v == E @ x)),
    )
    return made


def ours(build: Callable[[], Any], rtol: float, method: str) -> tuple[float, bool, str]:
    """Seconds of one whole call, whether it succeeded, and what ran."""
    began, said = time.process_time(), build()
    solve: Any = ss.solve if isinstance(said, ss.SaddleProblem) else ss.minimize
    found = solve(said, rtol=rtol, method=method, time_limit=MOST_SECONDS)
    return time.process_time() - began, found.success, found.plans[0].method


def theirs(build: Callable[[], Any]) -> tuple[float, bool, str]:
    """The same for CVXPY; its tolerance stays 1e-8, as its users have it."""
    began = time.process_time()
    n, objective, rules = build()
    x = cp.Variable(n)
    problem = cp.Problem(cp.Minimize(objective(x)), [rule(x) for rule in rules])
    problem.solve(solver="CLARABEL")
    return time.process_time() - began, problem.status == "optimal", "Clarabel"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    rows = []
    for name, (build, other) in families(0).items():
        for rtol in TARGETS:
            calls = {
                "auto": lambda build=build, rtol=rtol: ours(build, rtol, "auto"),
                "products alone": lambda build=build, rtol=rtol: ours(build, rtol, "adaptive"),
                "CVXPY": lambda other=other: theirs(other),
            }
            row: dict[str, Any] = {"problem": name, "rtol": rtol}
            for turn in range(arguments.repeats):
                for label, call in calls.items():
                    if turn and row[label]["seconds"] > 5.0:
                        continue
                    seconds, success, ran = call()
                    best = min(seconds, row[label]["seconds"]) if turn else seconds
                    row[label] = {"seconds": round(best, 4), "success": bool(success), "ran": ran}
            rows.append(row)
            print(
                f"{name:30} {rtol:.0e}",
                *(f"{k} {row[k]['seconds']:8.3f} {row[k]['success']}" for k in calls),
                row["auto"]["ran"],
            )
    if arguments.out:
        command = f"OMP_NUM_THREADS=1 python -m benchmarks.programs --repeats {arguments.repeats}"
        arguments.out.write_text(json.dumps({"command": command, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
