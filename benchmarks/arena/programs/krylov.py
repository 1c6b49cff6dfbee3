"""Quadratics without bounds that bind: one sparse or dense factor, conjugate gradients or MINRES, of SciPy.

The optimality conditions [[A'A + d, B'], [B, -(C'C + beta)]] (x, y) = (A'b - c, h - C'e).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy
import scipy.linalg
import scipy.sparse
import scipy.sparse.linalg
from form import Form, load, require, transposed
from serving import Recorder, serve


def method(form: Form, setting: dict[str, Any], recorder: Recorder) -> None:
    require(
        form.X.free and form.loss == "squares" and form.tool.get("quadratic", False), "not a quadratic on free spaces"
    )
    n, m = form.c.size, form.h.size
    BT = transposed(form.B)
    AT, CT = (None if matrix is None else transposed(matrix) for matrix in (form.A, form.C))
    right = np.concatenate(
        [(AT @ form.b if AT is not None else 0.0) - form.c, form.h - (CT @ form.e if CT is not None else 0.0)]
    )
    if setting["way"] == "factor":
        H = np.diag(form.d) if AT is None else dense(AT @ form.A) + np.diag(form.d)
        G = form.beta * np.eye(m) + (0.0 if CT is None else dense(CT @ form.C))
        B = dense(form.B)
        recorder.ready()
        v = np.linalg.solve(np.block([[H, B.T], [B, -G]]), right)
        recorder.step(v[:n], v[n:])
        return

    def product(v: np.ndarray) -> np.ndarray:
        x, y = v[:n], v[n:]
        top, low = form.d * x + BT @ y, form.B @ x - form.beta * y
        return np.concatenate(
            [top if AT is None else top + AT @ (form.A @ x), low if CT is None else low - CT @ (form.C @ y)]
        )

    recorder.ready()
    scipy.sparse.linalg.minres(
        scipy.sparse.linalg.LinearOperator((n + m, n + m), product), right, rtol=0.0, maxiter=10**6,
        callback=lambda v: recorder.step(v[:n], v[n:]),
    )  # fmt: skip


def dense(matrix: Any) -> np.ndarray:
    return matrix.toarray() if scipy.sparse.issparse(matrix) else np.asarray(matrix)


if __name__ == "__main__":
    serve(method, load, f"scipy {scipy.__version__}")
