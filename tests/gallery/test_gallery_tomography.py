"""Tomography: projectors against closed forms, pictures against L-BFGS, weights, own data, files, refusals."""

from __future__ import annotations

import json

import numpy as np
import pytest
import scipy.optimize

import saddleslide as ss
from saddleslide.cli import main as cli
from saddleslide.errors import InputError
from saddleslide.gallery.tomography import estimate_noise
from support import gathered

ANGLES = np.linspace(0.0, np.pi, 15, endpoint=False)
# Name of a realistic instance and pixels, or None for the user's own data of an odd shape.
INSTANCES = [("low_dose", 12), ("strong_tv", 9), ("sparse_view", 16), ("poisson", 12), (None, (9, 14)), (None, (13, 8))]


def differences(shape):
    """Both differences of a raveled picture as a dense matrix."""
    index = np.arange(np.prod(shape)).reshape(shape)
    pairs = np.concatenate(
        [
            np.stack([index[:, :-1].ravel(), index[:, 1:].ravel()]),
            np.stack([index[:-1].ravel(), index[1:].ravel()]),
        ],
        axis=1,
    )
    matrix = np.zeros((pairs.shape[1], index.size))
    matrix[np.arange(pairs.shape[1]), pairs[0]], matrix[np.arange(pairs.shape[1]), pairs[1]] = -1.0, 1.0
    return matrix


def instance(name, shape, seed):
    if name is not None:
        return ss.gallery.realistic_tomography(name, seed=seed, n=shape)
    rng = np.random.default_rng(seed)
    truth = np.round(rng.random(shape))
    sinogram = ss.gallery.parallel_beam(shape, ANGLES, bins=17).project(truth)
    noisy = sinogram + 0.1 * rng.standard_normal(sinogram.shape)
    return ss.gallery.reconstruct(noisy, ANGLES, 3e-3, shape=shape, huber=0.05, truth=truth)


@pytest.mark.parametrize(("seed", "name", "shape"), [(k, *one) for k, one in enumerate(INSTANCES)])
def test_picture_is_the_minimum_of_lbfgs(seed, name, shape):
    problem = instance(name, shape, seed)
    result = ss.solve(problem, reduction=1e-7)
    solution = problem.read(result)
    assert result.status is ss.Status.SOLVED
    A, D = problem.f.A.matrix.toarray(), differences(problem.X.shape)
    weight, threshold, ridge = solution.weight, solution.huber, problem.f.ridge

    def misfit(q):
        if name != "poisson":
            return 0.5 * np.sum((q - problem.f.b) ** 2), q - problem.f.b
        k, intensity, counts = problem.f.attenuation, 1000.0, solution.sinogram.ravel()
        expected = intensity * np.exp(-k * q)
        return np.sum(expected + counts * k * q) / (intensity * k**2), (counts - expected) / (intensity * k)

    def objective(x):
        value, slope = misfit(A @ x)
        t = D @ x
        size = np.abs(t)
        penalty = np.where(size <= threshold, t * t / (2.0 * threshold), size - threshold / 2.0)
        gradient = A.T @ slope + ridge * x + weight * D.T @ np.clip(t / threshold, -1.0, 1.0)
        return value + 0.5 * ridge * x @ x + weight * penalty.sum(), gradient

    options = {"ftol": 1e-16, "gtol": 1e-12, "maxiter": 20_000, "maxfun": 40_000}
    best = scipy.optimize.minimize(objective, np.zeros(A.shape[1]), jac=True, method="L-BFGS-B", options=options)
    at_ours = objective(solution.image.ravel())[0]
    scale = abs(objective(np.zeros(A.shape[1]))[0])
    assert result.lower <= best.fun + 1e-12 * scale
    assert at_ours <= result.upper + 1e-12 * scale
    assert at_ours - best.fun <= result.gap + 1e-12 * scale
    size = np.abs(D @ solution.image.ravel())
    huber = np.where(size <= threshold, size**2 / (2.0 * threshold), size - threshold / 2.0)
    assert solution.variation == pytest.approx(huber.sum())


@gathered("shape", [(40, 40), (30, 50)])
@gathered("spacing", [1.0, 0.7])
def test_projections_of_a_disk_are_its_chords(shape, spacing):
    rows, columns = shape
    y, x = np.mgrid[:rows, :columns]
    x0, y0, radius = 3.0, -2.0, 9.0
    # A soft edge, one pixel wide, as a pixel's mean over its square has.
    distance = np.hypot(x - (columns - 1) / 2 - x0, (rows - 1) / 2 - y - y0)
    disk = np.clip(radius + 0.5 - distance, 0.0, 1.0)
    bins = 61
    seen = ss.gallery.parallel_beam(shape, ANGLES, bins, spacing).project(disk)
    s = (np.arange(bins) - (bins - 1) / 2) * spacing
    centre = x0 * np.cos(ANGLES) + y0 * np.sin(ANGLES)
    chords = 2.0 * np.sqrt(np.maximum(radius**2 - (s - centre[:, None]) ** 2, 0.0))
    # A pixel-driven projector ripples from bin to bin; sums over three bins do not see it.
    smooth = [np.convolve(row, np.ones(3) / 3, mode="same") for row in seen - chords]
    assert np.abs(smooth).mean() < 0.02 * 2.0 * radius
    assert seen.sum(axis=1) * spacing == pytest.approx(np.full(ANGLES.size, disk.sum()))


