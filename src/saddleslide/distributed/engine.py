"""The one place that imports Dask: clients, clusters on this machine, and what is asked of a scheduler."""

from __future__ import annotations

import asyncio
import importlib
import pickle
from functools import cache
from numbers import Integral
from typing import Any

from saddleslide.errors import InputError, MissingExtraError, UnreachableError

# Seconds that a scheduler has to answer a question.
_ANSWER = 5.0
# How long the place of a killed worker is kept for the one that its nanny starts.
_RETURN = "10 minutes"


def require(name: str, module: str = "distributed") -> Any:
    """A module of Dask, or an error that names the extra.

    Examples
    --------
    >>> require("local").__name__
    'distributed'
    """
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
    if isinstance(workers, bool) or not isinstance(workers, Integral) or workers < 1:
        raise InputError(f"local: workers is {workers!r}; expected a whole number >= 1.")
    settings: dict[str, Any] = {
        "n_workers": int(workers),
        "threads_per_worker": 1,
        "processes": True,
        "host": "127.0.0.1",
        "dashboard_address": "127.0.0.1:0",
        "worker_dashboard_address": "127.0.0.1:0",
    }
    client = require("local").Client
    _keep_places()
    return client(**settings | options, direct_to_workers=True, set_as_default=False)


@cache
def _keep_places() -> None:
    """Let a killed worker's place be kept while another one starts; where the user has set it, that stays.

    Dask closes the place 15 s after a loss when no worker is there at that moment: on a busy machine, for good.
    """
    require("local", "dask").config.update_defaults({"distributed": {"deploy": {"lost-worker-timeout": _RETURN}}})


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


def pickled(value: Any) -> bytes:
    """What a worker can read with pickle; code of scripts and notebooks goes along.

    Examples
    --------
    >>> import pickle
    >>> pickle.loads(pickled(lambda: 3))()
    3
    """
    text: bytes = require("DaskSum", "cloudpickle").dumps(value)
    return text


def sendable(error: BaseException) -> BaseException:
    """The exception where another process can read it, or one that says the same: no reply may be lost for it.

    An exit is no exception of a call: it would end the worker, and the client after it.

    Examples
    --------
    >>> sendable(OSError("no file"))
    OSError('no file')
    >>> class Picky(Exception):
    ...     def __init__(self, name, *, rows):
    ...         super().__init__(f"{name} has {rows} rows")
    >>> sendable(Picky("shard", rows=3))
    RuntimeError('Picky: shard has 3 rows')
    """
    try:
        readable = isinstance(pickle.loads(pickled(error)), Exception)
    except Exception:
        readable = False
    return error if readable else RuntimeError(f"{type(error).__name__}: {error}")


class CutShort(Exception):
    """An agent lives and gave up an exchange: a neighbour did not take part in it."""


async def living(client: Any) -> frozenset[str] | None:
    """Addresses of the workers that the scheduler knows; None where it does not answer."""
    if client.status != "running":
        return None
    try:
        identity = await asyncio.wait_for(client.scheduler.identity(n_workers=-1), _ANSWER)
    except OSError:
        return None
    return frozenset(identity["workers"])
