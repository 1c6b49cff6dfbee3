"""A headless Chromium for tests that look at pages: where it is, and what it says."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--hide-scrollbars", "--enable-logging=stderr", "--v=0",
)  # fmt: skip


def find_browser():
    """The browser's path. Without one the test is skipped, in CI it fails."""
    found = next((path for name in NAMES if (path := shutil.which(name))), None)
    if found is None and os.environ.get("CI") == "true":
        pytest.fail("CI has no Chromium; .ci/run installs it where apt-get can")
    if found is None:
        pytest.skip(f"no browser found: none of {', '.join(NAMES)} is on the PATH")
    return found


def opened(page, *arguments, query=""):
    """Standard output of the browser after it has opened a page, and what it logged to the console."""
    with tempfile.TemporaryDirectory() as profile:
        address = page.resolve().as_uri() + f"?{query}" * bool(query)
        command = [find_browser(), *FLAGS, f"--user-data-dir={profile}", *arguments, address]
        done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=True)
    return done.stdout, [line for line in done.stderr.splitlines() if ":CONSOLE" in line]
