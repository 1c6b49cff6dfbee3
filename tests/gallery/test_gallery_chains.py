"""Chains that resist: what their gradients show, that their conditions hold, that no method is below the bounds."""

from __future__ import annotations

import json
import math
from pathlib import Path

import numpy as np
import pytest

import saddleslide as ss
from saddleslide.errors import InputError
from saddleslide.facts.facts import Facts
from saddleslide.gallery.chains import Chain
from saddleslide.oracles.oracles import Oracles
from saddleslide.theory.bounds import budget
from saddleslide.theory.levels import levelwise_terms

NUS = [0.0, 0.25, 0.5, 0.75, 1.0]
ROOT = Path(ss.__file__).parents[2]


def in_ball(rng, k):
    v = rng.standard_normal(k)
    return v * rng.uniform() ** (1.0 / k) / np.linalg.norm(v)


@pytest.mark.parametrize("nu", NUS)
def test_a_gradient_shows_one_link_more_than_the_point_has(nu):
    rng, chain = np.random.default_rng(0), Chain(nu, 9)
    for m in range(9):
        for _ in range(20):
            x, hidden = np.zeros(9), Chain(nu, 9)
            x[:m] = in_ball(rng, m) * 10.0 ** rng.uniform(-3.0, 0.0) if m else 0.0
            value, gradient = chain.value_and_gradient(x)
            assert not gradient[m + 1 :].any()
            # Nor does the value know more: later links could be anywhere.
            hidden.offsets = np.where(np.arange(9) > m, 1.7, 1.0) * hidden.offsets
            assert hidden.value(x) == value


@pytest.mark.parametrize("nu", NUS)
def test_it_is_the_least_over_u_with_that_gradient_and_its_holder_condition(nu):
    rng, chain, k = np.random.default_rng(1), Chain(nu, 5), 5
    H, largest = chain.smoothness(ss.domains.Ball(1.0, shape=k)).H, 0.0
    for _ in range(300):
        x = in_ball(rng, k)
        value, gradient = chain.value_and_gradient(x)
        assert gradient.sum() == pytest.approx(chain.weight)
        if nu > 0.0:
            u = x - rng.standard_normal(k) * chain.delta
            least = np.max(u - chain.offsets) + chain.delta ** (-nu) / (1.0 + nu) * np.linalg.norm(x - u) ** (1.0 + nu)
            assert value <= chain.weight * least
            way = rng.standard_normal(k) * 1e-6 * chain.delta
            assert chain.value(x + way) - value == pytest.approx(float(gradient @ way), abs=1e-4 * np.linalg.norm(way))
        z = x + in_ball(rng, k) * chain.delta * 10.0 ** rng.uniform(-2.0, 2.0) if nu > 0.0 else in_ball(rng, k)
        assert chain.value(z) >= value + gradient @ (z - x) - 1e-12
        ratio = np.linalg.norm(chain.gradient(z) - gradient) / np.linalg.norm(z - x) ** nu
        assert ratio <= H * (1.0 + 1e-9)
        largest = max(largest, ratio)
    # No condition with a third of the constant.
    assert largest > H / 3.0


@pytest.mark.parametrize("nu", NUS)
@pytest.mark.parametrize("k", [1, 2, 7])
def test_its_minimum_is_known_and_points_without_the_last_link_are_far_above(nu, k):
    rng, chain = np.random.default_rng(2), Chain(nu, k)
    values = [chain.value(in_ball(rng, k)) for _ in range(50)]
    assert min(values) >= chain.least
    # Projected gradients come near; the minimum of the dual is below and near.
    x, best = np.zeros(k), math.inf
    for t in range(600):
        value, gradient = chain.value_and_gradient(x)
        best = min(best, value)
        x = x - gradient / np.linalg.norm(gradient) * 0.5 / math.sqrt(t + 1.0)
        x /= max(1.0, np.linalg.norm(x))
    assert chain.least - 1e-12 <= best <= chain.least + 0.1 * abs(chain.least)
    for _ in range(50):
        x = np.zeros(k)
        x[: k - 1] = in_ball(rng, k - 1) if k > 1 else 0.0
        assert chain.value(x) - chain.least > 1.0
    # Of those the best: all the weight on the links before the last.
    x[: k - 1] = -1.0 / math.sqrt(max(k - 1, 1))
    assert chain.value(x) - chain.least > 1.0


