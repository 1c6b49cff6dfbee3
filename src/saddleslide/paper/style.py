"""One look for all figures: the same colour and marker for a method wherever it appears."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from saddleslide.runs.plot import STYLES, require_matplotlib

# Colour and marker by method; Okabe and Ito's colours, told apart with every common colour vision.
METHODS = {
    "recursion": ("recursive (paper's)", *STYLES[0]),
    "two-level-sliding": ("two-level (MP Sliding)", *STYLES[1]),
    "lockstep": ("lockstep", *STYLES[2]),
    "one-level": ("Accelerated Mirror-Prox", *STYLES[2]),
    "mirror-prox": ("Mirror-Prox", *STYLES[4]),
    "universal-mirror-prox": ("Universal Mirror-Prox", *STYLES[3]),
}
GREY, GRID = "0.35", "0.9"
MOST_MARKERS = 12
SETTINGS: dict[Any, Any] = {
    "font.size": 9.0, "axes.titlesize": 9.5, "axes.labelsize": 9.0, "legend.fontsize": 8.5,
    "svg.hashsalt": "saddleslide",
    "axes.spines.top": False, "axes.spines.right": False, "savefig.facecolor": "white",
}  # fmt: skip


def new_figure(columns: int, width: float = 3.0, height: float = 2.9, share: bool = True) -> tuple[Any, Sequence[Any]]:
    """A row of panels."""
    figure = require_matplotlib()(figsize=(width * columns + 0.4, height), dpi=150, layout="constrained")
    return figure, list(figure.subplots(1, columns, sharey=share, squeeze=False)[0])


def draw_method(ax: Any, method: str, x: Sequence[float], y: Sequence[float]) -> None:
    """A line in the method's own style; markers thinned out on long ones."""
    name, colour, marker = METHODS[method]
    # The paper's method is drawn first and wider: where another line is the same, both are seen.
    size, width = (6.5, 3.0) if method == "recursion" else (4.0, 1.5)
    ax.plot(x, y, color=colour, marker=marker, markevery=_spread(x), markersize=size, linewidth=width, label=name)


def _spread(x: Sequence[float]) -> list[int]:
    """Positions of markers, evenly spread on a logarithmic axis."""
    if len(x) <= MOST_MARKERS:
        return list(range(len(x)))
    low, high = math.log(x[0]), math.log(x[-1])
    wanted = [math.exp(low + (high - low) * k / (MOST_MARKERS - 1)) for k in range(MOST_MARKERS)]
    return sorted({min(range(len(x)), key=lambda i: abs(x[i] - value)) for value in wanted})


def finish(ax: Any, label: str, log_x: bool = True, target: float | None = None) -> None:
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


def legend_below(figure: Any, ax: Any, columns: int = 4) -> None:
    """One legend for all panels."""
    handles, labels = ax.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=columns, frameon=False)


def save(figure: Any, folder: Path, name: str) -> str:
    """SVG and PNG, with the same bytes every time; the path of the SVG, relative to the folder."""
    where = folder / "figures"
    where.mkdir(parents=True, exist_ok=True)
    from matplotlib import rc_context

    with rc_context(SETTINGS):
        figure.savefig(where / f"{name}.svg", metadata={"Date": None})
        figure.savefig(where / f"{name}.png", metadata={"Software": None})
    return f"figures/{name}.svg"
