"""skglm: working sets and coordinate descent. Setting: tolerance."""

from __future__ import annotations

import warnings
from importlib.metadata import version
from typing import Any

import numpy as np
from form import Form, load, require
from serving import Recorder, serve
from skglm import ElasticNet, GeneralizedLinearEstimator, GroupLasso, Lasso
from skglm.datafits import Logistic
from skglm.penalties import L1
from skglm.solvers import ProxNewton

warnings.simplefilter("ignore")


def method(form: Form, setting: dict[str, Any], recorder: Recorder) -> None:
    kind, tol = form.tool.get("name", ""), float(setting["tolerance"])
    weight, ridge, rows = float(form.tool.get("weight", 1.0)), float(form.d[0]), form.b.size
    options = {"fit_intercept": False, "tol": tol, "max_iter": 1000}
    if kind == "lasso" and ridge == 0.0:
        model = Lasso(weight / rows, **options)
    elif kind == "lasso":
        model = ElasticNet((weight + ridge) / rows, l1_ratio=weight / (weight + ridge), **options)
    elif kind == "groups":
        size = int(form.tool["size"])
        groups = form.c.size // size
        model = GroupLasso(groups=size, alpha=weight / rows, weights=np.ones(groups), **options)
    else:
        require(kind == "logistic", "no model of skglm")
        solver = ProxNewton(tol=tol, fit_intercept=False)
        model = GeneralizedLinearEstimator(Logistic(), L1(weight / rows), solver)
    recorder.ready()
    model.fit(np.asfortranarray(form.A), form.b)
    recorder.step(np.ravel(model.coef_), np.zeros(form.h.size))


if __name__ == "__main__":
    serve(method, load, f"skglm {version('skglm')}")
