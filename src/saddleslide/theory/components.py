"""Order and loops of any number of components, from their budgets (Corollary 3.6), and from what their calls cost."""

from __future__ import annotations

import math
from collections.abc import Sequence

from saddleslide.errors import InputError
from saddleslide.theory.bounds import budget, sharp_bound
from saddleslide.theory.levels import Level, Term, check_loops, nest_loops, place
from saddleslide.theory.noise import largest_accuracy, steady

# Rounds of the search for shares; a component never gets less than this part of the mean share.
_ROUNDS, _LEAST = 40, 1e-3


def place_components(terms: Sequence[Term], loops: Sequence[int]) -> tuple[Level, ...]:
    """Levels in the order given; sampled terms without a tau of their own get that of the optimised bound."""
    counts = check_loops(loops, len(terms))
    steadied = [one if given.tau == 0.0 else given for one, given in zip(steady(terms, counts), terms, strict=True)]
    return place(steadied, counts)


def schedule_components(
    terms: Sequence[Term], tol: float, costs: Sequence[float], proved: bool = True
) -> tuple[Level, ...]:
    """Levels sorted by budget, with loops that prove `tol`, or with the budgets themselves (kappa_n = 1).

    Corollary 3.6 asks every component for the same eps. Where calls differ in cost, shares eps s_i with sum n that
    minimise the cost of the budgets leave the sum n eps of the corollary as it is; the cheaper of both is taken.
    """
    known = [[1.0] * len(terms)]
    if len(set(costs)) > 1:
        known.append(share_accuracy(terms, tol, costs))

    def levels_for(eps: float, shares: Sequence[float]) -> tuple[Level, ...]:
        calls = [budget(term, eps * share) for term, share in zip(terms, shares, strict=True)]
        endless = [term.name for term, count in zip(terms, calls, strict=True) if not math.isfinite(count)]
        if endless:
            expected = "expected a bounded one (Corollary 3.6), or explicit loops="
            raise InputError(f"slide: the domain is unbounded for the components {endless}; {expected}.")
        order = sorted(range(len(terms)), key=lambda i: calls[i])
        return place_components([terms[i] for i in order], nest_loops(calls[i] for i in order))

    prices = {term.name: cost for term, cost in zip(terms, costs, strict=True)}
    found = []
    try:
        for shares in known:
            eps = largest_accuracy(lambda eps, s=shares: sharp_bound(levels_for(eps, s)), tol) if proved else tol  # type: ignore[misc]
            found.append(levels_for(eps, shares))
    except ArithmeticError:
        message = f"slide: tol is {tol:g}, whose budgets are beyond double precision; expected a larger tol."
        raise InputError(message) from None
    return min(found, key=lambda levels: math.fsum(prices[level.term.name] * level.N for level in levels))


def share_accuracy(terms: Sequence[Term], eps: float, costs: Sequence[float]) -> list[float]:
    """Shares s_i with sum n that minimise the sum of c_i R_i(eps s_i): c_i s_i R_i'(s_i) is the same for all."""
    shares, n = [1.0] * len(terms), len(terms)
    for _ in range(_ROUNDS):
        # -c_i s_i dR_i/ds_i by a difference of logarithms; the root damps the iteration.
        slopes = [
            cost * (budget(term, eps * share * 0.99) - budget(term, eps * share)) / 0.01
            for term, share, cost in zip(terms, shares, costs, strict=True)
        ]
        wanted = [math.sqrt(share * max(slope, 0.0)) for share, slope in zip(shares, slopes, strict=True)]
        total = math.fsum(wanted)
        if not 0.0 < total < math.inf:
            return [1.0] * n
        shares = [max(n * want / total, _LEAST) for want in wanted]
        shares = [n * share / math.fsum(shares) for share in shares]
    return shares
