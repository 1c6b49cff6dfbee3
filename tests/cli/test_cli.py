"""The command line: what it prints, what it writes, what it returns, and what it refuses."""

from __future__ import annotations

import json
import math
import re
import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import saddleslide as ss
from saddleslide.cli import main as cli
from saddleslide.cli.commands import PROBLEMS, SOLUTION_FILES, benchmarks, tasks
from saddleslide.cli.reporting import as_record
from saddleslide.gallery.pictures import psnr
from support import gathered

SMALL = ["solve", "tomography", "--size", "16", "--reduction", "1e-4"]


def papers_plan(tol):
    return ss.plan(ss.gallery.synthetic(), tol, regime="degenerate", metric="identity")


def refused(arguments, capsys):
    """Exit code and message of a command that must be refused."""
    try:
        code = cli.main(arguments)
    except SystemExit as stop:
        code = stop.code
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "Traceback" not in captured.err
    return code, captured.err


def test_synthetic_keeps_to_the_papers_plan(capsys):
    assert cli.main(["solve", "synthetic"]) == cli.EXIT_SOLVED
    out = capsys.readouterr().out
    expected = ss.run(ss.gallery.synthetic(), papers_plan(0.5))
    assert out.startswith(f"levels {expected.plans[0].order}, loops {expected.plans[0].loops}")
    assert f"{expected.gap:.4g}" in out and f"{expected.calls.B:,}" in out
    assert "included above" in out


def test_adaptive_synthetic_is_solve(capsys):
    assert cli.main(["solve", "synthetic", "--adaptive", "--tol", "1e-6"]) == cli.EXIT_SOLVED
    out = capsys.readouterr().out
    result = ss.solve(ss.gallery.synthetic(), tol=1e-6)
    assert "restarted primal-dual" in out and "included above" in out
    assert f"{result.gap:.4g}" in out


def test_tomography_prints_what_solve_finds(capsys):
    assert cli.main([*SMALL, "--regime", "nonlocal", "--picture", "1", "--seed", "3"]) == cli.EXIT_SOLVED
    out = capsys.readouterr().out
    result = ss.solve(ss.gallery.tomography("nonlocal", n=16, picture=1, seed=3), reduction=1e-4)
    judging = result.certificate_calls
    decibels = 10.0 * math.log10(1.0 / np.mean((result.x - ss.gallery.phantom(1, 16)) ** 2))
    assert f"{result.gap:.4g}" in out
    assert f"{decibels:.8g}" in out
    assert re.search(rf"calls of f'\s+│\s+{result.calls.f:g} ", out)
    assert f"f' {judging.f:g}  g' {judging.g:g}  B {judging.B}" in out


@pytest.mark.parametrize("instance", benchmarks.INSTANCES)
def test_every_instance_solves_small(instance, capsys):
    assert cli.main([*SMALL, "--instance", instance]) == cli.EXIT_SOLVED
    assert "solved" in capsys.readouterr().out


def test_the_list_of_instances_is_the_gallerys():
    from saddleslide.gallery.tomography import _REALISTIC

    assert set(benchmarks.INSTANCES) == set(_REALISTIC)


def test_out_writes_a_record_arrays_and_pictures(tmp_path, capsys):
    folder = tmp_path / "deep" / "er"
    assert cli.main([*SMALL, "--instance", "low_dose", "--out", str(folder)]) == cli.EXIT_SOLVED
    assert {path.name for path in folder.iterdir()} == {*SOLUTION_FILES, "image.png"}
    for name in ("solution.png", "convergence.png", "image.png"):
        assert (folder / name).read_bytes().startswith(b"\x89PNG")
    record = json.loads((folder / "result.json").read_text(encoding="utf-8"), parse_constant=never)
    result = ss.solve(ss.gallery.realistic_tomography("low_dose", n=16), reduction=1e-4)
    assert record["gap"] == result.gap and record["status"] == "SOLVED"
    assert record["calls"] == vars(result.calls) and len(record["history"]) == result.nit
    assert record["facts"]["PSNR against the object, dB"] == pytest.approx(
        psnr(result.x, ss.gallery.shaded_phantom(16))
    )
    assert record["command"]["instance"] == "low_dose"
    assert "Wrote result.json" in capsys.readouterr().out


def never(word):
    raise AssertionError(f"{word} is not JSON")


def test_record_of_an_unjudged_run_is_complete():
    result = ss.run(ss.gallery.synthetic(), papers_plan(4.0))
    record = as_record(result)
    assert record["target"] == 4.0
    assert record["plans"] == [result.plans[0].to_dict()]


@pytest.mark.parametrize("problem", ["synthetic", "tomography --size 16", "synthetic --adaptive"])
def test_plan_prints_the_plan_and_solves_nothing(problem, capsys, monkeypatch):
    monkeypatch.setattr(tasks, "solve", never)
    monkeypatch.setattr(tasks, "run", never)
    assert cli.main(["plan", *problem.split()]) == 0
    assert capsys.readouterr().out.startswith("Plan")


def test_an_absolute_target_takes_the_place_of_the_relative_one(capsys):
    arguments = ["solve", "tomography", "--size", "16", "--tol", "1e-3"]
    assert cli.main(arguments) == cli.EXIT_SOLVED
    result = ss.solve(ss.gallery.tomography(n=16), tol=1e-3)
    out = capsys.readouterr().out
    assert f"{result.gap:.4g}" in out and "of the gap at the start" not in out
    assert cli.main(["compare", *arguments[1:]]) == 0
    assert "target 0.001," in capsys.readouterr().out


def test_metric_reaches_the_plan(capsys):
    assert cli.main(["plan", "tomography", "--size", "16", "--metric", "blocks"]) == 0
    assert "metric blocks" in capsys.readouterr().out


