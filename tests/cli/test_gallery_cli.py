"""The gallery from the command line: examples, files in and out, exit codes."""

from __future__ import annotations

import json

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp

import saddleslide as ss
from saddleslide.cli import main as cli
from saddleslide.cli.commands import SOLUTION_FILES, tasks
from saddleslide.errors import InputError
from saddleslide.gallery.files import read_array, read_matrix
from support import gathered

PAYOFF = np.array([[3.0, 0.0, 1.0], [1.0, 2.0, 0.5]])


def stored(folder, name, kind):
    """The same matrix in each kind of file; returns what to pass."""
    path = folder / f"{name}{kind}"
    if kind == ".npz":
        np.savez(path, first=PAYOFF, other=np.zeros(2))
        return f"{path}:first"
    if kind == ".npy":
        np.save(path, PAYOFF)
    elif kind == ".mtx":
        scipy.io.mmwrite(path, sp.coo_array(PAYOFF))
    else:
        np.savetxt(path, PAYOFF, delimiter="," if kind == ".csv" else " ")
    return str(path)


@pytest.mark.parametrize("kind", [".csv", ".txt", ".npy", ".npz", ".mtx"])
def test_a_game_from_every_kind_of_file(kind, tmp_path, capsys):
    folder, arguments = (
        tmp_path / "out",
        ["solve", "game", "--payoff", stored(tmp_path, "payoff", kind), "--tol", "1e-8"],
    )
    game = ss.gallery.matrix_game(PAYOFF)
    solution = game.read(ss.solve(game, tol=1e-8))
    if kind != ".npz":
        assert cli.main(arguments) == cli.EXIT_SOLVED
        out = capsys.readouterr().out
        assert "exploitability" in out and f"{solution.value:.8g}" in out
        return
    # Pictures take longer than all the rest: one kind will do.
    assert cli.main([*arguments, "--out", str(folder)]) == cli.EXIT_SOLVED
    assert {path.name for path in folder.iterdir()} == set(SOLUTION_FILES)
    record = json.loads((folder / "result.json").read_text(encoding="utf-8"))
    assert record["facts"]["value"] == pytest.approx(solution.value, abs=1e-8) and record["status"] == "SOLVED"
    with np.load(folder / "arrays.npz") as arrays:
        assert arrays["row"] == pytest.approx(solution.row, abs=1e-6)


def test_transport_from_files(tmp_path, capsys):
    files = {"costs": PAYOFF, "source": np.array([0.5, 0.5]), "target": np.array([0.25, 0.5, 0.25])}
    for name, values in files.items():
        np.savetxt(tmp_path / f"{name}.csv", values, delimiter=",")
    given = [word for name in files for word in (f"--{name}", str(tmp_path / f"{name}.csv"))]
    assert cli.main(["solve", "transport", *given, "--out", str(tmp_path / "out")]) == 0
    with np.load(tmp_path / "out" / "arrays.npz") as arrays:
        assert arrays["plan"].sum(axis=0) == pytest.approx(files["target"])
    assert cli.main(["solve", "transport", *given[:2]]) == cli.EXIT_USAGE
    assert "all three or none" in capsys.readouterr().err
    np.savetxt(tmp_path / "target.csv", [0.25, 0.5, 0.5])
    assert cli.main(["solve", "transport", *given]) == cli.EXIT_USAGE
    assert "expected equal sums" in capsys.readouterr().err


