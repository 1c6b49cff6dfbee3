"""`resume`: continues a run from a checkpoint, to the same bits as if it had never stopped."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import replace
from os import PathLike, fspath
from typing import Any

from saddleslide.adaptive_run import AdaptiveRun
from saddleslide.arguments import as_flag, as_path
from saddleslide.arrays import Array
from saddleslide.checkpoint import fingerprint, read_checkpoint
from saddleslide.control import Callback, Control, controlled
from saddleslide.driver import at_home
from saddleslide.elsewhere import traffic
from saddleslide.errors import CheckpointError, InputError
from saddleslide.method_run import MethodRun
from saddleslide.oracles import Calls
from saddleslide.plan_run import PlanRun
from saddleslide.planning.adaptive import AdaptivePlan
from saddleslide.planning.method_plan import MethodPlan
from saddleslide.planning.stored import plan_from_dict
from saddleslide.problem import SaddleProblem
from saddleslide.result import Result
from saddleslide.sampled_solve import Ladder
from saddleslide.sampling import quiet_problem
from saddleslide.snapshot import Snapshot, fresh_generator, restore

AnyRun = AdaptiveRun | MethodRun | PlanRun | Ladder


def resume(
    path: str | PathLike[str],
    problem: SaddleProblem,
    *,
    max_calls: Mapping[str, float] | None = None,
    max_steps: int | None = None,
    time_limit: float | None = None,
    callback: Callback | None = None,
    strict: bool = False,
    on_interrupt: str = "raise",
    checkpoint: str | PathLike[str] | None = None,
    checkpoint_every: int | None = None,
) -> Result:
    """Continue a run of `ss.solve` or `ss.run` from its checkpoint.

    Parameters
    ----------
    path : path
        What `checkpoint=` named. The file is read as data; nothing in it is executed.
    problem : SaddleProblem
        The same problem, made again: a file holds no functions. Shapes, kinds and stored numbers are compared.
    max_calls, max_steps, time_limit : optional
        New limits on the whole run; those of the first part when missing.
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
    if not isinstance(problem, SaddleProblem):
        raise InputError(f"resume: received {type(problem).__name__}; expected the SaddleProblem of the run.")
    before = traffic()
    path = as_path(path, "resume: path", "run.npz")
    header, arrays = read_checkpoint(path)
    as_flag(strict, "resume: strict")
    try:
        known = _same_problem(header["problem"], problem, path)
        old = header["limits"]
        control = controlled(
            "resume",
            max_calls=old["max_calls"] if max_calls is None else max_calls,
            max_steps=old["max_steps"] if max_steps is None else max_steps,
            time_limit=old["time_limit"] if time_limit is None else time_limit,
            callback=callback,
            on_interrupt=on_interrupt,
            checkpoint=path if checkpoint is None else checkpoint,
            checkpoint_every=old["checkpoint_every"] if checkpoint_every is None else checkpoint_every,
        )
        control = replace(
            control,
            before=Calls(*header["before"]),
            header={"plan": header["plan"], "problem": header["problem"]},
            start=(arrays[-2], arrays[-1]),
            dry=True,
            began=time.perf_counter() - header["elapsed"],
        )
        run = _fresh(known, header, control)
        restore(run, Snapshot(header["state"], arrays[:-2]), problem.arrays)
    except (KeyError, IndexError, TypeError) as error:
        raise CheckpointError(f"checkpoint {fspath(path)!r} lacks a part: {error!r}. Start anew.") from error
    run.control = replace(run.control, dry=False)
    result = run.carry_out()
    result = at_home(result, problem, traffic() - before)
    return result.or_raise() if strict else result


def _same_problem(stored: str, problem: SaddleProblem, path: str | PathLike[str]) -> SaddleProblem:
    for same in (problem, quiet_problem(problem)):
        if fingerprint(same) == stored:
            return same
    raise CheckpointError(
        f"checkpoint {fspath(path)!r} belongs to another problem: shapes, kinds or stored numbers differ. Pass the "
        "problem that it was written for."
    )


def _fresh(problem: SaddleProblem, header: Mapping[str, Any], control: Control) -> AnyRun:
    """A run of the same kind at its start, with nothing called."""
    assert control.start is not None
    start: tuple[Array, Array] = control.start
    if header["plan"] is None:
        generator = fresh_generator(header["state"])
        return Ladder(problem, math.nan, math.nan, True, start, None, control, generator)
    plan = plan_from_dict(header["plan"])
    if isinstance(plan, AdaptivePlan):
        return AdaptiveRun(problem, plan, start, control)
    if isinstance(plan, MethodPlan):
        return MethodRun(problem, plan, start, control)
    generator = fresh_generator(header["state"])
    return PlanRun(problem, plan, start, control, generator)
