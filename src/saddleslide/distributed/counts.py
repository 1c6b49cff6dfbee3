"""What a function on a cluster has cost: calls, bytes, seconds, and what had to be repeated."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar

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

    def called(self, operation: str) -> int:
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
