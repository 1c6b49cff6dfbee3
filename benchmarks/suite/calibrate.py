"""The part of its bound that each method used on the calibration instances: what `SHARES` in choice.py is made of.

Cost over the weighted cost of the bound, at the prices of the instance; medians by method. The cost of a named method
is without certificates, that of adaptive sliding with them. Runs that did not reach the target are left out.

    python -m benchmarks.suite.calibrate --out benchmarks/results/calibration.json
"""

from __future__ import annotations

import argparse
import json
import statistics
from pathlib import Path

import saddleslide as ss
from benchmarks.suite.problems import CALIBRATION, Instance
from benchmarks.suite.regret import weighted
from saddleslide.choice import ADAPTIVE, RIVALS_COSTLY, RIVALS_SIMPLE, predict_adaptive
from saddleslide.functions import Zero, split_simple
from saddleslide.work import estimated_costs

MEASURED = (*RIVALS_SIMPLE, *RIVALS_COSTLY, "opapc")


def shares(instance: Instance) -> dict[str, float]:
    problem = instance.make()
    prices = instance.costs or estimated_costs(problem)
    own = ss.solve(problem, rtol=instance.rtol, method=ADAPTIVE, costs=prices)
    cost, tol = weighted(own.calls, prices), own.target
    bound = predict_adaptive(problem, tol, prices).bound
    assert bound is not None
    found = {_kind(problem): cost / weighted(bound, prices)}
    limits = {letter: 30.0 * cost / price for letter, price in zip("fgB", prices, strict=True)}
    for name in MEASURED:
        method = ss.methods[name]()
        if method.lacks(problem):
            continue
        promised = method.predicted_calls(problem, tol)
        result = ss.solve(problem, tol=tol, method=name, max_calls=limits)
        if promised is not None and result.status is ss.Status.SOLVED:
            alone = weighted(result.calls, prices) - weighted(result.certificate_calls, prices)
            flat = name == "pdhg" and _kind(problem) == "primal-dual, flat"
            found["pdhg, restarted" if flat else name] = alone / weighted(promised, prices)
    return found


def _kind(problem: ss.SaddleProblem) -> str:
    rests = split_simple(problem.f, problem.X)[0], split_simple(problem.g, problem.Y)[0]
    if not all(isinstance(rest, Zero) for rest in rests):
        return ADAPTIVE
    curved = problem.f.strong_convexity(problem.X) + problem.g.strong_convexity(problem.Y) > 0.0
    return "primal-dual, curved" if curved else "primal-dual, flat"


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path)
    out = parser.parse_args().out
    rows = {instance.name: shares(instance) for instance in CALIBRATION}
    names = sorted({name for row in rows.values() for name in row})
    medians = {name: statistics.median(row[name] for row in rows.values() if name in row) for name in names}
    for name, share in medians.items():
        print(f"{name:<24}{share:.3g}")
    if out:
        out.write_text(json.dumps({"medians": medians, "rows": rows}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
