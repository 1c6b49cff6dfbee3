"""`solve(method=...)`: certified, counted, replayable, limited; and one error with everything that is missing."""

from __future__ import annotations

import json
import math
import re
from dataclasses import FrozenInstanceError, replace
from pathlib import Path

import numpy as np
import pytest

import saddleslide as ss
from arena import Driven
from saddleslide.errors import InputError
from saddleslide.facts.facts import Facts
from saddleslide.functions.minimum import has_closed_minimum
from saddleslide.methods import Method
from support import CountedProblem, gathered

FAMILY = [
    ("mirror-prox", {}),
    ("mirror-prox", {"output": "last"}),
    ("accelerated-mirror-prox", {}),
    ("mirror-prox-sliding", {}),
    ("universal-mirror-prox", {}),
    ("two-level-sliding", {}),
    ("lockstep", {}),
    ("accelerated-gradient", {}),
    ("universal-gradient", {}),
]
family = pytest.mark.parametrize(("name", "options"), FAMILY, ids=[f"{n} {o or ''}" for n, o in FAMILY])
NAMES = sorted({name for name, _ in FAMILY})


def smooth_problem(seed=0, d=12):
    return ss.gallery.synthetic(1.0, 1.0, seed=seed, d=d)


@family
def test_a_named_method_solves_to_a_certified_gap_and_its_plan_replays(name, options):
    problem = smooth_problem()
    result = ss.solve(problem, tol=0.05, method=name, options=options)
    assert result.status is ss.Status.SOLVED
    assert ss.certify(problem, result.x, result.y).gap <= result.gap + 1e-12 <= 0.05 + 1e-12
    assert result.plans[0].method == name
    stored = ss.Plan.from_dict(json.loads(json.dumps(result.plans[0].to_dict())))
    assert stored == result.plans[0]
    again = ss.run(problem, stored)
    assert again.x.tobytes() == result.x.tobytes()
    assert again.y.tobytes() == result.y.tobytes()
    assert again.calls == result.calls
    assert [m.gap for m in again.history] == [m.gap for m in result.history]


@family
def test_relative_targets_are_relative_to_the_gap_at_the_start(name, options):
    problem = smooth_problem(seed=1)
    at_start = ss.certify(problem, *problem.start()).gap
    result = ss.solve(problem, reduction=0.01, method=name, options=options)
    assert result.status is ss.Status.SOLVED
    assert result.target == pytest.approx(0.01 * at_start, rel=1e-9)
    assert result.gap <= 0.01 * at_start * (1.0 + 1e-9)


@pytest.mark.parametrize("name", [n for n in NAMES if n not in ("accelerated-gradient", "universal-gradient")])
def test_calls_are_the_calls_that_were_made(name):
    counted = CountedProblem(np.random.default_rng(0).standard_normal((4, 6)), norm=4.0)
    before = counted.gradients, counted.products
    driven = Driven(counted.problem, name, None, 0.5)
    driven.step(7)
    assert (driven.calls.f, driven.calls.g) == (counted.f.count - before[0][0], counted.g.count - before[0][1])
    assert counted.products - before[1] == driven.calls.B


@pytest.mark.parametrize("name", ["condat-vu", "gradient-sliding", "proved-sliding", "mirror-prox"])
@gathered("moved", [False, True])
def test_gradients_and_products_that_measure_distances_are_calls_too(name, moved):
    counted = CountedProblem(np.random.default_rng(0).standard_normal((4, 6)), norm=4.0, modulus=1.0)
    X, Y = ss.domains.FullSpace(6), ss.domains.FullSpace(4)
    g = counted.g_function
    if name == "gradient-sliding":
        g, Y = ss.functions.Quadratic(1.0), counted.Y
    problem = ss.SaddleProblem(f=counted.f_function, g=g, B=counted.problem.coupling, X=X, Y=Y)
    assert not ss.methods.by_name[name]().lacks(Facts(problem))
    assert counted.total == 0
    driven = Driven(problem, name, (np.full(6, 0.5), np.full(4, 0.5)) if moved else None, 0.5)
    driven.step()
    assert (driven.calls.f, driven.calls.g) == counted.gradients
    assert counted.products == driven.calls.B


