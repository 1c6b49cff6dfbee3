"""What `ss.solve` and `ss.plan` are asked for, and what of it can not be a target."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

from saddleslide.arrays.base import as_number
from saddleslide.errors import InputError, raise_all
from saddleslide.methods.base import Method
from saddleslide.methods.metric_choice import METRICS
from saddleslide.metrics import Metric
from saddleslide.problem import SaddleProblem


@dataclass(frozen=True)
class SolveRequest:
    """The arguments that `ss.solve` and `ss.plan` share; `ss.solve` documents them.

    Examples
    --------
    >>> SolveRequest(1e-3).method
    'auto'
    """

    tol: float | None = None
    rtol: float | None = None
    method: str | Method = "auto"
    metric: str | Metric = "auto"
    start: tuple[Any, Any] | None = None
    costs: Sequence[float] | str | None = None
    seed: int = 0
    # Which of the two errors are about.
    caller: str = "solve"

    def targets(self, problem: SaddleProblem) -> tuple[float, float]:
        """Absolute and relative target, after refusing what can not be one."""
        if not isinstance(problem, SaddleProblem):
            raise InputError(f"{self.caller}: problem is {type(problem).__name__}; expected a SaddleProblem.")
        complaints = []
        if isinstance(self.seed, bool) or not isinstance(self.seed, Integral) or self.seed < 0:
            complaints.append(f"rng is {self.seed!r}; expected a seed >= 0 or a numpy.random.Generator.")
        if self.tol is None and self.rtol is None:
            complaints.append("tol and rtol are both missing; expected a target gap.")
        if not (isinstance(self.metric, Metric) or (isinstance(self.metric, str) and self.metric in METRICS)):
            complaints.append(f"metric is {self.metric!r}; expected one of {METRICS} or an object of ss.metrics.")
        raise_all(self.caller, complaints)
        absolute = 0.0 if self.tol is None else as_number(self.tol, f"{self.caller}: tol", 0.0)
        relative = 0.0 if self.rtol is None else as_number(self.rtol, f"{self.caller}: rtol", 0.0)
        if absolute == 0.0 and relative == 0.0:
            raise InputError(f"{self.caller}: tol and rtol are 0; expected a target > 0.")
        return absolute, relative
