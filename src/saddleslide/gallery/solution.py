"""What every solution in the words of its problem offers: facts, arrays, a picture."""

from __future__ import annotations

from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any, TypeAlias

from saddleslide.arrays.base import Array
from saddleslide.runs.plot import require_matplotlib
from saddleslide.runs.result import Result

Fact: TypeAlias = float | bool | str


class Solution(ABC):
    """A result read by its problem; `problem.read(result)` makes one.

    Examples
    --------
    >>> import saddleslide as ss
    >>> game = ss.gallery.matrix_game([[1.0, -1.0], [-1.0, 1.0]])
    >>> solution = game.read(ss.solve(game, tol=1e-9))
    >>> isinstance(solution, ss.gallery.Solution), sorted(solution.arrays())
    (True, ['column', 'row'])
    """

    result: Result

    @abstractmethod
    def facts(self) -> dict[str, Fact]:
        """Name and value of what is worth a line: for tables and records."""

    @abstractmethod
    def arrays(self) -> dict[str, Array]:
        """The arrays under the names that the problem has for them."""

    @abstractmethod
    def draw(self, figure: Any) -> None:
        """Draw the solution into an empty Matplotlib figure."""

    def plot(self, path: str | Path | None = None) -> Any:
        """A Matplotlib figure of the solution, saved when a path is given.

        Examples
        --------
        >>> import saddleslide as ss
        >>> game = ss.gallery.matrix_game([[1.0, -1.0], [-1.0, 1.0]])
        >>> len(game.read(ss.solve(game, tol=1e-9)).plot().axes)
        2
        """
        figure = require_matplotlib()(figsize=(8.4, 3.2), dpi=150, layout="constrained")
        self.draw(figure)
        if path is not None:
            figure.savefig(path)
        return figure
