"""One level of the recursion as scalars: its constants, its loop count, its norm."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from saddleslide.errors import InputError
from saddleslide.theory.alphas import last_alpha
from saddleslide.theory.holder import Holder


@dataclass(frozen=True)
class Term:
    """Constants of one component (p, Q) in the norm of its level.

    Parameters
    ----------
    name : str
        For people: "f", "g", "B", or a number.
    smoothness : Holder or None
        Of p; None when an inexact oracle is declared instead.
    M : float
        Lipschitz constant of Q.
    inexact : (delta, L) or None
        Declared oracle of p (Definition inexact_oracle).
    tau : float
        Extra curvature against noise (eq. eta_stochastic).
    weights : tuple of float
        Metric weight of each block.
    Omega : float
        Largest squared distance from the start in this norm.
    variance : float
        sigma^2 of a sampled gradient of p, in the dual norm (Assumption stochastic_oracle_VI).

    Examples
    --------
    >>> Term("B", M=2.0, Omega=4.0).M
    2.0
    """

    name: str
    smoothness: Holder | None = None
    M: float = 0.0
    inexact: tuple[float, float] | None = None
    tau: float = 0.0
    weights: tuple[float, ...] = (1.0,)
    Omega: float = math.inf
    variance: float = 0.0


@dataclass(frozen=True)
class Level:
    """A term placed at a level with T iterations per entry, N = product of the T's so far.

    Examples
    --------
    >>> place([Term("f", Holder(1.0, 3.0), Omega=4.0)], loops=(10,))[0].L
    3.0
    """

    term: Term
    T: int
    N: int
    L: float
    delta: float
    last_alphas: float

    @property
    def step(self) -> float:
        """Eta of eqs. eta_inexact, Holder_eta and eta_stochastic divided by the product of the current alphas."""
        return self.L + self.term.tau + self.term.M / self.last_alphas


def check_loops(loops: Sequence[int], levels: int) -> tuple[int, ...]:
    """Whole numbers >= 1, one per level."""
    try:
        counts = tuple(loops)
    except TypeError:
        raise InputError(f"loops is {loops!r}; expected {levels} numbers, one per level.") from None
    if len(counts) != levels:
        raise InputError(f"loops is {counts}; expected {levels} numbers, one per level.")
    if not all(_is_count(T) for T in counts):
        raise InputError(f"loops is {counts}; expected whole numbers >= 1.")
    return tuple(int(T) for T in counts)


def _is_count(T: Any) -> bool:
    try:
        return not isinstance(T, bool) and bool(int(T) == T and T >= 1)
    except (TypeError, ValueError, OverflowError):
        return False


def place(terms: Sequence[Term], loops: Sequence[int]) -> tuple[Level, ...]:
    """Put terms on levels, outermost first, and choose each delta by Theorem 3.5 (eq. Holder_delta_star).

    Examples
    --------
    >>> [level.N for level in place([Term("f", Holder(1.0, 1.0)), Term("B", M=1.0)], loops=(3, 4))]
    [3, 12]
    """
    levels: list[Level] = []
    N, last_alphas = 1, 1.0
    for position, (term, T) in enumerate(zip(terms, check_loops(loops, len(terms)), strict=True), start=1):
        N *= T
        last_alphas *= last_alpha(T)
        L, delta = _oracle(term, position, N)
        levels.append(Level(term, T, N, L, delta, last_alphas))
    return tuple(levels)


def _oracle(term: Term, position: int, N: int) -> tuple[float, float]:
    if term.inexact is not None:
        return term.inexact[1], term.inexact[0]
    if term.smoothness is None or term.smoothness.H == 0.0:
        return 0.0, 0.0
    if term.smoothness.nu == 1.0:
        return term.smoothness.H, 0.0
    if not math.isfinite(term.Omega):
        raise InputError(
            f"component {term.name}: nu is {term.smoothness.nu} and the domain is unbounded; expected a bounded "
            "domain, nu = 1, or a declared (delta, L) oracle (Theorem 3.5 needs Omega < inf)."
        )
    delta = term.smoothness.best_delta(position, N, term.Omega)
    return term.smoothness.L(delta), delta
