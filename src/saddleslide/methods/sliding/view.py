"""How the recursion sees a problem: what costs a level, what its base case takes along, and the norms of blocks."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from saddleslide.arrays.base import Array, Shape
from saddleslide.functions.base import Function
from saddleslide.functions.entrywise import Zero
from saddleslide.methods.sliding.proximal import BlockNorms, is_direct, resolve
from saddleslide.metrics.base import Metric
from saddleslide.problem import SaddleProblem

if TYPE_CHECKING:
    from saddleslide.methods.sliding.recursion import Base

# Turns the centre of one block into its minimiser, in place, for a weight.
BlockBase = Callable[[Array, float], None]


@dataclass(frozen=True)
class View:
    """A problem without its simple terms, which the base case minimises together with the quadratic of the step.

    What is left of f and g costs a level each. `f_simple` and `g_simple` have a proximal step (docs/theory.md, simple
    terms); `norms` are |x|_P and |y|_P, Euclidean where missing; `primal_dual` says whether an innermost coupling makes
    primal-dual steps, two products each, in place of the paper's four.
    """

    problem: SaddleProblem
    f_simple: Function = field(default_factory=Zero)
    g_simple: Function = field(default_factory=Zero)
    norms: tuple[Metric | None, Metric | None] = (None, None)
    primal_dual: bool = False

    @property
    def is_direct(self) -> bool:
        """Whether the base case is one step of the simple terms and sets themselves."""
        sides = ((self.f_simple, self.problem.X), (self.g_simple, self.problem.Y))
        return all(is_direct(simple, norm, at) for (simple, at), norm in zip(sides, self.norms, strict=True))

    @property
    def shapes(self) -> list[Shape]:
        """Those of x and y."""
        return [self.problem.X.shape, self.problem.Y.shape]

    @property
    def spaces(self) -> BlockNorms:
        """The sets of both blocks with their norms."""
        return BlockNorms((self.problem.X, self.problem.Y), self.norms)

    def base(self) -> Base | None:
        """The base case with simple terms; None where it is a projection."""
        if isinstance(self.f_simple, Zero) and isinstance(self.g_simple, Zero):
            return None
        return self.spaces.base((self.f_simple, self.g_simple))

    def blocks(self) -> tuple[BlockBase, BlockBase]:
        """The base case of each block."""
        (x_norm, y_norm), problem = self.norms, self.problem

        def primal(x: Array, weight: float) -> None:
            resolve(self.f_simple, x_norm, problem.X, x, weight)

        def dual(y: Array, weight: float) -> None:
            resolve(self.g_simple, y_norm, problem.Y, y, weight)

        return primal, dual


def view_of(
    problem: SaddleProblem, simple: Collection[str] = (), norms: tuple[Metric | None, Metric | None] = (None, None),
    primal_dual: bool = False,
) -> View:  # fmt: skip
    """The view with the simple terms of the functions named, and norms of the blocks."""
    f, f_simple = problem.f_parts if "f" in simple else (problem.f, Zero())
    g, g_simple = problem.g_parts if "g" in simple else (problem.g, Zero())
    if f is problem.f and g is problem.g:
        return View(problem, norms=norms, primal_dual=primal_dual)
    rest = SaddleProblem(f=f, g=g, B=problem.coupling, X=problem.X, Y=problem.Y, arrays=problem.arrays)
    return View(rest, f_simple, g_simple, norms, primal_dual)
