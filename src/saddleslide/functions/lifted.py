"""A function through its lift q: what one product gives, so that extrapolations cost nothing.

For f(x) = loss(Ax) + ridge/2 |x|^2 the lift is q = Ax: half a gradient; the other half is A^T. For a quadratic it is
the gradient itself. In both cases the lift of an affine combination is the same combination of lifts.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import final

import numpy as np
import numpy.typing as npt

from saddleslide.array_kinds import ArrayKind
from saddleslide.arrays import Array, frozen, zeros
from saddleslide.couplings import Coupling
from saddleslide.errors import InputError
from saddleslide.functions.base import Function

# Numbers of rows.
Rows = npt.NDArray[np.intp]


class Lifted(ABC):
    """Value, gradient and Bregman distance of a function from lifts. Costs are in gradients."""

    lift_cost: float
    gradient_cost: float
    bregman_cost: float = 0.0
    affine_gradient: bool = False
    has_hessian: bool = True
    # Whether the lift of 0 is 0, hence known without a product.
    linear: bool = False
    # Whether values run code of the caller's: then `run_cost` counts them.
    own_code: bool = False

    @property
    def one_pass(self) -> bool:
        """Whether a lift and its gradient together are cheaper than one after the other."""
        return False

    @abstractmethod
    def lift(self, x: Array) -> Array:
        """The lift of x."""

    def blank(self, x: Array) -> Array:
        """Zeros in the shape of a lift."""
        return zeros(x.shape, x)

    @abstractmethod
    def gradient(self, x: Array, q: Array) -> Array:
        """f'(x), given the lift of x."""

    def lift_and_gradient(self, x: Array) -> tuple[Array, Array]:
        """The lift of x, and f'(x)."""
        q = self.lift(x)
        return q, self.gradient(x, q)

    @abstractmethod
    def value(self, x: Array, q: Array) -> float:
        """f(x), given the lift of x."""

    @abstractmethod
    def bregman(self, x: Array, q: Array, v: Array, qv: Array, gradient: Array) -> float:
        """f(x) - f(v) - <f'(v), x - v>, given both lifts and f'(v)."""

    def run_cost(self, *points: Array) -> float:
        """Runs of the caller's own code that values at these points take."""
        return 0.0

    def hessian(self, q: Array) -> Callable[[Array], Array]:
        """Product with the Hessian at the point with this lift (one gradient each); only if `has_hessian`."""
        raise InputError(f"{type(self).__name__}: offers no products with a Hessian.")

    def hessian_stack(self, q: Array) -> Callable[[Array], Array]:
        """The same for every vector of a stack."""
        product = self.hessian(q)
        return lambda stack: np.stack([product(v) for v in stack])


class LinearModel(Function):
    """A function loss(Ax) + ridge/2 |x|^2 of one linear image of x."""

    A: Coupling
    ridge: float

    @abstractmethod
    def loss_value(self, q: Array) -> float:
        """loss(q)."""

    @abstractmethod
    def loss_gradient(self, q: Array) -> Array:
        """loss'(q)."""

    @abstractmethod
    def loss_slopes(self, rows: Rows, q: Array) -> Array:
        """loss'(q) for some rows alone: their numbers and their entries of q, both flat."""

    @abstractmethod
    def loss_hessian(self, q: Array) -> Array:
        """Diagonal of loss''(q)."""

    def stays_on_host(self, kind: ArrayKind) -> tuple[str, ...]:
        return self.A.stays_on_host(kind)

    def loss_bregman(self, q: Array, p: Array) -> float:
        """loss(q) - loss(p) - <loss'(p), q - p>."""
        return self.loss_value(q) - self.loss_value(p) - float(np.vdot(self.loss_gradient(p), q - p))

    def value(self, x: Array) -> float:
        """Value at x: one product with A, half a gradient."""
        return self.loss_value(self.A.forward(x)) + 0.5 * self.ridge * float(np.vdot(x, x))

    @property
    def one_pass(self) -> bool:
        """Whether A x and the gradient together are cheaper than one after the other."""
        return False

    @property
    def steps_in_one_pass(self) -> bool:
        """Whether a step of a method takes both at once, though it needs A x alone when it has to be repeated."""
        return self.one_pass

    def lift_and_gradient(self, x: Array, out: Array | None = None) -> tuple[Array, Array]:
        """A x and the gradient."""
        q = self.A.forward(x)
        gradient = self.A.adjoint(self.loss_gradient(q), out)
        gradient += self.ridge * x
        return q, gradient

    def value_and_gradient(self, x: Array, out: Array | None = None) -> tuple[float, Array]:
        q, gradient = self.lift_and_gradient(x, out)
        return self.loss_value(q) + 0.5 * self.ridge * float(np.vdot(x, x)), gradient


