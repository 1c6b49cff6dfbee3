"""Functions that declare no smoothness: estimates are marked, nothing is called proved, and `solve` does without."""

import math

import numpy as np
import pytest
import scipy.optimize

import saddleslide as ss
from saddleslide.errors import InputError
from saddleslide.functions.constants import GRADIENTS, estimate_smoothness
from support import Counter, gathered, with_spectrum

F, D = ss.functions, ss.domains


def undeclared(matrix, shift, calls=None):
    """1/2 <x, Mx> - <shift, x> with nothing declared."""
    gradient = Counter(lambda x: matrix @ x - shift)
    return F.Custom(gradient=gradient, value=lambda x: 0.5 * float(x @ matrix @ x) - float(shift @ x)), gradient


def problem(f, g=None, n=4, rows=3, reach=1.0):
    B = np.random.default_rng(1).standard_normal((rows, n))
    X, Y = D.Box(-reach, reach, shape=n), D.Box(-1.0, 1.0, shape=rows)
    return ss.SaddleProblem(f=f, g=g or F.Quadratic(1.0), B=B, X=X, Y=Y)


M = (lambda A: A.T @ A)(with_spectrum([3.0, 1.0, 0.5, 0.2], 6, 4, np.random.default_rng(0)))
SHIFT = np.array([1.0, -2.0, 0.5, 3.0])


# The estimate itself


@gathered("domain", [D.Box(-1.0, 1.0, shape=4), D.Ball(2.0, shape=4), D.FullSpace(4), D.Simplex(4)])
def test_an_estimate_for_a_quadratic_is_within_its_spectrum(domain):
    f, calls = undeclared(M, SHIFT)
    start = domain.project(np.zeros(4))
    found = estimate_smoothness(f, domain, start)
    values = np.linalg.eigvalsh(M)
    assert found.nu == 1.0
    # A factor 2 on a quotient |Mv| / |v|, which lies between the eigenvalues.
    assert 2.0 * values[0] * (1 - 1e-9) <= found.H <= 2.0 * values[-1] * (1 + 1e-9)
    assert calls.count == GRADIENTS
    assert estimate_smoothness(f, domain, start) == found


def test_an_estimate_has_a_factor_two_in_hand():
    f, _ = undeclared(3.0 * np.eye(4), SHIFT)
    assert pytest.approx(6.0, rel=1e-9) == estimate_smoothness(f, D.Box(-1.0, 1.0, shape=4), np.zeros(4)).H


@gathered("nu", [0.25, 0.5, 0.75])
def test_an_estimate_finds_the_exponent_of_a_power(nu):
    """Around 0 the gradient of sum |x|^(1+nu) / (1+nu) changes like |x|^nu in every direction."""
    f = F.Custom(gradient=lambda x: np.sign(x) * np.abs(x) ** nu)
    found = estimate_smoothness(f, D.Box(-1.0, 1.0, shape=5), np.zeros(5))
    assert found.nu == pytest.approx(nu, abs=0.05)


def test_an_estimate_for_kinks_has_exponent_zero_and_for_constants_no_curvature():
    box = D.Box(-1.0, 1.0, shape=5)
    assert estimate_smoothness(F.Custom(gradient=np.sign), box, np.zeros(5)).nu == pytest.approx(0.0, abs=1e-12)
    flat = F.Custom(gradient=lambda x: np.ones(x.shape))
    assert estimate_smoothness(flat, box, np.zeros(5)) == ss.Holder(1.0, 0.0)
    point = D.Box(0.0, 0.0, shape=5)
    assert estimate_smoothness(flat, point, np.zeros(5)) == ss.Holder(1.0, 0.0)


# Plans of the paper's method


def test_a_plan_marks_estimated_constants_and_is_not_proved():
    f, _ = undeclared(M, SHIFT)
    plan = ss.plan(problem(f), 0.1, regime="degenerate")
    marked = {name for name, constant in plan.constants.items() if constant.origin.startswith("estimated")}
    assert marked and all("f" in plan.constants[name].origin for name in marked)
    assert "estimated" in plan.explain() and plan.proved is False
    declared = F.Custom(gradient=f.gradient, value=f.value, smoothness=ss.Holder(1.0, 9.0))
    known = ss.plan(problem(declared), 0.1, regime="degenerate")
    assert not any(c.origin.startswith("estimated") for c in known.constants.values())


@gathered("side", ["f", "g"])
def test_a_proved_plan_is_refused_where_constants_would_be_estimated(side):
    f, _ = undeclared(M, SHIFT)
    quadratic = F.Quadratic(1.0)
    subject = problem(f) if side == "f" else ss.SaddleProblem(
        f=quadratic, g=f, B=np.eye(4), X=D.Box(-1.0, 1.0, shape=4), Y=D.Box(-1.0, 1.0, shape=4)
    )  # fmt: skip
    assert ss.plan(subject, 0.1).proved is False
    with pytest.raises(InputError, match=r"smoothness|estimate"):
        ss.plan(subject, 0.1, proved=True)
    declared = F.Custom(gradient=f.gradient, value=f.value, smoothness=ss.Holder(1.0, 9.0))
    assert ss.plan(problem(declared), 0.1, proved=True).proved is True


