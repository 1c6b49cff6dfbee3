"""Schedules of recursive sliding: stages of Algorithm 1 with order, loops and norm, and the bound that they prove."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

from saddleslide.theory.bounds import printed_holder_bound, printed_inexact_bound, sharp_bound
from saddleslide.theory.holder import Holder
from saddleslide.theory.hypotheses import all_hold, missing_words
from saddleslide.theory.levels import Level, Term, place
from saddleslide.theory.mixed import Regularisation
from saddleslide.theory.noise import ESTIMATE, is_noisy, noise_lines, rests_on_estimate
from saddleslide.theory.noisy_restarts import stage_noise_lines
from saddleslide.theory.restarts import CONTRACTION, Stage, anchor_calls, lengthened

if TYPE_CHECKING:
    from saddleslide.theory.plan import Plan

# How an innermost coupling steps, with its products a step: the paper's form, and the one of docs/theory.md.
EXTRAGRADIENT, PRIMAL_DUAL = "extragradient", "primal-dual"
COUPLING_STEPS = {EXTRAGRADIENT: 4, PRIMAL_DUAL: 2}
# One run of Algorithm 1 without restarts; the other regimes have stages.
DEGENERATE = "degenerate"
# What a practical stage is expected to leave of the gap: measured on quadratics, 0.1 to 0.3.
PRACTICAL_CONTRACTION = 0.25
# Psi is at least so many gaps (Bregman part of eq. Psi_s), and the certificate stops a run at the gap itself.
PSI_PER_GAP = 12.0


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
    given : object or dict or None
        Norm of the x block, from `ss.metrics` or as its `to_dict` wrote it; None for a number.
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
    def calls(self) -> dict[str, int]:
        """Calls per oracle as the theorem counts them, if every stage is needed; a run makes a few products fewer.

        N_i gradients, 4 products per iteration of the coupling (2 of primal-dual steps), and anchors.
        """
        calls = dict.fromkeys("fgB", 0)
        for stage in self.stages:
            for level in stage.levels:
                calls[level.term.name] += self._products(stage, level) if level.term.name == "B" else level.N
            calls["f"] += anchor_calls(stage, "f") if stage.beta_y > 0.0 else 0
            calls["g"] += anchor_calls(stage, "g") if stage.beta_x > 0.0 else 0
        return calls

    def _products(self, stage: Stage, level: Level) -> int:
        """Products of averaged points are averages of products: 1 an iteration and 1 an entry for every anchor."""
        anchors = (stage.beta_x > 0.0) + (stage.beta_y > 0.0)
        products = (COUPLING_STEPS[self.coupling_step] + anchors) * level.N + anchors * (level.N // level.T)
        return products if level.term.M > 0.0 else 0

    def raised(self, first: int, factor: float = 2.0) -> Schedule:
        """Longer stages from number `first` on: what a run does when a practical stage gained too little."""
        later = tuple(lengthened(stage, factor) for stage in self.stages[first:])
        return replace(self, stages=self.stages[:first] + later)

    @property
    def printed_bound(self) -> float:
        """Right-hand side as printed: of Theorem 3.5, or of Theorem 3.3 for declared inexact oracles and noise."""
        if any(level.term.inexact is not None or level.term.tau > 0.0 for level in self.levels):
            return printed_inexact_bound(self.levels)
        return printed_holder_bound(self.levels)

    def is_sampled(self, plan: Plan) -> bool:
        """Whether a gradient is sampled, so that every bound is in expectation."""
        if any(is_noisy(level.term for level in stage.levels) for stage in self.stages):
            return True
        names = ("sigma2_x", "sigma2_y") if self.has_restarts else ()
        return any(plan.constants[name].value > 0.0 for name in names if name in plan.constants)

    def bound(self, plan: Plan) -> float:
        """Bound on the (expected) gap: of Theorem 3.5; of restarts the target, where a theorem promises it.

        Infinite on unbounded domains without restarts, and where a floor of anchors lies above the target.
        """
        if not self.has_restarts:
            return sharp_bound(self.levels)
        known = self.proof_constants and self.transfers and not rests_on_estimate(plan.constants)
        known = known and all_hold(plan.hypotheses) and plan.tol is not None
        reached = "Psi_end" not in plan.constants or self.Psi_bound(plan) <= plan.constants["Psi_end"].value * (
            1.0 + 1e-9
        )
        return float(plan.tol or 0.0) if known and reached else math.inf

    def Psi_bound(self, plan: Plan) -> float:
        """What the proved constants promise for Psi at the end; infinite for practical ones."""
        if not self.proof_constants or rests_on_estimate(plan.constants):
            return math.inf
        if not all_hold(plan.hypotheses, for_gap=False):
            return math.inf
        if not self.stages:
            return plan.constants["Psi0"].value
        return CONTRACTION * self.stages[-1].Omega + self.stages[-1].anchor_error

    def is_proved(self, plan: Plan) -> bool:
        """Whether the theorem promises the target; without one, whether the bound is finite."""
        if rests_on_estimate(plan.constants) or not all_hold(plan.hypotheses):
            return False
        return plan.bound <= (math.inf if plan.tol is None else plan.tol) and math.isfinite(plan.bound)

    def theorem(self, plan: Plan) -> str:
        """The statement behind the bound."""
        if self.has_restarts:
            if plan.sampled:
                return "Appendix stochastic_strongly_convex, in expectation"
            return "Corollary mixed_gap_complexity" if self.regime == "mixed" else "Theorem 4.4, Corollary 4.5"
        if not math.isfinite(plan.bound):
            return "none: the domain is unbounded"
        if plan.sampled:
            return "Theorem VI_sliding_stochastic_uniform, in expectation"
        declared = any(level.term.inexact is not None for level in self.levels)
        named = "Theorem 3.3 with the declared oracles" if declared else "Theorem 3.5"
        return named + (", primal-dual steps" if self.coupling_step == PRIMAL_DUAL else "")

    def expected_share(self, plan: Plan) -> float:
        """Part of the stages that a run is expected to need: the certificate stops it long before Psi is proved."""
        if not self.has_restarts or self.proof_constants or not self.stages:
            return 1.0
        Psi0 = plan.constants["Psi0"].value if "Psi0" in plan.constants else math.inf
        ratio = Psi0 / (PSI_PER_GAP * plan.tol) if plan.tol else math.inf
        if not math.isfinite(ratio):
            return 1.0
        needed = math.log(max(ratio, 1.0)) / math.log(1.0 / PRACTICAL_CONTRACTION)
        return min(max(math.ceil(needed), 1) / len(self.stages), 1.0)

    def lines(self, plan: Plan) -> list[str]:
        """The schedule for people, without constants, hypotheses and costs."""
        return self._stage_lines(plan) if self.has_restarts else self._level_lines(plan)

    def _level_lines(self, plan: Plan) -> list[str]:
        estimate = "; it rests on an estimate: " + ESTIMATE if rests_on_estimate(plan.constants) else ""
        proved = "" if plan.tol is None else ", proved" if plan.proved else ", not proved: judge by the gap"
        lines = [
            f"Plan {self.order}, loops {self.loops}, metric {self.metric}",
            f"  bound    {plan.bound:.4g} ({plan.theorem}; as printed {self.printed_bound:.4g}){estimate}",
            f"  target   {'none' if plan.tol is None else f'{plan.tol:g}'}{proved}",
            f"  calls    {_called(self.calls)}",
        ]
        if missing_words(plan.hypotheses):
            lines.append(f"  open     nothing is proved: {missing_words(plan.hypotheses)}")
        lines += [
            f"  level {i}  {level.term.name}: T = {level.T}, N = {level.N}, L = {level.L:.4g}, "
            f"M = {level.term.M:.4g}, delta = {level.delta:.3g}, Omega = {level.term.Omega:.4g}"
            for i, level in enumerate(self.levels, start=1)
        ]
        lines += [f"  simple   {term}" for term in plan.simple_terms] + metric_lines(self.given)
        if self.coupling_step == PRIMAL_DUAL:
            lines.append("  coupling primal-dual steps, 2 products each, proved like the paper's 4 (docs/theory.md)")
        return lines + noise_lines(self.levels, plan.predicted_samples)

    def _stage_lines(self, plan: Plan) -> list[str]:
        proof = "proved constants" if self.proof_constants else "practical constants: judge by the gap"
        estimate = "; a constant is an estimate: " + ESTIMATE if rests_on_estimate(plan.constants) else ""
        lines = [
            f"Plan {self.regime}, {len(self.stages)} stages, first {self.order} with loops {self.loops}",
            f"  theory   {plan.theorem}, {proof}",
            f"  target   {plan.tol:g}; {self._promise(plan)}{estimate}",
            f"  calls    at most {_called(self.calls)}",
        ]
        if self.regularisation is not None:
            extra = self.regularisation
            lines.append(f"  lambda   {extra.weight:.4g} on {extra.block}; Psi must reach {extra.target:.4g}")
        block = "delta_x" if self.given is None else "delta_x P_x"
        lines.append(f"  metric   P = diag({block}, delta_y), the norm of Section 4")
        noise = stage_noise_lines(self.stages, plan.predicted_samples) if plan.sampled else []
        return lines + metric_lines(self.given) + noise

    def _promise(self, plan: Plan) -> str:
        """What is proved of Psi and the gap, in words."""
        Psi = self.Psi_bound(plan)
        if plan.proved:
            return f"proved: gap at most {plan.bound:.4g}, Psi at most {Psi:.4g}"
        if math.isfinite(Psi):
            return f"proved: Psi at most {Psi:.4g}, which bounds no gap here (an active constraint, or a floor)"
        open_ones = missing_words(one for one in plan.hypotheses if not one.for_gap)
        if self.proof_constants and open_ones:
            return f"nothing is proved, because of: {open_ones}"
        return "nothing is proved beforehand"

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and strings."""
        extra, names = self.regularisation, ("regime", "metric", "kappa", "coupling_step")
        more = ("proof_constants", "transfers", "fixed", "start_key", "accuracy")
        return {
            **{name: getattr(self, name) for name in (*names, *more)},
            "given": metric_to_data(self.given),
            "simple": list(self.simple),
            "regularisation": None if extra is None else [extra.block, extra.weight, extra.target],
            "stages": [
                {
                    "loops": [level.T for level in stage.levels],
                    "terms": [_term_to_dict(level.term) for level in stage.levels],
                    "Omega": stage.Omega if math.isfinite(stage.Omega) else None,
                    "beta": [stage.beta_x, stage.beta_y],
                    "anchors": [stage.anchor_batch, stage.anchor_error],
                }
                for stage in self.stages
            ],
        }

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
        plain = [entry.name for entry in fields(cls) if entry.name not in ("stages", "regularisation", "simple")]
        kept = {name: data[name] for name in plain}
        return cls(stages, simple=tuple(data["simple"]), regularisation=extra, **kept)


