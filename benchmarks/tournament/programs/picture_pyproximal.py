"""PyProximal's PrimalDual on [A; sD], with proximal steps written here.

Setting: ratio sqrt(tau / sigma), scale s, spectral coordinates. Not PyProximal's Huber: in version 0.13 its proximal
step is wrong for alpha < |x| < alpha + tau.
"""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

import numpy as np
import pylops
import pyproximal
from picture import Picture, load
from pyproximal.optimization.primaldual import PrimalDual
from serving import Recorder, serve
from stacked import Stacked, norm_of


class Primal(pyproximal.ProxOperator):
    def __init__(self, made: Stacked) -> None:
        super().__init__(None, False)
        self.made = made

    def __call__(self, x: np.ndarray) -> float:
        return 0.0

    def prox(self, x: np.ndarray, tau: float) -> np.ndarray:
        return self.made.primal_step(x, tau)


class Dual(pyproximal.ProxOperator):
    """The data term and g, on the stacked dual variable."""

    def __init__(self, made: Stacked) -> None:
        super().__init__(None, False)
        self.made = made

    def __call__(self, x: np.ndarray) -> float:
        return 0.0

    def prox(self, u: np.ndarray, tau: float) -> np.ndarray:
        return u - tau * self.proxdual(u / tau, 1.0 / tau)

    def proxdual(self, u: np.ndarray, sigma: float) -> np.ndarray:
        return self.made.dual_step(u, sigma)


def method(picture: Picture, setting: dict[str, Any], recorder: Recorder) -> None:
    made = Stacked(picture, setting)
    recorder.pause()
    norm, ratio = norm_of(made), float(setting["ratio"])
    recorder.ready()
    size = picture.n**2
    coupling = pylops.FunctionOperator(made.forward, made.adjoint, made.rows + 2 * size, size)

    def keep(v: np.ndarray, u: np.ndarray) -> None:
        recorder.step(lambda: made.point(v), lambda: made.y)

    PrimalDual(
        Primal(made), Dual(made), coupling, np.zeros(size), ratio / norm, 1.0 / (ratio * norm),
        niter=recorder.most, callback=keep, callbacky=True,
    )  # fmt: skip


if __name__ == "__main__":
    serve(method, load, f"pyproximal {version('pyproximal')}")
