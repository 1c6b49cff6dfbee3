"""A tomography problem as every peer reads it: plain arrays, and the steps that all of them share.

min over x, max over y with |y| <= weight of loss(Ax) + ridge/2 |x|^2 + <y, Dx> - beta/2 |y|^2 - 1/2 <y, Ny>
- power sum |y|^1.5 / 1.5. The loss is 1/2 |q - data|^2, or the Poisson likelihood of counts. N and power may be absent.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.fft
import scipy.sparse

PROBES, FLOOR = 2, 1e-3


@dataclass(frozen=True)
class Picture:
    """The data of a problem; `N` is None where g has no nonlocal part, `intensity` is 0 for least squares."""

    n: int
    A: Any
    AT: Any
    D: Any
    DT: Any
    data: np.ndarray
    ridge: float
    weight: float
    beta: float
    N: Any
    N_norm: float
    power: float
    intensity: float
    attenuation: float

    def loss(self, q: np.ndarray) -> tuple[float, np.ndarray]:
        """Value and gradient of the data term at q = Ax."""
        if self.intensity == 0.0:
            residual = q - self.data
            return 0.5 * float(residual @ residual), residual
        k, scale = self.attenuation, 1.0 / (self.intensity * self.attenuation**2)
        expected = self.intensity * np.exp(-k * q)
        return scale * float(expected.sum() + k * (self.data @ q)), scale * k * (self.data - expected)

    def loss_hessian(self, q: np.ndarray) -> np.ndarray | None:
        """Its diagonal Hessian; None stands for ones."""
        return None if self.intensity == 0.0 else np.exp(-self.attenuation * q)

    def data_step(self, u: np.ndarray, sigma: float, near: np.ndarray) -> np.ndarray:
        """Proximal step of sigma times the conjugate of the loss; `near`: where Newton's method starts (k q)."""
        if self.intensity == 0.0:
            return (u - sigma * self.data) / (1.0 + sigma)
        # q + (1/sigma) loss'(q) = u/sigma in z = k q: z - a = t exp(-z), a concave equation.
        k, t = self.attenuation, 1.0 / sigma
        a = k * t * u - (t / self.intensity) * self.data
        for _ in range(4):
            pull = t * np.exp(-near)
            near += (a + pull - near) / (1.0 + pull)
        return u - sigma * near / k

    def dual_step(self, v: np.ndarray, sigma: float, y: np.ndarray) -> np.ndarray:
        """Proximal step of sigma g at v; the nonlocal part by one proximal gradient step from y."""
        stiffness, pull = 1.0 / sigma + self.beta, v / sigma
        if self.N is not None:
            stiffness += self.N_norm
            pull += self.N_norm * y - self.N @ y
        return self._entrywise(pull, stiffness)

    def reply(self, slope: np.ndarray, y: np.ndarray, tolerance: float = 1e-9) -> np.ndarray:
        """The maximiser of <y, slope> - g(y): closed form, or accelerated proximal gradients from y."""
        if self.N is None:
            return self._entrywise(slope, self.beta)
        L = self.beta + self.N_norm
        root = np.sqrt(L / self.beta)
        momentum, ahead = (root - 1.0) / (root + 1.0), y
        for _ in range(200):
            new = self._entrywise(slope + self.N_norm * ahead - self.N @ ahead, L)
            moved = float(np.abs(new - y).max())
            ahead, y = new + momentum * (new - y), new
            if moved <= tolerance * self.weight:
                break
        return y

    def _entrywise(self, pull: np.ndarray, stiffness: float) -> np.ndarray:
        """The minimiser of stiffness/2 y^2 + power |y|^1.5 / 1.5 - pull y on the box."""
        if self.power > 0.0:
            size = np.abs(pull)
            root = 2.0 * size / (self.power + np.sqrt(self.power**2 + 4.0 * stiffness * size) + 1e-300)
            pull, stiffness = np.copysign(root * root, pull), 1.0
        return np.clip(pull / stiffness, -self.weight, self.weight)

    def dual_value(self, y: np.ndarray) -> float:
        """g(y)."""
        value = 0.5 * self.beta * float(y @ y)
        if self.N is not None:
            value += 0.5 * float(y @ (self.N @ y))
        return value + (self.power * float(np.sum(np.abs(y) ** 1.5)) / 1.5 if self.power > 0.0 else 0.0)

    def cosine(self, x: np.ndarray) -> np.ndarray:
        return scipy.fft.dctn(x.reshape(self.n, self.n), norm="ortho").ravel()

    def picture(self, X: np.ndarray) -> np.ndarray:
        return scipy.fft.idctn(X.reshape(self.n, self.n), norm="ortho").ravel()

    def difference_symbol(self) -> np.ndarray:
        """Eigenvalues of D^T D in the cosine basis."""
        line = 2.0 - 2.0 * np.cos(np.pi * np.arange(self.n) / self.n)
        return (line[:, None] + line[None]).ravel()

    def spectrum(self) -> np.ndarray:
        """Eigenvalues of a fit to the Hessian of f at 0 in the cosine basis: random signs, averaged over shells."""
        rng, diagonal, n = np.random.default_rng(0), np.zeros(self.n**2), self.n
        hessian = self.loss_hessian(np.zeros(self.data.size))
        for _ in range(PROBES):
            signs = rng.choice([-1.0, 1.0], size=n * n)
            q = self.A @ self.picture(signs)
            diagonal += signs * self.cosine(self.AT @ (q if hessian is None else hessian * q))
        rows, columns = np.ogrid[:n, :n]
        radius = np.sqrt(rows**2.0 + columns**2.0).ravel()
        shell = np.rint(radius).astype(np.intp)
        profile = np.bincount(shell, diagonal / PROBES) / np.maximum(np.bincount(shell), 1)
        smooth = np.interp(radius, np.arange(profile.size), profile)
        return np.maximum(smooth, FLOOR * smooth.max()) + self.ridge


NUMBERS = ("n", "ridge", "weight", "beta", "N_norm", "power", "intensity", "attenuation")


def save(path: Path, picture: Picture) -> None:
    fields: dict[str, Any] = {name: getattr(picture, name) for name in NUMBERS} | {"data": picture.data}
    for name in ("A", "D", "N"):
        matrix = getattr(picture, name)
        if matrix is not None:
            fields |= {f"{name}_{part}": getattr(matrix, part) for part in ("data", "indices", "indptr", "shape")}
    np.savez(path, **fields)


def load(path: str | Path) -> Picture:
    with np.load(path) as held:
        A, D, N = (_matrix(held, name) for name in "ADN")
        numbers = {name: float(held[name]) for name in NUMBERS} | {"n": int(held["n"])}
        return Picture(A=A, AT=rows(A.T), D=D, DT=rows(D.T), N=N, data=held["data"], **numbers)


def rows(matrix: Any) -> Any:
    """By rows, with 32-bit indices: what SciPy's products are quickest with."""
    made = scipy.sparse.csr_array(matrix, dtype=np.float64)
    made.indices, made.indptr = made.indices.astype(np.int32), made.indptr.astype(np.int32)
    return made


def _matrix(held: Any, name: str) -> Any:
    if f"{name}_data" not in held:
        return None
    parts = tuple(held[f"{name}_{part}"] for part in ("data", "indices", "indptr"))
    return rows(scipy.sparse.csr_array(parts, shape=tuple(held[f"{name}_shape"])))
