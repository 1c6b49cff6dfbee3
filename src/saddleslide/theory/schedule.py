"""Schedules of recursive sliding: stages of Algorithm 1 with order, loops and norm, as data."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

from saddleslide.theory.bounds import printed_holder_bound, printed_inexact_bound, sharp_bound
from saddleslide.theory.explanation import schedule_lines
from saddleslide.theory.holder import Holder
from saddleslide.theory.hypotheses import as_data
from saddleslide.theory.levels import Level, Term, place
from saddleslide.theory.mixed import Regularisation
from saddleslide.theory.noise import is_noisy
from saddleslide.theory.restarts import BREGMAN_PER_GAP, CONTRACTION, Stage, anchor_calls, lengthen

if TYPE_CHECKING:
    from saddleslide.theory.plan import Plan

# How an innermost coupling steps, with its products a step: the paper's form, and the one of docs/theory.md.
EXTRAGRADIENT, PRIMAL_DUAL = "extragradient", "primal-dual"
COUPLING_STEPS = {EXTRAGRADIENT: 4, PRIMAL_DUAL: 2}
# What a practical stage is expected to leave of the gap: measured on quadratics, 0.1 to 0.3.
PRACTICAL_CONTRACTION = 0.25
# One run of Algorithm 1 without restarts; the other regimes have stages.
DEGENERATE = "degenerate"


@dataclass(frozen=True)
class Schedule:
    """What recursive sliding is to do: one run of levels, or stages of such runs, each from where the last one ended.

    Parameters
    ----------
    stages : tuple of Stage
        In the order of the run.
    regime : str
        "degenerate" (one run, Theorem 3.5), "restarts" (both effective moduli positive, Theorem 4.4) or "mixed" (one
        is zero; that block is regularised).
    metric : str
        Weights of P on the two blocks, by name.
    kappa : float or None
        kappa_n of Corollary 3.6, None for explicit loops and for restarts.
    given, given_y : object or dict or None
        Norms of the blocks, from `ss.metrics` or as its `to_dict` wrote it; None for a number.
    simple : tuple of "f", "g"
        Functions whose simple terms are in the projection step; one that is simple as a whole has no level.
    coupling_step : "extragradient" or "primal-dual"
        The paper's step, four products, or the one of docs/theory.md with the same bound, two products.
    proof_constants : bool
        Whether restarts use the constants of the proofs. `Plan.proved` says whether they bound the gap by the target.
    regularisation : Regularisation or None
        The mixed regime's quadratic.
    transfers : bool
        Whether Psi at its target bounds the gap by the target: the normal vectors at the solution must be known to be 0
        (Theorem mixed_gap_transfer, Lemma mixed_gap_identity).
    fixed : bool
        Whether the budgets stay as they are; else a run lengthens practical stages that gain too little.
    start_key : str
        Which start Psi0 belongs to; from another one nothing is promised.
    accuracy : float or None
        What the stages were made for, where that is not the target: with sampled gradients plans for smaller and
        smaller accuracies follow until a certificate meets the target.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> f, box = ss.functions.Quadratic(1.0), ss.domains.Box(-1.0, 1.0, shape=3)
    >>> plan = ss.plan(ss.SaddleProblem(f=f, g=f, B=np.eye(3), X=box, Y=box), order="fgB", loops=(4, 2, 3))
    >>> plan.schedule.calls, [level.N for level in plan.schedule.levels]
    ({'f': 4, 'g': 8, 'B': 96}, [4, 8, 24])
    """

    stages: tuple[Stage, ...]
    regime: str = DEGENERATE
    metric: str = "identity"
    kappa: float | None = None
    given: Any = None
    simple: tuple[str, ...] = ()
    coupling_step: str = EXTRAGRADIENT
    proof_constants: bool = False
    regularisation: Regularisation | None = None
    transfers: bool = False
    fixed: bool = True
    start_key: str = ""
    accuracy: float | None = None
    given_y: Any = None

    @property
    def levels(self) -> tuple[Level, ...]:
        """Levels of the first stage, outermost first."""
        return self.stages[0].levels if self.stages else ()

    @property
    def order(self) -> str:
        """Names of these levels."""
        return "".join(level.term.name for level in self.levels)

    @property
    def loops(self) -> tuple[int, ...]:
        """Their iterations per entry."""
        return tuple(level.T for level in self.levels)

    @property
    def has_restarts(self) -> bool:
        """Whether Psi is halved stage by stage, in the norm of Section 4."""
        return self.regime != DEGENERATE

    @property
    def is_primal_dual(self) -> bool:
        """Whether an innermost coupling makes primal-dual steps."""
        return self.coupling_step == PRIMAL_DUAL

    @property
    def calls(self) -> dict[str, int]:
        """Calls per oracle as the theorem counts them, if every stage is needed; a run makes a few products fewer.

        N_i gradients, 4 products per iteration of the coupling (2 of primal-dual steps), and anchors.
        """
        calls = dict.fromkeys("fgB", 0)
        for stage in self.stages:
            anchors = (stage.beta_x > 0.0) + (stage.beta_y > 0.0)
            for level in stage.levels:
                if level.term.name != "B":
                    calls[level.term.name] += level.N
                elif level.term.M > 0.0:
                    # Products of averaged points are averages of products: 1 an iteration and 1 an entry per anchor.
                    calls["B"] += (COUPLING_STEPS[self.coupling_step] + anchors) * level.N
                    calls["B"] += anchors * (level.N // level.T)
            calls["f"] += anchor_calls(stage, "f") if stage.beta_y > 0.0 else 0
            calls["g"] += anchor_calls(stage, "g") if stage.beta_x > 0.0 else 0
        return calls

    @property
    def printed_bound(self) -> float:
        """Right-hand side as printed: of Theorem 3.5, or of Theorem 3.3 for declared inexact oracles and noise."""
        inexact = any(level.term.inexact is not None or level.term.tau > 0.0 for level in self.levels)
        return printed_inexact_bound(self.levels) if inexact else printed_holder_bound(self.levels)

    def is_sampled(self, plan: Plan) -> bool:
        """`Plan.sampled`, of a plan with this schedule, as all that follow."""
        if any(is_noisy(level.term for level in stage.levels) for stage in self.stages):
            return True
        names = ("sigma2_x", "sigma2_y") if self.has_restarts else ()
        return any(plan.constants[name].value > 0.0 for name in names if name in plan.constants)

    def bound_of(self, plan: Plan) -> float:
        """`Plan.bound`: of one run that of Theorem 3.5, of restarts the target.

        So it is infinite on unbounded domains without restarts, and where a floor of anchors lies above the target.
        """
        if not self.has_restarts:
            return sharp_bound(self.levels)
        known = self.proof_constants and self.transfers and plan.is_founded()
        Psi_end = plan.constants["Psi_end"].value if "Psi_end" in plan.constants else math.inf
        reached = plan.Psi_bound <= Psi_end * (1.0 + 1e-9)
        return float(plan.tol) if known and reached and plan.tol is not None else math.inf

    def Psi_bound_of(self, plan: Plan) -> float:
        """`Plan.Psi_bound`."""
        if not self.proof_constants or not plan.is_founded(for_gap=False):
            return math.inf
        if not self.stages:
            return plan.constants["Psi0"].value
        return CONTRACTION * self.stages[-1].Omega + self.stages[-1].anchor_error

    def theorem_of(self, plan: Plan) -> str:
        """`Plan.theorem`."""
        if self.has_restarts:
            if plan.sampled:
                transfer = " with Theorem mixed_gap_transfer" if self.regime == "mixed" else ""
                return f"Appendix stochastic_strongly_convex{transfer}, in expectation"
            return "Corollary mixed_gap_complexity" if self.regime == "mixed" else "Theorem 4.4, Corollary 4.5"
        if not math.isfinite(plan.bound):
            return "none: the domain is unbounded"
        if plan.sampled:
            return "Theorem VI_sliding_stochastic_uniform, in expectation"
        declared = any(level.term.inexact is not None for level in self.levels)
        named = "Theorem 3.3 with the declared oracles" if declared else "Theorem 3.5"
        return named + (", primal-dual steps" if self.is_primal_dual else "")

    def share_of(self, plan: Plan) -> float:
        """`Plan.expected_share`."""
        if not self.has_restarts or self.proof_constants or not self.stages:
            return 1.0
        Psi0 = plan.constants["Psi0"].value if "Psi0" in plan.constants else math.inf
        # Psi is at least its Bregman part (eq. Psi_s), and the certificate stops a run at the gap itself.
        ratio = Psi0 / (BREGMAN_PER_GAP * plan.tol) if plan.tol else math.inf
        if not math.isfinite(ratio):
            return 1.0
        needed = math.log(max(ratio, 1.0)) / math.log(1.0 / PRACTICAL_CONTRACTION)
        return min(max(math.ceil(needed), 1) / len(self.stages), 1.0)

    def lines_of(self, plan: Plan) -> list[str]:
        """What `Plan.explain` says of it."""
        return schedule_lines(plan, self)

    def lengthened(self, first: int, factor: float) -> Schedule:
        """With longer stages from number `first` on."""
        later = tuple(lengthen(stage, factor) for stage in self.stages[first:])
        return replace(self, stages=self.stages[:first] + later)

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and strings."""
        data = {entry.name: as_data(getattr(self, entry.name)) for entry in fields(self) if entry.name != "stages"}
        stages = [
            {
                "loops": [level.T for level in stage.levels],
                "terms": [_term_to_dict(level.term) for level in stage.levels],
                "Omega": stage.Omega if math.isfinite(stage.Omega) else None,
                "beta": [stage.beta_x, stage.beta_y],
                "anchors": [stage.anchor_batch, stage.anchor_error],
            }
            for stage in self.stages
        ]
        return {**data, "stages": stages}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Schedule:
        """What `to_dict` wrote."""
        stages = tuple(
            Stage(
                place([_term_from_dict(term) for term in stage["terms"]], stage["loops"]),
                math.nan if stage["Omega"] is None else stage["Omega"],
                *stage["beta"],
                *stage["anchors"],
            )
            for stage in data["stages"]
        )
        extra = None if data["regularisation"] is None else Regularisation(*data["regularisation"])
        kept = {entry.name: data[entry.name] for entry in fields(cls)}
        return cls(**kept | {"stages": stages, "regularisation": extra, "simple": tuple(data["simple"])})


def one_stage(levels: Sequence[Level], **settings: Any) -> Schedule:
    """One run of Algorithm 1, from wherever it starts."""
    return Schedule((Stage(tuple(levels), math.nan),), **settings)


def _term_to_dict(term: Term) -> dict[str, Any]:
    data = {name: as_data(value) for name, value in vars(term).items()}
    return data | {"Omega": term.Omega if math.isfinite(term.Omega) else None}


def _term_from_dict(data: Mapping[str, Any]) -> Term:
    kept = {entry.name: data[entry.name] for entry in fields(Term)}
    return Term(
        **kept
        | {
            "smoothness": None if data["smoothness"] is None else Holder(*data["smoothness"]),
            "inexact": None if data["inexact"] is None else (float(data["inexact"][0]), float(data["inexact"][1])),
            "weights": tuple(data["weights"]),
            "Omega": math.inf if data["Omega"] is None else data["Omega"],
        }
    )
