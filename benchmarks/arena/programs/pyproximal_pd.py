"""PyProximal's PrimalDual on [A; B], with proximal steps written here.

Not PyProximal's Huber: in version 0.13 its proximal step is wrong for alpha < |x| < alpha + tau.
"""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

import numpy as np
import pylops
import pyproximal
from form import Form, Stacked, load
from pyproximal.optimization.primaldual import PrimalDual
from serving import Recorder, serve


class Primal(pyproximal.ProxOperator):
    def __init__(self, form: Form) -> None:
        super().__init__(None, False)
        self.form = form

    def __call__(self, x: np.ndarray) -> float:
        return 0.0

    def prox(self, x: np.ndarray, tau: float) -> np.ndarray:
        return self.form.primal_step(x, tau)


class Dual(pyproximal.ProxOperator):
    """The data term and g, on the stacked dual variable."""

    def __init__(self, K: Stacked) -> None:
        super().__init__(None, False)
        self.K = K

    def __call__(self, x: np.ndarray) -> float:
        return 0.0

    def proxdual(self, u: np.ndarray, sigma: float) -> np.ndarray:
        return self.K.dual_step(u, sigma)

    def prox(self, u: np.ndarray, tau: float) -> np.ndarray:
        return u - tau * self.proxdual(u / tau, 1.0 / tau)


def method(form: Form, setting: dict[str, Any], recorder: Recorder) -> None:
    K, ratio = Stacked(form), float(setting["ratio"])
    norm = K.norm()
    coupling = pylops.FunctionOperator(K.forward, K.adjoint, K.size + form.h.size, form.c.size)
    recorder.ready()
    # Iterations are not left to a clock alone: PrimalDual keeps an array of steps as long as their number.
    PrimalDual(
        Primal(form), Dual(K), coupling, form.X.project(np.zeros(form.c.size)), ratio / norm, 1.0 / (ratio * norm),
        niter=recorder.most, callback=lambda x, u: recorder.step(x, u[K.size :]), callbacky=True,
    )  # fmt: skip


if __name__ == "__main__":
    serve(method, load, f"pyproximal {version('pyproximal')}")
