"""Problems by name and settings, as the specifications write them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from saddleslide.arrays import Array
from saddleslide.couplings import as_coupling
from saddleslide.domains import Box, FullSpace
from saddleslide.errors import InputError
from saddleslide.functions import Function, LeastSquares, Power, Quadratic, Zero
from saddleslide.gallery import phantom, synthetic, tomography
from saddleslide.gallery.projectors import projector
from saddleslide.gallery.tomography import (
    BETA,
    HOLDER_COEFFICIENT,
    HOLDER_EXPONENT,
    NONLOCAL,
    RIDGE,
    nonlocal_laplacian,
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
    judged : SaddleProblem, optional
        The problem whose gap counts, where it is another than the one that the method sees.

    Examples
    --------
    >>> instance({"family": "synthetic", "nu_x": 1.0, "nu_y": 0.5, "seed": 0}).problem.X.shape
    (60,)
    """

    problem: SaddleProblem
    truth: Array | None = None
    judged: SaddleProblem | None = None


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
    regime: str = "standard", seed: int = 1, picture: int = 0, n: int = 64, power: float = 1.0, without_g: bool = False
) -> Instance:
    """The paper's benchmark with the norms that it declares; `power` scales c, `without_g` hides g from the method."""
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
    problem = SaddleProblem(f=f, g=g, B=bare.coupling, X=bare.X, Y=bare.Y)
    if without_g:
        hidden = SaddleProblem(f=f, g=Zero(), B=bare.coupling, X=bare.X, Y=bare.Y)
        return Instance(hidden, phantom(picture, n), problem)
    return Instance(problem, phantom(picture, n))


def _curved(
    nu_x: float = 1.0,
    nu_y: float = 1.0,
    seed: int = 0,
    d: int = 20,
    alpha: float = 1.0,
    mu_x: float = 1.0,
    mu_y: float = 1.0,
    kappa_x: float = 1.0,
    kappa_y: float = 1.0,
    kappa_xy: float = 4.0,
    bounded: bool = True,
) -> Instance:
    """Powers plus quadratics with spectra [mu, kappa mu] and tilts, |B|^2 = kappa_xy."""
    rng = np.random.default_rng(seed)
    U, V = (np.linalg.qr(rng.standard_normal((d, d)))[0] for _ in range(2))
    c_x, c_y = rng.standard_normal(d), rng.standard_normal(d)
    norm = math.sqrt(kappa_xy)
    B = (U * np.geomspace(0.25 * norm, norm, d)) @ V.T
    domain = Box(-1.0, 1.0, shape=d) if bounded else FullSpace(d)
    f = Power(nu_x, weight=alpha, tilt=c_x, quadratic=mu_x * np.geomspace(1.0, kappa_x, d))
    g = Power(nu_y, weight=alpha, tilt=c_y, quadratic=mu_y * np.geomspace(1.0, kappa_y, d))
    return Instance(SaddleProblem(f=f, g=g, B=as_coupling(B, norm=norm), X=domain, Y=domain))


FAMILIES: dict[str, Callable[..., Instance]] = {"synthetic": _synthetic, "tomography": _tomography, "curved": _curved}
