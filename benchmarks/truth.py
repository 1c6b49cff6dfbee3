"""How often is a claim true? Random problems, methods, metrics and mis-declared constants against an independent check.

    python benchmarks/truth.py --count 2000 --rows truth.jsonl --out benchmarks/results/truth.json
    python benchmarks/truth.py --count 50000 --first 1000000 --rows nightly.jsonl --out nightly.json

A run is correct when it does not claim what the check of tests/independent.py refutes: bounds that a witness violates,
or "solved" at a point whose gap a witness shows to be above the target. Nothing but a result may come out of a run.
Every third problem is given through callables with one constant that is off by 0.1 to 10,000 times.

Each row is written as soon as it is known; the same command goes on where it stopped. `--again` repeats the seeds of
rows that were wrong or raised.
"""

from __future__ import annotations

import argparse
import json
import sys
import traceback
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np

import saddleslide as ss

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from independent import ROUNDING, Truth
from planted import planted

FACTORS = (0.1, 0.5, 2.0, 10.0, 100.0, 1_000.0, 10_000.0)
CONSTANTS = ("smoothness", "modulus", "norm")
FIXED, THEOREM, RESTARTS = "fixed plan", "theorem plan", "restarts"
METRICS = ("blocks", "diagonal", "spectral")
# The doors of the library come up as often as all named methods together.
DOORS = ("auto", "adaptive", *(f"adaptive, {metric}" for metric in METRICS), FIXED, THEOREM, RESTARTS)
LIMITS = {"f": 400, "g": 400, "B": 3000}


def declared(function, domain, constant, factor):
    """The function through callables, with one constant that is off by a factor."""
    try:
        smoothness = function.smoothness(domain)
    except ss.errors.InputError:
        smoothness = None
    modulus = function.strong_convexity(domain)
    if constant == "smoothness" and smoothness is not None:
        smoothness = ss.Holder(smoothness.nu, smoothness.H * factor)
    if constant == "modulus":
        # A function without curvature is declared to have some.
        modulus = factor * (modulus or 0.01)
    return ss.functions.Custom(function.gradient, function.value, smoothness, modulus)


def misdeclared(problem, constant, factor, side):
    """The problem with a false constant."""
    given = {"f": problem.f, "g": problem.g, "B": problem.coupling, "X": problem.X, "Y": problem.Y}
    if constant == "norm":
        given["B"] = ss.couplings.as_coupling(problem.coupling, norm=factor * problem.coupling.norm.upper)
    else:
        given[side] = declared(given[side], given["X" if side == "f" else "Y"], constant, factor)
    return ss.SaddleProblem(**given)


def outcome(problem, method, rtol, tol):
    """The result of one run; None where the method does not take the problem."""
    try:
        if method == FIXED:
            plan = ss.plan(problem, max(tol, 1e-9), order="fgB", loops=(8, 2, 8))
            return ss.run(problem, plan, max_calls=LIMITS)
        if method == THEOREM:
            return ss.run(problem, ss.plan(problem, max(tol, 1e-6), regime="degenerate"), max_calls=LIMITS)
        if method == RESTARTS:
            return ss.run(problem, ss.plan(problem, max(tol, 1e-6), regime="restarts"), max_calls=LIMITS)
        name, _, metric = method.partition(", ")
        return ss.solve(
            problem, rtol=rtol, method=name, metric=metric or "auto", max_steps=80, max_calls=LIMITS
        )  # fmt: skip
    except ss.errors.InputError:
        return None


