"""Zero-sum games of two players: on a matrix, with optional regularisers, and the paper's synthetic instances."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, final

import numpy as np

import saddleslide as ss
from saddleslide.arrays.arguments import as_whole
from saddleslide.arrays.base import as_number
from saddleslide.domains.entrywise import Box
from saddleslide.domains.simplices import Simplex
from saddleslide.errors import InputError
from saddleslide.functions.base import Function
from saddleslide.functions.entropies import Entropy
from saddleslide.functions.entrywise import Power, Zero
from saddleslide.gallery.restoration import as_positive
from saddleslide.gallery.solution import Fact, ResultArray, Solution, Strategies, count_used, keep_kind
from saddleslide.operators.base import Operator
from saddleslide.operators.explicit import as_operator
from saddleslide.plots import STYLES
from saddleslide.problem import SaddleProblem


@final
@dataclass(frozen=True, eq=False, repr=False)
class GameSolution(Strategies):
    """Strategies and value of a matrix game.

    Examples
    --------
    >>> import saddleslide as ss
    >>> game = ss.gallery.matrix_game([[3.0, 0.0], [1.0, 2.0]])
    >>> solution = game.read(ss.solve(game, tol=1e-9))
    >>> solution.row.round(6), solution.column.round(6), round(solution.value, 6)
    (array([0.25, 0.75]), array([0.5, 0.5]), 1.5)
    """

    payoff: Operator
    f: Function
    g: Function
    result: ss.Result

    row = ResultArray("y", "Probabilities of the rows: the player who receives the payoff.")
    column = ResultArray("x", "Probabilities of the columns: the player who pays.")

    @property
    def value(self) -> float:
        """What the strategies pay each other, regularisers included; the value of the game is within `bounds`."""
        return super().value + self.f.value(self.column) - self.g.value(self.row)

    def facts(self) -> dict[str, Fact]:
        return super().facts() | {
            "rows in use": count_used(self.row),
            "columns in use": count_used(self.column),
        }

    def draw(self, figure: Any) -> None:
        for ax, (name, strategy), style in zip(figure.subplots(1, 2), self.arrays().items(), STYLES[:2], strict=True):
            ax.bar(np.arange(strategy.size), strategy, color=style[0], width=0.85)
            ax.set(xlabel=name, ylabel="probability", title=f"strategy of the {name} player")
        figure.suptitle(self.title())


@keep_kind
def matrix_game(
    payoff: Any, *, row: Function | None = None, column: Function | None = None, entropy: float | None = None
) -> SaddleProblem[GameSolution]:
    """The zero-sum game in which the column player pays payoff[i, j] to the row player.

    min over column strategies q, max over row strategies p of <p, payoff q> + column(q) - row(p).

    Parameters
    ----------
    payoff : array, sparse matrix, LinearOperator or Operator
        One row per action of the row player.
    row, column : Function, optional
        Convex regularisers of the strategies, such as `ss.functions.Quadratic(0.1)`; none when missing.
    entropy : float, optional
        Weight > 0 of the negative entropy, sum p log p, of both strategies in place of `row` and `column`: they become
        a quantal response, with all actions in use.

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
    B = as_operator(payoff, name="matrix_game: payoff", dtype=float)
    if len(B.x_shape) != 1 or len(B.y_shape) != 1 or 0 in B.x_shape + B.y_shape:
        shapes = f"payoff maps {B.x_shape} to {B.y_shape}"
        raise InputError(f"matrix_game: {shapes}; expected a matrix with actions in both.")
    if entropy is not None:
        if not (row is None and column is None):
            raise InputError("matrix_game: entropy is given with row or column; expected one or the other.")
        row = column = as_positive(entropy, "matrix_game: entropy") * Entropy()
    f, g = (Zero() if part is None else part for part in (column, row))
    reader = partial(GameSolution, B, f, g)
    return SaddleProblem(f=f, g=g, B=B, X=Simplex(B.x_shape), Y=Simplex(B.y_shape), reader=reader)


