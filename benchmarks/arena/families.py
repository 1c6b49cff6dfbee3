"""The families: data of a size, the whole call as a user writes it, and the same problem as plain arrays for the peers.

A call builds its problem anew from the data. Multipliers of constraints have a price that is larger than any of them:
every point has a finite objective.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sparse

import saddleslide as ss
from benchmarks.arena.programs.form import Form, Set

F, D = ss.functions, ss.domains
Array = np.ndarray
INF = math.inf
Ask = Callable[..., ss.Result]


@dataclass(frozen=True)
class Instance:
    """Plain arrays, and the call: `ask(tol=...)`, or with `rtol` or `reduction`."""

    form: Form
    ask: Ask


@dataclass(frozen=True)
class Family:
    """A kind of problem: its sizes, smallest first; the second is the one that all tables show."""

    name: str
    field: str
    make: Callable[[int], Instance]
    sizes: tuple[int, ...]


def box(lower: Any, upper: Any, size: int) -> Set:
    return Set("box", *(np.array(np.broadcast_to(side, size), dtype=float) for side in (lower, upper)))


def free(size: int) -> Set:
    return box(-INF, INF, size)


def normal(seed: int, *shape: int) -> Array:
    return np.random.default_rng(seed).standard_normal(shape)


def saddle(f: Any, g: Any, B: Any, X: Any, Y: Any) -> Ask:
    return lambda **target: ss.solve(ss.SaddleProblem(f=f(), g=g(), B=B(), X=X(), Y=Y()), **target)


def minimal(objective: Callable[[], Any], over: Callable[[], Any] | None = None) -> Ask:
    return lambda **target: ss.minimize(objective(), over=over() if over else None, **target)


def grid(shape: tuple[int, ...]) -> Any:
    """Forward differences along every axis, the last one first, zero at the far side."""
    blocks = []
    for axis in reversed(range(len(shape))):
        n = shape[axis]
        line = sparse.diags_array([-np.r_[np.ones(n - 1), 0.0], np.ones(n - 1)], offsets=[0, 1], shape=(n, n))
        parts = [line if k == axis else sparse.eye_array(m) for k, m in enumerate(shape)]
        block = parts[0]
        for part in parts[1:]:
            block = sparse.kron(block, part)
        blocks.append(block)
    return sparse.csr_array(sparse.vstack(blocks))


def differences(n: int, order: int = 1) -> Any:
    step = sparse.csr_array(sparse.diags_array([-np.ones(n - 1), np.ones(n - 1)], offsets=[0, 1], shape=(n - 1, n)))
    return step if order == 1 else sparse.csr_array(differences(n - 1, order - 1) @ step)


# Pictures: min 1/2 |Ax - b|^2 + ridge/2 |x|^2 + weight TV(x) over a box.


def picture(
    A: Any, b: Array, shape: tuple[int, ...], weight: float, ridge: float = 0.0, sides: tuple[float,
    float] = (-INF, INF),
    isotropic: bool = False,
) -> Instance:  # fmt: skip
    """Total variation, of differences along the axes or of gradients."""
    n, K = math.prod(shape), grid(shape)
    axes, matrix = len(shape), None if A is None else sparse.csr_array(A)
    groups = Set("groups", np.tile(np.arange(n), axes), np.full(n, weight))
    form = Form(
        c=np.zeros(n) if A is not None else -b, d=np.full(n, ridge if A is not None else 1.0), B=K,
        h=np.zeros(axes * n),
        X=box(*sides, n), Y=groups if isotropic else box(-weight, weight, axes * n), A=matrix,
        b=b if A is not None else np.zeros(0),
        constant=0.0 if A is not None else 0.5 * float(b @ b),
    )  # fmt: skip

    def objective() -> Any:
        data = (
            F.LeastSquares(matrix, b, ridge, x_shape=shape) if A is not None else F.LeastSquares(None, b.reshape(shape))
        )
        return data + weight * (F.L21(axis=0) if isotropic else F.L1()) @ ss.operators.FiniteDifferences(shape)

    return Instance(
        form, minimal(objective, (lambda: D.Box(*sides, shape=shape)) if np.isfinite(sides).any() else None)
    )


def scan(n: int, views: int, degrees: float = 180.0) -> Any:
    angles = np.linspace(0.0, np.deg2rad(degrees), views, endpoint=False)
    A = ss.gallery.parallel_beam(n, angles, bins=int(1.42 * n)).A.matrix
    return sparse.csr_array(A / sparse.linalg.norm(A, np.inf))


def noisy(A: Any, x: Array, level: float, seed: int = 1) -> Array:
    clean = A @ x
    return clean + level * np.abs(clean).max() * normal(seed, clean.size)


def tomography(n: int) -> Instance:
    """The paper's standard instance."""
    problem = ss.gallery.tomography(n=n, bounded=False)
    A, b = problem.f.A.matrix, np.ravel(problem.f.b)
    m, weight, beta = 2 * n * n, 5e-5, 0.05
    form = Form(
        c=np.zeros(n * n), d=np.full(n * n, 1e-3), B=grid((n, n)), h=np.zeros(m), X=free(n * n), Y=box(-weight,
        weight, m),
        beta=beta, A=A, b=b,
    )  # fmt: skip
    return Instance(form, saddle(
        lambda: F.LeastSquares(A, b, 1e-3, x_shape=(n, n)), lambda: F.Quadratic(beta),
        lambda: ss.operators.FiniteDifferences((n, n)),
        lambda: D.FullSpace((n, n)), lambda: D.Box(-weight, weight, shape=(2, n, n)),
    ))  # fmt: skip


