"""The protocol of f and g: value and gradient together, smoothness and strong convexity on a domain."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeGuard, TypeVar, final

import numpy as np

from saddleslide.arrays.base import Array, Shape, as_number
from saddleslide.arrays.kinds import ArrayKind, Built, is_callers
from saddleslide.domains import Box, Domain, FullSpace
from saddleslide.domains.program import Kink, Program
from saddleslide.errors import InputError
from saddleslide.functions.roundings import EPS, FEW, OWN_CODE, Errors, Rounding, inner_error
from saddleslide.functions.separable import SeparableForm, free_step
from saddleslide.operators import Operator
from saddleslide.operators.spectrum import made
from saddleslide.theory.holder import Holder

if TYPE_CHECKING:
    from saddleslide.functions.searched import TiltedMinimum

_Answer = TypeVar("_Answer")
_Kind = TypeVar("_Kind")
_Function = TypeVar("_Function", bound="Function")


@dataclass(frozen=True)
class Variance:
    """A bound on E|G(x) - f'(x)|^2 over a domain, in the Euclidean norm.

    Parameters
    ----------
    value : float
        The bound, sigma^2; 0 for exact gradients.
    origin : str
        How it was found.
    estimate : bool
        True when it is not a bound: the largest of what was seen at a few points.

    Examples
    --------
    >>> 2.0 * Variance(1.0, "declared") + Variance(0.5, "declared")
    Variance(value=4.5, origin='declared', estimate=False)
    """

    value: float
    origin: str
    estimate: bool = False

    def __add__(self, other: Variance) -> Variance:
        """Variance of a sum of independent draws."""
        # An exact gradient adds nothing; a variance estimated to be 0 is still no bound.
        for first, second in ((self, other), (other, self)):
            if first.value == 0.0 and not first.estimate:
                return second
        origins = dict.fromkeys((self.origin, other.origin))
        return Variance(self.value + other.value, "; ".join(origins), self.estimate or other.estimate)

    def __rmul__(self, factor: float) -> Variance:
        """Variance of a multiple of a draw."""
        return Variance(factor * factor * self.value, self.origin, self.estimate)


EXACT = Variance(0.0, "exact gradients")


class Function(Built, ABC):
    """A convex function: what it can do decides how it is used. Add them with `+`, scale them with a number >= 0.

    Values and (sub)gradients make it a level of sliding; a proximal step (`prox`) makes it a simple term, which costs
    no calls; a conjugate (`conjugate`, `dual`) lets it stand behind an operator, as in `f @ K`; a closed minimum with a
    tilt (`closed_minimum`) makes certificates exact. A class of one's own offers what it has.

    Three structural facts let exact gaps be computed: `separable` (a sum over entries), `quadratic` (constant
    Hessian) and `linear` (constant gradient). They may be promised only when true on the whole space.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> f = 2.0 * ss.functions.Quadratic(3.0) + ss.functions.Linear(np.array([1.0, -1.0]))
    >>> f.value_and_gradient(np.array([1.0, 0.0]))
    (4.0, array([ 7., -1.]))
    """

    separable: bool = False
    quadratic: bool = False
    linear: bool = False
    # Shape of the argument, or None when any shape will do.
    shape: Shape | None = None
    # Whether the argument is complex: pairs of real numbers along the last axis, with gradients in Re <g, h>.
    is_complex: bool = False
    # Whether values are known, which certificates need; and whether gradients are those of the function itself, not of
    # its envelope, so that it can be a level of sliding.
    has_value: bool = True
    has_gradient: bool = True
    # Whether `sample` is random, and the samples that one call of it draws; an exact function gives its gradient.
    sampled: bool = False
    batch: int = 0
    # How many of its terms a call takes, and of how many: the part of a gradient that a sample is.
    drawn: tuple[int, int] = (1, 1)
    # Whether `prox` takes a step per entry, as those of sums over entries do.
    has_entry_steps: bool = False
    # Whether `prox` only multiplies groups of entries by numbers in [0, 1], as those of Euclidean norms do.
    shrinks: bool = False

    def of_pairs(self) -> Function:
        """The same function of complex arrays of shape s, on real ones of shape (*s, 2): |x_i| is a modulus.

        Examples
        --------
        >>> import numpy as np, saddleslide as ss
        >>> ss.functions.L1().of_pairs().value(ss.operators.to_real([3.0 + 4.0j, 1.0j]))
        6.0
        """
        if self.is_complex:
            return self
        raise InputError(
            f"{self!r}: is no function of complex numbers; expected L1, L2, L21, Huber, Quadratic, Linear, Indicator "
            "of a ball, LeastSquares with complex data, or code of your own with dtype=complex."
        )

    @property
    def operators(self) -> tuple[tuple[Operator, float], ...]:
        """The linear maps inside, and the part of a gradient that a product with each is."""
        return ()

    @property
    def components(self) -> tuple[Function, ...]:
        """The functions that it is made of, where it is made of some: those of a sum, of a multiple."""
        return ()

    def over_parts(self, question: Callable[[Function], _Answer]) -> list[_Answer]:
        """The answers of the functions whose gradients are added up for its own, wherever they are; none of others."""
        return []

    @abstractmethod
    def value_and_gradient(self, x: Array, out: Array | None = None) -> tuple[float, Array]:
        """Value and a (sub)gradient at x; the gradient is written to `out` when given."""

    @abstractmethod
    def smoothness(self, domain: Domain) -> Holder:
        """A valid Hölder condition of the gradient on the domain, in the Euclidean norm."""

    def exponent(self, domain: Domain) -> float:
        """The Hölder exponent of the gradient, where the constant takes products to find (see the function below)."""
        return 1.0 if self.quadratic else self.smoothness(domain).nu

    @abstractmethod
    def strong_convexity(self, domain: Domain) -> float:
        """A valid modulus of strong convexity on the domain, in the Euclidean norm; 0 is always valid."""

    def certain_convexity(self, domain: Domain) -> float:
        """The part of `strong_convexity` that follows from what the function is; a number someone declared is no part.

        Certificates rest on this one wherever that is possible (`modulus_for_bounds`). Of a class that is not ours they
        take no part as certain, whatever it says here (`certain_modulus`).
        """
        return self.strong_convexity(domain)

    def growth(self, domain: Domain) -> float:
        """A number c with f(x) >= c |x| on the domain, in the Euclidean norm; -inf where nothing says so.

        Certificates bound solutions by it, and take no number of a class that is not ours.
        """
        return -math.inf

    @property
    def error_model(self) -> Rounding:
        """What rounding can do to values and gradients, as bounds from the sizes of their terms."""
        return OWN_CODE

    def term_size(self, x: Array) -> float:
        """The |x| of `rounding`, or what can stand for it: less where large entries meet small coefficients."""
        return float(np.linalg.norm(x))

    def entrywise_errors(self, x: Array) -> Errors | None:
        """Bounds on rounding at x from its entries alone, where they cost no product: sharper for uneven scales."""
        form = self.separable_form()
        if form is None:
            return None
        return Errors((inner_error(x.size) + FEW) * form.beside(x).size(x), math.inf)

    def value(self, x: Array) -> float:
        """Value at x."""
        return self.value_and_gradient(x)[0]

    def gradient(self, x: Array, out: Array | None = None) -> Array:
        """A (sub)gradient at x."""
        return self.value_and_gradient(x, out)[1]

    def value_and_magnitude(self, x: Array) -> tuple[float, float]:
        """Value at x and the sum of the sizes of its terms, what its rounding is relative to: for certificates."""
        value, form = self.value(x), self.separable_form()
        return value, abs(value) if form is None else form.size(x)

    @property
    def own_code(self) -> bool:
        """Whether it runs code of the caller's: then a value alone is a call like a gradient."""
        return is_own_class(self)

    @property
    def convex_on_trust(self) -> bool:
        """Whether nothing but the caller's word says that it is convex."""
        return is_own_class(self) or self.own_code

    @property
    def value_cost(self) -> float:
        """What a certificate and its searches count for a value, in gradients: a call of own code, or half of parts."""
        return 1.0 if self.own_code and self.has_value else 0.0

    @property
    def lone_value_cost(self) -> float:
        """What a value that a run asks for by itself counts, in gradients: half of one, or one call of own code."""
        return 1.0 if self.own_code else 0.5

    def sample(self, x: Array, rng: np.random.Generator, out: Array | None = None) -> Array:
        """An unbiased estimate of a gradient at x from a fresh draw."""
        return self.gradient(x, out)

    def variance(self, domain: Domain, start: Array | None = None) -> Variance:
        """A bound on the expected squared error of `sample` on the domain, in the Euclidean norm.

        Where there is none it is estimated near `start`, the projection of 0 when missing.
        """
        return EXACT

    def separable_form(self) -> SeparableForm | None:
        """The function entry by entry, where it is one of the known shapes; else None."""
        return None

    def as_program(self, size: int) -> Program | None:
        """The function entry by entry as interior points take it: quadratics, kinks and bounds; else None."""
        form = self.separable_form()
        if form is None or any(nu > 0.0 for _, nu in form.powers):
            return None

        def flat(numbers: Array | float) -> Array:
            return np.array(np.broadcast_to(np.ravel(numbers), (size,)), dtype=np.float64)

        kinks = [(weight, 0.0) for weight, _ in form.powers]
        kinks += [(weight, delta / weight) for weight, delta in form.hubers if weight > 0.0]
        return replace(
            Program.on(size),
            quadratic=flat(form.quadratic),
            linear=flat(form.linear),
            kinks=tuple(Kink(flat(weight), np.zeros(size), flat(bend)) for weight, bend in kinks),
        )

    @property
    def is_proximable(self) -> bool:
        """Whether `prox` is exact: of a class of its own, or of an entrywise form."""
        return type(self).prox is not Function.prox or self.separable_form() is not None

    def prox(self, center: Array, step: Array | float) -> Array:
        """The point x that minimises f(x) + |x - center|^2 / (2 step); (center - x) / step is a subgradient there.

        Examples
        --------
        >>> import numpy as np, saddleslide as ss
        >>> ss.functions.Huber(0.5).prox(np.array([3.0, 0.5]), 1.0).round(3)
        array([2.   , 0.167])
        """
        form = self.separable_form()
        if form is None:
            raise InputError(
                f"{type(self).__name__}: has no proximal step; expected a function of ss.functions with one, or "
                "Custom(prox=...)."
            )
        return free_step(form.beside(center), center, np.divide(1.0, step))

    def can_prox(self, domain: Domain) -> bool:
        """Whether a proximal step on the domain is exact: on the whole space, and entry by entry on a box."""
        return self.is_proximable and (isinstance(domain, FullSpace) or (self.separable and isinstance(domain, Box)))

    def prox_on(self, domain: Domain, center: Array, weight: Array | float) -> Array:
        """The point of the domain that minimises f(x) + weight/2 |x - center|^2, where `can_prox`."""
        # Of one variable, the convex function is smallest on an interval at the point nearest to its free minimiser.
        found: Array = domain.project(self.prox(center, np.divide(1.0, weight) if np.ndim(weight) else 1.0 / weight))
        return found

    def conjugate(self) -> Function:
        """f*(y) = sup over x of <y, x> - f(x), with its proximal step by Moreau's identity.

        Examples
        --------
        >>> import numpy as np, saddleslide as ss
        >>> ss.functions.L2().conjugate().prox(np.array([3.0, 4.0]), 1.0)
        array([0.6, 0.8])
        """
        from saddleslide.functions.conjugate import Conjugate

        return Conjugate(self)

    def conjugate_value(self, y: Array) -> float:
        """f*(y), infinite outside its domain; NaN where no closed form is known."""
        return math.nan

    def dual(self, shape: Shape, factor: float = 1.0) -> tuple[Function, Domain]:
        """(factor f)* as a function g on the set Y where it is finite, for arrays of a shape: what `f @ K` becomes."""
        scaled = self if factor == 1.0 else factor * self
        return scaled.conjugate(), FullSpace(shape)

    def effective_domain(self, shape: Shape) -> Domain:
        """A set outside which f is infinite, for arrays of a shape; the whole space where there is none."""
        return FullSpace(shape)

    def closed_minimum(self, c: Array, domain: Domain) -> TiltedMinimum | None:
        """The minimum of f(x) + <c, x> over the domain with a certified error, where a closed form is known."""
        return None

    def can_minimise(self, domain: Domain) -> bool:
        """Whether `closed_minimum` has an answer on the domain."""
        return False

    def after(self, K: Any) -> Function:
        """f(K x) by its gradient."""
        from saddleslide.functions.composed import Composed

        return Composed(self, K)

    def translated(self, b: Any) -> Function:
        """f(x - b).

        Examples
        --------
        >>> import numpy as np, saddleslide as ss
        >>> ss.functions.L1().translated([1.0, 2.0]).value(np.array([1.0, 0.0]))
        2.0
        """
        from saddleslide.functions.conjugate import Translated

        return Translated(self, b)

    def hessian_product(self, v: Array) -> Array:
        """Hessian times v, for quadratic functions only."""
        raise InputError(f"{type(self).__name__}: has no constant Hessian.")

    def hessian_diagonal(self, shape: Shape) -> Array | None:
        """Diagonal of the Hessian at 0, flat; None where it does not show."""
        form = self.separable_form()
        if form is None or form.is_curved:
            return None
        return np.broadcast_to(np.asarray(form.quadratic, dtype=np.float64), shape).ravel()

    # So that an array leaves `A * f` and `A @ f` to the two methods below, which say what to write instead.
    __array_ufunc__ = None

    def __add__(self, other: Function) -> Function:
        if isinstance(other, Function):
            return Sum(self, other)
        if callable(getattr(other, "prox", None)):
            raise InputError(
                f"f + h: h is {type(other).__name__} of {type(other).__module__}; expected a function of ss.functions. "
                "Write f + ss.functions.from_pyproximal(h), or give its step and value to ss.functions.Custom."
            )
        return NotImplemented

    def __mul__(self, factor: float) -> Function:
        if np.ndim(factor) > 0:
            raise InputError(
                f"factor * f: factor has shape {np.shape(factor)}; expected one number. A function of A x is f @ A; "
                "weights of entries are an argument of the function, such as ss.functions.L1(weights)."
            )
        return Scaled(factor, self)

    __rmul__ = __mul__

    def __rmatmul__(self, A: Any) -> Function:
        raise InputError(f"A @ f: the operator comes second; a function of A x is f @ A. A is {type(A).__name__}.")

    def __matmul__(self, K: Any) -> Function:
        from saddleslide.functions.composed import Composed

        return Composed(self, K)

    def __radd__(self, other: Any) -> Function:
        # So that sum([f1, f2]) works: it starts from 0.
        return self if np.ndim(other) == 0 and other == 0 else NotImplemented


