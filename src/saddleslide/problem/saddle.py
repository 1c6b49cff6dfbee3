"""The problem: min over x in X, max over y in Y of f(x) + <y, Bx> - g(y). Frozen, validated once."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic

import numpy as np

from saddleslide.arrays.base import Array, as_real, coarseness, length_of
from saddleslide.arrays.kinds import DOUBLE, NUMPY, as_kind, origin_of, precision_of, to_host
from saddleslide.domains.base import Domain
from saddleslide.errors import InputError, MissingAdjointError, raise_all
from saddleslide.functions.base import Function
from saddleslide.functions.constants import list_declared_forms, rests_on_declaration
from saddleslide.functions.searched import split_simple
from saddleslide.functions.trust import is_own_class
from saddleslide.operators.base import Mirrored, Operator
from saddleslide.operators.explicit import as_operator

# What `read` answers with: the result itself, unless a gallery has words for it.
if TYPE_CHECKING:
    from typing_extensions import TypeVar

    Words = TypeVar("Words", default=Any)
else:
    from typing import TypeVar

    Words = TypeVar("Words")


def as_it_is(result: Any) -> Any:
    """The reader of a problem that has no words of its own: the result itself."""
    return result


# Multipliers beyond this part of the radius count as on the ball; below, the constraints hold to 10 gap / radius.
_ON_THE_BALL = 0.9


@dataclass(frozen=True, eq=False)
class Enclosure:
    """A ball around y that the caller's problem does not have: multipliers of constraints are free."""

    radius: float
    # What y is, and what the multipliers enforce.
    name: str
    constraint: str
    # The right side of B x = b, where X may exclude all such x.
    b: Array | None = None

    def holds(self, y: Array) -> bool:
        """Whether y stayed away from the ball, so that |B x - b| <= gap / (radius - |y|) <= 10 gap / radius."""
        return length_of(to_host(y)) < _ON_THE_BALL * self.radius


