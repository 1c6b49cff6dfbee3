"""One level of the recursion as scalars: its constants, its loop count, its norm."""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from threading import Lock

from saddleslide.errors import InputError
from saddleslide.theory.holder import Holder


@lru_cache(maxsize=64)
def alpha_sequence(length: int) -> tuple[float, ...]:
    """alpha_0 = 1, alpha_{t+1} = 2 / (1 + sqrt(1 + 4 / alpha_t^2)).

    Examples
    --------
    >>> [round(a, 4) for a in alpha_sequence(3)]
    [1.0, 0.618, 0.4559]
    """
    alphas = [1.0]
    while len(alphas) < length:
        alphas.append(2.0 / (1.0 + math.sqrt(1.0 + 4.0 / alphas[-1] ** 2)))
    return tuple(alphas[:length])


# alpha_t and the sum of alpha_s^-2 for s <= t, grown on demand; longer loops go on from the end.
_KEPT = 100_000
_alphas = array("d", [1.0])
_inverse_squares = array("d", [1.0])
_growing = Lock()


def alpha(t: int) -> float:
    """Give alpha_t alone, however far: a loop of any length may begin without a list of its weights.

    Examples
    --------
    >>> alpha(2) == alpha_sequence(3)[2], round(alpha(10**12) * 10**12, 6)
    (True, 2.0)
    """
    return _alphas[t] if t < len(_alphas) else _at(t + 1)[0]


def last_alpha(T: int) -> float:
    """Give alpha_{T-1}, what a level with T iterations contributes to the bounds."""
    return _at(T)[0]


def shortest_loop(depth: float) -> int:
    """The smallest T with 1 / alpha_{T-1} >= depth."""
    # 1/T <= alpha_{T-1} <= 2/(T+1), with a margin for rounding.
    low, high = 0, max(1, math.ceil(2.0 * depth))
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if last_alpha(middle) * depth <= 1.0 + 1e-12 else (middle, high)
    return high


def sum_of_inverse_squares(T: int) -> float:
    """Sum of alpha_t^-2 over the T iterations of a level, at most alpha_{T-1}^-3 (Lemma alpha_properties)."""
    return _at(T)[1]


@lru_cache(maxsize=1024)
def _at(T: int) -> tuple[float, float]:
    """(alpha_{T-1}, sum of alpha_t^-2 for t < T)."""
    with _growing:
        while len(_alphas) < min(T, _KEPT):
            a = 2.0 / (1.0 + math.sqrt(1.0 + 4.0 / _alphas[-1] ** 2))
            # Readers look at the length of the other one.
            _inverse_squares.append(_inverse_squares[-1] + 1.0 / a**2)
            _alphas.append(a)
    if T <= _KEPT:
        return _alphas[T - 1], _inverse_squares[T - 1]
    # Beyond the kept ones u = 1/alpha grows by 1/2 + 1/(8u) a step; what is left out is below 1e-12 relative.
    first = 1.0 / _alphas[-1]
    u = first + 0.5 * (T - _KEPT)
    # Euler and Maclaurin's sums of 1/(8u) and of u^2, where du/dt = 1/2 + 1/(8u) + 1/(32u^2) takes these steps.
    for _ in range(8):
        grown = 0.25 * math.log((4.0 * u + 1.0) / (4.0 * first + 1.0)) + 0.0625 * (1.0 / first - 1.0 / u)
        u = first + 0.5 * (T - _KEPT) + grown
    upper, lower = (2.0 * end**3 / 3.0 - end * end / 4.0 for end in (u, first))
    area = upper - lower + 0.5 * (u * u - first * first) + (u - first) / 12.0
    return 1.0 / u, _inverse_squares[-1] + area


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
    operator_variance : float
        The same of a sampled Q, whose M is then sqrt(2) times its Lipschitz constant (docs/theory.md).

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
    operator_variance: float = 0.0

    @property
    def noise(self) -> float:
        """The variance that tau and budgets are set for: a sampled operator counts four times (docs/theory.md)."""
        return self.variance + 4.0 * self.operator_variance


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
    try:
        whole = all(not isinstance(T, bool) and bool(int(T) == T and T >= 1) for T in counts)
    except (TypeError, ValueError, OverflowError):
        whole = False
    if not whole:
        raise InputError(f"loops is {counts}; expected whole numbers >= 1.")
    return tuple(int(T) for T in counts)


def nest_loops(calls: Iterable[float]) -> tuple[int, ...]:
    """T_i = max(1, ceil(N_i / N_{i-1})): whole loops that make at least these calls, for levels from the outermost."""
    loops: list[int] = []
    N = 1
    for count in calls:
        loops.append(max(1, math.ceil(count / N)))
        N *= loops[-1]
    return tuple(loops)


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
        delta, L, p = 0.0, 0.0, term.smoothness
        if term.inexact is not None:
            delta, L = term.inexact
        elif p is not None and p.H > 0.0:
            if p.nu < 1.0 and not math.isfinite(term.Omega):
                raise InputError(
                    f"component {term.name}: nu is {p.nu} and the domain is unbounded; expected a bounded domain, "
                    "nu = 1, or a declared (delta, L) oracle (Theorem 3.5 needs Omega < inf)."
                )
            delta = 0.0 if p.nu == 1.0 else p.best_delta(position, N, term.Omega)
            # On a single point every Hölder condition holds.
            L = p.H if term.Omega == 0.0 else p.L(delta)
        levels.append(Level(term, T, N, L, delta, last_alphas))
    return tuple(levels)


def levelwise_terms(
    f: Holder, g: Holder, L_xy: float, Omega_x: float, Omega_y: float, w: float | None = None
) -> list[Term]:
    """Terms for `place`, in any order: f in the seminorm diag(1, 0), g in diag(0, 1), B in the norm diag(w, 1/w).

    In these norms the constants of f, g and B are the Euclidean ones, and B has M = L_xy for every w; `best_w` unless
    given. Each Omega is a largest squared Euclidean distance from the start, infinite when unbounded.
    """
    for name, value in (("L_xy", L_xy), ("Omega_x", Omega_x), ("Omega_y", Omega_y)):
        if not value >= 0.0:
            raise InputError(f"levelwise_terms: {name} is {value!r}; expected a number >= 0.")
    if not math.isfinite(L_xy):
        raise InputError(f"levelwise_terms: L_xy is {L_xy!r}; expected a finite number >= 0.")
    # On a single point every Hölder condition holds; one with nu = 1 and H > 0 keeps the steps finite.
    f, g = (Holder(1.0, p.H or 1.0) if Omega == 0.0 else p for p, Omega in ((f, Omega_x), (g, Omega_y)))
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
    """
    if not (math.isfinite(Omega_x) and math.isfinite(Omega_y)):
        raise InputError(
            f"levelwise_terms: the squared radii are {Omega_x} and {Omega_y}; expected bounded domains, or w=, "
            "about |y - y_in| / |x - x_in| at the solution."
        )
    return 1.0 if Omega_x == 0.0 or Omega_y == 0.0 else math.sqrt(Omega_y) / math.sqrt(Omega_x)
