"""ODL's pdhg on [A; B]: its method, with proximal steps written here.

Accelerated (gamma_primal) where the part of f that is handled by a proximal step is strongly convex.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from importlib.metadata import version
from types import SimpleNamespace

import numpy as np
import odl
from form import Ended, Products, norm_of, task, write

Map = Callable[[np.ndarray], np.ndarray]


class Wrapped(odl.Operator):
    """A function of arrays as an operator of ODL."""

    def __init__(self, domain: object, range: object, forward: Map, backward: Map | None = None) -> None:
        super().__init__(domain, range, linear=backward is not None)
        self.forward, self.backward = forward, backward

    def _call(self, x: object) -> object:
        return self.range.element(self.forward(x.data))

    @property
    def adjoint(self) -> odl.Operator:
        return Wrapped(self.range, self.domain, self.backward, self.forward)


def main() -> None:
    asked = task()
    form, ratio = asked.form, asked.setting
    products, norm = Products(form), norm_of(form)
    rows = 0 if form.A is None else form.b.size
    tau, sigma = float(ratio) / norm, 1.0 / (float(ratio) * norm)
    X, U = odl.rn(form.c.size), odl.rn(rows + form.h.size)

    def dual(u: np.ndarray, step: float) -> np.ndarray:
        data = (u[:rows] - step * form.b[:rows]) / (1.0 + step)
        return np.concatenate([data, form.dual_step(u[rows:], step)])

    f = SimpleNamespace(domain=X, proximal=lambda t: Wrapped(X, X, lambda v: form.primal_step(v, t)))
    conjugate = SimpleNamespace(proximal=lambda s: Wrapped(U, U, lambda v: dual(v, s)))
    g = SimpleNamespace(domain=U, convex_conj=conjugate)
    recorder, y = asked.recorder(products), U.zero()
    gamma = float(np.min(form.d))
    more = {"gamma_primal": gamma} if gamma > 0.0 else {}
    with contextlib.suppress(Ended):
        odl.solvers.pdhg(
            X.element(form.X.project(np.zeros(form.c.size))), f, g,
            Wrapped(X, U, products.stacked, products.stacked_T), asked.most, tau, sigma, y=y,
            callback=lambda x: recorder.step(x.data, y.data[rows:]), **more,
        )  # fmt: skip
    note = f"odl {version('odl')}, sqrt(tau/sigma) {ratio}{', accelerated' if more else ''}"
    write(asked.out, recorder.points, note)


if __name__ == "__main__":
    main()