@pytest.mark.parametrize("k", [1, 2, 3, 8, 15])
def test_the_chain_of_products_is_seen_link_by_link_and_far_from_its_end_before(k):
    problem = ss.gallery.hard_chains(calls=(1, 1, k))
    B, b = np.asarray(problem.coupling.dense())[1:, 1:], problem.g.components[1].gradient(np.zeros(problem.Y.shape))[1:]
    assert np.linalg.norm(B, 2) <= problem.coupling.norm.upper
    p, q, products = np.zeros(b.size), b != 0.0, 0
    while not p[-1]:
        p, products = np.abs(B.T) @ q > 0.0, products + 1
        if not p[-1]:
            q, products = q | (np.abs(B) @ p > 0.0), products + 1
    assert products >= k
    # The best p without its last entry, also outside of the ball.
    nearest = B[:, :-1] @ np.linalg.lstsq(B[:, :-1], b, rcond=None)[0] if b.size > 1 else np.zeros(1)
    assert np.linalg.norm(nearest - b) > 1.0
    end = np.full(b.size, 1.0 / math.sqrt(b.size))
    assert B @ end == pytest.approx(b)


def first_calls(problem, name, tol=1.0, most=800):
    """Calls of a method when the gap is at most tol, by the closed form."""
    method, oracles, facts = ss.methods.by_name[name](), Oracles(problem), Facts(problem)
    if method.lacks(facts):
        return None
    state = method.init(oracles, facts, problem.start(), tol)
    for _ in range(most):
        if ss.gallery.chain_gap(problem, *method.point(state, oracles)) <= tol:
            return oracles.calls
        state = method.step(state, oracles)
    return None


@pytest.mark.parametrize("nus", [(1.0, 1.0), (0.0, 0.75)])
def test_no_method_needs_fewer_calls_of_any_oracle(nus):
    least, ran = (4, 3, 6), 0
    problem = ss.gallery.hard_chains(*nus, calls=least)
    for name in ss.methods.by_name:
        calls = first_calls(problem, name)
        if calls is not None:
            ran += 1
            assert calls.f >= 4, name
            assert calls.g >= 3, name
            assert calls.B >= 6, name
    assert ran >= (4 if 0.0 in nus else 6)


def test_the_gap_in_closed_form_is_that_of_a_certificate():
    rng, problem = np.random.default_rng(4), ss.gallery.hard_chains(1.0, 0.75, calls=(3, 2, 4))
    for _ in range(3):
        x, y = (S.project(rng.standard_normal(S.shape)) for S in (problem.X, problem.Y))
        found = ss.certify(problem, x, y, max_gradients=1000)
        assert ss.gallery.chain_gap(problem, x, y) == pytest.approx(found.gap, rel=2e-2)
    solution = problem.read(ss.solve(problem, 1.0, method="recursive-sliding"))
    assert solution.gap <= solution.result.gap
    assert min(solution.ratios.values()) >= 1.0
    assert set(solution.facts()) == {"gap", *(f"calls of {name} over the bound" for name in "fgB")}


@pytest.mark.parametrize("nu", NUS)
def test_the_budgets_of_the_corollary_are_the_bounds_up_to_the_factor_of_the_page(nu):
    for k in (4, 40, 400):
        chain = Chain(nu, k)
        term = levelwise_terms(chain.smoothness(None), ss.Holder(1.0, 1.0), 1.0, 1.0, 1.0)[0]
        assert k <= budget(term, 1.0) <= 16.0 ** (1.0 / (1.0 + 3.0 * nu)) * 1.0001 * k


def test_the_page_quotes_the_distances_that_were_measured():
    page = (ROOT / "docs" / "open.md").read_text(encoding="utf-8")
    stored = json.loads((ROOT / "benchmarks" / "results" / "hard_chains.json").read_text(encoding="utf-8"))
    assert all(min(cell) >= 1.0 for row in stored["rows"] for cell in row["ratios"].values() if cell)
    for row in stored["rows"]:
        for name, cell in row["ratios"].items():
            if cell and name == "parameter-free-sliding":
                assert " / ".join(f"{number:.3g}" for number in cell) in page


def test_what_makes_no_sense_is_refused():
    for given, said in (((1, 2), "three numbers"), ((0, 1, 2), "calls of f")):
        with pytest.raises(InputError, match=said):
            ss.gallery.hard_chains(calls=given)
    with pytest.raises(InputError, match="nu is 2"):
        Chain(2.0, 3)
