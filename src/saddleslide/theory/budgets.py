"""Budgets R_i, the sorted order and the loop counts T_i of Corollary 3.6."""

from __future__ import annotations

import math
from collections.abc import Sequence

from saddleslide.errors import InputError
from saddleslide.theory.levels import Term

# Corollary 3.6 proves kappa_n = 2^(2n+2); the paper's tables use 1.
PRACTICAL_KAPPA = 1.0


def proved_kappa(n: int) -> float:
    """kappa_n of Corollary 3.6 (256 for three levels).

    Examples
    --------
    >>> proved_kappa(3)
    256.0
    """
    return 2.0 ** (2 * n + 2)


def budget(term: Term, eps: float) -> float:
    """R_i of Corollary 3.6: calls that the component needs for accuracy eps, up to a constant.

    A sampled gradient adds sigma^2 Omega / eps^2 (Corollary VI_sliding_stochastic_complexity, its sum as a maximum).

    Examples
    --------
    >>> budget(Term("B", M=2.0, Omega=120.0), eps=0.5)
    480.0
    """
    if not (eps > 0.0 and math.isfinite(eps)):
        raise InputError(f"budget: eps is {eps!r}; expected a finite number > 0.")
    smooth, operator = 0.0, 0.0
    if term.smoothness is not None and term.smoothness.H > 0.0:
        nu = term.smoothness.nu
        smooth = (term.smoothness.H * term.Omega ** ((1.0 + nu) / 2.0) / eps) ** (2.0 / (1.0 + 3.0 * nu))
    if term.M > 0.0:
        operator = term.M * term.Omega / eps
    noise = term.variance * term.Omega / eps**2 if term.variance > 0.0 else 0.0
    return max(smooth, operator, noise, 1.0)


def sorted_by_budget(terms: Sequence[Term], eps: float) -> list[Term]:
    """Terms in the order of their budgets, outermost first; ties keep the given order.

    Examples
    --------
    >>> [t.name for t in sorted_by_budget([Term("g", M=9.0, Omega=1.0), Term("B", M=3.0, Omega=1.0)], 0.1)]
    ['B', 'g']
    """
    return sorted(terms, key=lambda term: budget(term, eps))


def loop_counts(terms: Sequence[Term], eps: float, kappa: float = PRACTICAL_KAPPA) -> tuple[int, ...]:
    """T_i = max(1, ceil(kappa R_i / N_{i-1})), for terms in the order of the levels.

    Examples
    --------
    >>> loop_counts([Term("f", M=10.0, Omega=1.0), Term("B", M=35.0, Omega=1.0)], eps=1.0)
    (10, 4)
    """
    loops: list[int] = []
    N = 1
    for term in terms:
        calls = kappa * budget(term, eps)
        if not math.isfinite(calls):
            raise InputError(
                f"component {term.name}: the domain is unbounded; expected a bounded one (Corollary 3.6), "
                "or explicit loops=."
            )
        loops.append(max(1, math.ceil(calls / N)))
        N *= loops[-1]
    return tuple(loops)
