"""The first solve in a new environment, without a cache of kernels, beside a repeated one: processor time.

python -m benchmarks.cold --out benchmarks/results/cold.json

Every case runs in a process of its own with an empty cache; `first` has the imports in it that the solve causes.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import saddleslide as ss

F = ss.functions


def readme() -> Callable[[], ss.Result]:
    rng = np.random.default_rng(0)
    A, b = rng.standard_normal((200, 20)), rng.standard_normal(200)
    return lambda: ss.minimize(F.Huber(0.5).translated(b) @ A + 0.5 * F.Quadratic(1.0) + 2.0 * F.L1(), tol=1e-6)


def denoising(side: int, tv: str) -> Callable[[], ss.Result]:
    picture = np.random.default_rng(0).random((side, side))
    return lambda: ss.solve(ss.gallery.denoise(picture, 0.1, tv=tv), rtol=1e-3)


def deblurring(side: int) -> Callable[[], ss.Result]:
    picture = np.random.default_rng(0).random((side, side))
    return lambda: ss.solve(ss.gallery.deblur(picture, np.ones((3, 3)) / 9.0, 0.01), rtol=1e-3)


def tomography(side: int) -> Callable[[], ss.Result]:
    problem = ss.gallery.tomography(n=side)
    return lambda: ss.solve(problem, reduction=1e-4)


# With the most seconds that the first solve may take, and how many times those of a repeated one come on top.
CASES: dict[str, tuple[Callable[[], Callable[[], ss.Result]], float, float]] = {
    "README": (readme, 2.0, 0.0),
    "denoise 64": (lambda: denoising(64, "anisotropic"), 4.0, 0.0),
    "isotropic 64": (lambda: denoising(64, "isotropic"), 4.0, 0.0),
    "deblur 64": (lambda: deblurring(64), 4.0, 0.0),
    "tomography 64": (lambda: tomography(64), 4.0, 0.0),
    "denoise 512": (lambda: denoising(512, "anisotropic"), 4.0, 1.5),
    "isotropic 512": (lambda: denoising(512, "isotropic"), 4.0, 1.5),
    "deblur 512": (lambda: deblurring(512), 4.0, 1.5),
}


def seconds(name: str) -> dict[str, float | str]:
    """The first solve of a case in this process, and the second one."""
    run, taken = CASES[name][0](), []
    for _ in range(2):
        began = time.process_time()
        status = run().status.name
        taken.append(round(time.process_time() - began, 3))
    return {"case": name, "status": status, "first": taken[0], "repeated": taken[1]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--case", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.case:
        print(json.dumps(seconds(given.case)))
        return
    rows, kept = [], {key: value for key, value in os.environ.items() if key != "SADDLESLIDE_JIT"}
    for name, (_, most, times) in CASES.items():
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, "-m", "benchmarks.cold", "--case", name]
            environment = kept | {"NUMBA_CACHE_DIR": folder, "OPENBLAS_NUM_THREADS": "1"}
            done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
        row = json.loads(done.stdout)
        row |= {"most": round(most + times * row["repeated"], 3)}
        rows.append(row | {"met": row["first"] <= row["most"]})
        print(*rows[-1].values(), sep="  ")
    if given.out:
        written = {"command": "python -m benchmarks.cold --out benchmarks/results/cold.json", "rows": rows}
        given.out.write_text(json.dumps(written, indent=1) + "\n")


if __name__ == "__main__":
    main()
