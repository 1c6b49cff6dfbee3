"""Solutions from other people's solvers: HiGHS for linear programs, Clarabel for quadratic ones."""

from __future__ import annotations

import numpy as np
import scipy.optimize
import scipy.sparse as sp

from support import need


def linear_program(c, A_eq=None, b_eq=None, A_ub=None, b_ub=None, bounds=(0, None)):
    """Minimum and minimiser by HiGHS."""
    done = scipy.optimize.linprog(c, A_ub, b_ub, A_eq, b_eq, bounds=bounds, method="highs")
    assert done.status == 0, done.message
    return done.fun, done.x


def quadratic_program(Q, c, A_eq, b_eq, A_ub, b_ub):
    """Minimum of 1/2 <z, Q z> + <c, z>, z, multipliers of A_eq z = b_eq; with A_ub z <= b_ub. By Clarabel."""
    A_eq, A_ub = (sp.csc_matrix(A) if A is not None else sp.csc_matrix((0, len(c))) for A in (A_eq, A_ub))
    b = np.concatenate([np.zeros(0) if part is None else np.ravel(part) for part in (b_eq, b_ub)])
    clarabel = need("clarabel")
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-11
    cones = [clarabel.ZeroConeT(A_eq.shape[0]), clarabel.NonnegativeConeT(A_ub.shape[0])]
    solver = clarabel.DefaultSolver(
        sp.triu(sp.csc_matrix(Q)).tocsc(), np.asarray(c, float), sp.vstack([A_eq, A_ub]).tocsc(), b, cones, settings
    )
    done = solver.solve()
    assert str(done.status) in ("Solved", "AlmostSolved"), done.status
    return done.obj_val, np.array(done.x), np.array(done.z)[: A_eq.shape[0]]
