"""The part of its bound that each method used on the calibration instances: what `SHARES` in rivals.py is made of.

Cost over the weighted cost of the bound, at the prices of the instance; medians by kind of problem and method. The cost
of a named method is without certificates, that of adaptive sliding with them. A method is given up at eight times the
cost of adaptive sliding or after `--seconds`; it counts as failed then. A method is a rival of adaptive sliding on a
kind of problem if it reached the target on two instances of that kind, on more than it failed on, and its shares
differ by no more than a factor of `SPREAD`.

    python -m benchmarks.suite.calibrate --out benchmarks/results/calibration.json
"""

from __future__ import annotations

import argparse
import json
import statistics
from pathlib import Path
from typing import Any

import saddleslide as ss
from benchmarks.suite.problems import CALIBRATION, Instance
from benchmarks.suite.regret import given_up_after, weighted
from saddleslide.facts.costs import estimate_costs
from saddleslide.facts.facts import Facts
from saddleslide.planner.forecast import ADAPTIVE, kind_of, predict_adaptive

PATIENCE, SPREAD = 8.0, 20.0


def shares(instance: Instance, seconds: float) -> dict[str, Any]:
    """Kind of the instance, and share by method; None where the target was not reached."""
    problem = instance.make()
    prices = instance.costs or estimate_costs(problem)
    own = ss.solve(problem, reduction=instance.reduction, method=ADAPTIVE, costs=prices)
    cost, tol = weighted(own.calls, prices), own.target
    bound = predict_adaptive(problem, tol, prices).bound
    assert bound is not None
    found: dict[str, float | None] = {ADAPTIVE: cost / weighted(bound, prices)}
    limits = {letter: PATIENCE * cost / price for letter, price in zip("fgB", prices, strict=True)}
    facts = Facts(problem)
    for name in ss.methods.by_name:
        method = ss.methods.by_name[name]()
        promised = None if method.lacks(facts) else method.calls(facts, tol)
        if promised is None:
            continue
        found[name] = None
        with given_up_after(seconds) as state:
            result = ss.solve(problem, tol=tol, method=name, max_calls=limits)
        if not state["late"] and result.status is ss.Status.SOLVED:
            alone = weighted(result.calls, prices) - weighted(result.certificate_calls, prices)
            found[name] = alone / weighted(promised, prices)
    return {"kind": kind_of(problem), "shares": found}


def summary(rows: dict[str, Any]) -> dict[str, Any]:
    """Medians and rivals by kind."""
    medians: dict[str, dict[str, float]] = {}
    rivals: dict[str, list[str]] = {}
    for kind in sorted({row["kind"] for row in rows.values()}):
        tables = [row["shares"] for row in rows.values() if row["kind"] == kind]
        names = [name for name in (ADAPTIVE, *ss.methods.by_name) if any(name in table for table in tables)]
        reached = {name: [t[name] for t in tables if t.get(name) is not None] for name in names}
        tried = {name: sum(name in table for table in tables) for name in names}
        medians[kind] = {name: statistics.median(values) for name, values in reached.items() if values}
        rivals[kind] = [
            name
            for name, values in reached.items()
            if name != ADAPTIVE and len(values) >= max(2, 1 + tried[name] // 2) and max(values) <= SPREAD * min(values)
        ]
    return {"medians": medians, "rivals": rivals}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path)
    parser.add_argument("--seconds", type=float, default=4.0)
    arguments = parser.parse_args()
    rows = {instance.name: shares(instance, arguments.seconds) for instance in CALIBRATION}
    made = summary(rows)
    for kind, table in made["medians"].items():
        print(kind, "rivals:", ", ".join(made["rivals"][kind]) or "none")
        for name, share in table.items():
            print(f"    {name:<24}{share:.3g}")
    if arguments.out:
        arguments.out.write_text(json.dumps({**made, "rows": rows}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
