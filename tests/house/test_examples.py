"""The examples run, and the README and the docs say what the files say."""

from __future__ import annotations

import ast
import functools
import json
import math
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

import saddleslide as ss
from saddleslide.cli.main import main
from support import need

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "saddleslide"
# Every example with arguments that keep it short and give the numbers of the pages; a new one must be added here.
EXAMPLES = {
    "quickstart.py": [],
    "oracle_counts.py": ["--out", "picture.png"],
    "tomography.py": ["--out", "picture.png", "--reduction", "1e-6"],
    "sampled_digits.py": ["--out", "picture.png", "--tol", "0.1", "0.05", "0.025"],
    "shards.py": ["--workers", "1", "--tol", "1e-2"],
}
# Packages that an example imports beside matplotlib; the extra `test-all` has them.
NEEDS = {"sampled_digits.py": "sklearn", "shards.py": "distributed"}


def text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def blocks(name: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", text(name), flags=re.DOTALL | re.MULTILINE)


@pytest.fixture(scope="module")
def run_example(tmp_path_factory):
    """Runs an example, once, compiled as for a user: its folder and what it printed."""
    environment = {name: value for name, value in os.environ.items() if name != "SADDLESLIDE_JIT"}

    @functools.cache
    def run(name: str) -> tuple[Path, str]:
        if name in NEEDS:
            need(NEEDS[name])
        folder = tmp_path_factory.mktemp("example")
        command = [sys.executable, "-W", "error", str(ROOT / "examples" / name), *EXAMPLES[name]]
        done = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, timeout=1200, check=False
        )
        assert done.returncode == 0, done.stderr
        return folder, done.stdout

    return run


def test_every_example_is_listed():
    assert {path.name for path in (ROOT / "examples").glob("*.py")} == set(EXAMPLES)


@pytest.mark.parametrize("name", EXAMPLES)
def test_example_runs_and_writes_only_what_it_was_told_to(name, run_example):
    before = {path: path.stat().st_mtime_ns for path in (ROOT / "docs" / "pictures").iterdir()}
    folder, out = run_example(name)
    assert out
    expected = {"picture.png"} if "picture.png" in EXAMPLES[name] else set()
    assert {path.name for path in folder.iterdir()} == expected
    assert before == {path: path.stat().st_mtime_ns for path in (ROOT / "docs" / "pictures").iterdir()}
    if expected:
        assert (folder / "picture.png").read_bytes().startswith(b"\x89PNG")


def test_readme_example_is_the_quickstart_and_solves_its_problem(capsys):
    (block,) = blocks("README.md", "python")
    assert block == text("examples/quickstart.py")
    names: dict[str, object] = {}
    exec(compile(block, "README.md", "exec"), names)
    assert "solved" in capsys.readouterr().out
    result = names["result"]
    assert isinstance(result, ss.Result)
    assert result.success and result.gap <= 1e-6
    # The objective at the point, written from its definition.
    A, b, x = names["A"], names["b"], result.x
    residual = abs(A @ x - b)
    huber = [r * r / (2 * 0.5) if r <= 0.5 else r - 0.25 for r in residual]
    assert result.objective == pytest.approx(0.25 * x @ x + 10.0 * abs(x).sum() + sum(huber), rel=1e-12)
    assert result.lower <= result.objective <= result.upper + 1e-9
    assert f"{np.count_nonzero(abs(x) > 1e-3)} of {x.size} here" in block


def test_numbers_of_the_method_page_come_from_the_example(run_example):
    _, out = run_example("oracle_counts.py")
    rows = [line.split() for line in out.splitlines()[1:]]
    sorted_rows = [row for row in rows if row[0] == "sorted"]
    lockstep_rows = [row for row in rows if row[0] == "lockstep"]
    assert len(sorted_rows) == len(lockstep_rows) == 6
    gap, f, g, B = sorted_rows[-1][-4:]
    same = next(row for row in lockstep_rows if float(row[-4]) < 1.1 * float(gap))
    prose = " ".join(text("docs/method.md").split())
    assert f"reaches a gap of {gap} with {f} calls of f'" in prose
    assert f"needs {same[-3]} calls of f' for a gap of {same[-4]}" in prose
    assert f"{g} against {same[-2]} of g', and {B} against {same[-1]} products" in prose


