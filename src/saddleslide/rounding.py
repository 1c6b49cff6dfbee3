"""What rounding in a product with B can do to a certified bound."""

from __future__ import annotations

import math

import numpy as np

from saddleslide.arrays import Array
from saddleslide.domains import Domain


def product_margin(error: float, point: Array, domain: Domain, reply: float, modulus: float) -> float:
    """What rounding in B x can do to the best value over the other block.

    A change d of B x, |d| <= error |x|, changes max <y, B x> - g(y) by at most |d| |y| at the better of both
    maximisers: within the radius of the set, and by strong convexity within |d| / modulus of the known one, of size
    `reply`.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> product_margin(1e-16, np.ones(4), ss.domains.Box(-1.0, 1.0, shape=9), reply=0.0, modulus=0.0)
    6e-16
    """
    shift = error * float(np.linalg.norm(point))
    if shift == 0.0:
        return 0.0
    radius = domain.radius_at_zero
    known = reply + shift / modulus if modulus > 0.0 else math.inf
    reach = min(radius, known)
    return shift * (reach if math.isfinite(reach) else reply)
