"""Random objectives of `ss.minimize` against an interior-point solver: success, true bounds, and what is left.

python -m benchmarks.objectives [--seeds 120] [--first 0] [--out benchmarks/results/objectives.json]

Each has one to four terms of the catalogue, of x itself or behind a dense matrix, differences or a sum, with factors
over five decades, and a set. Values come from Clarabel at 1e-9. `ss.minimize` runs with nothing set but a limit. An
objective without a minimum must not end in success; the others should. What is left are entropies behind differences:
the last difference along an axis is always 0, where the slope of an entropy, and so its multiplier, is infinite.
"""

from __future__ import annotations

import argparse
import json
import math
import time
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import cvxpy as cp
import numpy as np

import saddleslide as ss

F, D, O = ss.functions, ss.domains, ss.operators  # noqa: E741
SECONDS = 20.0
Pair = tuple[ss.functions.Function, Callable[[Any], Any]]


def term(rng: Any, shape: tuple[int, ...]) -> tuple[str, Pair]:
    """A function of arrays of a shape, and the same for the other solver, of vectors."""
    m = math.prod(shape)
    c, q = rng.standard_normal(m), float(rng.uniform(0.05, 0.95))
    counts = rng.poisson(3.0, m).astype(float)
    low, high = np.sort(rng.standard_normal((2, m)), 0)
    moved: dict[str, Pair] = {
        "L1": (F.L1(), cp.norm1),
        "L2": (F.L2(), cp.norm),
        "LInf": (F.LInf(), cp.norm_inf),
        "PNorm": (F.PNorm(3.0), lambda z: cp.pnorm(z, 3)),
        "Quantile": (F.Quantile(q), lambda z: cp.sum(cp.maximum(q * z, (q - 1.0) * z))),
        "Hinge": (F.Hinge(), lambda z: cp.sum(cp.pos(1.0 - z))),
        "SquaredHinge": (F.SquaredHinge(), lambda z: 0.5 * cp.sum_squares(cp.pos(1.0 - z))),
        "EpsilonInsensitive": (F.EpsilonInsensitive(0.1), lambda z: cp.sum(cp.pos(cp.abs(z) - 0.1))),
        "Huber": (F.Huber(1.0), lambda z: 0.5 * cp.sum(cp.huber(z, 1.0))),
        "Quadratic": (F.Quadratic(0.5), lambda z: 0.25 * cp.sum_squares(z)),
        "LogSumExp": (F.LogSumExp(), cp.log_sum_exp),
        "Max": (F.Max(), cp.max),
    }
    still: dict[str, Pair] = {
        "Entropy": (F.Entropy(), lambda z: -cp.sum(cp.entr(z))),
        "KullbackLeibler": (F.KullbackLeibler(counts.reshape(shape)), lambda z: cp.sum(cp.kl_div(counts, z))),
        "Linear": (F.Linear(c.reshape(shape)), lambda z: c @ z),
        "Box": (
            F.Indicator(D.Box(low.reshape(shape) - 1.0, high.reshape(shape) + 1.0)),
            lambda z: (z, low - 1.0, high + 1.0),
        ),
    }
    name = str(rng.choice([*moved, *still]))
    if name in still:
        return name, still[name]
    mine, theirs = moved[name]
    return name, (mine.translated(c.reshape(shape)), lambda z: theirs(z - c))


def operator(rng: Any, n: int) -> tuple[str, Any, Any]:
    """A matrix that stands before a term, for both solvers; absent for the term of x itself."""
    kind = str(rng.choice(["x", "dense", "differences", "sums"]))
    if kind == "x":
        return kind, None, np.eye(n)
    if kind == "differences":
        return kind, O.FiniteDifferences((n,)), np.vstack([np.diff(np.eye(n), axis=0), np.zeros((1, n))])
    rows = int(rng.integers(1, n + 3))
    K = 10.0 ** rng.uniform(-1.0, 1.0) * (rng.random((rows, n)) if kind == "sums" else rng.standard_normal((rows, n)))
    return kind, K, K


def region(rng: Any, n: int) -> tuple[str, Any, Callable[[Any], list[Any]]]:
    low, high = np.sort(rng.standard_normal((2, n)), 0)
    c = rng.standard_normal(n)
    catalogue: list[tuple[str, Any, Callable[[Any], list[Any]]]] = [
        ("all", D.FullSpace(n), lambda z: []),
        ("x >= 0", D.NonNegative(n), lambda z: [z >= 0]),
        ("box", D.Box(low, high), lambda z: [z >= low, z <= high]),
        ("simplex", D.Simplex(n), lambda z: [z >= 0, cp.sum(z) == 1]),
        ("l1 ball", D.L1Ball(0.7, n), lambda z: [cp.norm1(z) <= 0.7]),
        ("ball", D.Ball(0.5, center=c), lambda z: [cp.norm(z - c) <= 0.5]),
    ]
    return catalogue[rng.integers(len(catalogue))]