def test_what_misses_the_detector_is_lost_and_the_norm_is_a_bound():
    scanner = ss.gallery.parallel_beam((6, 9), ANGLES, bins=5, spacing=1.0)
    dense = scanner.A.matrix.toarray()
    assert np.linalg.norm(dense, 2) <= scanner.A.norm.upper and np.linalg.norm(dense, 2) == pytest.approx(1.0)
    seen = scanner.project(np.ones((6, 9)))[0]
    assert seen == pytest.approx(np.full(5, 6.0))


def test_the_papers_projector_is_the_scanner_up_to_units():
    paper = ss.gallery.projector(12, 20)
    bins = paper.y_shape[0] // 20
    scanner = ss.gallery.parallel_beam(12, np.arange(20) * np.pi / 20, bins)
    picture = ss.gallery.phantom(1, 12)
    assert scanner.A.forward(picture) == pytest.approx(paper.forward(picture), abs=1e-8)


def test_instances_are_what_their_sinograms_say():
    for problem in (ss.gallery.tomography(n=12), ss.gallery.realistic_tomography("low_dose", n=12)):
        solution = problem.read(ss.solve(problem, reduction=1e-3))
        own = ss.gallery.reconstruct(
            solution.sinogram, solution.angles, solution.weight, huber=solution.huber, ridge=problem.f.ridge
        )
        assert own.X.shape == (12, 12)
        again = own.read(ss.solve(own, reduction=1e-8))
        exact = problem.read(ss.solve(problem, reduction=1e-8))
        assert again.image == pytest.approx(exact.image, abs=2e-3)
        assert exact.psnr() == pytest.approx(again.psnr(exact.truth), abs=0.05)
        with pytest.raises(InputError, match="the object is not known"):
            again.psnr()


def test_counts_are_read_as_photons():
    truth, k, intensity = ss.gallery.phantom(1, 16), 0.1, 1e5
    scanner = ss.gallery.parallel_beam(16, ANGLES, bins=23)
    counts = np.random.default_rng(0).poisson(intensity * np.exp(-k * scanner.project(truth)))
    problem = ss.gallery.reconstruct(counts, ANGLES, 1e-4, intensity=intensity, attenuation=k, truth=truth)
    solution = problem.read(ss.solve(problem, reduction=1e-5))
    assert solution.psnr() > 25.0
    assert 0.2 < np.sqrt(np.mean(solution.residual**2)) < 2.0


def test_weight_from_the_noise_and_from_the_truth():
    truth = ss.gallery.phantom(1, 16)
    angles = np.linspace(0.0, np.pi, 60, endpoint=False)
    clean = ss.gallery.parallel_beam(16, angles, bins=23).project(truth)
    noisy = clean + 0.2 * np.random.default_rng(1).standard_normal(clean.shape)

    def make(weight):
        return ss.gallery.reconstruct(noisy, angles, weight, truth=truth)

    by_noise = ss.gallery.choose_weight(make, noise=0.2)
    problem = make(by_noise.weight)
    residual = problem.read(ss.solve(problem, reduction=1e-5)).residual
    assert np.sqrt(np.mean(residual**2)) == pytest.approx(0.2, rel=0.02)
    misfits = [misfit for _, misfit in sorted(by_noise.tried)]
    assert misfits == sorted(misfits)
    best = ss.gallery.choose_weight(make, truth=truth)
    quality = dict(best.tried)
    assert quality[best.weight] == max(quality.values()) and len(quality) == 12
    assert 0.15 < estimate_noise(noisy) < 0.3
    hopeless = ss.gallery.choose_weight(make, noise=1e-6, steps=3)
    assert hopeless.rule.startswith("the smallest") and hopeless.weight == pytest.approx(1e-6)
    assert hopeless.calls == sum((ss.solve(make(w), reduction=1e-4).calls for w, _ in hopeless.tried), ss.Calls())


