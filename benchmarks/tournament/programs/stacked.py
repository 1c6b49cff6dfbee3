"""[A; sD] for primal-dual methods that know proximal steps only, in coordinates that may be spectral.

With `spectral`, x = T v where T^2 is the inverse, in the cosine basis, of the fit to A^T A plus s^2 D^T D: then the
norm of [A; sD] T is about 1 whatever s. Without, T = 1. The dual variable is (u, y / s).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from picture import Picture


class Stacked:
    def __init__(self, picture: Picture, setting: dict[str, Any]) -> None:
        self.p, self.scale, self.rows = picture, float(setting["scale"]), picture.data.size
        self.near, self.y = np.zeros(self.rows), np.zeros(2 * picture.n**2)
        self.root: Any = None
        if setting["spectral"]:
            self.root = 1.0 / np.sqrt(picture.spectrum() + self.scale**2 * picture.difference_symbol())
        self.modulus = picture.ridge if self.root is None else picture.ridge * float(np.min(self.root) ** 2)

    def point(self, v: np.ndarray) -> np.ndarray:
        return v if self.root is None else self.p.picture(self.root * v)

    def forward(self, v: np.ndarray) -> np.ndarray:
        x = self.point(v)
        return np.concatenate([self.p.A @ x, self.scale * (self.p.D @ x)])

    def adjoint(self, u: np.ndarray) -> np.ndarray:
        x = self.p.AT @ u[: self.rows] + self.scale * (self.p.DT @ u[self.rows :])
        return x if self.root is None else self.root * self.p.cosine(x)

    def primal_step(self, v: np.ndarray, tau: float) -> np.ndarray:
        """Proximal step of tau ridge/2 |x|^2."""
        ridge = self.p.ridge if self.root is None else self.p.ridge * self.root**2
        return v / (1.0 + tau * ridge)

    def dual_step(self, u: np.ndarray, sigma: float) -> np.ndarray:
        """Proximal steps of the loss and of g, for (u, y / s)."""
        s, out = self.scale, np.empty_like(u)
        out[: self.rows] = self.p.data_step(u[: self.rows], sigma, self.near)
        self.y = self.p.dual_step(s * u[self.rows :], s * s * sigma, self.y)
        out[self.rows :] = self.y / s
        return out


NORMS: dict[tuple[int, float, bool], float] = {}


def norm_of(made: Stacked) -> float:
    """Its norm by the power method, once per geometry; not part of a peer's time."""
    key = (id(made.p), made.scale, made.root is not None)
    if key not in NORMS:
        v = np.random.default_rng(0).standard_normal(made.p.n**2)
        for _ in range(100):
            v = made.adjoint(made.forward(v / np.linalg.norm(v)))
        NORMS[key] = 1.01 * float(np.sqrt(np.linalg.norm(v)))
    return NORMS[key]
