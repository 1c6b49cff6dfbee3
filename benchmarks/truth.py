"""How often is a claim true? Random problems, methods and mis-declared constants against an independent check.

    python benchmarks/truth.py --runs 2000 --out benchmarks/results/truth.json
    python benchmarks/truth.py --runs 50000 --first 1000000 --out nightly.json

A run is correct when it does not claim what the check of tests/independent.py refutes: bounds that a witness violates,
or "solved" at a point whose gap a witness shows to be above the target. Nothing but a result may come out of a run.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np

import saddleslide as ss

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from independent import ROUNDING, Truth
from planted import planted

FACTORS = (0.1, 0.5, 2.0, 10.0, 100.0, 10_000.0)
CONSTANTS = ("smoothness", "modulus", "norm")
FIXED = "fixed plan"
METHODS = ("auto", "adaptive", FIXED, "mirror-prox", "pdhg", "universal-mirror-prox", "condat-vu", "lockstep")


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
        modulus *= factor
    return ss.functions.Custom(function.gradient, function.value, smoothness, modulus)


def misdeclared(problem, constant, factor):
    """The problem with a false constant."""
    if constant == "norm":
        coupling = ss.couplings.as_coupling(problem.coupling, norm=factor * problem.coupling.norm.upper)
        return ss.SaddleProblem(f=problem.f, g=problem.g, B=coupling, X=problem.X, Y=problem.Y)
    f = declared(problem.f, problem.X, constant, factor)
    return ss.SaddleProblem(f=f, g=problem.g, B=problem.coupling, X=problem.X, Y=problem.Y)


def outcome(problem, method, rtol, tol):
    """The result of one run; None where the method does not take the problem."""
    limits = {"max_steps": 80, "max_calls": {"f": 600, "g": 600, "B": 4000}}
    try:
        if method == FIXED:
            plan = ss.plan(problem, max(tol, 1e-9), order="fgB", loops=(8, 2, 8))
            return ss.run(problem, plan, max_calls=limits["max_calls"])
        return ss.solve(problem, rtol=rtol, method=method, **limits)
    except ss.errors.InputError:
        return None


def one(seed, misdeclare):
    """What came of one run: status, and what the check refutes."""
    rng = np.random.default_rng(seed)
    p = planted(seed, largest=16)
    method = METHODS[int(rng.integers(len(METHODS)))]
    told, factor = ("", 1.0)
    problem = p.problem
    if misdeclare:
        told, factor = CONSTANTS[int(rng.integers(3))], FACTORS[int(rng.integers(len(FACTORS)))]
        problem = misdeclared(problem, told, factor)
    truth = Truth(replace(p, problem=problem), steps=20)
    result = outcome(problem, method, p.rtol, p.rtol * truth.gap(*p.problem.start()))
    row = {"seed": seed, "method": method, "regime": p.regime, "constant": told, "factor": factor}
    if result is None:
        return {**row, "status": "REFUSED", "wrong": []}
    wrong = [str(c) for c in truth.complaints(result.x, result.y, result.lower, result.upper)]
    if result.status is ss.Status.SOLVED:
        margin = 1e3 * ROUNDING * truth.size(result.x, result.y)
        shown = truth.gap(result.x, result.y)
        if not shown <= result.known_target * (1.0 + 1e-6) + margin:
            wrong.append(f"gap {shown:.3e} above the target {result.known_target:.3e}")
    return {**row, "status": result.status.name, "wrong": wrong}


def summary(rows):
    """Counts by status, and the correct rate of those that claim something."""
    ran = [row for row in rows if row["status"] != "REFUSED"]
    solved = [row for row in ran if row["status"] == "SOLVED"]
    return {
        "runs": len(ran),
        "statuses": dict(sorted(Counter(row["status"] for row in ran).items())),
        "solved": len(solved),
        "solved_and_true": sum(not row["wrong"] for row in solved),
        "bounds_refuted": sum(bool(row["wrong"]) for row in ran),
        "correct_rate": sum(not row["wrong"] for row in ran) / max(len(ran), 1),
        "wrong": [row for row in ran if row["wrong"]][:40],
    }


def main() -> None:
    """Run, print and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--out", type=Path)
    chosen = parser.parse_args()
    np.seterr(all="ignore")
    kinds = {"true constants": [], "false constants": []}
    unhandled = []
    seed = chosen.first
    while sum(row["status"] != "REFUSED" for rows in kinds.values() for row in rows) + len(unhandled) < chosen.runs:
        misdeclare = seed % 3 == 2
        try:
            kinds["false constants" if misdeclare else "true constants"].append(one(seed, misdeclare))
        except Exception as error:
            unhandled.append({"seed": seed, "error": repr(error)[:300]})
        seed += 1
    report = {name: summary(rows) for name, rows in kinds.items()}
    report["unhandled"] = unhandled
    text = json.dumps(report, indent=1)
    if chosen.out is not None:
        chosen.out.write_text(text + "\n", encoding="utf-8")
    sys.stdout.write(text + "\n")


if __name__ == "__main__":
    main()
