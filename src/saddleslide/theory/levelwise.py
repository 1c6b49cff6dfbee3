"""Level-wise metrics: f, g and B each in its own (semi)norm, with its own Omega (docs/theory.md)."""

from __future__ import annotations

import math

from saddleslide.errors import InputError
from saddleslide.theory.holder import Holder
from saddleslide.theory.levels import Term


def levelwise_terms(
    f: Holder, g: Holder, L_xy: float, Omega_x: float, Omega_y: float, w: float | None = None
) -> list[Term]:
    """Terms for `place`, in any order: f in the seminorm diag(1, 0), g in diag(0, 1), B in the norm diag(w, 1/w).

    In these norms the constants of f, g and B are the Euclidean ones, and B has M = L_xy for every w.

    Parameters
    ----------
    f, g : Holder
        Euclidean Hölder conditions of f on X and of g on Y.
    L_xy : float
        Upper bound on the norm of B; 0 only for B = 0.
    Omega_x, Omega_y : float
        Largest squared Euclidean distances from the start within X and within Y; infinite when unbounded.
    w : float, optional
        Weight of the coupling norm; `best_w` unless given.

    Examples
    --------
    >>> f, g, B = levelwise_terms(Holder(1.0, 3.0), Holder(0.5, 1.0), L_xy=2.0, Omega_x=100.0, Omega_y=0.01)
    >>> f.weights, g.weights, B.weights
    ((1.0, 0.0), (0.0, 1.0), (0.01, 100.0))
    >>> f.Omega, g.Omega, B.Omega, B.M
    (100.0, 0.01, 2.0, 2.0)
    """
    for name, value in (("L_xy", L_xy), ("Omega_x", Omega_x), ("Omega_y", Omega_y)):
        if not value >= 0.0:
            raise InputError(f"levelwise_terms: {name} is {value!r}; expected a number >= 0.")
    if not math.isfinite(L_xy):
        raise InputError(f"levelwise_terms: L_xy is {L_xy!r}; expected a finite number >= 0.")
    f, g = _on_set(f, Omega_x), _on_set(g, Omega_y)
    for name, smoothness, block in (("f", f, "x"), ("g", g, "y")):
        if L_xy == 0.0 and smoothness.H == 0.0:
            raise InputError(
                f"levelwise_terms: {name} has H = 0 and L_xy is 0, so that no level has curvature on {block}; expected "
                f"one of them > 0. Declare any H > 0 for {name}: an upper bound on H is enough."
            )
    if w is None:
        w = 1.0 if L_xy == 0.0 else best_w(Omega_x, Omega_y)
    if not (w > 0.0 and math.isfinite(w) and math.isfinite(1.0 / w)):
        raise InputError(f"levelwise_terms: w is {w!r}; expected a finite number > 0.")
    return [
        Term("f", f, weights=(1.0, 0.0), Omega=Omega_x),
        Term("g", g, weights=(0.0, 1.0), Omega=Omega_y),
        Term("B", M=L_xy, weights=(w, 1.0 / w), Omega=w * Omega_x + Omega_y / w),
    ]


def best_w(Omega_x: float, Omega_y: float) -> float:
    """The w = D_y / D_x that minimises w D_x^2 + D_y^2 / w; the minimum is 2 D_x D_y.

    A set that is a single point has no size to balance: then w = 1, one valid choice among all.

    Examples
    --------
    >>> best_w(100.0, 0.01)
    0.01
    """
    if not (math.isfinite(Omega_x) and math.isfinite(Omega_y)):
        raise InputError(
            f"levelwise_terms: the squared radii are {Omega_x} and {Omega_y}; expected bounded domains, or w=, "
            "about |y - y_in| / |x - x_in| at the solution."
        )
    if Omega_x == 0.0 or Omega_y == 0.0:
        return 1.0
    return math.sqrt(Omega_y) / math.sqrt(Omega_x)


def _on_set(smoothness: Holder, Omega: float) -> Holder:
    """On a single point every Hölder condition holds; one with nu = 1 and H > 0 keeps the steps finite."""
    return Holder(1.0, smoothness.H or 1.0) if Omega == 0.0 else smoothness
