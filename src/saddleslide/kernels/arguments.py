"""What kernels take: kinds of arrays, and the named tuples that hold them together; the types of compiled code follow.

An annotation says all that a kernel must know: `building` reads the fields of these tuples and the parameters of a
kernel, so that nothing is stated twice. Numba is not needed here.
"""

from __future__ import annotations

from typing import Annotated, Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

# Sets. An interval is a box whose sides are numbers.
FULL, INTERVAL, BOX, BALL, SIMPLEX = range(5)
# Simple terms: none, the same for all entries, each entry its own.
NO_TERM, ALIKE, ENTRIES = range(3)
# What the steps of a coupling's level may leave out: products at a start with x = 0 or y = 0, and the last correction.
ZERO_X, ZERO_Y, LAST = 1, 2, 4
# Groups of differences that are one number each.
APART = 0
# Rows of a sparse matrix that are summed side by side.
TILE = 32

# What is only read may be write-protected. All arrays are contiguous, and vectors are flat.
Array: TypeAlias = npt.NDArray[np.float64]
Read: TypeAlias = Annotated[Array, "read"]
Write: TypeAlias = Annotated[Array, "write"]
ReadMatrix: TypeAlias = Annotated[Array, "read matrix"]
WriteMatrix: TypeAlias = Annotated[Array, "write matrix"]
# Columns of a sparse matrix in 16 or 32 bits, and positions of its entries.
Columns: TypeAlias = Annotated[Any, "columns"]
Starts: TypeAlias = Annotated[Any, "starts"]
NewColumns: TypeAlias = Annotated[Any, "new columns"]
NewStarts: TypeAlias = Annotated[Any, "new starts"]
Edges: TypeAlias = Annotated[npt.NDArray[np.int64], "edges"]
Offsets: TypeAlias = Annotated[npt.NDArray[np.int32], "offsets"]


class KnownSet(NamedTuple):
    """A set of one of the kinds above; sides of a box, radius and center of a ball."""

    kind: int
    lower: Read
    upper: Read
    radius: float
    center: Read


class KnownTerm(NamedTuple):
    """The sum of stiffness/2 x^2 + threshold |x| + root |x|^(3/2) / (3/2) + linear x over the entries.

    All of it is divided by the metric's weight of the entry.
    """

    kind: int
    stiffness: Read
    threshold: Read
    root: Read
    linear: Read


class Rows(NamedTuple):
    """A sparse matrix by rows: the entries of row i are those from starts[i] to starts[i + 1]."""

    data: Read
    columns: Columns
    starts: Starts


class Pairs(Rows):
    """The same in pairs of neighbouring columns: two entries of `data` for each column, that of the left one."""


class Patterns(NamedTuple):
    """Runs of rows that are alike: run r begins at row begins[r] and has the pattern numbers[r].

    Pattern p has the offsets from the diagonal and the weights from starts[p] to starts[p + 1].
    """

    begins: Edges
    numbers: Edges
    starts: Edges
    offsets: Offsets
    weights: Read


class Dense(NamedTuple):
    """B as a dense matrix."""

    matrix: ReadMatrix


class Sparse(NamedTuple):
    """B as a sparse matrix, and B^T."""

    matrix: Rows
    transpose: Rows


class Differences(NamedTuple):
    """B as the finite differences of a picture with so many rows and columns."""

    rows: int
    columns: int


class Grid(NamedTuple):
    """Differences on a grid between a quadratic f on an interval, and balls of groups of differences or an interval.

    f(x) is the sum of stiffness/2 x^2 + linear x over the entries, between `low` and `high`; g is bend/2 |y|^2. At a
    point of the grid are `values` numbers; `lines` along the last axis are a row. A group has the differences along all
    axes of `group` of these: 1 or all; `APART` are all differences, each at most `radius` in size.
    """

    sizes: Edges
    values: int
    stiffness: Read
    linear: Read
    low: float
    high: float
    bend: float
    radius: float
    group: int
    lines: int


# `Rows` or `Pairs`; one of the last three. Kernels are compiled for each apart: products are much of what there is.
KnownRows: TypeAlias = Annotated[Any, "rows"]
KnownOperator: TypeAlias = Annotated[Any, "coupling"]


class Blocks(NamedTuple):
    """Sets and simple terms of z = (x, y), where x has n entries."""

    n: int
    X: KnownSet
    Y: KnownSet
    f: KnownTerm
    g: KnownTerm


class Parts(NamedTuple):
    """Everything about a problem that the coupling's level takes along: `Blocks`, entries of P^-1 or none, and B."""

    n: int
    X: KnownSet
    Y: KnownSet
    f: KnownTerm
    g: KnownTerm
    inverse: Read
    coupling: KnownOperator


# What Python hands over are `Blocks`; other kernels, `Parts`.
SomeBlocks: TypeAlias = Annotated[Blocks | Parts, "blocks"]


class Level(NamedTuple):
    """Some steps of a level: their weights alpha, and what they may leave out, as the bits above."""

    Gamma: float
    step: float
    own: Read
    alphas: Read
    spares: int


class Above(NamedTuple):
    """What the outer levels contribute: averages, weighted centres, linear terms, and one weight per block."""

    base: Read
    pull: Read
    slope: Read
    weights: Read


class Buffers(NamedTuple):
    """Vectors of the size of z to work in: the outer levels as one vector, z - z~, and Q."""

    fold: Write
    moved: Write
    q: Write


class Factors(NamedTuple):
    """One step of a block: out = a z + b (fold - q) with this weight in the base case, and the correction by c q."""

    a: float
    b: float
    c: float
    weight: float
    alpha: float


class Anchoring(NamedTuple):
    """beta_x, beta_y, f'(x_in) and g'(y_in), and Q at the points of an anchored level, as `AnchorTerms` keeps it."""

    beta_x: float
    beta_y: float
    at_f: Read
    at_g: Read
    here: Write
    point: Write
    average: Write
    base: Write


class Bands(NamedTuple):
    """Rows of a picture that are done at once, and steps that share a pass over it."""

    height: int
    together: int


class PictureBuffers(NamedTuple):
    """The same as `Buffers` for a picture: `moved` for the bands at work, dual entries at the ends, a row of zeros."""

    fold: Write
    moved: Write
    ends: Write
    nothing: Read


class DualBuffers(NamedTuple):
    """For primal-dual steps: the last step of y, the fold, scratch, and what the margins of a picture need."""

    lag: Write
    fold: Write
    scratch: Write
    margins: Write


class PrimalUpdate(NamedTuple):
    """The primal step on a coupling problem, from base - B^T y + near X; progress is weighted."""

    base: Read
    origin: Read
    near: Read
    inverse: Read
    weight: Read


class DualUpdate(NamedTuple):
    """The dual step on a coupling problem, from weight y + B x + constant."""

    constant: Read
    origin: Read
    inverse: Read
    weight: float


class Curve(NamedTuple):
    """Weights of |x| and of |x|^(3/2) / (3/2)."""

    threshold: float
    root: float
