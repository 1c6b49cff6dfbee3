"""Two-player zero-sum matrix games, with optional regularisers of the two strategies."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, final

import numpy as np

from saddleslide.arrays.base import Array
from saddleslide.domains import Simplex
from saddleslide.errors import InputError
from saddleslide.functions import Function, Zero
from saddleslide.gallery.solution import Fact, Solution, keep_kind
from saddleslide.operators import Coupling, as_coupling
from saddleslide.plots import STYLES
from saddleslide.problem import SaddleProblem
from saddleslide.runs.result import Result


@final
@dataclass(frozen=True, eq=False)
class GameSolution(Solution):
    """Strategies and value of a matrix game.

    Examples
    --------
    >>> import saddleslide as ss
    >>> game = ss.gallery.matrix_game([[3.0, 0.0], [1.0, 2.0]])
    >>> solution = game.read(ss.solve(game, tol=1e-9))
    >>> solution.row.round(6), solution.column.round(6), round(solution.value, 6)
    (array([0.25, 0.75]), array([0.5, 0.5]), 1.5)
    """

    payoff: Coupling
    f: Function
    g: Function
    result: Result

    @property
    def row(self) -> Array:
        """Probabilities of the rows: the player who receives the payoff."""
        return self.result.y

    @property
    def column(self) -> Array:
        """Probabilities of the columns: the player who pays."""
        return self.result.x

    @property
    def value(self) -> float:
        """What the strategies pay each other, regularisers included; the value of the game is within `bounds`."""
        paid = float(np.vdot(self.row, self.payoff.forward(self.column)))
        return paid + self.f.value(self.column) - self.g.value(self.row)

    @property
    def bounds(self) -> tuple[float, float]:
        """Certified bounds: the row player gets at least the first, the column player pays at most the second."""
        return self.result.lower, self.result.upper

    @property
    def exploitability(self) -> float:
        """What the two players together can gain by deviating, at most: the certified gap."""
        return self.result.gap

    def facts(self) -> dict[str, Fact]:
        return {
            "value": self.value,
            "value at least": self.bounds[0],
            "value at most": self.bounds[1],
            "exploitability": self.exploitability,
            "rows in use": int(np.count_nonzero(self.row > 0.0)),
            "columns in use": int(np.count_nonzero(self.column > 0.0)),
        }

    def arrays(self) -> dict[str, Array]:
        return {"row": self.row, "column": self.column}

    def draw(self, figure: Any) -> None:
        for ax, (name, strategy), style in zip(figure.subplots(1, 2), self.arrays().items(), STYLES[:2], strict=True):
            ax.bar(np.arange(strategy.size), strategy, color=style[0], width=0.85)
            ax.set(xlabel=name, ylabel="probability", title=f"strategy of the {name} player")
        figure.suptitle(f"value {self.value:.6g}, exploitability at most {self.exploitability:.1e}")


@keep_kind
def matrix_game(payoff: Any, *, row: Function | None = None, column: Function | None = None) -> SaddleProblem:
    """The zero-sum game in which the column player pays payoff[i, j] to the row player.

    min over column strategies q, max over row strategies p of <p, payoff q> + column(q) - row(p).

    Parameters
    ----------
    payoff : array, sparse matrix, LinearOperator or Coupling
        One row per action of the row player.
    row, column : Function, optional
        Convex regularisers of the strategies, such as `ss.functions.Quadratic(0.1)`; none when missing.

    Returns
    -------
    SaddleProblem
        `problem.read(result)` is a GameSolution.

    Examples
    --------
    >>> import saddleslide as ss
    >>> rock_paper_scissors = [[0.0, -1.0, 1.0], [1.0, 0.0, -1.0], [-1.0, 1.0, 0.0]]
    >>> game = matrix_game(rock_paper_scissors)
    >>> game.read(ss.solve(game, tol=1e-9)).row.round(6)
    array([0.333333, 0.333333, 0.333333])
    """
    B = as_coupling(payoff, name="matrix_game: payoff")
    if len(B.x_shape) != 1 or len(B.y_shape) != 1 or 0 in B.x_shape + B.y_shape:
        raise InputError(
            f"matrix_game: payoff maps {B.x_shape} to {B.y_shape}; expected a matrix with actions in both."
        )
    f, g = (Zero() if part is None else part for part in (column, row))
    reader = partial(GameSolution, B, f, g)
    return SaddleProblem(f=f, g=g, B=B, X=Simplex(B.x_shape), Y=Simplex(B.y_shape), reader=reader)
