"""A virtual environment for every peer. What can not be installed is a reason, never an error."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
# The peers must not see the package or its environment.
CLEAN = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"} | {"OMP_NUM_THREADS": "1"}


@dataclass(frozen=True)
class Peer:
    """A program, what it needs, and the settings that are tried for it.

    Parameters
    ----------
    name : str
        As shown.
    program : Path
        Script that turns a problem into points.
    packages : tuple of str
        What pip installs for it.
    settings : tuple of str
        Step sizes to try; the one that gets furthest counts.
    seconds : float
        Most time of one run.
    """

    name: str
    program: Path
    packages: tuple[str, ...]
    settings: tuple[str, ...] = ("",)
    seconds: float = 3.0


SCRIPTS = HERE / "programs"
STEPS = ("0.01", "0.1", "1", "10", "100", "1000")
PENALTIES = ("0.0001", "0.001", "0.01", "0.1", "1", "10")
PEERS = (
    Peer("SciPy L-BFGS-B", SCRIPTS / "lbfgs.py", ()),
    Peer("ADMM, warm CG", SCRIPTS / "admm.py", (), PENALTIES),
    Peer("PyProximal PrimalDual", SCRIPTS / "pyproximal_pd.py", ("pyproximal",), STEPS),
    Peer("ODL pdhg", SCRIPTS / "odl_pdhg.py", ("odl",), STEPS),
    Peer("HiGHS", SCRIPTS / "highs.py", ("highspy",), seconds=6.0),
    Peer("Clarabel", SCRIPTS / "clarabel_ip.py", ("clarabel",), seconds=8.0),
    Peer("SCS", SCRIPTS / "scs_admm.py", ("scs",), seconds=6.0),
    Peer("OR-tools PDLP", SCRIPTS / "pdlp.py", ("ortools",), seconds=6.0),
)


def environment(peer: Peer, folder: Path) -> tuple[Path, str]:
    """The peer's interpreter, and why it is not available ("" where it is)."""
    home = (folder / peer.program.stem).absolute()
    python = home / "bin" / "python"
    done = home / "installed"
    if done.exists():
        return python, ""
    install = [str(python), "-m", "pip", "install", "-q", "--disable-pip-version-check", "numpy", "scipy"]
    for command in ([sys.executable, "-m", "venv", str(home)], [*install, *peer.packages]):
        reason = complaint(command, 600.0)
        if reason:
            return python, f"not available: {reason}"
    done.touch()
    return python, ""


def complaint(command: list[str], seconds: float, **named: object) -> str:
    """Runs a command; the last line it complained with, "" where it succeeded."""
    given = {"env": CLEAN, **named}
    try:
        ended = subprocess.run(command, capture_output=True, text=True, timeout=seconds, **given)
    except subprocess.TimeoutExpired:
        return f"no end after {seconds:g} s"
    except OSError as error:
        return str(error.strerror)
    if ended.returncode == 0:
        return ""
    lines = ended.stderr.strip().splitlines() or [f"exit code {ended.returncode}"]
    return lines[-1][:200]
