"""The monotone operator of a saddle problem, F(x, y) = (f'(x) + B^T y, g'(y) - Bx), counted, and its constants."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from saddleslide.arrays.base import Array
from saddleslide.errors import InputError
from saddleslide.functions import Zero
from saddleslide.methods.base import Option, Value
from saddleslide.methods.requirements import smoothness_of
from saddleslide.oracles.calls import Calls
from saddleslide.oracles.oracles import Oracles
from saddleslide.problem import SaddleProblem
from saddleslide.theory.holder import Holder

Point = tuple[Array, Array]


@dataclass(frozen=True)
class BlockNorm:
    """|z|^2 = x |x|^2 + y |y|^2: one weight a block.

    Examples
    --------
    >>> BlockNorm(4.0, 1.0).squared((np.ones(1), np.ones(1)))
    5.0
    """

    x: float = 1.0
    y: float = 1.0

    def squared(self, z: Point) -> float:
        """Squared norm."""
        return self.x * float(np.vdot(z[0], z[0])) + self.y * float(np.vdot(z[1], z[1]))

    def squared_distance(self, z: Point, w: Point) -> float:
        """Squared distance."""
        return self.squared((z[0] - w[0], z[1] - w[1]))


def chosen_norm(problem: SaddleProblem, origin: Point, metric: object) -> BlockNorm:
    """The Euclidean norm, or the one in which both domains are equally large as seen from the start.

    Examples
    --------
    >>> import saddleslide as ss
    >>> X, Y, zero = ss.domains.Box(-4.0, 4.0, shape=1), ss.domains.Box(-1.0, 1.0, shape=1), ss.functions.Zero()
    >>> problem = ss.SaddleProblem(f=zero, g=zero, B=np.eye(1), X=X, Y=Y)
    >>> chosen_norm(problem, problem.start(), "balanced")
    BlockNorm(x=0.25, y=4.0)
    """
    radii = problem.X.radius(origin[0]), problem.Y.radius(origin[1])
    if metric != "balanced" or not all(math.isfinite(radius) and radius > 0.0 for radius in radii):
        return BlockNorm()
    return BlockNorm(radii[1] / radii[0], radii[0] / radii[1])


class Field:
    """F and the steps of extragradient methods in a block norm.

    Examples
    --------
    >>> import saddleslide as ss
    >>> q, box = ss.functions.Quadratic(1.0), ss.domains.Box(-1.0, 1.0, shape=1)
    >>> field = Field(Oracles(ss.SaddleProblem(f=q, g=q, B=np.array([[2.0]]), X=box, Y=box)))
    >>> [part.tolist() for part in field((np.array([1.0]), np.array([0.5])))]
    [[2.0], [-1.5]]
    """

    def __init__(self, oracles: Oracles, norm: BlockNorm | None = None) -> None:
        self.oracles, self.problem = oracles, oracles.problem
        self.norm = BlockNorm() if norm is None else norm

    def __call__(self, z: Point) -> Point:
        """F at z: one gradient of each function that is not Zero(), and two products."""
        pull, push = self.coupling(z)
        slope_f, slope_g = self.gradients(z)
        return slope_f + pull, slope_g + push

    def coupling(self, z: Point) -> Point:
        """(B^T y, -Bx): two products."""
        return self.oracles.adjoint(z[1]), -self.oracles.forward(z[0])

    def gradients(self, z: Point) -> Point:
        """(f'(x), g'(y)); nothing is called for Zero()."""
        problem = self.problem
        f = np.zeros_like(z[0]) if isinstance(problem.f, Zero) else self.oracles.f_gradient(z[0])
        g = np.zeros_like(z[1]) if isinstance(problem.g, Zero) else self.oracles.g_gradient(z[1])
        return f, g

    def step(self, z: Point, direction: Point, eta: float) -> Point:
        """Projection of z - eta P^-1 direction."""
        x = self.problem.X.project(z[0] - (eta / self.norm.x) * direction[0])
        return x, self.problem.Y.project(z[1] - (eta / self.norm.y) * direction[1])

    @property
    def lipschitz(self) -> float:
        """max(L_f / w_x, L_g / w_y) + |B| / sqrt(w_x w_y): a Lipschitz constant of F in this norm."""
        return self.smooth_part + self.coupling_part

    @property
    def smooth_part(self) -> float:
        """max(L_f / w_x, L_g / w_y); infinite where a gradient is not known to be Lipschitz."""
        problem, infinite = self.problem, math.inf
        f, g = smoothness_of(problem.f, problem.X), smoothness_of(problem.g, problem.Y)
        L_f = f.H if f is not None and f.nu == 1.0 else infinite
        L_g = g.H if g is not None and g.nu == 1.0 else infinite
        return max(L_f / self.norm.x, L_g / self.norm.y)

    @property
    def coupling_part(self) -> float:
        """|B| / sqrt(w_x w_y)."""
        return float(self.problem.coupling.norm.upper / math.sqrt(self.norm.x * self.norm.y))

    @property
    def modulus(self) -> float:
        """min(mu_f / w_x, mu_g / w_y): strong monotonicity of F in this norm."""
        problem = self.problem
        mu_f, mu_g = problem.f.strong_convexity(problem.X), problem.g.strong_convexity(problem.Y)
        return min(mu_f / self.norm.x, mu_g / self.norm.y)

    def diameter_squared(self) -> float:
        """Largest squared distance in this norm between two points of the domain."""
        problem = self.problem
        return self.norm.x * problem.X.diameter() ** 2 + self.norm.y * problem.Y.diameter() ** 2

    def holder(self) -> Holder | None:
        """A Hölder condition of F in this norm; None where a function declares none, or it needs bounded domains."""
        problem = self.problem
        f, g = smoothness_of(problem.f, problem.X), smoothness_of(problem.g, problem.Y)
        if f is None or g is None:
            return None
        coupling = Holder(1.0, self.coupling_part)
        diameter = math.sqrt(self.diameter_squared())
        try:
            both = f.in_metric(self.norm.x).plus(g.in_metric(self.norm.y), diameter)
            return both.plus(coupling, diameter)
        except InputError:
            return None

    def size(self, origin: Point) -> float:
        """Omega: largest squared distance in this norm from the start to a point of the domain."""
        problem = self.problem
        return self.norm.x * problem.X.squared_radius(origin[0]) + self.norm.y * problem.Y.squared_radius(origin[1])


def calls_of(problem: SaddleProblem, f: float, g: float, B: float) -> Calls | None:
    """Whole calls, none of Zero(); None where a bound promises nothing."""
    if not all(map(math.isfinite, (f, g, B))):
        return None
    count_f = 0 if isinstance(problem.f, Zero) else math.ceil(f)
    count_g = 0 if isinstance(problem.g, Zero) else math.ceil(g)
    return Calls(count_f, count_g, math.ceil(B))


METRIC = Option("metric", "balanced", "both domains equally large, or the Euclidean norm", ("balanced", "identity"))


def field_of(oracles: Oracles, origin: Point, options: Mapping[str, Value]) -> Field:
    """The operator in the norm that the option "metric" asks for."""
    return Field(oracles, chosen_norm(oracles.problem, origin, options["metric"]))


class Mean:
    """A weighted running mean of points.

    Examples
    --------
    >>> mean = Mean()
    >>> mean.add((np.zeros(1), np.zeros(1)), 1.0)
    >>> mean.add((np.ones(1), np.ones(1)), 3.0)
    >>> mean.point[0].tolist()
    [0.75]
    """

    def __init__(self) -> None:
        self.weight = 0.0
        self.point: Point = (np.zeros(0), np.zeros(0))

    def add(self, z: Point, weight: float = 1.0) -> None:
        """One more point."""
        self.weight += weight
        if self.weight == weight:
            self.point = (z[0].copy(), z[1].copy())
            return
        part = weight / self.weight
        x, y = self.point
        self.point = (x + part * (z[0] - x), y + part * (z[1] - y))


def unpromised(problem: SaddleProblem, blocks: str = "XY") -> tuple[str, ...]:
    """A note for the plan where a bound over the domains does not apply.

    Examples
    --------
    >>> import saddleslide as ss
    >>> zero, free = ss.functions.Zero(), ss.domains.FullSpace(1)
    >>> unpromised(ss.SaddleProblem(f=zero, g=zero, B=np.eye(1), X=free, Y=ss.domains.Box(0.0, 1.0, shape=1)))
    ('X is unbounded: the bound on the gap does not apply',)
    """
    free = [name for name in blocks if not getattr(problem, name).bounded]
    verb = "are" if len(free) > 1 else "is"
    return (f"{' and '.join(free)} {verb} unbounded: the bound on the gap does not apply",) if free else ()
