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
    rows = [
        (A, np.ravel(b), kind) for A, b, kind in ((A_eq, b_eq, "Zero"), (A_ub, b_ub, "Nonnegative")) if A is not None
    ]
    value, z, multipliers = conic_program(Q, c, rows)
    return value, z, multipliers[: 0 if A_eq is None else A_eq.shape[0]]


def conic_program(Q, c, rows):
    """Minimum of 1/2 <z, Q z> + <c, z>, z and multipliers; b - A z in a cone for each (A, b, kind). By Clarabel.

    Kinds are Clarabel's: Zero, Nonnegative, SecondOrder, and PSDTriangle with b and A z as whole square matrices.
    """
    clarabel = need("clarabel")
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-11
    matrices, sides, cones = [sp.csc_matrix((0, len(c)))], [np.zeros(0)], []
    for A, b, kind in rows:
        A, b, size = sp.csr_matrix(A), np.asarray(b, float), A.shape[0]
        if kind == "PSDTriangle":
            size = int(np.sqrt(size))
            # The upper triangle, column by column; off the diagonal times sqrt(2).
            entries = [(i, j) for j in range(size) for i in range(j + 1)]
            scale = np.array([1.0 if i == j else np.sqrt(2.0) for i, j in entries])
            index = [i * size + j for i, j in entries]
            A, b = sp.diags(scale) @ A[index], scale * b[index]
        matrices.append(A)
        sides.append(b)
        cones.append(getattr(clarabel, f"{kind}ConeT")(size))
    solver = clarabel.DefaultSolver(
        sp.triu(sp.csc_matrix(Q)).tocsc(),
        np.asarray(c, float),
        sp.vstack(matrices).tocsc(),
        np.concatenate(sides),
        cones,
        settings,
    )
    done = solver.solve()
    assert str(done.status) in ("Solved", "AlmostSolved"), done.status
    return done.obj_val, np.array(done.x), np.array(done.z)
