"""What true oracles can not do: checks of products, values and gradients that are known already, at no call.

Each guard raises RunEnded with the status INCONSISTENT and what was seen. The margins are far above rounding, so that
a true oracle in single precision passes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property, partial

import numpy as np

from saddleslide.arrays.base import Array, Shape, beside, inner_product, length_of, read_only
from saddleslide.arrays.state import State
from saddleslide.certificates.candidate import Linearisation
from saddleslide.domains.base import Domain
from saddleslide.domains.entrywise import FullSpace
from saddleslide.functions.base import Function
from saddleslide.functions.constants import smoothness_at_hand, takes_factor
from saddleslide.functions.roundings import Errors
from saddleslide.functions.trust import errors_at, inside, read_rounding, runs_own_code
from saddleslide.operators.adjoint_test import adjoint_test_from, pair_mismatch, sign_vector, signs_of
from saddleslide.operators.base import Mirrored, Operator, is_own_code
from saddleslide.oracles.calls import RunEnded
from saddleslide.oracles.oracles import Oracles
from saddleslide.theory.holder import Holder

# Relative to the sizes of the terms: what is above can not be rounding.
ADJOINT, CONVEXITY = 1e-6, 1e-6
# Of a point in single precision, relative to its size; and what lies far beyond.
_ROUNDING, _FAR = 1e-7, 1e-3
_ADVICE = "Check signs, scaling and boundaries."
# Points that agree in so many digits are the same to own code, whose rounding nobody knows.
_SAME = 2.0**-40
# Below it numbers lose their digits.
_TINY = float(np.finfo(np.float64).tiny)
# Squares of sizes below this are no longer exact.
_SQUARED = 1e-140
# Of a value of own code, for every entry.
_OWN_ROUNDING = 16.0 * float(np.finfo(np.float64).eps)
# Own code that was compared at fewer points is looked at in more, at these parts of the set's size from one of them.
ENOUGH, _REACHES = 5, (1.0, 0.5, 0.2, 0.05)
# How far back towards the center of a proximal step its value is asked for.
_AHEAD = 0.1
_STEPS = (1.0, 0.1, 10.0, 0.5)
# A second step is so many times as long; its point may be off by this part of the sizes, as of steps that are searched.
_LONGER, _INEXACT = 3.0, 3e-6
# Linearisations that a new one is compared with; of large arrays one, whose comparison costs about what a step does.
_KEPT, _LARGE = 4, 100_000


def inconsistent(reason: str) -> RunEnded:
    """The end of a run whose oracles contradict each other."""
    return RunEnded("INCONSISTENT", reason)


def adjoint_complaint(coupling: Operator, x: Array, Bx: Array, y: Array, BTy: Array) -> str:
    """What is wrong with <Bx, y> = <x, B^T y>; empty where nothing is."""
    first, second = inner_product(Bx, y), inner_product(x, BTy)
    sizes = _size(x), _size(y)
    known = coupling.__dict__.get("norm")
    # Both products may be small by cancellation: rounding is relative to the norm of B, where that is known.
    scale = max(_size(Bx) * sizes[1], _size(BTy) * sizes[0])
    scale = max(scale, known.upper * sizes[0] * sizes[1]) if known is not None else scale
    difference = abs(first - second)
    # Matrices at hand know what rounding can do to their products, norm or not; products of tiny numbers underflow.
    rounding = 2.0 * coupling.product_error * sizes[0] * sizes[1] + _TINY
    # Sizes out of range, times products that are 0, say nothing.
    if not math.isfinite(difference) or not difference > ADJOINT * scale + rounding:
        return ""
    return (
        f"<Bx, y> = {first:.6g} and <x, B^T y> = {second:.6g} at one point: the adjoint of B is not the transpose of "
        f"its forward product. {_ADVICE}"
    )


def _size(v: Array) -> float:
    """|v|, also of numbers whose squares underflow."""
    size = length_of(v)
    if size > _SQUARED:
        return size
    largest = float(np.max(np.abs(v), initial=0.0))
    return largest * length_of(v / largest) if largest > 0.0 else size


def check_pair(coupling: Operator, x: Array, Bx: Array, y: Array, BTy: Array) -> float:
    """A bound on the norm of what the adjoint is wrong by, as far as products at hand show it; 0 for one of ours."""
    complaint = adjoint_complaint(coupling, x, Bx, y, BTy)
    if complaint:
        raise inconsistent(complaint)
    return pair_mismatch(x, Bx, y, BTy) if is_own_code(coupling) else 0.0


def check_adjoint_of(oracles: Oracles) -> float:
    """The same at one seeded pair, by two counted products."""
    coupling, x = oracles.problem.coupling, sign_vector(oracles.problem.X.shape)
    Bx = oracles.forward(x)
    y = signs_of(Bx)
    BTy = oracles.adjoint(y)
    check_pair(coupling, x, Bx, y, BTy)
    if not is_own_code(coupling):
        return 0.0
    # Certificates of the same operator need no test of their own.
    found = _mirror_back(coupling).__dict__["adjoint_test"] = adjoint_test_from(x, Bx, y, BTy)
    return found.bound


def known_mismatch(oracles: Oracles) -> float:
    """The same for certificates: the test is made once for an operator, and counted then."""
    coupling = _mirror_back(oracles.problem.coupling)
    if not is_own_code(coupling):
        return 0.0
    # The books of the call under way have the products.
    test = oracles.made("B", 0, lambda: coupling.adjoint_test)
    if test.relative > ADJOINT:
        raise inconsistent(
            f"<Bx, y> and <x, B^T y> differ by {test.relative:.1e} of their size at one pair: the adjoint of B is not "
            f"the transpose of its forward product. {_ADVICE}"
        )
    return test.bound


def _mirror_back(coupling: Operator) -> Operator:
    return coupling.original if isinstance(coupling, Mirrored) else coupling


def check_inner_adjoints(oracles: Oracles) -> None:
    """The same of the caller's own operators inside f and g, once each: a gradient's worth of products, counted."""
    for name, function in (("f", oracles.problem.f), ("g", oracles.problem.g)):
        for test in (part.matrix_test for part in inside(function)):
            if test is None:
                continue
            skew = oracles.made(name, 0, test)
            if skew.relative > ADJOINT:
                raise inconsistent(
                    f"q of Quadratic in {name} is not symmetric: <q x, y> and <x, q y> differ by {skew.relative:.1e} "
                    "of their size at one pair, so that q x is not the gradient. Pass (q + q^T) / 2."
                )
        for A in (part.linear_image for part in inside(function)):
            if A is None or not is_own_code(A):
                continue
            test = oracles.made(name, 0, partial(getattr, A, "adjoint_test"))
            if test.relative > ADJOINT:
                raise inconsistent(
                    f"the adjoint of A in {name} is not the transpose of its forward product: <Ax, q> and <x, A^T q> "
                    f"differ by {test.relative:.1e} of their size at one pair. {_ADVICE}"
                )


def own_steps(function: Function, shape: Shape) -> Iterator[tuple[Function, Shape]]:
    """The caller's own functions inside one that are used through their proximal steps, with the shapes they take."""
    parts = function.parts_in(shape)
    for part, taken in parts:
        yield from own_steps(part, taken)
    if not parts and runs_own_code(function) and function.is_proximable and function.has_value:
        yield function, shape


