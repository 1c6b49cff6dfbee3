"""`game`, `transport`, `consensus`, `constrained` and `inverse`: problems made of matrices, random or from files."""

from __future__ import annotations

from typing import Any

import numpy as np

from saddleslide.cli.commands.tasks import Entry, positive, whole
from saddleslide.domains.entrywise import NonNegative
from saddleslide.errors import InputError
from saddleslide.functions.entrywise import Linear
from saddleslide.functions.losses import LeastSquares
from saddleslide.functions.quadratic import Quadratic
from saddleslide.gallery import consensus, constrained, kuhn_poker, lp_inverse, matrix_game, transport
from saddleslide.gallery.consensus import gossip_matrix
from saddleslide.gallery.files import read_array, read_dense, read_matrix
from saddleslide.problem import SaddleProblem


def _add_game(one: Any) -> None:
    one.add_argument("name", nargs="?", choices=("matrix", "kuhn"), default="matrix", help="a matrix, or Kuhn poker")
    one.add_argument("--payoff", metavar="FILE", help="what the column player pays; random when missing")
    one.add_argument("--rows", type=whole(1), default=20, help="rows of the random matrix (20)")
    one.add_argument("--columns", type=whole(1), default=30, help="columns of the random matrix (30)")
    one.add_argument("--seed", type=whole(0), default=0, help="seed of the random matrix (0)")
    one.add_argument("--regularise", type=positive, help="weight of |p|^2 / 2 for both strategies (none)")
    one.add_argument("--entropy", type=positive, help="weight of the entropy of both strategies (none)")


def _game(chosen: Any) -> SaddleProblem:
    if chosen.name == "kuhn":
        if any(value is not None for value in (chosen.payoff, chosen.regularise, chosen.entropy)):
            raise InputError("game: kuhn is given with --payoff, --regularise or --entropy; expected it alone.")
        return kuhn_poker()
    if chosen.payoff is not None:
        payoff = read_matrix(chosen.payoff)
    else:
        payoff = np.random.default_rng(chosen.seed).standard_normal((chosen.rows, chosen.columns))
    regulariser = None if chosen.regularise is None else Quadratic(chosen.regularise)
    return matrix_game(payoff, row=regulariser, column=regulariser, entropy=chosen.entropy)


def _add_transport(one: Any) -> None:
    for name in ("costs", "source", "target"):
        one.add_argument(f"--{name}", metavar="FILE", help=f"{name}; all three files or none")
    one.add_argument("--size", type=whole(2), default=40, help="bins of the built-in histograms (40)")
    one.add_argument(
        "--regularisation", type=positive, metavar="WEIGHT", help="weight of |P|^2 / 2, or of the entropy (0.1)"
    )
    one.add_argument("--regulariser", choices=("quadratic", "entropy", "none"), default="quadratic", help="(quadratic)")


def _transport(chosen: Any) -> SaddleProblem:
    options: dict[str, Any] = {}
    if chosen.regulariser != "none":
        options = {"regularisation": chosen.regularisation or 0.1, "regulariser": chosen.regulariser}
    elif chosen.regularisation is not None:
        raise InputError("transport: --regularisation stands beside --regulariser none; expected one of them.")
    files = (chosen.costs, chosen.source, chosen.target)
    if any(file is not None for file in files):
        if None in files:
            raise InputError("transport: one of --costs, --source and --target is missing; expected all three or none.")
        costs, source, target = read_dense(chosen.costs), read_array(chosen.source), read_array(chosen.target)
        return transport(costs, source, target, **options)
    t = np.linspace(0.0, 1.0, chosen.size)
    source = np.exp(-((t - 0.3) ** 2) / 0.01)
    target = np.exp(-((t - 0.5) ** 2) / 0.005) + np.exp(-((t - 0.8) ** 2) / 0.002)
    costs = (t[:, None] - t[None, :]) ** 2
    return transport(costs, source / source.sum(), target / target.sum(), **options)


def _add_consensus(one: Any) -> None:
    one.add_argument("--graph", metavar="FILE", help="adjacency or gossip matrix; a ring when missing")
    one.add_argument("--A", metavar="FILE", help="data matrices, (agents, samples, d); random when missing")
    one.add_argument("--b", metavar="FILE", help="data vectors, (agents, samples); with --A")
    one.add_argument("--agents", type=whole(2), default=10, help="agents of the built-in ring (10)")
    one.add_argument("--ridge", type=positive, default=0.1, help="weight of |x|^2 / 2 for each agent (0.1)")
    one.add_argument("--seed", type=whole(0), default=0, help="seed of the random data (0)")


def _consensus(chosen: Any) -> SaddleProblem:
    ring = np.roll(np.eye(chosen.agents), 1, axis=1)
    graph = np.minimum(ring + ring.T, 1.0) if chosen.graph is None else read_matrix(chosen.graph)
    agents = len(gossip_matrix(graph))
    A, b = _pair(chosen, "consensus", (agents, 10, 4), (agents, 10))
    if A.ndim != 3 or b.shape != A.shape[:2]:
        raise InputError(f"consensus: A and b have shapes {A.shape} and {b.shape}; expected (n, m, d) and (n, m).")
    return consensus([LeastSquares(A[i], b[i], ridge=chosen.ridge) for i in range(len(A))], graph)


