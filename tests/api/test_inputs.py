"""Bad input: one message per mistake, before any oracle is called; and nothing the caller owns is touched."""

import math

import numpy as np
import pytest
import scipy.sparse
from scipy.sparse.linalg import LinearOperator

import saddleslide as ss
from saddleslide.domains import Ball, Box, FullSpace, NonNegative, Product, Simplex
from saddleslide.errors import InputError, MissingAdjointError
from saddleslide.functions import Custom, Huber, LeastSquares, Linear, Logistic, Power, Quadratic, Zero
from saddleslide.operators import FiniteDifferences, as_operator
from support import CountedProblem, gathered

NAN, INF = math.nan, math.inf
EYE = np.eye(3)
BOX = Box(-1.0, 1.0, shape=3)
LIPSCHITZ = ss.Holder(1.0, 1.0)


def never(_):
    raise AssertionError("an oracle was called before the input was checked")


# What is wrong, how it is built, and what the message must say: the object, what came, what was expected.
CONSTRUCTORS = {
    # Hölder constants
    "exponent above 1": (lambda: ss.Holder(1.5, 1.0), r"^Holder: nu is 1\.5; expected a number in \[0, 1\]"),
    "exponent NaN": (lambda: ss.Holder(NAN, 1.0), r"^Holder: nu is nan; expected"),
    "negative H": (lambda: ss.Holder(0.5, -1.0), r"^Holder: H is -1\.0; expected a finite number >= 0"),
    "infinite H": (lambda: ss.Holder(0.5, INF), r"^Holder: H is inf; expected"),
    "negative delta": (lambda: ss.Holder(0.5, 1.0).L(-1.0), r"^Holder\.L: delta is -1\.0; expected a number >= 0"),
    "metric weight 0": (lambda: LIPSCHITZ.in_metric(0.0), r"^Holder\.in_metric: weight is 0\.0; expected .* > 0"),
    # domains
    "negative radius": (lambda: Ball(-1.0, shape=2), r"^Ball: radius is -1\.0; expected a finite number >= 0"),
    "radius NaN": (lambda: Ball(NAN, shape=2), r"^Ball: radius is nan; expected"),
    "ball without shape": (lambda: Ball(1.0), r"^Ball: shape is missing; pass"),
    "center of another shape": (lambda: Ball(1.0, 3, center=[0.0]), r"^Ball: center: shape is \(1,\); expected \(3,\)"),
    "center NaN": (lambda: Ball(1.0, center=[NAN]), r"^Ball: center: contains NaN \(1 of 1"),
    "lower above upper": (
        lambda: Box([0, 2], [1, 1]),
        r"^Box: lower > upper in 1 of 2 entries; expected lower <= upper",
    ),
    "sides without a point": (lambda: Box(INF, INF, 2), r"^Box: 2 sides leave no finite point; expected"),
    "sides NaN": (lambda: Box(NAN, 1.0, shape=2), r"^Box: lower: contains NaN"),
    "sides of other shapes": (
        lambda: Box([0.0, 0.0], 1.0, shape=3),
        r"^Box: lower has shape \(2,\); expected .*\(3,\)",
    ),
    "box without shape": (lambda: Box(0.0, 1.0), r"^Box: shape is missing"),
    "complex side": (lambda: Box(0.0, [1j]), r"^Box: upper: dtype is complex128; expected real"),
    "ragged side": (lambda: Box(0.0, [[1.0], [1.0, 2.0]]), r"^Box: upper: .*different lengths; expected"),
    "negative length": (lambda: FullSpace((2, -1)), r"^FullSpace: shape is \(2, -1\); expected"),
    "fractional length": (lambda: NonNegative(2.5), r"^Box: shape is 2\.5; expected"),
    "length that is no number": (lambda: FullSpace("ab"), r"^FullSpace: shape is 'ab'; expected"),
    "length None": (lambda: FullSpace(None), r"^FullSpace: shape is None; expected"),
    "length NaN": (lambda: FullSpace(NAN), r"^FullSpace: shape is nan; expected"),
    "empty simplex": (lambda: Simplex(0), r"^Simplex: n is 0; expected at least 1"),
    "empty product": (lambda: Product(), r"^Product: received no factors; expected"),
    "product of others": (lambda: Product(BOX, 3), r"^Product: received \['int'\]; expected"),
    # functions
    "power above 1": (lambda: Power(1.5), r"^Power: nu is 1\.5; expected a number in \[0, 1\]"),
    "negative power": (lambda: Power(-0.5), r"^Power: nu is -0\.5; expected"),
    "negative weight": (lambda: Power(0.5, weight=[1.0, -2.0]), r"^Power: weight has a negative entry -2; expected"),
    "negative diagonal": (lambda: Power(0.5, quadratic=-1.0), r"^Power: quadratic has a negative entry -1; expected"),
    "tilt NaN": (lambda: Power(0.5, tilt=[NAN]), r"^Power: tilt: contains NaN"),
    "parts of other shapes": (
        lambda: Power(0.5, weight=[1.0], tilt=[1.0, 2.0]),
        r"^Power: weight, tilt and quadratic have shapes \[\(1,\), \(2,\)\]; expected equal",
    ),
    "infinite tilt": (lambda: Linear([INF]), r"^Linear: c: contains infinite entries; expected finite"),
    "text as tilt": (lambda: Linear(["a"]), r"^Linear: c: dtype is .*; expected real"),
    "negative curvature": (lambda: Quadratic([1.0, -1.0]), r"^Quadratic: q has a negative entry -1; expected q >= 0"),
    "indefinite matrix": (lambda: Quadratic(np.diag([1.0, -3.0])), r"^Quadratic: q has the eigenvalue -3; expected"),
    "asymmetric matrix": (lambda: Quadratic(np.triu(np.ones((2, 2)))), r"^Quadratic: q is not symmetric; expected"),
    "oblong matrix": (lambda: Quadratic(np.ones((2, 3))), r"^Quadratic: q maps \(3,\) to \(2,\); expected a square"),
    "negative ridge": (
        lambda: LeastSquares(EYE, np.ones(3), ridge=-1.0),
        r"^LeastSquares: ridge is -1\.0; expected .* >= 0",
    ),
    "data of another shape": (
        lambda: LeastSquares(EYE, np.ones(2)),
        r"^LeastSquares: A: its shape is \(3, \d\), data have 2 entries; expected one for each row",
    ),
    "data NaN": (lambda: LeastSquares(EYE, [0.0, NAN, 0.0]), r"^LeastSquares: b: contains NaN"),
    "three kinds of labels": (
        lambda: Logistic(EYE, [0, 1, -1]),
        r"^Logistic: labels take the values .*expected -1 and 1",
    ),
    "labels 1 and 2": (lambda: Logistic(EYE, [1, 2, 1]), r"^Logistic: labels take the values \[1\.0, 2\.0\]; expected"),
    "negative logistic ridge": (lambda: Logistic(EYE, [1, 1, 1], ridge=-1), r"^Logistic: ridge is -1; expected"),
    "huber threshold 0": (lambda: Huber(0.0), r"^Huber: delta is 0\.0; expected a number > 0"),
    "gradient not callable": (
        lambda: Custom(gradient=3, smoothness=LIPSCHITZ),
        r"^Custom: gradient .*not callable; expected",
    ),
    "prox of one argument": (
        lambda: Custom(prox=lambda center: center, value=never),
        r"^Custom: prox can not be called with center and step; expected a function \(center, step\)",
    ),
    "smoothness a number": (
        lambda: Custom(gradient=never, smoothness=1.0),
        r"^Custom: smoothness is 1\.0; expected Holder",
    ),
    "negative modulus": (
        lambda: Custom(gradient=never, smoothness=LIPSCHITZ, strong_convexity=-1.0),
        r"^Custom: strong_convexity is -1\.0; expected",
    ),
    "sum of other shapes": (
        lambda: Linear([1.0]) + Linear([1.0, 2.0]),
        r"^f1 \+ f2: shapes are \(1,\) and \(2,\); expected",
    ),
    "sum with a number": (lambda: 3.0 + Huber(1.0), r"^f \+ c: c is the number 3\.0; expected .* Leave it out"),
    "sum with a set": (
        lambda: Huber(1.0) + Simplex(2),
        r"^f \+ X: X is the set Simplex\(\(2,\)\); expected .*Indicator\(X\), or over=X",
    ),
    "two functions": (
        lambda: ss.minimize(Huber(1.0), Linear([1.0])),
        r"^minimize: tol is Linear.*; expected a number.* Write minimize\(f \+ g\)",
    ),
    "a set in place of tol": (lambda: ss.minimize(Linear([1.0]), Simplex(1)), r"Write minimize\(f, over=X\)"),
    "name of SciPy's": (
        lambda: ss.minimize(Linear([1.0]), maxiter=3),
        r"^minimize: maxiter is unknown; expected one of tol, .*max_steps, .*, over, dtype\.$",
    ),
    "interval as a set": (
        lambda: ss.minimize(Huber(1.0), over=(0.0, 1.0)),
        r"^minimize: over is tuple; expected a set of ss\.domains, such as ss\.domains\.Box\(0\.0, 1\.0",
    ),
    "no problem": (
        lambda: ss.solve(max_steps=3),
        r"^solve: missing a required argument: 'problem'; expected problem, tol, .*, check_adjoint\. help\(ss\.solve\)",
    ),
    "unknown option": (
        lambda: ss.compare(None, maxiter=3),
        r"^compare: got an unexpected keyword argument 'maxiter'; expected problem, tol, .*, start\. help",
    ),
    "no objective": (lambda: ss.minimize(tol=1.0), r"^minimize: missing .* expected objective, .*, \*\*options\. help"),
    "objective to solve": (lambda: ss.solve(Huber(1.0)), r"^solve: problem is Huber; .* ss\.minimize takes"),
    "problem to minimize": (lambda: ss.minimize(problem()), r"objective is SaddleProblem; .* ss\.solve takes a Saddle"),
    "negative factor": (lambda: -1.0 * Huber(1.0), r"^factor \* f: factor is -1\.0; expected .* >= 0"),
    # couplings
    "matrix NaN": (lambda: as_operator(NAN * EYE), r"^B: contains NaN \(9 of 9"),
    "sparse NaN": (lambda: as_operator(scipy.sparse.csr_array(NAN * EYE)), r"^B: contains NaN"),
    "vector as matrix": (
        lambda: as_operator(np.ones(3)),
        r"^B: received an array of 1 dimensions, shape \(3,\); expected a matrix",
    ),
    "matrix of another shape": (
        lambda: as_operator(EYE, x_shape=(2, 2)),
        r"^B: its shape is \(3, 3\); expected \(3, 4\)",
    ),
    "coupling of another shape": (
        lambda: as_operator(as_operator(EYE), x_shape=(4,)),
        r"^B: its x shape is \(3,\); expected \(4,\)",
    ),
    "callables without shapes": (
        lambda: as_operator((never, never)),
        r"^B: a pair of callables has no shapes; pass .* x_shape= is",
    ),
    "negative norm": (lambda: as_operator(EYE, norm=-1.0), r"^B: norm is -1\.0; expected"),
    "differences of nothing": (lambda: FiniteDifferences((0, 3)), r"^FiniteDifferences: shape is \(0, 3\); expected"),
    # components
    "empty component": (lambda: ss.Component(), r"^Component: both function and operator are missing; expected"),
    "operator not callable": (
        lambda: ss.Component(operator=3, lipschitz=1.0),
        r"^Component: operator is int; expected",
    ),
    "lipschitz missing": (
        lambda: ss.Component(operator=never),
        r"^Component: lipschitz is 0 with an operator; expected",
    ),
    "negative lipschitz": (
        lambda: ss.Component(operator=never, lipschitz=-1.0),
        r"^Component: lipschitz is -1\.0; expected",
    ),
    "smoothness of another kind": (
        lambda: ss.Component(function=never, smoothness=1.0),
        r"^Component: smoothness is 1\.0; expected",
    ),
    "negative oracle error": (
        lambda: ss.Component(function=never, inexact=(-1.0, 1.0)),
        r"^Component: inexact delta is -1\.0",
    ),
    "negative tau": (
        lambda: ss.Component(function=never, smoothness=LIPSCHITZ, tau=-1.0),
        r"^Component: tau is -1\.0; expected",
    ),
}


