"""Functions from callables, PyTorch and JAX: the same numbers, the same calls as the catalogue's own."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import saddleslide as ss
from saddleslide.errors import InputError, MissingExtraError, UnknownConstantError
from support import gathered, need

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
    first, second = (ss.solve(problem(f), tol=1e-4, method="adaptive") for f in (joint, apart))
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
    plan = ss.plan(problem(f), tol=1e-3, method="adaptive")
    assert any("smoothness of f was not declared" in why for why in plan.reasons)


@gathered(
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
    jax = need("jax")

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
    assert ss.solve(problem(f), tol=1e-4, method="adaptive").status is ss.Status.SOLVED


def huber_fit(module, A, b):
    """One function in the words that both libraries share: a Huber loss, a logistic loss and a ridge."""

    def loss(x):
        r = A @ x - b
        size = module.abs(r)
        huber = module.where(size <= 0.5, r * r, size - 0.25)
        return huber.sum() + module.log(1.0 + module.exp(-r)).sum() + 0.05 * (x @ x)

    return loss


def both():
    torch, jax = need("torch"), need("jax")
    with jax.enable_x64(True):
        data = jax.numpy.asarray(A), jax.numpy.asarray(b)
    tensors = torch.tensor(A), torch.tensor(b)
    return (
        ss.functions.from_torch(huber_fit(torch, *tensors), strong_convexity=0.1),
        ss.functions.from_jax(huber_fit(jax.numpy, *data), strong_convexity=0.1),
    )


def test_torch_and_jax_forms_of_one_function_agree_to_rounding_and_count_the_same():
    by_torch, by_jax = both()
    for seed in range(5):
        x = np.random.default_rng(seed).standard_normal(5)
        first, second = by_torch.value_and_gradient(x), by_jax.value_and_gradient(x)
        assert first[0] == pytest.approx(second[0], rel=1e-14)
        assert first[1] == pytest.approx(second[1], rel=1e-13, abs=1e-14)
        h = 1e-6 * np.eye(5)[seed]
        slope = (by_torch.value(x + h) - by_torch.value(x - h)) / 2e-6
        assert first[1][seed] == pytest.approx(slope, rel=1e-7)
    first, second = (ss.solve(problem(f), tol=1e-8, method="adaptive", max_steps=5) for f in (by_torch, by_jax))
    assert first.calls == second.calls and first.x == pytest.approx(second.x, abs=1e-12)
    solved = [ss.solve(problem(f), tol=1e-6, method="adaptive", max_steps=100) for f in (by_torch, by_jax)]
    assert all(one.success and isinstance(one.x, np.ndarray) for one in solved)


def test_torch_code_is_evaluated_as_often_as_code_with_a_gradient_by_hand():
    need("torch")
    made = {"torch": 0, "hand": 0}

    def by_torch(x):
        made["torch"] += 1
        return 0.5 * (x * x).sum()

    def with_gradient(x):
        made["hand"] += 1
        return 0.5 * float(x @ x), x

    known = {"smoothness": ss.Holder(1.0, 1.0), "strong_convexity": 1.0}
    functions = ss.functions.from_torch(by_torch, **known), ss.functions.from_callable(with_gradient, **known)
    results = [ss.run(problem(f), ss.plan(problem(f), order="fgB", loops=(4, 2, 3))) for f in functions]
    assert [result.method_calls.f for result in results] == [4, 4]
    # The calls of the plan, and those of the certificate beside them.
    assert made["torch"] == made["hand"] >= 4
    steps = [ss.solve(problem(f), tol=1e-6, method="adaptive") for f in functions]
    assert steps[0].calls == steps[1].calls and made["torch"] == made["hand"]


@pytest.mark.parametrize("library", ["torch", "jax"])
def test_values_alone_are_calls_and_are_not_differentiated(library):
    module, seen = need(library), {"gradient": 0, "value": 0}

    def by_torch(x):
        seen["gradient" if x.requires_grad else "value"] += 1
        return 0.5 * (x * x).sum() + ((x - 2.0) ** 4).sum()

    def by_jax(x):
        # Traced once to be differentiated and once for values; each evaluation of what was compiled reports.
        what = "gradient" if "JVP" in type(x).__name__ or "Linearize" in type(x).__name__ else "value"
        module.debug.callback(lambda: seen.__setitem__(what, seen[what] + 1))
        return 0.5 * (x * x).sum() + ((x - 2.0) ** 4).sum()

    made = getattr(ss.functions, f"from_{library}")(by_torch if library == "torch" else by_jax, strong_convexity=1.0)
    X, Y = ss.domains.FullSpace(5), ss.domains.Box(-1.0, 1.0, shape=3)
    result = ss.solve(ss.SaddleProblem(f=made, g=ss.functions.Zero(), B=B, X=X, Y=Y), tol=1e-6, method="adaptive")
    # On the full space the bounds rest on the modulus that was declared.
    assert result.status is ss.Status.MET_AS_DECLARED
    if library == "jax":
        module.effects_barrier()
    assert seen["value"] > 0 and seen["gradient"] > 0
    assert result.calls.f == seen["gradient"] + seen["value"]
    x = np.arange(5.0)
    assert made.value(x) == pytest.approx(made.value_and_gradient(x)[0], rel=1e-15)


@pytest.mark.parametrize("which", [0, 1])
def test_constants_that_are_not_declared_are_estimated_and_marked(which):
    f = both()[which]
    with pytest.raises(UnknownConstantError, match="was not declared"):
        f.smoothness(ss.domains.FullSpace(5))
    assert "estimate" in ss.plan(problem(f), order="fgB", loops=(4, 2, 3)).explain()
    plan = ss.plan(problem(f), tol=1e-3, method="adaptive")
    assert any("smoothness of f was not declared" in why for why in plan.reasons)


def test_wrong_torch_code_is_refused():
    torch = need("torch")
    for function, words in (
        (lambda x: x, r"torch.float64 of shape \(5,\); expected one number"),
        (lambda x: x.float().sum(), "torch.float32 of shape"),
        (lambda x: 3.0, "expected one number, a float64 tensor"),
        (lambda x: (x * x).sum().detach(), "does not depend on x"),
    ):
        with pytest.raises(InputError, match=words):
            ss.functions.from_torch(function).value_and_gradient(np.ones(5))
    with torch.no_grad():
        assert ss.functions.from_torch(lambda x: (x * x).sum()).gradient(np.ones(2)).tolist() == [2.0, 2.0]


@pytest.mark.parametrize("library", ["jax", "torch"])
def test_without_the_library_the_message_names_the_extra(library, monkeypatch):
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(MissingExtraError, match=rf"saddleslide\[{library}\]"):
        getattr(ss.functions, f"from_{library}")(lambda x: x.sum())
