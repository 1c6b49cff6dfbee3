"""What a plan says of the claims that are possible, against what runs claim."""

import json

import numpy as np

import saddleslide as ss
from support import gathered

F, D = ss.functions, ss.domains
RNG = np.random.default_rng(5)
A, b = RNG.standard_normal((6, 9)), RNG.standard_normal(6)
B = RNG.standard_normal((4, 9))
BOX, SPACE = D.Box(-0.3, 0.3, shape=4), D.FullSpace(9)


def own(declared):
    return F.Custom(
        value=lambda x: 0.5 * float(x @ x),
        gradient=lambda x: x,
        smoothness=ss.Holder(1.0, 1.0),
        strong_convexity=declared,
    )


CASES = {
    "bounded": (F.LeastSquares(A, b), F.Zero(), D.Box(-1.0, 1.0, shape=9), BOX, "global", "SOLVED"),
    "ridge": (F.LeastSquares(A, b, ridge=0.1), F.Zero(), SPACE, BOX, "global", "SOLVED"),
    "l1": (F.LeastSquares(A, b) + F.Power(0.0), F.Zero(), SPACE, BOX, "made global", "SOLVED"),
    "onto": (F.Power(0.0), F.Linear(b[:4]), SPACE, D.FullSpace(4), "made global", "SOLVED"),
    "orthant": (F.LeastSquares(np.abs(A), b), F.Zero(), D.NonNegative(9), BOX, "made global", "SOLVED"),
    "flat": (F.LeastSquares(A, b), F.Zero(), SPACE, BOX, "within a radius", "SOLVED_WITHIN"),
    "declared": (own(1.0), F.Zero(), SPACE, BOX, "as declared", "MET_AS_DECLARED"),
}


@gathered("name", CASES)
def test_a_run_claims_what_its_plan_has_said(name):
    f, g, X, Y, kind, status = CASES[name]
    problem = ss.SaddleProblem(f=f, g=g, B=B, X=X, Y=Y)
    plan, result = ss.plan(problem, rtol=1e-3), ss.solve(problem, rtol=1e-3)
    assert (plan.certificate.kind, result.status.name) == (kind, status)
    assert plan == result.plans[0] and ss.Plan.from_dict(json.loads(json.dumps(plan.to_dict()))) == plan
    assert f"proof    {kind}: {plan.certificate.why}" in plan.explain()
    # What could be changed is said where something could, and again by a run that ends too early.
    assert bool(plan.certificate.advice) == (kind in ("within a radius", "as declared"))
    assert plan.certificate.advice in plan.explain()
    early = ss.solve(problem, rtol=1e-9, max_steps=1)
    assert early.status.name != "STEP_LIMIT" or plan.certificate.advice in early.message


def test_what_is_advised_helps():
    f, g, X, Y, *_ = CASES["flat"]
    problem = ss.SaddleProblem(f=f, g=g, B=B, X=X, Y=Y)
    advice = ss.plan(problem).certificate.advice
    assert "X=Box(-big, big)" in advice and "ridge=" in advice and "Y" not in advice
    for changed in (
        ss.SaddleProblem(f, g, B, D.Box(-9.0, 9.0, shape=9), Y),
        ss.SaddleProblem(F.LeastSquares(A, b, 0.1), g, B, X, Y),
    ):
        assert ss.plan(changed).certificate.kind == "global" and not ss.plan(changed).certificate.advice
    assert ss.plan(problem, radius=0.0).certificate.kind == "none"
    other = ss.plan(problem)
    assert other != ss.plan(problem, radius=0.0)