@gathered(("build", "message"), CONSTRUCTORS.values(), ids=CONSTRUCTORS.keys())
def test_constructors_name_the_object_what_came_and_what_was_expected(build, message):
    with pytest.raises(InputError, match=message):
        build()


def test_input_errors_are_value_errors_and_missing_adjoints_are_input_errors():
    assert issubclass(InputError, ValueError)
    assert issubclass(MissingAdjointError, InputError)


def problem(**changed):
    return ss.SaddleProblem(**{"f": Zero(), "g": Zero(), "B": EYE, "X": BOX, "Y": BOX, **changed})


PROBLEMS = {
    "f of another kind": ({"f": never}, r"f is function; expected a function from ss\.functions"),
    "g of another kind": ({"g": 3}, r"g is int; expected"),
    "X of another kind": ({"X": 3}, r"X is int; expected a domain from ss\.domains"),
    "Y of another kind": ({"Y": None}, r"Y is NoneType; expected"),
    "f of another shape": ({"f": Linear([1.0])}, r"f takes arrays of shape \(1,\), X has shape \(3,\); expected equal"),
    "g of another shape": ({"g": Linear([1.0])}, r"g takes arrays of shape \(1,\), Y has shape \(3,\); expected equal"),
    "B of another shape": ({"B": np.ones((2, 3))}, r"B: its shape is \(2, 3\); expected \(3, 3\)"),
    "B complex": ({"B": 1j * EYE}, r"B: dtype is complex128; expected real"),
}