def instance(seed: int) -> tuple[str, Any, Any, Any]:
    """Words for an objective, the objective, its set, and a program of CVXPY."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 13))
    z, objective, trusted, words = cp.Variable(n), None, 0.0, []
    where, over, rows = region(rng, n)
    constraints = rows(z)
    if rng.random() < 0.5:
        A, b = rng.standard_normal((int(rng.integers(1, 2 * n)), n)), None
        b = rng.standard_normal(len(A))
        objective, trusted = F.LeastSquares(A, b), 0.5 * cp.sum_squares(A @ z - b)
        words.append(f"LeastSquares {A.shape}")
    elif rng.random() < 0.3:
        b = rng.standard_normal(n)
        objective, trusted = F.LeastSquares(None, b), 0.5 * cp.sum_squares(z - b)
        words.append("LeastSquares(None)")
    for _ in range(int(rng.integers(1, 4))):
        kind, mine, matrix = operator(rng, n)
        name, (h, theirs) = term(rng, (1, n) if kind == "differences" else (len(matrix),))
        factor = float(10.0 ** rng.uniform(-3.0, 2.0))
        image = matrix @ z
        if name == "Box":
            _, low, high = theirs(image)
            constraints = [*constraints, image >= low, image <= high]
        else:
            trusted = trusted + factor * theirs(image)
        piece = factor * (h if mine is None else h @ mine)
        objective = piece if objective is None else objective + piece
        words.append(f"{factor:.1g} {name} @ {kind} {matrix.shape}")
    return f"{' + '.join(words)} over {where} ({n})", objective, over, cp.Problem(cp.Minimize(trusted), constraints)


def row(seed: int) -> dict[str, Any]:
    words, objective, over, program = instance(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            program.solve(solver="CLARABEL")
            value = float(program.value)
            # An entropy at a point of the solver's own that is just below 0 has no value.
            is_beside = program.status == "optimal" and value == math.inf
            truth = "none" if is_beside else str(program.status)
        except cp.SolverError:
            truth, value = "none", math.nan
    began = time.process_time()
    try:
        found = ss.minimize(objective, over=over, time_limit=SECONDS)
    except ss.errors.InputError as wrong:
        return {"seed": seed, "words": words, "truth": truth, "status": f"refused: {wrong}", "wrong": ""}
    seconds = time.process_time() - began
    wrong = ""
    if truth == "optimal":
        slack = 1e-6 * max(abs(value), 1.0)
        if found.lower > value + slack and not math.isfinite(found.radius):
            wrong = "bound above the minimum"
        if found.success and found.objective > value + found.gap + slack:
            wrong = "success far from the minimum"
    elif truth in ("infeasible", "unbounded") and found.success:
        wrong = f"success where it is {truth}"
    return {
        "seed": seed, "words": words, "truth": truth, "value": value, "status": found.status.name,
        "objective": found.objective, "lower": found.lower, "gap": found.gap, "violation": found.violation,
        "seconds": round(seconds, 2), "calls": [found.calls.f, found.calls.B], "wrong": wrong,
        "method": str(found.plans[-1].method), "success": found.success, "message": found.message,
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=120)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--out", type=Path)
    given, rows = parser.parse_args(), []
    for seed in range(given.first, given.first + given.seeds):
        rows.append(row(seed))
        r = rows[-1]
        if r["wrong"] or (r["truth"] == "optimal" and not r.get("success")):
            print(*(r[key] for key in ("seed", "words", "truth", "status", "wrong")), sep="  ", flush=True)
    solvable = [r for r in rows if r["truth"] == "optimal"]
    short = [r for r in solvable if not r.get("success")]
    seconds = [r["seconds"] for r in solvable if "seconds" in r]
    print(f"{len(solvable)} with a minimum, {len(short)} without success; wrong: {sum(bool(r['wrong']) for r in rows)}")
    print(Counter(r["status"] for r in solvable), f"median {median(seconds)} s, most {max(seconds)} s")
    print("without a minimum:", Counter((r["truth"], r["status"]) for r in rows if r["truth"] != "optimal"))
    if given.out:
        command = f"python -m benchmarks.objectives --seeds {given.seeds} --first {given.first} --out {given.out}"
        given.out.write_text(json.dumps({"command": command, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
