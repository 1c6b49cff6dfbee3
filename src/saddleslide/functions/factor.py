"""Which quadratics come with a factor of their Hessian, and what it gives: minima and bounds without a call."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from saddleslide.arrays.base import Array, on_host
from saddleslide.functions.roundings import FEW
from saddleslide.functions.trust import runs_own_code, terms_of

if TYPE_CHECKING:
    from saddleslide.domains.base import Domain
    from saddleslide.functions.base import Function
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
    # Linear terms bend nothing.
    terms = terms_of(f)
    curved = [(scale, part) for scale, part in terms if not part.linear] or terms
    if len(curved) != 1 or not curved[0][0] > 0.0:
        return None
    scale, part = curved[0]
    hessian = part.hessian_factor(domain)
    return None if hessian is None or not hessian.has_factor() else Factor(scale, hessian)