def test_consensus_from_files(tmp_path, capsys):
    rng = np.random.default_rng(0)
    A, b = rng.standard_normal((3, 6, 2)), rng.standard_normal((3, 6))
    np.savez(tmp_path / "data.npz", A=A, b=b)
    scipy.io.mmwrite(tmp_path / "graph.mtx", sp.coo_array(np.array([[0, 1, 0], [1, 0, 1], [0, 1, 0]])))
    data = ["--A", f"{tmp_path}/data.npz:A", "--b", f"{tmp_path}/data.npz:b"]
    arguments = ["solve", "consensus", *data, "--graph", f"{tmp_path}/graph.mtx", "--ridge", "0.5"]
    assert cli.main([*arguments, "--out", str(tmp_path / "out")]) == 0
    stacked, values = A.reshape(18, 2), b.ravel()
    expected = np.linalg.solve(stacked.T @ stacked + 1.5 * np.eye(2), stacked.T @ values)
    with np.load(tmp_path / "out" / "arrays.npz") as arrays:
        assert arrays["point"] == pytest.approx(expected, abs=1e-3)
    assert cli.main(["solve", "consensus", "--agents", "4", *data]) == cli.EXIT_USAGE
    assert "3 functions for 4 agents" in capsys.readouterr().err
    scipy.io.mmwrite(tmp_path / "graph.mtx", sp.coo_array(np.array([[0, 1, 0], [1, 0, 0], [0, 0, 0]])))
    assert cli.main(arguments) == cli.EXIT_USAGE
    assert "falls into 2 parts" in capsys.readouterr().err


def test_a_picture_goes_in_and_the_clean_one_comes_out(tmp_path, capsys):
    from matplotlib.image import imsave

    imsave(tmp_path / "in.png", np.tile(np.linspace(0, 1, 12), (10, 1)), cmap="gray")
    assert cli.main(["solve", "denoise", "--picture", str(tmp_path / "in.png"), "--out", str(tmp_path / "out")]) == 0
    assert ss.gallery.read_picture(tmp_path / "out" / "image.png").shape == (10, 12)
    assert "image.png" in capsys.readouterr().out


@pytest.mark.parametrize("options", [["--tv", "isotropic", "--nonnegative"], ["--tv", "tgv"], ["--data", "l1"]])
def test_colours_go_in_and_come_out(options, tmp_path, capsys):
    from matplotlib.image import imsave

    colours = np.zeros((8, 7, 3))
    colours[:, 3:] = [0.2, 0.8, 0.4]
    imsave(tmp_path / "in.png", colours)
    arguments = [
        "solve",
        "denoise",
        "--picture",
        f"{tmp_path}/in.png",
        "--colour",
        "--weight",
        "0.02",
        "--rtol",
        "1e-3",
    ]
    assert cli.main([*arguments, *options, "--out", f"{tmp_path}/out"]) == 0
    assert ss.gallery.read_picture(tmp_path / "out" / "image.png", colour=True) == pytest.approx(colours, abs=0.1)
    with np.load(tmp_path / "out" / "arrays.npz") as arrays:
        assert arrays["image"].shape == (8, 7, 3)
    problem = ss.gallery.denoise(
        ss.gallery.read_picture(tmp_path / "in.png", colour=True), 0.02,
        **({"tv": options[1]} if options[0] == "--tv" else {"data": "l1"}), nonnegative="--nonnegative" in options,
    )  # fmt: skip
    expected = problem.read(ss.solve(problem, rtol=1e-3)).objective
    record = json.loads((tmp_path / "out" / "result.json").read_text(encoding="utf-8"))
    assert record["facts"]["objective"] == pytest.approx(expected)
    capsys.readouterr()


@pytest.mark.parametrize(
    ("line", "value"),
    [("game kuhn", -1 / 18), ("game --rows 3 --columns 4 --entropy 0.1", None)],
)
def test_games_by_name(line, value, capsys):
    assert cli.main(["solve", *line.split(), "--tol", "1e-6"]) == 0
    out = capsys.readouterr().out
    assert len(out.splitlines()) < 40 and "exploitability" in out
    assert value is None or f"{value:.4f}"[:6] in out


def test_no_regulariser_is_the_linear_program(tmp_path, capsys):
    """Half of all moves by 1, which costs 1/2; |P|^2 / 20 of the plan comes on top where nothing is said."""
    costs, given = np.abs(np.subtract.outer(np.arange(3.0), np.arange(3.0))), []
    for name, array in (("costs", costs), ("source", [0.5, 0.5, 0.0]), ("target", [0.5, 0.0, 0.5])):
        np.save(tmp_path / f"{name}.npy", array)
        given += [f"--{name}", str(tmp_path / f"{name}.npy")]
    none = ["--regulariser", "none"]
    for options, objective in (([], 0.525), (none, 0.5)):
        arguments = ["solve", "transport", *given, *options, "--rtol", "1e-6", "--out", str(tmp_path / "out")]
        assert cli.main(arguments) == cli.EXIT_SOLVED
        facts = json.loads((tmp_path / "out" / "result.json").read_text(encoding="utf-8"))["facts"]
        assert facts["objective"] == pytest.approx(objective, abs=1e-5)
    assert cli.main(["solve", "transport", *given, *none, "--regularisation", "0.1"]) == cli.EXIT_USAGE
    assert "stands beside --regulariser none" in capsys.readouterr().err


