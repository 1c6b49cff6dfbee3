"""What every test relies on."""

from __future__ import annotations

import importlib.util
import os
import signal

# Before NumPy is loaded, and for the programs that tests start. On small matrices the threads of BLAS mostly wait for
# each other, and beside other test processes that takes many times the work itself.
for _library in ("OMP", "OPENBLAS", "MKL"):
    os.environ.setdefault(f"{_library}_NUM_THREADS", "1")

# Most tests ask what is computed, not how fast: compiling for all of them would take a new machine minutes. Those of
# compiled kernels switch it on; `SADDLESLIDE_JIT=1 pytest` does for all.
os.environ.setdefault("SADDLESLIDE_JIT", "0")

import pytest  # noqa: E402
from hypothesis import HealthCheck, settings  # noqa: E402

from saddleslide.kernels.switch import jit  # noqa: E402

# The same examples in every run, and no time limits: what fails does so again, on a busy machine too.
# `pytest --hypothesis-profile=random` draws others.
settings.register_profile("random", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("steady", settings.get_profile("random"), derandomize=True)
settings.load_profile("steady")


# Tests that compile: one process runs them all, so that no kernel is compiled twice.
COMPILED = (
    "tests/kernels/",
    "tests/methods/test_adaptive_state.py",
    "tests/methods/test_coupling_loop.py",
    "tests/methods/test_innermost.py",
    "tests/methods/test_primal_dual_level.py",
    "tests/methods/test_thrift.py",
    "tests/methods/test_transcriptions.py",
    "tests/oracles/test_known_products.py",
)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Processes share out files, in their order: long ones come before the many short ones of the last folders."""
    from xdist.scheduler import LoadScopeScheduling

    class ByFile(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            return "compiled" if nodeid.startswith(COMPILED) else nodeid.partition("::")[0]

    config.option.loadscopereorder = False
    return ByFile(config, log)


def pytest_collection_modifyitems(items):
    """Examples of clusters are skipped without Dask; in CI, where the extra `test` has it, that is a failure."""
    items.sort(key=lambda item: not item.nodeid.startswith(COMPILED))
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


@pytest.fixture(scope="module")
def compiled():
    """Compiled kernels are used, whatever the environment says."""
    with jit(True):
        yield


@pytest.fixture(scope="module", params=[False, True], ids=["NumPy", "compiled"])
def either_way(request):
    """The twins of compiled kernels are used, and then the kernels."""
    with jit(request.param):
        yield
