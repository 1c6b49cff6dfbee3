"""The arena at its smallest: no network and no installs; plain arrays, programs, judge, cells, page."""

import functools
import json
import math
import re
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.optimize

import saddleslide as ss

ROOT = Path(__file__).parents[2]
PROGRAMS = ROOT / "benchmarks" / "arena" / "programs"
for folder in (ROOT, PROGRAMS):
    if str(folder) not in sys.path:
        sys.path.append(str(folder))

from benchmarks.arena import environments, families  # noqa: E402
from benchmarks.arena.cells import Instance  # noqa: E402
from benchmarks.arena.contest import Book, our_worker  # noqa: E402
from benchmarks.arena.contestants import PEERS  # noqa: E402
from benchmarks.arena.families import FAMILIES  # noqa: E402
from benchmarks.arena.judge import Judge  # noqa: E402
from benchmarks.arena.page import is_met, line, page, ratio  # noqa: E402
from benchmarks.arena.programs import form as plain  # noqa: E402
from benchmarks.arena.tuning import Peer, first_below, tuned  # noqa: E402
from benchmarks.arena.workers import Worker  # noqa: E402

FIELDS = {family.name: family.field for family in FAMILIES}
# One of every maker of forms, at a size of a glance.
SMALL = {
    "paper": lambda: families.tomography(8),
    "picture": lambda: families.masked(8, 0.4, 1.5, (0.0, 1.0)),
    "isotropic": lambda: families.denoising(8, True),
    "group lasso": lambda: families.lasso(20, 20, 0.1, groups=10),
    "logistic lasso": lambda: families.logistic_lasso(40, 10),
    "nonnegative": lambda: families.nonnegative(20, 10),
    "trend": lambda: families.signal(40, 2),
    "fused": lambda: families.fused(60, 40, False),
    "quantile": lambda: families.quantile(60, 5, 0.3),
    "absolute": lambda: families.absolute(40, 8),
    "huber": lambda: families.huber(40, 8),
    "support vectors": lambda: families.support_vectors(40, 5),
    "game": lambda: families.game(8, 10),
    "regularised game": lambda: families.game(8, 10, price=0.5),
    "transport": lambda: families.transport((5, 6), 0.5),
    "flow": lambda: families.flow(12, 0.0),
    "program": lambda: families.program(10, 20),
    "equations": lambda: families.equations(12, 3),
    "portfolio": lambda: families.portfolio(24),
    "consensus": lambda: families.consensus(4, 3),
    "rough": lambda: families.rough(12, 12, 1.5),
    "players": lambda: families.players(10, 0.5),
}


@functools.cache
def solved(name):
    instance = SMALL[name]()
    return instance, instance.ask(rtol=1e-4)


@pytest.mark.parametrize("name", SMALL)
def test_plain_arrays_are_the_problem_that_is_solved(name, tmp_path):
    """The objective of the arrays lies between our certified bounds, and a read copy is the same."""
    instance, result = solved(name)
    assert result.success
    plain.save(tmp_path / "form.npz", instance.form)
    form = plain.load(tmp_path / "form.npz")
    value = form.primal(form.X.project(np.ravel(result.x)))
    # `upper` is the largest value over y at x.
    assert value == pytest.approx(result.upper, rel=1e-6, abs=1e-9)
    nearby = form.X.project(np.ravel(result.x) + 0.1 * np.random.default_rng(0).standard_normal(form.c.size))
    assert form.primal(nearby) >= result.lower - 1e-9 * abs(result.lower)


def test_the_arena_is_as_wide_as_it_says():
    assert len(FIELDS) == len(FAMILIES) >= 30
    assert {"imaging", "inverse problems", "statistics", "games", "transport", "networks", "rough", "quadratic"} <= set(
        FIELDS.values()
    )
    assert all(len(family.sizes) >= 2 and sorted(family.sizes) == list(family.sizes) for family in FAMILIES)
    assert all(peer.program.exists() for peer in PEERS)


