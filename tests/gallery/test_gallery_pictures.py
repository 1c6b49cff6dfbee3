"""Restored pictures: plain TV against Clarabel, Huber-TV against L-BFGS; files in and out."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.ndimage
import scipy.optimize
import scipy.sparse as sp

import saddleslide as ss
from saddleslide.errors import InputError
from support import gathered
from trusted import quadratic_program

SIZES = [(4, 4), (6, 9), (9, 6), (1, 12), (8, 8)]
KERNEL = np.array([[0.0, 0.1, 0.05], [0.1, 0.4, 0.2], [0.0, 0.1, 0.05]])
KINDS = ["denoise", "inpaint", "deblur"]


def differences(shape):
    """Both differences of a raveled picture, without the zero rows."""
    parts = [sp.diags_array([-np.ones(n), np.ones(n - 1)], offsets=[0, 1], shape=(n, n)).tocsr()[:-1] for n in shape]
    rows, columns = shape
    return sp.vstack([sp.kron(sp.eye_array(rows), parts[1]), sp.kron(parts[0], sp.eye_array(columns))]).tocsr()


def convolution(shape):
    """The blur column by column, by SciPy's own convolution."""
    units = np.eye(int(np.prod(shape))).reshape(-1, *shape)
    return np.array([scipy.ndimage.convolve(unit, KERNEL, mode="reflect").ravel() for unit in units]).T


def instance(kind, seed, shape, weight, huber):
    """Problem, Hessian and data of its misfit 1/2 |M x - d|^2 + ridge/2 |x|^2, and the ridge."""
    rng = np.random.default_rng(seed)
    picture = np.round(rng.random(shape)) + 0.2 * rng.standard_normal(shape)
    if kind == "denoise":
        return ss.gallery.denoise(picture, weight, huber=huber), np.eye(picture.size), picture.ravel(), 0.0
    if kind == "inpaint":
        known = rng.random(shape) < 0.6
        known.flat[0] = True
        problem = ss.gallery.inpaint(np.where(known, picture, np.nan), known, weight, huber=huber)
        return problem, np.diag(1.0 * known.ravel()), np.where(known, picture, 0.0).ravel(), 0.0
    return (
        ss.gallery.deblur(picture, KERNEL, weight, huber=huber, ridge=1e-2),
        convolution(shape),
        picture.ravel(),
        1e-2,
    )


@pytest.mark.parametrize("kind", KINDS)
@gathered(("seed", "shape"), list(enumerate(SIZES)))
def test_plain_total_variation_is_the_quadratic_program_of_clarabel(kind, seed, shape):
    problem, M, d, ridge = instance(kind, seed, shape, 0.15, 0.0)
    result = ss.solve(problem, tol=1e-7, max_steps=20_000)
    solution = problem.read(result)
    D = differences(shape)
    n, k = d.size, D.shape[0]
    Q = sp.block_diag([M.T @ M + ridge * np.eye(n), sp.csr_array((k, k))])
    A = sp.block_array([[D, -sp.eye_array(k)], [-D, -sp.eye_array(k)]])
    minimum, point, _ = quadratic_program(Q, np.r_[-M.T @ d, np.full(k, 0.15)], None, None, A, np.zeros(2 * k))
    minimum += 0.5 * d @ d
    assert result.status is ss.Status.SOLVED
    assert solution.lower - 1e-9 <= minimum <= solution.objective + 1e-9
    assert solution.objective - solution.lower <= 1e-7 + 1e-12
    if kind != "inpaint":
        assert solution.image.ravel() == pytest.approx(point[:n], abs=1e-2 if ridge else 1e-3)


