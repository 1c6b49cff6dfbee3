"""`resume`: continues a run from a checkpoint, to the same bits as if it had never stopped."""

from __future__ import annotations

import sys
import time
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from saddleslide.api.minimisation import read_back
from saddleslide.api.runner import hold_to_limits
from saddleslide.arrays.arguments import as_flag, as_path, as_whole
from saddleslide.arrays.base import as_number, as_real
from saddleslide.domains.base import Domain
from saddleslide.errors import CheckpointError, InputError, SaddleslideError, UnreachableError
from saddleslide.functions.base import Function
from saddleslide.oracles.calls import Calls
from saddleslide.oracles.clock import Clock
from saddleslide.oracles.sampling import quiet_problem
from saddleslide.planner.courses import course_of
from saddleslide.problem import SaddleProblem
from saddleslide.problem.objectives import split_objective
from saddleslide.runs.checkpoint import fingerprint, read_checkpoint
from saddleslide.runs.control import Callback, Control, as_control
from saddleslide.runs.loop import Run
from saddleslide.runs.result import Result
from saddleslide.runs.snapshot import fresh_generator, restore
from saddleslide.theory.plan import Plan, Target

# Packages whose code is not the caller's.
_OURS = {"saddleslide", "numpy", "scipy", "numba", *sys.stdlib_module_names} - {"__main__"}


def resume(
    path: str | PathLike[str],
    problem: SaddleProblem | Function,
    *,
    over: Domain | None = None,
    dtype: Any = None,
    max_calls: Mapping[str, float] | None = None,
    max_steps: int | None = None,
    time_limit: float | None = None,
    callback: Callback | None = None,
    strict: bool = False,
    on_interrupt: str = "raise",
    checkpoint: str | PathLike[str] | None = None,
    checkpoint_every: int | None = None,
) -> Result:
    """Continue a run of `ss.solve`, `ss.minimize` or `ss.run` from its checkpoint.

    Parameters
    ----------
    path : path
        What `checkpoint=` named. The file is read as data; nothing in it is executed.
    problem : SaddleProblem or Function
        The same problem, or objective of `ss.minimize`, made again: a file holds no functions. Shapes, kinds and stored
        numbers are compared.
    over, dtype : optional
        Those of the `ss.minimize` that began.
    max_calls, max_steps, time_limit : optional
        New limits on the whole run, its first part included; when missing those of the first part, used up as they are.
    callback, strict, on_interrupt : optional
        As in `ss.solve`.
    checkpoint : path, optional
        Where to go on saving; the same file when missing.
    checkpoint_every : int, optional
        Outer steps between two writes; as before when missing.

    Returns
    -------
    Result
        Of the whole run: same bits, calls and history as if it had never stopped; times differ.

    Examples
    --------
    >>> import tempfile, numpy as np, saddleslide as ss
    >>> simplex, zero = ss.domains.Simplex(3), ss.functions.Zero()
    >>> game = ss.SaddleProblem(f=zero, g=zero, B=np.diag([1.0, 2.0, 3.0]), X=simplex, Y=simplex)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     first = ss.solve(game, tol=1e-9, max_steps=2, checkpoint=f"{folder}/run.npz")
    ...     result = ss.resume(f"{folder}/run.npz", game, max_steps=1000)
    >>> first.status.name, result.status.name
    ('STEP_LIMIT', 'SOLVED')
    >>> bool((result.x == ss.solve(game, tol=1e-9).x).all())
    True
    """
    if isinstance(problem, Function):
        stated = split_objective(problem, over, dtype)
        result = resume(
            path, stated.problem, max_calls=max_calls, max_steps=max_steps, time_limit=time_limit, callback=callback,
            strict=strict, on_interrupt=on_interrupt, checkpoint=checkpoint, checkpoint_every=checkpoint_every,
        )  # fmt: skip
        return read_back(stated, result)
    if not isinstance(problem, SaddleProblem):
        raise InputError(
            f"resume: problem is {type(problem).__name__}; expected the SaddleProblem or the objective of the run."
        )
    if not (over is None and dtype is None):
        raise InputError("resume: over and dtype belong to an objective; a SaddleProblem has them. Leave them out.")
    entered = time.perf_counter()
    path = as_path(path, "resume: path", "run.npz")
    header, arrays = read_checkpoint(path)
    if "result" in header:
        raise CheckpointError(f"{fspath(path)!r} is a result, not the checkpoint of a run; ss.load reads it.")
    as_flag(strict, "resume: strict")
    with _blame_file(path):
        limits = ("max_calls", "max_steps", "time_limit", "checkpoint_every")
        old = as_control("checkpoint", **{name: header["limits"][name] for name in limits})
        spent = {name: as_number(seconds, "timings", 0.0) for name, seconds in header["timings"].items()}
        clock = Clock(entered - as_number(header["elapsed"], "elapsed", 0.0), spent)
    control = as_control(
        "resume",
        max_calls=old.max_calls if max_calls is None else max_calls,
        max_steps=old.max_steps if max_steps is None else max_steps,
        time_limit=old.time_limit if time_limit is None else time_limit,
        callback=callback,
        on_interrupt=on_interrupt,
        checkpoint=path if checkpoint is None else checkpoint,
        checkpoint_every=old.checkpoint_every if checkpoint_every is None else checkpoint_every,
        clock=clock,
    )
    with _blame_file(path):
        known, run = _restore(header, arrays, problem, control, path)
    run.control = replace(run.control, dry=False)
    with _blame_file(path, theirs=True):
        result = hold_to_limits(known, run.control.start, run.control, Target(), run.carry_out)
    return result.or_raise() if strict else result