@pytest.mark.parametrize("name", ["game", "program", "huber", "transport"])
def test_the_quadratic_program_has_the_saddle_value(name):
    """Another solver on the rows that LP and QP solvers get: the same objective, and y among the multipliers."""
    from qp import program_of

    form = SMALL[name]().form
    program = program_of(form)
    if program.p.any():
        import clarabel_ip

        v, multipliers = clarabel_ip.solve(program, 1e-10, 10.0)
    else:
        found = scipy.optimize.linprog(
            program.q, A_eq=program.E, b_eq=program.e, bounds=np.stack([program.lower, program.upper], axis=1)
        )
        v, multipliers = found.x, -found.eqlin.marginals
    value = float(program.q @ v) + 0.5 * float(program.p * v @ v)
    x, y = form.X.project(v[: program.x_size]), form.Y.project(multipliers[program.y_rows])
    assert form.primal(x) == pytest.approx(value, abs=1e-6)
    if form.X.kind == "simplex":
        assert form.lower(y) == pytest.approx(value, abs=1e-6) and form.lower(form.Y.project(-y)) < value - 1e-3


def worker(stem, folder):
    return Worker([sys.executable, str(PROGRAMS / f"{stem}.py")], folder)


@pytest.mark.parametrize(
    ("stem", "setting", "fit"),
    [
        ("lbfgs", {"corrections": 10}, ("paper", "huber", "transport", "logistic lasso", "nonnegative")),
        ("fista", {}, ("group lasso", "isotropic", "logistic lasso", "nonnegative", "absolute")),
        ("admm", {"rho": 1.0, "steps": 5, "relax": 1.6}, ("picture", "isotropic", "fused", "portfolio", "program")),
        ("pdhg", {"kind": "restarted", "ratio": 1.0}, ("game", "flow", "quantile", "logistic lasso", "rough")),
        ("pdhg", {"kind": "accelerated", "ratio": 1.0}, ("trend", "regularised game", "support vectors")),
        ("krylov", {"way": "factor"}, ("players", "equations", "consensus")),
        ("krylov", {"way": "minres"}, ("players", "equations", "consensus")),
    ],
)  # fmt: skip
def test_programs_find_the_least_value(stem, setting, fit, tmp_path):
    program = worker(stem, tmp_path)
    try:
        for name in fit:
            instance, known = solved(name)
            plain.save(tmp_path / f"{name}.npz", instance.form)
            task = {
                "problem": str(tmp_path / f"{name}.npz"),
                "setting": setting,
                "most": 3000,
                "seconds": 1.0,
                "first": 1,
            }
            answer = program.run(task)
            assert "points" in answer, answer
            value, start = (
                instance.form.primal(instance.form.X.project(x))
                for x in (answer["points"]["x"][-1], 0.0 * known.x.ravel())
            )
            slack = 1e-9 * (1.0 + abs(value))
            assert known.lower - slack <= value <= known.upper + 1e-3 * (start - known.lower) + slack, name
        plain.save(tmp_path / "rough.npz", SMALL["rough"]().form)
        refused = stem in ("admm", "krylov", "fista") and program.run({**task, "problem": str(tmp_path / "rough.npz")})
        assert not refused or refused["failed"].startswith("Unfit")
    finally:
        program.close()