def scanned(
    n: int, views: int, degrees: float = 180.0, sides: tuple[float, float] = (-INF, INF), weighted: bool = False
) -> Instance:
    A, x = scan(n, views, degrees), ss.gallery.phantom(0, n).ravel()
    b = noisy(A, x, 0.01)
    if weighted:
        rows = np.random.default_rng(3).uniform(0.1, 1.0, b.size)
        A, b = sparse.csr_array(rows[:, None] * A), rows * b
    return picture(A, b, (n, n), 1e-3, 1e-4, sides)


def volume(n: int) -> Instance:
    A = sparse.csr_array(sparse.kron(sparse.eye_array(n), scan(n, 24)))
    x = np.stack([ss.gallery.phantom(0, n) * (1.0 - abs(2.0 * k / n - 1.0)) for k in range(n)]).ravel()
    return picture(A, noisy(A, x, 0.01), (n, n, n), 1e-3, 1e-4)


def blur(n: int, width: float) -> Any:
    far = np.arange(n)[:, None] - np.arange(n)[None]
    line = np.where(np.abs(far) <= 4.0 * width, np.exp(-0.5 * (far / width) ** 2), 0.0)
    line = sparse.csr_array(line / line.sum(axis=1, keepdims=True))
    return sparse.csr_array(sparse.kron(line, line))


def masked(n: int, missing: float, width: float = 0.0, sides: tuple[float, float] = (-INF, INF)) -> Instance:
    kept = np.random.default_rng(2).uniform(size=n * n) >= missing
    A = blur(n, width) if width else sparse.csr_array(sparse.eye_array(n * n))
    A = sparse.csr_array(A[np.flatnonzero(kept)])
    return picture(A, noisy(A, ss.gallery.phantom(0, n).ravel(), 0.02), (n, n), 0.01, 1e-4, sides)


def denoising(n: int, isotropic: bool) -> Instance:
    b = ss.gallery.phantom(0, n).ravel() + 0.1 * normal(2, n * n)
    return picture(None, b, (n, n), 0.1, isotropic=isotropic)


# Regressions.


def regression(rows: int, columns: int, seed: int, sparse_part: float = 0.1) -> tuple[Array, Array, Array]:
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((rows, columns))
    # Neighbouring columns go together.
    A[:, 1:] = 0.6 * A[:, :-1] + 0.8 * A[:, 1:]
    truth = np.where(rng.uniform(size=columns) < sparse_part, rng.standard_normal(columns), 0.0)
    return A, A @ truth + 0.5 * rng.standard_normal(rows), truth


