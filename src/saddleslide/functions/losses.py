"""Data-fitting functions of A x: least squares, logistic loss, and counts behind an absorber."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cached_property
from typing import Any, final

import numpy as np
import scipy

from saddleslide.arrays.base import Array, Shape, as_number, as_pairs, as_real, frozen, inner_product, length_of
from saddleslide.domains.base import Domain
from saddleslide.domains.program import Program
from saddleslide.errors import InputError
from saddleslide.functions.base import Function
from saddleslide.functions.entrywise import SquaredDistance, as_weights
from saddleslide.functions.linear_model import LinearModel, Rows
from saddleslide.functions.roundings import EXACTLY, FEW, OWN_CODE, UNKNOWN, Rounding, inner_error
from saddleslide.operators.base import COMPLEX, Operator, is_own_code
from saddleslide.operators.complex import dtype_beside_complex, has_complex_values
from saddleslide.operators.explicit import Stored, as_operator
from saddleslide.operators.factor import Solvable, SymmetricMatrix, gram_matrix
from saddleslide.operators.sparse import read_sparse
from saddleslide.operators.spectrum import SMALL, summation_error
from saddleslide.theory.holder import Holder

# Largest number of columns for which the modulus is worth its cost wherever the domain ends.
_FACTORISE_COLUMNS = 400
# Beyond so many, singular values are asked for only where a factor shows no modulus.
_FEW = 16
# Gradients in the place of which a factor may be made, by operations.
_GRADIENTS_SAVED = 250
ROOT_2 = math.sqrt(2.0)
_NOTHING = (0.0, 0.0, 0.0)
# Arguments for which a short series gives exp(-u) - 1 + u.
_SMALL = 0.0625


@final
class LeastSquares(LinearModel):
    """1/2 |A x - b|^2 + ridge/2 |x|^2, the entries of A x - b squared with weights where there are any.

    Complex numbers in A or b make x complex, unless A takes real arrays (`as_operator(A, dtype=(float, complex))`); the
    arrays that it works on are then pairs of real numbers, of shape (*x_shape, 2), and gradients A^H (A x - b) too.

    Parameters
    ----------
    A : array, sparse matrix, LinearOperator, pair of callables, Operator or None
        The forward operator; None stands for the identity: a sum over entries, with a proximal step.
    b : array
        Data, of the shape of A x; real or complex.
    ridge : float, optional
        Weight of the quadratic term, >= 0.
    x_shape : tuple of int, optional
        Shape of x when it is an image, of complex numbers where x is complex; flat otherwise.
    weights : float or array, optional
        One for every entry of b, >= 0: 1 / variance of its noise.

    Examples
    --------
    >>> import numpy as np
    >>> LeastSquares(np.eye(2), [1.0, 0.0], ridge=1.0).value_and_gradient(np.array([1.0, 1.0]))
    (1.5, array([1., 2.]))
    >>> LeastSquares(None, [1.0, 0.0], weights=[4.0, 1.0]).value(np.array([0.0, 1.0]))
    2.5
    >>> import saddleslide as ss
    >>> ss.operators.to_complex(LeastSquares(np.array([[2.0j]]), [1.0 + 4.0j]).gradient(np.array([[1.0, 0.0]])))
    array([-4.+2.j])
    """

    quadratic = True
    is_sum_of_squares = True

    def __new__(cls, *args: Any, **settings: Any) -> Any:
        if (args and args[0] is None) or settings.get("A", ()) is None:
            return SquaredDistance(*args[1:], **{name: value for name, value in settings.items() if name != "A"})
        # Entries of x, each at most once, with or without a factor: a sum over entries too.
        return _squares_of_entries(*args, **settings) or super().__new__(cls, *args, **settings)

    def __init__(self, A: Any, b: Any, ridge: float = 0.0, x_shape: Shape | None = None, weights: Any = None) -> None:
        self.b, is_complex = as_pairs(b, "LeastSquares: b")
        rows = self.b.size * (2 if isinstance(A, Operator) else 1)
        if not is_complex and has_complex_values(A) and rows == A.shape[0]:
            # Real data of complex values; pairs are data too.
            self.b, is_complex = as_pairs(self.b.astype(np.complex128), "LeastSquares: b")
        if is_complex:
            # A real operator takes the real and the imaginary parts of a complex x.
            A = A.of_pairs() if isinstance(A, Operator) and A.y_dtype != COMPLEX else A
            A = as_operator(A, x_shape, self.b.shape[:-1], name="LeastSquares: A", dtype=dtype_beside_complex(A))
            x_shape = None
        self.weights = None if weights is None else as_weights(weights, self.b.shape, is_complex)
        super().__init__(A, self.b, ridge, x_shape)
        self.is_complex = self.A.x_dtype == COMPLEX

    def of_pairs(self) -> Function:
        if self.is_complex or self.A.y_dtype == COMPLEX:
            return super().of_pairs()
        return LeastSquares(self.A.of_pairs(), self.b.astype(np.complex128), self.ridge, weights=self.weights)

    @property
    def _heaviest(self) -> float:
        return 1.0 if self.weights is None else float(np.max(self.weights, initial=0.0))

    def _weigh(self, residual: Array) -> Array:
        return residual if self.weights is None else self.weights.reshape(residual.shape) * residual

    def loss_value(self, q: Array) -> float:
        residual = q - self.b.reshape(q.shape)
        return 0.5 * inner_product(residual, self._weigh(residual))

    def slopes(self, q: Array, data: Array) -> Array:
        return q - data

    def loss_gradient(self, q: Array) -> Array:
        return self._weigh(super().loss_gradient(q))

    def loss_slopes(self, rows: Rows, q: Array) -> Array:
        slopes = super().loss_slopes(rows, q)
        return slopes if self.weights is None else self.weights.ravel()[rows] * slopes

    def loss_hessian(self, q: Array) -> Array:
        return np.ones_like(q) if self.weights is None else self.weights.reshape(q.shape)

    def loss_bregman(self, q: Array, p: Array) -> float:
        step = q - p
        return 0.5 * inner_product(step, self._weigh(step))

    @property
    def one_pass(self) -> bool:
        return self.A.one_pass and self.weights is None

    def lift_and_gradient(self, x: Array, out: Array | None = None) -> tuple[Array, Array]:
        if not self.one_pass:
            return super().lift_and_gradient(x, out)
        q, gradient = self.A.there_and_back(x, self.b.reshape(self.A.y_shape))
        gradient = np.add(gradient, self.ridge * x, out=gradient if out is None else out)
        return q, gradient

    def hessian_product(self, v: Array) -> Array:
        return self.A.adjoint(self._weigh(self.A.forward(v))) + self.ridge * v

    def smoothness(self, domain: Domain) -> Holder:
        return Holder(1.0, self._heaviest * self.A.norm.upper**2 + self.ridge)

    def strong_convexity(self, domain: Domain) -> float:
        rows, columns = self.b.size, math.prod(self.A.x_shape)
        if rows < columns:
            return self.ridge
        small = columns <= SMALL and self.A.dense() is not None
        if small and (columns <= _FEW or self.hessian is None or not self.hessian.modulus > self.ridge):
            lightest = 1.0 if self.weights is None else float(np.min(self.weights))
            return self.ridge + lightest * self.A.smallest_singular_value().lower ** 2
        # A factor where no other bound is possible, or where it is cheap beside the gradients of a run.
        found = self.hessian if columns <= _FACTORISE_COLUMNS else self.hessian_factor(domain)
        return self.ridge if found is None else max(found.modulus, self.ridge)

    def certain_convexity(self, domain: Domain) -> float:
        # A matrix that a class of the caller's says it is has only been declared.
        return self.ridge if is_own_code(self.A) else self.strong_convexity(domain)

    @property
    def squared_residual(self) -> tuple[Operator, Array] | None:
        return (self.A, self.b) if self.weights is None else None

    @cached_property
    def hessian(self) -> Solvable | None:
        """The Hessian with its factors; None where the entries of A are not at hand, or too many."""
        if not isinstance(self.A, Stored) or is_own_code(self.A):
            return None
        return gram_matrix(self.A.entries, 1.0 if self.weights is None else self.weights, self.ridge)

    @property
    def gram(self) -> tuple[Any, Array] | None:
        if self.weights is not None or self.A.entries is None or self.b.size < math.prod(self.A.x_shape):
            return None
        found = self.hessian
        if not isinstance(found, SymmetricMatrix) or not isinstance(found.matrix, np.ndarray):
            return None
        whole = found.matrix.copy()
        whole.reshape(-1)[:: len(whole) + 1] -= self.ridge
        return self.A.entries, whole

    def as_program(self, size: int) -> Program | None:
        if not isinstance(self.A, Stored) or is_own_code(self.A) or self.is_complex:
            return None
        A, b = self.A.entries, self.b.ravel()
        if self.weights is not None:
            roots = np.sqrt(self.weights.ravel())
            A, b = A.multiply(roots[:, None]).tocsr() if scipy.sparse.issparse(A) else roots[:, None] * A, roots * b
        return replace(Program.on(size), quadratic=np.full(size, self.ridge), squares=((A, b),))

    def hessian_factor(self, domain: Domain) -> Solvable | None:
        """`hessian` where it is worth its cost, by sizes alone.

        Where minima have no other bound, that is wherever there is one; else where its operations, which run several
        times as fast as those of products, are those of no more gradients than a run takes.
        """
        rows, columns = self.b.size, math.prod(self.A.x_shape)
        if self.ridge == 0.0 and (rows < columns or domain.bounded):
            return None
        if self.ridge > 0.0:
            fewer = min(rows, columns)
            stored = self.A.entry_count if isinstance(self.A, Stored) else 0
            if stored * fewer + fewer**3 > 4 * _GRADIENTS_SAVED * stored:
                return None
        return self.hessian

    @property
    def is_proximable(self) -> bool:
        """No: whether a factor pays as a proximal step is for a plan to say, see `has_factor`."""
        return False

    @property
    def has_factor(self) -> bool:
        """Whether `prox` can be had."""
        return self.hessian is not None

    def prox(self, center: Array, step: Array | float) -> Array:
        """The point that minimises f(x) + |x - center|^2 / (2 step), by a factor.

        Examples
        --------
        >>> import numpy as np
        >>> LeastSquares(np.eye(2), [1.0, 3.0]).prox(np.array([3.0, 3.0]), 1.0).round(12).tolist()
        [2.0, 3.0]
        """
        if self.hessian is None:
            raise InputError(
                f"{self!r}: has no proximal step; expected A as a matrix of at most 3,000 columns or rows."
            )
        return self.hessian.solve(center / step + self._pull.reshape(center.shape), 1.0 / float(step))

    @cached_property
    def _pull(self) -> Array:
        """A^T b with the weights: minus the gradient at 0."""
        return frozen(self.A.adjoint(self._weigh(self.b).reshape(self.A.y_shape)))

    @cached_property
    def error_model(self) -> Rounding:
        """The residual is off by |d| <= c |x| + eps |r|: the value by |d| |r| + |d|^2 / 2, the gradient by |A| |d|."""
        # Weights are rows of A and entries of b times their roots.
        root, (error, norm) = math.sqrt(self._heaviest), self.product_sizes
        error, norm, data = root * error, root * norm, root * length_of(self.b)
        if math.isnan(norm):
            # |A x| is at most |b| + |r|, and what one rounding of it can do is known.
            wrong = summation_error(max(math.prod(self.A.x_shape), self.b.size))
            off = root * self.A.adjoint_test.bound
            turned = (0.0, ROOT_2 * off, 0.0)
            value = ((wrong**2 * data**2, ROOT_2 * wrong * data, 4.0 * wrong), turned, (off**2, 0.0, 0.0))
            return replace(OWN_CODE, value=value, gradient=(turned, *EXACTLY[1:]), floor=_NOTHING)
        steep = ROOT_2 * (FEW * norm + error + FEW * math.sqrt(self.ridge))
        return Rounding(
            value=((0.0, 0.0, inner_error(self.b.size) + FEW), (0.0, ROOT_2 * error, 0.0), (error**2, 0.0, 0.0)),
            gradient=((0.0, steep, 0.0), (norm * error, 0.0, 0.0), EXACTLY[2]),
            most=(data**2, 0.0, norm**2) if self.ridge == 0.0 else UNKNOWN,
            beside=(data**2, 0.0, norm**2 + 0.5 * self.ridge),
        )


def _squares_of_entries(
    A: Any = None, b: Any = None, ridge: float = 0.0, x_shape: Shape | None = None, weights: Any = None, **others: Any
) -> SquaredDistance | None:
    """1/2 |A x - b|^2 where each row of a sparse A has one entry, and each column one at most; None elsewhere."""
    is_plain = scipy.sparse.issparse(A) and A.format in ("csr", "csc", "coo") and isinstance(b, np.ndarray)
    # A copy is made without arguments, and what is no argument is refused by the class itself.
    if others or not is_plain or np.shape(A.data) != b.shape or b.shape != A.shape[:1] or len(A.shape) != 2:
        return None
    if A.dtype.kind not in "fiu" or b.dtype.kind not in "fiu":
        return None
    if x_shape is not None and math.prod(np.atleast_1d(x_shape).tolist()) != A.shape[1]:
        return None
    rows = read_sparse(A, "LeastSquares: A")
    columns, factors = rows.indices, rows.data
    alone = np.all(np.diff(rows.indptr) == 1) and np.unique(columns).size == columns.size
    if not (alone and np.all(factors != 0.0)):
        return None
    heavy, target = np.zeros(A.shape[1]), np.zeros(A.shape[1])
    heavy[columns] = np.square(factors) * (1.0 if weights is None else as_weights(weights, b.shape))
    target[columns] = as_real(b, "LeastSquares: b") / factors
    return SquaredDistance(target, ridge, (A.shape[1],) if x_shape is None else x_shape, heavy)


def _doubt(margins: Array) -> Array:
    """1 / (1 + exp(margin)), without overflow for large margins of either sign."""
    decay = np.exp(-np.abs(margins))
    doubt: Array = np.where(margins >= 0, decay, 1.0) / (1.0 + decay)
    return doubt


@final
class Logistic(LinearModel):
    """sum_i log(1 + exp(-label_i (A x)_i)) + ridge/2 |x|^2.

    Parameters
    ----------
    A : array, sparse matrix, LinearOperator, pair of callables or Operator
        One row per sample.
    labels : array
        -1 and 1 (or 0 and 1), one per row.
    ridge : float, optional
        Weight of the quadratic term, >= 0.

    Examples
    --------
    >>> import numpy as np
    >>> round(Logistic(np.eye(2), [1, -1]).value(np.zeros(2)), 6)
    1.386294
    """

    def __init__(self, A: Any, labels: Any, ridge: float = 0.0, x_shape: Shape | None = None) -> None:
        labels = as_real(labels, "Logistic: labels")
        kinds = set(np.unique(labels).tolist())
        if not (kinds <= {-1.0, 1.0} or kinds <= {0.0, 1.0}):
            raise InputError(f"Logistic: labels take the values {sorted(kinds)[:5]}; expected -1 and 1, or 0 and 1.")
        self.labels = labels if -1.0 in kinds or kinds == {1.0} else frozen(2.0 * labels - 1.0)
        super().__init__(A, self.labels, ridge, x_shape)

    def loss_value(self, q: Array) -> float:
        return float(np.sum(np.logaddexp(0.0, -(self.labels * q.reshape(self.labels.shape)))))

    def slopes(self, q: Array, data: Array) -> Array:
        return data * -_doubt(data * q)

    def loss_hessian(self, q: Array) -> Array:
        doubt = _doubt(self.labels * q.reshape(self.labels.shape))
        return (doubt * (1.0 - doubt)).reshape(q.shape)

    def smoothness(self, domain: Domain) -> Holder:
        return Holder(1.0, self.A.norm.upper**2 / 4.0 + self.ridge)

    @cached_property
    def error_model(self) -> Rounding:
        """Slopes lie in [-1, 1], and their squares are at most the losses: |loss'(q)|^2 <= loss(q)."""
        error, norm = self.product_sizes
        rows = self.labels.size
        if math.isnan(norm):
            off = self.A.adjoint_test.bound
            slopes = (0.0, off, 0.0)
            value = (_NOTHING, slopes, (off**2, 0.0, 0.0))
            return replace(OWN_CODE, value=value, gradient=(slopes, *EXACTLY[1:]), floor=_NOTHING)
        steep = FEW * norm + error + FEW * math.sqrt(2.0 * self.ridge)
        return Rounding(
            value=((0.0, 0.0, FEW), (0.0, error, 0.0), (error**2, 0.0, 0.0)),
            gradient=((0.0, steep, 0.0), (0.25 * norm * error, 0.0, 0.0), EXACTLY[2]),
            most=(rows, math.sqrt(rows) * norm, 0.0) if self.ridge == 0.0 else UNKNOWN,
            beside=(rows, math.sqrt(rows) * norm, 0.5 * self.ridge),
        )


