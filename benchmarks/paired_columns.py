"""Sparse products with columns in pairs against single entries, on the paper's projector, all in turn.

python -m benchmarks.paired_columns --out benchmarks/results/paired_columns.json
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import saddleslide as ss
from saddleslide.operators import sparse
from saddleslide.operators.sparse import SparseRows

Job = Callable[[], object]


def layouts(matrix: object, most: float) -> SparseRows:
    """The rows of a matrix, in pairs where there are at most so many for each entry."""
    before = sparse._PAIRED
    sparse._PAIRED = most
    try:
        return SparseRows(matrix)
    finally:
        sparse._PAIRED = before


def jobs(A: ss.operators.Matrix, most: float) -> dict[str, Job]:
    rows, columns = layouts(A.matrix, most), layouts(A.transpose, most)
    rng, (m, n) = np.random.default_rng(0), A.matrix.shape
    x, y, stack = rng.standard_normal(n), rng.standard_normal(m), rng.standard_normal((2, n))
    return {
        "A x": lambda: rows.product(x, (m,), None),
        "A^T y": lambda: columns.product(y, (n,), None),
        "one pass": lambda: rows.there_and_back(x, y),
        "two probes, one pass": lambda: rows.grams(stack, y),
        "two probes, two stacks": lambda: columns.products(rows.products(stack)),
        "finding the layout": lambda: layouts(A.matrix, most),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--rounds", type=int, default=40)
    chosen = parser.parse_args()
    A = ss.gallery.tomography().f.A
    works = {(name, job): work for name, most in (("single", 0.0), ("paired", 0.65))
             for job, work in jobs(A, most).items()}  # fmt: skip
    seen: dict[tuple[str, str], list[float]] = {key: [] for key in works}
    for _ in range(chosen.rounds):
        for key, work in works.items():
            began = time.process_time()
            work()
            seen[key].append(time.process_time() - began)
    found = {"entries": A.stored, "rounds": chosen.rounds, "milliseconds": {
        name: {job: round(1e3 * statistics.median(seen[name, job]), 3) for job in jobs(A, 0.65)}
        for name in ("single", "paired")
    }}  # fmt: skip
    print(json.dumps(found, indent=1))
    if chosen.out:
        chosen.out.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