def test_numbers_of_the_page_on_sampling_come_from_the_example(run_example):
    _, out = run_example("sampled_digits.py")
    rows = [line.split() for line in out.splitlines()[1:]]
    # Loops are printed as (1, 56, 15), three words; gap, bound, images and products come after them.
    found = {kind: [(float(r[-4]), float(r[-2])) for r in rows if r[0] == kind] for kind in ("sampled", "full")}
    prose = " ".join(text("docs/stochastic.md").split())
    (gap, images), (other, all_images) = found["sampled"][0], found["full"][0]
    assert f"reach a gap of {gap:.2f} after {images:,.0f} images" in prose
    assert f"have read {all_images:,.0f} images at a gap of {other:.2f}" in prose
    assert images < all_images and gap < other
    # Where the lines of the picture meet, on logarithms.
    grid = np.linspace(math.log(0.026), math.log(0.08), 400)
    lines = [np.interp(grid, *np.log(np.array(found[kind][::-1]).T)) for kind in ("sampled", "full")]
    meeting = math.exp(grid[np.argmin(abs(lines[0] - lines[1]))])
    assert f"meet near a gap of {meeting:.2f}" in prose


def test_readme_says_what_the_demo_shows(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["demo"]) == 0
    assert (tmp_path / "saddleslide-demo.png").read_bytes().startswith(b"\x89PNG")
    (calls,) = re.findall(r"calls of f' +│ +([\d.]+) │", capsys.readouterr().out)
    assert f"After {calls} gradients of f " in " ".join(text("README.md").split())


def test_numbers_of_the_page_on_solve_come_from_the_example(run_example):
    _, out = run_example("tomography.py")
    calls = {row[0]: row[3] for row in (line.split() for line in out.splitlines()[1:]) if row[-1] == "solved"}
    prose = " ".join(text("docs/solve.md").split())
    assert f"relative gap of 1e-6 takes {calls['auto']} calls of f'" in prose
    # A run of this length depends on the order of sums, which the threads of BLAS change.
    (about,) = re.findall(rf"about (\d+) calls of f' against {calls['auto']}\.", prose)
    assert abs(float(calls["blocks"]) - int(about)) <= 0.02 * int(about)


def tables_of_solve_page(columns: int) -> list[list[str]]:
    """Rows of numbers of the tables with this many columns."""
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in text("docs/solve.md").splitlines()]
    return [row for row in rows if len(row) == columns and any(mark.isdigit() for mark in row[-1])]


def test_table_of_the_solve_page_is_the_stored_measurement():
    stored = json.loads(text("benchmarks/results/tomography_calls.json"))
    rows = [row for row in stored["rows"] if row["pair"] == [1, 0]]
    shown = tables_of_solve_page(columns=8)
    assert len(shown) == len(rows) == 12
    for cells, row in zip(shown, rows, strict=True):
        expected = [row["regime"], row["reduction"], row["f"], row["g"], row["B"], row["certificate_B"]]
        assert [cells[0], *map(float, cells[1:6])] == expected
        assert cells[6:] == [f"{row['relative_gap']:.1e}", f"{row['relative_gap_outside']:.1e}"]
    assert len(stored["rows"]) == 60
    assert all(row["status"] == "SOLVED" and row["smallest_margin"] >= 0.0 for row in stored["rows"])


def test_table_of_outside_gaps_is_the_stored_measurement_and_within_its_limits():
    stored = json.loads(text("benchmarks/results/tomography_outside.json"))["rows"]
    most: dict[tuple[str, str], dict[str, list[float]]] = {}
    for row in stored:
        known = most.setdefault((row["problem"], row["metric"]), {"targets": row["targets"], "f": row["f"]})
        known["f"] = [max(pair) for pair in zip(known["f"], row["f"], strict=True)]
    expected = [
        [*names, *(" / ".join(f"{x:g}" for x in row[name]) for name in ("targets", "f"))] for names, row in most.items()
    ]
    assert len(stored) == 35 and len(most) == 11
    assert tables_of_solve_page(columns=4) == expected
    assert all(made <= limit for row in stored for made, limit in zip(row["f"], row["limits"], strict=True))


