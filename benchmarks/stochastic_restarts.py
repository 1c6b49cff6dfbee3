"""Restarts with sampled gradients on quadratics: E[Psi] by stage, the floor of sampled anchors, the target.

The saddle point is known from a linear solve, so Psi is exact. Three measurements, all with 200 runs:

1. `stages`: mean Psi at the end of every stage against Gamma_{s+1}, with anchors (b = 1) and without.
2. `floors`: with b = 1, 4, 16, 64 samples per anchor the mean Psi where it no longer falls, against 4 C_anc Delta_anc /
   b: for the anchors alone (exact gradients inside the stages), and for the whole scheme (stage budgets by Gamma_s)
   with condition numbers 10^4, where the noise sets the budgets, and 16 and 4, where it does not.
3. `targets`: plans of `ss.plan` with b from the target: mean of Psi at the end against the Psi that they aim at.

All runs of a measurement are one `ss.run`: the same problem many times side by side. No copy sees another, every copy
has draws of its own, and the plan is that of one copy.

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
import scipy.sparse

import saddleslide as ss
from saddleslide.domains import FullSpace
from saddleslide.functions import Linear, Noisy, Quadratic
from saddleslide.methods.sliding import Recursion
from saddleslide.methods.sliding.anchors import Anchors
from saddleslide.methods.sliding.bilinear import gradient_writers, product_domain, product_writer, take_anchors
from saddleslide.methods.sliding.recursion import Writer
from saddleslide.oracles.oracles import Oracles
from saddleslide.oracles.sampling import Samples, drawn_problem
from saddleslide.theory.restarts import Stage

RUNS = 200
BATCHES = (1, 4, 16, 64)
# Where 8 sigma^2 / (delta Gamma) outweighs 4 sqrt(kappa) from b = 1 on: at the floor it is kappa b / 4.
STIFF = (1e4, 1e4)


class Known:
    """min max of 1/2 x'Hx - c'x + y'Bx - (1/2 y'Gy + d'y), H and G diagonal, its saddle point, and Psi.

    Noise has variance sigma^2 in each gradient, and moduli of strong convexity are 1.
    """

    def __init__(
        self,
        kappa: tuple[float, float] = (16.0, 4.0),
        sigma: tuple[float, float] = (1.0, 1.0),
        size: int = 5,
        seed: int = 0,
    ) -> None:
        rng = np.random.default_rng(seed)
        self.size, self.sigma = size, sigma
        self.H, self.G = (np.geomspace(1.0, number, size) for number in kappa)
        self.c, self.d = rng.standard_normal((2, size))
        self.B = rng.standard_normal((size, size))
        self.B *= 2.0 / np.linalg.norm(self.B, 2)
        system = np.block([[np.diag(self.H), self.B.T], [-self.B, np.diag(self.G)]])
        z = np.linalg.solve(system, np.concatenate([self.c, -self.d]))
        self.x, self.y = z[:size], z[size:]

    def problem(self, copies: int = 1) -> ss.SaddleProblem:
        """The problem so many times side by side: f, g and B act on every copy alone, noise is independent."""
        f = Quadratic(np.tile(self.H, copies)) + Linear(np.tile(-self.c, copies))
        g = Quadratic(np.tile(self.G, copies)) + Linear(np.tile(self.d, copies))
        sigma_f, sigma_g = np.sqrt(copies) * np.array(self.sigma)
        B = scipy.sparse.csr_matrix(scipy.sparse.kron(scipy.sparse.identity(copies), self.B))
        free = FullSpace(copies * self.size)
        return ss.SaddleProblem(f=Noisy(f, sigma_f), g=Noisy(g, sigma_g), B=B, X=free, Y=free)

    def Psi(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """|z - z*|_P^2 + 12 D_f + 12 D_g of every copy."""
        dx, dy = x.reshape(-1, self.size) - self.x, y.reshape(-1, self.size) - self.y
        return np.sum((1.0 + 6.0 * self.H) * dx**2 + (1.0 + 6.0 * self.G) * dy**2, axis=1)

    def start(self, share: float) -> tuple[np.ndarray, np.ndarray]:
        """The point between 0 and the saddle point where Psi is this share of Psi(0)."""
        part = 1.0 - np.sqrt(share)
        return part * self.x, part * self.y

    def plan(self, tol: float, share: float = 1.0, **options: Any) -> ss.Plan:
        """The plan of one copy, with the true Psi of its start."""
        Psi0 = float(self.Psi(*self.start(share))[0])
        return ss.plan(self.problem(), tol, regime="restarts", Psi0=Psi0, **options)

    def traces(self, plan: ss.Plan, runs: int, seed: int = 0, share: float = 1.0) -> np.ndarray:
        """Psi at the end of every stage (rows) in every run (columns)."""
        ends = set(np.cumsum([stage.levels[0].T for stage in plan.schedule.stages]).tolist())
        found: list[np.ndarray] = []

        def watch(result: ss.Result) -> None:
            if result.nit in ends:
                found.append(self.Psi(result.x, result.y))

        problem = self.problem(runs)
        # A target that no certificate meets: all stages are carried out.
        many = replace(plan, tol=1e-300, shapes=(problem.X.shape, problem.Y.shape))
        start = [np.tile(part, runs) for part in self.start(share)]
        ss.run(problem, many, start=(start[0], start[1]), callback=watch, rng=seed)
        return np.array(found)


def mean_and_error(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Over the runs, the last axis."""
    return values.mean(axis=-1), values.std(axis=-1, ddof=1) / np.sqrt(values.shape[-1])


