"""What is known of a problem, as a value: computed when first asked for, once, and never an exception.

Passed on from whoever plans to whoever runs. A constant that a function does not have is None, NaN or infinite, so that
nobody has to catch anything.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from copy import copy
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar

from saddleslide.errors import InputError, UnknownConstantError
from saddleslide.facts.distances import Sizes, counted_distances, sizes_at, step_ratio
from saddleslide.facts.requirements import missing
from saddleslide.functions import Zero
from saddleslide.functions.at_hand import exponent, smoothness_at_hand
from saddleslide.functions.searched import split_simple
from saddleslide.functions.separable import has_prox, prox
from saddleslide.operators.call import note
from saddleslide.oracles.oracles import Oracles
from saddleslide.theory.holder import Holder
from saddleslide.theory.levelwise import levelwise_terms

if TYPE_CHECKING:
    from saddleslide.arrays.base import Array
    from saddleslide.domains import Domain
    from saddleslide.functions.base import Function
    from saddleslide.operators import Coupling
    from saddleslide.problem import SaddleProblem
    from saddleslide.theory.levels import Term


class FunctionFacts:
    """A function on a set: f on X, g on Y, or the part of one of them that has no proximal step."""

    def __init__(self, function: Function, domain: Domain) -> None:
        self.function, self.domain = function, domain

    @property
    def is_zero(self) -> bool:
        """Whether it is the zero function, of which nothing is ever called."""
        return isinstance(self.function, Zero)

    @cached_property
    def holder(self) -> Holder | None:
        """The Hölder condition of the gradient; None where none is known on this set."""
        try:
            return self.function.smoothness(self.domain)
        except InputError:
            return None

    @cached_property
    def holder_at_hand(self) -> Holder | None:
        """The same where it takes no products with the caller's code to find out, else None."""
        return smoothness_at_hand(self.function, self.domain)

    @cached_property
    def exponent(self) -> float:
        """Of the Hölder condition, for which no norm is bounded; NaN where there is none."""
        try:
            return exponent(self.function, self.domain)
        except InputError:
            return math.nan

    @cached_property
    def is_undeclared(self) -> bool:
        """Whether the condition is for the caller to declare, and was not; else it may still be that there is none."""
        try:
            exponent(self.function, self.domain)
        except UnknownConstantError:
            return True
        except InputError:
            return False
        return False

    @property
    def may_have_kinks(self) -> bool:
        """Whether the exponent is below 1, or nobody has said what it is."""
        return self.is_undeclared or self.exponent < 1.0

    @property
    def lipschitz(self) -> float:
        """The Lipschitz constant of the gradient; infinite where none is known."""
        return self.holder.H if self.holder is not None and self.holder.nu == 1.0 else math.inf

    @cached_property
    def modulus(self) -> float:
        """Of strong convexity; 0 where none is known."""
        return self.function.strong_convexity(self.domain)

    @cached_property
    def has_prox(self) -> bool:
        """Whether it has an exact proximal step on the set."""
        return has_prox(self.function, self.domain)

    def prox(self, center: Array, weight: float) -> Array:
        """The point of the set that minimises function + weight/2 |. - center|^2."""
        return prox(self.function, center, weight, self.domain)


class BlockFacts(FunctionFacts):
    """f on X, or g on Y, with the two parts that methods use: a costly rest, and a simple part with a proximal step."""

    @cached_property
    def _parts(self) -> tuple[Function, Function]:
        return split_simple(self.function, self.domain)

    @cached_property
    def rest(self) -> FunctionFacts:
        """The part that needs gradients."""
        return FunctionFacts(self._parts[0], self.domain)

    @cached_property
    def simple(self) -> FunctionFacts:
        """The part with a proximal step."""
        return FunctionFacts(self._parts[1], self.domain)


class CouplingFacts:
    """B."""

    def __init__(self, coupling: Coupling) -> None:
        self.coupling = coupling

    @cached_property
    def condition(self) -> float:
        """Condition number of B^T B on its range; infinite where no smallest positive singular value is known."""
        smallest = self.coupling.smallest_singular_value(positive=True).lower
        return float((self.coupling.norm.upper / smallest) ** 2) if smallest > 0.0 else math.inf


class Facts:
    """What is known of a problem.

    Parameters
    ----------
    problem : SaddleProblem
        The problem.
    distances : (D_x, D_y), optional
        From the default start to the solution, where they are known already, or to be assumed.
    """

    # What is known of a problem is found out again where a run is taken up again.
    stored: ClassVar[bool] = False

    f: BlockFacts
    g: BlockFacts

    def __init__(self, problem: SaddleProblem, distances: tuple[float, float] | None = None) -> None:
        self.problem, self._distances = problem, distances
        self.f, self.g = BlockFacts(problem.f, problem.X), BlockFacts(problem.g, problem.Y)
        self.B = CouplingFacts(problem.coupling)

    def assuming(self, distances: tuple[float, float]) -> Facts:
        """The same facts, were these the distances."""
        found = copy(self)
        found._distances = distances
        return found

    @property
    def norm(self) -> float:
        """An upper bound on the norm of B."""
        return float(self.problem.coupling.norm.upper)

    @property
    def moduli(self) -> tuple[float, float]:
        """Of f and of g."""
        return self.f.modulus, self.g.modulus

    @cached_property
    def sizes(self) -> Sizes:
        """What distances from the default start rest on."""
        return sizes_at(self, self.problem.start())

    @cached_property
    def budget_terms(self) -> list[Term]:
        """f, g and B, each in the norm in which Corollary 3.6 gives it the smallest budget; [] where there is none."""
        squares, flat = self.sizes.squared_radii, Holder(1.0, 0.0)
        # Without curvature on a block there are no level-wise norms, and on a single point none is the smallest.
        if not (min(self.norm, *squares) > 0.0 and math.isfinite(max(self.norm, *squares))):
            return []
        return levelwise_terms(self.f.holder or flat, self.g.holder or flat, self.norm, *squares)

    @property
    def distances(self) -> tuple[float, float]:
        """Upper bounds on those from the default start to the solution; found out once, by calls that are counted."""
        if self._distances is None:
            oracles = Oracles(self.problem)
            try:
                self._distances = self.distances_from(oracles, self.problem.start())
            finally:
                note(oracles.calls)
        return self._distances

    def distances_from(
        self, oracles: Oracles, start: tuple[Array, Array], proximal: bool = True
    ) -> tuple[float, float]:
        """Those from any start, by counted calls: see `counted_distances`."""
        return counted_distances(self, oracles, start, proximal)

    @property
    def ratio(self) -> float:
        """Weight between the blocks, |dy| / |dx|, from the distances."""
        return step_ratio(self.distances)

    def step_ratio(self, oracles: Oracles, start: tuple[Array, Array]) -> float:
        """The same from any start, by counted calls."""
        return step_ratio(self.distances_from(oracles, start))

    def missing(self, needs: Sequence[str]) -> list[str]:
        """One sentence for every need of a method that the problem does not meet."""
        return missing(needs, self)
