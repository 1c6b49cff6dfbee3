"""The state of a run as plain data: a tree for JSON and a list of arrays, each stored once.

States are dataclasses of arrays and numbers (`arrays/state.py`), and what is written is their fields. A run is restored
into a fresh one, built from the same problem and plan: a class that adds behaviour to a state (the run, its judge, its
oracles) takes the fields of the fresh object over; a plain state is made anew. Nothing is looked up by name but states
of ours and the records listed here, so a tree can not make anything run.

An array takes the place of one of its own shape and type. Where the fresh run has none yet, the annotation of the field
says to which block it belongs (`XArray`, `YArray`): compiled loops look at no bounds, so that nothing of another size
may ever reach them.
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping
from dataclasses import fields
from typing import Any

import numpy as np

from saddleslide.arrays.kinds import NUMPY, ArrayKind, Remote
from saddleslide.arrays.state import State
from saddleslide.certificates.candidate import Candidate, Linearisation
from saddleslide.certificates.verdict import Certificate
from saddleslide.errors import CheckpointError
from saddleslide.functions.minimum import LowerModel
from saddleslide.methods.catalogue import load_all
from saddleslide.oracles.calls import Calls, Seconds
from saddleslide.oracles.sampling import Samples
from saddleslide.runs.result import Moment, Past
from saddleslide.theory.holder import Holder
from saddleslide.theory.hypotheses import Constant
from saddleslide.theory.levels import Level, Term
from saddleslide.theory.plan import Plan

_RECORDS = (
    Calls, Candidate, Certificate, Constant, Holder, Level, Linearisation, LowerModel, Moment, Past, Samples,
    Seconds, Term,
)  # fmt: skip
_LISTED: dict[str, Any] = {record.__name__: record for record in _RECORDS}
_ARRAYS = (np.ndarray, Remote)
_GENERATORS: dict[str, type[np.random.BitGenerator]] = {
    kind.__name__: kind
    for kind in (np.random.PCG64, np.random.PCG64DXSM, np.random.Philox, np.random.SFC64, np.random.MT19937)
}


def take_snapshot(run: object) -> tuple[dict[str, Any], list[np.ndarray[Any, Any]]]:
    """The present state of a run as a tree and the arrays that it refers to; later steps do not change it."""
    writer = _Writer()
    return writer.node(run), writer.arrays


def restore(run: Any, tree: Any, arrays: list[np.ndarray[Any, Any]], kind: ArrayKind = NUMPY) -> None:
    """Put a state into a fresh run of the same problem and plan; `kind` is that of the problem's arrays."""
    try:
        if _Reader(arrays, kind, run).value(tree, run) is not run:
            raise TypeError(f"no {type(run).__name__} is stored")
    except Exception as error:
        raise CheckpointError(f"the checkpoint does not fit this problem and version: {error!r}.") from error


def read_record(tree: Any, arrays: list[np.ndarray[Any, Any]]) -> Any:
    """What `take_snapshot` wrote of records and arrays; for Python code alone, since compiled loops check no shapes."""
    return _Free(arrays, NUMPY, None).value(tree)


def fresh_generator(tree: Mapping[str, Any]) -> np.random.Generator:
    """A generator of the kind that a stored run draws from; its state comes with that of the run."""
    stored = [node for name, node in tree["v"] if name == "rng" and node is not None]
    kind = next((item for key, item in stored[0]["v"]["v"] if key == "bit_generator"), "") if stored else "PCG64"
    return np.random.Generator(_GENERATORS[kind]())


def _record_of(name: str, base: type[Any] = State) -> Any:
    """The record of a name: one that is listed, or a state of ours that is loaded."""
    if name in _LISTED:
        return _LISTED[name]
    for kind in base.__subclasses__():
        if kind.__name__ == name and kind.__module__.startswith("saddleslide."):
            return kind
        if (below := _record_of(name, kind)) is not None:
            return below
    return None


