"""The paper's experiments: printed digits, specifications, resuming, crashes, tables, figures, the page."""

from __future__ import annotations

import csv
import json
import math
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import pytest

import saddleslide as ss
from browser import opened
from saddleslide.cli.main import main
from saddleslide.errors import InputError
from saddleslide.kernels.switch import jit
from saddleslide.paper.rows import FILE, append_row, pack, read_rows, unpack
from saddleslide.paper.runner import find_missing, in_processes, perform, run_missing
from saddleslide.paper.spec import NAMES, Run, choose, load
from saddleslide.paper.statistics import STATISTICS
from saddleslide.paper.tables import Verdict, difference, format_value, numbers, read_printed, tables_of
from support import die_or_double, gathered, posix

JUDGED_IN_QUICK = 163


@pytest.fixture(scope="module")
def quick(tmp_path_factory):
    """What `saddleslide paper run all --quick` writes, and its exit code."""
    folder = tmp_path_factory.mktemp("paper")
    with pytest.MonkeyPatch.context() as patch, jit(True):
        patch.setenv("SADDLESLIDE_JIT", "1")
        for run in load("tomography").runs(quick=True):
            # The longest runs. They are repeated for their times, which nothing here reads: once will do.
            row = perform(replace(run, settings={**run.settings, "repeats": 1}))
            append_row(folder, {**row, "key": run.key, "settings": run.settings})
        return folder, main(["paper", "run", "all", "--quick", "--jobs", "1", "--out", str(folder)])


def cells_of(folder, name):
    with (folder / "tables" / f"{name}.csv").open(encoding="utf-8") as file:
        return {(row["row"], row["column"]): row for row in csv.DictReader(file)}


def test_the_quick_set_agrees_with_print_in_every_judged_cell(quick):
    folder, code = quick
    found = json.loads((folder / "summary.json").read_text())
    assert code == 0
    assert (found["differs"], found["failed"], found["differing"]) == (0, 0, [])
    assert found["agrees"] == JUDGED_IN_QUICK


@gathered(
    ("table", "row", "column", "value"),
    [
        ("budgets_budgets", "(0.75, 0.25)", "seed range", "[0.094, 0.185]"),
        ("separation_separation", "recursion", "B, B^T", "3840"),
        ("separation_separation", "two-level", "g'", "1584"),
        ("separation_separation", "lockstep", "f'", "707"),
        ("separation_separation", "Universal Mirror-Prox", "f'", "2477"),
        ("separation_separation", "Universal Mirror-Prox", "g'", "2477"),
        ("ordering_ordering", "8", "fixed N_B", "28804"),
        ("cost_cost", "1e-01", "MP grad", "224"),
        ("cost_cost", "3e-02", "MP B", "592"),
        ("cost_cost", "1e-02", "MP grad", "1632"),
        ("cost_cost", "1e-02", "MP gap", "1.0e-02"),
        ("cost_cost", "1e-02", "rho*", "44"),
        ("tomography_comparison", "Huber-TV, Recursive", "N_B", "19200"),
        ("tomography_scope", "all", "R_f", "1.7e+03"),
        ("tomography_scope", "all", "R_g", "6.9e+03"),
        ("tomography_scope", "all", "R_c", "7.9e+06"),
        ("tomography_scope", "all", "entries of the Laplacian", "908,552"),
    ],
)
def test_numbers_that_the_paper_prints(quick, table, row, column, value):
    cell = cells_of(quick[0], table)[row, column]
    assert (cell["ours"], cell["paper"], cell["verdict"]) == (value, value, "agrees")


def test_the_heads_psnr_is_the_printed_one(quick):
    cell = cells_of(quick[0], "tomography_comparison")["Huber-TV, Recursive", "PSNR of the head, min"]
    assert abs(float(cell["ours"]) - 23.91) <= 0.02 and cell["verdict"] == "agrees"


