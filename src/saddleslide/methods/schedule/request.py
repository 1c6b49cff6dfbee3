"""What a caller asks of a plan, and what of it makes no sense."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence, Set
from dataclasses import dataclass, fields
from functools import cached_property
from numbers import Real
from typing import Any

import numpy as np

from saddleslide.arrays.arguments import as_flag, as_mapping, as_names, as_whole, as_word
from saddleslide.arrays.base import as_number
from saddleslide.errors import InputError, raise_all
from saddleslide.facts.facts import check_constants
from saddleslide.facts.metric_constants import BUILT_METRICS, block_norms, is_matrix, is_pair
from saddleslide.methods.schedule.regimes import REGIMES
from saddleslide.metrics.base import Metric
from saddleslide.problem import SaddleProblem
from saddleslide.theory.levels import check_loops
from saddleslide.theory.schedule import COUPLING_STEPS, PRIMAL_DUAL

# Settings that adaptive sliding knows as well; all others are about the theorems.
SHARED = ("tol", "metric", "start", "regime", "costs")
# Budgets from the bound itself instead of the constants of the corollary.
SHARP = "sharp"


@dataclass(frozen=True)
class Request:
    """The arguments of `ss.plan`, which documents them."""

    tol: float | None = None
    order: str | None = None
    loops: Sequence[int] | None = None
    metric: Any = "auto"
    start: tuple[Any, Any] | None = None
    kappa: float | None = None
    proved: bool | str = False
    constants: Mapping[str, float] | None = None
    regime: str = "auto"
    anchors: bool = False
    factor: float | None = None
    range_conditions: Collection[str] = ()
    interior: Collection[str] = ()
    Psi0: float | None = None
    costs: Sequence[float] | str | None = None
    inexact: Mapping[str, Sequence[float]] | None = None
    anchor_batch: int | None = None
    simple: str | Collection[str] = "auto"
    coupling_step: str = "auto"
    Psi: float | None = None

    @property
    def theorem_settings(self) -> tuple[str, ...]:
        """Names of the settings that were changed and mean nothing to adaptive sliding."""

        def differs(value: Any, default: Any) -> bool:
            return not (value is default or (isinstance(value, type(default)) and value == default))

        given = [entry for entry in fields(self) if entry.name not in SHARED]
        return tuple(entry.name for entry in given if differs(getattr(self, entry.name), entry.default))

    @property
    def plain_metric(self) -> bool:
        """Whether the metric is left to the plan."""
        return isinstance(self.metric, str) and self.metric == "auto"

    @property
    def is_narrow(self) -> bool:
        """Whether levels or oracles were asked for, which leaves one run of the recursion."""
        return self.order is not None or self.loops is not None or bool(self.oracles)

    @cached_property
    def known_constants(self) -> dict[str, float]:
        """Declared constants."""
        return check_constants(as_mapping(self.constants, "plan: constants", "{'H_x': 2.0}"))

    @cached_property
    def oracles(self) -> dict[str, tuple[float, float]]:
        """Declared (delta, L)-oracles of f and g."""
        declared = as_mapping(self.inexact, "plan: inexact", "{'f': (1e-3, 2.0)}")
        unknown = sorted(set(declared) - {"f", "g"}, key=str)
        raise_all("plan", [f"inexact has {unknown}; expected names among ['f', 'g']."] * bool(unknown))
        if declared and self.regime not in ("auto", "degenerate"):
            raise InputError(
                f"plan: inexact oracles are for regime 'degenerate' (Theorem 3.3); received {self.regime!r}."
            )
        oracles = {}
        for name, pair in declared.items():
            if not isinstance(pair, Sequence) or len(pair) != 2:
                raise InputError(f"plan: inexact[{name!r}] is {pair!r}; expected (delta, L).")
            delta, L = (as_number(number, f"plan: inexact[{name!r}]", 0.0) for number in pair)
            oracles[name] = (delta, L)
        return oracles

    def check(self, problem: SaddleProblem) -> None:
        """Refuse what makes no sense, before any call."""
        self._check_target(problem)
        self._check_regime()
        if self.anchor_batch is not None:
            as_whole(self.anchor_batch, "plan: anchor_batch", 1)
        for name, number in (("factor", self.factor), ("Psi0", self.Psi0)):
            if number is not None:
                as_number(number, f"plan: {name}", 0.0)
        problem.start(self.start)
        block_norms(self.metric, (1.0, 1.0))
        self._check_names()
        self._check_idle()
        assert isinstance(self.known_constants, dict) and isinstance(self.oracles, dict)

    def _check_target(self, problem: SaddleProblem) -> None:
        tol, order, complaints = self.tol, self.order, []
        if self.Psi is not None:
            as_number(self.Psi, "plan: Psi", 0.0)
        # With simple terms there may be fewer than three levels.
        names = isinstance(self.simple, Sequence | Set | Mapping) and not isinstance(self.simple, str)
        fewer = names and bool(self.simple)
        if not isinstance(problem, SaddleProblem):
            complaints.append(f"problem is {type(problem).__name__}; expected a SaddleProblem.")
        if tol is None and self.Psi is None and (order is None or self.loops is None):
            complaints.append("tol is missing; expected a target gap, or both order= and loops=.")
        if self.Psi is not None and (tol is not None or self.regime not in ("auto", "restarts")):
            complaints.append(f"Psi is {self.Psi!r}; expected a target of restarts in place of tol.")
        if self.Psi == 0.0:
            complaints.append("Psi is 0.0; expected a number > 0.")
        try:
            positive = tol is None or (isinstance(tol, Real) and math.isfinite(tol) and float(tol) > 0.0)
        except OverflowError:
            # A whole number beyond double precision.
            positive = False
        if not positive:
            complaints.append(f"tol is {tol!r}; expected a finite number > 0.")
        sharp = isinstance(self.proved, str) and self.proved == SHARP
        if not isinstance(self.proved, bool) and not sharp:
            complaints.append(f"proved is {self.proved!r}; expected True, False or {SHARP!r}.")
        if sharp and self.kappa is not None:
            complaints.append(
                f"kappa is {self.kappa!r}; expected none with proved={SHARP!r}, which looks at the bound."
            )
        letters = isinstance(order, str) and len(set(order)) == len(order) and set(order) <= set("fgB")
        if order is not None and not (letters and (len(order) == len("fgB") or fewer)):
            complaints.append(f"order is {order!r}; expected a permutation of 'fgB', outermost level first.")
        raise_all("plan", complaints)
        if self.loops is not None and not fewer:
            check_loops(self.loops, len("fgB"))
        if self.kappa is not None and as_number(self.kappa, "plan: kappa", 0.0) == 0.0:
            raise InputError("plan: kappa is 0; expected a number > 0.")

    def _check_regime(self) -> None:
        regime = self.regime
        as_flag(self.anchors, "plan: anchors")
        if not isinstance(regime, str) or regime not in ("auto", *REGIMES):
            raise InputError(f"plan: regime is {regime!r}; expected 'auto', 'adaptive' or one of {REGIMES}.")
        missing = self.tol is None and self.Psi is None
        if regime in ("restarts", "mixed") and (missing or self.order is not None or self.loops is not None):
            raise InputError(
                f"plan: regime {regime!r} chooses order and loops itself; expected tol and neither of them."
            )

    def _check_names(self) -> None:
        for name, given in (("range_conditions", self.range_conditions), ("interior", self.interior)):
            as_names(given, f"plan: {name}", ("x", "y"))
        if not isinstance(self.simple, str) or self.simple != "auto":
            names = [self.simple] if isinstance(self.simple, str) else self.simple
            # An array without dimensions passes for a collection.
            usable = isinstance(names, Collection) and not isinstance(names, np.ndarray)
            strange = [one for one in names if not (isinstance(one, str) and one in ("f", "g"))] if usable else [names]
            unknown = sorted(map(str, strange))
            raise_all("plan", [f"simple has {unknown}; expected 'auto' or names among ['f', 'g']."] * bool(unknown))
        for side in "xy":
            nu, H, mu = (self.known_constants.get(f"{letter}_{side}") for letter in ("nu", "H", "mu"))
            if H is not None and mu is not None and (nu or 1.0) == 1.0 and mu > H:
                raise InputError(f"plan: mu_{side} is {mu:g} and H_{side} is {H:g}; expected mu <= H.")
        as_word(self.coupling_step, "plan: coupling_step", ("auto", *COUPLING_STEPS))
        if self.coupling_step == PRIMAL_DUAL and self.order is not None and not self.order.endswith("B"):
            raise InputError(
                f"plan: coupling_step 'primal-dual' needs the coupling innermost; received order {self.order!r}."
            )

    def _check_idle(self) -> None:
        """A setting that the regime asked for does not have is a mistake, not a wish."""
        named = isinstance(self.metric, str) and self.metric in ("auto", "blocks", "identity", *BUILT_METRICS)
        named = named or isinstance(self.metric, Metric) or is_pair(self.metric) or is_matrix(self.metric)
        idle = {}
        if self.regime in ("restarts", "mixed"):
            idle = {
                "kappa": self.kappa is not None,
                "metric": not named,
                "coupling_step": self.coupling_step == PRIMAL_DUAL,
            }
        if self.regime == "degenerate":
            idle = {"anchors": self.anchors, "factor": self.factor is not None, "Psi0": self.Psi0 is not None}
        given = [name for name, is_given in idle.items() if is_given]
        raise_all("plan", [f"{name} has no meaning in regime {self.regime!r}; leave it out." for name in given])
