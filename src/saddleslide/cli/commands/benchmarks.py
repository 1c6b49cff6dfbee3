"""`synthetic` and `tomography`: the paper's instances, realistic ones, and the user's own sinogram."""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from saddleslide.cli.commands.tasks import Entry, positive, whole
from saddleslide.errors import InputError
from saddleslide.gallery import choose_weight, realistic_tomography, reconstruct, synthetic, tomography
from saddleslide.gallery.files import read_archive, read_array, read_dense
from saddleslide.gallery.tomography import REGIMES
from saddleslide.methods.metric_choice import METRICS
from saddleslide.problem import SaddleProblem

INSTANCES = ("low_dose", "low_dose_128", "strong_tv", "sparse_view", "poisson")
_SMALLEST_PICTURE = 8


def _add_synthetic(one: Any) -> None:
    one.add_argument("--nu-x", type=float, default=0.75, help="Hölder exponent of f, 0 to 1 (default 0.75)")
    one.add_argument("--nu-y", type=float, default=0.25, help="Hölder exponent of g, 0 to 1 (default 0.25)")
    one.add_argument("--seed", type=whole(0), default=0, help="instance (default 0)")
    one.add_argument("--adaptive", action="store_true", help="use the adaptive method in place of the paper's plan")


def _add_tomography(one: Any) -> None:
    kind = one.add_mutually_exclusive_group()
    kind.add_argument("--regime", choices=REGIMES, help="the paper's benchmark with this dual function (default)")
    kind.add_argument("--instance", choices=INSTANCES, help="a realistic instance")
    kind.add_argument("--sinogram", metavar="FILE", help="your own projections, (angles, bins)")
    one.add_argument("--picture", type=int, choices=(0, 1, 2), help="object of the benchmark: head, disks, rectangles")
    one.add_argument("--size", type=whole(_SMALLEST_PICTURE), help="pixels per side (default 64, or the instance's)")
    one.add_argument("--seed", type=whole(0), default=1, help="seed of the noise (default 1)")
    one.add_argument("--metric", choices=METRICS, default="auto", help="norm of the block of x (default auto)")
    own = one.add_argument_group("with --sinogram")
    own.add_argument("--angles", metavar="FILE", help="radians, one per row (those in the archive, else pi k / rows)")
    own.add_argument("--degrees", action="store_true", help="the angles are in degrees")
    own.add_argument("--spacing", type=positive, help="width of a bin in pixels (the detector spans the diagonal)")
    own.add_argument("--weight", type=positive, help="weight of the total variation (chosen by the noise)")
    own.add_argument("--noise", type=positive, help="standard deviation of the data (estimated)")
    own.add_argument("--huber", type=positive, default=1e-3, help="square differences below this (1e-3)")
    own.add_argument("--intensity", type=positive, help="the sinogram holds photon counts; this many without an object")


def _tomography(chosen: argparse.Namespace) -> SaddleProblem:
    if chosen.picture is not None and (chosen.instance or chosen.sinogram):
        other = "--instance" if chosen.instance else "--sinogram"
        raise InputError(f"argument --picture: not allowed with argument {other}, which has its own object.")
    if chosen.sinogram is not None:
        return _own_sinogram(chosen)
    if chosen.instance is not None:
        return realistic_tomography(chosen.instance, seed=chosen.seed, n=chosen.size)
    return tomography(chosen.regime or REGIMES[0], seed=chosen.seed, picture=chosen.picture or 0, n=chosen.size or 64)


def _own_sinogram(chosen: argparse.Namespace) -> SaddleProblem:
    stored = read_archive(chosen.sinogram)
    sinogram = stored["sinogram"] if "sinogram" in stored else read_dense(chosen.sinogram)
    if chosen.angles is None and "angles" not in stored:
        rows = np.shape(sinogram)[0] if np.shape(sinogram) else 0
        angles: Any = np.arange(rows) * np.pi / max(rows, 1)
    else:
        angles = stored["angles"] if chosen.angles is None else read_array(chosen.angles)
        angles = np.deg2rad(angles) if chosen.degrees else angles
    settings: dict[str, Any] = {
        "shape": chosen.size, "spacing": chosen.spacing, "huber": chosen.huber, "intensity": chosen.intensity,
    }  # fmt: skip
    truth, weight = stored.get("truth"), chosen.weight
    if truth is not None and (chosen.size is None or np.shape(truth) == (chosen.size, chosen.size)):
        settings |= {"truth": truth, "shape": np.shape(truth)}
    if weight is None:
        weight = choose_weight(lambda w: reconstruct(sinogram, angles, w, **settings), noise=chosen.noise).weight
    return reconstruct(sinogram, angles, weight, **settings)


SYNTHETIC = Entry(
    "synthetic", "Hölder powers on boxes, coupled by a matrix (the paper's instances)", 0.5, _add_synthetic,
    lambda chosen: synthetic(chosen.nu_x, chosen.nu_y, seed=chosen.seed),
    examples=("", "--nu-x 1 --nu-y 0.5 --tol 0.25 --seed 2", "--adaptive --tol 1e-3"),
    report="--out synthetic",
)  # fmt: skip
TOMOGRAPHY = Entry(
    "tomography", "a picture from its projections, with (Huber) total variation", 1e-5, _add_tomography, _tomography,
    examples=("--size 32", "--regime nonlocal --picture 1 --seed 2 --size 16", "--instance sparse_view --size 32"),
    report="""--instance low_dose --size 32 --out low_dose

your own projections, here those that the line above has written, with the weight chosen by the noise:
  saddleslide solve tomography --sinogram low_dose/arrays.npz --out mine
  saddleslide solve tomography --sinogram low_dose/arrays.npz:sinogram --weight 2.5e-4 --size 32""",
    own="""--sinogram takes a .npz with `sinogram`, `angles` and perhaps `truth`, or an array in a .npy, .csv, .txt or
.npz file (name.npz:key picks one of several arrays)
""",
    relative=True,
)  # fmt: skip
