"""How the recursion sees a problem: what costs a level, what its base case takes along, and the norm of the x block."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from saddleslide.arrays.base import Array, Shape, split
from saddleslide.functions.base import Function
from saddleslide.functions.entrywise import Zero
from saddleslide.functions.searched import split_simple
from saddleslide.functions.separable import prox
from saddleslide.metrics.base import Entrywise, Metric
from saddleslide.problem import SaddleProblem

if TYPE_CHECKING:
    from saddleslide.methods.sliding.recursion import Base, Writer

# Turns the centre of one block into its minimiser, in place, for a weight.
BlockBase = Callable[[Array, float], None]


@dataclass(frozen=True)
class View:
    """A problem without its simple terms, which the base case minimises together with the quadratic of the step.

    What is left of f and g costs a level each. `f_simple` and `g_simple` have a proximal step (docs/theory.md, simple
    terms); `metric` is the norm |x|_P of the x block, Euclidean when missing; `primal_dual` says whether an innermost
    coupling makes primal-dual steps, two products each, in place of the paper's four.
    """

    problem: SaddleProblem
    f_simple: Function = field(default_factory=Zero)
    g_simple: Function = field(default_factory=Zero)
    metric: Metric | None = None
    primal_dual: bool = False

    @property
    def shapes(self) -> list[Shape]:
        """Those of x and y."""
        return [self.problem.X.shape, self.problem.Y.shape]

    def base(self) -> Base | None:
        """The base case with simple terms; None where it is a projection."""
        if isinstance(self.f_simple, Zero) and isinstance(self.g_simple, Zero):
            return None
        shapes, blocks = self.shapes, self.blocks()

        def minimise(centers: Array, weights: Array) -> None:
            for block, part, weight in zip(blocks, split(centers, shapes), weights, strict=True):
                block(part, float(weight))

        return minimise

    def blocks(self) -> tuple[BlockBase, BlockBase]:
        """The base case of each block."""
        problem, metric = self.problem, self.metric
        entries = metric.weight(1.0, 0.0) if isinstance(metric, Entrywise) else 1.0

        def primal(x: Array, weight: float) -> None:
            prox(self.f_simple, x, weight * entries, problem.X, out=x)

        def dual(y: Array, weight: float) -> None:
            prox(self.g_simple, y, weight, problem.Y, out=y)

        return primal, dual

    def dual(self, write: Writer) -> Writer:
        """A writer of slopes with its x part as P^-1 of it: the recursion then works in the norm of the metric."""
        metric, shapes = self.metric, self.shapes
        if metric is None:
            return write

        def write_dual(z: Array, out: Array) -> None:
            write(z, out)
            metric.invert(split(out, shapes)[0])

        return write_dual


def view_of(
    problem: SaddleProblem, simple: Collection[str] = (), metric: Metric | None = None, primal_dual: bool = False
) -> View:
    """The view with the simple terms of the functions named, and a norm of the x block."""
    f, f_simple = split_simple(problem.f, problem.X) if "f" in simple else (problem.f, Zero())
    g, g_simple = split_simple(problem.g, problem.Y) if "g" in simple else (problem.g, Zero())
    if f is problem.f and g is problem.g:
        return View(problem, metric=metric, primal_dual=primal_dual)
    rest = SaddleProblem(f=f, g=g, B=problem.coupling, X=problem.X, Y=problem.Y, arrays=problem.arrays)
    return View(rest, f_simple, g_simple, metric, primal_dual)
