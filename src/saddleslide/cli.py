"""The command line: `saddleslide solve synthetic`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from saddleslide.driver import run
from saddleslide.errors import SaddleslideError
from saddleslide.gallery import synthetic
from saddleslide.planner import plan
from saddleslide.planning import Plan
from saddleslide.result import Result, Status

EXIT_SOLVED, EXIT_NOT_SOLVED, EXIT_USAGE = 0, 1, 2

EXAMPLES = """examples:
  saddleslide solve synthetic
  saddleslide solve synthetic --nu-x 1 --nu-y 0.5 --tol 0.25 --seed 2
  saddleslide solve synthetic --explain
"""


def parser() -> argparse.ArgumentParser:
    """The arguments of the command."""
    top = argparse.ArgumentParser(
        prog="saddleslide",
        description="Saddle-point problems whose parts have different prices, with certified gaps.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    commands = top.add_subparsers(dest="command", required=True)
    solve = commands.add_parser("solve", help="solve a built-in problem and print calls, gap and bounds")
    problems = solve.add_subparsers(dest="problem", required=True)
    built_in = problems.add_parser(
        "synthetic", help="Hölder powers on boxes, coupled by a matrix (the paper's instances)"
    )
    built_in.add_argument("--nu-x", type=float, default=0.75, help="Hölder exponent of f, 0 to 1 (default 0.75)")
    built_in.add_argument("--nu-y", type=float, default=0.25, help="Hölder exponent of g, 0 to 1 (default 0.25)")
    built_in.add_argument("--tol", type=float, default=0.5, help="target gap (default 0.5)")
    built_in.add_argument("--seed", type=int, default=0, help="instance (default 0)")
    built_in.add_argument("--explain", action="store_true", help="print the plan and stop")
    return top


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns 0 when solved, 1 when not, 2 for wrong arguments.

    Examples
    --------
    >>> main(["solve", "synthetic", "--nu-x", "1", "--nu-y", "1", "--explain"])  # doctest: +ELLIPSIS
    Plan fgB, loops ...
    0
    """
    chosen = parser().parse_args(arguments)
    console = Console(highlight=False, soft_wrap=True)
    try:
        problem = synthetic(chosen.nu_x, chosen.nu_y, seed=chosen.seed)
        intended = plan(problem, chosen.tol)
    except SaddleslideError as error:
        Console(stderr=True, highlight=False, soft_wrap=True).print(f"saddleslide: {error}", markup=False)
        return EXIT_USAGE
    if chosen.explain:
        console.print(intended.explain(), markup=False)
        return EXIT_SOLVED
    result = run(problem, intended)
    console.print(summary(result))
    console.print(result.message, markup=False)
    return EXIT_SOLVED if result.status is Status.SOLVED else EXIT_NOT_SOLVED


def summary(result: Result) -> Table:
    """A result as a table for the terminal."""
    plan_used = result.plans[-1]
    loops = f", loops {plan_used.loops}" if isinstance(plan_used, Plan) else ""
    table = Table(title=f"levels {plan_used.order}{loops}", title_justify="left")
    table.add_column("")
    table.add_column("value", justify="right")
    rows = [
        ("status", result.status.name.lower()),
        ("certified gap", f"{result.gap:.4g}"),
        ("target", "none" if plan_used.tol is None else f"{plan_used.tol:g}"),
        ("saddle value within", f"[{result.lower:.6g}, {result.upper:.6g}]"),
        ("calls of f'", f"{result.calls.f:,}"),
        ("calls of g'", f"{result.calls.g:,}"),
        ("products with B, B^T", f"{result.calls.B:,}"),
        ("seconds", f"{result.seconds:.3g}"),
    ]
    for name, value in rows:
        table.add_row(name, value)
    return table


if __name__ == "__main__":
    sys.exit(main())
