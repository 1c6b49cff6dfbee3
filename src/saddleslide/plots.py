"""Pictures from columns of numbers. Matplotlib is imported when the first picture is drawn, pyplot for `show` alone."""

from __future__ import annotations

import io
import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from saddleslide.arrays.arguments import as_path
from saddleslide.arrays.base import Array
from saddleslide.errors import InputError, MissingExtraError

# Blue, vermilion, bluish green, reddish purple and black of Okabe and Ito: told apart with every common colour vision.
# Markers differ too.
STYLES = (("#0072B2", "o"), ("#D55E00", "s"), ("#009E73", "^"), ("#CC79A7", "D"), ("#000000", "v"))
_TARGET_STYLE = {"color": "0.35", "linestyle": "--", "linewidth": 1.2}
_MOST_MARKERS = 40
# Ranges shorter than this are drawn on a linear scale.
_LOG_RANGE = 30.0
_NOTHING = "the history holds no finite gap"


def require_matplotlib() -> Any:
    """A Figure class whose figures show in notebooks and, by `show()`, in windows; an error that names the package."""
    try:
        from matplotlib.figure import Figure
    except ImportError as missing:
        raise MissingExtraError(
            "plot: Matplotlib is not installed; expected it for pictures. It belongs to saddleslide: install it again "
            "with pip install matplotlib."
        ) from missing
    return _picture_class(Figure)


@cache
def _picture_class(Figure: Any) -> Any:
    class Picture(Figure):  # type: ignore[misc]
        """A figure that pyplot does not keep: it shows where it is asked to, once."""

        def _repr_png_(self) -> bytes:
            buffer = io.BytesIO()
            self.savefig(buffer, format="png")
            return buffer.getvalue()

        def show(self, warn: bool = True) -> None:
            """Open a window; in a notebook, draw into the cell."""
            from matplotlib import pyplot

            if self.canvas.manager is None:
                # A window is made for an empty figure, and shows this one.
                manager: Any = pyplot.figure(figsize=self.get_size_inches()).canvas.manager
                manager.canvas.figure = self
                self.set_canvas(manager.canvas)
            pyplot.show()

    return Picture


def draw_convergence(
    panels: Mapping[str, Sequence[float]], gaps: Sequence[float], target: float, ax: Any = None, path: Any = None
) -> Any:
    """Gap against every panel, a label and a value for each row of the history; returns the figure."""
    new_figure, labels = require_matplotlib(), list(panels)
    if ax is None:
        figure = new_figure(figsize=(2.6 * len(labels) + 0.6, 2.9), dpi=150, layout="constrained")
        axes = list(figure.subplots(1, len(labels), sharey=True, squeeze=False)[0])
    elif isinstance(ax, Iterable):
        axes = [one for row in ax for one in (row if isinstance(row, Iterable) else [row])]
        if len(axes) != len(labels) or not all(callable(getattr(one, "set_xlabel", None)) for one in axes):
            raise InputError(f"plot: ax holds {len(axes)} Axes; expected {len(labels)}, one per panel, or one Axes.")
    elif callable(getattr(ax, "set_xlabel", None)):
        axes = [ax]
    else:
        raise InputError(f"plot: ax is {ax!r}; expected Axes of Matplotlib, one or one per panel.")
    together = axes[0] is ax
    groups = [("calls", labels[:3])] if together else [(label, [label]) for label in labels]
    styles = dict(zip(labels, STYLES, strict=False))
    for one, (label, names) in zip(axes, groups, strict=True):
        shown: list[float] = []
        for name in names:
            # Rows that a logarithmic scale can show.
            rows = [(v, gap) for v, gap in zip(panels[name], gaps, strict=True) if v > 0.0 and 0.0 < gap < math.inf]
            if rows:
                (color, marker), (values, heights) = styles[name], zip(*rows, strict=True)
                marker = marker if len(rows) <= _MOST_MARKERS else ""
                one.plot(values, heights, color=color, marker=marker, markersize=4, linewidth=1.6, label=name)
                shown += values
        _finish(one, label, shown, gaps, target)
    axes[0].set_ylabel("certified gap")
    if together and ax.get_legend_handles_labels()[0]:
        ax.legend(frameon=False)
    if path is not None:
        save_figure(axes[0].figure, path)
    return axes[0].figure


