"""Sampled f' against full f' on real data: parity of handwritten digits, with every digit treated alike.

1,797 images of digits (scikit-learn's `load_digits`, 64 pixels and a constant). A logistic model says whether a digit
is even. A linear model can score 0, 2, 4, 6, 8 very differently. So the ten differences between the mean score of a
digit and the mean score of its parity class, B x, are held down by 0.2 |B x|_1, which is a maximum over a box:

    min over |x| <= 8, max over |y_k| <= 0.2 of   mean logistic loss(x) + 5e-5 |x|^2 + <y, Bx>

One full f' reads all 1,797 images, a sampled one reads 8. Writes the picture and prints the table behind it. Needs
scikit-learn: pip install "saddleslide[examples]".
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter
from sklearn.datasets import load_digits

import saddleslide as ss

DEFAULT_OUT = Path(__file__).resolve().parents[1] / "docs" / "pictures" / "sampled_digits.png"
TOLERANCES = (0.5, 0.2, 0.1, 0.05, 0.025)
BATCH, RADIUS, WEIGHT, RIDGE = 8, 8.0, 0.2, 1e-4
# Blue and vermilion of Okabe and Ito: told apart with every common colour vision. Markers and dashes differ too.
STYLES = {
    "sampled": {"color": "#0072B2", "marker": "o", "linestyle": "-"},
    "full": {"color": "#D55E00", "marker": "s", "linestyle": "--"},
}
LABELS = {"sampled": f"sampled f ': {BATCH} images a call", "full": "full f ': all images a call"}


def problems() -> tuple[dict[str, ss.SaddleProblem], int]:
    """The same problem with sampled and with full gradients, and the number of images."""
    digits = load_digits()
    images = np.hstack([digits.data, 16.0 * np.ones((len(digits.target), 1))])
    images /= np.linalg.norm(images, axis=1, keepdims=True)
    even = digits.target % 2 == 0
    means = [images[digits.target == k].mean(axis=0) - images[even == (k % 2 == 0)].mean(axis=0) for k in range(10)]
    count = len(images)
    loss = ss.functions.Logistic(images, np.where(even, 1.0, -1.0), ridge=RIDGE * count)
    X, Y = ss.domains.Ball(RADIUS, shape=images.shape[1]), ss.domains.Box(-WEIGHT, WEIGHT, shape=10)
    made = {
        name: ss.SaddleProblem(f=(1.0 / count) * f, g=ss.functions.Zero(), B=np.array(means), X=X, Y=Y)
        for name, f in (("sampled", ss.functions.MiniBatch(loss, BATCH)), ("full", loss))
    }
    return made, count


def measure(tolerances: list[float], seed: int) -> tuple[dict[str, list[ss.Result]], int]:
    """One run per kind of gradient and tolerance; every gap is certified with full gradients, counted apart."""
    made, count = problems()
    results: dict[str, list[ss.Result]] = {}
    for name, problem in made.items():
        plans = [ss.plan(problem, tol, regime="degenerate") for tol in tolerances]
        results[name] = [ss.run(problem, plan, rng=seed) for plan in plans]
    return results, count


def images_read(result: ss.Result, count: int) -> float:
    return float(result.samples.f or result.method_calls.f * count)


def table(tolerances: list[float], results: dict[str, list[ss.Result]], count: int) -> str:
    lines = [f"{'gradient':<10}{'tol':>7}{'order':>7}{'loops':>14}{'gap':>9}{'expected':>10}{'images':>9}{'B':>6}"]
    for name, runs in results.items():
        for tol, result in zip(tolerances, runs, strict=True):
            plan = result.plans[-1]
            lines.append(
                f"{name:<10}{tol:>7g}{plan.order:>7}{plan.loops!s:>14}{result.gap:>9.4f}{plan.bound:>10.3f}"
                f"{images_read(result, count):>9.0f}{result.method_calls.B:>6}"
            )
    return "\n".join(lines)


def draw(results: dict[str, list[ss.Result]], count: int) -> Figure:
    """Gap against images read, and against products."""
    figure = Figure(figsize=(9.0, 3.8), dpi=200, layout="constrained")
    left, right = figure.subplots(1, 2, sharey=True)
    for name, runs in results.items():
        gaps = [result.gap for result in runs]
        left.plot([images_read(r, count) for r in runs], gaps, lw=2, ms=6, label=LABELS[name], **STYLES[name])
        right.plot([r.method_calls.B for r in runs], gaps, lw=2, ms=6, **STYLES[name])
    left.set_xlabel("images read for gradients", fontsize=12)
    right.set_xlabel(r"products with $B$ and $B^T$", fontsize=12)
    left.set_ylabel("certified gap", fontsize=12)
    for axes in (left, right):
        axes.set(xscale="log", yscale="log")
        axes.tick_params(labelsize=11, which="both")
        axes.set_yticks([0.025, 0.05, 0.1, 0.2])
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,g}"))
        axes.yaxis.set_minor_formatter(FuncFormatter(lambda value, _: ""))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
        axes.grid(visible=True, which="major", color="0.88", lw=0.8)
        axes.set_axisbelow(True)
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
    figure.legend(*left.get_legend_handles_labels(), loc="outside upper center", ncols=2, frameon=False, fontsize=12)
    return figure


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=DEFAULT_OUT, help="picture to write")
    parser.add_argument("--tol", type=float, nargs="+", default=list(TOLERANCES), help="target gaps")
    parser.add_argument("--seed", type=int, default=0, help="seed of the draws")
    chosen = parser.parse_args()
    results, count = measure(chosen.tol, chosen.seed)
    print(table(chosen.tol, results, count))
    chosen.out.parent.mkdir(parents=True, exist_ok=True)
    draw(results, count).savefig(chosen.out)


if __name__ == "__main__":
    main()
