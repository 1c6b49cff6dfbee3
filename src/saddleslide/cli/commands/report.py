"""What --out leaves in a folder: a record, arrays, pictures."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from saddleslide.cli.commands.options import PICTURE, SOLUTION_FILES
from saddleslide.cli.reporting import as_record, plain
from saddleslide.errors import InputError
from saddleslide.gallery import PictureSolution
from saddleslide.gallery.solution import Fact, Solution
from saddleslide.problem import SaddleProblem
from saddleslide.runs.plot import require_matplotlib
from saddleslide.runs.result import Result


def prepare_folder(folder: Path) -> None:
    """Everything that could go wrong with --out goes wrong here, before the work."""
    require_matplotlib()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"--out is {str(folder)!r}; expected a folder that can be made: {error}.") from error


def facts_of(problem: SaddleProblem, result: Result) -> dict[str, Fact]:
    """The solution's facts, where the problem has words of its own."""
    solution = problem.read(result)
    return solution.facts() if isinstance(solution, Solution) else {}


def write_solution(folder: Path, problem: SaddleProblem, result: Result, asked: Mapping[str, Any]) -> tuple[str, ...]:
    """Record, arrays and pictures of a solution; returns the names of the files."""
    try:
        return _written(folder, problem, result, asked)
    except OSError as error:
        raise InputError(f"--out is {str(folder)!r}; expected a folder that can be written: {error}.") from error


def _written(folder: Path, problem: SaddleProblem, result: Result, asked: Mapping[str, Any]) -> tuple[str, ...]:
    solution = problem.read(result)
    spoken = isinstance(solution, Solution)
    record = {
        "command": {name: str(value) if isinstance(value, Path) else value for name, value in asked.items()},
        "facts": solution.facts() if spoken else {},
    }
    text = json.dumps(plain(record | as_record(result)), indent=1, allow_nan=False)
    (folder / SOLUTION_FILES[0]).write_text(text + "\n", encoding="utf-8")
    # In memory first: on a full disk, older versions of NumPy leave an archive open that complains when it is dropped.
    arrays = io.BytesIO()
    np.savez(arrays, **(solution.arrays() if spoken else {"x": result.x, "y": result.y}))
    (folder / SOLUTION_FILES[1]).write_bytes(arrays.getbuffer())
    written = list(SOLUTION_FILES if spoken else (*SOLUTION_FILES[:2], SOLUTION_FILES[3]))
    if spoken:
        solution.plot(folder / SOLUTION_FILES[2])
    if isinstance(solution, PictureSolution):
        solution.save(folder / PICTURE)
        written.append(PICTURE)
    result.plot(path=folder / SOLUTION_FILES[3])
    return tuple(written)
