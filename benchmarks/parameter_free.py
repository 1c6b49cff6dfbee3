"""Parameter-free sliding against the plan of Corollary 3.6 with kappa = 1, which knows every constant.

    python -m benchmarks.parameter_free [--out benchmarks/results/parameter_free.json]

Calls of f', g' and B until the gap is certified, on the paper's synthetic instances (eps = 0.5) and on 20 random ones;
beside them the calls that the plan has ahead with the true constants, and with constants that are 10 times too large;
and those of `recursive-sliding`, which knows the constants and is judged on the way. Judging is counted.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

import saddleslide as ss
from saddleslide.theory import loop_counts, sorted_by_budget

NAMES = ("f", "g", "B")
EXPONENTS = ((1.0, 0.5), (1.0, 0.0), (0.75, 0.25), (0.5, 0.5), (0.0, 0.0))
LOOSE = 10.0


def cases() -> Iterator[tuple[str, ss.SaddleProblem, float]]:
    """Names, problems and targets: the paper's, and random ones of all sizes, exponents, weights and accuracies."""
    for nu_x, nu_y in EXPONENTS:
        for seed in range(3):
            yield f"paper {nu_x:g} {nu_y:g} seed {seed}", ss.gallery.synthetic(nu_x, nu_y, seed=seed), 0.5
    for seed in range(20):
        rng = np.random.default_rng(1000 + seed)
        nu_x, nu_y = rng.choice([0.0, 0.25, 0.5, 0.75, 1.0], 2)
        d = int(rng.integers(5, 40))
        alpha_x, alpha_y = 10.0 ** rng.uniform(-1.0, 1.0, 2)
        norm = 10.0 ** rng.uniform(-1.0, 1.0)
        problem = ss.gallery.synthetic(
            nu_x, nu_y, seed=seed, d=d, alpha_x=alpha_x, alpha_y=alpha_y, sigma_min=0.1 * norm, sigma_max=norm
        )
        tol = ss.certify(problem, *problem.start()).gap * 10.0 ** rng.uniform(-2.0, -1.0)
        yield f"random {nu_x:g} {nu_y:g} seed {seed}", problem, float(tol)


def planned(problem: ss.SaddleProblem, tol: float, times: float = 1.0) -> dict[str, int]:
    """Calls of the plan with kappa = 1, where H and |B| are known no better than by this factor."""
    plan = ss.plan(problem, tol, regime="degenerate")
    if times == 1.0:
        return {name: plan.predicted_calls[name] for name in NAMES}
    terms = [
        replace(term, M=times * term.M, smoothness=term.smoothness and times * term.smoothness)
        for term in (level.term for level in plan.schedule.levels)
    ]
    terms = sorted_by_budget(terms, tol)
    counts = {t.name: int(n) for t, n in zip(terms, np.cumprod(loop_counts(terms, tol), dtype=object), strict=True)}
    return {**counts, "B": 4 * counts["B"]}


def called(problem: ss.SaddleProblem, tol: float, method: str) -> dict[str, float]:
    found = ss.solve(problem, tol, method=method)
    assert found.status is ss.Status.SOLVED
    return {name: getattr(found.calls, name) for name in NAMES}


def row(name: str, problem: ss.SaddleProblem, tol: float) -> dict[str, object]:
    found = {"plan": planned(problem, tol), "loose plan": planned(problem, tol, LOOSE)}
    found |= {method: called(problem, tol, method) for method in ("parameter-free-sliding", "recursive-sliding")}
    return {"name": name, "tol": tol, **found}


def ratios(rows: list[dict], over: str) -> list[list[float]]:
    """Calls of the method over those of a column, by oracle."""
    return [[row["parameter-free-sliding"][name] / row[over][name] for name in NAMES] for row in rows]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path)
    chosen, rows = parser.parse_args(), []
    for case in cases():
        rows.append(row(*case))
        print(rows[-1], flush=True)
    summary = {}
    for over in ("plan", "loose plan", "recursive-sliding"):
        table = np.array(ratios(rows, over))
        summary[over] = {
            "median": np.median(table, axis=0).round(3).tolist(),
            "largest": table.max(axis=0).round(3).tolist(),
        }
    print(json.dumps(summary, indent=1))
    assert all(math.isfinite(number) for table in summary.values() for number in table["largest"])
    if chosen.out:
        kept = {"command": "python -m benchmarks.parameter_free"}
        chosen.out.write_text(json.dumps({**kept, "summary": summary, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
