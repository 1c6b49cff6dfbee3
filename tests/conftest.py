"""What every test relies on."""

from __future__ import annotations

import signal

import pytest


@pytest.fixture(scope="session", autouse=True)
def _ctrl_c_is_heard():
    """Test processes that run side by side ignore Ctrl-C, and so would the programs that they start."""
    previous = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, previous)
