"""The tournament on a picture of 12 x 12: no network and no installs; its judge, its programs, its table."""

import json
import math
import sys
from pathlib import Path

import numpy as np
import pytest

import saddleslide as ss

ROOT = Path(__file__).parents[2]
PROGRAMS = ROOT / "benchmarks" / "tournament" / "programs"
for folder in (ROOT, PROGRAMS):
    if str(folder) not in sys.path:
        sys.path.append(str(folder))

from benchmarks.arena.contest import Book, our_worker  # noqa: E402
from benchmarks.arena.tuning import Peer, exact_hit  # noqa: E402
from benchmarks.arena.workers import Worker  # noqa: E402
from benchmarks.tournament import __main__ as command  # noqa: E402
from benchmarks.tournament.cells import Cell, Instances, tuned_row  # noqa: E402
from benchmarks.tournament.instances import KINDS, check, picture_of, problem_of  # noqa: E402
from benchmarks.tournament.programs.picture import load  # noqa: E402
from benchmarks.tournament.table import best, ratio, seconds, summary, table  # noqa: E402
from benchmarks.tournament.tuning import PEERS  # noqa: E402

N = 12
STORED = ROOT / "benchmarks" / "results" / "tournament.json"
SPECTRAL = {"spectral": True, "steps": 2, "relax": 1.0, "rho": 0.003}


@pytest.fixture(scope="module")
def instances(tmp_path_factory):
    return Instances(tmp_path_factory.mktemp("pictures"), N)


@pytest.mark.parametrize("kind", KINDS)
def test_plain_arrays_are_the_problem_and_the_judge_agrees_with_the_certificate(kind, instances):
    problem = problem_of(kind, (1, 0), N)
    assert check(problem, picture_of(kind, problem)) < 1e-12
    judge = instances.get(kind, (1, 0)).judge
    start = ss.certify(problem, *problem.start(None)).gap
    assert judge.start == pytest.approx(start, rel=1e-4)
    result = ss.solve(problem, reduction=1e-3)
    found = ss.certify(problem, result.x, result.y, accuracy=1e-9 * start)
    # Both bound the gap from above: neither may be below what the other proves.
    assert judge.gap(result.x, result.y) == pytest.approx(found.gap / start, abs=1e-6, rel=1e-2)
    assert judge.gap(np.full(N * N, math.nan), result.y) == math.inf


def test_the_judge_is_no_easier_on_points_outside_the_box(instances):
    judge = instances.get("standard", (1, 0)).judge
    result = ss.solve(problem_of("standard", (1, 0), N), reduction=1e-5)
    far = judge.gap(result.x, 100.0 * result.y)
    assert far >= 0.0 and far == judge.gap(result.x, np.clip(100.0 * result.y, -5e-5, 5e-5))


def worker(stem, folder):
    return Worker([sys.executable, str(PROGRAMS / f"{stem}.py")], folder)


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    """Programs that wait for tasks: one process each for all tests."""
    made = {stem: worker(stem, tmp_path_factory.mktemp(stem)) for stem in ("picture_admm", "picture_lbfgs")}
    yield made
    for program in made.values():
        program.close()


@pytest.mark.parametrize("kind", ["standard", "holder", "poisson"])
@pytest.mark.parametrize(
    ("stem", "setting"),
    [
        ("picture_admm", SPECTRAL),
        ("picture_admm", {**SPECTRAL, "spectral": False, "steps": 6}),
        ("picture_lbfgs", {"spectral": True, "tv": 0.01, "corrections": 10}),
    ],
)
def test_programs_reach_the_saddle_point_and_repeat_their_iterates(kind, stem, setting, instances, programs):
    instance, run = instances.get(kind, (1, 0)), programs[stem]
    hit = exact_hit(run, instance.judge, instance.path, setting, 1e-4, 0.2)
    assert hit is not None
    task = {"problem": str(instance.path), "setting": setting, "seconds": 5.0, "stride": 1}
    kept = run.run({**task, "most": hit.iteration, "first": 1})
    gaps = [instance.judge.gap(*point) for point in zip(kept["points"]["x"], kept["points"]["y"], strict=True)]
    assert len(gaps) == hit.iteration and gaps[-1] <= 1e-4 and min(gaps[:-1], default=1.0) > 1e-4
    assert run.run({**task, "most": 2, "setting": {}})["failed"].startswith("KeyError")


