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


def _logistic(cp, a, x):
    return cp.sum(cp.logistic(-_margins(a) @ x))


def _portfolio(cp, a, x):
    covariance = np.diag(a["risk"]) + a["factors"].T @ a["factors"]
    return 0.5 * cp.quad_form(x, cp.psd_wrap(covariance)) - a["returns"] @ x


def _matrix(K):
    """All columns of an operator, by forward products alone."""
    return np.array([np.ravel(K @ unit) for unit in np.eye(K.shape[1])]).T


def _fourier(n):
    one = np.fft.fft(np.eye(n), norm="ortho")
    return np.kron(one, one)


def _lengths(cp, x, grid):
    """Sum of the lengths of all differences at the points of a grid; a row of x for each of them."""
    units = np.eye(len(np.zeros(grid).ravel())).reshape(-1, *grid)
    parts = [
        np.diff(units, axis=1 + k, append=np.take(units, [-1], axis=1 + k)).reshape(len(units), -1).T @ x
        for k in range(len(grid))
    ]
    return cp.sum(cp.norm(cp.hstack(parts), 2, axis=1))


def _deblurred(name, nonnegative=False):
    return _with(
        (16, 16),
        lambda cp, a, x: (
            0.5 * cp.sum_squares(_matrix(a[name]) @ cp.vec(x, order="C") - a["image"].ravel()) + 0.01 * _tv(cp, x, 2)
        ),
        lambda cp, a, x: [x >= 0] if nonnegative else [],
    )


def _generalised(cp, a):
    """Symmetric matrices of backward differences of a field, in full."""
    units = np.eye(256).reshape(-1, 16, 16)
    ahead, behind = (
        [np.diff(units, axis=k, **{end: np.take(units, [place], axis=k)}).reshape(256, -1).T for k in (2, 1)]
        for end, place in (("append", -1), ("prepend", 0))
    )
    x, w = cp.Variable(256), [cp.Variable(256), cp.Variable(256)]
    bends = [(behind[i] @ w[j] + behind[j] @ w[i]) / 2 for i in range(2) for j in range(2)]
    first = cp.sum(cp.norm(cp.vstack([ahead[k] @ x - w[k] for k in range(2)]), 2, axis=0))
    second = cp.sum(cp.norm(cp.vstack(bends), 2, axis=0))
    return cp.Problem(cp.Minimize(0.5 * cp.sum_squares(x - a["image"].ravel()) + 0.1 * first + 0.2 * second))


def _robust(cp, a):
    """The dual without slacks; at the answer it is compared with the maximum over the weights themselves."""
    x, t = cp.Variable(20), cp.Variable()
    worst = t + np.sqrt(1.5 / 40) * cp.norm(cp.pos(-a["A"] @ x - t))
    return cp.Problem(cp.Minimize(worst), [x >= 0, cp.sum(x) == 1])


def _mri(cp, a):
    x = cp.Variable((16, 16), complex=True)
    misfit = _fourier(16)[a["seen"].ravel()] @ cp.vec(x, order="C") - a["data"].ravel()
    return cp.Problem(cp.Minimize(0.5 * cp.sum_squares(misfit) + 0.02 * _tv(cp, x, 2)))


