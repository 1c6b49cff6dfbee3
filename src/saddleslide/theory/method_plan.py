"""The plan of a run with a named method: its settings, target and inspections, as plain data."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from saddleslide.errors import InputError, raise_all
from saddleslide.theory.plan import shapes_from_data

# Inspections come 10 % apart, so that at most a tenth of the work is done after the target was met.
GROWTH = 1.1


@dataclass(frozen=True)
class MethodPlan:
    """What `solve(..., method=name)` intends. Running the same plan again gives the same bits.

    Parameters
    ----------
    method : str
        A name in `ss.methods`.
    options : dict
        All settings of the method, defaults included: numbers, words or None.
    tol, rtol : float
        Absolute target, and target relative to the gap at the start.
    every : int or None
        Iterations between two certificates; None: 10 % more each time.
    notes : tuple of str
        Constants the run relied on, and where practice leaves the guarantee.
    shapes : (x shape, y shape) or None
        Of the problem the plan was made for; `run` refuses others.

    Examples
    --------
    >>> plan = MethodPlan("mirror-prox", {"output": "last"}, tol=1e-3)
    >>> plan.next_inspection(1), plan.next_inspection(100)
    (2, 110)
    """

    method: str
    options: dict[str, Any] = field(default_factory=dict)
    tol: float = 0.0
    rtol: float = 0.0
    every: int | None = None
    notes: tuple[str, ...] = ()
    shapes: tuple[tuple[int, ...], tuple[int, ...]] | None = None

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
    def proved(self) -> bool:
        """Nothing is promised for this problem in advance; the certificate is the proof."""
        return False

    @property
    def bound(self) -> float:
        """No bound is promised in advance."""
        return math.inf

    def explain(self) -> str:
        """The plan as readable lines.

        Examples
        --------
        >>> print(MethodPlan("mirror-prox", {"output": "last"}, tol=1e-3).explain())
        Plan: mirror-prox, output last
          target   gap at most 0.001
          inspect  every 10 % more iterations
        """
        target = [f"gap at most {self.tol:g}"] if self.tol > 0.0 else []
        target += [f"{self.rtol:g} of the gap at the start"] if self.rtol > 0.0 else []
        chosen = [f", {name} {value}" for name, value in self.options.items() if value is not None]
        lines = [
            f"Plan: {self.method}{''.join(chosen)}",
            f"  target   {' or '.join(target)}",
            f"  inspect  every {'10 % more' if self.every is None else self.every} iterations",
        ]
        return "\n".join(lines + [f"  because  {note}" for note in self.notes])

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and strings, for JSON.

        Examples
        --------
        >>> MethodPlan("mirror-prox", tol=1e-3).to_dict()["method"]
        'mirror-prox'
        """
        return {
            "method": self.method,
            "options": dict(self.options),
            "tol": self.tol,
            "rtol": self.rtol,
            "every": self.every,
            "notes": list(self.notes),
            "shapes": None if self.shapes is None else [list(shape) for shape in self.shapes],
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> MethodPlan:
        """Read what `to_dict` wrote.

        Examples
        --------
        >>> plan = MethodPlan("mirror-prox", {"output": "last"}, tol=1e-3, notes=("eta = 1",), shapes=((2,), (3,)))
        >>> MethodPlan.from_dict(plan.to_dict()) == plan
        True
        """
        try:
            fixed = {"notes": tuple(data["notes"]), "shapes": shapes_from_data(data["shapes"])}
            return cls(**{**data, **fixed})
        except (KeyError, TypeError) as error:
            raise InputError(f"MethodPlan.from_dict: {error!r} in the data; expected what to_dict wrote.") from error
