"""The harness of the external peers: no network and no installs, and what the page says is what was measured."""

import dataclasses
import json
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.optimize

import saddleslide as ss

ROOT = Path(__file__).parents[2]
PROGRAMS = ROOT / "benchmarks" / "peers" / "programs"
for folder in (ROOT, PROGRAMS):
    if str(folder) not in sys.path:
        sys.path.append(str(folder))

from benchmarks.peers import environments, harness, problems  # noqa: E402
from benchmarks.peers.environments import PEERS, Peer, environment  # noqa: E402
from benchmarks.peers.judge import Judge, Point, read  # noqa: E402
from benchmarks.peers.programs import form as plain  # noqa: E402
from benchmarks.peers.table import line, table  # noqa: E402
from benchmarks.suite import problems as suite  # noqa: E402

TARGETS = (1e-2, 1e-4)
# Points on the way from the start to a given solution, as a peer would return them.
FAKE = """
import sys
sys.path.insert(0, {programs!r})
import numpy as np
from form import write
problem, out, seconds, setting, most = sys.argv[1:]
held = np.load({solution!r})
x, y = held["x"], held["y"]
points = [
    dict(x=t * x, y=t * y, seconds=k + 1.0, iterations=k + 1, f=0.0, B=2.0 * k)
    for k, t in enumerate((0.0, 0.5, {last}))
]
write(out, points[: int(most)], "a fake")
"""


@pytest.fixture(scope="module")
def small():
    return suite.transport(6)


def saved(problem, folder):
    path = folder / "problem.npz"
    plain.save(path, problems.form_of(problem))
    return path


def entry(name, script, problem, folder, **named):
    peer = Peer(name, script, ())
    return harness.Entry(name, harness.program(peer, Path(sys.executable), problem, folder), seconds=300.0, **named)


@pytest.mark.parametrize("name", problems.NAMES)
def test_the_peers_get_the_same_function(name):
    problem = problems.NAMES[name]()
    form = problems.form_of(problem)
    assert problems.check(problem, form) < 1e-12
    assert problems.check(problem, dataclasses.replace(form, c=form.c + 0.1)) > 1e-6


def test_a_saved_form_is_read_back(small, tmp_path):
    form = problems.form_of(small)
    again = plain.load(saved(small, tmp_path))
    assert again.A is None
    assert (again.B != form.B).nnz == 0
    assert np.array_equal(again.X.upper, form.X.upper)
    assert again.beta == form.beta


@pytest.mark.parametrize("make", [lambda: suite.matrix_game(8, 11), suite.linear_program])
def test_the_linear_program_has_the_saddle_point(make):
    """Another solver, the multipliers of the stated rows, and the judge of the package: the gap vanishes."""
    from qp import program_of

    problem = make()
    program = program_of(problems.form_of(problem))
    bounds = np.stack([program.lower, program.upper], axis=1)
    found = scipy.optimize.linprog(program.q, A_eq=program.E, b_eq=program.e, bounds=bounds)
    x, y = found.x[: program.x_size], -found.eqlin.marginals[program.y_rows]
    assert Judge(problem, TARGETS).gap(x, y) < 1e-7
    assert Judge(problem, TARGETS).gap(x, -y) > 1e-3


def test_the_quadratic_program_has_the_saddle_value():
    """Huber, data term and bounds: at x and the best slacks it is worth what the saddle function is at best y."""
    from qp import program_of

    form = problems.form_of(problems.NAMES["tomography"]())
    program = program_of(form)
    x = np.random.default_rng(0).standard_normal(form.c.size)
    r, m = form.A @ x - form.b, form.h.size
    slope = form.B @ x - form.h
    y = form.Y.project(slope / form.beta)
    s, rest = form.beta * y, slope - form.beta * y
    v = np.concatenate([x, r, np.zeros(program.q.size - x.size - r.size)])
    v[-3 * m :] = np.concatenate([s, np.maximum(rest, 0.0), np.maximum(-rest, 0.0)])
    assert np.allclose(program.E @ v, program.e, atol=1e-12)
    best = float(y @ slope) - 0.5 * form.beta * float(y @ y) + 0.5 * float(r @ r) + 0.5 * float(form.d * x @ x)
    assert 0.5 * float(program.p * v @ v) + float(program.q @ v) == pytest.approx(best, rel=1e-12)


