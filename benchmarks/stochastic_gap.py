"""Expected gap with sampled gradients against the bound of Theorem VI_sliding_stochastic_uniform, by Monte Carlo.

Eight settings, 200 runs each: the mean certified gap of the output, its standard error, the bound of the plan (with the
actual alphas) and the bound as printed. Then the slope of the mean gap in the number of samples where noise dominates,
for two ways of placing the levels.

    python benchmarks/stochastic_gap.py --out benchmarks/results/stochastic_gap.json
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import saddleslide as ss
from saddleslide.domains import Ball, Box, Simplex
from saddleslide.functions import Huber, LeastSquares, Linear, Logistic, MiniBatch, Noisy, Power, Quadratic, Zero

RUNS = 200


def matrix(seed: int, rows: int, columns: int, norm: float = 1.0) -> np.ndarray:
    drawn = np.random.default_rng(seed).standard_normal((rows, columns))
    return drawn * (norm / np.linalg.norm(drawn, 2))


def vector(seed: int, size: int, scale: float = 1.0) -> np.ndarray:
    return scale * np.random.default_rng(1000 + seed).standard_normal(size)


def game(sigma: float = 1.0, size: int = 6) -> ss.SaddleProblem:
    """A bilinear game on balls with its payoffs seen through noise; its solution is interior."""
    f, g = Noisy(Linear(vector(1, size, 0.1)), sigma), Noisy(Linear(vector(2, size, 0.1)), sigma)
    ball = Ball(1.0, shape=size)
    return ss.SaddleProblem(f=f, g=g, B=matrix(3, size, size), X=ball, Y=ball)


def interior_game(sigma: float = 2.0, size: int = 6) -> ss.SaddleProblem:
    """A game with a planted solution well inside its balls, where noise dominates the gap."""
    rng = np.random.default_rng(0)
    U, V = (np.linalg.qr(rng.standard_normal((size, size)))[0] for _ in range(2))
    B = (U * np.geomspace(0.4, 1.0, size)) @ V.T
    x, y = (0.6 * v / np.linalg.norm(v) for v in rng.standard_normal((2, size)))
    ball = Ball(1.0, shape=size)
    f, g = Noisy(Linear(-B.T @ y), sigma), Noisy(Linear(B @ x), sigma)
    return ss.SaddleProblem(f=f, g=g, B=B, X=ball, Y=ball)


def quadratics() -> ss.SaddleProblem:
    f = Noisy(Quadratic(1.0) + Linear(vector(4, 6)), 1.0)
    box = Box(-1.0, 1.0, shape=6)
    return ss.SaddleProblem(f=f, g=Noisy(Quadratic(0.3), 0.5), B=matrix(5, 6, 6), X=box, Y=box)


def least_squares() -> ss.SaddleProblem:
    f = (1.0 / 40.0) * MiniBatch(LeastSquares(matrix(6, 40, 5, 6.0), vector(7, 40)), batch=4)
    X, Y = Box(-1.0, 1.0, shape=5), Box(-0.5, 0.5, shape=3)
    return ss.SaddleProblem(f=f, g=Linear(vector(8, 3, 0.3)), B=matrix(9, 3, 5), X=X, Y=Y)


def logistic() -> ss.SaddleProblem:
    f = (1.0 / 60.0) * MiniBatch(Logistic(matrix(10, 60, 5, 8.0), np.sign(vector(11, 60)), ridge=0.6), batch=3)
    X, Y = Ball(2.0, shape=5), Ball(1.0, shape=2)
    return ss.SaddleProblem(f=f, g=Linear(vector(12, 2, 0.1)), B=matrix(13, 2, 5), X=X, Y=Y)


def simplices() -> ss.SaddleProblem:
    f = Noisy(Linear(vector(14, 5, 0.3)), 0.5)
    return ss.SaddleProblem(f=f, g=Zero(), B=matrix(15, 4, 5), X=Simplex(5), Y=Simplex(4))


def huber() -> ss.SaddleProblem:
    f = Noisy(Huber(0.1) + Linear(vector(16, 8)), 1.0)
    box = Box(-1.0, 1.0, shape=8)
    return ss.SaddleProblem(f=f, g=Noisy(Quadratic(1.0), 1.0), B=matrix(17, 8, 8, 2.0), X=box, Y=box)


def holder() -> ss.SaddleProblem:
    """An exact Hölder f beside a sampled g."""
    f, g = Power(0.5) + Linear(vector(18, 6, 0.3)), Noisy(Quadratic(1.0) + Linear(vector(19, 6)), 1.0)
    box = Box(-1.0, 1.0, shape=6)
    return ss.SaddleProblem(f=f, g=g, B=matrix(20, 6, 6), X=box, Y=box)


def sampled_holder() -> ss.SaddleProblem:
    """A sampled Hölder f: beyond the paper, see docs/stochastic.md."""
    f = Noisy(Power(0.5) + Linear(vector(21, 6, 2.0)), 1.0)
    box = Box(-1.0, 1.0, shape=6)
    return ss.SaddleProblem(f=f, g=Quadratic(0.5), B=matrix(22, 6, 6), X=box, Y=box)


# name: (problem, options of ss.plan)
Setting = tuple[Callable[[], ss.SaddleProblem], dict[str, Any]]
SETTINGS: dict[str, Setting] = {
    "game on balls": (game, {"tol": 0.15, "metric": "identity"}),
    "quadratics on boxes": (quadratics, {"tol": 0.3, "metric": "balanced"}),
    "mini-batch least squares": (least_squares, {"tol": 0.3, "metric": "levelwise"}),
    "mini-batch logistic": (logistic, {"tol": 0.3, "metric": "levelwise"}),
    "game on simplices": (simplices, {"tol": 0.05, "metric": "levelwise"}),
    "Huber, order fgB": (huber, {"order": "fgB", "loops": (64, 2, 2), "metric": "identity"}),
    "exact Hölder f, sampled g": (holder, {"tol": 0.3, "metric": "identity"}),
    "sampled Hölder f": (sampled_holder, {"tol": 0.3, "metric": "levelwise"}),
}
# Orders of interior_game() with loops (N, 1, 1), for N samples of f' and of g'.
GRID = (1024, 2048, 4096, 8192, 16384, 32768)
SLOPES = {"B outermost": "Bfg", "f outermost": "fgB"}
CHUNK = 512


def gaps(problem: ss.SaddleProblem, plan: Any, runs: int) -> np.ndarray:
    return np.array([ss.run(problem, plan, rng=seed).gap for seed in range(runs)])


def measure(name: str, runs: int = RUNS) -> dict[str, Any]:
    """One setting: mean gap with its standard error, and both bounds."""
    make, options = SETTINGS[name]
    problem = make()
    plan = ss.plan(problem, regime="degenerate", **options)
    found = gaps(problem, plan, runs)
    mean, error = float(found.mean()), float(found.std(ddof=1) / np.sqrt(runs))
    return {
        "setting": name, "runs": runs, "order": plan.order, "loops": list(plan.loops), "metric": plan.metric,
        "samples": plan.predicted_samples, "mean": mean, "standard_error": error, "largest": float(found.max()),
        "bound": plan.bound, "printed": plan.schedule.printed_bound, "bound_over_mean": plan.bound / mean,
    }  # fmt: skip


def lockstep_gaps(problem: ss.SaddleProblem, plan: Any, runs: int) -> np.ndarray:
    """Gaps of a game on unit balls for loops (N, 1, 1): all runs at once, with the draws that ss.run would make.

    Written out from Algorithm 1 and checked against ss.run in the tests; thousands of times faster than run by run.
    """
    B, c, d = problem.coupling.dense(), problem.f.gradient(problem.start()[0]), problem.g.gradient(problem.start()[1])
    n, sigma = c.size, problem.f.sigma / np.sqrt(c.size)
    steps = {level.term.name: level.step for level in plan.schedule.levels}
    rngs = [np.random.default_rng(seed) for seed in range(runs)]
    z, v, average, alpha = np.zeros((runs, 2 * n)), np.zeros((runs, 2 * n)), np.zeros((runs, 2 * n)), 1.0
    noise = np.empty((runs, 0, 2 * n))
    for step in range(plan.loops[0]):
        if step % CHUNK == 0:
            noise = sigma * np.stack([rng.standard_normal((CHUNK, 2 * n)) for rng in rngs])
        slope = np.concatenate([c, d]) + noise[:, step % CHUNK] + turned(B, v)
        centre = (steps["f"] + steps["g"]) * z + steps["B"] * v
        ahead = into_balls((centre - slope / alpha) / sum(steps.values()), n)
        v = into_balls(ahead - turned(B, ahead - v) / (alpha * steps["B"]), n)
        z = ahead
        average = alpha * ahead + (1.0 - alpha) * average
        alpha = 2.0 / (1.0 + np.sqrt(1.0 + 4.0 / alpha**2))
    x, y = average[:, :n], average[:, n:]
    return x @ c + np.linalg.norm(x @ B.T - d, axis=1) + y @ d + np.linalg.norm(y @ B + c, axis=1)


def turned(B: np.ndarray, z: np.ndarray) -> np.ndarray:
    """Q(x, y) = (B^T y, -B x), row by row."""
    n = B.shape[1]
    return np.concatenate([z[:, n:] @ B, -z[:, :n] @ B.T], axis=1)


def into_balls(z: np.ndarray, n: int) -> np.ndarray:
    parts = (z[:, :n], z[:, n:])
    return np.concatenate([p / np.maximum(1.0, np.linalg.norm(p, axis=1, keepdims=True)) for p in parts], axis=1)


def slope(name: str, runs: int = RUNS, grid: Sequence[int] = GRID) -> dict[str, Any]:
    """Slope of the mean gap in N, fitted on logarithms, where noise dominates."""
    problem = interior_game()
    rows = []
    for N in grid:
        plan = ss.plan(problem, order=SLOPES[name], loops=(N, 1, 1), metric="identity")
        rows.append((N, float(lockstep_gaps(problem, plan, runs).mean()), plan.bound))
    calls, means, bounds = (np.array(column) for column in zip(*rows, strict=True))
    fit = np.polyfit(np.log(calls), np.log(means), 1)[0]
    bound_fit = np.polyfit(np.log(calls), np.log(bounds), 1)[0]
    return {
        "levels": name, "order": SLOPES[name], "runs": runs, "N": calls.tolist(), "mean": means.tolist(),
        "bound": bounds.tolist(), "slope": float(fit), "slope_of_bound": float(bound_fit),
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="JSON file to write")
    parser.add_argument("--runs", type=int, default=RUNS)
    chosen = parser.parse_args()
    rows, slopes = [], []
    for name in SETTINGS:
        rows.append(measure(name, chosen.runs))
        row = rows[-1]
        print(
            f"{name:<28}{row['order']:>5}{row['loops']!s:>16} mean {row['mean']:.4f} +- {row['standard_error']:.4f}"
            f"   bound {row['bound']:.4f} ({row['bound_over_mean']:.1f} times)   printed {row['printed']:.4f}",
            flush=True,
        )
    for name in SLOPES:
        slopes.append(slope(name, chosen.runs))
        fits = slopes[-1]
        print(f"{name:<28} slope {fits['slope']:.3f}, of the bound {fits['slope_of_bound']:.3f}", flush=True)
    if chosen.out is not None:
        chosen.out.write_text(json.dumps({"rows": rows, "slopes": slopes}, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