@dataclass(eq=False, repr=False)
class GuardState(State):
    """What was seen of a function: the last linearisations, points that differ, and the steepest turn between two."""

    kept: list[Linearisation] = field(default_factory=list)
    seen: int = 0
    # The largest curvature between two points that are not close together.
    steepest: float = 0.0


class PairGuard(GuardState):
    """Linearisations of one function at stored points, each compared with the last few before.

    `said` is what the caller calls the function, where a run has exchanged the blocks.
    """

    def __init__(self, name: str, function: Function, domain: Domain, said: str = "") -> None:
        super().__init__()
        self.name, self.function, self.domain, self.said = name, function, domain, said or name
        # What is ours alone is convex, and its gradients are those of its values.
        self._is_certain = not (
            runs_own_code(function) or function.convex_on_trust or any(is_own_code(B) for B, _ in function.operators)
        )
        # What is asked of a linearisation alone, of those that are kept.
        self._asked: list[tuple[Linearisation, bool, Errors]] = []

    @cached_property
    def _modulus(self) -> float:
        """As declared; some functions factorise a matrix for it, so that is done once."""
        return self.function.strong_convexity(self.domain)

    @cached_property
    def _smoothness(self) -> Holder | None:
        """As declared: what takes products or a factor to find out was not, so there is nothing to contradict.

        Nor is there of an inexact oracle, whose gradients may jump.
        """
        unknown = takes_factor(self.function) or self.function.inexactness > 0.0
        return None if unknown else smoothness_at_hand(self.function, self.domain)

    def look(self, new: Linearisation) -> None:
        """Compare with the last ones, and keep this one."""
        if self._is_certain or not np.isfinite(new.gradient).all() or any(old.point is new.point for old in self.kept):
            return
        self.seen += not any(np.array_equal(old.point, new.point) for old in self.kept)
        before, self.kept = self.kept, [*self.kept, new][-(_KEPT if new.point.size <= _LARGE else 1) :]
        for old in before:
            complaint = self._complaint(old, new)
            if complaint:
                raise inconsistent(complaint)

    def probe(self, oracles: Oracles, around: Array, left: float) -> None:
        """What only the caller says is convex and was hardly compared: seeded feasible points around one, all counted.

        A bound from one gradient believes that the function is convex. `left` is what the limits still allow.
        """
        count = int(min(ENOUGH - self.seen, left))
        if not self.function.has_gradient:
            return
        if count <= 0 or not self.function.convex_on_trust or not self.function.has_value or self.function.sampled:
            return

        def look_at(point: Array) -> Linearisation:
            work = partial(self.function.value_and_gradient, read_only(point))
            new = Linearisation(point, *oracles.made(self.name, 1, work, at=point))
            self.look(new)
            return new

        if not self.kept:
            look_at(around)
            count -= 1
        if not self.kept:
            # No numbers there: nothing to compare with.
            return
        base = self.kept[-1]
        radius = self.domain.radius(base.point)
        size = radius if math.isfinite(radius) and radius > 0.0 else 1.0 + base.sizes[0]
        way = beside(around, np.random.default_rng(0).standard_normal(around.shape))
        steepest = 0.0
        for reach in _REACHES[:count]:
            way = way / max(length_of(way), 1e-300)
            new = look_at(self.domain.project(base.point + reach * size * way))
            if not np.isfinite(new.gradient).all():
                return
            step, change = new.point - base.point, new.gradient - base.gradient
            length = length_of(step)
            steepest = max(steepest, length_of(change) / length if length > 0.0 else 0.0)
            # Away from where it bends upwards: what is left of the way are directions that bend down, if there are any.
            turned = step - change / steepest if steepest > 0.0 else step
            way = turned if length_of(turned) > _ROUNDING * length else way

    def _complaint(self, old: Linearisation, new: Linearisation) -> str:
        """What a convex function as declared can not do between two points; empty where nothing is wrong."""
        way = new.point - old.point
        square = inner_product(way, way)
        length = math.sqrt(square)
        if length <= _SAME * (old.sizes[0] + new.sizes[0]) and read_rounding(self.function).own > 0.0:
            # Between points that differ in their last digits, gradients of own code may differ by anything.
            return ""
        # What was declared was declared on the domain.
        (old_inside, old_errors), (new_inside, new_errors) = self._ask(old), self._ask(new)
        inside, errors = old_inside and new_inside, (old_errors, new_errors)
        modulus = self._modulus if inside else 0.0
        turned = (sum(error.gradient for error in errors) + self._single(old, new, length)) * length
        # Gradients alone: <f'(a) - f'(b), a - b> >= modulus |a - b|^2; differences of values drown in rounding.
        least, curvature = modulus * square, inner_product(new.gradient - old.gradient, way)
        allowed = CONVEXITY * ((old.sizes[1] + new.sizes[1]) * length_of(way) + least) + turned
        # A (delta, L)-oracle may turn back by so much.
        allowed += 2.0 * self.function.inexactness
        complaint = self._bent(modulus if least > 0.0 else 0.0, least - curvature, allowed)
        if complaint or not (math.isfinite(old.value) and math.isfinite(new.value)):
            return complaint
        slopes = inner_product(old.gradient, way), inner_product(new.gradient, way)
        reach = np.abs(old.point) + np.abs(new.point)
        # What rounding of the points does to values where these and the gradients vanish, as of an exact fit.
        rounding = _TINY
        if self._smoothness is not None:
            nu, H = self._smoothness.nu, self._smoothness.H
            rounding = _TINY + float(H * (_ROUNDING * length_of(reach)) ** (1.0 + nu))
        rounding = rounding + sum(error.value for error in errors) + turned
        for known, rest in ((old, new.value - old.value - slopes[0]), (new, old.value - new.value + slopes[1])):
            size = abs(old.value) + abs(new.value) + inner_product(np.abs(known.gradient), reach)
            least = 0.5 * modulus * square
            complaint = self._bent(modulus, least - rest, CONVEXITY * (size + least) + rounding)
            complaint = complaint or (self._rough(rest, square, CONVEXITY * size + rounding) if inside else "")
            if complaint:
                return complaint
        return ""

    def _ask(self, known: Linearisation) -> tuple[bool, Errors]:
        """Whether a point lies in the domain, and what rounding can have done there; found out once."""
        for asked, is_inside, errors in self._asked:
            if asked is known:
                return is_inside, errors
        made = self.domain.contains(known.point, 1e-9), self._errors(known)
        self._asked = [*self._asked, (known, *made)][-_KEPT - 1 :]
        return made

    def _errors(self, known: Linearisation) -> Errors:
        """What rounding can have done to a value and a gradient that are left of large terms; 0 where nobody knows."""
        made = known.errors or errors_at(self.function, known.point, known.value, known.sizes[1])
        value, gradient = (error if math.isfinite(error) else 0.0 for error in made)
        # Nothing is known of the terms inside own code: log(cosh(x)) rounds like 1, however small it is.
        return Errors(value + (_OWN_ROUNDING * known.point.size if self.function.own_code else 0.0), gradient)

    def _single(self, old: Linearisation, new: Linearisation, length: float) -> float:
        """What rounding to single precision does to gradients near a minimum: the curvature shows their terms."""
        reach, turn = old.sizes[0] + new.sizes[0], length_of(new.gradient - old.gradient)
        if _FAR * reach < length < math.inf and turn < math.inf:
            self.steepest = max(self.steepest, turn / length)
        return 4.0 * _ROUNDING * self.steepest * reach

    def _bent(self, modulus: float, missing: float, allowed: float) -> str:
        """What to say of a function that curves less than promised by more than rounding."""
        if not missing > allowed:
            return ""
        what = "convex" if modulus == 0.0 else f"strongly convex with the modulus {modulus:g}"
        return (
            f"{self.said} is not {what}, or its gradient is wrong: between two points it curves {missing:.3g} less "
            "than its gradients promise."
        )

    def _rough(self, rest: float, square: float, allowed: float) -> str:
        """The declared Hölder condition bounds the distance from the tangent by H |way|^(1 + nu) / (1 + nu)."""
        if self._smoothness is None:
            return ""
        nu, H = self._smoothness.nu, self._smoothness.H
        most = H * square ** (0.5 * (1.0 + nu)) / (1.0 + nu)
        if rest <= most + CONVEXITY * most + allowed:
            return ""
        return (
            f"{self.said} is not as smooth as declared, (nu, H) = ({nu:g}, {H:g}): between two points it leaves its "
            f"tangent by {rest:.3g}, at most {most:.3g} is allowed. Declare a larger H."
        )


