"""`my_file.py:problem`: a problem from the user's own Python file."""

from __future__ import annotations

import importlib.util
import inspect
import sys
import traceback
from pathlib import Path
from typing import Any

from saddleslide.cli.commands.tasks import Entry
from saddleslide.errors import InputError
from saddleslide.functions.base import Function
from saddleslide.problem import SaddleProblem
from saddleslide.problem.objectives import split_objective


def _from_file(chosen: Any) -> SaddleProblem:
    path, _, name = str(chosen.target).rpartition(":")
    file = Path(path)
    if not name or not file.is_file():
        raise InputError(f"{chosen.target!r} names no file; expected my_file.py:problem with an existing file.")
    spec = importlib.util.spec_from_file_location(file.stem, file)
    if spec is None or spec.loader is None:
        raise InputError(f"{path!r} is no Python file; expected my_file.py:problem.")
    module = importlib.util.module_from_spec(spec)
    # The file may define classes that look themselves up by module.
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    if not hasattr(module, name):
        there = [known for known in vars(module) if not known.startswith("_")]
        raise InputError(f"{path!r} has no name {name!r}; expected one of its own: {', '.join(there)}.")
    found = getattr(module, name)
    made = found
    if callable(found):
        client, parameters = getattr(chosen, "client", None), inspect.signature(found).parameters.values()
        takes = [one.name for one in parameters if one.default is inspect.Parameter.empty]
        if takes and client is None:
            raise InputError(
                f"{chosen.target!r} takes {', '.join(takes)}; expected --scheduler ADDRESS with it, for the client of "
                "a cluster."
            )
        made = found(client) if takes else found()
    if isinstance(made, Function):
        made = split_objective(made).problem
    if not isinstance(made, SaddleProblem):
        raise InputError(
            f"{chosen.target!r} is {type(made).__name__}; expected a SaddleProblem, an objective as for ss.minimize, "
            "or a function that makes one."
        )
    return made


def own_lines(chosen: Any, error: Exception) -> str | None:
    """What is wrong with a file of the caller's, from its own lines on; None where the error did not come from it."""
    if getattr(chosen, "target", None) is None:
        return None
    file = Path(str(chosen.target).rpartition(":")[0]).resolve()
    if isinstance(error, SyntaxError):
        # Of the file itself, which then has no line that was run, or of what it imports.
        return "".join(traceback.format_exception_only(error)).rstrip()
    step = error.__traceback__
    while step is not None and Path(step.tb_frame.f_code.co_filename).resolve() != file:
        step = step.tb_next
    return None if step is None else "".join(traceback.format_exception(error.with_traceback(step))).rstrip()


FILE = Entry(
    "file", "a problem of your own: my_file.py:problem", 1e-6,
    lambda one: one.add_argument("target", metavar="my_file.py:problem", help="a file and the name of what it makes"),
    _from_file,
    own="""the file makes a SaddleProblem or an objective as for ss.minimize, or has a function without arguments that
returns one:
  import saddleslide as ss
  problem = ss.gallery.matrix_game([[3.0, 0.0], [1.0, 2.0]])
with these lines in my_file.py, `saddleslide {command} my_file.py:problem` is the command; with `solve --scheduler
ADDRESS` the function may take the client of that cluster as its argument
""",
)  # fmt: skip
