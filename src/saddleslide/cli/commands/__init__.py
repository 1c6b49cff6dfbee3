"""The problems of the command line: words, arguments, tasks."""

from saddleslide.cli.commands.benchmarks import SYNTHETIC, TOMOGRAPHY
from saddleslide.cli.commands.matrices import CONSENSUS, CONSTRAINED, GAME, INVERSE, TRANSPORT
from saddleslide.cli.commands.own_file import FILE
from saddleslide.cli.commands.restoration import DEBLUR, DENOISE, INPAINT
from saddleslide.cli.commands.tasks import Entry
from saddleslide.cli.reporting import SOLUTION_FILES

PROBLEMS: dict[str, Entry] = {
    entry.name: entry
    for entry in (
        SYNTHETIC, TOMOGRAPHY, GAME, TRANSPORT, CONSENSUS, CONSTRAINED, INVERSE, DENOISE, DEBLUR, INPAINT, FILE,
    )
}  # fmt: skip

__all__ = ["PROBLEMS", "SOLUTION_FILES"]
