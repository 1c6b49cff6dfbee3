"""Exponents of counts, and runs beside their plans: what the tables of proved regimes are made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

import numpy as np

from saddleslide.paper.rows import Row, field_of

Column = Mapping[str, Any]
Cells = Mapping[str, Any]


def power_law(points: Sequence[tuple[float, float]]) -> float:
    """Slope of log y against log x, with the median of y where an x comes more than once.

    Examples
    --------
    >>> round(power_law([(1.0, 3.0), (10.0, 300.0), (10.0, 300.0)]), 12)
    2.0
    """
    found: dict[float, list[float]] = {}
    for x, y in points:
        found.setdefault(x, []).append(y)
    if len(found) < 2:
        raise ValueError("an exponent needs two points")
    if min(min(found), *map(median, found.values())) <= 0:
        raise ValueError("an exponent needs positive numbers")
    logs = np.log([[x, median(found[x])] for x in sorted(found)])
    # Counts that do not grow have exponent 0, not the rounding error of a fit.
    return round(float(np.polyfit(logs[:, 0], logs[:, 1], 1)[0]), 12) + 0.0


def exponent(rows: Sequence[Row], column: Column, cells: Cells) -> float:
    """Exponent of one field in another, `against`; against "noise" means the sigma of the sampled gradients."""
    return power_law([(_setting(row, column["against"]), _last(field_of(row, column["field"]))) for row in rows])


def _setting(row: Row, name: str) -> float:
    if name == "noise":
        return max(float(row["problem"]["sigma_x"]), float(row["problem"]["sigma_y"]))
    return float(field_of(row, name))


def _last(value: Any) -> float:
    """A number, or the last of a list."""
    return float(value[-1] if isinstance(value, list) else value)


def slope_in_target(rows: Sequence[Row], column: Column, cells: Cells) -> float:
    """Exponent of a count, median over the seeds, in one over the target eps."""
    return power_law([(1.0 / float(row["settings"]["tol"]), float(field_of(row, column["field"]))) for row in rows])


def growth(rows: Sequence[Row], column: Column, cells: Cells) -> float:
    """Exponent of a count in the setting that the runs name: calls of their oracle, in all or per restart."""
    return power_law(
        [(float(row["problem"][row["settings"]["grows_with"]]), _count(row, column["counts"])) for row in rows]
    )


def _count(row: Row, counts: str) -> float:
    """Calls made, calls made per restart made, or calls planned per restart, of the oracle that the run names."""
    oracle = row["settings"]["oracle"]
    if counts == "per restart made":
        return float(row["calls"][oracle] / row["stages"]["made"])
    return float(row[counts][oracle])


def as_planned(rows: Sequence[Row], column: Column, cells: Cells) -> str:
    """How many runs made exactly the calls that were planned."""
    good = sum(all(row["calls"][name] == row["planned"][name] for name in "fgB") for row in rows)
    return f"{good} of {len(rows)}"


def draws_as_planned(rows: Sequence[Row], column: Column, cells: Cells) -> str:
    """How many draws made exactly the planned calls and drew exactly the planned samples."""
    good, every = (sum(int(row[name]) for row in rows) for name in ("exact_draws", "draws"))
    return f"{good} of {every}"


def mean_to_target(rows: Sequence[Row], column: Column, cells: Cells) -> float:
    """Largest mean over the draws, two standard errors added, as a part of the target."""
    found = ((row["monte_carlo"], row["settings"]["tol"]) for row in rows)
    return max(float((one["mean"][-1] + 2.0 * one["standard_error"][-1]) / tol) for one, tol in found)


def last_mean(rows: Sequence[Row], column: Column, cells: Cells) -> float:
    """Mean over the draws where the run ends."""
    return float(median(row["monte_carlo"]["mean"][-1] for row in rows))


POWERS = (exponent, slope_in_target, growth, as_planned, draws_as_planned, mean_to_target, last_mean)