def test_the_printed_budgets_of_the_scope_take_a_relative_gap_for_an_absolute_one(quick):
    """By hand: R^2 + 2 d lambda^2, the constants of the text, and eps = 3.03e-4 times 1 and times Gap(0, 0)."""
    cells = cells_of(quick[0], "tomography_scope")
    Omega = 29.04163556886138**2 + 2 * 64**2 * 5e-5**2
    diameter = 2 * 5e-5 * math.sqrt(2 * 64**2)
    H_y = 7.955e-3 * math.sqrt(2.0) * (2 * 64**2) ** 0.25 + 0.15 * math.sqrt(diameter)
    absolute = float(cells["all", "absolute eps"]["ours"])
    assert absolute > 10 * 3.03e-4
    for eps, after in ((3.03e-4, ""), (absolute, " at it")):
        expected = {
            "R_f": math.sqrt(1.011 * Omega / eps),
            "R_g": (H_y * Omega**0.75 / eps) ** 0.8,
            "R_c": math.sqrt(8.0) * Omega / eps,
        }
        for name, value in expected.items():
            assert float(cells["all", name + after]["ours"]) == pytest.approx(value, rel=0.05)


def test_rows_say_everything_about_their_run(quick):
    rows = read_rows(quick[0])
    runs = {run.key: run for e in choose(["all"]) for run in e.runs(quick=True)}
    assert set(rows) == set(runs)
    for row in rows.values():
        assert row["status"] == "done" and row["versions"]["saddleslide"] == ss.__version__
        assert {"seed", "calls", "gap", "seconds", "settings", "problem"} <= set(row)
    planned = next(row for row in rows.values() if row["experiment"] == "budgets")
    assert planned["plan"]["schedule"]["stages"] and planned["order"] in ("fgB", "fBg")


def test_a_second_run_repeats_nothing_and_the_report_needs_rows_alone(quick, tmp_path, capsys):
    folder, _ = quick
    before = (folder / FILE).read_bytes()
    (tmp_path / FILE).write_bytes(before)
    assert main(["paper", "run", "budgets", "separation", "--quick", "--out", str(tmp_path)]) == 0
    assert (tmp_path / FILE).read_bytes() == before
    for path in ("figures", "tables"):
        shutil.rmtree(tmp_path / path)
    assert main(["paper", "report", "budgets", "separation", "--out", str(tmp_path)]) == 0
    made = [path for part in ("figures", "tables") for path in (tmp_path / part).iterdir()]
    assert {"separation.svg", "separation.png", "budgets_budgets.csv"} <= {path.name for path in made}
    for path in made:
        assert (folder / path.parent.name / path.name).read_bytes() == path.read_bytes(), path.name
    assert "judged cells agree" in capsys.readouterr().out


def test_every_figure_is_a_picture_in_both_forms(quick):
    names = {path.stem for path in (quick[0] / "figures").iterdir()}
    assert {"separation", "cost", "exponents"} <= names
    for name in names:
        assert ET.parse(quick[0] / "figures" / f"{name}.svg").getroot().tag.endswith("svg")
        assert (quick[0] / "figures" / f"{name}.png").read_bytes().startswith(b"\x89PNG")


def test_the_report_opens_in_a_browser_without_errors_and_with_all_images(quick, tmp_path):
    """A script added to a copy of the page says what the browser made of it, in frames of a laptop and of a phone."""
    source = (quick[0] / "report.html").read_text(encoding="utf-8")
    probe = """<script>addEventListener("load", () => {
      const images = [...document.images];
      const inner = [...document.querySelectorAll("h2, h3, p, .scroll, .where")];
      const wide = document.documentElement.scrollWidth > document.documentElement.clientWidth
        || inner.some(part => part.getBoundingClientRect().right > document.documentElement.clientWidth);
      parent.postMessage({images: images.length, wide, width: innerWidth,
        broken: images.filter(i => !i.complete || i.naturalWidth === 0).length,
        sections: document.querySelectorAll("section").length}, "*");
    });</script></body>"""
    (tmp_path / "report.html").write_text(source.replace("</body>", probe), encoding="utf-8")
    for width in (1280, 400):
        frame = tmp_path / f"{width}.html"
        script = 'addEventListener("message", e => { document.body.dataset.seen = JSON.stringify(e.data); });'
        iframe = f'<iframe src="report.html" style="width: {width}px; height: 900px; border: 0"></iframe>'
        frame.write_text(f"<body><script>{script}</script>{iframe}</body>", encoding="utf-8")
        text, console = opened(frame, "--window-size=1400,1000", "--virtual-time-budget=10000", "--dump-dom")
        seen = json.loads(re.search(r'data-seen="([^"]*)"', text).group(1).replace("&quot;", '"'))
        assert console == [] and seen["width"] == width
        assert seen["images"] >= 5 and seen["broken"] == 0
        assert seen["sections"] == len(NAMES) + 2
        assert not seen["wide"], f"the page scrolls sideways at {width} px"


