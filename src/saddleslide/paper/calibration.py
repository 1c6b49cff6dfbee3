"""One set of prices for one problem, whichever methods were run on it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from statistics import median

from saddleslide.paper.rows import Row


def with_shared_prices(rows: Mapping[str, Row]) -> dict[str, Row]:
    """Rows with their latencies replaced by the medians over all rows of the same problem.

    They are measured beside each run. Comparing methods at prices of different minutes would compare the load of the
    machine.

    Examples
    --------
    >>> rows = {k: {"problem": {}, "prices": {"f": p, "g": 1.0, "B": 1.0}} for k, p in (("a", 1.0), ("b", 3.0))}
    >>> with_shared_prices(rows)["a"]["prices"]["f"]
    2.0
    """
    seen: dict[str, list[dict[str, float]]] = {}
    for row in rows.values():
        if "prices" in row:
            seen.setdefault(_problem(row), []).append(row["prices"])
    shared = {name: {o: median(p[o] for p in found) for o in "fgB"} for name, found in seen.items()}
    return {key: row | {"prices": shared[_problem(row)]} if "prices" in row else row for key, row in rows.items()}


def _problem(row: Row) -> str:
    return json.dumps(row["problem"], sort_keys=True)
