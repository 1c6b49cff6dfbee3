"""One curved function beside a bounded set: restarts on the gap against the paper's mixed regime.

    python -m benchmarks.mixed_restarts [--out benchmarks/results/mixed_restarts.json]

f is a quadratic with spectrum [1, 10] on the whole space, g a quadratic with spectrum [0, 1] (or |Cy - d|^1.5 / 1.5) on
a box, |B| = 2, 8 and 6 unknowns. For targets from 1e-1 to 1e-4 of the first gap: calls that each theorem asks for,
those of the paper's plan with practical constants, and calls until a certificate meets the target.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np

import saddleslide as ss
from saddleslide.theory.mixed import gap_stages

F, D = ss.functions, ss.domains
NAMES = ("f", "g", "B")
PARTS = (1e-1, 1e-2, 1e-3, 1e-4)


def made(nu: float, seed: int = 0, n: int = 8, m: int = 6) -> ss.SaddleProblem:
    rng = np.random.default_rng(seed)
    B = rng.standard_normal((m, n))
    B *= 2.0 / np.linalg.norm(B, 2)
    f = F.Quadratic(np.geomspace(1.0, 10.0, n)) + F.Linear(3.0 * rng.standard_normal(n))
    if nu == 1.0:
        g = F.Quadratic(np.linspace(0.0, 1.0, m)) + F.Linear(rng.standard_normal(m))
    else:
        C = rng.standard_normal((m - 1, m))
        g = F.Power(nu=nu).translated(rng.standard_normal(m - 1)) @ (C / np.linalg.norm(C, 2))
    return ss.SaddleProblem(f=f, g=g, B=B, X=D.FullSpace(n), Y=D.Box(-1.0, 1.0, shape=m))


def promised(problem: ss.SaddleProblem, first: float, tol: float) -> dict[str, int]:
    """Calls of all stages that halve the gap."""
    f, g = problem.f.smoothness(problem.X), problem.g.smoothness(problem.Y)
    modulus = problem.f.strong_convexity(problem.X)
    stages = gap_stages(f, g, problem.coupling.norm.upper, modulus, problem.Y.diameter(), (first, tol))
    counts = {name: sum(level.N for stage in stages for level in stage if level.term.name == name) for name in NAMES}
    return {**counts, "B": 4 * counts["B"]}


def calls(found: ss.Result) -> dict[str, object]:
    return {"status": found.status.name, **{name: getattr(found.calls, name) for name in NAMES}}


def row(nu: float, part: float) -> dict[str, object]:
    problem = made(nu)
    first = ss.certify(problem, *problem.start()).gap
    tol = part * first
    proved = ss.plan(problem, tol, regime="mixed", proved=True)
    practical = ss.plan(problem, tol, regime="mixed")
    return {
        "nu_y": nu, "part": part,
        "paper, proved": proved.predicted_calls, "paper, practical": practical.predicted_calls,
        "gap, proved": promised(problem, first, tol),
        "paper, run": calls(ss.run(problem, practical)),
        "gap, run": calls(ss.solve(problem, tol, method="proved-sliding", options={"restarts": "gap"})),
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path)
    chosen, rows = parser.parse_args(), []
    for nu in (1.0, 0.5):
        for part in PARTS if nu == 1.0 else PARTS[:2]:
            rows.append(row(nu, part))
            print(rows[-1], flush=True)
    if chosen.out:
        kept = {"command": "python -m benchmarks.mixed_restarts", "rows": rows}
        chosen.out.write_text(json.dumps(kept, indent=1) + "\n")


if __name__ == "__main__":
    main()
