"""Problems whose every product with A, C and B is counted where it is made."""

import numpy as np

import saddleslide as ss
from support import Counter, with_spectrum


class Watched:
    """A matrix behind two counted callables."""

    def __init__(self, matrix):
        self.matrix = matrix
        self.forward, self.adjoint = Counter(lambda x: matrix @ x), Counter(lambda y: matrix.T @ y)
        rows, columns = matrix.shape
        norm = float(np.linalg.norm(matrix, 2))
        self.coupling = ss.operators.as_operator(
            (self.forward, self.adjoint), x_shape=(columns,), y_shape=(rows,), norm=norm
        )

    @property
    def products(self):
        return self.forward.count + self.adjoint.count


class Both:
    """Least squares on both sides with condition numbers about kappa, every product counted."""

    def __init__(self, kappa_x, kappa_y, reach=None, seed=0, n=30, m=20, norm=1.0):
        rng = np.random.default_rng(seed)
        A = with_spectrum(np.geomspace(1.0, kappa_x**-0.5, n), n + 5, n, rng)
        C = with_spectrum(np.geomspace(1.0, kappa_y**-0.5, m), m + 5, m, rng)
        B = rng.standard_normal((m, n))
        B *= norm / np.linalg.norm(B, 2)
        self.a, self.c, self.ridges = rng.standard_normal(n + 5), rng.standard_normal(m + 5), (1 / kappa_x, 1 / kappa_y)
        self.A, self.C, self.B = Watched(A), Watched(C), Watched(B)
        self.problem = ss.SaddleProblem(
            f=ss.functions.LeastSquares(self.A.coupling, self.a, ridge=self.ridges[0]),
            g=ss.functions.LeastSquares(self.C.coupling, self.c, ridge=self.ridges[1]),
            B=self.B.coupling,
            X=ss.domains.FullSpace(n) if reach is None else ss.domains.Box(-reach, reach, shape=n),
            Y=ss.domains.FullSpace(m) if reach is None else ss.domains.Box(-reach, reach, shape=m),
        )

    def truth(self):
        """The saddle value on full spaces by one linear solve."""
        A, C, B = self.A.matrix, self.C.matrix, self.B.matrix
        H, K = A.T @ A + self.ridges[0] * np.eye(A.shape[1]), C.T @ C + self.ridges[1] * np.eye(C.shape[1])
        z = np.linalg.solve(np.block([[H, B.T], [-B, K]]), np.concatenate([A.T @ self.a, C.T @ self.c]))
        x, y = z[: len(H)], z[len(H) :]
        f = 0.5 * np.sum((A @ x - self.a) ** 2) + 0.5 * self.ridges[0] * x @ x
        g = 0.5 * np.sum((C @ y - self.c) ** 2) + 0.5 * self.ridges[1] * y @ y
        return float(f + y @ B @ x - g)
