"""Products that a run need not make: those at a start of 0, and the last correction, whose iterate nobody reads."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, ClassVar, NamedTuple, final

from saddleslide.kernels import arguments

if TYPE_CHECKING:
    from saddleslide.arrays.base import Array
    from saddleslide.methods.sliding.component import Writer


class Ends(NamedTuple):
    """Whether an iteration, or an entry of a level, is the first and the last one of its run.

    Examples
    --------
    >>> run = Ends(first=True, last=True)
    >>> run.at(0, 3), run.at(2, 3).at(1, 2).last
    (Ends(first=True, last=False), True)
    """

    first: bool
    last: bool

    def at(self, j: int, T: int) -> Ends:
        """The same for iteration j of T inside."""
        return Ends(self.first and j == 0, self.last and j == T - 1)

    def of(self, part: slice, T: int) -> Ends:
        """The same for some of T iterations inside."""
        return Ends(self.first and part.start == 0, self.last and part.stop == T)


@final
class Thrift:
    """How the recursion spares products of its operator.

    Parameters
    ----------
    write_first : writer
        Q at the start of a run, without the products that are known there.
    left_out : callable
        Called in place of Q at the last correction.

    Examples
    --------
    >>> left_out = []
    >>> thrift = Thrift(lambda z, out: out.fill(0.0), lambda: left_out.append(2))
    >>> thrift.left_out(), left_out
    (None, [2])
    """

    stored: ClassVar[bool] = False

    def __init__(self, write_first: Writer, left_out: Callable[[], None]) -> None:
        self.write_first, self.left_out = write_first, left_out


def spared_by(ends: Ends, z: Array, n: int) -> int:
    """What compiled steps of a coupling's level may leave out, as the bits of `kinds`; x has n entries of z.

    Examples
    --------
    >>> import numpy as np
    >>> z = np.array([0.0, 0.0, 1.0])
    >>> spared_by(Ends(True, False), z, 2) == arguments.ZERO_X, spared_by(Ends(False, True), z, 2) == arguments.LAST
    (True, True)
    """
    at_start = arguments.ZERO_X * (not z[:n].any()) + arguments.ZERO_Y * (not z[n:].any()) if ends.first else 0
    return at_start + arguments.LAST * ends.last


def products_spared(spares: int) -> int:
    """How many products such bits stand for.

    Examples
    --------
    >>> products_spared(arguments.ZERO_Y + arguments.LAST)
    3
    """
    return bool(spares & arguments.ZERO_X) + bool(spares & arguments.ZERO_Y) + 2 * bool(spares & arguments.LAST)
