"""Hölder constants estimated from a few gradients, for functions that declare none."""

from __future__ import annotations

import math

import numpy as np

from saddleslide.arrays.base import Array
from saddleslide.domains import Domain
from saddleslide.functions.base import Function, gradient_aside
from saddleslide.theory.holder import Holder

# Steps from the start, as parts of the radius; two directions each.
_SCALES = (1.0, 0.3, 0.1, 0.01)
_DIRECTIONS = 2
GRADIENTS = 1 + _DIRECTIONS * len(_SCALES)
# Between these slopes of log |f'(x) - f'(y)| over log |x - y| the exponent is taken to be 1.
_SMOOTH_SLOPE = 0.9
_SAFETY = 2.0


def estimated_smoothness(f: Function, domain: Domain, x: Array, seed: int = 0) -> Holder:
    """Exponent and constant that fit gradients at a few seeded points around x, with a factor 2 on H.

    An estimate, not a bound: the function may be rougher where nobody looked.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> f = ss.functions.Custom(gradient=lambda x: 3.0 * x)
    >>> estimated_smoothness(f, ss.domains.Ball(1.0, shape=4), np.zeros(4))
    Holder(nu=1.0, H=6.0)
    """
    rng = np.random.default_rng(seed)
    radius = domain.radius(x)
    reach = radius if math.isfinite(radius) and radius > 0.0 else 1.0 + float(np.linalg.norm(x))
    base = gradient_aside(f, x)
    distances, changes = [], []
    for _ in range(_DIRECTIONS):
        direction = rng.standard_normal(x.shape)
        direction *= reach / (float(np.linalg.norm(direction)) or 1.0)
        for scale in _SCALES:
            point = domain.project(x + scale * direction)
            distance = float(np.linalg.norm(point - x))
            if distance > 0.0:
                distances.append(distance)
                changes.append(float(np.linalg.norm(gradient_aside(f, point) - base)))
    return _fitted(np.array(distances), np.array(changes))


def _fitted(distances: Array, changes: Array) -> Holder:
    seen = (changes > 0.0) & np.isfinite(changes)
    if not seen.any():
        return Holder(1.0, 0.0)
    nu = 1.0
    if seen.sum() >= 2 and np.ptp(np.log(distances[seen])) > 0.0:
        slope = float(np.polyfit(np.log(distances[seen]), np.log(changes[seen]), 1)[0])
        nu = 1.0 if slope >= _SMOOTH_SLOPE else min(max(slope, 0.0), 1.0)
    return Holder(nu, float(f"{_SAFETY * float(np.max(changes[seen] / distances[seen] ** nu)):.12g}"))