@pytest.mark.parametrize("regulariser", ["quadratic", "entropy", "none"])
def test_transport_with_each_regulariser(regulariser, capsys):
    assert cli.main(["solve", "transport", "--size", "6", "--regulariser", regulariser, "--rtol", "1e-3"]) == 0
    assert cli.main(["solve", "game", "kuhn", "--entropy", "0.1"]) == 2
    assert "expected it alone" in capsys.readouterr().err


FILE = """
import numpy as np, saddleslide as ss

def problem():
    return ss.gallery.matrix_game(np.eye(3))

plain = ss.SaddleProblem(
    f=ss.functions.Quadratic(1.0), g=ss.functions.Quadratic(1.0), B=np.eye(2),
    X=ss.domains.Box(-1.0, 1.0, shape=2), Y=ss.domains.Box(1.0, 2.0, shape=2))
objective = ss.functions.LeastSquares(np.eye(2), np.ones(2)) + 0.5 * ss.functions.L1()
number = 3
def broken():
    raise RuntimeError("mine")
"""


@pytest.mark.parametrize("name", ["problem", "plain", "objective"])
def test_a_problem_from_a_file_of_ones_own(name, tmp_path, capsys):
    (tmp_path / "my_file.py").write_text(FILE, encoding="utf-8")
    target = f"{tmp_path}/my_file.py:{name}"
    assert cli.main(["solve", target, "--out", str(tmp_path / "out")]) == 0
    written = {path.name for path in (tmp_path / "out").iterdir()}
    assert written == (set(SOLUTION_FILES) if name == "problem" else set(SOLUTION_FILES) - {"solution.png"})
    assert cli.main(["plan", target]) == 0 and cli.main(["compare", target]) == 0
    assert "Plan" in capsys.readouterr().out


def test_an_error_of_the_users_own_file_reaches_the_user(tmp_path, capsys):
    (tmp_path / "my_file.py").write_text(FILE, encoding="utf-8")
    assert cli.main(["solve", f"{tmp_path}/my_file.py:broken"]) == cli.EXIT_USAGE
    told = capsys.readouterr().err
    assert "RuntimeError: mine" in told and "my_file.py" in told and "saddleslide/cli" not in told


@gathered(
    ("target", "words"),
    [
        ("my_file.py:number", "is int; expected a SaddleProblem"),
        ("my_file.py:absent", "has no name 'absent'; expected one of its own: "),
        ("no.py:x", "names no file"),
    ],
)
def test_a_file_without_a_problem_is_refused(target, words, tmp_path, capsys):
    (tmp_path / "my_file.py").write_text(FILE, encoding="utf-8")
    assert cli.main(["solve", f"{tmp_path}/{target}"]) == cli.EXIT_USAGE
    assert words in capsys.readouterr().err


@gathered(
    ("name", "content", "words"),
    [
        ("a.csv", "1,2\nx,4\n", "can not be read"),
        ("a.csv", "", "can not be read"),
        ("a.npz", "text", "can not be read"),
        ("a.mtx", "text", "can not be read"),
        ("a.png", "text", "can not be read"),
        ("a.xls", "text", "unknown kind"),
    ],
)
def test_unreadable_files_are_exit_code_2_with_a_reason(name, content, words, tmp_path, capsys):
    (tmp_path / name).write_text(content, encoding="utf-8")
    assert cli.main(["solve", "game", "--payoff", str(tmp_path / name)]) == cli.EXIT_USAGE
    assert words in capsys.readouterr().err


