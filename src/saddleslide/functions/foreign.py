"""Functions of PyProximal and ODL, as they are: values and proximal steps by their own code."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from saddleslide.arrays.base import Array
from saddleslide.domains.entrywise import FullSpace
from saddleslide.errors import InputError
from saddleslide.functions.base import Function
from saddleslide.functions.custom import Custom


def from_pyproximal(operator: Any, shape: Any = None) -> Function:
    """A function of PyProximal: a simple term, or one behind an operator, `from_pyproximal(h) @ K`.

    Parameters
    ----------
    operator : pyproximal.ProxOperator
        Anything with `operator(x)` and `operator.prox(x, tau)`; it takes flat arrays.
    shape : int or tuple of int, optional
        Shape of x; any when missing.

    Examples
    --------
    >>> import numpy as np, pyproximal, saddleslide as ss
    >>> h = ss.functions.from_pyproximal(pyproximal.L1(sigma=2.0))
    >>> h.value(np.array([1.0, -2.0])), h.prox(np.array([3.0, 0.5]), 1.0)
    (6.0, array([1., 0.]))
    """
    if not (callable(operator) and callable(getattr(operator, "prox", None))):
        raise InputError(
            f"from_pyproximal: received {type(operator).__name__}; expected an operator of PyProximal, with a value "
            "operator(x) and a step operator.prox(x, tau). For code of your own use Custom(prox=, value=)."
        )
    return Custom(
        value=lambda x: _as_value(operator(x.ravel().copy())),
        prox=lambda center, step: np.asarray(operator.prox(center.ravel().copy(), step)).reshape(center.shape),
        domain=None if shape is None else FullSpace(shape),
    )


def from_odl(functional: Any) -> Function:
    """A functional of ODL: a simple term, or one behind an operator, `from_odl(h) @ K`.

    Parameters
    ----------
    functional : odl.solvers.Functional
        With a value and `proximal`; its space must have unit weights, as `odl.rn(n)` has.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> ss.functions.from_odl(3)
    Traceback (most recent call last):
    ...
    saddleslide.errors.InputError: from_odl: received int; expected a functional of ODL, with `domain` and `proximal`.
    """
    space = getattr(functional, "domain", None)
    if space is None or not hasattr(functional, "proximal"):
        raise InputError(
            f"from_odl: received {type(functional).__name__}; expected a functional of ODL, with `domain` and "
            "`proximal`."
        )
    one = space.one()
    # <x, y> of the space and of NumPy must agree: gradients and steps are those of one inner product.
    if abs(float(one.inner(one)) - one.size) > 1e-9 * one.size:
        raise InputError(
            f"from_odl: the space of {type(functional).__name__} weights its inner product, |1|^2 = "
            f"{float(one.inner(one)):g} for {one.size} entries; expected unit weights. Use odl.rn(shape)."
        )

    def step_from(center: Array, step: float) -> Array:
        return np.asarray(functional.proximal(step)(space.element(center.copy())).asarray())

    return Custom(
        value=lambda x: _as_value(functional(space.element(x.copy()))), prox=step_from, domain=FullSpace(space.shape)
    )


def _as_value(found: Any) -> float:
    """A value of theirs; indicators of theirs say whether a point is in the set."""
    if isinstance(found, bool | np.bool_):
        return 0.0 if found else math.inf
    return float(found)
