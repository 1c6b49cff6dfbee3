"""Auto without prices, and with twice its allowance: cost over that of the best method in hindsight, from regret.json.

python -m benchmarks.suite.variants --out benchmarks/results/regret_variants.json
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import saddleslide as ss
from benchmarks.suite.problems import INSTANCES
from benchmarks.suite.regret import weighted
from saddleslide.facts.costs import estimate_costs
from saddleslide.planner import courses

REGRET = Path(__file__).resolve().parents[1] / "results" / "regret.json"


def row(instance: Any, best: float) -> dict[str, Any]:
    """The two ratios on one problem, and what auto took."""
    problem = instance.make()
    prices = instance.costs or estimate_costs(problem)
    plain, patience = ss.solve(problem, reduction=instance.reduction), courses.PATIENCE
    courses.PATIENCE = 2.0 * patience
    try:
        patient = ss.solve(problem, reduction=instance.reduction, costs=prices)
    finally:
        courses.PATIENCE = patience
    found = {"without prices": plain, "twice the allowance": patient}
    return {
        name: {
            "regret": round(weighted(result.calls, prices) / best, 3),
            "took": ", then ".join(dict.fromkeys(getattr(plan, "method", "adaptive") for plan in result.plans)),
        }
        for name, result in found.items()
    }


def main() -> None:
    """Every problem of the suite."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path)
    out = parser.parse_args().out
    best = {
        held["problem"]: min(each["cost"] for each in held["methods"].values() if each["status"] == "SOLVED")
        for held in json.loads(REGRET.read_text(encoding="utf-8"))["rows"]
    }
    text = json.dumps({instance.name: row(instance, best[instance.name]) for instance in INSTANCES}, indent=1)
    print(text)
    if out:
        out.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
