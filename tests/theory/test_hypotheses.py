"""A plan lists every hypothesis of its theorem with how it is known, and says proved only if all of them are."""

import dataclasses
import json
import math

import numpy as np
import pytest

import saddleslide as ss
from saddleslide.domains import Ball, Box, FullSpace, NonNegative
from saddleslide.errors import InputError
from saddleslide.functions import Custom, LeastSquares, Linear, PoissonTransmission, Quadratic, Zero
from saddleslide.theory import Term, alpha_sequence, place, sharp_bound
from saddleslide.theory.hypotheses import Hypothesis
from support import component_levels

RNG = np.random.default_rng(3)
BOX, FREE = Box(0.0, 1.0, shape=3), FullSpace(3)
ROWS = RNG.random((5, 3))
COUNTS = np.array([3.0, 2.0, 4.0, 1.0, 2.0])


def anchored(f, X, **settings):
    problem = ss.SaddleProblem(f=f, g=Quadratic([0.2, 0.5, 1.0]), B=0.1 * np.eye(3), X=X, Y=FREE)
    declared = {"tol": 1e-2, "regime": "restarts", "anchors": True, "proved": True, "interior": ("x",), "Psi0": 5.0}
    return ss.plan(problem, **{**declared, **settings})


def own(strong=1.0):
    return Custom(lambda x: 2.0 * x, lambda x: x @ x, ss.Holder(1.0, 2.0), strong)


def how(plan, words):
    return {one.how for one in plan.hypotheses if words in one.what}


@pytest.mark.parametrize(
    ("f", "X", "known"),
    [
        (PoissonTransmission(ROWS, COUNTS, 10.0, 1.0) + Quadratic(0.5), BOX, "violated"),
        (own(), BOX, "unknown"),
        (own(), FREE, "follows"),
        (LeastSquares(ROWS, COUNTS, ridge=0.5), BOX, "computed"),
        (LeastSquares(ROWS, COUNTS, ridge=0.5), FREE, "follows"),
    ],
    ids=["transmission", "own code on a box", "own code", "least squares on a box", "least squares"],
)
def test_anchors_need_their_constants_on_the_whole_space(f, X, known):
    plan = anchored(f, X)
    # beta_y is the anchor that leans on f'.
    assert plan.constants["beta_y"].value > 0.0
    assert how(plan, "f' is") - how(plan, "Hölder on") <= {known}
    holds = known in ("computed", "follows")
    assert plan.proved is holds and math.isfinite(plan.bound) is holds and math.isfinite(plan.Psi_bound) is holds
    assert ("proved: gap at most" in plan.explain()) is holds
    assert ("on the whole space" in plan.explain().splitlines()[2]) is not holds
    # Without the anchors nobody asks.
    free = anchored(f, X, anchors=False)
    assert free.proved and not how(free, "whole space")


def test_without_a_declared_interior_psi_is_proved_and_the_gap_is_not():
    problem = ss.SaddleProblem(f=Quadratic(1.0), g=Quadratic(1.0), B=0.1 * np.eye(3), X=BOX, Y=FREE)
    plan = ss.plan(problem, tol=1e-2, regime="restarts", proved=True)
    assert not plan.proved and math.isfinite(plan.Psi_bound)
    assert [one.how for one in plan.hypotheses if not one.holds] == ["unknown"]
    assert all(one.for_gap for one in plan.hypotheses if not one.holds)


KERNEL = np.array([[1.0, 1.0, 0.0], [0.0, 1.0, 1.0]])


@pytest.mark.parametrize("X", [BOX, Ball(1.0, shape=3), NonNegative(3)], ids=["box", "ball", "cone"])
def test_a_declared_range_condition_is_refused_where_the_set_breaks_it(X):
    def asked(B, Y, **settings):
        problem = ss.SaddleProblem(
            f=LeastSquares(KERNEL, np.ones(2), ridge=0.1),
            g=Quadratic(np.linspace(0.1, 1.0, len(B))),
            B=0.1 * B,
            X=X,
            Y=Y,
        )
        kept = {"regime": "restarts", "anchors": True, "interior": ("x",), "Psi0": 5.0, "range_conditions": ("x",)}
        return ss.plan(problem, tol=1e-2, **{**kept, **settings})

    with pytest.raises(InputError, match=r"range_conditions has 'x', which needs X \+ ker B = X"):
        asked(KERNEL, FullSpace(2))
    # Without a kernel the condition says nothing, and is not used.
    plan = asked(np.vstack([KERNEL, [1.0, 0.0, 0.0]]), FREE)
    assert not how(plan, "R_x")


def test_a_range_condition_on_the_whole_space_is_listed_with_how_it_is_known():
    def asked(f, **settings):
        problem = ss.SaddleProblem(f=f, g=Quadratic([0.2, 1.0]), B=0.1 * KERNEL, X=FREE, Y=FullSpace(2))
        return ss.plan(problem, tol=1e-2, regime="restarts", anchors=True, Psi0=5.0, **settings)

    assert how(asked(LeastSquares(KERNEL, np.ones(2)), range_conditions=("x",)), "R_x") == {"declared"}
    assert how(asked(Linear(KERNEL.T @ np.ones(2))), "R_x") == {"computed"}
    assert how(asked(Zero()), "X + ker B = X") == {"follows"}


