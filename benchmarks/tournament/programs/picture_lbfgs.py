"""SciPy's L-BFGS-B on the smooth primal loss(Ax) + ridge/2 |x|^2 + max_y {<y, Dx> - g(y)}.

Setting: corrections kept, and whether x is scaled in the cosine basis (spectral), with a multiple `tv` of D^T D beside
the fit. y is the best response; finding it is part of the function's value here.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy
import scipy.optimize
from picture import Picture, load
from serving import Recorder, serve


def method(picture: Picture, setting: dict[str, Any], recorder: Recorder) -> None:
    p, size = picture, picture.n**2
    root = None
    if setting["spectral"]:
        root = 1.0 / np.sqrt(p.spectrum() + float(setting["tv"]) * p.difference_symbol())
    last = np.zeros(2 * size)

    def point(v: np.ndarray) -> np.ndarray:
        return v if root is None else p.picture(root * v)

    def value(v: np.ndarray) -> tuple[float, np.ndarray]:
        nonlocal last
        x = point(v)
        slope, q = p.D @ x, p.A @ x
        last = y = p.reply(slope, last)
        loss, residual = p.loss(q)
        total = loss + 0.5 * p.ridge * float(x @ x) + float(y @ slope) - p.dual_value(y)
        gradient = p.AT @ residual + p.ridge * x + p.DT @ y
        return total, gradient if root is None else root * p.cosine(gradient)

    def keep(intermediate_result: scipy.optimize.OptimizeResult) -> None:
        v = intermediate_result.x
        recorder.step(lambda: point(v), lambda: p.reply(p.D @ point(v), last))

    recorder.ready()
    # ftol and gtol 0: the judge says when it is enough.
    options = {"maxiter": 10**6, "maxfun": 10**7, "ftol": 0.0, "gtol": 0.0, "maxcor": int(setting["corrections"])}
    scipy.optimize.minimize(value, np.zeros(size), jac=True, method="L-BFGS-B", callback=keep, options=options)


if __name__ == "__main__":
    serve(method, load, f"scipy {scipy.__version__}")