def test_numbers_of_the_metrics_section_come_from_its_example():
    (block,) = blocks("docs/solve.md", "python metrics")
    names: dict[str, object] = {}
    exec(compile(block, "solve.md", "exec"), names)
    prose = " ".join(text("docs/solve.md").split())
    plain = {
        name: ss.solve(names[name], reduction=1e-6, metric="blocks").calls.f
        for name in ("box", "periodic", "correlated")
    }
    runs = {name: names[name].calls.f for name in ("by_name", "by_hand", "fitted", "known", "operator")}
    assert all(names[name].success for name in runs)
    assert all(4 * runs[name] <= plain["box"] for name in ("by_name", "by_hand"))
    said = {
        "box": "about 12 by name and 12 by hand against ",
        "periodic": f"{runs['fitted']:g} fitted and {runs['known']:g} known against ",
        "correlated": f"{runs['operator']:g} with the operator against ",
    }
    assert all(abs(runs[name] - 12.0) <= 1.0 for name in ("by_name", "by_hand")), runs
    for name, words in said.items():
        # Runs of hundreds of steps depend on the order of sums: on the processor, and on compiled kernels.
        found = re.search(re.escape(words) + r"(\d+) to (\d+)", prose)
        assert found is not None and int(found[1]) <= plain[name] <= int(found[2]) <= 1.4 * int(found[1]), plain


def test_table_of_plan_quality_is_the_stored_measurement():
    stored = json.loads(text("benchmarks/results/plan_quality.json"))["rows"]
    shown = tables_of_solve_page(columns=6)
    assert len(shown) == len(stored) == 12
    for cells, row in zip(shown, stored, strict=True):
        assert cells[0] == row["problem"]
        assert list(map(float, cells[2:5])) == [row["reduction"], row["grid"], row["solve"]]
        assert cells[5] == f"{row['solve_over_grid']:.2f}"
        assert row["solve_status"] == "SOLVED" and row["solve_over_grid"] <= 1.3


def test_stored_measurement_is_what_the_package_does():
    for row in json.loads(text("benchmarks/results/tomography_calls.json"))["rows"][:3]:
        problem = ss.gallery.tomography(row["regime"], seed=row["pair"][0], picture=row["pair"][1])
        calls = ss.solve(problem, reduction=row["reduction"]).calls
        # Rounding differs between machines, so a step more or less is no contradiction.
        assert calls.f == pytest.approx(row["f"], abs=1.0)
        assert abs(calls.B - row["B"]) <= 0.25 * row["B"]


def test_benchmark_runs_small_and_agrees_with_itself(tmp_path):
    script = ROOT / "benchmarks" / "tomography_calls.py"
    arguments = ["--size", "16", "--pairs", "1", "--reduction", "1e-4", "--out", "small.json"]
    command = [sys.executable, "-W", "error", str(script), *arguments]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=1200, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = json.loads((tmp_path / "small.json").read_text(encoding="utf-8"))["rows"]
    assert [row["regime"] for row in rows] == ["standard", "nonlocal", "holder"]
    assert all(0.0 <= row["relative_gap_outside"] <= row["relative_gap"] <= 1e-4 for row in rows)


def test_readme_has_two_commands_and_ci_runs_the_second_to_the_letter():
    install_and_solve, install_and_test = blocks("README.md", "sh")
    assert install_and_solve.rstrip().endswith("saddleslide demo")
    assert install_and_test.rstrip().endswith("-m pytest")
    ci = text(".ci/run")
    assert install_and_test.strip() in [line.strip() for line in ci.splitlines()]
    for tool in ("ruff check .", "ruff format --check .", "mypy"):
        assert re.search(rf"^ +\S+ -m {re.escape(tool)}$", ci, flags=re.MULTILINE), tool


