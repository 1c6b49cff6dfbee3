"""Numbers from rows: what the columns are made of. Each takes rows, the column and the cells before it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import median
from typing import Any

import numpy as np

from saddleslide.paper.rows import Row, field_of

Column = Mapping[str, Any]
Cells = Mapping[str, Any]
Statistic = Callable[[Sequence[Row], Column, Cells], Any]
# Exponents are fitted over the largest budgets alone (paper, "Validity of the bound").
FITTED_BUDGETS = 4


def only(values: Iterable[Any]) -> Any:
    """The value that all share, or all the different ones."""
    found = sorted(set(values))
    return found[0] if len(found) == 1 else " or ".join(map(str, found))


def extremes(values: Iterable[float]) -> tuple[float, float]:
    """The smallest and the largest."""
    found = [float(value) for value in values]
    return min(found), max(found)


def values(rows: Iterable[Row], column: Column) -> list[Any]:
    """The column's field in every row that has it."""
    return [value for row in rows if (value := field_of(row, column["field"])) is not None]


def group_medians(pairs: Iterable[tuple[Any, float]]) -> dict[Any, float]:
    """Medians of the second entries, by the first ones in rising order."""
    found: dict[Any, list[float]] = {}
    for name, value in pairs:
        found.setdefault(name, []).append(value)
    return {name: median(found[name]) for name in sorted(found)}


def predict_exponent(nu: float) -> float:
    """The exponent that the paper's table promises for a Hölder exponent."""
    return 2.0 / (1.0 + 3.0 * nu)


def crossover(rows: Sequence[Row], column: Column, cells: Cells) -> float:
    """rho* = (extra products) / (saved gradients), from the four counts named in the column."""
    ours_gradients, ours_products, theirs_gradients, theirs_products = (float(cells[name]) for name in column["of"])
    return (ours_products - theirs_products) / (theirs_gradients - ours_gradients)


def median_gaps(rows: Sequence[Row], column: Column) -> list[tuple[float, float]]:
    """(count, median gap) for every count, in rising order."""
    return list(group_medians((float(field_of(row, column["field"])), float(row["gap"])) for row in rows).items())


def slope(rows: Sequence[Row], column: Column) -> float:
    """Exponent of a count in one over the gap: medians over the seeds, largest budgets alone."""
    counts, gaps = np.array(median_gaps(rows, column)[-FITTED_BUDGETS:]).T
    return float(np.polyfit(-np.log(gaps), np.log(counts), 1)[0])


def slope_spread(rows: Sequence[Row], column: Column, cells: Cells) -> tuple[float, float]:
    """Smallest and largest exponent over single seeds."""
    seeds = {row["seed"] for row in rows}
    return extremes(slope([row for row in rows if row["seed"] == seed], column) for seed in seeds)


def decades(rows: Sequence[Row], column: Column, cells: Cells) -> float:
    """Decades that the median gaps span."""
    smallest, largest = extremes(gap for _, gap in median_gaps(rows, column))
    return math.log10(largest / smallest)


def first_below(rows: Sequence[Row], column: Column, cells: Cells) -> Any:
    """The field at the first (largest) target whose median gap over the seeds is below the limit.

    Runs without a target run on and are inspected: theirs is what the curve holds at the crossing.
    """
    targets = sorted({row["settings"]["tol"] for row in rows if "tol" in row["settings"]}, reverse=True)
    if not targets:
        return at_crossing(rows, column, cells) if "part" in column else "none"
    for target in targets:
        there = [row for row in rows if row["settings"]["tol"] == target]
        if median(row["gap"] for row in there) < column["limit"]:
            return only(values(there, column))
    return None


def at_crossing(rows: Sequence[Row], column: Column, cells: Cells) -> float | None:
    """Median over the seeds of what the inspected curve holds where its gap first comes below the limit.

    Where a seed has several runs (a grid of step sizes), the one with the smallest gap at the end counts. A column may
    look at every second (third, ...) inspection alone.
    """
    limit = float(cells[column["limit_from"]] if "limit_from" in column else column["limit"])
    every = int(column.get("every", 1))
    found = []
    for seed in sorted({row["seed"] for row in rows}):
        best = min((row for row in rows if row["seed"] == seed), key=lambda row: float(row["gap"]))
        crossed = next((point for point in best["curve"][every - 1 :: every] if point[3] < limit), None)
        if crossed is None:
            return None
        f, g, B, gap = crossed
        found.append({"f": f, "g": g, "gradients": f + g, "B": B, "gap": gap}[column["part"]])
    return float(median(found))


def weigh_seconds(row: Row) -> float:
    """The cost of one run, c_f N_f + c_g N_g + c_B N_B, with the latencies of its problem."""
    return math.fsum(row["prices"][name] * row["calls"][name] for name in "fgB")


def rank(rows: Sequence[Row], column: Column, cells: Cells) -> str:
    """Methods from the cheapest to the dearest by weighted cost."""
    costs = group_medians((row["method"], weigh_seconds(row)) for row in rows)
    return " < ".join(column["names"].get(name, name) for name in sorted(costs, key=lambda name: costs[name]))


def select(rows: Sequence[Row], column: Column, cells: Cells) -> str | None:
    """The configuration with the smallest weighted cost among those whose gap is at most the limit."""
    good = [row for row in rows if row["gap"] <= column["limit"]]
    return str(min(good, key=weigh_seconds)["settings"]["label"]) if good else None


