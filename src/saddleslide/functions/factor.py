"""Which quadratics come with a factor of their Hessian, and what it gives: minima and bounds without a call."""

from __future__ import annotations

from typing import NamedTuple

from saddleslide.arrays.base import Array, on_host
from saddleslide.domains import Domain
from saddleslide.functions.base import Function, Scaled, Sum, is_ours, runs_own_code
from saddleslide.functions.losses import LeastSquares
from saddleslide.functions.quadratic import Quadratic
from saddleslide.functions.roundings import FEW
from saddleslide.operators.factor import Solvable


class Factor(NamedTuple):
    """The Hessian scale * H of a function, with solves."""

    scale: float
    hessian: Solvable

    def solve(self, r: Array) -> Array:
        """Hessian^-1 r up to rounding."""
        return self.hessian.solve(r) / self.scale

    def inverse_form(self, r: Array, shift: float = 0.0) -> float:
        """An upper bound on <r, (Hessian + shift I)^-1 r>."""
        return (1.0 + FEW) * self.hessian.inverse_form(r, shift / self.scale) / self.scale


def factor_of(f: Function, domain: Domain, x: Array) -> Factor | None:
    """The factor of a function whose curvature is that of one matrix at hand, where it is worth its cost; else None.

    For arrays like x: what lies elsewhere is not brought here.
    """
    if not on_host(x) or runs_own_code(f):
        return None
    if is_ours(f, Scaled):
        found = factor_of(f.function, domain, x) if f.factor > 0.0 else None
        return None if found is None else Factor(f.factor * found.scale, found.hessian)
    if is_ours(f, Sum):
        curved = [part for part in f.parts if not part.linear]
        return factor_of(curved[0], domain, x) if len(curved) == 1 else None
    hessian = f.factor(domain) if isinstance(f, LeastSquares | Quadratic) else None
    return None if hessian is None or not hessian.has_factor() else Factor(1.0, hessian)
