"""Figures of the regimes that the paper proves without an experiment: restarts, and sampled gradients."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import median
from typing import Any

from saddleslide.paper.rows import Row
from saddleslide.paper.style import finish, new_figure
from saddleslide.runs.plot import STYLES

NAMES = {"f": "f'", "g": "g'", "B": "B, B$^T$"}
LEVELS = {"Bfg": "B outermost", "fgB": "f outermost"}


def _line(ax: Any, number: int, points: Sequence[tuple[float, float]], label: str) -> None:
    colour, marker = STYLES[number]
    # Later lines have smaller markers: where two lines are one, both are seen.
    ax.plot(*zip(*sorted(points), strict=True), color=colour, marker=marker, markersize=7.0 - 1.4 * number,
            linewidth=2.4 - 0.5 * number, label=label)  # fmt: skip


def _medians(rows: Sequence[Row], x: Callable[[Row], float], y: Callable[[Row], float]) -> list[tuple[float, float]]:
    """Medians of y over the seeds for every x."""
    return [(value, median(y(row) for row in rows if x(row) == value)) for value in sorted({x(row) for row in rows})]


def restarts(rows: Sequence[Row]) -> Any:
    """Calls of f' against the target for every Hölder exponent, and calls per restart against the condition number."""
    holder = [row for row in rows if row["group"] == "holder"]
    grown = [row for row in rows if row["group"].startswith("kappa")]
    if not holder or not grown:
        return None
    figure, (left, right) = new_figure(2, width=3.6, share=False)
    for number, nu in enumerate(sorted({row["problem"]["nu_x"] for row in holder})):
        own = [row for row in holder if row["problem"]["nu_x"] == nu]
        points = _medians(own, lambda row: 1.0 / row["settings"]["tol"], lambda row: float(row["calls"]["f"]))
        _line(left, number, points, rf"$\nu_x$ = {nu:g}")
    finish(left, r"1 / $\varepsilon$")
    left.set_ylabel("calls of f'")
    left.legend(frameon=False)
    for number, oracle in enumerate("fgB"):
        own = [row for row in grown if row["settings"]["oracle"] == oracle]
        points = _medians(own, _condition, _per_restart)
        _line(right, number, points, f"{NAMES[oracle]} against {own[0]['settings']['grows_with']}")
    finish(right, "condition number of its own part")
    right.set_ylabel("calls per restart")
    right.legend(frameon=False)
    return figure


def _condition(row: Row) -> float:
    return float(row["problem"][row["settings"]["grows_with"]])


def _per_restart(row: Row) -> float:
    return float(row["calls"][row["settings"]["oracle"]] / row["stages"]["made"])


def stochastic(rows: Sequence[Row]) -> Any:
    """Planned counts against the target, the mean gap against the samples, and Psi stage by stage."""
    groups = [[row for row in rows if row["group"] == name] for name in ("target", "game", "draws, restarts")]
    if not all(groups[:2]):
        return None
    panels = [(draw, own) for draw, own in zip((_targets, _game, _stages), groups, strict=True) if own]
    figure, axes = new_figure(len(panels), width=3.3, height=3.1, share=False)
    for (draw, own), ax in zip(panels, axes, strict=True):
        draw(ax, own)
    return figure


def _targets(ax: Any, rows: Sequence[Row]) -> None:
    own = [row for row in rows if row["settings"]["noise"] == "f"]
    for number, oracle in enumerate("fgB"):
        points = [(1.0 / row["settings"]["tol"], float(row["planned"][oracle])) for row in own]
        _line(ax, number, points, NAMES[oracle])
    finish(ax, r"1 / $\varepsilon$")
    ax.set_title("(a) counts, f' sampled, g' exact")
    ax.set_ylabel("planned calls")
    ax.legend(frameon=False)


def _game(ax: Any, rows: Sequence[Row]) -> None:
    for number, (order, label) in enumerate(LEVELS.items()):
        own = sorted((row for row in rows if row["settings"]["order"] == order), key=lambda row: row["calls"]["f"])
        _with_errors(ax, number, [row["calls"]["f"] for row in own], [_seen(row, 0) for row in own], label)
    finish(ax, "samples of f', and of g'")
    counts = sorted({row["calls"]["f"] for row in rows})
    ax.set_xticks(counts, [str(count) for count in counts])
    ax.set_xticks([], minor=True)
    ax.set_title("(b) bounded: noise dominates")
    ax.set_ylabel("gap: mean and bound")
    ax.legend(frameon=False)


def _stages(ax: Any, rows: Sequence[Row]) -> None:
    for number, noise in enumerate(("f", "g", "f and g")):
        for row in [row for row in rows if row["settings"]["noise"] == noise]:
            stages = range(1, len(row["monte_carlo"]["mean"]) + 1)
            _with_errors(ax, number, list(stages), [_seen(row, s - 1) for s in stages], f"{noise} sampled")
    finish(ax, "stage", log_x=False)
    ax.xaxis.get_major_locator().set_params(integer=True)
    ax.set_title("(c) restarts")
    ax.set_ylabel(r"$\Psi$: mean and promise")
    ax.legend(frameon=False)


def _seen(row: Row, stage: int) -> tuple[float, float, float]:
    """Mean, standard error and promise."""
    found = row["monte_carlo"]
    return found["mean"][stage], found["standard_error"][stage], found["promised"][stage]


def _with_errors(ax: Any, number: int, x: Sequence[float], seen: Sequence[Sequence[float]], label: str) -> None:
    if not seen:
        return
    colour, marker = STYLES[number]
    mean, error, promise = zip(*seen, strict=True)
    ax.errorbar(x, mean, [2.0 * one for one in error], color=colour, marker=marker, markersize=4, linewidth=1.4,
                capsize=2, label=label)  # fmt: skip
    ax.plot(x, promise, color=colour, linestyle="--", linewidth=1.0)


DRAWINGS: dict[str, Callable[[Sequence[Row]], Any]] = {"restarts": restarts, "stochastic": stochastic}
