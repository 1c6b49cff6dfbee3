"""Every argument of the public functions, given junk: refused by an error of ours, or used; never a bare exception."""

import inspect
import math
from decimal import Decimal

import numpy as np
import pytest

import saddleslide as ss
from saddleslide.errors import SaddleslideError
from support import gathered

JUNK = (
    None,
    "3",
    b"3",
    True,
    -1,
    0,
    2.5,
    math.nan,
    math.inf,
    1j,
    object(),
    [],
    {},
    {"f": "3"},
    (1, 2),
    np.ones(2),
    repr,
)
F, D = ss.functions, ss.domains
BOX = D.Box(-1.0, 1.0, shape=2)
PROBLEM = ss.SaddleProblem(f=F.Quadratic(1.0), g=F.Quadratic(1.0), B=np.eye(2), X=BOX, Y=BOX)
PLAN = ss.plan(PROBLEM, order="fgB", loops=(2, 1, 1))
POINT = np.zeros(2)
DONE = ss.solve(PROBLEM, 1e-3)
PICTURE = ss.gallery.denoise(np.full((3, 3), 0.5), weight=0.1)
CLEAN = PICTURE.read(ss.solve(PICTURE, tol=1e-3))

# Each function with arguments that it accepts.
DOORS = {
    "solve": (ss.solve, {"problem": PROBLEM, "tol": 1e-2, "max_steps": 3}),
    "run": (ss.run, {"problem": PROBLEM, "plan": PLAN}),
    "plan": (ss.plan, {"problem": PROBLEM, "tol": 1e-1}),
    "Plan.from_dict": (ss.Plan.from_dict, {}),
    "resume": (ss.resume, {"path": "no such file", "problem": PROBLEM}),
    "certify": (ss.certify, {"problem": PROBLEM, "x": POINT, "y": POINT}),
    "compare": (ss.compare, {"problem": PROBLEM, "tol": 1.0}),
    "SaddleProblem": (ss.SaddleProblem, {"f": F.Zero(), "g": F.Zero(), "B": np.eye(2), "X": BOX, "Y": BOX}),
    "Holder": (ss.Holder, {"nu": 1.0, "H": 1.0}),
    "Box": (D.Box, {"lower": -1.0, "upper": 1.0, "shape": 2}),
    "Ball": (D.Ball, {"radius": 1.0, "shape": 2}),
    "Simplex": (D.Simplex, {"n": 2}),
    "Power": (F.Power, {"nu": 0.5}),
    "Quadratic": (F.Quadratic, {"q": 1.0}),
    "Huber": (F.Huber, {"delta": 1.0}),
    "LeastSquares": (F.LeastSquares, {"A": np.eye(2), "b": np.ones(2)}),
    "Logistic": (F.Logistic, {"A": np.eye(2), "labels": np.ones(2)}),
    "Custom": (F.Custom, {"gradient": lambda x: x}),
    "from_callable": (F.from_callable, {"value_and_gradient": lambda x: (0.0, x)}),
    "Diagonal": (ss.metrics.Diagonal, {"weights": np.ones(2)}),
    "matrix_game": (ss.gallery.matrix_game, {"payoff": np.eye(2)}),
    "transport": (ss.gallery.transport, {"costs": np.eye(2), "source": [0.5, 0.5], "target": [0.5, 0.5]}),
    "denoise": (ss.gallery.denoise, {"picture": np.eye(3), "weight": 0.1}),
    "synthetic": (ss.gallery.synthetic, {"nu_x": 1.0, "nu_y": 1.0, "d": 3}),
    "tomography": (ss.gallery.tomography, {"n": 8}),
    "save": (CLEAN.save, {}),
    "plot": (DONE.plot, {}),
    "read_picture": (ss.gallery.read_picture, {}),
}


@pytest.mark.parametrize("door", DOORS)
def test_junk_is_refused_by_name_or_used(door, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    call, given = DOORS[door]
    parameters = inspect.signature(call).parameters.values()
    named = [p.name for p in parameters if p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)]
    found = {name: [bare(call, given | {name: junk}, junk) for junk in JUNK] for name in named}
    assert {name: list(filter(None, complaints)) for name, complaints in found.items() if any(complaints)} == {}


def bare(call, arguments, junk):
    """What came instead of a result or an error of ours."""
    try:
        call(**arguments)
    except SaddleslideError as refused:
        return "" if len(str(refused)) > 20 else f"{junk!r}: says only {refused}"
    except Exception as error:
        # An argument that was left out on purpose.
        left_out = isinstance(error, TypeError) and "required" in str(error) and "missing" in str(error)
        return "" if left_out else f"{junk!r}: {error!r}"
    return ""


@gathered("limit", ["3", True, b"3", -1, math.nan, 1j])
@gathered("name", ["max_calls", "time_limit"])
def test_limits_are_numbers(name, limit):
    given = {"f": limit} if name == "max_calls" else limit
    for call in (ss.solve, ss.run):
        with pytest.raises(ss.errors.InputError, match=rf"^{call.__name__}: {name}.*; expected a"):
            call(PROBLEM, 1e-2 if call is ss.solve else PLAN, **{name: given})


def test_paths_are_paths_and_suffixes_are_known(tmp_path):
    with pytest.raises(ss.errors.InputError, match=r"^resume: path is None; expected the path of a file such as"):
        ss.resume(None, PROBLEM)
    for save in (CLEAN.save, lambda path: DONE.plot(path=path)):
        with pytest.raises(ss.errors.InputError, match=r"path is '.*x\.xyz'; expected a name that ends in one of"):
            save(str(tmp_path / "x.xyz"))
        save(str(tmp_path / "x.png"))
        assert (tmp_path / "x.png").stat().st_size > 0


@gathered(
    "given",
    [
        {"tol": 10**400},
        {"metric": np.array(-3.0)},
        {"constants": {None: 1, "q": 2}},
        {"inexact": {None: 1, "q": 2}},
        {"anchor_batch": "x"},
        {"simple": ["f", ["g"]]},
        {"simple": np.array(3)},
        {"costs": np.array(3)},
    ],
)
def test_odd_settings_of_plans_are_refused_by_name(given):
    with pytest.raises(ss.errors.InputError, match=rf"{next(iter(given))}.*; expected"):
        ss.plan(PROBLEM, **({"tol": 0.1} | given))


def test_paths_with_a_nul_and_pairs_without_a_coupling_are_refused(tmp_path):
    for call in (lambda: ss.solve(PROBLEM, 0.1, checkpoint="x\0y"), lambda: ss.resume("x\0y", PROBLEM)):
        with pytest.raises(ss.errors.InputError, match=r"(checkpoint|path) is 'x.*y'; expected the path of a file"):
            call()
    with pytest.raises(ss.errors.InputError, match="check_adjoint: coupling is tuple; expected an Operator"):
        ss.operators.check_adjoint((np.copy, np.copy))


def test_a_decimal_kappa_is_a_number():
    assert ss.plan(PROBLEM, 0.1, kappa=Decimal("0.5")) == ss.plan(PROBLEM, 0.1, kappa=0.5)
