"""What every test relies on."""

from __future__ import annotations

import importlib.util
import os
import pkgutil
import re
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

import saddleslide  # noqa: E402
import support  # noqa: E402
from saddleslide.kernels.switch import jit  # noqa: E402

# pytest reads a file with doctests by itself; where its room is not loaded yet, that loads the file too, and there are
# two of each class. Walking through the rooms loads them.
list(pkgutil.walk_packages(saddleslide.__path__, "saddleslide."))

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
    """Processes share out files, in their order: long ones come before the many short ones of the last folders.

    What was left out falls into two parts: clusters, and arrays of other libraries, which take long to import.
    """
    from xdist.scheduler import LoadScopeScheduling

    class ByFile(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            if nodeid.startswith(("tests/distributed/", "src/saddleslide/distributed/")):
                return "clusters"
            if config.getoption("left_out"):
                return "libraries"
            return "compiled" if nodeid.startswith(COMPILED) else nodeid.partition("::")[0]

    config.option.loadscopereorder = False
    return ByFile(config, log)


# Doctests that need a package.
DOCTESTS = {
    **{
        f"saddleslide.distributed.{name}": "distributed"
        for name in (
            "cluster.connect", "consensus.consensus", "dask_matrix.dask_coupling", "dask_sum.DaskSum", "shards.spread",
        )
    },
    "saddleslide.operators.transforms.Wavelet": "pywt",
    "saddleslide.functions.foreign.from_pyproximal": "pyproximal",
}  # fmt: skip
LEFT_OUT = "saddleslide/left_out"


def pytest_addoption(parser):
    parser.addoption(
        "--left-out", action="store_true", help="run what the last run skipped since packages were missing"
    )


def pytest_configure(config):
    if config.getoption("left_out"):
        # What is missing now is a failure.
        support.SKIPS = False
        config.args = config.cache.get(LEFT_OUT, []) or pytest.exit("the last run left out nothing", 0)


def pytest_collection_modifyitems(items):
    items.sort(key=lambda item: not item.nodeid.startswith(COMPILED))
    for item in items:
        package = DOCTESTS.get(item.name)
        if package and support.SKIPS and importlib.util.find_spec(package) is None:
            item.add_marker(pytest.mark.skip(reason=support.MISSING.format(package)))


def pytest_terminal_summary(terminalreporter, config):
    """Which packages were missing, and how many tests for want of them; the next run can take them up."""
    missing = {report.nodeid: found for report in terminalreporter.stats.get("skipped", ())
               if (found := re.findall(support.MISSING.format(r"(\w+)"), str(report.longrepr)))}  # fmt: skip
    if not config.getoption("left_out") and config.pluginmanager.has_plugin("cacheprovider"):
        config.cache.set(LEFT_OUT, sorted(missing))
    if missing:
        packages = ", ".join(sorted({package for found in missing.values() for package in found}))
        terminalreporter.write_line(f"{len(missing)} tests are left out without {packages}.")
        terminalreporter.write_line('To run them too: pip install -e ".[test-all]", then pytest --left-out')


@pytest.fixture(scope="session", autouse=True)
def _ctrl_c_is_heard():
    """Test processes that run side by side ignore Ctrl-C, and so would the programs that they start."""
    previous = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, previous)


@pytest.fixture(scope="session", autouse=True)
def _disk_is_not_waited_for():
    """Thousands of checkpoints and rows are written: waiting for the disk took more time than they did."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", os.fstat)
        yield


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