def test_judging_is_part_of_the_calls_and_spaced_out():
    # A matrix quadratic has no closed inner minimum: judging calls f'.
    rng = np.random.default_rng(0)
    A = rng.standard_normal((30, 10))
    f = ss.functions.LeastSquares(A, rng.standard_normal(30), ridge=0.1)
    X, Y = ss.domains.Ball(5.0, shape=10), ss.domains.Box(-1.0, 1.0, shape=4)
    problem = ss.SaddleProblem(f=f, g=ss.functions.Quadratic(1.0), B=rng.standard_normal((4, 10)), X=X, Y=Y)
    result = ss.solve(problem, tol=1e-2, method="mirror-prox")
    assert result.status is ss.Status.SOLVED
    judging, own = result.certificate_calls, result.calls.f - result.certificate_calls.f
    steps = result.history[-1].step
    assert own == 2 * steps
    assert 0 < judging.f <= own + 27
    inspected = [moment.step for moment in result.history]
    assert len(inspected) < 12 + math.log(steps) / math.log(1.1)
    assert all(later.gap <= sooner.gap for sooner, later in zip(result.history, result.history[1:], strict=False))


def ill_conditioned(d=80):
    rng = np.random.default_rng(0)
    A = np.linalg.qr(rng.standard_normal((d, d)))[0] * np.geomspace(1e-3, 1.0, d)
    f = ss.functions.LeastSquares(A, rng.standard_normal(d), ridge=1e-8)
    X, Y = ss.domains.Ball(500.0, shape=d), ss.domains.Box(-1.0, 1.0, shape=4)
    return ss.SaddleProblem(f=f, g=ss.functions.Quadratic(1.0), B=rng.standard_normal((4, d)), X=X, Y=Y)


def test_a_certificate_costs_a_gradient_and_a_solve_only_when_it_can_decide():
    problem = ill_conditioned()
    first = ss.solve(problem, tol=1e-9, method="mirror-prox", max_steps=1)
    assert first.certificate_calls.f == 1
    assert first.certificate.kind == "residual"
    longer = ss.solve(problem, tol=1e-9, method="mirror-prox", max_steps=60)
    assert longer.certificate_calls.f == longer.nit
    # So loose a target that the point may meet it: now inner solves are made, and no more than can be paid for.
    loose = ss.solve(problem, tol=2.0, method="mirror-prox", max_steps=200)
    own = loose.calls.f - loose.certificate_calls.f
    assert 25 < loose.certificate_calls.f <= own + 27


def test_judging_a_costly_f_stays_cheaper_than_the_method():
    # The average is far from its inner minimum for long: solves on sight, or at every 10 %, would double the bill.
    problem = ss.gallery.tomography("standard", n=16)
    result = ss.solve(problem, reduction=3e-3, method="mirror-prox")
    assert result.status is ss.Status.SOLVED
    own = result.calls.f - result.certificate_calls.f
    assert result.certificate_calls.f < 0.75 * own
    # Without a factor of the Hessian the same run takes 304 of its own and 199.5 for judging.
    assert own < 310 and result.certificate_calls.f < 100


def test_the_gap_at_the_start_is_paid_for():
    problem = ill_conditioned()
    x, y = problem.start()
    inner = ss.functions.tilted_minimum(problem.f, problem.coupling.adjoint(y), problem.X, x, 0.0, 25)
    assert inner.gradients >= 25
    stopped = ss.solve(problem, reduction=1e-9, method="mirror-prox", max_steps=0)
    # The value at the start twice, half a gradient each: for the scale and for the bounds.
    assert stopped.certificate_calls.f == inner.gradients + 1.0


@gathered("domain", [ss.domains.Box(-1.0, 2.0, shape=3), ss.domains.Ball(1.0, shape=3), ss.domains.Simplex(3)], ids=str)
def test_a_closed_minimum_is_one_without_gradients(domain):
    functions = ss.functions
    matrix = np.array([[2.0, 0.5, 0.0], [0.5, 1.0, 0.2], [0.0, 0.2, 1.5]])
    catalogue = [
        functions.Zero(),
        functions.Linear([1.0, -2.0, 0.5]),
        functions.Quadratic(2.0),
        functions.Quadratic([1.0, 2.0, 3.0]),
        functions.Power(0.5, tilt=[0.3, -0.1, 0.2]),
        functions.Quadratic(matrix),
        functions.LeastSquares(matrix, [1.0, 2.0, 3.0], ridge=0.1),
    ]
    for f in catalogue:
        found = functions.tilted_minimum(f, np.array([0.3, -0.4, 0.9]), domain, domain.project(np.zeros(3)))
        assert has_closed_minimum(f, domain) == (found.gradients == 0), f


