"""The plan of a restarted run: stages of Algorithm 1, each from the point where the last one ended."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any

from saddleslide.errors import InputError
from saddleslide.theory.hypotheses import Hypothesis, all_hold, hypotheses_from_data, hypotheses_to_data, missing_words
from saddleslide.theory.levels import Level, place
from saddleslide.theory.mixed import Regularisation
from saddleslide.theory.noise import ESTIMATE, is_noisy, rests_on_estimate, samples_of
from saddleslide.theory.noisy_restarts import stage_noise_lines
from saddleslide.theory.plan import (
    PRODUCTS_PER_COUPLING_STEP,
    Constant,
    cost_lines,
    metric_lines,
    metric_to_data,
    shapes_from_data,
    term_from_dict,
    term_to_dict,
)
from saddleslide.theory.restarts import CONTRACTION, Stage, anchor_calls, lengthened

# What a practical stage is expected to leave of the gap: measured on quadratics, 0.1 to 0.3.
PRACTICAL_CONTRACTION = 0.25
# Psi is at least so many gaps (Bregman part of eq. Psi_s), and the certificate stops a run at the gap itself.
PSI_PER_GAP = 12.0


@dataclass(frozen=True)
class RestartPlan:
    """Stages of Algorithm 1 with restarts (Theorem 4.4, Corollary 4.5), possibly on a regularised problem.

    Parameters
    ----------
    stages : tuple of Stage
        In the order of the run.
    regime : str
        "restarts" (both effective moduli positive) or "mixed" (one is zero; that block is regularised).
    tol : float
        Target gap; the run stops as soon as a certificate meets it.
    proof_constants : bool
        Whether the stages use the constants of the proofs. `proved` says whether they bound the gap by `tol`.
    constants : dict
        Every constant used, with its origin.
    regularisation : Regularisation or None
        The mixed regime's quadratic.
    transfers : bool
        Whether Psi at its target bounds the gap by `tol`: the normal vectors at the solution must be known to be 0
        (Theorem mixed_gap_transfer, Lemma mixed_gap_identity).
    fixed : bool
        Whether the budgets were asked for and stay as they are; else a run lengthens practical stages that gain too
        little.
    given : object or dict or None
        Norm of the x block, from `ss.metrics` or as its `to_dict` wrote it; None for a number.
    start_key : str
        Which start Psi0 belongs to; from another one nothing is promised.
    hypotheses : tuple of Hypothesis
        All that the theorems ask for, with how it is known: `Psi_bound` and `proved` need every one.
    planning_calls : dict or None
        Calls per oracle that making the plan took, outside of any run; None where that is not known, as of a plan from
        a file. No part of what `to_dict` writes, and none of what makes two plans equal.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> q, free = ss.functions.Quadratic(1.0), ss.domains.FullSpace(2)
    >>> problem = ss.SaddleProblem(f=q, g=q, B=np.eye(2), X=free, Y=free)
    >>> plan = ss.plan(problem, tol=1e-3, regime="restarts", start=(np.ones(2), np.ones(2)))
    >>> plan.regime, plan.order
    ('restarts', 'fgB')
    """

    stages: tuple[Stage, ...]
    regime: str
    tol: float
    proof_constants: bool
    constants: dict[str, Constant] = field(default_factory=dict)
    regularisation: Regularisation | None = None
    transfers: bool = False
    costs: tuple[float, float, float] | None = None
    alternatives: tuple[tuple[str, float], ...] = ()
    shapes: tuple[tuple[int, ...], tuple[int, ...]] | None = None
    fixed: bool = False
    given: Any = None
    start_key: str = ""
    hypotheses: tuple[Hypothesis, ...] = ()
    planning_calls: dict[str, float] | None = field(default=None, compare=False, repr=False)

    @property
    def order(self) -> str:
        """Levels of the first stage, outermost first."""
        return "".join(level.term.name for level in self.stages[0].levels) if self.stages else ""

    @property
    def loops(self) -> tuple[int, ...]:
        """Loop counts of the first stage."""
        return tuple(level.T for level in self.stages[0].levels) if self.stages else ()

    @property
    def expected_share(self) -> float:
        """Part of the stages that a run is expected to need: the certificate stops it long before Psi is proved."""
        if self.proof_constants or not self.stages:
            return 1.0
        ratio = self.constants["Psi0"].value / (PSI_PER_GAP * self.tol) if "Psi0" in self.constants else math.inf
        if not math.isfinite(ratio):
            return 1.0
        needed = math.log(max(ratio, 1.0)) / math.log(1.0 / PRACTICAL_CONTRACTION)
        return min(max(math.ceil(needed), 1) / len(self.stages), 1.0)

    def raised(self, first: int, factor: float = 2.0) -> RestartPlan:
        """The plan with longer stages from number `first` on: what a run does when a practical stage gained too little.

        Examples
        --------
        >>> import numpy as np, saddleslide as ss
        >>> q, free = ss.functions.Quadratic(1.0), ss.domains.FullSpace(2)
        >>> problem = ss.SaddleProblem(f=q, g=q, B=np.eye(2), X=free, Y=free)
        >>> plan = ss.plan(problem, tol=1e-3, regime="restarts", start=(np.ones(2), np.ones(2)))
        >>> [stage.levels[-1].N for stage in plan.raised(1).stages[:2]]
        [2, 4]
        """
        later = tuple(lengthened(stage, factor) for stage in self.stages[first:])
        return replace(self, stages=self.stages[:first] + later)

    @property
    def Psi_bound(self) -> float:
        """What the proved constants promise for Psi at the end; infinite for practical ones."""
        if not self.proof_constants or rests_on_estimate(self.constants):
            return math.inf
        if not all_hold(self.hypotheses, for_gap=False):
            return math.inf
        if not self.stages:
            return self.constants["Psi0"].value
        return CONTRACTION * self.stages[-1].Omega + self.stages[-1].anchor_error

    @property
    def sampled(self) -> bool:
        """Whether a gradient is sampled, so that every bound is in expectation."""
        declared = any(self.constants[name].value > 0.0 for name in ("sigma2_x", "sigma2_y") if name in self.constants)
        return declared or any(is_noisy(level.term for level in stage.levels) for stage in self.stages)

    @property
    def predicted_samples(self) -> dict[str, int]:
        """Samples per oracle if every stage is needed, anchors included; 0 for exact gradients."""
        return samples_of(self.predicted_calls, self.constants)

    @property
    def bound(self) -> float:
        """Bound on the gap: `tol` where a theorem promises it, else infinite; a floor of anchors may lie above it."""
        known = self.proof_constants and self.transfers and not rests_on_estimate(self.constants)
        known = known and all_hold(self.hypotheses)
        reached = "Psi_end" not in self.constants or self.Psi_bound <= self.constants["Psi_end"].value * (1.0 + 1e-9)
        return self.tol if known and reached else math.inf

    @property
    def proved(self) -> bool:
        """Whether a theorem promises `tol` for the gap; Psi alone may be proved where it does not bound the gap."""
        return self.bound <= self.tol

    @property
    def theorem(self) -> str:
        """The statement behind the plan."""
        if self.sampled:
            return "Appendix stochastic_strongly_convex, in expectation"
        return "Corollary mixed_gap_complexity" if self.regime == "mixed" else "Theorem 4.4, Corollary 4.5"

    @property
    def predicted_calls(self) -> dict[str, int]:
        """Calls per oracle if every stage is needed, anchors included; a run spares a few products in each."""
        calls = dict.fromkeys("fgB", 0)
        for stage in self.stages:
            for level in stage.levels:
                calls[level.term.name] += stage_products(stage, level) if level.term.name == "B" else level.N
            calls["f"] += (stage.beta_y > 0.0) * anchor_calls(stage, "f")
            calls["g"] += (stage.beta_x > 0.0) * anchor_calls(stage, "g")
        return calls

    def explain(self) -> str:
        """The plan as readable lines.

        Examples
        --------
        >>> import numpy as np, saddleslide as ss
        >>> q, free = ss.functions.Quadratic(1.0), ss.domains.FullSpace(2)
        >>> problem = ss.SaddleProblem(f=q, g=q, B=np.eye(2), X=free, Y=free)
        >>> plan = ss.plan(problem, tol=1e-3, regime="restarts", start=(np.ones(2), np.ones(2)))
        >>> print(plan.explain())  # doctest: +ELLIPSIS
        Plan restarts, ... stages, first fgB with loops (1, 1, 2)
        ...
        """
        calls = self.predicted_calls
        proof = "proved constants" if self.proof_constants else "practical constants: judge by the gap"
        lines = [
            f"Plan {self.regime}, {len(self.stages)} stages, first {self.order} with loops {self.loops}",
            f"  theory   {self.theorem}, {proof}",
            f"  target   {self.tol:g}; {self._promise()}"
            f"{'; a constant is an estimate: ' + ESTIMATE if rests_on_estimate(self.constants) else ''}",
            f"  calls    at most f' {calls['f']:,}   g' {calls['g']:,}   B and B^T {calls['B']:,}",
        ]
        if self.regularisation is not None:
            extra = self.regularisation
            lines.append(f"  lambda   {extra.weight:.4g} on {extra.block}; Psi must reach {extra.target:.4g}")
        block = "delta_x" if self.given is None else "delta_x P_x"
        lines.append(f"  metric   P = diag({block}, delta_y), the norm of Section 4")
        lines += metric_lines(self.given)
        if self.sampled:
            lines += stage_noise_lines(self.stages, self.predicted_samples)
        lines += [f"  {name:<8} {constant.value:.6g} ({constant.origin})" for name, constant in self.constants.items()]
        lines += [one.line for one in self.hypotheses]
        lines += cost_lines(self.predicted_calls, self.costs, self.alternatives, self.expected_share)
        return "\n".join(lines)

    def _promise(self) -> str:
        """What is proved, in words."""
        if self.proved:
            return f"proved: gap at most {self.bound:.4g}, Psi at most {self.Psi_bound:.4g}"
        if math.isfinite(self.Psi_bound):
            return (
                f"proved: Psi at most {self.Psi_bound:.4g}, which bounds no gap here (an active constraint, or a floor)"
            )
        open_ones = missing_words(one for one in self.hypotheses if not one.for_gap)
        if self.proof_constants and open_ones:
            return f"nothing is proved, because of: {open_ones}"
        return "nothing is proved beforehand"

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and strings, for JSON.

        Examples
        --------
        >>> RestartPlan((), "restarts", 0.1, False).to_dict()["tol"]
        0.1
        """
        extra = self.regularisation
        return {
            "regime": self.regime,
            "tol": self.tol,
            "proved": self.proof_constants,
            "transfers": self.transfers,
            "constants": {name: [c.value, c.origin] for name, c in self.constants.items()},
            "regularisation": None if extra is None else [extra.block, extra.weight, extra.target],
            "costs": None if self.costs is None else list(self.costs),
            "alternatives": [list(pair) for pair in self.alternatives],
            "shapes": None if self.shapes is None else [list(shape) for shape in self.shapes],
            "fixed": self.fixed,
            "given": metric_to_data(self.given),
            "start_key": self.start_key,
            "hypotheses": hypotheses_to_data(self.hypotheses),
            "stages": [
                {
                    "loops": [level.T for level in stage.levels],
                    "terms": [term_to_dict(level.term) for level in stage.levels],
                    "Omega": stage.Omega,
                    "beta": [stage.beta_x, stage.beta_y],
                    "anchors": [stage.anchor_batch, stage.anchor_error],
                }
                for stage in self.stages
            ],
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> RestartPlan:
        """Read what `to_dict` wrote.

        Examples
        --------
        >>> plan = RestartPlan((), "restarts", 0.1, False)
        >>> RestartPlan.from_dict(plan.to_dict()) == plan
        True
        """
        try:
            stages = tuple(
                Stage(
                    place([term_from_dict(t) for t in s["terms"]], s["loops"]),
                    s["Omega"],
                    *s["beta"],
                    *s.get("anchors", (1, 0.0)),
                )
                for s in data["stages"]
            )
            constants = {name: Constant(*pair) for name, pair in data["constants"].items()}
            extra = None if data["regularisation"] is None else Regularisation(*data["regularisation"])
            costs = None if data["costs"] is None else tuple(data["costs"])
            alternatives = tuple((str(name), float(cost)) for name, cost in data["alternatives"])
            return cls(
                stages,
                data["regime"],
                data["tol"],
                data["proved"],
                constants,
                extra,
                data["transfers"],
                costs,
                alternatives,
                shapes_from_data(data["shapes"]),
                bool(data["fixed"]),
                data.get("given"),
                str(data.get("start_key", "")),
                hypotheses_from_data(data.get("hypotheses", ())),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"RestartPlan.from_dict: {error!r}; expected what to_dict wrote.") from error


def stage_products(stage: Stage, level: Level) -> int:
    """4 products an iteration of the coupling's level, and for every active anchor 1, and 1 an entry of the level.

    Products of averaged points are averages of products. Without a coupling there are none.
    """
    anchors = (stage.beta_x > 0.0) + (stage.beta_y > 0.0)
    products = (PRODUCTS_PER_COUPLING_STEP + anchors) * level.N + anchors * (level.N // level.T)
    return products if level.term.M > 0.0 else 0
