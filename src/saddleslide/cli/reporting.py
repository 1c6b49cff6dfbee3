"""What the command line says about a result: a table, a record, pictures."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from saddleslide.runs.result import Result

if TYPE_CHECKING:
    from rich.table import Table


def summary(result: Result, facts: Mapping[str, object] | None = None) -> Table:
    """A result as a table for the terminal."""
    from rich.table import Table

    table = Table(title=_title(result), title_justify="left")
    table.add_column("")
    table.add_column("value", justify="right")
    rows = [
        ("status", result.status.name.lower()),
        ("certified gap", f"{result.gap:.4g}"),
        ("target", _target(result)),
        ("saddle value within", f"[{result.lower:.6g}, {result.upper:.6g}]"),
        ("calls of f'", _count(result.calls.f)),
        ("calls of g'", _count(result.calls.g)),
        ("products with B, B^T", _count(result.calls.B)),
        *_sampled_rows(result),
        ("certificate, included above", _certificate_calls(result)),
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


def _certificate_calls(result: Result) -> str:
    judging = result.certificate_calls
    return f"f' {_count(judging.f)}  g' {_count(judging.g)}  B {_count(judging.B)}"


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


def plain(value: Any) -> Any:
    """The value as JSON can say it: it has no word for an unknown number but null."""
    if isinstance(value, dict):
        return {name: plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value.item() if isinstance(value, np.generic) else value
