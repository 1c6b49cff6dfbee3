"""The command line: `saddleslide solve`, `plan` and `compare` on problems, `saddleslide paper` for the experiments."""

from __future__ import annotations

import argparse
import difflib
import re
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from pathlib import Path
from typing import Any, NoReturn

import saddleslide
from saddleslide.api.resumption import resume
from saddleslide.certificates.verdict import Status
from saddleslide.cli.commands import PROBLEMS
from saddleslide.cli.commands.own_file import own_lines
from saddleslide.cli.commands.tasks import EXIT_CODES, add_parser, whole
from saddleslide.cli.doctor import add_doctor, demo_main, doctor_main
from saddleslide.cli.paper import add_paper, paper_main
from saddleslide.cli.reporting import prepare_folder, summary, write_solution
from saddleslide.distributed import DaskSum, connect, local
from saddleslide.distributed.consensus import AgentFunctions
from saddleslide.errors import OutputLostError, SaddleslideError, raise_all
from saddleslide.gallery.solution import Solution
from saddleslide.runs.progress import Progress
from saddleslide.runs.terminal import EXIT_CLOSED_PIPE, Terminal, complain, flush, silence

EXIT_SOLVED, EXIT_NOT_SOLVED, EXIT_USAGE, EXIT_INTERRUPTED = 0, 1, 2, 130
EXAMPLES = f"""examples:
  saddleslide demo
  saddleslide solve synthetic
  saddleslide solve tomography --regime standard --reduction 1e-6
  saddleslide solve game --rows 10 --columns 10
  saddleslide plan tomography --instance poisson
  saddleslide compare consensus
  saddleslide paper run all --quick

{EXIT_CODES}
"""
SCHEDULER = "put f on the workers of this Dask cluster, such as tcp://127.0.0.1:8786, or on two new ones with 'local'"
COMMANDS = {
    "solve": (
        "solve a built-in problem or your own, and print calls, gap and bounds",
        "  saddleslide solve game --tol 1e-4\n  saddleslide solve denoise --size 32 --out clean\n",
    ),
    "plan": ("print what solve would do, and stop", "  saddleslide plan tomography --size 32\n"),
    "compare": (
        "the predicted cost of every method on a problem; with --run what each really took",
        "  saddleslide compare synthetic\n  saddleslide compare game --rows 6 --columns 5 --run\n",
    ),
}


class _Parser(argparse.ArgumentParser):
    """A parser that says in a line what is wrong, and for which a page of help that nobody can read is no success."""

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[Any, list[str]]:
        """Refuse what nobody knows here, where the options are known that were perhaps meant."""
        options = [one.partition("=")[0] for one in args or () if one.startswith("--")]
        # Ahead of argparse, which would take the value of an unknown option for the name of an instance.
        unknown = [one for one in options if not any(known.startswith(one) for known in self._option_string_actions)]
        if unknown and self._subparsers is None:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        chosen, rest = super().parse_known_args(args, namespace)
        if rest:
            self.error(f"unrecognized arguments: {' '.join(rest)}")
        return chosen, rest

    def error(self, message: str) -> NoReturn:
        """One line: what is wrong, what was perhaps meant, where all is listed."""
        for action in self._actions:
            if message.endswith(f"required: {action.dest}") and action.choices:
                message += f" ({', '.join(action.choices)})"
        wrong = re.search(r"invalid choice: '([^']*)'|unrecognized arguments: (\S+)", message)
        choices = re.findall(r"[\w.-]+", message.partition("choose from")[2]) or list(self._option_string_actions)
        meant = difflib.get_close_matches(wrong[1] or wrong[2] or "", choices, 1, 0.7) if wrong else []
        hint = f" Did you mean {meant[0]}?" if meant else ""
        complain(f"{message.rstrip('.')}.{hint} See {self.prog} --help.")
        raise SystemExit(EXIT_USAGE)

    def _print_message(self, message: str, file: Any = None) -> None:
        if file is sys.stdout:
            flush(file, message)
        else:
            super()._print_message(message, file)


