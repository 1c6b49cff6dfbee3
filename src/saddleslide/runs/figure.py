"""The figure of a result: its gap against calls, products and seconds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Real
from pathlib import Path
from typing import TYPE_CHECKING, Any

from saddleslide.errors import InputError
from saddleslide.plots import draw_convergence

if TYPE_CHECKING:
    from saddleslide.runs.result import Result


def plot_result(result: Result, ax: Any, path: str | Path | None, costs: tuple[float, float, float] | None) -> Any:
    """See `Result.plot`."""
    calls = [moment.calls for moment in result.history]
    panels = {
        "calls of f'": [float(c.f) for c in calls],
        "calls of g'": [float(c.g) for c in calls],
        "products with B and B$^T$": [float(c.B) for c in calls],
        "seconds": [moment.seconds for moment in result.history],
    }
    if costs is not None:
        usable = isinstance(costs, Sequence) and len(costs) == 3 and all(isinstance(c, Real) for c in costs)
        if not usable or not all(math.isfinite(c) and c >= 0.0 for c in costs):
            raise InputError(f"plot: costs is {costs!r}; expected three finite numbers >= 0, (c_f, c_g, c_B).")
        panels["weighted cost"] = [costs[0] * c.f + costs[1] * c.g + costs[2] * c.B for c in calls]
    return draw_convergence(panels, [moment.gap for moment in result.history], result.known_target, ax, path)
