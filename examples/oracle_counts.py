"""Draw the certified gap against the calls of f', of g' and of B for two plans of one problem.

The sorted plan gives each oracle its own number of calls. The lockstep plan calls all three equally often.
Writes the picture and prints the table behind it.
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

import saddleslide as ss

DEFAULT_OUT = Path(__file__).resolve().parents[1] / "docs" / "pictures" / "oracle_counts.png"
TOLERANCES = (8.0, 4.0, 2.0, 1.0, 0.5, 0.25)
# Blue and vermilion of Okabe and Ito: told apart with every common colour vision. Markers and dashes differ too.
STYLES = {
    "sorted": {"color": "#0072B2", "marker": "o", "linestyle": "-"},
    "lockstep": {"color": "#D55E00", "marker": "s", "linestyle": "--"},
}
LABELS = {"sorted": "sorted plan: a budget for each oracle", "lockstep": "lockstep: one budget for all"}
PANELS = {"f": r"calls of $f\,'$", "g": r"calls of $g\,'$", "B": r"products with $B$ and $B^T$"}


def lockstep(problem: ss.SaddleProblem, tol: float, order: str) -> ss.Plan:
    """The same order of levels, with as many outermost steps as the largest budget asks for, and no inner loops."""
    terms = [level.term for level in ss.plan(problem, tol, regime="degenerate", metric="identity").schedule.levels]
    largest = max(ss.theory.budget(term, tol) for term in terms)
    return ss.plan(problem, tol, order=order, loops=(math.ceil(largest), 1, 1), metric="identity")


def measure(tolerances: list[float]) -> dict[str, list[ss.Result]]:
    """One run per plan and tolerance."""
    problem = ss.gallery.synthetic(0.75, 0.25)
    results: dict[str, list[ss.Result]] = {"sorted": [], "lockstep": []}
    for tol in tolerances:
        plan = ss.plan(problem, tol, regime="degenerate", metric="identity")
        results["sorted"].append(ss.run(problem, plan))
        results["lockstep"].append(ss.run(problem, lockstep(problem, tol, plan.order)))
    return results


def table(tolerances: list[float], results: dict[str, list[ss.Result]]) -> str:
    """The numbers of the picture."""
    lines = [f"{'plan':<10}{'tol':>6}{'order':>7}{'loops':>15}{'gap':>9}{'f':>7}{'g':>7}{'B':>7}"]
    for name, runs in results.items():
        for tol, result in zip(tolerances, runs, strict=True):
            plan, calls = result.plans[-1], result.method_calls
            lines.append(
                f"{name:<10}{tol:>6g}{plan.order:>7}{plan.loops!s:>15}{result.gap:>9.3f}"
                f"{calls.f:>7}{calls.g:>7}{calls.B:>7}"
            )
    return "\n".join(lines)


def draw(results: dict[str, list[ss.Result]]) -> Figure:
    """Three panels on the same axes."""
    figure = Figure(figsize=(9.0, 3.5), dpi=200, layout="constrained")
    panels = figure.subplots(1, 3, sharex=True, sharey=True)
    for axes, (oracle, title) in zip(panels, PANELS.items(), strict=True):
        for name, runs in results.items():
            calls = [getattr(result.method_calls, oracle) for result in runs]
            axes.plot(calls, [result.gap for result in runs], lw=2, ms=6, label=LABELS[name], **STYLES[name])
        tidy(axes, title)
    panels[0].set_ylabel("certified gap", fontsize=12)
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=2, frameon=False, fontsize=12)
    return figure


def tidy(axes: Axes, title: str) -> None:
    """Log scales, a light grid, no box."""
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel(title, fontsize=12)
    axes.tick_params(labelsize=11)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
    axes.grid(visible=True, which="major", color="0.88", lw=0.8)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=DEFAULT_OUT, help="picture to write")
    parser.add_argument("--tol", type=float, nargs="+", default=list(TOLERANCES), help="target gaps")
    chosen = parser.parse_args()
    results = measure(chosen.tol)
    print(table(chosen.tol, results))
    chosen.out.parent.mkdir(parents=True, exist_ok=True)
    draw(results).savefig(chosen.out)


if __name__ == "__main__":
    main()
