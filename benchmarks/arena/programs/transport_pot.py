"""POT: the network simplex, and L-BFGS on the smooth dual of quadratically regularised plans. Setting: tolerance."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import ot
from form import Form, load, require
from serving import Recorder, serve

warnings.simplefilter("ignore")


def method(form: Form, setting: dict[str, Any], recorder: Recorder) -> None:
    require(form.tool.get("name") == "transport", "no transport between two marginals")
    rows, columns = form.tool["shape"]
    cost, source, target = form.c.reshape(rows, columns), form.h[:rows], form.h[rows:]
    price = float(form.d[0])
    recorder.ready()
    if price == 0.0:
        plan = ot.emd(source, target, cost)
    else:
        tol = float(setting["tolerance"])
        plan = ot.smooth.smooth_ot_dual(source, target, cost, price, reg_type="l2", stopThr=tol, numItermax=10**5)
    recorder.step(plan.ravel(), np.zeros(form.h.size))


if __name__ == "__main__":
    serve(method, load, f"POT {ot.__version__}", warm=False)