@gathered(("changed", "message"), PROBLEMS.values(), ids=PROBLEMS.keys())
def test_problem_names_the_mismatch(changed, message):
    with pytest.raises(InputError, match=rf"^SaddleProblem: {message}"):
        problem(**changed)


@gathered("B", [never, LinearOperator((3, 3), matvec=never, dtype=float)], ids=["one callable", "no rmatvec"])
def test_problem_refuses_a_missing_adjoint(B):
    with pytest.raises(MissingAdjointError, match=r"^B: .*expected"):
        problem(B=B)


def test_problem_reports_all_mismatches_in_one_error():
    with pytest.raises(InputError) as caught:
        problem(f=Linear([1.0]), g=Linear([1.0, 2.0]), B=np.ones((4, 3)))
    text = str(caught.value)
    assert text.startswith("SaddleProblem: 3 mismatches.")
    for part in ("f takes arrays of shape (1,)", "g takes arrays of shape (2,)", "B: its shape is (4, 3)"):
        assert part in text


def test_problem_reports_wrong_kinds_and_wrong_shapes_together():
    with pytest.raises(InputError) as caught:
        problem(f="f", g=Linear([1.0]), B=np.ones((4, 3)))
    text = str(caught.value)
    assert text.startswith("SaddleProblem: 3 mismatches.")
    for part in ("f is str", "g takes arrays of shape (1,)", "B: its shape is (4, 3)"):
        assert part in text
    with pytest.raises(InputError) as caught:
        problem(X="X", g=Linear([1.0]), B=never)
    text = str(caught.value)
    for part in ("X is str", "g takes arrays of shape (1,)", "received one callable"):
        assert part in text


