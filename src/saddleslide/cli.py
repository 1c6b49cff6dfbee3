"""The command line: `saddleslide solve`, `plan` and `compare` on problems, `saddleslide paper` for the experiments."""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from saddleslide.adaptive_planner import adaptive_plan
from saddleslide.arrays import Array
from saddleslide.comparison import compare
from saddleslide.driver import run
from saddleslide.errors import InputError, SaddleslideError, raise_all
from saddleslide.gallery import phantom, realistic_tomography, shaded_phantom, synthetic, tomography
from saddleslide.gallery.tomography import REGIMES
from saddleslide.gallery_command import add_gallery, facts_of, gallery_problem, write_solution
from saddleslide.metric_choice import METRICS
from saddleslide.paper_command import add_paper, paper_main
from saddleslide.plans import plan
from saddleslide.plotting import require_matplotlib
from saddleslide.problem import SaddleProblem
from saddleslide.progress import Progress
from saddleslide.reporting import FILES, summary, write_report
from saddleslide.result import Result, Status
from saddleslide.resuming import resume
from saddleslide.solver import solve

EXIT_SOLVED, EXIT_NOT_SOLVED, EXIT_USAGE, EXIT_INTERRUPTED = 0, 1, 2, 130
INSTANCES = ("low_dose", "low_dose_128", "strong_tv", "sparse_view", "poisson")
_SMALLEST_PICTURE = 8

EXAMPLES = """examples:
  saddleslide solve synthetic
  saddleslide solve tomography --regime standard --rtol 1e-6
  saddleslide solve game --rows 10 --columns 10
  saddleslide plan tomography --instance poisson
  saddleslide compare consensus
  saddleslide paper run all --quick

exit codes: 0 solved, 1 not solved, 2 wrong arguments, 130 interrupted
"""
SYNTHETIC_EXAMPLES = """examples:
  saddleslide {command} synthetic
  saddleslide {command} synthetic --nu-x 1 --nu-y 0.5 --tol 0.25 --seed 2
  saddleslide {command} synthetic --adaptive --tol 1e-6
"""
TOMOGRAPHY_EXAMPLES = """examples:
  saddleslide {command} tomography
  saddleslide {command} tomography --regime nonlocal --picture 1 --seed 2 --rtol 1e-6
  saddleslide {command} tomography --instance sparse_view --size 64 --rtol 1e-4
"""
OUT_EXAMPLE = "  saddleslide solve tomography --instance low_dose --size 32 --out low_dose\n"
COMPARE_EXAMPLES = """examples:
  saddleslide compare synthetic
  saddleslide compare game --rows 6 --columns 5 --run
"""