@gathered(
    "status", sorted(set(ss.Status) - {ss.Status.SOLVED, ss.Status.SOLVED_WITHIN, ss.Status.INTERRUPTED}, key=str)
)
def test_anything_but_solved_is_exit_code_1(status, capsys, monkeypatch):
    problem = ss.gallery.synthetic()
    unsolved = replace(ss.run(problem, papers_plan(4.0)), status=status)
    monkeypatch.setattr(tasks, "run", lambda *_, **__: unsolved)
    assert cli.main(["solve", "synthetic"]) == cli.EXIT_NOT_SOLVED
    assert status.name.lower() in capsys.readouterr().out


@gathered(
    ("arguments", "says"),
    [
        (["solve", "tomography", "--seed", "-1"], "--seed: is '-1'; expected a whole number >= 0"),
        (["solve", "synthetic", "--seed", "-1"], "--seed: is '-1'; expected a whole number >= 0"),
        (["solve", "synthetic", "--seed", "1.5"], "--seed: is '1.5'; expected a whole number"),
        (["solve", "synthetic", "--tol", "0"], "--tol: is '0'; expected a finite number > 0"),
        (["solve", "synthetic", "--nu-x", "2"], "nu is 2.0; expected a number in [0, 1]"),
        (["solve", "tomography", "--reduction", "nan"], "--reduction: is 'nan'; expected a finite number > 0"),
        (["solve", "tomography", "--size", "2"], "--size: is '2'; expected a whole number >= 8"),
        (["solve", "tomography", "--regime", "holder", "--instance", "poisson"], "not allowed with argument"),
        (["solve", "tomography", "--picture", "1", "--instance", "poisson"], "--picture: not allowed"),
        (["solve", "tomography", "--instance", "nothing"], "invalid choice: 'nothing'"),
        (["plan", "tomography", "--out", "x"], "unrecognized arguments: --out. See saddleslide plan tomography"),
        (["solve", "game", "--colums", "4"], "unrecognized arguments: --colums. Did you mean --columns? See"),
        (["solve", "gmae"], "Did you mean game? See saddleslide solve --help."),
        (["demo", "--out", "no/such/folder/x.png"], "expected a file in a folder that is there"),
        (["solve", "tomography", "--tol", "1", "--reduction", "1"], "not allowed with argument"),
        (["denoise", "--size", "32"], "write what to do with it: saddleslide solve denoise --size 32"),
        (["plan", "my_file.py"], "say which problem in it: saddleslide plan my_file.py:problem"),
        (["solve"], "required: problem (synthetic, tomography, game,"),
        ([], "required: command (solve, plan, compare, paper, doctor, demo). See saddleslide --help."),
    ],
)
def test_wrong_arguments_are_exit_code_2_with_a_reason(arguments, says, capsys):
    code, message = refused(arguments, capsys)
    assert code == cli.EXIT_USAGE
    assert says in message


def test_a_folder_that_can_not_be_made_is_refused_before_the_work(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(benchmarks, "tomography", never)
    (tmp_path / "file").write_text("", encoding="utf-8")
    code, message = refused([*SMALL, "--out", str(tmp_path / "file" / "folder")], capsys)
    assert code == cli.EXIT_USAGE
    assert "--out is" in message


def test_pictures_without_matplotlib_are_refused_before_the_work(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(benchmarks, "tomography", never)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    code, message = refused([*SMALL, "--out", str(tmp_path)], capsys)
    assert code == cli.EXIT_USAGE
    assert "pip install matplotlib" in message


def lines_of(page):
    return [line.strip() for line in page.splitlines() if line.strip().startswith("saddleslide ")]


def help_page(arguments, capsys):
    with pytest.raises(SystemExit) as stop:
        cli.main([*arguments, "--help"])
    assert stop.value.code == 0
    return capsys.readouterr().out


PAGES = [[], *([command] for command in cli.COMMANDS)]
PAGES += [[command, name] for command in cli.COMMANDS for name in PROBLEMS if name != "file"]


@pytest.mark.parametrize("page", PAGES, ids=" ".join)
def test_every_command_on_a_help_page_works_as_printed_in_an_empty_directory(page, tmp_path, monkeypatch, capsys):
    text = help_page(page, capsys)
    assert "exit codes: 0 solved, 1 not solved, 2 wrong arguments" in text
    lines = lines_of(text.split("examples:")[1])
    assert lines
    monkeypatch.chdir(tmp_path)
    # What is drawn has tests of its own, and most of the time would go into where the words of a picture stand.
    monkeypatch.setattr("matplotlib.figure.Figure.savefig", lambda figure, path: Path(path).touch())
    for line in lines:
        # The quick set of the paper's experiments has its own test in test_paper.py, with every cell judged.
        if "paper run all" not in line:
            assert cli.main(shlex.split(line)[1:]) == 0, line
            assert capsys.readouterr().out


def test_as_a_program_it_writes_no_progress_into_a_pipe(tmp_path):
    command = [sys.executable, "-W", "error", "-m", "saddleslide.cli.main", *SMALL]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=600, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "PSNR" in done.stdout and "\r" not in done.stdout


def test_doctor_says_what_is_installed_and_demo_draws(capsys, tmp_path):
    assert cli.main(["doctor"]) == 0
    out = capsys.readouterr().out
    assert ss.__version__ in out and np.__version__ in out and "switched off" in out
    picture = tmp_path / "demo.png"
    assert cli.main(["demo", "--out", str(picture)]) == cli.EXIT_SOLVED
    assert "solved" in capsys.readouterr().out and picture.read_bytes()[:4] == b"\x89PNG"
