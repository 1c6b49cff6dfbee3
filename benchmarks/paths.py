"""Twenty values of a weight, one after the other and each by itself: calls and processor time (docs/paths.md).

    python -m benchmarks.paths [--out benchmarks/results/paths.json]

By adaptive sliding, which hands on what it has learnt. Objectives are made anew for both; the data term, and with it
what is known of its matrix, is shared by all.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import saddleslide as ss
from benchmarks.arena.families import noisy, regression, scan

F = ss.functions
VALUES = 20


def lasso(rows: int, columns: int) -> tuple[Callable[[float], F.Function], np.ndarray]:
    A, b, _ = regression(rows, columns, 3)
    data = F.LeastSquares(A, b)
    return lambda weight: data + weight * F.L1(), float(np.abs(A.T @ b).max()) * np.geomspace(0.5, 0.01, VALUES)


def tomography(n: int) -> tuple[Callable[[float], F.Function], np.ndarray]:
    A = scan(n, n)
    data = F.LeastSquares(A, noisy(A, ss.gallery.phantom(0, n).ravel(), 0.01), 1e-4, x_shape=(n, n))
    D = ss.operators.FiniteDifferences((n, n))
    return lambda weight: data + weight * F.L1() @ D, np.geomspace(3e-3, 1e-4, VALUES)


def denoising(n: int) -> tuple[Callable[[float], F.Function], np.ndarray]:
    data = F.LeastSquares(None, ss.gallery.phantom(0, n) + 0.1 * np.random.default_rng(2).standard_normal((n, n)))
    D = ss.operators.FiniteDifferences((n, n))
    return lambda weight: data + weight * F.L1() @ D, np.geomspace(0.2, 0.02, VALUES)


CASES = (
    ("lasso 400 x 200", lambda: lasso(400, 200), 1e-4),
    ("lasso 3000 x 600", lambda: lasso(3000, 600), 1e-4),
    ("lasso 100 x 400", lambda: lasso(100, 400), 1e-3),
    ("tomography 32 x 32", lambda: tomography(32), 1e-3),
    ("tomography 32 x 32", lambda: tomography(32), 1e-4),
    ("denoising 64 x 64", lambda: denoising(64), 1e-4),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="JSON file to write")
    out, rows = parser.parse_args().out, []
    titles = ["f', each by itself", "as a path", "products", "as a path", "processor time, s", "as a path", "ratios"]
    print(f"| problem | rtol | {' | '.join(titles)} |")
    print("|" + " --- |" * 9)
    for name, make, rtol in CASES:
        objective, weights = make()
        # What is loaded and found out once is no part of either.
        ss.minimize(objective(weights[0]), rtol=rtol, method="adaptive")
        sums = []
        for chained in (False, True):
            objectives, began = [objective(weight) for weight in weights], time.process_time()
            asked = {"rtol": rtol, "method": "adaptive"}
            found = ss.path(objectives, **asked) if chained else [ss.minimize(o, **asked) for o in objectives]
            spent = time.process_time() - began
            assert all(result.success for result in found)
            sums.append((sum(r.calls.f for r in found), sum(r.calls.B for r in found), spent))
        pairs = list(zip(*sums, strict=True))
        keys = ("f", "B", "seconds")
        rows.append({"problem": name, "rtol": rtol} | dict(zip(keys, pairs, strict=True)))
        cells = [f"{cold:.3g} | {warm:.3g}" for cold, warm in pairs]
        ratios = ", ".join(f"{warm / cold:.2f}" for cold, warm in pairs if cold)
        print(f"| {name} | {rtol:.0e} | {' | '.join(cells)} | {ratios} |", flush=True)
    if out is not None:
        lines = ",\n".join("  " + json.dumps(row) for row in rows)
        out.write_text(f'{{"version": "{ss.__version__}", "each, path": [\n{lines}\n]}}\n', encoding="utf-8")


if __name__ == "__main__":
    main()
