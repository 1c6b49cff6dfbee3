"""The one place that imports Dask: clients, clusters on this machine, actors on their workers, and what they cost."""

from __future__ import annotations

import asyncio
import importlib
import pickle
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, ClassVar, Generic, TypeVar

from saddleslide.arrays.arguments import as_whole
from saddleslide.errors import InputError, MissingExtraError, UnreachableError

Key = TypeVar("Key", bound=Hashable)
# Seconds that a scheduler has to answer a question.
_ANSWER = 5.0
# How long the place of a killed worker is kept for the one that its nanny starts.
_PLACES = {"distributed": {"deploy": {"lost-worker-timeout": "10 minutes"}}}
# Seconds between two looks at who is there: while answers are missing, while an actor is being made, and between two
# tries to find a worker.
_WATCH, _GLANCE, _PAUSE = 0.5, 1.0, 0.1
# Why a worker did not answer; or that it did, and gave up an exchange since a neighbour did not.
LOST, SLOW, CUT = "lost", "slow", "cut short"
# What a call raises when its worker is gone: no connection, an actor that is lost, a worker that started anew.
_ABSENT = (OSError, RuntimeError, KeyError, asyncio.CancelledError)
# Operations by what they are counted as.
_KINDS = {"both": "gradients", "gradient": "gradients", "value": "values", "sized": "values"}


@dataclass(frozen=True)
class Repeat:
    """Parts of a call that were asked again because the worker that had them was lost, or too slow.

    Examples
    --------
    >>> Repeat(call=7, operation="both", parts=(4, 5), worker="tcp://127.0.0.1:1", reason="lost").call
    7
    """

    call: int
    operation: str
    parts: tuple[int, ...]
    worker: str
    reason: str


@dataclass
class Counts:
    """Calls, bytes and seconds of a function on a cluster.

    Parameters
    ----------
    calls : int
        Calls that went to workers; a repeated one counts once.
    gradients, values, others : int
        By kind: with a gradient, a value alone, products with a Hessian and the like.
    bytes_sent, bytes_received : int
        Bytes of arrays in messages from and to this process.
    bytes_passed : int
        Bytes of arrays from worker to worker.
    bytes_shared : int
        Bytes of arrays through memory that processes of one machine share.
    waiting, computing : float
        Seconds that calls took here, and of these the seconds that the slowest worker computed.
    repeats : list of Repeat
        What was asked again, and why.
    built : int
        Parts built on workers, the first time included.
    lost, joined : int
        Workers that were given up, and that came after the first call.

    Examples
    --------
    >>> Counts(calls=3, waiting=0.5, computing=0.2).overhead
    0.3
    """

    stored: ClassVar[bool] = False

    calls: int = 0
    gradients: int = 0
    values: int = 0
    others: int = 0
    bytes_sent: int = 0
    bytes_received: int = 0
    bytes_passed: int = 0
    bytes_shared: int = 0
    waiting: float = 0.0
    computing: float = 0.0
    repeats: list[Repeat] = field(default_factory=list)
    built: int = 0
    lost: int = 0
    joined: int = 0

    @property
    def bytes_moved(self) -> int:
        """All bytes of arrays that went anywhere."""
        return self.bytes_sent + self.bytes_received + self.bytes_passed + self.bytes_shared

    @property
    def repeated_calls(self) -> tuple[int, ...]:
        """Numbers of the calls of which a part was asked again, counted from 1."""
        return tuple(sorted({repeat.call for repeat in self.repeats}))

    @property
    def overhead(self) -> float:
        """Seconds of waiting beyond the computing."""
        return self.waiting - self.computing

    def count_call(self, operation: str) -> int:
        """Count a call as it begins; returns its number."""
        self.calls += 1
        kind = _KINDS.get(operation, "others")
        setattr(self, kind, getattr(self, kind) + 1)
        return self.calls

    def facts(self) -> dict[str, float]:
        """What a report says."""
        return {
            "calls to workers": self.calls,
            "bytes moved": self.bytes_moved,
            "seconds of waiting": self.waiting,
            "repeated calls": len(self.repeated_calls),
        }

    def copy(self) -> Counts:
        """A copy that further calls do not change."""
        return replace(self, repeats=list(self.repeats))


def require(name: str, module: str = "distributed") -> Any:
    """A module of Dask, or an error that names the extra."""
    try:
        return importlib.import_module(module)
    except ImportError as missing:
        raise MissingExtraError(
            f"{name}: {module} is not installed; expected it for work on a cluster. Install it with "
            "pip install 'saddleslide[dask]'."
        ) from missing


