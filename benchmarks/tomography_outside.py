"""Calls of f' that the method itself makes on tomography until the gap, judged from outside, meets a target.

Two sets: the paper's three regimes with five pairs of seed and picture each, with metric="blocks" and with
metric="auto"; and the five realistic instances with metric="auto". Every candidate of the method is judged from
outside, before the run's own certificate sees it. Counted are the calls of the method's own oracles; those that fit a
spectral metric are listed apart, those of the certificate are not counted. Limits are set beside the counts, and what
is over them is named at the end.

The outside gap shares no code with the package but the projector. Regimes: as in tomography_calls.py. Instances: a
closed form for the maximum over y; for the minimum over x Newton steps with conjugate gradients, run until the bound
|gradient|^2 / (2 ridge) on what is left is below 1e-3 of the smallest target, and that bound is added to the gap.

    python benchmarks/tomography_outside.py --out benchmarks/results/tomography_outside.json
"""

from __future__ import annotations

import argparse
import functools
import itertools
import json
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
from tomography_calls import PAIRS, Outside, differences, differences_transposed

import saddleslide as ss
from saddleslide.gallery.tomography import REGIMES
from saddleslide.methods import adaptive_sliding
from saddleslide.methods.adaptive_sliding import Iteration

REGIME_TARGETS = (5e-4, 1e-5, 1e-6)
INSTANCE_TARGETS = (1e-4, 1e-5, 1e-6)
# Limits: for the regimes by metric, for the instances 1.3 times these counts.
REGIME_LIMITS = {"blocks": (30.0, 110.0, 150.0), "auto": (6.0, 10.0, 14.0)}
WANTED = {
    "low_dose": (5.0, 7.0, 8.5),
    "low_dose_128": (4.5, 7.0, 7.0),
    "strong_tv": (5.0, 7.0, 8.5),
    "sparse_view": (28.0, 36.0, 44.0),
    "poisson": (9.5, 13.5, 15.5),
}
# The instances' parameters, written here again on purpose: ridge, Huber threshold, TV weights.
RIDGE, THRESHOLD = 1e-4, 1e-3
WEIGHTS = {"low_dose": 2.5e-4, "low_dose_128": 2e-4, "strong_tv": 5e-4, "sparse_view": 2e-4, "poisson": 5e-5}
Gap = Callable[[np.ndarray, np.ndarray], float]


