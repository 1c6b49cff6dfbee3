"""Primal-dual steps on [A; B] with restarts to the average (as PDLP's), acceleration where d > 0: plain NumPy.

Setting: ratio sqrt(tau / sigma), and what the method is: "restarted" or "accelerated".
"""

from __future__ import annotations

from typing import Any

import numpy as np
from form import Form, Stacked, load, require
from serving import Recorder, serve


def method(form: Form, setting: dict[str, Any], recorder: Recorder) -> None:
    K, modulus = Stacked(form), float(np.min(form.d))
    accelerated = setting["kind"] == "accelerated"
    require(modulus > 0.0 or not accelerated, "f is not strongly convex entry by entry")
    norm, ratio = K.norm(), float(setting["ratio"])
    tau, sigma = ratio / norm, 1.0 / (ratio * norm)
    x = form.X.project(np.zeros(form.c.size))
    u = np.zeros(K.size + form.h.size)
    Ku, start, sums, count, worst = K.adjoint(u), (x, u), None, 0, np.inf
    recorder.ready()
    while True:
        new = form.primal_step(x - tau * Ku, tau)
        theta = 1.0 / np.sqrt(1.0 + 2.0 * modulus * tau) if accelerated else 1.0
        if accelerated:
            tau, sigma = theta * tau, sigma / theta
        v = K.dual_step(u + sigma * K.forward(new + theta * (new - x)), sigma)
        moved = np.sqrt(np.sum((new - x) ** 2) / tau + np.sum((v - u) ** 2) / sigma)
        x, u, Ku, count = new, v, K.adjoint(v), count + 1
        if not accelerated:
            sums = (x, u) if sums is None else (sums[0] + x, sums[1] + u)
            start = (x, u) if count == 1 else start
            if count >= 16 and count & (count - 1) == 0:
                mean = sums[0] / count, sums[1] / count
                length = sum(np.sqrt(np.sum((a - b) ** 2)) for a, b in zip(mean, start, strict=True)) / count
                if length <= 0.5 * worst or count >= 4096:
                    # The average moves more slowly than at the last restart, by a constant factor.
                    (x, u), worst, sums, count = mean, length, None, 0
                    Ku = K.adjoint(u)
        recorder.step(x, u[K.size :])
        if not moved > 0.0:
            return


if __name__ == "__main__":
    serve(method, load, f"numpy {np.__version__}")
