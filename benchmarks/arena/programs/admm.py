"""ADMM on w = Bx (and a copy of x where X is not the whole space), warm conjugate gradients for x: plain NumPy.

Setting: penalty rho, steps of conjugate gradients, over-relaxation.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from form import Form, load, require, transposed
from serving import Recorder, serve


def method(form: Form, setting: dict[str, Any], recorder: Recorder) -> None:
    require(form.C is None and form.loss == "squares", "f and g are not quadratic and simple")
    rho, steps, relax = float(setting["rho"]), int(setting["steps"]), float(setting["relax"])
    BT, AT = transposed(form.B), None if form.A is None else transposed(form.A)
    copied = 0.0 if form.X.free else 1.0
    fixed = -form.c if AT is None else AT @ form.b - form.c

    def normal(v: np.ndarray) -> np.ndarray:
        out = form.d * v + rho * (BT @ (form.B @ v)) + rho * copied * v
        return out if AT is None else out + AT @ (form.A @ v)

    x = form.X.project(np.zeros(form.c.size))
    w, z, u, s = form.B @ x, x, np.zeros(form.h.size), np.zeros(form.c.size)
    recorder.ready()
    while True:
        right = fixed + rho * (BT @ (w - u)) + rho * copied * (z - s)
        r = right - normal(x)
        p, square, enough = r.copy(), float(r @ r), 1e-28 * float(right @ right)
        for _ in range(steps):
            if not square > enough:
                break
            Hp = normal(p)
            step = square / float(p @ Hp)
            x, r = x + step * p, r - step * Hp
            before, square = square, float(r @ r)
            p = r + (square / before) * p
        v = relax * (form.B @ x) + (1.0 - relax) * w + u
        y = form.dual_step(rho * v, rho)
        w, u = v - y / rho, y / rho
        if copied:
            t = relax * x + (1.0 - relax) * z + s
            z = form.X.project(t)
            s = t - z
        recorder.step(z if copied else x, y)


if __name__ == "__main__":
    serve(method, load, f"numpy {np.__version__}")
