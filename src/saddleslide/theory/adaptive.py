"""The plan of an adaptive run: everything that decides its course, as plain data."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, fields
from typing import Any

from saddleslide.errors import InputError
from saddleslide.theory.plan import cost_lines, metric_to_data

METHODS = ("adaptive sliding", "restarted primal-dual")


@dataclass(frozen=True)
class AdaptivePlan:
    """What `solve` intends: method, metric, orientation, inner work and target.

    Running the same plan again gives the same bits: nothing is read from the clock.

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
    g_steps, steps_per_g : int
        Where g is slid inside the steps on f: most steps on g per step on f, and most coupling steps per step on g.
    given : Metric or mapping, optional
        The metric itself, where the user gave it.
    costs : (c_f, c_g, c_B) or None
        Prices of the oracles that the plan was made with.
    predicted : mapping or None
        Calls per oracle that are expected, from the model of docs/choice.md; no promise.
    alternatives : tuple of (description, predicted cost)
        Other methods and plans for the same target.
    curvature : float
        First curvature estimate in the metric.
    tol, rtol : float
        Absolute target, and target relative to the gap at the start.
    seed : int
        Seed of the probes that fit a spectral metric.
    simple_terms : tuple of str
        Functions handled by their proximal step.
    reasons : tuple of str
        Why the metric and the method were chosen, and what was rejected.
    planning_calls : dict or None
        Calls per oracle that making the plan took, outside of any run; None where that is not known, as of a plan from
        a file. No part of what `to_dict` writes, and none of what makes two plans equal.

    Examples
    --------
    >>> plan = AdaptivePlan("restarted primal-dual", "blocks", False, 1, 1.0, 1e-3, 0.0)
    >>> plan.proved
    False
    """

    method: str
    metric: str
    mirrored: bool
    inner_steps: int
    curvature: float
    tol: float
    rtol: float
    seed: int = 0
    simple_terms: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()
    g_steps: int = 0
    steps_per_g: int = 0
    given: Any = None
    costs: tuple[float, float, float] | None = None
    predicted: dict[str, float] | None = field(default=None, compare=False)
    alternatives: tuple[tuple[str, float], ...] = field(default=(), compare=False)
    planning_calls: dict[str, float] | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        if self.method not in METHODS:
            raise InputError(f"AdaptivePlan: method is {self.method!r}; expected one of {METHODS}.")

    @property
    def proved(self) -> bool:
        """No theorem covers the adaptive rules; the certificate is the proof."""
        return False

    @property
    def regime(self) -> str:
        """No regime of the paper."""
        return "adaptive"

    @property
    def predicted_calls(self) -> dict[str, float]:
        """Expected calls per oracle, no promise; empty where nothing was predicted."""
        return {} if self.predicted is None else dict(self.predicted)

    @property
    def bound(self) -> float:
        """No bound is promised in advance."""
        return math.inf

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
        >>> print(AdaptivePlan("restarted primal-dual", "blocks", False, 1, 1.0, 1e-3, 0.0).explain())
        Plan: restarted primal-dual, levels B, metric blocks
          target   gap at most 0.001
          bound    none in advance: the certificate is the proof
        """
        target = [f"gap at most {self.tol:g}"] if self.tol > 0.0 else []
        target += [f"{self.rtol:g} of the gap at the start"] if self.rtol > 0.0 else []
        lines = [
            f"Plan: {self.method}, levels {self.order}, metric {self.metric}",
            f"  target   {' or '.join(target)}",
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
        if self.predicted is not None:
            f, g, B = (self.predicted[name] for name in "fgB")
            lines.append(f"  calls    about f' {f:,.3g}   g' {g:,.3g}   B and B^T {B:,.3g}")
            lines += cost_lines(self.predicted, self.costs, self.alternatives)
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and strings, for JSON.

        Examples
        --------
        >>> AdaptivePlan("restarted primal-dual", "blocks", False, 1, 1.0, 1e-3, 0.0).to_dict()["metric"]
        'blocks'
        """
        data = {entry.name: getattr(self, entry.name) for entry in fields(self) if entry.name != "planning_calls"}
        return {**data, "given": metric_to_data(self.given)}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> AdaptivePlan:
        """Read what `to_dict` wrote.

        Examples
        --------
        >>> plan = AdaptivePlan("restarted primal-dual", "blocks", False, 1, 1.0, 1e-3, 0.0)
        >>> AdaptivePlan.from_dict(plan.to_dict()) == plan
        True
        """
        lists: dict[str, Any] = {name: tuple(data.get(name, ())) for name in ("simple_terms", "reasons")}
        lists["alternatives"] = tuple((str(name), float(cost)) for name, cost in data.get("alternatives", ()))
        lists["costs"] = None if data.get("costs") is None else tuple(data["costs"])
        try:
            return cls(**{**data, **lists})
        except TypeError as error:
            raise InputError(f"AdaptivePlan.from_dict: {error}; expected what to_dict wrote.") from error