def on_pairs(function: _Function) -> _Function:
    """The function itself, marked as one of pairs."""
    function.is_complex = True
    return function


def is_own_class(part: object) -> bool:
    """Whether a function or a domain is of a class of the caller's: what such a class says of itself is declared."""
    return is_callers(part)


def is_ours(part: object, kind: Callable[..., _Kind]) -> TypeGuard[_Kind]:
    """Whether it is of a class of ours and goes by what that class is made of; a class derived from it may not."""
    return isinstance(part, kind) and not is_own_class(part)  # type: ignore[arg-type]


def runs_own_code(f: Function) -> bool:
    """Whether a function is, or is made of, code of the caller's, whatever a class of theirs says."""
    return is_own_class(f) or f.own_code


def run_aside(f: Function, work: Callable[[], _Answer]) -> _Answer:
    """A value or a gradient that is no call where f is ours: inside a closed form, of a simple term, for an estimate.

    Every run of the caller's code is a call, so there it is counted for the call under way.
    """
    return made(f, work) if runs_own_code(f) else work()


def envelope_gradient(f: Function, x: Array) -> Array:
    """A subgradient of f at the point of a short proximal step from x: of a function that offers none at x itself."""
    step = 1e-6 * (1.0 + float(np.max(np.abs(x), initial=0.0)))
    found: Array = (x - f.prox(x, step)) / step
    return found


