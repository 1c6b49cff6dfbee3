"""`crossover`: from which prices on sliding pays, as the paper's rho*."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from saddleslide.api.solver import solve
from saddleslide.errors import raise_all
from saddleslide.methods.base import Method
from saddleslide.methods.catalogue import as_method
from saddleslide.oracles.calls import Calls
from saddleslide.planner.candidates import ADAPTIVE
from saddleslide.problem import SaddleProblem


@dataclass(frozen=True)
class Crossover:
    """The ratio rho* of gradient to product cost above which sliding is cheaper, and the calls it comes from.

    Parameters
    ----------
    ratio : float
        rho*: 0 where sliding always pays, infinite where it never does.
    sliding, other : Calls
        Calls of both methods at the target, without judging.
    method : str
        The other method.
    calls : Calls
        All calls that both runs made, judging included.

    Examples
    --------
    >>> Crossover(22.0, Calls(32, 16, 4096), Calls(112, 112, 224), "mirror-prox")
    sliding pays from 22 products a gradient: f' 32, g' 16, B 4096 against f' 112, g' 112, B 224 of mirror-prox
    """

    ratio: float
    sliding: Calls
    other: Calls
    method: str
    calls: Calls = field(default_factory=Calls)

    def __repr__(self) -> str:
        counts = " against ".join(f"f' {c.f:g}, g' {c.g:g}, B {c.B:g}" for c in (self.sliding, self.other))
        ends = {0.0: "sliding always pays", math.inf: "sliding never pays"}
        when = ends.get(self.ratio, f"sliding pays from {self.ratio:.3g} products a gradient")
        return f"{when}: {counts} of {self.method}"


def break_even(sliding: Calls, other: Calls) -> float:
    """The rho* of the paper: rho (N_f + N_g) + N_B is equal for both methods.

    Examples
    --------
    >>> [round(break_even(Calls(s, 0, b), Calls(m, 0, m))) for s, b, m in
    ...  ((48, 4096, 224), (96, 16384, 592), (192, 65536, 1632))]
    [22, 32, 44]
    """
    saved, extra = other.f + other.g - sliding.f - sliding.g, sliding.B - other.B
    if extra <= 0:
        return 0.0 if saved >= 0 else math.inf
    return extra / saved if saved > 0 else math.inf


def crossover(
    problem: SaddleProblem,
    tol: float,
    method: str | Method = "mirror-prox",
    options: Mapping[str, Any] | None = None,
) -> Crossover:
    """Run adaptive sliding and another method to the same certified gap, and compare their calls.

    Parameters
    ----------
    problem : SaddleProblem
        The problem.
    tol : float
        Target gap.
    method : str or Method, optional
        A method of `ss.methods` or its name; the paper's choice is Mirror-Prox.
    options : mapping, optional
        Settings of a method that was given by its name.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> f = ss.functions.LeastSquares(np.diag([3.0, 1.0, 0.5]), np.ones(3))
    >>> problem = ss.SaddleProblem(f=f, g=f, B=0.1 * np.eye(3), X=ss.domains.Ball(9.0, shape=3),
    ...                            Y=ss.domains.Ball(9.0, shape=3))
    >>> ss.crossover(problem, tol=1e-2).ratio < 1.0
    True
    """
    rival = as_method(method, options, "crossover")
    name = rival if isinstance(rival, str) else rival.description.name
    results = solve(problem, tol, method=ADAPTIVE), solve(problem, tol, method=rival)
    short = [
        f"{tried} ended with status {result.status.name}; expected SOLVED. Ask for a larger gap."
        for tried, result in zip((ADAPTIVE, name), results, strict=True)
        if not result.gap <= tol
    ]
    raise_all("crossover", short)
    sliding, other = (result.calls - result.certificate_calls for result in results)
    return Crossover(break_even(sliding, other), sliding, other, name, results[0].calls + results[1].calls)
