"""A problem as every program of the arena reads it: plain arrays, NumPy and SciPy only.

min over x in X of loss(Ax - b) + <d x, x>/2 + <c, x> + max over y in Y of <y, Bx - h> - beta |y|^2/2 - |Cy - e|^2/2

The loss is |q|^2/2 ("squares"), sum |q|^p / p ("power p"), or the logistic loss of labels b at Ax ("logistic"). A is
None where there is none, and so is C. X is a box or a simplex; Y is a box, a simplex or balls of groups.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

NONE = np.zeros(0)


@dataclass(frozen=True)
class Set:
    """ "box" (lower, upper), "simplex", or "groups" (the group of every entry, and the radius of each group)."""

    kind: str
    lower: np.ndarray = field(default_factory=lambda: NONE)
    upper: np.ndarray = field(default_factory=lambda: NONE)

    @property
    def free(self) -> bool:
        return self.kind == "box" and bool(np.all(np.isinf(self.lower)) and np.all(np.isinf(self.upper)))

    def project(self, v: np.ndarray) -> np.ndarray:
        if self.kind == "box":
            return np.clip(v, self.lower, self.upper)
        if self.kind == "groups":
            return v * np.minimum(1.0, self.upper / np.maximum(self.sizes(v), 1e-300))[self.lower]
        ordered = np.sort(v)[::-1]
        excess = (np.cumsum(ordered) - 1.0) / np.arange(1, v.size + 1)
        return np.maximum(v - excess[np.count_nonzero(ordered > excess) - 1], 0.0)

    def sizes(self, v: np.ndarray) -> np.ndarray:
        return np.sqrt(np.bincount(self.lower, v * v, self.upper.size))

    def support(self, s: np.ndarray) -> float:
        """max over the set of <y, s>."""
        if self.kind == "box":
            side = np.where(s > 0.0, self.upper, self.lower)
            return float(np.sum(side * s, where=s != 0.0))
        return float(self.upper @ self.sizes(s)) if self.kind == "groups" else float(s.max())


@dataclass(frozen=True)
class Form:
    """The data of a problem; `tool` says what kind of model it is, to libraries that know it by name."""

    c: np.ndarray
    d: np.ndarray
    B: Any
    h: np.ndarray
    X: Set
    Y: Set
    beta: float = 0.0
    A: Any = None
    b: np.ndarray = field(default_factory=lambda: NONE)
    loss: str = "squares"
    C: Any = None
    e: np.ndarray = field(default_factory=lambda: NONE)
    constant: float = 0.0
    tool: dict[str, Any] = field(default_factory=dict)

    @property
    def power(self) -> float:
        return float(self.loss.split()[1]) if self.loss.startswith("power") else 2.0

    def data_value(self, q: np.ndarray) -> float:
        """The loss at q = Ax."""
        if self.loss == "logistic":
            return float(np.logaddexp(0.0, -self.b * q).sum())
        return float(np.sum(np.abs(q - self.b) ** self.power)) / self.power

    def data_slope(self, q: np.ndarray) -> np.ndarray:
        if self.loss == "logistic":
            return -self.b / (1.0 + np.exp(np.clip(self.b * q, -500.0, 500.0)))
        r = q - self.b
        return r if self.loss == "squares" else np.sign(r) * np.abs(r) ** (self.power - 1.0)

    def data_dual_step(self, u: np.ndarray, sigma: float) -> np.ndarray:
        """Proximal step of sigma times the conjugate of the loss: loss'(q) where sigma q + loss'(q) = u."""
        if self.loss == "squares":
            return (u - sigma * self.b) / (1.0 + sigma)
        # s = loss'(q) is wanted, with q = (u - s) / sigma: monotone in s, so halving finds it to all digits.
        low, high = self.data_slope(u / sigma), u.copy()
        if self.loss == "logistic":
            low, high = np.minimum(0.0, -self.b), np.maximum(0.0, -self.b)
        else:
            t = u - sigma * self.b
            low, high = np.minimum(0.0, t), np.maximum(0.0, t)
        for _ in range(50):
            middle = 0.5 * (low + high)
            above = self.data_slope((u - middle) / sigma) < middle
            low, high = np.where(above, low, middle), np.where(above, middle, high)
        return 0.5 * (low + high)

    def curvature(self) -> float | None:
        """A bound on the second derivative of the loss, None where there is none."""
        return {"squares": 1.0, "logistic": 0.25}.get(self.loss)

    def smooth(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        """The part of the objective without y, and its gradient without that of the loss."""
        return 0.5 * float(self.d * x @ x) + float(self.c @ x), self.d * x + self.c

    def primal_step(self, v: np.ndarray, tau: float) -> np.ndarray:
        """The proximal step of tau (d/2 x^2 + <c, x>) on X; X a simplex needs all d equal."""
        return self.X.project((v - tau * self.c) / (1.0 + tau * self.d))

    def dual_step(self, v: np.ndarray, sigma: float) -> np.ndarray:
        """The proximal step of sigma g on Y, where C is None."""
        return self.Y.project((v - sigma * self.h) / (1.0 + sigma * self.beta))

    def reply(self, x: np.ndarray) -> np.ndarray:
        """The best y, where beta > 0 and C is None."""
        return self.Y.project((self.B @ x - self.h) / self.beta)

    def primal(self, x: np.ndarray) -> float:
        """The objective at x, the maximum over y included."""
        value = self.constant + self.smooth(x)[0] + (0.0 if self.A is None else self.data_value(self.A @ x))
        slope = self.B @ x - self.h
        if self.C is not None:
            # Y is free here.
            gram = self.C.T @ self.C + self.beta * np.eye(self.h.size)
            y = np.linalg.solve(gram, slope + self.C.T @ self.e)
            return (
                value
                + float(y @ slope)
                - 0.5 * self.beta * float(y @ y)
                - 0.5 * float(np.sum((self.C @ y - self.e) ** 2))
            )
        if self.beta == 0.0:
            return value + self.Y.support(slope)
        y = self.reply(x)
        return value + float(y @ slope) - 0.5 * self.beta * float(y @ y)

    def lower(self, y: np.ndarray) -> float:
        """min over x at y, where A is None and d is 0 or one positive number."""
        pull = self.B.T @ y + self.c
        fixed = self.constant - float(self.h @ y) - 0.5 * self.beta * float(y @ y)
        if not self.d.any():
            return fixed - self.X.support(-pull)
        x = self.X.project(-pull / self.d)
        return fixed + float(pull @ x) + 0.5 * float(self.d * x @ x)


class Unfit(Exception):
    """The program is not for this problem."""


def require(fits: bool, why: str) -> None:
    if not fits:
        raise Unfit(why)


def transposed(matrix: Any) -> Any:
    return rows(matrix.T) if scipy.sparse.issparse(matrix) else np.ascontiguousarray(matrix.T)


def rows(matrix: Any) -> Any:
    return scipy.sparse.csr_array(matrix)


class Stacked:
    """[A; B], the coupling of primal-dual methods that know only proximal steps; its norm by the power method."""

    def __init__(self, form: Form) -> None:
        require(form.C is None, "g is not simple")
        self.form, self.size = form, 0 if form.A is None else form.A.shape[0]
        self.BT, self.AT = transposed(form.B), None if form.A is None else transposed(form.A)

    def forward(self, x: np.ndarray) -> np.ndarray:
        Bx = self.form.B @ x
        return Bx if self.AT is None else np.concatenate([self.form.A @ x, Bx])

    def adjoint(self, u: np.ndarray) -> np.ndarray:
        out = self.BT @ u[self.size :]
        return out if self.AT is None else out + self.AT @ u[: self.size]

    def dual_step(self, u: np.ndarray, sigma: float) -> np.ndarray:
        y = self.form.dual_step(u[self.size :], sigma)
        return y if self.AT is None else np.concatenate([self.form.data_dual_step(u[: self.size], sigma), y])

    def norm(self, steps: int = 30) -> float:
        v = np.random.default_rng(0).standard_normal(self.form.c.size)
        for _ in range(steps):
            v = self.adjoint(self.forward(v / np.linalg.norm(v)))
        return 1.02 * float(np.sqrt(np.linalg.norm(v)))


def save(path: Path, form: Form) -> None:
    """Arrays as they are, sparse matrices by their parts."""
    held: dict[str, Any] = {"tool": json.dumps(form.tool)}
    for part in fields(form):
        value = getattr(form, part.name)
        if isinstance(value, Set):
            held |= {f"{part.name}_{name}": getattr(value, name) for name in ("kind", "lower", "upper")}
        elif scipy.sparse.issparse(value):
            csr = rows(value)
            held |= {f"{part.name}_{name}": getattr(csr, name) for name in ("data", "indices", "indptr", "shape")}
        elif value is not None and part.name != "tool":
            held[part.name] = value
    np.savez(path, **held)


def load(path: str | Path) -> Form:
    with np.load(path) as held:
        made: dict[str, Any] = {"tool": json.loads(str(held["tool"])), "loss": str(held["loss"])}
        made |= {name: Set(*(held[f"{name}_{part}"][()] for part in ("kind", "lower", "upper"))) for name in "XY"}
        made |= {name: held[name] for name in ("b", "c", "d", "e", "h")} | {
            name: float(held[name]) for name in ("beta", "constant")
        }
        for name in "ABC":
            if f"{name}_data" in held:
                parts = tuple(held[f"{name}_{part}"] for part in ("data", "indices", "indptr"))
                made[name] = scipy.sparse.csr_array(parts, shape=tuple(held[f"{name}_shape"]))
            elif name in held:
                made[name] = held[name]
        return Form(**made)
