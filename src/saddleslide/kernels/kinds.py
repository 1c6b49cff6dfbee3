"""Numbers that stand for couplings and sets inside compiled loops."""

from __future__ import annotations

# Sets. An interval is a box whose sides are numbers.
FULL, INTERVAL, BOX, BALL, SIMPLEX = range(5)
# Couplings.
DIFFERENCES, SPARSE, DENSE = range(3)