def test_a_fake_peer_is_judged_by_its_points_and_not_by_its_word(small, tmp_path):
    solution = ss.solve(small, reduction=1e-7)
    np.savez(tmp_path / "solution.npz", x=solution.x, y=solution.y)
    scripts = {}
    for name, last in (("true", 1.0), ("lies", 0.9)):
        scripts[name] = tmp_path / f"{name}.py"
        held = str(tmp_path / "solution.npz")
        scripts[name].write_text(FAKE.format(programs=str(PROGRAMS), solution=held, last=last))
    scripts["breaks"] = tmp_path / "breaks.py"
    scripts["breaks"].write_text("raise SystemExit('no such library')\n")
    problem = saved(small, tmp_path)
    entries = [entry(name, script, problem, tmp_path) for name, script in scripts.items()]
    entries[0].name = harness.OURS
    rows = harness.measure("small", entries, Judge(small, TARGETS), rounds=2)
    good, lies, broken = rows
    assert [t["met"] for t in good["targets"]] == [True, True]
    assert good["targets"][1]["iterations"] == 3
    assert good["targets"][1]["rounds"] == 2
    assert good["targets"][1]["ratio"] == 1.0
    assert good["targets"][1]["gap"] == pytest.approx(solution.gap / Judge(small, TARGETS).start, rel=0.1)
    assert not lies["targets"][1]["met"]
    assert broken["note"] == "failed: no such library"
    assert "failed" in line(broken)


@pytest.mark.parametrize("program", ["admm.py", "lbfgs.py"])
def test_peers_without_a_package_reach_the_target(program, small, tmp_path, monkeypatch):
    # Ended by its iterations, of which 187 are enough, and not by the clock of a busy machine.
    monkeypatch.setattr(harness, "MOST", 1000)
    mine = entry(program, PROGRAMS / program, saved(small, tmp_path), tmp_path, settings=("10",))
    judge = Judge(small, TARGETS)
    harness.first_round(mine, judge)
    assert set(mine.hits) == set(TARGETS)
    point, gap = mine.hits[1e-4]
    assert gap <= 1e-4
    assert point.counts["B"] > 0
    assert judge.lower <= ss.solve(small, reduction=1e-6).upper


def test_the_setting_that_meets_the_targets_soonest_is_taken(small):
    """All that get there end at rounding, where the last gap says nothing."""
    best = ss.solve(small, reduction=1e-9)
    near = 1.0 + 1e-7

    def run(setting, most, seconds):
        shares = {"never": (0.0, 0.5), "late": (0.0, 0.5, 1.0), "soon": (0.0, near, near)}[setting]
        times = {"never": (0.1, 0.2), "late": (0.1, 0.2, 0.3), "soon": (0.1, 0.2, 0.3)}[setting]
        return [Point(t * best.x, best.y, s, 1.0, {}, 0.0) for t, s in zip(shares, times, strict=True)], ""

    judge = Judge(small, TARGETS)
    assert judge.gap(best.x, best.y) < judge.gap(near * best.x, best.y) <= min(TARGETS)
    assert harness.tuned(harness.Entry("fake", run, settings=("never", "late", "soon")), judge) == "soon"


def test_points_come_in_the_order_of_time(tmp_path):
    points = [{"x": [0.0], "y": [0.0], "seconds": s, "iterations": 1} for s in (2.0, 1.0)]
    plain.write(tmp_path / "points.npz", points, "note")
    found, note = read(tmp_path / "points.npz")
    assert [point.seconds for point in found] == [1.0, 2.0]
    assert note == "note"
    assert np.isnan(found[0].counts["f"])


def test_what_can_not_be_installed_is_a_reason(monkeypatch, tmp_path):
    monkeypatch.setattr(environments, "complaint", lambda command, seconds: "no matching distribution")
    assert environment(PEERS[0], tmp_path)[1] == "not available: no matching distribution"


def test_a_command_that_does_not_exist_is_a_reason(tmp_path):
    assert environments.complaint([str(tmp_path / "nothing")], 5.0)


def test_the_page_repeats_the_measurement():
    data = json.loads((ROOT / "benchmarks" / "results" / "peers.json").read_text(encoding="utf-8"))
    page = (ROOT / "docs" / "peers.md").read_text(encoding="utf-8")
    assert table(data["rows"]) in page
    names = {harness.OURS, *(peer.name for peer in PEERS)}
    measured = {row["problem"] for row in data["rows"]}
    assert len(measured) >= 6
    assert measured <= set(problems.NAMES)
    for problem in measured:
        rows = [row for row in data["rows"] if row["problem"] == problem]
        assert {row["program"] for row in rows} == names
        assert rows[0]["lower"] <= rows[0]["upper"]
        assert all(t["gap"] <= t["target"] for row in rows for t in row["targets"] if t["met"])


def test_the_page_of_the_tournament_repeats_what_the_other_solvers_took():
    data = json.loads((ROOT / "benchmarks" / "results" / "peers_large.json").read_text(encoding="utf-8"))
    page = (ROOT / "docs" / "tournament.md").read_text(encoding="utf-8")
    assert table(data["rows"]) in page
    assert {row["program"] for row in data["rows"]} == {harness.OURS, *(peer.name for peer in PEERS)}
    assert {row["problem"] for row in data["rows"]} == set(problems.LARGE)
