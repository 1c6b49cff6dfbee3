"""What a plan may vary besides regime, order and loops: simple terms, and the norm of the x block."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from saddleslide.arrays.base import Array
from saddleslide.domains import Ball
from saddleslide.errors import InputError
from saddleslide.facts.facts import plan_constants
from saddleslide.facts.metric_constants import BUILT_METRICS, constants_in, squared_radius_in
from saddleslide.functions.entrywise import Zero
from saddleslide.methods.metric_choice import built_metric, choose_metric
from saddleslide.methods.sliding.view import View, view_of
from saddleslide.metrics import Metric
from saddleslide.operators.spectrum import note
from saddleslide.oracles.oracles import Oracles
from saddleslide.oracles.sampling import is_sampled
from saddleslide.problem import SaddleProblem
from saddleslide.theory import Constant


@dataclass(frozen=True)
class Setting:
    """A view of the problem with what the theorems need to know of it.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> box, q = ss.domains.Box(-1.0, 1.0, shape=2), ss.functions.Quadratic(1.0)
    >>> problem = ss.SaddleProblem(f=q, g=q, B=np.eye(2), X=box, Y=box)
    >>> Setting(problem, ("f",), None, problem.start(), {}).levels
    ('g', 'B')
    """

    problem: SaddleProblem
    simple: tuple[str, ...]
    metric: Metric | None
    start: tuple[Array, Array]
    declared: Mapping[str, float]

    @property
    def view(self) -> View:
        """What the recursion sees."""
        return view_of(self.problem, self.simple, self.metric)

    @property
    def levels(self) -> tuple[str, ...]:
        """Names that have a level: a function that is simple as a whole has none."""
        rest = self.view.problem
        gone = {name for name, part in (("f", rest.f), ("g", rest.g)) if name in self.simple and isinstance(part, Zero)}
        return tuple(name for name in "fgB" if name not in gone)

    @property
    def label(self) -> str:
        """For people, in the list of alternatives."""
        metric = "" if self.metric is None else f", {self.metric.name} metric of x"
        return metric + (f", {' and '.join(self.simple)} simple" if self.simple else "")

    @property
    def squares(self) -> tuple[float, float]:
        """Largest squared distances from the start on X and Y."""
        x, y = self.start
        X, Y = self.problem.X, self.problem.Y
        return X.squared_radius(x) if self.metric is None else squared_radius_in(self.metric, X, x), Y.squared_radius(y)

    def constants(self, names: Sequence[str]) -> dict[str, Constant]:
        """The constants of what has a level, in the norm of the metric."""
        found = plan_constants(self.view.problem, self.declared, names)
        if self.metric is None:
            return found
        return constants_in(self.metric, self.view.problem, found, self.declared)


def settings(
    problem: SaddleProblem,
    metric: Any,
    simple: str | Collection[str],
    start: tuple[Array, Array],
    declared: Mapping[str, float],
    automatic: bool,
) -> list[Setting]:
    """The settings to compare: those asked for, or where nothing is asked for also what may be cheaper."""
    norms: list[Metric | None] = [_built(problem, metric, start)]
    if automatic:
        norms += _uneven_norm(problem, start)
    kinds = [tuple(name for name in "fg" if name in simple)] if simple != "auto" else [()]
    able = _able(problem, declared) if automatic and simple == "auto" else ()
    kinds += [able] if able else []
    found = [Setting(problem, names, norm, start, declared) for norm in norms for names in kinds]
    idle = problem.coupling.norm.upper == 0.0
    return [setting for setting in found if not (idle and setting.simple)] or found[:1]


def _able(problem: SaddleProblem, declared: Mapping[str, float]) -> tuple[str, ...]:
    """Functions with a simple part. A declared H is that of the whole function, and a sampled gradient too."""
    whole = view_of(problem, "fg")
    parts = (("f", "H_x", whole.f_simple), ("g", "H_y", whole.g_simple))
    if is_sampled(problem):
        return ()
    return tuple(name for name, H, part in parts if H not in declared and not isinstance(part, Zero))


def _built(problem: SaddleProblem, metric: Any, start: tuple[Array, Array]) -> Metric | None:
    """The norm of x that was asked for: None where it is a number."""
    if not isinstance(metric, Metric) and not (isinstance(metric, str) and metric in BUILT_METRICS):
        return None
    choose_metric(problem, problem.f, metric)
    if isinstance(problem.X, Ball):
        name = metric.name if isinstance(metric, Metric) else metric
        raise InputError(
            f"plan: metric {name!r} can not be used in a plan of the theorems: X is {problem.X}, whose projection "
            "mixes with it. Use a free X, or ss.solve, which watches whether the constraint is active."
        )
    if isinstance(metric, Metric):
        return metric.attached(problem.coupling)
    oracles = Oracles(problem)
    try:
        return built_metric(metric, oracles, problem.f, start[0], seed=0)
    finally:
        note(oracles.calls)


def _uneven_norm(problem: SaddleProblem, start: tuple[Array, Array]) -> list[Metric | None]:
    """A diagonal norm where the curvatures of the entries differ much; it is read off at no call."""
    chosen, _ = choose_metric(problem, problem.f, "auto")
    return [built_metric("diagonal", Oracles(problem), problem.f, start[0], 0)] if chosen == "diagonal" else []
