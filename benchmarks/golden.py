"""The same runs, bit by bit: what a change of the code that should change no answer is held against.

    python benchmarks/golden.py --out benchmarks/results/golden.json
    python benchmarks/golden.py --check benchmarks/results/golden.json

Problems of the gallery and of every kind of function, with `solve` by every method and metric that takes them, and the
plans of the theorems in every regime, each with compiled loops and without: status, calls, and a hash of the bits of x
and y. Bits belong to one machine and one set of versions, which the file names; elsewhere compare statuses and calls.
Only public names are used, so that the file outlives any move of the code.

The file holds the answers of the commit that wrote it last, and is no reference for their being right. A change that
should change no answer is checked against it; one that changes answers on purpose writes it anew in the same commit,
whose message says which lines changed and why. On another processor write one of the commit before and compare with
that.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import subprocess
import sys
import warnings
from pathlib import Path

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numba
import numpy as np
import scipy

import saddleslide as ss

F, D = ss.functions, ss.domains
LIMITS = {"f": 300, "g": 300, "B": 2000}


def quartic() -> F.Custom:
    return F.Custom(
        gradient=lambda x: x**3 + x - 0.2,
        value=lambda x: float((x**4).sum() / 4 + (x**2).sum() / 2 - 0.2 * x.sum()),
        smoothness=ss.Holder(1.0, 4.0),
        strong_convexity=1.0,
    )


def problems() -> dict[str, ss.SaddleProblem]:
    rng = np.random.default_rng(0)
    A, b, B = rng.standard_normal((12, 6)), rng.standard_normal(12), rng.standard_normal((4, 6))
    logistic = F.Logistic(rng.standard_normal((5, 4)), [1, -1, 1, 1, -1])
    tilted = F.Quadratic(1.0) + F.Linear(rng.standard_normal(6))
    box, small = D.Box(-1.0, 1.0, shape=6), D.Box(-1.0, 1.0, shape=4)
    free, free_y = D.FullSpace(6), D.FullSpace(4)
    costs, graph = rng.random((4, 5)), np.array([[0, 1, 0, 1], [1, 0, 1, 0], [0, 1, 0, 1], [1, 0, 1, 0]])

    def problem(f, g, X=box, Y=small):
        return ss.SaddleProblem(f=f, g=g, B=B, X=X, Y=Y)

    return {
        "least squares": problem(F.LeastSquares(A, b, ridge=1e-2), F.Zero(), X=free),
        "lasso": problem(F.LeastSquares(A, b) + 0.1 * F.Power(0.0), F.Zero()),
        "costly g": problem(F.LeastSquares(A, b), logistic),
        "simple": problem(tilted, F.Quadratic(0.5)),
        "free": problem(tilted, F.Quadratic(0.5), X=free, Y=free_y),
        "custom": problem(quartic(), F.Huber(0.5)),
        "mirrored": problem(F.Huber(0.5), logistic),
        "ball": problem(F.LeastSquares(A, b), F.Huber(0.5), X=D.Ball(1.0, shape=6), Y=D.Ball(1.0, shape=4)),
        "rough": ss.gallery.synthetic(0.5, 0.25, d=12),
        "smooth": ss.gallery.synthetic(1.0, 1.0, d=12),
        "game": ss.gallery.matrix_game(rng.standard_normal((5, 6))),
        "transport": ss.gallery.transport(costs, np.full(4, 0.25), np.full(5, 0.2), regularisation=0.1),
        "constrained": ss.gallery.constrained(F.Quadratic(1.0) + F.Linear(A[0]), A[:3], b[:3]),
        "consensus": ss.gallery.consensus([F.Quadratic(1.0) + F.Linear(row[:3]) for row in A[:4]], graph, shape=3),
        "inverse": ss.gallery.lp_inverse(A, b, weight=0.1, p=3.0, ridge=0.01),
        "tomography": ss.gallery.tomography("standard", n=12),
        "nonlocal": ss.gallery.tomography("nonlocal", n=10),
        "low dose": ss.gallery.realistic_tomography("low_dose", n=12),
        "denoise": ss.gallery.denoise(rng.random((9, 9)), 0.1),
        "inpaint": ss.gallery.inpaint(rng.random((9, 9)), rng.random((9, 9)) > 0.3, 0.1, huber=0.01),
    }


def noisy() -> ss.SaddleProblem:
    rng = np.random.default_rng(1)
    f = F.Noisy(F.Quadratic(1.0) + F.Linear(rng.standard_normal(6)), 0.3)
    B, box, small = rng.standard_normal((4, 6)), D.Box(-1.0, 1.0, shape=6), D.Box(-1.0, 1.0, shape=4)
    return ss.SaddleProblem(f=f, g=F.Noisy(F.Quadratic(0.5), 0.2), B=B, X=box, Y=small)


def cases():
    """(name, what to run), every run with limits, so that the whole takes a minute."""
    for name, problem in problems().items():
        for method in ("auto", "adaptive", *METHODS):
            yield (
                f"solve, {name}, {method}",
                lambda p=problem, m=method: ss.solve(p, reduction=1e-5, method=m, max_calls=LIMITS, max_steps=400),
            )
        for metric in ("blocks", "diagonal", "spectral"):
            yield (
                f"solve, {name}, metric {metric}",
                lambda p=problem, m=metric: ss.solve(p, reduction=1e-5, metric=m, max_calls=LIMITS, max_steps=200),
            )
        for settings in SETTINGS:
            yield (
                f"plan, {name}, {settings}",
                lambda p=problem, s=settings: ss.run(p, ss.plan(p, 0.05, **s), max_calls=LIMITS),
            )
    yield "sampled solve", lambda: ss.solve(noisy(), tol=0.3, rng=3, max_calls={"f": 4000, "g": 4000, "B": 20000})
    yield "sampled plan", lambda: ss.run(noisy(), ss.plan(noisy(), 0.5, regime="degenerate"), rng=3, max_calls=LIMITS)


METHODS = (
    "mirror-prox", "pdhg", "condat-vu", "admm", "opapc", "l-bfgs", "apdg", "gradient-sliding", "universal-primal-dual",
    "accelerated-mirror-prox", "mirror-prox-sliding", "universal-mirror-prox", "recursive-sliding", "proved-sliding",
    "two-level-sliding", "lockstep", "accelerated-gradient", "universal-gradient",
)  # fmt: skip
SETTINGS = (
    {"regime": "degenerate"},
    {"regime": "restarts"},
    {"regime": "restarts", "anchors": True},
    {"regime": "mixed"},
    {"order": "fgB", "loops": (4, 2, 8)},
    {"order": "Bgf", "loops": (6, 2, 2)},
    {"order": "fgB", "loops": (4, 2, 8), "coupling_step": "primal-dual"},
)


def bits(array) -> str:
    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()[:16]


def rows() -> dict[str, dict]:
    """Every case that its method takes."""
    found = {}
    for name, work in cases():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                result = work()
            except ss.errors.SaddleslideError as error:
                found[name] = {"refused": type(error).__name__}
                continue
        calls = result.calls
        found[name] = {
            "status": result.status.name, "calls": [calls.f, calls.g, calls.B],
            "x": bits(result.x), "y": bits(result.y),
        }  # fmt: skip
    return found


def versions() -> dict[str, str]:
    return {
        "machine": platform.machine(), "python": platform.python_version(), "numpy": np.__version__,
        "scipy": scipy.__version__, "numba": numba.__version__,
    }  # fmt: skip


def both() -> dict:
    """Compiled and not, each in a process of its own."""
    found = {}
    for switch in ("1", "0"):
        environment = {**os.environ, "SADDLESLIDE_JIT": switch, "OPENBLAS_NUM_THREADS": "1"}
        done = subprocess.run([sys.executable, __file__, "--rows"], env=environment, capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(done.stderr)
        found |= {f"{name}, compiled" if switch == "1" else name: row for name, row in json.loads(done.stdout).items()}
    return {"versions": versions(), "runs": found}


def differences(known: dict, now: dict) -> list[str]:
    same = known["versions"] == now["versions"]
    kept = ("refused", "status", "calls", "x", "y") if same else ("refused", "status", "calls")
    lines = [] if same else [f"other versions ({known['versions']}): bits are not compared"]
    for name in sorted(known["runs"].keys() | now["runs"].keys()):
        old, new = known["runs"].get(name), now["runs"].get(name)
        if old is None or new is None:
            lines.append(f"{name}: {'new' if old is None else 'gone'}")
        elif changed := [key for key in kept if old.get(key) != new.get(key)]:
            lines.append(f"{name}: " + ", ".join(f"{key} {old.get(key)} -> {new.get(key)}" for key in changed))
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", action="store_true", help="print the rows of this process")
    parser.add_argument("--out", type=Path, help="write the file")
    parser.add_argument("--check", type=Path, help="compare with a file; exit code 1 where anything differs")
    chosen = parser.parse_args()
    if chosen.rows:
        print(json.dumps(rows()))
        return
    now = both()
    if chosen.out is not None:
        lines = ",\n".join(f"  {json.dumps(name)}: {json.dumps(row)}" for name, row in now["runs"].items())
        head = json.dumps(now["versions"])
        chosen.out.write_text(f'{{\n "versions": {head},\n "runs": {{\n{lines}\n }}\n}}\n', encoding="utf-8")
    ran = sum("status" in row for row in now["runs"].values())
    print(f"{ran} runs, {len(now['runs']) - ran} refused")
    if chosen.check is not None:
        lines = differences(json.loads(chosen.check.read_text(encoding="utf-8")), now)
        print("\n".join(lines) or "no difference")
        sys.exit(bool([line for line in lines if "bits are not compared" not in line]))


if __name__ == "__main__":
    main()
