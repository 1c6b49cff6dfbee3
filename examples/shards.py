"""Logistic regression with a linear constraint; the data are 8 shards on disk that only the workers of a cluster read.

    python examples/shards.py                                  two workers on this machine
    python examples/shards.py --scheduler tcp://127.0.0.1:8786     a cluster that is running

The mean score of a classifier over a protected group must be that over the others: a linear constraint, with its
multiplier as y. f' goes to the workers, the constraint stays here, and sliding calls f' as rarely as it can. Needs the
extra `dask`.
"""

from __future__ import annotations

import argparse
import tempfile
from functools import partial
from pathlib import Path

import numpy as np

import saddleslide as ss

ROWS, COLUMNS, SHARDS = 4000, 30, 8
RIDGE = 1e-3


def write_shards(folder: Path, seed: int) -> np.ndarray:
    """Rows and labels in one file per shard; returns the constraint: mean row of the group minus that of the others."""
    rng = np.random.default_rng(seed)
    truth = rng.standard_normal(COLUMNS)
    sums, counts = np.zeros((2, COLUMNS)), np.zeros(2)
    for k in range(SHARDS):
        A = rng.standard_normal((ROWS // SHARDS, COLUMNS))
        group = (rng.random(len(A)) < 0.4).astype(int)
        A[:, :5] += 0.5 * group[:, None]
        labels = np.where(A @ truth + rng.logistic(size=len(A)) > 0.0, 1.0, -1.0)
        np.savez(folder / f"shard{k}.npz", A=A, labels=labels)
        for one in (0, 1):
            sums[one] += A[group == one].sum(axis=0)
            counts[one] += np.sum(group == one)
    return sums[1] / counts[1] - sums[0] / counts[0]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scheduler", metavar="ADDRESS", help="a running cluster; two workers here when missing")
    parser.add_argument("--workers", type=int, default=2, help="workers here (2)")
    parser.add_argument("--tol", type=float, default=1e-6, help="certified gap of the mean loss (1e-6)")
    chosen = parser.parse_args()
    local, connect = ss.distributed.local, ss.distributed.connect
    cluster = local(chosen.workers) if chosen.scheduler is None else connect(chosen.scheduler)
    with tempfile.TemporaryDirectory() as folder, cluster as client:
        difference = write_shards(Path(folder), seed=0)
        # Each shard has its share of the ridge of the mean loss.
        make = partial(ss.functions.Logistic, ridge=RIDGE * ROWS / SHARDS)
        shards = [ss.distributed.Shard(f"{folder}/shard{k}.npz", make) for k in range(SHARDS)]
        with ss.distributed.DaskSum(client, shards, combine="sum") as f:
            problem = ss.gallery.constrained(f * (1.0 / ROWS), difference[None, :], np.zeros(1))
            result = ss.solve(problem, chosen.tol)
            here = ss.gallery.constrained(ss.functions.PartSum(shards) * (1.0 / ROWS), difference[None, :], np.zeros(1))
            same = ss.solve(here, chosen.tol)
            print(result)
            print("workers hold", sorted(f.placement.values()))
            print(f"the group's scores differ by {abs(float(difference @ result.x)):.1e}")
            print("same bits as in one process:", bool((result.x == same.x).all() and result.gap == same.gap))
            for name, value in f.counts.facts().items():
                print(f"{name}: {value:.4g}")


if __name__ == "__main__":
    main()
