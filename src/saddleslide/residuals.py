"""Lower bounds on min over a domain of h(x) + <pull, x> from gradients of h that are known already.

A gradient at p gives h(p) + <pull, p> + min_x { <r, x - p> + mu/2 |x - p|^2 + simple(x) } with r = h'(p) + pull. For a
quadratic h, gradients at old points give the same bound at every combination of them, maximised in closed form.
"""

from __future__ import annotations

import math

import numpy as np

from saddleslide.arrays import Array
from saddleslide.candidate import Linearisation
from saddleslide.domains import Ball, Domain, FullSpace
from saddleslide.functions import Function, Zero, prox, tilted_minimum

EPS = float(np.finfo(np.float64).eps)
_HISTORY = 6


class ResidualBound:
    """Bounds for h = rest + simple, where `simple` has a proximal step on the domain.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> h = ss.functions.LeastSquares(np.eye(2), np.ones(2))
    >>> side = ResidualBound(h, ss.functions.Zero(), ss.domains.FullSpace(2))
    >>> known = Linearisation(np.zeros(2), 1.0, -np.ones(2))
    >>> bool(-1e-12 < side.minimum(np.zeros(2), known) <= 0.0)
    True
    """

    def __init__(self, rest: Function, simple: Function, domain: Domain) -> None:
        self.rest, self.simple, self.domain = rest, simple, domain
        self.modulus = rest.strong_convexity(domain)
        self.history: list[Linearisation] = []
        combinable = rest.quadratic and isinstance(simple, Zero) and isinstance(domain, FullSpace | Ball)
        self._combines = combinable and self.modulus > 0.0

    @property
    def possible(self) -> bool:
        """Whether any finite bound can come from here."""
        return self.modulus > 0.0 or self.domain.bounded

    def minimum(self, pull: Array, known: Linearisation) -> float:
        """The best bound that `known` and its predecessors give, less a margin for rounding."""
        slope = known.gradient + pull
        base = known.value + float(np.vdot(pull, known.point))
        bound = self._linearised(base, slope, known.point)
        if self._combines:
            bound = max(bound, self._combined(base, slope, known))
            self.history = [*self.history, known][-_HISTORY:]
        return bound - 16.0 * EPS * (abs(base) + float(np.abs(slope * known.point).sum()))

    def simple_value(self, x: Array) -> float:
        """The simple part at x."""
        return 0.0 if isinstance(self.simple, Zero) else self.simple.value(x)

    def _linearised(self, base: float, slope: Array, point: Array) -> float:
        """Minimum over the domain of base + <slope, x - p> + mu/2 |x - p|^2 + simple(x)."""
        # The modulus is one on the domain; an extrapolated point may lie outside.
        mu = self.modulus if self.domain.contains(point) else 0.0
        if mu > 0.0:
            x = prox(self.simple, point - slope / mu, mu, self.domain)
            step = x - point
            value = base + float(np.vdot(slope, step)) + 0.5 * mu * float(np.vdot(step, step))
            return value + self.simple_value(x)
        if not self.domain.bounded:
            return -math.inf
        return base - float(np.vdot(slope, point)) + tilted_minimum(self.simple, slope, self.domain).lower

    def _combined(self, base: float, slope: Array, known: Linearisation) -> float:
        """The bound maximised over p + combinations of old points (gradients of a quadratic are affine)."""
        steps = [(old.point - known.point).ravel() for old in self.history]
        sizes = [float(np.linalg.norm(step)) for step in steps]
        smallest = 1e-14 * (1.0 + float(np.linalg.norm(known.point)))
        kept = [i for i, size in enumerate(sizes) if size > smallest]
        if not kept:
            return -math.inf
        D = np.stack([steps[i] / sizes[i] for i in kept], axis=1)
        differences = [(self.history[i].gradient - known.gradient).ravel() / sizes[i] for i in kept]
        HD = np.stack(differences, axis=1)
        r = slope.ravel()
        quadratic = HD.T @ HD / self.modulus - 0.5 * (D.T @ HD + HD.T @ D)
        linear = D.T @ r - HD.T @ r / self.modulus
        values, vectors = np.linalg.eigh(quadratic)
        good = values > 1e-13 * values.max()
        c = vectors[:, good] @ ((vectors[:, good].T @ linear) / values[good])
        move, turn = D @ c, HD @ c
        residual = r + turn
        value = base + float(r @ move) + 0.5 * float(move @ turn)
        return value - float(residual @ residual) / (2.0 * self.modulus)
