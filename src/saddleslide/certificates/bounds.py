"""The best bounds on the saddle value so far, each with the point that gave it.

Any feasible x bounds it from above by max_y F(x, y), any feasible y from below by min_x F(x, y). Whatever rounding may
have done to a bound is taken from it before it is kept.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from saddleslide.arrays.state import State
from saddleslide.certificates.certificate import EPS
from saddleslide.certificates.guards import CONVEXITY, inconsistent
from saddleslide.certificates.inspection import Inspection
from saddleslide.oracles.calls import RunEnded

if TYPE_CHECKING:
    from saddleslide.arrays.base import Array
    from saddleslide.arrays.state import XArray, YArray


@dataclass(eq=False, repr=False)
class Bounds(State):
    """The largest lower and the smallest upper bound, and what they rest on."""

    x: XArray
    y: YArray
    lower: float = -math.inf
    upper: float = math.inf
    # How the lower bound was found.
    kind: str = "none"
    # What rounding takes of the two bounds.
    margin_below: float = 0.0
    margin_above: float = 0.0
    # F(x, y_0), where that is known.
    fall: float = math.inf
    # What every solution obeys and the lower and the upper bound rest on.
    said: tuple[str, str] = ("", "")
    # Size of the terms of F at the last point: what rounding is relative to when the saddle value is near 0.
    magnitude: float = 0.0
    # The best bounds, while a candidate is judged apart from them.
    aside: tuple[float, float] = (-math.inf, math.inf)

    @property
    def known_lower(self) -> float:
        """Whatever is being judged."""
        return max(self.lower, self.aside[0])

    @property
    def known_upper(self) -> float:
        """Whatever is being judged."""
        return min(self.upper, self.aside[1])

    @property
    def gap(self) -> float:
        """Certified gap of the best pair; by how much its bounds contradict each other where they do."""
        known = math.isfinite(self.upper) and math.isfinite(self.lower)
        return abs(self.upper - self.lower) if known else math.inf

    @property
    def margins(self) -> float:
        """What rounding takes of the two bounds: no gap can be certified below."""
        return self.margin_above + self.margin_below

    def note_size(self, *terms: float) -> None:
        """Keep the size of the terms of F at a point."""
        size = sum(abs(term) for term in terms)
        if math.isfinite(size):
            self.magnitude = size

    def accept_lower(
        self,
        bound: float,
        at: Inspection | Array,
        kind: str,
        margin: float = 0.0,
        terms: float = 0.0,
        inside: float = 0.0,
        said: str = "",
    ) -> None:
        """A bound less its margin; `terms` are the sizes of what it was summed of, `inside` a margin it has already.

        It is one of the candidate `at` too, but where it rests on what every solution obeys: that is none on the set.
        Or `at` is another y.
        """
        margin += 16.0 * EPS * (abs(bound) + terms)
        bound -= margin
        # Comparisons are written so that a NaN is never accepted. Nor is a linearisation at an infinite value a bound.
        if isinstance(at, Inspection) and bound > at.lower and not said:
            at.lower = bound
        y = at.y if isinstance(at, Inspection) else at
        if self.lower < bound < math.inf:
            self.lower, self.y, self.kind, self.margin_below = bound, y, kind, margin + inside
            self.said = said, self.said[1]

    def accept_upper(
        self,
        bound: float,
        at: Inspection | Array,
        margin: float = 0.0,
        terms: float = 0.0,
        inside: float = 0.0,
        said: str = "",
    ) -> None:
        """The mirror image, of the candidate `at`, or of another x."""
        margin += 16.0 * EPS * (abs(bound) + terms)
        bound += margin
        if isinstance(at, Inspection) and bound < at.upper and not said:
            at.upper = bound
        x = at.x if isinstance(at, Inspection) else at
        if -math.inf < bound < self.upper:
            self.upper, self.x, self.margin_above = bound, x, margin + inside
            self.fall = at.fall if isinstance(at, Inspection) else math.inf
            self.said = self.said[0], said

    def drop_bounds(self) -> None:
        """What they rested on was wrong."""
        self.lower, self.upper, self.said, self.aside = -math.inf, math.inf, ("", ""), (-math.inf, math.inf)

    def check_order(self) -> None:
        """A lower bound above the upper one is no gap: what rounding can not explain, oracles have contradicted."""
        apart = self.lower - self.upper
        if not apart > 0.0:
            return
        reason = (
            f"the lower bound {self.lower:.6g} lies above the upper one {self.upper:.6g} by {apart:.3g}: values, "
            "gradients or products are less exact than they should be. "
            "Check value, gradient and prox of each function, and B."
        )
        # As for other guards, oracles in single precision are no contradiction.
        size = max(abs(self.lower) + abs(self.upper), self.magnitude)
        rounding = apart <= max(self.margins, CONVEXITY * size)
        raise RunEnded("NUMERICAL_LIMIT", reason) if rounding else inconsistent(reason)
