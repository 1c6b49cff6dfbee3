"""Sparse matrices from callers: never written out when large, and looked at before compiled code reads them."""

import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse

import saddleslide as ss
from saddleslide.errors import InputError
from saddleslide.gallery.consensus import gossip_matrix
from saddleslide.operators import as_operator
from saddleslide.operators.spectrum import DENSE_ENTRIES
from support import gathered, posix

ROWS, COLUMNS = 500_000, 60
# A process of its own: what other tests have taken would hide the peak.
LARGE = f"""
import resource, sys
import numpy as np, scipy.sparse, saddleslide as ss
rng = np.random.default_rng(0)
places = rng.integers(0, {ROWS}, 200), rng.integers(0, {COLUMNS}, 200)
tall = scipy.sparse.coo_array((rng.standard_normal(200), places), shape=({ROWS}, {COLUMNS}))
few, many = ss.domains.Box(-1.0, 1.0, shape={COLUMNS}), ss.domains.Box(-1.0, 1.0, shape={ROWS})
f, g = ss.functions.Quadratic(1.0) + ss.functions.Linear(np.ones({COLUMNS})), ss.functions.Quadratic(1.0)
if sys.argv[1] == "A":
    f = ss.functions.LeastSquares(tall, np.ones({ROWS}), ridge=0.1)
    problem = ss.SaddleProblem(f=f, g=g, B=np.eye({COLUMNS}), X=few, Y=few)
else:
    problem = ss.SaddleProblem(f=f, g=g, B=tall, X=few, Y=many)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
solved = ss.solve(problem, tol=1e-3, max_steps=2)
assert solved.gap < 1e9, solved
ss.plan(problem, 0.1)
ss.certify(problem, solved.x, solved.y)
norm = float(problem.coupling.norm.upper)
exact = np.linalg.svd(tall.tocsr()[np.unique(places[0])].toarray(), compute_uv=False)[0]
assert sys.argv[1] == "A" or exact <= norm <= 1.0001 * exact, (exact, norm)
unit = 1 << 20 if sys.platform == "darwin" else 1 << 10
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // unit)
"""


