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
        return hashlib.sha256(json.dumps(self.identity(), sort_keys=True).encode()).hexdigest()[:16]

    def identity(self) -> dict[str, Any]:
        """Everything that defines the result."""
        return {name: value for name, value in vars(self).items() if name != "seconds"}


@dataclass(frozen=True)
class Experiment:
    """A specification: what is run and what is shown of it.

    A figure has the name of its drawing, a caption, and the label of the paper's.
    """

    name: str
    title: str
    label: str
    about: str
    groups: list[dict[str, Any]]
    tables: list[dict[str, Any]]
    figures: list[dict[str, str]]

    def runs(self, quick: bool = False, seeds: Collection[int] | None = None, optional: bool = False) -> list[Run]:
        """All runs: of the quick part, with other seeds, with the optional groups."""
        groups = [group for group in self.groups if optional or not group.get("optional", False)]
        groups = [group for group in groups if not quick or group.get("quick") is not False]
        return [run for group in groups for run in _expand(self.name, group, quick, seeds)]


@cache
def load(name: str) -> Experiment:
    """The specification with this name."""
    if name not in NAMES:
        raise InputError(f"paper: experiment is {name!r}; expected one of {', '.join(NAMES)}, or all.")
    data = tomllib.loads((files("saddleslide.paper") / "specs" / f"{name}.toml").read_text(encoding="utf-8"))
    shown = data["runs"], data.get("tables", []), data.get("figures", [])
    return Experiment(name, data["title"], data.get("label", ""), data["about"].strip(), *shown)


def choose(names: Collection[str]) -> list[Experiment]:
    """Experiments by name, "all" for every one, in the fixed order."""
    wanted = set(NAMES) if "all" in names else set(names)
    for name in sorted(wanted - set(NAMES)):
        load(name)
    return [load(name) for name in NAMES if name in wanted]


def _expand(experiment: str, group: Mapping[str, Any], quick: bool, seeds: Collection[int] | None) -> Iterator[Run]:
    """Every combination of the axes of a group; an axis "a, b" moves two settings together."""
    quick_grid = group["quick"] if quick and isinstance(group.get("quick"), dict) else {}
    grid = group.get("grid", {}) | quick_grid
    axes = {tuple(part.strip() for part in axis.split(",")): values for axis, values in grid.items()}
    for names, values in axes.items():
        # A pure axis of seeds is replaced; one that ties the seed to something else keeps what was asked for.
        if seeds is not None and names == (SEED,):
            axes[names] = sorted(set(seeds))
        elif seeds is not None and SEED in names:
            axes[names] = [value for value in values if value[names.index(SEED)] in seeds]
    for values in itertools.product(*axes.values()):
        named: dict[str, Any] = {}
        for names, value in zip(axes, values, strict=True):
            named |= zip(names, value if len(names) > 1 else [value], strict=True)
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


def loops_of(problem: Mapping[str, Any], settings: Mapping[str, Any]) -> list[int] | None:
    """Loops that the settings state, or that follow from T_1: ceil(4 T_1^((3 nu_x - 1)/2)) innermost.

    The rule keeps the terms of g and B in the theorem's bound below that of f (paper, "Loop counts").
    """
    if "T_1" in settings:
        T_1 = int(settings["T_1"])
        return [T_1, int(settings["T_2"]), math.ceil(4.0 * T_1 ** ((3.0 * float(problem["nu_x"]) - 1.0) / 2.0))]
    return list(settings["loops"]) if "loops" in settings else None
