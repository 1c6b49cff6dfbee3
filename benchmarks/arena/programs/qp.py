"""The same problem as a quadratic program with a diagonal Hessian: what the LP and QP solvers get.

Variables v = (x, r = Ax - b, and slacks), 1/2 <p v, v> + <q, v>, Ev = e, lower <= v <= upper. The multipliers of the
rows `y_rows` are y. A box Y is an exact penalty: Bx - h = s + t - t' with price s^2/(2 beta) + <u, t> - <l, t'>. A
simplex Y is the largest entry of Bx.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
from form import Form, load, require
from serving import Recorder, serve

INF = np.inf


@dataclass(frozen=True)
class Program:
    """A quadratic program and where x and y are in it."""

    p: np.ndarray
    q: np.ndarray
    E: Any
    e: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    x_size: int
    y_rows: slice


def program_of(form: Form) -> Program:
    simple = form.C is None and form.loss == "squares" and form.Y.kind != "groups"
    require(
        simple and not (form.beta > 0.0 and form.Y.kind == "simplex" and form.h.any()),
        "not a quadratic program with a diagonal Hessian",
    )
    n, m = form.c.size, form.h.size
    eye, rows = scipy.sparse.eye_array(m), []
    # Columns after x: (matrix in the rows of y, Hessian, price, lower, upper).
    slacks: list[tuple[Any, float, Any, float]] = []
    if form.beta > 0.0 and form.Y.kind == "box":
        slacks.append((-eye, 1.0 / form.beta, 0.0, -INF))
    if form.Y.kind == "box":
        slacks += [(-eye, 0.0, form.Y.upper, 0.0), (eye, 0.0, -form.Y.lower, 0.0)]
    if form.Y.kind == "simplex":
        slacks += [(-np.ones((m, 1)), 0.0, 1.0, -INF), (eye, 0.0, 0.0, 0.0)]
    sizes = [block.shape[1] for block, *_ in slacks]
    k = 0 if form.A is None else form.b.size
    rows.append([form.B, zeros(m, k), *(block for block, *_ in slacks)])
    right = [form.h]
    if k:
        rows.append([form.A, -scipy.sparse.eye_array(k), *(zeros(k, size) for size in sizes)])
        right.append(form.b)
    if form.X.kind == "simplex":
        rows.append([np.ones((1, n)), zeros(1, k), *(zeros(1, size) for size in sizes)])
        right.append(np.ones(1))
    boxed = form.X.kind == "box"
    lower = [np.broadcast_to(form.X.lower, n) if boxed else np.zeros(n), np.full(k, -INF)]
    upper = [np.broadcast_to(form.X.upper, n) if boxed else np.full(n, INF), np.full(k + sum(sizes), INF)]
    E = scipy.sparse.block_array([[scipy.sparse.csr_array(block) for block in row] for row in rows], format="csc")
    hessians, prices, floors = ([column[i] for column in slacks] for i in (1, 2, 3))
    return Program(
        p=np.concatenate([form.d, np.ones(k), *map(whole, hessians, sizes)]),
        q=np.concatenate([form.c, np.zeros(k), *map(whole, prices, sizes)]),
        E=E,
        e=np.concatenate(right),
        lower=np.concatenate([*lower, *map(whole, floors, sizes)]),
        upper=np.concatenate(upper),
        x_size=n,
        y_rows=slice(0, m),
    )


def zeros(rows: int, columns: int) -> Any:
    return scipy.sparse.csr_array((rows, columns))


def whole(price: Any, size: int) -> np.ndarray:
    return np.array(np.broadcast_to(np.ravel(price) if np.size(price) > 1 else float(price), size), dtype=float)


def conic(program: Program) -> tuple[Any, Any, np.ndarray, int]:
    """P, A, b and the number of equations of: Av + s = b, s zero there and >= 0 below."""
    eye = scipy.sparse.eye_array(program.q.size, format="csr")
    below, above = np.flatnonzero(np.isfinite(program.lower)), np.flatnonzero(np.isfinite(program.upper))
    A = scipy.sparse.vstack([program.E, -eye[below], eye[above]], format="csc")
    b = np.concatenate([program.e, -program.lower[below], program.upper[above]])
    P = scipy.sparse.csc_array(scipy.sparse.diags_array(program.p))
    return P, A, b, program.e.size


Answer = tuple[np.ndarray, np.ndarray] | str
Solve = Callable[[Program, Any, float], Answer]


def solver(solve: Solve, note: str) -> None:
    """Serve a solver; its setting is a tolerance, and a run counts from the model to the solution."""

    def method(form: Form, setting: dict[str, Any], recorder: Recorder) -> None:
        made = program_of(form)
        recorder.ready()
        answer = solve(made, setting["tolerance"], recorder.limit)
        require(not isinstance(answer, str), str(answer))
        v, multipliers = answer
        recorder.step(form.X.project(v[: made.x_size]), form.Y.project(multipliers[made.y_rows]))

    serve(method, load, note, warm=False)
