"""A virtual environment for every peer. What can not be installed is a reason, never an error."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

# The peers must not see the package or its environment.
CLEAN = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"} | {"OMP_NUM_THREADS": "1"}


def environment(package: str, folder: Path) -> tuple[Path, str]:
    """The interpreter beside NumPy, SciPy and a package, and why it is not available ("" where it is)."""
    home = (folder / (package or "numpy")).absolute()
    python = home / "bin" / "python"
    done = home / "installed"
    if done.exists():
        return python, ""
    install = [str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check", "numpy", "scipy"]
    for command in ([sys.executable, "-m", "venv", str(home)], [*install, *([package] if package else [])]):
        reason = complaint(command, 600.0)
        if reason:
            return python, f"not available: {reason}"
    done.touch()
    return python, ""


def complaint(command: list[str], seconds: float) -> str:
    """Runs a command; the last line it complained with, "" where it succeeded."""
    try:
        ended = subprocess.run(command, capture_output=True, text=True, timeout=seconds, env=CLEAN)
    except subprocess.TimeoutExpired:
        return f"no end after {seconds:g} s"
    except OSError as error:
        return str(error.strerror)
    if ended.returncode == 0:
        return ""
    lines = ended.stderr.strip().splitlines() or [f"exit code {ended.returncode}"]
    return lines[-1][:200]