def value_aside(f: Function, x: Array) -> float:
    """`run_aside` for a value."""
    return run_aside(f, lambda: f.value(x))


def gradient_aside(f: Function, x: Array) -> Array:
    """`run_aside` for a gradient."""
    return run_aside(f, lambda: f.gradient(x))


def certain_modulus(f: Function, domain: Domain) -> float:
    """The modulus of f that follows from what it is; nothing that a class of the caller's says is certain."""
    return 0.0 if is_own_class(f) else f.certain_convexity(domain)


def read_rounding(f: Function) -> Rounding:
    """What rounding can do to f; that of the caller's code, whatever its class says."""
    return OWN_CODE if is_own_class(f) else f.error_model


def takes_products(function: Function) -> bool:
    """Whether constants of the function take products with the caller's code to find out.

    It does not matter whether they have been found out before: a second solve decides as the first one did.
    """
    return any(not operator.norm_at_hand for operator, _ in function.operators)


def exponent(function: Function, domain: Domain) -> float:
    """The Hölder exponent of the gradient: 1 of any function of a linear image of ours, whatever the norm of that map.

    Raises what `smoothness` raises.
    """
    if not takes_products(function):
        return function.smoothness(domain).nu
    return Function.exponent(function, domain) if is_own_class(function) else function.exponent(domain)


