"""Problems by name and settings, as the specifications write them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np

from saddleslide.arrays import Array
from saddleslide.couplings import as_coupling
from saddleslide.domains import Box, FullSpace
from saddleslide.errors import InputError
from saddleslide.functions import Linear, Power, Quadratic
from saddleslide.gallery import phantom, synthetic, tomography
from saddleslide.gallery.tomography import BETA, HOLDER_COEFFICIENT, HOLDER_EXPONENT, NONLOCAL, RIDGE, TV_WEIGHT
from saddleslide.problem import SaddleProblem

# The paper's bound on the squared norm of the projector is 1.01 times the measured one.
PROJECTOR_MARGIN = 1.01


@dataclass(frozen=True)
class Instance:
    """A problem with what its experiment declares about it.

    Parameters
    ----------
    problem : SaddleProblem
        What is solved.
    constants : dict
        Constants that the paper declares in place of computed ones.
    truth : array, optional
        The picture behind the data.

    Examples
    --------
    >>> instance({"family": "synthetic", "nu_x": 1.0, "nu_y": 0.5, "seed": 0}).constants
    {}
    """

    problem: SaddleProblem
    constants: dict[str, float] = field(default_factory=dict)
    truth: Array | None = None


def instance(data: dict[str, Any]) -> Instance:
    """The instance that a specification describes: its family, and the settings of that family."""
    settings = dict(data)
    family = settings.pop("family", None)
    if family not in FAMILIES:
        raise InputError(f"paper: family is {family!r}; expected one of {sorted(FAMILIES)}.")
    return FAMILIES[family](**settings)


def _synthetic(**settings: Any) -> Instance:
    return Instance(synthetic(**settings))


@lru_cache(maxsize=2)
def _tomography(
    regime: str = "standard", seed: int = 1, picture: int = 0, n: int = 64, power: float = 1.0
) -> Instance:
    """The paper's benchmark; `power` scales the coefficient c of the Hölder regime."""
    problem = tomography(regime, seed=seed, picture=picture, n=n)
    if power != 1.0:
        plain = tomography("nonlocal", seed=seed, picture=picture, n=n)
        g = plain.g + Power(HOLDER_EXPONENT, weight=power * HOLDER_COEFFICIENT)
        problem = SaddleProblem(f=problem.f, g=g, B=problem.coupling, X=problem.X, Y=problem.Y)
    return Instance(problem, tomography_constants(regime, n, power), phantom(picture, n))


def tomography_constants(regime: str, n: int = 64, power: float = 1.0) -> dict[str, float]:
    """The constants of the paper's runs.

    Examples
    --------
    >>> round(tomography_constants("holder")["H_y"], 4)
    0.1213
    """
    curvature = BETA + (0.0 if regime == "standard" else 2.0 * NONLOCAL)
    constants = {"H_x": PROJECTOR_MARGIN + RIDGE, "L_xy": math.sqrt(8.0), "H_y": curvature}
    if regime == "holder":
        size, nu = 2.0 * n * n, HOLDER_EXPONENT
        diameter = 2.0 * TV_WEIGHT * math.sqrt(size)
        spread = 2.0 ** (1.0 - nu) * size ** ((1.0 - nu) / 2.0)
        H_y = power * HOLDER_COEFFICIENT * spread + curvature * diameter ** (1.0 - nu)
        constants |= {"nu_y": nu, "H_y": H_y}
    return constants


FAMILIES: dict[str, Callable[..., Instance]] = {"synthetic": _synthetic, "tomography": _tomography}
