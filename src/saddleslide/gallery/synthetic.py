"""The synthetic instances of the paper (appendix "Synthetic experiments"), pinned to the last digit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

import numpy as np

from saddleslide.arrays.arguments import as_whole
from saddleslide.arrays.base import Array, as_number
from saddleslide.domains import Box
from saddleslide.errors import InputError
from saddleslide.functions import Power
from saddleslide.gallery.solution import Fact, Solution
from saddleslide.operators import as_coupling
from saddleslide.plots import STYLES
from saddleslide.problem import SaddleProblem
from saddleslide.runs.result import Result


@final
@dataclass(frozen=True, eq=False)
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

    result: Result

    @property
    def value(self) -> float:
        """Middle of the certified bounds on the saddle value; at most half the gap off."""
        return 0.5 * (self.result.lower + self.result.upper)

    def facts(self) -> dict[str, Fact]:
        return {
            "saddle value": self.value,
            "coordinates of x on a side": float(np.sum(np.abs(self.result.x) == 1.0)),
            "coordinates of y on a side": float(np.sum(np.abs(self.result.y) == 1.0)),
        }

    def arrays(self) -> dict[str, Array]:
        return {"x": self.result.x, "y": self.result.y}

    def draw(self, figure: Any) -> None:
        axes = figure.subplots(1, 2, sharey=True)
        for ax, (name, values), style in zip(axes, self.arrays().items(), STYLES[:2], strict=True):
            ax.bar(np.arange(values.size), values, color=style[0])
            ax.set(title=name, xlabel="coordinate", ylim=(-1.05, 1.05))


def synthetic(
    nu_x: float = 0.75,
    nu_y: float = 0.25,
    *,
    seed: int = 0,
    d: int = 60,
    alpha_x: float = 1.0,
    alpha_y: float = 1.0,
    sigma_min: float = 0.5,
    sigma_max: float = 2.0,
    b_max: float = 0.0,
) -> SaddleProblem:
    """Powers with random tilts on boxes [-1, 1]^d, coupled by a matrix with log-spaced singular values.

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
    return SaddleProblem(f=f, g=g, B=as_coupling(B, norm=high), X=box, Y=box, reader=SyntheticSolution)