def diagonal_of(f: Function, shape: Shape) -> Array | None:
    """Diagonal of f'' at 0, flat; of a class of the caller's what its form says."""
    return Function.hessian_diagonal(f, shape) if is_own_class(f) else f.hessian_diagonal(shape)


def inside(f: Function) -> Iterator[Function]:
    """The function and all that it is made of, as far as they are in this process."""
    yield f
    for part in f.components:
        yield from inside(part)


def errors_at(f: Function, x: Array, value: float, slope: float = 0.0) -> Errors:
    """Bounds on the errors of a value of f, and of a gradient of the size `slope`, that were computed at x."""
    if is_own_class(f):
        return OWN_CODE.at(float(np.linalg.norm(x)), value, slope, x.size)
    found, sharp = f.error_model.at(f.term_size(x), value, slope, x.size), f.entrywise_errors(x)
    if sharp is None or not math.isfinite(value):
        return found
    return Errors(min(found.value, sharp.value), min(found.gradient, sharp.gradient))


class Composite(Function):
    """A function that is made of others (`components`): what is true of all of them, or of one."""

    def __init__(self, *parts: Function) -> None:
        self.separable = all(part.separable for part in parts)
        self.quadratic = all(part.quadratic for part in parts)
        self.linear = all(part.linear for part in parts)
        self.is_complex = any(part.is_complex for part in parts)
        self.has_value = all(part.has_value for part in parts)
        self.has_gradient = all(part.has_gradient for part in parts)

    def stays_on_host(self, kind: ArrayKind) -> tuple[str, ...]:
        return tuple(word for part in self.components for word in part.stays_on_host(kind))

    @property
    def operators(self) -> tuple[tuple[Operator, float], ...]:
        return tuple(pair for part in self.components for pair in part.operators)

    @property
    def own_code(self) -> bool:
        return is_own_class(self) or any(map(runs_own_code, self.components))

    @property
    def convex_on_trust(self) -> bool:
        return is_own_class(self) or any(is_own_class(part) or part.convex_on_trust for part in self.components)

    @property
    def value_cost(self) -> float:
        return max(part.value_cost for part in self.components)

    @property
    def lone_value_cost(self) -> float:
        return max(part.lone_value_cost for part in self.components)


