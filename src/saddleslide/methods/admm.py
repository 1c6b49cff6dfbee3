"""ADMM on Bx = z with a few warm, possibly preconditioned, conjugate gradient steps for a quadratic f."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import final

import numpy as np

from saddleslide.arrays.base import length_of
from saddleslide.certificates.candidate import Candidate, Linearisation
from saddleslide.functions.roundings import FEW, inner_error
from saddleslide.functions.trust import errors_at, gradient_aside, read_rounding, value_aside
from saddleslide.methods.base import Array, Calls, Description, Facts, Mean, Method, Oracles, Point, State, option
from saddleslide.metrics.fits import fit_spectral
from saddleslide.metrics.spectral import from_coordinates, to_coordinates

# The penalty follows the distances travelled until it has changed so often; then it stays, as the theory wants.
_MOST_CHANGES = 60
_IMBALANCE = 4.0
# Steps below this part of what they change are left alone: their ratio says nothing, or is that of rounding.
_SETTLED = 1e-8


@dataclass
class ADMMState(State):
    """The last point, z about Bx, and Hx, Bx, B^T Bx, which follow x through all CG steps.

    f(x) = constant + <slope, x> + <x, Hx> / 2. `symbol` is that of H in the cosine basis where CG is preconditioned.
    Rounding of the products is relative to all that x has travelled, `term_size`; they are `fresh` where made at x
    itself, and not as sums over many steps.
    """

    x: Array
    y: Array
    z: Array
    Hx: Array
    Bx: Array
    BTBx: Array
    constant: float
    slope: Array
    mean: Mean
    symbol: Array | None
    rho: float
    term_size: float
    fresh: bool = True
    changes: int = 0


@final
@dataclass(frozen=True, repr=False)
class ADMM(Method):
    """x: CG on f + rho/2 |Bx - z + y/rho|^2 from the last x; z, y: one proximal step of g.

    A CG step costs one gradient of f (one product with its Hessian) and two products; all else follows from these.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> problem = ss.gallery.denoise(np.eye(6), weight=0.1)
    >>> ss.solve(problem, tol=1e-8, method="admm").status.name
    'SOLVED'
    """

    description = Description(
        name="admm",
        needs=("quadratic f", "free X", "prox of g"),
        guarantee="With exact x-steps and a fixed penalty: gap of the average at most (rho |B dx|^2 + |dy|^2 / rho) / "
        "(2 N). With CG stopped at a part of its first residual: converges, no rate is promised.",
        reference="Boyd, Parikh, Chu, Peleato and Eckstein, Distributed optimization and statistical learning via "
        "ADMM, Found. Trends Mach. Learn. 3 (2011); He and Yuan, SIAM J. Numer. Anal. 50 (2012)",
    )
    cg_steps: int = option(5, "most CG steps per iteration", whole=True)
    cg_tolerance: float = option(0.1, "CG stops when the residual has fallen to this part")
    penalty: float | None = option(None, "rho, kept fixed; by default balanced on the way")
    preconditioner: str = option("auto", "spectral where x is a free image", ("auto", "none", "spectral"))
    output: str = option("last", "the last point, or the mean that the rate is about", ("last", "average"))

    def lacks(self, facts: Facts) -> list[str]:
        found = super().lacks(facts)
        if self.preconditioner == "spectral" and facts.problem.coupling.gram_symbol() is None:
            found.append("B^T B is not known to be diagonal in the cosine basis; expected FiniteDifferences.")
        return found

    def init(self, oracles: Oracles, facts: Facts, start: Point, tol: float) -> ADMMState:
        (x, y), lift, coupling = start, oracles.whole_f_lift, facts.problem.coupling
        zero = np.zeros_like(x)
        q = lift.lift(zero)
        constant, slope, hessian = lift.value(zero, q), lift.gradient(zero, q), lift.hessian(q)
        Hx, Bx, BTBx = zero, np.zeros_like(y), zero
        if x.any():
            Hx, Bx = hessian(x), oracles.forward(x)
            BTBx = oracles.adjoint(Bx)
        symbol = None
        if self.preconditioner != "none" and coupling.gram_symbol() is not None and len(x.shape) > 1:
            seeded = np.random.default_rng(0)
            symbol = fit_spectral(lift.hessian_stack(q), x.shape, coupling, facts.f.modulus, seeded).symbol
        if self.penalty is None:
            # |dy| / |B dx| for a first exact step along p = -f'; curvatures where Y is unbounded.
            p, radius, rho = -(Hx + slope), facts.g.domain.radius(y), 1.0
            Hp, Bp = hessian(p), oracles.forward(p)
            curved, image = float(np.vdot(p, Hp)), float(np.vdot(Bp, Bp))
            if curved > 0.0 and image > 0.0:
                step = float(np.vdot(p, p)) / curved
                rho = radius / (step * math.sqrt(image)) if 0.0 < radius < math.inf else curved / image
        else:
            rho = float(self.penalty)
        term_size = length_of(x)
        return ADMMState(x, y, Bx, Hx, Bx, BTBx, constant, slope, Mean(*start), symbol, rho, term_size)

    def step(self, state: ADMMState, oracles: Oracles) -> ADMMState:
        rho, y, z = state.rho, state.y, state.z
        residual = -(state.Hx + state.slope + rho * state.BTBx + oracles.adjoint(y - rho * z))
        state, solved = self._conjugate_gradients(state, residual, oracles)
        new_y = oracles.prox_g(y + rho * state.Bx, 1.0 / rho)
        new_z = state.Bx + (y - new_y) / rho
        state = replace(state, y=new_y, z=new_z, mean=state.mean.plus(state.x, new_y))
        if self.penalty is not None or state.changes >= _MOST_CHANGES:
            return state
        # Double or halve the penalty where y and z travel at very different speeds. Where CG has not solved its system,
        # z lags behind for want of CG steps: a larger penalty would make that worse, and so would rise without end. So
        # would that of constraints: z stands still there, as soon as they hold.
        dual, primal = length_of(new_y - y), rho * length_of(new_z - z)
        size = length_of(new_y) + rho * length_of(new_z)
        factor = 2.0 if dual > _IMBALANCE * primal and solved else 0.5 if primal > _IMBALANCE * dual else 1.0
        if factor == 1.0 or max(dual, primal) <= _SETTLED * size:
            return state
        return replace(state, rho=factor * rho, changes=state.changes + 1)

    def _conjugate_gradients(self, state: ADMMState, r: Array, oracles: Oracles) -> tuple[ADMMState, bool]:
        """Move x towards the solution of (H + rho B^T B) x = right-hand side, r its residual; whether it got there."""
        rho, enough, lift = state.rho, self.cg_tolerance**2, oracles.whole_f_lift
        # The Hessian is the same everywhere.
        hessian, gram = lift.hessian(lift.blank(state.x)), oracles.problem.coupling.gram_symbol()
        weight = None if state.symbol is None or gram is None else state.symbol + rho * gram

        def precondition(r: Array) -> Array:
            return r if weight is None else from_coordinates(np.divide(to_coordinates(r, "dct"), weight), "dct")

        x, Hx, Bx, BTBx, term_size, fresh = state.x, state.Hx, state.Bx, state.BTBx, state.term_size, state.fresh
        p = s = precondition(r)
        first = rs = float(np.vdot(r, s))
        for taken in range(self.cg_steps):
            if not rs > (enough * first if taken else 0.0):
                break
            Hp, Bp = hessian(p), oracles.forward(p)
            BTBp = oracles.adjoint(Bp)
            step = rs / float(np.vdot(p, Hp + rho * BTBp))
            x, Hx, Bx, BTBx = x + step * p, Hx + step * Hp, Bx + step * Bp, BTBx + step * BTBp
            term_size += step * length_of(p) + length_of(x)
            r = r - step * (Hp + rho * BTBp)
            s = precondition(r)
            rs, before = float(np.vdot(r, s)), rs
            p, fresh = s + (rs / before) * p, False
        moved = replace(state, x=x, Hx=Hx, Bx=Bx, BTBx=BTBx, term_size=term_size, fresh=fresh)
        return moved, not rs > enough * first

    def point(self, state: ADMMState, oracles: Oracles) -> Point:
        if self.output == "last":
            return state.x, state.y
        return state.mean.x, oracles.problem.Y.project(state.mean.y)

    def candidates(self, state: ADMMState, oracles: Oracles) -> tuple[Candidate, ...]:
        """The output; f, its gradient and Bx at the last point, from one product with the Hessian and two with B."""
        if self.output == "average":
            return super().candidates(state, oracles)
        x, simple, lift = state.x, oracles.problem.f_parts[1], oracles.whole_f_lift
        if not state.fresh:
            # Sums over many steps drift away from the products at x, and a certificate must not. The same x: the state
            # goes on with them.
            Hx, Bx = lift.hessian(lift.blank(x))(x), oracles.forward(x)
            state.Hx, state.Bx, state.BTBx, state.fresh = Hx, Bx, oracles.adjoint(Bx), True
        # Of the part without a proximal step, as the judge wants them.
        value = state.constant + float(np.vdot(x, 0.5 * state.Hx + state.slope)) - value_aside(simple, x)
        slope = state.Hx + state.slope - gradient_aside(simple, x)
        # Bounds on the rounding of the value, made of the gradient, and of that, kept up to date by CG steps.
        f, size, steep = oracles.problem.f, length_of(x), length_of(slope)
        terms = length_of(state.Hx) + length_of(state.slope)
        summed = (inner_error(x.size) + FEW) * (terms * size + abs(state.constant))
        error = wrong = 0.0
        for _ in range(2):
            # The value says how large the terms are, up to its own error.
            wrong = read_rounding(f).at(state.term_size, value + error, steep, x.size).gradient
            error = 2.0 * wrong * size + summed + errors_at(f, x, value).value
        known = Linearisation(x, value, slope, (error, wrong))
        return (Candidate(x, state.y, value, state.Bx, known, error=error, term_size=state.term_size),)

    def notes(self, state: ADMMState, facts: Facts) -> tuple[str, ...]:
        kept, kind = "balanced" if self.penalty is None else "fixed", "no" if state.symbol is None else "spectral"
        about = f"first rho = {state.rho:.4g}, {kept}, {kind} preconditioner"
        return about, "inexact x-steps: the rate of exact ADMM is not promised"

    def calls(self, facts: Facts, tol: float) -> Calls | None:
        D_x, D_y = facts.distances
        bound = facts.norm * D_x * D_y / tol
        if not math.isfinite(bound):
            return None
        N = max(1, math.ceil(bound))
        return Calls(self.cg_steps * N, 0, (2 * self.cg_steps + 1) * N)