@pytest.mark.parametrize("kind", KINDS)
@gathered(("seed", "shape"), list(enumerate(SIZES)))
def test_huber_variation_is_the_minimum_of_lbfgs(kind, seed, shape):
    weight, threshold = 0.1, 0.2
    problem, M, d, ridge = instance(kind, 10 + seed, shape, weight, threshold)
    solution = problem.read(ss.solve(problem, tol=1e-7, max_steps=20_000))
    D = differences(shape)

    def smooth(x):
        r, t = M @ x - d, D @ x
        size, inside = np.abs(t), np.clip(t, -threshold, threshold)
        penalty = np.where(size <= threshold, t * t / (2 * threshold), size - threshold / 2)
        value = 0.5 * r @ r + 0.5 * ridge * x @ x + weight * penalty.sum()
        return value, M.T @ r + ridge * x + weight * (D.T @ inside) / threshold

    best = scipy.optimize.minimize(
        smooth, d, jac=True, method="L-BFGS-B", options={"ftol": 1e-15, "gtol": 1e-9, "maxiter": 5000}
    )
    assert solution.lower - 1e-9 <= best.fun
    assert smooth(solution.image.ravel())[0] == pytest.approx(solution.objective, abs=1e-12)
    assert solution.objective <= best.fun + 1e-7


@gathered("shape", [(5, 7), (3, 3), (8, 4)])
def test_blur_is_scipys_convolution_and_its_norm_a_bound(shape):
    A = ss.gallery.blur(KERNEL, shape)
    matrix = convolution(shape)
    picture = np.random.default_rng(0).random(shape)
    assert A.forward(picture).ravel() == pytest.approx(matrix @ picture.ravel())
    assert A.adjoint(picture).ravel() == pytest.approx(matrix.T @ picture.ravel())
    assert np.linalg.norm(matrix, 2) <= A.norm.upper


def test_a_picture_file_goes_in_and_comes_out(tmp_path):
    from matplotlib.image import imsave

    colours = np.zeros((6, 5, 3))
    colours[:, 2:, 1] = 1.0
    imsave(tmp_path / "in.png", colours)
    grey = ss.gallery.read_picture(tmp_path / "in.png")
    assert grey.shape == (6, 5) and grey[0, 4] == pytest.approx(0.7152) and grey[0, 0] == 0.0
    problem = ss.gallery.denoise(grey, weight=0.01)
    solution = problem.read(ss.solve(problem, tol=1e-8))
    solution.save(tmp_path / "out.png")
    assert ss.gallery.read_picture(tmp_path / "out.png") == pytest.approx(solution.image, abs=1 / 255)


def test_a_file_that_is_no_picture_is_refused(tmp_path):
    (tmp_path / "text.png").write_text("no picture")
    with pytest.raises(InputError, match="can not be read"):
        ss.gallery.read_picture(tmp_path / "text.png")


@gathered(
    ("make", "words"),
    [
        (lambda: ss.gallery.denoise(np.zeros(4), 0.1), "shape"),
        (lambda: ss.gallery.denoise(np.zeros((4, 4, 3, 3)), 0.1, colour=False), "grey values"),
        (lambda: ss.gallery.denoise(np.zeros((4, 4)), 0.0), "weight is 0"),
        (lambda: ss.gallery.denoise(np.zeros((4, 4)), 0.1, huber=-1.0), "huber is -1"),
        (lambda: ss.gallery.denoise(np.full((4, 4), np.nan), 0.1), "NaN"),
        (lambda: ss.gallery.deblur(np.zeros((4, 4)), np.ones((2, 2)), 0.1), "odd sides"),
        (lambda: ss.gallery.deblur(np.zeros((4, 4)), np.ones((1, 1)), 0.1, ridge=0.0), "ridge is 0"),
        (lambda: ss.gallery.inpaint(np.zeros((4, 4)), np.ones((4, 4)), 0.1), "expected booleans"),
        (lambda: ss.gallery.inpaint(np.zeros((4, 4)), np.zeros((4, 4), bool), 0.1), "0 known pixels"),
    ],
)
def test_wrong_pictures_are_refused(make, words):
    with pytest.raises(InputError, match=words):
        make()
