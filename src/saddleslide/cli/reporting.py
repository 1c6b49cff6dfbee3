"""What the command line says about a result: a table, a record, arrays, pictures."""

from __future__ import annotations

import io
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from saddleslide.errors import InputError
from saddleslide.gallery import PictureSolution
from saddleslide.gallery.solution import Fact, Solution
from saddleslide.paper.rows import plain
from saddleslide.plots import require_matplotlib
from saddleslide.problem import SaddleProblem
from saddleslide.runs.result import Result

if TYPE_CHECKING:
    from rich.table import Table

# What --out writes: a record, the arrays, and two pictures; and the picture itself where the solution is one.
SOLUTION_FILES = ("result.json", "arrays.npz", "solution.png", "convergence.png")
PICTURE = "image.png"


def summary(result: Result, facts: Mapping[str, object] | None = None) -> Table:
    """A result as a table for the terminal."""
    from rich.table import Table

    table = Table(title=_title(result), title_justify="left")
    table.add_column("")
    table.add_column("value", justify="right")
    judging = result.certificate_calls
    rows = [
        ("status", result.status.name.lower()),
        ("certified gap", f"{result.gap:.4g}"),
        ("target", _target(result)),
        ("saddle value within", f"[{result.lower:.6g}, {result.upper:.6g}]"),
        ("calls of f'", _count(result.calls.f)),
        ("calls of g'", _count(result.calls.g)),
        ("products with B, B^T", _count(result.calls.B)),
        *_sampled_rows(result),
        ("certificate, included above", f"f' {_count(judging.f)}  g' {_count(judging.g)}  B {_count(judging.B)}"),
        ("seconds, in all", f"{result.seconds:.3g}"),
        ("seconds, method", f"{result.timings['method']:.3g}"),
    ]
    rows += [(name, _said(value)) for name, value in (facts or {}).items()]
    for name, value in rows:
        table.add_row(name, value)
    return table


def _sampled_rows(result: Result) -> list[tuple[str, str]]:
    """What sampled gradients drew, and what is known on average; nothing for exact ones."""
    if not result.samples.total:
        return []
    rows = [("samples of f', g'", f"{result.samples.f:,}, {result.samples.g:,}")]
    bounded = math.isfinite(result.expected_gap)
    return rows + ([("bound on the expected gap", f"{result.expected_gap:.4g}")] if bounded else [])


def _said(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,.8g}" if isinstance(value, int | float) else str(value)


def _title(result: Result) -> str:
    used = result.plans[-1]
    if used.regime == "degenerate":
        return f"levels {used.order}, loops {used.loops}"
    return used.explain().splitlines()[0].removeprefix("Plan: ")


def _target(result: Result) -> str:
    target, rtol = result.known_target, result.plans[-1].rtol
    words = [f"{target:.4g}"] if math.isfinite(target) else []
    words += [f"{rtol:g} of the gap at the start"] if rtol > 0.0 else []
    return " = ".join(words) or "none"


def _count(calls: float) -> str:
    return f"{calls:,.12g}"


def as_record(result: Result) -> dict[str, Any]:
    """Everything a result says but the arrays, as plain data."""
    return {
        "status": result.status.name,
        "message": result.message,
        "gap": result.gap,
        "lower": result.lower,
        "upper": result.upper,
        "target": result.known_target,
        "certificate": {"kind": result.certificate.kind, "reason": result.certificate.reason},
        "calls": vars(result.calls),
        "spared": result.spared,
        "certificate_calls": vars(result.certificate_calls),
        "seconds": result.seconds,
        "timings": dict(result.timings),
        "plans": [used.to_dict() for used in result.plans],
        "history": [
            {"step": m.step, "calls": vars(m.calls), "seconds": m.seconds, "gap": m.gap} for m in result.history
        ],
    }


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
        return _write(folder, problem, result, asked)
    except OSError as error:
        raise InputError(f"--out is {str(folder)!r}; expected a folder that can be written: {error}.") from error


def _write(folder: Path, problem: SaddleProblem, result: Result, asked: Mapping[str, Any]) -> tuple[str, ...]:
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
