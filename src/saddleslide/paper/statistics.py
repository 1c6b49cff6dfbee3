"""Numbers from rows: what the columns are made of. Each takes rows, the column and the cells before it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from statistics import median
from typing import Any

import numpy as np

from saddleslide.paper.powers import POWERS
from saddleslide.paper.rows import Row, field_of

Column = Mapping[str, Any]
Cells = Mapping[str, Any]
Statistic = Callable[[Sequence[Row], Column, Cells], Any]
# Exponents are fitted over the largest budgets alone (paper, "Validity of the bound").
FITTED_BUDGETS = 4


def values(rows: Iterable[Row], column: Column) -> list[Any]:
    """The column's field in every row that has it.

    Examples
    --------
    >>> values([{"gap": 1.0}, {"gap": None}], {"field": "gap"})
    [1.0]
    """
    found = (field_of(row, column["field"]) for row in rows)
    return [value for value in found if value is not None]


def same(rows: Sequence[Row], column: Column, cells: Cells) -> Any:
    """The value that all rows share, or all their different values.

    Examples
    --------
    >>> same([{"N": 16}, {"N": 16}], {"field": "N"}, {})
    16
    """
    found = sorted(set(values(rows, column)))
    return found[0] if len(found) == 1 else " or ".join(map(str, found))


def middle(rows: Sequence[Row], column: Column, cells: Cells) -> float:
    """Median."""
    return float(median(values(rows, column)))


def smallest(rows: Sequence[Row], column: Column, cells: Cells) -> float:
    """Minimum."""
    return float(min(values(rows, column)))


def largest(rows: Sequence[Row], column: Column, cells: Cells) -> float:
    """Maximum."""
    return float(max(values(rows, column)))


def spread(rows: Sequence[Row], column: Column, cells: Cells) -> tuple[float, float]:
    """Smallest and largest value."""
    found = values(rows, column)
    return float(min(found)), float(max(found))


def quotient(rows: Sequence[Row], column: Column, cells: Cells) -> float:
    """One earlier cell over another.

    Examples
    --------
    >>> quotient([], {"of": ["a", "b"]}, {"a": 6, "b": 4})
    1.5
    """
    above, below = (float(cells[name]) for name in column["of"])
    return above / below


def crossover(rows: Sequence[Row], column: Column, cells: Cells) -> float:
    """rho* = (extra products) / (saved gradients), from the four counts named in the column."""
    ours_gradients, ours_products, theirs_gradients, theirs_products = (float(cells[name]) for name in column["of"])
    return (ours_products - theirs_products) / (theirs_gradients - ours_gradients)


def violations(rows: Sequence[Row], column: Column, cells: Cells) -> str:
    """How many runs ended above a limit: the row's own bound, or a number."""
    limit = column.get("limit")
    over = [row for row in rows if row["gap"] > (row["bound"] if limit is None else limit)]
    return f"{len(over)} of {len(rows)}"


def gap_to_bound(rows: Sequence[Row], column: Column, cells: Cells) -> tuple[float, float]:
    """Smallest and largest gap as a part of the theorem's bound."""
    parts = [row["gap"] / row["bound"] for row in rows]
    return min(parts), max(parts)


def slope(rows: Sequence[Row], column: Column, cells: Cells) -> float:
    """Exponent of a count in one over the gap: medians over the seeds, largest budgets alone."""
    return _fitted(_medians(rows, column), int(column.get("fitted", FITTED_BUDGETS)))


def slope_spread(rows: Sequence[Row], column: Column, cells: Cells) -> tuple[float, float]:
    """Smallest and largest exponent over single seeds."""
    seeds = sorted({row["seed"] for row in rows})
    fitted = int(column.get("fitted", FITTED_BUDGETS))
    slopes = [_fitted(_medians([row for row in rows if row["seed"] == seed], column), fitted) for seed in seeds]
    return min(slopes), max(slopes)


def decades(rows: Sequence[Row], column: Column, cells: Cells) -> float:
    """Decades that the median gaps span."""
    gaps = [gap for _, gap in _medians(rows, column)]
    return math.log10(max(gaps) / min(gaps))


def _medians(rows: Sequence[Row], column: Column) -> list[tuple[float, float]]:
    """(count, median gap) for every count, in rising order."""
    counts: dict[float, list[float]] = {}
    for row in rows:
        counts.setdefault(float(field_of(row, column["field"])), []).append(float(row["gap"]))
    return [(count, median(counts[count])) for count in sorted(counts)]