def test_a_plan_from_estimates_runs_to_a_true_gap():
    f, _ = undeclared(M, SHIFT)
    result = ss.run(problem(f), ss.plan(problem(f), 0.1, regime="degenerate"))
    truth = ss.solve(problem(F.Quadratic(M) + F.Linear(-SHIFT)), 1e-9)
    assert result.lower <= truth.upper and truth.lower <= result.upper


# solve


@gathered("scale", [1e-6, 1.0, 1e6])
def test_solve_needs_no_declared_smoothness(scale):
    f, _ = undeclared(scale * M, scale * SHIFT)
    subject = problem(f)
    plan = ss.plan(subject, reduction=1e-4, method="adaptive")
    assert "smoothness of f was not declared: its curvature is found by backtracking" in plan.reasons
    assert plan.proved is False and math.isinf(plan.bound)
    result = ss.solve(subject, reduction=1e-4, max_calls={"f": 20000})
    assert result.success
    told = ss.solve(problem(F.Quadratic(scale * M) + F.Linear(-scale * SHIFT)), reduction=1e-9)
    assert max(result.lower, told.lower) <= min(result.upper, told.upper) + 1e-12 * abs(told.upper)


def test_declared_smoothness_is_not_said_to_be_missing():
    f, _ = undeclared(M, SHIFT)
    declared = F.Custom(gradient=f.gradient, value=f.value, smoothness=ss.Holder(1.0, 9.0))
    reasons = ss.plan(problem(declared), 0.1, method="adaptive").reasons
    assert not any("not declared" in reason for reason in reasons)
    both = ss.plan(
        ss.SaddleProblem(f=f, g=f, B=np.eye(4), X=D.Box(-1.0, 1.0, shape=4), Y=D.Box(-1.0, 1.0, shape=4)),
        0.1,
        method="adaptive",
    )
    assert sum("not declared" in reason for reason in both.reasons) == 2


def kinked_truth(B, a):
    """min over the box |x| <= 1 of sum |x_i - a_i| + |Bx|^2 / 2, as a bounded quadratic program in split variables."""
    n = len(a)

    def value(z):
        x = a + z[:n] - z[n:]
        residual = B @ x
        slope = B.T @ residual
        return float(z.sum() + 0.5 * residual @ residual), np.concatenate([1.0 + slope, 1.0 - slope])

    # |x| <= 1 as two linear inequalities, the rest as bounds.
    D2 = np.hstack([np.eye(n), -np.eye(n)])
    sides = [{"type": "ineq", "fun": lambda z: 1.0 - a - D2 @ z, "jac": lambda z: -D2},
             {"type": "ineq", "fun": lambda z: 1.0 + a + D2 @ z, "jac": lambda z: D2}]  # fmt: skip
    found = scipy.optimize.minimize(
        value, np.zeros(2 * n), jac=True, bounds=[(0.0, None)] * (2 * n), constraints=sides, method="SLSQP",
        options={"ftol": 1e-12, "maxiter": 500},
    )  # fmt: skip
    assert found.success
    return found.fun


@gathered("seed", [0, 1, 2])
def test_kinks_without_declared_smoothness_are_solved_to_a_modest_gap(seed):
    rng = np.random.default_rng(seed)
    n = 6
    B, a = rng.standard_normal((4, n)), 0.8 * rng.uniform(-1.0, 1.0, n)
    f = F.Custom(gradient=lambda x: np.sign(x - a), value=lambda x: float(np.abs(x - a).sum()))
    subject = ss.SaddleProblem(f=f, g=F.Quadratic(1.0), B=B, X=D.Box(-1.0, 1.0, shape=n), Y=D.FullSpace(4))
    # Kinks cost 1/gap^2 calls; a few thousand are enough for a gap of 0.1, and 20,000 are not for one of 0.01.
    result = ss.solve(subject, 0.1, max_calls={"f": 3000})
    assert result.success and result.gap <= 0.1
    truth = kinked_truth(B, a)
    assert result.lower - 1e-9 <= truth <= result.upper + 1e-9


def test_the_plainest_kinks_are_solved():
    f = F.Custom(gradient=np.sign, value=lambda x: float(np.abs(x).sum()))
    result = ss.solve(problem(f), 0.1, start=(np.full(4, 0.7), np.zeros(3)), max_calls={"f": 3000})
    assert result.success and result.lower <= 0.0 <= result.upper
