"""Pictures from columns of numbers. Matplotlib is imported when the first picture is drawn, and pyplot never."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
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


@dataclass(frozen=True)
class Panel:
    """One horizontal axis: its label and a value for each row of the history.

    Examples
    --------
    >>> Panel("seconds", [0.1, 0.2]).label
    'seconds'
    """

    label: str
    values: Sequence[float]


def require_matplotlib() -> Any:
    """The Figure class, or an error that names the package.

    Examples
    --------
    >>> require_matplotlib().__name__
    'Figure'
    """
    try:
        from matplotlib.figure import Figure
    except ImportError as missing:
        raise MissingExtraError(
            "plot: Matplotlib is not installed; expected it for pictures. It belongs to saddleslide: install it again "
            "with pip install matplotlib."
        ) from missing
    return Figure


def draw_convergence(
    panels: Sequence[Panel], gaps: Sequence[float], target: float, ax: Any = None, path: str | Path | None = None
) -> Any:
    """Gap against every panel's values; returns the figure.

    Examples
    --------
    >>> figure = draw_convergence([Panel("seconds", [1.0, 2.0])], [0.1, 0.01], target=0.05)
    >>> figure.axes[0].get_yscale()
    'log'
    """
    figure_class = require_matplotlib()
    if ax is None:
        figure = figure_class(figsize=(2.6 * len(panels) + 0.6, 2.9), dpi=150, layout="constrained")
        axes = figure.subplots(1, len(panels), sharey=True, squeeze=False)[0]
        _one_panel_each(axes, panels, gaps, target)
    elif isinstance(ax, Iterable):
        axes = [one for row in ax for one in (row if isinstance(row, Iterable) else [row])]
        if len(axes) != len(panels) or not all(callable(getattr(one, "set_xlabel", None)) for one in axes):
            raise InputError(f"plot: ax holds {len(axes)} Axes; expected {len(panels)}, one per panel, or one Axes.")
        _one_panel_each(axes, panels, gaps, target)
        figure = axes[0].figure
    elif not callable(getattr(ax, "set_xlabel", None)):
        raise InputError(f"plot: ax is {ax!r}; expected Axes of Matplotlib, one or one per panel.")
    else:
        _together(ax, panels[:3], gaps, target)
        figure = ax.figure
    if path is not None:
        save_figure(figure, path)
    return figure


def save_figure(figure: Any, path: Any) -> None:
    """Write a figure where its suffix is one that Matplotlib knows; without one it is a PNG.

    Examples
    --------
    >>> save_figure(require_matplotlib()(), "picture.xyz")
    Traceback (most recent call last):
    ...
    saddleslide.errors.InputError: plot: path is 'picture.xyz'; expected a name that ends in one of ...
    """
    place = as_path(path, "plot: path", "gap.png")
    known = sorted(figure.canvas.get_supported_filetypes())
    if place.suffix and place.suffix[1:].lower() not in known:
        raise InputError(f"plot: path is {str(place)!r}; expected a name that ends in one of {known}.")
    figure.savefig(place)


def _one_panel_each(axes: Sequence[Any], panels: Sequence[Panel], gaps: Sequence[float], target: float) -> None:
    for one, panel, style in zip(axes, panels, STYLES, strict=False):
        _line(one, panel, gaps, style)
        _finish(one, panel.label, [panel], gaps, target)
    axes[0].set_ylabel("certified gap")


def _together(ax: Any, panels: Sequence[Panel], gaps: Sequence[float], target: float) -> None:
    for panel, style in zip(panels, STYLES, strict=False):
        _line(ax, panel, gaps, style)
    _finish(ax, "calls", panels, gaps, target)
    ax.set_ylabel("certified gap")
    if ax.get_legend_handles_labels()[0]:
        ax.legend(frameon=False)


def _points(panel: Panel, gaps: Sequence[float]) -> tuple[list[float], list[float]]:
    """Rows that a logarithmic scale can show."""
    rows = [(v, gap) for v, gap in zip(panel.values, gaps, strict=True) if v > 0.0 and math.isfinite(gap) and gap > 0.0]
    return [v for v, _ in rows], [gap for _, gap in rows]


def _line(ax: Any, panel: Panel, gaps: Sequence[float], style: tuple[str, str]) -> None:
    values, shown = _points(panel, gaps)
    if not values:
        return
    marker = style[1] if len(values) <= _MOST_MARKERS else ""
    ax.plot(values, shown, color=style[0], marker=marker, markersize=4, linewidth=1.6, label=panel.label)


def _finish(ax: Any, label: str, panels: Sequence[Panel], gaps: Sequence[float], target: float) -> None:
    values = [v for panel in panels for v in _points(panel, gaps)[0]]
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
    """The object, its reconstruction and their difference, side by side in an empty figure.

    Examples
    --------
    >>> import numpy as np
    >>> figure = require_matplotlib()()
    >>> fill_reconstruction(figure, np.zeros((4, 4)), np.ones((4, 4)), "reconstruction")
    >>> figure.axes[1].get_title()
    'reconstruction'
    """
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
    """One panel per label, one line per name: gaps against the numbers that belong to the label.

    Examples
    --------
    >>> figure = draw_comparison(["seconds"], {"a": [((1.0,), 0.1), ((2.0,), 0.01)]}, target=0.05)
    >>> [text.get_text() for text in figure.legends[0].get_texts()]
    ['a']
    """
    figure = require_matplotlib()(figsize=(2.6 * len(labels) + 2.2, 3.4), dpi=150, layout="constrained")
    axes = figure.subplots(1, len(labels), sharey=True, squeeze=False)[0]
    lines = {}
    for position, (ax, label) in enumerate(zip(axes, labels, strict=True)):
        for number, (name, rows) in enumerate(curves.items()):
            values = [(at[position], gap) for at, gap in rows if at[position] > 0.0 and 0.0 < gap < math.inf]
            style: dict[str, Any] = {
                "color": f"C{number % 10}",
                "linestyle": ("-", "--", ":")[number // 10 % 3],
                "linewidth": 1.4,
            }
            # A dot at the end: a run that was judged once is one point.
            style |= {"marker": "o", "markersize": 3.5, "markevery": [len(values) - 1] if values else []}
            (line,) = ax.plot([v for v, _ in values], [gap for _, gap in values], **style)
            lines[name] = line
        ax.set(xlabel=label, xscale="log", yscale="log")
        ax.axhline(target, color="0.6", linewidth=0.8)
    axes[0].set_ylabel("certified gap")
    figure.legend(list(lines.values()), list(lines), loc="outside right center", frameon=False, fontsize="small")
    if path is not None:
        save_figure(figure, path)
    return figure
