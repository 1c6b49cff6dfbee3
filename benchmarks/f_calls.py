"""Calls of f' that `solve` takes in all until a gap is certified, where f is a quadratic of a picture.

What an operator looks like from the pixels differs: all directions or some, pixels that are not seen, rows that count
differently, slices that know nothing of each other; so do the constraints. Counted is everything from the call of
`solve` to its result: probes of the metric, steps, the certificate.

    python benchmarks/f_calls.py --out benchmarks/results/f_calls.json
"""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path

import numpy as np
import scipy

import saddleslide as ss
from saddleslide.gallery.pictures import shaded_phantom

TARGETS = (1e-2, 1e-4, 1e-6)
RIDGE, HUBER = 1e-4, 1e-3
SEED = 1


def regularised(f: ss.functions.Function, weight: float, X: ss.domains.Domain) -> ss.SaddleProblem:
    """f + weight * Huber-TV over X."""
    shape = X.shape
    Y = ss.domains.Box(-weight, weight, shape=(len(shape), *shape))
    B = ss.operators.FiniteDifferences(shape)
    return ss.SaddleProblem(f=f, g=ss.functions.Quadratic(HUBER / weight), B=B, X=X, Y=Y)


def noisy(clean: np.ndarray, part: float) -> np.ndarray:
    """With noise of this part of the size of the data."""
    noise = np.random.default_rng(SEED).standard_normal(clean.shape)
    return clean + part * np.linalg.norm(clean) / math.sqrt(clean.size) * noise


def free(n: int = 64) -> ss.domains.Domain:
    return ss.domains.FullSpace((n, n))


def scanned(degrees: np.ndarray, part: float, weight: float, X: ss.domains.Domain, row_weights: bool = False):
    """Tomography from these directions; of Poisson-like data, rows through dense matter count less."""
    A = ss.gallery.parallel_beam(64, np.deg2rad(degrees), bins=91).A
    clean = A.forward(shaded_phantom(64))
    weights = np.exp(-6.0 * clean / clean.max()) if row_weights else None
    return regularised(ss.functions.LeastSquares(A, noisy(clean, part), ridge=RIDGE, weights=weights), weight, X)


def holes(part: float) -> np.ndarray:
    """1 where a pixel is known, 0 in this part of them."""
    return (np.random.default_rng(SEED).random((64, 64)) >= part).astype(float)


def inpainting() -> ss.SaddleProblem:
    known = holes(0.5)

    def mask(x: np.ndarray) -> np.ndarray:
        return known * x

    A = ss.operators.as_operator((mask, mask), x_shape=(64, 64), y_shape=(64, 64), norm=1.0)
    f = ss.functions.LeastSquares(A, known * noisy(shaded_phantom(64), 0.05), ridge=RIDGE)
    return regularised(f, 0.02, free())


def blurred() -> ss.SaddleProblem:
    k = np.exp(-0.5 * np.arange(-4, 5) ** 2)
    kernel = np.outer(k, k) / k.sum() ** 2
    A = ss.gallery.blur(kernel, (64, 64))
    data = noisy(A.forward(shaded_phantom(64)), 0.01)
    return regularised(ss.functions.LeastSquares(A, data, ridge=RIDGE, weights=holes(0.4)), 1e-3, free())


def volume() -> ss.SaddleProblem:
    """Every slice of 32 has its own scan; the variation ties them together."""
    n = 32
    one = ss.gallery.projector(n, 90).matrix
    A = ss.operators.as_operator(
        scipy.sparse.csr_array(scipy.sparse.kron(scipy.sparse.eye_array(n), one)), (n, n, n), (n * one.shape[0],),
        norm=1.0 + 1e-9,
    )  # fmt: skip
    heights = np.cos(0.5 * np.pi * np.linspace(-1.0, 1.0, n)) ** 0.5
    truth = shaded_phantom(n) * heights[:, None, None]
    f = ss.functions.LeastSquares(A, noisy(A.forward(truth), 0.02), ridge=RIDGE)
    return regularised(f, 2e-4, ss.domains.FullSpace((n, n, n)))


