"""Checkpoints with a fitting hash and a forged content: refused as checkpoints, whatever is wrong with them."""

import copy
import io
import json
import os
import random
import signal
import subprocess
import sys
import textwrap
import zipfile
from functools import partial

import numpy as np
import pytest

import saddleslide as ss
from saddleslide.errors import CheckpointError
from saddleslide.facts.facts import Facts
from saddleslide.runs import snapshot
from saddleslide.runs.checkpoint import (
    _DIGEST,
    VERSION,
    _hash,
    _prefix,
    read_checkpoint,
    unpack_checkpoint,
    write_checkpoint,
)
from small_problems import noisy, problems
from support import posix

PROBLEMS = {**problems(), "noisy": noisy()}
RUNS = {
    "adaptive": ("least squares", lambda p, **kept: ss.solve(p, 1e-6, method="adaptive", **kept)),
    "own code": ("custom", lambda p, **kept: ss.solve(p, 1e-6, method="adaptive", **kept)),
    "method": ("game", lambda p, **kept: ss.solve(p, 1e-6, method="pdhg", **kept)),
    "plan": ("simple", lambda p, **kept: ss.run(p, ss.plan(p, 0.3, regime="degenerate"), **kept)),
    "sampled": ("noisy", lambda p, **kept: ss.solve(p, 0.3, rng=0, **kept)),
}
JUNK = (
    None, [], {}, [1, 2, 3], True, "", "x", 0, -1, -(10**18), 10**30, 1.5, float("nan"), float("inf"),
    {"k": "float", "v": "nan"}, {"k": "float", "v": "inf"}, {"k": "array", "n": 0, "v": 10**9, "w": True},
    {"k": "array", "n": 0, "v": 0, "w": True}, {"k": "fresh"}, {"k": "list", "v": [1, 2]}, {"k": "again", "v": 0},
)  # fmt: skip
ARRAYS = (
    np.zeros(0), np.array(3), np.zeros((2, 2, 2)), np.zeros(1000), np.zeros(3, complex), np.zeros(3, "U4"),
    np.zeros(3, [("a", "f8")]), np.zeros(6, bool), np.full(6, np.nan), np.full(4, np.inf),
)  # fmt: skip
LIMITS = {"time_limit": 1.0, "max_steps": 4}


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder, found = tmp_path_factory.mktemp("saved"), {}
    for name, (kind, start) in RUNS.items():
        start(PROBLEMS[kind], max_steps=2, checkpoint=folder / "run.npz")
        found[name] = PROBLEMS[kind], *read_checkpoint(folder / "run.npz")
    return found


def places(node, at=()):
    """All places of a tree, the root left out."""
    if at:
        yield at
    for key in node if isinstance(node, dict) else range(len(node)) if isinstance(node, list) else ():
        yield from places(node[key], (*at, key))


def changed(tree, at, value):
    tree = here = copy.deepcopy(tree)
    for key in at[:-1]:
        here = here[key]
    here[at[-1]] = value
    return tree


def packed(header, arrays):
    """As `write_checkpoint`, with NaN in the header too."""
    buffer = io.BytesIO()
    text = json.dumps({"format": "saddleslide checkpoint", "version": VERSION, **header}).encode()
    np.savez(buffer, header=np.frombuffer(text, np.uint8), **{f"a{i}": array for i, array in enumerate(arrays)})
    return sealed(buffer.getvalue())


def sealed(archive):
    body = archive[:-2] + _DIGEST.to_bytes(2, "little")
    return body + _hash(body)


def resumed(problem, content, folder):
    """True where a file was refused, False where it did no harm; anything else is raised."""
    path = folder / "forged.npz"
    path.write_bytes(content)
    try:
        ss.resume(path, problem, checkpoint=folder / "next.npz", **LIMITS)
    except CheckpointError:
        return True
    return False


@pytest.mark.parametrize("name", RUNS)
def test_every_field_of_the_header_may_be_junk(name, saved, tmp_path):
    problem, header, arrays = saved[name]
    outside = [at for at in places({key: part for key, part in header.items() if key != "state"}) if len(at) <= 2]
    rng, refused = random.Random(name), 0
    for at in outside:
        refused += resumed(problem, packed(changed(header, at, rng.choice(JUNK)), arrays), tmp_path)
    assert 2 * refused >= len(outside)


@pytest.mark.parametrize("name", RUNS)
def test_every_part_of_the_state_may_be_junk(name, saved, tmp_path):
    problem, header, arrays = saved[name]
    inside, rng = [at for at in places(header) if at[0] == "state"], random.Random(name)
    for at in rng.sample(inside, 12):
        resumed(problem, packed(changed(header, at, rng.choice(JUNK)), arrays), tmp_path)
    assert resumed(problem, packed({**header, "state": None}, arrays), tmp_path)


