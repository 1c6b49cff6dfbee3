"""Which modulus of strong convexity a bound may rest on: what is certain, and what is only declared."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import scipy

from saddleslide.arrays.base import Array, Shape
from saddleslide.domains import Domain
from saddleslide.errors import InputError
from saddleslide.functions.base import Function, Scaled, Sum, certain_modulus, gradient_aside, is_ours, is_own_class
from saddleslide.functions.lifted import LinearModel
from saddleslide.functions.losses import PoissonTransmission
from saddleslide.functions.quadratic import Quadratic
from saddleslide.operators import ForeignMatrix, Matrix
from saddleslide.theory.holder import Holder


def bounding_modulus(rest: Function, simple: Function, domain: Domain) -> float:
    """Modulus of `rest` that a bound on the minimum of rest + simple may use.

    What is certain; and what is only declared where there would be no bound without it: see `rests_on_declaration`.
    """
    certain = certain_modulus(rest, domain)
    if certain > 0.0 or domain.bounded or certain_modulus(simple, domain) > 0.0:
        return certain
    return rest.strong_convexity(domain)


def rests_on_declaration(f: Function, domain: Domain) -> bool:
    """Whether the minimum of f over the domain can only be bounded with a modulus that is declared and not certain."""
    return not domain.bounded and certain_modulus(f, domain) == 0.0 and f.strong_convexity(domain) > 0.0


def declared_forms(f: Function) -> tuple[str, ...]:
    """What classes of the caller's say of their form, and bounds on f may go by: nobody can check it."""
    own = [part for part in leaves(f) if is_own_class(part) or part.own_code]
    claims = (
        ("linear", any(part.linear for part in own)),
        ("quadratic", any(part.quadratic for part in own)),
        ("separable", any(part.separable or part.separable_form() is not None for part in own)),
    )
    return tuple(word for word, claimed in claims if claimed)


def leaves(f: Function) -> Iterator[Function]:
    """The functions that f is made of, as far as they are in this process."""
    inside = f.composed_of
    # A class of the caller's that is made of others may say of itself what none of them says.
    if not inside or is_own_class(f):
        yield f
    for part in inside:
        yield from leaves(part)


# Smallest weight relative to the largest: an entry that f hardly sees is moved by the coupling.
_FLOOR = 1e-4


def takes_products(function: Function) -> bool:
    """Whether constants of the function take products with the caller's code to find out.

    It does not matter whether they have been found out before: a second solve decides as the first one did.
    """
    return any(not operator.norm_at_hand for operator, _ in function.operators)


def smoothness_at_hand(function: Function, domain: Domain) -> Holder | None:
    """The Hölder condition of the gradient, where it takes no products; None where it does, or there is none."""
    if takes_products(function):
        return None
    try:
        return function.smoothness(domain)
    except InputError:
        return None


def exponent(function: Function, domain: Domain) -> float:
    """The Hölder exponent of the gradient: 1 of any function of a linear image of ours, whatever the norm of that map.

    Raises what `smoothness` raises.
    """
    if not takes_products(function):
        return function.smoothness(domain).nu
    if is_ours(function, Sum):
        return min(exponent(part, domain) for part in function.parts)
    if is_ours(function, Scaled):
        return exponent(function.function, domain)
    if isinstance(function, PoissonTransmission) and not domain.bounded:
        raise InputError("PoissonTransmission: its curvature is unbounded on this domain; expected a bounded one.")
    return 1.0 if is_ours(function, LinearModel) or function.quadratic else function.smoothness(domain).nu


def hessian_diagonal(f: Function, shape: Shape) -> Array | None:
    """Diagonal of f'' at 0, kept above a floor; None where f does not show it."""
    found = _diagonal(f, shape)
    if found is None or not np.all(np.isfinite(found)) or not np.any(found > 0.0):
        return None
    return np.maximum(found, _FLOOR * float(found.max())).reshape(shape)


def _diagonal(f: Function, shape: Shape) -> Array | None:
    if is_ours(f, Sum):
        known = [part for part in (_diagonal(part, shape) for part in f.parts) if part is not None]
        return np.sum(known, axis=0) if len(known) == len(f.parts) else None
    if is_ours(f, Scaled):
        inside = _diagonal(f.function, shape)
        return None if inside is None else f.factor * inside
    if is_ours(f, LinearModel) and isinstance(f.A, Matrix | ForeignMatrix):
        weights = f.loss_hessian(np.zeros(f.A.y_shape)).ravel()
        A = f.A.entries
        squares = A.multiply(A) if scipy.sparse.issparse(A) else np.square(A)
        return np.asarray(squares.T @ weights).ravel() + f.ridge
    form = f.separable_form()
    if form is not None and not form.curved:
        return np.broadcast_to(np.asarray(form.quadratic, dtype=np.float64), shape).ravel()
    if is_ours(f, Quadratic):
        return f.matrix_diagonal()
    return None


# Steps from the start, as parts of the radius; two directions each.
_SCALES = (1.0, 0.3, 0.1, 0.01)
_DIRECTIONS = 2
GRADIENTS = 1 + _DIRECTIONS * len(_SCALES)
# Between these slopes of log |f'(x) - f'(y)| over log |x - y| the exponent is taken to be 1.
_SMOOTH_SLOPE = 0.9
_SAFETY = 2.0


def estimated_smoothness(f: Function, domain: Domain, x: Array, seed: int = 0) -> Holder:
    """Exponent and constant that fit gradients at a few seeded points around x, with a factor 2 on H.

    An estimate, not a bound: the function may be rougher where nobody looked.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> f = ss.functions.Custom(gradient=lambda x: 3.0 * x)
    >>> estimated_smoothness(f, ss.domains.Ball(1.0, shape=4), np.zeros(4))
    Holder(nu=1.0, H=6.0)
    """
    rng = np.random.default_rng(seed)
    radius = domain.radius(x)
    reach = radius if math.isfinite(radius) and radius > 0.0 else 1.0 + float(np.linalg.norm(x))
    base = gradient_aside(f, x)
    distances, changes = [], []
    for _ in range(_DIRECTIONS):
        direction = rng.standard_normal(x.shape)
        direction *= reach / (float(np.linalg.norm(direction)) or 1.0)
        for scale in _SCALES:
            point = domain.project(x + scale * direction)
            distance = float(np.linalg.norm(point - x))
            if distance > 0.0:
                distances.append(distance)
                changes.append(float(np.linalg.norm(gradient_aside(f, point) - base)))
    return _fitted(np.array(distances), np.array(changes))


def _fitted(distances: Array, changes: Array) -> Holder:
    seen = (changes > 0.0) & np.isfinite(changes)
    if not seen.any():
        return Holder(1.0, 0.0)
    nu = 1.0
    if seen.sum() >= 2 and np.ptp(np.log(distances[seen])) > 0.0:
        slope = float(np.polyfit(np.log(distances[seen]), np.log(changes[seen]), 1)[0])
        nu = 1.0 if slope >= _SMOOTH_SLOPE else min(max(slope, 0.0), 1.0)
    return Holder(nu, float(f"{_SAFETY * float(np.max(changes[seen] / distances[seen] ** nu)):.12g}"))
