"""Every recipe runs as printed and ends in success; answers are those of an interior-point solver."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from support import need

PAGE = (Path(__file__).parents[2] / "docs" / "recipes.md").read_text(encoding="utf-8")
PREAMBLE, *_ = re.findall(r"^```python\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
RECIPES = dict(re.findall(r"^### ([^\n]*)\n\n```python\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE))


@pytest.fixture(scope="module")
def arrays():
    names: dict[str, object] = {}
    exec(compile(PREAMBLE, "docs/recipes.md", "exec"), names)
    return names


def _tv(cp, x, norm):
    """Total variation of a picture: entrywise (1) or of pairs (2)."""
    rows, columns = x.shape
    across = cp.hstack([x[:, 1:] - x[:, :-1], np.zeros((rows, 1))])
    down = cp.vstack([x[1:, :] - x[:-1, :], np.zeros((1, columns))])
    both = cp.vstack([cp.vec(across, order="C"), cp.vec(down, order="C")])
    return cp.sum(cp.norm(both, norm, axis=0))


def _squares(cp, a, x):
    return 0.5 * cp.sum_squares(a["A"] @ x - a["b"])


def _margins(a):
    return a["labels"][:, None] * a["A"]


def _with(shape, minimum, constraints=lambda cp, a, x: []):
    """A problem in one variable of a shape."""
    return lambda cp, a: (lambda x: cp.Problem(cp.Minimize(minimum(cp, a, x)), constraints(cp, a, x)))(
        cp.Variable(shape)
    )


def _transport(more):
    def marginals(cp, a, x):
        return [x >= 0, cp.sum(x, axis=1) == a["supply"], cp.sum(x, axis=0) == a["demand"]]

    return _with((5, 6), lambda cp, a, x: cp.sum(cp.multiply(a["cost"], x)) + more(cp, x), marginals)


TRUSTED = {
    "lasso": _with(20, lambda cp, a, x: _squares(cp, a, x) + 0.5 * cp.norm1(x)),
    "elastic net": _with(20, lambda cp, a, x: _squares(cp, a, x) + 0.5 * cp.norm1(x) + 0.15 * cp.sum_squares(x)),
    "group lasso": _with(
        20, lambda cp, a, x: _squares(cp, a, x) + 2.0 * sum(cp.norm(x[4 * i : 4 * i + 4]) for i in range(5))
    ),
    "sparse group lasso": _with(
        20,
        lambda cp, a, x: _squares(cp, a, x) + sum(cp.norm(x[4 * i : 4 * i + 4]) for i in range(5)) + 0.3 * cp.norm1(x),
    ),
    "fused lasso": _with(20, lambda cp, a, x: _squares(cp, a, x) + 0.3 * cp.norm1(x) + 0.5 * cp.norm1(x[1:] - x[:-1])),
    "trend filtering": _with(
        40,
        lambda cp, a, x: 0.5 * cp.sum_squares(x - a["b"]) + 0.5 * cp.norm1(x[2:] - 2.0 * x[1:-1] + x[:-2]),
    ),
    "nonnegative least squares": _with(20, _squares, lambda cp, a, x: [x >= 0]),
    "least absolute deviations": _with(20, lambda cp, a, x: cp.norm1(a["A"] @ x - a["b"])),
    "quantile regression": _with(
        20,
        lambda cp, a, x: cp.sum(cp.maximum(0.9 * (a["b"] - a["A"] @ x), -0.1 * (a["b"] - a["A"] @ x))),
    ),
    "square-root lasso": _with(20, lambda cp, a, x: cp.norm(a["A"] @ x - a["b"]) + 0.5 * cp.norm1(x)),
    "Chebyshev approximation": _with(20, lambda cp, a, x: cp.norm_inf(a["A"] @ x - a["b"])),
    "SVM": _with(20, lambda cp, a, x: cp.sum(cp.pos(1.0 - _margins(a) @ x)) + 0.5 * cp.sum_squares(x)),
    "squared hinge": _with(
        20, lambda cp, a, x: 0.5 * cp.sum_squares(cp.pos(1.0 - _margins(a) @ x)) + 0.5 * cp.sum_squares(x)
    ),
    "l1 SVM": _with(20, lambda cp, a, x: cp.sum(cp.pos(1.0 - _margins(a) @ x)) + 0.5 * cp.norm1(x)),
    "Gx <= h": _with(20, _squares, lambda cp, a, x: [a["G"] @ x <= a["h"]]),
    "Cx = d": _with(20, _squares, lambda cp, a, x: [a["G"] @ x == a["h"]]),
    "basis pursuit": _with(20, lambda cp, a, x: cp.norm1(x), lambda cp, a, x: [a["wide"] @ x == a["few"]]),
    "|Ax - b| <= eps": _with(
        20, lambda cp, a, x: cp.norm1(x), lambda cp, a, x: [cp.norm(a["wide"] @ x - a["few"]) <= 0.5]
    ),
    "l1 ball": _with(20, _squares, lambda cp, a, x: [cp.norm1(x) <= 1.0]),
    "total variation, anisotropic": _with(
        (16, 16), lambda cp, a, x: 0.5 * cp.sum_squares(x - a["image"]) + 0.1 * _tv(cp, x, 1)
    ),
    "total variation, isotropic": _with(
        (16, 16), lambda cp, a, x: 0.5 * cp.sum_squares(x - a["image"]) + 0.1 * _tv(cp, x, 2)
    ),
    "TV-L1": _with((16, 16), lambda cp, a, x: cp.sum(cp.abs(x - a["image"])) + 0.8 * _tv(cp, x, 2)),
    "matrix game": _with(7, lambda cp, a, x: cp.max(a["payoffs"] @ x), lambda cp, a, x: [x >= 0, cp.sum(x) == 1]),
    "optimal transport": _transport(lambda cp, x: 0.0),
    "quadratic transport": _transport(lambda cp, x: 0.25 * cp.sum_squares(x)),
    "entropic transport": _transport(lambda cp, x: -0.1 * cp.sum(cp.entr(x))),
}


@pytest.mark.parametrize("name", RECIPES)
def test_recipe(name, arrays):
    here = dict(arrays)
    exec(compile(RECIPES[name], f"docs/recipes.md, {name}", "exec"), here)
    r = here["r"]
    assert r.success, r.message
    assert np.isfinite(r.objective) and np.isfinite(r.gap)
    if name in TRUSTED:
        cp = need("cvxpy")
        trusted = TRUSTED[name](cp, arrays)
        trusted.solve(solver="CLARABEL")
        close = 1e-3 * abs(trusted.value) + 1e-6
        assert abs(r.objective - trusted.value) <= close
        assert r.lower <= trusted.value + 1e-6 * (1.0 + abs(trusted.value))


def test_every_trusted_answer_has_its_recipe():
    assert set(TRUSTED) <= set(RECIPES)
    assert len(RECIPES) >= 40
