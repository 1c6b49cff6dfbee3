"""What is known of a problem, as a value: computed when first asked for, once, and never an exception.

Passed on from whoever plans to whoever runs. A constant that a function does not have is None, NaN or infinite, so that
nobody has to catch anything.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

from saddleslide import facts
from saddleslide.arrays.base import Array, as_number, length_of
from saddleslide.domains.base import Domain
from saddleslide.domains.program import Program, lift_squares, program_of
from saddleslide.errors import InputError, UnknownConstantError, raise_all
from saddleslide.functions.base import Function
from saddleslide.functions.constants import estimate_smoothness, exponent, known_smoothness, smoothness_at_hand
from saddleslide.functions.entrywise import Zero
from saddleslide.functions.separable import has_prox, prox
from saddleslide.oracles.oracles import Oracles
from saddleslide.problem import SaddleProblem
from saddleslide.theory.holder import Holder
from saddleslide.theory.hypotheses import ESTIMATE, Constant
from saddleslide.watcher import note

SMOOTHNESS_NAMES = ("nu_x", "H_x", "nu_y", "H_y", "L_xy")
CONSTANT_NAMES = (*SMOOTHNESS_NAMES, "mu_x", "mu_y")
# Curvature through B (Assumption properties_of_B): declared, or found where anchors are asked for.
COUPLING_NAMES = ("mu_xy", "mu_yx")


@dataclass(eq=False)
class FunctionFacts:
    """A function on a set: f on X, g on Y, or the part of one of them that has no proximal step."""

    function: Function
    domain: Domain

    @property
    def is_zero(self) -> bool:
        """Whether it is the zero function, of which nothing is ever called."""
        return isinstance(self.function, Zero)

    @cached_property
    def holder(self) -> Holder | None:
        """The Hölder condition of the gradient; None where none is known on this set."""
        return known_smoothness(self.function, self.domain)

    @cached_property
    def holder_at_hand(self) -> Holder | None:
        """The same where it takes no products with the caller's code to find out, else None."""
        return smoothness_at_hand(self.function, self.domain)

    @cached_property
    def _exponent(self) -> tuple[float, bool]:
        """Of the Hölder condition, NaN where there is none; and whether that is for the caller to declare."""
        try:
            return exponent(self.function, self.domain), False
        except InputError as error:
            return math.nan, isinstance(error, UnknownConstantError)

    @property
    def exponent(self) -> float:
        """Of the Hölder condition, for which no norm is bounded; NaN where there is none."""
        return self._exponent[0]

    @property
    def is_undeclared(self) -> bool:
        """Whether the condition is for the caller to declare, and was not; else it may still be that there is none."""
        return self._exponent[1]

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


@dataclass(eq=False)
class BlockFacts(FunctionFacts):
    """f on X, or g on Y, with the two parts that methods use: a costly rest, and a simple part with a proximal step."""

    parts: Callable[[], tuple[Function, Function]]

    @cached_property
    def program(self) -> Program | None:
        """The function on its set as a quadratic program; None where it is none."""
        return program_of(self.function, self.domain)

    @cached_property
    def rest(self) -> FunctionFacts:
        """The part that needs gradients."""
        return FunctionFacts(self.parts()[0], self.domain)

    @cached_property
    def simple(self) -> FunctionFacts:
        """The part with a proximal step."""
        return FunctionFacts(self.parts()[1], self.domain)