def _add_constrained(one: Any) -> None:
    one.add_argument("--A", metavar="FILE", help="matrix of the constraint A x = b; random when missing")
    one.add_argument("--b", metavar="FILE", help="right-hand side; with --A")
    one.add_argument("--G", metavar="FILE", help="matrix of the constraint G x <= h; with --h, and with or without --A")
    one.add_argument("--h", metavar="FILE", help="its right-hand side")
    one.add_argument("--Q", metavar="FILE", help="matrix of the objective <x, Q x> / 2, positive definite (identity)")
    one.add_argument("--c", metavar="FILE", help="vector of the objective <c, x> (0)")
    one.add_argument("--nonnegative", action="store_true", help="also x >= 0")
    one.add_argument("--bound", type=positive, help="bound on the norm of the multipliers (ten times a guess)")
    one.add_argument("--seed", type=whole(0), default=0, help="seed of the random constraint, 5 x 20 (0)")


def _build_constrained(chosen: Any) -> SaddleProblem:
    if (chosen.G is None) != (chosen.h is None):
        raise InputError("constrained: one of --G and --h is missing; expected both or none.")
    G, h = (None, None) if chosen.G is None else (read_matrix(chosen.G), read_array(chosen.h))
    is_alone = G is not None and chosen.A is None and chosen.b is None
    A, b = (None, None) if is_alone else _pair(chosen, "constrained", (5, 20), (5,), feasible=True)
    matrices = {name: matrix for name, matrix in (("A", A), ("G", G)) if matrix is not None}
    for name, matrix in matrices.items():
        if matrix.ndim != 2:
            raise InputError(f"constrained: {name} has shape {matrix.shape}; expected a matrix.")
    # Anything but a number as Q is a matrix, symmetric and positive semidefinite.
    f: Any = Quadratic(1.0 if chosen.Q is None else read_dense(chosen.Q))
    if chosen.c is not None:
        f = f + Linear(read_array(chosen.c))
    X = NonNegative(next(iter(matrices.values())).shape[1]) if chosen.nonnegative else None
    return constrained(f, A, b, G=G, h=h, X=X, bound=chosen.bound)


def _add_inverse(one: Any) -> None:
    one.add_argument("--A", metavar="FILE", help="forward matrix; random when missing")
    one.add_argument("--b", metavar="FILE", help="data; with --A")
    one.add_argument("--weight", type=positive, default=1.0, help="weight of the penalty (1)")
    one.add_argument("--p", type=float, default=3.0, help="exponent of the penalty, >= 2 (3)")
    one.add_argument("--ridge", type=positive, help="weight of |x|^2 / 2, where A does not see all of x (none)")
    one.add_argument("--seed", type=whole(0), default=0, help="seed of the random data, 60 x 40 (0)")


def _inverse(chosen: Any) -> SaddleProblem:
    A, b = _pair(chosen, "inverse", (60, 40), (60,))
    return lp_inverse(A, b, weight=chosen.weight, p=chosen.p, ridge=chosen.ridge or 0.0)


def _pair(
    chosen: Any, name: str, A_shape: tuple[int, ...], b_shape: tuple[int, ...], feasible: bool = False
) -> tuple[Any, Any]:
    """--A and --b from files, or random ones; a feasible b is A times a random x >= 0."""
    if (chosen.A is None) != (chosen.b is None):
        raise InputError(f"{name}: one of --A and --b is missing; expected both or none.")
    if chosen.A is not None:
        b = np.asarray(read_array(chosen.b))
        return read_matrix(chosen.A), b
    rng = np.random.default_rng(chosen.seed)
    A = rng.standard_normal(A_shape)
    return A, A @ rng.random(A_shape[-1]) if feasible else rng.standard_normal(b_shape)


_FILES = "a .csv, .txt, .npy, .npz or .mtx file"
GAME = Entry(
    "game", "value and strategies of a zero-sum matrix game", 1e-6, _add_game, _game,
    examples=("", "--rows 5 --columns 8 --seed 3 --tol 1e-3", "--regularise 0.1"),
    report="--out game",
    own=f"your own matrix: --payoff with {_FILES} (name.npz:key picks one of several\narrays)\n",
)  # fmt: skip
TRANSPORT = Entry(
    "transport", "plan and potentials of an optimal transport", 1e-6, _add_transport, _transport,
    examples=("", "--size 20 --regularisation 0.5 --tol 1e-3"),
    report="--size 20 --out transport",
    own=f"your own data: --costs, --source and --target, each {_FILES}\n",
)  # fmt: skip
CONSENSUS = Entry(
    "consensus", "least squares by agents on a graph, with rounds of communication counted", 1e-6,
    _add_consensus, _consensus,
    examples=("", "--agents 6 --ridge 1.0 --tol 1e-3"),
    report="--out consensus",
    own="""your own data: --graph with a matrix, --A with (agents, samples, d) and --b with (agents, samples) numbers,
such as data.npz:A and data.npz:b
""",
)  # fmt: skip
CONSTRAINED = Entry(
    "constrained", "min <x, Q x> / 2 + <c, x> with A x = b and G x <= h: x, multipliers, feasibility", 1e-6,
    _add_constrained, _build_constrained,
    examples=("", "--nonnegative --seed 1 --tol 1e-3"),
    report="--out constrained",
    own=f"your own data: --A, --b, --G, --h, --Q and --c, each {_FILES}\n",
)  # fmt: skip
INVERSE = Entry(
    "inverse", "min |A x - b|^2 / 2 + weight/p sum |D x|^p, D the differences of neighbours", 1e-6,
    _add_inverse, _inverse,
    examples=("", "--p 4 --weight 0.5 --tol 1e-3"),
    report="--out inverse",
    own=f"your own data: --A and --b, each {_FILES}\n",
)  # fmt: skip
