"""Problems that resist: a chain of coordinates for each oracle, so that every call of it shows one coordinate more."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, final

import numpy as np

import saddleslide as ss
from saddleslide.arrays.arguments import as_whole
from saddleslide.arrays.base import Array, as_number
from saddleslide.domains.base import Domain
from saddleslide.domains.norms import Ball
from saddleslide.domains.product import Product
from saddleslide.errors import InputError
from saddleslide.functions.base import Function
from saddleslide.functions.entrywise import Linear
from saddleslide.gallery.solution import Fact, ResultArray, Solution
from saddleslide.operators.explicit import as_operator
from saddleslide.plots import STYLES
from saddleslide.problem import SaddleProblem

# Halvings of an interval of length delta: to the last bit of it.
_HALVINGS = 54


@final
class Chain(Function):
    """A (nu, H)-Hölder function of the first k entries, whose gradients show one entry more than the point has.

    2 sqrt(k) times the least over u of max_i (u_i - i delta) + delta^(-nu) / (1+nu) |x - u|^(1+nu), with delta =
    k^(-3/2) / 2; of max_i x_i where nu = 0. It is more than 1 above its minimum over the unit ball wherever entry k is
    0 (docs/open.md).

    Parameters
    ----------
    nu : float
        Exponent in [0, 1].
    k : int
        Links of the chain.
    size : int, optional
        Length of x; k when missing.

    Examples
    --------
    >>> import numpy as np
    >>> chain = Chain(nu=0.5, k=4)
    >>> (chain.gradient(np.array([-0.3, -0.2, 0.0, 0.0])) != 0.0).tolist()
    [False, False, True, False]
    """

    def __init__(self, nu: float, k: int, size: int | None = None) -> None:
        self.nu = as_number(nu, "Chain: nu", 0.0)
        if self.nu > 1.0:
            raise InputError(f"Chain: nu is {nu!r}; expected a number in [0, 1].")
        self.k = as_whole(k, "Chain: k", 1)
        self.shape = (self.k if size is None else as_whole(size, "Chain: size", self.k),)
        self.weight = 2.0 * math.sqrt(self.k)
        self.delta = 0.0 if self.nu == 0.0 else 0.5 * self.k**-1.5
        self.offsets = self.delta * np.arange(1, self.k + 1)

    def __repr__(self) -> str:
        return f"Chain(nu={self.nu}, k={self.k})"

    def value_and_gradient(self, x: Array, out: Array | None = None) -> tuple[float, Array]:
        out = np.empty_like(x) if out is None else out
        out[...] = 0.0
        heights = x[: self.k] - self.offsets
        if self.nu == 0.0:
            first = int(np.argmax(heights))
            out[first] = self.weight
            return self.weight * float(heights[first]), out
        rest = self._rest(heights)
        size, total = float(np.linalg.norm(rest)), float(np.sum(rest))
        out[: self.k] = (self.weight / total) * rest
        level = float(np.max(heights - rest))
        return self.weight * (level + self.delta * (size / self.delta) ** (1.0 + self.nu) / (1.0 + self.nu)), out

    def _rest(self, heights: Array) -> Array:
        """The r = (heights - tau)_+ with beta |r|^(nu - 1) sum r = 1: what is cut off above the level tau."""
        top = float(np.max(heights))
        low, high = 0.0, self.delta
        for _ in range(_HALVINGS):
            middle = 0.5 * (low + high)
            rest = np.maximum(heights - (top - middle), 0.0)
            size = float(np.linalg.norm(rest))
            enough = (size / self.delta) ** self.nu * float(np.sum(rest)) >= size
            low, high = (low, middle) if enough else (middle, high)
        return np.maximum(heights - (top - high), 0.0)

    def smoothness(self, domain: Domain) -> ss.Holder:
        if self.nu == 0.0:
            return ss.Holder(0.0, self.weight * math.sqrt(2.0))
        return ss.Holder(self.nu, self.weight * 2.0 ** (1.0 - self.nu) * self.delta**-self.nu)

    def strong_convexity(self, domain: Domain) -> float:
        return 0.0

    @property
    def least(self) -> float:
        """The minimum over the unit ball: of the dual, whose solution is proportional to (mu - i delta)_+."""
        if self.nu == 0.0:
            return -self.weight / math.sqrt(self.k)
        low, high = self.delta, 2.0 + self.delta * self.k
        for _ in range(2 * _HALVINGS):
            mu = 0.5 * (low + high)
            p = np.maximum(mu - self.offsets, 0.0)
            size = float(np.linalg.norm(p))
            short = size < 1.0 + self.delta * (size / float(np.sum(p))) ** (1.0 / self.nu)
            low, high = (mu, high) if short else (low, mu)
        p = np.maximum(high - self.offsets, 0.0)
        p /= float(np.sum(p))
        size = float(np.linalg.norm(p))
        bent = self.nu / (1.0 + self.nu) * self.delta * size ** ((1.0 + self.nu) / self.nu)
        return float(-self.weight * (size + bent + p @ self.offsets))


@final
@dataclass(frozen=True, eq=False, repr=False)
class ChainSolution(Solution):
    """The exact gap of a point of `hard_chains`, how far each chain has been seen, and calls over their lower bounds.

    Examples
    --------
    >>> import saddleslide as ss
    >>> problem = ss.gallery.hard_chains(1.0, 1.0, calls=(3, 4, 6))
    >>> solution = problem.read(ss.solve(problem, tol=1.0, method="recursive-sliding"))
    >>> solution.gap <= 1.0, all(ratio >= 1.0 for ratio in solution.ratios.values())
    (True, True)
    """

    problem: SaddleProblem
    least: dict[str, int]
    result: ss.Result
    x = ResultArray("x", "The chain of f, and that of B in x.")
    y = ResultArray("y", "The chain of g, and that of B in y.")

    @property
    def gap(self) -> float:
        """The gap in closed form."""
        return chain_gap(self.problem, self.x, self.y)

    @property
    def ratios(self) -> dict[str, float]:
        """Calls of the run over those that every method needs for a gap of at most 1."""
        return {name: getattr(self.result.calls, name) / least for name, least in self.least.items()}

    def facts(self) -> dict[str, Fact]:
        known: dict[str, Fact] = {"gap": self.gap}
        return known | {f"calls of {name} over the bound": ratio for name, ratio in self.ratios.items()}

    def draw(self, figure: Any) -> None:
        axes = figure.subplots(1, 2)
        for ax, (name, values), style in zip(axes, self.arrays().items(), STYLES[:2], strict=True):
            ax.plot(values, color=style[0])
            ax.set(title=name, xlabel="link")


def hard_chains(nu_x: float = 1.0, nu_y: float = 1.0, *, calls: Sequence[int] = (16, 16, 30)) -> SaddleProblem:
    """A problem on which a gap of at most 1 takes so many calls of f', of g', and of products, whatever the method.

    Every method counts whose points are combinations of what its oracles have said, and of projections of such (all
    of `ss.methods` from the start 0). Each oracle has its own chain, and the budgets of Corollary 3.6 are these numbers
    up to a constant (docs/open.md).

    Parameters
    ----------
    nu_x, nu_y : float
        Hölder exponents of f and g.
    calls : (f, g, B)
        The lower bounds.

    Examples
    --------
    >>> problem = hard_chains(0.5, 0.0, calls=(3, 5, 8))
    >>> problem.X, problem.coupling.y_shape
    (Product(Ball(1.0, shape=(3,)), Ball(1.0, shape=(5,))), (10,))
    """
    found = tuple(calls)
    if len(found) != 3:
        raise InputError(f"hard_chains: calls are {calls!r}; expected three numbers, of f', g' and products.")
    k_f, k_g, k_B = (as_whole(k, f"hard_chains: calls of {name}", 1) for k, name in zip(found, "fgB", strict=True))
    n = k_B // 2 + 1
    norm = 2.0 * (n + 1)
    links = 0.5 * norm * (np.eye(n) - np.eye(n, k=-1))
    B, b = np.zeros((k_g + n, k_f + n)), np.zeros(k_g + n)
    B[k_g:, k_f:], b[k_g] = links, 0.5 * norm / math.sqrt(n)
    f, g = Chain(nu_x, k_f, k_f + n), Chain(nu_y, k_g, k_g + n) + Linear(b)
    X, Y = (Product(Ball(1.0, shape=k), Ball(1.0, shape=n)) for k in (k_f, k_g))
    bare = SaddleProblem(f=f, g=g, B=as_operator(B, norm=norm), X=X, Y=Y)
    reader = partial(ChainSolution, bare, {"f": k_f, "g": k_g, "B": k_B})
    return SaddleProblem(f=f, g=g, B=bare.coupling, X=X, Y=Y, reader=reader)


def chain_gap(problem: SaddleProblem, x: Array, y: Array) -> float:
    """The gap of a point of `hard_chains` in closed form: that of f, that of g, and that of B on unit balls.

    Examples
    --------
    >>> problem = hard_chains(1.0, 0.0, calls=(4, 4, 4))
    >>> chain_gap(problem, *problem.start()) > 1.0
    True
    """
    f, (g, linear) = problem.f, problem.g.components
    assert isinstance(f, Chain)
    assert isinstance(g, Chain)
    b = linear.gradient(y)
    ahead, back = problem.coupling.forward(x) - b, problem.coupling.adjoint(y)
    coupled = float(np.linalg.norm(ahead) + np.linalg.norm(back) + b @ y)
    return f.value(x) - f.least + g.value(y) - g.least + coupled
