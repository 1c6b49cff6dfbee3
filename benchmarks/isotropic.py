"""Isotropic total variation beside ten lines of NumPy that know the answer: processor time, interleaved, medians.

python -m benchmarks.isotropic --out benchmarks/results/isotropic.json

The peer is PDHG of Chambolle and Pock, plain and accelerated, from the noisy picture, with the best of several step
sizes; it stops at the first x whose objective is within `rtol` of the true minimum, and makes no check on the way.
`ss.minimize` is not tuned, and its time has building, planning and the certificate in it.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import statistics
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

import saddleslide as ss

Array = npt.NDArray[np.float64]
F, RTOL, WEIGHT, REPEATS = ss.functions, 1e-3, 0.1, 3


def noisy(shape: tuple[int, ...]) -> Array:
    i, j, *_, last = (*np.meshgrid(*(np.arange(n) / n for n in shape), indexing="ij"),) * (2 if len(shape) == 2 else 1)
    truth = 1.0 * ((i - 0.5) ** 2 + (j - 0.4) ** 2 < 0.09) + 0.5 * (abs(i - j) < 0.1) + 0.3 * last
    return np.asarray(truth + 0.1 * np.random.default_rng(0).standard_normal(shape))


def solved(b: Array, rtol: float) -> ss.Result:
    D = ss.operators.FiniteDifferences(b.shape)
    return ss.minimize(F.LeastSquares(None, b) + WEIGHT * F.L21(axis=0) @ D, rtol=rtol)


def value(b: Array, x: Array) -> float:
    squares = sum(np.diff(x, axis=k, append=x.take([-1], axis=k)) ** 2 for k in range(x.ndim))
    return float(0.5 * np.sum((x - b) ** 2) + WEIGHT * np.sum(np.sqrt(squares)))


def pdhg(b: Array, tau: float, gamma: float) -> Iterator[Array]:
    """The points of PDHG, accelerated with the modulus gamma of the squares; plain with 0."""
    x = beyond = b
    y, sigma = np.zeros((b.ndim, *b.shape)), 1.0 / (tau * 4 * b.ndim)
    first, last = ([(slice(None),) * k + (part,) for k in range(b.ndim)] for part in (slice(1, None), slice(None, -1)))
    while True:
        for k in range(b.ndim):
            y[k][last[k]] += sigma * (beyond[first[k]] - beyond[last[k]])
        y /= np.maximum(1.0, np.sqrt((y * y).sum(axis=0)) / WEIGHT)
        pull = np.zeros_like(b)
        for k in range(b.ndim):
            pull[first[k]] += y[k][last[k]]
            pull[last[k]] -= y[k][last[k]]
        new = (x + tau * (b - pull)) / (1.0 + tau)
        theta = 1.0 / math.sqrt(1.0 + 2.0 * gamma * tau)
        tau, sigma = tau * theta, sigma / theta
        beyond, x = new + theta * (new - x), new
        yield x


def tune(b: Array, target: float, most: int = 150) -> tuple[int, float, float]:
    """The fewest steps to the target, with the tau and gamma that take them."""
    found = (most, math.nan, math.nan)
    for tau, gamma in itertools.product((0.1, 0.5), (0.0, 1.0)):
        for count, x in enumerate(itertools.islice(pdhg(b, tau, gamma), found[0]), 1):
            if value(b, x) <= target:
                found = min(found, (count, tau, gamma))
                break
    return found


def compare(shape: tuple[int, ...]) -> dict[str, object]:
    b = noisy(shape)
    exact = solved(b, RTOL / 10.0)
    count, tau, gamma = tune(b, exact.lower * (1.0 + RTOL))
    ours, theirs = [], []
    for _ in range(REPEATS):
        began = time.process_time()
        result = solved(b, RTOL)
        ours.append(time.process_time() - began)
        began = time.process_time()
        for _ in itertools.islice(pdhg(b, tau, gamma), count):
            pass
        theirs.append(time.process_time() - began)
    mine, peer = statistics.median(ours), statistics.median(theirs)
    return {
        "shape": shape, "status": result.status.name, "products": result.calls.B, "seconds": round(mine, 3),
        "peer seconds": round(peer, 3), "peer steps": count, "peer tau, gamma": (tau, gamma),
        "ratio": round(mine / peer, 2),
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path)
    given, rows = parser.parse_args(), []
    for shape in ((512, 512), (64, 64, 64)):
        rows.append(compare(shape))
        print(*rows[-1].values(), sep="  ")
    if given.out:
        command = "python -m benchmarks.isotropic --out benchmarks/results/isotropic.json"
        given.out.write_text(json.dumps({"command": command, "rtol": RTOL, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
