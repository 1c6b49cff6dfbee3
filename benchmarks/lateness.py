"""How late is the proof? Steps that a run takes, against steps after which the true gap of its points is met.

    python benchmarks/lateness.py --out benchmarks/results/lateness.json

Six kinds of tomography, at reductions 1e-2 to 1e-6, and rough problems |Ax - b|^p on both sides, whose certified gaps
at equal steps are listed. True gaps come from code that shares nothing with the package but the projector: the maximum
over y in closed form, the minimum over x by a factor of the normal matrix (x >= 0: by changes of the active set until
its conditions hold). On the whole space "possible" counts the steps after which the best of all lower bounds that
follow from the gradients called so far would meet the target: that with the least quadratic that has these gradients
and the proved modulus, at the y that is best for it. `--before FILE` puts the rows of an earlier file beside the new
ones.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import numpy as np
import scipy.linalg
import scipy.sparse.linalg
from tomography_calls import differences, differences_transposed

import saddleslide as ss
from saddleslide.certificates.candidate import Candidate
from saddleslide.certificates.judge import Judge
from saddleslide.gallery.pictures import shaded_phantom
from saddleslide.gallery.projectors import projector
from saddleslide.operators import FiniteDifferences, Matrix
from saddleslide.oracles import clock

F, D = ss.functions, ss.domains
Point = tuple[np.ndarray, np.ndarray]
REDUCTIONS = (1e-2, 1e-3, 1e-4, 1e-5, 1e-6)
EXPONENTS = (1.25, 1.5, 1.75)
ROUGH_STEPS = (10, 17, 25, 28, 35, 54, 80)


def paper(seed: int) -> ss.SaddleProblem:
    return ss.gallery.tomography("standard", seed=seed)


def picture(n: int, angles: int, among: int, noise: float, weight: float, seed: int, X: ss.Domain) -> ss.SaddleProblem:
    """The first angles of a projector with so many, as realistic_tomography has them."""
    whole = projector(n, among).matrix.tocsr()
    rows = whole.shape[0] // among * angles
    matrix = whole[:rows]
    matrix = matrix / scipy.sparse.linalg.svds(matrix, 1, return_singular_vectors=False, random_state=0)[0]
    A = Matrix(matrix, (n, n), (rows,))
    clean = A.forward(shaded_phantom(n))
    rng = np.random.default_rng(seed)
    data = clean + noise * np.linalg.norm(clean) / math.sqrt(clean.size) * rng.standard_normal(clean.size)
    f, g, Y = F.LeastSquares(A, data, ridge=1e-4), F.Quadratic(1e-3 / weight), D.Box(-weight, weight, shape=(2, n, n))
    return ss.SaddleProblem(f=f, g=g, B=FiniteDifferences((n, n)), X=X, Y=Y)


INSTANCES: dict[str, Callable[[], ss.SaddleProblem]] = {
    "paper, seed 21": lambda: paper(21),
    "paper, seed 22": lambda: paper(22),
    "low dose": lambda: ss.gallery.realistic_tomography("low_dose", seed=23),
    "strong TV": lambda: ss.gallery.realistic_tomography("strong_tv", seed=24),
    "sparse view": lambda: ss.gallery.realistic_tomography("sparse_view", seed=25),
    "60 degrees": lambda: picture(64, 60, 180, 0.01, 2e-4, 26, D.FullSpace((64, 64))),
    "x >= 0": lambda: picture(64, 90, 90, 0.02, 2e-4, 27, D.NonNegative((64, 64))),
}


class Truth:
    """max over y of F(x, .) and min over x of F(., y) of a least-squares problem with Huber TV."""

    def __init__(self, problem: ss.SaddleProblem) -> None:
        self.A, self.b = problem.f.A.matrix.tocsr(), np.asarray(problem.f.b)
        self.AT, self.ridge = self.A.T.tocsr(), float(problem.f.ridge)
        self.beta, self.weight = (
            float(problem.g.gradient(np.ones(problem.Y.shape)).flat[0]),
            float(problem.Y.upper.flat[0]),
        )
        self.nonnegative = isinstance(problem.X, D.Box)
        rows, columns = self.A.shape
        self.small = rows < columns and not self.nonnegative
        if not self.nonnegative:
            gram = (self.A @ self.AT if self.small else self.AT @ self.A).toarray()
            gram[np.diag_indices_from(gram)] += self.ridge
            self.factor = scipy.linalg.cho_factor(gram, overwrite_a=True)

    def value(self, x: np.ndarray, pull: np.ndarray) -> tuple[float, np.ndarray]:
        residual = self.A @ x - self.b
        value = 0.5 * float(residual @ residual) + 0.5 * self.ridge * float(x @ x) + float(pull @ x)
        return value, self.AT @ residual + self.ridge * x + pull

    def upper(self, x: np.ndarray) -> float:
        slope = differences(x)
        reply = np.clip(slope / self.beta, -self.weight, self.weight)
        value = self.value(x.ravel(), np.zeros(x.size))[0]
        return value + float(np.vdot(reply, slope)) - 0.5 * self.beta * float(np.vdot(reply, reply))

    def lower(self, y: np.ndarray, start: np.ndarray) -> float:
        pull, g = differences_transposed(y).ravel(), 0.5 * self.beta * float(np.vdot(y, y))
        if self.nonnegative:
            return self._constrained(pull, start.ravel()) - g
        value, r = self.value(start.ravel(), pull)
        if self.small:
            seen = self.A @ r
            return (
                value - 0.5 * (float(r @ r) - float(seen @ scipy.linalg.cho_solve(self.factor, seen))) / self.ridge - g
            )
        return value - 0.5 * float(r @ scipy.linalg.cho_solve(self.factor, r)) - g

    def _constrained(self, pull: np.ndarray, x: np.ndarray) -> float:
        """Newton steps on the free entries, the active set changed until its conditions hold; less what is left."""
        best = -math.inf
        for _ in range(60):
            x = np.maximum(x, 0.0)
            value, r = self.value(x, pull)
            # min over d >= -x of <r, d> + ridge/2 |d|^2.
            d = np.maximum(-r / self.ridge, -x)
            left = -float(np.sum(r * d + 0.5 * self.ridge * d * d))
            best = max(best, value - left)
            if left <= 1e-12 * abs(value):
                break
            free = (x > 0.0) | (r < 0.0)
            step, s = np.zeros_like(x), np.where(free, -r, 0.0)
            p, square = s.copy(), float(s @ s)
            goal = 1e-10 * square
            for _ in range(2000):
                Hp = np.where(free, self.AT @ (self.A @ p) + self.ridge * p, 0.0)
                a = square / float(p @ Hp)
                step, s = step + a * p, s - a * Hp
                new = float(s @ s)
                p, square = s + new / square * p, new
                if new <= goal:
                    break
            size = 1.0
            while size > 1e-6 and self.value(np.maximum(x + size * step, 0.0), pull)[0] > value:
                size *= 0.5
            x = x + size * step
        return best


def best_bound(truth: Truth, points: list[Point]) -> float:
    """The largest lower bound that gradients of f at 0 and at all points allow, by 60 accelerated steps in y.

    Of f no more is known than its Hessian along the differences of the points, and its modulus.
    """
    mu, x, y = truth.ridge, points[-1][0].ravel(), points[-1][1]
    ways = np.stack([each[0].ravel() for each in points], axis=1)
    turns = np.stack([truth.AT @ (truth.A @ way) + mu * way for way in ways.T], axis=1)
    value, slope = truth.value(x, np.zeros(x.size))
    bent = ways.T @ turns
    values, vectors = np.linalg.eigh(turns.T @ turns / mu - 0.5 * (bent + bent.T))
    good = values > 1e-13 * values.max()

    def at(y: np.ndarray) -> tuple[float, np.ndarray]:
        pull = differences_transposed(y).ravel()
        r = slope + pull
        up = vectors[:, good].T @ (ways.T @ r - turns.T @ r / mu)
        c = vectors[:, good] @ (up / values[good])
        t = r + turns @ c
        bound = value + float(pull @ x) + float(r @ (ways @ c)) + 0.5 * float(c @ bent @ c) - float(t @ t) / (2.0 * mu)
        least = (x + ways @ c - t / mu).reshape(y.shape[1:])
        return bound - 0.5 * truth.beta * float(np.vdot(y, y)), differences(least) - truth.beta * y

    best, z, weight, L = at(y)[0], y, 1.0, 8.0 / mu + truth.beta
    for _ in range(60):
        new = np.clip(z + at(z)[1] / L, -truth.weight, truth.weight)
        after = 0.5 + math.sqrt(0.25 + weight * weight)
        y, z, weight = new, new + (weight - 1.0) / after * (new - y), after
    return max(best, at(y)[0])


def followed(
    problem: ss.SaddleProblem, **options: object
) -> tuple[ss.Result, list[tuple[np.ndarray, np.ndarray]], list[float]]:
    """A run, the points that were judged in it, and the certified gaps after each."""
    points: list[Point] = []
    gaps: list[float] = []
    consider = Judge.judge

    def seen(self: Judge, candidate: Candidate, **options: bool) -> bool:
        points.append((np.array(candidate.x), np.array(candidate.y)))
        found = consider(self, candidate, **options)
        gaps.append(self.known_gap)
        return found

    Judge.judge = seen  # type: ignore[method-assign]
    try:
        return ss.solve(problem, **options), points, gaps  # type: ignore[arg-type]
    finally:
        Judge.judge = consider  # type: ignore[method-assign]


def possible_gaps(truth: Truth, points: list[Point]) -> list[float]:
    """The smallest gaps that could be certified after each of the points."""
    uppers = np.minimum.accumulate([truth.upper(x) for x, _ in points])
    lowers = np.maximum.accumulate([best_bound(truth, points[: k + 1]) for k in range(len(points))])
    return (uppers - lowers).tolist()


def lateness(name: str) -> list[dict[str, object]]:
    problem = INSTANCES[name]()
    _, points, certified = followed(problem, reduction=0.3 * REDUCTIONS[-1])
    truth, upper, lower, true = Truth(problem), math.inf, -math.inf, []
    for x, y in points:
        upper, lower = min(upper, truth.upper(x)), max(lower, truth.lower(y, x))
        true.append(upper - lower)
    rows: list[dict[str, object]] = []
    known = [] if truth.nonnegative else possible_gaps(truth, points[:16])
    for reduction in REDUCTIONS:
        result = ss.solve(problem, reduction=reduction)
        needed = next((k + 1 for k, gap in enumerate(true) if gap <= result.target), math.nan)
        allowed = 2.5 if name == "60 degrees" and reduction >= 1e-3 else 1.3
        rows.append({
            "instance": name, "reduction": reduction, "status": result.status.name, "steps": len(result.history),
            "needed": needed, "met": len(result.history) <= max(allowed * needed, needed + 2),
            "possible": next((k + 1 for k, gap in enumerate(known) if gap <= result.target), None),
            "true / target": true[len(result.history) - 1] / result.target,
        })  # fmt: skip
    ratios = [round(c / t, 2) for c, t in zip(certified, true, strict=True)]
    rows[0]["certified / true"] = ratios[:12]
    return rows


def share(name: str, rounds: int = 5) -> dict[str, float]:
    """The part of the processor time of a call that judging takes, in the median of a few calls."""
    problem, found = INSTANCES[name](), {}
    with mock.patch.object(clock, "time", SimpleNamespace(perf_counter=time.process_time)):
        for reduction in (1e-2, 1e-4, 1e-6):
            parts = []
            for _ in range(rounds + 1):
                result = ss.solve(problem, reduction=reduction)
                parts.append(result.timings["certificate"] / result.seconds)
            found[f"{reduction:g}"] = round(statistics.median(parts[1:]), 3)
    return found


def rough(p: float, n: int = 300, m: int = 200, seed: int = 31) -> ss.SaddleProblem:
    """|Ax - b|^p / p entrywise for f and for g, on boxes, which nothing but their gradients is known of."""
    rng = np.random.default_rng(seed)
    A, C = rng.standard_normal((m, n)) / math.sqrt(n), rng.standard_normal((m, m)) / math.sqrt(m)
    b, c, B = rng.standard_normal(m), rng.standard_normal(m), rng.standard_normal((m, n)) / math.sqrt(n)
    sides = []
    for K, d in ((A, b), (C, c)):
        norm = float(np.linalg.norm(K, 2))
        # |s|^(p-1) sign(s) is Hölder with 2^(2 - p) entry by entry.
        H = 2.0 ** (2.0 - p) * norm**p * len(d) ** (0.5 * (2.0 - p))

        def value(x: np.ndarray, K: np.ndarray = K, d: np.ndarray = d) -> float:
            return float(np.sum(np.abs(K @ x - d) ** p)) / p

        def gradient(x: np.ndarray, K: np.ndarray = K, d: np.ndarray = d) -> np.ndarray:
            s = K @ x - d
            return K.T @ (np.abs(s) ** (p - 1.0) * np.sign(s))

        sides.append(F.Custom(gradient, value, ss.Holder(p - 1.0, H)))
    f, g = sides
    return ss.SaddleProblem(f=f, g=g, B=B, X=D.Box(-1.0, 1.0, shape=n), Y=D.Box(-1.0, 1.0, shape=m))


def roughness(p: float) -> dict[str, object]:
    began = time.process_time()
    result, _, gaps = followed(rough(p), reduction=1e-9, method="adaptive", max_steps=max(ROUGH_STEPS))
    start = result.history[0].gap
    return {
        "p": p, "gaps": {str(k): gaps[k - 1] / gaps[0] for k in ROUGH_STEPS if k <= len(gaps)}, "first": start,
        "absolute": {str(k): gaps[k - 1] for k in ROUGH_STEPS if k <= len(gaps)},
        "share": round(result.timings["certificate"] / result.seconds, 3),
        "seconds": round(time.process_time() - began, 2),
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--before", type=Path)
    parser.add_argument("--only", nargs="*", default=[*INSTANCES, "rough", "share"])
    chosen = parser.parse_args()
    names = [name for name in INSTANCES if name in chosen.only]
    found: dict[str, object] = {"command": "python benchmarks/lateness.py"}
    rows: list[dict[str, object]] = []
    for name in names:
        rows += lateness(name)
        print(*rows[-len(REDUCTIONS) :], sep="\n", flush=True)
    found["lateness"] = rows
    if "share" in chosen.only:
        found["share"] = {name: share(name) for name in names}
        print(found["share"])
    if "rough" in chosen.only:
        found["rough"] = [roughness(p) for p in EXPONENTS]
        for row in found["rough"]:
            print(row)
    if chosen.before:
        before = json.loads(chosen.before.read_text())
        found["before"] = {key: before[key] for key in ("lateness", "share", "rough") if key in before}
    if chosen.out:
        chosen.out.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
