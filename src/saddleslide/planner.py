"""`plan`: reads the constants of a problem and turns them into a Plan."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any

import numpy as np

from saddleslide.arrays import Array, as_number
from saddleslide.errors import InputError, raise_all
from saddleslide.holder import Holder
from saddleslide.planning import Constant, Plan, Term, loop_counts, place, proved_kappa, sorted_by_budget
from saddleslide.planning.budgets import PRACTICAL_KAPPA
from saddleslide.planning.levels import check_loops
from saddleslide.problem import SaddleProblem

CONSTANT_NAMES = ("nu_x", "H_x", "nu_y", "H_y", "L_xy")


def plan(
    problem: SaddleProblem,
    tol: float | None = None,
    *,
    order: str | None = None,
    loops: Sequence[int] | None = None,
    metric: str | float | Sequence[float] = "identity",
    start: tuple[Any, Any] | None = None,
    kappa: float | None = None,
    proved: bool = False,
    constants: Mapping[str, float] | None = None,
) -> Plan:
    """Plan a run: explicit order and loops, or both from the target `tol` by Corollary 3.6.

    Parameters
    ----------
    problem : SaddleProblem
        What is to be solved.
    tol : float, optional
        Target gap. Needed unless `order` and `loops` are given.
    order : str, optional
        A permutation of "fgB", outermost level first. Sorted by budget when missing.
    loops : sequence of int, optional
        T_1, T_2, T_3, one per level. From the budgets when missing.
    metric : "identity", "balanced", a number or (w_x, w_y)
        Weights of P on the two blocks. "balanced" makes both blocks equally large (bounded domains).
    start : (x, y), optional
        Starting point, as for `run`.
    kappa : float, optional
        kappa_n of Corollary 3.6; 1 unless given.
    proved : bool, optional
        Use the constants that the corollary proves: kappa_n = 256 and eps = tol / 3.
    constants : mapping, optional
        Declared values of nu_x, H_x, nu_y, H_y (together as pairs) and L_xy, in place of the computed ones.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> f, box = ss.functions.Power(nu=1.0), ss.domains.Box(-1.0, 1.0, shape=60)
    >>> g, B = ss.functions.Power(nu=0.5), ss.couplings.as_coupling(2.0 * np.eye(60), norm=2.0)
    >>> found = ss.plan(ss.SaddleProblem(f=f, g=g, B=B, X=box, Y=box), tol=0.5)
    >>> found.order, found.predicted_calls
    ('fgB', {'f': 16, 'g': 96, 'B': 1920})
    """
    # Everything that costs no oracle call is checked first; the norm of B costs products.
    _check_request(problem, tol, order, loops, kappa)
    x, y = problem.start(start)
    weights, name = _weights(metric, problem, x, y)
    used = _constants(problem, constants or {})
    terms = _terms(used, weights, _squared_radius(problem, x, y, weights))
    eps = math.nan if tol is None else (tol / len(terms) if proved else tol)
    if order is None:
        terms = sorted_by_budget(terms, eps)
    else:
        terms = [{term.name: term for term in terms}[letter] for letter in order]
    if loops is None:
        kappa = (proved_kappa(len(terms)) if proved else PRACTICAL_KAPPA) if kappa is None else kappa
        loops = loop_counts(terms, eps, as_number(kappa, "plan: kappa", 0.0))
    return Plan(place(terms, loops), used, name, tol, kappa)


def _check_request(
    problem: SaddleProblem, tol: float | None, order: str | None, loops: Sequence[int] | None, kappa: float | None
) -> None:
    complaints = []
    if not isinstance(problem, SaddleProblem):
        complaints.append(f"problem is {type(problem).__name__}; expected a SaddleProblem.")
    if tol is None and (order is None or loops is None):
        complaints.append("tol is missing; expected a target gap, or both order= and loops=.")
    if tol is not None and not (isinstance(tol, Real) and math.isfinite(tol) and tol > 0.0):
        complaints.append(f"tol is {tol!r}; expected a finite number > 0.")
    if order is not None and (not isinstance(order, str) or sorted(order) != sorted("fgB")):
        complaints.append(f"order is {order!r}; expected a permutation of 'fgB', outermost level first.")
    raise_all("plan", complaints)
    if loops is not None:
        check_loops(loops, len("fgB"))
    if kappa is not None:
        as_number(kappa, "plan: kappa", 0.0)


def _constants(problem: SaddleProblem, declared: Mapping[str, float]) -> dict[str, Constant]:
    unknown = sorted(set(declared) - set(CONSTANT_NAMES))
    raise_all("plan", [f"constants has {unknown}; expected names among {list(CONSTANT_NAMES)}."] * bool(unknown))
    values = {name: as_number(value, f"plan: constants[{name!r}]", 0.0) for name, value in declared.items()}
    if values.get("L_xy") == 0.0:
        raise InputError(
            "plan: constants['L_xy'] is 0; expected an upper bound on the norm of B, > 0. Leave it out for B = 0."
        )
    f, g = problem.f.smoothness(problem.X), problem.g.smoothness(problem.Y)
    computed = {"nu_x": (f.nu, "f on X"), "H_x": (f.H, "f on X"), "nu_y": (g.nu, "g on Y"), "H_y": (g.H, "g on Y")}
    if "L_xy" not in declared:
        norm = problem.coupling.norm
        computed["L_xy"] = (norm.upper, f"norm of B, upper bound: {norm.method}")
    return {
        name: Constant(values[name], "declared") if name in values else Constant(*computed[name])
        for name in CONSTANT_NAMES
    }


def _weights(metric: Any, problem: SaddleProblem, x: Array, y: Array) -> tuple[tuple[float, float], str]:
    if isinstance(metric, str) and metric == "identity":
        return (1.0, 1.0), "identity"
    if isinstance(metric, str) and metric == "balanced":
        squares = problem.X.squared_radius(x), problem.Y.squared_radius(y)
        if not all(math.isfinite(square) for square in squares):
            raise InputError("plan: metric 'balanced' needs bounded domains; pass the weights (w_x, w_y).")
        return (1.0 / (squares[0] or 1.0), 1.0 / (squares[1] or 1.0)), "balanced"
    if isinstance(metric, str):
        raise InputError(f"plan: metric is {metric!r}; expected 'identity', 'balanced', a number or (w_x, w_y).")
    pair = (metric, metric) if np.isscalar(metric) or metric is None else tuple(metric)
    if len(pair) != 2:
        raise InputError(f"plan: metric has {len(pair)} weights; expected (w_x, w_y).")
    w_x, w_y = (as_number(weight, "plan: metric weight") for weight in pair)
    if min(w_x, w_y) <= 0.0:
        raise InputError(f"plan: metric weights are {(w_x, w_y)}; expected numbers > 0.")
    return (w_x, w_y), "identity" if (w_x, w_y) == (1.0, 1.0) else f"blocks ({w_x:.4g}, {w_y:.4g})"


def _squared_radius(problem: SaddleProblem, x: Array, y: Array, weights: tuple[float, float]) -> float:
    return float(weights[0] * problem.X.squared_radius(x) + weights[1] * problem.Y.squared_radius(y))


def _terms(used: Mapping[str, Constant], weights: tuple[float, float], Omega: float) -> list[Term]:
    """f, g and B in the P-norm; the order here breaks ties."""
    f = Holder(used["nu_x"].value, used["H_x"].value).in_metric(weights[0])
    g = Holder(used["nu_y"].value, used["H_y"].value).in_metric(weights[1])
    M = used["L_xy"].value / math.sqrt(weights[0] * weights[1])
    return [
        Term("f", f, weights=weights, Omega=Omega),
        Term("g", g, weights=weights, Omega=Omega),
        Term("B", M=M, weights=weights, Omega=Omega),
    ]
