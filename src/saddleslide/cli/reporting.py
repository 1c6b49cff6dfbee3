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
from saddleslide.gallery.solution import Solution
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

    used, judging, target = result.plans[-1], result.certificate_calls, result.known_target
    title = used.explain().splitlines()[0].removeprefix("Plan: ")
    if used.regime == "degenerate":
        title = f"levels {used.order}, loops {used.loops}"
    targets = [f"{target:.4g}"] if math.isfinite(target) else []
    targets += [f"{used.rtol:g} of the gap at the start"] if used.rtol > 0.0 else []
    rows = [
        ("status", result.status.name.lower()),
        ("certified gap", f"{result.gap:.4g}"),
        ("target", " = ".join(targets) or "none"),
        ("saddle value within", f"[{result.lower:.6g}, {result.upper:.6g}]"),
        ("calls of f'", _count(result.calls.f)),
        ("calls of g'", _count(result.calls.g)),
        ("products with B, B^T", _count(result.calls.B)),
    ]
    # What sampled gradients drew, and what is known on average.
    if result.samples.total:
        rows.append(("samples of f', g'", f"{result.samples.f:,}, {result.samples.g:,}"))
        if math.isfinite(result.expected_gap):
            rows.append(("bound on the expected gap", f"{result.expected_gap:.4g}"))
    rows += [
        ("certificate, included above", f"f' {_count(judging.f)}  g' {_count(judging.g)}  B {_count(judging.B)}"),
        ("seconds, in all", f"{result.seconds:.3g}"),
        ("seconds, method", f"{result.timings['method']:.3g}"),
    ]
    for name, value in (facts or {}).items():
        said = f"{value:,.8g}" if isinstance(value, int | float) else str(value)
        rows.append((name, ("yes" if value else "no") if isinstance(value, bool) else said))
    table = Table(title=title, title_justify="left")
    table.add_column("")
    table.add_column("value", justify="right")
    for row in rows:
        table.add_row(*row)
    return table


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


def write_solution(folder: Path, problem: SaddleProblem, result: Result, asked: Mapping[str, Any]) -> tuple[str, ...]:
    """Record, arrays and pictures of a solution; returns the names of the files."""
    solution = problem.read(result)
    spoken = isinstance(solution, Solution)
    record = {
        "command": {name: str(value) if isinstance(value, Path) else value for name, value in asked.items()},
        "facts": solution.facts() if spoken else {},
    }
    text = json.dumps(plain(record | as_record(result)), indent=1, allow_nan=False)
    # In memory first: on a full disk, older versions of NumPy leave an archive open that complains when it is dropped.
    arrays = io.BytesIO()
    np.savez(arrays, **(solution.arrays() if spoken else {"x": result.x, "y": result.y}))
    written = [name for name in SOLUTION_FILES if spoken or name != "solution.png"]
    try:
        (folder / "result.json").write_text(text + "\n", encoding="utf-8")
        (folder / "arrays.npz").write_bytes(arrays.getbuffer())
        if spoken:
            solution.plot(folder / "solution.png")
        if isinstance(solution, PictureSolution):
            solution.save(folder / PICTURE)
            written.append(PICTURE)
        result.plot(path=folder / "convergence.png")
    except OSError as error:
        raise InputError(f"--out is {str(folder)!r}; expected a folder that can be written: {error}.") from error
    return tuple(written)