@final
@dataclass(frozen=True, eq=False, repr=False)
class SyntheticSolution(Solution):
    """Both players' points, the bounds on the saddle value, and how many coordinates lie on the sides of the boxes.

    Examples
    --------
    >>> import saddleslide as ss
    >>> problem = ss.gallery.synthetic(1.0, 1.0, d=8)
    >>> solution = problem.read(ss.solve(problem, tol=1e-8))
    >>> round(solution.value, 6) == round(solution.result.lower, 6)
    True
    """

    result: ss.Result
    x = ResultArray("x", "The point of the player who minimises.")
    y = ResultArray("y", "The point of the player who maximises.")

    @property
    def value(self) -> float:
        """Middle of the certified bounds on the saddle value; at most half the gap off."""
        return 0.5 * (self.result.lower + self.result.upper)

    def facts(self) -> dict[str, Fact]:
        return {
            "saddle value": self.value,
            "coordinates of x on a side": float(np.sum(np.abs(self.x) == 1.0)),
            "coordinates of y on a side": float(np.sum(np.abs(self.y) == 1.0)),
        }

    def draw(self, figure: Any) -> None:
        axes = figure.subplots(1, 2, sharey=True)
        for ax, (name, values), style in zip(axes, self.arrays().items(), STYLES[:2], strict=True):
            ax.bar(np.arange(values.size), values, color=style[0])
            ax.set(title=name, xlabel="coordinate", ylim=(-1.05, 1.05))


def synthetic(
    nu_x: float = 0.75, nu_y: float = 0.25, *, seed: int = 0, d: int = 60, alpha_x: float = 1.0, alpha_y: float = 1.0,
    sigma_min: float = 0.5, sigma_max: float = 2.0, b_max: float = 0.0,
) -> SaddleProblem[SyntheticSolution]:  # fmt: skip
    """The paper's synthetic instances, pinned to the last digit: powers with random tilts on boxes [-1, 1]^d.

    The matrix that couples them has log-spaced singular values.

    Parameters
    ----------
    nu_x, nu_y : float
        Hölder exponents of f and g.
    seed : int
        Instance.
    d : int
        Size of x and of y.
    alpha_x, alpha_y : float
        Weights of the powers.
    sigma_min, sigma_max : float
        Range of the singular values of B.
    b_max : float
        Diagonal quadratic of g, from 0 to b_max.

    Examples
    --------
    >>> problem = synthetic(1.0, 0.5, seed=0)
    >>> problem.X, problem.coupling.norm.upper
    (Box(-1.0, 1.0, shape=(60,)), 2.0)
    """
    rng = np.random.default_rng(as_whole(seed, "synthetic: seed", 0))
    d = as_whole(d, "synthetic: d", 1)
    low, high = as_number(sigma_min, "synthetic: sigma_min", 0.0), as_number(sigma_max, "synthetic: sigma_max", 0.0)
    if not 0.0 < low <= high:
        raise InputError(f"synthetic: sigma_min, sigma_max are {low:g}, {high:g}; expected 0 < sigma_min <= sigma_max.")
    b_max = as_number(b_max, "synthetic: b_max", 0.0)
    # The draws and their order define the instance; the QR factors keep the signs that LAPACK gives them.
    U = np.linalg.qr(rng.standard_normal((d, d)))[0]
    V = np.linalg.qr(rng.standard_normal((d, d)))[0]
    c_x, c_y = rng.standard_normal(d), rng.standard_normal(d)
    B = (U * np.geomspace(low, high, d)) @ V.T
    box = Box(-1.0, 1.0, shape=d)
    f = Power(nu_x, weight=alpha_x, tilt=c_x)
    g = Power(nu_y, weight=alpha_y, tilt=c_y, quadratic=np.linspace(0.0, b_max, d) if b_max else None)
    return SaddleProblem(f=f, g=g, B=as_operator(B, norm=high), X=box, Y=box, reader=SyntheticSolution)
