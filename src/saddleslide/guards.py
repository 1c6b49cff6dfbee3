"""What true oracles can not do: checks of products, values and gradients that are known already, at no call.

Each guard raises RunEnded with the status INCONSISTENT and what was seen. The margins are far above rounding, so that
a true oracle in single precision passes.
"""

from __future__ import annotations

import math

import numpy as np

from saddleslide.arrays import Array
from saddleslide.candidate import Linearisation
from saddleslide.couplings import Coupling
from saddleslide.domains import Domain
from saddleslide.errors import InputError
from saddleslide.functions import Function
from saddleslide.oracles import Oracles, RunEnded

# Relative to the sizes of the terms: what is above can not be rounding.
ADJOINT, CONVEXITY = 1e-6, 1e-6
# Linearisations that a new one is compared with.
_KEPT = 4


def inconsistent(reason: str) -> RunEnded:
    """The end of a run whose oracles contradict each other."""
    return RunEnded("INCONSISTENT", reason)


def adjoint_complaint(coupling: Coupling, x: Array, Bx: Array, y: Array, BTy: Array) -> str:
    """What is wrong with <Bx, y> = <x, B^T y>; empty where nothing is.

    Examples
    --------
    >>> B = np.array([[2.0]])
    >>> from saddleslide.couplings import as_coupling
    >>> adjoint_complaint(as_coupling(B), np.ones(1), np.full(1, 2.0), np.ones(1), np.full(1, 2.0))
    ''
    >>> adjoint_complaint(as_coupling(B), np.ones(1), np.full(1, 2.0), np.ones(1), np.full(1, 3.0))[:18]
    '<Bx, y> = 2 and <x'
    """
    first, second = float(np.vdot(Bx, y)), float(np.vdot(x, BTy))
    sizes = float(np.linalg.norm(x)), float(np.linalg.norm(y))
    known = coupling.__dict__.get("norm")
    # Both products may be small by cancellation: rounding is relative to the norm of B, where that is known.
    scale = max(float(np.linalg.norm(Bx)) * sizes[1], float(np.linalg.norm(BTy)) * sizes[0])
    scale = max(scale, known.upper * sizes[0] * sizes[1]) if known is not None else scale
    difference = abs(first - second)
    # Matrices at hand know what rounding can do to their products, norm or not.
    rounding = 2.0 * coupling.product_error * sizes[0] * sizes[1]
    if not math.isfinite(difference) or difference <= ADJOINT * scale + rounding:
        return ""
    return (
        f"<Bx, y> = {first:.6g} and <x, B^T y> = {second:.6g} at one point: the adjoint of B is not the transpose of "
        "its forward product. Check signs, scaling and boundaries."
    )


def check_adjoint_of(oracles: Oracles) -> None:
    """The identity at one seeded pair, by two counted products.

    Examples
    --------
    >>> import saddleslide as ss
    >>> box, zero = ss.domains.Box(-1.0, 1.0, shape=2), ss.functions.Zero()
    >>> wrong = ss.couplings.as_coupling((lambda x: 2 * x, lambda y: 3 * y), (2,), (2,), norm=2.0)
    >>> check_adjoint_of(Oracles(ss.SaddleProblem(f=zero, g=zero, B=wrong, X=box, Y=box)))
    Traceback (most recent call last):
    ...
    saddleslide.oracles.RunEnded: <Bx, y> = ...
    """
    problem, rng = oracles.problem, np.random.default_rng(0)
    x, y = rng.standard_normal(problem.X.shape), rng.standard_normal(problem.Y.shape)
    Bx = oracles.forward(x)
    size = float(np.linalg.norm(Bx))
    if size > 0.0:
        # A y that leans towards Bx: an independent one may be orthogonal to it and hide a wrong scale.
        y += float(np.linalg.norm(y)) / size * Bx
    complaint = adjoint_complaint(problem.coupling, x, Bx, y, oracles.adjoint(y))
    if complaint:
        raise inconsistent(complaint)


