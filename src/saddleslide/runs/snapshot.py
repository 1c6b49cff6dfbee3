"""The state of a run as plain data: a tree for JSON and a list of arrays, each stored once.

A run is restored into a fresh one, built from the same problem and plan. Its numbers, texts, arrays and small records
are taken from the tree; problems, functions and callables are those of the fresh run. Nothing is looked up by name but
the records listed here, so a tree can not make anything run.

A class may say `stored = False`: its objects stay those of the fresh run; or name in `kept` what of them is stored. One that must be rebuilt before its parts can
be restored names the attributes it needs for that in `restored_first` and has a method `rebuild`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from saddleslide.arrays.kinds import NUMPY, ArrayKind
from saddleslide.arrays.remote import Elsewhere
from saddleslide.certificates.candidate import Candidate, Linearisation
from saddleslide.certificates.verdict import Certificate
from saddleslide.domains import Domain
from saddleslide.errors import CheckpointError
from saddleslide.functions import Function, LowerModel
from saddleslide.methods.base import State
from saddleslide.methods.sliding.innermost import Anchors
from saddleslide.operators import Coupling
from saddleslide.oracles.calls import Calls, Seconds
from saddleslide.oracles.sampling import Samples
from saddleslide.problem import SaddleProblem
from saddleslide.runs.result import Moment, Past
from saddleslide.theory import Constant, Level, Plan, Term
from saddleslide.theory.holder import Holder

_KEPT = (Anchors, Calls, Candidate, Certificate, Constant, Holder, Level, Linearisation, LowerModel, Moment, Past)
_LISTED: dict[str, Any] = {record.__name__: record for record in (*_KEPT, Seconds, Term)}
# What belongs to the problem and not to the state.
_GIVEN = (SaddleProblem, Function, Domain, Coupling)
_FRESH: dict[str, Any] = {"k": "fresh"}
_ARRAYS = (np.ndarray, Elsewhere)
_GENERATORS: dict[str, type[np.random.BitGenerator]] = {
    kind.__name__: kind
    for kind in (np.random.PCG64, np.random.PCG64DXSM, np.random.Philox, np.random.SFC64, np.random.MT19937)
}


@dataclass(frozen=True)
class Snapshot:
    """A tree of plain data and the arrays that it refers to."""

    tree: dict[str, Any]
    arrays: list[np.ndarray[Any, Any]]


def snapshot(run: object) -> Snapshot:
    """The present state of a run; later steps do not change it.

    Examples
    --------
    >>> class Counter:
    ...     def __init__(self):
    ...         self.steps, self.point = 0, np.zeros(2)
    >>> Counter.__module__ = "saddleslide.example"
    >>> old, new = Counter(), Counter()
    >>> old.steps, old.point = 3, np.ones(2)
    >>> restore(new, snapshot(old))
    >>> new.steps, new.point
    (3, array([1., 1.]))
    """
    writer = _Writer()
    return Snapshot(writer.node(run), writer.arrays)


def restore(
    run: object, kept: Snapshot, kind: ArrayKind = NUMPY, shapes: Collection[tuple[int, ...]] | None = None
) -> None:
    """Put a state into a fresh run of the same problem and plan; `kind` is that of the problem's arrays.

    An array takes the place of one of its own shape, or, where the fresh run has none yet, has one of `shapes`:
    compiled loops look at no bounds.
    """
    try:
        if _Reader(kept.arrays, kind, shapes).value(kept.tree, run) is not run:
            raise TypeError(f"no {type(run).__name__} is stored")
    except Exception as error:
        raise CheckpointError(f"the checkpoint does not fit this problem and version: {error!r}.") from error


def fresh_generator(tree: Mapping[str, Any]) -> np.random.Generator:
    """A generator of the kind that a stored run draws from; its state comes with that of the run."""
    stored = [node for name, node in tree["v"] if name == "rng"]
    kind = next((item for key, item in stored[0]["v"]["v"] if key == "bit_generator"), "") if stored else "PCG64"
    return np.random.Generator(_GENERATORS[kind]())


def _record_of(name: str, base: type[Any] = State) -> Any:
    """The record of a name: one that is listed, or a state of a method of ours that is loaded."""
    if name in _LISTED:
        return _LISTED[name]
    for kind in base.__subclasses__():
        if kind.__name__ == name and kind.__module__.startswith("saddleslide."):
            return kind
        if (below := _record_of(name, kind)) is not None:
            return below
    return None


def _told(value: Any) -> str:
    return f"an array of shape {value.shape}, {value.dtype}" if isinstance(value, _ARRAYS) else type(value).__name__


def _row(moment: Moment) -> list[float]:
    calls, samples = moment.calls, moment.samples
    return [moment.step, calls.f, calls.g, calls.B, moment.seconds, moment.gap, samples.f, samples.g]


def _is_ours(value: object) -> bool:
    return type(value).__module__.startswith("saddleslide.") and hasattr(value, "__dict__")


class _Writer:
    def __init__(self) -> None:
        self.arrays: list[np.ndarray[Any, Any]] = []
        # The values are kept alive, so that no two of them ever share an id.
        self.seen: dict[int, tuple[int, object]] = {}

    def node(self, value: Any) -> Any:
        """A value as plain data."""
        if value is None or isinstance(value, bool | str) or type(value) is int:
            return value
        if type(value) is float:
            return {"k": "float", "v": value.hex()}
        if isinstance(value, np.generic):
            return {"k": "scalar", "v": self._array(np.asarray(value))}
        if type(value) is list and value and all(type(item) is Moment for item in value):
            return {"k": "history", "v": self._array(np.array([_row(moment) for moment in value]))}
        if type(value) in (tuple, list):
            return {"k": type(value).__name__, "v": [self.node(item) for item in value]}
        if type(value) is dict:
            return {"k": "dict", "v": [[self.node(key), self.node(item)] for key, item in value.items()]}
        if isinstance(value, _GIVEN):
            return _FRESH
        return self._shared(value)

    def _array(self, value: np.ndarray[Any, Any]) -> int:
        self.arrays.append(np.array(value, order="C"))
        return len(self.arrays) - 1

    def _shared(self, value: Any) -> Any:
        """Arrays and objects: a second reference to the same one stays one."""
        if id(value) in self.seen:
            return {"k": "again", "v": self.seen[id(value)][0]}
        return self._object(value, len(self.seen))

    def _object(self, value: Any, number: int) -> Any:
        if isinstance(value, Elsewhere):
            self.seen[id(value)] = (number, value)
            return {"k": "elsewhere", "n": number, "v": self._array(value.host())}
        if type(value) is np.ndarray and value.dtype.kind in "biuf":
            self.seen[id(value)] = (number, value)
            return {"k": "array", "n": number, "v": self._array(value), "w": bool(value.flags.writeable)}
        if isinstance(value, np.random.Generator):
            self.seen[id(value)] = (number, value)
            return {"k": "generator", "n": number, "v": self.node(value.bit_generator.state)}
        if isinstance(value, Plan):
            return {"k": "plan", "v": self.node(value.to_dict())}
        if not _is_ours(value) or not getattr(type(value), "stored", True):
            return _FRESH
        self.seen[id(value)] = (number, value)
        name = type(value).__name__
        if _record_of(name) is type(value):
            content = [[field.name, self.node(getattr(value, field.name))] for field in fields(value)]
            return {"k": "record", "n": number, "t": name, "v": content}
        # An object that has not begun has nothing to rebuild.
        first = [attribute for attribute in getattr(type(value), "restored_first", ()) if attribute in vars(value)]
        kept = getattr(type(value), "kept", vars(value))
        names = [*first, *(attribute for attribute in vars(value) if attribute in kept and attribute not in first)]
        content = [[attribute, self.node(vars(value)[attribute])] for attribute in names]
        return {"k": "object", "n": number, "t": name, "v": content, "first": len(first)}


class _Reader:
    def __init__(
        self, arrays: list[np.ndarray[Any, Any]], kind: ArrayKind, shapes: Collection[tuple[int, ...]] | None
    ) -> None:
        # Where arrays lay that were elsewhere.
        self.arrays, self.kind, self.shapes = arrays, kind, shapes
        self.seen: dict[int, Any] = {}

    def value(self, node: Any, fresh: Any = None) -> Any:
        """The value of a node; `fresh` is what the fresh run has in its place."""
        made = _READERS[node["k"]](self, node, fresh) if isinstance(node, dict) else node
        if made is not None and made is not fresh:
            self._check_shape(made, fresh)
        return made

    def _check_shape(self, made: Any, fresh: Any) -> None:
        """Whether an array may stand where the fresh run has `fresh`."""
        is_array, known = isinstance(made, _ARRAYS), isinstance(fresh, _ARRAYS)
        if known and not (is_array and made.shape == fresh.shape and made.dtype.kind == fresh.dtype.kind):
            raise ValueError(f"{_told(made)} is stored where the run has {_told(fresh)}")
        if is_array and not known and self.shapes is not None and made.shape not in self.shapes:
            raise ValueError(f"{_told(made)} is stored; expected one of the shapes {sorted(self.shapes)}")

    def fresh(self, node: Mapping[str, Any], fresh: Any) -> Any:
        return fresh

    def number(self, node: Mapping[str, Any], fresh: Any) -> float:
        return float.fromhex(node["v"])

    def scalar(self, node: Mapping[str, Any], fresh: Any) -> Any:
        return self.arrays[node["v"]][()]

    def history(self, node: Mapping[str, Any], fresh: Any) -> list[Moment]:
        rows = self.arrays[node["v"]].tolist()
        return [
            Moment(int(step), Calls(f, g, int(B)), seconds, gap, Samples(int(f_drawn), int(g_drawn)))
            for step, f, g, B, seconds, gap, f_drawn, g_drawn in rows
        ]

    def sequence(self, node: Mapping[str, Any], fresh: Any) -> Any:
        old = list(fresh) if isinstance(fresh, tuple | list) else []
        old += [None] * (len(node["v"]) - len(old))
        items = [self.value(item, before) for item, before in zip(node["v"], old, strict=False)]
        return tuple(items) if node["k"] == "tuple" else items

    def mapping(self, node: Mapping[str, Any], fresh: Any) -> dict[Any, Any]:
        old = fresh if isinstance(fresh, dict) else {}
        pairs = [(self.value(key), item) for key, item in node["v"]]
        return {key: self.value(item, old.get(key)) for key, item in pairs}

    def again(self, node: Mapping[str, Any], fresh: Any) -> Any:
        return self.seen[node["v"]]

    def array(self, node: Mapping[str, Any], fresh: Any) -> np.ndarray[Any, Any]:
        array = np.array(self.arrays[node["v"]])
        array.flags.writeable = bool(node["w"])
        self.seen[node["n"]] = array
        return array

    def elsewhere(self, node: Mapping[str, Any], fresh: Any) -> Any:
        array = self.kind.placed(self.arrays[node["v"]])
        self.seen[node["n"]] = array
        return array

    def generator(self, node: Mapping[str, Any], fresh: Any) -> Any:
        # In place: sampled functions of the fresh run draw from this very generator.
        fresh.bit_generator.state = self.value(node["v"], fresh.bit_generator.state)
        self.seen[node["n"]] = fresh
        return fresh

    def plan(self, node: Mapping[str, Any], fresh: Any) -> Plan:
        return Plan.from_dict(self.value(node["v"]))

    def record(self, node: Mapping[str, Any], fresh: Any) -> Any:
        kind = _record_of(node["t"])
        made: Any = object.__new__(kind)
        self.seen[node["n"]] = made
        allowed = {field.name for field in fields(kind)}
        for name, content in node["v"]:
            if name not in allowed:
                raise KeyError(name)
            object.__setattr__(made, name, self.value(content, vars(fresh).get(name) if type(fresh) is kind else None))
        if {name for name, _ in node["v"]} != allowed:
            raise KeyError(sorted(allowed))
        return made

    def thing(self, node: Mapping[str, Any], fresh: Any) -> Any:
        if type(fresh).__name__ != node["t"] or not _is_ours(fresh):
            raise TypeError(f"{node['t']} is stored where the run has {type(fresh).__name__}")
        self.seen[node["n"]] = fresh
        for i, (name, content) in enumerate(node["v"]):
            if i > 0 and i == node["first"]:
                fresh.rebuild()
            if callable(getattr(type(fresh), name, None)):
                raise KeyError(name)
            object.__setattr__(fresh, name, self.value(content, vars(fresh).get(name)))
        return fresh


_READERS: dict[str, Callable[[_Reader, Mapping[str, Any], Any], Any]] = {
    "fresh": _Reader.fresh,
    "float": _Reader.number,
    "scalar": _Reader.scalar,
    "history": _Reader.history,
    "tuple": _Reader.sequence,
    "list": _Reader.sequence,
    "dict": _Reader.mapping,
    "again": _Reader.again,
    "array": _Reader.array,
    "elsewhere": _Reader.elsewhere,
    "generator": _Reader.generator,
    "plan": _Reader.plan,
    "record": _Reader.record,
    "object": _Reader.thing,
}