def test_archives_say_what_they_hold(tmp_path):
    np.savez(tmp_path / "two.npz", a=np.ones(2), b=np.ones(3))
    with pytest.raises(InputError, match=r"holds \['a', 'b'\]; expected one array"):
        read_array(tmp_path / "two.npz")
    with pytest.raises(InputError, match="expected 'c' among them"):
        read_array(f"{tmp_path}/two.npz:c")
    with pytest.raises(InputError, match="can not be read"):
        read_array(tmp_path / "absent.csv")


def test_compare_runs_and_prints_the_table(capsys):
    assert cli.main(["compare", "game", "--rows", "4", "--columns", "3", "--run"]) == 0
    out = capsys.readouterr().out
    assert "adaptive" in out and "solved" in out


def test_a_target_that_is_not_met_is_exit_code_1(capsys, monkeypatch):
    limited = ss.solve(ss.gallery.matrix_game(PAYOFF), tol=1e-12, max_steps=1)
    monkeypatch.setattr(tasks, "solve", lambda *_, **__: limited)
    assert cli.main(["solve", "game", "--rows", "2", "--columns", "3"]) == cli.EXIT_NOT_SOLVED
    assert "step_limit" in capsys.readouterr().out


def test_inequalities_and_weights_from_files(tmp_path, capsys):
    rng = np.random.default_rng(0)
    G, c, weights = rng.standard_normal((3, 4)), rng.standard_normal(4), rng.random((8, 8))
    files = {"G": G, "h": 0.1 * np.ones(3), "c": c, "weights": weights, "picture": rng.random((8, 8))}
    for name, values in files.items():
        np.savetxt(tmp_path / f"{name}.csv", values, delimiter=",")

    def solved(problem, *names):
        words = [word for name in names for word in (f"--{name}", f"{tmp_path}/{name}.csv")]
        assert cli.main(["solve", problem, *words, "--rtol", "1e-6", "--out", str(tmp_path / "out")]) == 0
        return json.loads((tmp_path / "out" / "result.json").read_text(encoding="utf-8"))["facts"]["objective"]

    f = ss.functions.Quadratic(1.0) + ss.functions.Linear(c)
    inside = ss.gallery.constrained(f, G=G, h=0.1 * np.ones(3))
    assert solved("constrained", "G", "h", "c") == pytest.approx(ss.solve(inside, rtol=1e-6).lower, rel=3e-6)
    weighed = ss.gallery.denoise(files["picture"], 0.1, weights=weights)
    expected = weighed.read(ss.solve(weighed, rtol=1e-6)).objective
    assert solved("denoise", "picture", "weights") == pytest.approx(expected, rel=3e-6)
    capsys.readouterr()
    assert cli.main(["solve", "constrained", "--G", f"{tmp_path}/G.csv"]) == cli.EXIT_USAGE
    assert "one of --G and --h is missing" in capsys.readouterr().err


def test_constrained_from_files(tmp_path, capsys):
    rng = np.random.default_rng(0)
    A, c = rng.standard_normal((2, 6)), rng.standard_normal(6)
    Q, b = np.diag(np.arange(1.0, 7.0)), A @ np.ones(6)
    for name, values in {"A": A, "b": b, "Q": Q, "c": c}.items():
        np.savetxt(tmp_path / f"{name}.csv", values, delimiter=",")
    given = [word for name in "AbQc" for word in (f"--{name}", str(tmp_path / f"{name}.csv"))]
    assert cli.main(["solve", "constrained", *given, "--tol", "1e-9", "--out", str(tmp_path / "out")]) == 0
    kkt = np.block([[Q, A.T], [A, np.zeros((2, 2))]])
    expected = np.linalg.solve(kkt, np.r_[-c, b])
    with np.load(tmp_path / "out" / "arrays.npz") as arrays:
        assert arrays["x"] == pytest.approx(expected[:6], abs=1e-3)
    capsys.readouterr()
    assert cli.main(["solve", "constrained", *given[:2]]) == cli.EXIT_USAGE
    assert "expected both or none" in capsys.readouterr().err
    np.savetxt(tmp_path / "A.csv", np.vstack([A[0], A[0]]), delimiter=",")
    assert cli.main(["solve", "constrained", *given]) == cli.EXIT_USAGE
    assert "away from the range of A" in capsys.readouterr().err
    np.savetxt(tmp_path / "A.csv", A[0], delimiter=",")
    assert cli.main(["solve", "constrained", *given]) == cli.EXIT_USAGE
    assert "its shape is (6, 1)" in capsys.readouterr().err
    np.savez(tmp_path / "A.npz", A=np.ones((2, 2, 2)))
    assert cli.main(["solve", "constrained", "--A", f"{tmp_path}/A.npz", *given[2:]]) == cli.EXIT_USAGE
    assert "expected a matrix" in capsys.readouterr().err


