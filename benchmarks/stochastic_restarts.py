"""Restarts with sampled gradients on quadratics: E[Psi] by stage, the floor of sampled anchors, the target.

The saddle point is known from a linear solve, so Psi is exact. Three measurements, all with 200 runs:

1. `stages`: mean Psi at the end of every stage against Gamma_{s+1}, with anchors (b = 1) and without.
2. `floors`: with b = 1, 4, 16, 64 samples per anchor the mean Psi where it no longer falls, against 4 C_anc Delta_anc /
   b: for the anchors alone (exact gradients inside the stages) and for the whole scheme (stage budgets by Gamma_s).
3. `targets`: plans of `ss.plan` with b from the target: mean of Psi at the end against the Psi that they aim at.

    python benchmarks/stochastic_restarts.py --out benchmarks/results/stochastic_restarts.json
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import saddleslide as ss
from saddleslide.domains import FullSpace
from saddleslide.functions import LeastSquares, Linear, Noisy, Quadratic
from saddleslide.oracles import Oracles
from saddleslide.planning.restart_plan import RestartPlan
from saddleslide.planning.restarts import Stage
from saddleslide.sampling import Samples, drawn_problem
from saddleslide.sliding import Recursion
from saddleslide.sliding.bilinear import (
    anchor_writer,
    coupling_writer,
    gradient_writers,
    product_domain,
    taken_anchors,
)

RUNS = 200
BATCHES = (1, 4, 16, 64)


class Known:
    """min max of 1/2 x'Hx - c'x + y'Bx - (y'Gy/2 + d'y) with noise, its saddle point, and Psi."""

    def __init__(self, sigma: tuple[float, float] = (1.0, 1.0), size: int = 5, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        A, b = rng.standard_normal((8, size)), rng.standard_normal(8)
        weights, d = np.geomspace(1.0, 4.0, size), rng.standard_normal(size)
        B = rng.standard_normal((size, size))
        B *= 2.0 / np.linalg.norm(B, 2)
        f, g = LeastSquares(A, b, ridge=1.0), Quadratic(weights) + Linear(d)
        free = FullSpace(size)
        self.problem = ss.SaddleProblem(f=Noisy(f, sigma[0]), g=Noisy(g, sigma[1]), B=B, X=free, Y=free)
        self.H, self.G = A.T @ A + np.eye(size), np.diag(weights)
        system = np.block([[self.H, B.T], [-B, self.G]])
        z = np.linalg.solve(system, np.concatenate([A.T @ b, -d]))
        self.x, self.y = z[:size], z[size:]
        self.moduli = f.strong_convexity(free), g.strong_convexity(free)

    def Psi(self, x: np.ndarray, y: np.ndarray) -> float:
        """|z - z*|_P^2 + 12 D_f + 12 D_g."""
        dx, dy = x - self.x, y - self.y
        squares = self.moduli[0] * dx @ dx + self.moduli[1] * dy @ dy
        return float(squares + 6.0 * dx @ self.H @ dx + 6.0 * dy @ self.G @ dy)

    def plan(self, tol: float, **options: Any) -> RestartPlan:
        size = len(self.x)
        Psi0 = self.Psi(np.zeros(size), np.zeros(size))
        made = ss.plan(self.problem, tol, regime="restarts", Psi0=Psi0, **options)
        assert isinstance(made, RestartPlan)
        return made

    def trace(self, plan: RestartPlan, seed: int) -> list[float]:
        """Psi at the end of every stage."""
        ends = set(np.cumsum([stage.levels[0].T for stage in plan.stages]).tolist())
        found: list[float] = []

        def watch(result: ss.Result) -> None:
            if result.nit in ends:
                found.append(self.Psi(result.x, result.y))

        # A target that no certificate meets: all stages are carried out.
        ss.run(self.problem, replace(plan, tol=1e-300), callback=watch, rng=seed)
        return found


def traces(known: Known, plan: RestartPlan, runs: int) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard error of Psi by stage."""
    found = np.array([known.trace(plan, seed) for seed in range(runs)])
    return found.mean(axis=0), found.std(axis=0, ddof=1) / np.sqrt(runs)


def stages(known: Known, anchors: bool, runs: int, tol: float) -> dict[str, Any]:
    plan = known.plan(tol, anchors=anchors, anchor_batch=1 if anchors else None)
    mean, error = traces(known, plan, runs)
    starts = [stage.Omega for stage in plan.stages]
    promised = [0.75 * Gamma + stage.anchor_error for Gamma, stage in zip(starts, plan.stages, strict=True)]
    return {
        "anchors": anchors, "runs": runs, "Gamma": starts, "promised": promised, "mean": mean.tolist(),
        "standard_error": error.tolist(), "worst": float(np.max((mean + 2.0 * error) / promised)),
    }  # fmt: skip


def anchors_alone(known: Known, batch: int, runs: int, count: int = 16) -> dict[str, Any]:
    """Exact gradients inside the stages, sampled anchors: what is left is the anchors' doing."""
    plan = known.plan(1e-3, anchors=True, anchor_batch=batch)
    tails = np.array([exact_inside(known, plan.stages[0], count, seed)[count // 2 :] for seed in range(runs)])
    return _floor_row(plan, batch, tails.mean(axis=1))


def exact_inside(known: Known, stage: Stage, count: int, seed: int) -> list[float]:
    """Psi after each of `count` stages that draw for their anchors alone."""
    levels = tuple(replace(level, term=replace(level.term, tau=0.0)) for level in stage.levels)
    problem, rng = known.problem, np.random.default_rng(seed)
    noisy, exact = Oracles(drawn_problem(problem, rng, Samples())), Oracles(problem)
    x, y, found = np.zeros(known.x.size), np.zeros(known.y.size), []
    for _ in range(count):
        gradients = gradient_writers(exact) | {"B": anchor_writer(noisy, taken_anchors(noisy, stage, (x, y)))}
        names = [level.term.name for level in levels]
        operators = [coupling_writer(exact) if name == "B" else None for name in names]
        start = np.concatenate([x, y])
        recursion = Recursion(levels, [gradients[name] for name in names], operators, product_domain(problem), start)
        for average in recursion.steps():
            x, y = average[: x.size].copy(), average[x.size :].copy()
        found.append(known.Psi(x, y))
    return found


def whole_scheme(known: Known, batch: int, runs: int, count: int = 6) -> dict[str, Any]:
    """The plan's own stages with b samples per anchor, until Gamma_s is within a tenth of its floor and beyond."""
    plan = known.plan(1e-6, anchors=True, anchor_batch=batch)
    floor = plan.constants["floor"].value
    down = next(s for s, stage in enumerate(plan.stages) if stage.Omega <= 1.1 * floor)
    plan = replace(plan, stages=plan.stages[: down + count])
    tails = np.array([known.trace(plan, seed)[-count:] for seed in range(runs)])
    return _floor_row(plan, batch, tails.mean(axis=1))


def _floor_row(plan: RestartPlan, batch: int, tails: np.ndarray) -> dict[str, Any]:
    return {
        "b": batch, "runs": len(tails), "floor": float(tails.mean()),
        "standard_error": float(tails.std(ddof=1) / np.sqrt(len(tails))), "bound": plan.constants["floor"].value,
        "Delta_anc": plan.constants["Delta_anc"].value,
    }  # fmt: skip


def target(known: Known, tol: float, runs: int) -> dict[str, Any]:
    plan = known.plan(tol, anchors=True)
    mean, error = traces(known, plan, runs)
    return {
        "tol": tol, "b": plan.stages[-1].anchor_batch, "Psi_end": plan.constants["Psi_end"].value,
        "mean": float(mean[-1]), "standard_error": float(error[-1]), "samples": plan.predicted_samples,
    }  # fmt: skip


def slope_of(rows: Sequence[dict[str, Any]]) -> float:
    return float(np.polyfit(np.log([r["b"] for r in rows]), np.log([r["floor"] for r in rows]), 1)[0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="JSON file to write")
    parser.add_argument("--runs", type=int, default=RUNS)
    chosen = parser.parse_args()
    known = Known()
    by_stage = [stages(known, anchors, chosen.runs, 0.3) for anchors in (True, False)]
    for row in by_stage:
        print(
            f"anchors {row['anchors']!s:<6} worst mean/promised {row['worst']:.3f}, last {row['mean'][-1]:.4g}",
            flush=True,
        )
    floors = {}
    for name, measure in (("anchors alone", anchors_alone), ("whole scheme", whole_scheme)):
        rows = [measure(known, b, chosen.runs) for b in BATCHES]
        floors[name] = {"rows": rows, "slope": slope_of(rows)}
        for row in rows:
            floor = f"{row['floor']:.4g} +- {row['standard_error']:.2g}"
            print(f"{name}, b = {row['b']:<3} floor {floor}, bound {row['bound']:.4g}")
        print(f"{name}: slope of the floor in b {slope_of(rows):.3f}", flush=True)
    targets = [target(known, tol, chosen.runs) for tol in (0.3, 0.1)]
    for row in targets:
        Psi = f"{row['mean']:.4g} +- {row['standard_error']:.2g}"
        print(f"tol {row['tol']}: b = {row['b']}, Psi {Psi} of {row['Psi_end']:.4g}")
    if chosen.out is not None:
        record = {"stages": by_stage, "floors": floors, "targets": targets}
        chosen.out.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