@dataclass(frozen=True)
class Sizes:
    """What distances rest on: squared radii of both domains as seen from a point, and moduli of f and g."""

    squared_radii: tuple[float, float]
    moduli: tuple[float, float]

    @property
    def radii(self) -> tuple[float, float]:
        """Largest distances to points of the domains."""
        return math.sqrt(self.squared_radii[0]), math.sqrt(self.squared_radii[1])

    def within(self, slopes: tuple[float, float]) -> tuple[float, float]:
        """The radii, or what strong convexity leaves of them, given the norms of both parts of F(z_0)."""
        (D_x, D_y), (mu_x, mu_y), (F_x, F_y) = self.radii, self.moduli, slopes
        if min(mu_x, mu_y) > 0.0:
            # In the norm with weights mu the operator is strongly monotone with modulus 1.
            R = math.sqrt(F_x * F_x / mu_x + F_y * F_y / mu_y)
            D_x, D_y = min(D_x, R / math.sqrt(mu_x)), min(D_y, R / math.sqrt(mu_y))
        if mu_x > 0.0 and math.isfinite(D_y):
            D_x = min(D_x, F_x / mu_x + math.sqrt(F_y * D_y / mu_x))
        if mu_y > 0.0 and math.isfinite(D_x):
            D_y = min(D_y, F_y / mu_y + math.sqrt(F_x * D_x / mu_y))
        return D_x, D_y


class Facts:
    """What is known of a problem: of f on X, of g on Y, of B, and of the way from a start to the solution.

    `distances` are those from the default start, where they are known already, or to be assumed.
    """

    # What is known of a problem is found out again where a run is taken up again.
    stored: ClassVar[bool] = False
    f: BlockFacts
    g: BlockFacts

    def __init__(self, problem: SaddleProblem, distances: tuple[float, float] | None = None) -> None:
        self.problem, self._distances = problem, distances
        self.f = BlockFacts(problem.f, problem.X, lambda: problem.f_parts)
        self.g = BlockFacts(problem.g, problem.Y, lambda: problem.g_parts)

    def with_distances(self, distances: tuple[float, float] | None) -> Facts:
        """The same facts, were these the distances; or were these not known."""
        found = copy(self)
        found._distances = distances
        return found

    @property
    def norm(self) -> float:
        """An upper bound on the norm of B."""
        return float(self.problem.coupling.norm.upper)

    @cached_property
    def condition(self) -> float:
        """Condition number of B^T B on its range; infinite where no smallest positive singular value is known."""
        smallest = self.problem.coupling.smallest_singular_value(positive=True).lower
        return float((self.problem.coupling.norm.upper / smallest) ** 2) if smallest > 0.0 else math.inf

    @cached_property
    def newton_cost(self) -> float:
        """Operations of one step of an interior-point method; infinite where there can be none."""
        return math.inf if self.programs is None else facts.newton_cost(*self.programs)

    @cached_property
    def entries(self) -> Any:
        """B as a matrix, dense or sparse; None where it is known by its products alone."""
        return self.problem.coupling.entries

    @cached_property
    def programs(self) -> tuple[Program, Program, list[Any]] | None:
        """Both blocks as programs without squares, and the blocks of rows of their matrix; None where there is none."""
        f, g, B = self.f.program, self.g.program, self.entries
        return None if f is None or g is None or B is None else lift_squares(f, g, B)

    @cached_property
    def least_newton_cost(self) -> float:
        """The same from below, quickly found; infinite where f or g is no program, or B has no entries at hand."""
        f, g = self.f.program, self.g.program
        return math.inf if f is None or g is None else sum(facts.least_forming(side) for side in (f, g))

    @property
    def moduli(self) -> tuple[float, float]:
        """Of f and of g."""
        return self.f.modulus, self.g.modulus

    @cached_property
    def sizes(self) -> Sizes:
        """What distances from the default start rest on."""
        return self._sizes_at(*self.problem.start())

    def _sizes_at(self, x: Array, y: Array) -> Sizes:
        return Sizes((self.f.domain.squared_radius(x), self.g.domain.squared_radius(y)), self.moduli)

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
        """Upper bounds on the distances from a start to the solution, block by block; infinite where none is known.

        Radii of the domains, or what strong convexity leaves of them: at a saddle point the operator F satisfies
        mu_x |dx|^2 + mu_y |dy|^2 <= <F(z_0), z_0 - z*>. That takes a gradient of each function, and products away from
        0: calls like all others. A method that takes proximal steps makes no calls of functions that have one, here
        neither.
        """
        (x, y), sizes = start, self._sizes_at(*start)
        if max(sizes.moduli) == 0.0:
            return sizes.radii
        f_free, g_free = (block.is_zero or (proximal and block.has_prox) for block in (self.f, self.g))
        F_x = oracles.free_gradient("f", x) if f_free else oracles.f_gradient(x)
        f_slope = length_of(F_x + oracles.adjoint(y) if y.any() else F_x)
        F_y = oracles.free_gradient("g", y) if g_free else oracles.g_gradient(y)
        g_slope = length_of(F_y - oracles.forward(x) if x.any() else F_y)
        return sizes.within((f_slope, g_slope))

    @property
    def ratio(self) -> float:
        """Weight between the blocks, |dy| / |dx|, from what is known of the distances, or 1."""
        return _ratio(self.distances)

    def step_ratio(self, oracles: Oracles, start: tuple[Array, Array]) -> float:
        """The same from any start, by counted calls."""
        return _ratio(self.distances_from(oracles, start))

    def find_missing(self, needs: Sequence[str], method: str = "") -> list[str]:
        """One sentence for every need of a method that the problem does not meet."""
        return facts.find_missing(needs, self, method) if needs else []


