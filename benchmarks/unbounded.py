"""Problems without bounded sets or moduli: which claims, how late, and no word of success where there is no solution.

    python -m benchmarks.unbounded [--seeds 2] [--out benchmarks/results/unbounded.json]

Most problems are said twice, as a SaddleProblem and as an objective for ss.minimize, and are 1/2 |Ax - b|^2 + <w,
|x|> + <c, x> over x in R^n or x >= 0, plus the sum of max(low r, high r) of r = Bx - d, or with Bx = d, or Bx <= d;
others have norms of groups, of matrices and of second differences. Values come from Clarabel at 1e-11. The true error
of a point is its objective, violated constraints at twice the size of the multipliers, less that value; lateness is
calls until success over calls after which the true error stays below the target. What the plan has foreseen must not
be contradicted.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from pathlib import Path
from statistics import median
from typing import Any

import clarabel
import cvxpy as cp
import numpy as np
import scipy.sparse as sparse

import saddleslide as ss

RTOL = 1e-4
F, D = ss.functions, ss.domains
LIMITS = {"max_steps": 20_000, "time_limit": 20.0}
Data = dict[str, Any]


def differences(n: int) -> Any:
    return np.eye(n)[:-1] - np.eye(n, k=1)[:-1]


def data(rng: Any, m: int, n: int) -> Data:
    A = rng.standard_normal((m, n))
    return {"A": A, "b": A @ (rng.standard_normal(n) * (rng.random(n) < 0.3)) + 0.1 * rng.standard_normal(m)}


def edges(n: int, rng: Any) -> Any:
    """Incidence matrix of a ring with chords, both directions."""
    pairs = [(i, (i + 1) % n) for i in range(n)] + [(i, int(rng.integers(n))) for i in range(n)]
    pairs = [pair for i, j in pairs if i != j for pair in ((i, j), (j, i))]
    B = np.zeros((n, len(pairs)))
    for k, (i, j) in enumerate(pairs):
        B[i, k], B[j, k] = 1.0, -1.0
    return B


def plan_sums(n: int) -> Any:
    return np.vstack([np.kron(np.eye(n), np.ones((1, n))), np.kron(np.ones((1, n)), np.eye(n))])


def solvable(rng: Any) -> dict[str, Data]:
    """One problem of each kind; `rows` says what Bx - d is for: "sum", "equal" or "below"."""
    n, made = 20, {}
    made["lasso, p > n"] = data(rng, 10, 30) | {"w": np.full(30, 1.0)}
    made["lasso, uneven weights"] = data(rng, 10, 30) | {"w": 0.5 + 2.0 * rng.random(30)}
    made["lasso, x >= 0"] = data(rng, 10, 30) | {"w": np.full(30, 0.5), "positive": True}
    labels = np.sign(rng.standard_normal(25))
    rows = -labels[:, None] * rng.standard_normal((25, 8))
    made["l1 support vectors"] = {"w": np.full(8, 1.0), "B": rows, "d": np.full(25, -1.0), "sides": (0.0, 1.0)}
    B = rng.standard_normal((30, 5))
    made["quantile regression"] = {"B": B, "d": rng.standard_normal(30), "sides": (-0.3, 0.7)}
    made["least absolute deviations"] = {
        "B": B,
        "d": B @ rng.standard_normal(5) + rng.standard_normal(30),
        "sides": (-1.0, 1.0),
    }
    B, x = rng.random((6, n)), rng.random(n) * (rng.random(n) < 0.3)
    made["linear program"] = {"c": rng.random(n), "B": B, "d": B @ x, "rows": "equal", "positive": True}
    made["packing"] = {"c": -rng.random(n), "B": B, "d": np.ones(6), "rows": "below", "positive": True}
    made["covering"] = {"c": 0.1 + rng.random(n), "B": -B, "d": -np.ones(6), "rows": "below", "positive": True}
    G = np.vstack([rng.standard_normal((20, 5)), np.eye(5), -np.eye(5)])
    made["program on the free space"] = {"c": rng.standard_normal(5), "B": G, "d": np.full(30, 1.0), "rows": "below"}
    B = rng.standard_normal((8, n))
    x = rng.standard_normal(n) * (rng.random(n) < 0.2)
    made["basis pursuit"] = {"w": np.ones(n), "B": B, "d": B @ x + 0.1 * rng.standard_normal(8), "rows": "equal"}
    made["variation, x >= 0"] = data(rng, 12, n) | {"B": differences(n), "sides": (-0.5, 0.5), "positive": True}
    A = rng.random((12, n))
    truth = {"A": A, "b": A @ np.repeat(rng.random(4), 5)}
    made["variation, counts"] = truth | {"B": differences(n), "sides": (-0.1, 0.1), "positive": True}
    kernel = np.exp(-0.5 * (np.arange(n)[:, None] - np.arange(n)) ** 2 / 2.0)
    blurred = kernel @ np.repeat(rng.standard_normal(4), 5) + 0.05 * rng.standard_normal(n)
    made["deblurring"] = {"A": kernel, "b": blurred, "B": differences(n), "sides": (-0.1, 0.1)}
    made["fused lasso"] = data(rng, 10, n) | {"w": np.full(n, 0.5), "B": differences(n), "sides": (-0.5, 0.5)}
    sums = np.concatenate([rng.dirichlet(np.ones(4)), rng.dirichlet(np.ones(4))])
    made["transport"] = {"c": 0.1 + rng.random(16), "B": plan_sums(4), "d": sums, "rows": "equal", "positive": True}
    ring = 2.0 * np.eye(5) - np.roll(np.eye(5), 1, 0) - np.roll(np.eye(5), 1, 1)
    blocks = np.zeros((20, 15))
    for i in range(5):
        blocks[4 * i : 4 * i + 4, 3 * i : 3 * i + 3] = rng.standard_normal((4, 3)) / math.sqrt(5.0)
    agents = {"A": blocks, "b": rng.standard_normal(20)}
    made["consensus"] = agents | {"B": np.kron(ring, np.eye(3)), "d": np.zeros(15), "rows": "equal"}
    B = edges(6, rng)
    supply = rng.standard_normal(6)
    cost = 0.1 + rng.random(B.shape[1])
    flow = {"c": cost, "B": B, "d": supply - supply.mean(), "rows": "equal", "positive": True}
    made["flow of least cost"] = flow
    B = rng.standard_normal((4, n))
    made["least squares with equalities"] = data(rng, 25, n) | {"B": B, "d": rng.standard_normal(4), "rows": "equal"}
    made["underdetermined, equalities"] = data(rng, 10, n) | {
        "w": np.full(n, 0.3),
        "B": B,
        "d": rng.standard_normal(4),
        "rows": "equal",
    }
    made["least squares below"] = data(rng, 25, n) | {"B": B, "d": -0.1 * rng.random(4), "rows": "below"}
    return made


def unsolvable(rng: Any) -> dict[str, tuple[Data, str]]:
    """Problems without a solution by a margin, and what they are; "either" where both are true."""
    n, made = 10, {}
    B = rng.standard_normal((4, n))
    twice, off = np.vstack([B, B[:1] + B[1:2]]), np.concatenate([B @ rng.random(n), [50.0]])
    made["rows that contradict"] = (
        {"A": np.eye(n), "b": np.ones(n), "B": twice, "d": off, "rows": "equal"},
        "INFEASIBLE",
    )
    made["the same with prices"] = (
        {"c": rng.random(n), "B": twice, "d": off, "rows": "equal", "positive": True},
        "INFEASIBLE",
    )
    made["negative sums of x >= 0"] = (
        {"c": rng.random(n), "B": np.abs(B), "d": -np.ones(4), "rows": "equal", "positive": True},
        "INFEASIBLE",
    )
    both = np.vstack([B, -B[:1]])
    made["below and above"] = (
        {"A": np.eye(n), "b": np.ones(n), "B": both, "d": np.array([1.0, 1, 1, 1, -3]), "rows": "below"},
        "INFEASIBLE",
    )
    sums = np.concatenate([np.full(4, 0.25), np.full(4, 0.35)])
    made["unbalanced transport"] = (
        {"c": rng.random(16), "B": plan_sums(4), "d": sums, "rows": "equal", "positive": True},
        "INFEASIBLE",
    )
    E = edges(6, rng)
    made["unbalanced flow"] = (
        {"c": rng.random(E.shape[1]), "B": E, "d": np.ones(6), "rows": "equal", "positive": True},
        "INFEASIBLE",
    )
    made["free prices"] = (
        {"c": rng.standard_normal(n), "B": B, "d": rng.standard_normal(4), "rows": "equal"},
        "UNBOUNDED",
    )
    made["a gain without end"] = (
        {"c": -np.ones(n), "B": B - B.mean(axis=1)[:, None], "d": np.zeros(4), "rows": "equal", "positive": True},
        "UNBOUNDED",
    )
    made["rows that never bind"] = (
        {"c": -rng.random(n), "B": -np.abs(B), "d": np.ones(4), "rows": "below", "positive": True},
        "UNBOUNDED",
    )
    made["a slope beside a sum"] = (
        {"c": np.full(n, 5.0), "B": 0.1 * B, "d": np.zeros(4), "sides": (-1.0, 1.0)},
        "UNBOUNDED",
    )
    return made


def saddle(of: Data) -> ss.SaddleProblem:
    n = (of["A"] if "A" in of else of["B"] if "B" in of else of["w"]).shape[-1]
    parts = [F.LeastSquares(of["A"], of["b"])] if "A" in of else []
    parts += [F.Power(0.0, weight=of["w"])] if "w" in of else []
    parts += [F.Linear(of["c"])] if "c" in of else []
    X = D.NonNegative(n) if of.get("positive") else D.FullSpace(n)
    B, d = of.get("B", np.zeros((1, n))), of.get("d")
    m = B.shape[0]
    rows = {"equal": D.FullSpace(m), "below": D.NonNegative(m)}
    Y = rows[of["rows"]] if "rows" in of else D.Box(*of.get("sides", (0.0, 0.0)), shape=m)
    return ss.SaddleProblem(
        f=sum(parts) if parts else F.Zero(), g=F.Zero() if d is None else F.Linear(d), B=B, X=X, Y=Y
    )


def trusted(of: Data) -> tuple[float, float]:
    """The value by Clarabel at 1e-11, and the size of the multipliers of the rows."""
    n = (of["A"] if "A" in of else of["B"] if "B" in of else of["w"]).shape[-1]
    B, m = of.get("B"), 0 if of.get("B") is None else of["B"].shape[0]
    d = np.zeros(m) if of.get("d") is None else of["d"]
    sums = "sides" in of and m
    size = 2 * n + (m if sums else 0)
    q, P = np.zeros(size), np.zeros((size, size))
    q[:n] = of.get("c", 0.0)
    q[n : 2 * n] = of.get("w", 0.0) if "w" in of else 1e-300
    constant = 0.0
    if "A" in of:
        P[:n, :n], constant = of["A"].T @ of["A"], 0.5 * of["b"] @ of["b"]
        q[:n] -= of["A"].T @ of["b"]
    eye, none = np.eye(n), np.zeros((n, size - 2 * n))
    rows, right = [np.hstack([eye, -eye, none]), np.hstack([-eye, -eye, none])], [np.zeros(2 * n)]
    if of.get("positive"):
        rows, right = [*rows, np.hstack([-eye, 0.0 * eye, none])], [*right, np.zeros(n)]
    if sums:
        q[2 * n :] = 1.0
        for side in of["sides"]:
            rows, right = [*rows, np.hstack([side * B, np.zeros((m, n)), -np.eye(m)])], [*right, side * d]
    equal = of.get("rows") == "equal"
    if of.get("rows") == "below":
        rows, right = [*rows, np.hstack([B, np.zeros((m, n))])], [*right, d]
    cones = [clarabel.NonnegativeConeT(sum(row.shape[0] for row in rows))]
    if equal:
        rows, right, cones = [*rows, np.hstack([B, np.zeros((m, n))])], [*right, d], [*cones, clarabel.ZeroConeT(m)]
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-11
    found = clarabel.DefaultSolver(
        sparse.csc_matrix(np.triu(P)), q, sparse.csc_matrix(np.vstack(rows)), np.concatenate(right), cones, settings
    ).solve()
    assert "Solved" in str(found.status), found.status
    multipliers = np.asarray(found.z)[-m:] if "rows" in of else np.zeros(1)
    return found.obj_val + constant, float(np.linalg.norm(multipliers))


def error_of(of: Data, x: Any, value: float, multipliers: float) -> float:
    """How much the objective, violations counted, is above the value."""
    r = (of["B"] @ x if "B" in of else np.zeros(1)) - (0.0 if of.get("d") is None else of["d"])
    found = float(of["c"] @ x) if "c" in of else 0.0
    found += 0.5 * float(np.sum((of["A"] @ x - of["b"]) ** 2)) if "A" in of else 0.0
    found += float(of["w"] @ np.abs(x)) if "w" in of else 0.0
    if "rows" in of:
        missed = r if of["rows"] == "equal" else np.maximum(r, 0.0)
        found += 2.0 * multipliers * float(np.linalg.norm(missed))
    elif "sides" in of:
        found += float(np.sum(np.maximum(of["sides"][0] * r, of["sides"][1] * r)))
    return found - value


def objective(of: Data) -> tuple[Any, Any]:
    """The same for ss.minimize, and the set of x."""
    n = (of["A"] if "A" in of else of["B"] if "B" in of else of["w"]).shape[-1]
    parts = [F.LeastSquares(of["A"], of["b"])] if "A" in of else []
    parts += [F.L1(of["w"])] if "w" in of else []
    parts += [F.Linear(of["c"])] if "c" in of else []
    if "rows" in of:
        low = of["d"] if of["rows"] == "equal" else -np.inf
        parts += [F.Indicator(D.Box(low, of["d"])) @ of["B"]]
    elif of.get("sides") == (0.0, 1.0):
        # Only of r = 1 - <label a, x>.
        parts += [F.Hinge() @ -of["B"]]
    elif "sides" in of:
        low, high = of["sides"]
        pinball = F.Quantile(high / (high - low))
        parts += [(high - low) * (pinball if of.get("d") is None else pinball.translated(of["d"])) @ of["B"]]
    return sum(parts[1:], parts[0]), D.NonNegative(n) if of.get("positive") else D.FullSpace(n)


def norms(rng: Any) -> dict[str, tuple[Any, Any, Any]]:
    """Objectives of other terms, their sets, and the same for CVXPY."""
    n, made = 24, {}
    A = rng.standard_normal((12, n))
    b = A @ (rng.standard_normal(n) * np.repeat(rng.random(6) < 0.4, 4)) + 0.1 * rng.standard_normal(12)
    x = cp.Variable(n)
    groups = cp.sum([cp.norm(x[4 * k : 4 * k + 4]) for k in range(6)])
    least = 0.5 * cp.sum_squares(A @ x - b)
    f = F.LeastSquares(A, b, x_shape=(6, 4))
    made["group lasso"] = f + 1.5 * F.L21(axis=1), None, least + 1.5 * groups
    made["sparse group lasso"] = f + F.L21(axis=1) + 0.3 * F.L1(), None, least + groups + 0.3 * cp.norm1(x)
    made["largest entry"] = F.LeastSquares(A, b) + 2.0 * F.LInf(), None, least + 2.0 * cp.norm_inf(x)
    robust = 0.5 * F.Quantile(0.5).translated(b) @ A + 0.3 * F.L1()
    made["absolute errors, l1"] = robust, None, 0.25 * cp.norm1(A @ x - b) + 0.3 * cp.norm1(x)
    ramp = np.concatenate([np.linspace(0.0, 1.0, 10), np.linspace(2.0, 0.5, 10)]) + 0.05 * rng.standard_normal(20)
    K, u, v = differences(20), cp.Variable(20), cp.Variable(19)
    seen = np.hstack([np.eye(20), np.zeros((20, 19))])
    first, second = np.hstack([K, -np.eye(19)]), np.hstack([np.zeros((18, 20)), differences(19)])
    tgv = F.LeastSquares(seen, ramp) + 0.1 * F.L1() @ first + 0.2 * F.L1() @ second
    words = 0.5 * cp.sum_squares(u - ramp) + 0.1 * cp.norm1(K @ u - v) + 0.2 * cp.norm1(differences(19) @ v)
    made["second variation"] = tgv, None, words
    low = rng.standard_normal((6, 2)) @ rng.standard_normal((2, 6))
    mask, Z = (rng.random((6, 6)) < 0.6).astype(float), cp.Variable((6, 6))
    known = F.LeastSquares(ss.operators.Diagonal(mask), mask * low)
    words = 0.5 * cp.sum_squares(cp.multiply(mask, Z - low)) + 0.5 * cp.normNuc(Z)
    made["matrix completion"] = known + 0.5 * F.Nuclear(), D.FullSpace((6, 6)), words
    return made


def follow(run: Any, error: Any, value: float, kind: str, said: str) -> dict[str, Any]:
    """A row: what `run(callback)` ends with, and how late."""
    course: list[tuple[float, float]] = []

    def watch(result: Any) -> None:
        course.append((result.calls.f + result.calls.g + result.calls.B, error(result.x)))

    began = time.perf_counter()
    result, problem = run(watch)
    seconds = time.perf_counter() - began
    target = RTOL * abs(value)
    above = [i for i, (_, missed) in enumerate(course) if missed > target]
    calls = result.calls.f + result.calls.g + result.calls.B
    course = course or [(calls, 0.0)]
    first = course[min(above[-1] + 1, len(course) - 1)][0] if above else course[0][0]
    slack, foreseen = 1e-8 * max(abs(value), 1e-8), ss.plan(problem, rtol=RTOL).certificate
    # A claim on the whole sets that was not foreseen needs a point with a margin.
    beyond = result.status is ss.Status.SOLVED and foreseen.kind == "within a radius" and "unless" not in foreseen.why
    below = result.status is ss.Status.SOLVED_WITHIN and foreseen.kind == "global"
    return {
        "kind": kind, "said": said, "status": result.status.name, "foreseen": foreseen.kind,
        "contradicted": beyond or below or (result.success and foreseen.kind == "none"),
        "solutions": result.certificate.solutions, "calls": calls, "late": round(calls / max(first, 1.0), 3),
        "error": float(error(result.x) / abs(value)), "seconds": round(seconds, 3),
        "true": bool(result.lower - slack <= value <= result.upper + slack),
    }  # fmt: skip


def solve(of: Data, kind: str) -> list[dict[str, Any]]:
    """Both ways to say it."""
    value, multipliers = trusted(of)
    problem, (terms, X) = saddle(of), objective(of)

    def error(x: Any) -> float:
        return error_of(of, x, value, multipliers)

    def minimize(watch: Any) -> tuple[Any, Any]:
        result = ss.minimize(terms, over=X, rtol=RTOL, callback=watch, **LIMITS)
        return result, result.problem

    def as_saddle(watch: Any) -> tuple[Any, Any]:
        return ss.solve(problem, rtol=RTOL, callback=watch, **LIMITS), problem

    return [follow(as_saddle, error, value, kind, "saddle"), follow(minimize, error, value, kind, "minimize")]


def minimize(terms: Any, X: Any, words: Any, kind: str) -> dict[str, Any]:
    """One of `norms`."""
    small = {"tol_gap_abs": 1e-11, "tol_gap_rel": 1e-11, "tol_feas": 1e-11}
    value = float(cp.Problem(cp.Minimize(words)).solve(solver=cp.CLARABEL, **small))

    def run(watch: Any) -> tuple[Any, Any]:
        result = ss.minimize(terms, over=X, rtol=RTOL, callback=watch, **LIMITS)
        return result, result.problem

    return follow(run, lambda x: terms.value(x) - value, value, kind, "minimize")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/unbounded.json"))
    asked = parser.parse_args()
    rows, none = [], []
    for seed in range(asked.seeds):
        for kind, of in solvable(np.random.default_rng(seed)).items():
            rows += [{"seed": seed} | row for row in solve(of, kind)]
            print(*rows[-2:], sep="\n", flush=True)
        for kind, (terms, X, words) in norms(np.random.default_rng([seed, 1])).items():
            rows.append({"seed": seed} | minimize(terms, X, words, kind))
            print(rows[-1], flush=True)
        for kind, (of, what) in unsolvable(np.random.default_rng(seed)).items():
            terms, X = objective(of)
            short = {"rtol": RTOL, "max_steps": 3_000, "time_limit": 10.0}
            for said, result in (
                ("saddle", ss.solve(saddle(of), **short)),
                ("minimize", ss.minimize(terms, over=X, **short)),
            ):
                calls, status = result.calls.f + result.calls.g + result.calls.B, result.status.name
                none.append({"seed": seed, "kind": kind, "said": said, "is": what, "status": status, "calls": calls})
                print(none[-1], flush=True)
    success = [row for row in rows if row["status"].startswith("SOLVED")]
    late = [row["late"] for row in success]
    summary = {
        "problems": len(rows), "success": len(success), "global": sum(row["status"] == "SOLVED" for row in rows),
        "contradicted": sum(row["contradicted"] for row in rows), "late_above_5": sum(ratio > 5.0 for ratio in late),
        "bounds_true": sum(row["true"] for row in rows), "late_median": median(late), "late_largest": max(late),
        "without_solution": len(none), "named": sum(row["status"] in ("INFEASIBLE", "UNBOUNDED") for row in none),
        "called_solved": sum(row["status"].startswith("SOLVED") for row in none),
    }  # fmt: skip
    command = f"python -m benchmarks.unbounded --seeds {asked.seeds}"
    asked.out.write_text(
        json.dumps({"command": command, "summary": summary, "rows": rows, "none": none}, indent=1) + "\n"
    )
    print(summary)


if __name__ == "__main__":
    main()
