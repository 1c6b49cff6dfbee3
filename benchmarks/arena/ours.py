"""The whole call of a family, as a program that answers tasks: problem and certificate included, everything anew."""

from __future__ import annotations

import gc
import math
from typing import Any

import numpy as np

import saddleslide as ss
from benchmarks.arena.families import NAMES, Instance
from benchmarks.arena.programs.serving import now, reply_to

HELD: dict[tuple[str, int], Instance] = {}


def answer(task: dict[str, Any]) -> dict[str, Any]:
    key = task["family"], int(task["size"])
    if key not in HELD:
        HELD.clear()
        HELD[key] = NAMES[key[0]].make(key[1])
    times = []
    for _ in range(int(task["repeat"])):
        gc.collect()
        gc.disable()
        began = now()
        result = HELD[key].ask(time_limit=float(task["seconds"]), **task["target"])
        times.append((now() - began).tolist())
        gc.enable()
    point = {"x": np.ravel(result.x)[None], "y": np.ravel(result.y)[None]}
    np.savez(task["out"], iterations=[result.nit], seconds=[times[-1][1]], **point)
    return {
        "times": times, "kept": 1, "success": bool(result.success), "status": result.status.name,
        "methods": [plan.method or "adaptive" for plan in result.plans], "calls": [result.calls.f,
        result.calls.g, result.calls.B],
        "lower": result.lower if math.isfinite(result.lower) else None,
        "gap": result.gap if math.isfinite(result.gap) else None,
    }  # fmt: skip


if __name__ == "__main__":
    reply_to(answer, f"saddleslide {ss.__version__}")