def penalised(
    A: Array, b: Array, weight: float, ridge: float = 0.0, groups: int = 0, loss: str = "squares"
) -> Instance:
    """Least squares or logistic loss with |x|_1 or the sum of the norms of groups of so many entries."""
    n = A.shape[1]
    Y = Set("groups", np.arange(n) // groups, np.full(n // groups, weight)) if groups else box(-weight, weight, n)
    name = "groups" if groups else "lasso" if loss == "squares" else "logistic"
    form = Form(
        c=np.zeros(n), d=np.full(n, ridge), B=sparse.csr_array(sparse.eye_array(n)), h=np.zeros(n), X=free(n), Y=Y,
        A=A, b=b, loss=loss, tool={"name": name, "weight": weight, "size": groups},
    )  # fmt: skip

    def objective() -> Any:
        data = F.LeastSquares(A, b, ridge) if loss == "squares" else F.Logistic(A, b, ridge)
        if groups:
            return F.LeastSquares(A, b, x_shape=(n // groups, groups)) + weight * F.L21(axis=1)
        return data + weight * F.L1()

    return Instance(form, minimal(objective))


def lasso(rows: int, columns: int, share: float, ridge: float = 0.0, groups: int = 0) -> Instance:
    A, b, _ = regression(rows, columns, 3)
    most = np.abs(A.T @ b).max()
    return penalised(A, b, share * most, ridge * most, groups)


def logistic_lasso(rows: int, columns: int) -> Instance:
    A, b, _ = regression(rows, columns, 4)
    labels = np.where(b > 0.0, 1.0, -1.0)
    return penalised(A, labels, 0.1 * 0.5 * float(np.abs(A.T @ labels).max()), loss="logistic")


def deconvolution(n: int) -> Instance:
    """Spikes behind a blur."""
    far = np.arange(n)[:, None] - np.arange(n)[None]
    A = np.exp(-0.5 * (far / 4.0) ** 2)
    truth = np.where(np.random.default_rng(5).uniform(size=n) < 0.03, normal(6, n), 0.0)
    b = A @ truth + 0.02 * normal(7, n)
    return penalised(A, b, 0.02 * float(np.abs(A.T @ b).max()))


def nonnegative(rows: int, columns: int) -> Instance:
    A = np.random.default_rng(8).uniform(size=(rows, columns))
    b = A @ np.maximum(normal(9, columns), 0.0) + 0.1 * normal(10, rows)
    form = Form(
        c=np.zeros(columns), d=np.zeros(columns), B=sparse.csr_array((0, columns)), h=np.zeros(0), X=box(0.0,
        INF, columns),
        Y=free(0), A=A, b=b,
    )  # fmt: skip
    return Instance(form, minimal(lambda: F.LeastSquares(A, b), lambda: D.NonNegative(columns)))


def signal(n: int, order: int) -> Instance:
    b = np.cumsum(0.3 * normal(11, n))
    weight, K = 2.0, differences(n, order)
    form = Form(
        c=-b, d=np.ones(n), B=K, h=np.zeros(n - order), X=free(n), Y=box(-weight, weight, n - order),
        constant=0.5 * float(b @ b),
    )  # fmt: skip
    return Instance(form, minimal(lambda: F.LeastSquares(None, b) + weight * F.L1() @ K))


def fused(rows: int, columns: int, logistic: bool) -> Instance:
    A, K, weight = normal(12, rows, columns), differences(columns), 2.0
    truth = np.repeat(normal(13, columns // 20), 20)
    b = A @ truth + normal(14, rows)
    b = np.where(b > 0.0, 1.0, -1.0) if logistic else b
    form = Form(
        c=np.zeros(columns), d=np.full(columns, 0.1), B=K, h=np.zeros(columns - 1), X=free(columns),
        Y=box(-weight, weight, columns - 1), A=A, b=b, loss="logistic" if logistic else "squares",
    )  # fmt: skip
    data = F.Logistic if logistic else F.LeastSquares
    return Instance(form, minimal(lambda: data(A, b, 0.1) + weight * F.L1() @ K))


def quantile(rows: int, columns: int, q: float) -> Instance:
    """q times what the data are above the model, 1 - q times what they are below."""
    A = normal(15, rows, columns)
    b = A @ normal(16, columns) + np.random.default_rng(17).standard_t(3, rows)
    form = Form(
        c=np.zeros(columns), d=np.zeros(columns), B=A, h=b, X=free(columns), Y=box(-q, 1.0 - q, rows),
        tool={"name": "quantile", "q": q},
    )  # fmt: skip
    return Instance(form, minimal(lambda: F.Quantile(1.0 - q).translated(b) @ A))


def absolute(rows: int, columns: int) -> Instance:
    A = normal(33, rows, columns)
    b = A @ normal(34, columns) + np.random.default_rng(35).standard_t(2, rows)
    form = Form(c=np.zeros(columns), d=np.full(columns, 3.0), B=A, h=b, X=free(columns), Y=box(-1.0, 1.0, rows))
    return Instance(form, minimal(lambda: F.L1().translated(b) @ A + 3.0 * F.Quadratic(1.0)))


def huber(rows: int, columns: int) -> Instance:
    A, delta = normal(36, rows, columns), 0.5
    b = A @ normal(37, columns) + np.random.default_rng(38).standard_t(2, rows)
    form = Form(
        c=np.zeros(columns), d=np.full(columns, 0.5), B=A, h=b, X=free(columns), Y=box(-delta, delta, rows), beta=1.0
    )
    return Instance(form, minimal(lambda: delta * F.Huber(delta).translated(b) @ A + 0.5 * F.Quadratic(1.0)))


def support_vectors(rows: int, columns: int) -> Instance:
    A = normal(18, rows, columns)
    labels = np.where(A @ normal(19, columns) + 3.0 * normal(20, rows) > 0.0, 1.0, -1.0)
    form = Form(
        c=np.zeros(columns), d=np.ones(columns), B=-labels[:, None] * A, h=-np.ones(rows), X=free(columns),
        Y=box(0.0, 1.0, rows), tool={"name": "hinge", "labels": labels.tolist(), "weight": 1.0},
    )  # fmt: skip
    return Instance(form, minimal(lambda: F.Quadratic(1.0) + F.Hinge() @ (labels[:, None] * A)))


# Games.


def game(rows: int, columns: int, price: float = 0.0, density: float = 1.0) -> Instance:
    B = normal(21, rows, columns)
    if density < 1.0:
        B = sparse.csr_array(np.where(np.random.default_rng(22).uniform(size=B.shape) < density, B, 0.0))
    form = Form(
        c=np.zeros(columns),
        d=np.full(columns, price),
        B=B,
        h=np.zeros(rows),
        X=Set("simplex"),
        Y=Set("simplex"),
        beta=price,
    )
    part = F.Quadratic(price) if price else F.Zero()
    return Instance(
        form, saddle(lambda: part, lambda: part, lambda: B, lambda: D.Simplex(columns), lambda: D.Simplex(rows))
    )


# Linear and quadratic programs with constraints; `price` bounds their multipliers.


def constrained(
    c: Array, d: float, B: Any, h: Array, price: float, top: float = INF, tool: dict[str, Any] | None = None
) -> Instance:
    n, m = c.size, h.size
    form = Form(c=c, d=np.full(n, d), B=B, h=h, X=box(0.0, top, n), Y=box(-price, price, m), tool=tool or {})
    return Instance(form, saddle(
        lambda: F.Quadratic(d) + F.Linear(c) if d else F.Linear(c), lambda: F.Linear(h), lambda: B,
        lambda: D.NonNegative(n) if math.isinf(top) else D.Box(0.0, top, shape=n), lambda: D.Box(-price, price,
        shape=m),
    ))  # fmt: skip


def marginals(shape: tuple[int, ...]) -> Any:
    """Sums over all axes but one, for every axis."""
    blocks = []
    for axis in range(len(shape)):
        block = sparse.eye_array(1)
        for k, size in enumerate(shape):
            block = sparse.kron(block, sparse.eye_array(size) if k == axis else np.ones((1, size)))
        blocks.append(block)
    return sparse.csr_array(sparse.vstack(blocks))


def transport(shape: tuple[int, ...], price: float) -> Instance:
    rng = np.random.default_rng(23)
    places = [np.sort(rng.uniform(size=size)) for size in shape]
    meshes = np.meshgrid(*places, indexing="ij")
    mean = sum(meshes) / len(meshes)
    cost = sum((mesh - mean) ** 2 for mesh in meshes) * len(meshes)
    masses = [rng.uniform(0.1, 1.0, size) for size in shape]
    h = np.concatenate([mass / mass.sum() for mass in masses])
    tool = {"name": "transport", "shape": list(shape)} if len(shape) == 2 else {}
    return constrained(cost.ravel(), price, marginals(shape), h, 2.0, tool=tool)


def flow(nodes: int, price: float) -> Instance:
    """Least cost on a random graph with capacities: one unit a node to its sinks."""
    rng = np.random.default_rng(24)
    tails = np.concatenate([np.arange(nodes), rng.integers(0, nodes, 3 * nodes)])
    heads = np.concatenate([(np.arange(nodes) + 1) % nodes, rng.integers(0, nodes, 3 * nodes)])
    arcs = np.flatnonzero(tails != heads)
    tails, heads, k = tails[arcs], heads[arcs], arcs.size
    B = sparse.csr_array(
        (np.r_[np.ones(k), -np.ones(k)], (np.r_[tails, heads], np.r_[np.arange(k), np.arange(k)])), shape=(nodes, k)
    )
    planned = np.where(rng.uniform(size=k) < 0.3, rng.uniform(0.0, 1.0, k), 0.0)
    return constrained(rng.uniform(0.1, 1.0, k), price, B, B @ planned, 10.0, top=1.0)


def program(rows: int, columns: int) -> Instance:
    """A sparse linear program with a known solution."""
    rng = np.random.default_rng(25)
    E = sparse.csr_array(
        sparse.random_array(
            (rows, columns), density=min(1.0, 8.0 / rows), random_state=rng, data_sampler=rng.standard_normal
        )
    )
    x, y = np.maximum(rng.standard_normal(columns), 0.0), rng.standard_normal(rows)
    c = E.T @ y + np.where(x > 0.0, 0.0, rng.uniform(size=columns))
    return constrained(c, 0.0, E, E @ x, 2.0 * float(np.abs(y).max()), top=2.0 * float(x.max()))


def equations(n: int, rows: int) -> Instance:
    """A quadratic with a full matrix under linear equations."""
    A, B = normal(26, n, n) / math.sqrt(n), normal(27, rows, n)
    b, h, price = normal(28, n), B @ normal(29, n), 50.0
    form = Form(
        c=np.zeros(n),
        d=np.full(n, 0.1),
        B=B,
        h=h,
        X=free(n),
        Y=box(-price, price, rows),
        A=A,
        b=b,
        tool={"quadratic": True},
    )
    return Instance(form, saddle(
        lambda: F.LeastSquares(A, b, 0.1), lambda: F.Linear(h), lambda: B, lambda: D.FullSpace(n),
        lambda: D.Box(-price, price, shape=rows),
    ))  # fmt: skip


def portfolio(assets: int) -> Instance:
    """Least risk on the simplex, with prices on exposures that leave a band."""
    A = normal(30, assets // 4, assets) / math.sqrt(assets)
    B, gains = normal(31, 20, assets), 0.1 * np.random.default_rng(32).uniform(size=assets)
    form = Form(
        c=-gains,
        d=np.full(assets, 0.05),
        B=B,
        h=np.zeros(20),
        X=Set("simplex"),
        Y=box(-0.2, 0.2, 20),
        A=A,
        b=np.zeros(assets // 4),
    )
    return Instance(form, saddle(
        lambda: F.LeastSquares(A, np.zeros(assets // 4), 0.05) + F.Linear(-gains), F.Zero, lambda: B,
        lambda: D.Simplex(assets),
        lambda: D.Box(-0.2, 0.2, shape=20),
    ))  # fmt: skip


def consensus(nodes: int, size: int) -> Instance:
    """Least squares at the nodes of a ring, which must agree."""
    A = sparse.csr_array(sparse.block_diag([sparse.csr_array(normal(40 + k, 30, size) / 3.0) for k in range(nodes)]))
    ring = sparse.csr_array(sparse.kron(np.eye(nodes) - np.roll(np.eye(nodes), 1, axis=1), sparse.eye_array(size)))
    n, b, price = nodes * size, normal(39, 30 * nodes), 100.0
    form = Form(
        c=np.zeros(n), d=np.full(n, 0.1), B=ring, h=np.zeros(n), X=free(n), Y=box(-price, price, n), A=A, b=b,
        tool={"quadratic": True},
    )  # fmt: skip
    return Instance(
        form,
        saddle(
            lambda: F.LeastSquares(A, b, 0.1),
            F.Zero,
            lambda: ring,
            lambda: D.FullSpace(n),
            lambda: D.Box(-price, price, shape=n),
        ),
    )


def rough(rows: int, columns: int, p: float) -> Instance:
    """sum |Ax - b|^p / p over a box, with neighbours tied."""
    A, b, K, weight = normal(50, rows, columns) / math.sqrt(columns), normal(51, rows), differences(columns), 0.2
    form = Form(
        c=np.zeros(columns), d=np.zeros(columns), B=K, h=np.zeros(columns - 1), X=box(-1.0, 1.0, columns),
        Y=box(-weight, weight, columns - 1), A=A, b=b, loss=f"power {p}",
    )  # fmt: skip

    def gradient(x: Array) -> Array:
        r = A @ x - b
        return A.T @ (np.sign(r) * np.abs(r) ** (p - 1.0))

    def f() -> Any:
        # |sign(s)|s|^(p-1) - sign(t)|t|^(p-1)| <= 2^(2-p) |s - t|^(p-1), summed over rows by Hölder's inequality.
        nu = p - 1.0
        M = 2.0 ** (1.0 - nu) * float(np.linalg.norm(A, 2)) ** (1.0 + nu) * rows ** (0.5 * (1.0 - nu))
        return F.Custom(
            gradient=gradient, value=lambda x: float(np.sum(np.abs(A @ x - b) ** p)) / p, smoothness=ss.Holder(nu, M)
        )

    return Instance(
        form,
        saddle(
            f,
            F.Zero,
            lambda: K,
            lambda: D.Box(-1.0, 1.0, shape=columns),
            lambda: D.Box(-weight, weight, shape=columns - 1),
        ),
    )


def players(n: int, coupling: float) -> Instance:
    """Two players with least squares of their own on free spaces."""
    A, C = normal(60, 2 * n, n) / math.sqrt(n), normal(61, n, n) / math.sqrt(n)
    b, e, B = normal(62, 2 * n), normal(63, n), coupling * normal(64, n, n) / math.sqrt(n)
    form = Form(
        c=np.zeros(n), d=np.full(n, 0.05), B=B, h=np.zeros(n), X=free(n), Y=free(n), beta=0.05, A=A, b=b, C=C, e=e,
        tool={"quadratic": True},
    )  # fmt: skip
    return Instance(
        form,
        saddle(
            lambda: F.LeastSquares(A, b, 0.05),
            lambda: F.LeastSquares(C, e, 0.05),
            lambda: B,
            lambda: D.FullSpace(n),
            lambda: D.FullSpace(n),
        ),
    )


IMAGING, INVERSE, STATISTICS, GAMES = "imaging", "inverse problems", "statistics", "games"
TRANSPORT, NETWORKS, CONSTRAINTS, ROUGH, QUADRATIC = "transport", "networks", "constraints", "rough", "quadratic"
FAMILIES = (
    Family("tomography, the paper's", IMAGING, tomography, (32, 64, 128)),
    Family("tomography, 60 degrees", IMAGING, lambda n: scanned(n, n // 2, 60.0), (32, 64)),
    Family("tomography, x >= 0", IMAGING, lambda n: scanned(n, n, sides=(0.0, INF)), (32, 64)),
    Family("tomography, weighted rows", IMAGING, lambda n: scanned(n, n, weighted=True), (32, 64)),
    Family("tomography, volume", IMAGING, volume, (12, 24)),
    Family("inpainting", IMAGING, lambda n: masked(n, 0.5), (32, 64, 128)),
    Family("blur, missing pixels", IMAGING, lambda n: masked(n, 0.4, 1.5), (32, 64)),
    Family("deblurring in a box", IMAGING, lambda n: masked(n, 0.0, 1.5, (0.0, 1.0)), (32, 64)),
    Family("denoising", IMAGING, lambda n: denoising(n, False), (32, 128, 256)),
    Family("denoising, isotropic", IMAGING, lambda n: denoising(n, True), (32, 128)),
    Family("spikes behind a blur", INVERSE, deconvolution, (100, 400)),
    Family("compressed sensing", INVERSE, lambda n: lasso(n // 4, n, 0.05), (200, 1000)),
    Family("least squares, x >= 0", INVERSE, lambda n: nonnegative(2 * n, n), (100, 500)),
    Family("lasso", STATISTICS, lambda n: lasso(2 * n, n, 0.02), (100, 500, 1500)),
    Family("elastic net", STATISTICS, lambda n: lasso(n, n, 0.02, 0.002), (100, 600)),
    Family("group lasso", STATISTICS, lambda n: lasso(n, n, 0.1, groups=10), (100, 600)),
    Family("logistic lasso", STATISTICS, lambda n: logistic_lasso(2 * n, n), (100, 400)),
    Family("fused least squares", STATISTICS, lambda n: fused(2 * n, n, False), (100, 400)),
    Family("fused logistic", STATISTICS, lambda n: fused(3 * n, n, True), (100, 300)),
    Family("variation of a signal", STATISTICS, lambda n: signal(n, 1), (500, 5000, 50000)),
    Family("trend filtering", STATISTICS, lambda n: signal(n, 2), (500, 5000)),
    Family("quantile regression", STATISTICS, lambda n: quantile(12 * n, n, 0.3), (20, 120)),
    Family("least absolute deviations", STATISTICS, lambda n: absolute(5 * n, n), (30, 150)),
    Family("Huber regression", STATISTICS, lambda n: huber(5 * n, n), (50, 300)),
    Family("support vectors", STATISTICS, lambda n: support_vectors(12 * n, n), (20, 100)),
    Family("matrix game", GAMES, lambda n: game(n, n + n // 4), (40, 200, 600)),
    Family("sparse game", GAMES, lambda n: game(n, n, density=0.05), (100, 600)),
    Family("regularised game", GAMES, lambda n: game(n, n, price=0.5), (40, 300)),
    Family("transport plans", TRANSPORT, lambda n: transport((n, n + n // 6), 0.0), (16, 60, 120)),
    Family("transport, quadratic price", TRANSPORT, lambda n: transport((n, n), 0.5), (16, 60)),
    Family("transport, three marginals", TRANSPORT, lambda n: transport((n, n, n), 0.0), (8, 20)),
    Family("network flow", NETWORKS, lambda n: flow(n, 0.0), (100, 1000, 10000)),
    Family("network flow, quadratic price", NETWORKS, lambda n: flow(n, 1.0), (100, 1000)),
    Family("consensus on a ring", NETWORKS, lambda n: consensus(n, 10), (8, 32)),
    Family("linear program", CONSTRAINTS, lambda n: program(n, 2 * n), (60, 400)),
    Family("quadratic with equations", CONSTRAINTS, lambda n: equations(n, n // 8), (80, 400)),
    Family("portfolio", CONSTRAINTS, portfolio, (80, 400)),
    Family("rough, p = 1.5", ROUGH, lambda n: rough(n, n, 1.5), (40, 150)),
    Family("rough, p = 1.25", ROUGH, lambda n: rough(n, n, 1.25), (40, 150)),
    Family("two quadratic players", QUADRATIC, lambda n: players(n, 0.2), (60, 300)),
    Family("two players, strongly coupled", QUADRATIC, lambda n: players(n, 5.0), (60, 300)),
)
NAMES = {family.name: family for family in FAMILIES}