def _fitted(points: Sequence[tuple[float, float]], last: int) -> float:
    """Slope of log count against log(1 / gap) over the last points."""
    counts, gaps = np.array(points[-last:]).T
    return float(np.polyfit(-np.log(gaps), np.log(counts), 1)[0])


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
            return same(there, column, cells)
    return None


def at_crossing(rows: Sequence[Row], column: Column, cells: Cells) -> float | None:
    """Median over the seeds of what the inspected curve holds where its gap first comes below the limit.

    Where a seed has several runs (a grid of step sizes), the one with the smallest gap at the end counts. A column may
    look at every second (third, ...) inspection alone.
    """
    limit = float(cells[column["limit_from"]] if "limit_from" in column else column["limit"])
    found = []
    for seed in sorted({row["seed"] for row in rows}):
        best = min((row for row in rows if row["seed"] == seed), key=lambda row: float(row["gap"]))
        every = int(column.get("every", 1))
        crossed = next((point for point in best["curve"][every - 1 :: every] if point[3] < limit), None)
        if crossed is None:
            return None
        found.append(_part(crossed, column["part"]))
    return float(median(found))


def _part(point: Sequence[float], part: str) -> float:
    """What a column shows of one inspected point."""
    f, g, B, gap = point
    return {"f": f, "g": g, "gradients": f + g, "B": B, "gap": gap}[part]


def gradients(rows: Sequence[Row], column: Column, cells: Cells) -> Any:
    """N_f + N_g, the same in all rows."""
    totals = sorted({row["calls"]["f"] + row["calls"]["g"] for row in rows})
    return totals[0] if len(totals) == 1 else " or ".join(map(str, totals))


def predicted_exponent(rows: Sequence[Row], column: Column, cells: Cells) -> float:
    """The exponent that the paper's table promises, from the Hölder exponent of the row."""
    nu = float(values(rows, column)[0])
    return 2.0 / (1.0 + 3.0 * nu)


def gap_to_target(rows: Sequence[Row], column: Column, cells: Cells) -> float:
    """Largest gap as a part of the target."""
    return max(float(row["gap"] / row["settings"]["tol"]) for row in rows)


def weighted(rows: Sequence[Row], column: Column, cells: Cells) -> float:
    """Median of c_f N_f + c_g N_g + c_B N_B in milliseconds, with the latencies of its problem."""
    return float(1e3 * median(weighted_seconds(row) for row in rows))


def weighted_seconds(row: Row) -> float:
    """The cost of one run at its own prices."""
    return math.fsum(row["prices"][name] * row["calls"][name] for name in "fgB")


def wall(rows: Sequence[Row], column: Column, cells: Cells) -> float:
    """Median time in milliseconds."""
    return float(1e3 * median(row["seconds"] for row in rows))


def wall_spread(rows: Sequence[Row], column: Column, cells: Cells) -> tuple[float, float]:
    """Fastest and slowest instance in milliseconds."""
    return 1e3 * min(row["seconds"] for row in rows), 1e3 * max(row["seconds"] for row in rows)


def ranking(rows: Sequence[Row], column: Column, cells: Cells) -> str:
    """Methods from the cheapest to the dearest by weighted cost."""
    costs: dict[str, list[float]] = {}
    for row in rows:
        costs.setdefault(row["method"], []).append(weighted_seconds(row))
    names = column["names"]
    return " < ".join(names.get(name, name) for name in sorted(costs, key=lambda name: median(costs[name])))


def selected(rows: Sequence[Row], column: Column, cells: Cells) -> str | None:
    """The configuration with the smallest weighted cost among those whose gap is at most the limit."""
    good = [row for row in rows if row["gap"] <= column["limit"]]
    return str(min(good, key=weighted_seconds)["settings"]["label"]) if good else None


STATISTICS: dict[str, Statistic] = {
    function.__name__: function
    for function in (
        same, middle, smallest, largest, spread, quotient, crossover, violations, gap_to_bound, slope, slope_spread,
        decades, first_below, at_crossing, gradients, predicted_exponent,
        gap_to_target, *POWERS,
        weighted, wall, wall_spread, ranking, selected,
    )
}  # fmt: skip
