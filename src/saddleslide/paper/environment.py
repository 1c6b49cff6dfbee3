"""The processor's own name, where the system tells it."""

from __future__ import annotations

import platform
from pathlib import Path

_LINUX = Path("/proc/cpuinfo")


def machine() -> str:
    """The processor, in the words of the system.

    Examples
    --------
    >>> len(machine()) > 0
    True
    """
    if _LINUX.exists():
        for line in _LINUX.read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    return platform.processor() or platform.machine() or "unknown"
