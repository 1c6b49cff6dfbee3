"""Small parts of the gallery: matrices of graphs, files of unknown kinds, quality of pictures, estimates of noise."""

from __future__ import annotations

import typing

import numpy as np
import pytest

import saddleslide as ss
from saddleslide.gallery.consensus import gossip_matrix
from saddleslide.gallery.files import read_archive, read_array, read_dense, read_matrix
from saddleslide.gallery.pictures import psnr
from saddleslide.gallery.tomography import estimate_noise


def test_a_weighted_graph_becomes_its_laplacian():
    assert gossip_matrix([[0, 2], [2, 0]]).tolist() == [[2.0, -2.0], [-2.0, 2.0]]


@pytest.mark.parametrize("read", [read_array, read_matrix, read_dense])
def test_a_file_of_an_unknown_kind_is_refused(read):
    with pytest.raises(ss.errors.InputError, match=r"has an unknown kind '\.xls'; expected one of \.csv, \.jpg, "):
        read("table.xls")
    assert read_archive("table.csv") == {}


def test_quality_and_noise():
    assert round(psnr(np.full(4, 0.1), np.zeros(4)), 9) == 20.0
    assert abs(estimate_noise(np.random.default_rng(0).standard_normal((50, 60))) - 1.0) < 0.05
    problem = ss.gallery.denoise(np.full((2, 2), 0.1), weight=0.1)
    assert round(problem.read(ss.solve(problem, tol=1e-9)).psnr(np.zeros((2, 2))), 1) == 20.0


LEAST = ss.functions.Quadratic(1.0)


@pytest.mark.parametrize(("name", "given"), [
    ("matrix_game", ([[1.0]],)), ("synthetic", ()), ("kuhn_poker", ()), ("transport", ([[1.0]], [1.0], [1.0])),
    ("tomography", ()), ("denoise", (np.eye(4), 0.1)), ("constrained", (LEAST, np.ones((1, 2)), [1.0])),
    ("consensus", ([LEAST, LEAST], [[0, 1], [1, 0]], 1)),
])  # fmt: skip
def test_types_say_what_read_answers_with(name, given):
    make = getattr(ss.gallery, name)
    problem = make(*given)
    found = ss.Result(*problem.start(), ss.Status.SOLVED, ss.Certificate(0.0, 1.0, "exact"), ss.Calls(), 0.0, ())
    said = typing.get_type_hints(make)["return"]
    assert typing.get_origin(said) is ss.SaddleProblem
    assert typing.get_args(said) == (type(problem.read(found)),)
