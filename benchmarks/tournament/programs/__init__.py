"""Programs of the tournament; each runs in its peer's environment and sees NumPy, SciPy and its peer only."""
