"""Problems by name and settings, as the specifications write them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from saddleslide.arrays import Array
from saddleslide.couplings import as_coupling
from saddleslide.errors import InputError
from saddleslide.functions import Function, LeastSquares, Power, Quadratic
from saddleslide.gallery import phantom, synthetic, tomography
from saddleslide.gallery.tomography import (
    BETA,
    HOLDER_COEFFICIENT,
    HOLDER_EXPONENT,
    NONLOCAL,
    RIDGE,
    nonlocal_laplacian,
    projector,
)
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
    truth : array, optional
        The picture behind the data.

    Examples
    --------
    >>> instance({"family": "synthetic", "nu_x": 1.0, "nu_y": 0.5, "seed": 0}).problem.X.shape
    (60,)
    """

    problem: SaddleProblem
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
    """The paper's benchmark with the norms that the paper declares; `power` scales the coefficient c."""
    bare = tomography(regime, seed=seed, picture=picture, n=n)
    assert isinstance(bare.f, LeastSquares)
    A = as_coupling(projector(n).matrix, (n, n), bare.f.A.y_shape, norm=math.sqrt(PROJECTOR_MARGIN))
    f = LeastSquares(A, bare.f.b, ridge=RIDGE)
    g: Function = Quadratic(BETA)
    if regime != "standard":
        laplacian = NONLOCAL * nonlocal_laplacian(n)
        g = g + Quadratic(as_coupling(laplacian, (2, n, n), (2, n, n), norm=2.0 * NONLOCAL))
    if regime == "holder":
        g = g + Power(HOLDER_EXPONENT, weight=power * HOLDER_COEFFICIENT)
    return Instance(SaddleProblem(f=f, g=g, B=bare.coupling, X=bare.X, Y=bare.Y), phantom(picture, n))


FAMILIES: dict[str, Callable[..., Instance]] = {"synthetic": _synthetic, "tomography": _tomography}