class InstanceGap:
    """The gap of a realistic instance from above: a true maximum over y, a lower bound on the minimum over x."""

    def __init__(self, name: str, problem: ss.SaddleProblem) -> None:
        self.A, self.f, self.weight = problem.f.A.matrix, problem.f, WEIGHTS[name]
        self.AT = self.A.T.tocsr()
        self.poisson, self.allowed = name == "poisson", math.inf

    def loss(self, q: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        """Value, gradient and diagonal Hessian of the data term at q = A x."""
        if not self.poisson:
            residual = q - self.f.b
            return 0.5 * float(residual @ residual), residual, np.ones_like(q)
        k, intensity, counts = self.f.attenuation, self.f.intensity, self.f.counts
        s, decay = 1.0 / (intensity * k * k), np.exp(-k * q)
        return s * float(np.sum(intensity * decay + counts * k * q)), s * k * (counts - intensity * decay), decay

    def __call__(self, x: np.ndarray, y: np.ndarray) -> float:
        slope, beta = differences(x), THRESHOLD / self.weight
        reply = np.clip(slope / beta, -self.weight, self.weight)
        value = self.loss(self.A @ x.ravel())[0] + 0.5 * RIDGE * float(np.vdot(x, x))
        above = value + float(np.vdot(reply, slope)) - 0.5 * beta * float(np.vdot(reply, reply))
        below = self.minimum(x.ravel(), differences_transposed(y).ravel()) - 0.5 * beta * float(np.vdot(y, y))
        return above - below

    def minimum(self, x: np.ndarray, pull: np.ndarray) -> float:
        """A lower bound on min f + <pull, .>, at most `allowed` below it."""
        floor = math.inf
        for _ in range(50):
            q = self.A @ x
            value, slope, hessian = self.loss(q)
            total = value + 0.5 * RIDGE * float(x @ x) + float(pull @ x)
            gradient = self.AT @ slope + RIDGE * x + pull
            left = float(gradient @ gradient) / (2.0 * RIDGE)
            floor = total - left
            # Before the first gap is known, 1e-9 of the value is exact enough.
            allowed = self.allowed if math.isfinite(self.allowed) else 1e-9 * abs(total)
            if left <= allowed:
                return floor
            goal = math.sqrt(2.0 * RIDGE * allowed) * 0.5
            if self.poisson:
                goal = max(goal, 0.01 * math.sqrt(float(gradient @ gradient)))
            step = self.newton(gradient, hessian, goal)
            slope_along, size = float(gradient @ step), 1.0
            moved, Astep = x + step, self.A @ step
            while self.poisson and size > 1e-6:
                moved = x + size * step
                new = self.loss(q + size * Astep)[0] + 0.5 * RIDGE * float(moved @ moved) + float(pull @ moved)
                if new <= total + 1e-4 * size * slope_along + 1e-14 * abs(total):
                    break
                size *= 0.5
            x = moved
        return floor

    def newton(self, gradient: np.ndarray, hessian: np.ndarray, goal: float) -> np.ndarray:
        """Conjugate gradients on the Hessian until the residual is at most `goal`."""
        d, r = np.zeros_like(gradient), -gradient
        p, square = r.copy(), float(r @ r)
        for _ in range(5000):
            if math.sqrt(square) <= goal:
                break
            Hp = self.AT @ (hessian * (self.A @ p)) + RIDGE * p
            a = square / float(p @ Hp)
            d += a * p
            r -= a * Hp
            new = float(r @ r)
            p, square = r + (new / square) * p, new
        return d


def watched(
    problem: ss.SaddleProblem, gap: Gap, targets: tuple[float, ...], seen: list[dict[str, float]]
) -> type[Iteration]:
    """The method, with every candidate judged from outside; stops at the last target."""

    class Watched(Iteration):
        def __init__(self, oracles: object, *rest: object, **named: object) -> None:
            # A costly g is slid inside by the same class, on the problem with exchanged roles: that one is left alone.
            self.outermost = oracles.problem is problem
            self.probes = oracles.calls.f if self.outermost else 0
            super().__init__(oracles, *rest, **named)

        def step(self, state: object, *rest: object, **named: object) -> tuple[object, object]:
            after, candidate = super().step(state, *rest, **named)
            if not self.outermost:
                return after, candidate
            found = gap(candidate.x, candidate.y)
            calls = self.oracles.calls
            counts = {"f": calls.f - self.probes, "g": calls.g, "B": calls.B}
            seen.append({**counts, "probes": self.probes, "gap": found})
            if found <= targets[-1]:
                raise StopIteration
            return after, candidate

    return Watched


def measure(
    name: str, problem: ss.SaddleProblem, gap: Gap, metric: str, targets: tuple[float, ...]
) -> dict[str, object]:
    """Calls of f' at the first candidate that meets each target."""
    start = gap(*problem.start())
    if isinstance(gap, InstanceGap):
        gap.allowed = 1e-3 * targets[-1] * start
    seen: list[dict[str, float]] = []
    original = adaptive_sliding.Iteration
    adaptive_sliding.Iteration = watched(problem, gap, tuple(target * start for target in targets), seen)
    try:
        ss.solve(problem, reduction=1e-3 * targets[-1], metric=metric, max_calls={"f": 1000})
    except StopIteration:
        pass
    finally:
        adaptive_sliding.Iteration = original
    first = [next((row for row in seen if row["gap"] <= target * start), None) for target in targets]
    return {
        "problem": name, "metric": metric, "targets": list(targets),
        **{key: [None if row is None else row[key] for row in first] for key in "fgB"},
        "probes": seen[0]["probes"], "start_gap": start,
        "relative_gaps": [float(f"{row['gap'] / start:.4g}") for row in seen],
    }  # fmt: skip


def counts(numbers: list[float | None]) -> str:
    return " / ".join(f"{math.nan if number is None else number:g}" for number in numbers)


def report(row: dict[str, object]) -> None:
    name = f"{row['problem']} {tuple(row['pair'])}" if "pair" in row else row["problem"]
    print(
        f"{name:<18}{row['metric']:<8}f' {counts(row['f']):<22}g' {counts(row['g']):<22}probes {row['probes']:<5g}"
        f"limits {counts(row['limits'])}",
        flush=True,
    )


def worst(rows: list[dict[str, object]]) -> list[str]:
    """The most calls of f' of each regime and metric, over the pairs."""
    found: dict[tuple[str, str], list[list[float]]] = {}
    for row in rows:
        if "pair" in row:
            found.setdefault((row["problem"], row["metric"]), []).append([x or math.inf for x in row["f"]])
    lines = []
    for (regime, metric), made in found.items():
        most = [max(column) for column in zip(*made, strict=True)]
        lines.append(f"worst of {len(made)} pairs: {regime:<10}{metric:<8}{counts(most)}")
    return lines


def measure_regimes(names: list[str], pairs: tuple[tuple[int, int], ...], n: int) -> list[dict[str, object]]:
    rows, outside = [], Outside(n)
    for metric, limits in REGIME_LIMITS.items():
        for regime, (seed, picture) in itertools.product(names, pairs):
            problem = ss.gallery.tomography(regime, seed=seed, picture=picture, n=n)
            gap = functools.partial(outside.gap, regime, problem.f.b)
            row = measure(regime, problem, gap, metric, REGIME_TARGETS)
            rows.append({**row, "pair": [seed, picture], "limits": list(limits)})
            report(rows[-1])
    return rows


def measure_instances(names: list[str]) -> list[dict[str, object]]:
    rows = []
    for name in names:
        problem = ss.gallery.realistic_tomography(name, seed=1)
        row = measure(name, problem, InstanceGap(name, problem), "auto", INSTANCE_TARGETS)
        rows.append({**row, "limits": [round(1.3 * count, 3) for count in WANTED[name]]})
        report(rows[-1])
    return rows


def over_limits(rows: list[dict[str, object]]) -> list[str]:
    return [
        f"{row['problem']}{tuple(row.get('pair', ()))} {row['metric']} at {target:g}: {calls} > {limit:g}"
        for row in rows
        for target, calls, limit in zip(row["targets"], row["f"], row["limits"], strict=True)
        if calls is None or calls > limit
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="JSON file to write")
    parser.add_argument("--size", type=int, default=64, help="pixels per side of the regimes (default 64)")
    parser.add_argument("--pairs", type=int, default=len(PAIRS), help="use the first so many pairs (default all)")
    parser.add_argument("--only", nargs="+", default=[*REGIMES, *WANTED], help="regimes and instances")
    chosen = parser.parse_args()
    regimes = [name for name in REGIMES if name in chosen.only]
    rows = measure_regimes(regimes, PAIRS[: chosen.pairs], chosen.size) if regimes else []
    rows += measure_instances([name for name in WANTED if name in chosen.only])
    print("\n".join(worst(rows)))
    over = over_limits(rows)
    print(f"{len(rows)} runs; {len(over)} counts over their limits{': ' if over else '.'}{'; '.join(over)}")
    if chosen.out is not None:
        chosen.out.parent.mkdir(parents=True, exist_ok=True)
        lines = ",\n".join("  " + json.dumps(row) for row in rows)
        head = json.dumps({"size": chosen.size, "version": ss.__version__})[1:-1]
        chosen.out.write_text(f'{{{head}, "rows": [\n{lines}\n]}}\n', encoding="utf-8")


if __name__ == "__main__":
    main()
