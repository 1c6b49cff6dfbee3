"""The clock of the tournament."""

from __future__ import annotations

import time

import numpy as np


def now() -> np.ndarray:
    """Wall and processor time."""
    return np.array([time.perf_counter(), time.process_time()])
