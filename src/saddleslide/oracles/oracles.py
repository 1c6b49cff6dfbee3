"""Counted access to f', g', B and B^T: the only way the methods touch a problem."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import numpy as np

from saddleslide import oracles
from saddleslide.arrays.base import Array, Shape, inner_product, length_of, read_only, zeros
from saddleslide.arrays.kinds import Remote, refuse_masked
from saddleslide.arrays.state import State
from saddleslide.domains.base import Domain
from saddleslide.errors import explain_read_only
from saddleslide.functions.base import Function
from saddleslide.functions.entrywise import Zero
from saddleslide.functions.minimum import tilted_minimum
from saddleslide.functions.searched import TiltedMinimum
from saddleslide.functions.separable import prox
from saddleslide.functions.trust import Memory, runs_own_code
from saddleslide.kernels.switch import clock
from saddleslide.operators.base import is_own_code
from saddleslide.oracles.calls import ACROSS, Calls, NonFiniteAnswer, RunEnded, Seconds, as_count
from saddleslide.problem import SaddleProblem
from saddleslide.watcher import look, note_seconds

if TYPE_CHECKING:
    from saddleslide.arrays.state import XArray
    from saddleslide.oracles.lifts import CountedLift

_Answer = TypeVar("_Answer")
# Called with the oracle and what the next call counts.
Gate = Callable[[str, float], None]


def always_open(name: str, count: float) -> None:
    """The gate of what has no limits of its own: the time of the call under way is looked at all the same."""
    look()


def no_limit(name: str) -> float:
    """How many calls of an oracle a run without limits may still make."""
    return math.inf


def is_finite(array: Any) -> bool:
    """Whether all entries are finite: one pass, a second one only if the sum of squares overflows."""
    return math.isfinite(inner_product(array, array)) or bool(np.isfinite(array).all())


@dataclass(eq=False, repr=False)
class OraclesState(State):
    """What was called, and what of the caller's answers is remembered so that it is not asked for again."""

    calls: Calls = field(default_factory=Calls)
    # Products that a theorem counts and nobody needed.
    spared: int = 0
    seconds: Seconds = field(default_factory=Seconds)
    # Value and gradient at 0 of a quadratic of the caller's, once they have been asked for.
    at_zero: tuple[float, XArray] | None = None
    # The last values of the caller's own f and g, and of f as a whole where a method needs that.
    values: dict[str, list[tuple[Array, float]]] = field(default_factory=dict)


