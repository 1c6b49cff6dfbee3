"""Figures from rows alone. Each drawing takes the finished rows of its experiment and may find too few of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from saddleslide.gallery import phantom
from saddleslide.paper.rows import Row, share_prices, unpack
from saddleslide.paper.spec import Experiment
from saddleslide.paper.statistics import at_crossing, predicted_exponent, slope
from saddleslide.plots import STYLES, require_matplotlib

# Colour and marker by method; Okabe and Ito's colours, told apart with every common colour vision.
METHODS = {
    "recursion": ("recursive (paper's)", *STYLES[0]),
    "two-level-sliding": ("two-level (MP Sliding)", *STYLES[1]),
    "lockstep": ("lockstep", *STYLES[2]),
    "one-level": ("Accelerated Mirror-Prox", *STYLES[2]),
    "mirror-prox": ("Mirror-Prox", *STYLES[4]),
    "universal-mirror-prox": ("Universal Mirror-Prox", *STYLES[3]),
}
ORACLES = ("calls of f'", "calls of g'", "products with B and B$^T$")
SHORT = {"f": "f'", "g": "g'", "B": "B, B$^T$"}
REGIMES = {"standard": "(a) diagonal g'", "nonlocal": "(b) nonlocal g'", "holder": "(c) nonlocal Hölder g'"}
# Target of the tomography experiment.
TOMOGRAPHY_TARGET = 5e-4
GREY, GRID = "0.35", "0.9"
MOST_MARKERS = 12
SETTINGS: dict[Any, Any] = {
    "font.size": 9.0, "axes.titlesize": 9.5, "axes.labelsize": 9.0, "legend.fontsize": 8.5,
    "svg.hashsalt": "saddleslide",
    "axes.spines.top": False, "axes.spines.right": False, "savefig.facecolor": "white",
}  # fmt: skip


def draw_all(experiment: Experiment, rows: Mapping[str, Row], folder: Path) -> dict[str, str]:
    """Every figure of an experiment that the rows allow, as SVG and PNG: its name, and its path in the folder.

    The bytes are the same every time.
    """
    from matplotlib import rc_context

    keys = {run.key for run in experiment.runs(optional=True)}
    there = [row for key, row in share_prices(rows).items() if key in keys and row["status"] == "done"]
    where = folder / "figures"
    drawn = {}
    for name in (figure["name"] for figure in experiment.figures):
        with rc_context(SETTINGS):
            figure = DRAWINGS[name](there)
            if figure is None:
                continue
            where.mkdir(parents=True, exist_ok=True)
            figure.savefig(where / f"{name}.svg", metadata={"Date": None})
            figure.savefig(where / f"{name}.png", metadata={"Software": None})
        drawn[name] = f"figures/{name}.svg"
    return drawn


def _panels(columns: int, width: float = 3.0, height: float = 2.9, share: bool = True) -> tuple[Any, Sequence[Any]]:
    """A figure with a row of panels."""
    figure = require_matplotlib()(figsize=(width * columns + 0.4, height), dpi=150, layout="constrained")
    return figure, list(figure.subplots(1, columns, sharey=share, squeeze=False)[0])


def _finish(ax: Any, label: str, log_x: bool = True, target: float | None = None) -> None:
    """Scales, grid, and the target line."""
    ax.set_xlabel(label)
    ax.set_yscale("log")
    if log_x:
        ax.set_xscale("log")
    if target is not None:
        ax.axhline(target, color=GREY, linestyle="--", linewidth=1.0)
        ax.annotate(f"{target:g}", (0.01, target), xycoords=("axes fraction", "data"), xytext=(0, 2), ha="left",
                    textcoords="offset points", color=GREY, fontsize=7.5)  # fmt: skip
    ax.grid(visible=True, color=GRID, linewidth=0.7)
    ax.set_axisbelow(True)


def _legend_below(figure: Any, axes: Sequence[Any], columns: int = 4) -> None:
    """One legend for all panels."""
    seen: dict[str, Any] = {}
    for ax in axes:
        seen |= dict(zip(*reversed(ax.get_legend_handles_labels()), strict=True))
    figure.legend(seen.values(), seen.keys(), loc="outside lower center", ncols=columns, frameon=False)


def _draw_method(ax: Any, method: str, x: Sequence[float], y: Sequence[float]) -> None:
    """A line in the method's own style; on a long one few markers, evenly spread on a logarithmic axis."""
    name, colour, marker = METHODS[method]
    marked = set(range(len(x)))
    if len(x) > MOST_MARKERS:
        low, high = math.log(x[0]), math.log(x[-1])
        wanted = [math.exp(low + (high - low) * k / (MOST_MARKERS - 1)) for k in range(MOST_MARKERS)]
        marked = {min(range(len(x)), key=lambda i: abs(x[i] - value)) for value in wanted}
    # The paper's method is drawn first and wider: where another line is the same, both are seen.
    size, width = (6.5, 3.0) if method == "recursion" else (4.0, 1.5)
    ax.plot(x, y, color=colour, marker=marker, markevery=sorted(marked), markersize=size, linewidth=width, label=name)


