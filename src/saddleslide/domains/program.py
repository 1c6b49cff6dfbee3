"""Functions and sets in the form of a quadratic program: what an interior-point method can be told.

A block of a problem is said by numbers alone: 1/2 q x^2 + c x and kinks, entry by entry, and squares |A x - b|^2 / 2,
on a box with equations. A kink w |x - b|, rounded off where `bend` is above 0 (Huber's function), is the maximum over
|s| <= w of s (x - b) - bend s^2 / 2; squares are the largest of <w, A x - b> - |w|^2 / 2, see `lift_squares`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import scipy

from saddleslide.arrays.base import Array, no_rows

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
    squares : tuple of (matrix, array)
        A and b of the terms |A x - b|^2 / 2.
    """

    quadratic: Array
    linear: Array
    lower: Array
    upper: Array
    rows: Any
    totals: Array
    kinks: tuple[Kink, ...] = ()
    squares: tuple[tuple[Any, Array], ...] = ()

    @classmethod
    def on(cls, size: int, lower: Any = -np.inf, upper: Any = np.inf, rows: Any = None, totals: Any = ()) -> Program:
        """0 on a box with equations."""
        low, high = np.empty((2, size))
        low[:], high[:] = np.ravel(lower), np.ravel(upper)
        rows = no_rows(size) if rows is None else scipy.sparse.csr_array(rows)
        return cls(np.zeros(size), np.zeros(size), low, high, rows, np.ravel(totals).astype(np.float64))

    @property
    def size(self) -> int:
        """Number of entries of x."""
        return self.quadratic.size

    def plus(self, other: Program) -> Program:
        """The sum of both functions where both sets meet."""
        # Most parts have no equations.
        known = [part.rows for part in (self, other) if part.totals.size]
        rows = scipy.sparse.vstack(known, format="csr") if len(known) == 2 else (known or [self.rows])[0]
        return Program(
            self.quadratic + other.quadratic, self.linear + other.linear,
            np.maximum(self.lower, other.lower), np.minimum(self.upper, other.upper),
            rows, np.concatenate([self.totals, other.totals]), self.kinks + other.kinks, self.squares + other.squares,
        )  # fmt: skip

    def times(self, factor: float) -> Program:
        """`factor` > 0 times the function."""
        kinks = tuple(Kink(factor * kink.weight, kink.center, kink.bend / factor) for kink in self.kinks)
        root = factor**0.5
        squares = self.squares if factor == 1.0 else tuple((root * A, root * b) for A, b in self.squares)
        quadratic, linear = factor * self.quadratic, factor * self.linear
        return replace(self, quadratic=quadratic, linear=linear, kinks=kinks, squares=squares)

    def translated(self, b: Array) -> Program:
        """The function at x - b, but for a constant."""
        return replace(
            self, linear=self.linear - self.quadratic * b, lower=self.lower + b, upper=self.upper + b,
            totals=self.totals + self.rows @ b, kinks=tuple(replace(k, center=k.center + b) for k in self.kinks),
            squares=tuple((A, data + A @ b) for A, data in self.squares),
        )  # fmt: skip


def join(parts: Sequence[Program]) -> Program:
    """The program of x_1, ..., x_n, one after the other."""
    kinks, squares, start, total = [], [], 0, sum(part.size for part in parts)
    for part in parts:
        for A, b in part.squares:
            sides = [scipy.sparse.csr_array((b.size, width)) for width in (start, total - start - part.size)]
            squares.append((scipy.sparse.hstack([sides[0], A, sides[1]], format="csr"), b))
        for kink in part.kinks:
            weight, center, bend = (np.zeros(total) for _ in range(3))
            place = slice(start, start + part.size)
            weight[place], center[place], bend[place] = kink.weight, kink.center, kink.bend
            kinks.append(Kink(weight, center, bend))
        start += part.size
    q, c, lower, upper = (
        np.concatenate([getattr(part, name) for part in parts]) for name in ("quadratic", "linear", "lower", "upper")
    )
    # Most parts have no equations.
    bound = any(part.totals.size for part in parts)
    rows = [scipy.sparse.csr_array(part.rows) for part in parts] if bound else []
    known = scipy.sparse.block_diag(rows, format="csr") if bound else None
    rows = no_rows(total) if known is None else known
    totals = np.concatenate([part.totals for part in parts])
    return Program(q, c, lower, upper, rows, totals, tuple(kinks), tuple(squares))


def program_of(function: Said, domain: Domain) -> Program | None:
    """The function on the domain as a program; None where either can not be said so."""
    first = domain.as_program()
    second = None if first is None else function.as_program(domain.size)
    return None if first is None or second is None else second.plus(first)


def lift_squares(f: Program, g: Program, B: Any) -> tuple[Program, Program, list[Any]]:
    """The saddle problem of two programs without squares, and the blocks of rows of its matrix.

    |A x - b|^2 / 2 is the largest of <w, A x - b> - |w|^2 / 2 over w, which stands beside y; the same with x and y
    exchanged.
    """
    if not (f.squares or g.squares):
        return f, g, [B]
    if g.squares:
        B = _beside([B, *(-C.T for C, _ in g.squares)])
    beside = int(sum(e.size for _, e in g.squares))
    blocks = [A if not beside else _beside([A, scipy.sparse.csr_array((b.size, beside))]) for A, b in f.squares]
    sides = [join([replace(side, squares=()), *map(_square, other.squares)]) for side, other in ((f, g), (g, f))]
    return sides[0], sides[1], [B, *blocks] if B.shape[0] or not blocks else blocks


def _square(term: tuple[Any, Array]) -> Program:
    """|w|^2 / 2 + <b, w>."""
    made = Program.on(term[1].size)
    return replace(made, quadratic=np.ones(made.size), linear=term[1])


def _beside(parts: list[Any]) -> Any:
    """Matrices side by side, of sparse rows only where all but empty ones are sparse."""
    if all(scipy.sparse.issparse(part) for part in parts):
        return scipy.sparse.hstack(parts, format="csr")
    return np.hstack([part.toarray() if scipy.sparse.issparse(part) else part for part in parts])
