"""Imports go one way, the printer prints, the certificate knows no method, every public name shows an example."""

from __future__ import annotations

import ast
import functools
import graphlib
import inspect
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

import saddleslide as ss
from support import gathered

SOURCE = Path(ss.__file__).parent
FILES = sorted(SOURCE.rglob("*.py"))

# Top to bottom: a room may import from the floors below its own, and on its own floor where that makes no circle.
FLOORS = [
    {"__main__", "cli"},
    {"api", "gallery", "distributed", "paper"},
    {"planner"},
    {"runs"},
    {"methods"},
    {"facts", "oracles", "certificates"},
    {"problem", "functions", "domains", "operators", "metrics"},
    {"kernels"},
    {"errors", "arrays", "theory", "plots", "catalogue", "watcher"},
]
DEPTH = {room: depth for depth, rooms in enumerate(FLOORS) for room in rooms}
OPTIONAL = {"matplotlib", "pylops", "numba", "torch", "jax", "cupy", "networkx", "odl", "dask", "distributed", "zarr"}
OPTIONAL |= {"pywt"}


def room_of(path):
    """The top-level module or subpackage a file belongs to."""
    return path.relative_to(SOURCE).with_suffix("").parts[0]


@functools.cache
def tree_of(path):
    return ast.parse(path.read_text(encoding="utf-8"))


@functools.cache
def imported_modules(path, *, for_typing=True):
    """Dotted names of all modules that a file imports, wherever the statement stands."""
    tree = tree_of(path)
    typing_only = {
        id(node)
        for block in ast.walk(tree)
        if isinstance(block, ast.If) and "TYPE_CHECKING" in ast.dump(block.test)
        for node in ast.walk(block)
    }
    names = set()
    for node in ast.walk(tree):
        if id(node) in typing_only and not for_typing:
            continue
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            is_package = node.module == "saddleslide"
            names |= {f"saddleslide.{alias.name}" for alias in node.names} if is_package else {node.module}
    return names


def imported_rooms(path):
    return {name.split(".")[1] for name in imported_modules(path) if name.startswith("saddleslide.")}


def relative(path):
    return str(path.relative_to(SOURCE))


def test_every_room_has_one_floor():
    rooms = {room_of(path) for path in FILES} - {"__init__"}
    assert rooms == set(DEPTH), f"give {sorted(rooms ^ set(DEPTH))} a place in FLOORS"
    assert len(DEPTH) == sum(map(len, FLOORS))


@gathered("path", [path for path in FILES if room_of(path) != "__init__"], ids=relative)
def test_nobody_imports_from_a_floor_above(path):
    upward = {room for room in imported_rooms(path) if DEPTH[room] < DEPTH[room_of(path)]}
    assert not upward, f"{relative(path)} imports {sorted(upward)}"


def test_rooms_import_each_other_in_no_circle():
    below = {room: set() for room in DEPTH}
    for path in FILES:
        if room_of(path) != "__init__":
            below[room_of(path)] |= imported_rooms(path) - {room_of(path)}
    # Raises CycleError with the rooms of the circle.
    assert len([*graphlib.TopologicalSorter(below).static_order()]) == len(DEPTH)


def test_certificates_and_what_they_stand_on_know_no_method():
    assert not reachable("certificates") & {"methods", "runs", "planner", "api"}


def test_theory_and_what_it_stands_on_import_no_arrays():
    rooms = reachable("theory")
    assert "arrays" not in rooms
    for path in FILES:
        if room_of(path) in rooms:
            packages = {name.split(".")[0] for name in imported_modules(path)}
            assert not packages & {"numpy", "scipy"}, relative(path)


def reachable(room):
    """The room and all rooms that it imports at run time, directly or not."""
    found, waiting = set(), {room}
    while waiting:
        now = waiting.pop()
        found.add(now)
        for path in FILES:
            if room_of(path) == now:
                modules = imported_modules(path, for_typing=False)
                waiting |= {name.split(".")[1] for name in modules if name.startswith("saddleslide.")} - found
    return found


def modules_to_read(start):
    """A module and all modules that it imports, wherever the statements stand, directly or not."""
    paths = {".".join((SOURCE.name, *path.relative_to(SOURCE).with_suffix("").parts)): path for path in FILES}
    paths = {name.removesuffix(".__init__"): path for name, path in paths.items()}
    found, waiting = set(), {start}
    while waiting:
        found.add(now := waiting.pop())
        hidden = {
            id(node)
            for block in ast.walk(tree_of(paths[now]))
            if isinstance(block, ast.If) and "TYPE_CHECKING" in ast.dump(block.test)
            for node in ast.walk(block)
        }
        for node in ast.walk(tree_of(paths[now])):
            if isinstance(node, ast.ImportFrom) and id(node) not in hidden:
                names = {f"{node.module}.{alias.name}" for alias in node.names}
                waiting |= {name if name in paths else node.module for name in names} & set(paths) - found - {
                    SOURCE.name
                }
    return [paths[name] for name in found]


@pytest.mark.parametrize(
    ("start", "modules", "lines"),
    [("api", 90, 16_000), ("methods.condat_vu", 25, 6_000), ("methods.sliding.recursion", 25, 6_000)],
)
def test_a_reader_gets_through_a_solve_and_through_one_method(start, modules, lines):
    read = modules_to_read(f"saddleslide.{start}")
    length = sum(path.read_text(encoding="utf-8").count("\n") for path in read)
    assert len(read) <= modules and length <= lines, f"{len(read)} modules, {length} lines"


