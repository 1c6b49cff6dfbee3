"""Fewest calls that bounds on bounded domains can ask for: quick to find, so that forecasts need not ask further."""

from __future__ import annotations

from weakref import WeakKeyDictionary

from saddleslide.methods.field import calls_of
from saddleslide.methods.reach import sizes_of
from saddleslide.methods.requirements import smoothness_of
from saddleslide.oracles.calls import Calls
from saddleslide.problem import SaddleProblem
from saddleslide.theory import Term
from saddleslide.theory.budgets import budget
from saddleslide.theory.holder import Holder
from saddleslide.theory.levelwise import levelwise_terms

# No bound of this package has constants that make it smaller than this part of the budgets (test_choice.py).
_PART = 0.25
# Remembered as long as the problem lives: all methods ask, at every distance that a forecast tries.
_TERMS: WeakKeyDictionary[SaddleProblem, list[Term]] = WeakKeyDictionary()
_LAST: WeakKeyDictionary[SaddleProblem, tuple[float, Calls | None]] = WeakKeyDictionary()


def fewest_on_bounded(problem: SaddleProblem, tol: float) -> Calls | None:
    """A part of the budgets of Corollary 3.6, each in the norm that makes it smallest; None on unbounded domains.

    Examples
    --------
    >>> import saddleslide as ss
    >>> problem = ss.gallery.synthetic(1.0, 1.0, d=20)
    >>> fewest_on_bounded(problem, 0.1).B <= ss.methods.by_name["mirror-prox"]().predicted_calls(problem, 0.1).B
    True
    """
    known = _LAST.get(problem)
    if known is None or known[0] != tol:
        # Threads may share a problem: what is returned is not read from there again.
        _LAST[problem] = known = tol, _fewest(problem, tol)
    return known[1]


def _fewest(problem: SaddleProblem, tol: float) -> Calls | None:
    if not (problem.X.bounded and problem.Y.bounded):
        return None
    if problem not in _TERMS:
        _TERMS[problem] = _terms(problem)
    if not _TERMS[problem]:
        return Calls()
    f, g, B = (_PART * budget(term, tol) for term in _TERMS[problem])
    # Four products a step.
    return calls_of(problem, f, g, 4.0 * B)


def _terms(problem: SaddleProblem) -> list[Term]:
    squares, L_xy = sizes_of(problem).squared_radii, problem.coupling.norm.upper
    f, g = smoothness_of(problem.f, problem.X), smoothness_of(problem.g, problem.Y)
    flat = Holder(1.0, 0.0)
    # Without curvature on a block there are no level-wise norms, and on a single point none is the smallest.
    return levelwise_terms(f or flat, g or flat, L_xy, *squares) if min(L_xy, *squares) > 0.0 else []
