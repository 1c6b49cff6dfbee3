"""Weighted cost of `solve` with method="auto" against the best method in hindsight, problem by problem.

Every method runs to the same certified gap. Counted: all calls, those of certificates included, at the prices of the
instance. A method is given up at twice the cost of adaptive sliding (it can not be the best any more), or after
`--seconds`. `own` is a cost without certificates: what a method would take if someone told it when to stop.

    python -m benchmarks.suite.regret --out benchmarks/results/regret.json
"""

from __future__ import annotations

import argparse
import json
import math
import signal
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import saddleslide as ss
from benchmarks.suite.problems import INSTANCES, Instance
from saddleslide.facts.costs import estimate_costs
from saddleslide.facts.facts import Facts
from saddleslide.theory.plan import weigh_calls

PATIENCE = 2.0
NEAR, WANTED, MOST = 1.3, 10, 2.0


def weighted(calls: ss.Calls, prices: tuple[float, float, float]) -> float:
    return weigh_calls({"f": calls.f, "g": calls.g, "B": calls.B}, prices)


@contextmanager
def given_up_after(seconds: float) -> Iterator[dict[str, bool]]:
    """Leaves the block after so many seconds; `late` says whether it did."""
    state = {"late": False}

    def ring(*_: object) -> None:
        raise TimeoutError

    signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield state
    except TimeoutError:
        state["late"] = True
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)


def measured(instance: Instance, name: str, limit: float, seconds: float) -> dict | None:
    """Cost of one method; None where it does not apply."""
    problem = instance.make()
    prices = instance.costs or estimate_costs(problem)
    named = name not in ("auto", "adaptive")
    if named and ss.methods.by_name[name]().lacks(Facts(problem)):
        return None
    limits = {letter: limit / price for letter, price in zip("fgB", prices, strict=True)} if named else None
    with given_up_after(seconds if named else 600.0) as state:
        result = ss.solve(problem, reduction=instance.reduction, method=name, costs=prices, max_calls=limits)
    if state["late"]:
        return {"method": name, "status": "GIVEN_UP"}
    total = weighted(result.calls, prices)
    return {
        "method": ", then ".join(dict.fromkeys(getattr(plan, "method", "adaptive") for plan in result.plans)),
        "status": result.status.name,
        "cost": total,
        "own": total - weighted(result.certificate_calls, prices),
        "calls": [result.calls.f, result.calls.g, result.calls.B],
        "gap_over_target": result.gap / result.target,
        "seconds": round(result.seconds, 4),
    }


def row_of(instance: Instance, seconds: float) -> dict:
    auto, adaptive = (measured(instance, name, math.inf, seconds) for name in ("auto", "adaptive"))
    assert auto is not None
    assert adaptive is not None
    found = {"adaptive": adaptive}
    for name in ss.methods.by_name:
        row = measured(instance, name, PATIENCE * adaptive["cost"], seconds)
        if row is not None:
            found[name] = row
    solved = {name: row for name, row in found.items() if row["status"] == "SOLVED"}
    best = min(solved, key=lambda name: solved[name]["cost"])
    alone = min(solved, key=lambda name: solved[name]["own"])
    return {
        "problem": instance.name,
        "family": instance.family,
        "reduction": instance.reduction,
        "auto": auto,
        "best": best,
        "regret": auto["cost"] / solved[best]["cost"],
        "best_own": alone,
        "regret_own": auto["cost"] / solved[alone]["own"],
        "methods": found,
    }


def table(rows: list[dict]) -> str:
    lines = ["| problem | auto took | cost | best in hindsight | regret | best without judging | ratio |"]
    lines.append("|---|---|---|---|---|---|---|")
    lines += [
        f"| {row['problem']} | {row['auto']['method']} | {row['auto']['cost']:.3g} | {row['best']} | "
        f"{row['regret']:.2f} | {row['best_own']} | {row['regret_own']:.2f} |"
        for row in rows
    ]
    near = sum(row["regret"] <= NEAR for row in rows)
    worst = max(row["regret"] for row in rows)
    lines.append(
        f"\nwithin {NEAR} of the best: {near} of {len(rows)} (wanted {WANTED}); worst {worst:.2f} (wanted {MOST})"
    )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--only", nargs="*")
    parser.add_argument("--jobs", type=int, default=2)
    arguments = parser.parse_args()
    chosen = [i for i in INSTANCES if not arguments.only or i.name in arguments.only]
    with ProcessPoolExecutor(arguments.jobs) as pool:
        rows = list(pool.map(partial(row_of, seconds=arguments.seconds), chosen))
    print(table(rows))
    if arguments.out:
        body = ",\n  ".join(json.dumps(row, ensure_ascii=False) for row in rows)
        arguments.out.write_text(f'{{"version": "{ss.__version__}", "rows": [\n  {body}\n]}}\n', encoding="utf-8")


if __name__ == "__main__":
    main()
