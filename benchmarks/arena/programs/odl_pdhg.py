"""ODL's pdhg on [A; B]: its method, with proximal steps written here.

Accelerated (gamma_primal) where the part of f that is handled by a proximal step is strongly convex.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import version
from types import SimpleNamespace
from typing import Any

import numpy as np
import odl
from form import Form, Stacked, load
from serving import Recorder, serve

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


def method(form: Form, setting: dict[str, Any], recorder: Recorder) -> None:
    K, ratio, modulus = Stacked(form), float(setting["ratio"]), float(np.min(form.d))
    norm = K.norm()
    X, U = odl.rn(form.c.size), odl.rn(K.size + form.h.size)
    f = SimpleNamespace(domain=X, proximal=lambda t: Wrapped(X, X, lambda v: form.primal_step(v, t)))
    conjugate = SimpleNamespace(proximal=lambda s: Wrapped(U, U, lambda u: K.dual_step(u, s)))
    y, more = U.zero(), {"gamma_primal": modulus} if modulus > 0.0 else {}
    recorder.ready()
    odl.solvers.pdhg(
        X.element(form.X.project(np.zeros(form.c.size))), f, SimpleNamespace(domain=U, convex_conj=conjugate),
        Wrapped(X, U, K.forward, K.adjoint), recorder.most, ratio / norm, 1.0 / (ratio * norm), y=y,
        callback=lambda x: recorder.step(x.data, y.data[K.size :]), **more,
    )  # fmt: skip


if __name__ == "__main__":
    serve(method, load, f"odl {version('odl')}")
