"""Figures from rows alone. Each drawing takes the finished rows of its experiment and may find too few of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from saddleslide.paper.calibration import with_shared_prices
from saddleslide.paper.regime_figures import DRAWINGS as REGIMES
from saddleslide.paper.rows import Row
from saddleslide.paper.spec import Experiment
from saddleslide.paper.statistics import predicted_exponent, slope
from saddleslide.paper.style import GREY, METHODS, SETTINGS, draw_method, finish, legend_below, new_figure, save
from saddleslide.paper.tomography_figures import DRAWINGS as TOMOGRAPHY
from saddleslide.runs.plot import STYLES

Drawing = Callable[[Sequence[Row]], Any]
ORACLES = ("calls of f'", "calls of g'", "products with B and B$^T$")


def draw_all(experiment: Experiment, rows: Mapping[str, Row], folder: Path) -> dict[str, str]:
    """Every figure of an experiment that the rows allow: its name, and its path relative to the folder."""
    from matplotlib import rc_context

    keys = {run.key for run in experiment.runs(optional=True)}
    there = [row for key, row in with_shared_prices(rows).items() if key in keys and row["status"] == "done"]
    drawn = {}
    for figure in experiment.figures:
        with rc_context(SETTINGS):
            made = DRAWINGS[figure["name"]](there)
        if made is not None:
            drawn[figure["name"]] = save(made, folder, figure["name"])
    return drawn


def exponents(rows: Sequence[Row]) -> Any:
    """N_f against the inverse gap, and fitted against predicted exponent."""
    nus = sorted({row["problem"]["nu_x"] for row in rows})
    if not nus:
        return None
    figure, (left, right) = new_figure(2, width=3.6, share=False)
    column = {"field": "calls.f"}
    for nu, (colour, marker) in zip(nus, STYLES, strict=False):
        own = [row for row in rows if row["problem"]["nu_x"] == nu]
        points = sorted((N, median(row["gap"] for row in own if row["calls"]["f"] == N)) for N in calls_of(own, "f"))
        left.plot([1.0 / gap for _, gap in points], [N for N, _ in points], color=colour, marker=marker, markersize=4,
                  linewidth=1.5, label=rf"$\nu_x$ = {nu:g}")  # fmt: skip
        if len(points) > 1:
            predicted = predicted_exponent(own, {"field": "problem.nu_x"}, {})
            right.plot(predicted, slope(own, column, {}), color=colour, marker=marker, markersize=7, linestyle="")
    finish(left, "1 / exact gap")
    left.set_ylabel("$N_f$")
    legend_below(figure, left, 5)
    span = np.array([0.4, 2.1])
    right.plot(span, span, color=GREY, linestyle="--", linewidth=1.0)
    right.set_xlabel(r"predicted exponent $2/(1+3\nu_x)$")
    right.set_ylabel("fitted exponent")
    right.grid(visible=True, color="0.9", linewidth=0.7)
    return figure


def calls_of(rows: Sequence[Row], oracle: str) -> list[float]:
    """The different counts of an oracle."""
    return sorted({row["calls"][oracle] for row in rows})


def separation(rows: Sequence[Row]) -> Any:
    """Gap against the calls of each oracle, medians over the seeds."""
    rows = [row for row in rows if row["group"] != "choice of L0"]
    if not rows:
        return None
    figure, axes = new_figure(3)
    for method in ("recursion", "two-level-sliding", "lockstep", "universal-mirror-prox"):
        points = _median_points([row for row in rows if row["method"] == method])
        for number, ax in enumerate(axes):
            draw_method(ax, method, [point[number] for point in points], [point[3] for point in points])
    for ax, label in zip(axes, ORACLES, strict=True):
        finish(ax, label, target=0.1)
    axes[0].set_ylabel("exact gap")
    legend_below(figure, axes[0])
    return figure


def _median_points(rows: Sequence[Row]) -> list[list[float]]:
    """(f, g, B, gap), medians over the seeds: for every target of a plan, or for every inspection of a curve."""
    if rows and rows[0]["curve"]:
        length = min(len(row["curve"]) for row in rows)
        return [[median(row["curve"][k][part] for row in rows) for part in range(4)] for k in range(length)]
    points = []
    for target in sorted({row["settings"]["tol"] for row in rows}, reverse=True):
        own = [row for row in rows if row["settings"]["tol"] == target]
        points.append([*(median(row["calls"][o] for row in own) for o in "fgB"), median(row["gap"] for row in own)])
    return points


def cost(rows: Sequence[Row]) -> Any:
    """Total cost against the price of a gradient, for each accuracy."""
    from saddleslide.paper.statistics import at_crossing

    sliding = [row for row in rows if row["group"] == "sliding"]
    other = [row for row in rows if row["group"] == "mirror-prox"]
    targets = sorted({row["settings"]["eps"] for row in sliding}, key=float, reverse=True)
    if not targets or not other:
        return None
    figure, axes = new_figure(len(targets))
    prices = np.geomspace(1.0, 1000.0, 100)
    for ax, target in zip(axes, targets, strict=True):
        ours = next(row for row in sliding if row["settings"]["eps"] == target)["calls"]
        limit = {"limit": float(target)}
        theirs = [at_crossing(other, {**limit, "part": part}, {}) for part in ("gradients", "B")]
        if None in theirs:
            return None
        pairs = {"recursion": (ours["f"] + ours["g"], ours["B"]), "mirror-prox": (theirs[0], theirs[1])}
        for method, (gradients, products) in pairs.items():
            name, colour, _ = METHODS[method]
            ax.plot(prices, prices * gradients + products, color=colour, linewidth=1.6, label=name)
        crossing = (pairs["recursion"][1] - theirs[1]) / (theirs[0] - pairs["recursion"][0])
        ax.axvline(crossing, color=GREY, linestyle="--", linewidth=1.0)
        ax.set_title(rf"$\varepsilon$ = {target}, $\rho^*$ = {crossing:.0f}")
        finish(ax, r"price $\rho$ of a gradient, in products")
    axes[0].set_ylabel("total cost, in products")
    legend_below(figure, axes[0])
    return figure


DRAWINGS: dict[str, Drawing] = {
    "exponents": exponents, "separation": separation, "cost": cost, **REGIMES, **TOMOGRAPHY,
}  # fmt: skip
