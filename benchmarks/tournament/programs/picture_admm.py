"""ADMM on w = Dx with a few warm steps of (preconditioned) conjugate gradients for x: plain NumPy.

Setting: penalty rho, CG steps, over-relaxation, and whether CG is preconditioned in the cosine basis. The gradient of f
is carried along: for least squares a CG step costs one A and one A^T and nothing else does.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from picture import Picture, load
from serving import Recorder, serve

# A residual that is all rounding: far below any target.
TINY = 1e-60


class Admm:
    def __init__(self, picture: Picture, setting: dict[str, Any]) -> None:
        self.p, self.rho, self.steps = picture, float(setting["rho"]), int(setting["steps"])
        self.relax = float(setting["relax"])
        self.x, self.y = np.zeros(picture.n**2), np.zeros(2 * picture.n**2)
        self.Dx, self.w, self.u = np.zeros_like(self.y), np.zeros_like(self.y), np.zeros_like(self.y)
        self.q = np.zeros(picture.data.size)
        self.hessian = picture.loss_hessian(self.q)
        self.gradient = picture.AT @ picture.loss(self.q)[1]
        self.inverse = None
        if setting["spectral"]:
            self.inverse = 1.0 / (picture.spectrum() + self.rho * picture.difference_symbol())

    def precondition(self, r: np.ndarray) -> np.ndarray:
        if self.inverse is None:
            return r
        return self.p.picture(self.inverse * self.p.cosine(r))

    def improve_x(self) -> None:
        """One Newton step on f(x) + rho/2 |Dx - w + u|^2 by CG; for least squares that is all of it."""
        p, rho = self.p, self.rho
        if self.hessian is not None:
            self.hessian = p.loss_hessian(self.q)
            self.gradient = p.AT @ p.loss(self.q)[1] + p.ridge * self.x
        r = -self.gradient - rho * (p.DT @ (self.Dx - self.w + self.u))
        z = self.precondition(r)
        d, size = z, float(r @ z)
        for left in range(self.steps, 0, -1):
            if not size > TINY:
                return
            Ad, Dd = p.A @ d, p.D @ d
            Hd = p.AT @ (Ad if self.hessian is None else self.hessian * Ad) + p.ridge * d
            step = size / (float(d @ Hd) + rho * float(Dd @ Dd))
            self.x = self.x + step * d
            self.Dx = self.Dx + step * Dd
            self.gradient += step * Hd
            if self.hessian is not None:
                self.q += step * Ad
            if left == 1:
                return
            r -= step * (Hd + rho * (p.DT @ Dd))
            z = self.precondition(r)
            new = float(r @ z)
            d, size = z + (new / size) * d, new

    def step(self) -> None:
        self.improve_x()
        v = self.relax * self.Dx + (1.0 - self.relax) * self.w + self.u if self.relax != 1.0 else self.Dx + self.u
        self.y = self.p.dual_step(self.rho * v, self.rho, self.y)
        self.u = self.y / self.rho
        self.w = v - self.u


def method(picture: Picture, setting: dict[str, Any], recorder: Recorder) -> None:
    admm = Admm(picture, setting)
    recorder.ready()
    while True:
        admm.step()
        recorder.step(admm.x, admm.y)


if __name__ == "__main__":
    serve(method, load, f"numpy {np.__version__}")
