"""Numbers that stand for couplings, sets and simple terms inside compiled loops."""

from __future__ import annotations

# Sets. An interval is a box whose sides are numbers.
FULL, INTERVAL, BOX, BALL, SIMPLEX = range(5)
# Couplings.
DIFFERENCES, SPARSE, DENSE = range(3)
# Simple terms: none, the same for all entries, each entry its own.
NO_TERM, ALIKE, ENTRIES = range(3)
