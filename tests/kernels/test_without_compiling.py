"""A part of the suite once more with compiling off, in a process of its own: the NumPy twins carry a whole run."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from saddleslide.kernels.switch import jit_enabled

HERE = Path(__file__).parents[1]
# Transcriptions of the method, its memory, the steps of solve with what they count, and products with matrices.
FILES = (
    "methods/test_transcriptions.py",
    "operators/test_memory.py",
    "oracles/test_known_products.py",
    "kernels/test_passes.py",
    "kernels/test_alike_rows.py",
)


@pytest.mark.skipif(not jit_enabled(), reason="this process has compiling off already")
def test_the_core_of_the_suite_passes_with_compiling_off():
    command = [sys.executable, "-m", "pytest", "-n", "0", "-q", "-p", "no:cacheprovider", *FILES]
    environment = {**os.environ, "SADDLESLIDE_JIT": "0"}
    done = subprocess.run(command, cwd=HERE, env=environment, capture_output=True, text=True, timeout=1800)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-2000:]
    assert "passed" in done.stdout or "100%" in done.stdout