def test_proximal_steps_of_the_programs_solve_their_equations(instances):
    for kind in ("standard", "holder", "poisson"):
        picture = load(instances.get(kind, (1, 0)).path)
        rng = np.random.default_rng(0)
        sigma, v, y = 0.3, picture.weight * rng.standard_normal(2 * N * N), np.zeros(2 * N * N)
        for _ in range(60):
            y = picture.dual_step(v, sigma, y)
        # y minimises g + |y - v|^2 / (2 sigma) on the box: no feasible step along the slope lowers it.
        slope = picture.beta * y + (y - v) / sigma + picture.power * np.sign(y) * np.sqrt(np.abs(y))
        slope += 0.0 if picture.N is None else picture.N @ y
        assert np.abs(np.clip(y - 1e-6 * slope, -picture.weight, picture.weight) - y).max() <= 1e-10 * picture.weight
        u = 0.1 * rng.standard_normal(picture.data.size)
        near = np.zeros(u.size)
        for _ in range(6):
            # Warm, as in a run.
            found = picture.data_step(u, 2.0, near)
        # Moreau: q = (u - step) / sigma has loss'(q) = step.
        np.testing.assert_allclose(picture.loss((u - found) / 2.0)[1], found, rtol=1e-6, atol=1e-9)


def test_a_cell_is_measured_tuned_and_shown(instances, tmp_path):
    peer = next(peer for peer in PEERS if peer.program.stem == "picture_admm")
    few = Peer(peer.name, peer.program, peer.package, ({k: (v,) for k, v in SPECTRAL.items()},), 0.2)
    ours = our_worker(command.OURS, tmp_path / "ours")
    theirs = worker("picture_admm", tmp_path / "admm")
    try:
        settings = {peer.name: tuned_row(few, theirs, instances.get("standard", (0, 0)))}
        assert set(settings[peer.name]) == {"0.0001", "1e-05", "1e-06"}
        peers = {peer.name: (few, theirs), "absent": (few, theirs)}
        row = Cell(instances.get("standard", (1, 0)), 1e-4, ours, peers, settings).row(2)
    finally:
        ours.close()
        theirs.close()
    held = row["ours"]
    assert 0.0 < held["fitting"]["cpu"] < held["seconds"]["cpu"] < held["whole"]["cpu"]
    assert 1 <= held["steps"] <= held["of"] and held["calls"]["f"] < 20
    assert row["peers"]["absent"] is None and seconds(row, "absent", "wall") == math.inf
    name, least = best(row)
    assert name == peer.name and ratio(row) == pytest.approx(held["seconds"]["wall"] / least)
    assert table([row]).count("\n") == 2 and "| wall | paid by all who use it | 1 |" in summary([row])
    book = Book(tmp_path / "book.json", command.KEY, {})
    book.tuned, book.cells = {"standard": settings}, [row]
    book.write()
    again = Book(tmp_path / "book.json", command.KEY, {})
    assert again.has("standard", (1, 0), 1e-4) and not again.has("standard", (1, 0), 1e-5)
    assert again.tuned == json.loads(json.dumps(book.tuned)) and again.cells == json.loads(json.dumps([row]))
    assert Book(tmp_path / "book.json", command.KEY, {}, again=True).cells == []


def test_what_an_absent_program_says_is_a_reason(tmp_path):
    missing = Worker([sys.executable, "-c", "raise SystemExit('no such peer')"], tmp_path)
    assert missing.note == "no such peer"
    assert missing.run({"seconds": 0.0}) == {"failed": "no such peer"}
    missing.close()


def test_the_page_shows_the_stored_measurement():
    stored = json.loads(STORED.read_text(encoding="utf-8"))["cells"]
    page = (ROOT / "docs" / "tournament.md").read_text(encoding="utf-8")
    assert table(stored) in page and summary(stored) in page
