"""Recursive sliding as a method: Algorithm 1 stage after stage, one outermost step after the other.

`sliding/recursion.py` is Algorithm 1 itself. Here are the state of its methods and one step of them; the schedule of a
theorem carried out; and stages of halved targets, with the levels of Corollary 3.6 or those of the paper's ablations.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, final

import numpy as np

from saddleslide.arrays.base import split
from saddleslide.arrays.state import ZVector
from saddleslide.certificates.candidate import Candidate
from saddleslide.functions.entrywise import Zero
from saddleslide.methods.base import STAGES, Array, Description, Facts, Judge, Method, Oracles, Revision, State, option
from saddleslide.methods.field import calls_of
from saddleslide.methods.schedule.fitting import norms_of
from saddleslide.methods.schedule.planner import theorem_plan
from saddleslide.methods.schedule.regimes import regularise_problem
from saddleslide.methods.sliding import bilinear
from saddleslide.methods.sliding.recursion import Recursion
from saddleslide.methods.sliding.view import View, view_of
from saddleslide.oracles.calls import Calls, RunEnded
from saddleslide.theory.bounds import budget
from saddleslide.theory.levels import place
from saddleslide.theory.schedule import PRIMAL_DUAL

if TYPE_CHECKING:
    from saddleslide.functions.minimum import LowerModel
    from saddleslide.methods.sliding.anchors import Anchors
    from saddleslide.methods.sliding.recursion import RecursionState
    from saddleslide.problem import SaddleProblem
    from saddleslide.theory.levels import Level, Term
    from saddleslide.theory.plan import Plan
    from saddleslide.theory.schedule import Schedule

METRICS = ("auto", "identity", "balanced", "levelwise")
# What stages over bounded domains need.
_NEEDS = ("Hölder f", "Hölder g", "bounded X", "bounded Y")
# A practical stage that leaves more than this part of the gap was too short: budgets double, at most so often.
_TOO_LITTLE, _MOST_RAISES = 0.9, 4


@dataclass
class SlidingState(State):
    """Where stages of Algorithm 1 stand.

    `point` is the running average of the outermost level, x and y in one vector, `center` where the run began, and
    `eps` the target of the stage, where the method chooses it. `stages` are the levels of the stage under way and of
    those known to follow; `done` and `step` count stages that are done and outermost steps of the one under way;
    `within` has its iterates and averages, None between two stages, `anchors` its anchors. `models` are averaged lower
    models of f and g at the end of the last stage, `gap` and `raises` the certified gap after the last stage that was
    judged, and how often budgets were raised. `note` says what a theorem promises.
    """

    point: ZVector
    center: ZVector
    eps: float = math.nan
    stages: tuple[tuple[Level, ...], ...] = ()
    done: int = 0
    step: int = 0
    within: RecursionState | None = None
    anchors: Anchors | None = None
    models: dict[str, tuple[float, Array]] = field(default_factory=dict)
    gap: float = math.inf
    raises: int = 0
    note: str = ""

    @classmethod
    def at(cls, start: tuple[Array, Array], eps: float = math.nan) -> SlidingState:
        """At a start."""
        z = np.concatenate([start[0].ravel(), start[1].ravel()])
        return cls(z, z, eps)

    def advance(self, oracles: Oracles, build: Callable[[], Recursion], *key: object) -> SlidingState:
        """After one outermost step of the stage under way; `build` makes its recursion, `key` is the stage's alone."""
        within = oracles.workspace(build, *key).go_on(self.within, self.step)
        if not np.isfinite(within.average).all():
            # Oracles are asked first, so these numbers are our own.
            raise RunEnded("NUMERICAL_LIMIT")
        return replace(self, point=within.average, step=self.step + 1, within=within)


def _blocks(z: Array, oracles: Oracles) -> tuple[Array, Array]:
    """X and y of one vector."""
    x, y = split(z, [oracles.problem.X.shape, oracles.problem.Y.shape])
    return x.copy(), y.copy()


class Sliding(Method):
    """What all methods of recursive sliding return: the running average of the outermost level."""

    def point(self, state: SlidingState, oracles: Oracles) -> tuple[Array, Array]:
        return _blocks(state.point, oracles)

    def left_behind(self, state: SlidingState, oracles: Oracles) -> tuple[tuple[Array, Array], ...]:
        """Running averages of the inner levels, where an outermost step was cut short."""
        recursion: Recursion | None = oracles.last_workspace
        if recursion is None or recursion.held is not None:
            return ()
        return tuple(_blocks(level.average, oracles) for level in recursion.levels[1:])


