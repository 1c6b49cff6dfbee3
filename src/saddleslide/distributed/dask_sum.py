"""A sum of functions whose parts live on the workers of a cluster."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from numbers import Integral
from typing import Any, Self, TypeVar, final

from saddleslide.arrays.base import Array, as_number
from saddleslide.distributed.counts import Counts
from saddleslide.distributed.crew import Crew
from saddleslide.distributed.engine import check_client
from saddleslide.errors import raise_all
from saddleslide.functions import Function, Partitioned
from saddleslide.functions.trees import Terms
from saddleslide.runs.checkpoint import digest_of

_Answer = TypeVar("_Answer")
# Far workers that get x from this process; see docs/scaling.md.
_FAN = 4
_PATIENCE = 60.0


@final
class DaskSum(Partitioned):
    """f_1 + ... + f_n, or their mean, with every part built on a worker of a Dask cluster and kept there.

    A function like any other, for plans, runs, certificates and, through `ss.functions.SampledParts`, sampling. The
    parts are added along a tree that depends on their number alone: the bits are those of `ss.functions.PartSum` on the
    same parts, whatever workers there are, come, or go.

    Parameters
    ----------
    client : distributed.Client
        Of a running cluster: `ss.distributed.local()`, `ss.distributed.connect(address)`, or your own.
    parts : sequence of callable or Function
        Callables without arguments that build a function where they are called, such as `ss.distributed.Shard`; or
        functions, which are sent whole. Both are kept here: a lost part is built again from them.
    combine : "sum" or "mean", optional
        How the parts become one function.
    shape : int or tuple of int, optional
        Shape of x, where no part says it.
    patience : float, optional
        Seconds without an answer after which a worker is given up for another one; and seconds to wait for any worker
        before the cluster counts as gone.
    fan : int, optional
        Workers on other machines that get x from this process; they pass it on to the rest.
    shared : bool, optional
        Let x and the gradients pass through shared memory where workers are on this machine.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> parts = [ss.functions.Quadratic(1.0), ss.functions.Quadratic(3.0)]
    >>> with ss.distributed.local(workers=1) as client, ss.distributed.DaskSum(client, parts, shape=2) as f:
    ...     f.value_and_gradient(np.array([1.0, 0.0]))
    (2.0, array([4., 0.]))
    """

    def __init__(
        self,
        client: Any,
        parts: Sequence[Any],
        combine: str = "sum",
        shape: Any = None,
        *,
        patience: float = _PATIENCE,
        fan: int = _FAN,
        shared: bool = True,
    ) -> None:
        check_client(client, "DaskSum")
        super().__init__(len(parts), combine, shape, "DaskSum")
        self.parts = tuple(parts)
        raise_all("DaskSum", _complaints(self.parts, fan))
        seconds = as_number(patience, "DaskSum: patience", 0.0)
        self._crew = Crew(client, self.parts, "DaskSum", seconds, int(fan), bool(shared))
        self._known: Known = Known()
        try:
            self._learn()
        except BaseException:
            self.close()
            raise

    def __repr__(self) -> str:
        return f"DaskSum({self.combine} of {self.count} parts, shape {self._shape or 'any'})"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Let the workers forget the parts. The cluster goes on; a call after this one is refused."""
        self._crew.close()

    def fingerprinted(self) -> list[Any]:
        """What a checkpoint knows it by: the numbers of the built parts, wherever they came from."""
        return [self.combine, self._shape, self.over_parts(digest_of)]

    @property
    def counts(self) -> Counts:
        """What all calls have cost so far: a copy."""
        return self._crew.counts.copy()

    @property
    def placement(self) -> dict[str, list[int]]:
        """Numbers of the parts that each worker holds."""
        return {worker: list(parts) for worker, parts in self._crew.roster.held.items()}

    def over_parts(self, question: Callable[[Function], _Answer]) -> list[_Answer]:
        """Each question is asked once: the parts do not change."""
        key = pickle.dumps(question)
        if key not in self._known.answers:
            self._known.answers[key] = self._crew.roster.answers(question)
        found: list[_Answer] = self._known.answers[key]
        return found

    def reduced(self, operation: str, x: Array, chosen: Sequence[int] | None = None) -> Terms:
        return self._crew.reduced(operation, x, chosen)


class Known:
    """Answers of the parts to questions, by the pickled question; no part of the problem."""

    stored = False

    def __init__(self) -> None:
        self.answers: dict[bytes, list[Any]] = {}


def _complaints(parts: Sequence[Any], fan: Any) -> list[str]:
    found = [
        f"part {i} is {type(part).__name__}; expected a callable that builds a function, or a function."
        for i, part in enumerate(parts)
        if not callable(part) and not isinstance(part, Function)
    ]
    if isinstance(fan, bool) or not isinstance(fan, Integral) or fan < 1:
        found.append(f"fan is {fan!r}; expected a whole number >= 1.")
    return found
