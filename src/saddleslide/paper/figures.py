"""Figures from rows alone. Each drawing takes the finished rows of its experiment and may find too few of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from saddleslide.gallery import phantom
from saddleslide.paper.rows import Row, share_costs, unpack
from saddleslide.paper.spec import Experiment
from saddleslide.paper.statistics import at_crossing, median_gaps, predict_exponent, slope
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
GREY = "0.35"
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
    there = [row for key, row in share_costs(rows).items() if key in keys and row["status"] == "done"]
    where, drawn = folder / "figures", {}
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


def _finish(ax: Any, target: float | None = None, xscale: str = "log", yscale: str = "log", **labels: str) -> None:
    """Scales, labels, grid, and the target line."""
    ax.set(xscale=xscale, yscale=yscale, **labels)
    if target is not None:
        ax.axhline(target, color=GREY, linestyle="--", linewidth=1.0)
        ax.annotate(f"{target:g}", (0.01, target), xycoords=("axes fraction", "data"), xytext=(0, 2), ha="left",
                    textcoords="offset points", color=GREY, fontsize=7.5)  # fmt: skip
    ax.grid(visible=True, color="0.9", linewidth=0.7)
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
    """Medians of y, over the seeds, for every x."""
    colour, marker = STYLES[number]
    middle = [(x, median(y for other, y in points if other == x)) for x in sorted({x for x, _ in points})]
    # Later lines have smaller markers: where two lines are one, both are seen.
    ax.plot(*zip(*middle, strict=True), color=colour, marker=marker, markersize=7.0 - 1.4 * number,
            linewidth=2.4 - 0.5 * number, label=label)  # fmt: skip


def _draw_by_oracle(curves: Mapping[str, Sequence[Sequence[float]]], target: float, label: str) -> Any:
    """Gaps of methods against the calls of each oracle; a point of a curve is (f, g, B, gap)."""
    figure, axes = _panels(3)
    for number, (ax, oracle) in enumerate(zip(axes, ORACLES, strict=True)):
        for method, points in curves.items():
            _draw_method(ax, method, [point[number] for point in points], [point[3] for point in points])
        _finish(ax, target, xlabel=oracle)
    axes[0].set_ylabel(label)
    _legend_below(figure, axes[:1])
    return figure


def exponents(rows: Sequence[Row]) -> Any:
    """N_f against the inverse gap, and fitted against predicted exponent."""
    nus = sorted({row["problem"]["nu_x"] for row in rows})
    if not nus:
        return None
    figure, (left, right) = _panels(2, width=3.6, share=False)
    for nu, (colour, marker) in zip(nus, STYLES, strict=False):
        own = [row for row in rows if row["problem"]["nu_x"] == nu]
        points = median_gaps(own, {"field": "calls.f"})
        left.plot([1.0 / gap for _, gap in points], [N for N, _ in points], color=colour, marker=marker, markersize=4,
                  linewidth=1.5, label=rf"$\nu_x$ = {nu:g}")  # fmt: skip
        if len(points) > 1:
            fitted = slope(own, {"field": "calls.f"})
            right.plot(predict_exponent(nu), fitted, color=colour, marker=marker, markersize=7, linestyle="")
    _finish(left, xlabel="1 / exact gap", ylabel="$N_f$")
    _legend_below(figure, [left], 5)
    right.plot([0.4, 2.1], [0.4, 2.1], color=GREY, linestyle="--", linewidth=1.0)
    right.set(xlabel=r"predicted exponent $2/(1+3\nu_x)$", ylabel="fitted exponent")
    right.grid(visible=True, color="0.9", linewidth=0.7)
    return figure


def separation(rows: Sequence[Row]) -> Any:
    """Gap against the calls of each oracle: medians over the seeds, for every target or for every inspection."""
    rows = [row for row in rows if row["group"] != "choice of L0"]
    curves: dict[str, list[list[float]]] = {}
    for method in ("recursion", "two-level-sliding", "lockstep", "universal-mirror-prox"):
        own = [row for row in rows if row["method"] == method]
        if own and own[0]["curve"]:
            inspected = zip(*(row["curve"] for row in own), strict=False)
            curves[method] = [[median(values) for values in zip(*points, strict=True)] for points in inspected]
            continue
        by_target: dict[float, list[list[float]]] = {}
        for row in own:
            point = [*(row["calls"][oracle] for oracle in "fgB"), row["gap"]]
            by_target.setdefault(row["settings"]["tol"], []).append(point)
        targets = sorted(by_target, reverse=True)
        curves[method] = [[median(part) for part in zip(*by_target[target], strict=True)] for target in targets]
    return _draw_by_oracle(curves, 0.1, "exact gap") if rows else None


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
        gradients, products = (
            at_crossing(other, {"limit": float(target), "part": part}, {}) for part in ("gradients", "B")
        )
        if gradients is None or products is None:
            return None
        pairs = {"recursion": (ours["f"] + ours["g"], ours["B"]), "mirror-prox": (gradients, products)}
        for method, (per_cost, fixed) in pairs.items():
            name, colour, _ = METHODS[method]
            ax.plot(prices, prices * per_cost + fixed, color=colour, linewidth=1.6, label=name)
        crossing = (ours["B"] - products) / (gradients - ours["f"] - ours["g"])
        ax.axvline(crossing, color=GREY, linestyle="--", linewidth=1.0)
        title = rf"$\varepsilon$ = {target}, $\rho^*$ = {crossing:.0f}"
        _finish(ax, xlabel=r"price $\rho$ of a gradient, in products", title=title)
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
        _draw_line(left, number, points, rf"$\nu_x$ = {nu:g}")
    _finish(left, xlabel=r"1 / $\varepsilon$", ylabel="calls of f'")
    for number, oracle in enumerate("fgB"):
        own = [row for row in grown if row["settings"]["oracle"] == oracle]
        number_of = own[0]["settings"]["grows_with"]
        points = [(float(row["problem"][number_of]), row["calls"][oracle] / row["stages"]["made"]) for row in own]
        _draw_line(right, number, points, f"{SHORT[oracle]} against {number_of}")
    _finish(right, xlabel="condition number of its own part", ylabel="calls per restart")
    for ax in (left, right):
        ax.legend(frameon=False)
    return figure


def stochastic(rows: Sequence[Row]) -> Any:
    """Planned counts against the target, the mean gap against the samples, and Psi stage by stage."""
    target, game, draws = (
        [row for row in rows if row["group"] == name] for name in ("target", "game", "draws, restarts")
    )
    if not target or not game:
        return None
    figure, axes = _panels(3 if draws else 2, width=3.3, height=3.1, share=False)
    for number, oracle in enumerate("fgB"):
        own = [row for row in target if row["settings"]["noise"] == "f"]
        points = [(1.0 / row["settings"]["tol"], float(row["planned"][oracle])) for row in own]
        _draw_line(axes[0], number, points, SHORT[oracle])
    title = "(a) counts, f' sampled, g' exact"
    _finish(axes[0], xlabel=r"1 / $\varepsilon$", ylabel="planned calls", title=title)

    for number, (order, label) in enumerate({"Bfg": "B outermost", "fgB": "f outermost"}.items()):
        own = sorted((row for row in game if row["settings"]["order"] == order), key=lambda row: row["calls"]["f"])
        _draw_means(axes[1], number, [row["calls"]["f"] for row in own], [_means(row)[0] for row in own], label)
    title = "(b) bounded: noise dominates"
    _finish(axes[1], xlabel="samples of f', and of g'", ylabel="gap: mean and bound", title=title)
    counts = sorted({row["calls"]["f"] for row in game})
    axes[1].set_xticks(counts, [str(count) for count in counts])
    axes[1].set_xticks([], minor=True)

    for number, noise in enumerate(("f", "g", "f and g")):
        for row in [row for row in draws if row["settings"]["noise"] == noise]:
            means = _means(row)
            _draw_means(axes[2], number, range(1, len(means) + 1), means, f"{noise} sampled")
    if draws:
        _finish(axes[2], xscale="linear", xlabel="stage", ylabel=r"$\Psi$: mean and promise", title="(c) restarts")
        axes[2].xaxis.get_major_locator().set_params(integer=True)
    for ax in axes:
        ax.legend(frameon=False)
    return figure


def _means(row: Row) -> list[tuple[float, ...]]:
    """Mean, standard error and promise, of every stage."""
    return list(zip(*(row["monte_carlo"][name] for name in ("mean", "standard_error", "promised")), strict=True))


def _draw_means(ax: Any, number: int, x: Sequence[float], seen: Sequence[Sequence[float]], label: str) -> None:
    """Means with bars of two standard errors, and what is promised of them."""
    if not seen:
        return
    colour, marker = STYLES[number]
    mean, error, promise = zip(*seen, strict=True)
    ax.errorbar(x, mean, [2.0 * one for one in error], color=colour, marker=marker, markersize=4, linewidth=1.4,
                capsize=2, label=label)  # fmt: skip
    ax.plot(x, promise, color=colour, linestyle="--", linewidth=1.0)


def _curves(rows: Sequence[Row], regime: str) -> dict[str, Row]:
    """Inspected runs of a regime of tomography by method, in the order of the legend."""
    own = {row["method"]: row for row in rows if row["group"] == "curves" and row["problem"]["regime"] == regime}
    return {method: own[method] for method in METHODS if method in own}


def tomography_cost(rows: Sequence[Row]) -> Any:
    """Relative gap against calibrated cost, a panel per regime."""
    if not any(row["group"] == "curves" for row in rows):
        return None
    figure, axes = _panels(3)
    for ax, (regime, title) in zip(axes, REGIMES.items(), strict=True):
        for method, row in _curves(rows, regime).items():
            prices = [row["prices"][name] for name in "fgB"]
            spent = [sum(c * n for c, n in zip(prices, point[:3], strict=True)) for point in row["curve"]]
            _draw_method(ax, method, spent, [point[3] for point in row["curve"]])
        _finish(ax, TOMOGRAPHY_TARGET, xlabel="calibrated cost, s", title=title)
    axes[0].set_ylabel("relative gap")
    _legend_below(figure, axes, 5)
    return figure


def tomography_oracles(rows: Sequence[Row]) -> Any:
    """Relative gap against the calls of each oracle, nonlocal regime."""
    curves = {method: row["curve"] for method, row in _curves(rows, "nonlocal").items()}
    return _draw_by_oracle(curves, TOMOGRAPHY_TARGET, "relative gap") if curves else None


def tomography_pictures(rows: Sequence[Row]) -> Any:
    """The object, its reconstruction, and median seconds of the two quadratic regimes with the range over the pairs."""
    found = [row for row in rows if "picture" in row and row["group"] == "reconstruction"]
    if not found:
        return None
    image = unpack(found[0]["picture"])
    figure = require_matplotlib()(figsize=(10.4, 2.9), dpi=150, layout="constrained")
    axes = figure.subplots(1, 4, width_ratios=(1.0, 1.0, 1.1, 1.1))
    titles = ("(a) object, 128 x 128", f"(b) recursive, {found[0]['psnr']:.2f} dB")
    for ax, picture, title in zip(axes[:2], (phantom(0, image.shape[0]), image), titles, strict=True):
        ax.imshow(picture, cmap="gray", vmin=0.0, vmax=1.0)
        ax.set(title=title, xticks=[], yticks=[])
    for ax, regime, title in ((axes[2], "standard", "(c) diagonal g'"), (axes[3], "nonlocal", "(d) nonlocal g'")):
        tested = [row for row in rows if row["group"] == "test" and row["problem"]["regime"] == regime]
        shown = [method for method in reversed(METHODS) if any(row["method"] == method for row in tested)]
        for place, method in enumerate(shown):
            seconds = [row["seconds"] for row in tested if row["method"] == method]
            middle = median(seconds)
            spread = [[middle - min(seconds)], [max(seconds) - middle]]
            ax.barh(place, middle, xerr=spread, color=METHODS[method][1], height=0.6, capsize=3)
            ax.annotate(f" {middle:.2g} s", (max(seconds), place), va="center", fontsize=8)
        ax.set_yticks(range(len(shown)), [METHODS[method][0] for method in shown])
        ax.set(xlabel="seconds", title=title)
        ax.margins(x=0.2)
    return figure


DRAWINGS: dict[str, Callable[[Sequence[Row]], Any]] = {
    drawing.__name__: drawing
    for drawing in (
        exponents, separation, cost, restarts, stochastic, tomography_cost, tomography_oracles, tomography_pictures,
    )
}  # fmt: skip