def one_stage(levels: Sequence[Level], **settings: Any) -> Schedule:
    """One run of Algorithm 1, from wherever it starts."""
    return Schedule((Stage(tuple(levels), math.nan),), **settings)


def metric_to_data(given: Any) -> Any:
    """A metric as plain data; what is data already, and None, as it is."""
    return given if given is None or isinstance(given, dict) else given.to_dict()


def metric_lines(given: Any) -> list[str]:
    """The norm of the x block, for people."""
    if given is None:
        return []
    return [f"  norm     of x: {given['kind'] if isinstance(given, dict) else given.name}"]


def _called(calls: Mapping[str, int]) -> str:
    return f"f' {calls['f']:,}   g' {calls['g']:,}   B and B^T {calls['B']:,}"


def _term_to_dict(term: Term) -> dict[str, Any]:
    smoothness = None if term.smoothness is None else [term.smoothness.nu, term.smoothness.H]
    return {
        "name": term.name,
        "smoothness": smoothness,
        "M": term.M,
        "tau": term.tau,
        "Omega": term.Omega if math.isfinite(term.Omega) else None,
        "inexact": None if term.inexact is None else list(term.inexact),
        "weights": list(term.weights),
        "variance": term.variance,
    }


def _term_from_dict(data: Mapping[str, Any]) -> Term:
    inexact = None if data["inexact"] is None else (float(data["inexact"][0]), float(data["inexact"][1]))
    smoothness = None if data["smoothness"] is None else Holder(*data["smoothness"])
    Omega = math.inf if data["Omega"] is None else data["Omega"]
    return Term(
        data["name"], smoothness, data["M"], inexact, data["tau"], tuple(data["weights"]), Omega, data["variance"]
    )
