"""Options of the gallery against Clarabel: kinds of total variation, colours, volumes, data terms, cones, entropies."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.ndimage

import saddleslide as ss
from saddleslide.errors import InputError
from support import gathered, need

cp = need("cvxpy")

RNG = np.random.default_rng(5)
SHAPES = {"grey": (6, 7), "colour": (5, 4, 3), "volume": (3, 4, 5)}
KERNELS = {"grey": (3, 3), "colour": (3, 3), "volume": (1, 3, 3)}
PICTURES = {name: RNG.random(shape) + 0.05 for name, shape in SHAPES.items()}


def differences(kind):
    """Matrices of the differences along each axis of the grid, zero at its last side, by applying them to units."""
    shape = SHAPES[kind]
    units = np.eye(int(np.prod(shape))).reshape(-1, *shape)
    grid = 2 if kind == "colour" else len(shape)
    return [np.diff(units, axis=1 + k, append=np.take(units, [-1], axis=1 + k)).reshape(len(units), -1).T
            for k in range(grid)]  # fmt: skip


def variation(x, kind, tv, huber=0.0):
    parts = [D @ x for D in differences(kind)]
    if tv == "anisotropic":
        return sum(cp.sum(cp.huber(part, huber)) / (2 * huber) if huber else cp.norm1(part) for part in parts)
    rows = cp.vstack(parts) if kind != "colour" else cp.vstack([part[k::3] for part in parts for k in range(3)])
    lengths = cp.norm(rows, axis=0)
    return cp.sum(cp.huber(lengths, huber)) / (2 * huber) if huber else cp.sum(lengths)


def compare_data(z, b, data, w):
    if data == "squares":
        return 0.5 * cp.sum(cp.multiply(w, cp.square(z - b)))
    # Of CVXPY's kl_div(b, z) = b log(b / z) - b + z.
    return cp.sum(cp.multiply(w, cp.abs(z - b) if data == "l1" else cp.kl_div(b, z)))


def check(problem, objective, constraints=(), tol=1e-4):
    trusted = cp.Problem(cp.Minimize(objective), list(constraints))
    trusted.solve(solver="CLARABEL")
    result = ss.solve(problem, tol=tol)
    solution = problem.read(result)
    assert result.status is ss.Status.SOLVED
    assert solution.lower - 1e-6 <= trusted.value <= solution.objective + 1e-6
    assert solution.objective - trusted.value <= tol + 1e-6
    return solution


@gathered("kind", ["grey", "colour", "volume"])
def test_generalised_variation_is_that_of_clarabel(kind):
    """The least of |D x - w| + 2 |E w| over fields w; E by other code, as full symmetric matrices of differences."""
    picture = PICTURES[kind]
    forward = differences(kind)
    shape, colours = SHAPES[kind], 3 if kind == "colour" else 1
    units = np.eye(picture.size).reshape(-1, *shape)
    shift = [np.diff(units, axis=1 + k, prepend=np.take(units, [0], axis=1 + k)).reshape(len(units), -1).T
             for k in range(len(forward))]  # fmt: skip
    x, w = cp.Variable(picture.size), [cp.Variable(picture.size) for _ in forward]
    bends = [(shift[a] @ w[b] + shift[b] @ w[a]) / 2 for a in range(len(w)) for b in range(len(w))]

    def lengths(parts):
        return cp.sum(cp.norm(cp.vstack([part[k::colours] for part in parts for k in range(colours)]), axis=0))

    minimum = 0.5 * cp.sum_squares(x - picture.ravel()) + 0.1 * (
        lengths([D @ x - field for D, field in zip(forward, w, strict=True)]) + 2.0 * lengths(bends)
    )
    trusted = cp.Problem(cp.Minimize(minimum))
    trusted.solve(solver="CLARABEL")
    problem = ss.gallery.denoise(picture, 0.1, tv="tgv")
    result = ss.solve(problem, rtol=1e-3)
    solution = problem.read(result)
    assert result.success and solution.image.shape == picture.shape
    assert solution.lower - 1e-6 <= trusted.value <= solution.objective + 1e-6
    assert solution.objective == pytest.approx(trusted.value, rel=1e-3)


def test_slopes_cost_no_generalised_variation():
    """A ramp with a hole goes on, also beyond the values that are known; total variation would stop there."""
    ramp = np.tile(np.linspace(0.0, 1.0, 7), (5, 1))
    known = np.ones_like(ramp, bool)
    known[:, -2:] = False
    problem = ss.gallery.inpaint(ramp, known, 0.01, tv="tgv")
    found = problem.read(ss.solve(problem, tol=1e-7))
    assert np.abs(found.image - ramp).max() <= 0.02 and found.image.max() > ramp[known].max() + 0.2
    angles = np.linspace(0.0, np.pi, 6, endpoint=False)
    sinogram = ss.gallery.parallel_beam(6, angles, bins=9).project(ss.gallery.phantom(1, 6))
    for made in (
        ss.gallery.deblur(ramp, np.ones((3, 3)) / 9, 0.01, tv="tgv", nonnegative=True),
        ss.gallery.reconstruct(sinogram, angles, 1e-3, tv="tgv"),
    ):
        assert ss.solve(made, rtol=1e-2).success


POINTWISE = [
    ("grey", "isotropic", "squares", 0.0, False, False),
    ("grey", "isotropic", "squares", 0.05, True, True),
    ("colour", "isotropic", "squares", 0.0, True, False),
    ("colour", "anisotropic", "l1", 0.0, True, False),
    ("volume", "isotropic", "squares", 0.0, False, True),
    ("volume", "anisotropic", "kl", 0.0, True, True),
    ("grey", "isotropic", "l1", 0.0, False, False),
    ("grey", "isotropic", "kl", 0.0, False, False),
]


@gathered(("kind", "tv", "data", "huber", "weighted", "nonnegative"), POINTWISE)
def test_denoised_pictures_are_those_of_clarabel(kind, tv, data, huber, weighted, nonnegative):
    picture = PICTURES[kind] - (0.4 if nonnegative and data == "squares" else 0.0)
    w = np.random.default_rng(1).uniform(0.5, 2.0, picture.shape) if weighted else None
    problem = ss.gallery.denoise(picture, 0.2, tv=tv, data=data, huber=huber, weights=w, nonnegative=nonnegative)
    x = cp.Variable(picture.size)
    misfit = compare_data(x, picture.ravel(), data, np.ones(picture.size) if w is None else w.ravel())
    solution = check(problem, misfit + 0.2 * variation(x, kind, tv, huber), [x >= 0] * nonnegative)
    assert not nonnegative or solution.image.min() >= 0.0


@gathered(
    ("kind", "tv", "data"),
    [("colour", "isotropic", "squares"), ("grey", "anisotropic", "kl"), ("grey", "isotropic", "l1")],
)
def test_holes_are_filled_as_by_clarabel(kind, tv, data):
    picture = PICTURES[kind]
    known = np.random.default_rng(2).random(picture.shape[:2]) < 0.6
    mask = known if kind == "grey" else np.repeat(known[..., None], 3, axis=2)
    problem = ss.gallery.inpaint(np.where(mask, picture, np.nan), known, 0.1, tv=tv, data=data)
    x = cp.Variable(picture.size)
    seen = np.flatnonzero(mask)
    misfit = compare_data(x[seen], picture.ravel()[seen], data, np.ones(seen.size))
    check(problem, misfit + 0.1 * variation(x, kind, tv))


@gathered(
    ("kind", "data", "nonnegative"), [("colour", "squares", False), ("volume", "squares", True), ("grey", "l1", True)]
)
def test_sharpened_pictures_are_those_of_clarabel(kind, data, nonnegative):
    picture, kernel = PICTURES[kind] - 0.3, np.random.default_rng(3).random(KERNELS[kind])
    kernel /= kernel.sum()
    units = np.eye(picture.size).reshape(-1, *picture.shape)
    full = kernel[..., None] if kind == "colour" else kernel
    A = np.array([scipy.ndimage.convolve(unit, full, mode="reflect").ravel() for unit in units]).T
    w = np.random.default_rng(1).uniform(0.5, 2.0, picture.shape)
    problem = ss.gallery.deblur(
        picture, kernel, 0.05, ridge=0.01, tv="isotropic", data=data, weights=w, nonnegative=nonnegative
    )
    x = cp.Variable(picture.size)
    misfit = compare_data(A @ x, picture.ravel(), data, w.ravel()) + 0.005 * cp.sum_squares(x)
    check(problem, misfit + 0.05 * variation(x, kind, "isotropic"), [x >= 0] * nonnegative)


def test_projections_with_weights_and_nonnegative_pictures():
    angles = np.linspace(0.0, np.pi, 7, endpoint=False)
    scanner = ss.gallery.parallel_beam(6, angles, bins=9)
    sinogram = scanner.project(ss.gallery.phantom(1, 6)) + 0.3 * np.random.default_rng(0).standard_normal((7, 9))
    w = np.random.default_rng(1).uniform(0.5, 2.0, sinogram.shape)
    A = np.array([scanner.A.forward(unit.reshape(6, 6)) for unit in np.eye(36)]).T
    SHAPES["square"] = (6, 6)
    for data in ("squares", "l1"):
        problem = ss.gallery.reconstruct(
            sinogram, angles, 1e-2, shape=6, tv="isotropic", huber=0.0, weights=w, data=data, nonnegative=True
        )
        x = cp.Variable(36)
        misfit = compare_data(A @ x, sinogram.ravel() / scanner.scale, data, w.ravel()) + 0.5e-4 * cp.sum_squares(x)
        trusted = cp.Problem(cp.Minimize(misfit + 1e-2 * variation(x, "square", "isotropic")), [x >= 0])
        trusted.solve(solver="CLARABEL")
        result = ss.solve(problem, tol=1e-5)
        assert result.success and result.lower - 1e-7 <= trusted.value <= result.lower + 1.1e-5
        assert problem.read(result).image.min() >= 0.0


@gathered(("make", "words"), [
    (lambda: ss.gallery.denoise(np.ones((4, 4)), 0.1, tv="round"), "tv is 'round'"),
    (lambda: ss.gallery.denoise(np.ones((4, 4)), 0.1, data="l2"), "data is 'l2'"),
    (lambda: ss.gallery.denoise(-np.ones((4, 4)), 0.1, data="kl"), "negative value"),
    (lambda: ss.gallery.denoise(np.ones((4, 4)), 0.1, weights=np.zeros((4, 4))), "weights go from 0 to 0"),
    (lambda: ss.gallery.deblur(np.ones((4, 4, 4)), np.ones((3, 3)), 0.1), "3 odd sides"),
    (lambda: ss.gallery.constrained(ss.functions.Quadratic(1.0)), "neither A nor G"),
    (lambda: ss.gallery.constrained(ss.functions.Quadratic(1.0), [[1.0]]), "one of A and b"),
    (lambda: ss.gallery.constrained(ss.functions.Quadratic(1.0), G=[[1.0]], h=[1.0], bound=1.0), "bound is 1.0"),
    (lambda: ss.gallery.transport([[1.0]], [1.0], [1.0], regulariser="l1"), "regulariser is 'l1'"),
    (lambda: ss.gallery.matrix_game([[1.0]], entropy=0.0), "entropy is 0"),
    (lambda: ss.gallery.matrix_game([[1.0]], entropy=0.1, row=ss.functions.Quadratic(1.0)), "one or the other"),
    (lambda: ss.gallery.sequence_game([]), "no ends"),
    (lambda: ss.gallery.sequence_game([([("a", 1), ("b", 1)], [], 1.0), ([("b", 1)], [], 1.0)]), "perfect recall"),
    (lambda: ss.gallery.sequence_game([([], [], np.inf)]), "finite payoff"),
    (lambda: ss.gallery.sequence_game([([1], [], 1.0)]), "can not be read"),
])  # fmt: skip
def test_wrong_options_are_refused(make, words):
    with pytest.raises(InputError, match=words):
        make()


@gathered(("equations", "boxed"), [(False, False), (True, False), (True, True)])
def test_inequalities_are_those_of_clarabel_with_their_multipliers(equations, boxed):
    rng, n = np.random.default_rng(4), 12
    M = rng.standard_normal((n, n))
    Q, c, G, A, feasible = M @ M.T / n + 0.1 * np.eye(n), rng.standard_normal(n), *(
        rng.standard_normal(shape) for shape in ((6, n), (3, n))), rng.random(n)  # fmt: skip
    h, b = G @ feasible + 0.05, A @ feasible
    problem = ss.gallery.constrained(
        ss.functions.Quadratic(Q) + ss.functions.Linear(c), **({"A": A, "b": b} if equations else {}), G=G, h=h,
        X=ss.domains.Box(0.0, 1.0, shape=n) if boxed else None,
    )  # fmt: skip
    result = ss.solve(problem, tol=1e-6)
    solution = problem.read(result)
    x = cp.Variable(n)
    limits = [G @ x <= h, *([A @ x == b] if equations else []), *([x >= 0, x <= 1] if boxed else [])]
    trusted = cp.Problem(cp.Minimize(0.5 * cp.quad_form(x, cp.psd_wrap(Q)) + c @ x), limits)
    trusted.solve(solver="CLARABEL")
    assert result.success and solution.inside and not solution.infeasible
    assert result.lower - 1e-7 <= trusted.value
    assert solution.objective == pytest.approx(trusted.value, abs=1e-5)
    assert solution.x == pytest.approx(x.value, abs=1e-4)
    assert solution.inequality_multipliers == pytest.approx(limits[0].dual_value, abs=1e-3)
    # Those that only have what interior points leave them are not counted.
    assert solution.facts()["active inequalities"] == np.count_nonzero(limits[0].dual_value > 1e-4)
    assert solution.residual == pytest.approx(
        np.linalg.norm(np.r_[np.maximum(G @ solution.x - h, 0), A @ solution.x - b if equations else 0]), abs=1e-12
    )


def test_contradicting_inequalities_are_named():
    problem = ss.gallery.constrained(ss.functions.Quadratic(1.0), G=[[1.0, 0.0], [-1.0, 0.0]], h=[-1.0, -1.0])
    result = ss.solve(problem, tol=1e-6)
    assert result.status is ss.Status.INFEASIBLE
    assert problem.read(result).verdict == result.message


def test_transport_with_each_regulariser():
    rng = np.random.default_rng(0)
    C, a, b = rng.random((5, 6)), rng.random(5), rng.random(6)
    a, b = 2.0 * a / a.sum(), 2.0 * b / b.sum()
    terms = {
        None: lambda P: 0.0,
        "quadratic": lambda P: 0.05 * cp.sum_squares(P),
        "entropy": lambda P: -0.1 * cp.sum(cp.entr(P)),
    }
    for regulariser, term in terms.items():
        problem = ss.gallery.transport(C, a, b, regulariser=regulariser)
        result = ss.solve(problem, tol=1e-5)
        solution = problem.read(result)
        P = cp.Variable((5, 6), nonneg=True)
        rows = [cp.sum(P, axis=1) == a, cp.sum(P, axis=0) == b]
        trusted = cp.Problem(cp.Minimize(cp.sum(cp.multiply(C, P)) + term(P)), rows)
        trusted.solve(solver="CLARABEL")
        assert result.status is ss.Status.SOLVED
        assert result.lower - 1e-7 <= trusted.value <= solution.objective + 1e-7
        assert solution.objective - result.lower <= 3e-5
    # Sinkhorn's form of the plan, with the potentials of the run.
    u, v = solution.potentials
    assert solution.plan == pytest.approx(np.exp((u[:, None] + v - C) / 0.1 - 1.0), abs=2e-3)


def test_potentials_of_entropic_transport_lie_inside_their_box():
    rng = np.random.default_rng(1)
    for weight in (0.05, 1.0):
        C, a, b = 3.0 * rng.random((4, 5)) - 1.0, rng.dirichlet(np.ones(4)), rng.dirichlet(np.ones(5))
        kernel, u, v = np.exp(-C / weight - 1.0), np.ones(4), np.ones(5)
        for _ in range(5000):
            u = a / (kernel @ v)
            v = b / (u @ kernel)
        u, v = weight * np.log(u), weight * np.log(v)
        # One number may move from one side to the other.
        level = u - weight * np.log(a)
        shift = 0.5 * (level.min() + level.max())
        y = -np.concatenate([u - shift, v + shift])
        Y = ss.gallery.transport(C, a, b, regulariser="entropy", regularisation=weight).Y
        assert np.all(Y.lower < y) and np.all(y < Y.upper)


def test_entropy_game_is_a_quantal_response():
    payoff = np.random.default_rng(0).standard_normal((5, 7))
    game = ss.gallery.matrix_game(payoff, entropy=0.2)
    solution = game.read(ss.solve(game, tol=1e-9))
    q, p = (np.exp(z - z.max()) for z in (-payoff.T @ solution.row / 0.2, payoff @ solution.column / 0.2))
    assert solution.column == pytest.approx(q / q.sum(), abs=1e-4)
    assert solution.row == pytest.approx(p / p.sum(), abs=1e-4)


def test_kuhn_poker_has_its_known_value_and_strategies():
    game = ss.gallery.kuhn_poker()
    result = ss.solve(game, tol=1e-7)
    solution = game.read(result)
    assert result.status is ss.Status.SOLVED
    assert solution.bounds[0] - 1e-12 <= -1 / 18 <= solution.bounds[1] + 1e-12
    first, second = solution.behaviour("first"), solution.behaviour("second")
    bluff = first["J"]["bet"]
    # Kuhn's family: bluff at most a third, bet the king three times as often, call with the queen a third more often.
    assert 0.0 <= bluff <= 1 / 3 + 1e-4
    assert first["K"]["bet"] == pytest.approx(3 * bluff, abs=1e-3)
    assert first["Q, after check and bet"]["call"] == pytest.approx(bluff + 1 / 3, abs=1e-3)
    assert second["Q, after bet"]["call"] == pytest.approx(1 / 3, abs=1e-3)
    assert second["J, after check"]["bet"] == pytest.approx(1 / 3, abs=1e-3)


def test_a_player_who_has_not_moved_yet():
    # The first player stops for 1, or goes on to matching pennies over 4: value 1.
    ends = [([("go", "stop")], [], 1.0)]
    ends += [([("go", "on"), ("coin", a)], [("guess", b)], 4.0 if a == b else -4.0) for a in "HT" for b in "HT"]
    game = ss.gallery.sequence_game(ends)
    solution = game.read(ss.solve(game, tol=1e-8))
    assert solution.value == pytest.approx(1.0, abs=1e-7)
    assert solution.behaviour("first")["go"]["stop"] == pytest.approx(1.0, abs=1e-6)


@gathered("make", [
    lambda: ss.gallery.denoise(PICTURES["colour"], 0.1),
    lambda: ss.gallery.matrix_game(np.eye(30)),
    lambda: ss.gallery.kuhn_poker(),
    lambda: ss.gallery.transport(np.eye(20), np.ones(20), np.ones(20), regulariser="quadratic"),
    lambda: ss.gallery.constrained(ss.functions.Quadratic(1.0), np.ones((1, 50)), [1.0]),
    lambda: ss.gallery.lp_inverse(np.eye(30), np.ones(30), weight=1.0),
    lambda: ss.gallery.reconstruct(np.ones((4, 6)), np.linspace(0, 3, 4), 1e-2),
    lambda: ss.gallery.synthetic(d=50),
    lambda: ss.gallery.consensus([ss.functions.Quadratic(np.ones(30)) for _ in range(3)], 1.0 - np.eye(3)),
])  # fmt: skip
def test_solutions_print_a_short_table(make):
    problem = make()
    lines = str(problem.read(ss.solve(problem, reduction=1e-1))).splitlines()
    assert 4 <= len(lines) <= 14
    assert max(map(len, lines)) <= 160 and not any("[" in line for line in lines)