def _draw_line(ax: Any, number: int, points: Sequence[tuple[float, float]], label: str) -> None:
    colour, marker = STYLES[number]
    # Later lines have smaller markers: where two lines are one, both are seen.
    ax.plot(*zip(*sorted(points), strict=True), color=colour, marker=marker, markersize=7.0 - 1.4 * number,
            linewidth=2.4 - 0.5 * number, label=label)  # fmt: skip


def exponents(rows: Sequence[Row]) -> Any:
    """N_f against the inverse gap, and fitted against predicted exponent."""
    nus = sorted({row["problem"]["nu_x"] for row in rows})
    if not nus:
        return None
    figure, (left, right) = _panels(2, width=3.6, share=False)
    for nu, (colour, marker) in zip(nus, STYLES, strict=False):
        own = [row for row in rows if row["problem"]["nu_x"] == nu]
        counts = {row["calls"]["f"] for row in own}
        points = sorted((N, median(row["gap"] for row in own if row["calls"]["f"] == N)) for N in counts)
        left.plot([1.0 / gap for _, gap in points], [N for N, _ in points], color=colour, marker=marker, markersize=4,
                  linewidth=1.5, label=rf"$\nu_x$ = {nu:g}")  # fmt: skip
        if len(points) > 1:
            fitted = slope(own, {"field": "calls.f"})
            right.plot(predicted_exponent(nu), fitted, color=colour, marker=marker, markersize=7, linestyle="")
    _finish(left, "1 / exact gap")
    left.set_ylabel("$N_f$")
    _legend_below(figure, [left], 5)
    span = np.array([0.4, 2.1])
    right.plot(span, span, color=GREY, linestyle="--", linewidth=1.0)
    right.set_xlabel(r"predicted exponent $2/(1+3\nu_x)$")
    right.set_ylabel("fitted exponent")
    right.grid(visible=True, color="0.9", linewidth=0.7)
    return figure


def separation(rows: Sequence[Row]) -> Any:
    """Gap against the calls of each oracle, medians over the seeds."""
    rows = [row for row in rows if row["group"] != "choice of L0"]
    if not rows:
        return None
    figure, axes = _panels(3)
    for method in ("recursion", "two-level-sliding", "lockstep", "universal-mirror-prox"):
        points = _median_points([row for row in rows if row["method"] == method])
        for number, ax in enumerate(axes):
            _draw_method(ax, method, [point[number] for point in points], [point[3] for point in points])
    for ax, label in zip(axes, ORACLES, strict=True):
        _finish(ax, label, target=0.1)
    axes[0].set_ylabel("exact gap")
    _legend_below(figure, axes[:1])
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
    sliding = [row for row in rows if row["group"] == "sliding"]
    other = [row for row in rows if row["group"] == "mirror-prox"]
    targets = sorted({row["settings"]["eps"] for row in sliding}, key=float, reverse=True)
    if not targets or not other:
        return None
    figure, axes = _panels(len(targets))
    prices = np.geomspace(1.0, 1000.0, 100)
    for ax, target in zip(axes, targets, strict=True):
        ours = next(row for row in sliding if row["settings"]["eps"] == target)["calls"]
        theirs = [at_crossing(other, {"limit": float(target), "part": part}, {}) for part in ("gradients", "B")]
        if theirs[0] is None or theirs[1] is None:
            return None
        pairs = {"recursion": (ours["f"] + ours["g"], ours["B"]), "mirror-prox": (theirs[0], theirs[1])}
        for method, (gradients, products) in pairs.items():
            name, colour, _ = METHODS[method]
            ax.plot(prices, prices * gradients + products, color=colour, linewidth=1.6, label=name)
        crossing = (pairs["recursion"][1] - theirs[1]) / (theirs[0] - pairs["recursion"][0])
        ax.axvline(crossing, color=GREY, linestyle="--", linewidth=1.0)
        ax.set_title(rf"$\varepsilon$ = {target}, $\rho^*$ = {crossing:.0f}")
        _finish(ax, r"price $\rho$ of a gradient, in products")
    axes[0].set_ylabel("total cost, in products")
    _legend_below(figure, axes[:1])
    return figure


