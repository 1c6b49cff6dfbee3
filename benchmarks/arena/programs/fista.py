"""Accelerated proximal gradients with adaptive restarts: on x where B is the identity, on y where A is None: NumPy.

Setting: nothing but the side that it is for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from form import Form, load, require, transposed
from serving import Recorder, serve

Map = Callable[[np.ndarray], np.ndarray]


def accelerated(
    start: np.ndarray, slope: Map, step: Callable[[np.ndarray, float], np.ndarray], L: float, keep: Map
) -> None:
    v = ahead = start
    momentum = 1.0
    while True:
        new = step(ahead - slope(ahead) / L, 1.0 / L)
        if float((ahead - new) @ (new - v)) > 0.0:
            momentum = 1.0
        after = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * momentum**2))
        ahead, v, momentum = new + ((momentum - 1.0) / after) * (new - v), new, after
        keep(v)


def largest(work: Map, size: int) -> float:
    """The largest eigenvalue, by the power method."""
    v = np.random.default_rng(0).standard_normal(size)
    for _ in range(20):
        v = work(v / np.linalg.norm(v))
    return 1.05 * float(np.linalg.norm(v))


def primal(form: Form, recorder: Recorder) -> None:
    AT, bound = transposed(form.A), form.curvature()
    require(bound is not None and form.beta == 0.0, "the loss has no Lipschitz gradient")
    if form.B.shape[0] == 0:

        def step(v: np.ndarray, t: float) -> np.ndarray:
            return form.X.project(v)
    else:
        eye = np.array_equal(form.B @ np.arange(form.c.size), np.arange(form.c.size))
        require(bool(eye) and form.X.free and not form.h.any(), "B is not the identity")

        def step(v: np.ndarray, t: float) -> np.ndarray:
            return v - t * form.Y.project(v / t)

    L = bound * largest(lambda v: AT @ (form.A @ v), form.c.size) + float(form.d.max())
    recorder.ready()
    nothing = np.zeros(form.h.size)
    accelerated(
        form.X.project(np.zeros(form.c.size)),
        lambda x: AT @ form.data_slope(form.A @ x) + form.d * x + form.c, step, L,
        lambda x: recorder.step(x, nothing),
    )  # fmt: skip


def dual(form: Form, recorder: Recorder) -> None:
    BT = transposed(form.B)

    def reply(y: np.ndarray) -> np.ndarray:
        return form.X.project(-(BT @ y + form.c) / form.d)

    least = float(form.d.min())
    require(least > 0.0 and (form.X.kind == "box" or least == form.d.max()), "f is not strongly convex entry by entry")
    L = largest(lambda v: form.B @ (BT @ v), form.h.size) / least + form.beta
    recorder.ready()
    accelerated(
        form.Y.project(np.zeros(form.h.size)), lambda y: form.h + form.beta * y - form.B @ reply(y),
        lambda v, t: form.Y.project(v), L, lambda y: recorder.step(lambda: reply(y), y),
    )  # fmt: skip


def method(form: Form, setting: dict[str, Any], recorder: Recorder) -> None:
    require(form.C is None, "g is not simple")
    primal(form, recorder) if form.A is not None else dual(form, recorder)


if __name__ == "__main__":
    serve(method, load, f"numpy {np.__version__}")