def _whole(least: int) -> Callable[[str], int]:
    def whole_number(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            value = least - 1
        if value < least:
            raise argparse.ArgumentTypeError(f"is {text!r}; expected a whole number >= {least}.")
        return value

    return whole_number


def _positive(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not (math.isfinite(value) and value > 0.0):
        raise argparse.ArgumentTypeError(f"is {text!r}; expected a finite number > 0.")
    return value


def parser() -> argparse.ArgumentParser:
    """The arguments of the command."""
    top = argparse.ArgumentParser(
        prog="saddleslide",
        description="Saddle-point problems whose parts have different prices, with certified gaps.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = top.add_subparsers(dest="command", required=True)
    for command, says in (
        ("solve", "solve a built-in problem and print calls, gap and bounds"),
        ("plan", "print what solve would do, and stop"),
    ):
        problems = commands.add_parser(command, help=says, description=says).add_subparsers(
            dest="problem", required=True
        )
        _add_synthetic(problems, command)
        _add_tomography(problems, command)
        add_gallery(problems, command, _positive, _whole)
        if command == "solve":
            for each in problems.choices.values():
                _add_checkpoint(each)
    _add_compare(commands)
    add_paper(commands, _whole)
    return top


def _add_checkpoint(one: Any) -> None:
    one.add_argument("--checkpoint", type=Path, metavar="FILE", help="save the run there, also on Ctrl-C")
    one.add_argument("--resume", action="store_true", help="go on from the checkpoint")


def _add_compare(commands: Any) -> None:
    says = "the predicted cost of every method on a problem; with --run what each really took"
    one = commands.add_parser(
        "compare",
        help=says,
        description=says,
        epilog=COMPARE_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    problems = one.add_subparsers(dest="problem", required=True)
    _add_synthetic(problems, "compare")
    add_gallery(problems, "compare", _positive, _whole)
    for each in problems.choices.values():
        each.add_argument("--run", action="store_true", help="run every method that applies")


def _add_synthetic(problems: Any, command: str) -> None:
    says = "Hölder powers on boxes, coupled by a matrix (the paper's instances)"
    one = problems.add_parser(
        "synthetic",
        help=says,
        description=says,
        epilog=SYNTHETIC_EXAMPLES.format(command=command),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    one.add_argument("--nu-x", type=float, default=0.75, help="Hölder exponent of f, 0 to 1 (default 0.75)")
    one.add_argument("--nu-y", type=float, default=0.25, help="Hölder exponent of g, 0 to 1 (default 0.25)")
    one.add_argument("--tol", type=_positive, default=0.5, help="target gap (default 0.5)")
    one.add_argument("--seed", type=_whole(0), default=0, help="instance (default 0)")
    one.add_argument("--adaptive", action="store_true", help="use the adaptive method in place of the paper's plan")
    if command == "solve":
        one.add_argument("--explain", action="store_true", help="print the plan and stop")


def _add_tomography(problems: Any, command: str) -> None:
    says = "a picture from its projections, with (Huber) total variation"
    one = problems.add_parser(
        "tomography",
        help=says,
        description=says,
        epilog=TOMOGRAPHY_EXAMPLES.format(command=command) + (OUT_EXAMPLE if command == "solve" else ""),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    kind = one.add_mutually_exclusive_group()
    kind.add_argument("--regime", choices=REGIMES, help="the paper's benchmark with this dual function (default)")
    kind.add_argument("--instance", choices=INSTANCES, help="a realistic instance")
    one.add_argument("--picture", type=int, choices=(0, 1, 2), help="object of the benchmark: head, disks, rectangles")
    one.add_argument("--size", type=_whole(_SMALLEST_PICTURE), help="pixels per side (default 64, or the instance's)")
    one.add_argument("--seed", type=_whole(0), default=1, help="seed of the noise (default 1)")
    one.add_argument("--rtol", type=_positive, default=1e-5, help="target, relative to the gap at the start (1e-5)")
    one.add_argument("--metric", choices=METRICS, default="auto", help="norm of the block of x (default auto)")
    if command == "solve":
        one.add_argument("--out", type=Path, metavar="DIR", help="write result.json and two pictures there")


@dataclass(frozen=True)
class Task:
    """What the arguments ask for: a problem, what is known of its solution, and how to plan and solve it."""

    problem: SaddleProblem
    truth: Array | None
    explain: Callable[[], str]
    solve: Callable[..., Result]


def _synthetic_task(chosen: argparse.Namespace) -> Task:
    problem = synthetic(chosen.nu_x, chosen.nu_y, seed=chosen.seed)
    if chosen.adaptive:
        return Task(
            problem,
            None,
            lambda: adaptive_plan(problem, chosen.tol).explain(),
            lambda **control: solve(problem, chosen.tol, **control),
        )
    intended = plan(problem, chosen.tol, regime="degenerate", metric="identity")
    return Task(problem, None, intended.explain, lambda **control: run(problem, intended, **control))


def _tomography_task(chosen: argparse.Namespace) -> Task:
    if chosen.instance is None:
        size, picture = chosen.size or 64, chosen.picture or 0
        truth = phantom(picture, size)
        problem = tomography(chosen.regime or REGIMES[0], seed=chosen.seed, picture=picture, n=size)
    else:
        problem = realistic_tomography(chosen.instance, seed=chosen.seed, n=chosen.size)
        truth = shaded_phantom(problem.X.shape[0])
    asked = {"rtol": chosen.rtol, "metric": chosen.metric}
    return Task(
        problem,
        truth,
        lambda: adaptive_plan(problem, **asked).explain(),
        lambda **control: solve(problem, **asked, **control),
    )


def _gallery_task(chosen: argparse.Namespace) -> Task:
    problem = gallery_problem(chosen)
    return Task(
        problem,
        None,
        lambda: adaptive_plan(problem, chosen.tol).explain(),
        lambda **control: solve(problem, chosen.tol, **control),
    )


_TASKS = {"synthetic": _synthetic_task, "tomography": _tomography_task}


def _named(arguments: Sequence[str]) -> list[str]:
    """The arguments with `my_file.py:problem` in its place as the problem."""
    given = list(arguments)
    if len(given) > 1 and given[0] in ("solve", "plan", "compare") and ".py:" in given[1]:
        given.insert(1, "file")
    return given


def _prepare_folder(folder: Path) -> None:
    """Everything that could go wrong with --out goes wrong here, before the work."""
    require_matplotlib()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"--out is {str(folder)!r}; expected a folder that can be made: {error}.") from error


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns 0 when solved, 1 when not, 2 for wrong arguments, 130 after Ctrl-C.

    Examples
    --------
    >>> main(["solve", "synthetic", "--nu-x", "1", "--nu-y", "1", "--explain"])  # doctest: +ELLIPSIS
    Plan fgB, loops ...
    0
    """
    known = parser()
    chosen = known.parse_args(_named(sys.argv[1:] if arguments is None else arguments))
    if chosen.command == "paper":
        try:
            return paper_main(chosen)
        except SaddleslideError as error:
            return _refuse(str(error))
    folder = getattr(chosen, "out", None)
    console = Console(highlight=False, soft_wrap=True)
    if getattr(chosen, "instance", None) is not None and chosen.picture is not None:
        return _refuse("argument --picture: not allowed with argument --instance, which has its own object.")
    try:
        if folder is not None:
            _prepare_folder(folder)
        task = _TASKS.get(chosen.problem, _gallery_task)(chosen)
        if chosen.command == "compare":
            console.print(repr(compare(task.problem, chosen.tol, run=chosen.run)), markup=False)
            return EXIT_SOLVED
        if chosen.command == "plan" or getattr(chosen, "explain", False):
            console.print(task.explain(), markup=False)
            return EXIT_SOLVED
        with Progress() as progress:
            result = _solved(task, chosen, progress)
    except SaddleslideError as error:
        return _refuse(str(error))
    except KeyboardInterrupt:
        return _interrupted(chosen)
    console.print(summary(result, task.truth, facts_of(task.problem, result)))
    console.print(result.message, markup=False)
    if folder is not None and task.truth is not None:
        write_report(folder, result, task.truth, vars(chosen))
        console.print(f"Wrote {', '.join(FILES)} to {folder}.", markup=False)
    elif folder is not None:
        written = write_solution(folder, task.problem, result, vars(chosen))
        console.print(f"Wrote {', '.join(written)} to {folder}.", markup=False)
    if result.status is Status.INTERRUPTED:
        return _interrupted(chosen)
    return EXIT_SOLVED if result.status is Status.SOLVED else EXIT_NOT_SOLVED


def _solved(task: Task, chosen: argparse.Namespace, progress: Progress) -> Result:
    """Start the run, or go on with it; Ctrl-C ends it with what is known so far."""
    if chosen.resume:
        raise_all("solve", ["--resume is given; expected --checkpoint FILE with it."] * (chosen.checkpoint is None))
        return resume(chosen.checkpoint, task.problem, callback=progress, on_interrupt="return")
    return task.solve(callback=progress, on_interrupt="return", checkpoint=chosen.checkpoint)


def _interrupted(chosen: argparse.Namespace) -> int:
    place = getattr(chosen, "checkpoint", None)
    kept = "" if place is None or not place.exists() else f" Go on with --checkpoint {place} --resume."
    _refuse(f"interrupted.{kept}")
    return EXIT_INTERRUPTED


def _refuse(complaint: str) -> int:
    Console(stderr=True, highlight=False, soft_wrap=True).print(f"saddleslide: {complaint}", markup=False)
    return EXIT_USAGE


if __name__ == "__main__":
    sys.exit(main())
