"""ADMM on Bx = z with a few warm, possibly preconditioned, conjugate gradient steps for a quadratic f."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import final

import numpy as np

from saddleslide.arrays.base import Array
from saddleslide.certificates.candidate import Candidate, Linearisation
from saddleslide.functions import prox, split_simple
from saddleslide.functions.base import errors_at, gradient_aside, rounding_of, value_aside
from saddleslide.functions.roundings import FEW, inner_error
from saddleslide.methods.base import Description, Method, Option
from saddleslide.methods.field import Mean
from saddleslide.methods.reach import reach_from_start
from saddleslide.metrics import Metric, fit_spectral
from saddleslide.oracles.calls import Calls
from saddleslide.oracles.oracles import Oracles
from saddleslide.problem import SaddleProblem

# The penalty follows the distances travelled until it has changed so often; then it stays, as the theory wants.
_MOST_CHANGES = 60
_IMBALANCE = 4.0
# Steps below this part of what they change are left alone: their ratio says nothing, or is that of rounding.
_SETTLED = 1e-8


@final
class ADMM(Method):
    """x: CG on f + rho/2 |Bx - z + y/rho|^2 from the last x; z, y: one proximal step of g.

    A CG step costs one gradient of f (one product with its Hessian) and two products; all else follows from these.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> f = ss.functions.LeastSquares(np.array([[2.0, 0.0], [1.0, 1.0]]), [1.0, -1.0])
    >>> X, Y = ss.domains.FullSpace(2), ss.domains.Box(-0.5, 0.5, shape=1)
    >>> problem = ss.SaddleProblem(f=f, g=ss.functions.Zero(), B=np.array([[1.0, -1.0]]), X=X, Y=Y)
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
        options=(
            Option("cg_steps", 5, "most CG steps per iteration", whole=True),
            Option("cg_tolerance", 0.1, "CG stops when the residual has fallen to this part"),
            Option("penalty", None, "rho, kept fixed; by default balanced on the way"),
            Option("preconditioner", "auto", "spectral where x is a free image", ("auto", "none", "spectral")),
            Option("output", "last", "the last point, or the mean that the rate is about", ("last", "average")),
        ),
    )

    def lacks(self, problem: SaddleProblem) -> list[str]:
        found = super().lacks(problem)
        if self.options["preconditioner"] == "spectral" and problem.coupling.gram_symbol() is None:
            found.append("B^T B is not known to be diagonal in the cosine basis; expected FiniteDifferences.")
        return found

    def start(self, oracles: Oracles, origin: tuple[Array, Array], tol: float) -> None:
        self.oracles, self.problem = oracles, oracles.problem
        self.x, self.y = origin
        lift, zero = oracles.lifted(self.problem.f), np.zeros_like(self.x)
        q = lift.lift(zero)
        self.constant, self.slope = lift.value(zero, q), lift.gradient(zero, q)
        self.hessian = lift.hessian(q)
        probed = lift.hessian_stack(q)
        moved = bool(self.x.any())
        # Hx, Bx and B^T Bx follow x through all CG steps.
        self.Hx = self.hessian(self.x) if moved else zero
        self.Bx = oracles.forward(self.x) if moved else np.zeros_like(self.y)
        self.BTBx = oracles.adjoint(self.Bx) if moved else zero
        # Rounding of these products is relative to all that x has travelled.
        self.reach = float(np.linalg.norm(self.x))
        self.z = self.Bx
        # Whether these three are products made at x, and not sums over many steps.
        self.fresh = True
        self.preconditioner = self._metric(probed)
        self.changes = 0
        self.mean = Mean()
        self.mean.add(origin, 0.0)
        given = self.options["penalty"]
        self.rho = self._first_penalty() if given is None else float(given)
        self.fixed = given is not None

    def _metric(self, hessian: Callable[[Array], Array]) -> Metric | None:
        coupling = self.problem.coupling
        if self.options["preconditioner"] == "none" or coupling.gram_symbol() is None or len(self.problem.X.shape) < 2:
            return None
        modulus = self.problem.f.strong_convexity(self.problem.X)
        return fit_spectral(hessian, self.problem.X.shape, coupling, modulus, np.random.default_rng(0))

    def _first_penalty(self) -> float:
        """|dy| / |B dx| for a first exact step along the gradient of f; curvatures where Y is unbounded."""
        p = -(self.Hx + self.slope)
        Hp, Bp = self.hessian(p), self.oracles.forward(p)
        curved, image = float(np.vdot(p, Hp)), float(np.vdot(Bp, Bp))
        if not (curved > 0.0 and image > 0.0):
            return 1.0
        step = float(np.vdot(p, p)) / curved
        radius = self.problem.Y.radius(self.y)
        return radius / (step * math.sqrt(image)) if 0.0 < radius < math.inf else curved / image

    def advance(self) -> None:
        pull = self.oracles.adjoint(self.y - self.rho * self.z)
        solved = self._conjugate_gradients(-(self.Hx + self.slope + self.rho * self.BTBx + pull))
        y = prox(self.problem.g, self.y + self.rho * self.Bx, 1.0 / self.rho, self.problem.Y)
        z = self.Bx + (self.y - y) / self.rho
        dual, primal = float(np.linalg.norm(y - self.y)), self.rho * float(np.linalg.norm(z - self.z))
        self.y, self.z = y, z
        self.mean.add((self.x, y))
        if not self.fixed and self.changes < _MOST_CHANGES:
            self._balance(dual, primal, solved)

    def _balance(self, dual: float, primal: float, solved: bool) -> None:
        """Double or halve the penalty where y and z travel at very different speeds.

        Where CG has not solved its system, z lags behind for want of CG steps. A larger penalty would make that worse,
        and so would rise without end. So would that of constraints: z stands still there, as soon as they hold.
        """
        size = float(np.linalg.norm(self.y)) + self.rho * float(np.linalg.norm(self.z))
        if max(dual, primal) <= _SETTLED * size:
            return
        if dual > _IMBALANCE * primal and solved:
            self.rho, self.changes = 2.0 * self.rho, self.changes + 1
        elif primal > _IMBALANCE * dual:
            self.rho, self.changes = 0.5 * self.rho, self.changes + 1

    def _conjugate_gradients(self, r: Array) -> bool:
        """Move x towards the solution of (H + rho B^T B) x = right-hand side, r its residual; whether it got there."""
        most, part = int(self.options["cg_steps"] or 1), float(self.options["cg_tolerance"] or 0.0)
        s = self._preconditioned(r)
        rs = float(np.vdot(r, s))
        first, p = rs, s
        for taken in range(most):
            if not rs > (part**2 * first if taken else 0.0):
                return True
            Hp, Bp = self.hessian(p), self.oracles.forward(p)
            BTBp = self.oracles.adjoint(Bp)
            step = rs / float(np.vdot(p, Hp + self.rho * BTBp))
            self.x, self.Hx = self.x + step * p, self.Hx + step * Hp
            self.Bx, self.BTBx = self.Bx + step * Bp, self.BTBx + step * BTBp
            self.reach += step * float(np.linalg.norm(p)) + float(np.linalg.norm(self.x))
            r = r - step * (Hp + self.rho * BTBp)
            s = self._preconditioned(r)
            rs, before = float(np.vdot(r, s)), rs
            p = s + (rs / before) * p
            self.fresh = False
        return not rs > part**2 * first

    def _refresh(self) -> None:
        """Make the products at x anew: sums over many steps drift away from them, and a certificate must not."""
        if not self.fresh:
            self.Hx, self.Bx, self.fresh = self.hessian(self.x), self.oracles.forward(self.x), True
            self.BTBx = self.oracles.adjoint(self.Bx)

    def _preconditioned(self, r: Array) -> Array:
        metric = self.preconditioner
        if metric is None:
            return r
        return metric.from_basis(metric.solve(metric.to_basis(r), 1.0, self.rho))

    def output(self) -> tuple[Array, Array]:
        if self.options["output"] == "last":
            return self.x, self.y
        x, y = self.mean.point
        return x, self.problem.Y.project(y)

    def candidates(self) -> tuple[Candidate, ...]:
        """The output; f, its gradient and Bx at the last point, from one product with the Hessian and two with B."""
        if self.options["output"] == "average":
            return super().candidates()
        self._refresh()
        _, simple = split_simple(self.problem.f, self.problem.X)
        # Of the part without a proximal step, as the judge wants them.
        value = self.constant + float(np.vdot(self.x, 0.5 * self.Hx + self.slope)) - value_aside(simple, self.x)
        slope = self.Hx + self.slope - gradient_aside(simple, self.x)
        errors = self._errors(value, slope)
        known = Linearisation(self.x, value, slope, errors)
        return (Candidate(self.x, self.y, value, self.Bx, known, error=errors[0], reach=self.reach),)

    def _errors(self, value: float, slope: Array) -> tuple[float, float]:
        """Bounds on the rounding of the value, made of the gradient, and of that, kept up to date by CG steps."""
        size, steep = float(np.linalg.norm(self.x)), float(np.linalg.norm(slope))
        terms = float(np.linalg.norm(self.Hx)) + float(np.linalg.norm(self.slope))
        summed = (inner_error(self.x.size) + FEW) * (terms * size + abs(self.constant))
        error = 0.0
        for _ in range(2):
            # The value says how large the terms are, up to its own error.
            wrong = rounding_of(self.problem.f).at(self.reach, value + error, steep, self.x.size).gradient
            error = 2.0 * wrong * size + summed + errors_at(self.problem.f, self.x, value).value
        return error, wrong

    @property
    def notes(self) -> tuple[str, ...]:
        kind = "no" if self.preconditioner is None else "spectral"
        inexact = "inexact x-steps: the rate of exact ADMM is not promised"
        return (f"first rho = {self.rho:.4g}, {'fixed' if self.fixed else 'balanced'}, {kind} preconditioner", inexact)

    def predicted_calls(self, problem: SaddleProblem, tol: float) -> Calls | None:
        D_x, D_y = reach_from_start(problem)
        bound = problem.coupling.norm.upper * D_x * D_y / tol
        if not math.isfinite(bound):
            return None
        N, steps = max(1, math.ceil(bound)), int(self.options["cg_steps"] or 1)
        return Calls(steps * N, 0, (2 * steps + 1) * N)
