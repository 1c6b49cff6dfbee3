"""PyProximal's PrimalDual on [A; B], with proximal steps written here.

Not PyProximal's Huber: in version 0.13 its proximal step is wrong for alpha < |x| < alpha + tau.
"""

from __future__ import annotations

import contextlib
from importlib.metadata import version

import numpy as np
import pylops
import pyproximal
from form import Ended, Form, Products, norm_of, task, write
from pyproximal.optimization.primaldual import PrimalDual


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

    def __init__(self, form: Form) -> None:
        super().__init__(None, False)
        self.form, self.rows = form, 0 if form.A is None else form.b.size

    def __call__(self, x: np.ndarray) -> float:
        return 0.0

    def proxdual(self, u: np.ndarray, sigma: float) -> np.ndarray:
        data = (u[: self.rows] - sigma * self.form.b[: self.rows]) / (1.0 + sigma)
        return np.concatenate([data, self.form.dual_step(u[self.rows :], sigma)])

    def prox(self, u: np.ndarray, tau: float) -> np.ndarray:
        return u - tau * self.proxdual(u / tau, 1.0 / tau)


def main() -> None:
    asked = task()
    form, ratio = asked.form, asked.setting
    products, norm, g = Products(form), norm_of(form), Dual(form)
    tau, sigma = float(ratio) / norm, 1.0 / (float(ratio) * norm)
    coupling = pylops.FunctionOperator(products.stacked, products.stacked_T, g.rows + form.h.size, form.c.size)
    recorder = asked.recorder(products)

    def keep(x: np.ndarray, y: np.ndarray) -> None:
        recorder.step(x, y[g.rows :])

    # Iterations are not left to a clock alone: PrimalDual keeps an array of steps as long as their number.
    start = form.X.project(np.zeros(form.c.size))
    with contextlib.suppress(Ended):
        PrimalDual(Primal(form), g, coupling, start, tau, sigma, niter=asked.most, callback=keep, callbacky=True)
    write(asked.out, recorder.points, f"pyproximal {version('pyproximal')}, sqrt(tau/sigma) {ratio}")


if __name__ == "__main__":
    main()