def test_problem_is_frozen():
    with pytest.raises(AttributeError):
        problem().f = Zero()


EXPLICIT = {"order": "fgB", "loops": (2, 2, 2)}
PLANS = {
    "a regime alone": ({"regime": "degenerate"}, r"^plan: tol is missing; expected a target gap, or both order= and"),
    "order alone": ({"order": "fgB"}, r"^plan: tol is missing; expected"),
    "tol 0": ({"tol": 0.0}, r"^plan: all targets are 0; expected tol, rtol or reduction > 0"),
    "tol negative": ({"tol": -1.0}, r"^plan: tol is -1\.0; expected"),
    "tol NaN": ({"tol": NAN}, r"^plan: tol is nan; expected"),
    "tol of another kind": ({"tol": "small"}, r"^plan: tol is 'small'; expected"),
    "unknown letter": ({**EXPLICIT, "order": "fgA"}, r"^plan: order is 'fgA'; expected a permutation of 'fgB'"),
    "letter twice": ({**EXPLICIT, "order": "ffB"}, r"^plan: order is 'ffB'; expected"),
    "letter missing": ({**EXPLICIT, "order": "fB"}, r"^plan: order is 'fB'; expected"),
    "order of another kind": ({**EXPLICIT, "order": 123}, r"^plan: order is 123; expected"),
    "loops of 0": ({**EXPLICIT, "loops": (2, 0, 2)}, r"loops is \(2, 0, 2\); expected whole numbers >= 1"),
    "loops negative": ({**EXPLICIT, "loops": (2, -3, 2)}, r"loops is \(2, -3, 2\); expected whole numbers >= 1"),
    "loops fractional": ({**EXPLICIT, "loops": (2, 1.5, 2)}, r"loops is \(2, 1\.5, 2\); expected whole numbers"),
    "loops NaN": ({**EXPLICIT, "loops": (2, NAN, 2)}, r"loops is \(2, nan, 2\); expected whole numbers"),
    "loops of text": ({**EXPLICIT, "loops": (2, "3", 2)}, r"loops is \(2, '3', 2\); expected whole numbers"),
    "loops of truth values": ({**EXPLICIT, "loops": (2, True, 2)}, r"loops is \(2, True, 2\); expected whole numbers"),
    "too few loops": ({**EXPLICIT, "loops": (2, 2)}, r"loops is \(2, 2\); expected 3 numbers"),
    "too many loops": ({**EXPLICIT, "loops": (2,) * 4}, r"loops is \(2, 2, 2, 2\); expected 3 numbers"),
    "one number as loops": ({**EXPLICIT, "loops": 5}, r"loops is 5; expected 3 numbers"),
    "unknown metric": (
        {**EXPLICIT, "metric": "spherical"},
        r"^plan: metric is 'spherical'; expected one of \('auto', 'blocks', 'identity'",
    ),
    "three weights": ({**EXPLICIT, "metric": (1.0, 1.0, 1.0)}, r"^plan: metric has 3 weights; expected \(w_x, w_y\)"),
    "weight 0": ({**EXPLICIT, "metric": (1.0, 0.0)}, r"^plan: metric weights are \(1\.0, 0\.0\); expected numbers > 0"),
    "weight NaN": ({**EXPLICIT, "metric": NAN}, r"^plan: metric weight is nan; expected"),
    "no metric": ({**EXPLICIT, "metric": None}, r"^plan: metric weight is None; expected"),
    "infeasible start": (
        {**EXPLICIT, "start": (2.0 * np.ones(3), np.ones(3))},
        r"^start: x lies outside Box.* by 1\.0e\+00; expected",
    ),
    "start of another shape": (
        {**EXPLICIT, "start": (np.ones(2), np.ones(3))},
        r"^start: x: shape is \(2,\); expected \(3,\)",
    ),
    "start NaN": ({**EXPLICIT, "start": (np.ones(3), np.full(3, NAN))}, r"^start: y: contains NaN"),
    "start complex": (
        {**EXPLICIT, "start": (1j * np.ones(3), np.ones(3))},
        r"^start: x: dtype is complex128; expected real",
    ),
    "start not a pair": ({**EXPLICIT, "start": np.ones(3)}, r"^start: received ndarray; expected a pair \(x, y\)"),
    "start of one": ({**EXPLICIT, "start": (np.ones(3),)}, r"^start: received tuple; expected a pair"),
    "unknown constant": (
        {**EXPLICIT, "constants": {"L_yx": 1.0}},
        r"^plan: constants has \['L_yx'\]; expected names among",
    ),
    "negative constant": (
        {**EXPLICIT, "constants": {"H_x": -1.0}},
        r"^plan: constants\['H_x'\] is -1\.0; expected .* >= 0",
    ),
    "negative kappa": ({"tol": 0.1, "kappa": -1.0}, r"^plan: kappa is -1\.0; expected .* >= 0"),
}


