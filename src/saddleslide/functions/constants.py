"""Which modulus of strong convexity a bound may rest on: what is certain, and what is only declared."""

from __future__ import annotations

import math

import numpy as np

from saddleslide.arrays.base import Array, Shape, length_of
from saddleslide.domains.base import Domain
from saddleslide.functions.base import Function
from saddleslide.functions.trust import certain_modulus, diagonal_of, gradient_aside, inside, is_own_class
from saddleslide.functions.trust import exponent as exponent
from saddleslide.functions.trust import known_smoothness as known_smoothness
from saddleslide.functions.trust import takes_factor as takes_factor
from saddleslide.functions.trust import takes_products as takes_products
from saddleslide.theory.holder import Holder

# Smallest weight relative to the largest: an entry that f hardly sees is moved by the coupling.
_FLOOR = 1e-4
# Steps from the start, as parts of the radius; two directions each.
_SCALES = (1.0, 0.3, 0.1, 0.01)
_DIRECTIONS = 2
GRADIENTS = 1 + _DIRECTIONS * len(_SCALES)
# Between these slopes of log |f'(x) - f'(y)| over log |x - y| the exponent is taken to be 1.
_SMOOTH_SLOPE = 0.9
_SAFETY = 2.0


def modulus_for_bounds(rest: Function, simple: Function, domain: Domain) -> float:
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


def list_declared_forms(f: Function) -> tuple[str, ...]:
    """What classes of the caller's say of their form, and bounds on f may go by: nobody can check it."""
    own = [part for part in leaves(f) if is_own_class(part) or part.own_code]
    if not own:
        return ()
    claims = (
        ("linear", any(part.linear for part in own)),
        ("quadratic", any(part.quadratic for part in own)),
        ("separable", any(part.separable or part.separable_form() is not None for part in own)),
    )
    return tuple(word for word, claimed in claims if claimed)


def leaves(f: Function) -> list[Function]:
    """The functions that f is made of, as far as they are in this process."""
    # A class of the caller's that is made of others may say of itself what none of them says.
    return [part for part in inside(f) if not part.components or is_own_class(part)]


def smoothness_at_hand(function: Function, domain: Domain) -> Holder | None:
    """The Hölder condition of the gradient, where it takes no products; None where it does, or there is none."""
    return None if takes_products(function) else known_smoothness(function, domain)


def hessian_diagonal(f: Function, shape: Shape) -> Array | None:
    """Diagonal of f'' at 0, kept above a floor; None where f does not show it."""
    found = diagonal_of(f, shape)
    if found is None or not np.all(np.isfinite(found)) or not np.any(found > 0.0):
        return None
    return np.maximum(found, _FLOOR * float(found.max())).reshape(shape)


def estimate_smoothness(f: Function, domain: Domain, x: Array, seed: int = 0) -> Holder:
    """Exponent and constant that fit gradients at a few seeded points around x, with a factor 2 on H.

    An estimate, not a bound: the function may be rougher where nobody looked.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> f = ss.functions.Custom(gradient=lambda x: 3.0 * x)
    >>> estimate_smoothness(f, ss.domains.Ball(1.0, shape=4), np.zeros(4))
    Holder(nu=1.0, H=6.0)
    """
    rng = np.random.default_rng(seed)
    radius = domain.radius(x)
    reach = radius if math.isfinite(radius) and radius > 0.0 else 1.0 + length_of(x)
    base = gradient_aside(f, x)
    distances, changes = [], []
    for _ in range(_DIRECTIONS):
        direction = rng.standard_normal(x.shape)
        direction *= reach / (length_of(direction) or 1.0)
        for scale in _SCALES:
            point = domain.project(x + scale * direction)
            distance = length_of(point - x)
            if distance > 0.0:
                distances.append(distance)
                changes.append(length_of(gradient_aside(f, point) - base))
    apart, turned = np.array(distances), np.array(changes)
    seen = (turned > 0.0) & np.isfinite(turned)
    if not seen.any():
        return Holder(1.0, 0.0)
    apart, turned, nu = apart[seen], turned[seen], 1.0
    if len(apart) >= 2 and np.ptp(np.log(apart)) > 0.0:
        slope = float(np.polyfit(np.log(apart), np.log(turned), 1)[0])
        nu = 1.0 if slope >= _SMOOTH_SLOPE else min(max(slope, 0.0), 1.0)
    return Holder(nu, float(f"{_SAFETY * float(np.max(turned / apart**nu)):.12g}"))
