"""What a method is: a description, and what a run asks of it: start, advance, candidates, learn."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import ClassVar

from saddleslide.arrays.base import Array
from saddleslide.certificates.candidate import Candidate, Split
from saddleslide.certificates.inspector import Inspector
from saddleslide.certificates.judge import Judge
from saddleslide.certificates.verdict import Status
from saddleslide.errors import raise_all
from saddleslide.functions import split_simple
from saddleslide.methods.requirements import missing
from saddleslide.oracles.oracles import Calls, Oracles
from saddleslide.problem import SaddleProblem
from saddleslide.theory.plan import Plan

Value = float | int | str | None


@dataclass(frozen=True)
class Option:
    """One setting of a method: a number, or one of a few words. None means that the method's theory decides.

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

    def complaint(self, value: object) -> str:
        """What is wrong with a value; empty when nothing is."""
        if self.choices:
            known = value in self.choices
            return "" if known else f"{self.name} is {value!r}; expected one of {self.choices}."
        if value is None and self.default is None:
            return ""
        kinds = (int,) if self.whole else (int, float)
        number = isinstance(value, kinds) and not isinstance(value, bool)
        if number and math.isfinite(float(value)) and float(value) > self.minimum:  # type: ignore[arg-type]
            return ""
        kind = "a whole number" if self.whole else "a number"
        return f"{self.name} is {value!r}; expected {kind} > {self.minimum:g}."


@dataclass(frozen=True)
class Description:
    """What people and the choice between methods need to know of one.

    Parameters
    ----------
    name : str
        As in `ss.solve(problem, tol, method=name)`.
    needs : tuple of str
        Names of requirements; `saddleslide.methods.requirements` says what each means.
    guarantee : str
        One sentence with the rate.
    reference : str
        The paper it was written from.
    options : tuple of Option
        Its settings, each with a default.

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
    options: tuple[Option, ...] = ()


@dataclass(frozen=True)
class Revision:
    """A change of course in the middle of a run: the plan from here on, and the method that goes on with it.

    Examples
    --------
    >>> import saddleslide as ss
    >>> from saddleslide.theory.method_plan import MethodPlan
    >>> Revision(MethodPlan("pdhg", tol=1e-3), ss.methods.by_name["pdhg"]()).plan.method
    'pdhg'
    """

    plan: Plan
    method: Method


class Method(ABC):
    """A method: configured by its options, then `start`, `advance` as often as you like, `output` at any time.

    It touches the problem only through `Oracles`, so that every call is counted, and reads no clock. A concrete
    method is final. Two of them are equal when class and options are; `solve` begins with one of its own that is equal
    to the one it was given, which stays as it is.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> from saddleslide.oracles.oracles import Oracles
    >>> simplex, zero = ss.domains.Simplex(2), ss.functions.Zero()
    >>> game = ss.SaddleProblem(f=zero, g=zero, B=np.array([[2.0, -1.0], [-1.0, 1.0]]), X=simplex, Y=simplex)
    >>> method, oracles = ss.methods.by_name["mirror-prox"](), Oracles(game)
    >>> method.start(oracles, game.start(), tol=1e-3)
    >>> for _ in range(200):
    ...     method.advance()
    >>> x, y = method.output()
    >>> oracles.calls, bool(ss.certify(game, x, y).gap < 0.02)
    (Calls(f=0, g=0, B=800), True)
    """

    description: ClassVar[Description]
    # Whether its attributes are its state. Else a resumed run repeats its iterations.
    storable: ClassVar[bool] = True
    # Whether it computes with NumPy's arrays alone, wherever those of the problem lie.
    on_host: ClassVar[bool] = False
    # Whether it ends by itself, with a gap that is proved to meet the target.
    ends_proved: ClassVar[bool] = False
    # How its points are judged.
    inspection: ClassVar[type[Inspector]] = Inspector
    # Oracles of a loop inside, the roles of x and y exchanged, whose last calls have not been handed over yet.
    inside: Oracles | None = None

    def __init__(self, **options: Value) -> None:
        known = {option.name: option for option in self.description.options}
        if options:
            raise_all(self.description.name, _complaints(options, known))
        self.options: Mapping[str, Value] = MappingProxyType(
            {name: options.get(name, option.default) for name, option in known.items()}
        )

    def __repr__(self) -> str:
        chosen = [option for option in self.description.options if self.options[option.name] != option.default]
        return f"{type(self).__name__}({', '.join(f'{o.name}={self.options[o.name]!r}' for o in chosen)})"

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and isinstance(other, Method) and other.options == self.options

    def __hash__(self) -> int:
        return hash((type(self), tuple(self.options.items())))

    def lacks(self, problem: SaddleProblem) -> list[str]:
        """Everything that this method needs and the problem does not offer, one sentence each."""
        return missing(self.description.needs, problem)

    def lacks_at_a_glance(self, problem: SaddleProblem) -> list[str]:
        """`lacks`, or what of it is quickly found: for forecasts, which ask many methods in vain."""
        return self.lacks(problem)

    def split(self, problem: SaddleProblem) -> Split:
        """Costly and simple parts of f and g, as the method uses them."""
        return Split(*split_simple(problem.f, problem.X), *split_simple(problem.g, problem.Y))

    @abstractmethod
    def start(self, oracles: Oracles, origin: tuple[Array, Array], tol: float) -> None:
        """Begin at a feasible point, towards an absolute gap `tol` (0 when only a relative target is known)."""

    @abstractmethod
    def advance(self) -> Revision | None:
        """One iteration; a revision where that has led nowhere, and another plan has to go on."""

    @abstractmethod
    def output(self) -> tuple[Array, Array]:
        """The point that the method would return now. Feasible, and not changed by later iterations."""

    def candidates(self) -> tuple[Candidate, ...]:
        """Points to be judged: the output, unless a method has more to offer. A NaN value is filled in, and counted."""
        return (Candidate(*self.output(), math.nan),)

    def learn(self, gaps: Sequence[float], judge: Judge) -> Status | None:
        """Hear the certified gaps of the last candidates, in their order; a status where going on would not help."""
        return None

    @property
    def finished(self) -> bool:
        """Whether further iterations would change nothing."""
        return False

    @property
    def notes(self) -> tuple[str, ...]:
        """Constants the run relies on, and where practice leaves the guarantee; kept with the result."""
        return ()

    def predicted_calls(self, problem: SaddleProblem, tol: float) -> Calls | None:
        """Calls after which the method's own bound is at most `tol`; None where it promises nothing."""
        return None

    def fewest_calls(self, problem: SaddleProblem, tol: float) -> Calls | None:
        """Calls that `predicted_calls` is sure to ask for, where quicker to find, else 0; None where that is None."""
        return Calls()


def _complaints(options: dict[str, Value], known: dict[str, Option]) -> list[str]:
    """Everything that is wrong with the options given."""
    unknown = sorted(set(options) - set(known))
    complaints = [f"option {name!r} is unknown; expected one of {sorted(known)}." for name in unknown]
    return complaints + [
        note for name, value in options.items() if name in known and (note := known[name].complaint(value))
    ]