@gathered(("request_", "message"), PLANS.values(), ids=PLANS.keys())
def test_plan_names_the_mistake_before_any_oracle_is_called(request_, message):
    counted = CountedProblem(EYE)
    with pytest.raises(InputError, match=message):
        ss.plan(counted.problem, **request_)
    assert counted.total == 0


def test_plan_reports_both_violations_of_a_start():
    with pytest.raises(InputError) as caught:
        ss.plan(problem(), **EXPLICIT, start=(2.0 * np.ones(3), 3.0 * np.ones(3)))
    assert "x lies outside" in str(caught.value)
    assert "y lies outside" in str(caught.value)


def test_plan_needs_a_problem():
    with pytest.raises(InputError, match=r"^plan: problem is int; expected a SaddleProblem"):
        ss.plan(3, **EXPLICIT)


def test_metric_may_be_an_array_of_two_weights():
    assert ss.plan(problem(), **EXPLICIT, metric=np.array([1.0, 4.0])).schedule.levels[0].term.weights == (1.0, 4.0)


def test_balanced_metric_needs_bounded_domains():
    with pytest.raises(InputError, match=r"^plan: metric 'balanced' needs bounded domains; pass the weights"):
        ss.plan(problem(X=FullSpace(3)), **EXPLICIT, metric="balanced")