def test_local_links_of_the_documents_lead_somewhere():
    documents = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]
    for document in documents:
        for target in re.findall(r"\]\(([^)#]+)\)", document.read_text(encoding="utf-8")):
            assert target.startswith("https://") or (document.parent / target).is_file(), (document.name, target)


def test_one_version_everywhere():
    data, version = tomllib.loads(text("pyproject.toml")), ss.__version__
    # The build reads it where it is.
    assert "version" in data["project"]["dynamic"] and "version" not in data["project"]
    assert data["tool"]["hatch"]["version"]["path"] == "src/saddleslide/__init__.py"
    assert f"\nversion: {version}\n" in text("CITATION.cff")
    assert f"\n## [{version}]" in text("CHANGELOG.md")


def test_dependencies_are_justified_and_no_others_are():
    data = tomllib.loads(text("pyproject.toml"))
    asked = data["build-system"]["requires"] + data["project"]["dependencies"]
    asked += [name for extra in data["project"]["optional-dependencies"].values() for name in extra]
    names = {re.match(r"[A-Za-z0-9_-]+", requirement)[0] for requirement in asked} - {"saddleslide"}
    assert names == set(re.findall(r"^\| `([\w-]+)` \|", text("docs/dependencies.md"), flags=re.MULTILINE))


def test_parts_of_the_page_on_extending_work_and_are_short():
    parts, names = blocks("docs/extending.md", "python extending"), {}
    assert len(parts) == 6 and all(part.count("\n") <= 40 for part in parts)
    for part in parts:
        exec(compile(part, "extending.md", "exec"), names)
    assert [names[f"with_{name}"].status.name for name in ("function", "set", "operator", "solve")] == [
        "SOLVED",
        "MET_AS_DECLARED",
        "SOLVED",
        "SOLVED",
    ]
    assert 0.0 <= names["with_method"].gap < 1e-9


def test_architecture_page_shows_the_floors_that_the_tests_enforce():
    (listing,) = blocks("docs/architecture.md", "text floors")
    tree = ast.parse(text("tests/house/test_architecture.py"))
    enforced = next(n.value for n in tree.body if isinstance(n, ast.Assign) and ast.unparse(n.targets[0]) == "FLOORS")
    shown = [set(line.split("  ")[1].split()) for line in listing.splitlines()]
    assert shown == ast.literal_eval(enforced)


def test_files_that_the_architecture_page_names_exist():
    named = re.findall(r"`((?:\w+/)*\w+\.py)`", text("docs/architecture.md"))
    assert len(named) > 20
    assert [name for name in named if not (SOURCE / name).exists()] == []


def test_notation_names_exist_in_their_files():
    rows = [line.split("|")[3:5] for line in text("docs/notation.md").splitlines() if line.count("|") == 5]
    rows = [(re.findall(r"`([^`]+)`", code), re.findall(r"`([^`]+)`", files)) for code, files in rows]
    rows = [(codes, files) for codes, files in rows if files]
    assert len(rows) > 50
    for codes, files in rows:
        sources = [(SOURCE / name).read_text(encoding="utf-8") for name in files]
        for code in codes:
            for word in re.findall(r"\w+", code):
                assert any(re.search(rf"\b{word}\b", source) for source in sources), (code, files)


def test_tables_of_the_speed_page_are_the_stored_measurements():
    sys.path.insert(0, str(ROOT))
    try:
        from benchmarks.speed import report
    finally:
        sys.path.remove(str(ROOT))
    stored, page = json.loads(text("benchmarks/results/speed.json")), text("docs/speed.md")
    assert report.in_page(page, stored) == page
    assert not report.regressions(stored, stored)
    worse = json.loads(text("benchmarks/results/speed.json"))
    worse["plans"][0]["cpu_over_weighted"] *= 1.5
    assert len(report.regressions(worse, stored)) == 1
