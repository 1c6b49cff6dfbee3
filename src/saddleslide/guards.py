"""What true oracles can not do: checks of products, values and gradients that are known already, at no call.

Each guard raises RunEnded with the status INCONSISTENT and what was seen. The margins are far above rounding, so that
a true oracle in single precision passes.
"""

from __future__ import annotations

import contextlib
import math

import numpy as np

from saddleslide.arrays import Array
from saddleslide.candidate import Linearisation
from saddleslide.couplings import Coupling
from saddleslide.domains import Domain
from saddleslide.errors import InputError
from saddleslide.functions import Function
from saddleslide.holder import Holder
from saddleslide.oracles import Oracles, RunEnded

# Relative to the sizes of the terms: what is above can not be rounding.
ADJOINT, CONVEXITY = 1e-6, 1e-6
# Of a point in single precision, relative to its size.
_ROUNDING = 1e-7
# Linearisations that a new one is compared with; of large arrays one, whose comparison costs about what a step does.
_KEPT, _LARGE = 4, 100_000


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
        # What was declared, once it is asked for.
        self.modulus = math.nan
        self.smoothness: Holder | None = None

    def look(self, new: Linearisation) -> None:
        """Compare with the last ones, and keep this one."""
        if not _known(new) or any(old.point is new.point for old in self.kept):
            return
        before, self.kept = self.kept, [*self.kept, new][-(_KEPT if new.point.size <= _LARGE else 1) :]
        for old in before:
            complaint = self._complaint(old, new)
            if complaint:
                raise inconsistent(complaint)

    def _read_constants(self) -> None:
        """Some functions factorise a matrix for their modulus: that is done once."""
        if math.isnan(self.modulus):
            self.modulus = self.function.strong_convexity(self.domain)
            with contextlib.suppress(InputError):
                self.smoothness = self.function.smoothness(self.domain)

    def _complaint(self, old: Linearisation, new: Linearisation) -> str:
        self._read_constants()
        way = new.point - old.point
        square = float(np.vdot(way, way))
        # What was declared was declared on the domain.
        inside = all(self.domain.contains(known.point, 1e-9) for known in (old, new))
        modulus = self.modulus if inside else 0.0
        complaint = self._turning(old, new, way, modulus * square)
        if complaint or not (math.isfinite(old.value) and math.isfinite(new.value)):
            return complaint
        slopes = float(np.vdot(old.gradient, way)), float(np.vdot(new.gradient, way))
        reach = np.abs(old.point) + np.abs(new.point)
        rounding = self._rounding(float(np.linalg.norm(reach)))
        for known, rest in ((old, new.value - old.value - slopes[0]), (new, old.value - new.value + slopes[1])):
            size = abs(old.value) + abs(new.value) + float(np.vdot(np.abs(known.gradient), reach))
            least = 0.5 * modulus * square
            complaint = _bent(self.name, modulus, least - rest, CONVEXITY * (size + least) + rounding)
            complaint = complaint or (self._rough(rest, square, CONVEXITY * size + rounding) if inside else "")
            if complaint:
                return complaint
        return ""

    def _turning(self, old: Linearisation, new: Linearisation, way: Array, least: float) -> str:
        """Gradients alone: <f'(a) - f'(b), a - b> >= modulus |a - b|^2; differences of values drown in rounding."""
        curvature = float(np.vdot(new.gradient - old.gradient, way))
        sizes = old.sizes[1] + new.sizes[1]
        allowed = CONVEXITY * (sizes * float(np.linalg.norm(way)) + least)
        return _bent(self.name, self.modulus if least > 0.0 else 0.0, least - curvature, allowed)

    def _rounding(self, reach: float) -> float:
        """What rounding of the points does to values where these and the gradients vanish, as of an exact fit."""
        if self.smoothness is None:
            return 0.0
        nu, H = self.smoothness.nu, self.smoothness.H
        return float(H * (_ROUNDING * reach) ** (1.0 + nu))

    def _rough(self, rest: float, square: float, allowed: float) -> str:
        """The declared Hölder condition bounds the distance from the tangent by H |way|^(1 + nu) / (1 + nu)."""
        if self.smoothness is None:
            return ""
        nu, H = self.smoothness.nu, self.smoothness.H
        most = H * square ** (0.5 * (1.0 + nu)) / (1.0 + nu)
        if rest <= most + CONVEXITY * most + allowed:
            return ""
        return (
            f"{self.name} is not as smooth as declared, (nu, H) = ({nu:g}, {H:g}): between two points it leaves its "
            f"tangent by {rest:.3g}, at most {most:.3g} is allowed. Declare a larger H."
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