def power_law(points: Sequence[tuple[float, float]]) -> float:
    """Slope of log y against log x, with the median of y where an x comes more than once."""
    found = group_medians(points)
    if len(found) < 2:
        raise ValueError("an exponent needs two points")
    if min(*found, *found.values()) <= 0:
        raise ValueError("an exponent needs positive numbers")
    logs = np.log([*found.items()])
    # Counts that do not grow have exponent 0, not the rounding error of a fit.
    return round(float(np.polyfit(logs[:, 0], logs[:, 1], 1)[0]), 12) + 0.0


def exponent(rows: Sequence[Row], column: Column, cells: Cells) -> float:
    """Exponent of one field, or its last entry, in another; against "noise" means sigma of the sampled gradients."""
    points = []
    for row in rows:
        if column["against"] == "noise":
            x = max(float(row["problem"]["sigma_x"]), float(row["problem"]["sigma_y"]))
        else:
            x = float(field_of(row, column["against"]))
        y = field_of(row, column["field"])
        points.append((x, float(y[-1] if isinstance(y, list) else y)))
    return power_law(points)


def slope_in_target(rows: Sequence[Row], column: Column, cells: Cells) -> float:
    """Exponent of a count, median over the seeds, in one over the target eps."""
    return power_law([(1.0 / float(row["settings"]["tol"]), float(field_of(row, column["field"]))) for row in rows])


def growth(rows: Sequence[Row], column: Column, cells: Cells) -> float:
    """Exponent of a count in the setting that the runs name: calls made or planned of their oracle, or per restart."""
    points, counts = [], column["counts"]
    for row in rows:
        oracle, cause = row["settings"]["oracle"], row["settings"]["grows_with"]
        made = counts == "per restart made"
        calls = row["calls"][oracle] / row["stages"]["made"] if made else row[counts][oracle]
        points.append((float(row["problem"][cause]), float(calls)))
    return power_law(points)


def mean_to_target(row: Row) -> float:
    """The mean over the draws, two standard errors added, as a part of the target."""
    found = row["monte_carlo"]
    return float((found["mean"][-1] + 2.0 * found["standard_error"][-1]) / row["settings"]["tol"])


def _of_field(of: Callable[[list[Any]], Any]) -> Statistic:
    return lambda rows, column, cells: of(values(rows, column))


def _of_rows(of: Callable[[Sequence[Row]], Any]) -> Statistic:
    return lambda rows, column, cells: of(rows)


STATISTICS: dict[str, Statistic] = {
    "same": _of_field(only),
    "middle": _of_field(lambda found: float(median(found))),
    "smallest": _of_field(lambda found: float(min(found))),
    "largest": _of_field(lambda found: float(max(found))),
    "spread": _of_field(extremes),
    "predicted_exponent": _of_field(lambda found: predict_exponent(float(found[0]))),
    "quotient": lambda rows, column, cells: float(cells[column["of"][0]]) / float(cells[column["of"][1]]),
    "crossover": crossover,
    # Runs that ended above their own bound.
    "violations": _of_rows(lambda rows: f"{sum(row['gap'] > row['bound'] for row in rows)} of {len(rows)}"),
    "gap_to_bound": _of_rows(lambda rows: extremes(row["gap"] / row["bound"] for row in rows)),
    "gap_to_target": _of_rows(lambda rows: max(float(row["gap"] / row["settings"]["tol"]) for row in rows)),
    "gradients": _of_rows(lambda rows: only(row["calls"]["f"] + row["calls"]["g"] for row in rows)),
    "slope": lambda rows, column, cells: slope(rows, column),
    "slope_spread": slope_spread,
    "decades": decades,
    "first_below": first_below,
    "at_crossing": at_crossing,
    # In milliseconds.
    "weighted": _of_rows(lambda rows: float(1e3 * median(weigh_seconds(row) for row in rows))),
    "wall": _of_rows(lambda rows: float(1e3 * median(row["seconds"] for row in rows))),
    "wall_spread": _of_rows(lambda rows: extremes(1e3 * row["seconds"] for row in rows)),
    # Of two latencies, the median over the problems; and the largest median gap of a method.
    "price_ratio": lambda rows, column, cells: float(
        median(row["prices"][column["of"][0]] / row["prices"][column["of"][1]] for row in rows)
    ),
    "largest_median": _of_rows(lambda rows: max(group_medians((row["method"], row["gap"]) for row in rows).values())),
    "ranking": rank,
    "selected": select,
    "exponent": exponent,
    "slope_in_target": slope_in_target,
    "growth": growth,
    # Runs that made exactly the planned calls.
    "as_planned": _of_rows(lambda rows: f"{sum(row['calls'] == row['planned'] for row in rows)} of {len(rows)}"),
    # Draws that made exactly the planned calls and drew exactly the planned samples.
    "draws_as_planned": _of_rows(
        lambda rows: f"{sum(int(row['exact_draws']) for row in rows)} of {sum(int(row['draws']) for row in rows)}"
    ),
    "mean_to_target": _of_rows(lambda rows: max(map(mean_to_target, rows))),
    "last_mean": _of_rows(lambda rows: float(median(row["monte_carlo"]["mean"][-1] for row in rows))),
}