class PairGuard:
    """Linearisations of one function at stored points, each compared with the last few before.

    Examples
    --------
    >>> import saddleslide as ss
    >>> guard = PairGuard("f", ss.functions.Quadratic(1.0), ss.domains.FullSpace(1))
    >>> guard.look(Linearisation(np.zeros(1), 0.0, np.zeros(1)))
    >>> guard.look(Linearisation(np.ones(1), 0.5, np.ones(1)))
    """

    def __init__(self, name: str, function: Function, domain: Domain) -> None:
        self.name, self.function, self.domain = name, function, domain
        self.kept: list[Linearisation] = []

    def look(self, new: Linearisation) -> None:
        """Compare with the last ones, and keep this one."""
        if not _known(new) or any(old.point is new.point for old in self.kept):
            return
        before, self.kept = self.kept, [*self.kept, new][-_KEPT:]
        for old in before:
            complaint = self._turning(old, new) or self._complaint(old, new) or self._complaint(new, old)
            if complaint:
                raise inconsistent(complaint)

    def _modulus(self, *points: Array) -> float:
        """The declared modulus is one on the domain."""
        inside = all(self.domain.contains(point, 1e-9) for point in points)
        return self.function.strong_convexity(self.domain) if inside else 0.0

    def _turning(self, first: Linearisation, second: Linearisation) -> str:
        """Gradients alone: <f'(a) - f'(b), a - b> >= modulus |a - b|^2; differences of values drown in rounding."""
        way, turn = first.point - second.point, first.gradient - second.gradient
        length = float(np.linalg.norm(way))
        curvature, modulus = float(np.vdot(turn, way)), self._modulus(first.point, second.point)
        sizes = float(np.linalg.norm(first.gradient)) + float(np.linalg.norm(second.gradient))
        least = modulus * length * length
        return _bent(self.name, modulus, least - curvature, CONVEXITY * (sizes * length + least))

    def _complaint(self, at: Linearisation, other: Linearisation) -> str:
        """Convexity, f(other) >= f(at) + <f'(at), other - at>, with its declared modulus."""
        way = other.point - at.point
        slope = float(np.vdot(at.gradient, way))
        rest = other.value - at.value - slope
        terms = float((np.abs(at.gradient) * (np.abs(other.point) + np.abs(at.point))).sum())
        size = abs(other.value) + abs(at.value) + terms
        square = float(np.vdot(way, way))
        if not (math.isfinite(other.value) and math.isfinite(at.value)):
            return ""
        modulus = self._modulus(at.point, other.point)
        least = 0.5 * modulus * square
        complaint = _bent(self.name, modulus, least - rest, CONVEXITY * (size + least))
        inside = self.domain.contains(at.point, 1e-9) and self.domain.contains(other.point, 1e-9)
        return complaint or self._smoothness_complaint(rest, square, size, inside)

    def _smoothness_complaint(self, rest: float, square: float, size: float, inside: bool) -> str:
        """The declared Hölder condition bounds the distance from the tangent by H |way|^(1 + nu) / (1 + nu)."""
        try:
            smoothness = self.function.smoothness(self.domain)
        except InputError:
            return ""
        most = smoothness.H * square ** (0.5 * (1.0 + smoothness.nu)) / (1.0 + smoothness.nu)
        if not inside or rest <= most + CONVEXITY * (size + most):
            return ""
        return (
            f"{self.name} is not as smooth as declared, (nu, H) = ({smoothness.nu:g}, {smoothness.H:g}): between two "
            f"points it leaves its tangent by {rest:.3g}, at most {most:.3g} is allowed. Declare a larger H."
        )


def _bent(name: str, modulus: float, missing: float, allowed: float) -> str:
    """What to say of a function that curves less than promised by more than rounding."""
    if not missing > allowed:
        return ""
    what = "convex" if modulus == 0.0 else f"strongly convex with the modulus {modulus:g}"
    return (
        f"{name} is not {what}, or its gradient is wrong: between two points it curves {missing:.3g} less than its "
        "gradients promise."
    )


def _known(known: Linearisation) -> bool:
    return bool(np.isfinite(known.gradient).all())