def test_the_browser_test_can_fail(tmp_path):
    page = tmp_path / "broken.html"
    page.write_text("<script>console.error('no')</script>", encoding="utf-8")
    assert opened(page, "--dump-dom")[1]


def test_the_report_needs_no_network(quick):
    source = (quick[0] / "report.html").read_text(encoding="utf-8")
    assert not re.findall(r'(?:src|href)="(?!#|data:)', source)
    assert "@import" not in source and "url(" not in source


def test_specifications_are_complete():
    for experiment in choose(["all"]):
        groups = {run.group for run in experiment.runs(optional=True)}
        for table in experiment.tables:
            assert set(table["groups"]) <= groups
            assert {column["statistic"] for column in table["columns"]} <= set(STATISTICS)
        keys = [run.key for run in experiment.runs(optional=True)]
        assert len(keys) == len(set(keys))
        assert {run.key for run in experiment.runs(quick=True)} <= set(keys)


def test_every_printed_value_is_compared_somewhere():
    shown = {}
    for experiment in choose(["all"]):
        for table in tables_of(experiment, {}):
            shown.setdefault(table.label, {}).update(table.lines)
    for label, lines in read_printed().items():
        for name, values in lines.items():
            heads = {cell.head for cell in shown[label][name]}
            assert set(values) <= heads, (label, name)


def test_the_full_set_is_the_papers():
    counts = {name: len(load(name).runs()) for name in NAMES}
    assert counts["exponents"] == 90 and counts["budgets"] == 15
    tested = [run for run in load("tomography").runs() if run.group == "test"]
    assert len(tested) == 60
    pairs = {(run.problem["seed"], run.problem["picture"]) for run in tested}
    assert pairs == {(1, 0), (2, 1), (3, 2), (4, 0), (5, 1)}


def small_runs():
    return [run for run in load("separation").runs() if run.settings.get("tol") == 8.0][:4]


def test_rows_do_not_depend_on_the_number_of_processes(tmp_path):
    alone, together = tmp_path / "1", tmp_path / "2"
    for folder, jobs in ((alone, 1), (together, 2)):
        folder.mkdir()
        run_missing(small_runs(), folder, jobs)
    one, two = read_rows(alone), read_rows(together)
    timed = {"seconds", "total_seconds", "cpu_seconds"}
    strip = lambda row: {name: value for name, value in row.items() if name not in timed}  # noqa: E731
    assert {key: strip(row) for key, row in one.items()} == {key: strip(row) for key, row in two.items()}


def test_a_crash_in_one_run_is_kept_and_does_not_lose_the_others(tmp_path):
    bad = Run("separation", "recursion", "no such method", {"family": "synthetic"}, {"iterations": 1})
    rows = run_missing([bad, *small_runs()[:1]], tmp_path)
    assert rows[bad.key]["status"] == "failed" and "no such method" in rows[bad.key]["error"]
    assert sum(row["status"] == "done" for row in rows.values()) == 1
    assert [run.key for run in find_missing([bad, *small_runs()[:1]], rows)] == [bad.key]


@posix
def test_a_process_that_dies_is_replaced_and_its_job_accounted_for():
    answers = list(in_processes(die_or_double, [1, 2, 3, 4, 5], 2, lambda job, reason: (job, reason)))
    lost = [answer for answer in answers if isinstance(answer, tuple)]
    assert sorted(answer for answer in answers if not isinstance(answer, tuple)) == [2, 4, 8, 10]
    assert len(lost) == 1 and lost[0][0] == 3 and "ended with code -9" in lost[0][1]


def test_a_line_that_was_cut_off_loses_only_itself(tmp_path):
    append_row(tmp_path, {"key": "a", "status": "done"})
    with (tmp_path / FILE).open("a") as file:
        file.write('{"key": "b", "sta')
    append_row(tmp_path, {"key": "c", "status": "done"})
    assert set(read_rows(tmp_path)) == {"a", "c"}