def check_own_steps(oracles: Oracles) -> None:
    """Proximal steps of the caller's at seeded points: each gives a subgradient, and all must fit the values."""
    problem = oracles.problem
    for name, whole, domain in (("f", problem.f, problem.X), ("g", problem.g, problem.Y)):
        for function, shape in own_steps(whole, domain.shape):
            guard = PairGuard(name, function, FullSpace(shape), f"the proximal step of {function!r} in {name}")
            # Along one ray: there a subgradient that is too long or too short contradicts the next value, while in
            # unrelated directions its signs would hide that.
            rng = np.random.default_rng(0)
            ray = rng.standard_normal(shape)
            for reach, step in zip(_REACHES, _STEPS, strict=True):
                center = 4.0 * reach * ray
                point = function.prox(read_only(center), step)

                def value_at(x: Array, own: Function = function, asked: str = name) -> float:
                    return oracles.made(asked, own.value_cost, partial(own.value, read_only(x)))

                known = Linearisation(point, value_at(point), (center - point) / step)
                guard.look(known)
                if reach == _REACHES[0]:
                    # Steps from two places have points whose middle is no higher than both: not so for counts of
                    # entries and sets of few of them, whose steps look convex along one ray.
                    other = function.prox(read_only(4.0 * reach * rng.standard_normal(shape)), step)
                    ends, middle = (known.value, value_at(other)), value_at(0.5 * (point + other))
                    size = abs(ends[0]) + abs(ends[1])
                    if math.isfinite(size) and middle > 0.5 * sum(ends) + CONVEXITY * size + _TINY:
                        raise inconsistent(
                            f"{guard.said}: between two of its points, with values {ends[0]:g} and {ends[1]:g}, the "
                            f"value is {middle:g}; expected at most their mean, as of a convex function."
                        )
                # A longer step whose center lies as much farther ends at the same point: its subgradient is the same.
                again = function.prox(read_only(point + _LONGER * (center - point)), _LONGER * step)
                missed, length = (length_of(part) for part in (again - point, center))
                if missed > _INEXACT * (length + length_of(point)):
                    raise inconsistent(
                        f"{guard.said}: the steps of lengths {step:g} and {_LONGER * step:g} that belong to one "
                        f"subgradient end {missed:.3g} apart; expected the same point, as of a convex function "
                        "whose prox(center, step) uses its step."
                    )
                # Back towards the center the function rises at least as its subgradient says: a projection on too small
                # a set is told from that.
                ahead = known.point + _AHEAD * (center - point)
                rise, size = _AHEAD * inner_product(known.gradient, center - point), abs(known.value)
                found = value_at(ahead)
                if math.isfinite(size) and found - known.value < rise - CONVEXITY * (size + abs(found) + rise) - _TINY:
                    raise inconsistent(
                        f"{guard.said}: at {_AHEAD:g} of the way from its point back to its center the value is "
                        f"{found:g}; expected at least {known.value + rise:g}, which its subgradient says."
                    )
