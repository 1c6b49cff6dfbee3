"""ODL's pdhg on [A; sD]: its method, with proximal steps written here.

Setting: ratio sqrt(tau / sigma), scale s, spectral coordinates, and whether it is accelerated by the ridge.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import version
from types import SimpleNamespace
from typing import Any

import numpy as np
import odl
from picture import Picture, load
from serving import Recorder, serve
from stacked import Stacked, norm_of

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


def method(picture: Picture, setting: dict[str, Any], recorder: Recorder) -> None:
    made = Stacked(picture, setting)
    recorder.pause()
    norm, ratio = norm_of(made), float(setting["ratio"])
    recorder.ready()
    X, U = odl.rn(picture.n**2), odl.rn(made.rows + 2 * picture.n**2)
    f = SimpleNamespace(domain=X, proximal=lambda t: Wrapped(X, X, lambda v: made.primal_step(v, t)))
    conjugate = SimpleNamespace(proximal=lambda s: Wrapped(U, U, lambda u: made.dual_step(u, s)))
    g = SimpleNamespace(domain=U, convex_conj=conjugate)
    more = {"gamma_primal": made.modulus} if setting["accelerated"] else {}
    odl.solvers.pdhg(
        X.zero(), f, g, Wrapped(X, U, made.forward, made.adjoint), recorder.most, ratio / norm,
        1.0 / (ratio * norm), callback=lambda v: recorder.step(lambda: made.point(v.data), lambda: made.y), **more,
    )  # fmt: skip


if __name__ == "__main__":
    serve(method, load, f"odl {version('odl')}")