@gathered(("lines", "shape"), [(["1,2,3"], (1, 3)), (["1", "2", "3"], (3, 1)), (["# a", "4"], (1, 1))])
def test_a_table_of_one_line_or_one_column_is_a_matrix(lines, shape, tmp_path):
    (tmp_path / "a.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (tmp_path / "a.txt").write_text("\n".join(lines).replace(",", " ") + "\n", encoding="utf-8")
    assert read_matrix(tmp_path / "a.csv").shape == read_matrix(tmp_path / "a.txt").shape == shape
    assert np.ndim(read_array(tmp_path / "a.csv")) == 1


def test_one_constraint_from_a_file_of_one_line(tmp_path):
    (tmp_path / "A.csv").write_text("1,1,1,1\n", encoding="utf-8")
    (tmp_path / "b.csv").write_text("2\n", encoding="utf-8")
    given = ["--A", f"{tmp_path}/A.csv", "--b", f"{tmp_path}/b.csv", "--out", f"{tmp_path}/out"]
    assert cli.main(["solve", "constrained", *given]) == 0
    with np.load(tmp_path / "out" / "arrays.npz") as arrays:
        assert arrays["x"] == pytest.approx(np.full(4, 0.5), abs=1e-3)


WRONG = {
    "A.csv": "1,1\n1,2\n",
    "b.csv": "1\n2\n",
    "long.csv": "1,2,3\n",
    "head.csv": "a,b\n1,2\n",
    "ragged.csv": "1,2\n3\n",
    "semicolons.csv": "1;2\n3;4\n",
    "holes.csv": "1,nan\n3,4\n",
    "notes.csv": "# nothing else\n",
}


@gathered(
    ("line", "words"),
    [
        ("constrained --A A.csv --b b.csv --c long.csv", "f takes arrays of shape (3,), A of shape (2,)"),
        ("constrained --A A.csv --b b.csv --Q long.csv", "expected a square operator"),
        ("constrained --A A.csv --b long.csv", "its shape is (2, 2)"),
        ("inverse --A A.csv --b long.csv", "its shape is (2, 2)"),
        ("consensus --graph scalar.npy", "expected a square matrix"),
        ("consensus --graph long.csv", "expected a square matrix"),
        ("consensus --A A.csv --b b.csv", "expected (n, m, d) and (n, m)"),
        ("transport --costs A.csv --source long.csv --target b.csv", "expected (m, n), (m,) and (n,)"),
        ("tomography --sinogram A.csv --angles long.csv", "one angle for each row"),
        ("tomography --sinogram empty.npz", "it is empty"),
        ("inpaint --picture A.csv --known long.csv", "expected booleans of shape (2, 2)"),
        ("inpaint --picture graph.mtx", "has no holes"),
        ("denoise --picture folder.png", "can not be read"),
        ("game --payoff head.csv", "can not be read"),
        ("game --payoff ragged.csv", "can not be read"),
        ("game --payoff semicolons.csv", "can not be read"),
        ("game --payoff notes.csv", "it is empty"),
        ("game --payoff holes.csv", "NaN"),
        ("game --payoff scalar.npy", "expected a matrix"),
        ("game --payoff objects.npy", "can not be read"),
        ("game --payoff empty.npz", "it is empty"),
        ("game --payoff folder.png", "can not be read"),
    ],
)
def test_files_that_do_not_fit_are_exit_code_2_with_a_reason(line, words, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, content in WRONG.items():
        (tmp_path / name).write_text(content, encoding="utf-8")
    (tmp_path / "folder.png").mkdir(exist_ok=True)
    np.save("scalar.npy", 3.0)
    np.save("objects.npy", np.array([{}], dtype=object))
    np.savez("empty.npz")
    scipy.io.mmwrite("graph.mtx", sp.coo_array(np.array([[0.0, 1.0], [1.0, 0.0]])))
    assert cli.main(["solve", *line.split()]) == cli.EXIT_USAGE
    said = capsys.readouterr()
    assert words in said.err and said.out == ""


def test_a_sparse_file_may_be_a_picture_or_costs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    scipy.io.mmwrite("a.mtx", sp.coo_array(np.array([[0.0, 1.0], [1.0, 0.0]])))
    np.savetxt("half.csv", [0.5, 0.5])
    assert cli.main(["solve", "denoise", "--picture", "a.mtx"]) == 0
    given = ["--costs", "a.mtx", "--source", "half.csv", "--target", "half.csv"]
    assert cli.main(["solve", "transport", *given]) == 0


def test_inverse_from_files(tmp_path, capsys):
    rng = np.random.default_rng(0)
    np.savez(tmp_path / "data.npz", A=rng.standard_normal((8, 5)), b=rng.standard_normal(8))
    given = ["--A", f"{tmp_path}/data.npz:A", "--b", f"{tmp_path}/data.npz:b"]
    assert cli.main(["solve", "inverse", *given, "--p", "2", "--out", str(tmp_path / "out")]) == 0
    with np.load(tmp_path / "data.npz") as data, np.load(tmp_path / "out" / "arrays.npz") as arrays:
        D = np.diff(np.eye(5), axis=0)
        expected = np.linalg.solve(data["A"].T @ data["A"] + D.T @ D, data["A"].T @ data["b"])
        assert arrays["signal"] == pytest.approx(expected, abs=2e-3)
    capsys.readouterr()
    assert cli.main(["solve", "inverse", "--p", "1.5"]) == cli.EXIT_USAGE
    assert "p is 1.5" in capsys.readouterr().err


def test_pictures_are_deblurred_and_completed_from_files(tmp_path, capsys):
    from matplotlib.image import imsave

    sharp = np.zeros((10, 12))
    sharp[3:7, 4:9] = 1.0
    kernel = np.outer([0.25, 0.5, 0.25], [0.25, 0.5, 0.25])
    imsave(tmp_path / "blurred.png", ss.gallery.blur(kernel, sharp.shape).forward(sharp), cmap="gray", vmin=0, vmax=1)
    np.save(tmp_path / "kernel.npy", kernel)
    given = ["--picture", f"{tmp_path}/blurred.png", "--kernel", f"{tmp_path}/kernel.npy", "--out", f"{tmp_path}/sharp"]
    assert cli.main(["solve", "deblur", *given]) == 0
    assert ss.gallery.read_picture(tmp_path / "sharp" / "image.png") == pytest.approx(sharp, abs=0.1)
    known = np.random.default_rng(0).random(sharp.shape) < 0.7
    holes = np.where(known, sharp, np.nan)
    np.save(tmp_path / "holes.npy", holes)
    imsave(tmp_path / "known.png", known, cmap="gray")
    for masked in ([], ["--known", f"{tmp_path}/known.png"]):
        arguments = ["solve", "inpaint", "--picture", f"{tmp_path}/holes.npy", *masked, "--out", f"{tmp_path}/whole"]
        assert cli.main(arguments) == 0
        with np.load(tmp_path / "whole" / "arrays.npz") as arrays:
            assert arrays["image"][known] == pytest.approx(sharp[known], abs=0.15)
    capsys.readouterr()
    for wrong, words in (
        (["inpaint", "--picture", f"{tmp_path}/blurred.png"], "has no holes"),
        (["inpaint", "--missing", "2"], "expected a part below 1"),
        (["deblur", "--kernel", f"{tmp_path}/holes.npy"], "NaN"),
        (["deblur", "--picture", f"{tmp_path}/absent.png"], "can not be read"),
    ):
        assert cli.main(["solve", *wrong]) == cli.EXIT_USAGE
        assert words in capsys.readouterr().err
