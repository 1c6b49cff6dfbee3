"""`saddleslide solve game`, `transport`, `consensus`, `denoise` and `my_file.py:problem`: problems from files."""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from saddleslide.errors import InputError
from saddleslide.functions import LeastSquares, Quadratic
from saddleslide.gallery import RestoredPicture, consensus, denoise, matrix_game, shaded_phantom, transport
from saddleslide.gallery.files import read_array
from saddleslide.gallery.solution import Fact, Solution
from saddleslide.problem import SaddleProblem
from saddleslide.reporting import as_record, plain
from saddleslide.result import Result

# What --out writes: a record, the arrays, and two pictures.
SOLUTION_FILES = ("result.json", "arrays.npz", "solution.png", "convergence.png")
# And the clean picture of `denoise`.
PICTURE = "image.png"
Numbers = Callable[[str], float]
Whole = Callable[[int], Callable[[str], int]]

GALLERY_EXAMPLES: dict[str, str] = {
    "game": """examples:
  saddleslide {command} game
  saddleslide {command} game --rows 5 --columns 8 --seed 3 --tol 1e-3
  saddleslide {command} game --regularise 0.1

your own matrix: --payoff with a .csv, .txt, .npy, .npz or .mtx file (name.npz:key picks one of several arrays)
""",
    "transport": """examples:
  saddleslide {command} transport
  saddleslide {command} transport --size 20 --regularisation 0.5 --tol 1e-3

your own data: --costs, --source and --target, each a .csv, .txt, .npy, .npz or .mtx file
""",
    "consensus": """examples:
  saddleslide {command} consensus
  saddleslide {command} consensus --agents 6 --ridge 1.0 --tol 1e-3

your own data: --graph with a matrix, --A with (agents, samples, d) and --b with (agents, samples) numbers, such as
data.npz:A and data.npz:b
""",
    "denoise": """examples:
  saddleslide {command} denoise --size 32
  saddleslide {command} denoise --size 32 --weight 0.2 --huber 0.01

your own picture: --picture with a .png, .jpg, .npy or .csv file
""",
    "file": """the file makes a SaddleProblem, or has a function without arguments that returns one:
  import saddleslide as ss
  problem = ss.gallery.matrix_game([[3.0, 0.0], [1.0, 2.0]])
with these lines in my_file.py, `{command} my_file.py:problem` is the command
""",
}
GALLERY_OUT = {
    "game": "  saddleslide solve game --out game\n",
    "transport": "  saddleslide solve transport --size 20 --out transport\n",
    "consensus": "  saddleslide solve consensus --out consensus\n",
    "denoise": "  saddleslide solve denoise --size 32 --out clean\n",
    "file": "",
}
_SAYS = {
    "game": "value and strategies of a zero-sum matrix game",
    "transport": "plan and potentials of an optimal transport",
    "consensus": "least squares by agents on a graph, with rounds of communication counted",
    "denoise": "a picture without its noise, by (Huber) total variation",
    "file": "a problem of your own: my_file.py:problem",
}
_TOLERANCES = {"game": 1e-6, "transport": 1e-6, "consensus": 1e-6, "denoise": 1e-2, "file": 1e-6}
# Predictions for the slow methods run through all their steps, which takes long at small targets.
_COMPARED = 1e-2


