"""Names that are loaded when first asked for: how a room offers a catalogue without reading all of it."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from typing import Any


def load_on_demand(
    package: str, homes: Mapping[str, tuple[str, ...]]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The `__getattr__` of a package, which finds a name in the module that has it and keeps it, and its `__dir__`.

    Parameters
    ----------
    package : str
        Dotted name of the package.
    homes : mapping of str to tuple of str
        Names by the module of the package that has them.
    """
    home = {name: module for module, names in homes.items() for name in names}

    def load(name: str) -> Any:
        if name not in home:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(importlib.import_module(f"{package}.{home[name]}"), name)
        setattr(sys.modules[package], name, value)
        return value

    return load, lambda: sys.modules[package].__all__