@final
class Sum(Composite):
    """f1 + f2; written `f1 + f2`.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> (ss.functions.Quadratic(1.0) + ss.functions.Huber(0.5)).value(np.array([1.0]))
    1.25
    """

    def __init__(self, first: Function, second: Function) -> None:
        if first.is_complex != second.is_complex and None not in (first.shape, second.shape):
            # What has the shape of the complex arrays becomes one of pairs.
            if first.shape == (*second.shape, 2):  # type: ignore[misc]
                second = second.of_pairs()
            elif second.shape == (*first.shape, 2):  # type: ignore[misc]
                first = first.of_pairs()
        if len({first.shape, second.shape} - {None}) > 1:
            raise InputError(
                f"f1 + f2: shapes are {first.shape} and {second.shape}; expected equal shapes. Pass x_shape= to what "
                "takes flat arrays, as LeastSquares(A, b, x_shape=(rows, columns))."
            )
        super().__init__(first, second)
        self.parts, self.shape = (first, second), first.shape or second.shape
        self.sampled, self.batch = first.sampled or second.sampled, first.batch + second.batch

    def __repr__(self) -> str:
        return " + ".join(map(repr, self.parts))

    def of_pairs(self) -> Function:
        return Sum(self.parts[0].of_pairs(), self.parts[1].of_pairs())

    @property
    def components(self) -> tuple[Function, ...]:
        return self.parts

    def over_parts(self, question: Callable[[Function], _Answer]) -> list[_Answer]:
        return [question(part) for part in self.parts]

    def value_and_gradient(self, x: Array, out: Array | None = None) -> tuple[float, Array]:
        first, gradient = self.parts[0].value_and_gradient(x, out)
        second, other = self.parts[1].value_and_gradient(x)
        gradient += other
        return first + second, gradient

    def value(self, x: Array) -> float:
        return self.parts[0].value(x) + self.parts[1].value(x)

    def gradient(self, x: Array, out: Array | None = None) -> Array:
        gradient = self.parts[0].gradient(x, out)
        gradient += self.parts[1].gradient(x)
        return gradient

    def sample(self, x: Array, rng: np.random.Generator, out: Array | None = None) -> Array:
        estimate = self.parts[0].sample(x, rng, out)
        estimate += self.parts[1].sample(x, rng)
        return estimate

    def variance(self, domain: Domain, start: Array | None = None) -> Variance:
        return self.parts[0].variance(domain, start) + self.parts[1].variance(domain, start)

    def value_and_magnitude(self, x: Array) -> tuple[float, float]:
        first, second = (part.value_and_magnitude(x) for part in self.parts)
        return first[0] + second[0], first[1] + second[1]

    def smoothness(self, domain: Domain) -> Holder:
        first, second = (part.smoothness(domain) for part in self.parts)
        return first.plus(second, domain.diameter())

    def exponent(self, domain: Domain) -> float:
        return min(exponent(part, domain) for part in self.parts)

    def strong_convexity(self, domain: Domain) -> float:
        return sum(part.strong_convexity(domain) for part in self.parts)

    def certain_convexity(self, domain: Domain) -> float:
        return sum(certain_modulus(part, domain) for part in self.parts)

    @cached_property
    def error_model(self) -> Rounding:
        return read_rounding(self.parts[0]).plus(read_rounding(self.parts[1]))

    def entrywise_errors(self, x: Array) -> Errors | None:
        first, second = (None if is_own_class(part) else part.entrywise_errors(x) for part in self.parts)
        if first is None or second is None:
            return None
        return Errors(first.value + second.value, first.gradient + second.gradient)

    def separable_form(self) -> SeparableForm | None:
        first, second = (part.separable_form() for part in self.parts)
        return None if first is None or second is None else first.plus(second)

    def as_program(self, size: int) -> Program | None:
        first, second = (part.as_program(size) for part in self.parts)
        return None if first is None or second is None else first.plus(second)

    @cached_property
    def bowl(self) -> tuple[Function, SeparableForm] | None:
        """A part with a proximal step beside one that is q/2 |x|^2 + <b, x>; None where there is no such pair.

        That one may have w |x| on top where the step of the part shortens groups, as in the sparse group lasso: the
        entries that it keeps have their signs. The step of any other sum is not that of one part after the other.
        """
        for part, other in (self.parts, self.parts[::-1]):
            form = other.separable_form()
            if form is None or not part.is_proximable or form.hubers or np.ndim(form.quadratic):
                continue
            if not form.powers or (part.shrinks and all(nu == 0.0 for _, nu in form.powers)):
                return part, form
        return None

    @property
    def is_proximable(self) -> bool:
        return self.separable_form() is not None or self.bowl is not None

    @property
    def has_entry_steps(self) -> bool:  # type: ignore[override]
        return all(part.has_entry_steps or part.separable_form() is not None for part in self.parts)

    def can_prox(self, domain: Domain) -> bool:
        return self.bowl is not None and self.bowl[0].can_prox(domain)

    def prox(self, center: Array, step: Array | float) -> Array:
        if self.bowl is None:
            return super().prox(center, step)
        part, form = self.bowl
        moved = free_step(form.beside(center), center, np.divide(1.0, step))
        return part.prox(moved, step / (1.0 + step * form.quadratic))

    def prox_on(self, domain: Domain, center: Array, weight: Array | float) -> Array:
        assert self.bowl is not None
        part, form = self.bowl
        return part.prox_on(domain, free_step(form.beside(center), center, weight), weight + form.quadratic)

    def conjugate_value(self, y: Array) -> float:
        for linear, other in (self.parts, self.parts[::-1]):
            if linear.linear and not runs_own_code(linear):
                return other.conjugate_value(y - linear.gradient(np.zeros_like(y)))
        return math.nan

    def effective_domain(self, shape: Shape) -> Domain:
        first, second = (part.effective_domain(shape) for part in self.parts)
        if isinstance(first, Box) and isinstance(second, Box):
            return first.meet(second) or first
        return second if isinstance(first, FullSpace) else first

    def can_minimise(self, domain: Domain) -> bool:
        return any(one.linear and other.can_minimise(domain) for one, other in (self.parts, self.parts[::-1]))

    def closed_minimum(self, c: Array, domain: Domain) -> TiltedMinimum | None:
        for linear, other in (self.parts, self.parts[::-1]):
            if linear.linear and other.can_minimise(domain) and not runs_own_code(linear):
                slope = linear.gradient(np.zeros_like(c))
                found = other.closed_minimum(slope + c, domain)
                return None if found is None else found.shifted(FEW * (np.abs(slope) + np.abs(c)))
        return None

    def hessian_product(self, v: Array) -> Array:
        return self.parts[0].hessian_product(v) + self.parts[1].hessian_product(v)

    def hessian_diagonal(self, shape: Shape) -> Array | None:
        first, second = (diagonal_of(part, shape) for part in self.parts)
        return None if first is None or second is None else np.sum([first, second], axis=0)