def test_a_method_hears_what_its_candidates_were_worth(monkeypatch):
    heard = []

    def learn(self, state, gaps, judge, oracles):
        heard.append(list(gaps))
        return state

    monkeypatch.setattr(Method, "learn", learn)
    result = ss.solve(smooth_problem(), tol=0.5, method="mirror-prox")
    # The last ones met the target: there is nothing left to learn.
    assert len(heard) == result.nit - 1
    best = np.minimum.accumulate([gaps[0] for gaps in heard])
    assert all(moment.gap <= gap for moment, gap in zip(result.history[:-1], best, strict=True))
    assert heard[0][0] == result.history[0].gap


def test_limits_callbacks_and_steps():
    problem = smooth_problem()
    limited = ss.solve(problem, tol=1e-9, method="mirror-prox", max_calls={"f": 40})
    assert limited.status is ss.Status.CALL_LIMIT
    assert limited.calls.f <= 42
    stepped = ss.solve(problem, tol=1e-9, method="mirror-prox", max_steps=37)
    assert stepped.status is ss.Status.STEP_LIMIT
    assert stepped.history[-1].step == 37
    assert ss.solve(problem, tol=1e-9, method="mirror-prox", max_steps=0).history == ()
    seen = []

    def stop(result):
        seen.append(result)
        if len(seen) == 3:
            raise StopIteration

    stopped = ss.solve(problem, tol=1e-9, method="mirror-prox", callback=stop)
    assert stopped.status is ss.Status.STOPPED
    assert [r.status for r in seen] == [ss.Status.RUNNING] * 3
    assert stopped.nit == 3


def test_inspections_can_be_set_in_the_plan():
    problem = smooth_problem()
    plan = ss.Plan(method="mirror-prox", settings={"metric": "identity"}, tol=0.5, every=4)
    result = ss.run(problem, plan)
    assert {moment.step % 4 for moment in result.history} == {0}
    other = ss.gallery.synthetic(1.0, 1.0, d=5)
    with pytest.raises(InputError, match="made for x, y of shapes"):
        ss.run(other, result.plans[0])
    with pytest.raises(InputError, match="every is 0"):
        ss.Plan(method="mirror-prox", every=0)


def test_a_fixed_length_ends_completed_and_a_lost_certificate_says_so():
    problem = smooth_problem()
    short = ss.solve(problem, tol=1e-9, method="lockstep", options={"steps": 5})
    assert short.status is ss.Status.COMPLETED
    assert short.calls.f == 5
    assert math.isfinite(short.gap)
    zero, free = ss.functions.Zero(), ss.domains.FullSpace(3)
    unbounded = ss.SaddleProblem(f=zero, g=zero, B=np.eye(3), X=free, Y=free)
    lost = ss.solve(unbounded, tol=1e-3, method="mirror-prox", start=(np.ones(3), np.ones(3)), radius=0.0)
    assert lost.status is ss.Status.NO_CERTIFICATE
    # The point is the method's, not the start.
    assert np.max(np.abs(lost.x)) < 0.5


def test_all_methods_have_as_many_steps_to_find_a_first_gap():
    free, box = ss.domains.FullSpace(2), ss.domains.Box(-0.5, 0.5, shape=2)
    f = ss.functions.Custom(np.tanh, lambda x: float(np.sum(np.log(np.cosh(x)))), smoothness=ss.Holder(1.0, 1.0))
    problem = ss.SaddleProblem(f=f, g=ss.functions.Zero(), B=np.eye(2), X=free, Y=box)
    for method in ("adaptive", "mirror-prox", "condat-vu"):
        result = ss.solve(problem, tol=1e-6, method=method, radius=0.0)
        assert result.status is ss.Status.NO_CERTIFICATE and math.isinf(result.gap)
        assert 256 <= result.history[-1].step <= 1.1 * 256


def test_a_method_is_a_value_and_its_name_a_shorthand():
    problem, method = smooth_problem(), ss.methods.MirrorProx(output="last")
    before = dict(vars(method))
    given = ss.solve(problem, tol=1e-2, method=method)
    named = ss.solve(problem, tol=1e-2, method="mirror-prox", options={"output": "last"})
    assert given.plans == named.plans and given.x.tobytes() == named.x.tobytes() and given.calls == named.calls
    assert vars(method) == before and repr(method) == "MirrorProx(output='last')"
    assert {method, ss.methods.MirrorProx(output="last"), ss.methods.MirrorProx()} == {method, ss.methods.MirrorProx()}
    with pytest.raises(FrozenInstanceError):
        method.output = "average"
    with pytest.raises(InputError, match="which has its own"):
        ss.solve(problem, tol=1e-2, method=method, options={"output": "last"})

    # A class of one's own is a value like any other, and no plan of it can be written.
    class Mine(ss.methods.MirrorProx):
        description = replace(method.description, name="mine")

    mine = ss.solve(problem, tol=1e-2, method=Mine(output="last"))
    assert mine.x.tobytes() == given.x.tobytes() and mine.calls == given.calls and mine.plans[0].method == "mine"
    with pytest.raises(InputError, match="which a file can not hold"):
        mine.plans[0].to_dict()


