"""What every solution in the words of its problem offers: facts, arrays, a picture; and what keeps its arrays' kind."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec, TypeAlias, TypeVar, cast

import numpy as np

import saddleslide as ss
from saddleslide.arrays.base import Array
from saddleslide.arrays.kinds import NUMPY, origin_of
from saddleslide.operators.base import Operator
from saddleslide.plots import require_matplotlib
from saddleslide.problem import SaddleProblem

Fact: TypeAlias = float | bool | str


class ResultArray:
    """The x or the y of a result, under the name that its problem has for it; `arrays` tells all of them."""

    def __init__(self, block: str, doc: str) -> None:
        self.block, self.__doc__ = block, doc

    def __get__(self, solution: Any, owner: Any = None) -> Array:
        return cast(Array, self if solution is None else getattr(solution.result, self.block))


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

    result: ss.Result

    def __repr__(self) -> str:
        # A short table: arrays are told by name and shape.
        rows = {
            name: f"{value:.6g}" if isinstance(value, float) else str(value) for name, value in self.facts().items()
        }
        rows |= {name: f"array of shape {value.shape}" for name, value in self.arrays().items()}
        width = max(map(len, rows))
        status = self.result.status.name.lower()
        return "\n".join([f"{type(self).__name__}, {status}", *(f"  {k:<{width}}  {v}" for k, v in rows.items())])

    @abstractmethod
    def facts(self) -> dict[str, Fact]:
        """Name and value of what is worth a line: for tables and records."""

    def arrays(self) -> dict[str, Array]:
        """The arrays under the names that the problem has for them."""
        known = {name: kind for part in reversed(type(self).__mro__) for name, kind in vars(part).items()}
        return {name: getattr(self, name) for name, kind in known.items() if isinstance(kind, ResultArray)}

    @abstractmethod
    def draw(self, figure: Any) -> None:
        """Draw the solution into an empty Matplotlib figure."""

    def plot(self, path: str | Path | None = None) -> Any:
        """A Matplotlib figure of the solution, saved when a path is given."""
        figure = require_matplotlib()(figsize=(8.4, 3.2), dpi=150, layout="constrained")
        self.draw(figure)
        if path is not None:
            figure.savefig(path)
        return figure


class Strategies(Solution):
    """Strategies of both players of a zero-sum game, x of who pays and y of who receives, in whatever form."""

    payoff: Operator

    @property
    def value(self) -> float:
        """What the strategies pay on average; the value of the game is within `bounds`."""
        return float(np.vdot(self.result.y, self.payoff.forward(self.result.x)))

    @property
    def bounds(self) -> tuple[float, float]:
        """Certified bounds: who receives gets at least the first, who pays pays at most the second."""
        return self.result.lower, self.result.upper

    @property
    def exploitability(self) -> float:
        """What the two players together can gain by deviating, at most: the certified gap."""
        return self.result.gap

    def facts(self) -> dict[str, Fact]:
        lower, upper = self.bounds
        return {
            "value": self.value,
            "value at least": lower,
            "value at most": upper,
            "exploitability": self.exploitability,
        }

    def title(self) -> str:
        """The line above a picture."""
        return f"value {self.value:.6g}, exploitability at most {self.exploitability:.1e}"


P = ParamSpec("P")
W = TypeVar("W")


def count_used(weights: Array) -> int:
    """Entries that carry weight: what interior points leave of the others is small, and not 0."""
    return int(np.count_nonzero(weights > 1e-3 * weights.max()))


def keep_kind(make: Callable[P, SaddleProblem[W]]) -> Callable[P, SaddleProblem[W]]:
    """The maker of a problem, with the kind of its arguments' arrays kept for the results."""

    @wraps(make)
    def made(*args: P.args, **kwargs: P.kwargs) -> SaddleProblem[W]:
        kind = origin_of(*args, *kwargs.values())
        problem = make(*args, **kwargs)
        return problem if kind == NUMPY else replace(problem, B=problem.coupling, arrays=kind)

    return made