def _stays(kind: type[Any]) -> bool:
    """Whether objects of a class take the fields of a state over, and are no plain state themselves."""
    return issubclass(kind, State) and "__dataclass_fields__" not in vars(kind)


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
            rows = [
                (m.step, m.calls.f, m.calls.g, m.calls.B, m.seconds, m.gap, m.samples.f, m.samples.g) for m in value
            ]
            return {"k": "history", "v": self._array(np.array(rows))}
        if type(value) in (tuple, list):
            return {"k": type(value).__name__, "v": [self.node(item) for item in value]}
        if type(value) is dict:
            return {"k": "dict", "v": [[self.node(key), self.node(item)] for key, item in value.items()]}
        if isinstance(value, Plan):
            return {"k": "plan", "v": self.node(value.to_dict())}
        if id(value) in self.seen:
            # A second reference to the same array or state stays one.
            return {"k": "again", "v": self.seen[id(value)][0]}
        number = len(self.seen)
        self.seen[id(value)] = (number, value)
        if isinstance(value, Remote):
            return {"k": "remote", "n": number, "v": self._array(value.host())}
        if type(value) is np.ndarray and value.dtype.kind in "biufc":
            return {"k": "array", "n": number, "v": self._array(value), "w": bool(value.flags.writeable)}
        if isinstance(value, np.random.Generator):
            return {"k": "generator", "n": number, "v": self.node(value.bit_generator.state)}
        if not getattr(type(value), "stored", True):
            # A method keeps its state to itself: the fresh run has made its own.
            return {"k": "fresh"}
        name = type(value).__name__
        if _record_of(name) is not type(value):
            raise TypeError(f"{name} is no part of a state")
        content = [[entry.name, self.node(getattr(value, entry.name))] for entry in fields(value)]
        return {"k": "record", "n": number, "t": name, "v": content}

    def _array(self, value: np.ndarray[Any, Any]) -> int:
        self.arrays.append(np.array(value, order="C"))
        return len(self.arrays) - 1


class _Reader:
    def __init__(self, arrays: list[np.ndarray[Any, Any]], kind: ArrayKind, run: Any) -> None:
        # Where arrays lay that were elsewhere, and the run, which sees x and y exchanged where its plan does.
        self.arrays, self.kind, self.run = arrays, kind, run
        self.seen: dict[int, Any] = {}
        # Whether what is being read sees x and y exchanged once more.
        self.exchanged = False

    def value(self, node: Any, fresh: Any = None, place: str = "") -> Any:
        """The value of a node; `fresh` is what the fresh run has in its place, `place` the annotation of that."""
        self.exchanged ^= "Mirrored" in place
        made = self._made(node, fresh, place) if isinstance(node, dict) else node
        if made is not None and made is not fresh:
            self._check(made, fresh, place)
        self.exchanged ^= "Mirrored" in place
        return made

    def _check(self, made: Any, fresh: Any, place: str) -> None:
        """Whether arrays, and those inside of what is stored once and met again, may stand where they do."""
        if isinstance(made, _ARRAYS) or isinstance(fresh, _ARRAYS):
            self._check_array(made, fresh, place)
        elif isinstance(made, Moment):
            # Rows of numbers, of which there may be very many.
            return
        elif isinstance(made, tuple | list):
            for item, old, part in zip(made, _items(fresh, len(made)), _parts(place, made), strict=True):
                if item is not None and item is not old:
                    self._check(item, old, part)
        elif _record_of(type(made).__name__) is type(made):
            before = fresh if type(fresh) is type(made) else None
            for entry in fields(made):
                item, old = getattr(made, entry.name), getattr(before, entry.name, None)
                if item is not None and item is not old:
                    self.exchanged ^= "Mirrored" in str(entry.type)
                    self._check(item, old, _place_of(entry, place))
                    self.exchanged ^= "Mirrored" in str(entry.type)
            if _stays(type(made)):
                # One that is met again; what is restored for the first time is the fresh one itself.
                raise TypeError(f"{_told(made)} is stored where the run has another {_told(fresh)}")

    def _check_array(self, made: Any, fresh: Any, place: str) -> None:
        """Whether an array may stand where the fresh run has `fresh`."""
        if isinstance(fresh, _ARRAYS):
            if not (isinstance(made, _ARRAYS) and made.shape == fresh.shape and _type_of(made) == _type_of(fresh)):
                raise ValueError(f"{_told(made)} is stored where the run has {_told(fresh)}")
            return
        x, y = self.run.problem.X.shape, self.run.problem.Y.shape
        fitting = _list_shapes(place, y, x) if self.exchanged else _list_shapes(place, x, y)
        # A number may stand where nothing has been computed yet.
        if not (fresh is None or type(fresh) is float) or made.shape not in fitting or made.dtype.kind != "f":
            raise ValueError(f"{_told(made)} is stored where the run has {_told(fresh)}; expected a shape of {fitting}")
        if isinstance(made, np.ndarray) and made.dtype != np.float64:
            raise ValueError(f"{_told(made)} is stored; expected float64")

    def _made(self, node: Mapping[str, Any], fresh: Any, place: str) -> Any:
        content: Any = node.get("v")
        match node["k"]:
            case "fresh":
                return fresh
            case "float":
                return float.fromhex(content)
            case "scalar":
                return self.arrays[content][()]
            case "history":
                return [
                    Moment(int(step), Calls(f, g, int(B)), seconds, gap, Samples(int(f_drawn), int(g_drawn)))
                    for step, f, g, B, seconds, gap, f_drawn, g_drawn in self.arrays[content].tolist()
                ]
            case "tuple" | "list" as kind:
                stored = tuple(content) if kind == "tuple" else content
                parts, old = _parts(place, stored), _items(fresh, len(stored))
                items = [self.value(item, before, part) for item, before, part in zip(stored, old, parts, strict=True)]
                return tuple(items) if kind == "tuple" else items
            case "dict":
                known = fresh if isinstance(fresh, dict) else {}
                pairs = [(self.value(key), item) for key, item in content]
                # Under the names of f and g stands what belongs to their blocks, where there are two.
                places = {"f": "XArray", "whole f": "XArray", "g": "YArray", "whole g": "YArray"}
                places = places if self.run is not None and self.run.problem.Y.size else {}
                return {key: self.value(item, known.get(key), places.get(key, place)) for key, item in pairs}
            case "plan":
                return Plan.from_dict(self.value(content))
            case "again":
                return self.seen[content]
            case "array":
                # In the order of its entries that a run gives its own arrays.
                array = np.array(self.arrays[content], order="C")
                array.flags.writeable = bool(node["w"])
                self.seen[node["n"]] = array
                return array
            case "remote":
                self.seen[node["n"]] = placed = self.kind.place(self.arrays[content])
                return placed
            case "generator":
                # In place: sampled functions of the fresh run draw from this very generator.
                fresh.bit_generator.state = self.value(content, fresh.bit_generator.state)
                self.seen[node["n"]] = fresh
                return fresh
            case "record":
                return self._record(node, fresh, place)
        raise KeyError(node["k"])

    def _record(self, node: Mapping[str, Any], fresh: Any, place: str) -> Any:
        kind = _record_of(node["t"])
        if kind is None:
            # A result is read before its method was asked for.
            load_all()
            kind = _record_of(node["t"])
        if kind is None:
            raise KeyError(node["t"])
        if _stays(kind) and type(fresh) is not kind:
            raise TypeError(f"{node['t']} is stored where the run has {_told(fresh)}")
        made: Any = fresh if _stays(kind) else object.__new__(kind)
        before = fresh if type(fresh) is kind else None
        self.seen[node["n"]] = made
        entries = {entry.name: entry for entry in fields(kind)}
        if {name for name, _ in node["v"]} != set(entries):
            raise KeyError(sorted(entries))
        first = getattr(kind, "restored_first", 0)
        for i, (name, content) in enumerate(node["v"]):
            if first and i == first:
                made.rebuild()
            old = getattr(before, name, None)
            object.__setattr__(made, name, self.value(content, old, _place_of(entries[name], place)))
        if hasattr(made, "forget_answers"):
            made.forget_answers()
        return made