@posix
@pytest.mark.parametrize("place", ["tall", "A"])
def test_a_large_sparse_matrix_is_never_written_out(place):
    ran = subprocess.run([sys.executable, "-c", LARGE, place], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    # Written out it would be 240 MB; twenty vectors of the long side are 80 MB.
    assert int(ran.stdout) < 112


def test_no_entry_count_above_the_limit_is_dense():
    side = 2 * int(DENSE_ENTRIES**0.5)
    assert as_operator(scipy.sparse.eye_array(side, format="csr")).dense() is None
    assert as_operator(scipy.sparse.eye_array(100, format="csr")).dense() is not None


@pytest.mark.parametrize("shape", [(40, 9), (9, 40)])
def test_the_norm_by_the_gram_matrix_is_that_by_singular_values(shape, monkeypatch):
    matrix = np.random.default_rng(0).standard_normal(shape)
    exact = np.linalg.norm(matrix, 2)
    monkeypatch.setattr("saddleslide.operators.spectrum.DENSE_ENTRIES", 10)
    bound = as_operator((lambda x: matrix @ x, lambda y: matrix.T @ y), shape[1:], shape[:1]).norm
    assert bound.method == "Gram matrix"
    assert exact <= bound.upper <= exact * (1.0 + 1e-10)


def _csr(kind, change):
    made = kind(([1.0, 2.0, 3.0], ([0, 1, 2], [0, 1, 2])), shape=(3, 3))
    change(made)
    return made


def _set(name, place, value):
    def change(matrix):
        getattr(matrix, name)[place] = value

    return change


def _put(name, value):
    return lambda matrix: setattr(matrix, name, value)


def _dia(offsets, data, shape=(3, 3)):
    made = scipy.sparse.dia_array((np.ones((1, 3)), [0]), shape=shape)
    made.offsets, made.data = offsets, data
    return made


def _shaped(made, shape):
    made._shape = shape
    return made


def _lil(place, rows=None, data=None):
    made = scipy.sparse.lil_array(np.eye(3))
    if rows is not None:
        made.rows[place] = rows
    if data is not None:
        made.data[place] = data
    return made


def _dok(key, value=1.0, kind=scipy.sparse.dok_array):
    made = kind((3, 3))
    made[0, 0] = 1.0
    made._dict[key] = value
    return made


def _bsr(change):
    made = scipy.sparse.bsr_array(np.kron(np.eye(2), np.ones((2, 2))), blocksize=(2, 2))
    change(made)
    return made


FORMS = {
    f"{kind.__name__} {what}": (lambda kind=kind, change=change: _csr(kind, change))
    for kinds, changes in (
        (
            (scipy.sparse.coo_array, scipy.sparse.coo_matrix),
            {
                "row beyond": _set("row", 1, 7_000_000),
                "column beyond": _set("col", 2, 3),
                "row negative": _set("row", 0, -1),
                "column negative": _set("col", 0, -9_000_000),
                "data short": _put("data", np.ones(2)),
                "data NaN": _put("data", np.array([1.0, np.nan, 1.0])),
                "data complex": _put("data", np.array([1.0, 1j, 1.0])),
                "data objects": _put("data", np.array([1.0, None, 1.0])),
                "places real": _put("coords", (np.array([0.0, 1.5, 2.0]), np.array([0, 1, 2]))),
                "places none": _put("coords", ()),
                "rows short": _put("row", np.array([0, 1])),
                "rows twofold": _put("row", np.array([[0, 1, 2]])),
                "rows a list": _put("row", [0, 1, 99]),
            },
        ),
        (
            (scipy.sparse.csr_array, scipy.sparse.csc_array, scipy.sparse.csr_matrix, scipy.sparse.csc_matrix),
            {
                "index beyond": _set("indices", 1, 7_000_000),
                "index negative": _set("indices", 1, -1),
                "starts back": _put("indptr", np.array([0, 3, 1, 3])),
                "starts beyond": _put("indptr", np.array([0, 1, 2, 9_000_000])),
                "starts late": _put("indptr", np.array([1, 1, 2, 3])),
                "starts negative": _put("indptr", np.array([0, -5, 2, 3])),
                "starts short": _put("indptr", np.array([0, 3])),
                "starts real": _put("indptr", np.array([0.0, 1.0, 2.0, 3.0])),
                "indices real": _put("indices", np.array([0.0, 1.0, 2.0])),
                "indices short": _put("indices", np.array([0, 1])),
                "data short": _put("data", np.ones(1)),
                "data infinite": _put("data", np.array([1.0, np.inf, 1.0])),
            },
        ),
    )
    for kind in kinds
    for what, change in changes.items()
} | {
    "bsr index beyond": lambda: _bsr(_set("indices", 1, 5_000_000)),
    "bsr starts beyond": lambda: _bsr(_put("indptr", np.array([0, 1, 4_000_000]))),
    "bsr data flat": lambda: _bsr(_put("data", np.ones(4))),
    "bsr blocks that do not fit": lambda: _bsr(_put("data", np.ones((2, 3, 3)))),
    "bsr empty blocks": lambda: _bsr(_put("data", np.ones((2, 0, 2)))),
    "dia too few offsets": lambda: _dia(np.array([0]), np.ones((3, 3))),
    "dia too many offsets": lambda: _dia(np.array([0, 1, 2]), np.ones((1, 3))),
    "dia offsets real": lambda: _dia(np.array([0.5]), np.ones((1, 3))),
    "dia offsets beyond 32 bits": lambda: _dia(np.array([2**40]), np.ones((1, 3))),
    "dia offsets far below": lambda: _dia(np.array([-(2**40), 0]), np.ones((2, 3))),
    "dia offsets without a sign": lambda: _dia(np.array([0, 2**63], dtype=np.uint64), np.ones((2, 3))),
    "dia sides below 0": lambda: _shaped(_dia(np.array([0]), np.ones((1, 3))), (-1, 3)),
    "dia no data": lambda: _dia(np.array([0]), None),
    "dia data flat": lambda: _dia(np.array([0]), np.ones(3)),
    "dia NaN": lambda: _dia(np.array([0]), np.full((1, 3), np.nan)),
    "dia offsets twice": lambda: _dia(np.array([0, 0]), np.ones((2, 3))),
    "lil index beyond": lambda: _lil(1, rows=[9_000_000]),
    "lil index negative": lambda: _lil(1, rows=[-4]),
    "lil index real": lambda: _lil(1, rows=[0.5]),
    "lil lists that differ": lambda: _lil(1, rows=[0, 1, 2]),
    "lil more data": lambda: _lil(1, data=[1.0, 2.0, 3.0]),
    "lil no list": lambda: _lil(1, rows=7),
    "lil data words": lambda: _lil(1, data=["a"]),
    "dok key beyond": lambda: _dok((5_000_000, 0)),
    "dok key negative": lambda: _dok((0, -2)),
    "dok key real": lambda: _dok((0, 1.5)),
    "dok key no pair": lambda: _dok((0, 1, 2)),
    "dok key a number": lambda: _dok(3),
    "dok matrix key beyond": lambda: _dok((3, 0), kind=scipy.sparse.dok_matrix),
    "dok value a word": lambda: _dok((0, 1), "a"),
    "one dimension": lambda: scipy.sparse.coo_array([1.0, 2.0, 3.0]),
}  # fmt: skip
DOORS = {
    "B": (lambda matrix: as_operator(matrix), r"^B:"),
    "A": (lambda matrix: ss.functions.LeastSquares(matrix, np.ones(abs(matrix.shape[0]))), r"^LeastSquares: A:"),
    "q": (lambda matrix: ss.functions.Quadratic(matrix), r"^Quadratic: q:"),
}


@gathered("door", DOORS)
@gathered("form", FORMS)
def test_damaged_sparse_matrices_are_refused_by_the_name_of_the_argument(form, door):
    if "complex" in form:
        # No damage: x is complex.
        return
    made, (enter, name) = FORMS[form](), DOORS[door]
    with pytest.raises(InputError, match=name):
        enter(made)


def test_whole_matrices_of_every_format_are_taken_and_left_as_they_were():
    dense = np.kron(np.array([[1.0, 0.0, -2.0], [0.0, 3.0, 0.0]]), np.ones((2, 2)))
    for name in ("bsr", "coo", "csc", "csr", "dia", "dok", "lil"):
        for suffix in ("array", "matrix"):
            given = getattr(scipy.sparse, f"{name}_{suffix}")(dense)
            assert np.array_equal(as_operator(given).forward(np.arange(6.0)), dense @ np.arange(6.0))
            assert np.array_equal(given.toarray(), dense)
    # Entries after the last row, places that are given twice, and a diagonal that lies outside are SciPy's own.
    spare = scipy.sparse.csr_array((np.ones(3), [0, 1, 2], [0, 1, 2, 3]), shape=(3, 3))
    spare.data, spare.indices = np.ones(5), np.array([0, 1, 2, 0, 0])
    assert np.array_equal(as_operator(spare).forward(np.arange(3.0)), np.arange(3.0))
    assert len(spare.data) == 5
    twice = scipy.sparse.coo_array((np.ones(2), ([0, 0], [1, 1])), shape=(2, 2))
    assert as_operator(twice).forward(np.ones(2)).tolist() == [2.0, 0.0]
    outside = scipy.sparse.dia_array((np.ones((2, 3)), [0, 40]), shape=(3, 3))
    assert np.array_equal(as_operator(outside).forward(np.arange(3.0)), np.arange(3.0))


def test_a_graph_is_looked_at_before_it_is_written_out():
    damaged = scipy.sparse.coo_array(np.eye(3))
    damaged.row[0] = 10_000_000
    with pytest.raises(InputError, match=r"^consensus: graph: .* damaged"):
        gossip_matrix(damaged)
    with pytest.raises(InputError, match="expected a square matrix"):
        gossip_matrix(scipy.sparse.coo_array((ROWS, COLUMNS)))
    with pytest.raises(InputError, match="agents; expected at most"):
        gossip_matrix(scipy.sparse.eye_array(ROWS))
