"""Functions from callables and from JAX: the same numbers, the same calls as the catalogue's own."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import saddleslide as ss
from saddleslide.errors import InputError, MissingExtraError, UnknownConstantError

rng = np.random.default_rng(0)
A, b, B = rng.standard_normal((12, 5)), rng.standard_normal(12), rng.standard_normal((3, 5))


def problem(f):
    return ss.SaddleProblem(
        f=f, g=ss.functions.Quadratic(1.0), B=B, X=ss.domains.Box(-1.0, 1.0, shape=5), Y=ss.domains.FullSpace(3)
    )


def by_hand(x):
    r = A @ x - b
    return 0.5 * r @ r + 0.05 * x @ x, A.T @ r + 0.1 * x


def test_one_callable_is_the_pair_of_custom_step_by_step():
    joint = ss.functions.from_callable(by_hand, strong_convexity=0.1)
    apart = ss.functions.Custom(lambda x: by_hand(x)[1], value=lambda x: by_hand(x)[0], strong_convexity=0.1)
    first, second = (ss.solve(problem(f), tol=1e-8, method="adaptive") for f in (joint, apart))
    assert first.status is ss.Status.SOLVED
    assert (first.x == second.x).all() and first.calls == second.calls


def test_calls_are_counted_as_they_are_made():
    made = []

    def counted(x):
        made.append(1)
        return by_hand(x)

    f = ss.functions.from_callable(counted, smoothness=ss.Holder(1.0, 100.0))
    f.value_and_gradient(np.ones(5)), f.gradient(np.ones(5)), f.value(np.ones(5))
    assert len(made) == 3


def test_unknown_constants_are_said_to_be_unknown():
    f = ss.functions.from_callable(by_hand)
    with pytest.raises(UnknownConstantError, match="was not declared"):
        f.smoothness(ss.domains.FullSpace(5))
    assert (
        ss.functions.from_callable(by_hand, smoothness=ss.Holder(1.0, 9.0)).smoothness(ss.domains.FullSpace(5)).H == 9.0
    )
    assert any("smoothness of f was not declared" in why for why in ss.adaptive_plan(problem(f), tol=1e-3).reasons)


@pytest.mark.parametrize(
    ("evaluate", "words"),
    [
        (lambda x: x, "expected \\(value, gradient\\)"),
        (lambda x: (1.0, x[:2]), "expected real numbers of shape"),
        (lambda x: (1.0, 1j * x), "expected real numbers"),
    ],
)
def test_wrong_answers_are_refused(evaluate, words):
    with pytest.raises(InputError, match=words):
        ss.functions.from_callable(evaluate).value_and_gradient(np.ones(5))


def test_what_is_no_function_is_refused():
    with pytest.raises(InputError, match="expected a function of x"):
        ss.functions.from_callable(3)
    with pytest.raises(InputError, match="expected Holder"):
        ss.functions.from_callable(by_hand, smoothness=3.0)


def test_jax_differentiates_to_rounding_and_leaves_its_precision_alone():
    jax = pytest.importorskip("jax")

    def loss(x):
        r = A @ x - b
        return 0.5 * (r @ r) + 0.05 * (x @ x)

    f = ss.functions.from_jax(loss, strong_convexity=0.1)
    for seed in range(5):
        x = np.random.default_rng(seed).standard_normal(5)
        value, gradient = f.value_and_gradient(x)
        expected = by_hand(x)
        assert value == pytest.approx(expected[0], rel=1e-14) and gradient == pytest.approx(expected[1], rel=1e-13)
    assert jax.numpy.ones(2).dtype == np.float32
    twin = ss.functions.from_callable(by_hand, strong_convexity=0.1)
    # Rounding differs in the last digit, so only the first steps must cost the same to the call.
    first, second = (ss.solve(problem(h), tol=1e-8, method="adaptive", max_steps=5) for h in (f, twin))
    assert first.calls == second.calls and first.x == pytest.approx(second.x, abs=1e-12)
    assert ss.solve(problem(f), tol=1e-8, method="adaptive").status is ss.Status.SOLVED


def test_without_jax_the_message_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "jax", None)
    with pytest.raises(MissingExtraError, match=r"saddleslide\[jax\]"):
        ss.functions.from_jax(lambda x: x.sum())