def test_a_cell_is_tuned_measured_kept_and_shown(tmp_path):
    ours = our_worker("benchmarks.arena.ours", tmp_path / "ours")
    theirs = worker("fista", tmp_path / "fista")
    peer = Peer("FISTA", PROGRAMS / "fista.py", "", ({},), 0.5)
    book = Book(tmp_path / "book.json", ("family", "size", "target"), {"targets": [1e-4]})
    try:
        instance = Instance(
            "lasso", 100, tmp_path, ours, {"FISTA": (peer, theirs)}, book.tuned.setdefault("lasso 100", {})
        )
        instance.find((1e-4,), 0.5)
        row = instance.cell(1e-4, 2, 20.0)
    finally:
        ours.close()
        theirs.close()
    assert is_met(row) and row["ours"]["gap"] <= 1e-4 and 0.0 < ratio(row) < math.inf
    assert row["peers"]["FISTA"]["iterations"] < 100 and instance.known["open"] < 1e-7
    book.cells.append(row)
    book.write()
    again = Book(tmp_path / "book.json", ("family", "size", "target"), {})
    assert again.has("lasso", 100, 1e-4) and not again.has("lasso", 100, 1e-2)
    assert again.tuned == json.loads(json.dumps(book.tuned))
    # A claim that is not true is no success, whatever its time.
    lie = {**row, "ours": {**row["ours"], "false": True}}
    assert ratio(lie) == math.inf and "FALSE CLAIM" in line(lie)


def test_a_judge_knows_lies_and_games_have_two_sides():
    form = SMALL["game"]().form
    result = ss.solve(ss.gallery.matrix_game(form.B), tol=1e-9)
    judge = Judge(form)
    assert abs(judge.gap(result.x, result.y)) < 1e-7
    assert judge.gap(result.x, np.ones(8)) > 1e-3 and judge.gap(np.full(10, math.nan), result.y) == math.inf
    gaps = [9.0, 0.5, 3.0, 0.4, 0.3]
    assert first_below(gaps.__getitem__, 5, 0.6) == 1 and first_below(gaps.__getitem__, 5, 0.1) is None


def test_the_setting_that_meets_a_target_soonest_is_taken(tmp_path):
    class Fake:
        def run(self, task):
            at = {"slow": 3.0, "quick": 1.0, "never": 2.0}[task["setting"]["way"]]
            end = 1.0 if task["setting"]["way"] == "never" else 0.0
            return {
                "points": {
                    "x": np.array([[1.0], [end]]),
                    "y": np.zeros((2, 1)),
                    "iterations": [1, 2],
                    "seconds": [0.0, at],
                }
            }

    class Low:
        def first(self, xs, ys, target):
            return first_below(lambda k: float(xs[k][0]), len(xs), target)

    peer = Peer("fake", tmp_path, "", ({"way": ("slow", "never", "quick")},), 5.0)
    assert tuned(peer, Fake(), Low(), tmp_path, (1e-2,))[1e-2][0] == {"way": "quick"}


def test_what_can_not_be_installed_is_a_reason(monkeypatch, tmp_path):
    monkeypatch.setattr(environments, "complaint", lambda command, seconds: "no matching distribution")
    assert environments.environment("odl", tmp_path)[1] == "not available: no matching distribution"
    monkeypatch.undo()
    assert environments.complaint([str(tmp_path / "nothing")], 5.0)


def test_the_page_is_made_from_the_measurement():
    book = json.loads((ROOT / "benchmarks" / "results" / "arena.json").read_text(encoding="utf-8"))
    assert page(book, FIELDS) == (ROOT / "docs" / "arena.md").read_text(encoding="utf-8")
    assert not [line(row) for row in book["cells"] if row["ours"]["false"]]


def test_numbers_of_the_readme_are_those_of_the_measurements():
    readme = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    (row,) = re.findall(
        r"^\| all \| (\d+) \| 0 \| (\d+) \| (\d+) \| ([\d.]+) \|$", (ROOT / "docs/arena.md").read_text(), re.M
    )
    cells, won, near, ratio = row
    assert f"{cells} cells against programs" in readme
    assert f"is the quickest in {won}, within twice the quickest in {near}, and {float(ratio):.0f} times" in readme
    rows = json.loads((ROOT / "benchmarks/results/f_calls.json").read_text(encoding="utf-8"))["rows"]
    calls = {row["instance"]: " / ".join(map(str, row["f"])) for row in rows}
    assert f"takes {calls['standard']} gradients" in readme
    assert f"with x >= 0 {calls['x >= 0']}, inpainting {calls['inpainting']} " in readme