@gathered(
    ("make", "words"),
    [
        (lambda: ss.gallery.reconstruct(np.zeros(4), ANGLES, 1e-3), "expected \\(angles, bins\\)"),
        (lambda: ss.gallery.reconstruct(np.zeros((3, 9)), ANGLES, 1e-3), "one angle for each row"),
        (lambda: ss.gallery.reconstruct(np.zeros((15, 1)), ANGLES, 1e-3), "at least two bins"),
        (lambda: ss.gallery.reconstruct(np.zeros((15, 9)), np.rad2deg(ANGLES), 1e-3), "deg2rad"),
        (lambda: ss.gallery.reconstruct(np.zeros((15, 9)), ANGLES, 0.0), "weight is 0"),
        (lambda: ss.gallery.reconstruct(np.zeros((15, 9)), ANGLES, 1.0, ridge=0.0), "ridge is 0"),
        (lambda: ss.gallery.reconstruct(np.full((15, 9), np.nan), ANGLES, 1.0), "NaN"),
        (lambda: ss.gallery.reconstruct(np.zeros((15, 9)), ANGLES, 1.0, shape=(3, 3, 3)), "\\(rows, columns\\)"),
        (lambda: ss.gallery.reconstruct(np.zeros((15, 9)), ANGLES, 1.0, truth=np.zeros((2, 2))), "pass shape="),
        (lambda: ss.gallery.reconstruct(-np.ones((15, 9)), ANGLES, 1.0, intensity=9.0), "negative entry"),
        (lambda: ss.gallery.parallel_beam(8, ANGLES, 9, spacing=0.0), "spacing is 0"),
        (lambda: ss.gallery.choose_weight(lambda w: ss.gallery.synthetic(d=4), noise=1.0), "expected tomography"),
        (lambda: ss.gallery.choose_weight(lambda w: None, between=(1.0, 0.5)), "expected 0 < low < high"),
        (lambda: ss.gallery.tomography(picture=np.zeros((3, 3)), n=8), "expected \\(8, 8\\)"),
    ],
)  # fmt: skip
def test_wrong_data_are_refused(make, words):
    with pytest.raises(InputError, match=words):
        make()


def test_own_sinogram_from_files(tmp_path, capsys):
    truth = ss.gallery.phantom(2, 12)
    sinogram = ss.gallery.parallel_beam(12, ANGLES, bins=17).project(truth)
    np.savez(tmp_path / "scan.npz", sinogram=sinogram, angles=np.rad2deg(ANGLES), truth=truth)
    base = ["solve", "tomography", "--sinogram", f"{tmp_path}/scan.npz", "--weight", "1e-4", "--reduction", "1e-4"]
    assert cli.main([*base, "--degrees", "--out", str(tmp_path / "out")]) == 0
    record = json.loads((tmp_path / "out" / "result.json").read_text(encoding="utf-8"))
    problem = ss.gallery.reconstruct(sinogram, ANGLES, 1e-4, shape=12, truth=truth)
    expected = problem.read(ss.solve(problem, reduction=1e-4))
    assert record["facts"]["PSNR against the object, dB"] == pytest.approx(expected.psnr(), abs=1e-6)
    np.savetxt(tmp_path / "scan.csv", sinogram, delimiter=",")
    np.savetxt(tmp_path / "angles.txt", ANGLES)
    capsys.readouterr()
    table = ["solve", "tomography", "--sinogram", f"{tmp_path}/scan.csv", "--weight", "1e-4", "--reduction", "1e-4"]
    for arguments in (table, [*table, "--angles", f"{tmp_path}/angles.txt"]):
        assert cli.main([*arguments, "--out", str(tmp_path / "table")]) == 0
        with np.load(tmp_path / "table" / "arrays.npz") as arrays:
            assert arrays["image"] == pytest.approx(expected.image, abs=1e-9)
            assert "truth" not in arrays
    assert cli.main(base) == cli.EXIT_USAGE
    assert "deg2rad" in capsys.readouterr().err
    assert cli.main([*base, "--picture", "1"]) == cli.EXIT_USAGE
    (tmp_path / "scan.npz").write_text("text", encoding="utf-8")
    assert cli.main(base) == cli.EXIT_USAGE
    assert "can not be read" in capsys.readouterr().err


def test_solutions_of_the_papers_instances_speak():
    problem = ss.gallery.synthetic(1.0, 1.0, d=6)
    solution = problem.read(ss.solve(problem, tol=1e-8))
    assert solution.value == pytest.approx(solution.result.upper, abs=1e-8)
    assert set(solution.arrays()) == {"x", "y"} and len(solution.plot().axes) == 2
    paper = ss.gallery.tomography("holder", n=8)
    read = paper.read(ss.solve(paper, reduction=1e-3))
    assert read.image.shape == (8, 8) and len(read.plot().axes) == 5
    unknown = ss.gallery.reconstruct(read.sinogram, read.angles, 1e-4)
    assert [ax.get_title() for ax in unknown.read(ss.solve(unknown, reduction=1e-3)).plot().axes[:2]] == [
        "sinogram",
        "reconstruction",
    ]
