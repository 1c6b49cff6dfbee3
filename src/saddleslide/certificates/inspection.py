"""One inspection: a candidate with all that its bounds need, asked once and counted, and what rounding does to each."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from saddleslide.arrays.base import Array, inner_product, read_only
from saddleslide.arrays.state import State
from saddleslide.certificates.candidate import Candidate, Linearisation, Split
from saddleslide.certificates.certificate import Side, product_shift, sides_of
from saddleslide.certificates.guards import check_pair
from saddleslide.certificates.verdict import Status
from saddleslide.errors import NoExactMinimumError
from saddleslide.functions.base import Function
from saddleslide.functions.entrywise import Zero
from saddleslide.functions.minimum import has_closed_minimum
from saddleslide.functions.roundings import FEW
from saddleslide.functions.searched import Tally, TiltedMinimum
from saddleslide.functions.trust import errors_at, runs_own_code, value_aside
from saddleslide.oracles.calls import RunEnded
from saddleslide.oracles.oracles import Oracles
from saddleslide.problem import SaddleProblem

if TYPE_CHECKING:
    from saddleslide.arrays.state import YArray


@dataclass(eq=False, repr=False)
class QuestionsState(State):
    """What was asked: the counters, the last best response, and how many gradients of g such may take."""

    oracles: Oracles
    response: YArray
    g_allowance: float = 0.0
    # How many of f bounds may take that come for less.
    f_allowance: float = 0.0
    # What the adjoint of B may differ from its transpose by, in norm, as far as pairs of products show it.
    mismatch: float = 0.0
    # Why the last certified minimum is missing.
    reason: str = "no bound has been computed yet."


class Questions(QuestionsState):
    """What judging may ask of a problem, all of it counted.

    `left` says how many calls of an oracle the limits still allow, `recant` is called where products contradict what
    was believed of the adjoint.
    """

    def __init__(
        self,
        problem: SaddleProblem,
        split: Split,
        oracles: Oracles,
        response: Array,
        left: Callable[[str], float],
        recant: Callable[[], None],
    ) -> None:
        super().__init__(oracles, response)
        self.problem, self.split, self.left, self._recant = problem, split, left, recant
        self.f, self.g = sides_of(problem)
        self._runs_own_code = {side.name: runs_own_code(side.function) for side in (self.f, self.g)}
        # Asked for now, and kept by the sides: later a function may be out of reach.
        self._moduli = self.f.modulus, self.g.modulus

    def value_of(self, name: str, point: Array) -> float:
        """f(x) or g(y); counts as its costly part does, or as a run of the caller's code."""
        side, rest = (self.f, self.split.f_rest) if name == "f" else (self.g, self.split.g_rest)
        if isinstance(side.function, Zero):
            return 0.0
        cost = 1.0 if self._runs_own_code[name] else rest.lone_value_cost
        return self.oracles.made(name, cost, lambda: side.function.value(read_only(point)))

    def rest_value(self, x: Array) -> float:
        """The costly part of f at x."""
        rest = self.split.f_rest
        return self.oracles.made("f", rest.lone_value_cost, lambda: rest.value(read_only(x)))

    def minimum(self, side: Side, tilt: Array, start: Array, accuracy: float, most: int) -> TiltedMinimum | None:
        """The minimum of f or g with a tilt, by no more gradients than limits leave; None where none is known."""
        # Two values may come beside what the search counts itself.
        tally = Tally(self.left(side.name) - 2.0)
        if not (tally.allows(1.0) or has_closed_minimum(side.function, side.domain)):
            raise RunEnded(Status.CALL_LIMIT.name)
        try:
            return side.minimum(self.oracles, tilt, read_only(start), accuracy, most, tally)
        except NoExactMinimumError as missing:
            # No oracle is to blame, whatever goes wrong next.
            self.reason, self.oracles.active = str(missing), ""
            return None

    def best_response(self, Bx: Array, accuracy: float, most: int) -> TiltedMinimum | None:
        """The minimum of g(y) - <y, Bx>, whose lower bound is an upper one of the best value over Y."""
        found = self.minimum(self.g, -Bx, self.response, accuracy, most)
        if found is not None and not self.g.function.linear:
            # Where the next search begins.
            self.response = found.point
        return found

    def product_error(self, point: Array, product: Array, term_size: float = 0.0) -> float:
        """What a product with B or its adjoint may be wrong by, in norm."""
        return product_shift(self.problem.coupling, point, product, self.mismatch, term_size)

    def doubt(self, mismatch: float) -> None:
        """The adjoint of B is off by this much: bounds that trusted it more are dropped."""
        if mismatch > self.mismatch:
            self.mismatch = mismatch
            self._recant()