def test_loops_from_a_target_need_bounded_domains():
    with pytest.raises(InputError, match="the domain is unbounded; expected a bounded one"):
        ss.plan(problem(X=FullSpace(3)), tol=0.1, regime="degenerate")


def test_subgradients_need_bounded_domains():
    with pytest.raises(InputError, match=r"^component f: nu is 0\.5 and the domain is unbounded; expected"):
        ss.plan(problem(f=Power(0.5), X=FullSpace(3)), **EXPLICIT)


RUNS = {
    "no problem": (
        lambda p, plan: ss.run(plan, plan),
        r"^run: received Plan and Plan; expected a SaddleProblem and a Plan",
    ),
    "no plan": (lambda p, plan: ss.run(p, "fgB"), r"^run: received SaddleProblem and str; expected"),
    "infeasible start": (
        lambda p, plan: ss.run(p, plan, start=(np.ones(3), 2.0 * np.ones(3))),
        r"^start: y lies outside",
    ),
    "start of another shape": (
        lambda p, plan: ss.run(p, plan, start=(np.ones((3, 1)), np.ones(3))),
        r"^start: x: shape is \(3, 1\)",
    ),
    "start not a pair": (lambda p, plan: ss.run(p, plan, start=3), r"^start: received int; expected a pair"),
}


@gathered(("call", "message"), RUNS.values(), ids=RUNS.keys())
def test_run_names_the_mistake_before_any_oracle_is_called(call, message):
    counted = CountedProblem(EYE, norm=1.0)
    plan = ss.plan(counted.problem, **EXPLICIT)
    with pytest.raises(InputError, match=message):
        call(counted.problem, plan)
    assert counted.total == 0


def test_certificate_refuses_infeasible_points_before_any_oracle_is_called():
    counted = CountedProblem(EYE)
    with pytest.raises(InputError, match=r"^certificate: x lies outside Box.*expected a feasible point"):
        ss.certify(counted.problem, 2.0 * np.ones(3), np.ones(3))
    with pytest.raises(InputError, match=r"^certificate: y: shape is \(2,\); expected \(3,\)"):
        ss.certify(counted.problem, np.ones(3), np.ones(2))
    assert counted.total == 0


def component(**changed):
    return ss.Component(**{"function": never, "smoothness": LIPSCHITZ, **changed})


