"""HiGHS through highspy: its default solver, and its interior point method on linear programs."""

from __future__ import annotations

from importlib.metadata import version

import highspy
import numpy as np
from qp import Answer, Program, solver


def model_of(program: Program) -> highspy.HighsModel:
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = program.q.size, program.e.size
    lp.col_cost_, lp.col_lower_, lp.col_upper_ = program.q, program.lower, program.upper
    lp.row_lower_ = lp.row_upper_ = program.e
    lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    lp.a_matrix_.start_, lp.a_matrix_.index_ = program.E.indptr, program.E.indices
    lp.a_matrix_.value_ = program.E.data
    model = highspy.HighsModel()
    model.lp_ = lp
    if program.p.any():
        curved = program.p != 0.0
        hessian = highspy.HighsHessian()
        hessian.dim_, hessian.format_ = program.q.size, highspy.HessianFormat.kTriangular
        hessian.start_ = np.concatenate([[0], np.cumsum(curved)]).astype(np.int32)
        hessian.index_, hessian.value_ = np.flatnonzero(curved).astype(np.int32), program.p[curved]
        model.hessian_ = hessian
    return model


def solve(program: Program, way: str, seconds: float) -> Answer:
    if way == "ipm" and program.p.any():
        return "ipm is for linear programs"
    highs = highspy.Highs()
    highs.silent()
    highs.setOptionValue("time_limit", seconds)
    highs.setOptionValue("threads", 1)
    highs.setOptionValue("solver", way)
    highs.passModel(model_of(program))
    highs.run()
    found = highs.getSolution()
    # Whatever its status, a point is a point: the judge decides.
    if not (found.value_valid and found.dual_valid):
        return f"no solution: {highs.modelStatusToString(highs.getModelStatus())}"
    # HiGHS subtracts multipliers where the saddle problem adds them.
    return np.array(found.col_value), -np.array(found.row_dual)


if __name__ == "__main__":
    solver(solve, f"highspy {version('highspy')}")