@pytest.mark.parametrize("name", RUNS)
def test_every_array_may_be_of_another_shape(name, saved, tmp_path):
    problem, header, arrays = saved[name]
    rng, refused = random.Random(name), 0
    for i in range(len(arrays)):
        junk = rng.choice(ARRAYS)
        refused += resumed(problem, packed(header, [*arrays[:i], junk, *arrays[i + 1 :]]), tmp_path)
    assert 2 * refused >= len(arrays)
    assert resumed(problem, packed(header, []), tmp_path)


def runs_of_all_kinds():
    """Name -> problem and a run of it: all methods, metrics and kinds of plans, sampled gradients."""
    methods = {
        name: next(p for p in PROBLEMS.values() if p.X.size < 10 and not method().lacks(Facts(p)))
        for name, method in ss.methods.by_name.items()
    }
    found = {name: (problem, partial(solved, method=name)) for name, problem in methods.items()}
    for name in ("least squares", "costly g", "custom", "mirrored", "game"):
        found[f"adaptive, {name}"] = PROBLEMS[name], partial(solved, method="adaptive")
    for metric in ("blocks", "spectral", "fft"):
        found[f"adaptive, {metric}"] = PROBLEMS["image"], partial(solved, method="adaptive", metric=metric)
    f, g = ss.functions.Linear([0.1, -0.2]), ss.functions.Quadratic(np.diag([2.0, 0.0, 1.0]))
    box, ball = ss.domains.Box(-1.0, 1.0, shape=2), ss.domains.Ball(4.0, shape=3)
    anchored = ss.SaddleProblem(f=f, g=g, B=np.eye(3, 2), X=box, Y=ball)
    B, flat = ss.operators.FiniteDifferences((3, 4)), ss.functions.Quadratic(1.0)
    X, Y = ss.domains.FullSpace((3, 4)), ss.domains.Box(-1.0, 1.0, shape=B.y_shape)
    picture = ss.SaddleProblem(f=flat, g=flat, B=B, X=X, Y=Y)
    for name, problem, asked in (
        ("degenerate", PROBLEMS["costly g"], {"regime": "degenerate"}),
        ("picture", picture, {"order": "fgB", "loops": (5, 2, 2)}),
        ("mixed", PROBLEMS["costly g"], {"regime": "mixed"}),
        ("restarts", PROBLEMS["simple"], {"regime": "restarts"}),
        ("anchors", anchored, {"regime": "mixed", "anchors": True, "interior": ("y",), "Psi0": 10.0}),
    ):
        plan = ss.plan(problem, None if "loops" in asked else 0.05, **asked)
        found[f"plan, {name}"] = problem, lambda p, plan=plan, **kept: ss.run(p, plan, **kept)
    found["sampled"] = PROBLEMS["noisy"], RUNS["sampled"][1]
    return found


def solved(problem, **asked):
    return ss.solve(problem, 1e-2, **asked)


@pytest.fixture(scope="module")
def saved_of_all_kinds(tmp_path_factory):
    path, found = tmp_path_factory.mktemp("kinds") / "run.npz", {}
    for name, (problem, start) in runs_of_all_kinds().items():
        start(problem, max_steps=3, checkpoint=path)
        found[name] = problem, *read_checkpoint(path)
    return found


def array_places(header):
    """Where the state refers to arrays, one place each."""
    here = [at[:-1] for at in places(header["state"]) if at[-1] == "k"]
    return [at for at in here if node_at(header, at)["k"] == "array"]


def node_at(header, at):
    node = header["state"]
    for key in at:
        node = node[key]
    return node


