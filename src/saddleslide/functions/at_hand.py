"""What is known of a function without a product: to decide what does not need more, no norm is bounded."""

from __future__ import annotations

from saddleslide.domains import Domain
from saddleslide.errors import InputError
from saddleslide.functions.base import Function, Scaled, Sum, is_ours
from saddleslide.functions.lifted import LinearModel
from saddleslide.functions.losses import PoissonTransmission
from saddleslide.theory.holder import Holder


def takes_products(function: Function) -> bool:
    """Whether constants of the function take products with the caller's code to find out.

    It does not matter whether they have been found out before: a second solve decides as the first one did.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> A = ss.operators.as_coupling((np.copy, np.copy), (2,), (2,))
    >>> [takes_products(ss.functions.LeastSquares(matrix, np.ones(2))) for matrix in (A, np.eye(2))]
    [True, False]
    """
    return any(not operator.norm_at_hand for operator, _ in function.operators)


def smoothness_at_hand(function: Function, domain: Domain) -> Holder | None:
    """The Hölder condition of the gradient, where it takes no products; None where it does, or there is none.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> smoothness_at_hand(ss.functions.Quadratic(3.0), ss.domains.FullSpace(2))
    Holder(nu=1.0, H=3.0)
    """
    if takes_products(function):
        return None
    try:
        return function.smoothness(domain)
    except InputError:
        return None


def exponent(function: Function, domain: Domain) -> float:
    """The Hölder exponent of the gradient: 1 of any function of a linear image of ours, whatever the norm of that map.

    Raises what `smoothness` raises.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> A = ss.operators.as_coupling((np.copy, np.copy), (2,), (2,))
    >>> exponent(ss.functions.LeastSquares(A, np.ones(2)) + ss.functions.Power(0.5), ss.domains.Ball(1.0, shape=2))
    0.5
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
