"""What a run hands on, and who judges it."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from saddleslide.arrays.base import Array
from saddleslide.certificates.certificate import certify
from saddleslide.oracles.calls import Calls
from saddleslide.paper.instances import Instance

# Inner solves of a relative gap stop at this part of the gap at the start: four digits below the smallest target.
RELATIVE_ACCURACY = 1e-9
CURVE_ACCURACY = 1e-6
Curve = list[list[float]]


@dataclass
class Outcome:
    """What a method did: the point, the calls, the time, and what was seen on the way."""

    x: Array
    y: Array
    calls: Calls
    seconds: list[float]
    plan: dict[str, Any] | None = None
    order: str = ""
    bound: float = math.nan
    curve: Curve = field(default_factory=list)
    more: dict[str, Any] = field(default_factory=dict)


class Judge:
    """Gaps of points of one instance, absolute or relative to the gap at the start."""

    def __init__(self, given: Instance, relative: bool) -> None:
        self.problem, self.scale, self.accuracy = given.judged or given.problem, 1.0, 0.0
        self.on_the_way = 0.0
        if relative:
            self.scale = certify(self.problem, *self.problem.start()).gap
            self.accuracy, self.on_the_way = RELATIVE_ACCURACY * self.scale, CURVE_ACCURACY * self.scale

    def __call__(self, x: Array, y: Array) -> float:
        """The gap of a point."""
        return certify(self.problem, x, y, accuracy=self.accuracy).gap / self.scale

    def look(self, x: Array, y: Array) -> float:
        """The gap of a point on the way, good enough for a curve."""
        return certify(self.problem, x, y, accuracy=self.on_the_way).gap / self.scale