def local(workers: int = 2, **options: Any) -> Any:
    """A client of a new cluster on this machine: worker processes with one thread each, on the loopback address.

    Close the client, or use it in a `with` statement, and the cluster closes with it. In a script, call it below
    `if __name__ == "__main__":`, since every worker process reads the script once more.

    Parameters
    ----------
    workers : int, optional
        Worker processes.
    **options
        Passed on to `distributed.LocalCluster`.

    Returns
    -------
    distributed.Client

    Examples
    --------
    >>> local(workers=0)
    Traceback (most recent call last):
    ...
    saddleslide.errors.InputError: local: workers is 0; expected a whole number >= 1.
    """
    settings: dict[str, Any] = {
        "n_workers": as_whole(workers, "local: workers", 1),
        "threads_per_worker": 1,
        "processes": True,
        "host": "127.0.0.1",
        "dashboard_address": "127.0.0.1:0",
        "worker_dashboard_address": "127.0.0.1:0",
    }
    client, config = require("local").Client, require("local", "dask").config
    # Dask closes the place of a killed worker 15 s after a loss when no worker is there at that moment: on a busy
    # machine, for good. Where the user has set it, that stays.
    if _PLACES not in config.defaults:
        config.update_defaults(_PLACES)
    return client(**settings | options, direct_to_workers=True, set_as_default=False)


def connect(address: str, timeout: float = 10.0) -> Any:
    """A client of the scheduler at an address such as "tcp://127.0.0.1:8786".

    Parameters
    ----------
    address : str
        Where the scheduler listens.
    timeout : float, optional
        Seconds that it has to answer.

    Returns
    -------
    distributed.Client

    Examples
    --------
    >>> connect("tcp://127.0.0.1:1", timeout=0.2)
    Traceback (most recent call last):
    ...
    saddleslide.errors.UnreachableError: connect: no scheduler answered at 'tcp://127.0.0.1:1' within 0.2 s; ...
    """
    client = require("connect").Client
    if not isinstance(address, str) or not address:
        raise InputError(f"connect: address is {address!r}; expected a text such as 'tcp://127.0.0.1:8786'.")
    try:
        return client(address, timeout=timeout, direct_to_workers=True, set_as_default=False)
    except (OSError, ValueError) as error:
        raise UnreachableError(
            f"connect: no scheduler answered at {address!r} within {timeout:g} s; expected a running one. Start it "
            "with `dask scheduler`, or use ss.distributed.local()."
        ) from error


def check_client(client: Any, name: str) -> None:
    """Refuse what is no synchronous client of a running cluster."""
    wanted = "expected a distributed.Client, such as ss.distributed.local() or ss.distributed.connect(address)."
    if not isinstance(client, require(name).Client):
        raise InputError(f"{name}: client is {client!r}; {wanted}")
    if client.asynchronous:
        raise InputError(f"{name}: the client is asynchronous; expected one made without asynchronous=True.")
    if client.status != "running":
        raise InputError(f"{name}: the client is {client.status}; {wanted}")


def to_pickle(value: Any) -> bytes:
    """What a worker can read with pickle; code of scripts and notebooks goes along."""
    text: bytes = require("DaskSum", "cloudpickle").dumps(value)
    return text


def sendable(error: BaseException) -> BaseException:
    """The exception where another process can read it, or one that says the same: no reply may be lost for it.

    An exit is no exception of a call: it would end the worker, and the client after it.
    """
    try:
        readable = isinstance(pickle.loads(to_pickle(error)), Exception)
    except Exception:
        readable = False
    return error if readable else RuntimeError(f"{type(error).__name__}: {error}")


def find_workers(client: Any) -> frozenset[str] | None:
    """Addresses of the workers that the scheduler knows; None where it does not answer, or the client is closed."""
    if client.status == "closed":
        return None
    found: frozenset[str] | None = client.sync(_living_workers, client)
    return found


async def _living_workers(client: Any) -> frozenset[str] | None:
    if client.status != "running":
        return None
    try:
        identity = await asyncio.wait_for(client.scheduler.identity(n_workers=-1), _ANSWER)
    except OSError:
        return None
    return frozenset(identity["workers"])


class CutShort(Exception):
    """An agent lives and gave up an exchange: a neighbour did not take part in it."""


class Mode(Enum):
    """What a worker without an answer means to the others."""

    PATIENT = "it is waited for"
    HURRIED = "it is too slow after a while, if another one can take over"
    TOGETHER = "all need each other: when one is lost, nobody is waited for"


