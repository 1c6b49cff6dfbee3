"""SciPy's L-BFGS-B on the smooth primal (Huber), or on the smooth dual where f is strongly convex entry by entry.

Only one of x and y is its own; the other is the exact best response, and finding it is not counted.
"""

from __future__ import annotations

import contextlib

import numpy as np
import scipy
import scipy.optimize
from form import Ended, Form, Products, Recorder, task, write


def primal(form: Form, products: Products, recorder: Recorder) -> None:
    def reply(slope: np.ndarray) -> np.ndarray:
        return form.Y.project((slope - form.h) / form.beta)

    def value(x: np.ndarray) -> tuple[float, np.ndarray]:
        slope = products.B(x)
        y = reply(slope)
        total = float(y @ (slope - form.h)) - 0.5 * form.beta * float(y @ y) + float(form.c @ x)
        total += 0.5 * float(form.d * x @ x)
        gradient = products.BT(y) + form.d * x + form.c
        if form.A is not None:
            residual = products.A(x) - form.b
            total += 0.5 * float(residual @ residual)
            gradient = gradient + products.AT(residual)
        return total, gradient

    def keep(intermediate_result: scipy.optimize.OptimizeResult) -> None:
        x = intermediate_result.x
        recorder.step(x, lambda: reply(form.B @ x))

    minimise(value, np.zeros(form.c.size), form.X, keep)


def dual(form: Form, products: Products, recorder: Recorder) -> None:
    def reply(pull: np.ndarray) -> np.ndarray:
        return form.X.project(-(pull + form.c) / form.d)

    def value(y: np.ndarray) -> tuple[float, np.ndarray]:
        pull = products.BT(y)
        x = reply(pull)
        least = 0.5 * float(form.d * x @ x) + float((form.c + pull) @ x)
        total = float(form.h @ y) + 0.5 * form.beta * float(y @ y) - least
        return total, form.h + form.beta * y - products.B(x)

    def keep(intermediate_result: scipy.optimize.OptimizeResult) -> None:
        y = intermediate_result.x
        recorder.step(lambda: reply(form.B.T @ y), y)

    minimise(value, np.zeros(form.h.size), form.Y, keep)


def minimise(value: object, start: np.ndarray, domain: object, keep: object) -> None:
    bounds = scipy.optimize.Bounds(domain.lower, domain.upper)
    # ftol and gtol 0: the judge says when it is enough.
    options = {"maxiter": 200_000, "maxfun": 400_000, "ftol": 0.0, "gtol": 0.0, "maxcor": 10}
    scipy.optimize.minimize(value, start, jac=True, method="L-BFGS-B", bounds=bounds, callback=keep, options=options)


def main() -> None:
    asked = task()
    form, products = asked.form, Products(asked.form)
    if form.beta > 0.0 and form.X.kind == form.Y.kind == "box":
        side, work = "primal", primal
    elif form.A is None and np.all(form.d > 0.0) and form.X.kind == form.Y.kind == "box":
        side, work = "dual", dual
    else:
        write(asked.out, [], "does not apply: neither the primal nor the dual is smooth in closed form")
        return
    recorder = asked.recorder(products)
    with contextlib.suppress(Ended):
        work(form, products, recorder)
    write(asked.out, recorder.points, f"scipy {scipy.__version__}, smooth {side}")


if __name__ == "__main__":
    main()
