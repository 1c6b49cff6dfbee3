"""Functions and sets in the form of a quadratic program: what an interior-point method can be told.

A block of a problem is said by numbers alone: 1/2 q x^2 + c x and kinks, entry by entry, on a box with equations. A
kink w |x - b|, rounded off where `bend` is above 0 (Huber's function), is the maximum over |s| <= w of
s (x - b) - bend s^2 / 2.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import scipy

from saddleslide.arrays.base import Array

if TYPE_CHECKING:
    from collections.abc import Sequence

    from saddleslide.domains.base import Domain

    class Said(Protocol):
        """A function that may have the form of a program."""

        def as_program(self, size: int) -> Program | None: ...


@dataclass(frozen=True)
class Kink:
    """The sum of w |x - center|, with `bend` / 2 times the square of its slope taken off; entry by entry."""

    weight: Array
    center: Array
    bend: Array


@dataclass(frozen=True)
class Program:
    """One block as a quadratic program: flat arrays, one number for every entry.

    Parameters
    ----------
    quadratic, linear : array
        q >= 0 and c of 1/2 q x^2 + c x.
    lower, upper : array
        Ends of the box; infinite where there is none.
    kinks : tuple of Kink
        Terms that are not smooth, or Huber functions.
    rows, totals : sparse matrix and array
        Equations rows @ x = totals.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> said = program_of(ss.functions.Quadratic(2.0) + 3.0 * ss.functions.L1(), ss.domains.Simplex(2))
    >>> said.quadratic, said.kinks[0].weight, said.rows.toarray(), said.totals
    (array([2., 2.]), array([3., 3.]), array([[1., 1.]]), array([1.]))
    """

    quadratic: Array
    linear: Array
    lower: Array
    upper: Array
    rows: Any
    totals: Array
    kinks: tuple[Kink, ...] = ()

    @classmethod
    def on(cls, size: int, lower: Any = -np.inf, upper: Any = np.inf, rows: Any = None, totals: Any = ()) -> Program:
        """0 on a box with equations."""
        low, high = (np.array(np.broadcast_to(np.ravel(end), (size,)), dtype=np.float64) for end in (lower, upper))
        rows = scipy.sparse.csr_array((0, size) if rows is None else rows)
        return cls(np.zeros(size), np.zeros(size), low, high, rows, np.ravel(totals).astype(np.float64))

    @property
    def size(self) -> int:
        """Number of entries of x."""
        return self.quadratic.size

    def plus(self, other: Program) -> Program:
        """The sum of both functions where both sets meet."""
        return Program(
            self.quadratic + other.quadratic, self.linear + other.linear,
            np.maximum(self.lower, other.lower), np.minimum(self.upper, other.upper),
            scipy.sparse.vstack([self.rows, other.rows], format="csr"), np.concatenate([self.totals, other.totals]),
            self.kinks + other.kinks,
        )  # fmt: skip

    def times(self, factor: float) -> Program:
        """`factor` > 0 times the function."""
        kinks = tuple(Kink(factor * kink.weight, kink.center, kink.bend / factor) for kink in self.kinks)
        return replace(self, quadratic=factor * self.quadratic, linear=factor * self.linear, kinks=kinks)

    def translated(self, b: Array) -> Program:
        """The function at x - b, but for a constant."""
        return replace(
            self, linear=self.linear - self.quadratic * b, lower=self.lower + b, upper=self.upper + b,
            totals=self.totals + self.rows @ b, kinks=tuple(replace(k, center=k.center + b) for k in self.kinks),
        )  # fmt: skip


def joined(parts: Sequence[Program]) -> Program:
    """The program of x_1, ..., x_n, one after the other."""
    kinks, start, total = [], 0, sum(part.size for part in parts)
    for part in parts:
        for kink in part.kinks:
            weight, center, bend = (np.zeros(total) for _ in range(3))
            place = slice(start, start + part.size)
            weight[place], center[place], bend[place] = kink.weight, kink.center, kink.bend
            kinks.append(Kink(weight, center, bend))
        start += part.size
    q, c, lower, upper = (
        np.concatenate([getattr(part, name) for part in parts]) for name in ("quadratic", "linear", "lower", "upper")
    )
    rows = scipy.sparse.block_diag([part.rows for part in parts], format="csr")
    return Program(q, c, lower, upper, rows, np.concatenate([part.totals for part in parts]), tuple(kinks))


def program_of(function: Said, domain: Domain) -> Program | None:
    """The function on the domain as a program; None where either can not be said so."""
    first = domain.as_program()
    second = None if first is None else function.as_program(domain.size)
    return None if first is None or second is None else second.plus(first)
