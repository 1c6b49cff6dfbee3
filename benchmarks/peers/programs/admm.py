"""ADMM on w = Bx (and a copy of x where X is not the whole space), warm conjugate gradients for x: plain NumPy."""

from __future__ import annotations

import contextlib

import numpy as np
from form import Ended, Form, Products, task, write

STEPS = 5


class Admm:
    """The setting is the penalty rho, relative to 1."""

    def __init__(self, form: Form, products: Products, rho: float) -> None:
        self.form, self.products, self.rho = form, products, rho
        self.copies = not form.X.free
        n, m = form.c.size, form.h.size
        self.x, self.y = form.X.project(np.zeros(n)), form.Y.project(np.zeros(m))
        self.w, self.u = form.B @ self.x, self.y / rho
        self.w_x, self.u_x = self.x.copy(), np.zeros(n)
        self.fixed = -form.c if form.A is None else products.AT(form.b) - form.c

    def normal(self, v: np.ndarray) -> np.ndarray:
        """(A^T A + d + rho B^T B + rho) v."""
        out = self.form.d * v + self.rho * self.products.BT(self.products.B(v)) + self.rho * self.copies * v
        return out if self.form.A is None else out + self.products.AT(self.products.A(v))

    def solve(self, right: np.ndarray) -> None:
        residual = right - self.normal(self.x)
        p, square = residual.copy(), float(residual @ residual)
        for _ in range(STEPS):
            if square <= 1e-30 * float(right @ right):
                return
            Hp = self.normal(p)
            step = square / float(p @ Hp)
            self.x = self.x + step * p
            residual -= step * Hp
            new = float(residual @ residual)
            p, square = residual + (new / square) * p, new

    def step(self) -> None:
        rho = self.rho
        right = self.fixed + rho * self.products.BT(self.w - self.u) + rho * self.copies * (self.w_x - self.u_x)
        self.solve(right)
        v = self.products.B(self.x) + self.u
        self.y = self.form.dual_step(rho * v, rho)
        self.w, self.u = v - self.y / rho, self.y / rho
        if self.copies:
            v = self.x + self.u_x
            self.w_x = self.form.X.project(v)
            self.u_x = v - self.w_x

    @property
    def point(self) -> np.ndarray:
        return self.w_x if self.copies else self.x


def main() -> None:
    asked = task()
    products = Products(asked.form)
    recorder = asked.recorder(products)
    method = Admm(asked.form, products, float(asked.setting))
    with contextlib.suppress(Ended):
        while True:
            method.step()
            recorder.step(method.point, method.y)
    write(asked.out, recorder.points, f"numpy {np.__version__}, rho {asked.setting}, {STEPS} steps of CG")


if __name__ == "__main__":
    main()