def restarts(rows: Sequence[Row]) -> Any:
    """Calls of f' against the target for every Hölder exponent, and calls per restart against the condition number."""
    holder = [row for row in rows if row["group"] == "holder"]
    grown = [row for row in rows if row["group"].startswith("kappa")]
    if not holder or not grown:
        return None
    figure, (left, right) = _panels(2, width=3.6, share=False)
    for number, nu in enumerate(sorted({row["problem"]["nu_x"] for row in holder})):
        own = [row for row in holder if row["problem"]["nu_x"] == nu]
        points = [(1.0 / row["settings"]["tol"], float(row["calls"]["f"])) for row in own]
        _draw_line(left, number, _medians(points), rf"$\nu_x$ = {nu:g}")
    _finish(left, r"1 / $\varepsilon$")
    left.set_ylabel("calls of f'")
    left.legend(frameon=False)
    for number, oracle in enumerate("fgB"):
        own = [row for row in grown if row["settings"]["oracle"] == oracle]
        number_of = own[0]["settings"]["grows_with"]
        points = [(float(row["problem"][number_of]), row["calls"][oracle] / row["stages"]["made"]) for row in own]
        _draw_line(right, number, _medians(points), f"{SHORT[oracle]} against {number_of}")
    _finish(right, "condition number of its own part")
    right.set_ylabel("calls per restart")
    right.legend(frameon=False)
    return figure