def test_numbers_that_are_not_finite_end_the_run():
    calls = []

    def broken(x):
        calls.append(1)
        return np.full(6, np.nan) if len(calls) > 5 else x

    counted = CountedProblem(np.eye(6), f_gradient=broken, norm=1.0)
    result = ss.solve(counted.problem, tol=1e-12, method="mirror-prox")
    assert result.status is ss.Status.NON_FINITE
    assert np.isfinite(result.x).all()


def test_steps_outside_the_theory_are_flagged_in_the_plan():
    problem = smooth_problem()
    long = ss.solve(problem, tol=1.0, method="mirror-prox", options={"eta": 1.0, "metric": "identity"}, max_steps=3)
    assert any("not covered" in note for note in long.plans[0].notes)
    scaled = ss.solve(problem, tol=1.0, method="accelerated-mirror-prox", options={"scale": 0.75}, max_steps=3)
    assert any("not covered" in note for note in scaled.plans[0].notes)
    holder = ss.gallery.synthetic(0.75, 0.25, d=6)
    guessed = ss.solve(holder, tol=1.0, method="accelerated-mirror-prox", options={"curvature": 3.0}, max_steps=3)
    assert any("not covered" in note for note in guessed.plans[0].notes)
    fair = ss.solve(problem, tol=1.0, method="mirror-prox", max_steps=3)
    assert not any("not covered" in note for note in fair.plans[0].notes)
    assert "because  eta = " in fair.plans[0].explain()


def refused(problem, name, **options):
    with pytest.raises(InputError) as caught:
        ss.solve(problem, tol=0.1, method=name, options=options or None)
    return str(caught.value)


def test_a_method_says_everything_it_lacks_in_one_error():
    holder = ss.gallery.synthetic(0.75, 0.25, d=6)
    for name in ("mirror-prox", "accelerated-mirror-prox", "mirror-prox-sliding"):
        text = refused(holder, name)
        assert "exponent 0.75" in text
        assert "exponent 0.25" in text
        assert name in text
    zero, free = ss.functions.Zero(), ss.domains.FullSpace(3)
    game = ss.SaddleProblem(f=zero, g=zero, B=np.eye(3), X=ss.domains.Simplex(3), Y=ss.domains.Simplex(3))
    assert "no gradient to slide over" in refused(game, "mirror-prox-sliding")
    assert "max over y is not smooth" in refused(game, "accelerated-gradient")
    unbounded = ss.SaddleProblem(f=zero, g=zero, B=np.eye(3), X=free, Y=free)
    for name in ("two-level-sliding", "lockstep", "recursive-sliding"):
        text = refused(unbounded, name)
        assert "X = FullSpace" in text
        assert "Y = FullSpace" in text
    rough = ss.SaddleProblem(f=ss.functions.Power(0.5), g=zero, B=np.eye(3), X=free, Y=free)
    text = refused(rough, "accelerated-gradient")
    assert "3 mismatches" in text
    for part in ("exponent 0.5", "best response", "max over y"):
        assert part in text
    assert "best response" in refused(rough, "universal-gradient")


@pytest.mark.parametrize("name", [n for n in NAMES if n not in ("lockstep", "two-level-sliding")])
def test_domains_on_which_a_bound_does_not_apply_are_flagged_in_the_plan(name):
    q, free = ss.functions.Quadratic(1.0), ss.domains.FullSpace(3)
    unbounded = ss.SaddleProblem(f=q, g=q, B=np.eye(3), X=free, Y=free)
    bounded = ss.SaddleProblem(f=q, g=q, B=np.eye(3), X=ss.domains.Ball(1.0, shape=3), Y=ss.domains.Ball(1.0, shape=3))
    for problem, flagged in ((unbounded, True), (bounded, False)):
        start = problem.start((np.full(3, 0.3), np.full(3, 0.3)))
        plan = ss.solve(problem, tol=1e-2, method=name, start=start, max_steps=3).plans[0]
        assert any("does not apply" in note for note in plan.notes) == flagged
        assert (ss.methods.by_name[name]().calls(Facts(problem), 1e-2) is None) == flagged


