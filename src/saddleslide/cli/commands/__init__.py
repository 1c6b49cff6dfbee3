"""The problems of the command line: words, arguments, tasks and reports."""

from saddleslide.cli.commands.benchmarks import SYNTHETIC, TOMOGRAPHY
from saddleslide.cli.commands.matrices import CONSENSUS, CONSTRAINED, GAME, INVERSE, TRANSPORT
from saddleslide.cli.commands.options import EXIT_CODES, PICTURE, SOLUTION_FILES, Entry, positive, whole
from saddleslide.cli.commands.own_file import FILE
from saddleslide.cli.commands.report import facts_of, prepare_folder, write_solution
from saddleslide.cli.commands.restoration import DEBLUR, DENOISE, INPAINT

PROBLEMS: dict[str, Entry] = {
    entry.name: entry
    for entry in (
        SYNTHETIC, TOMOGRAPHY, GAME, TRANSPORT, CONSENSUS, CONSTRAINED, INVERSE, DENOISE, DEBLUR, INPAINT, FILE,
    )
}  # fmt: skip

__all__ = [
    "EXIT_CODES",
    "PICTURE",
    "PROBLEMS",
    "SOLUTION_FILES",
    "Entry",
    "facts_of",
    "positive",
    "prepare_folder",
    "whole",
    "write_solution",
]
