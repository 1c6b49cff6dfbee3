"""What a cluster is made of, without one: placements, hosts, shared arrays, blocks of rows, errors that travel."""

from __future__ import annotations

import pickle

import numpy as np

import saddleslide as ss
from saddleslide.distributed.cluster import require, sendable, to_pickle
from saddleslide.distributed.dask_sum import cut, level, place
from saddleslide.distributed.host import Host, Job, add_blocks
from saddleslide.distributed.shards import row_blocks
from saddleslide.distributed.shared_memory import SharedArrays, is_here, open_array
from support import need


def test_parts_stay_where_they_are_and_the_rest_is_shared_out():
    assert place(8, ["a", "b"]) == {"a": [0, 1, 2, 3], "b": [4, 5, 6, 7]}
    assert place(8, ["b", "c"], {"b": [4, 5, 6, 7]}) == {"b": [4, 5, 6, 7], "c": [0, 1, 2, 3]}
    assert cut([(0, 8)], 3) == [(0, 2), (2, 4), (4, 6), (6, 8)]
    now = {"a": [0, 1, 2, 3], "b": [4, 5, 6, 7]}
    assert level(8, now, ["a", "b", "c"]) == {"a": [0, 1, 2], "b": [4, 5, 6], "c": [3, 7]}


def test_a_host_builds_parts_and_sums_over_blocks():
    host = Host()
    assert host.build({1: pickle.dumps(ss.functions.Quadratic(2.0))}, "DaskSum").error is None
    (found,) = host.evaluate(Job("gradient", (2,), 2, ((1, 2),), x=np.ones(2))).terms.items()
    assert found[0] == (1, 2) and found[1][0] == () and found[1][1].tolist() == [2.0, 2.0]
    terms = {(0, 2): ((1.0,), None), (2, 4): ((2.0,), None)}
    assert add_blocks(8, terms, [(0, 2), (2, 4), (6, 7)]) == {(0, 4): ((3.0,), None)}


def test_arrays_are_shared_by_those_who_see_the_folder():
    shared = SharedArrays()
    path = shared.path("x", 1, 3)
    shared.rows(path)[0, :] = 2.0
    assert is_here(shared.folder, shared.token) and open_array(path, 1, 3).tolist() == [[2.0, 2.0, 2.0]]
    shared.close()
    assert not is_here(shared.folder, shared.token) and not is_here("nowhere", "abc")


def test_rows_of_a_loss_share_its_ridge():
    whole = ss.functions.LeastSquares(np.eye(4), np.ones(4), ridge=1.0)
    assert [part().value(np.zeros(4)) for part in row_blocks(whole, 2)] == [1.0, 1.0]
    assert [part().value(np.ones(4)) for part in row_blocks(whole, 2)] == [1.0, 1.0]
    assert len(row_blocks(ss.functions.Logistic(np.eye(5), [1, -1, 1, -1, 1]), 3)) == 3


def test_code_and_errors_travel():
    need("distributed")

    # Made after Dask was loaded, which teaches pickle all exceptions that there are.
    class Picky(Exception):
        """Can not be read again: its arguments are not those that it is made of."""

        def __init__(self, name, *, rows):
            super().__init__(f"{name} has {rows} rows")

    assert require("local").__name__ == "distributed" and pickle.loads(to_pickle(lambda: 3))() == 3
    assert repr(sendable(OSError("no file"))) == "OSError('no file')"
    assert repr(sendable(Picky("shard", rows=3))) == "RuntimeError('Picky: shard has 3 rows')"