SLIDES = {
    "no components": ({"components": []}, r"^slide: components are missing; expected a sequence"),
    "one component alone": (
        {"components": component()},
        r"^slide: components are \['one Component'\]; expected a sequence",
    ),
    "functions as components": ({"components": [Zero()]}, r"^slide: components are \['Zero'\]; expected"),
    "no domain": ({"domain": 3}, r"^slide: domain is int; expected"),
    "start of another shape": ({"start": np.ones(2)}, r"^start: shape is \(2,\); expected \(3,\)"),
    "infeasible start": ({"start": 2.0 * np.ones(3)}, r"^start: lies outside Box.* by 1\.0e\+00; expected"),
    "start NaN": ({"start": np.full(3, NAN)}, r"^start: contains NaN"),
    "wrong number of loops": ({"loops": (2, 2)}, r"^loops is \(2, 2\); expected 1 numbers"),
    "loops of 0": ({"loops": (0,)}, r"^loops is \(0,\); expected whole numbers >= 1"),
    "one number as loops": ({"loops": 4}, r"^loops is 4; expected 1 numbers"),
    "too many weights": ({"metric": (1.0, 2.0)}, r"^metric: received 2 weights; expected 1 or 1"),
    "negative weight": ({"metric": -1.0}, r"^metric: weights are \(-1\.0,\); expected numbers > 0"),
    "metric by name": ({"metric": "identity"}, r"^metric: weight is 'identity'; expected a finite number"),
    "smoothness missing": (
        {"components": [component(smoothness=None)]},
        r"^Component .*: smoothness is missing; expected Holder",
    ),
    "no curvature at all": (
        {"components": [component(smoothness=ss.Holder(1.0, 0.0))]},
        r"^levels: the total curvature per block is",
    ),
}


@gathered(("changed", "message"), SLIDES.values(), ids=SLIDES.keys())
def test_slide_names_the_mistake_before_any_oracle_is_called(changed, message):
    request = {"components": [component()], "domain": BOX, "start": np.zeros(3), "loops": (2,), "metric": 1.0}
    with pytest.raises(InputError, match=message):
        ss.slide(**{**request, **changed})


# --- answers of user code ---------------------------------------------------------------------------------------

ANSWERS = {
    "too short": (lambda x: x[:-1], r"received shape \(2,\), dtype float64; expected real numbers of shape \(3,\)"),
    "a column": (lambda x: x[:, None], r"received shape \(3, 1\), dtype float64; expected"),
    "a number": (lambda x: 0.0, r"received shape \(\), dtype float64; expected"),
    "complex": (lambda x: 1j * x, r"received shape \(3,\), dtype complex128; expected real"),
    "nothing": (lambda x: None, r"received shape \(\), dtype object; expected real"),
}


@gathered(("answer", "message"), ANSWERS.values(), ids=ANSWERS.keys())
def test_wrong_answers_of_user_code_are_refused_at_once(answer, message):
    custom = CountedProblem(EYE, f_gradient=answer, norm=1.0)
    with pytest.raises(InputError, match=rf"^Custom: gradient: {message}"):
        ss.run(custom.problem, ss.plan(custom.problem, **EXPLICIT))
    assert (custom.f.count, custom.g.count) == (1, 0)
    coupling = as_operator((answer, never), x_shape=(3,), y_shape=(3,))
    with pytest.raises(InputError, match=rf"^B x: {message}"):
        coupling.forward(np.ones(3))
    bad = ss.Component(operator=answer, lipschitz=1.0)
    with pytest.raises(InputError, match=rf"^Component: operator: {message}"):
        ss.slide([bad], BOX, np.zeros(3), (2,))


# --- ownership --------------------------------------------------------------------------------------------------


def test_inputs_are_never_modified_and_outputs_never_alias_them():
    rng = np.random.default_rng(4)
    B, tilt, weight = rng.standard_normal((3, 3)), rng.standard_normal(3), np.ones(3)
    lower, x, y = -np.ones(3), np.full(3, 0.5), np.full(3, -0.5)
    mine = [B, tilt, weight, lower, x, y]
    kept = [array.copy() for array in mine]
    f, X = Power(0.5, weight=weight, tilt=tilt), Box(lower, 1.0)
    problem = ss.SaddleProblem(f=f, g=Linear(tilt), B=B, X=X, Y=X)
    plan = ss.plan(problem, order="fgB", loops=(3, 2, 2), start=(x, y))
    result = ss.run(problem, plan, start=(x, y))
    z = ss.slide([ss.Component(function=f)], X, x, (3,)).z
    for array, before in zip(mine, kept, strict=True):
        np.testing.assert_array_equal(array, before)
        for out in (result.x, result.y, z):
            assert not np.shares_memory(array, out)
    assert not np.shares_memory(result.x, result.y)
    again = ss.run(problem, plan, start=(x, y))
    np.testing.assert_array_equal(again.x, result.x)
    for array in mine:
        array += 100.0
    np.testing.assert_array_equal(ss.run(problem, plan, start=(kept[4], kept[5])).x, result.x)


