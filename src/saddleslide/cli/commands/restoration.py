"""`denoise`, `deblur` and `inpaint`: pictures from files, or a head with noise, blur or holes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from saddleslide.cli.commands.tasks import Entry, positive, whole
from saddleslide.errors import InputError
from saddleslide.gallery import blur, deblur, denoise, inpaint, read_picture, shaded_phantom
from saddleslide.gallery.files import read_dense
from saddleslide.gallery.restoration import DATA, TV
from saddleslide.problem import SaddleProblem

_NOISE = {"denoise": 0.1, "deblur": 0.01, "inpaint": 0.02}
_WEIGHT = {"denoise": 0.1, "deblur": 1e-3, "inpaint": 0.02}
_PICTURES = "a .png, .jpg, .npy or .csv file"


def _add_picture(one: Any, name: str) -> None:
    one.add_argument("--picture", metavar="FILE", help="a picture (.png, .jpg) or an array; a head when missing")
    weight = _WEIGHT[name]
    one.add_argument("--weight", type=positive, default=weight, help=f"weight of the total variation ({weight:g})")
    one.add_argument("--huber", type=positive, help="square differences below this (plain TV when missing)")
    one.add_argument("--tv", choices=TV, default=TV[0], help=f"how differences are added up ({TV[0]})")
    one.add_argument("--data", choices=DATA, default=DATA[0], help=f"how pictures are compared ({DATA[0]})")
    one.add_argument("--weights", metavar="FILE", help="how much each pixel counts: an array (all alike)")
    one.add_argument("--colour", action="store_true", help="keep the colours of a .png or .jpg (grey when missing)")
    one.add_argument("--nonnegative", action="store_true", help="also x >= 0")
    one.add_argument("--size", type=whole(4), default=64, help="pixels per side of the built-in picture (64)")
    one.add_argument("--seed", type=whole(0), default=0, help="seed of its noise (0)")


def _add_deblur(one: Any) -> None:
    _add_picture(one, "deblur")
    one.add_argument("--kernel", metavar="FILE", help="what the blur makes of one bright pixel: an array, odd sides")
    one.add_argument("--blur", type=positive, default=1.5, help="width of a Gaussian blur in place of a kernel (1.5)")


def _add_inpaint(one: Any) -> None:
    _add_picture(one, "inpaint")
    one.add_argument("--known", metavar="FILE", help="picture or array: above 0.5 where the picture is known")
    one.add_argument("--missing", type=positive, default=0.5, help="part of the built-in picture that is missing (0.5)")


def _picture(chosen: Any, spoil: Any = None) -> Any:
    """The user's picture, or the head with what spoils it and noise."""
    if chosen.picture is not None:
        is_file = Path(chosen.picture).suffix.lower() in (".png", ".jpg")
        return read_picture(chosen.picture, colour=True) if chosen.colour and is_file else read_dense(chosen.picture)
    head = shaded_phantom(chosen.size)
    noise = np.random.default_rng(chosen.seed).standard_normal(head.shape)
    return (head if spoil is None else spoil(head)) + _NOISE[chosen.problem] * noise


def _options(chosen: Any) -> dict[str, Any]:
    weights = None if chosen.weights is None else read_dense(chosen.weights)
    found = {"huber": chosen.huber or 0.0, "tv": chosen.tv, "data": chosen.data, "nonnegative": chosen.nonnegative}
    return found | {"weights": weights}


def _deblur(chosen: Any) -> SaddleProblem:
    if chosen.kernel is None:
        reach = max(1, int(np.ceil(3.0 * chosen.blur)))
        bell = np.exp(-0.5 * (np.arange(-reach, reach + 1) / chosen.blur) ** 2)
        kernel = np.outer(bell, bell) / bell.sum() ** 2
    else:
        kernel = read_dense(chosen.kernel)
    picture = _picture(chosen, lambda head: blur(kernel, head.shape).forward(head))
    return deblur(picture, kernel, chosen.weight, **_options(chosen))


def _inpaint(chosen: Any) -> SaddleProblem:
    if chosen.missing >= 1.0:
        raise InputError(f"inpaint: --missing is {chosen.missing:g}; expected a part below 1.")
    picture = _picture(chosen)
    if chosen.known is not None:
        known = read_dense(chosen.known) > 0.5
    elif chosen.picture is not None:
        known = np.isfinite(picture)
        if known.all():
            raise InputError("inpaint: the picture has no holes (NaN); expected --known with a mask.")
    else:
        known = np.random.default_rng(chosen.seed + 1).random(picture.shape) >= chosen.missing
    return inpaint(picture, known, chosen.weight, **_options(chosen))


DENOISE = Entry(
    "denoise", "a picture without its noise, by (Huber) total variation", 1e-2,
    lambda one: _add_picture(one, "denoise"),
    lambda chosen: denoise(_picture(chosen), chosen.weight, **_options(chosen)),
    examples=("--size 32", "--size 32 --weight 0.2 --huber 0.01"),
    report="--size 32 --out clean",
    own=f"your own picture: --picture with {_PICTURES}\n",
)  # fmt: skip
DEBLUR = Entry(
    "deblur", "a picture without its blur, by (Huber) total variation", 1e-3, _add_deblur, _deblur,
    examples=("--size 32", "--size 32 --blur 1 --weight 2e-3 --huber 0.01"),
    report="--size 32 --out sharp",
    own=f"your own picture: --picture with {_PICTURES}; --kernel with an array\n",
)  # fmt: skip
INPAINT = Entry(
    "inpaint", "a picture without its holes, by (Huber) total variation", 1e-2, _add_inpaint, _inpaint,
    examples=("--size 32", "--size 32 --missing 0.3 --huber 0.01"),
    report="--size 32 --out whole",
    own=f"your own picture: --picture with {_PICTURES}; --known with a mask, white where the picture is known\n",
)  # fmt: skip
