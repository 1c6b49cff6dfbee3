"""Simple f and g with a matrix at hand: whole calls of auto, of products alone, of CVXPY with Clarabel, and of NumPy.

    python -m benchmarks.programs [--repeats 3] [--out benchmarks/results/programs.json]

Every call builds its problem anew. Calls are interleaved; of each the smallest processor time of its repeats counts.
Ours are given up after 30 s on the wall. CVXPY, whose tolerance is the same for all targets, is called for the first
one alone. One thread: OMP_NUM_THREADS=1. The column of NumPy is a program of 25 lines (`restarted_pdhg`) whose weight
is the best of three for every target, and which is told the optimal value: it stops when its objective and its
constraints are within the target, proves nothing, and is given up after 3 s of processor time.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cvxpy as cp
import numpy as np
import scipy.optimize
import scipy.sparse as sparse

import saddleslide as ss

F, D = ss.functions, ss.domains
TARGETS = (1e-2, 1e-4, 1e-6)
MOST_SECONDS = 3.0
WEIGHTS = (0.1, 1.0, 10.0)
Pair = tuple[Callable[[], Any], Callable[[], Any]]
# What the program in NumPy is given: K, both proximal steps, and how far a point is from the optimal value.
Told = Callable[[], tuple[Any, Callable[..., Any], Callable[..., Any], Callable[..., float]]]


def differences(n: int, order: int) -> Any:
    """Differences of neighbours, or of those."""
    step = sparse.diags_array([-np.ones(n - 1), np.ones(n - 1)], offsets=[0, 1], shape=(n - 1, n)).tocsr()
    return step if order == 1 else (differences(n - 1, 1) @ step).tocsr()


def onto_simplex(v: Any) -> Any:
    """The nearest point of the simplex."""
    u = np.sort(v)[::-1]
    sums = (np.cumsum(u) - 1.0) / np.arange(1, u.size + 1)
    return np.maximum(v - sums[np.flatnonzero(u > sums)[-1]], 0.0)


def restarted_pdhg(
    K: Any, prox_x: Callable[..., Any], prox_y: Callable[..., Any], error: Callable[..., float], tol: float, w: float
) -> bool:
    """min f(x) + max <y, Kx> - g(y) from 0, restarted to the average whenever its error has halved."""
    x, y, began = np.zeros(K.shape[1]), np.zeros(K.shape[0]), time.process_time()
    v = np.random.default_rng(0).standard_normal(x.size)
    for _ in range(20):
        v = K.T @ (K @ v)
        norm, v = np.sqrt(np.linalg.norm(v)), v / np.linalg.norm(v)
    tau, sigma = 0.99 / (norm * w), 0.99 * w / norm
    best, mean_x, mean_y, count = np.inf, 0.0 * x, 0.0 * y, 0
    while time.process_time() - began < MOST_SECONDS:
        for _ in range(40):
            new = prox_x(x - tau * (K.T @ y), tau)
            y = prox_y(y + sigma * (K @ (2.0 * new - x)), sigma)
            x, count = new, count + 1
            mean_x, mean_y = mean_x + (x - mean_x) / count, mean_y + (y - mean_y) / count
        last, mean = error(x, y), error(mean_x, mean_y)
        if min(last, mean) <= tol:
            return True
        if min(last, mean) <= 0.5 * best:
            if mean < last:
                x, y = mean_x, mean_y
            best, mean_x, mean_y, count = min(last, mean), 0.0 * x, 0.0 * y, 0
    return False


def linear_program(cost: Any, A: Any, b: Any, upper: Any) -> Told:
    """min <cost, x> with A x = b, 0 <= x <= upper, for the program in NumPy."""
    least = scipy.optimize.linprog(cost, A_eq=A, b_eq=b, bounds=np.stack([0.0 * upper, upper], axis=1)).fun

    def error(x: Any, y: Any) -> float:
        return max(abs(cost @ x - least) / abs(least), float(np.linalg.norm(A @ x - b) / np.linalg.norm(b)))

    return lambda: (A, lambda v, t: np.clip(v - t * cost, 0.0, upper), lambda v, s: v - s * b, error)


def flow_network(side: int, rng: Any) -> tuple[Any, Any, Any, Any]:
    """Costs, incidences, supplies and capacities of a grid of nodes, with edges in both directions."""
    nodes = np.arange(side * side).reshape(side, side)
    pairs = [(nodes[:, :-1], nodes[:, 1:]), (nodes[:-1], nodes[1:])]
    edges = np.concatenate([np.stack([a.ravel(), b.ravel()], axis=1) for a, b in pairs])
    edges = np.concatenate([edges, edges[:, ::-1]])
    count = np.arange(len(edges))
    signs = np.concatenate([np.ones(count.size), -np.ones(count.size)])
    A = sparse.csr_array((signs, (edges.T.ravel(), np.tile(count, 2))), shape=(side * side, count.size))
    upper = 1.0 + 2.0 * rng.random(count.size)
    return 0.5 + rng.random(count.size), A, A @ (upper * rng.random(count.size) * (rng.random(count.size) < 0.3)), upper


def families(seed: int) -> tuple[dict[str, Pair], dict[str, Told]]:
    """By name: our objective or problem and the same for CVXPY; and what the program in NumPy is told."""
    rng = np.random.default_rng(seed)
    made: dict[str, Pair] = {}
    told: dict[str, Told] = {}

    def add(name: str, ours: Callable[[], Any], theirs: Callable[[], Any]) -> None:
        made[name] = ours, theirs

    A = rng.standard_normal((1500, 120))
    b = A @ rng.standard_normal(120) + rng.standard_t(3, 1500)
    labels = np.sign(A @ rng.standard_normal(120) + 3.0 * rng.standard_normal(1500))

    def quantile(x: Any) -> Any:
        r = b - A @ x
        return cp.sum(cp.maximum(0.3 * r, -0.7 * r))

    add("quantile regression", lambda: F.Quantile(0.3).translated(b) @ A, lambda: (120, quantile, ()))
    add("least absolute deviations", lambda: F.L1().translated(b) @ A, lambda: (120, lambda x: cp.norm1(A @ x - b), ()))
    add(
        "support vectors",
        lambda: F.Quadratic(1.0) + F.Hinge() @ (labels[:, None] * A),
        lambda: (120, lambda x: 0.5 * cp.sum_squares(x) + cp.sum(cp.pos(1 - cp.multiply(labels, A @ x))), ()),
    )
    for n in (2000, 20000):
        signal = np.cumsum(0.3 * rng.standard_normal(n))
        for order, name in ((1, "variation"), (2, "trend")):
            K = differences(n, order)
            add(
                f"{name} of a signal of {n}",
                lambda signal=signal, K=K: F.LeastSquares(None, signal) + 2.0 * F.L1() @ K,
                lambda signal=signal, K=K, n=n: (
                    n, lambda x: 0.5 * cp.sum_squares(x - signal) + 2.0 * cp.norm1(K @ x), ()
                ),
            )  # fmt: skip
    payoffs = rng.standard_normal((300, 340))
    add(
        "matrix game",
        lambda: ss.gallery.matrix_game(payoffs),
        lambda: (340, lambda x: cp.max(payoffs @ x), (lambda x: x >= 0, lambda x: cp.sum(x) == 1)),
    )
    cost, a, c = rng.random((60, 70)), rng.random(60) + 0.1, rng.random(70) + 0.1
    a, c = a / a.sum(), c / c.sum()
    sums = np.vstack([np.kron(np.eye(60), np.ones((1, 70))), np.kron(np.ones((1, 60)), np.eye(70))])
    add(
        "transport",
        lambda: ss.gallery.transport(cost, a, c, regulariser=None),
        lambda: (
            4200, lambda x: cost.ravel() @ x,
            (lambda x: x >= 0, lambda x: sparse.csr_array(sums) @ x == np.concatenate([a, c])),
        ),
    )  # fmt: skip
    E, x = rng.standard_normal((150, 400)), np.maximum(rng.standard_normal(400), 0.0)
    price = E.T @ rng.standard_normal(150) + np.where(x > 0.0, 0.0, rng.random(400))
    add(
        "linear program",
        lambda: ss.SaddleProblem(F.Linear(price), F.Linear(E @ x), E, D.NonNegative(400), D.FullSpace(150)),
        lambda: (400, lambda v: price @ v, (lambda v: v >= 0, lambda v: E @ v == E @ x)),
    )

    def add_program(name: str, cost: Any, A: Any, b: Any, upper: Any) -> None:
        add(
            name,
            lambda: ss.SaddleProblem(F.Linear(cost), F.Linear(b), A, D.Box(0.0, upper), D.FullSpace(b.size)),
            lambda: (cost.size, lambda v: cost @ v, (lambda v: v >= 0, lambda v: v <= upper, lambda v: A @ v == b)),
        )
        told[name] = linear_program(cost, A, b, upper)

    for side in (20, 60):
        add_program(f"flow on {side} x {side} nodes", *flow_network(side, rng))
    k = 12
    eye, ones = sparse.eye_array(k), np.ones((1, k))
    sums_over = (eye, ones, ones), (ones, eye, ones), (ones, ones, eye)
    marginals = sparse.csr_array(sparse.vstack([sparse.kron(sparse.kron(a, b), c) for a, b, c in sums_over]))
    points, weights = rng.random((3, k)), rng.random((3, k)) + 0.1
    mean = (points[0][:, None, None] + points[1][:, None] + points[2]) / 3.0
    spread = sum((p - mean) ** 2 for p in (points[0][:, None, None], points[1][:, None], points[2]))
    shares = (weights / weights.sum(axis=1, keepdims=True)).ravel()
    add_program("three marginals", spread.ravel(), marginals, shares, np.ones(k**3))

    def game_error(x: Any, y: Any) -> float:
        x, y = onto_simplex(x), onto_simplex(y)
        return float(np.max(payoffs @ x) - np.min(payoffs.T @ y)) / abs(value)

    value = ss.solve(ss.gallery.matrix_game(payoffs), rtol=1e-9).upper
    told["matrix game"] = lambda: (payoffs, lambda v, t: onto_simplex(v), lambda v, s: onto_simplex(v), game_error)
    optimal = ss.minimize(F.Quantile(0.3).translated(b) @ A, rtol=1e-9).upper

    def quantile_error(x: Any, y: Any) -> float:
        r = b - A @ x
        return abs(float(np.maximum(0.3 * r, -0.7 * r).sum()) - optimal) / optimal

    # y is the slope at A x - b.
    told["quantile regression"] = lambda: (
        A, lambda v, t: v, lambda v, s: np.clip(v - s * b, -0.3, 0.7), quantile_error
    )  # fmt: skip
    return made, told


def ours(build: Callable[[], Any], rtol: float, method: str) -> tuple[float, bool, str]:
    """Seconds of one whole call, whether it succeeded, and what ran."""
    began, said = time.process_time(), build()
    solve: Any = ss.solve if isinstance(said, ss.SaddleProblem) else ss.minimize
    found = solve(said, rtol=rtol, method=method, time_limit=30.0)
    return time.process_time() - began, found.success, found.plans[0].method


def theirs(build: Callable[[], Any]) -> tuple[float, bool, str]:
    """The same for CVXPY; its tolerance stays 1e-8, as its users have it."""
    began = time.process_time()
    n, objective, rules = build()
    x = cp.Variable(n)
    problem = cp.Problem(cp.Minimize(objective(x)), [rule(x) for rule in rules])
    problem.solve(solver="CLARABEL")
    return time.process_time() - began, problem.status == "optimal", "Clarabel"


def numpy(told: Told, rtol: float, weight: float) -> tuple[float, bool, str]:
    """The same for the program in NumPy, with this weight."""
    began = time.process_time()
    success = restarted_pdhg(*told(), rtol, weight)
    return time.process_time() - began, success, f"NumPy, w = {weight:g}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    rows = []
    made, told = families(0)
    for name, (build, other) in made.items():
        for rtol in TARGETS:
            calls = {
                "auto": lambda build=build, rtol=rtol: ours(build, rtol, "auto"),
                "products alone": lambda build=build, rtol=rtol: ours(build, rtol, "adaptive"),
                "CVXPY": lambda other=other: theirs(other),
            }
            if name in told:
                # Tuned beforehand, by what the repeats will be judged by.
                tried = [(numpy(told[name], rtol, w), w) for w in WEIGHTS]
                weight = min(tried, key=lambda one: (not one[0][1], one[0][0]))[1]
                calls["NumPy"] = lambda name=name, rtol=rtol, weight=weight: numpy(told[name], rtol, weight)
            row: dict[str, Any] = {"problem": name, "rtol": rtol}
            if rtol < TARGETS[0]:
                row["CVXPY"] = next(known["CVXPY"] for known in rows if known["problem"] == name)
                del calls["CVXPY"]
            for turn in range(arguments.repeats):
                for label, call in calls.items():
                    if turn and row[label]["seconds"] > 5.0:
                        continue
                    seconds, success, ran = call()
                    best = min(seconds, row[label]["seconds"]) if turn else seconds
                    row[label] = {"seconds": round(best, 4), "success": bool(success), "ran": ran}
            rows.append(row)
            print(
                f"{name:30} {rtol:.0e}",
                *(f"{k} {row[k]['seconds']:8.3f} {row[k]['success']}" for k in calls),
                row["auto"]["ran"],
                flush=True,
            )
    if arguments.out:
        command = f"OMP_NUM_THREADS=1 python -m benchmarks.programs --repeats {arguments.repeats}"
        arguments.out.write_text(json.dumps({"command": command, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
