"""Weighted cost of `ss.solve` against a grid search over plans of the paper's method.

Twelve small problems with different prices (c_f, c_g, c_B). On bounded domains the grid is all 6 orders, the metrics
identity, balanced and levelwise, and loops that are powers of 2 with T_1 T_2 T_3 up to a cap. Its plans run by
ascending cost until one meets the target, so the first that does is the cheapest of these. Where f and g are strongly
convex, restarted plans with the factors 1, 2, 4, 8 are in the grid too; on the full space they are all of it. The
target is a part of the gap at the start.

Counted for the grid: the calls of the plan, without judging. For `solve`: everything, the certificate included.

    python benchmarks/plan_quality.py --out benchmarks/results/plan_quality.json
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np

import saddleslide as ss
from saddleslide.domains import Box, FullSpace, Simplex
from saddleslide.functions import LeastSquares, Linear, Logistic, Quadratic, Zero
from saddleslide.theory.plan import weigh_calls

ORDERS = tuple("".join(letters) for letters in itertools.permutations("fgB"))
METRICS = ("identity", "balanced", "levelwise")
FACTORS = (1.0, 2.0, 4.0, 8.0)
NEAR = 3.0
WANTED = 1.3


def matrix(seed: int, rows: int, columns: int, norm: float = 1.0) -> np.ndarray:
    drawn = np.random.default_rng(seed).standard_normal((rows, columns))
    return drawn * (norm / np.linalg.norm(drawn, 2))


def vector(seed: int, size: int) -> np.ndarray:
    return np.random.default_rng(1000 + seed).standard_normal(size)


def least_squares(seed: int, rows: int, columns: int, ridge: float, norm: float = 2.0) -> LeastSquares:
    return LeastSquares(matrix(seed, rows, columns, norm), vector(seed, rows), ridge=ridge)


def box(size: int, reach: float = 1.0) -> Box:
    return Box(-reach, reach, shape=size)


def saddle(f: object, g: object, B: np.ndarray, X: object, Y: object) -> ss.SaddleProblem:
    return ss.SaddleProblem(f=f, g=g, B=B, X=X, Y=Y)


def logistic(seed: int, samples: int, features: int) -> Logistic:
    return Logistic(matrix(seed, samples, features, 4.0), np.sign(vector(seed, samples)), ridge=1e-2)


# name: (problem, prices (c_f, c_g, c_B), relative target)
Case = tuple[Callable[[], ss.SaddleProblem], tuple[float, float, float], float]
CASES: dict[str, Case] = {
    "synthetic (1, 1)": (lambda: ss.gallery.synthetic(1.0, 1.0, d=20), (10.0, 1.0, 1.0), 1e-2),
    "synthetic (1, .5)": (lambda: ss.gallery.synthetic(1.0, 0.5, d=30), (1.0, 1.0, 1.0), 1e-2),
    "synthetic (.75, .25)": (lambda: ss.gallery.synthetic(0.75, 0.25, d=40), (1.0, 10.0, 1.0), 3e-2),
    "synthetic (.5, .5)": (lambda: ss.gallery.synthetic(0.5, 0.5, d=20), (3.0, 3.0, 1.0), 3e-2),
    "ridge on box, f dear": (
        lambda: saddle(least_squares(1, 60, 30, 0.1), Quadratic(0.1), matrix(2, 20, 30), box(30), box(20)),
        (30.0, 1.0, 1.0), 1e-2,
    ),
    "ridge on box, B dear": (
        lambda: saddle(least_squares(3, 40, 20, 0.1), Quadratic(0.1), matrix(4, 30, 20), box(20), box(30)),
        (1.0, 1.0, 20.0), 1e-2,
    ),
    "logistic on box": (
        lambda: saddle(logistic(5, 60, 20), Quadratic(0.5), matrix(6, 10, 20, 2.0), box(20), box(10)),
        (10.0, 1.0, 1.0), 1e-2,
    ),
    "full space": (
        lambda: saddle(
            least_squares(7, 40, 20, 0.5), least_squares(8, 30, 15, 0.5), matrix(9, 15, 20),
            FullSpace(20), FullSpace(15),
        ),
        (5.0, 2.0, 1.0), 1e-3,
    ),
    "matrix game": (
        lambda: saddle(Zero(), Zero(), vector(10, 600).reshape(30, 20), Simplex(20), Simplex(30)),
        (1.0, 1.0, 1.0), 2e-2,
    ),
    "g dear": (
        lambda: saddle(
            Quadratic(0.2) + Linear(vector(11, 20)), least_squares(12, 60, 20, 0.1), matrix(13, 20, 20),
            box(20), box(20),
        ),
        (1.0, 50.0, 1.0), 1e-2,
    ),
    "narrow Y, wide X": (
        lambda: saddle(least_squares(14, 40, 20, 0.05), Zero(), matrix(15, 20, 20), box(20, 5.0), box(20, 0.02)),
        (10.0, 1.0, 1.0), 1e-2,
    ),
    "both costly": (
        lambda: saddle(
            least_squares(16, 50, 25, 0.2), least_squares(17, 50, 25, 0.2), matrix(18, 25, 25), box(25), box(25)
        ),
        (5.0, 5.0, 1.0), 1e-2,
    ),
}  # fmt: skip


def true_gap(problem: ss.SaddleProblem, result: ss.Result, tol: float) -> float:
    """Gap of the run's point; judged again with more effort where the run's own certificate is close to the target."""
    if tol < result.gap <= NEAR * tol:
        return min(result.gap, ss.certify(problem, result.x, result.y).gap)
    return result.gap


def grid(problem: ss.SaddleProblem, tol: float, prices: tuple[float, float, float], cap: int) -> dict[str, object]:
    """The cheapest plan of the grid that meets the target."""
    runs, best = restarts(problem, tol, prices)
    if not math.isfinite(problem.X.radius(problem.start()[0])):
        return {**best, "runs": runs}
    powers = [2**k for k in range(int(math.log2(cap)) + 1)]
    plans: list[tuple[float, ss.Plan]] = []
    for order, metric in itertools.product(ORDERS, METRICS):
        for loops in itertools.product(powers, repeat=3):
            if math.prod(loops) <= cap:
                plan = ss.plan(problem, order=order, loops=loops, metric=metric)
                plans.append((weigh_calls(plan.predicted_calls, prices), plan))
    for cost, plan in sorted(plans, key=lambda pair: pair[0]):
        if best["cost"] is not None and cost >= best["cost"]:
            break
        runs += 1
        result = ss.run(problem, plan)
        if true_gap(problem, result, tol) <= tol:
            calls = [result.calls.f, result.calls.g, result.calls.B]
            best = {"cost": cost, "plan": f"{plan.order} {plan.loops} {plan.metric}", "calls": calls}
            break
    return {**best, "runs": runs}


def restarts(
    problem: ss.SaddleProblem, tol: float, prices: tuple[float, float, float]
) -> tuple[int, dict[str, object]]:
    """The cheapest restarted plan that meets the target, where both functions are strongly convex."""
    runs, best = 0, {"cost": None}
    if min(problem.f.strong_convexity(problem.X), problem.g.strong_convexity(problem.Y)) <= 0.0:
        return runs, best
    for factor in FACTORS:
        result = ss.run(problem, ss.plan(problem, tol, regime="restarts", factor=factor))
        runs, cost = runs + 1, weigh_calls(vars(result.calls), prices)
        if true_gap(problem, result, tol) <= tol and (best["cost"] is None or cost < best["cost"]):
            calls = [result.calls.f, result.calls.g, result.calls.B]
            best = {"cost": cost, "plan": f"restarts, factor {factor:g}", "calls": calls}
    return runs, best


def measure(name: str, cap: int) -> dict[str, object]:
    """One row: the best of the grid, and solve."""
    make, prices, reduction = CASES[name]
    problem = make()
    start = ss.certify(problem, *problem.start()).gap
    tol = reduction * start
    solved = ss.solve(problem, tol, costs=prices)
    best = grid(problem, tol, prices, cap)
    cost = weigh_calls(vars(solved.calls), prices)
    return {
        "problem": name, "prices": list(prices), "reduction": reduction, "start_gap": start,
        "grid": best["cost"], "grid_plan": best.get("plan"), "grid_calls": best.get("calls"), "grid_runs": best["runs"],
        "solve": cost, "solve_calls": [solved.calls.f, solved.calls.g, solved.calls.B],
        "solve_certificate_calls": [getattr(solved.certificate_calls, name) for name in "fgB"],
        "solve_status": solved.status.name, "solve_gap_over_tol": solved.gap / tol,
        "solve_over_grid": None if best["cost"] is None else cost / best["cost"],
    }  # fmt: skip


def show(value: float | None) -> str:
    return f"{'-':>9}" if value is None else f"{value:>9.3g}" if value < 100 else f"{value:>9.0f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="JSON file to write")
    parser.add_argument("--cap", type=int, default=512, help="most innermost steps of a plan of the grid")
    parser.add_argument("--workers", type=int, default=2, help="processes")
    parser.add_argument("--only", nargs="+", choices=list(CASES), default=list(CASES), help="problems")
    chosen = parser.parse_args()
    print(f"{'problem':<22}{'prices':>12}{'reduction':>7}{'grid':>9}{'solve':>9}{'solve/g':>9}  best of grid")
    rows = []
    with ProcessPoolExecutor(chosen.workers) as pool:
        for row in pool.map(measure, chosen.only, itertools.repeat(chosen.cap)):
            rows.append(row)
            prices = ",".join(f"{price:g}" for price in row["prices"])
            numbers = [row[key] for key in ("grid", "solve", "solve_over_grid")]
            print(
                f"{row['problem']:<22}{prices:>12}{row['reduction']:>7.0e}{''.join(map(show, numbers))}",
                f" {row['grid_plan']}",
                flush=True,
            )
    ratios = [row["solve_over_grid"] for row in rows if row["solve_over_grid"] is not None]
    met = [row for row in rows if row["solve_gap_over_tol"] <= 1.0]
    within = sum(row["solve_over_grid"] is not None and row["solve_over_grid"] <= WANTED for row in met)
    print(
        f"met the target on {len(met)} of {len(rows)}, there within {WANTED} of the grid on {within}; "
        f"ratios {min(ratios, default=math.nan):.2g} to {max(ratios, default=math.nan):.2g}."
    )
    if chosen.out is not None:
        chosen.out.parent.mkdir(parents=True, exist_ok=True)
        lines = ",\n".join("  " + json.dumps(row) for row in rows)
        head = json.dumps({"cap": chosen.cap, "version": ss.__version__})[1:-1]
        chosen.out.write_text(f'{{{head}, "rows": [\n{lines}\n]}}\n', encoding="utf-8")


if __name__ == "__main__":
    main()
