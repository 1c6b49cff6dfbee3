"""The small answers that arrays and arguments are made of, each at one point where it can be read off."""

import io

import numpy as np
import pytest
import scipy.sparse

import saddleslide as ss
from saddleslide.arrays.arguments import (
    as_flag,
    as_mapping,
    as_names,
    as_path,
    as_whole,
    as_word,
    check_npy,
    check_npz,
    check_size,
)
from saddleslide.arrays.base import (
    as_floats,
    as_number,
    as_real,
    as_shape,
    beside,
    blank,
    coarseness,
    frozen,
    key_of,
    on_host,
    read_only,
    receive,
    receive_number,
    split,
    zeros,
)
from saddleslide.arrays.kinds import (
    NUMPY,
    ArrayKind,
    Traffic,
    as_kind,
    is_callers,
    kind_of,
    origin_of,
    precision_of,
    refuse_masked,
    to_host,
    traffic,
)
from saddleslide.arrays.remote import RemoteArray
from saddleslide.arrays.remote.array import kept, plain_key
from saddleslide.arrays.remote.products import cosine_transform, hartley_transform, sparse_product
from saddleslide.errors import explain_read_only, raise_all


def test_arguments_are_read_as_they_are_meant():
    assert as_flag(True, "strict") is True and as_whole(np.int64(3), "max_steps", 0) == 3
    assert as_word("raise", "on_interrupt", ("raise", "return")) == "raise"
    assert as_names("xy", "interior", ("x", "y")) == ("x", "y") and as_mapping(None, "constants", "{}") == {}
    assert as_path("run.npz", "path", "run.npz").name == "run.npz"
    assert as_shape(60, "X") == (60,) and as_shape((4, 5), "X") == (4, 5) and as_number(2, "ridge", minimum=0.0) == 2.0
    assert as_real([1, 2], "b").tolist() == [1.0, 2.0] and as_floats([1, 2]).dtype == np.float64
    assert receive([1, 2], (2,), "B x").tolist() == [1.0, 2.0] and receive_number(np.array([2.0]), "value") == 2.0
    raise_all("SaddleProblem", [])


def test_arrays_of_the_host():
    near = np.zeros(2)
    assert on_host(near) and beside(near, np.ones(2)).tolist() == [1.0, 1.0]
    assert zeros(2, np.ones(5)).tolist() == [0.0, 0.0] and blank((2, 3), np.zeros(5)).shape == (2, 3)
    assert not read_only(near).flags.writeable and not frozen(near).flags.writeable
    assert coarseness(near) == 0.0 and coarseness(np.ones(2, dtype=np.float32)) == 1e-6
    assert [block.shape for block in split(np.zeros(10), [(2, 2), (6,)])] == [(2, 2), (6,)]
    assert key_of(near) == key_of(np.zeros(2)) != key_of(np.ones(2))
    single = np.ones(1, np.float32)
    assert [
        precision_of(single, 1.0, [2.0], np.arange(3)),
        precision_of(single, np.ones(1)),
        precision_of(1.0, [2.0]),
    ] == [
        "float32",
        "float64",
        "",
    ]


def test_kinds_of_arrays():
    kinds = [kind_of([1.0]), kind_of(np.ones(2)), as_kind("numpy", "like"), as_kind(None, "like")]
    kinds += [origin_of(np.ones(2), [1.0], "text"), ss.domains.Box([0.0], [1.0]).origin]
    assert set(kinds) == {NUMPY} and to_host([1.0, 2.0]).tolist() == [1.0, 2.0]
    assert NUMPY.wrap(np.ones(2)).tolist() == [1.0, 1.0] and NUMPY.call(lambda x: 2 * x, np.ones(2)).tolist() == [
        2.0,
        2.0,
    ]
    with pytest.raises(ss.errors.InputError, match="a masked array with 1 masked entries; expected all entries"):
        refuse_masked(np.ma.array([1.0, 2.0], mask=[False, True]))
    assert ss.functions.Custom(lambda x: x).stays_on_host(ArrayKind("torch")) == ("Custom: NumPy code",)
    f = ss.functions.Quadratic(1.0)
    assert not is_callers(f)
    f.strong_convexity = lambda domain: 1e6
    assert is_callers(f)


def test_remote_arrays():
    kind, before = ArrayKind("numpy"), traffic()
    assert (traffic() - before).total == 0 and Traffic(down=3, up=1) - Traffic(down=1, up=1) == Traffic(down=2, up=0)
    x = RemoteArray(kind, np.array([3.0, 4.0]))
    assert float(np.linalg.norm(2.0 * x)) == 10.0 and isinstance(x + 1.0, RemoteArray)
    matrix = scipy.sparse.csr_array(np.array([[1.0, 2.0]]))
    assert sparse_product(matrix, RemoteArray(kind, np.ones(2))).tolist() == [3.0]
    assert hartley_transform(hartley_transform(x)).host().round(12).tolist() == [3.0, 4.0]
    assert cosine_transform(RemoteArray(kind, np.ones((2, 2)))).host().round(12).tolist() == [[2.0, 0.0], [0.0, 0.0]]
    owner = np.ones(2)
    assert [kept(owner, "sum", lambda: 2.0), kept(owner, "sum", lambda: 3.0)] == [2.0, 2.0]
    assert np.where(x > 3.5, x, 0.0).tolist() == [0.0, 4.0]
    assert x[np.int64(1)] == 4.0 and isinstance(x[:1], RemoteArray) and isinstance(x[..., 0], RemoteArray)
    assert plain_key(np.int64(1), 2) == (1, ...) and plain_key((None, slice(np.int64(2), None)), 1) == (
        None,
        slice(2, None),
    )


def test_files_that_claim_too_much():
    with pytest.raises(ValueError, match="it would take 8,000,000 MB of memory; expected at most 1,074 MB"):
        check_size(8e12)
    whole = io.BytesIO()
    np.save(whole, np.ones(3))
    length = whole.tell()
    whole.seek(0)
    check_npy(whole, length)
    whole.seek(0)
    with pytest.raises(ValueError, match=r"its header tells of 24 bytes in the shape \(3,\), and 16 follow"):
        check_npy(whole, length - 8)
    archive = io.BytesIO()
    np.savez_compressed(archive, zeros=np.zeros(1_000_000))
    check_npz(archive)
    with pytest.raises(ValueError, match="it would take 8 MB of memory; expected at most 1 MB"):
        check_npz(archive, most=1_000_000)


def test_code_that_writes_to_its_argument_is_told_once():
    error = ValueError("buffer source array is read-only")
    explain_read_only(error)
    explain_read_only(error)
    assert len(error.__notes__) == 1 and error.__notes__[0].startswith("saddleslide: arguments are read-only views")
