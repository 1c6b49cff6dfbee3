"""SciPy's L-BFGS-B on the smooth primal, or on the smooth dual where f is strongly convex entry by entry.

One of x and y is its own; the other is the exact best response, and finding it is not counted. A term |x| is split into
two unknowns >= 0.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy
import scipy.optimize
from form import Form, load, require, transposed
from serving import Recorder, serve

Value = Callable[[np.ndarray], tuple[float, np.ndarray]]


def minimise(
    value: Value, start: np.ndarray, bounds: Any, keep: Callable[[np.ndarray], None], setting: dict[str, Any]
) -> None:
    # ftol and gtol 0: the judge says when it is enough.
    options = {"maxiter": 10**6, "maxfun": 10**7, "ftol": 0.0, "gtol": 0.0, "maxcor": int(setting["corrections"])}

    def kept(intermediate_result: scipy.optimize.OptimizeResult) -> None:
        keep(intermediate_result.x)

    scipy.optimize.minimize(value, start, jac=True, method="L-BFGS-B", bounds=bounds, callback=kept, options=options)


def whole(form: Form) -> Value:
    """The smooth part in x: loss, ridge, and max over y where beta > 0."""
    AT, BT = None if form.A is None else transposed(form.A), transposed(form.B)

    def value(x: np.ndarray) -> tuple[float, np.ndarray]:
        total, gradient = form.smooth(x)
        if AT is not None:
            q = form.A @ x
            total, gradient = total + form.data_value(q), gradient + AT @ form.data_slope(q)
        if form.beta > 0.0:
            slope = form.B @ x - form.h
            y = form.Y.project(slope / form.beta)
            total += float(y @ slope) - 0.5 * form.beta * float(y @ y)
            gradient = gradient + BT @ y
        return total, gradient

    return value


def method(form: Form, setting: dict[str, Any], recorder: Recorder) -> None:
    require(form.C is None, "g is not simple")
    n, m = form.c.size, form.h.size
    box = form.X.kind == "box"
    same = m == n and form.Y.kind == "box" and np.array_equal(form.B @ np.arange(n), np.arange(n))
    if box and (form.beta > 0.0 or m == 0):
        bounds = scipy.optimize.Bounds(form.X.lower, form.X.upper)
        recorder.ready()
        minimise(whole(form), form.X.project(np.zeros(n)), bounds, lambda x: recorder.step(x, np.zeros(m)), setting)
    elif same and form.X.free:
        inner = whole(form)

        def split(v: np.ndarray) -> tuple[float, np.ndarray]:
            total, gradient = inner(v[:n] - v[n:])
            prices = np.concatenate([form.Y.upper, -form.Y.lower])
            return total + float(prices @ v), np.concatenate([gradient, -gradient]) + prices

        recorder.ready()
        bounds = scipy.optimize.Bounds(0.0, np.inf)
        minimise(split, np.zeros(2 * n), bounds, lambda v: recorder.step(v[:n] - v[n:], np.zeros(m)), setting)
    else:
        ready = form.A is None and form.d.min() > 0.0 and box and form.Y.kind == "box"
        require(bool(ready), "neither the primal nor the dual is smooth in closed form")
        BT = transposed(form.B)

        def reply(y: np.ndarray) -> np.ndarray:
            return form.X.project(-(BT @ y + form.c) / form.d)

        def dual(y: np.ndarray) -> tuple[float, np.ndarray]:
            pull = BT @ y + form.c
            x = form.X.project(-pull / form.d)
            total = float(form.h @ y) + 0.5 * form.beta * float(y @ y) - float(pull @ x) - 0.5 * float(form.d * x @ x)
            return total, form.h + form.beta * y - form.B @ x

        recorder.ready()
        bounds = scipy.optimize.Bounds(form.Y.lower, form.Y.upper)
        minimise(dual, form.Y.project(np.zeros(m)), bounds, lambda y: recorder.step(lambda: reply(y), y), setting)


if __name__ == "__main__":
    serve(method, load, f"scipy {scipy.__version__}")