class _Free(_Reader):
    """A reader of records that no run will go on with: their arrays may have any shape."""

    def _check(self, made: Any, fresh: Any, place: str) -> None:
        return


def _list_shapes(place: str, x: tuple[int, ...], y: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Shapes that an annotation allows, given those of the two blocks."""
    sizes = math.prod(x), math.prod(y)
    if "Vector" in place:
        vectors = {"X": (sizes[0],), "Y": (sizes[1],), "Z": (sum(sizes),)}
        return [vectors[letter] for letter in re.findall(r"\b([XYZ])Vector", place)]
    named = re.findall(r"\b([XY])", place)
    return [{"X": x, "Y": y}[letter] for letter in named] or _shapes_of_unknown_blocks(x, y)


def _shapes_of_unknown_blocks(x: tuple[int, ...], y: tuple[int, ...]) -> list[tuple[int, ...]]:
    """Shapes of what no annotation places: points of either block, and the same as vectors, alone and together."""
    sizes = math.prod(x), math.prod(y)
    return [x, y, (sizes[0],), (sizes[1],), (sum(sizes),)]


def _place_of(entry: Any, place: str) -> str:
    """What the annotation of a field says of blocks; one that says nothing is of the block of what holds it."""
    said = str(entry.type)
    return said if re.search(r"\b([XYZ][A-Z]|Mirrored)", said) else place.replace("Mirrored", "")


def _parts(place: str, items: Collection[Any]) -> list[str]:
    """The places of the items of a tuple whose annotation names each; else all are of one."""
    inside = re.search(r"tuple\[([^\[\]]*)\]", place)
    if place.startswith("tuple[tuple[") and inside:
        return [inside.group(0)] * len(items)
    named = [part.strip() for part in inside.group(1).split(",")] if inside else []
    if named and named[-1] == "...":
        return [named[0]] * len(items)
    return named if isinstance(items, tuple) and len(named) == len(items) else [place] * len(items)


def _items(fresh: Any, count: int) -> list[Any]:
    """The items of what a fresh run has in the place of a sequence, as many as are stored."""
    old = list(fresh)[:count] if isinstance(fresh, tuple | list) else []
    return old + [None] * (count - len(old))


def _told(value: Any) -> str:
    return f"an array of shape {value.shape}, {value.dtype}" if isinstance(value, _ARRAYS) else type(value).__name__


def _type_of(array: Any) -> Any:
    return array.dtype if isinstance(array, np.ndarray) else array.dtype.kind