@final
@dataclass(frozen=True, repr=False)
class ScheduledSliding(Sliding):
    """Algorithm 1 as a theorem sets it: stages with restarts, anchors, a regularised block, simple terms, a norm of x.

    Judged between stages. A practical stage that gained too little makes those to come longer.
    """

    description = Description(
        name="recursive sliding",
        needs=(),
        guarantee="The bound of the plan: Theorem 3.5, or Theorem 4.4 with restarts.",
        reference="Recursive sliding (docs/theory.md), Algorithm 1",
    )
    judged = STAGES
    plan: Plan

    @classmethod
    def of(cls, plan: Plan) -> ScheduledSliding:
        return cls(plan)

    @property
    def schedule(self) -> Schedule:
        assert self.plan.schedule is not None
        return self.plan.schedule

    def init(self, oracles: Oracles, facts: Facts, start: tuple[Array, Array], tol: float) -> SlidingState:
        return SlidingState.at(start)

    def step(self, state: SlidingState, oracles: Oracles) -> SlidingState:
        stage, start, center = self.schedule.stages[state.done], _blocks(state.point, oracles), state.center
        if state.within is None:
            anchors = bilinear.take_anchors(oracles, stage, start, self._view(center, oracles).problem)
            state = replace(state, step=0, anchors=anchors)
        kept = state.anchors

        def build() -> Recursion:
            return bilinear.bilinear_recursion(oracles, stage, start, self._view(center, oracles), kept)

        state = state.advance(oracles, build, kept)
        if state.step < stage.levels[0].T:
            return state
        return replace(state, done=state.done + 1, within=None, models=self._read_models(state))

    def _view(self, center: Array, oracles: Oracles) -> View:
        """What the recursion sees of the problem."""
        schedule, problem = self.schedule, oracles.problem
        view = view_of(problem, schedule.simple, norms_of(schedule), schedule.coupling_step == PRIMAL_DUAL)
        if schedule.regularisation is None:
            return view
        around = _blocks(center, oracles)
        return replace(view, problem=regularise_problem(view.problem, schedule.regularisation, around, view.norms))

    def _read_models(self, state: SlidingState) -> dict[str, tuple[float, Array]]:
        """Lower models of f and g that the stage under way has averaged, or the last one."""
        if state.within is None:
            return state.models
        extra = self.schedule.regularisation
        # Those of a regularised function are not f's or g's own.
        changed = "" if extra is None else {"x": "f", "y": "g"}[extra.block]
        return {name: model for name, model in state.within.models.items() if name != changed}

    def cuts(self, state: SlidingState, oracles: Oracles) -> dict[str, LowerModel]:
        return bilinear.lower_models(self._read_models(state), oracles.problem)

    def is_due(self, state: SlidingState) -> bool:
        return state.within is None

    def is_finished(self, state: SlidingState) -> bool:
        return state.within is None and state.done >= len(self.schedule.stages)

    def candidates(self, state: SlidingState, oracles: Oracles) -> tuple[Candidate, ...]:
        # In the middle of a stage, what the last one has carried along is as true as it was.
        models = bilinear.lower_models(state.models, oracles.problem)
        return (Candidate(*self.point(state, oracles), math.nan, models=models),)

    def learn(
        self, state: SlidingState, gaps: Sequence[float], judge: Judge, oracles: Oracles
    ) -> SlidingState | Revision:
        before, gap = state.gap, gaps[0]
        state = replace(state, gap=gap)
        if self.schedule.fixed or self.is_finished(state) or state.within is not None:
            return state
        if not (math.isfinite(before) and gap > _TOO_LITTLE * before and state.raises < _MOST_RAISES):
            return state
        raised = self.plan.raised(state.done)
        return Revision(raised, ScheduledSliding(raised), replace(state, raises=state.raises + 1))