def boxed() -> ss.SaddleProblem:
    """The standard instance between bounds that no solution touches."""
    problem = ss.gallery.tomography("standard", seed=SEED)
    return ss.SaddleProblem(f=problem.f, g=problem.g, B=problem.B, X=ss.domains.Box(-10.0, 10.0, shape=(64, 64)),
                            Y=problem.Y)  # fmt: skip


def flat() -> ss.SaddleProblem:
    """The standard instance on a vector; B knows the grid."""
    problem = ss.gallery.tomography("standard", seed=SEED)
    A = ss.operators.as_operator(problem.f.A.matrix, norm=1.0 + 1e-9)
    f = ss.functions.LeastSquares(A, problem.f.b, ridge=problem.f.ridge)
    Y = ss.domains.Box(problem.Y.lower.ravel(), problem.Y.upper.ravel())
    return ss.SaddleProblem(f=f, g=problem.g, B=problem.B, X=ss.domains.FullSpace(4096), Y=Y)


INSTANCES = {
    "standard": (lambda: ss.gallery.tomography("standard", seed=SEED), (7, 9, 12)),
    "inactive box": (boxed, (7, 9, 12)),
    "flat x": (flat, (7, 9, 12)),
    "low dose": (lambda: ss.gallery.realistic_tomography("low_dose", seed=SEED), (7, 9, 12)),
    "x >= 0": (
        lambda: scanned(np.arange(0.0, 180.0, 2.0), 0.02, 2e-4, ss.domains.NonNegative((64, 64))), (8, 10, 14),
    ),
    "60 degrees": (lambda: scanned(np.arange(60.0), 0.01, 2e-4, free()), (12, 38, 75)),
    "inpainting": (inpainting, (8, 13, 22)),
    "blur, 40 % missing": (blurred, (11, 26, 40)),
    "weighted rows": (lambda: scanned(np.arange(180.0), 0.01, 1e-4, free(), row_weights=True), (12, 20, 30)),
    "volume by slices": (volume, (8, 12, 16)),
}  # fmt: skip


def measure(name: str) -> dict[str, object]:
    make, limits = INSTANCES[name]
    row: dict[str, object] = {
        "instance": name,
        "limits": list(limits),
        "f": [],
        "B": [],
        "certificate_f": [],
        "status": [],
    }
    for reduction in TARGETS:
        # Made anew: nothing is known from the solve before.
        result = ss.solve(make(), reduction=reduction, max_calls={"f": 1000})
        found = result.calls.f, result.calls.B, result.certificate_calls.f, result.status.name
        for key, value in zip(("f", "B", "certificate_f", "status"), found, strict=True):
            row[key].append(value)
        row["metric"] = result.plans[-1].metric
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="JSON file to write")
    parser.add_argument("--only", nargs="+", default=list(INSTANCES), help="instances")
    chosen, rows = parser.parse_args(), []
    title = "f' at " + " / ".join(f"{target:g}" for target in TARGETS)
    print(f"{'instance':<22}{title:<30}{'limits':<16}products")
    for name in chosen.only:
        rows.append(row := measure(name))
        calls, limits, products = (" / ".join(f"{n:g}" for n in row[key]) for key in ("f", "limits", "B"))
        print(f"{name:<22}{calls:<30}{limits:<16}{products}", flush=True)
    if chosen.out is not None:
        chosen.out.parent.mkdir(parents=True, exist_ok=True)
        lines = ",\n".join("  " + json.dumps(row) for row in rows)
        head = json.dumps({"targets": TARGETS, "version": ss.__version__})[1:-1]
        chosen.out.write_text(f'{{{head}, "rows": [\n{lines}\n]}}\n', encoding="utf-8")
    if any(status != "SOLVED" for row in rows for status in row["status"]):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
