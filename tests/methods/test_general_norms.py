"""P as matrices and operators on both blocks, in every regime: a run is the Euclidean one in other variables."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.linalg
import scipy.optimize

import saddleslide as ss
from plans import rescheduled
from saddleslide.methods.sliding.proximal import resolve
from support import gathered

F, D = ss.functions, ss.domains


def random_matrix(rng, n, largest):
    U = np.linalg.qr(rng.standard_normal((n, n)))[0]
    return (U * np.geomspace(1.0, largest, n)) @ U.T


class Data:
    """A problem with quadratics and two matrices P_x = R_x^T R_x, P_y = R_y^T R_y."""

    def __init__(self, seed=0, n=4, m=4):
        rng = np.random.default_rng(seed)
        self.H, self.G = random_matrix(rng, n, 10.0), random_matrix(rng, m, 8.0)
        self.B, self.c_x, self.c_y = rng.standard_normal((m, n)), *(2.0 * rng.standard_normal(k) for k in (n, m))
        self.P = random_matrix(rng, n, 6.0), random_matrix(rng, m, 3.0)
        self.R = tuple(map(scipy.linalg.cholesky, self.P))

    def problem(self, X, Y, curved=True):
        g = F.Quadratic(self.G) + F.Linear(self.c_y) if curved else F.Linear(self.c_y)
        return ss.SaddleProblem(f=F.Quadratic(self.H) + F.Linear(self.c_x), g=g, B=self.B, X=X, Y=Y)

    def in_coordinates(self, X, Y, curved=True):
        """The same problem in u = R_x x and v = R_y y."""
        other, (E_x, E_y) = Data(), (np.linalg.inv(R) for R in self.R)
        other.H, other.G = (0.5 * (M + M.T) for M in (E_x.T @ self.H @ E_x, E_y.T @ self.G @ E_y))
        other.B, other.c_x, other.c_y = E_y.T @ self.B @ E_x, E_x.T @ self.c_x, E_y.T @ self.c_y
        sets = zip((X, Y), self.P, self.R, strict=True)
        return other.problem(*(Z if Z is free else self._set_in_coordinates(Z, P, R) for Z, P, R in sets), curved)

    @staticmethod
    def _set_in_coordinates(Z, P, R):
        """{R x : x in a box}, whose projection is a least-squares problem between bounds."""

        def project(u):
            return R @ scipy.optimize.lsq_linear(R, u, bounds=(Z.lower, Z.upper), method="bvls", tol=1e-15).x

        radius = math.sqrt(Z.squared_radius(np.zeros(Z.shape)) * np.linalg.eigvalsh(P)[-1])
        return D.Custom(
            project=project,
            shape=Z.shape,
            support=lambda d: R @ np.where(R.T @ d > 0.0, Z.upper, Z.lower),
            radius=radius * (1.0 + 1e-9),
        )


def least(H, c, X):
    """The minimum of 1/2 <x, H x> + <c, x> on a box, as a least-squares problem."""
    R = scipy.linalg.cholesky(H)
    target = -scipy.linalg.solve_triangular(R, c, trans="T")
    x = scipy.optimize.lsq_linear(R, target, bounds=(X.lower, X.upper), method="bvls", tol=1e-15).x
    return 0.5 * float(x @ H @ x) + float(c @ x)


def true_gap(data, X, x, y):
    f, g = 0.5 * x @ data.H @ x + data.c_x @ x, 0.5 * y @ data.G @ y + data.c_y @ y
    return float(f - least(data.G, data.c_y - data.B @ x, X) - least(data.H, data.c_x + data.B.T @ y, X) + g)


free, box = D.FullSpace(4), D.Box(-0.3, 0.3, shape=4)
CASES = {
    "degenerate": (box, box, True, {"order": "gfB", "loops": (4, 3, 5)}),
    "restarts": (free, free, True, {"tol": 1e-3, "regime": "restarts"}),
    "restarts on boxes": (box, box, True, {"tol": 1e-2, "regime": "restarts", "Psi0": 50.0}),
    "anchors": (free, free, True, {"tol": 1e-3, "regime": "restarts", "anchors": True}),
    "mixed": (free, box, False, {"tol": 0.3, "regime": "mixed", "Psi0": 50.0}),
    "mixed with anchors": (free, box, False, {"tol": 0.3, "regime": "mixed", "Psi0": 50.0, "anchors": True}),
}


@gathered("name", list(CASES))
def test_norms_of_both_blocks_are_a_change_of_variables(name):
    X, Y, curved, options = CASES[name]
    data = Data()
    here, there = data.problem(X, Y, curved), data.in_coordinates(X, Y, curved)
    as_operators = tuple(
        ss.metrics.Operator(lambda z, P=P: P @ z, lambda z, P=P: np.linalg.solve(P, z), float(np.linalg.norm(P, 2)))
        for P in data.P
    )
    start = np.full(4, 0.1), np.array([0.1, -0.2, 0.1, 0.0])
    moved = tuple(R @ point for R, point in zip(data.R, start, strict=True))
    other = ss.plan(there, metric="identity", start=moved, **options)
    for metric in (data.P, as_operators):
        plan = ss.plan(here, metric=metric, start=start, **options)
        first, second = (rescheduled(one, stages=one.schedule.stages[:2]) for one in (plan, other))
        if "mixed" in name:
            # lambda = eps / Omega, and the Omega of a set known by its projection is a bound.
            kept = plan.schedule
            second = rescheduled(other, stages=kept.stages[:2], regularisation=kept.regularisation)
        else:
            assert (plan.order, plan.loops) == (other.order, other.loops)
            assert len(plan.schedule.stages) == len(other.schedule.stages)
        effective = () if "mixed" in name else ("H_y", "mu_y", "delta_y", "beta_x", "mu_xy", "mu_yx")
        for key in ("H_x", "mu_x", "L_xy", "delta_x", "beta_y", *effective):
            if key in plan.constants:
                assert plan.constants[key].value == pytest.approx(other.constants[key].value, rel=1e-6, abs=1e-12), key
        path, same = [], []
        ss.run(here, first, start=start, callback=lambda now, path=path: path.append((now.x, now.y)))
        ss.run(there, second, start=moved, callback=lambda now, same=same: same.append((now.x, now.y)))
        assert len(path) > 1
        for (x, y), (u, v) in zip(path, same, strict=False):
            np.testing.assert_allclose(data.R[0] @ x, u, atol=1e-9)
            np.testing.assert_allclose(data.R[1] @ y, v, atol=1e-9)
    if "anchors" in name:
        assert max(plan.constants[key].value for key in ("beta_x", "beta_y")) > 0.0


@gathered("seed", range(4))
def test_the_bound_holds_in_general_norms(seed):
    data = Data(seed)
    problem = data.problem(box, box)
    plan = ss.plan(problem, metric=data.P, order="fgB", loops=(2, 2, 3))
    result = ss.run(problem, plan)
    assert true_gap(data, box, result.x, result.y) <= plan.bound < math.inf
    # With Euclidean projections of what the norm has moved, runs end at points that are no saddle points.
    solved = ss.run(problem, ss.plan(problem, 1e-3, metric=data.P, regime="restarts"))
    assert solved.status is ss.Status.SOLVED and true_gap(data, box, solved.x, solved.y) <= 1e-3


@gathered("seed", range(6))
def test_a_proximal_step_in_a_norm_meets_its_optimality_condition(seed):
    """For all u of the set: s(u) - s(v) + weight <P (v - c), u - v> >= 0."""
    rng = np.random.default_rng(seed)
    P, center, weight = random_matrix(rng, 5, 50.0), 2.0 * rng.standard_normal(5), 0.7
    for metric in (ss.metrics.Operator.of(P), ss.metrics.Diagonal(np.diag(P))):
        for X in (D.Box(-0.5, 0.4, shape=5), D.Ball(0.8, shape=5), D.Simplex(5)):
            for s in (F.Zero(), 0.3 * F.L1()):
                v = center.copy()
                resolve(s, metric, X, v, weight)
                slope = weight * metric.product(v - center)
                others = [X.project(rng.standard_normal(5) * scale) for scale in (0.3, 1.0, 3.0) for _ in range(40)]
                others += [v + 1e-3 * (u - v) for u in others]
                gains = [s.value(u) - s.value(v) + float(slope @ (u - v)) for u in others]
                assert X.contains(v, 1e-12) and min(gains) >= -1e-9


@gathered("seed", range(3))
def test_slide_takes_matrices_as_norms(seed):
    # f1, f2, g1, g2, B: a quadratic and a linear term each.
    data, loops = Data(seed), (3, 1, 2, 1, 4)
    problem, other = data.problem(box, box), data.in_coordinates(box, box)
    here = ss.slide(problem, loops=loops, metric=data.P)
    there = ss.slide(other, loops=loops, metric=1.0)
    for P, R, block, moved in zip(data.P, data.R, here.blocks, there.blocks, strict=True):
        np.testing.assert_allclose(R @ block, moved, atol=1e-9)
        # The matrix of one block beside a number is the norm of that block alone.
        assert ss.slide(problem, loops=loops, metric=(P, 2.0)).levels[0].term.weights == (1.0, 2.0)
    assert [one.L for one in here.levels] == pytest.approx([one.L for one in there.levels], rel=1e-9)
    found, expected = (one.levels[4].term.M for one in (here, there))
    assert found == pytest.approx(expected, rel=1e-9) and found > 0.0
    assert true_gap(data, box, here.x, here.y) <= here.gap <= here.bound < math.inf
    assert here.gap == pytest.approx(there.gap, rel=1e-9)
    # The models that are carried along are those of a rough f and of Q, not of P^-1 of them.
    A, (E_x, E_y) = np.random.default_rng(seed).standard_normal((6, 4)), map(np.linalg.inv, data.R)
    tilt = 0.3 * data.c_y
    rough = []
    for matrices, whole, metric in (
        ((A, data.B, tilt), problem, data.P),
        ((A @ E_x, E_y.T @ data.B @ E_x, E_y.T @ tilt), other, 1.0),
    ):
        parts = [
            ss.Component(F.Power(0.0) @ matrices[0], ss.Holder(0.0, 5.0), block=0),
            ss.Component(coupling=matrices[1]),
            ss.Component(F.Linear(matrices[2]), block=1),
        ]
        rough.append(ss.slide(parts, D.Product(whole.X, whole.Y), np.zeros(8), (12, 4, 1), metric=metric))
    assert rough[0].certificate.kind == rough[1].certificate.kind == "models"
    assert rough[0].gap == pytest.approx(rough[1].gap, rel=1e-6)
    # One matrix is that of every block.
    whole = ss.slide(problem, loops=loops, metric=(data.P[0], data.P[0]))
    assert np.array_equal(ss.slide(problem, loops=loops, metric=data.P[0]).z, whole.z)
    solved = ss.slide(problem, tol=0.5, metric=data.P)
    assert solved.status is ss.Status.SOLVED and true_gap(data, box, solved.x, solved.y) <= solved.gap <= 0.5


def test_a_matrix_is_data_of_a_plan():
    data = Data()
    problem = data.problem(box, box)
    plan = ss.plan(problem, 0.3, metric=data.P, regime="degenerate")
    again = ss.Plan.from_dict(plan.to_dict())
    assert "norm     of y: operator" in plan.explain()
    first, second = ss.run(problem, plan), ss.run(problem, again)
    assert np.array_equal(first.x, second.x) and first.calls == second.calls
