"""Reconstruct a picture from noisy projections and draw what it cost, with two metrics.

Every point of the right panel is one run of `ss.solve` that stopped by its own certificate; all calls are counted.
Writes the picture and prints the table behind it.
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import saddleslide as ss

DEFAULT_OUT = Path(__file__).resolve().parents[1] / "docs" / "pictures" / "tomography.png"
TARGETS = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8)
# Blue and vermilion of Okabe and Ito: told apart with every common colour vision. Markers and dashes differ too.
STYLES = {
    "auto": {"color": "#0072B2", "marker": "o", "linestyle": "-", "label": "auto (spectral)"},
    "blocks": {"color": "#D55E00", "marker": "s", "linestyle": "--", "label": "blocks"},
}


def measure(problem: ss.SaddleProblem, targets: list[float]) -> dict[str, list[ss.Result]]:
    """One run per metric and target."""
    return {metric: [ss.solve(problem, reduction=part, metric=metric) for part in targets] for metric in STYLES}


def table(targets: list[float], results: dict[str, list[ss.Result]]) -> str:
    """The numbers of the picture."""
    lines = [f"{'metric':<8}{'reduction':>8}{'gap':>10}{'f':>8}{'g':>6}{'B':>8}  status"]
    for metric, runs in results.items():
        for reduction, result in zip(targets, runs, strict=True):
            calls = result.calls
            lines.append(
                f"{metric:<8}{reduction:>8.0e}{result.gap:>10.2e}{calls.f:>8g}{calls.g:>6g}{calls.B:>8}"
                f"  {result.status.name.lower()}"
            )
    return "\n".join(lines)


def psnr(image: np.ndarray, truth: np.ndarray) -> float:
    return 10.0 * math.log10(1.0 / float(np.mean((image - truth) ** 2)))


def draw(truth: np.ndarray, targets: list[float], results: dict[str, list[ss.Result]]) -> Figure:
    """Object, reconstruction, and target against calls of f'."""
    figure = Figure(figsize=(9.6, 3.0), dpi=170, layout="compressed")
    left, middle, right = figure.subplots(1, 3, width_ratios=(1.0, 1.0, 1.35))
    right.set_box_aspect(0.72)
    image = results["auto"][-1].x
    pictures = ((left, truth, "object"), (middle, image, f"from 10 % noise: {psnr(image, truth):.1f} dB"))
    for axes, picture, title in pictures:
        axes.imshow(picture, cmap="gray", vmin=0.0, vmax=1.0)
        axes.set_title(title, fontsize=12)
        axes.set_xticks([])
        axes.set_yticks([])
    for metric, runs in results.items():
        right.plot([run.calls.f for run in runs], targets, lw=2, ms=6, **STYLES[metric])
    tidy(right)
    return figure


def tidy(axes: Axes) -> None:
    """Log scales, a light grid, no box."""
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("calls of $f\\,'$ until certified", fontsize=12)
    axes.set_ylabel("relative gap asked for", fontsize=12)
    ticks = [10, 20, 50, 100, 200, 500, 1000]
    low, high = axes.get_xlim()
    axes.set_xticks([t for t in ticks if low <= t <= high], [str(t) for t in ticks if low <= t <= high], minor=False)
    axes.set_xticks([], minor=True)
    axes.legend(frameon=False, fontsize=11, title="metric", loc="lower center")
    axes.grid(visible=True, which="major", color="0.88", lw=0.8)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=DEFAULT_OUT, help="picture to write")
    parser.add_argument("--size", type=int, default=64, help="pixels per side")
    parser.add_argument("--reduction", type=float, nargs="+", default=list(TARGETS), help="relative targets")
    chosen = parser.parse_args()
    problem = ss.gallery.realistic_tomography("low_dose", n=chosen.size)
    results = measure(problem, chosen.reduction)
    print(table(chosen.reduction, results))
    chosen.out.parent.mkdir(parents=True, exist_ok=True)
    draw(ss.gallery.shaded_phantom(chosen.size), chosen.reduction, results).savefig(chosen.out)


if __name__ == "__main__":
    main()
