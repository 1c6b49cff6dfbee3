"""Krylov steps for quadratic f and g: MINRES (Paige and Saunders 1975) on the equations of a saddle point.

Where no bound of X or Y is met, f'(x) + B^T y = 0 and B x - g'(y) = 0 are linear equations with the symmetric matrix
K = (H, B^T; B, -G). Each step takes one product with K: a gradient of f, one of g and two products with B; with no y it
is the conjugate residual method. The residual never grows, whatever the signs of the eigenvalues.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import final

import numpy as np

from saddleslide.arrays.base import length_of
from saddleslide.domains.entrywise import Box, FullSpace
from saddleslide.methods.base import (
    BOUNDS,
    EXACTLY,
    Array,
    Candidate,
    Description,
    Facts,
    Method,
    Oracles,
    Point,
    State,
)
from saddleslide.methods.field import linearise

# A residual of this part of the first one is rounding.
_ROUNDING = 1e-15


@dataclass
class KrylovState(State):
    """The point z = (x, y), Lanczos vectors, and the last rotation of MINRES, with SciPy's names.

    `constant` is F(0): the gradients at 0, with which products with K are differences of gradients.
    """

    z: Array
    constant: Array
    first: float
    modulus: float
    r1: Array
    r2: Array
    w: Array
    w2: Array
    beta: float
    oldb: float = 0.0
    dbar: float = 0.0
    epsln: float = 0.0
    phibar: float = 0.0
    cs: float = -1.0
    sn: float = 0.0
    steps: int = 0


@final
@dataclass(frozen=True, repr=False)
class Krylov(Method):
    """MINRES on the linear equations of a saddle point of quadratics.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> A, b = np.array([[2.0, 0.0], [0.0, 1.0], [1.0, 1.0]]), np.array([1.0, -1.0, 0.5])
    >>> problem = ss.SaddleProblem(
    ...     f=ss.functions.LeastSquares(A, b), g=ss.functions.Quadratic(1.0), B=np.array([[1.0, -1.0]]),
    ...     X=ss.domains.FullSpace(2), Y=ss.domains.FullSpace(1))
    >>> result = ss.solve(problem, tol=1e-10, method="krylov")
    >>> result.status.name, result.calls.f < 8
    ('SOLVED', True)
    """

    description = Description(
        name="krylov",
        needs=("quadratic f", "quadratic g"),
        guarantee="The smallest residual of the equations in the Krylov space; exact after as many steps as K has "
        "distinct eigenvalues. No bound of X or Y may be met at the solution.",
        reference="Paige and Saunders, Solution of sparse indefinite systems of linear equations, SIAM J. Numer. Anal. "
        "12 (1975)",
    )
    on_host = True

    def lacks(self, facts: Facts) -> list[str]:
        found = super().lacks(facts)
        for name, domain in (("X", facts.f.domain), ("Y", facts.g.domain)):
            if not isinstance(domain, FullSpace | Box):
                found.append(f"{name} is {domain}; expected the full space, or a box whose bounds are not met.")
        return found

    def judgement(self, facts: Facts) -> str:
        return EXACTLY if facts.f.rest.is_zero and facts.g.rest.is_zero else BOUNDS

    def init(self, oracles: Oracles, facts: Facts, start: Point, tol: float) -> KrylovState:
        constant = _field(oracles, np.zeros_like(start[0]), np.zeros_like(start[1]))
        z, blank = _join(*start), np.zeros_like(constant)
        r = -constant if not z.any() else -_field(oracles, *start)
        size = length_of(r)
        return KrylovState(z, constant, size, min(facts.moduli), r, r, blank, blank, size, phibar=size)

    def step(self, state: KrylovState, oracles: Oracles) -> KrylovState:
        s, beta = state, state.beta
        if not beta > 0.0:
            return replace(state, steps=s.steps + 1)
        v = s.r2 / beta
        x, y = _split(s.first * v, oracles)
        new = (_field(oracles, x, y) - s.constant) / s.first
        if s.steps > 0:
            new -= (beta / s.oldb) * s.r1
        alfa = float(v @ new)
        new -= (alfa / beta) * s.r2
        size = length_of(new)
        delta, gbar = s.cs * s.dbar + s.sn * alfa, s.sn * s.dbar - s.cs * alfa
        gamma = max(math.hypot(gbar, size), 1e-300)
        cs, sn = gbar / gamma, size / gamma
        w = (v - s.epsln * s.w2 - delta * s.w) / gamma
        return replace(
            s, z=s.z + cs * s.phibar * w, r1=s.r2, r2=new, w=w, w2=s.w, beta=size, oldb=beta, dbar=-s.cs * size,
            epsln=s.sn * size, phibar=sn * s.phibar, cs=cs, sn=sn, steps=s.steps + 1,
        )  # fmt: skip

    def point(self, state: KrylovState, oracles: Oracles) -> Point:
        x, y = _split(state.z, oracles)
        return oracles.problem.X.project(x), oracles.problem.Y.project(y)

    def candidates(self, state: KrylovState, oracles: Oracles) -> tuple[Candidate, ...]:
        return (linearise(oracles, *self.point(state, oracles)),)

    def expects(self, state: KrylovState) -> tuple[float, float]:
        # With a modulus the gap is at most |F|^2 / (2 mu).
        if state.modulus > 0.0:
            return 0.5 * state.phibar * state.phibar / state.modulus, math.nan
        return state.phibar * length_of(state.z), math.nan

    def is_finished(self, state: KrylovState) -> bool:
        return state.phibar <= _ROUNDING * state.first or not state.beta > 0.0


def _join(x: Array, y: Array) -> Array:
    return np.concatenate([x.ravel(), y.ravel()])


def _split(z: Array, oracles: Oracles) -> Point:
    X, Y = oracles.problem.X, oracles.problem.Y
    return z[: X.size].reshape(X.shape), z[X.size :].reshape(Y.shape)


def _field(oracles: Oracles, x: Array, y: Array) -> Array:
    """F(x, y) = (f'(x) + B^T y, B x - g'(y)), by counted calls."""
    f, g = oracles.gradients(x, y)
    return _join(f + oracles.pull(y), oracles.image(x) - g)
