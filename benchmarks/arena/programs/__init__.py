"""Programs of the peers; each runs in an environment of its own and sees NumPy, SciPy and its peer only."""