def save_figure(figure: Any, path: Any) -> None:
    """Write a figure where its suffix is one that Matplotlib knows; without one it is a PNG."""
    place = as_path(path, "plot: path", "gap.png")
    known = sorted(figure.canvas.get_supported_filetypes())
    if place.suffix and place.suffix[1:].lower() not in known:
        raise InputError(f"plot: path is {str(place)!r}; expected a name that ends in one of {known}.")
    figure.savefig(place)


def _finish(ax: Any, label: str, values: Sequence[float], gaps: Sequence[float], target: float) -> None:
    ax.set_xlabel(label)
    ax.set_yscale("log")
    if not values:
        known = any(math.isfinite(gap) and gap > 0.0 for gap in gaps)
        ax.text(0.5, 0.5, "none" if known else _NOTHING, transform=ax.transAxes, ha="center", va="center", wrap=True)
        ax.set_xticks([])
    elif max(values) > _LOG_RANGE * min(values):
        ax.set_xscale("log")
    else:
        ax.set_xlim(0.0, 1.05 * max(values))
    levels = [level for level in (*gaps, target) if math.isfinite(level) and level > 0.0]
    if levels:
        # Set by hand: a single level leaves Matplotlib without a range.
        ax.set_ylim(0.5 * min(levels), 2.0 * max(levels))
    if math.isfinite(target) and target > 0.0:
        ax.axhline(target, **_TARGET_STYLE)
        ax.annotate("target", (0.02, target), xycoords=("axes fraction", "data"), xytext=(0, 2),
                    textcoords="offset points", color="0.35", fontsize="small")  # fmt: skip
    ax.grid(visible=True, color="0.9", linewidth=0.8)
    ax.set_axisbelow(True)
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)


def fill_reconstruction(figure: Any, truth: Array, image: Array, caption: str) -> None:
    """The object, its reconstruction and their difference, side by side in an empty figure."""
    left, middle, right = figure.subplots(1, 3)
    low, high = float(truth.min()), float(truth.max()) or 1.0
    for ax, picture, title in ((left, truth, "object"), (middle, image, caption)):
        shown = ax.imshow(picture, cmap="gray", vmin=low, vmax=high)
        ax.set_title(title, fontsize="medium")
    figure.colorbar(shown, ax=[left, middle], shrink=0.85)
    difference = image - truth
    reach = float(abs(difference).max()) or 1.0
    shown = right.imshow(difference, cmap="PuOr", vmin=-reach, vmax=reach)
    right.set_title("difference", fontsize="medium")
    figure.colorbar(shown, ax=right, shrink=0.85)
    for ax in (left, middle, right):
        ax.set_xticks([])
        ax.set_yticks([])


def draw_comparison(
    labels: Sequence[str],
    curves: Mapping[str, Sequence[tuple[tuple[float, ...], float]]],
    target: float,
    path: str | Path | None = None,
) -> Any:
    """One panel per label, one line per name: gaps against the numbers that belong to the label."""
    figure = require_matplotlib()(figsize=(2.6 * len(labels) + 2.2, 3.4), dpi=150, layout="constrained")
    axes = figure.subplots(1, len(labels), sharey=True, squeeze=False)[0]
    lines = {}
    for position, (ax, label) in enumerate(zip(axes, labels, strict=True)):
        for number, (name, rows) in enumerate(curves.items()):
            values = [(at[position], gap) for at, gap in rows if at[position] > 0.0 and 0.0 < gap < math.inf]
            style = {"color": f"C{number % 10}", "linestyle": ("-", "--", ":")[number // 10 % 3], "linewidth": 1.4}
            # A dot at the end: a run that was judged once is one point.
            dot: Any = {"marker": "o", "markersize": 3.5, "markevery": [len(values) - 1] if values else []}
            (lines[name],) = ax.plot([v for v, _ in values], [gap for _, gap in values], **style, **dot)
        ax.set(xlabel=label, xscale="log", yscale="log")
        ax.axhline(target, color="0.6", linewidth=0.8)
    axes[0].set_ylabel("certified gap")
    figure.legend(list(lines.values()), list(lines), loc="outside right center", frameon=False, fontsize="small")
    if path is not None:
        save_figure(figure, path)
    return figure
