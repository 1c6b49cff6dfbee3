"""What a method is: frozen settings, and functions of an explicit state. What the loop of a run asks of it.

    state = method.init(oracles, facts, start, tol)
    state = method.step(state, oracles)          as often as you like
    x, y = method.point(state, oracles)         at any time

A method touches the problem only through its oracles, so that every call is counted, and reads no clock.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, TypeAlias

from saddleslide.arrays.base import Array as Array
from saddleslide.arrays.state import State as State
from saddleslide.certificates.candidate import Candidate as Candidate
from saddleslide.certificates.candidate import Split
from saddleslide.certificates.verdict import Status
from saddleslide.errors import raise_all
from saddleslide.oracles.calls import Calls as Calls

if TYPE_CHECKING:
    # Methods are handed the first three and need their names alone, which stand for anything where code runs.
    from saddleslide.certificates.judge import Judge as Judge
    from saddleslide.facts.facts import Facts as Facts
    from saddleslide.functions.minimum import LowerModel
    from saddleslide.oracles.oracles import Oracles as Oracles
    from saddleslide.theory.plan import Plan
else:
    Facts = Judge = Oracles = Any

Point: TypeAlias = tuple[Array, Array]
Value = float | int | str | None
# How the points of a method are judged: see certificates/judgement.py; at the end of its stages: runs/stages.py.
POINTS, EXACTLY, LATE, BOUNDS, STAGES = "points", "exactly", "late", "bounds", "stages"
# Steps before the first look at the gap of a method that is judged exactly.
CHUNK = 16


@dataclass(frozen=True)
class Option:
    """What may be given for one setting of a method: a number, or one of a few words.

    Examples
    --------
    >>> Option("output", "average", "which point is returned", choices=("average", "last")).complaint("best")
    "output is 'best'; expected one of ('average', 'last')."
    """

    name: str
    default: Value
    meaning: str
    choices: tuple[str, ...] = ()
    minimum: float = 0.0
    whole: bool = False
    maximum: float = math.inf

    def complaint(self, value: object) -> str:
        """What is wrong with a value; empty when nothing is."""
        if self.choices:
            return "" if value in self.choices else f"{self.name} is {value!r}; expected one of {self.choices}."
        if value is None and self.default is None:
            return ""
        number = isinstance(value, int if self.whole else int | float) and not isinstance(value, bool)
        # No number of steps is beyond what a double counts.
        most = min(self.maximum, 2.0**53) if self.whole else self.maximum
        if number and self.minimum < value <= most and value < math.inf:  # type: ignore[operator]
            return ""
        kind, upto = "a whole number" if self.whole else "a number", f" and <= {most:g}" if most < math.inf else ""
        return f"{self.name} is {value!r}; expected {kind} > {self.minimum:g}{upto}."


def option(
    default: Value,
    meaning: str,
    choices: tuple[str, ...] = (),
    minimum: float = 0.0,
    whole: bool = False,
    maximum: float = math.inf,
) -> Any:
    """A field of a method: its default, what it means, and what may be given. None: the method's theory decides.

    Examples
    --------
    >>> @dataclass(frozen=True)
    ... class Mine(Method):
    ...     step: float | None = option(None, "length of a step")
    ...     init = step_ = point = None
    >>> Mine.options()[0].meaning
    'length of a step'
    """
    limits = {"minimum": minimum, "whole": whole, "maximum": maximum}
    return field(default=default, metadata={"meaning": meaning, "choices": choices, **limits})


@dataclass(frozen=True)
class Description:
    """What people and the choice between methods need to know of one.

    Parameters
    ----------
    name : str
        As in `ss.solve(problem, tol, method=name)`.
    needs : tuple of str
        Names of requirements; `saddleslide.facts.requirements` says what each means.
    guarantee : str
        One sentence with the rate.
    reference : str
        The paper it was written from.

    Examples
    --------
    >>> import saddleslide as ss
    >>> ss.methods.by_name["mirror-prox"].description.needs
    ('smooth f', 'smooth g')
    """

    name: str
    needs: tuple[str, ...]
    guarantee: str
    reference: str


@dataclass
class Mean(State):
    """The weighted mean of all points so far, and the sum of their weights: 0 where there is none yet."""

    x: Array
    y: Array
    weight: float = 0.0

    def plus(self, x: Array, y: Array, weight: float = 1.0) -> Mean:
        """The mean with one more point."""
        total = self.weight + weight
        if total == weight:
            return Mean(x.copy(), y.copy(), total)
        part = weight / total
        return Mean(self.x + part * (x - self.x), self.y + part * (y - self.y), total)


@dataclass(frozen=True)
class Revision:
    """A change of course in the middle of a run: the plan from here on, its method, and where that begins."""

    plan: Plan
    method: Method
    state: State


def hands_on(method: Method) -> bool:
    """Whether a later run can use what this method has learnt; states of others end with their run."""
    return type(method).take_over is not Method.take_over


class Former(NamedTuple):
    """What an earlier run, perhaps of another problem, hands on: its last plan, and the state that it ended with."""

    plan: Plan
    state: Any


@dataclass(frozen=True, repr=False)
class Method(ABC):
    """A method: its fields are its settings.

    Examples
    --------
    >>> import saddleslide as ss
    >>> from saddleslide.facts.facts import Facts
    >>> from saddleslide.oracles.oracles import Oracles
    >>> game = ss.gallery.matrix_game([[2.0, -1.0], [-1.0, 1.0]])
    >>> method, oracles = ss.methods.MirrorProx(), Oracles(game)
    >>> state = method.init(oracles, Facts(game), game.start(), tol=1e-3)
    >>> for _ in range(200):
    ...     state = method.step(state, oracles)
    >>> x, y = method.point(state, oracles)
    >>> oracles.calls, bool(ss.certify(game, x, y).gap < 0.02)
    (Calls(f=0, g=0, B=800), True)
    """

    description: ClassVar[Description]
    # Whether a state can be stored. Else a resumed run repeats the steps.
    storable: ClassVar[bool] = True
    # Whether it computes with NumPy's arrays alone, wherever those of the problem lie.
    on_host: ClassVar[bool] = False
    # Whether a step costs more than a look, so that no look waits.
    has_dear_steps: ClassVar[bool] = False
    # Whether it ends by itself, with a gap that is proved to meet the target.
    ends_proved: ClassVar[bool] = False
    # How its points are judged.
    judged: ClassVar[str] = POINTS

    def __post_init__(self) -> None:
        given = [(entry, getattr(self, entry.name)) for entry in self.options()]
        raise_all(self.description.name, [note for entry, value in given if (note := entry.complaint(value))])

    @classmethod
    def options(cls) -> tuple[Option, ...]:
        """The settings, with what may be given for each."""
        chosen: list[Any] = [entry for entry in fields(cls) if entry.metadata]
        return tuple(Option(entry.name, entry.default, **entry.metadata) for entry in chosen)

    @classmethod
    def of(cls, plan: Plan) -> Method:
        """The method that a plan asks for, at its beginning; one with settings reads them off the plan."""
        return cls()

    def settings(self) -> dict[str, Value]:
        """Names and values of all settings."""
        return {entry.name: getattr(self, entry.name) for entry in self.options()}

    def __repr__(self) -> str:
        chosen = [entry for entry in self.options() if getattr(self, entry.name) != entry.default]
        return f"{type(self).__name__}({', '.join(f'{o.name}={getattr(self, o.name)!r}' for o in chosen)})"

    def lacks(self, facts: Facts) -> list[str]:
        """Everything that this method needs and the problem does not offer, one sentence each."""
        return facts.find_missing(self.description.needs, self.description.name)

    def lacks_at_a_glance(self, facts: Facts) -> list[str]:
        """`lacks`, or what of it is quickly found: for forecasts, which ask many methods in vain."""
        return self.lacks(facts)

    def judgement(self, facts: Facts) -> str:
        """How its points are judged on a problem."""
        return self.judged

    @classmethod
    def promises(cls) -> bool:
        """Whether there is a bound at all."""
        return cls.calls is not Method.calls

    def split(self, facts: Facts) -> Split:
        """Costly and simple parts of f and g, as the method uses them."""
        return Split(facts.f.rest.function, facts.f.simple.function, facts.g.rest.function, facts.g.simple.function)

    @abstractmethod
    def init(self, oracles: Oracles, facts: Facts, start: Point, tol: float) -> State:
        """Begin at a feasible point, towards an absolute gap `tol` (0 when only a relative target is known)."""

    def take_over(self, former: Former, oracles: Oracles, facts: Facts, start: Point, tol: float) -> State:
        """`init`, with what an earlier run of this method has learnt that is of use here: never a bound or a cut."""
        return self.init(oracles, facts, start, tol)

    @abstractmethod
    def step(self, state: Any, oracles: Oracles) -> State | Revision:
        """One iteration; a revision where that has led nowhere, and another plan has to go on."""

    @abstractmethod
    def point(self, state: Any, oracles: Oracles) -> Point:
        """The point that the method would return now. Feasible, and not changed by later iterations."""

    def candidates(self, state: Any, oracles: Oracles) -> tuple[Candidate, ...]:
        """Points to be judged: the output, unless a method has more to offer. A NaN value is filled in, and counted."""
        return (Candidate(*self.point(state, oracles), math.nan),)

    def learn(self, state: Any, gaps: Sequence[float], judge: Judge, oracles: Oracles) -> State | Revision | Status:
        """Hear the certified gaps of the last candidates, in their order; a status where going on would not help."""
        return state  # type: ignore[no-any-return]

    def expects(self, state: Any) -> tuple[float, float]:
        """Gap and value that F has about there: nobody looks while the gap is far off, 0 if unknown; NaN so."""
        return 0.0, math.nan

    def is_due(self, state: Any) -> bool:
        """Whether a method that is judged by stages is at the end of one."""
        return True

    def is_finished(self, state: Any) -> bool:
        """Whether further iterations would change nothing."""
        return False

    def cuts(self, state: Any, oracles: Oracles) -> Mapping[str, LowerModel]:
        """Lower models of f and g, by name, from all calls so far."""
        return {}

    def left_behind(self, state: Any, oracles: Oracles) -> Sequence[Point]:
        """Points of a step that was cut short: better than the start, where nothing was judged."""
        return ()

    def notes(self, state: Any, facts: Facts) -> tuple[str, ...]:
        """Constants the run relies on, and where practice leaves the guarantee; kept with the result."""
        return ()

    def calls(self, facts: Facts, tol: float) -> Calls | None:
        """Calls after which the method's own bound is at most `tol`; None where it promises nothing."""
        return None

    def fewest_calls(self, facts: Facts, tol: float) -> Calls | None:
        """Calls that `calls` is sure to ask for, where quicker to find, else 0; None where that is None."""
        return Calls()
