"""What a function is: value and gradient together, constants on a domain, and whatever else it can do."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from numbers import Real
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from saddleslide import functions
from saddleslide.arrays.base import Array, Shape, as_number, length_of
from saddleslide.arrays.kinds import Built, is_callers
from saddleslide.domains.base import Domain
from saddleslide.domains.entrywise import Box, FullSpace
from saddleslide.domains.program import Kink, Program
from saddleslide.errors import InputError
from saddleslide.functions.roundings import FEW, OWN_CODE, Errors, Rounding, inner_error
from saddleslide.functions.separable import SeparableForm, free_step
from saddleslide.functions.variance import EXACT, Variance
from saddleslide.operators.base import Operator
from saddleslide.theory.holder import Holder

if TYPE_CHECKING:
    from saddleslide.functions.searched import TiltedMinimum
    from saddleslide.operators.adjoint_test import AdjointTest
    from saddleslide.operators.factor import Solvable

_Answer = TypeVar("_Answer")
_Function = TypeVar("_Function", bound="Function")


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
    # Whether it is a sum of squares, hence >= 0, whoever makes the products inside.
    is_sum_of_squares: bool = False
    # The delta of a (delta, L)-oracle that its values and gradients are; 0 where they are exact.
    inexactness: float = 0.0
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

    def terms(self) -> list[tuple[float, Function]]:
        """The functions that it is a weighted sum of, with their weights; itself where it is none."""
        return [(1.0, self)]

    def parts_in(self, shape: Shape) -> list[tuple[Function, Shape]]:
        """The functions that it is made of, with the shapes that they take where it takes this one."""
        return [(part, shape) for part in self.components]

    def blocks_on(self, domain: Domain, *arrays: Array) -> list[tuple[Any, ...]]:
        """Block by block where it is a sum over blocks of x: function, domain, and the blocks of the arrays."""
        return []

    @property
    def matrix_test(self) -> Callable[[], AdjointTest] | None:
        """A test, by products, whether a matrix inside is symmetric as it must be; None where there is none."""
        return None

    @property
    def linear_image(self) -> Operator | None:
        """The operator A of a function loss(Ax) + ridge/2 |x|^2; None of any other."""
        return None

    @property
    def squared_residual(self) -> tuple[Operator, Array] | None:
        """A and b of |Ax - b|^2/2 + ridge/2 |x|^2, without weights of its rows; None of any other."""
        return None

    @property
    def gram(self) -> tuple[Any, Array] | None:
        """Entries of A and A^T A of a function |A x - b|^2 / 2, where both are at hand or worth having."""
        return None

    def hessian_factor(self, domain: Domain) -> Solvable | None:
        """The constant Hessian with its factors, where they are worth their cost on the domain."""
        return None

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
        return length_of(x)

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
        return is_callers(self)

    @property
    def convex_on_trust(self) -> bool:
        """Whether nothing but the caller's word says that it is convex."""
        return is_callers(self) or self.own_code

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
        return functions.Conjugate(self)

    def conjugate_value(self, y: Array) -> float:
        """f*(y), infinite outside its domain; NaN where no closed form is known."""
        from saddleslide.functions.minimum import has_closed_minimum, tilted_minimum
        from saddleslide.functions.trust import runs_own_code

        everywhere = FullSpace(y.shape)
        if runs_own_code(self) or not has_closed_minimum(self, everywhere):
            return math.nan
        return -tilted_minimum(self, -y, everywhere).value

    def dual(self, shape: Shape, factor: float = 1.0) -> tuple[Function, Domain]:
        """(factor f)* as a function g on the set Y where it is finite, for arrays of a shape: what `f @ K` becomes."""
        scaled = self if factor == 1.0 else factor * self
        return scaled.conjugate(), FullSpace(shape)

    def far_slope(self, shape: Shape) -> Array | None:
        """A subgradient far out, where f grows; None where none is at hand."""
        return None

    def far_point(self, shape: Shape) -> Array | None:
        """Of a conjugate: a point where it is finite, at which its function grows far out."""
        return None

    def effective_domain(self, shape: Shape) -> Domain:
        """A set outside which f is infinite, for arrays of a shape; the whole space where there is none."""
        return FullSpace(shape)

    def recession(self, direction: Array) -> tuple[Array, float, float]:
        """A ray as near a direction as is known with f(x + t ray) <= f(x) + t slope for all x and t >= 0; 0 if none is.

        With the slope and the size of its terms.
        """
        form = self.separable_form()
        if form is None or any(nu > 0.0 for _, nu in form.powers):
            return np.zeros_like(direction), 0.0, 0.0
        ray = np.where(np.asarray(form.quadratic) > 0.0, 0.0, direction)
        steepest = sum(weight for weight, _ in (*form.powers, *form.hubers))
        level, rise = form.linear * ray, steepest * np.abs(ray)
        return ray, float(np.sum(level + rise)), float(np.sum(np.abs(level) + rise))

    def closed_minimum(self, c: Array, domain: Domain) -> TiltedMinimum | None:
        """The minimum of f(x) + <c, x> over the domain with a certified error, where a closed form is known."""
        return None

    def can_minimise(self, domain: Domain) -> bool:
        """Whether `closed_minimum` has an answer on the domain."""
        return False

    def after(self, K: Any) -> Function:
        """f(K x) by its gradient."""
        return functions.Composed(self, K)

    def translated(self, b: Any) -> Function:
        """f(x - b).

        Examples
        --------
        >>> import numpy as np, saddleslide as ss
        >>> ss.functions.L1().translated([1.0, 2.0]).value(np.array([1.0, 0.0]))
        2.0
        """
        return functions.Translated(self, b)

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
            return functions.Sum(self, other)
        return _refuse_foreign(other)

    def __mul__(self, factor: float) -> Function:
        if np.ndim(factor) > 0:
            raise InputError(
                f"factor * f: factor has shape {np.shape(factor)}; expected one number. A function of A x is f @ A; "
                "weights of entries are an argument of the function, such as ss.functions.L1(weights)."
            )
        return functions.Scaled(factor, self)

    __rmul__ = __mul__

    def __truediv__(self, number: float) -> Function:
        return self * (1.0 / as_number(number, "f / number: number"))

    def __rmatmul__(self, A: Any) -> Function:
        raise InputError(f"A @ f: the operator comes second; a function of A x is f @ A. A is {type(A).__name__}.")

    def __matmul__(self, K: Any) -> Function:
        return functions.Composed(self, K)

    def __radd__(self, other: Any) -> Function:
        # So that sum([f1, f2]) works: it starts from 0.
        return self if np.ndim(other) == 0 and other == 0 else _refuse_foreign(other)

    def __sub__(self, other: Any) -> Function:
        raise InputError(
            "f - h: a difference need not be convex; expected sums with factors >= 0. A linear term <c, x> is taken "
            "off by f + ss.functions.Linear(-c)."
        )

    def __neg__(self) -> Function:
        raise InputError(f"-f: f is {self!r}, and its negative need not be convex; expected factors >= 0.")