@dataclass(frozen=True, eq=False)
class SaddleProblem(Generic[Words]):
    """min over x in X, max over y in Y of f(x) + <y, Bx> - g(y).

    Parameters
    ----------
    f, g : Function
        Convex functions of x and of y.
    B : array, sparse matrix, LinearOperator, pair of callables or Operator
        The linear map that couples x and y; anything `ss.operators.as_operator` takes. A list `[B1, B2]` is a sum;
        `ss.slide` calls each of its parts as often as it needs.
    X, Y : Domain
        Closed convex sets.
    reader : callable, optional
        What `read` makes of a result; the functions of `ss.gallery` set it.
    arrays : "numpy", "torch", "jax", "cupy" or an array of theirs, optional
        Where methods run, and kind and precision of the x and y of results; by default those of the arrays which the
        problem is made of.
    enclosure : Enclosure, optional
        Says that Y is a ball which stands for the whole space: a y on it is no success. The functions of `ss.gallery`
        set it.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> problem = ss.SaddleProblem(
    ...     f=ss.functions.Zero(), g=ss.functions.Zero(), B=np.array([[1.0, -1.0], [-1.0, 1.0]]),
    ...     X=ss.domains.Simplex(2), Y=ss.domains.Simplex(2))
    >>> problem
    SaddleProblem(x: Simplex((2,)), y: Simplex((2,)), B: Matrix(dense, (2,) -> (2,)), f: Zero(), g: Zero())
    """

    f: Function
    g: Function
    B: Any
    X: Domain
    Y: Domain
    reader: Callable[[Any], Words] = field(default=as_it_is, repr=False)
    arrays: Any = field(default=None, repr=False)
    enclosure: Enclosure | None = field(default=None, repr=False)
    coupling: Operator = field(init=False, repr=False)
    precision: str = field(init=False, repr=False, default=DOUBLE)
    # Where each term of an objective went; nothing for a problem in saddle form.
    terms: tuple[str, ...] = field(default=(), repr=False)

    def __post_init__(self) -> None:
        complaints = [
            f"{name} is {type(value).__name__}; expected {expected}."
            for name, value, kind, expected in (
                ("f", self.f, Function, "a function from ss.functions"),
                ("g", self.g, Function, "a function from ss.functions"),
                ("X", self.X, Domain, "a domain from ss.domains"),
                ("Y", self.Y, Domain, "a domain from ss.domains"),
            )
            if not isinstance(value, kind)
        ]
        pairs = (("f", self.f, "X", self.X), ("g", self.g, "Y", self.Y))
        complaints += [
            f"{name} takes arrays of shape {function.shape}, {side} has shape {domain.shape}; expected equal shapes."
            for name, function, side, domain in pairs
            if isinstance(function, Function) and isinstance(domain, Domain)
            if function.shape is not None and function.shape != domain.shape
        ]
        # What is no domain has been complained about.
        x_shape, y_shape = (side.shape if isinstance(side, Domain) else None for side in (self.X, self.Y))
        try:
            object.__setattr__(self, "coupling", as_operator(self.B, x_shape, y_shape))
        except InputError as error:
            if isinstance(error, MissingAdjointError) and not complaints:
                raise
            complaints.append(str(error))
        given = (self.f, self.g, self.B, self.X, self.Y) if self.arrays is None else (self.arrays,)
        object.__setattr__(self, "precision", precision_of(*given) or DOUBLE)
        try:
            kind = origin_of(*given) if self.arrays is None else self.arrays
            object.__setattr__(self, "arrays", as_kind(kind, "arrays"))
        except InputError as error:
            complaints.append(str(error))
        raise_all("SaddleProblem", complaints)

    def __repr__(self) -> str:
        return f"SaddleProblem(x: {self.X}, y: {self.Y}, B: {self.coupling}, f: {self.f}, g: {self.g})"

    def __str__(self) -> str:
        return "\n".join((repr(self), *(f"  {term}" for term in self.terms)))

    @property
    def on_host(self) -> tuple[str, ...]:
        """What runs on the host, by way of a copy there and back, although the arrays are another library's."""
        if self.arrays == NUMPY:
            return ()
        parts = (("f", self.f), ("g", self.g), ("B", self.coupling), ("X", self.X), ("Y", self.Y))
        return tuple(f"{name}: {word}" for name, part in parts for word in part.stays_on_host(self.arrays))

    @cached_property
    def f_parts(self) -> tuple[Function, Function]:
        """F as a costly rest and a simple part with a proximal step on X."""
        return split_simple(self.f, self.X)

    @cached_property
    def g_parts(self) -> tuple[Function, Function]:
        """G as a costly rest and a simple part with a proximal step on Y."""
        return split_simple(self.g, self.Y)

    @cached_property
    def assumptions(self) -> str:
        """What certificates of this problem rest on beyond convexity, true gradients and a true adjoint; often nothing.

        On an unbounded set a bound needs a modulus of strong convexity. Where that is only declared, it is named here;
        and so is what a class of the caller's says of its form, where bounds go by it, and a set that it stands for.
        """
        sides = (("f", self.f, "X", self.X), ("g", self.g, "Y", self.Y))
        found: list[str] = []
        for name, function, side, domain in sides:
            if rests_on_declaration(function, domain):
                modulus = function.strong_convexity(domain)
                found.append(f"{name} is strongly convex with the declared modulus {modulus:g}")
            found += [f"{name} is {form}, as its class declares" for form in list_declared_forms(function)]
            if _is_own_set(domain):
                found.append(f"{side} is the set that its code declares")
        return " and ".join(found)

    def read(self, result: Any) -> Words:
        """A result of this problem in the problem's own words: strategies, plan, picture, ...; see `ss.gallery`."""
        shapes = [getattr(getattr(result, name, None), "shape", None) for name in "xy"]
        # Of PyTorch they are no tuples.
        if [None if shape is None else tuple(shape) for shape in shapes] != [self.X.shape, self.Y.shape]:
            raise InputError(
                f"read: received {type(result).__name__} with x, y of shapes {tuple(shapes)}; expected a result of "
                f"this problem, shapes {(self.X.shape, self.Y.shape)}."
            )
        # Readers compute with NumPy's arrays.
        x, y = to_host(result.x), to_host(result.y)
        return self.reader(result if x is result.x and y is result.y else replace(result, x=x, y=y))

    def start(self, given: tuple[Any, Any] | None = None) -> tuple[Array, Array]:
        """Feasible starting point: the given one checked, or the projections of 0."""
        if given is None:
            return self.X.project(np.zeros(self.X.shape)), self.Y.project(np.zeros(self.Y.shape))
        if not isinstance(given, tuple | list) or len(given) != 2:
            raise InputError(f"start: received {type(given).__name__}; expected a pair (x, y).")
        x, y = as_real(given[0], "start: x", self.X.shape), as_real(given[1], "start: y", self.Y.shape)
        outside = []
        for name, raw, point, domain in (("x", given[0], x, self.X), ("y", given[1], y, self.Y)):
            # How far rounding may have moved a point that was given in some precision.
            rounding = max(1e-12, coarseness(raw)) * (1.0 + float(np.max(np.abs(point), initial=0.0)))
            if not domain.contains(point, rounding * math.sqrt(point.size)):
                excess = f"{domain.violation(point):.1e}"
                outside.append(f"{name} lies outside {domain} by {excess}; expected a feasible point.")
        raise_all("start", outside)
        return self.X.project(x), self.Y.project(y)

    def place(self, point: tuple[Array, Array]) -> tuple[Array, Array]:
        """A point of the host where the problem's arrays lie, for a method to start from."""
        return self.arrays.place(point[0]), self.arrays.place(point[1])

    def mirrored(self) -> SaddleProblem:
        """The same problem with the roles of x and y exchanged: min over y, max over x of g(y) + <x, -B^T y> - f(x)."""
        return SaddleProblem(self.g, self.f, Mirrored(self.coupling), self.Y, self.X, arrays=self.arrays)


def _is_own_set(domain: Domain) -> bool:
    """Whether a class or code of the caller's says what the set is, or a factor of it."""
    own = is_own_class(domain) or domain.own_code
    return own or any(_is_own_set(block) for block in domain.blocks if block is not domain)