def _medians(points: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Medians of y, over the seeds, for every x."""
    return [(x, median(y for other, y in points if other == x)) for x in sorted({x for x, _ in points})]


def stochastic(rows: Sequence[Row]) -> Any:
    """Planned counts against the target, the mean gap against the samples, and Psi stage by stage."""
    groups = [[row for row in rows if row["group"] == name] for name in ("target", "game", "draws, restarts")]
    if not all(groups[:2]):
        return None
    panels = [(draw, own) for draw, own in zip((_targets, _game, _stages), groups, strict=True) if own]
    figure, axes = _panels(len(panels), width=3.3, height=3.1, share=False)
    for (draw, own), ax in zip(panels, axes, strict=True):
        draw(ax, own)
        ax.legend(frameon=False)
    return figure


def _targets(ax: Any, rows: Sequence[Row]) -> None:
    own = [row for row in rows if row["settings"]["noise"] == "f"]
    for number, oracle in enumerate("fgB"):
        points = [(1.0 / row["settings"]["tol"], float(row["planned"][oracle])) for row in own]
        _draw_line(ax, number, points, SHORT[oracle])
    _finish(ax, r"1 / $\varepsilon$")
    ax.set_title("(a) counts, f' sampled, g' exact")
    ax.set_ylabel("planned calls")


def _game(ax: Any, rows: Sequence[Row]) -> None:
    for number, (order, label) in enumerate({"Bfg": "B outermost", "fgB": "f outermost"}.items()):
        own = sorted((row for row in rows if row["settings"]["order"] == order), key=lambda row: row["calls"]["f"])
        _draw_means(ax, number, [row["calls"]["f"] for row in own], [_mean(row, 0) for row in own], label)
    _finish(ax, "samples of f', and of g'")
    counts = sorted({row["calls"]["f"] for row in rows})
    ax.set_xticks(counts, [str(count) for count in counts])
    ax.set_xticks([], minor=True)
    ax.set_title("(b) bounded: noise dominates")
    ax.set_ylabel("gap: mean and bound")


def _stages(ax: Any, rows: Sequence[Row]) -> None:
    for number, noise in enumerate(("f", "g", "f and g")):
        for row in [row for row in rows if row["settings"]["noise"] == noise]:
            stages = range(1, len(row["monte_carlo"]["mean"]) + 1)
            _draw_means(ax, number, stages, [_mean(row, s - 1) for s in stages], f"{noise} sampled")
    _finish(ax, "stage", log_x=False)
    ax.xaxis.get_major_locator().set_params(integer=True)
    ax.set_title("(c) restarts")
    ax.set_ylabel(r"$\Psi$: mean and promise")


def _mean(row: Row, stage: int) -> list[float]:
    """Mean, standard error and promise."""
    return [row["monte_carlo"][name][stage] for name in ("mean", "standard_error", "promised")]


def _draw_means(ax: Any, number: int, x: Sequence[float], seen: Sequence[Sequence[float]], label: str) -> None:
    """Means with bars of two standard errors, and what is promised of them."""
    if not seen:
        return
    colour, marker = STYLES[number]
    mean, error, promise = zip(*seen, strict=True)
    ax.errorbar(x, mean, [2.0 * one for one in error], color=colour, marker=marker, markersize=4, linewidth=1.4,
                capsize=2, label=label)  # fmt: skip
    ax.plot(x, promise, color=colour, linestyle="--", linewidth=1.0)


def _curves(rows: Sequence[Row], regime: str) -> list[Row]:
    """Inspected runs of a regime of tomography, in the order of the legend."""
    own = [row for row in rows if row["group"] == "curves" and row["problem"]["regime"] == regime]
    return sorted(own, key=lambda row: list(METHODS).index(row["method"]))


def tomography_cost(rows: Sequence[Row]) -> Any:
    """Relative gap against calibrated cost, a panel per regime."""
    if not any(row["group"] == "curves" for row in rows):
        return None
    figure, axes = _panels(3)
    for ax, (regime, title) in zip(axes, REGIMES.items(), strict=True):
        for row in _curves(rows, regime):
            prices = [row["prices"][name] for name in "fgB"]
            spent = [sum(c * n for c, n in zip(prices, point[:3], strict=True)) for point in row["curve"]]
            _draw_method(ax, row["method"], spent, [point[3] for point in row["curve"]])
        ax.set_title(title)
        _finish(ax, "calibrated cost, s", target=TOMOGRAPHY_TARGET)
    axes[0].set_ylabel("relative gap")
    _legend_below(figure, axes, 5)
    return figure


def tomography_oracles(rows: Sequence[Row]) -> Any:
    """Relative gap against the calls of each oracle, nonlocal regime."""
    own = _curves(rows, "nonlocal")
    if not own:
        return None
    figure, axes = _panels(3)
    for number, (ax, label) in enumerate(zip(axes, ORACLES, strict=True)):
        for row in own:
            _draw_method(ax, row["method"], [p[number] for p in row["curve"]], [p[3] for p in row["curve"]])
        _finish(ax, label, target=TOMOGRAPHY_TARGET)
    axes[0].set_ylabel("relative gap")
    _legend_below(figure, axes[:1])
    return figure


def tomography_pictures(rows: Sequence[Row]) -> Any:
    """The object, its reconstruction, and times of the two quadratic regimes."""
    found = [row for row in rows if "picture" in row and row["group"] == "reconstruction"]
    if not found:
        return None
    image = unpack(found[0]["picture"])
    figure = require_matplotlib()(figsize=(10.4, 2.9), dpi=150, layout="constrained")
    first, second, third, fourth = figure.subplots(1, 4, width_ratios=(1.0, 1.0, 1.1, 1.1))
    titles = ("(a) object, 128 x 128", f"(b) recursive, {found[0]['psnr']:.2f} dB")
    for ax, picture, title in zip((first, second), (phantom(0, image.shape[0]), image), titles, strict=True):
        ax.imshow(picture, cmap="gray", vmin=0.0, vmax=1.0)
        ax.set_title(title)
        ax.set_xticks([])
        ax.set_yticks([])
    for ax, regime, title in ((third, "standard", "(c) diagonal g'"), (fourth, "nonlocal", "(d) nonlocal g'")):
        _bars(ax, [row for row in rows if row["group"] == "test" and row["problem"]["regime"] == regime])
        ax.set_title(title)
    return figure


def _bars(ax: Any, rows: Sequence[Row]) -> None:
    """Median seconds per method with the range over the pairs."""
    shown = [method for method in METHODS if any(row["method"] == method for row in rows)]
    for place, method in enumerate(reversed(shown)):
        seconds = [row["seconds"] for row in rows if row["method"] == method]
        middle = median(seconds)
        spread = [[middle - min(seconds)], [max(seconds) - middle]]
        ax.barh(place, middle, xerr=spread, color=METHODS[method][1], height=0.6, capsize=3)
        ax.annotate(f" {middle:.2g} s", (max(seconds), place), va="center", fontsize=8)
    ax.set_yticks(range(len(shown)), [METHODS[method][0] for method in reversed(shown)])
    ax.set_xlabel("seconds")
    ax.margins(x=0.2)


DRAWINGS: dict[str, Callable[[Sequence[Row]], Any]] = {
    drawing.__name__: drawing
    for drawing in (
        exponents, separation, cost, restarts, stochastic, tomography_cost, tomography_oracles, tomography_pictures,
    )
}  # fmt: skip