@dataclass(frozen=True, repr=False)
class Ablation(Sliding):
    """Stages of Algorithm 1 with the levels that a method chooses; each stage starts at the average of the last.

    Loops that were given are one stage, after which the method is finished. Loops from a target (Corollary 3.6 with
    kappa_n = 1) are followed by stages for half the target, a quarter, ...
    """

    @abstractmethod
    def levels(self, problem: SaddleProblem, start: tuple[Any, Any], eps: float) -> tuple[Level, ...]:
        """Levels of a stage for the target eps; the letters in a level's name say which terms it holds."""

    @property
    def is_explicit(self) -> bool:
        """Whether the loops were given."""
        return False

    def init(self, oracles: Oracles, facts: Facts, start: tuple[Array, Array], tol: float) -> SlidingState:
        return self._at_stage(SlidingState.at(start, tol), oracles)

    def _at_stage(self, state: SlidingState, oracles: Oracles) -> SlidingState:
        """The beginning of a stage for the target of the state, at its point."""
        levels = self.levels(oracles.problem, self.point(state, oracles), state.eps)
        return replace(state, stages=(without_idle(levels, oracles.problem),), step=0, within=None)

    def step(self, state: SlidingState, oracles: Oracles) -> SlidingState:
        if state.step == state.stages[0][0].T and not self.is_explicit:
            state = self._at_stage(replace(state, eps=0.5 * state.eps, done=state.done + 1), oracles)
        levels, z = state.stages[0], state.point
        return state.advance(oracles, lambda: level_recursion(oracles, levels, z), levels)

    def is_finished(self, state: SlidingState) -> bool:
        """Given loops are one stage."""
        return self.is_explicit and state.step == state.stages[0][0].T

    def notes(self, state: SlidingState, facts: Facts) -> tuple[str, ...]:
        loops = ", ".join(f"{level.term.name} {level.T}" for level in state.stages[0])
        budgets = "from Corollary 3.6 with kappa_n = 1, which is not proved to reach eps"
        return (f"first stage: loops {loops}, {'as given' if self.is_explicit else budgets}",)


@final
@dataclass(frozen=True, repr=False)
class RecursiveSliding(Ablation):
    """Algorithm 1 with the budgets of Corollary 3.6, first for a loose target, then for half of it, and so on.

    Budgets with kappa_n = 1 usually reach a smaller gap than they were made for; the certificate says when.

    Examples
    --------
    >>> import saddleslide as ss
    >>> problem = ss.gallery.synthetic(1.0, 0.5, d=20)
    >>> result = ss.solve(problem, reduction=0.02, method="recursive-sliding")
    >>> result.status.name, result.calls.f < ss.plan(problem, result.target, regime="degenerate").predicted_calls["f"]
    ('SOLVED', True)
    """

    description = Description(
        name="recursive-sliding",
        needs=_NEEDS,
        guarantee="The bound of Theorem 3.5 for each stage; budgets R_i of Corollary 3.6 with kappa_n = 1.",
        reference="Recursive sliding (docs/theory.md), Algorithm 1 and Corollary 3.6",
    )
    loose: float = option(16.0, "the first stage aims at this many times the target")
    metric: str = option("auto", "norm of the levels", METRICS)

    def init(self, oracles: Oracles, facts: Facts, start: tuple[Array, Array], tol: float) -> SlidingState:
        return super().init(oracles, facts, start, float(self.loose) * tol)

    def levels(self, problem: SaddleProblem, start: tuple[Any, Any], eps: float) -> tuple[Level, ...]:
        made = theorem_plan(problem, eps, metric=self.metric, start=start, regime="degenerate")
        assert made.schedule is not None
        return made.schedule.levels

    def calls(self, facts: Facts, tol: float) -> Calls | None:
        counts = {level.term.name: level.N for level in self.levels(facts.problem, facts.problem.start(), tol)}
        return calls_of(facts, counts["f"], counts["g"], 4 * counts["B"])


@final
@dataclass(frozen=True, repr=False)
class TwoLevelSliding(Ablation):
    """One function outside, the other together with the coupling inside: the paper's form of Mirror-Prox Sliding.

    Examples
    --------
    >>> import saddleslide as ss
    >>> problem = ss.gallery.synthetic(0.75, 0.25, seed=0)
    >>> ss.solve(problem, reduction=0.1, method=ss.methods.TwoLevelSliding(metric="identity")).status.name
    'SOLVED'
    """

    description = Description(
        name="two-level-sliding",
        needs=_NEEDS,
        guarantee="The bound of Theorem 3.5 with two levels; budgets R_i of Corollary 3.6 with kappa_n = 1.",
        reference="Two-level ablation of recursive sliding (docs/theory.md), after Lan and Ouyang, arXiv:2111.00996",
    )
    outer: str = option("auto", "the function outside; auto: the one with the smaller budget", ("auto", "f", "g"))
    outer_steps: int | None = option(None, "outer loop; by default the budget", whole=True)
    inner_steps: int | None = option(None, "inner loop; by default from the budgets", whole=True)
    metric: str = option("balanced", "both domains equally large, or the Euclidean norm", ("balanced", "identity"))

    @property
    def is_explicit(self) -> bool:
        return self.outer_steps is not None

    def levels(self, problem: SaddleProblem, start: tuple[Any, Any], eps: float) -> tuple[Level, ...]:
        terms = problem_terms(problem, start, eps, self.metric)
        outer = self.outer
        if outer == "auto":
            outer = "f" if budget(terms["f"], eps) <= budget(terms["g"], eps) else "g"
        inner = "g" if outer == "f" else "f"
        merged = replace(terms[inner], name=inner + "B", M=terms["B"].M)
        T_1 = math.ceil(budget(terms[outer], eps)) if self.outer_steps is None else int(self.outer_steps)
        T_2 = math.ceil(budget(merged, eps) / T_1) if self.inner_steps is None else int(self.inner_steps)
        return whole_levels([terms[outer], merged], [T_1, T_2])

    def calls(self, facts: Facts, tol: float) -> Calls | None:
        outer, inner = self.levels(facts.problem, facts.problem.start(), tol)
        f, g = (outer.N, inner.N) if outer.term.name == "f" else (inner.N, outer.N)
        return calls_of(facts, f, g, 4 * inner.N)