def parser() -> argparse.ArgumentParser:
    """The arguments of the command."""
    top = _Parser(
        prog="saddleslide",
        description="Saddle-point problems whose parts have different prices, with certified gaps.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    top.add_argument("--version", action="version", version=f"saddleslide {saddleslide.__version__}")
    commands = top.add_subparsers(dest="command", required=True)
    for command, (says, lines) in COMMANDS.items():
        one = add_parser(commands, command, says, f"examples:\n{lines}\n{EXIT_CODES}\n")
        problems = one.add_subparsers(dest="problem", required=True)
        for entry in PROBLEMS.values():
            entry.add_to(problems, command)
        for each in problems.choices.values() if command == "solve" else ():
            each.add_argument("--checkpoint", type=Path, metavar="FILE", help="save the run there, also on Ctrl-C")
            each.add_argument("--resume", action="store_true", help="go on from the checkpoint")
            each.add_argument("--scheduler", metavar="ADDRESS", help=SCHEDULER)
            each.add_argument("--parts", type=whole(1), default=8, help="blocks of rows of f on the cluster (8)")
    add_paper(commands)
    add_doctor(commands)
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns 0 when solved, 1 when not, 2 for wrong arguments, files and own code, 130 after Ctrl-C.

    141 is for a reader of the output that went away.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    if len(given) > 1 and given[0] in COMMANDS and ".py:" in given[1]:
        # `my_file.py:problem` in the place of a problem.
        given.insert(1, "file")
    if len(given) > 1 and given[0] in COMMANDS and given[1].endswith(".py"):
        return _refuse(f"{given[1]!r} is a file; say which problem in it: saddleslide {given[0]} {given[1]}:problem")
    if given and given[0] in PROBLEMS:
        return _refuse(f"{given[0]!r} is a problem; write what to do with it: saddleslide solve {' '.join(given)}")
    try:
        code = _answer(parser().parse_args(given))
        flush(sys.stdout)
    except OutputLostError as lost:
        silence(sys.stdout)
        return EXIT_CLOSED_PIPE if lost.left else _refuse(str(lost))
    return code


def _answer(chosen: argparse.Namespace) -> int:
    """Exit code of a command, whatever ends it."""
    try:
        match chosen.command:
            case "paper":
                return paper_main(chosen)
            case "doctor":
                return doctor_main()
            case "demo":
                return demo_main(chosen)
        return _carry_out(chosen)
    except OutputLostError:
        raise
    except SaddleslideError as error:
        return _refuse(str(error))
    except KeyboardInterrupt:
        return _handle_interrupt(chosen)
    except (SystemExit, GeneratorExit) as stop:
        how = f"exit code {stop.code!r}" if isinstance(stop, SystemExit) else type(stop).__name__
        return _refuse(
            f"{getattr(chosen, 'target', chosen.command)!r} ended the program ({how}) before the command was done; "
            "expected code that makes a problem and returns."
        )
    except OSError as error:
        # A full disk, a folder without permission: nothing that a traceback would explain.
        return _refuse("\n".join([f"{error}.", *getattr(error, "__notes__", ())]))
    except Exception as error:
        lines = own_lines(chosen, error)
        if lines is None:
            raise
        return _refuse(f"{chosen.target!r} raised {type(error).__name__}:\n{lines}")


def _carry_out(chosen: argparse.Namespace) -> int:
    address = getattr(chosen, "scheduler", None)
    cluster: AbstractContextManager[Any] = nullcontext()
    if address is not None:
        cluster = local() if address == "local" else connect(address)
    # What is on the cluster lets go of it first.
    with cluster as client, ExitStack() as things:
        return _carry_out_with(argparse.Namespace(**vars(chosen), client=client), things)


def _carry_out_with(chosen: argparse.Namespace, things: ExitStack) -> int:
    console = Terminal(highlight=False, soft_wrap=True)
    folder = getattr(chosen, "out", None)
    if folder is not None:
        prepare_folder(folder)
    task = PROBLEMS[chosen.problem].task(chosen)
    problem = task.problem
    if isinstance(problem.f, DaskSum):
        things.enter_context(problem.f)
    if chosen.command == "compare":
        console.print(repr(task.compare(chosen.run)), markup=False)
        return EXIT_SOLVED
    if chosen.command == "plan" or chosen.explain:
        console.print(task.explain(), markup=False)
        return EXIT_SOLVED
    with Progress() as progress:
        # Ctrl-C ends the run with what is known so far.
        if chosen.resume:
            raise_all("solve", ["--resume is given; expected --checkpoint FILE with it."] * (chosen.checkpoint is None))
            result = resume(chosen.checkpoint, problem, callback=progress, on_interrupt="return")
        else:
            result = task.solve(callback=progress, on_interrupt="return", checkpoint=chosen.checkpoint)
    solution = problem.read(result)
    facts = solution.facts() if isinstance(solution, Solution) else {}
    if isinstance(problem.f, DaskSum | AgentFunctions):
        facts |= problem.f.counts.facts()
    console.print(summary(result, facts))
    console.print(result.message, markup=False)
    if folder is not None:
        asked = {name: value for name, value in vars(chosen).items() if name != "client"}
        written = write_solution(folder, problem, result, asked)
        console.print(f"Wrote {', '.join(written)} to {folder}.", markup=False)
    if result.status is Status.INTERRUPTED:
        return _handle_interrupt(chosen)
    return EXIT_SOLVED if result.status in (Status.SOLVED, Status.SOLVED_WITHIN) else EXIT_NOT_SOLVED


def _handle_interrupt(chosen: argparse.Namespace) -> int:
    place = getattr(chosen, "checkpoint", None)
    kept = "" if place is None or not place.exists() else f" Go on with --checkpoint {place} --resume."
    return _refuse(f"interrupted.{kept}", EXIT_INTERRUPTED)


def _refuse(complaint: str, code: int = EXIT_USAGE) -> int:
    complain(complaint)
    return code


if __name__ == "__main__":
    sys.exit(main())