def forgeries(header, arrays, rng, count):
    """Arrays in each other's places, and in shapes, orders and kinds of their own."""
    at = array_places(header)
    pairs = [(one, two) for one in at for two in at if one < two]
    pairs = [
        (one, two) for one, two in pairs if array_at(header, arrays, one).shape != array_at(header, arrays, two).shape
    ]
    for one, two in rng.sample(pairs, min(count, len(pairs))):
        forged = copy.deepcopy(header)
        first, second = node_at(forged, one), node_at(forged, two)
        first["v"], second["v"] = second["v"], first["v"]
        yield forged, arrays
    for one in rng.sample(at, min(count // 2, len(at))):
        i, array = node_at(header, one)["v"], array_at(header, arrays, one)
        other = rng.choice(
            [array.reshape(-1, 1), array[None], np.asfortranarray(array), array.ravel(), array.astype("f4"),
             array.astype(">f8"), array.astype(int), array.ravel()[:-1], np.concatenate([array.ravel()] * 2)]
        )  # fmt: skip
        yield header, [*arrays[:i], other, *arrays[i + 1 :]]


def array_at(header, arrays, at):
    return arrays[node_at(header, at)["v"]]


@pytest.mark.filterwarnings("error")
def test_arrays_in_each_others_places_are_refused(saved_of_all_kinds, tmp_path):
    """Of a resumed run compiled loops read as many entries as the blocks have, whatever they are handed."""
    for name, (problem, header, arrays) in saved_of_all_kinds.items():
        rng = random.Random(name)
        for forged, parts in forgeries(header, arrays, rng, 2):
            same = forged is header and all(
                one.shape == two.shape and np.array_equal(one, two, equal_nan=True)
                for one, two in zip(parts, arrays, strict=True)
            )
            refused = resumed(problem, packed(forged, parts), tmp_path)
            assert refused or same, name


def test_every_array_of_a_state_has_a_known_shape(saved_of_all_kinds, tmp_path, monkeypatch):
    """None is accepted for being of one of the shapes of the problem, where the fresh run has none to compare with."""
    monkeypatch.setattr(snapshot, "_shapes_of_unknown_blocks", lambda x, y: [])
    for name, (problem, header, arrays) in saved_of_all_kinds.items():
        # Models of a plan's levels are known by their names, and compared when all is restored.
        if not name.startswith(("plan", "sampled")):
            assert not resumed(problem, packed(header, arrays), tmp_path), name


@pytest.mark.parametrize("top", [[], None, "text", 3, [1], {"format": 3}, {"version": []}])
def test_headers_that_are_no_mapping_of_ours(top, tmp_path):
    buffer = io.BytesIO()
    np.savez(buffer, header=np.frombuffer(json.dumps(top).encode(), np.uint8))
    assert resumed(PROBLEMS["game"], sealed(buffer.getvalue()), tmp_path)


def claimed(shape):
    """A checkpoint with one array whose header claims a shape."""
    buffer, member = io.BytesIO(), io.BytesIO()
    np.lib.format.write_array_header_1_0(member, {"descr": "<f8", "fortran_order": False, "shape": shape})
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("a0.npy", member.getvalue() + bytes(16))
    return sealed(buffer.getvalue())


@pytest.mark.parametrize("shape", [(10**12,), (10**30,), (-2,), (2**63, 2), (3,)])
def test_sizes_are_looked_at_before_memory_is_taken(shape):
    with pytest.raises(CheckpointError, match="bytes in the shape"):
        unpack_checkpoint(claimed(shape), "run.npz")


def test_an_archive_that_grows_is_refused():
    buffer = io.BytesIO()
    np.savez_compressed(buffer, header=np.zeros(10**7))
    with pytest.raises(CheckpointError, match="80 MB of memory; expected at most 0 MB"):
        unpack_checkpoint(sealed(buffer.getvalue()), "run.npz")


def test_an_exception_of_own_code_in_a_resumed_run_is_the_callers(tmp_path):
    path, calls = tmp_path / "run.npz", []

    def gradient(x):
        calls.append(1)
        if len(calls) > 30:
            raise TypeError("mine")
        return x**3 + x - 0.2

    f = ss.functions.Custom(gradient, lambda x: float((x**4).sum() / 4 + (x**2).sum() / 2 - 0.2 * x.sum()))
    box = ss.domains.Box(-1.0, 1.0, shape=6)
    problem = ss.SaddleProblem(f=f, g=ss.functions.Quadratic(1.0), B=np.eye(6), X=box, Y=box)
    ss.solve(problem, 1e-14, max_steps=2, checkpoint=path, method="adaptive")
    calls.extend([1] * 30)
    with pytest.raises(TypeError, match="mine"):
        ss.resume(path, problem, max_steps=1000)


@posix
def test_what_a_killed_process_left_is_cleared_away(tmp_path):
    path = tmp_path / "run.npz"
    killed = textwrap.dedent(f"""
        import os, signal
        from pathlib import Path
        import numpy as np
        from saddleslide.runs.checkpoint import write_checkpoint
        os.fsync = lambda handle: os.kill(os.getpid(), signal.SIGKILL)
        write_checkpoint(Path({str(path)!r}), {{}}, [np.ones(3)])
    """)
    assert subprocess.run([sys.executable, "-c", killed], check=False).returncode == -signal.SIGKILL
    (left,) = tmp_path.iterdir()
    assert left.name.startswith(_prefix(path)) and left.name.endswith(".part")
    # Files of a process that lives, of other checkpoints and of others stay.
    kept = [f"{_prefix(path)}{os.getppid()}-a.part", f"{_prefix(tmp_path / 'other.npz')}999999999-a.part", "mine.part"]
    for name in kept:
        (tmp_path / name).touch()
    write_checkpoint(path, {}, [np.ones(3)])
    assert {file.name for file in tmp_path.iterdir()} == {"run.npz", *kept}