def test_a_later_failure_does_not_take_back_a_finished_row(tmp_path):
    append_row(tmp_path, {"key": "a", "status": "done", "gap": 1.0})
    append_row(tmp_path, {"key": "a", "status": "failed"})
    assert read_rows(tmp_path)["a"]["status"] == "done"


def started(folder):
    """The command in a process of its own, once it has written two rows."""
    command = [sys.executable, "-m", "saddleslide.cli.main", "paper", "run", "separation", "--out", str(folder)]
    running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    wait_for(lambda: len(read_rows(folder)) >= 2)
    return running


def wait_for(condition):
    deadline = time.monotonic() + 600
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.02)


def ended(number):
    """Whether a process is gone: its table entry, or all of it but that."""
    try:
        return Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


@posix
@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_command_keeps_its_rows_and_goes_on(tmp_path, stop):
    running = started(tmp_path)
    running.send_signal(stop)
    text, _ = running.communicate(timeout=600)
    kept = (tmp_path / FILE).read_bytes()
    rows = read_rows(tmp_path)
    assert running.returncode == 130 and "What is finished is kept" in " ".join(text.split())
    left = find_missing(load("separation").runs(), rows)
    assert len(rows) >= 2 and len(left) == 60 - len(rows)
    run_missing(left[:1], tmp_path)
    assert (tmp_path / FILE).read_bytes().startswith(kept) and len(read_rows(tmp_path)) == len(rows) + 1


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="reads the list of processes")
def test_a_killed_command_leaves_no_process_behind():
    work = "list(in_processes(time.sleep, [3600, 3600], 2, lambda job, reason: reason))"
    command = [sys.executable, "-c", f"import time; from saddleslide.paper.runner import in_processes; {work}"]
    running = subprocess.Popen(command, stderr=subprocess.PIPE)
    listed = Path(f"/proc/{running.pid}/task/{running.pid}/children")
    # Two workers, and the process that multiprocessing starts beside them.
    wait_for(lambda: len(listed.read_text().split()) >= 3)
    time.sleep(1.0)
    children = listed.read_text().split()
    running.kill()
    running.communicate(timeout=600)
    assert len(children) >= 3
    try:
        wait_for(lambda: all(ended(number) for number in children))
    finally:
        for number in children:
            if not ended(number):
                os.kill(int(number), signal.SIGKILL)


def test_other_seeds_are_shown_and_not_judged(tmp_path):
    assert main(["paper", "run", "budgets", "--quick", "--seeds", "7", "--out", str(tmp_path)]) == 0
    cell = cells_of(tmp_path, "budgets_budgets")["(1, 0.5)", "gap"]
    assert cell["verdict"] == "partial" and float(cell["ours"]) > 0.0
    assert {row["seed"] for row in read_rows(tmp_path).values()} == {7}


def test_a_wrong_number_is_found_and_fails_the_command(quick, tmp_path, capsys):
    for line in (quick[0] / FILE).read_text().splitlines():
        row = json.loads(line)
        if row["experiment"] == "budgets" and row["problem"]["nu_x"] == 1.0:
            row["gap"] += 1e-3
            append_row(tmp_path, row)
    assert main(["paper", "report", "budgets", "--out", str(tmp_path)]) == 1
    assert cells_of(tmp_path, "budgets_budgets")["(1, 0.5)", "gap"]["verdict"] == "differs"
    assert "differs" in capsys.readouterr().out
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "Cells that differ" in page and "No reason is known" in page


def test_a_missing_run_is_not_agreement():
    table = tables_of(load("budgets"), {})[0]
    assert {cell.verdict for cell in table.cells()} == {Verdict.NOT_RUN}


def test_a_target_that_is_never_met_differs(quick):
    experiment, rows = load("separation"), read_rows(quick[0])
    every = {run.key: rows[run.key] | {"gap": 1.0} for run in experiment.runs() if run.group == "lockstep"}
    cells = tables_of(experiment, every)[0].lines["lockstep"]
    assert {cell.head for cell in cells if cell.verdict is Verdict.DIFFERS} == {"f'", "g'"}
    some = dict(list(every.items())[:3])
    assert {cell.verdict for cell in tables_of(experiment, some)[0].lines["lockstep"]} == {Verdict.PARTIAL}


