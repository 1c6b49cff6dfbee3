"""How commands end that can not go on: own code that exits, closed pipes, full disks."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from saddleslide.cli import main as cli
from saddleslide.cli.commands import SOLUTION_FILES
from support import gathered

GAME = ["game", "--rows", "3", "--columns", "3", "--tol", "1e-3"]
# Each command that prints, with little work behind it.
COMMANDS = {
    "solve": ["solve", *GAME],
    "explain": ["solve", *GAME, "--explain"],
    "plan": ["plan", *GAME],
    "compare": ["compare", *GAME],
    "paper": ["paper", "list"],
    "help": ["--help"],
    "version": ["--version"],
}
FULL = Path("/dev/full")
needs_full = pytest.mark.skipif(not FULL.exists(), reason="no /dev/full here")
EXITS = {
    "0": ("sys.exit(0)", "exit code 0"),
    "none": ("sys.exit()", "exit code None"),
    "3": ("sys.exit(3)", "exit code 3"),
    "words": ("sys.exit('enough')", "exit code 'enough'"),
    "raised": ("raise SystemExit", "exit code None"),
    "quit": ("quit()", "exit code None"),
    "generator": ("raise GeneratorExit", "GeneratorExit"),
}
OWN = """import sys
import numpy as np, saddleslide as ss
def ends(x):
    {end}
simplex = ss.domains.Simplex(2)
problem = ss.SaddleProblem(f=ss.functions.Custom({f}), g=ss.functions.Zero(), B=np.eye(2), X=simplex, Y=simplex)
def make():
    {make}
    return problem
{top}
"""


def own_file(folder, end, place):
    parts = {"end": "return 0.0 * x", "make": "pass", "top": "", "f": "ends, lambda x: 0.0"}
    parts[{"oracle": "end"}.get(place, place)] = end
    file = folder / "own.py"
    file.write_text(OWN.format(**parts), encoding="utf-8")
    return f"{file}:make"


@gathered("end", EXITS)
@pytest.mark.parametrize("place", ["top", "make", "oracle"])
def test_own_code_that_exits_is_no_success(end, place, tmp_path, capsys):
    line, says = EXITS[end]
    assert cli.main(["solve", own_file(tmp_path, line, place)]) == cli.EXIT_USAGE
    said = capsys.readouterr()
    assert says in said.err and "own.py" in said.err and "Traceback" not in said.err


@pytest.mark.parametrize("place", ["top", "make", "oracle"])
def test_own_code_that_fails_is_shown_from_its_own_lines_on(place, tmp_path, capsys):
    """Exit code 1 would say that the problem was not solved."""
    assert cli.main(["solve", own_file(tmp_path, "1 / 0", place)]) == cli.EXIT_USAGE
    said = capsys.readouterr().err
    assert said.startswith("saddleslide: ") and "own.py" in said and "1 / 0" in said and "ZeroDivisionError" in said
    assert "exec_module" not in said and "main.py" not in said


def test_a_file_that_is_no_python_is_said(tmp_path, capsys):
    for content in (b"x = (\n", b"\x00", b"\xff"):
        (tmp_path / "own.py").write_bytes(content)
        assert cli.main(["solve", f"{tmp_path / 'own.py'}:problem"]) == cli.EXIT_USAGE
        said = capsys.readouterr().err
        assert "own.py" in said and "SyntaxError" in said and "Traceback" not in said


@pytest.mark.parametrize("command", ["plan", "compare"])
def test_own_code_that_exits_ends_every_command(command, tmp_path, capsys):
    assert cli.main([command, own_file(tmp_path, "sys.exit(0)", "top")]) == cli.EXIT_USAGE
    assert "exit code 0" in capsys.readouterr().err


def test_an_interrupt_in_own_code_is_an_interrupt(tmp_path):
    assert cli.main(["solve", own_file(tmp_path, "raise KeyboardInterrupt", "make")]) == cli.EXIT_INTERRUPTED


def ended(arguments):
    with suppress(SystemExit):
        return cli.main(arguments)
    return sys.exc_info()


@gathered("command", COMMANDS)
def test_a_closed_pipe_ends_every_command_without_a_word(command, monkeypatch, capsys):
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as pipe, pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdout", pipe)
        with pytest.raises(SystemExit) as stop:
            sys.exit(cli.main(COMMANDS[command]))
    assert stop.value.code == cli.EXIT_CLOSED_PIPE
    assert capsys.readouterr().err == ""


@needs_full
@gathered("command", COMMANDS)
def test_a_full_disk_behind_the_output_is_said(command, capsys):
    with FULL.open("w") as full, pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdout", full)
        with pytest.raises(SystemExit) as stop:
            sys.exit(cli.main(COMMANDS[command]))
    assert stop.value.code == cli.EXIT_USAGE
    said = capsys.readouterr().err
    assert "saddleslide: the output can not be written: No space left" in said and "Traceback" not in said


@needs_full
@pytest.mark.parametrize("file", SOLUTION_FILES)
def test_a_full_disk_behind_out_is_said_with_the_file(file, tmp_path, capsys):
    (tmp_path / file).symlink_to(FULL)
    assert cli.main(["solve", *GAME, "--out", str(tmp_path)]) == cli.EXIT_USAGE
    said = capsys.readouterr()
    assert "No space left" in said.err and str(tmp_path) in said.err and "Traceback" not in said.err
    # What was found was printed before.
    assert "certified gap" in said.out


@needs_full
def test_a_full_disk_behind_a_checkpoint_is_said(tmp_path, capsys, monkeypatch):
    def full(handle):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    assert cli.main(["solve", *GAME, "--checkpoint", str(tmp_path / "run.npz")]) == cli.EXIT_USAGE
    said = capsys.readouterr().err
    assert "No space left" in said and "run.npz" in said and "Traceback" not in said


@needs_full
def test_complaints_that_nobody_can_read_change_no_exit_code(capsys):
    with FULL.open("w") as full, pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stderr", full)
        assert cli.main(["solve", "game", "--payoff", "missing.csv"]) == cli.EXIT_USAGE


@needs_full
@pytest.mark.parametrize(("arguments", "code"), [(["--version"], 2), (["solve", *GAME], 2)])
def test_the_interpreter_has_nothing_to_add(arguments, code):
    with FULL.open("w") as full:
        ran = subprocess.run(
            [sys.executable, "-m", "saddleslide", *arguments], stdout=full, stderr=subprocess.PIPE, check=False
        )
    assert ran.returncode == code
    assert ran.stderr.decode().count("\n") == 1
