"""`saddleslide doctor`: versions, threads, the cache of kernels. `saddleslide demo`: a picture and its proof."""

from __future__ import annotations

import argparse
import importlib.metadata
import importlib.util
import os
import platform
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table

import saddleslide
from saddleslide.api.solver import solve
from saddleslide.cli.reporting import summary
from saddleslide.errors import InputError
from saddleslide.gallery import parallel_beam, reconstruct, shaded_phantom
from saddleslide.kernels.switch import is_asked_for
from saddleslide.plots import require_matplotlib, save_figure
from saddleslide.runs.result import Result
from saddleslide.runs.terminal import Terminal

CORE = ("numpy", "scipy", "rich", "matplotlib", "numba")
EXTRAS = ("torch", "jax", "dask", "distributed", "pylops", "pyproximal", "odl", "pywavelets", "networkx")


def add_doctor(commands: Any) -> None:
    """The two commands that need no problem."""
    commands.add_parser("doctor", help="print versions, threads, and whether kernels are compiled")
    demo = commands.add_parser("demo", help="reconstruct a picture from noisy projections, and draw it")
    demo.add_argument("--out", type=Path, default=Path("saddleslide-demo.png"), metavar="FILE", help="the picture")


def find_version(package: str) -> str:
    """The version of a package that is installed; empty where it is not."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""


def list_findings() -> list[tuple[str, str]]:
    """What there is, a name and what is said of it."""
    rows = [
        ("saddleslide", f"{saddleslide.__version__}, in {Path(saddleslide.__file__).parent}"),
        ("Python", f"{platform.python_version()}, {platform.system()} {platform.machine()}"),
    ]
    rows += [(package, find_version(package) or "not installed") for package in CORE]
    rows += [(package, version) for package in EXTRAS if (version := find_version(package))]
    threads = [f"{name}={os.environ[name]}" for name in os.environ if name.endswith("_NUM_THREADS")]
    rows += [("processors", str(os.cpu_count())), ("threads", ", ".join(sorted(threads)) or "as the libraries choose")]
    if importlib.util.find_spec("numba") is None:
        compiled = "no: Numba is not installed, NumPy's twins run"
    elif is_asked_for():
        compiled = "yes, where the arrays are large enough"
    else:
        compiled = "no: switched off by SADDLESLIDE_JIT or NUMBA_DISABLE_JIT"
    rows.append(("kernels compiled", compiled))
    cache = Path(os.environ.get("NUMBA_CACHE_DIR") or Path(saddleslide.__file__).parent / "kernels" / "__pycache__")
    stored = sum(1 for _ in cache.rglob("*.nbc")) if cache.is_dir() else 0
    rows.append(("kernels on disk", f"{stored}, in {cache}"))
    return rows


def doctor_main() -> int:
    """Print what was found."""
    table = Table(title="saddleslide doctor", title_justify="left", show_header=False)
    for row in list_findings():
        table.add_row(*row)
    Terminal().print(table)
    return 0


def demo_main(chosen: argparse.Namespace) -> int:
    """Solve a tomography of 64 x 64 pixels, print the certificate, draw the picture."""
    require_matplotlib()
    if not chosen.out.absolute().parent.is_dir():
        raise InputError(f"demo: --out is {str(chosen.out)!r}; expected a file in a folder that is there.")
    truth, angles = shaded_phantom(64), np.linspace(0.0, np.pi, 60, endpoint=False)
    beams = parallel_beam(64, angles, bins=91)
    clean = beams.project(truth)
    sinogram = clean + 0.5 * np.random.default_rng(0).standard_normal(clean.shape)
    problem = reconstruct(sinogram, angles, weight=4e-4, truth=truth)
    result = solve(problem, reduction=1e-4)
    solution = problem.read(result)
    Terminal().print(summary(result, {"PSNR, dB": round(solution.psnr(), 1)}))
    draw_demo(chosen.out, sinogram, solution.image, result)
    Terminal().print(f"picture: {chosen.out}", markup=False, highlight=False, soft_wrap=True)
    return 0 if result.success else 1


def draw_demo(path: Path, sinogram: Any, image: Any, result: Result) -> None:
    """What was measured, what came out, and how the certified gap fell."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10.0, 3.2), dpi=150, layout="constrained")
    measured, found, gaps = figure.subplots(1, 3)
    measured.imshow(sinogram, cmap="gray", aspect="auto")
    measured.set(title="60 noisy projections", xlabel="detector", ylabel="angle")
    found.imshow(image, cmap="gray")
    found.set(title="reconstruction", xticks=[], yticks=[])
    rows = [(moment.calls.f, moment.gap) for moment in result.history if np.isfinite(moment.gap)]
    gaps.semilogy(*zip(*rows, strict=True), "o-", color="#0072B2")
    gaps.axhline(result.known_target, color="0.6", linestyle="--")
    gaps.set(title="what is proved", xlabel="calls of f'", ylabel="certified gap")
    save_figure(figure, path)