def add_gallery(problems: Any, command: str, number: Numbers, whole: Whole) -> None:
    """The arguments of every problem of the gallery, for `solve`, `plan` or `compare`."""
    options = {"game": _game, "transport": _transport, "consensus": _consensus, "denoise": _denoise, "file": _file}
    for name, add in options.items():
        out = GALLERY_OUT[name] if command == "solve" else ""
        one = problems.add_parser(
            name,
            help=_SAYS[name],
            description=_SAYS[name],
            epilog=GALLERY_EXAMPLES[name].format(command=command) + (f"\nwith a report:\n{out}" if out else ""),
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        add(one, number, whole)
        tol = _COMPARED if command == "compare" else _TOLERANCES[name]
        one.add_argument("--tol", type=number, default=tol, help=f"target gap ({tol:g})")
        if command == "solve":
            one.add_argument("--out", type=Path, metavar="DIR", help=f"write {', '.join(SOLUTION_FILES)} there")


def _game(one: Any, number: Numbers, whole: Whole) -> None:
    one.add_argument("--payoff", metavar="FILE", help="what the column player pays; random when missing")
    one.add_argument("--rows", type=whole(1), default=20, help="rows of the random matrix (20)")
    one.add_argument("--columns", type=whole(1), default=30, help="columns of the random matrix (30)")
    one.add_argument("--seed", type=whole(0), default=0, help="seed of the random matrix (0)")
    one.add_argument("--regularise", type=number, help="weight of |p|^2 / 2 for both strategies (none)")


def _transport(one: Any, number: Numbers, whole: Whole) -> None:
    for name in ("costs", "source", "target"):
        one.add_argument(f"--{name}", metavar="FILE", help=f"{name}; all three files or none")
    one.add_argument("--size", type=whole(2), default=40, help="bins of the built-in histograms (40)")
    one.add_argument("--regularisation", type=number, default=0.1, help="weight of |P|^2 / 2 (0.1)")


def _consensus(one: Any, number: Numbers, whole: Whole) -> None:
    one.add_argument("--graph", metavar="FILE", help="adjacency or gossip matrix; a ring when missing")
    one.add_argument("--A", metavar="FILE", help="data matrices, (agents, samples, d); random when missing")
    one.add_argument("--b", metavar="FILE", help="data vectors, (agents, samples); with --A")
    one.add_argument("--agents", type=whole(2), default=10, help="agents of the built-in ring (10)")
    one.add_argument("--ridge", type=number, default=0.1, help="weight of |x|^2 / 2 for each agent (0.1)")
    one.add_argument("--seed", type=whole(0), default=0, help="seed of the random data (0)")


def _denoise(one: Any, number: Numbers, whole: Whole) -> None:
    one.add_argument("--picture", metavar="FILE", help="a picture (.png, .jpg) or an array; a noisy head when missing")
    one.add_argument("--weight", type=number, default=0.1, help="weight of the total variation (0.1)")
    one.add_argument("--huber", type=number, help="square differences below this (plain TV when missing)")
    one.add_argument("--size", type=whole(4), default=64, help="pixels per side of the built-in picture (64)")
    one.add_argument("--seed", type=whole(0), default=0, help="seed of its noise (0)")


def _file(one: Any, number: Numbers, whole: Whole) -> None:
    one.add_argument("target", metavar="my_file.py:problem", help="a file and the name of what it makes")


def gallery_problem(chosen: Any) -> SaddleProblem:
    """The problem that the arguments ask for."""
    makers: Mapping[str, Callable[[Any], SaddleProblem]] = {
        "game": _make_game,
        "transport": _make_transport,
        "consensus": _make_consensus,
        "denoise": _make_denoise,
        "file": _make_from_file,
    }
    return makers[chosen.problem](chosen)


def _make_game(chosen: Any) -> SaddleProblem:
    if chosen.payoff is not None:
        payoff = read_array(chosen.payoff)
    else:
        payoff = np.random.default_rng(chosen.seed).standard_normal((chosen.rows, chosen.columns))
    regulariser = None if chosen.regularise is None else Quadratic(chosen.regularise)
    return matrix_game(payoff, row=regulariser, column=regulariser)


def _make_transport(chosen: Any) -> SaddleProblem:
    files = (chosen.costs, chosen.source, chosen.target)
    if any(file is not None for file in files):
        if None in files:
            raise InputError("transport: one of --costs, --source and --target is missing; expected all three or none.")
        costs, source, target = (read_array(file) for file in files)
        return transport(costs, source, target, regularisation=chosen.regularisation)
    t = np.linspace(0.0, 1.0, chosen.size)
    source = np.exp(-((t - 0.3) ** 2) / 0.01)
    target = np.exp(-((t - 0.5) ** 2) / 0.005) + np.exp(-((t - 0.8) ** 2) / 0.002)
    costs = (t[:, None] - t[None, :]) ** 2
    return transport(costs, source / source.sum(), target / target.sum(), regularisation=chosen.regularisation)


def _make_consensus(chosen: Any) -> SaddleProblem:
    if (chosen.A is None) != (chosen.b is None):
        raise InputError("consensus: one of --A and --b is missing; expected both or none.")
    ring = np.roll(np.eye(chosen.agents), 1, axis=1)
    graph = np.minimum(ring + ring.T, 1.0) if chosen.graph is None else read_array(chosen.graph)
    if chosen.A is None:
        rng = np.random.default_rng(chosen.seed)
        agents = graph.shape[0]
        A, b = rng.standard_normal((agents, 10, 4)), rng.standard_normal((agents, 10))
    else:
        A, b = np.asarray(read_array(chosen.A)), np.asarray(read_array(chosen.b))
    if A.ndim != 3 or b.shape != A.shape[:2]:
        raise InputError(f"consensus: A and b have shapes {A.shape} and {b.shape}; expected (n, m, d) and (n, m).")
    return consensus([LeastSquares(A[i], b[i], ridge=chosen.ridge) for i in range(len(A))], graph)


def _make_denoise(chosen: Any) -> SaddleProblem:
    if chosen.picture is not None:
        picture = read_array(chosen.picture)
    else:
        noise = np.random.default_rng(chosen.seed).standard_normal((chosen.size, chosen.size))
        picture = shaded_phantom(chosen.size) + 0.1 * noise
    return denoise(picture, chosen.weight, huber=chosen.huber or 0.0)


def _make_from_file(chosen: Any) -> SaddleProblem:
    path, _, name = str(chosen.target).rpartition(":")
    file = Path(path)
    if not name or not file.is_file():
        raise InputError(f"{chosen.target!r} names no file; expected my_file.py:problem with an existing file.")
    spec = importlib.util.spec_from_file_location(file.stem, file)
    if spec is None or spec.loader is None:
        raise InputError(f"{path!r} is no Python file; expected my_file.py:problem.")
    module = importlib.util.module_from_spec(spec)
    # The file may define classes that look themselves up by module.
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    found = getattr(module, name, None)
    made = found() if callable(found) else found
    if not isinstance(made, SaddleProblem):
        raise InputError(
            f"{chosen.target!r} is {type(made).__name__}; expected a SaddleProblem, or a function that makes one."
        )
    return made


def facts_of(problem: SaddleProblem, result: Result) -> dict[str, Fact]:
    """The solution's facts, where the problem has words of its own."""
    solution = problem.read(result)
    return solution.facts() if isinstance(solution, Solution) else {}


def write_solution(folder: Path, problem: SaddleProblem, result: Result, asked: Mapping[str, Any]) -> tuple[str, ...]:
    """Record, arrays and pictures of a solution; returns the names of the files."""
    solution = problem.read(result)
    spoken = isinstance(solution, Solution)
    record = {
        "command": {name: str(value) if isinstance(value, Path) else value for name, value in asked.items()},
        "facts": solution.facts() if spoken else {},
    }
    text = json.dumps(plain(record | as_record(result)), indent=1, allow_nan=False)
    (folder / SOLUTION_FILES[0]).write_text(text + "\n", encoding="utf-8")
    np.savez(folder / SOLUTION_FILES[1], **(solution.arrays() if spoken else {"x": result.x, "y": result.y}))
    written = list(SOLUTION_FILES if spoken else (*SOLUTION_FILES[:2], SOLUTION_FILES[3]))
    if spoken:
        solution.plot(folder / SOLUTION_FILES[2])
    if isinstance(solution, RestoredPicture):
        solution.save(folder / PICTURE)
        written.append(PICTURE)
    result.plot(path=folder / SOLUTION_FILES[3])
    return tuple(written)
