"""The problem as every peer reads it: plain arrays, NumPy and SciPy only.

min over x in X, max over y in Y of f(x) + <y, Bx> - g(y), with f(x) = 1/2 |Ax - b|^2 + 1/2 <d x, x> + <c, x> and
g(y) = beta/2 |y|^2 + <h, y>. X is a box or a simplex; Y is a box, a simplex or a ball.
"""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

GROWTH = 1.15


@dataclass(frozen=True)
class Set:
    """ "box" (lower, upper), "simplex", or "ball" (upper is the radius)."""

    kind: str
    lower: np.ndarray
    upper: np.ndarray

    @property
    def free(self) -> bool:
        return self.kind == "box" and bool(np.all(np.isinf(self.lower)) and np.all(np.isinf(self.upper)))

    def project(self, v: np.ndarray) -> np.ndarray:
        if self.kind == "box":
            return np.clip(v, self.lower, self.upper)
        if self.kind == "ball":
            return v * min(1.0, float(self.upper) / max(float(np.linalg.norm(v)), 1e-300))
        ordered = np.sort(v)[::-1]
        excess = (np.cumsum(ordered) - 1.0) / np.arange(1, v.size + 1)
        return np.maximum(v - excess[np.count_nonzero(ordered > excess) - 1], 0.0)


@dataclass(frozen=True)
class Form:
    """The data of a problem; A is None where f has no data term."""

    A: Any
    b: np.ndarray
    d: np.ndarray
    c: np.ndarray
    B: Any
    h: np.ndarray
    beta: float
    X: Set
    Y: Set

    def dual_step(self, v: np.ndarray, sigma: float) -> np.ndarray:
        """The proximal step of sigma g on Y."""
        return self.Y.project((v - sigma * self.h) / (1.0 + sigma * self.beta))

    def primal_step(self, v: np.ndarray, tau: float) -> np.ndarray:
        """The proximal step of tau (d/2 x^2 + <c, x>) on X; X a simplex needs all d equal."""
        return self.X.project((v - tau * self.c) / (1.0 + tau * self.d))


def save(path: Path, form: Form) -> None:
    fields: dict[str, Any] = {"b": form.b, "d": form.d, "c": form.c, "h": form.h, "beta": form.beta}
    for name, matrix in (("A", form.A), ("B", form.B)):
        if matrix is None:
            continue
        if scipy.sparse.issparse(matrix):
            csr = scipy.sparse.csr_array(matrix)
            fields |= {f"{name}_data": csr.data, f"{name}_indices": csr.indices, f"{name}_indptr": csr.indptr}
            fields[f"{name}_shape"] = csr.shape
        else:
            fields[name] = np.asarray(matrix)
    for name, part in (("X", form.X), ("Y", form.Y)):
        fields |= {f"{name}_kind": part.kind, f"{name}_lower": part.lower, f"{name}_upper": part.upper}
    np.savez(path, **fields)


def load(path: str | Path) -> Form:
    with np.load(path) as data:
        sets = [Set(str(data[f"{n}_kind"]), data[f"{n}_lower"], data[f"{n}_upper"]) for n in "XY"]
        A, B = (_matrix(data, name) for name in "AB")
        return Form(A, data["b"], data["d"], data["c"], B, data["h"], float(data["beta"]), *sets)


def _matrix(data: Any, name: str) -> Any:
    if name in data:
        return data[name]
    if f"{name}_data" not in data:
        return None
    parts = tuple(data[f"{name}_{part}"] for part in ("data", "indices", "indptr"))
    return scipy.sparse.csr_array(parts, shape=tuple(data[f"{name}_shape"]))


class Products:
    """Counted products. `f` counts pairs of A and its transpose as one; `B` counts B and its transpose."""

    def __init__(self, form: Form) -> None:
        self.form, self.f, self.products_B = form, 0.0, 0
        self.transposed = {n: None if m is None else _rows(m.T) for n, m in (("A", form.A), ("B", form.B))}

    def A(self, x: np.ndarray) -> np.ndarray:
        self.f += 0.5
        return self.form.A @ x

    def AT(self, r: np.ndarray) -> np.ndarray:
        self.f += 0.5
        return self.transposed["A"] @ r

    def B(self, x: np.ndarray) -> np.ndarray:
        self.products_B += 1
        return self.form.B @ x

    def BT(self, y: np.ndarray) -> np.ndarray:
        self.products_B += 1
        return self.transposed["B"] @ y

    def stacked(self, x: np.ndarray) -> np.ndarray:
        """[A; B] x, the coupling of primal-dual methods that know only proximal steps."""
        return self.B(x) if self.form.A is None else np.concatenate([self.A(x), self.B(x)])

    def stacked_T(self, u: np.ndarray) -> np.ndarray:
        rows = self.form.b.size
        return self.BT(u) if self.form.A is None else self.AT(u[:rows]) + self.BT(u[rows:])


def _rows(matrix: Any) -> Any:
    return scipy.sparse.csr_array(matrix) if scipy.sparse.issparse(matrix) else np.ascontiguousarray(matrix)


def norm_of(form: Form) -> float:
    """Norm of [A; B], by the power method; not part of a peer's time."""
    products, v = Products(form), np.random.default_rng(0).standard_normal(form.c.size)
    for _ in range(200):
        v = products.stacked_T(products.stacked(v / np.linalg.norm(v)))
    return 1.01 * float(np.sqrt(np.linalg.norm(v)))


class Ended(Exception):
    """The peer has used up its time or its iterations."""


class Recorder:
    """Keeps points at growing iteration counts. The clock stands still while a point is kept."""

    def __init__(self, products: Products, seconds: float, most: int) -> None:
        self.products, self.limit, self.most = products, seconds, most
        self.points: list[dict[str, Any]] = []
        self.iteration, self.next, self.spent, self.since = 0, 1, 0.0, time.perf_counter()

    def step(self, x: Any, y: Any) -> None:
        """To be called once an iteration; x and y are arrays, or functions that make them at no cost to the peer."""
        self.iteration += 1
        counts = self.products.f, self.products.products_B
        self.spent += time.perf_counter() - self.since
        if self.iteration >= self.next or self.spent > self.limit:
            self.next = max(self.iteration + 1, int(GROWTH * self.iteration))
            self.points.append(
                {
                    "x": np.array(x() if callable(x) else x),
                    "y": np.array(y() if callable(y) else y),
                    "seconds": self.spent,
                    "iterations": self.iteration,
                    "f": counts[0],
                    "B": counts[1],
                }
            )
            self.products.f, self.products.products_B = counts
        if self.spent > self.limit or self.iteration >= self.most:
            raise Ended
        self.since = time.perf_counter()


@dataclass(frozen=True)
class Task:
    """The command line of a program: problem, where the points go, seconds, setting, most iterations."""

    form: Form
    out: str
    seconds: float
    setting: str
    most: int

    def recorder(self, products: Products) -> Recorder:
        return Recorder(products, self.seconds, self.most)


def task() -> Task:
    problem, out, seconds, setting, most = sys.argv[1:]
    return Task(load(problem), out, float(seconds), setting, int(most))


def write(path: str | Path, points: list[dict[str, Any]], note: str) -> None:
    """Points of a peer; counts that it can not give are NaN. `own`: without certificates, for those who make them."""
    fields: dict[str, Any] = {"note": note}
    for name in ("x", "y", "seconds", "iterations", "f", "B", "own_f", "own_B", "setting"):
        fields[name] = np.array([point.get(name, np.nan) for point in points], dtype=float)
    np.savez(path, **fields)