TRUSTED = {
    "lasso": _with(20, lambda cp, a, x: _squares(cp, a, x) + 0.5 * cp.norm1(x)),
    "intercept": _with(
        21,
        lambda cp, a, x: 0.5 * cp.sum_squares(a["A"] @ x[:20] + x[20] - a["b"]) + 0.5 * cp.norm1(x[:20]),
    ),
    "elastic net": _with(20, lambda cp, a, x: _squares(cp, a, x) + 0.5 * cp.norm1(x) + 0.15 * cp.sum_squares(x)),
    "group lasso": _with(
        20, lambda cp, a, x: _squares(cp, a, x) + 2.0 * sum(cp.norm(x[4 * i : 4 * i + 4]) for i in range(5))
    ),
    "groups of different sizes": _with(
        20,
        lambda cp, a, x: (
            _squares(cp, a, x)
            + sum(np.sqrt(end - begin) * cp.norm(x[begin:end]) for begin, end in ((0, 2), (2, 10), (10, 20)))
        ),
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
    "quantile regression with an intercept": _with(
        21,
        lambda cp, a, x: cp.sum(
            (lambda above: cp.maximum(0.9 * above, -0.1 * above))(a["b"] - a["A"] @ x[:20] - x[20])
        ),
    ),
    "square-root lasso": _with(20, lambda cp, a, x: cp.norm(a["A"] @ x - a["b"]) + 0.5 * cp.norm1(x)),
    "Chebyshev approximation": _with(20, lambda cp, a, x: cp.norm_inf(a["A"] @ x - a["b"])),
    "SVM": _with(20, lambda cp, a, x: cp.sum(cp.pos(1.0 - _margins(a) @ x)) + 0.5 * cp.sum_squares(x)),
    "SVM with an intercept": _with(
        21,
        lambda cp, a, x: (
            cp.sum(cp.pos(1.0 - _margins(a) @ x[:20] - a["labels"] * x[20])) + 0.5 * cp.sum_squares(x[:20])
        ),
    ),
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
    "ridge": _with(20, lambda cp, a, x: _squares(cp, a, x) + 0.15 * cp.sum_squares(x)),
    "weighted least squares": _with(
        20,
        lambda cp, a, x: (
            0.5 * cp.sum_squares(cp.multiply(np.sqrt(np.linspace(1.0, 2.0, 40)), a["A"] @ x - a["b"]))
            + 0.5 * cp.norm1(x)
        ),
    ),
    "soft constraints, penalised by how far they are broken": _with(
        20, lambda cp, a, x: _squares(cp, a, x) + 0.7 * cp.sum(cp.pos(a["G"] @ x + a["h"]))
    ),
    "Huber regression": _with(20, lambda cp, a, x: cp.sum(cp.huber(a["A"] @ x - a["b"], 0.5))),
    "support vector regression": _with(
        20, lambda cp, a, x: cp.sum(cp.pos(cp.abs(a["A"] @ x - a["b"]) - 0.1)) + 0.5 * cp.sum_squares(x)
    ),
    "2-D fused lasso": _with(
        (5, 4),
        lambda cp, a, x: (
            _squares(cp, a, cp.vec(x, order="C"))
            + 0.3 * cp.sum(cp.abs(x))
            + 0.5 * (cp.sum(cp.abs(x[1:] - x[:-1])) + cp.sum(cp.abs(x[:, 1:] - x[:, :-1])))
        ),
    ),
    "multi-task lasso": _with(
        (20, 3), lambda cp, a, x: 0.5 * cp.sum_squares(a["A"] @ x - a["tasks"]) + 2.0 * cp.sum(cp.norm(x, 2, axis=1))
    ),
    "stop, save, load, go on": _with(20, lambda cp, a, x: _squares(cp, a, x) + 0.5 * cp.norm1(x)),
    "own operator, two functions": _with(
        (16, 16),
        lambda cp, a, x: (
            0.5 * cp.sum_squares(x - 0.5 * np.roll(np.eye(16), 1, axis=0) @ x - a["image"]) + 0.1 * cp.sum(cp.abs(x))
        ),
    ),
    "own proximal step": _with(20, lambda cp, a, x: _squares(cp, a, x) + 0.5 * cp.norm1(x)),
    "PyProximal functional": _with(20, lambda cp, a, x: _squares(cp, a, x) + 0.5 * cp.norm1(x)),
    "sparse logistic regression": _with(20, lambda cp, a, x: _logistic(cp, a, x) + 0.5 * cp.norm1(x)),
    "logistic regression with Ax = b and Gx <= h": _with(
        20,
        lambda cp, a, x: _logistic(cp, a, x) + 0.05 * cp.sum_squares(x),
        lambda cp, a, x: [cp.sum(x) == 1.0, a["G"] @ x <= a["h"]],
    ),
    "fairness": _with(
        20,
        lambda cp, a, x: _logistic(cp, a, x) + 0.05 * cp.sum_squares(x),
        lambda cp, a, x: [cp.abs((a["A"][:15].mean(axis=0) - a["A"][15:].mean(axis=0)) @ x) <= 0.01],
    ),
    "linear program": _with(
        20,
        lambda cp, a, x: a["c"] @ x,
        lambda cp, a, x: [x >= 0, np.abs(a["wide"]) @ x >= np.abs(a["wide"]).sum(axis=1)],
    ),
    "portfolio": _with(20, _portfolio, lambda cp, a, x: [x >= 0, cp.sum(x) == 1]),
    "portfolio, at most 10 % each": _with(20, _portfolio, lambda cp, a, x: [x >= 0, x <= 0.1, cp.sum(x) == 1]),
    "second-order cone": _with(20, _squares, lambda cp, a, x: [cp.norm(x) <= cp.sum(x)]),
    "maximum entropy": _with(
        20, lambda cp, a, x: -cp.sum(cp.entr(x)), lambda cp, a, x: [cp.sum(x) == 1, a["wide"][:2] @ x == a["moments"]]
    ),
    "colour total variation": _with(
        (64, 3), lambda cp, a, x: 0.5 * cp.sum_squares(x - a["colour"].reshape(64, 3)) + 0.1 * _lengths(cp, x, (8, 8))
    ),
    "3-D total variation": _with(
        (216, 1),
        lambda cp, a, x: 0.5 * cp.sum_squares(x - a["volume"].reshape(216, 1)) + 0.1 * _lengths(cp, x, (6,) * 3),
    ),
    "TGV": _generalised,
    "TGV between bounds": _generalised,
    "deblurring": _deblurred("blur"),
    "deblurring with x >= 0": _deblurred("blur", True),
    "PyLops": _deblurred("kernel"),
    "PyLops with x >= 0": _deblurred("kernel", True),
    "inpainting": _with(
        (16, 16),
        lambda cp, a, x: 0.5 * cp.sum_squares(cp.multiply(1.0 * a["seen"], x - a["image"])) + 0.05 * _tv(cp, x, 2),
    ),
    "KL emission tomography": _with(
        20,
        lambda cp, a, x: cp.sum(cp.kl_div(a["counts"], np.abs(a["A"]) @ x)) + 0.5 * cp.norm1(x[1:] - x[:-1]),
        lambda cp, a, x: [x >= 0],
    ),
    "wavelet analysis": _with(
        256,
        lambda cp, a, x: (
            0.5 * cp.sum_squares(_matrix(a["blur"]) @ x - a["image"].ravel()) + 0.05 * cp.norm1(_matrix(a["W"]) @ x)
        ),
    ),
    "wavelet synthesis": _with(
        256,
        lambda cp, a, x: (
            0.5 * cp.sum_squares(_matrix(a["blur"]) @ _matrix(a["W"]).T @ x - a["image"].ravel()) + 0.05 * cp.norm1(x)
        ),
    ),
    "low-rank completion": _with(
        (16, 16),
        lambda cp, a, x: 0.5 * cp.sum_squares(cp.multiply(1.0 * a["seen"], x - a["image"])) + 0.5 * cp.normNuc(x),
    ),
    "robust PCA": _with((16, 16), lambda cp, a, x: cp.normNuc(x) + 0.3 * cp.sum(cp.abs(x - a["image"]))),
    "robust PCA with noise": _with(
        (32, 16),
        lambda cp, a, x: cp.normNuc(x[:16]) + 0.3 * cp.sum(cp.abs(x[16:])),
        lambda cp, a, x: [cp.norm(x[:16] + x[16:] - a["image"], "fro") <= 1.0],
    ),
    "nearest covariance": lambda cp, a: (
        lambda x: cp.Problem(cp.Minimize(0.5 * cp.sum_squares(x - a["symmetric"])), [x >> 0])
    )(cp.Variable((20, 20), symmetric=True)),
    "entropy game": _with(
        7,
        lambda cp, a, x: 0.2 * cp.log_sum_exp(5.0 * a["payoffs"] @ x) - 0.1 * cp.sum(cp.entr(x)),
        lambda cp, a, x: [cp.sum(x) == 1],
    ),
    "max-min": _with(20, lambda cp, a, x: -cp.min(np.abs(a["G"]) @ x), lambda cp, a, x: [x >= 0, cp.sum(x) == 1]),
    "Wasserstein barycentre": _with(
        (10, 5),
        lambda cp, a, x: cp.sum(cp.multiply(np.vstack([a["line"]] * 2), x)),
        lambda cp, a, x: [
            x >= 0,
            cp.sum(x, axis=1) == np.r_[a["first"], a["second"]],
            cp.sum(x[:5], axis=0) == cp.sum(x[5:], axis=0),
        ],
    ),
    "CVaR": _with(
        20,
        lambda cp, a, x: cp.sum_largest(-a["A"] @ x, 4) / 4,
        lambda cp, a, x: [x >= 0, cp.sum(x) == 1],
    ),
    "chi-square DRO": _robust,
    "MRI": _mri,
    "MRI with PyLops": _mri,
    "entropic transport": _transport(lambda cp, x: -0.1 * cp.sum(cp.entr(x))),
}


@pytest.mark.parametrize("name", RECIPES)
def test_recipe(name, arrays, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    here = dict(arrays)
    for module in re.findall(r"^import (\w+)", RECIPES[name], re.MULTILINE) + ["pywt"] * ("Wavelet" in RECIPES[name]):
        need(module)
    exec(compile(RECIPES[name], f"docs/recipes.md, {name}", "exec"), here)
    r = here["r"]
    assert r.success, r.message
    assert len([line for line in RECIPES[name].splitlines() if line.strip()]) <= 6
    if name == "Kuhn poker":
        assert r.lower <= -1 / 18 <= r.upper and r.upper - r.lower <= 1e-4
        return
    assert np.isfinite(r.objective) and r.gap <= r.target
    assert name not in ("TGV between bounds", "CVaR") or r.status.name == "SOLVED"
    if name in TRUSTED:
        cp = need("cvxpy")
        trusted = TRUSTED[name](cp, here)
        trusted.solve(solver="CLARABEL")
        close = 1.01e-4 * abs(trusted.value) + 1e-6
        assert abs(r.objective - trusted.value) <= close
        assert r.lower <= trusted.value + 1e-6 * (1.0 + abs(trusted.value))


def test_the_worst_mean_is_a_maximum_over_weights(arrays):
    cp = need("cvxpy")
    here = dict(arrays)
    exec(compile(RECIPES["chi-square DRO"], "docs/recipes.md", "exec"), here)
    q = cp.Variable(40)
    losses = -here["A"] @ (here["x"] @ here["r"].x)
    worst = cp.Problem(cp.Maximize(losses @ q), [q >= 0, cp.sum(q) == 1, cp.sum_squares(40 * q - 1) <= 40 * 0.5])
    assert worst.solve(solver="CLARABEL") == pytest.approx(here["r"].objective, rel=1e-4)


@pytest.mark.parametrize("name", ["matrix game", "entropy game"])
def test_the_other_player_can_not_do_better(name, arrays):
    here = dict(arrays)
    exec(compile(RECIPES[name], "docs/recipes.md", "exec"), here)
    r, lost = here["r"], 0.2 if name == "entropy game" else 0.0
    y = r.duals[0] / (lost or 1.0)
    assert y.min() >= 0.0 and y.sum() == pytest.approx(1.0)
    against = here["payoffs"].T @ y  # what x meets: min over x of <against, x> + 0.1 sum x log x
    worth = -0.1 * np.log(np.exp(-10.0 * against).sum()) if lost else against.min()
    assert worth - lost * np.sum(y[y > 0.0] * np.log(y[y > 0.0])) == pytest.approx(r.objective, rel=1e-3)


def test_samples_are_those_of_numpy(arrays):
    here = dict(arrays)
    exec(compile(RECIPES["MRI"], "docs/recipes.md", "exec"), here)
    image, seen = here["image"], here["seen"]
    assert np.allclose(here["data"], np.fft.fft2(image + 0.2j * image.T, norm="ortho")[seen])
    assert np.allclose(here["data"], np.fft.fft2(image + 0.2j * image.T)[seen] / np.sqrt(16 * 16))
    real = here["O"].Fourier((16, 16), mask=seen, dtype=float)
    tv = 0.02 * here["F"].L21(axis=0) @ here["O"].FiniteDifferences((16, 16))
    r = here["ss"].minimize(here["F"].LeastSquares(real, np.fft.fft2(image, norm="ortho")[seen]) + tv)
    assert r.success and r.x.dtype == float and r.x.shape == image.shape


def test_every_trusted_answer_has_its_recipe():
    assert set(TRUSTED) <= set(RECIPES)
    assert len(RECIPES) >= 55
