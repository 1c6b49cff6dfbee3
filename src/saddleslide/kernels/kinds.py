"""Numbers that stand for sets and simple terms inside compiled loops, and sizes that they share."""

from __future__ import annotations

# Sets. An interval is a box whose sides are numbers.
FULL, INTERVAL, BOX, BALL, SIMPLEX = range(5)
# Simple terms: none, the same for all entries, each entry its own.
NO_TERM, ALIKE, ENTRIES = range(3)
# What the steps of a coupling's level may leave out: products at a start with x = 0 or y = 0, and the last correction.
ZERO_X, ZERO_Y, LAST = 1, 2, 4
# Rows of a sparse matrix that are summed side by side.
TILE = 32
