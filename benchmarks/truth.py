"""How often is a claim true? Random problems and doors, each claim compared with the truth in 120 digits.

    python benchmarks/truth.py --count 5000 --rows truth.jsonl --out benchmarks/results/truth.json
    python benchmarks/truth.py --count 50000 --first 1000000 --jobs 2 --rows nightly.jsonl --out nightly.json

Families (tests/helpers): data far from 0, matrices of condition up to 1e13, sums and scalings, own classes and Custom
with moduli overstated up to 1e6 times, adjoints wrong by 1e-9 to 1 (of B, and of A inside f or g), products in single
precision, targets and values of 0, functions that are not convex, constraints that nothing meets, boxes of no width,
logistic losses. Problems have at most five unknowns a side; the doors are solve (auto, adaptive with every metric,
every method of ss.methods), run, certify and resume. What is true is computed by helpers/exact.py, which shares no code
with the package. The family "planted" has larger problems with all functions and sets (helpers/planted.py), every third
with a false constant; its check (helpers/independent.py) finds witnesses in doubles.

A run is wrong when it is a success and its true gap is above the target, when a bound is on the wrong side of what it
bounds, when lower is above upper, or when true oracles are called inconsistent; no slack is given for rounding, that
of the check in doubles excepted. Nothing but a result may come out of a run. Bounds that rest on a declared modulus and
say so are not judged, nor are claims about functions that are not convex: how many of these were taken for convex is
counted ("taken for convex" among the saddle values). Exit code 1 when anything is wrong.

Each row is written as soon as its block of seeds is known; the same command goes on where it stopped. `--again` repeats
the seeds of rows that were wrong or raised. Refused runs do not count.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import traceback
import warnings
from collections import Counter
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path

import numpy as np

import saddleslide as ss

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests" / "helpers"))

from independent import ROUNDING, Truth
from planted import planted
from truths import CROSSED, FALSE, FAMILIES, METRICS, judged

FACTORS = (0.1, 0.5, 2.0, 10.0, 100.0, 1_000.0, 10_000.0)
CONSTANTS = ("smoothness", "modulus", "norm")
FIXED, THEOREM, RESTARTS = "fixed plan", "theorem plan", "restarts"
PLANTED = "planted"
ALL = (*FAMILIES, PLANTED)
# The doors of the library come up as often as all named methods together.
DOORS = ("auto", "adaptive", *(f"adaptive, {metric}" for metric in METRICS), FIXED, THEOREM, RESTARTS)
LIMITS = {"f": 400, "g": 400, "B": 3000}
BLOCK = 50


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
        given["B"] = ss.operators.as_operator(problem.coupling, norm=factor * problem.coupling.norm.upper)
    else:
        given[side] = declared(given[side], given["X" if side == "f" else "Y"], constant, factor)
    return ss.SaddleProblem(**given)


def outcome(problem, method, reduction, tol):
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
            problem, reduction=reduction, method=name, metric=metric or "auto", max_steps=80, max_calls=LIMITS
        )  # fmt: skip
    except ss.errors.InputError:
        return None


def one_planted(seed):
    """A row of the planted family: status, and what witnesses in doubles refute."""
    rng = np.random.default_rng(seed)
    p = planted(seed, largest=16)
    pool = DOORS if rng.random() < 0.5 else tuple(ss.methods.by_name)
    method = pool[int(rng.integers(len(pool)))]
    told, problem = "", p.problem
    if rng.random() < 1.0 / 3.0:
        constant, factor = CONSTANTS[int(rng.integers(3))], FACTORS[int(rng.integers(len(FACTORS)))]
        side = "fg"[int(rng.integers(2))]
        problem, told = misdeclared(problem, constant, factor, side), f"{constant} of {side} times {factor:g}"
    row = {"seed": seed, "family": PLANTED, "door": method, "told": told}
    truth = Truth(replace(p, problem=problem), steps=20)
    result = outcome(problem, method, p.reduction, p.reduction * truth.gap(*p.problem.start()))
    if result is None:
        return {**row, "status": "REFUSED", "value": "", "wrong": []}
    wrong = [str(c) for c in truth.complaints(result.x, result.y, result.lower, result.upper)]
    shown = truth.gap(result.x, result.y)
    margin = 1e3 * ROUNDING * truth.size(result.x, result.y)
    met = shown <= result.known_target * (1.0 + 1e-6) + margin
    if result.success and result.known_target > 0.0 and not met:
        wrong.append(f"{FALSE}: gap {shown:.3e} above the target {result.known_target:.3e}")
    if result.lower > result.upper:
        wrong.append(f"{CROSSED}: lower {result.lower:.17g}, upper {result.upper:.17g}")
    assumed = result.certificate.assumes != ""
    value = "as declared" if assumed else "witnesses"
    row = {**row, "status": result.status.name, "success": result.success, "value": value}
    return {**row, "wrong": [] if assumed and not result.success else wrong}


def attempted(seed):
    """The row of a seed; one that says so where anything but a result came out."""
    family, began = ALL[seed % len(ALL)], time.process_time()
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            row = one_planted(seed) if family == PLANTED else judged(family, seed)
        except Exception as error:
            frames = traceback.extract_tb(error.__traceback__)[-3:]
            where = " < ".join(f"{Path(frame.filename).name}:{frame.lineno}" for frame in reversed(frames))
            row = {"seed": seed, "family": family, "status": "RAISED", "wrong": [f"{error!r} at {where}"]}
    return {**row, "ms": round(1e3 * (time.process_time() - began), 1)}


def summary(rows):
    """Counts of one family: by status, what was claimed, and what of that is false."""
    ran = [row for row in rows if row["status"] not in ("REFUSED", "RAISED")]
    successes = [row for row in ran if row["success"]]
    return {
        "runs": len(ran),
        "statuses": dict(sorted(Counter(row["status"] for row in ran).items())),
        "saddle values": dict(sorted(Counter(row["value"] for row in ran).items())),
        "successes": len(successes),
        "false successes": sum(any(FALSE in text for text in row["wrong"]) for row in ran),
        "negative gaps": sum(any(CROSSED in text for text in row["wrong"]) for row in ran),
        "with a false bound": sum(any(not (FALSE in t or CROSSED in t) for t in row["wrong"]) for row in ran),
        "raised": sum(row["status"] == "RAISED" for row in rows),
        "wrong": sum(bool(row["wrong"]) for row in rows),
        "ms a run": round(sum(row["ms"] for row in rows) / max(len(ran), 1), 1),
    }


def report(rows):
    """The summary of all rows, and of every family."""
    rows = sorted(rows, key=lambda row: row["seed"])
    wrong = [row for row in rows if row["wrong"]]
    return {
        "all": summary(rows),
        "families": {family: summary([row for row in rows if row["family"] == family]) for family in ALL},
        "doors": dict(sorted(Counter(row["door"] for row in rows if row.get("door")).items())),
        "examples": wrong[:60],
    }


def known_rows(path):
    """What earlier calls have written; the last row of a seed counts."""
    if path is None or not path.exists():
        return {}
    rows = []
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            rows.append(json.loads(line))
        except ValueError:
            # A line that a kill has cut short.
            continue
    return {row["seed"]: row for row in rows}


def carry_out(chosen, rows, each):
    """All seeds that are missing, in blocks; `each` maps attempts over a block."""
    again = [seed for seed, row in rows.items() if row["wrong"] and chosen.again]
    for begin in range(0, len(again), BLOCK):
        yield from each(attempted, again[begin : begin + BLOCK])
    ran = sum(row["status"] != "REFUSED" for row in rows.values())
    wanted = {ALL.index(family) for family in chosen.family or ALL}
    seed = chosen.first
    while ran < chosen.count:
        block = [s for s in range(seed, seed + BLOCK) if s not in rows and s % len(ALL) in wanted]
        for row in each(attempted, block):
            ran += row["status"] != "REFUSED"
            yield row
        seed += BLOCK


def main() -> None:
    """Run what is missing, print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=5000, help="runs that are not refused (default 5000)")
    parser.add_argument("--first", type=int, default=0, help="first seed (default 0)")
    parser.add_argument("--family", action="append", choices=ALL, help="only this family; may be repeated")
    parser.add_argument("--jobs", type=int, default=1, help="processes (default 1)")
    parser.add_argument("--rows", type=Path, help="JSON lines, one a run, appended to")
    parser.add_argument("--out", type=Path, help="JSON file for the summary")
    parser.add_argument("--again", action="store_true", help="repeat the seeds of rows that were wrong or raised")
    chosen = parser.parse_args()
    rows = known_rows(chosen.rows)
    with get_context("spawn").Pool(chosen.jobs) as pool:
        for row in carry_out(chosen, rows, map if chosen.jobs == 1 else pool.imap_unordered):
            rows[row["seed"]] = row
            if chosen.rows is not None:
                with chosen.rows.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(row) + "\n")
    found = report(list(rows.values()))
    text = json.dumps(found, indent=1)
    if chosen.out is not None:
        chosen.out.write_text(text + "\n", encoding="utf-8")
    sys.stdout.write(text + "\n")
    if found["all"]["wrong"]:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
