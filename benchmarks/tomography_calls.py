"""Calls that `ss.solve` needs on the tomography benchmark, checked against an accurate solution from outside.

For every regime, pair (seed, picture) and relative target: the calls until the run certified itself, everything
counted; the calls of f' when the gap of the point at hand, evaluated from outside, first met the target (without the
certificate's calls and the probes of the metric); and both gaps at the end. The outside gap shares no code with the
package but the projector: dense Cholesky factors of A^T A + mu I give the inner minimum, projected accelerated steps
run to rounding give the inner maximum.

    python benchmarks/tomography_calls.py --out benchmarks/results/tomography_calls.json
"""

from __future__ import annotations

import argparse
import inspect
import json
import math
from pathlib import Path

import numpy as np
import scipy.linalg

import saddleslide as ss
from saddleslide.gallery.projectors import projector
from saddleslide.gallery.tomography import REGIMES, nonlocal_laplacian
from saddleslide.metrics import fit_spectral

PAIRS = ((1, 0), (2, 1), (3, 2), (4, 0), (5, 1))
TARGETS = (5e-4, 1e-5, 1e-6, 1e-10)
# The benchmark's parameters, written here again on purpose.
MU, BETA, LAMBDA, TAU, POWER = 1e-3, 0.05, 5e-5, 0.05, 7.955e-3
PROBES = int(inspect.signature(fit_spectral).parameters["probes"].default)


def differences(x: np.ndarray) -> np.ndarray:
    """Forward differences, zero in the last column and row."""
    d = np.zeros((2, *x.shape))
    d[0, :, :-1], d[1, :-1, :] = np.diff(x, axis=1), np.diff(x, axis=0)
    return d


def differences_transposed(y: np.ndarray) -> np.ndarray:
    h, v = y[0].copy(), y[1].copy()
    h[:, -1], v[-1, :] = 0.0, 0.0
    x = -h - v
    x[:, 1:] += h[:, :-1]
    x[1:, :] += v[:-1, :]
    return x


class Outside:
    """The exact gap of the benchmark's problems, independent of the package's certificates."""

    def __init__(self, n: int) -> None:
        self.n, self.A = n, projector(n).matrix
        gram = (self.A.T @ self.A).toarray()
        gram[np.diag_indices_from(gram)] += MU
        self.factor = scipy.linalg.cho_factor(gram, overwrite_a=True)

    def gap(self, regime: str, data: np.ndarray, x: np.ndarray, y: np.ndarray) -> float:
        """max over y of F(x, .) minus min over x of F(., y)."""
        residual = self.A @ x.ravel() - data
        f = 0.5 * residual @ residual + 0.5 * MU * np.vdot(x, x)
        pull = differences_transposed(y).ravel()
        best = scipy.linalg.cho_solve(self.factor, self.A.T @ data - pull)
        left = self.A @ best - data
        minimum = 0.5 * left @ left + 0.5 * MU * best @ best + pull @ best
        slope = differences(x)
        reply = self._reply(regime, slope)
        maximum = np.vdot(reply, slope) - self.g(regime, reply)
        return float((f + maximum) - (minimum - self.g(regime, y)))

    def g(self, regime: str, y: np.ndarray) -> float:
        value = 0.5 * BETA * np.vdot(y, y)
        if regime != "standard":
            value += 0.5 * TAU * y.ravel() @ (nonlocal_laplacian(self.n) @ y.ravel())
        if regime == "holder":
            value += POWER * np.sum(np.abs(y) ** 1.5) / 1.5
        return float(value)

    def _reply(self, regime: str, slope: np.ndarray) -> np.ndarray:
        """Maximiser of <y, slope> - g(y) on the box: closed form, or proximal gradients to rounding."""
        power = POWER if regime == "holder" else 0.0
        if regime == "standard":
            return np.clip(slope / BETA, -LAMBDA, LAMBDA)
        laplacian, L = nonlocal_laplacian(self.n), BETA + 2.0 * TAU
        momentum = (math.sqrt(L / BETA) - 1.0) / (math.sqrt(L / BETA) + 1.0)
        y = v = np.clip(slope / L, -LAMBDA, LAMBDA)
        for _ in range(1000):
            gradient = BETA * v + TAU * (laplacian @ v.ravel()).reshape(v.shape) - slope
            new = proximal(v - gradient / L, power / L)
            v, moved, y = new + momentum * (new - y), float(np.abs(new - y).max()), new
            # The error of the maximum is of second order in that of y: far below rounding of the gap.
            if moved <= 1e-12 * LAMBDA:
                break
        return y


