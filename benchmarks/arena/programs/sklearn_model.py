"""scikit-learn's coordinate descent, LIBLINEAR and quantile regression. Setting: tolerance."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import sklearn
from form import Form, load, require
from serving import Recorder, serve
from sklearn.linear_model import ElasticNet, Lasso, LogisticRegression, QuantileRegressor
from sklearn.svm import LinearSVC

warnings.simplefilter("ignore")


def method(form: Form, setting: dict[str, Any], recorder: Recorder) -> None:
    kind, tol, most = form.tool.get("name", ""), float(setting["tolerance"]), 10**6
    weight, ridge = float(form.tool.get("weight", 1.0)), float(form.d[0])
    data, target = form.A, form.b
    if kind == "lasso" and ridge == 0.0:
        model = Lasso(weight / target.size, fit_intercept=False, tol=tol, max_iter=most)
    elif kind == "lasso":
        total = weight + ridge
        model = ElasticNet(total / target.size, l1_ratio=weight / total, fit_intercept=False, tol=tol, max_iter=most)
    elif kind == "logistic":
        model = LogisticRegression(
            C=1.0 / weight, l1_ratio=1.0, solver="liblinear", fit_intercept=False, tol=tol, max_iter=most
        )
    elif kind == "hinge":
        # The rows of B are -label times a row of the data.
        data, target = -form.B * np.sign(form.tool["labels"])[:, None], np.asarray(form.tool["labels"])
        model = LinearSVC(C=weight / ridge, loss="hinge", fit_intercept=False, tol=tol, max_iter=most)
    else:
        require(kind == "quantile", "no model of scikit-learn")
        data, target = form.B, form.h
        model = QuantileRegressor(quantile=form.tool["q"], alpha=0.0, fit_intercept=False)
    recorder.ready()
    model.fit(data, target)
    recorder.step(np.ravel(model.coef_), np.zeros(form.h.size))


if __name__ == "__main__":
    serve(method, load, f"scikit-learn {sklearn.__version__}", warm=False)