class Wrapper(Composite):
    """A number times one function, passed on as it is: `Scaled` has another number, `Sampled` another `sample`."""

    factor: float = 1.0
    # Whether the function is taken at another point than x: moved, or scaled.
    has_moved_argument: bool = False

    def __init__(self, function: Function) -> None:
        super().__init__(function)
        self.function, self.shape = function, function.shape

    @property
    def components(self) -> tuple[Function, ...]:
        return (self.function,)

    def over_parts(self, question: Callable[[Function], _Answer]) -> list[_Answer]:
        # What a class of the caller's draws from is its own business.
        return [] if is_own_class(self) or self.has_moved_argument else [question(self.function)]

    def value_and_gradient(self, x: Array, out: Array | None = None) -> tuple[float, Array]:
        value, gradient = self.function.value_and_gradient(x, out)
        return self.factor * value, self._scale(gradient)

    def value(self, x: Array) -> float:
        return self.factor * self.function.value(x)

    def gradient(self, x: Array, out: Array | None = None) -> Array:
        return self._scale(self.function.gradient(x, out))

    def _scale(self, gradient: Array) -> Array:
        if self.factor != 1.0:
            gradient *= self.factor
        return gradient

    def value_and_magnitude(self, x: Array) -> tuple[float, float]:
        value, magnitude = self.function.value_and_magnitude(x)
        return self.factor * value, self.factor * magnitude

    def smoothness(self, domain: Domain) -> Holder:
        return self.factor * self.function.smoothness(domain)

    def strong_convexity(self, domain: Domain) -> float:
        return self.factor * self.function.strong_convexity(domain)

    def certain_convexity(self, domain: Domain) -> float:
        return self.factor * certain_modulus(self.function, domain)

    @cached_property
    def error_model(self) -> Rounding:
        return read_rounding(self.function).times(self.factor)

    def term_size(self, x: Array) -> float:
        return self.function.term_size(x)

    def entrywise_errors(self, x: Array) -> Errors | None:
        found = None if is_own_class(self.function) else self.function.entrywise_errors(x)
        if found is None or self.factor == 0.0:
            return found
        return Errors(self.factor * found.value, self.factor * found.gradient)

    def separable_form(self) -> SeparableForm | None:
        form = self.function.separable_form()
        return form if form is None or self.factor == 1.0 else form.times(self.factor)

    @property
    def is_proximable(self) -> bool:
        return not is_own_class(self) and self.function.is_proximable

    @property
    def has_entry_steps(self) -> bool:  # type: ignore[override]
        return self.function.has_entry_steps

    @property
    def shrinks(self) -> bool:  # type: ignore[override]
        return not is_own_class(self) and self.function.shrinks

    def can_prox(self, domain: Domain) -> bool:
        return not is_own_class(self) and self.function.can_prox(domain)

    def prox(self, center: Array, step: Array | float) -> Array:
        return self.function.prox(center, self.factor * step) if self.factor > 0.0 else center.copy()

    def prox_on(self, domain: Domain, center: Array, weight: Array | float) -> Array:
        if self.factor == 0.0:
            return domain.project(center)
        return self.function.prox_on(domain, center, weight / self.factor)

    def conjugate_value(self, y: Array) -> float:
        if self.factor == 0.0:
            return math.inf if y.any() else 0.0
        return self.factor * self.function.conjugate_value(y / self.factor)

    def dual(self, shape: Shape, factor: float = 1.0) -> tuple[Function, Domain]:
        return self.function.dual(shape, factor * self.factor)

    def effective_domain(self, shape: Shape) -> Domain:
        return self.function.effective_domain(shape)

    def can_minimise(self, domain: Domain) -> bool:
        return not is_own_class(self) and self.factor > 0.0 and self.function.can_minimise(domain)

    def closed_minimum(self, c: Array, domain: Domain) -> TiltedMinimum | None:
        found = self.function.closed_minimum(c / self.factor, domain) if self.factor > 0.0 else None
        return None if found is None else found.times(self.factor, EPS * np.abs(c) / self.factor)

    def hessian_product(self, v: Array) -> Array:
        return self.factor * self.function.hessian_product(v)