def stages(known: Known, anchors: bool, runs: int, tol: float) -> dict[str, Any]:
    plan = known.plan(tol, anchors=anchors, anchor_batch=1 if anchors else None)
    mean, error = mean_and_error(known.traces(plan, runs))
    starts = [stage.Omega for stage in plan.schedule.stages]
    promised = [0.75 * Gamma + stage.anchor_error for Gamma, stage in zip(starts, plan.schedule.stages, strict=True)]
    return {
        "anchors": anchors, "runs": runs, "Gamma": starts, "promised": promised, "mean": mean.tolist(),
        "standard_error": error.tolist(), "worst": float(np.max((mean + 2.0 * error) / promised)),
    }  # fmt: skip


def anchors_alone(known: Known, batch: int, runs: int, count: int = 16) -> dict[str, Any]:
    """Exact gradients inside the stages, sampled anchors: what is left is the anchors' doing."""
    plan = known.plan(1e-3, anchors=True, anchor_batch=batch)
    return _floor_row(plan, batch, exact_inside(known, plan.schedule.stages[0], count, runs)[count // 2 :])


def exact_inside(known: Known, stage: Stage, count: int, runs: int) -> np.ndarray:
    """Psi after each of `count` stages that draw for their anchors alone."""
    levels = tuple(replace(level, term=replace(level.term, tau=0.0)) for level in stage.levels)
    problem, rng, found = known.problem(runs), np.random.default_rng(0), []
    noisy, exact = Oracles(drawn_problem(problem, rng, Samples())), Oracles(problem)
    x, y = np.zeros(problem.X.shape), np.zeros(problem.Y.shape)
    for _ in range(count):
        gradients = gradient_writers(exact, exact.problem) | {
            "B": _anchors(noisy, take_anchors(noisy, stage, (x, y), noisy.problem))
        }
        names = [level.term.name for level in levels]
        operators = [product_writer(exact) if name == "B" else None for name in names]
        start = np.concatenate([x, y])
        recursion = Recursion(levels, [gradients[name] for name in names], operators, product_domain(problem), start)
        for average in recursion.steps():
            x, y = average[: x.size].copy(), average[x.size :].copy()
        found.append(known.Psi(x, y))
    return np.array(found)


def _anchors(oracles: Oracles, anchors: Anchors) -> Writer:
    """The gradient of p_3, with every product made."""
    n = oracles.problem.X.size

    def write(z: np.ndarray, out: np.ndarray) -> None:
        out[:n] = oracles.adjoint(anchors.beta_x * (oracles.forward(z[:n]) - anchors.at_g))
        out[n:] = oracles.forward(anchors.beta_y * (oracles.adjoint(z[n:]) + anchors.at_f))

    return write


def whole_scheme(
    known: Known, batch: int, runs: int, count: int = 3, share: float = 1.0, **options: Any
) -> dict[str, Any]:
    """The plan's own stages with b samples per anchor, until Gamma_s is within a tenth of its floor and beyond."""
    plan = known.plan(1e-7, share, anchors=True, anchor_batch=batch, **options)
    floor = plan.constants["floor"].value
    down = next(s for s, stage in enumerate(plan.schedule.stages) if stage.Omega <= 1.1 * floor)
    plan = replace(plan, schedule=replace(plan.schedule, stages=plan.schedule.stages[: down + count]))
    return _floor_row(plan, batch, known.traces(plan, runs, share=share)[-count:])


def _floor_row(plan: ss.Plan, batch: int, tails: np.ndarray) -> dict[str, Any]:
    mean, error = mean_and_error(tails.mean(axis=0))
    return {
        "b": batch, "runs": tails.shape[1], "floor": float(mean), "standard_error": float(error),
        "bound": plan.constants["floor"].value, "Delta_anc": plan.constants["Delta_anc"].value,
        "calls": {level.term.name: level.N for level in plan.schedule.stages[-1].levels},
    }  # fmt: skip


def target(known: Known, tol: float, runs: int) -> dict[str, Any]:
    plan = known.plan(tol, anchors=True)
    mean, error = mean_and_error(known.traces(plan, runs)[-1])
    return {
        "tol": tol, "b": plan.schedule.stages[-1].anchor_batch,
        "Psi_end": plan.constants["Psi_end"].value, "runs": runs,
        "mean": float(mean), "standard_error": float(error), "samples": plan.predicted_samples,
    }  # fmt: skip


def slope_of(rows: Sequence[dict[str, Any]]) -> float:
    return float(np.polyfit(np.log([r["b"] for r in rows]), np.log([r["floor"] for r in rows]), 1)[0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="JSON file to write")
    parser.add_argument("--runs", type=int, default=RUNS)
    chosen = parser.parse_args()
    known, stiff = Known(), Known(STIFF, size=3)
    by_stage = [stages(known, anchors, chosen.runs, 0.3) for anchors in (True, False)]
    for row in by_stage:
        print(
            f"anchors {row['anchors']!s:<6} worst mean/promised {row['worst']:.3f}, last {row['mean'][-1]:.4g}",
            flush=True,
        )
    floors = {}
    for name, instance, measure in (
        ("anchors alone", known, anchors_alone),
        ("whole scheme, noise sets the budgets", stiff, whole_scheme),
        ("whole scheme, it does not", known, whole_scheme),
    ):
        rows = [measure(instance, b, chosen.runs) for b in BATCHES]
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
