"""What an experiment is, as data: runs on a grid, tables, figures. Read from the TOML files in `specs/`."""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import tomllib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any

from saddleslide.errors import InputError

# The order in which people meet them: cheap and central first.
NAMES = (
    "budgets", "separation", "ordering", "cost", "exponents", "restarts", "stochastic", "tomography", "limits",
)  # fmt: skip
SEED = "problem.seed"


@dataclass(frozen=True)
class Run:
    """One run: which method on which problem with which settings. Its key names it for ever.

    A group is a set of runs that a table can ask for; `seconds` is roughly how long it takes, for the time left.
    """

    experiment: str
    group: str
    method: str
    problem: dict[str, Any]
    settings: dict[str, Any] = field(default_factory=dict)
    seconds: float = 1.0

    @property
    def key(self) -> str:
        """The same for the same experiment, method, problem and settings, whatever the order of their names."""
        text = json.dumps(self.identity(), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def identity(self) -> dict[str, Any]:
        """Everything that defines the result."""
        names = ("experiment", "group", "method", "problem", "settings")
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True)
class Experiment:
    """A specification: what is run and what is shown of it."""

    name: str
    title: str
    label: str
    about: str
    data: dict[str, Any]

    def runs(self, quick: bool = False, seeds: Collection[int] | None = None, optional: bool = False) -> list[Run]:
        """All runs: of the quick part, with other seeds, with the optional groups."""
        groups = [group for group in self.data["runs"] if optional or not group.get("optional", False)]
        groups = [group for group in groups if not quick or group.get("quick") is not False]
        return [run for group in groups for run in _expand(self.name, group, quick, seeds)]

    @property
    def tables(self) -> list[dict[str, Any]]:
        """Definitions of the tables."""
        return list(self.data.get("tables", []))

    @property
    def figures(self) -> list[dict[str, str]]:
        """Figures: the name of the drawing, a caption, the label of the paper's."""
        return list(self.data.get("figures", []))


@cache
def load(name: str) -> Experiment:
    """The specification with this name."""
    if name not in NAMES:
        raise InputError(f"paper: experiment is {name!r}; expected one of {', '.join(NAMES)}, or all.")
    text = (files("saddleslide.paper") / "specs" / f"{name}.toml").read_text(encoding="utf-8")
    data = tomllib.loads(text)
    return Experiment(name, data["title"], data.get("label", ""), data["about"].strip(), data)


def choose(names: Collection[str]) -> list[Experiment]:
    """Experiments by name, "all" for every one, in the fixed order."""
    wanted = set(NAMES) if "all" in names else set(names)
    for name in sorted(wanted - set(NAMES)):
        load(name)
    return [load(name) for name in NAMES if name in wanted]


def _expand(experiment: str, group: Mapping[str, Any], quick: bool, seeds: Collection[int] | None) -> Iterator[Run]:
    """Every combination of the axes of a group; an axis "a, b" moves two settings together."""
    axes = dict(group.get("grid", {}))
    if quick and isinstance(group.get("quick"), dict):
        axes |= group["quick"]
    if seeds is not None:
        axes = {name: _replace_seeds(name, values, seeds) for name, values in axes.items()}
    for values in itertools.product(*axes.values()):
        named: dict[str, Any] = {}
        for axis, value in zip(axes, values, strict=True):
            names = [part.strip() for part in axis.split(",")]
            named |= dict(zip(names, value, strict=True)) if len(names) > 1 else {names[0]: value}
        parts = {"problem": dict(group["problem"]), "settings": dict(group.get("settings", {}))}
        method = str(named.pop("method", group.get("method", "recursion")))
        for dotted, value in named.items():
            where, name = dotted.split(".", 1)
            parts[where][name] = value
        # Rough time of a run: the hint of its group, or steps of the innermost loop times the time of one.
        seconds, loops = float(group.get("seconds", 1.0)), loops_of(parts["problem"], parts["settings"])
        if "step_seconds" in group and loops is not None:
            seconds = float(group["step_seconds"]) * math.prod(loops) + 0.02
        yield Run(experiment, group["name"], method, parts["problem"], parts["settings"], seconds)


def _replace_seeds(axis: str, values: list[Any], seeds: Collection[int]) -> list[Any]:
    """A pure axis of seeds is replaced; one that ties the seed to something else keeps what was asked for."""
    names = [part.strip() for part in axis.split(",")]
    if names == [SEED]:
        return sorted(set(seeds))
    if SEED in names:
        return [value for value in values if value[names.index(SEED)] in set(seeds)]
    return values


def loops_of(problem: Mapping[str, Any], settings: Mapping[str, Any]) -> list[int] | None:
    """Loops that the settings state, or that follow from T_1: ceil(4 T_1^((3 nu_x - 1)/2)) innermost.

    The rule keeps the terms of g and B in the theorem's bound below that of f (paper, "Loop counts").
    """
    if "T_1" in settings:
        T_1 = int(settings["T_1"])
        return [T_1, int(settings["T_2"]), math.ceil(4.0 * T_1 ** ((3.0 * float(problem["nu_x"]) - 1.0) / 2.0))]
    return list(settings["loops"]) if "loops" in settings else None
