"""The plan of a run with a named method: its settings, target and inspections, as plain data."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from saddleslide.errors import raise_all
from saddleslide.theory.plan import Plan, prediction_lines, target_words

# Inspections come 10 % apart, so that at most a tenth of the work is done after the target was met.
GROWTH = 1.1
# Constants of a plan: upper bounds on the distances from the start to the solution.
DISTANCES = ("D_x", "D_y")


@dataclass(frozen=True)
class MethodPlan(Plan):
    """A named method of `ss.methods` and its settings.

    Parameters
    ----------
    method : str
        A name in `ss.methods`.
    options : dict
        All settings of the method, defaults included: numbers, words or None.
    every : int or None
        Iterations between two certificates; None: 10 % more each time.
    notes : tuple of str
        Constants that a run relied on, and where practice leaves the guarantee: found on the way, no part of the plan.
    on_allowance : bool
        Whether the method was preferred by prediction: adaptive sliding goes on once it has cost, at the prices of the
        plan, what adaptive sliding is predicted to.
    predicted : mapping or None
        Calls per oracle that are expected; no promise.

    Examples
    --------
    >>> plan = MethodPlan("mirror-prox", {"output": "last"}, tol=1e-3)
    >>> plan.next_inspection(1), plan.next_inspection(100)
    (2, 110)
    """

    mark = "options"

    method: str
    options: dict[str, Any] = field(default_factory=dict)
    every: int | None = None
    notes: tuple[str, ...] = field(default=(), compare=False)
    on_allowance: bool = False
    predicted: Mapping[str, float] | None = None
    tol: float = field(default=0.0, kw_only=True)

    def __post_init__(self) -> None:
        complaints = []
        if not isinstance(self.method, str) or not isinstance(self.options, Mapping):
            complaints.append(f"method and options are {self.method!r}, {self.options!r}; expected a name and a dict.")
        if self.every is not None and (
            isinstance(self.every, bool) or not isinstance(self.every, int) or self.every < 1
        ):
            complaints.append(f"every is {self.every!r}; expected a whole number >= 1, or None.")
        raise_all("MethodPlan", complaints)

    def next_inspection(self, step: int) -> int:
        """The iteration of the certificate after the one at `step`."""
        if self.every is not None:
            return step + self.every
        return max(step + 1, math.floor(GROWTH * step))

    @property
    def predicted_calls(self) -> Mapping[str, float]:
        """Expected calls per oracle, no promise; empty where nothing was predicted."""
        return {} if self.predicted is None else dict(self.predicted)

    @property
    def distances(self) -> tuple[float, float]:
        """How far x and y may be from the solution at the start; infinite where that is not known."""
        found = [self.constants[name].value if name in self.constants else math.inf for name in DISTANCES]
        return found[0], found[1]

    def explain(self) -> str:
        """The plan as readable lines.

        Examples
        --------
        >>> print(MethodPlan("mirror-prox", {"output": "last"}, tol=1e-3).explain())
        Plan: mirror-prox, output last
          target   gap at most 0.001
          inspect  every 10 % more iterations
        """
        chosen = [f", {name} {value}" for name, value in self.options.items() if value is not None]
        lines = [
            f"Plan: {self.method}{''.join(chosen)}",
            f"  target   {target_words(self)}",
            f"  inspect  every {'10 % more' if self.every is None else self.every} iterations",
        ]
        if self.on_allowance:
            lines.append("  then     adaptive sliding, where it costs more than that is predicted to, or stands still")
        lines += [f"  {name:<8} {constant.value:.6g} ({constant.origin})" for name, constant in self.constants.items()]
        lines += [f"  because  {why}" for why in (*self.reasons, *self.notes)]
        return "\n".join(lines + prediction_lines(self))

    def own_data(self) -> dict[str, Any]:
        """What only this kind of plan has, as plain data."""
        return {
            "method": self.method,
            "options": dict(self.options),
            "every": self.every,
            "notes": list(self.notes),
            "on_allowance": self.on_allowance,
            "predicted": None if self.predicted is None else dict(self.predicted),
        }

    @classmethod
    def own_from_data(cls, data: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments that `own_data` wrote."""
        names = ("method", "options", "every", "on_allowance", "predicted")
        return {name: data[name] for name in names} | {"notes": tuple(data["notes"])}