def test_every_plan_lists_its_hypotheses_and_keeps_them():
    noisy = Custom(lambda x: x, lambda x: 0.5 * x @ x, ss.Holder(1.0, 1.0), 1.0,
                   sample=lambda x, rng: x + rng.standard_normal(3), variance=3.0)  # fmt: skip
    bounded = ss.SaddleProblem(f=Quadratic(1.0), g=Quadratic(1.0), B=np.eye(3), X=BOX, Y=BOX)
    mixed = ss.SaddleProblem(f=Quadratic(1.0), g=Zero(), B=np.eye(3), X=FREE, Y=BOX)
    plans = {
        "degenerate": ss.plan(bounded, tol=0.5, regime="degenerate", proved=True),
        "loops": ss.plan(bounded, order="fgB", loops=(2, 2, 2)),
        "restarts": ss.plan(bounded, tol=0.5, regime="restarts", proved=True),
        "mixed": ss.plan(mixed, tol=0.5, regime="mixed", proved=True, interior=("y",)),
        "noisy": ss.plan(dataclasses.replace(bounded, f=noisy), tol=0.5, regime="degenerate", proved=True),
        "noisy restarts": ss.plan(dataclasses.replace(bounded, f=noisy), tol=0.5, regime="restarts", proved=True),
    }
    for name, plan in plans.items():
        listed = " ".join(one.what for one in plan.hypotheses)
        assert all(words in listed for words in ("f is convex", "g is convex", "|B| is at most", "Hölder on")), name
        assert ("variance" in listed and "unbiased" in listed) is name.startswith("noisy")
        assert ("Psi is at most" in listed) is plan.schedule.has_restarts
        assert all(one.line in plan.explain() for one in plan.hypotheses)
        assert type(plan).from_dict(json.loads(json.dumps(plan.to_dict()))) == plan
    for name in ("degenerate", "loops", "mixed", "noisy"):
        assert plans[name].proved
        # One that is open takes the proof away, whatever the numbers say.
        for word in ("unknown", "violated"):
            open_one = (*plans[name].hypotheses, Hypothesis("the moon is full", word))
            spoiled = dataclasses.replace(plans[name], hypotheses=open_one)
            assert not spoiled.proved and f"the moon is full ({word})" in spoiled.explain()
    assert how(plans["noisy"], "f is convex") == {"declared"} and how(plans["loops"], "f is convex") == {"follows"}


def test_an_expected_gap_is_promised_only_if_all_hypotheses_hold():
    blind = Custom(
        smoothness=ss.Holder(1.0, 1.0), sample=lambda x, rng: x + 0.1 * rng.standard_normal(3), variance=0.03
    )
    problem = ss.SaddleProblem(f=blind, g=Quadratic(1.0), B=np.eye(3), X=BOX, Y=BOX)
    plan = ss.plan(problem, tol=5.0, regime="degenerate", proved=True)
    assert ss.run(problem, plan).status is ss.Status.EXPECTED
    spoiled = dataclasses.replace(plan, hypotheses=(*plan.hypotheses, Hypothesis("the moon is full", "unknown")))
    result = ss.run(problem, spoiled)
    assert result.status is ss.Status.NO_CERTIFICATE and result.expected_gap == math.inf


def test_the_sharp_bound_of_noisy_levels_is_the_theorems_with_the_noise_in_it():
    """Theorem VI_sliding_stochastic_uniform at one level, by hand: curvature L + tau, deviation and supremum."""
    L, tau, sigma2, Omega, T = 2.0, 3.0, 0.7, 5.0, 6
    alphas = np.array(alpha_sequence(T))
    exact = 0.5 * (L + tau) * alphas[-1] ** 2 * Omega
    weights, shares = alphas[-1] ** 2 / alphas, alphas[-1] ** 2 / alphas**2
    expected = exact + sigma2 / (2.0 * tau) * shares.sum() + math.sqrt(Omega * sigma2 * np.sum(weights**2))
    levels = place([Term("f", ss.Holder(1.0, L), tau=tau, Omega=Omega, variance=sigma2)], (T,))
    assert sharp_bound(levels) == pytest.approx(expected, rel=1e-13)
    part = ss.Component(lambda z: L * z, ss.Holder(1.0, L), tau=tau, variance=sigma2)
    domain = Ball(math.sqrt(Omega), shape=2)
    assert sharp_bound(component_levels([part], domain, np.zeros(2), (T,))) == pytest.approx(expected, rel=1e-13)
    # Without a tau the theorem proves nothing about noise.
    assert sharp_bound(component_levels([dataclasses.replace(part, tau=0.0)], domain, np.zeros(2), (T,))) == math.inf
