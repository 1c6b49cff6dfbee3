"""Optimal transport between two histograms, with an optional quadratic or entropic regularisation."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Any, final

import numpy as np
import scipy

import saddleslide as ss
from saddleslide.arrays.arguments import as_word
from saddleslide.arrays.base import Array, as_number, as_real
from saddleslide.domains.entrywise import Box
from saddleslide.errors import InputError, raise_all
from saddleslide.functions.base import Function
from saddleslide.functions.entropies import Entropy
from saddleslide.functions.entrywise import Linear
from saddleslide.functions.quadratic import Quadratic
from saddleslide.gallery.solution import Fact, Solution, count_used, keep_kind
from saddleslide.operators.structured import Marginals
from saddleslide.plots import STYLES
from saddleslide.problem import SaddleProblem

# Marginals whose sums differ by more than this part are not those of one plan; less is rounding in single precision.
_SAME_SUM = 1e-6
# Weight of a regulariser that is named without one.
_WEIGHT = 0.1


@final
@dataclass(frozen=True, eq=False, repr=False)
class TransportSolution(Solution):
    """Plan and potentials.

    Examples
    --------
    >>> import saddleslide as ss
    >>> problem = ss.gallery.transport([[0.0, 1.0], [1.0, 0.0]], [0.5, 0.5], [0.25, 0.75])
    >>> solution = problem.read(ss.solve(problem, tol=1e-8))
    >>> solution.plan.round(5).tolist(), round(solution.cost, 6)
    ([[0.25, 0.25], [0.0, 0.5]], 0.25)
    """

    costs: Array
    marginals: tuple[Array, Array]
    regularisation: float
    regulariser: str
    result: ss.Result

    @property
    def plan(self) -> Array:
        """Nonnegative, with the given marginals up to rounding: the point of the run with what it lacks filled in."""
        # The rounding of Altschuler, Weed and Rigollet: shrink rows and columns that are too full, then fill up.
        plan, (a, b) = np.maximum(self.result.x, 0.0), self.marginals
        for axis, limits in ((1, a), (0, b)):
            sums = plan.sum(axis=axis, keepdims=True)
            full = np.divide(limits.reshape(sums.shape), sums, out=np.ones_like(sums), where=sums > 0.0)
            plan = plan * np.minimum(1.0, full)
        lacking, wanted = np.maximum(a - plan.sum(axis=1), 0.0), np.maximum(b - plan.sum(axis=0), 0.0)
        total = float(lacking.sum())
        return plan + np.outer(lacking, wanted) / total if total > 0.0 else plan

    @property
    def cost(self) -> float:
        """<costs, plan>."""
        return float(np.vdot(self.costs, self.plan))

    @property
    def objective(self) -> float:
        """The cost with its regulariser, at `plan`: an upper bound on the minimum; `result.lower` is a lower one."""
        plan = self.plan
        if self.regulariser == "entropy":
            return self.cost + self.regularisation * float(scipy.special.xlogy(plan, plan).sum())
        return self.cost + 0.5 * self.regularisation * float(np.vdot(plan, plan))

    @property
    def potentials(self) -> tuple[Array, Array]:
        """Vectors u, v with u_i + v_j <= costs_ij + regularisation plan_ij, equal up to the gap where plan_ij > 0.

        With the entropy they are those of the run: plan_ij is about exp((u_i + v_j - costs_ij) / regularisation - 1).
        """
        if self.regulariser == "entropy":
            u, v = np.split(-self.result.y, [self.costs.shape[0]])
            return u, v
        slopes = self.costs + self.regularisation * self.plan
        v = -self.result.y[self.costs.shape[0] :]
        # Columns without mass have no say in v, so they get theirs from u.
        massive = self.marginals[1] > 0.0
        u = (slopes - v)[:, massive].min(axis=1)
        return u, (slopes - u[:, None]).min(axis=0)

    @property
    def marginal_error(self) -> float:
        """How far the point of the run was from the marginals: the sum of all deviations."""
        x, (a, b) = self.result.x, self.marginals
        return float(np.abs(x.sum(axis=1) - a).sum() + np.abs(x.sum(axis=0) - b).sum())

    def facts(self) -> dict[str, Fact]:
        return {
            "cost": self.cost,
            "objective": self.objective,
            "minimum at least": self.result.lower,
            "marginal error before rounding": self.marginal_error,
            "entries in use": count_used(self.plan),
        }

    def arrays(self) -> dict[str, Array]:
        u, v = self.potentials
        return {"plan": self.plan, "row_potential": u, "column_potential": v}

    def draw(self, figure: Any) -> None:
        left, right = figure.subplots(1, 2)
        shown = left.imshow(self.plan, cmap="Blues", aspect="auto")
        left.set(title="plan", xlabel="to", ylabel="from")
        figure.colorbar(shown, ax=left)
        for name, values, style in zip(("from", "to"), self.potentials, STYLES, strict=False):
            right.plot(np.arange(values.size), values, color=style[0], marker=style[1], markersize=3, label=name)
        right.set(title="potentials", xlabel="bin")
        right.legend(frameon=False)
        within = self.objective - self.result.lower
        figure.suptitle(f"cost {self.cost:.6g}, objective within {within:.1e} of the minimum")


@keep_kind
def transport(
    costs: Any, source: Any, target: Any, *, regularisation: float | None = None, regulariser: str | None = None
) -> SaddleProblem[TransportSolution]:
    """Move `source` to `target`: min over plans P >= 0 with these sums of <costs, P> + regularisation/2 |P|^2.

    Parameters
    ----------
    costs : m x n array
        Cost of moving one unit from i to j.
    source, target : arrays of m and of n numbers >= 0
        Marginals, with equal sums. Sums that differ by rounding, at most by a part of 1e-6, are made equal: `target` is
        scaled to the sum of `source`.
    regularisation : float, optional
        Weight of the regulariser, >= 0; 0, the default without a regulariser, is the linear program.
    regulariser : "quadratic" or "entropy", optional
        |P|^2 / 2, which keeps most entries at 0, or sum P log P, which makes all of them positive; with it the
        weight is 0.1 when missing. A weight alone is that of the quadratic.

    Returns
    -------
    SaddleProblem
        `problem.read(result)` is a TransportSolution.

    Examples
    --------
    >>> transport([[0.0, 1.0], [1.0, 0.0]], [0.5, 0.5], [0.25, 0.5])
    Traceback (most recent call last):
    ...
    saddleslide.errors.InputError: transport: source sums to 1 and target to 0.75; expected equal sums. ...
    """
    C = as_real(costs, "transport: costs")
    a, b = as_real(source, "transport: source"), as_real(target, "transport: target")
    if regulariser is not None:
        as_word(regulariser, "transport: regulariser", ("quadratic", "entropy"))
    default = 0.0 if regulariser is None else _WEIGHT
    weight = as_number(default if regularisation is None else regularisation, "transport: regularisation", 0.0)
    kind = regulariser or "quadratic"
    shapes = C.shape, a.shape, b.shape
    if C.ndim != 2 or C.size == 0 or shapes[1:] != (C.shape[:1], C.shape[1:]):
        told = "costs, source and target have shapes {}, {} and {}".format(*shapes)
        raise InputError(f"transport: {told}; expected (m, n), (m,) and (n,).")
    signs = (("source", float(a.min())), ("target", float(b.min())))
    wrong = [f"{name} has a negative entry {least:g}; expected numbers >= 0." for name, least in signs if least < 0.0]
    sums = float(a.sum()), float(b.sum())
    if abs(sums[0] - sums[1]) > _SAME_SUM * max(map(abs, sums)):
        wrong.append(
            f"source sums to {sums[0]:.9g} and target to {sums[1]:.9g}; expected equal sums. "
            "Divide each by its sum to compare histograms of different mass."
        )
    elif sums[0] <= 0.0:
        wrong.append("source and target sum to 0; expected some mass to move.")
    raise_all("transport", wrong)
    # Histograms divided by their sums in single precision differ a little: one plan needs one mass.
    b = b * (sums[0] / sums[1])
    reader = partial(TransportSolution, C, (a, b), weight, kind)
    marginals, B = Linear(np.concatenate([a, b])), Marginals(C.shape)
    # No plan exceeds half of this cap. It bounds X, so linear costs have a certificate too, and is never active.
    cap = 2.0 * np.minimum.outer(a, b)
    if kind == "entropy" and weight > 0.0:
        Y = _entropic_potentials(C, a, b, weight)
        return SaddleProblem(f=Linear(C) + weight * Entropy(), g=marginals, B=B, X=Box(0.0, cap), Y=Y, reader=reader)
    f: Function = Linear(C) if weight == 0.0 else Linear(C) + Quadratic(weight)
    # The plan is also optimal for the linear costs c = C + regularisation plan. Take potentials that are conjugate in c
    # and shift them until the largest u is max(c)/2: then all entries lie in [min(c) - max(c)/2, max(c)/2].
    low, high = float(C.min()), float(C.max()) + 0.5 * weight * float(cap.max())
    # Twice what is needed, so that the gap bounds the error of the marginals.
    bound = 2.0 * max(abs(low - 0.5 * high), abs(0.5 * high), math.ulp(1.0))
    X, Y = Box(0.0, cap), Box(-bound, bound, shape=a.size + b.size)
    return SaddleProblem(f=f, g=marginals, B=B, X=X, Y=Y, reader=reader)


def _entropic_potentials(C: Array, a: Array, b: Array, weight: float) -> Box:
    """A box that holds an optimal y with room around it, so that the gap bounds the error of the marginals.

    The plan is exp((u_i + v_j - C_ij) / weight - 1). Its row sums make u_i - weight log a_i a soft minimum of
    C_ij - v_j, which varies with i by at most max(C) - min(C); u is shifted so that these numbers lie around 0, and the
    column sums give v.
    """
    low, high = float(C.min()), float(C.max())
    room = 0.5 * (high - low)
    at_u, at_v = (weight * np.log(side, out=np.zeros_like(side), where=side > 0.0) for side in (a, b))
    at_v = at_v + weight * (1.0 - math.log(float(a.sum()))) + 0.5 * (low + high)
    slack = room + weight
    widths = np.repeat([room + slack, 2.0 * room + slack], [a.size, b.size])
    y = -np.concatenate([at_u, at_v])
    return Box(y - widths, y + widths)
