"""What does proof cost? The part of the processor time of `solve`, and of the calls of each oracle, that judging takes.

python -m benchmarks.judging_share --out benchmarks/results/judging_share.json

Pictures, regression, classification, games and programs, small ones among them, by what `solve` chooses: the median of
five calls after a first one, which compiles. Time is that of the phase "certificate" in `result.timings`, on the clock
of the processor. `--before FILE` puts the rows of an earlier file beside the new ones.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np
import scipy.sparse

import saddleslide as ss
from benchmarks.rough import made as rough
from saddleslide.oracles import clock

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


def picture(name: str, seed: int = 25) -> Callable[[], ss.SaddleProblem]:
    return lambda: ss.gallery.realistic_tomography(name, seed=seed)


def regression(rows: int, columns: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((rows, columns)) / np.sqrt(rows)
    return A, A @ (rng.standard_normal(columns) * (rng.random(columns) < 0.1)) + 0.01 * rng.standard_normal(rows)


def lasso_free() -> Any:
    A, b = regression(100, 300, 9)
    return F.LeastSquares(A, b) + 0.05 * F.L1()


def group_lasso() -> Any:
    A, b = regression(100, 240, 10)
    return F.LeastSquares(A, b, x_shape=(60, 4)) + 0.1 * F.L21(axis=1)


def logistic() -> Any:
    rng = np.random.default_rng(5)
    A = rng.standard_normal((200, 50))
    return F.Logistic(A, np.sign(A @ rng.standard_normal(50) + 0.5 * rng.standard_normal(200))) + 0.01 * F.L1()


def support_vectors() -> Any:
    rng = np.random.default_rng(6)
    A = rng.standard_normal((150, 40))
    return F.Hinge() @ (np.sign(A[:, 0] + 0.3 * rng.standard_normal(150))[:, None] * A) + 1.0 * F.L1()


def completion() -> Any:
    rng = np.random.default_rng(13)
    low = rng.standard_normal((20, 2)) @ rng.standard_normal((2, 20))
    mask = (rng.random((20, 20)) < 0.6).astype(float)
    return F.LeastSquares(ss.operators.Diagonal(mask), mask * low) + 0.5 * F.Nuclear()


def denoising(n: int = 64) -> Any:
    rng = np.random.default_rng(11)
    noisy = np.kron(rng.random((8, 8)), np.ones((n // 8, n // 8))) + 0.1 * rng.standard_normal((n, n))
    return F.LeastSquares(None, noisy) + 0.1 * F.L21(axis=0) @ ss.operators.FiniteDifferences((n, n))


def deblurring(n: int = 64) -> Any:
    rng, K = np.random.default_rng(12), ss.operators.Convolution(np.ones((5, 5)) / 25.0, (n, n))
    blurred = K.forward(np.kron(rng.random((8, 8)), np.ones((n // 8, n // 8)))) + 0.01 * rng.standard_normal((n, n))
    return F.LeastSquares(K, blurred) + 0.005 * F.L21(axis=0) @ ss.operators.FiniteDifferences((n, n))


def program() -> ss.SaddleProblem:
    rng = np.random.default_rng(8)
    B, x = rng.random((10, 30)), rng.random(30) * (rng.random(30) < 0.3)
    return ss.SaddleProblem(
        f=F.Linear(rng.random(30)), g=F.Linear(B @ x), B=B, X=D.NonNegative(30), Y=D.FullSpace(10)
    )  # fmt: skip


def game() -> ss.SaddleProblem:
    B = np.random.default_rng(14).standard_normal((60, 80))
    return ss.SaddleProblem(f=F.Zero(), g=F.Zero(), B=B, X=D.Simplex(80), Y=D.Simplex(60))


def quadratic_game() -> ss.SaddleProblem:
    rng = np.random.default_rng(15)
    sides = []
    for n in (60, 50):
        Q = rng.standard_normal((n, n))
        sides.append(F.Quadratic(Q @ Q.T / n + 0.01 * np.eye(n)) + F.Linear(rng.standard_normal(n)))
    B = 0.1 * rng.standard_normal((50, 60))
    return ss.SaddleProblem(
        f=sides[0], g=sides[1], B=B, X=D.Box(-1.0, 1.0, shape=60), Y=D.Box(-1.0, 1.0, shape=50)
    )  # fmt: skip


def labels_in_steps() -> ss.SaddleProblem:
    rng, n = np.random.default_rng(16), 200
    A, x = rng.standard_normal((300, n)), np.repeat(rng.standard_normal(8), 25)
    steps = scipy.sparse.diags([-1.0, 1.0], [0, 1], shape=(n - 1, n)).tocsr()
    f = F.Logistic(A / np.sqrt(n), np.sign(A @ x + rng.standard_normal(300)), ridge=1e-3)
    return ss.SaddleProblem(f=f, g=F.Zero(), B=steps, X=D.Box(-5.0, 5.0, shape=n), Y=D.Box(-1.0, 1.0, shape=n - 1))


def equalities() -> ss.SaddleProblem:
    rng = np.random.default_rng(17)
    f, B = F.LeastSquares(rng.standard_normal((60, 40)), rng.standard_normal(60)), rng.standard_normal((8, 40))
    return ss.SaddleProblem(f=f, g=F.Linear(rng.standard_normal(8)), B=B, X=D.FullSpace(40), Y=D.FullSpace(8))


# A problem or an objective, and what is asked of it.
CASES: dict[str, tuple[Callable[[], Any], dict[str, Any]]] = {
    "tomography": (lambda: ss.gallery.tomography("standard", seed=21), {"reduction": 1e-4}),
    "tomography, loose": (lambda: ss.gallery.tomography("standard", seed=21), {"reduction": 1e-2}),
    "sparse view": (picture("sparse_view"), {"reduction": 1e-4}),
    "low dose": (picture("low_dose"), {"reduction": 1e-4}),
    "denoising": (denoising, {}),
    "deblurring": (deblurring, {"rtol": 1e-3}),
    "TGV": (tgv, {"tol": 1e-2}),
    "lasso": (lasso, {"tol": 1e-4}),
    "lasso, smooth f": (lasso_smooth, {"tol": 1e-4}),
    "lasso, free": (lasso_free, {}),
    "group lasso": (group_lasso, {}),
    "logistic, l1": (logistic, {}),
    "logistic, steps": (labels_in_steps, {"reduction": 1e-4}),
    "support vectors": (support_vectors, {}),
    "matrix completion": (completion, {"over": D.FullSpace((20, 20))}),
    "fairness": (fairness, {"tol": 1e-3}),
    "linear program": (program, {}),
    "game": (game, {"reduction": 1e-4}),
    "quadratic game": (quadratic_game, {"reduction": 1e-4}),
    "rough, p = 1.5": (lambda: rough(1.5)[0], {"reduction": 1e-3}),
    "equalities": (equalities, {}),
}


def measured(name: str, rounds: int) -> dict[str, object]:
    make, options = CASES[name]
    given, rows = make(), []
    work: Callable[..., ss.Result] = ss.solve if isinstance(given, ss.SaddleProblem) else ss.minimize
    with mock.patch.object(clock, "time", SimpleNamespace(perf_counter=time.process_time)):
        for _ in range(rounds + 1):
            result = work(given, **options)
            rows.append((result.seconds, result.timings["certificate"] / result.seconds))
    # The first run compiles.
    seconds, share = (statistics.median(column) for column in zip(*rows[1:], strict=True))
    judging, own = result.certificate.calls, result.calls
    return {
        "status": result.status.name, "method": result.plans[-1].method, "steps": result.history[-1].step,
        "seconds": round(seconds, 4), "share": round(share, 3),
        "calls of judging": {name: getattr(judging, name) for name in "fgB"},
        "all calls": {name: getattr(own, name) for name in "fgB"},
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--before", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    chosen, rows = parser.parse_args(), {}
    for name in CASES:
        rows[name] = measured(name, chosen.rounds)
        print(name, rows[name], flush=True)
    shares = [float(str(row["share"])) for row in rows.values()]
    summary = {"median": statistics.median(shares), "largest": max(shares)}
    found: dict[str, object] = {"command": "python -m benchmarks.judging_share", "summary": summary, "rows": rows}
    print(summary)
    if chosen.before:
        found["before"] = json.loads(chosen.before.read_text())["rows"]
    if chosen.out:
        chosen.out.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