@final
class LinearModelLift(Lifted):
    """q = Ax: half a gradient; A^T is the other half."""

    lift_cost = gradient_cost = 0.5
    linear = True

    def __init__(self, f: LinearModel) -> None:
        self.f = f
        self.affine_gradient = f.quadratic

    def lift(self, x: Array) -> Array:
        return self.f.A.forward(x)

    @property
    def one_pass(self) -> bool:
        return self.f.steps_in_one_pass

    def lift_and_gradient(self, x: Array) -> tuple[Array, Array]:
        return self.f.lift_and_gradient(x)

    def blank(self, x: Array) -> Array:
        return zeros(self.f.A.y_shape, x)

    def gradient(self, x: Array, q: Array) -> Array:
        return self.f.A.adjoint(self.f.loss_gradient(q)) + self.f.ridge * x

    def value(self, x: Array, q: Array) -> float:
        return self.f.loss_value(q) + 0.5 * self.f.ridge * float(np.vdot(x, x))

    def bregman(self, x: Array, q: Array, v: Array, qv: Array, gradient: Array) -> float:
        step = x - v
        return self.f.loss_bregman(q, qv) + 0.5 * self.f.ridge * float(np.vdot(step, step))

    def hessian(self, q: Array) -> Callable[[Array], Array]:
        diagonal = self.f.loss_hessian(q)
        return lambda v: self.f.A.adjoint(diagonal * self.f.A.forward(v)) + self.f.ridge * v

    def hessian_stack(self, q: Array) -> Callable[[Array], Array]:
        diagonal, A = self.f.loss_hessian(q), self.f.A
        return lambda stack: A.gram_stack(stack, diagonal) + self.f.ridge * stack


@final
class QuadraticLift(Lifted):
    """q = f'(x): a whole gradient, after which all else is free."""

    lift_cost, gradient_cost, affine_gradient = 1.0, 0.0, True

    def __init__(self, f: Function, origin: Array) -> None:
        self.f = f
        self.constant, slope = f.value_and_gradient(origin)
        self.slope = frozen(slope)

    def lift(self, x: Array) -> Array:
        return self.f.gradient(x)

    def gradient(self, x: Array, q: Array) -> Array:
        return q

    def value(self, x: Array, q: Array) -> float:
        return self.constant + 0.5 * float(np.vdot(x, q + self.slope))

    def bregman(self, x: Array, q: Array, v: Array, qv: Array, gradient: Array) -> float:
        return 0.5 * float(np.vdot(x - v, q - qv))

    def hessian(self, q: Array) -> Callable[[Array], Array]:
        return self.f.hessian_product


@final
class PlainLift(Lifted):
    """No structure: the lift is x itself. A Bregman distance costs a value: half a gradient, or runs of own code."""

    lift_cost, gradient_cost, bregman_cost = 0.0, 1.0, 0.5
    has_hessian = False

    def __init__(self, f: Function) -> None:
        self.f = f
        self.own_code = f.own_code
        self._known: list[tuple[Array, float]] = []

    def run_cost(self, *points: Array) -> float:
        if not self.own_code:
            return 0.0
        new: list[Array] = []
        for x in points:
            # The same point twice is run once.
            if self._kept(x) is None and not any(other is x or np.array_equal(other, x) for other in new):
                new.append(x)
        return float(len(new))

    def lift(self, x: Array) -> Array:
        return x

    def gradient(self, x: Array, q: Array) -> Array:
        value, gradient = self.f.value_and_gradient(x)
        self._remember(x, value)
        return gradient

    def value(self, x: Array, q: Array) -> float:
        kept = self._kept(x)
        if kept is not None:
            return kept
        value = self.f.value(x)
        self._remember(x, value)
        return value

    def _kept(self, x: Array) -> float | None:
        return next((value for point, value in self._known if point is x or np.array_equal(point, x)), None)

    def bregman(self, x: Array, q: Array, v: Array, qv: Array, gradient: Array) -> float:
        # The older one first, before a new one takes its place.
        at_v = self.value(v, qv)
        return self.value(x, q) - at_v - float(np.vdot(gradient, x - v))

    def _remember(self, x: Array, value: float) -> None:
        self._known = [*self._known[-3:], (x.copy(), value)]


def lifted(f: Function, origin: Array) -> Lifted:
    """The cheapest lift that f allows; `origin` is any zero point of its shape.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> type(lifted(ss.functions.LeastSquares(np.eye(2), [1.0, 2.0]), np.zeros(2))).__name__
    'LinearModelLift'
    """
    if isinstance(f, LinearModel):
        return LinearModelLift(f)
    return QuadraticLift(f, np.zeros_like(origin)) if f.quadratic else PlainLift(f)
