"""Checkpoint files: flipped bytes and truncations are refused, nothing is executed, writes are atomic."""

import json
import os
import stat
import zipfile

import numpy as np
import pytest

import saddleslide as ss
from saddleslide.errors import CheckpointError
from saddleslide.paper.rows import append_row
from saddleslide.runs.checkpoint import VERSION, fingerprint, read_checkpoint, unpack_checkpoint, write_checkpoint
from small_problems import problems
from support import gathered

PROBLEMS = problems()


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    path = tmp_path_factory.mktemp("saved") / "run.npz"
    ss.solve(PROBLEMS["game"], 1e-9, max_steps=2, checkpoint=path)
    return path


def refused(content):
    try:
        unpack_checkpoint(bytes(content), "run.npz")
    except CheckpointError as error:
        return "damaged" in str(error)
    return False


def test_every_flipped_byte_is_refused(saved):
    content = bytearray(saved.read_bytes())
    for i in range(len(content)):
        content[i] ^= 1 << (i % 8)
        assert refused(content), i
        content[i] ^= 1 << (i % 8)
    assert unpack_checkpoint(bytes(content), "run.npz")[0] == read_checkpoint(saved)[0]


def test_every_truncation_is_refused(saved, tmp_path):
    content, path = saved.read_bytes(), tmp_path / "short.npz"
    assert all(refused(content[:length]) for length in range(len(content)))
    path.write_bytes(content[:-1])
    with pytest.raises(CheckpointError, match="damaged"):
        ss.resume(path, PROBLEMS["game"])


def test_a_checkpoint_is_an_npz_without_pickles(saved):
    with np.load(saved, allow_pickle=False) as stored:
        assert json.loads(stored["header"].tobytes())["format"] == "saddleslide checkpoint"
        assert all(stored[name].dtype != object for name in stored.files)
    assert zipfile.ZipFile(saved).testzip() is None


class Evil:
    def __reduce__(self):
        return os.abort, ()


def test_a_pickle_in_an_array_with_a_fitting_hash_is_not_loaded(tmp_path, saved):
    path = tmp_path / "evil.npz"
    header, arrays = read_checkpoint(saved)
    write_checkpoint(path, header, [np.array([Evil()], dtype=object), *arrays[1:]])
    with pytest.raises(CheckpointError, match="can not be read"):
        ss.resume(path, PROBLEMS["game"])


def changed(header, change):
    text = json.dumps(header)
    return json.loads(text.replace(*change))


@pytest.mark.parametrize(
    "change",
    [
        ('"t": "Judge"', '"t": "os.system"'),
        ('"k": "float"', '"k": "eval"'),
        ('"again"', '"array"'),
        ('"history"', '"advance"'),
        ('"problem"', '"other"'),
        ('"limits"', '"bounds"'),
    ],
)
def test_a_forged_header_is_refused(change, tmp_path, saved):
    header, arrays = read_checkpoint(saved)
    path = tmp_path / "forged.npz"
    write_checkpoint(path, changed(header, change), arrays)
    assert changed(header, change) != header
    with pytest.raises(CheckpointError):
        ss.resume(path, PROBLEMS["game"])


def test_other_versions_and_other_problems_are_refused(saved, tmp_path):
    for name in set(PROBLEMS) - {"game"}:
        with pytest.raises(CheckpointError, match="another problem"):
            ss.resume(saved, PROBLEMS[name])
    header, arrays = read_checkpoint(saved)
    path = tmp_path / "new.npz"
    write_checkpoint(path, {**header, "version": VERSION + 1}, arrays)
    with pytest.raises(CheckpointError, match=f"version {VERSION + 1}; expected {VERSION}"):
        ss.resume(path, PROBLEMS["game"])
    with pytest.raises(CheckpointError, match="can not be read"):
        ss.resume(tmp_path / "missing.npz", PROBLEMS["game"])


def test_what_is_written_is_on_the_disk_before_it_has_its_name(tmp_path, monkeypatch):
    path, seen, replace = tmp_path / "run.npz", [], os.replace
    monkeypatch.setattr(os, "fsync", lambda handle: seen.append(os.fstat(handle)))
    monkeypatch.setattr(os, "replace", lambda *names: (seen.append("named"), replace(*names)))
    write_checkpoint(path, {"step": 1}, [np.ones(3)])
    body, named, *folder = seen
    # Not every system has folders that can be made to reach the disk.
    assert named == "named" and [stat.S_ISDIR(entry.st_mode) for entry in folder] == [True] * (os.name == "posix")
    assert (body.st_ino, body.st_size) == (path.stat().st_ino, path.stat().st_size)
    append_row(tmp_path, {"key": "one"})
    (row,) = tmp_path.glob("*.jsonl")
    assert (seen[-1].st_ino, seen[-1].st_size) == (row.stat().st_ino, row.stat().st_size)


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "run.npz"
    write_checkpoint(path, {"step": 1}, [np.ones(3)])

    def full(handle):
        raise OSError("disk full")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="disk full"):
        write_checkpoint(path, {"step": 2}, [np.ones(3)])
    assert read_checkpoint(path)[0] == {"step": 1}
    assert [file.name for file in tmp_path.iterdir()] == ["run.npz"]


@gathered("name", PROBLEMS)
def test_a_fingerprint_does_not_change_when_a_problem_is_used(name):
    fresh = problems()[name]
    before = fingerprint(fresh)
    ss.solve(fresh, reduction=1e-2)
    assert fingerprint(fresh) == before == fingerprint(problems()[name])


@pytest.mark.parametrize("bad", [3, "no/such/folder/run.npz"])
def test_a_place_that_can_not_be_written_is_refused_before_any_work(bad):
    with pytest.raises(ss.errors.InputError, match="checkpoint is"):
        ss.solve(PROBLEMS["game"], 1e-3, checkpoint=bad)
    with pytest.raises(ss.errors.InputError, match="checkpoint_every"):
        ss.solve(PROBLEMS["game"], 1e-3, checkpoint_every=0)


def test_a_plan_that_can_not_be_written_is_refused_before_any_work(tmp_path):
    problem = PROBLEMS["least squares"]
    metric = ss.metrics.Operator(lambda x: x, lambda x: x, largest=1.0)
    with pytest.raises(ss.errors.InputError, match="can not be written"):
        ss.solve(problem, 1e-3, metric=metric, checkpoint=tmp_path / "run.npz")
    assert not list(tmp_path.iterdir())