def _ratio(distances: tuple[float, float]) -> float:
    usable = all(math.isfinite(D) and D > 0.0 for D in distances)
    return distances[1] / distances[0] if usable else 1.0


def check_constants(constants: Mapping[str, float]) -> dict[str, float]:
    """Declared values, after refusing what can not be one."""
    names = (*CONSTANT_NAMES, *COUPLING_NAMES)
    unknown = sorted(set(constants) - set(names), key=str)
    raise_all("plan", [f"constants has {unknown}; expected names among {list(names)}."] * bool(unknown))
    values = {name: as_number(value, f"plan: constants[{name!r}]", 0.0) for name, value in constants.items()}
    if values.get("L_xy") == 0.0:
        raise InputError(
            "plan: constants['L_xy'] is 0; expected an upper bound on the norm of B, > 0. Leave it out for B = 0."
        )
    lone = [side for side in "xy" if f"nu_{side}" in values and f"H_{side}" not in values]
    raise_all(
        "plan", [f"constants declares nu_{side} without H_{side}; expected both: H belongs to its nu." for side in lone]
    )
    return values


def plan_constants(problem: SaddleProblem, values: Mapping[str, float], names: Sequence[str]) -> dict[str, Constant]:
    """The constants of these names, each with its origin; a smoothness that nobody has declared is estimated."""
    computed: dict[str, tuple[float, str]] = {}
    sides = ("x", "f on X", problem.f, problem.X), ("y", "g on Y", problem.g, problem.Y)
    for (side, name, function, domain), point in zip(sides, problem.start(), strict=True):
        if f"H_{side}" in values:
            computed[f"nu_{side}"] = (values.get(f"nu_{side}", 1.0), "declared with its H")
            continue
        try:
            smoothness, source = function.smoothness(domain), name
        except UnknownConstantError:
            smoothness = estimate_smoothness(function, domain, point)
            source = f"estimated from a few gradients of {name}; {ESTIMATE}"
        computed |= {f"nu_{side}": (smoothness.nu, source), f"H_{side}": (smoothness.H, source)}
    if "L_xy" not in values:
        norm = problem.coupling.norm
        computed["L_xy"] = (norm.upper, f"norm of B, upper bound: {norm.method}")
    if "mu_x" in names:
        computed["mu_x"] = (problem.f.strong_convexity(problem.X), "strong convexity of f on X")
        computed["mu_y"] = (problem.g.strong_convexity(problem.Y), "strong convexity of g on Y")
    return {name: Constant(values[name], "declared") if name in values else Constant(*computed[name]) for name in names}
