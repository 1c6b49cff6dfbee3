"""Calls to several actors at once, with an eye on who is still there."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import Any

from saddleslide.distributed.engine import living

# Why a worker did not answer.
LOST, SLOW = "lost", "slow"
# What a call raises when its worker is gone: no connection, an actor that is lost, a worker that started anew.
_ABSENT = (OSError, RuntimeError, KeyError, asyncio.CancelledError)
# Seconds between two looks at who is there, while answers are missing.
_WATCH = 0.5


def asked(
    client: Any,
    actors: Mapping[str, Any],
    method: str,
    jobs: Mapping[str, tuple[Any, ...]],
    patience: float,
    hurry: bool,
) -> tuple[dict[str, Any], dict[str, str]]:
    """Call a method of several actors at once: the replies by worker, and why the others did not answer.

    A worker that the scheduler does not know any more is lost at once. With `hurry` one that lets `patience` seconds
    pass is too slow, if another one could take over. Without a scheduler all wait `patience` seconds at most.
    """
    if not jobs:
        return {}, {}
    if client.status == "closed":
        return {}, dict.fromkeys(jobs, LOST)
    # An actor speaks through the current client.
    with client.as_current():
        replies, lost = client.sync(_gathered, client, actors, method, jobs, patience, hurry)
    return replies, lost


async def _gathered(
    client: Any,
    actors: Mapping[str, Any],
    method: str,
    jobs: Mapping[str, tuple[Any, ...]],
    patience: float,
    hurry: bool,
) -> tuple[dict[str, Any], dict[str, str]]:
    tasks = {asyncio.ensure_future(_called(actors[worker], method, job)): worker for worker, job in jobs.items()}
    replies: dict[str, Any] = {}
    lost: dict[str, str] = {}
    waiting, began = set(tasks), time.monotonic()
    while waiting:
        done, waiting = await asyncio.wait(waiting, timeout=_WATCH, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            try:
                replies[tasks[task]] = task.result()
            except _ABSENT:
                # What a part raises is in its reply: these mean that nobody is there.
                lost[tasks[task]] = LOST
        if done or not waiting:
            continue
        alive = await living(client)
        late = time.monotonic() - began > patience
        others = len(actors) > len(waiting)
        for task in list(waiting):
            gone = late if alive is None else tasks[task] not in alive
            if gone or (late and hurry and others):
                lost[tasks[task]] = LOST if gone else SLOW
                waiting.discard(task)
                task.cancel()
    return replies, lost


async def _called(actor: Any, method: str, job: tuple[Any, ...]) -> Any:
    return await getattr(actor, method)(*job)