def proximal(v: np.ndarray, a: float) -> np.ndarray:
    """Minimiser of |y - v|^2 / 2 + a |y|^1.5 / 1.5 on the box."""
    root = 0.5 * (np.sqrt(a * a + 4.0 * np.abs(v)) - a)
    return np.clip(np.sign(v) * root * root, -LAMBDA, LAMBDA)


def measure(outside: Outside, regime: str, pair: tuple[int, int], target: float) -> dict[str, object]:
    """One run with its outside check."""
    problem = ss.gallery.tomography(regime, seed=pair[0], picture=pair[1], n=outside.n)
    data, zero = problem.f.b, (np.zeros(problem.X.shape), np.zeros(problem.Y.shape))
    start = outside.gap(regime, data, *zero)
    first: list[ss.Result] = []
    worst = math.inf

    def watch(result: ss.Result) -> None:
        nonlocal worst
        gap = outside.gap(regime, data, result.x, result.y)
        worst = min(worst, result.gap - gap)
        if gap <= target * start and not first:
            first.append(result)

    result = ss.solve(problem, reduction=target, callback=watch)
    gap = outside.gap(regime, data, result.x, result.y)
    method = None if not first else first[0].calls.f - first[0].certificate_calls.f - PROBES
    return {
        "regime": regime, "pair": list(pair), "reduction": target, "status": result.status.name,
        "f": result.calls.f, "g": result.calls.g, "B": result.calls.B,
        "certificate_f": result.certificate_calls.f, "certificate_g": result.certificate_calls.g,
        "certificate_B": result.certificate_calls.B,
        "method_f_until_outside_gap": method,
        "relative_gap": result.gap / start, "relative_gap_outside": gap / start,
        "smallest_margin": min(worst, result.gap - gap) / start,
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, help="JSON file to write")
    parser.add_argument("--size", type=int, default=64, help="pixels per side (default 64)")
    parser.add_argument("--pairs", type=int, default=len(PAIRS), help="use the first so many pairs (default all)")
    parser.add_argument("--reduction", type=float, nargs="+", default=list(TARGETS), help="relative targets")
    chosen = parser.parse_args()
    outside = Outside(chosen.size)
    rows = [
        measure(outside, regime, pair, target)
        for regime in REGIMES
        for pair in PAIRS[: chosen.pairs]
        for target in chosen.reduction
    ]
    print(f"{'regime':<10}{'pair':>8}{'reduction':>9}{'f':>7}{'g':>6}{'B':>6}{'first':>7}{'gap':>10}{'outside':>10}")
    for row in rows:
        print(
            f"{row['regime']:<10}{tuple(row['pair'])!s:>8}{row['reduction']:>9.0e}{row['f']:>7g}{row['g']:>6g}"
            f"{row['B']:>6}{row['method_f_until_outside_gap'] or math.nan:>7g}{row['relative_gap']:>10.2e}"
            f"{row['relative_gap_outside']:>10.2e}"
        )
    wrong = [row for row in rows if row["smallest_margin"] < 0.0 or row["status"] != "SOLVED"]
    print(f"{len(rows)} runs, {len(wrong)} not solved or with a reported gap below the outside one.")
    if chosen.out is not None:
        chosen.out.parent.mkdir(parents=True, exist_ok=True)
        lines = ",\n".join("  " + json.dumps(row) for row in rows)
        head = json.dumps({"size": chosen.size, "version": ss.__version__})[1:-1]
        chosen.out.write_text(f'{{{head}, "rows": [\n{lines}\n]}}\n', encoding="utf-8")
    if wrong:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
