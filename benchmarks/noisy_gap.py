"""Restarts on the gap with sampled gradients: how the mean gap falls with the samples, for smooth and Hölder functions.

    python -m benchmarks.noisy_gap [--out benchmarks/results/noisy_gap.json]

f is curved on the whole space (spectrum [1, 4], or that and |x|^1.5 on a box), g a power on a box; one of them is
sampled with Gaussian noise. Means of the exact gap over 6 runs at the end of every stage, its target, and the slope
against the samples of that function over the last stages. The theorem says -1 for the curved function and -1/2 for the
other one.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np

import saddleslide as ss
from saddleslide.methods.recursive_sliding import level_recursion
from saddleslide.oracles.oracles import Oracles
from saddleslide.oracles.sampling import Samples, drawn_problem
from saddleslide.theory.mixed import gap_stages

F, D = ss.functions, ss.domains
RUNS, FITTED = 6, 3
# Exponents of f and g, standard deviations of their gradients, stages.
CASES = ((1.0, 1.0, 0.5, 0.0, 5), (0.5, 1.0, 0.5, 0.0, 5), (1.0, 1.0, 0.0, 0.1, 3), (1.0, 0.5, 0.0, 0.1, 3))


def made(nu_x: float, nu_y: float, n: int = 4, m: int = 3) -> ss.SaddleProblem:
    """The exact problem."""
    rng = np.random.default_rng(3)
    B = rng.standard_normal((m, n))
    spectrum, tilt = np.geomspace(1.0, 4.0, n), rng.standard_normal(n)
    bent = nu_x < 1.0
    f = (
        F.Power(nu_x, weight=float(bent), tilt=tilt, quadratic=spectrum)
        if bent
        else F.Quadratic(spectrum) + F.Linear(tilt)
    )
    X = D.Box(-2.0, 2.0, shape=n) if bent else D.FullSpace(n)
    g = F.Power(nu_y, weight=0.5, tilt=0.5 * rng.standard_normal(m))
    return ss.SaddleProblem(f=f, g=g, B=B / np.linalg.norm(B, 2), X=X, Y=D.Box(-1.0, 1.0, shape=m))


def trace(problem: ss.SaddleProblem, sigmas: tuple[float, float], runs: int, stages: int) -> list[dict[str, float]]:
    """Target, mean gap and calls at the end of each stage."""
    f, g = (F.Noisy(p, s) if s > 0.0 else p for p, s in zip((problem.f, problem.g), sigmas, strict=True))
    noisy = ss.SaddleProblem(f=f, g=g, B=problem.coupling, X=problem.X, Y=problem.Y)
    first = ss.certify(problem, *problem.start()).gap
    conditions = problem.f.smoothness(problem.X), problem.g.smoothness(problem.Y)
    modulus, norm = problem.f.strong_convexity(problem.X), problem.coupling.norm.upper
    planned = gap_stages(
        *conditions,
        norm,
        modulus,
        problem.Y.diameter(),
        (first, first * 0.5**stages),
        variances=(sigmas[0] ** 2, sigmas[1] ** 2),
    )
    gaps, rows = np.zeros((runs, stages)), []
    for run in range(runs):
        oracles = Oracles(drawn_problem(noisy, np.random.default_rng(run), Samples()))
        z = np.concatenate(problem.start())
        for s, levels in enumerate(planned):
            for average in level_recursion(oracles, levels, z).steps():
                last = average
            z = last.copy()
            gaps[run, s] = ss.certify(problem, z[: problem.X.size], z[problem.X.size :]).gap
            if run == 0:
                rows.append({"target": first * 0.5 ** (s + 1), "f": oracles.calls.f, "g": oracles.calls.g})
    return [{**row, "gap": float(gap)} for row, gap in zip(rows, gaps.mean(axis=0), strict=True)]


def slope(rows: list[dict[str, float]], name: str) -> float:
    """Of the logarithm of the mean gap against that of the calls."""
    last = rows[-FITTED:]
    return float(np.polyfit(np.log([row[name] for row in last]), np.log([row["gap"] for row in last]), 1)[0])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path)
    chosen, rows = parser.parse_args(), []
    for nu_x, nu_y, s_x, s_y, stages in CASES:
        found = trace(made(nu_x, nu_y), (s_x, s_y), RUNS, stages)
        name = "f" if s_x > 0.0 else "g"
        rows.append(
            {"nu_x": nu_x, "nu_y": nu_y, "sampled": name, "slope": round(slope(found, name), 3), "stages": found}
        )
        print(rows[-1], flush=True)
    if chosen.out:
        kept = {"command": "python -m benchmarks.noisy_gap", "rows": rows}
        chosen.out.write_text(json.dumps(kept, indent=1) + "\n")


if __name__ == "__main__":
    main()