@final
class PoissonTransmission(LinearModel):
    """Counts behind an absorber: scale * sum_i [I exp(-k (Ax)_i) + c_i k (Ax)_i] + ridge/2 |x|^2.

    The negative log-likelihood of counts c_i ~ Poisson(I exp(-k (Ax)_i)), scaled by 1 / (I k^2) so that its curvature
    is that of least squares where (Ax)_i = 0.

    Parameters
    ----------
    A : array, sparse matrix, LinearOperator, pair of callables or Operator
        Line integrals of x.
    counts : array
        Counts, >= 0, one per row.
    intensity, attenuation : float
        I and k, > 0.
    ridge : float, optional
        Weight of the quadratic term, >= 0.

    Examples
    --------
    >>> import numpy as np
    >>> f = PoissonTransmission(np.eye(2), [10.0, 5.0], intensity=10.0, attenuation=1.0)
    >>> f.gradient(np.zeros(2))
    array([ 0. , -0.5])
    """

    def __init__(
        self,
        A: Any,
        counts: Any,
        intensity: float,
        attenuation: float,
        ridge: float = 0.0,
        x_shape: Shape | None = None,
    ) -> None:
        self.counts = as_real(counts, "PoissonTransmission: counts")
        if (self.counts < 0).any():
            raise InputError(f"PoissonTransmission: counts has a negative entry {self.counts.min():g}; expected >= 0.")
        self.intensity = as_number(intensity, "PoissonTransmission: intensity", 0.0)
        self.attenuation = as_number(attenuation, "PoissonTransmission: attenuation", 0.0)
        if min(self.intensity, self.attenuation) == 0.0:
            raise InputError("PoissonTransmission: intensity or attenuation is 0; expected numbers > 0.")
        super().__init__(A, self.counts, ridge, x_shape)
        self.scale = 1.0 / (self.intensity * self.attenuation**2)

    def loss_value(self, q: Array) -> float:
        depth = self.attenuation * q
        return self.scale * float(np.sum(self.intensity * np.exp(-depth) + self.counts.reshape(q.shape) * depth))

    def slopes(self, q: Array, data: Array) -> Array:
        expected = self.intensity * np.exp(-self.attenuation * q)
        return self.scale * self.attenuation * (data - expected)

    def loss_hessian(self, q: Array) -> Array:
        return np.exp(-self.attenuation * q)

    def loss_bregman(self, q: Array, p: Array) -> float:
        u = self.attenuation * (q - p)
        return self.scale * self.intensity * float(np.sum(np.exp(-self.attenuation * p) * _beyond_linear(u)))

    def exponent(self, domain: Domain) -> float:
        if not domain.bounded:
            raise InputError("PoissonTransmission: its curvature is unbounded on this domain; expected a bounded one.")
        return 1.0

    def smoothness(self, domain: Domain) -> Holder:
        """The curvature where the line integrals are most negative on the domain; needs a bounded one."""
        largest = self.attenuation * (self.A.norm.upper * domain.radius_at_zero)
        if not largest < 600.0:
            raise InputError(
                "PoissonTransmission: its curvature is unbounded on this domain. Bound x (a box or a ball of radius "
                f"below {600.0 / (self.attenuation * max(self.A.norm.upper, 1e-300)):.3g}), or let solve() estimate it."
            )
        return Holder(1.0, self.A.norm.upper**2 * float(np.exp(largest)) + self.ridge)

    @cached_property
    def error_model(self) -> Rounding:
        """With E the sum of scale I exp(-k q_i) <= v: |loss'| <= k (scale |c| + E), and loss'' <= k^2 E."""
        (error, norm), k = self.product_sizes, self.attenuation
        counts = self.scale * length_of(self.counts)
        if math.isnan(norm):
            off = k * self.A.adjoint_test.bound
            slopes = (counts * off, 0.0, off)
            return replace(OWN_CODE, value=(_NOTHING, slopes, (0.0, 0.0, off**2)), gradient=(slopes, *EXACTLY[1:]))
        wrong, bent = FEW * norm + error, FEW * math.sqrt(2.0 * self.ridge)
        moved = (k * counts * error, 0.0, FEW * k * norm + k * error)
        return Rounding(
            value=((0.0, 0.0, FEW), moved, (0.0, 0.0, (k * error) ** 2)),
            gradient=((k * counts * wrong, bent, k * wrong), (0.0, 0.0, k * k * norm * wrong), EXACTLY[2]),
            floor=(0.0, k * counts * norm, 0.0),
        )


def _beyond_linear(u: Array) -> Array:
    """exp(-u) - 1 + u, to the last digits for small u too."""
    small = np.abs(u) <= _SMALL
    if not small.all():
        # Without the series, the difference would lose all digits for small u.
        return np.where(small, _beyond_linear(np.where(small, u, 0.0)), np.expm1(-u) + u)
    # u^2/2 (1 - u/3 (1 - u/4 (...))): at |u| = 1/16 the first term left out is below rounding.
    series = 1.0 - u / 10.0
    for k in range(9, 2, -1):
        series = series * u * (-1.0 / k) + 1.0
    return series * u * u * 0.5