@final
class Scaled(Wrapper):
    """A number >= 0 times a function; written `2.0 * f`.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> (0.5 * ss.functions.Quadratic(2.0)).gradient(np.array([3.0]))
    array([3.])
    """

    def __init__(self, factor: float, function: Function) -> None:
        self.factor = as_number(factor, "factor * f: factor", minimum=0.0)
        super().__init__(function)
        self.sampled = self.factor > 0.0 and function.sampled
        self.batch = function.batch if self.sampled else 0

    def __repr__(self) -> str:
        one = repr(self.function)
        if self.factor == 1.0:
            return one
        # A call of one constructor needs no brackets of its own.
        is_call = one.endswith(")") and one.split("(")[0].isidentifier() and ") + " not in one
        return f"{self.factor:.6g} * {one if is_call else f'({one})'}"

    def of_pairs(self) -> Function:
        return Scaled(self.factor, self.function.of_pairs())

    def sample(self, x: Array, rng: np.random.Generator, out: Array | None = None) -> Array:
        return self._scale(self.function.sample(x, rng, out) if self.sampled else self.function.gradient(x, out))

    def variance(self, domain: Domain, start: Array | None = None) -> Variance:
        return self.factor * self.function.variance(domain, start) if self.sampled else EXACT

    def exponent(self, domain: Domain) -> float:
        return exponent(self.function, domain)

    def as_program(self, size: int) -> Program | None:
        found = self.function.as_program(size) if self.factor > 0.0 else Program.on(size)
        return None if found is None else found.times(self.factor or 1.0)

    def hessian_diagonal(self, shape: Shape) -> Array | None:
        inside = diagonal_of(self.function, shape)
        return None if inside is None else self.factor * inside


def without_silent_noise(f: Function) -> Function:
    """The function with every wrapper taken off that never draws (sigma = 0, all rows); itself where there is none."""
    if is_ours(f, Sum):
        first, second = map(without_silent_noise, f.parts)
        return f if first is f.parts[0] and second is f.parts[1] else first + second
    if is_ours(f, Scaled):
        bare = without_silent_noise(f.function)
        return f if bare is f.function else f.factor * bare
    is_silent = is_ours(f, Wrapper) and not f.sampled and not f.has_moved_argument
    return without_silent_noise(f.function) if is_silent and isinstance(f, Wrapper) else f


def check_sample(function: Function, domain: Domain, name: str, start: Array | None = None) -> None:
    """One draw at the start, thrown away: wrong shapes and numbers show before a run begins."""
    x = domain.project(np.zeros(domain.shape)) if start is None else start
    drawn: Any = run_aside(function, lambda: function.sample(x, np.random.default_rng(0)))
    if np.shape(drawn) != domain.shape or not np.isfinite(drawn).all():
        raise InputError(
            f"{name}: its sampled gradient has shape {np.shape(drawn)} or numbers that are not finite; expected finite "
            f"numbers of shape {domain.shape}."
        )
