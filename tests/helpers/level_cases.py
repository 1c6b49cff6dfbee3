"""Operators, sets, simple terms and norms that an innermost level may meet."""

import numpy as np
import scipy.sparse

import saddleslide as ss
from saddleslide.metrics import Blocks, Diagonal, Spectral
from saddleslide.theory import Term, place

ROWS, COLUMNS = 4, 6

PICTURE, FIELD = (ROWS, COLUMNS), (2, ROWS, COLUMNS)

RNG = np.random.default_rng(21)

Q = ss.functions

DENSE = RNG.standard_normal((2 * ROWS * COLUMNS, ROWS * COLUMNS)) / 6.0

COUPLINGS = {
    "differences": ss.operators.FiniteDifferences(PICTURE),
    "dense": ss.operators.Matrix(DENSE, PICTURE, FIELD),
    "sparse": ss.operators.Matrix(scipy.sparse.csr_array(np.where(np.abs(DENSE) > 0.2, DENSE, 0.0)), PICTURE, FIELD),
}


def entries(shape):
    return np.random.default_rng(len(shape)).uniform(0.2, 2.0, shape)


def terms(shape):
    """Simple terms of every known kind; on sets that couple entries the first two alone."""
    slope = np.random.default_rng(7).standard_normal(shape)
    return {
        "nothing": Q.Zero(),
        "number": Q.Quadratic(0.8) + Q.Linear(slope),
        "entries": Q.Quadratic(entries(shape), diagonal=True),
        "absolute": Q.Power(0.0, weight=0.3) + Q.Linear(0.2 * slope),
        "root": Q.Power(0.5, weight=0.4) + Q.Quadratic(0.1) + Q.Linear(slope),
        "both": Q.Power(0.5, weight=0.4) + Q.Power(0.0, weight=0.1) + Q.Quadratic(entries(shape), diagonal=True),
    }


def sets(shape):
    rng = np.random.default_rng(5)
    return {
        "full": ss.domains.FullSpace(shape),
        "interval": ss.domains.Box(-0.2, 0.3, shape=shape),
        "box": ss.domains.Box(-0.3 * rng.uniform(size=shape), 0.3 * rng.uniform(size=shape)),
        "ball": ss.domains.Ball(0.7, shape=shape),
        "simplex": ss.domains.Simplex(shape),
    }


METRICS = {
    "none": None,
    "blocks": Blocks(1.7, 1.0),
    "diagonal": Diagonal(entries(PICTURE)),
    "cosine": Spectral(entries(PICTURE)),
    "fourier": Spectral(np.full(PICTURE, 1.7), basis="fft"),
}

LEVELS = place(
    [
        Term("f", ss.Holder(1.0, 2.0), weights=(1.0, 0.0)),
        Term("g", ss.Holder(1.0, 1.0), weights=(0.0, 1.0)),
        Term("B", M=3.0, weights=(0.5, 2.0)),
    ],
    (3, 2, 5),
)
