"""What every test relies on."""

from __future__ import annotations

import importlib.util
import os
import signal

# Before NumPy is loaded, and for the programs that tests start. On small matrices the threads of BLAS mostly wait for
# each other, and beside other test processes that takes many times the work itself.
for _library in ("OMP", "OPENBLAS", "MKL"):
    os.environ.setdefault(f"{_library}_NUM_THREADS", "1")

import pytest  # noqa: E402
from hypothesis import HealthCheck, settings  # noqa: E402

# The same examples in every run, and no time limits: what fails does so again, on a busy machine too.
# `pytest --hypothesis-profile=random` draws others.
settings.register_profile("random", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("steady", settings.get_profile("random"), derandomize=True)
settings.load_profile("steady")


def pytest_collection_modifyitems(items):
    """Examples of clusters are skipped without Dask; in CI, where the extra `test` has it, that is a failure."""
    if os.environ.get("CI") == "true" or importlib.util.find_spec("distributed") is not None:
        return
    for item in items:
        if item.path.parent.name == "distributed":
            item.add_marker(pytest.mark.skip(reason="install the extra test"))


@pytest.fixture(scope="session", autouse=True)
def _ctrl_c_is_heard():
    """Test processes that run side by side ignore Ctrl-C, and so would the programs that they start."""
    previous = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, previous)