@gathered(
    ("value", "form", "text"),
    [
        (0.15223, "{:.3f}", "0.152"),
        ((0.1, 0.25), "{:.2f}", "[0.10, 0.25]"),
        (224.0, "{:d}", "224"),
        (224.5, "{:d}", "224.5"),
        ("fgB", "{}", "fgB"),
    ],
)
def test_values_are_written_as_the_paper_writes_them(value, form, text):
    assert format_value(value, form) == text


def test_numbers_are_read_as_the_paper_writes_them():
    assert numbers("[0.108, 0.196]") == [0.108, 0.196]
    assert numbers("28,804") == [28804.0] and numbers("2.55e-04") == [2.55e-4]
    assert difference((0.1, 0.3), "[0.1, 0.2]") == "+0.1"


def test_pictures_survive_the_way_through_a_row():
    picture = ss.gallery.phantom(0, 16)
    assert abs(unpack(json.loads(json.dumps(pack(picture)))) - picture).max() < 1e-7


def test_the_list_names_every_experiment(capsys):
    assert main(["paper", "list"]) == 0
    text = capsys.readouterr().out
    assert all(name in text for name in NAMES)


def test_wrong_arguments_are_refused_before_any_work(tmp_path, capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["paper", "run", "nonsense", "--out", str(tmp_path)])
    assert stopped.value.code == 2
    assert main(["paper", "report", "--out", str(tmp_path / "nothing")]) == 2
    assert "holds no rows" in capsys.readouterr().err
    blocked = tmp_path / "file"
    blocked.write_text("")
    assert main(["paper", "run", "budgets", "--out", str(blocked)]) == 2
    assert "expected a folder that can be written" in " ".join(capsys.readouterr().err.split())
    with pytest.raises(InputError, match="expected one of"):
        load("nonsense")


def test_an_unknown_family_is_a_failed_row():
    row = perform(Run("budgets", "main", "recursion", {"family": "nonsense"}, {"tol": 0.5}))
    assert row["status"] == "failed" and "expected one of" in row["error"]


def test_no_machine_or_user_is_named_in_the_report(quick):
    source = (quick[0] / "report.html").read_text(encoding="utf-8")
    assert str(Path.home()) + "/" not in source and os.uname().nodename not in source


def test_the_docs_repeat_the_committed_summary():
    root = Path(__file__).parents[2]
    found = json.loads((root / "benchmarks" / "results" / "paper_summary.json").read_text(encoding="utf-8"))
    page = (root / "docs" / "paper.md").read_text(encoding="utf-8")
    wrong = found["differs"] + found["failed"]
    assert f"{found['agrees']} judged cells agree, {wrong} differ" in page
    for name, own in found["experiments"].items():
        counts = [own["agrees"], own["differs"] + own["failed"], own["measured"], own["ours"]]
        missing_cells = own["not run"] + own["partial"]
        assert f"| `{name}` | {' | '.join(map(str, [*counts, missing_cells]))} |" in page


def test_the_small_form_of_the_tuning_protocol_selects(quick, tmp_path):
    """Two configurations of one method: the cheaper one misses 3.75e-4, the paper's selection meets it."""
    for row in read_rows(quick[0]).values():
        if row["experiment"] == "tomography":
            append_row(tmp_path, row)
    with jit(True):
        assert main(["paper", "run", "tomography", "--quick", "--tune", "--jobs", "1", "--out", str(tmp_path)]) == 0
    tuned = [row for row in read_rows(tmp_path).values() if row["group"] == "tuning"]
    gaps = {row["settings"]["label"]: row["gap"] for row in tuned}
    assert gaps["(144, 3, 10)"] > 3.75e-4 > gaps["(160, 3, 10)"] and len(gaps) == 2
    cell = cells_of(tmp_path, "tomography_tuning")["Huber-TV, Recursive", "selected"]
    assert (cell["ours"], cell["verdict"]) == ("(160, 3, 10)", "partial")


def test_without_tune_nothing_of_the_protocol_is_run():
    experiment = load("tomography")
    asked, every = experiment.runs(), experiment.runs(optional=True)
    optional = {run.group for run in every} - {run.group for run in asked}
    assert optional == {"tuning", "coefficient"} and len(every) - len(asked) == 168
