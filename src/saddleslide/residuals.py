"""Lower bounds on min over a domain of h(x) + <pull, x> from gradients of h that are known already.

A gradient at p gives h(p) + <pull, p> + min_x { <r, x - p> + mu/2 |x - p|^2 + simple(x) } with r = h'(p) + pull. For a
quadratic h, gradients at old points give the same bound at every combination of them, maximised in closed form. A
combination that reaches far beyond points that lie close together multiplies the rounding of their gradients: what that
can do is kept small while maximising, and subtracted afterwards.
"""

from __future__ import annotations

import math

import numpy as np

from saddleslide.array_kinds import to_host
from saddleslide.arrays import Array, beside
from saddleslide.candidate import Linearisation
from saddleslide.domains import Ball, Domain, FullSpace
from saddleslide.functions import Function, Zero, bounding_modulus, prox, tilted_minimum

EPS = float(np.finfo(np.float64).eps)
_HISTORY = 6
# Rounding of a computed gradient, in units of EPS times the size of its terms.
_GRADIENT_ROUNDING = 16.0


class ResidualBound:
    """Bounds for h = rest + simple, where `simple` has a proximal step on the domain.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> h = ss.functions.LeastSquares(np.eye(2), np.ones(2))
    >>> side = ResidualBound(h, ss.functions.Zero(), ss.domains.FullSpace(2))
    >>> known = Linearisation(np.zeros(2), 1.0, -np.ones(2))
    >>> -1e-12 < side.minimum(np.zeros(2), known) <= 0.0
    True
    """

    def __init__(self, rest: Function, simple: Function, domain: Domain) -> None:
        self.rest, self.simple, self.domain = rest, simple, domain
        self.modulus = bounding_modulus(rest, simple, domain)
        self._finite = domain.bounded or simple.certain_convexity(domain) > 0.0
        self.history: list[Linearisation] = []
        combinable = rest.quadratic and isinstance(simple, Zero) and isinstance(domain, FullSpace | Ball)
        self._combines = combinable and self.modulus > 0.0
        # Largest curvature: what the terms of a gradient can measure per unit of x.
        self._curvature = rest.smoothness(domain).H if self._combines else 0.0

    @property
    def possible(self) -> bool:
        """Whether any finite bound can come from here."""
        return self.modulus > 0.0 or self._finite

    def minimum(self, pull: Array, known: Linearisation) -> float:
        """The best bound that `known` and its predecessors give, less a margin for rounding."""
        slope = known.gradient + pull
        base = known.value + float(np.vdot(pull, known.point))
        bound = self._linearised(base, slope, known.point)
        if self._combines:
            bound = max(bound, self._combined(base, slope, known))
            self.history = [*self.history, known][-_HISTORY:]
        # The value and the product may cancel, so rounding is relative to their terms and not to their sum.
        terms = (np.abs(known.gradient) + np.abs(pull)) * np.abs(known.point)
        return bound - 16.0 * EPS * (abs(known.value) + float(terms.sum()) + abs(bound))

    def simple_value(self, x: Array) -> float:
        """The simple part at x."""
        return 0.0 if isinstance(self.simple, Zero) else self.simple.value(x)

    def _linearised(self, base: float, slope: Array, point: Array) -> float:
        """Minimum over the domain of base + <slope, x - p> + mu/2 |x - p|^2 + simple(x)."""
        # The modulus is one on the domain; an extrapolated point may lie outside, a projection only by rounding.
        rounding = 4.0 * EPS * float(np.abs(point).sum())
        mu = self.modulus if self.domain.contains(point, rounding) else 0.0
        if mu > 0.0:
            x = prox(self.simple, point - slope / mu, mu, self.domain)
            step = x - point
            value = base + float(np.vdot(slope, step)) + 0.5 * mu * float(np.vdot(step, step))
            return value + self.simple_value(x)
        if not self._finite:
            return -math.inf
        return base - float(np.vdot(slope, point)) + tilted_minimum(self.simple, slope, self.domain).lower

    def _combined(self, base: float, slope: Array, known: Linearisation) -> float:
        """The bound maximised over p + combinations of old points (gradients of a quadratic are affine)."""
        ways = [past.point - known.point for past in self.history]
        smallest = 1e-14 * (1.0 + known.sizes[0])
        old = [
            (past, way, size)
            for past, way in zip(self.history, ways, strict=True)
            if (size := float(np.linalg.norm(way))) > smallest
        ]
        if not old:
            return -math.inf
        mu, r = self.modulus, slope.ravel()
        D = np.stack([way.ravel() / size for _, way, size in old], axis=1)
        HD = np.stack([(past.gradient - known.gradient).ravel() / size for past, _, size in old], axis=1)
        noise = np.array([self._rounding(past, known) / size for past, _, size in old])
        # As many numbers as there are old points: on the host, wherever the points lie.
        quadratic = to_host(HD.T @ HD / mu - 0.5 * (D.T @ HD + HD.T @ D)) + np.diag(len(old) * noise**2 / mu)
        linear = to_host(D.T @ r - HD.T @ r / mu)
        values, vectors = np.linalg.eigh(quadratic)
        good = values > 1e-13 * values.max()
        c = vectors[:, good] @ ((vectors[:, good].T @ linear) / values[good])
        there = beside(r, c)
        move, turn = D @ there, HD @ there
        left = float(np.linalg.norm(r + turn)) + float(noise @ np.abs(c))
        error = 0.5 * float(np.linalg.norm(move)) * float(noise @ np.abs(c))
        return base + float(r @ move) + 0.5 * float(move @ turn) - error - left * left / (2.0 * mu)

    def _rounding(self, first: Linearisation, second: Linearisation) -> float:
        """What rounding may have done to the difference of two gradients."""
        sizes = (known.sizes[1] + self._curvature * known.sizes[0] for known in (first, second))
        return _GRADIENT_ROUNDING * EPS * sum(sizes)