def one(seed):
    """What came of one run: status, and what the check refutes."""
    rng = np.random.default_rng(seed)
    p = planted(seed, largest=16)
    pool = DOORS if rng.random() < 0.5 else tuple(ss.methods)
    method = pool[int(rng.integers(len(pool)))]
    told, factor, side, problem = "", 1.0, "", p.problem
    if seed % 3 == 2:
        told, factor = CONSTANTS[int(rng.integers(3))], FACTORS[int(rng.integers(len(FACTORS)))]
        side = "fg"[int(rng.integers(2))]
        problem = misdeclared(problem, told, factor, side)
    row = {"seed": seed, "method": method, "regime": p.regime, "told": told, "side": side, "factor": factor}
    truth = Truth(replace(p, problem=problem), steps=20)
    result = outcome(problem, method, p.rtol, p.rtol * truth.gap(*p.problem.start()))
    if result is None:
        return {**row, "status": "REFUSED", "wrong": []}
    wrong = [str(c) for c in truth.complaints(result.x, result.y, result.lower, result.upper)]
    shown = truth.gap(result.x, result.y)
    margin = 1e3 * ROUNDING * truth.size(result.x, result.y)
    met = shown <= result.known_target * (1.0 + 1e-6) + margin
    if result.success and result.known_target > 0.0 and not met:
        wrong.append(f"gap {shown:.3e} above the target {result.known_target:.3e}")
    return {**row, "status": result.status.name, "wrong": wrong}


def attempted(seed):
    """The row of a seed; one that says so where anything but a result came out."""
    try:
        return one(seed)
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        return {"seed": seed, "status": "RAISED", "wrong": [f"{error!r} at {Path(where.filename).name}:{where.lineno}"]}


def summary(rows):
    """Counts by status, and the correct rate of those that claim something."""
    ran = [row for row in rows if row["status"] not in ("REFUSED", "RAISED")]
    solved = [row for row in ran if row["status"] == "SOLVED"]
    # A bound that rests on a declared modulus is not "solved": its own status says what it rests on.
    sure = [row for row in ran if row["status"] != "MET_AS_DECLARED"]
    return {
        "runs": len(ran),
        "statuses": dict(sorted(Counter(row["status"] for row in ran).items())),
        "solved": len(solved),
        "solved_and_true": sum(not row["wrong"] for row in solved),
        "bounds_refuted": sum(bool(row["wrong"]) for row in sure),
        "correct_rate": sum(not row["wrong"] for row in sure) / max(len(sure), 1),
        "refuted_as_declared": sum(bool(row["wrong"]) for row in ran) - sum(bool(row["wrong"]) for row in sure),
        "wrong": [row for row in sure if row["wrong"]][:40],
    }


def report(rows):
    """The summary of all rows, by true and false constants."""
    parts = {"true constants": [row for row in rows if row["seed"] % 3 != 2]}
    parts["false constants"] = [row for row in rows if row["seed"] % 3 == 2]
    ran = [row for row in rows if row["status"] not in ("REFUSED", "RAISED")]
    return {
        **{name: summary(part) for name, part in parts.items()},
        "by method": dict(sorted(Counter(row["method"] for row in ran).items())),
        "by regime": dict(sorted(Counter(row["regime"] for row in ran).items())),
        "unhandled": [row for row in rows if row["status"] == "RAISED"],
    }


def known_rows(path):
    """What earlier calls have written; the last row of a seed counts."""
    if path is None or not path.exists():
        return {}
    lines = path.read_text(encoding="utf-8").splitlines()
    rows = []
    for line in lines:
        try:
            rows.append(json.loads(line))
        except ValueError:
            # A line that a kill has cut short.
            continue
    return {row["seed"]: row for row in rows}


def carry_out(chosen):
    """All seeds that are missing, each written at once."""
    rows = known_rows(chosen.rows)
    for seed in [seed for seed, row in rows.items() if row["wrong"] and chosen.again]:
        yield attempted(seed)
    ran = sum(row["status"] != "REFUSED" for row in rows.values())
    seed = chosen.first
    while ran < chosen.count:
        if seed not in rows:
            row = attempted(seed)
            ran += row["status"] != "REFUSED"
            yield row
        seed += 1


def main() -> None:
    """Run what is missing, print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--rows", type=Path)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--again", action="store_true")
    chosen = parser.parse_args()
    np.seterr(all="ignore")
    rows = known_rows(chosen.rows)
    for row in carry_out(chosen):
        rows[row["seed"]] = row
        if chosen.rows is not None:
            with chosen.rows.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")
    text = json.dumps(report(list(rows.values())), indent=1)
    if chosen.out is not None:
        chosen.out.write_text(text + "\n", encoding="utf-8")
    sys.stdout.write(text + "\n")


if __name__ == "__main__":
    main()
