"""What a judge keeps where a set has no end. Where both minima are bounded nothing is asked of these classes.

Where one is not, classes derived of them do the work: `Solutions` (solutions.py) and `Nearby` (nearby.py).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from saddleslide.arrays.state import State

if TYPE_CHECKING:
    from saddleslide.arrays.base import Array
    from saddleslide.arrays.state import XArray, YArray
    from saddleslide.certificates.bounds import Bounds
    from saddleslide.certificates.inspection import Inspection

# One number per block of x, and one per block of y.
Lengths = tuple[tuple[float, ...], tuple[float, ...]]


@dataclass(eq=False, repr=False)
class SolutionsState(State):
    """Every solution has sum w |x| <= upper + k, and sum w |y| <= k - lower: w and k of each, and candidates so far."""

    x_weights: XArray | None = None
    y_weights: YArray | None = None
    offsets: tuple[float, float] = (0.0, 0.0)
    referred: int = 0

    def forget(self) -> None:
        """The products that weights were made of were wrong."""
        self.x_weights, self.y_weights = None, None

    def refer_to_start(self, x: Array, value: float, Bx: Array, y: Array, pull: Array) -> None:
        """The start is the first point to refer to."""

    def look(self, at: Inspection) -> None:
        """Bounds from what is known of a candidate."""


@dataclass(eq=False, repr=False)
class NearbyState(State):
    """The point with the smallest gap within its radii: bounds, what rounding takes of them, radii.

    With the slopes at the start and at the point that was judged first, which give the scale of the radii, the largest
    sizes so far, and the weights that gave the last bounds.
    """

    point: tuple[XArray, YArray] | None = None
    lower: float = -math.inf
    upper: float = math.inf
    margin: float = 0.0
    # What slopes are worth there: the scale of F where it is 0 at the start.
    worth: float = 0.0
    # F(x, y_0), where that is known.
    fall: float = math.inf
    radii: Lengths | None = None
    first_slopes: Lengths | None = None
    met_slopes: Lengths | None = None
    largest: Lengths | None = None
    taus: Lengths | None = None


class Around(NearbyState):
    """Gaps around points, none so far."""

    def __init__(self, bounds: Bounds) -> None:
        super().__init__()
        self._bounds = bounds
        # The gap of the candidate that was looked at last.
        self.last_gap = math.inf

    def forget(self) -> None:
        """The products that the claim rests on were wrong."""
        self.point, self.lower, self.upper, self.radii = None, -math.inf, math.inf, None

    @property
    def gap(self) -> float:
        """That of the point that is the best by it; infinite where it was not asked for.

        Infinite too where a point beyond the radii is better than all within them: the problem may be unbounded.
        """
        if self.point is None or self._bounds.upper < self.lower or self._bounds.lower > self.upper:
            return math.inf
        return self.upper - self.lower

    def give(self, radii: tuple[float, ...] | None) -> None:
        """A point is judged once more: within the radii that a claim was made with, of x and of the blocks of y."""

    def keep_scale(self, former: Around, is_mirrored: bool) -> None:
        """A plan goes on with the target of a former one, which is absolute by now and was missed within its radii."""

    def look(self, at: Inspection) -> bool:
        """Ask for the gap around a candidate that has no bound on a whole set; whether none is waited for."""
        return False

    def seek_rays(self, at: Inspection, rays: Rays) -> None:
        """End the run at a ray that proves that there is no solution, if there is one."""


@dataclass(eq=False, repr=False)
class Rays(State):
    """Where rays were last looked for, and how many points were offered: where there is no solution, they go on."""

    passed: tuple[XArray, YArray] | None = None
    # B^T y and B x there.
    products: tuple[XArray, YArray] | None = None
    offered: int = 0

    def is_due(self) -> bool:
        """Whether rays are looked for at the next point: the points 2, 4, 8, ...; at the first nothing has run away."""
        self.offered += 1
        return self.offered > 1 and self.offered & (self.offered - 1) == 0
