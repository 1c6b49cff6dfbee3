"""What a wrong preference costs: methods forced on the calibration instances, on the allowance that auto gives them.

Weighted cost of the method and of adaptive sliding after it, over that of adaptive sliding alone.

    python -m benchmarks.suite.allowance --out benchmarks/results/allowance.json
"""

from __future__ import annotations

import argparse
import json
import statistics
from dataclasses import replace
from pathlib import Path
from typing import Any

import saddleslide as ss
from benchmarks.suite.problems import CALIBRATION, Instance
from benchmarks.suite.regret import weighted
from saddleslide.api.runner import carry_out
from saddleslide.facts.costs import estimate_costs
from saddleslide.facts.facts import Facts
from saddleslide.methods.catalogue import method_plan
from saddleslide.planner.forecast import ADAPTIVE
from saddleslide.runs.control import Control
from saddleslide.theory.plan import DISTANCES, Constant

FORCED = ("apdg", "opapc", "l-bfgs", "pdhg", "universal-primal-dual", "condat-vu", "mirror-prox", "admm")
# Where gradients are rough, none of these comes near the target on its allowance.
SMOOTH = [instance for instance in CALIBRATION if instance.family != "nonsmooth"]


def ratios(instance: Instance) -> dict[str, Any]:
    """By method: the ratio, and whether adaptive sliding had to go on."""
    problem = instance.make()
    prices = instance.costs or estimate_costs(problem)
    alone = weighted(ss.solve(problem, reduction=instance.reduction, method=ADAPTIVE, costs=prices).calls, prices)
    found = {}
    for name in FORCED:
        if ss.methods.by_name[name]().lacks(Facts(problem)):
            continue
        facts = Facts(problem)
        known = {name: Constant(D, "seen from the start") for name, D in zip(DISTANCES, facts.distances, strict=True)}
        plan = replace(method_plan(facts, ss.methods.by_name[name]()), reduction=instance.reduction)
        plan = replace(plan, on_allowance=True, costs=prices, constants=known)
        result = carry_out(problem, plan, None, Control())
        assert result.status is ss.Status.SOLVED, (instance.name, name)
        found[name] = {"ratio": weighted(result.calls, prices) / alone, "went on": len(result.plans) > 1}
    return found


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path)
    out = parser.parse_args().out
    rows = {instance.name: ratios(instance) for instance in SMOOTH}
    every = [entry["ratio"] for row in rows.values() for entry in row.values()]
    total = {
        "runs": len(every),
        "median": statistics.median(every),
        "within 2": sum(ratio <= 2.0 for ratio in every),
        "within 3.1": sum(ratio <= 3.1 for ratio in every),
        "worst": max(every),
    }
    print(json.dumps(total, indent=1))
    if out:
        out.write_text(json.dumps({**total, "rows": rows}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
