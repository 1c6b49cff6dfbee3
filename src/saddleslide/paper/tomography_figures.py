"""Figures of the tomography experiment."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import median
from typing import Any

from saddleslide.gallery import phantom
from saddleslide.paper.rows import Row, unpack
from saddleslide.paper.style import METHODS, draw_method, finish, legend_below, new_figure
from saddleslide.runs.plot import require_matplotlib

TARGET = 5e-4
REGIMES = {"standard": "(a) diagonal g'", "nonlocal": "(b) nonlocal g'", "holder": "(c) nonlocal Hölder g'"}
ORACLES = ("calls of f'", "calls of g'", "products with B and B$^T$")


def _curves(rows: Sequence[Row], regime: str) -> list[Row]:
    """Inspected runs of a regime, in the order of the legend."""
    own = [row for row in rows if row["group"] == "curves" and row["problem"]["regime"] == regime]
    return sorted(own, key=lambda row: list(METHODS).index(row["method"]))


def tomography_cost(rows: Sequence[Row]) -> Any:
    """Relative gap against calibrated cost, a panel per regime."""
    if not any(row["group"] == "curves" for row in rows):
        return None
    figure, axes = new_figure(3)
    seen: dict[str, Any] = {}
    for ax, (regime, title) in zip(axes, REGIMES.items(), strict=True):
        for row in _curves(rows, regime):
            prices = [row["prices"][name] for name in "fgB"]
            spent = [sum(c * n for c, n in zip(prices, point[:3], strict=True)) for point in row["curve"]]
            draw_method(ax, row["method"], spent, [point[3] for point in row["curve"]])
        seen |= dict(zip(*reversed(ax.get_legend_handles_labels()), strict=True))
        ax.set_title(title)
        finish(ax, "calibrated cost, s", target=TARGET)
    axes[0].set_ylabel("relative gap")
    figure.legend(seen.values(), seen.keys(), loc="outside lower center", ncols=5, frameon=False)
    return figure


def tomography_oracles(rows: Sequence[Row]) -> Any:
    """Relative gap against the calls of each oracle, nonlocal regime."""
    own = _curves(rows, "nonlocal")
    if not own:
        return None
    figure, axes = new_figure(3)
    for number, (ax, label) in enumerate(zip(axes, ORACLES, strict=True)):
        for row in own:
            draw_method(ax, row["method"], [p[number] for p in row["curve"]], [p[3] for p in row["curve"]])
        finish(ax, label, target=TARGET)
    axes[0].set_ylabel("relative gap")
    legend_below(figure, axes[0])
    return figure


def tomography_pictures(rows: Sequence[Row]) -> Any:
    """The object, its reconstruction, and times of the two quadratic regimes."""
    found = [row for row in rows if "picture" in row and row["group"] == "reconstruction"]
    if not found:
        return None
    row = found[0]
    image, timed = unpack(row["picture"]), [other for other in rows if other["group"] == "test"]
    figure = require_matplotlib()(figsize=(10.4, 2.9), dpi=150, layout="constrained")
    first, second, third, fourth = figure.subplots(1, 4, width_ratios=(1.0, 1.0, 1.1, 1.1))
    titles = ("(a) object, 128 x 128", f"(b) recursive, {row['psnr']:.2f} dB")
    for ax, picture, title in zip((first, second), (phantom(0, image.shape[0]), image), titles, strict=True):
        ax.imshow(picture, cmap="gray", vmin=0.0, vmax=1.0)
        ax.set_title(title)
        ax.set_xticks([])
        ax.set_yticks([])
    for ax, regime, title in ((third, "standard", "(c) diagonal g'"), (fourth, "nonlocal", "(d) nonlocal g'")):
        _bars(ax, [other for other in timed if other["problem"]["regime"] == regime])
        ax.set_title(title)
    return figure


def _bars(ax: Any, rows: Sequence[Row]) -> None:
    """Median seconds per method with the range over the pairs."""
    shown = [method for method in METHODS if any(row["method"] == method for row in rows)]
    for place, method in enumerate(reversed(shown)):
        seconds = [row["seconds"] for row in rows if row["method"] == method]
        middle = median(seconds)
        reach = [[middle - min(seconds)], [max(seconds) - middle]]
        ax.barh(place, middle, xerr=reach, color=METHODS[method][1], height=0.6, capsize=3)
        ax.annotate(f" {middle:.2g} s", (max(seconds), place), va="center", fontsize=8)
    ax.set_yticks(range(len(shown)), [METHODS[method][0] for method in reversed(shown)])
    ax.set_xlabel("seconds")
    ax.margins(x=0.2)


DRAWINGS: dict[str, Callable[[Sequence[Row]], Any]] = {
    "tomography_cost": tomography_cost,
    "tomography_oracles": tomography_oracles,
    "tomography_pictures": tomography_pictures,
}
