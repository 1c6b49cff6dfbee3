"""How much processor time of a run is spent on certified minima of separable functions: judging once ate most of it.

python -m benchmarks.judging_share --out benchmarks/results/judging_share.json

`--before FILE` puts the rows of an earlier file beside the new ones.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import scipy.sparse

import saddleslide as ss
from saddleslide.certificates import certificate
from saddleslide.certificates import judge as judging
from saddleslide.functions import minimum

F, D = ss.functions, ss.domains


def lasso(n: int = 2000, m: int = 400) -> ss.SaddleProblem:
    """0.1 |x|_1 + 1/2 |Ax - b|^2 on a box, the squares as g."""
    rng = np.random.default_rng(0)
    A, truth = rng.standard_normal((m, n)) / np.sqrt(m), np.zeros(n)
    truth[rng.choice(n, 20, replace=False)] = rng.standard_normal(20)
    b = A @ truth + 0.01 * rng.standard_normal(m)
    return ss.SaddleProblem(
        f=F.Power(0.0, weight=0.1), g=F.Quadratic(1.0) + F.Linear(b), B=A,
        X=D.Box(-5.0, 5.0, shape=n), Y=D.FullSpace(m),
    )  # fmt: skip


def lasso_smooth(n: int = 500, m: int = 200) -> ss.SaddleProblem:
    """The same with the squares in f, and a coupling that does nothing."""
    rng = np.random.default_rng(1)
    A = rng.standard_normal((m, n)) / np.sqrt(m)
    f = F.LeastSquares(A, A[:, :5].sum(axis=1)) + 0.1 * F.Power(0.0)
    return ss.SaddleProblem(
        f=f, g=F.Zero(), B=np.zeros((1, n)), X=D.Box(-5.0, 5.0, shape=n), Y=D.Box(0.0, 0.0, shape=1)
    )  # fmt: skip


def fairness(n: int = 300, m: int = 40) -> ss.SaddleProblem:
    """The worst of m linear losses plus 0.05 |x|_1 on a box."""
    rng = np.random.default_rng(2)
    return ss.SaddleProblem(
        f=F.Power(0.0, weight=0.05), g=F.Linear(rng.uniform(size=m)), B=rng.standard_normal((m, n)) / np.sqrt(n),
        X=D.Box(-1.0, 1.0, shape=n), Y=D.Simplex(m),
    )  # fmt: skip


def tgv(side: int = 400) -> ss.SaddleProblem:
    """Total generalised variation of a line: 1/2 |u - z|^2 + a |Du - v|_1 + b |Dv|_1, v without curvature."""
    rng = np.random.default_rng(3)
    steps = np.linspace(0.0, 1.0, side)
    z = np.abs(steps - 0.5) + (steps > 0.7) + 0.05 * rng.standard_normal(side)
    down = scipy.sparse.diags([-1.0, 1.0], [0, 1], shape=(side - 1, side))
    again = scipy.sparse.diags([-1.0, 1.0], [0, 1], shape=(side - 2, side - 1))
    B = scipy.sparse.bmat([[down, -scipy.sparse.identity(side - 1)], [None, again]]).tocsr()
    bent, pulled = np.zeros(2 * side - 1), np.zeros(2 * side - 1)
    bent[:side], pulled[:side] = 1.0, -z
    bound = np.concatenate([np.full(side - 1, 0.1), np.full(side - 2, 0.5)])
    return ss.SaddleProblem(
        f=F.Quadratic(bent) + F.Linear(pulled), g=F.Zero(), B=B,
        X=D.Box(-3.0, 3.0, shape=2 * side - 1), Y=D.Box(-bound, bound),
    )  # fmt: skip


CASES: dict[str, tuple[Callable[[], ss.SaddleProblem], float, dict[str, int]]] = {
    "lasso": (lasso, 1e-4, {"max_steps": 400}),
    "lasso, smooth f": (lasso_smooth, 1e-4, {"max_steps": 300}),
    "fairness": (fairness, 1e-3, {"max_steps": 400}),
    "TGV": (tgv, 1e-2, {"max_steps": 400}),
}


class Meter:
    """Time inside `tilted_minimum`, whoever asks."""

    def __init__(self) -> None:
        self.seconds, self.asked = 0.0, 0

    def __call__(self, *args: object, **options: object) -> F.TiltedMinimum:
        began = time.process_time()
        try:
            return minimum.tilted_minimum(*args, **options)  # type: ignore[arg-type]
        finally:
            self.seconds += time.process_time() - began
            self.asked += 1


def measured(name: str, rounds: int) -> dict[str, object]:
    make, tol, limits = CASES[name]
    problem, rows = make(), []
    for _ in range(rounds + 1):
        meter = Meter()
        judging.tilted_minimum = certificate.tilted_minimum = meter  # type: ignore[assignment]
        began = time.process_time()
        result = ss.solve(problem, tol=tol, **limits)
        rows.append((time.process_time() - began, meter.seconds, meter.asked))
    # The first run compiles.
    whole, inside, asked = (statistics.median(column) for column in zip(*rows[1:], strict=True))
    return {
        "status": result.status.name,
        "gap": result.gap,
        "seconds": round(whole, 4),
        "in minima": round(inside, 4),
        "minima": asked,
        "share": round(inside / whole, 3),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--before", type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    chosen = parser.parse_args()
    rows = {name: measured(name, chosen.rounds) for name in CASES}
    found: dict[str, object] = {"command": "python -m benchmarks.judging_share", "rows": rows}
    if chosen.before:
        found["before"] = json.loads(chosen.before.read_text())["rows"]
    text = json.dumps(found, indent=1)
    print(text)
    if chosen.out:
        chosen.out.write_text(text + "\n")


if __name__ == "__main__":
    main()