@contextmanager
def _blame_file(path: Path, theirs: bool = False) -> Iterator[None]:
    """Whatever our own code stumbles over in a checkpoint is the fault of the file.

    With `theirs`, code of the caller's runs too, and its exceptions are the caller's.
    """
    try:
        yield
    except (CheckpointError, UnreachableError):
        raise
    except Exception as error:
        if theirs and (isinstance(error, SaddleslideError) or _is_the_callers(error)):
            raise
        raise CheckpointError(
            f"checkpoint {fspath(path)!r} does not fit this problem and version: {error!r}. Start anew."
        ) from error


def _is_the_callers(error: Exception) -> bool:
    """Whether an exception passed through code that is neither ours nor of what we are built on."""
    names = [frame.f_globals.get("__name__", "") for frame, _ in traceback.walk_tb(error.__traceback__)]
    return any(name.partition(".")[0] not in _OURS for name in names)


def _restore(
    header: Mapping[str, Any], arrays: list[Any], problem: SaddleProblem, control: Control, path: Path
) -> tuple[SaddleProblem, Run]:
    """The run of a checkpoint as it was, with nothing called."""
    same = (found for found in (problem, quiet_problem(problem)) if fingerprint(found) == header["problem"])
    known = next(same, None)
    if known is None:
        raise CheckpointError(
            f"checkpoint {fspath(path)!r} belongs to another problem: shapes, kinds or stored numbers differ. Pass the "
            "problem that it was written for."
        )
    f, g, B = header["before"]
    for point, domain in zip(arrays[-2:], (known.X, known.Y), strict=True):
        as_real(point, "start", domain.shape)
    control.books.problem = known
    norms = [None if norm is None else _read_norm(*norm) for norm in header["norms"]]
    tests = [None if test is None else [as_number(one, "adjoints", 0.0) for one in test] for test in header["adjoints"]]
    control.books.know(norms, tests)
    start = arrays[-2], arrays[-1]
    control = replace(
        control,
        before=Calls(as_number(f, "before", 0.0), as_number(g, "before", 0.0), as_whole(B, "before", 0)),
        header={"plan": header["plan"], "problem": header["problem"]},
        start=start,
        dry=True,
    )
    plan = Plan.from_dict(header["plan"])
    generator = fresh_generator(header["state"]) if plan.sampled else None
    run = Run(known, plan, start, control, generator, course_of(known, plan))
    restore(run, header["state"], arrays[:-2], problem.arrays)
    return known, run


def _read_norm(upper: Any, estimate: Any, method: Any, failure: Any) -> tuple[float, float, str, float]:
    numbers = [as_number(number, "norms", 0.0, finite=False) for number in (upper, estimate, failure)]
    return numbers[0], numbers[1], str(method), numbers[2]
