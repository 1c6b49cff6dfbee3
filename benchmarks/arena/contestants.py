"""The peers: programs, what each is tuned over, and the environment that it runs in."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from benchmarks.arena.tuning import Peer

PROGRAMS = Path(__file__).parent / "programs"
RATIOS = {"ratio": (1.0, 10.0, 0.1, 100.0, 0.01)}


def peer(name: str, stem: str, package: str = "", seconds: float = 2.0, **grid: tuple[Any, ...]) -> Peer:
    return Peer(name, PROGRAMS / f"{stem}.py", package, (grid,), seconds)


# Settings that are likely to be good come first, so that the others get less time.
TOLERANCES = {"tolerance": (1e-4, 1e-2, 1e-3, 1e-6, 1e-8, 1e-10)}
# Peers that are likely to be quick come first too.
PEERS = (
    peer("L-BFGS-B", "lbfgs", corrections=(10, 30)),
    peer("FISTA", "fista"),
    peer("Krylov or factor", "krylov", way=("factor", "minres")),
    peer("Clarabel", "clarabel_ip", "clarabel", 4.0, **TOLERANCES),
    peer("skglm", "skglm_model", "skglm", 4.0, **TOLERANCES),
    peer("scikit-learn", "sklearn_model", "scikit-learn", 4.0, **TOLERANCES),
    peer("POT", "transport_pot", "pot", 4.0, **TOLERANCES),
    peer("HiGHS", "highs", "highspy", 4.0, tolerance=("choose", "ipm")),
    peer("ADMM, warm CG", "admm", relax=(1.6,), steps=(5, 2), rho=(0.1, 1.0, 0.01, 10.0, 0.001, 100.0)),
    peer("PDHG, restarted", "pdhg", kind=("restarted", "accelerated"), **RATIOS),
    peer("PDLP", "pdlp", "ortools", 4.0, **TOLERANCES),
    peer("SCS", "scs_admm", "scs", 4.0, **TOLERANCES),
    peer("PyProximal", "pyproximal_pd", "pyproximal", **RATIOS),
    peer("ODL", "odl_pdhg", "odl", **RATIOS),
)
