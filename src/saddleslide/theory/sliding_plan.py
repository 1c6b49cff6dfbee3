"""Schedules of recursive sliding: one run of Algorithm 1 with its order, loops and metric, and the bound they prove."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from saddleslide.theory.bounds import printed_holder_bound, printed_inexact_bound, sharp_bound
from saddleslide.theory.hypotheses import all_hold, missing_words
from saddleslide.theory.levels import Level, place
from saddleslide.theory.noise import ESTIMATE, is_noisy, noise_lines, rests_on_estimate, samples_of
from saddleslide.theory.plan import Plan, cost_lines, metric_lines, metric_to_data, term_from_dict, term_to_dict
from saddleslide.theory.restarts import Stage

PRODUCTS_PER_COUPLING_STEP = 4
# How an innermost coupling steps, with its products a step: the paper's form, and the one of docs/theory.md.
EXTRAGRADIENT, PRIMAL_DUAL = "extragradient", "primal-dual"
COUPLING_STEPS = {EXTRAGRADIENT: PRODUCTS_PER_COUPLING_STEP, PRIMAL_DUAL: 2}


@dataclass(frozen=True, kw_only=True)
class Schedule(Plan):
    """What recursive sliding is to do, as a theorem sets it: one run of levels, or stages of such runs.

    Parameters
    ----------
    given : object or dict or None
        Norm of the x block, from `ss.metrics` or as its `to_dict` wrote it; None for a number.
    simple : tuple of "f", "g"
        Functions whose simple terms are in the projection step; one that is simple as a whole has no level.
    coupling_step : "extragradient" or "primal-dual"
        The paper's step, four products, or the one of docs/theory.md with the same bound, two products.
    """

    given: Any = None
    simple: tuple[str, ...] = ()
    coupling_step: str = EXTRAGRADIENT

    @property
    @abstractmethod
    def runs(self) -> tuple[Stage, ...]:
        """Runs of the recursion, each from the point where the one before ended."""

    @property
    @abstractmethod
    def loops(self) -> tuple[int, ...]:
        """Iterations per entry of each level, outermost first."""

    @property
    @abstractmethod
    def predicted_calls(self) -> dict[str, int]:
        """Calls per oracle as the theorem counts them."""

    @property
    @abstractmethod
    def theorem(self) -> str:
        """The statement behind `bound`."""

    @property
    def expected_share(self) -> float:
        """Part of the predicted calls that a run is expected to need."""
        return 1.0

    @property
    def predicted_samples(self) -> dict[str, int]:
        """Samples per oracle, anchors included: calls times batch for sampled gradients, 0 for exact ones."""
        return samples_of(self.predicted_calls, self.constants)


@dataclass(frozen=True)
class SlidingPlan(Schedule):
    """One run of recursive sliding: order of the levels, loop counts, metric, and the bound they prove.

    Parameters
    ----------
    levels : tuple of Level
        Outermost first.
    metric : str
        Weights of P on the two blocks, by name.
    kappa : float or None
        kappa_n of Corollary 3.6, None for explicit loops.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> f, box = ss.functions.Quadratic(1.0), ss.domains.Box(-1.0, 1.0, shape=3)
    >>> plan = ss.plan(ss.SaddleProblem(f=f, g=f, B=np.eye(3), X=box, Y=box), order="fgB", loops=(4, 2, 3))
    >>> plan.predicted_calls
    {'f': 4, 'g': 8, 'B': 96}
    """

    mark = "terms"

    levels: tuple[Level, ...]
    metric: str = "identity"
    kappa: float | None = None

    @property
    def runs(self) -> tuple[Stage, ...]:
        """One run, from wherever it starts."""
        return (Stage(self.levels, math.nan),)

    @property
    def regime(self) -> str:
        """One run of the recursion, without restarts."""
        return "degenerate"

    @property
    def simple_terms(self) -> tuple[str, ...]:
        """What is in the projection step instead of costing a level, for people."""
        return tuple(f"the simple terms of {name} are in the projection step" for name in self.simple)

    @property
    def order(self) -> str:
        """Names of the levels, outermost first."""
        return "".join(level.term.name for level in self.levels)

    @property
    def loops(self) -> tuple[int, ...]:
        """Iterations per entry of each level, outermost first."""
        return tuple(level.T for level in self.levels)

    @property
    def bound(self) -> float:
        """Sharp right-hand side of Theorem 3.5; infinite on unbounded domains.

        With sampled gradients: of Theorem VI_sliding_stochastic_uniform, a bound on the expected gap.
        """
        return sharp_bound(self.levels)

    @property
    def printed_bound(self) -> float:
        """Right-hand side as printed: of Theorem 3.5, or of Theorem 3.3 for declared inexact oracles and noise."""
        if any(level.term.inexact is not None or level.term.tau > 0.0 for level in self.levels):
            return printed_inexact_bound(self.levels)
        return printed_holder_bound(self.levels)

    @property
    def theorem(self) -> str:
        """The statement behind `bound`."""
        if not math.isfinite(self.bound):
            return "none: the domain is unbounded"
        if self.sampled:
            return "Theorem VI_sliding_stochastic_uniform, in expectation"
        declared = any(level.term.inexact is not None for level in self.levels)
        named = "Theorem 3.3 with the declared oracles" if declared else "Theorem 3.5"
        return named + (", primal-dual steps" if self.coupling_step == PRIMAL_DUAL else "")

    @property
    def sampled(self) -> bool:
        """Whether a gradient is sampled, so that `bound` is on the expected gap."""
        return is_noisy(level.term for level in self.levels)

    @property
    def proved(self) -> bool:
        """Whether the theorem promises `tol` for this plan; without a target, whether the bound is finite."""
        if rests_on_estimate(self.constants) or not all_hold(self.hypotheses):
            return False
        return self.bound <= (math.inf if self.tol is None else self.tol) and math.isfinite(self.bound)

    @property
    def predicted_calls(self) -> dict[str, int]:
        """Calls per oracle as the theorem counts them: N_i gradients, and 4 products per iteration of the coupling.

        Primal-dual steps take 2 products each. A run makes up to 4 fewer in all: see `Result.spared`.
        """
        calls = dict.fromkeys("fgB", 0)
        for level in self.levels:
            products = COUPLING_STEPS[self.coupling_step] if level.term.M > 0.0 else 0
            calls[level.term.name] = level.N * (products if level.term.name == "B" else 1)
        return calls

    def explain(self) -> str:
        """The plan as readable lines.

        Examples
        --------
        >>> import numpy as np, saddleslide as ss
        >>> f, box = ss.functions.Quadratic(1.0), ss.domains.Box(-1.0, 1.0, shape=3)
        >>> problem = ss.SaddleProblem(f=f, g=f, B=np.eye(3), X=box, Y=box)
        >>> plan = ss.plan(problem, order="fgB", loops=(4, 2, 3), metric="identity")
        >>> print(plan.explain())  # doctest: +ELLIPSIS
        Plan fgB, loops (4, 2, 3), metric identity
        ...
        """
        calls = self.predicted_calls
        lines = [
            f"Plan {self.order}, loops {self.loops}, metric {self.metric}",
            f"  bound    {self.bound:.4g} ({self.theorem}; as printed {self.printed_bound:.4g})"
            f"{'; it rests on an estimate: ' + ESTIMATE if rests_on_estimate(self.constants) else ''}",
            f"  target   {'none' if self.tol is None else f'{self.tol:g}'}"
            f"{'' if self.tol is None else ', proved' if self.proved else ', not proved: judge by the gap'}",
            f"  calls    f' {calls['f']:,}   g' {calls['g']:,}   B and B^T {calls['B']:,}",
        ]
        if missing_words(self.hypotheses):
            lines.append(f"  open     nothing is proved: {missing_words(self.hypotheses)}")
        lines += [
            f"  level {i}  {level.term.name}: T = {level.T}, N = {level.N}, L = {level.L:.4g}, "
            f"M = {level.term.M:.4g}, delta = {level.delta:.3g}, Omega = {level.term.Omega:.4g}"
            for i, level in enumerate(self.levels, start=1)
        ]
        lines += [f"  simple   {term}" for term in self.simple_terms]
        lines += metric_lines(self.given)
        if self.coupling_step == PRIMAL_DUAL:
            lines.append("  coupling primal-dual steps, 2 products each, proved like the paper's 4 (docs/theory.md)")
        lines += noise_lines(self.levels, self.predicted_samples)
        lines += [f"  {name:<8} {constant.value:.6g} ({constant.origin})" for name, constant in self.constants.items()]
        lines += [one.line for one in self.hypotheses]
        lines += cost_lines(self.predicted_calls, self.costs, self.alternatives)
        return "\n".join(lines)

    def own_data(self) -> dict[str, Any]:
        """What only this kind of plan has, as plain data."""
        return {
            "loops": list(self.loops),
            "metric": self.metric,
            "kappa": self.kappa,
            "terms": [term_to_dict(level.term) for level in self.levels],
            "simple": list(self.simple),
            "given": metric_to_data(self.given),
            "coupling_step": self.coupling_step,
        }

    @classmethod
    def own_from_data(cls, data: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments that `own_data` wrote."""
        return {
            "levels": place([term_from_dict(term) for term in data["terms"]], data["loops"]),
            "metric": data["metric"],
            "kappa": data["kappa"],
            "simple": tuple(data["simple"]),
            "given": data["given"],
            "coupling_step": data.get("coupling_step", EXTRAGRADIENT),
        }