@final
@dataclass(frozen=True, repr=False)
class Lockstep(Ablation):
    """Three levels f, g, B with loops (max R, 1, 1): without separation, all oracles are called equally often.

    Examples
    --------
    >>> import saddleslide as ss
    >>> problem = ss.gallery.synthetic(0.75, 0.25, seed=0)
    >>> ss.solve(problem, reduction=0.1, method=ss.methods.Lockstep(metric="identity")).status.name
    'SOLVED'
    """

    description = Description(
        name="lockstep",
        needs=_NEEDS,
        guarantee="The bound of Theorem 3.5 for loops (max R, 1, 1); budgets R_i of Corollary 3.6 with kappa_n = 1.",
        reference="Lockstep ablation of recursive sliding (docs/theory.md)",
    )
    steps: int | None = option(None, "outermost loop; by default the largest budget", whole=True)
    metric: str = option("balanced", "both domains equally large, or the Euclidean norm", ("balanced", "identity"))

    @property
    def is_explicit(self) -> bool:
        return self.steps is not None

    def levels(self, problem: SaddleProblem, start: tuple[Any, Any], eps: float) -> tuple[Level, ...]:
        terms = problem_terms(problem, start, eps, self.metric)
        largest = max(budget(term, eps) for term in terms.values()) if self.steps is None else float(self.steps)
        return whole_levels([terms["f"], terms["g"], terms["B"]], [largest, 1, 1])

    def calls(self, facts: Facts, tol: float) -> Calls | None:
        T = self.levels(facts.problem, facts.problem.start(), tol)[0].T
        return calls_of(facts, T, T, 4 * T)


def problem_terms(problem: SaddleProblem, start: tuple[Any, Any], eps: float, metric: str) -> dict[str, Term]:
    """Terms of f, g and B as `ss.plan` sees them."""
    made = theorem_plan(problem, eps, order="fgB", loops=(1, 1, 1), metric=metric, start=start, regime="degenerate")
    assert made.schedule is not None
    return {level.term.name: level.term for level in made.schedule.levels}


def whole_levels(terms: list[Term], loops: list[float]) -> tuple[Level, ...]:
    """Terms on levels with whole loops."""
    return place(terms, [max(1, math.ceil(T)) for T in loops])


def without_idle(levels: tuple[Level, ...], problem: SaddleProblem) -> tuple[Level, ...]:
    """Without levels that are one pass over nothing: a stage has more outermost steps, and can be judged in between."""

    def is_idle(level: Level) -> bool:
        silent = {"f": isinstance(problem.f, Zero), "g": isinstance(problem.g, Zero), "B": level.term.M == 0.0}
        return level.T == 1 and all(silent[letter] for letter in level.term.name)

    return tuple(level for level in levels if not is_idle(level)) or levels[:1]


def level_recursion(oracles: Oracles, levels: tuple[Level, ...], start: Array) -> Recursion:
    """Algorithm 1 with any of f, g and B together on a level; nothing is called for Zero()."""
    writers, coupling = bilinear.gradient_writers(oracles, oracles.problem), bilinear.product_writer(oracles)

    def gradient(level: Level) -> Callable[[Array, Array], None] | None:
        """One writer for several blocks: each writes its own and leaves the others alone."""
        parts = [writers[letter] for letter in level.term.name if letter in writers and not oracles.is_zero(letter)]

        def write(z: Array, out: Array) -> None:
            for part in parts:
                part(z, out)

        return write if parts else None

    operators = [coupling if "B" in level.term.name and level.term.M > 0.0 else None for level in levels]
    return Recursion(
        levels, [gradient(level) for level in levels], operators, bilinear.product_domain(oracles.problem), start
    )