class Inspection:
    """A candidate under judgement: its values and products, and bounds on the whole sets that are its own."""

    def __init__(self, candidate: Candidate, asked: Questions) -> None:
        self.candidate, self.x, self.y, self.asked = candidate, candidate.x, candidate.y, asked
        self.lower, self.upper = -math.inf, math.inf
        # F(x, y_0), where that is known.
        self.fall = math.inf

    @cached_property
    def _f(self) -> tuple[float, float]:
        """The value of f at x, and what rounding can have done to it."""
        candidate, split = self.candidate, self.asked.split
        simple, error = value_aside(split.f_simple, self.x), candidate.error
        if error is None:
            error = 0.0 if isinstance(split.f_rest, Zero) else errors_at(split.f_rest, self.x, candidate.value).value
        error += errors_at(split.f_simple, self.x, simple).value
        return candidate.value + simple, error + FEW * (abs(candidate.value) + abs(simple))

    @property
    def value(self) -> float:
        """f(x)."""
        return self._f[0]

    @property
    def error(self) -> float:
        """What rounding can have done to f(x)."""
        return self._f[1]

    @cached_property
    def Bx(self) -> Array:
        return self.asked.oracles.forward(self.x) if self.candidate.Bx is None else self.candidate.Bx

    @property
    def Bx_error(self) -> float:
        """What Bx may be wrong by, in norm."""
        term_size = self.candidate.term_size if self.candidate.Bx is not None else 0.0
        return self.asked.product_error(self.x, self.Bx, term_size)

    def Bx_errors(self) -> Array | None:
        """What every entry of Bx may be wrong by, where that is known of a product that was made at x itself."""
        if self.asked.mismatch > 0.0 or (self.candidate.Bx is not None and self.candidate.term_size > 0.0):
            return None
        return self.asked.problem.coupling.entry_errors(self.x, self.Bx)

    @cached_property
    def pull(self) -> Array:
        """B^T y, which must fit the product Bx."""
        pull = self.asked.oracles.adjoint(self.y) if self.candidate.BTy is None else self.candidate.BTy
        self.asked.doubt(check_pair(self.asked.problem.coupling, self.x, self.Bx, self.y, pull))
        return pull

    @property
    def pull_error(self) -> float:
        """What B^T y may be wrong by, in norm."""
        return self.asked.product_error(self.y, self.pull)

    @cached_property
    def g_value(self) -> float:
        known = self.candidate.g_value
        return self.asked.value_of("g", self.y) if known is None else known

    @cached_property
    def g_error(self) -> float:
        """What rounding can have done to g(y)."""
        known = self.candidate.g_error
        return errors_at(self.asked.problem.g, self.y, self.g_value).value if known is None else known

    @cached_property
    def coupled(self) -> float:
        """<y, Bx>."""
        return inner_product(self.y, self.Bx)

    @cached_property
    def f_known(self) -> Linearisation | None:
        """What is known of the costly part of f; where there is none, that it is 0."""
        return _known(self.candidate.linearisation, self.asked.split.f_rest, self.x)

    @cached_property
    def g_known(self) -> Linearisation | None:
        """The same of g."""
        return _known(self.candidate.g_linearisation, self.asked.split.g_rest, self.y)


def _known(known: Linearisation | None, rest: Function, point: Array) -> Linearisation | None:
    return Linearisation(point, 0.0, np.zeros_like(point)) if known is None and isinstance(rest, Zero) else known