def _refuse_foreign(other: Any) -> Any:
    """What is added to a function and is none of ours: what to write for it."""
    if isinstance(other, type) and issubclass(other, Function):
        raise InputError(f"f + h: h is the class {other.__name__}; expected a function. Write {other.__name__}(...).")
    if isinstance(other, Domain):
        raise InputError(
            f"f + X: X is the set {other!r}; expected a function. Write f + ss.functions.Indicator(X), or over=X."
        )
    if isinstance(other, Real):
        raise InputError(
            f"f + c: c is the number {other}; expected a function. Leave it out: it moves no minimum, only its value."
        )
    if callable(getattr(other, "prox", None)):
        raise InputError(
            f"f + h: h is {type(other).__name__} of {type(other).__module__}; expected a function of ss.functions. "
            "Write f + ss.functions.from_pyproximal(h), or give its step and value to ss.functions.Custom."
        )
    if callable(other):
        raise InputError(
            "f + h: h is code; expected a function of ss.functions. Write f + ss.functions.from_callable(h), where "
            "h(x) is the pair of a value and a gradient, or give a value, gradient or proximal step to "
            "ss.functions.Custom."
        )
    return NotImplemented


def on_pairs(function: _Function) -> _Function:
    """The function itself, marked as one of pairs."""
    function.is_complex = True
    return function
