"""1/2 <x, q x> with q a number, a diagonal, a matrix or an operator."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property, partial
from typing import Any, final

import numpy as np
import scipy

from saddleslide.arrays.arguments import as_flag
from saddleslide.arrays.base import Array, Shape, as_number, as_real, frozen, inner_product, length_of, on_host
from saddleslide.arrays.kinds import ArrayKind
from saddleslide.domains.base import Domain
from saddleslide.domains.program import Program
from saddleslide.errors import InputError
from saddleslide.functions.base import Function, on_pairs
from saddleslide.functions.roundings import EXACTLY, FEW, OWN_CODE, Errors, Rounding, inner_error
from saddleslide.functions.separable import SeparableForm
from saddleslide.operators.adjoint_test import AdjointTest, adjoint_test_from, sign_vector
from saddleslide.operators.base import COMPLEX, Operator, is_own_code
from saddleslide.operators.explicit import Matrix, Stored, as_operator
from saddleslide.operators.factor import Solvable, SymmetricMatrix
from saddleslide.operators.spectrum import FACTORISABLE, margin_of_rounding, summation_error
from saddleslide.theory.holder import Holder
from saddleslide.watcher import made


@final
class Quadratic(Function):
    """1/2 <x, q x>, convex.

    Parameters
    ----------
    q : float, vector, matrix, sparse matrix, LinearOperator or Operator
        A number or a vector is a diagonal, a 2-D array is a matrix. For the diagonal of an image pass `diagonal=True`.
        Matrices and operators must be symmetric and positive semidefinite; those at hand as arrays are checked.
    diagonal : bool, optional
        Read a 2-D array as the diagonal of an image instead of a matrix.
    strong_convexity : float, optional
        A lower bound on the spectrum of an operator whose entries are not at hand, or too many to factorise: beyond
        3,000 columns, or as many entries in a band.
    x_shape : tuple of int, optional
        Shape of x, for an operator on images and for a pair of callables.

    Examples
    --------
    >>> import numpy as np
    >>> Quadratic([1.0, 4.0]).gradient(np.array([1.0, 1.0]))
    array([1., 4.])
    >>> Quadratic(np.array([[2.0, 1.0], [1.0, 2.0]])).value(np.array([1.0, 1.0]))
    3.0
    """

    quadratic = True

    def __init__(
        self, q: Any, diagonal: bool = False, strong_convexity: float | None = None, x_shape: Shape | None = None
    ) -> None:
        declared = 0.0 if strong_convexity is None else as_number(strong_convexity, "Quadratic: strong_convexity", 0.0)
        diagonal = as_flag(diagonal, "Quadratic: diagonal")
        self._diagonal: Array | None = None
        self._operator: Operator | None = None
        self._declared = self._skewness = 0.0
        is_plain = not (scipy.sparse.issparse(q) or hasattr(q, "matvec") or isinstance(q, Operator | tuple))
        if is_plain and (diagonal or np.ndim(q) != 2):
            self._diagonal = given = as_real(q, "Quadratic: q")
            if (given < 0).any():
                raise InputError(
                    f"Quadratic: q has a negative entry {given.min():g}; expected q >= 0 (a convex function)."
                )
            self.separable, self.shape = True, given.shape or None
            smallest = float(np.min(given, initial=math.inf)) if given.size else 0.0
            self._range = smallest, float(np.max(given, initial=0.0))
        else:
            self._operator = as_operator(q, x_shape, x_shape, name="Quadratic: q")
            self._declared, self.shape = declared, self._operator.x_shape
            self.is_complex = self._operator.x_dtype == COMPLEX
            self._range, self._skewness = _spectral_range(self._operator, declared)

    def __repr__(self) -> str:
        kind = "diagonal" if self._operator is None else "operator"
        return f"Quadratic({kind}, {'any shape' if self.shape is None else self.shape})"

    def of_pairs(self) -> Function:
        if self.is_complex or self._diagonal is None:
            return super().of_pairs()
        return on_pairs(Quadratic(np.repeat(self._diagonal[..., None], 2, -1) if self.shape else self._diagonal, True))

    def separable_form(self) -> SeparableForm | None:
        if self._diagonal is None:
            return None
        return SeparableForm(quadratic=self._diagonal if self._diagonal.ndim else float(self._diagonal))

    @property
    def _runs_own_code(self) -> bool:
        return self._operator is not None and is_own_code(self._operator)

    @property
    def value_cost(self) -> float:
        return 1.0 if self._runs_own_code else 0.0

    @property
    def lone_value_cost(self) -> float:
        return 1.0 if self._runs_own_code else 0.5

    @property
    def operators(self) -> tuple[tuple[Operator, float], ...]:
        return () if self._operator is None else ((self._operator, 1.0),)

    def stays_on_host(self, kind: ArrayKind) -> tuple[str, ...]:
        return () if self._operator is None else self._operator.stays_on_host(kind)

    def hessian_product(self, v: Array) -> Array:
        return self.gradient(v)

    def hessian_diagonal(self, shape: Shape) -> Array | None:
        if isinstance(self._operator, Stored):
            return np.asarray(self._operator.entries.diagonal())
        return super().hessian_diagonal(shape)

    def gradient(self, x: Array, out: Array | None = None) -> Array:
        if self._operator is not None:
            return self._operator.forward(x, out)
        assert self._diagonal is not None
        return np.multiply(self._diagonal, x, out=out)

    def value_and_gradient(self, x: Array, out: Array | None = None) -> tuple[float, Array]:
        gradient = self.gradient(x, out)
        return 0.5 * inner_product(x, gradient), gradient

    def smoothness(self, domain: Domain) -> Holder:
        if self._operator is not None and math.isnan(self._range[1]):
            return Holder(1.0, self._operator.norm.upper)
        return Holder(1.0, self._range[1])

    def strong_convexity(self, domain: Domain) -> float:
        return max(self._least_eigenvalue(domain), self._declared)

    def _least_eigenvalue(self, domain: Domain) -> float:
        """From the eigenvalues of a small matrix; of a larger one by a factor, where nothing else bounds minima."""
        if not math.isnan(self._range[1]) or domain.bounded:
            return self._range[0]
        return 0.0 if self.hessian is None else self.hessian.modulus

    @cached_property
    def hessian(self) -> Solvable | None:
        """The matrix with its factors; None where its entries are not at hand, or too many."""
        if not isinstance(self._operator, Stored) or self._runs_own_code:
            return None
        found = SymmetricMatrix.of(self._operator.entries, 2.0 * self._skewness)
        if found is not None and self._range[0] > 0.0:
            # Known from the eigenvalues.
            found.__dict__["modulus"] = self._range[0]
        return found

    def as_program(self, size: int) -> Program | None:
        if self._operator is None:
            return super().as_program(size)
        if not isinstance(self._operator, Stored) or self.convex_on_trust or self.is_complex:
            return None
        # A root of the matrix: 1/2 <x, q x> = |R x|^2 / 2.
        matrix = self._operator.dense()
        assert matrix is not None
        if self._range[0] > 0.0:
            root = np.linalg.cholesky(matrix).T
        else:
            values, vectors = scipy.linalg.eigh(matrix)
            kept = values > margin_of_rounding(size) * max(float(values[-1]), 0.0)
            root = np.sqrt(values[kept])[:, None] * vectors[:, kept].T
        return replace(Program.on(size), squares=((root, np.zeros(len(root))),))

    def hessian_factor(self, domain: Domain) -> Solvable | None:
        """`hessian`, where that is worth its cost."""
        return self.hessian

    @property
    def is_proximable(self) -> bool:
        """Entry by entry alone: whether a factor pays as a proximal step is for a plan to say, see `has_factor`."""
        return self._diagonal is not None

    @property
    def has_factor(self) -> bool:
        """Whether `prox` can be had."""
        return self._diagonal is not None or self.hessian is not None

    def prox(self, center: Array, step: Array | float) -> Array:
        """The point that minimises f(x) + |x - center|^2 / (2 step), entry by entry or by a factor.

        Examples
        --------
        >>> import numpy as np
        >>> Quadratic(np.array([[2.0, 1.0], [1.0, 2.0]])).prox(np.array([4.0, 4.0]), 1.0).round(12).tolist()
        [1.0, 1.0]
        """
        if self._diagonal is not None:
            return center / (1.0 + step * self._diagonal)
        if self.hessian is None:
            raise InputError(f"{self!r}: has no proximal step; expected a matrix of at most 3,000 columns.")
        return self.hessian.solve(center / step, 1.0 / float(step))

    @property
    def convex_on_trust(self) -> bool:
        # Of what was not factorised nobody knows the signs of the eigenvalues.
        return self._operator is not None and (math.isnan(self._range[1]) or self._runs_own_code)

    @cached_property
    def symmetry_test(self) -> AdjointTest:
        """What one seeded pair says of an operator that is not at hand as entries: two products, once."""
        operator = self._operator
        if operator is None or not self.convex_on_trust or isinstance(operator, Matrix):
            return AdjointTest(0.0, 0.0)
        x, y = sign_vector(operator.x_shape), np.random.default_rng(1).standard_normal(operator.x_shape)
        qx, qy = (made(operator, partial(operator.forward, point)) for point in (x, y))
        return adjoint_test_from(x, qx, y, qy)

    @property
    def matrix_test(self) -> Callable[[], AdjointTest]:
        return lambda: self.symmetry_test

    def certain_convexity(self, domain: Domain) -> float:
        # A matrix that a class of the caller's says it is has only been declared.
        return 0.0 if self._runs_own_code else self._least_eigenvalue(domain)

    @cached_property
    def error_model(self) -> Rounding:
        largest = self._range[1]
        if self._diagonal is not None:
            # No term is negative, so that the value is their size.
            steep = FEW * math.sqrt(2.0 * largest)
            return Rounding(gradient=((0.0, steep, 0.0), *EXACTLY[1:]), most=(0.0, 0.0, 0.5 * largest))
        assert self._operator is not None
        if not (self._operator.norm_at_hand or math.isfinite(largest)):
            # No product is made to learn how large they are.
            skew = 0.5 * self.symmetry_test.bound
            return replace(OWN_CODE, gradient=(EXACTLY[0], (skew, 0.0, 0.0), EXACTLY[2]), floor=(0.0, 0.0, 0.0))
        largest = self._operator.size_bound if math.isnan(largest) else largest
        skew = self._skewness + 0.5 * self.symmetry_test.bound
        error, size = self._operator.bound_rounding(1.0, largest), math.prod(self._operator.x_shape)
        value = 0.5 * (error + inner_error(size) * largest)
        return Rounding(
            value=(*EXACTLY[:2], (value, 0.0, 0.0)),
            gradient=(EXACTLY[0], (error + FEW * largest + skew, 0.0, 0.0), EXACTLY[2]),
            most=(0.0, 0.0, 0.5 * largest),
        )

    def entrywise_errors(self, x: Array) -> Errors | None:
        """Of a semidefinite q, |q_ij| <= r_i r_j with r the roots of its diagonal: <|x|, |q| |x|> <= <r, |x|>^2."""
        if self._diagonal is not None:
            return super().entrywise_errors(x)
        roots = self._roots
        if roots is None or not on_host(x):
            return None
        seen = inner_product(roots, np.abs(x).ravel())
        error = summation_error(x.size) + inner_error(x.size) + FEW
        skew = self._skewness * length_of(x)
        return Errors(error * seen * seen, error * seen * length_of(roots) + skew)

    @cached_property
    def _roots(self) -> Array | None:
        """Roots of the diagonal of a matrix that was factorised, and so is known to be semidefinite."""
        if not isinstance(self._operator, Matrix) or max(self._operator.matrix.shape) > FACTORISABLE:
            return None
        # Up to rounding of the smallest eigenvalue, below which the matrix may be indefinite.
        below = 0.0 if self._range[0] > 0.0 else margin_of_rounding(math.prod(self._operator.x_shape)) * self._range[1]
        return frozen(np.sqrt(np.maximum(np.asarray(self._operator.matrix.diagonal()), 0.0) + below))


def _spectral_range(operator: Operator, declared: float) -> tuple[tuple[float, float], float]:
    """Bounds on the spectrum of q, and one on half the norm of q - q^T, where the entries are at hand.

    Rounding of whoever made the matrix: the gradient of 1/2 <x, q x> is that of the symmetric part.
    """
    if operator.x_shape != operator.y_shape:
        raise InputError(f"Quadratic: q maps {operator.x_shape} to {operator.y_shape}; expected a square operator.")
    skewness = 0.0
    if isinstance(operator, Matrix) and not operator.is_symmetric:
        # The norm of a symmetric matrix is at most its largest row sum.
        apart = abs(operator.matrix - operator.matrix.T)
        skewness = 0.5 * float(np.max(np.asarray(apart.sum(axis=0)), initial=0.0))
        if float(apart.max()) > 1e-12 * float(abs(operator.matrix).max()):
            raise InputError("Quadratic: q is not symmetric; expected a symmetric matrix. Pass (q + q.T) / 2.")
    matrix = operator.dense() if math.prod(operator.x_shape) <= FACTORISABLE else None
    if matrix is None:
        # Its norm takes products, so it is bounded when somebody asks.
        return (0.0, math.nan), skewness
    scale = float(np.max(np.abs(matrix), initial=0.0))
    if float(np.max(np.abs(matrix - matrix.T), initial=0.0)) > 1e-12 * scale:
        raise InputError("Quadratic: q is not symmetric; expected a symmetric matrix. Pass (q + q.T) / 2.")
    values = scipy.linalg.eigvalsh(matrix)
    # Of q half the entries are looked at, so that what is not symmetric counts twice.
    error = margin_of_rounding(len(values)) * float(np.abs(values).max()) + 2.0 * skewness
    if values[0] < -error:
        raise InputError(f"Quadratic: q has the eigenvalue {values[0]:g}; expected a positive semidefinite matrix.")
    if declared > values[0] + error:
        raise InputError(
            f"Quadratic: strong_convexity is {declared:g}, but q has the eigenvalue {values[0]:g}; expected at most "
            "that. Leave it out: it is computed."
        )
    return (max(float(values[0]) - error, 0.0), max(float(values[-1]) + error, 0.0)), skewness
