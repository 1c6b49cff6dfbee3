"""Where the command line prints, and what becomes of it where nobody can read it: a closed pipe, a full disk."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from typing import Any, TextIO

from rich.console import Console

from saddleslide.errors import OutputLostError

# What a shell shows of a program that its reader left: 128 and the number of SIGPIPE.
EXIT_CLOSED_PIPE = 141


class Terminal(Console):
    """A console that says at once where its output can not be written."""

    def print(self, *objects: Any, **options: Any) -> None:
        """Print, and see to it that it arrives."""
        try:
            super().print(*objects, **options)
            self.file.flush()
        except OSError as error:
            raise OutputLostError(error) from None

    def on_broken_pipe(self) -> None:
        """Rich would end the program here."""
        raise BrokenPipeError


def flush(stream: TextIO | None, text: str = "") -> None:
    """Write a text, and see to it that all that was printed arrives, or raise an OutputLostError."""
    try:
        if stream is not None:
            stream.write(text)
            stream.flush()
    except OSError as error:
        raise OutputLostError(error) from None


def silence(stream: TextIO | None) -> None:
    """Send a stream that can not be written nowhere, so that the interpreter does not stumble over it when it ends."""
    with suppress(OSError, ValueError, AttributeError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())  # type: ignore[union-attr]
        os.close(nowhere)


def complain(message: str) -> None:
    """A message on standard error, if anybody can read it."""
    try:
        Terminal(stderr=True, highlight=False, soft_wrap=True).print(f"saddleslide: {message}", markup=False)
    except OutputLostError:
        silence(sys.stderr)