def test_user_code_can_not_write_to_the_iterates():
    def greedy(x):
        x[:] = 0.0
        return x

    custom = CountedProblem(EYE, f_gradient=greedy, norm=1.0)
    with pytest.raises(ValueError, match="read-only"):
        ss.run(custom.problem, ss.plan(custom.problem, **EXPLICIT))


def test_integer_input_is_read_as_double():
    problem = ss.SaddleProblem(
        f=Linear([1, 2]), g=Zero(), B=np.eye(2, dtype=np.int8), X=Box(-1, 1, shape=2), Y=Box(0, 1, shape=2)
    )
    result = ss.run(problem, ss.plan(problem, order="fgB", loops=(2, 1, 2)), start=([0, 0], [1, 1]))
    assert result.x.dtype == result.y.dtype == np.float64


MASKED = np.ma.array([[1.0, 2.0], [3.0, 4.0]], mask=[[False, True], [False, False]])
PAIR = Box(-1.0, 1.0, shape=2)
DOORS = {
    "Linear: c": lambda a: ss.functions.Linear(a[0]),
    "Quadratic: q": lambda a: ss.functions.Quadratic(a[0]),
    "LeastSquares: b": lambda a: ss.functions.LeastSquares(np.eye(2), a[0]),
    "LeastSquares, matrix": lambda a: ss.functions.LeastSquares(a, np.ones(2)),
    "Logistic: labels": lambda a: ss.functions.Logistic(np.eye(2), a[0]),
    "Box: lower": lambda a: ss.domains.Box(a[0], 9.0),
    "Ball: center": lambda a: ss.domains.Ball(9.0, center=a[0]),
    "B": lambda a: ss.operators.as_operator(a),
    "a list of rows": lambda a: ss.operators.as_operator([a[0], a[1]]),
    "start: x": lambda a: small(ss.functions.Quadratic(1.0)).start((a[0] / 9.0, np.zeros(2))),
    "certificate: x": lambda a: ss.certify(small(ss.functions.Quadratic(1.0)), a[0] / 9.0, np.zeros(2)),
    "one number": lambda a: ss.functions.Huber(a[0, 1]),
    "constrained: b": lambda a: ss.gallery.constrained(ss.functions.Quadratic(1.0), np.eye(2), a[0]),
    "inpaint: picture": lambda a: ss.gallery.inpaint(a, np.ones((2, 2), bool), weight=0.1),
    "a gradient": lambda a: ss.solve(small(ss.functions.Custom(lambda x: a[0] * x, lambda x: 0.5 * x @ x)), tol=1e-3),
    "a value": lambda a: ss.solve(small(ss.functions.Custom(lambda x: x, lambda x: a[0].sum() + a[0, 1])), tol=1e-3),
}  # fmt: skip


def small(f):
    return ss.SaddleProblem(f=f, g=ss.functions.Quadratic(1.0), B=np.eye(2), X=PAIR, Y=PAIR)


@gathered("door", DOORS)
def test_what_a_mask_hides_is_refused_everywhere(door):
    with pytest.raises(InputError, match="masked"):
        DOORS[door](MASKED)
    if ":" in door:
        with pytest.raises(InputError, match=door):
            DOORS[door](MASKED)


def test_a_mask_that_hides_nothing_is_none():
    open_mask = np.ma.array([[1.0, 2.0], [3.0, 4.0]], mask=False)
    np.testing.assert_array_equal(ss.functions.Linear(open_mask).c, open_mask.data)
    assert ss.operators.as_operator(open_mask).forward(np.ones(2)).tolist() == [3.0, 7.0]
