"""Calls to several actors at once, with an eye on who is still there."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Hashable, Mapping
from enum import Enum
from typing import Any, TypeVar

from saddleslide.distributed.engine import CutShort, living
from saddleslide.errors import InputError

Key = TypeVar("Key", bound=Hashable)
# Why a worker did not answer; or that it did, and gave up an exchange since a neighbour did not.
LOST, SLOW, CUT = "lost", "slow", "cut short"
# What a call raises when its worker is gone: no connection, an actor that is lost, a worker that started anew.
_ABSENT = (OSError, RuntimeError, KeyError, asyncio.CancelledError)
# Seconds between two looks at who is there, while answers are missing.
_WATCH = 0.5
# Seconds between two looks at who is there, while an actor is being made.
_GLANCE = 1.0


class Mode(Enum):
    """What a worker without an answer means to the others."""

    PATIENT = "it is waited for"
    HURRIED = "it is too slow after a while, if another one can take over"
    TOGETHER = "all need each other: when one is lost, nobody is waited for"


def asked(
    client: Any,
    actors: Mapping[Key, Any],
    method: str,
    jobs: Mapping[Key, tuple[Any, ...]],
    patience: float,
    mode: Mode = Mode.PATIENT,
    homes: Mapping[Key, str] | None = None,
) -> tuple[dict[Key, Any], dict[Key, str]]:
    """Call a method of several actors at once: the replies, and why the others did not answer.

    Actors are named by the workers that they are on, or `homes` says where they are. A worker that the scheduler does
    not know any more is lost at once. Without a scheduler all wait `patience` seconds at most.
    """
    if not jobs:
        return {}, {}
    if client.status == "closed":
        return {}, dict.fromkeys(jobs, LOST)
    home = (lambda key: str(key)) if homes is None else (lambda key: homes[key])
    # An actor speaks through the current client.
    with client.as_current():
        found: tuple[dict[Key, Any], dict[Key, str]] = client.sync(
            _gathered, client, actors, method, jobs, patience, mode, home
        )
    return found


async def _gathered(
    client: Any,
    actors: Mapping[Key, Any],
    method: str,
    jobs: Mapping[Key, tuple[Any, ...]],
    patience: float,
    mode: Mode,
    home: Callable[[Key], str],
) -> tuple[dict[Key, Any], dict[Key, str]]:
    tasks = {asyncio.ensure_future(_called(actors[key], method, job)): key for key, job in jobs.items()}
    replies: dict[Key, Any] = {}
    lost: dict[Key, str] = {}
    waiting, began = set(tasks), time.monotonic()
    while waiting and not (lost and mode is Mode.TOGETHER):
        done, waiting = await asyncio.wait(waiting, timeout=_WATCH, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            try:
                replies[tasks[task]] = task.result()
            except CutShort:
                lost[tasks[task]] = CUT
            except _ABSENT:
                # What a part raises is in its reply: these mean that nobody is there.
                lost[tasks[task]] = LOST
        if done or not waiting:
            continue
        known = await living(client)
        late = time.monotonic() - began > patience
        spare = late and mode is Mode.HURRIED and len(actors) > len(waiting)
        for task in list(waiting):
            gone = late if known is None else home(tasks[task]) not in known
            if gone or spare:
                lost[tasks[task]] = LOST if gone else SLOW
                waiting.discard(task)
                task.cancel()
    for task in waiting:
        task.cancel()
    return replies, lost


def refuse_closed(closed: bool, name: str) -> None:
    """A call of what was closed is a mistake: to build all parts again would hide it."""
    if closed:
        raise InputError(
            f"{name}: it was closed, and its workers have let go of their parts; expected calls before close(), or "
            "inside the `with` statement. Build it again."
        )


def delivered(client: Any, future: Any, worker: str) -> Any:
    """The actor behind a future, or None where its worker has gone; a living one may take its time to begin.

    A scheduler may list a worker for a while that is dead already: what is to begin there is never delivered.
    """
    while True:
        try:
            return future.result(timeout=_GLANCE)
        except TimeoutError:
            if worker not in (alive(client) or ()):
                return None


def alive(client: Any) -> frozenset[str] | None:
    """Addresses of the workers that the scheduler knows; None where it does not answer, or the client is closed."""
    if client.status == "closed":
        return None
    found: frozenset[str] | None = client.sync(living, client)
    return found


async def _called(actor: Any, method: str, job: tuple[Any, ...]) -> Any:
    return await getattr(actor, method)(*job)
