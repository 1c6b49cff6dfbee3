"""The instances: three regimes with five test pairs each, four realistic ones; one for validation beside each kind."""

from __future__ import annotations

import numpy as np
import scipy.sparse

import saddleslide as ss
from benchmarks.tournament.programs.picture import Picture, rows
from saddleslide.gallery.tomography import BETA, HOLDER_COEFFICIENT, NONLOCAL, RIDGE, TV_WEIGHT, nonlocal_laplacian

REGIMES = ("standard", "nonlocal", "holder")
REALISTIC = ("low_dose", "strong_tv", "sparse_view", "poisson")
KINDS = (*REGIMES, *REALISTIC)
# Noise seed and picture; the paper's validation pair and its five test pairs.
VALIDATION, PAIRS = (0, 0), ((1, 0), (2, 1), (3, 2), (4, 0), (5, 1))
# The realistic instances' own seed, and another one for validation.
SEED, VALIDATION_SEED = 1, 0
REALISTIC_WEIGHTS = {"low_dose": 2.5e-4, "strong_tv": 5e-4, "sparse_view": 2e-4, "poisson": 5e-5}
REALISTIC_RIDGE, THRESHOLD = 1e-4, 1e-3


def tests(kind: str) -> list[tuple[int, int]]:
    """Pairs of the test instances of a kind."""
    return list(PAIRS) if kind in REGIMES else [(SEED, 0)]


def validation(kind: str) -> tuple[int, int]:
    return VALIDATION if kind in REGIMES else (VALIDATION_SEED, 0)


def problem_of(kind: str, pair: tuple[int, int], n: int | None = None) -> ss.SaddleProblem:
    """A fresh problem."""
    if kind in REGIMES:
        return ss.gallery.tomography(kind, seed=pair[0], picture=pair[1], n=n or 64)
    return ss.gallery.realistic_tomography(kind, seed=pair[0], n=n)


def differences(n: int) -> scipy.sparse.csr_array:
    """Forward differences across, then down, zero in the last column and row."""
    line = scipy.sparse.diags_array([-np.ones(n), np.ones(n - 1)], offsets=[0, 1], shape=(n, n)).tolil()
    line[n - 1, :] = 0.0
    eye = scipy.sparse.eye_array(n)
    return rows(scipy.sparse.vstack([scipy.sparse.kron(eye, line), scipy.sparse.kron(line, eye)]))


def picture_of(kind: str, problem: ss.SaddleProblem) -> Picture:
    """The same numbers as plain arrays; the ball of the regimes is never active and left out."""
    n, f = problem.X.shape[0], problem.f
    A, D, N = rows(f.A.matrix), differences(n), None
    regime = kind in REGIMES
    weight = TV_WEIGHT if regime else REALISTIC_WEIGHTS[kind]
    if kind in ("nonlocal", "holder"):
        N = rows(NONLOCAL * nonlocal_laplacian(n))
    counts = kind == "poisson"
    return Picture(
        n=n, A=A, AT=rows(A.T), D=D, DT=rows(D.T), data=np.ravel(f.counts if counts else f.b),
        ridge=RIDGE if regime else REALISTIC_RIDGE, weight=weight, beta=BETA if regime else THRESHOLD / weight,
        N=N, N_norm=0.0 if N is None else largest(N), power=HOLDER_COEFFICIENT if kind == "holder" else 0.0,
        intensity=f.intensity if counts else 0.0, attenuation=f.attenuation if counts else 1.0,
    )  # fmt: skip


def largest(N: scipy.sparse.csr_array) -> float:
    """An upper bound on the largest eigenvalue: Gershgorin."""
    return float(np.max(abs(N).sum(axis=1)))


def check(problem: ss.SaddleProblem, picture: Picture) -> float:
    """Largest relative difference between the saddle function and the plain arrays at random points."""
    rng, worst = np.random.default_rng(0), 0.0
    for _ in range(3):
        x = rng.standard_normal(problem.X.shape)
        y = problem.Y.project(picture.weight * rng.standard_normal(problem.Y.shape))
        ours = problem.f.value(x) - problem.g.value(y) + float(np.vdot(y, problem.coupling.forward(x)))
        v, w = x.ravel(), y.ravel()
        theirs = picture.loss(picture.A @ v)[0] + 0.5 * picture.ridge * float(v @ v)
        theirs += float(w @ (picture.D @ v)) - picture.dual_value(w)
        worst = max(worst, abs(ours - theirs) / (1.0 + abs(ours)))
    return worst