class Oracles(OraclesState):
    """The oracles of one problem with their counters; one instance per run.

    `gate` is asked before every call and may raise RunEnded. A call counts when it begins, and `active` names the
    oracle while user code runs, so that an exception can say where it came from. A `dry` instance calls nothing and
    answers with zeros: it builds a run whose state will be restored. A `guarded` one ends the run at the first array
    that is not finite, so that no oracle is ever asked about such a point. `errors` are NumPy's settings for the
    caller's own code, where they are not those of the moment.
    """

    # The function that is f here, as the problem calls it.
    side: ClassVar[str] = "f"

    def __init__(
        self,
        problem: SaddleProblem,
        gate: Gate = always_open,
        dry: bool = False,
        guarded: bool = False,
        errors: Any = None,
    ) -> None:
        super().__init__()
        self.problem, self.gate, self.dry, self.guarded = problem, gate, dry, guarded
        self.heard, self.active = Memory(), ""
        self._lifts: dict[str, CountedLift] = {}
        # What a method has made for itself, and what that was made for.
        self._workspace: tuple[tuple[object, ...], Any] = ((), None)
        own = {"f": problem.f.own_code, "g": problem.g.own_code, "B": is_own_code(problem.coupling)}
        self._ours = {name: guarded and not theirs for name, theirs in own.items()}
        # What NumPy does about overflow in the caller's code is the caller's affair; in ours it ends a run.
        here: Any = np.geterr()
        ours, asked = {**here, "over": "raise"} if guarded else here, here if errors is None else errors
        self._settings = {name: asked if theirs else ours for name, theirs in own.items()}

    def forget_answers(self) -> None:
        """The state is what it was: calls are made again, and what stood in for answers is forgotten."""
        self.dry, self._lifts, self._workspace = False, {}, ((), None)

    def made(
        self,
        name: str,
        count: float,
        work: Callable[[], _Answer],
        dry: Callable[[], _Answer] | None = None,
        at: Array | None = None,
        of: Domain | None = None,
    ) -> _Answer:
        """Make a call: the gate, the count, the clock; `dry` answers where nothing may be called.

        An answer that is not finite at a point `at` that is none either is not the oracle's fault; `of` is where that
        point should lie, if not where f or g is minimised.
        """
        if self.dry and dry is not None:
            return dry()
        self.gate(name, count)
        self.active = name
        self.add(name, count)
        began = clock()
        try:
            with np.errstate(**self._settings[name]):
                answer = work()
        except Exception as error:
            if self._ours[name] and isinstance(error, FloatingPointError):
                # In functions and products of ours, numbers beyond double precision are an outcome, no fault of theirs.
                raise RunEnded("NUMERICAL_LIMIT", f"numbers left the range of double precision ({error})") from None
            explain_read_only(error)
            raise
        seconds = clock() - began
        setattr(self.seconds, name, getattr(self.seconds, name) + seconds)
        note_seconds(seconds)
        # Of a value and a gradient only the gradient must be known.
        array: Any = answer[1] if isinstance(answer, tuple) else answer
        if isinstance(array, np.ma.MaskedArray):
            refuse_masked(array)
        if self.guarded and isinstance(array, np.ndarray | Remote) and not is_finite(array):
            raise self.not_finite(name, at, of)
        self.active = ""
        return answer

    def not_finite(self, name: str, at: Array | None, of: Domain | None = None) -> RunEnded:
        """What ends a run where the last answer of an oracle is not finite: a sentence about the point it came from."""
        if at is not None and not is_finite(at):
            return RunEnded("NUMERICAL_LIMIT", "a step left the range of double precision")
        self.active = name
        if at is None:
            return NonFiniteAnswer("")
        largest = float(np.max(np.abs(at), initial=0.0))
        norm = largest * length_of(at / largest) if largest > 0.0 else 0.0
        domain = of or {"f": self.problem.X, "g": self.problem.Y}.get(name)
        place = "" if domain is None else f", {'in' if domain.contains(at) else 'outside of'} its set"
        return NonFiniteAnswer(f"at a point of norm {norm:.4g} with entries up to {largest:.4g} in size{place}")

    def try_out(self, work: Callable[[], _Answer]) -> _Answer | None:
        """What `work` finds, or None where an oracle answers with NaN or infinities: a trial step can be shortened.

        So it can where such large answers overflow in the arithmetic of the step's own test.
        """
        try:
            return work()
        except NonFiniteAnswer:
            self.active = ""
        except FloatingPointError:
            # While an oracle is active it is the caller's exception.
            if self.active:
                raise
        return None

    def add(self, name: str, count: float) -> None:
        """Count calls."""
        setattr(self.calls, name, as_count(getattr(self.calls, name) + count))

    def _block(self, name: str) -> tuple[Function, Domain]:
        """The function of that name, and its set."""
        return (self.problem.f, self.problem.X) if name == "f" else (self.problem.g, self.problem.Y)

    def gradient(self, name: str, function: Function, x: Array, out: Array | None = None) -> Array:
        """A (sub)gradient of f or g, of a part of it, or of it and a quadratic: one call under its name."""
        return self.made(name, 1, lambda: function.gradient(read_only(x), out), lambda: zeros(x.shape, x), x)

    def f_gradient(self, x: Array, out: Array | None = None) -> Array:
        """A (sub)gradient of f at x."""
        return self.gradient("f", self.problem.f, x, out)

    def g_gradient(self, y: Array, out: Array | None = None) -> Array:
        """A (sub)gradient of g at y."""
        return self.gradient("g", self.problem.g, y, out)

    def is_zero(self, name: str) -> bool:
        """Whether f or g is Zero(), of which nothing is ever called."""
        return isinstance(self._block(name)[0], Zero)

    def gradients(self, x: Array, y: Array) -> tuple[Array, Array]:
        """f'(x) and g'(y); nothing is called for Zero()."""
        f = np.zeros_like(x) if self.is_zero("f") else self.f_gradient(x)
        return f, np.zeros_like(y) if self.is_zero("g") else self.g_gradient(y)

    def free_gradient(self, name: str, x: Array) -> Array:
        """A gradient of f or g that is no call where the function is ours: it is linear, or a simple term."""
        function, _ = self._block(name)
        return self.gradient(name, function, x) if runs_own_code(function) else function.gradient(x)

    def closed_minimum(self, name: str, tilt: Array) -> TiltedMinimum:
        """The minimum of f or g plus <tilt, .>, where it has a closed form: no call of a function of ours."""
        function, domain = self._block(name)
        if self.dry and runs_own_code(function):
            return TiltedMinimum(zeros(domain.shape, tilt), 0.0, 0.0, "dry")
        return tilted_minimum(function, tilt, domain)

    def prox_f(self, center: Array, weight: float) -> Array:
        """The point of X that minimises the simple part of f + weight/2 |x - center|^2; f itself where it is simple."""
        return prox(self.problem.f_parts[1], center, weight, self.problem.X)

    def prox_g(self, center: Array, weight: float) -> Array:
        """The point of Y that minimises the simple part of g + weight/2 |y - center|^2; g itself where it is simple."""
        return prox(self.problem.g_parts[1], center, weight, self.problem.Y)

    @property
    def f_lift(self) -> CountedLift:
        """The costly rest of f through its lift; made once, but for what stands in for it while nothing is called."""
        if "rest" not in self._lifts or self.dry:
            self._lifts["rest"] = self.make_lift(self.problem.f_parts[0])
        return self._lifts["rest"]

    @property
    def whole_f_lift(self) -> CountedLift:
        """All of f through its lift; the same."""
        if "whole" not in self._lifts or self.dry:
            self._lifts["whole"] = self.make_lift(self.problem.f)
        return self._lifts["whole"]

    def f_rest_gradient(self, x: Array) -> Array | float:
        """A gradient of the costly rest of f at x: one call of f', none where there is no rest."""
        if isinstance(self.problem.f_parts[0], Zero):
            return 0.0
        return self.f_lift.gradient(x, self.f_lift.lift(x))

    def g_rest_gradient(self, y: Array) -> Array | float:
        """A gradient of the costly rest of g at y: one call of g', none where there is no rest."""
        rest = self.problem.g_parts[0]
        return 0.0 if isinstance(rest, Zero) else self.value_and_gradient("g", rest, y)[1]

    def forward(self, x: Array, out: Array | None = None) -> Array:
        """B x, in the shape of y."""
        B, X, Y = self.problem.coupling, self.problem.X, self.problem.Y
        return self._product(B.forward, x, B.x_shape, X, None if out is None else out.reshape(B.y_shape), Y.shape)

    def adjoint(self, y: Array, out: Array | None = None) -> Array:
        """B^T y, in the shape of x."""
        B, X, Y = self.problem.coupling, self.problem.X, self.problem.Y
        return self._product(B.adjoint, y, B.y_shape, Y, None if out is None else out.reshape(B.x_shape), X.shape)

    def _product(
        self, product: Callable[..., Array], z: Array, taken: Shape, of: Domain, out: Array | None, shape: Shape
    ) -> Array:
        def work() -> Array:
            return product(read_only(z).reshape(taken), out).reshape(shape)

        # A problem without y has no products.
        count = 1 if 0 not in (math.prod(taken), math.prod(shape)) else 0
        return self.made("B", count, work, lambda: zeros(shape, z), z, of)

    def image(self, x: Array) -> Array:
        """B x; that of 0 is 0 and costs nothing."""
        return self.forward(x) if x.any() else zeros(self.problem.Y.shape, x)

    def pull(self, y: Array) -> Array:
        """B^T y; that of 0 is 0 and costs nothing."""
        return self.adjoint(y) if y.any() else zeros(self.problem.X.shape, y)

    def products(self, count: int, work: Callable[[], None], spared: int = 0) -> None:
        """Products that a compiled loop makes by itself, and those of them that it spares."""
        self.made("B", count - spared, work, lambda: None)
        self.spare(spared)

    def spare(self, count: int) -> None:
        """Products that are not made: known beforehand, or never used."""
        self.spared += 0 if self.dry else count

    def value_and_gradient(
        self, name: str, function: Function, x: Array, out: Array | None = None
    ) -> tuple[float, Array]:
        """Value and gradient together, one call. The last ones of f are kept, in case that it gets out of reach."""
        found = self.made(
            name, 1, lambda: function.value_and_gradient(read_only(x), out), lambda: (0.0, zeros(x.shape, x)), x
        )
        if name == "f" and not self.dry:
            self.heard.keep(x, *found)
        return found

    def make_lift(self, f: Function) -> CountedLift:
        """(A part of) f through its lift, counted in gradients of f."""
        return oracles.count_lift(self, f)

    def finite(self, *arrays: Array) -> bool:
        """Whether all entries are finite numbers."""
        return all(map(is_finite, arrays))

    def workspace(self, make: Callable[[], _Answer], *key: object) -> _Answer:
        """Buffers and compiled loops that have no place in a state: made once, and again when the key is another."""
        key, known = (*key, self.dry), self._workspace[0]
        if len(key) != len(known) or any(a is not b for a, b in zip(key, known, strict=True)):
            self._workspace = (key, make())
        found: _Answer = self._workspace[1]
        return found

    @property
    def last_workspace(self) -> Any:
        """What was made last, as the last step has left it."""
        return self._workspace[1]

    def mirrored(self) -> Oracles:
        """The same with the roles of x and y exchanged; calls are made, counted and named here."""
        return MirroredOracles(self)


class MirroredOracles(Oracles):
    """Oracles seen from y. Every call is one of those that they belong to, under the name that it has there."""

    side = "g"

    def __init__(self, whole: Oracles) -> None:
        super().__init__(whole.problem.mirrored(), whole.gate, whole.dry, whole.guarded)
        self.whole, self.values = whole, whole.values

    def made(self, name: str, *call: Any, **more: Any) -> Any:
        return self.whole.made(ACROSS[name], *call, **more)

    def not_finite(self, name: str, at: Array | None, of: Domain | None = None) -> RunEnded:
        return self.whole.not_finite(ACROSS[name], at, of)

    def try_out(self, work: Callable[[], _Answer]) -> _Answer | None:
        return self.whole.try_out(work)