class Actors(ABC, Generic[Key]):
    """Dask actors of one function on the workers of a cluster: made, called all at once, given up, made again.

    `loaders` build its parts there. `patience` are the seconds to wait for a worker before the cluster counts as gone.
    """

    stored: ClassVar[bool] = False

    def __init__(self, client: Any, name: str, loaders: Sequence[Any], patience: float) -> None:
        self.client, self.name, self.loaders, self.patience = client, name, tuple(loaders), patience
        self.counts = Counts()
        self.actors: dict[Key, Any] = {}
        # The workers that they are on.
        self.homes: dict[Key, str] = {}
        self._futures: dict[Key, Any] = {}
        # By the pickled question.
        self._answers: dict[bytes, list[Any]] = {}
        self._slow: set[str] = set()
        self._closed = False

    @abstractmethod
    def settle(self, workers: Sequence[str]) -> bool:
        """Put everything on these workers; False when one was lost meanwhile."""

    @abstractmethod
    def ask_functions(self, question: Callable[[Any], Any]) -> list[Any]:
        """The answers of all functions to a question."""

    @abstractmethod
    def blame(self, key: Key, reply: Any) -> str:
        """Whose code has raised the error in a reply."""

    def describe_loss(self, known: frozenset[str] | None) -> str:
        """Why the cluster counts as gone."""
        return "its scheduler does not answer" if known is None else "it has no worker that answers"

    def close(self) -> None:
        """Let go of all actors; a call after this one is refused."""
        self._closed = True
        for key in list(self.homes):
            self.release(key)

    def refuse_closed(self) -> None:
        """A call of what was closed is a mistake: to build all parts again would hide it."""
        if self._closed:
            raise InputError(
                f"{self.name}: it was closed, and its workers have let go of their parts; expected calls before "
                "close(), or inside the `with` statement. Build it again."
            )

    def answers(self, question: Callable[[Any], Any]) -> list[Any]:
        """The answers of all functions to a question about them, in their order; asked once: they never change."""
        key = pickle.dumps(question)
        if key not in self._answers:
            self._answers[key] = self.ask_functions(question)
        return self._answers[key]

    def pickle_parts(self, parts: Iterable[int]) -> dict[int, bytes]:
        """What builds some parts on a worker."""
        return {i: to_pickle(self.loaders[i]) for i in parts}

    def make(self, kind: Callable[..., Any], places: Mapping[Key, str], *arguments: Sequence[Any]) -> bool:
        """Put new actors on workers, all of them or none; False where a worker is gone.

        Each of `arguments` has one entry for every new actor.
        """
        made: dict[Key, Any] = {}
        try:
            with self.client.as_current():
                for (key, worker), *own in zip(places.items(), *arguments, strict=True):
                    self.homes[key] = worker
                    self._futures[key] = self.client.submit(kind, *own, actor=True, workers=[worker], pure=False)
                made = {key: self._await_actor(key) for key in places}
        except Exception:
            # Whatever went wrong: there is no actor on that worker.
            made = {}
        if len(made) < len(places) or None in made.values():
            for key in places:
                self.release(key)
            return False
        self.actors |= made
        return True

    def _await_actor(self, key: Key) -> Any:
        """The actor that is being made, or None where its worker has gone; a living one may take its time to begin.

        A scheduler may list a worker for a while that is dead already: what is to begin there is never delivered.
        """
        while True:
            try:
                return self._futures[key].result(timeout=_GLANCE)
            except TimeoutError:
                if self.homes[key] not in (find_workers(self.client) or ()):
                    return None

    def release(self, key: Key) -> None:
        """Let go of one actor."""
        for known in (self.actors, self._futures, self.homes):
            known.pop(key, None)

    def forget(self, workers: Iterable[str]) -> None:
        """Give up workers, and all actors on them."""
        gone = set(workers)
        self.counts.lost += len(gone & {self.homes[key] for key in self.actors})
        for key in [key for key, home in self.homes.items() if home in gone]:
            self.release(key)

    def gather(self) -> None:
        """Everything on living workers; waits for workers where there are none."""
        deadline = time.monotonic() + self.patience
        while True:
            found = find_workers(self.client)
            known = found or frozenset()
            usable = sorted(known - self._slow) or sorted(known)
            if usable and self.settle(usable):
                return
            if time.monotonic() > deadline or self.client.status == "closed":
                raise UnreachableError(
                    f"{self.name}: the cluster is gone: {self.describe_loss(found)}, for {self.patience:g} s. Start it "
                    "again, and resume the run from its checkpoint."
                )
            time.sleep(_PAUSE)

    def ask(
        self, method: str, jobs: Mapping[Key, tuple[Any, ...]], mode: Mode = Mode.PATIENT
    ) -> tuple[dict[Key, Any], dict[Key, str]]:
        """Call a method of several actors at once: the replies, and why the others did not answer.

        A worker that the scheduler does not know any more is lost at once. Without a scheduler all wait `patience`
        seconds at most. What the work of an actor has raised is raised here.
        """
        if self.client.status == "closed" or not jobs:
            return {}, dict.fromkeys(jobs, LOST)
        # An actor speaks through the current client.
        with self.client.as_current():
            replies, lost = self.client.sync(self._collect, method, jobs, mode)
        for key, reply in replies.items():
            if reply.error is not None:
                reply.error.add_note(f"saddleslide: raised by {self.blame(key, reply)} on {self.homes[key]}.")
                raise reply.error
        return replies, lost

    async def _collect(
        self, method: str, jobs: Mapping[Key, tuple[Any, ...]], mode: Mode
    ) -> tuple[dict[Key, Any], dict[Key, str]]:
        async def call(actor: Any, job: tuple[Any, ...]) -> Any:
            return await getattr(actor, method)(*job)

        tasks = {asyncio.ensure_future(call(self.actors[key], job)): key for key, job in jobs.items()}
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
            known = await _living_workers(self.client)
            late = time.monotonic() - began > self.patience
            spare = late and mode is Mode.HURRIED and len(self.actors) > len(waiting)
            for task in list(waiting):
                gone = late if known is None else self.homes[tasks[task]] not in known
                if gone or spare:
                    lost[tasks[task]] = LOST if gone else SLOW
                    waiting.discard(task)
                    task.cancel()
        for task in waiting:
            task.cancel()
        return replies, lost
