"""The helpers that list cases: no pair is left out, and no failing case goes unnamed."""

import itertools

import numpy as np
import pytest

from support import covering_rows, gathered, pairwise


@gathered("sizes", [(3, 2), (2, 3, 4), (6, 6, 3, 2), (5, 1, 4), (2, 2, 2, 2, 2), (4,) * 4])
def test_any_two_values_of_any_two_columns_meet(sizes):
    rows = np.array(covering_rows([range(size) for size in sizes]))
    for i, j in itertools.combinations(range(len(sizes)), 2):
        assert {tuple(pair) for pair in rows[:, [i, j]].tolist()} == set(
            itertools.product(range(sizes[i]), range(sizes[j]))
        )
    largest = sorted(sizes)[-2:]
    assert len(rows) == len({tuple(row) for row in rows.tolist()}) <= 1.5 * largest[0] * largest[1]


MET: set[tuple] = set()


@pairwise(letter="ab", number=[1, 2], sign=[True, False])
def test_rows_come_under_the_names_of_their_columns(letter, number, sign):
    MET.update([("letter", letter, number), ("sign", sign, number), (letter, sign)])


@pairwise(letter="ab", number=[1, 2])
def test_every_pair_has_been_run(letter, number):
    assert {("letter", letter, number), ("sign", True, number), (letter, True), (letter, False)} <= MET


def test_every_failing_case_is_named_and_all_are_run():
    seen = []

    @gathered("n", range(5))
    @gathered("sign, word", [(1, "up"), pytest.param(-1, "down")], ids=["plus", "minus"])
    def positive(n, sign, word, rng):
        seen.append((n, word, rng.uniform()))
        with pytest.raises(ValueError, match="negative"):
            raise ValueError("negative" if n * sign < 3 else "large")

    with pytest.raises(AssertionError) as caught:
        positive(rng=np.random.default_rng(0))
    assert len(seen) == 10 and len({draw for _, _, draw in seen}) == 1
    assert str(caught.value).startswith("2 of 5 cases fail\n3: AssertionError: 1 of 2 cases fail\nplus: AssertionError")

    @gathered("n", range(3))
    def unraised(n):
        with pytest.raises(ValueError):
            assert n != 1

    with pytest.raises(AssertionError, match="3 of 3 cases fail\n0: Failed: DID NOT RAISE"):
        unraised()
