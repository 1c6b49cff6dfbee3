"""How far every method is from the lower bounds: calls on `ss.gallery.hard_chains` until the gap is at most 1.

    python -m benchmarks.hard_chains [--out benchmarks/results/hard_chains.json]

A gap of at most 1 takes 12 calls of f', 12 of g' and 24 products, whatever the method. The gap has a closed form, so
that nothing is spent on judging; a method is given up after 3,000 times the bound of any oracle, or 20,000 steps.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import saddleslide as ss
from saddleslide.facts.facts import Facts
from saddleslide.oracles.oracles import Oracles

LEAST = {"f": 12, "g": 12, "B": 24}
EXPONENTS = ((1.0, 1.0), (1.0, 0.5), (0.5, 1.0), (0.5, 0.5), (1.0, 0.0), (0.0, 0.0))
MOST_TIMES, MOST_STEPS = 3000, 20000


def ratios(problem: ss.SaddleProblem, name: str) -> list[float] | None:
    """Calls of f', g' and B over their bounds; None where the method does not apply or does not get there."""
    method, oracles, facts = ss.methods.by_name[name](), Oracles(problem), Facts(problem)
    if method.lacks(facts):
        return None
    state = method.init(oracles, facts, problem.start(), 1.0)
    for _ in range(MOST_STEPS):
        found = [getattr(oracles.calls, oracle) / least for oracle, least in LEAST.items()]
        if ss.gallery.chain_gap(problem, *method.point(state, oracles)) <= 1.0:
            return [round(ratio, 3) for ratio in found]
        if max(found) > MOST_TIMES or method.is_finished(state):
            return None
        state = method.step(state, oracles)
    return None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path)
    chosen, rows = parser.parse_args(), []
    for nu_x, nu_y in EXPONENTS:
        problem = ss.gallery.hard_chains(nu_x, nu_y, calls=tuple(LEAST.values()))
        found = {name: ratios(problem, name) for name in ss.methods.by_name}
        rows.append({"nu_x": nu_x, "nu_y": nu_y, "ratios": {name: cell for name, cell in found.items() if cell}})
        print(rows[-1], flush=True)
    if chosen.out:
        kept = {"command": "python -m benchmarks.hard_chains", "least": LEAST, "rows": rows}
        chosen.out.write_text(json.dumps(kept, indent=1) + "\n")


if __name__ == "__main__":
    main()
