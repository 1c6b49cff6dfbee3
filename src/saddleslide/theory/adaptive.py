"""The plan of an adaptive run: everything that decides its course, as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from saddleslide.errors import InputError
from saddleslide.theory.plan import Plan, metric_to_data, prediction_lines, target_words

METHODS = ("adaptive sliding", "restarted primal-dual")


@dataclass(frozen=True)
class AdaptivePlan(Plan):
    """Adaptive sliding: method, metric, orientation, inner work and target.

    Parameters
    ----------
    method : str
        "adaptive sliding" (f or g has a costly part) or "restarted primal-dual" (both are simple terms).
    metric : str
        "blocks", "diagonal", "spectral" (cosine basis), "fft" (Fourier basis) or "given".
    mirrored : bool
        Whether the roles of x and y are exchanged, so that the costly function is outside.
    inner_steps : int
        Most coupling steps per outer step.
    curvature : float
        First curvature estimate in the metric.
    g_steps, steps_per_g : int
        Where g is slid inside the steps on f: most steps on g per step on f, and most coupling steps per step on g.
    proximal : tuple of str
        Functions handled by their proximal step.
    given : Metric or mapping, optional
        The metric itself, where the user gave it.
    predicted : mapping or None
        Calls per oracle that are expected, from the model of docs/choice.md; no promise.

    Examples
    --------
    >>> plan = AdaptivePlan("restarted primal-dual", "blocks", False, 1, 1.0, tol=1e-3)
    >>> plan.proved
    False
    """

    mark = "inner_steps"

    method: str
    metric: str
    mirrored: bool
    inner_steps: int
    curvature: float
    g_steps: int = 0
    steps_per_g: int = 0
    proximal: tuple[str, ...] = ()
    given: Any = None
    predicted: Mapping[str, float] | None = None
    tol: float = field(default=0.0, kw_only=True)

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise InputError(f"AdaptivePlan: method is {self.method!r}; expected one of {METHODS}.")

    @property
    def regime(self) -> str:
        """No regime of the paper."""
        return "adaptive"

    @property
    def simple_terms(self) -> tuple[str, ...]:
        """Functions handled by their proximal step, for people."""
        return self.proximal

    @property
    def predicted_calls(self) -> Mapping[str, float]:
        """Expected calls per oracle, no promise; empty where nothing was predicted."""
        return {} if self.predicted is None else dict(self.predicted)

    @property
    def order(self) -> str:
        """Levels, outermost first; simple terms have none."""
        if self.method == METHODS[1]:
            return "B"
        if self.g_steps > 0:
            return "fgB"
        return "gB" if self.mirrored else "fB"

    def explain(self) -> str:
        """The plan as readable lines.

        Examples
        --------
        >>> print(AdaptivePlan("restarted primal-dual", "blocks", False, 1, 1.0, tol=1e-3).explain())
        Plan: restarted primal-dual, levels B, metric blocks
          target   gap at most 0.001
          bound    none in advance: the certificate is the proof
        """
        lines = [
            f"Plan: {self.method}, levels {self.order}, metric {self.metric}",
            f"  target   {target_words(self)}",
            "  bound    none in advance: the certificate is the proof",
        ]
        if self.g_steps > 0:
            lines.append(f"  inside   at most {self.g_steps} steps on g per gradient of f")
            lines.append(f"  inner    at most {self.steps_per_g} coupling steps (2 products each) per gradient of g")
        elif self.method == METHODS[0]:
            lines.append(f"  inner    at most {self.inner_steps} coupling steps (2 products each) per gradient")
        if self.method == METHODS[0]:
            lines.append(f"  start    curvature {self.curvature:.4g} in the metric, then by backtracking")
        lines += [f"  simple   {term}" for term in self.simple_terms]
        lines += [f"  because  {reason}" for reason in self.reasons]
        return "\n".join(lines + prediction_lines(self))

    def own_data(self) -> dict[str, Any]:
        """What only this kind of plan has, as plain data."""
        names = ("method", "metric", "mirrored", "inner_steps", "curvature", "g_steps", "steps_per_g")
        return {
            **{name: getattr(self, name) for name in names},
            "proximal": list(self.proximal),
            "given": metric_to_data(self.given),
            "predicted": None if self.predicted is None else dict(self.predicted),
        }

    @classmethod
    def own_from_data(cls, data: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments that `own_data` wrote."""
        names = ("method", "metric", "mirrored", "inner_steps", "curvature", "g_steps", "steps_per_g")
        more = {"proximal": tuple(data["proximal"]), "given": data["given"], "predicted": data["predicted"]}
        return {name: data[name] for name in names} | more
