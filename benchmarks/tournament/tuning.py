"""The peers of the tournament and the grids of their settings."""

from __future__ import annotations

from pathlib import Path

from benchmarks.arena.tuning import Peer

TARGETS = (1e-4, 1e-5, 1e-6)
PROGRAMS = Path(__file__).parent / "programs"
YES, NO, BOTH = (True,), (False,), (False, True)
RHO = (0.001, 0.003, 0.0003, 0.01, 0.0001, 0.03, 0.1)
RATIO, SCALE = (3.0, 10.0, 1.0, 30.0, 100.0), (0.06, 0.2, 0.02)
# Settings that are likely to be good come first, so that the others get less time.
PEERS = (
    Peer("SciPy L-BFGS", PROGRAMS / "picture_lbfgs.py", "", (
        {"spectral": YES, "tv": (0.0, 0.01), "corrections": (10, 30)},
        {"spectral": NO, "tv": (0.0,), "corrections": (10, 30)},
    )),
    Peer("ADMM, warm CG", PROGRAMS / "picture_admm.py", "", (
        {"spectral": YES, "steps": (1, 2, 4), "relax": (1.6, 1.0), "rho": RHO},
        {"spectral": NO, "steps": (5,), "relax": (1.6,), "rho": RHO},
    )),
    Peer("PyProximal PrimalDual", PROGRAMS / "picture_pyproximal.py", "pyproximal", (
        {"spectral": YES, "scale": SCALE, "ratio": RATIO},
        {"spectral": NO, "scale": SCALE, "ratio": RATIO},
    )),
    Peer("ODL pdhg", PROGRAMS / "picture_odl.py", "odl", (
        {"spectral": YES, "accelerated": BOTH, "scale": SCALE, "ratio": RATIO},
        {"spectral": NO, "accelerated": YES, "scale": SCALE, "ratio": RATIO},
    )),
)  # fmt: skip