def test_nobody_imports_the_experiments_but_the_command_line():
    users = {room_of(path) for path in FILES if "paper" in imported_rooms(path)} - {"paper"}
    assert users == {"cli"}


def test_only_what_writes_to_the_terminal_imports_the_terminal_library():
    users = {room_of(path) for path in FILES if any(name.split(".")[0] == "rich" for name in imported_modules(path))}
    assert users <= {"cli", "runs"}


@gathered("path", FILES, ids=relative)
def test_library_code_never_calls_print(path):
    lines = [
        node.lineno
        for node in ast.walk(tree_of(path))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
    ]
    assert not lines, f"{relative(path)} prints in lines {lines}"


@gathered("path", FILES, ids=relative)
def test_every_file_says_what_it_is(path):
    assert ast.get_docstring(tree_of(path))


def public_names():
    """(dotted name, object) of everything a user reaches from the package and its public modules."""
    modules = {name: getattr(ss, name) for name in ss.__all__ if inspect.ismodule(getattr(ss, name))}
    found = {name: getattr(ss, name) for name in ss.__all__ if name not in modules}
    for module_name, module in modules.items():
        for name in getattr(module, "__all__", None) or own_names(module):
            found[f"{module_name}.{name}"] = getattr(module, name)
    return found


def own_names(module):
    return [
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", None) == module.__name__
    ]


@gathered(("name", "value"), public_names().items(), ids=public_names())
def test_every_public_name_shows_an_example(name, value):
    documentation = inspect.getdoc(value) or ""
    assert "Examples\n--------\n>>> " in documentation


@gathered("name", ss.__all__)
def test_every_promised_name_exists(name):
    assert hasattr(ss, name)


def modules_after(code: str) -> set[str]:
    code += "; import sys; print(*sorted(sys.modules))"
    return set(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split())


def test_importing_the_package_imports_nothing_optional():
    loaded = modules_after(
        "import saddleslide as ss; [getattr(ss, name) for name in ss.__all__ if name != 'distributed']"
    )
    assert {"saddleslide.api.solver", "saddleslide.gallery"} <= loaded
    assert not OPTIONAL & loaded


def test_importing_the_package_loads_what_is_asked_for_and_no_more():
    assert not {"numpy", "scipy", "saddleslide.api.solver"} & modules_after("import saddleslide")
    assert "saddleslide.gallery" not in modules_after("import saddleslide; saddleslide.solve")


def test_type_checkers_do_not_see_the_loader_of_names():
    """Seen by them, it would make every misspelt name of the package a known one."""
    tree = ast.parse(Path(ss.__file__).read_text(encoding="utf-8"))
    assert "__getattr__" not in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    hidden = [node for node in tree.body if isinstance(node, ast.If) and ast.unparse(node.test) == "not TYPE_CHECKING"]
    assert [node.name for part in hidden for node in part.body] == ["__getattr__"]


def test_names_are_loaded_from_where_the_types_say():
    """The imports that type checkers read and the table that loads names are two lists of the same."""
    tree = ast.parse(Path(ss.__file__).read_text(encoding="utf-8"))
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.level == 0]
    told = {name.name: node.module for node in imports for name in node.names if node.module != "typing"}
    assert {name: home for name, home in told.items() if home != "saddleslide"} == {
        name: f"saddleslide.{home}" for name, home in ss._HOME.items()
    }
    assert set(told) == set(ss.__all__)
    assert set(dir(ss)) >= set(ss.__all__)
    with pytest.raises(AttributeError, match="no attribute 'sove'"):
        ss.sove  # noqa: B018
    # A process that a function is sent to finds it where callers do.
    assert pickle.loads(pickle.dumps(ss.solve)) is ss.solve


@pytest.mark.parametrize("room", ["domains", "functions", "metrics", "operators", "theory"])
def test_a_catalogue_loads_names_from_where_the_types_say(room):
    module = getattr(ss, room)
    tree = ast.parse(Path(module.__file__).read_text(encoding="utf-8"))
    hidden = next(node for node in tree.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING")
    told = {name.name: node.module for node in hidden.body for name in node.names}
    assert told == {name: f"{module.__name__}.{home}" for home, names in module._HOMES.items() for name in names}
    # What is named as itself is for the package alone.
    public = {name.name for node in hidden.body for name in node.names if name.asname is None}
    assert public <= set(module.__all__) == set(dir(module))
    assert all(getattr(module, name).__name__ == name for name in told)
    with pytest.raises(AttributeError, match=f"'saddleslide.{room}' has no attribute 'Bx'"):
        module.Bx  # noqa: B018


def test_a_solve_loads_the_sets_and_functions_that_it_names():
    code = (
        "import saddleslide as ss; ss.minimize(ss.functions.Quadratic(1.0) + ss.functions.Linear([1.0, 2.0]), tol=1e-3)"
    )
    loaded = modules_after(code)
    assert "saddleslide.functions.quadratic" in loaded
    unasked = {
        "domains.treeplex",
        "functions.entropies",
        "operators.transforms",
        "arrays.remote",
        "plots",
        "runs.figure",
    }
    # What sets without an end, sparse matrices and operators of others ask for.
    unasked |= {f"certificates.{name}" for name in ("levels", "nearby", "rays", "solutions", "within", "certification")}
    unasked |= {"operators.sparse", "operators.foreign", "plots"}
    assert not {f"saddleslide.{module}" for module in unasked} & loaded
