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

import numpy as np
import pytest

import saddleslide as ss
from saddleslide.errors import CheckpointError
from saddleslide.runs.checkpoint import _DIGEST, VERSION, _hash, _prefix, read_checkpoint, unpacked, write_checkpoint
from small_problems import noisy, problems

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
        unpacked(claimed(shape), "run.npz")


def test_an_archive_that_grows_is_refused():
    buffer = io.BytesIO()
    np.savez_compressed(buffer, header=np.zeros(10**7))
    with pytest.raises(CheckpointError, match="80 MB of memory; expected at most 0 MB"):
        unpacked(sealed(buffer.getvalue()), "run.npz")


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
