"""Minimise f(x) subject to A x = b, G x <= h, x in X.

Multipliers of equations alone live in a ball that is checked afterwards; with inequalities they have their whole cone.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, final

import numpy as np
import scipy

import saddleslide as ss
from saddleslide.arrays.base import Array, Shape, as_number, as_real
from saddleslide.certificates.rays import excludes
from saddleslide.certificates.verdict import Status
from saddleslide.domains.base import Domain
from saddleslide.domains.entrywise import FullSpace, NonNegative
from saddleslide.domains.norms import Ball
from saddleslide.domains.product import Product
from saddleslide.errors import InputError, raise_all
from saddleslide.functions.base import Function
from saddleslide.functions.entrywise import Linear
from saddleslide.gallery.solution import Fact, ResultArray, Solution, keep_kind
from saddleslide.operators.base import Mirrored, Operator
from saddleslide.operators.explicit import as_operator
from saddleslide.operators.stacks import Stack
from saddleslide.plots import STYLES
from saddleslide.problem import Enclosure, SaddleProblem

# The ball of multipliers is this many times a first guess of their norm.
_ROOM = 10.0
# b counts as outside the range of A when its distance is above, and the normal equations hold to, these parts.
_OUTSIDE, _NORMAL = 1e-7, 1e-7
# A row of G holds with equality to this part of its terms.
_TIGHT = 1e-3


@final
@dataclass(frozen=True, eq=False, repr=False)
class ConstrainedSolution(Solution):
    """Minimiser, multipliers and feasibility of a linearly constrained problem.

    Examples
    --------
    >>> import saddleslide as ss
    >>> problem = ss.gallery.constrained(ss.functions.Quadratic([1.0, 2.0]), [[1.0, 1.0]], [3.0])
    >>> solution = problem.read(ss.solve(problem, tol=1e-9))
    >>> solution.x.round(5), solution.multipliers.round(5), solution.inside
    (array([2., 1.]), array([-2.]), True)
    """

    f: Function
    # Equations first, then inequalities, one below the other.
    A: Operator
    b: Array
    equations: int
    X: Domain
    around: Enclosure | None
    result: ss.Result
    x = ResultArray("x", "The minimiser; f(x) exceeds the minimum by at most the gap, whatever the multipliers' bound.")
    multipliers = ResultArray(
        "y", "The y with grad f(x) + A^T y = 0 where X is not active; G below A where it is given."
    )

    @property
    def inequality_multipliers(self) -> Array:
        """The multipliers of G x <= h, all >= 0: 0 where the inequality is slack."""
        return self.multipliers.ravel()[self.equations :]

    @property
    def bound(self) -> float:
        """Radius of the ball of multipliers; infinite where they have their whole cone."""
        return np.inf if self.around is None else self.around.radius

    @property
    def violation(self) -> Array:
        """A x - b, and what of G x - h is positive."""
        miss = (self.A.forward(self.x) - self.b).ravel()
        miss[self.equations :] = np.maximum(miss[self.equations :], 0.0)
        return miss.reshape(self.b.shape)

    @property
    def objective(self) -> float:
        """f(x)."""
        return self.f.value(self.x)

    @property
    def residual(self) -> float:
        """|A x - b|, with what of G x - h is positive."""
        return float(np.linalg.norm(self.violation))

    @property
    def inside(self) -> bool:
        """Whether the multipliers stayed away from their bound; if not, A x = b was not enforced."""
        return self.around is None or self.around.holds(self.multipliers)

    @property
    def infeasible(self) -> bool:
        """Whether a hyperplane proves that no x in X satisfies the constraints."""
        directions = self.multipliers, self.violation
        return any(excludes(self.A, self.b, self.X, one, self.A.adjoint(one)) for one in directions)

    @property
    def verdict(self) -> str:
        """Feasibility in a sentence."""
        both = [("A x = b", "b")] * (self.equations > 0) + [("G x <= h", "h")] * (self.b.size > self.equations)
        said, sides = (", ".join(words) for words in zip(*both, strict=True))
        if self.result.status is Status.INFEASIBLE:
            return self.result.message
        if self.infeasible:
            return f"No x in X has {said}: a separating hyperplane proves it. Check {sides} and X."
        if not self.inside:
            return (
                f"The multipliers reached their bound {self.bound:.3g}, so A x = b was not enforced. "
                "Pass a larger bound=; if the residual stays, no x in X has A x = b."
            )
        return f"{said} holds to {self.residual:.1e}."

    @property
    def _active(self) -> int:
        """Rows of G that hold with equality, to a part of their terms, and have a multiplier.

        Interior points leave a small one to every row.
        """
        image, h = self.A.forward(self.x).ravel()[self.equations :], self.b.ravel()[self.equations :]
        is_tight = h - image <= _TIGHT * (np.abs(image) + np.abs(h))
        return int(np.count_nonzero(is_tight & (self.inequality_multipliers.ravel() > 0.0)))

    def facts(self) -> dict[str, Fact]:
        return {
            "objective": self.objective,
            "minimum at least": self.result.lower,
            "residual |Ax - b|" if self.equations == self.b.size else "residual of the constraints": self.residual,
            "norm of the multipliers": float(np.linalg.norm(self.multipliers)),
            **({} if self.around is None else {"bound on the multipliers": self.bound}),
            **({} if self.equations == self.b.size else {"active inequalities": self._active}),
            "feasibility": self.verdict,
        }

    def draw(self, figure: Any) -> None:
        axes = figure.subplots(1, 2, width_ratios=(2.0, 1.0))
        for ax, (name, values), style in zip(axes, self.arrays().items(), STYLES[:2], strict=True):
            ax.bar(np.arange(values.size), values.ravel(), color=style[0], width=0.85)
            ax.axhline(0.0, color="0.35", linewidth=0.8)
            ax.set(xlabel="entry", title=name)
        figure.suptitle(f"f(x) = {self.objective:.6g}, residual {self.residual:.1e}")


@keep_kind
def constrained(
    f: Function, A: Any = None, b: Any = None, *, G: Any = None, h: Any = None, X: Domain | None = None,
    bound: float | None = None,
) -> SaddleProblem[ConstrainedSolution]:  # fmt: skip
    """Minimise f(x) over x in X with A x = b and G x <= h: max over y of f(x) + <y, A x - b> inside, and so for G.

    Parameters
    ----------
    f : Function
        Convex; the gap can be certified when f is strongly convex or X bounded.
    A, b : matrix, sparse matrix, LinearOperator, Operator; array
        The equations. Redundant rows are allowed.
    G, h : matrix, sparse matrix, LinearOperator, Operator; array
        The inequalities G x <= h; their multipliers are >= 0.
    X : Domain, optional
        Further constraints on x; the full space when missing.
    bound : float, optional
        Radius of the ball of multipliers of equations. By default ten times a first guess of their norm; the solution
        says whether it was large enough. With inequalities there is no ball: multipliers have their whole cone.

    Returns
    -------
    SaddleProblem
        `problem.read(result)` is a ConstrainedSolution.

    Examples
    --------
    >>> import saddleslide as ss
    >>> constrained(ss.functions.Quadratic(1.0), [[1.0, 0.0], [1.0, 0.0]], [1.0, 2.0])
    Traceback (most recent call last):
    ...
    saddleslide.errors.InputError: constrained: b is 0.71 away from the range of A; expected a b that some A x equals...
    >>> problem = constrained(ss.functions.Quadratic(1.0), G=[[-1.0, -1.0]], h=[-2.0])
    >>> problem.read(ss.solve(problem, tol=1e-9)).x.round(4)
    array([1., 1.])
    """
    pairs = ("A and b", A, b), ("G and h", G, h)
    wrong = [f"one of {pair} is missing; expected both or none." for pair, M, v in pairs if (M is None) != (v is None)]
    if A is None and G is None:
        wrong.append("neither A nor G is given; expected A and b, G and h, or both.")
    if bound is not None and G is not None:
        wrong.append(f"bound is {bound!r} and G is given; expected a bound for equations alone.")
    raise_all("constrained", wrong)
    if G is not None:
        return _with_inequalities(f, [] if A is None else [("A", A, "b", b)], ("G", G, "h", h), X)
    target = as_real(b, "constrained: b")
    B = as_operator(A, None if X is None else X.shape, target.shape, name="constrained: A")
    target = target.reshape(B.y_shape)
    _check_objective(f, B.x_shape)
    X = FullSpace(B.x_shape) if X is None else X
    # The shortest x with A x = b, as far as there is one.
    near = _least_squares(B, target)
    miss = target - B.forward(near)
    distance, normal = float(np.linalg.norm(miss)), float(np.linalg.norm(B.adjoint(miss)))
    if distance > _OUTSIDE * float(np.linalg.norm(target)) and normal <= _NORMAL * B.norm.upper * distance:
        raise InputError(
            f"constrained: b is {distance:.2g} away from the range of A; expected a b that some A x equals. "
            "Check for contradicting rows, or fit in the least-squares sense with ss.functions.LeastSquares."
        )
    R = multiplier_guess(f, B, X.project(near)) if bound is None else as_number(bound, "constrained: bound", 0.0)
    around = Enclosure(R, "the multipliers", "A x = b", target)
    reader = partial(ConstrainedSolution, f, B, target, target.size, X, around)
    return SaddleProblem(f=f, g=Linear(target), B=B, X=X, Y=Ball(R, B.y_shape), reader=reader, enclosure=around)


def _check_objective(f: Any, shape: Shape) -> None:
    if not isinstance(f, Function):
        raise InputError(f"constrained: f is {type(f).__name__}; expected a function from ss.functions.")
    if f.shape is not None and f.shape != shape:
        shapes = f"f takes arrays of shape {f.shape}, A of shape {shape}"
        raise InputError(f"constrained: {shapes}; expected equal shapes.")


def _with_inequalities(
    f: Function, equations: list[tuple[str, Any, str, Any]], last: tuple[str, Any, str, Any], X: Domain | None
) -> SaddleProblem[ConstrainedSolution]:
    """The problem whose multipliers have their whole cone: any number for an equation, >= 0 for an inequality."""
    operators: list[Operator] = []
    sides: list[Array] = []
    for name, matrix, side, values in (*equations, last):
        right = as_real(values, f"constrained: {side}")
        shape = X.shape if X is not None else operators[0].x_shape if operators else None
        operators.append(as_operator(matrix, shape, right.shape, name=f"constrained: {name}"))
        sides.append(right.ravel())
    _check_objective(f, operators[0].x_shape)
    X = FullSpace(operators[0].x_shape) if X is None else X
    cones: list[Domain] = [FullSpace(side.size) for side in sides[:-1]] + [NonNegative(sides[-1].size)]
    B, right = Stack(*operators), np.concatenate(sides)
    reader = partial(ConstrainedSolution, f, B, right, right.size - sides[-1].size, X, None)
    return SaddleProblem(f=f, g=Linear(right), B=B, X=X, Y=Product(*cones), reader=reader)


def _least_squares(A: Operator, b: Array) -> Array:
    """The shortest x with A x as near to b as can be."""
    operator = scipy.sparse.linalg.LinearOperator(
        (b.size, int(np.prod(A.x_shape))),
        matvec=lambda v: A.forward(v.reshape(A.x_shape)).ravel(),
        rmatvec=lambda w: A.adjoint(w.reshape(A.y_shape)).ravel(),
        dtype=np.float64,
    )
    most = 4 * min(operator.shape) + 20
    found = scipy.sparse.linalg.lsqr(operator, b.ravel(), atol=1e-14, btol=1e-14, iter_lim=most)[0]
    return np.asarray(found).reshape(A.x_shape)


def multiplier_guess(f: Function, A: Operator, near: Array) -> float:
    """Ten times the norm of the multipliers that fit best at a point near the feasible set."""
    slope = f.gradient(near)
    scale = float(np.linalg.norm(slope)) / max(A.norm.upper, 1e-300)
    if scale == 0.0:
        return 1.0
    return _ROOM * max(float(np.linalg.norm(_least_squares(Mirrored(A), slope))), scale)