def test_silent_functions_unknown_names_and_options_are_refused_before_any_call():
    counted = CountedProblem(np.eye(3), norm=1.0)
    problem = counted.problem
    with pytest.raises(
        InputError, match=r"'newton' is unknown; expected auto, adaptive or one of .*mirror-prox.*universal-gradient"
    ):
        ss.solve(problem, tol=0.1, method="newton")
    with pytest.raises(InputError, match=r"method is the class PDHG; expected an instance, PDHG\(\)"):
        ss.solve(problem, tol=0.1, method=ss.methods.PDHG)
    with pytest.raises(InputError, match="method is"):
        ss.solve(problem, tol=0.1, method=["mirror-prox"])
    text = refused(problem, "mirror-prox", output="best", eta=-1.0, pace=3)
    for part in ("3 mismatches", "'pace' is unknown", "output is 'best'", "eta is -1.0"):
        assert part in text
    assert "horizon is 2.5" in refused(problem, "accelerated-mirror-prox", horizon=2.5)
    assert "L0 is nan" in refused(problem, "universal-mirror-prox", L0=math.nan)
    for bad in (3, "output=last"):
        with pytest.raises(InputError, match="expected a mapping"):
            ss.solve(problem, tol=0.1, method="mirror-prox", options=bad)
    with pytest.raises(InputError, match="expected a named method"):
        ss.solve(problem, tol=0.1, options={"output": "last"})
    with pytest.raises(InputError, match="with a named method"):
        ss.solve(problem, tol=0.1, method="mirror-prox", metric="blocks")
    silent = ss.functions.Custom(gradient=lambda x: x, smoothness=ss.Holder(1.0, 1.0))
    mute = ss.SaddleProblem(f=silent, g=silent, B=np.eye(3), X=problem.X, Y=problem.Y)
    assert "f has no value" in refused(mute, "mirror-prox")
    assert counted.total == 0
    with pytest.raises(InputError, match=r"Plan\.from_dict"):
        ss.Plan.from_dict({"options": "mirror-prox"})


def test_the_collection_reads_like_a_dictionary_and_prints_as_a_table():
    assert set(NAMES) <= set(ss.methods.by_name)
    assert len(ss.methods.by_name) == len(list(ss.methods.by_name))
    assert "newton" not in ss.methods.by_name
    text = repr(ss.methods.by_name)
    for name, member in ss.methods.by_name.items():
        about = member.description
        assert about.name == name
        assert f"\n{name}\n" in f"\n{text}"
        assert about.guarantee.endswith(".")
        assert about.reference
        assert max(map(len, text.splitlines())) <= 120


def test_the_page_of_methods_says_what_the_code_says():
    page = (Path(ss.__file__).parents[2] / "docs" / "methods.md").read_text(encoding="utf-8")
    assert ss.methods.by_name.markdown() in page
    for member in ss.methods.by_name.values():
        for option in member.options():
            assert f"`{option.name}`" in page


def test_the_page_names_checks_that_exist_for_every_method():
    root = Path(ss.__file__).parents[2]
    page = (root / "docs" / "methods.md").read_text(encoding="utf-8")
    table = page.split("## Where each one was checked")[1].split("## Settings")[0]
    rows = [line for line in table.splitlines() if line.startswith("| `")]
    listed = {name for row in rows for name in re.findall(r"`([a-z-]+)`", row.split("|")[1])}
    assert listed == set(ss.methods.by_name)
    source = "".join(path.read_text(encoding="utf-8") for path in (root / "tests").rglob("test_*.py"))
    named = set(re.findall(r"`(test_\w+)`", table))
    assert len(named) >= 20
    assert {name for name in named if f"def {name}(" not in source} == set()


def test_a_method_whose_point_is_outside_proves_nothing():
    """A method of one's own may return anything: no bound is taken from a point that is not feasible."""

    class Off(ss.methods.MirrorProx):
        description = replace(ss.methods.MirrorProx.description, name="off")

        def point(self, state, oracles):
            x, y = super().point(state, oracles)
            return x + 1e-3, y

    q, box = ss.functions.Quadratic(1.0), ss.domains.Box(1.0, 2.0, shape=3)
    problem = ss.SaddleProblem(f=q + ss.functions.Linear(-5.0), g=q, B=np.eye(3), X=box, Y=box)
    result = ss.solve(problem, tol=0.05, method=Off(), max_steps=300)
    truth = ss.solve(problem, tol=1e-10)
    assert not result.success or (result.lower <= truth.upper and truth.lower <= result.upper)
    assert problem.X.violation(result.x) <= 1e-12 or not math.isfinite(result.upper)
