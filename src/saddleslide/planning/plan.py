"""The plan: what a run intends, as data. No arrays."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

from saddleslide.errors import InputError
from saddleslide.holder import Holder
from saddleslide.planning.bounds import printed_holder_bound, printed_inexact_bound, sharp_bound
from saddleslide.planning.levels import Level, Term, place

PRODUCTS_PER_COUPLING_STEP = 4


@dataclass(frozen=True)
class Constant:
    """A number the plan relies on, and where it came from.

    Examples
    --------
    >>> Constant(2.0, "declared").origin
    'declared'
    """

    value: float
    origin: str


@dataclass(frozen=True)
class Plan:
    """What a run intends: order of the levels, loop counts, metric, constants, and the bound they prove.

    Parameters
    ----------
    levels : tuple of Level
        Outermost first.
    constants : dict
        Every constant used, by name, with its origin.
    tol : float or None
        Target the plan was made for.
    kappa : float or None
        kappa_n of Corollary 3.6, None for explicit loops.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> f, box = ss.functions.Quadratic(1.0), ss.domains.Box(-1.0, 1.0, shape=3)
    >>> plan = ss.plan(ss.SaddleProblem(f=f, g=f, B=np.eye(3), X=box, Y=box), order="fgB", loops=(4, 2, 3))
    >>> plan.predicted_calls
    {'f': 4, 'g': 8, 'B': 96}
    """

    levels: tuple[Level, ...]
    constants: dict[str, Constant] = field(default_factory=dict)
    metric: str = "identity"
    tol: float | None = None
    kappa: float | None = None

    @property
    def order(self) -> str:
        """Names of the levels, outermost first."""
        return "".join(level.term.name for level in self.levels)

    @property
    def loops(self) -> tuple[int, ...]:
        """Iterations per entry of each level, outermost first."""
        return tuple(level.T for level in self.levels)

    @property
    def bound(self) -> float:
        """Sharp right-hand side of Theorem 3.5; infinite on unbounded domains."""
        return sharp_bound(self.levels)

    @property
    def printed_bound(self) -> float:
        """Right-hand side as printed: of Theorem 3.5, or of Theorem 3.3 for declared inexact oracles and noise."""
        if any(level.term.inexact is not None or level.term.tau > 0.0 for level in self.levels):
            return printed_inexact_bound(self.levels)
        return printed_holder_bound(self.levels)

    @property
    def theorem(self) -> str:
        """The statement behind `bound`."""
        return "Theorem 3.5" if math.isfinite(self.bound) else "none: the domain is unbounded"

    @property
    def proved(self) -> bool:
        """Whether the theorem promises `tol` for this plan; without a target, whether the bound is finite."""
        return self.bound <= (math.inf if self.tol is None else self.tol) and math.isfinite(self.bound)

    @property
    def predicted_calls(self) -> dict[str, int]:
        """Calls per oracle: N_i gradients, and 4 products per iteration of the coupling."""
        calls = dict.fromkeys("fgB", 0)
        for level in self.levels:
            products = PRODUCTS_PER_COUPLING_STEP if level.term.M > 0.0 else 0
            calls[level.term.name] = level.N * (products if level.term.name == "B" else 1)
        return calls

    def explain(self) -> str:
        """The plan as readable lines.

        Examples
        --------
        >>> import numpy as np, saddleslide as ss
        >>> f, box = ss.functions.Quadratic(1.0), ss.domains.Box(-1.0, 1.0, shape=3)
        >>> plan = ss.plan(ss.SaddleProblem(f=f, g=f, B=np.eye(3), X=box, Y=box), order="fgB", loops=(4, 2, 3))
        >>> print(plan.explain())  # doctest: +ELLIPSIS
        Plan fgB, loops (4, 2, 3), metric identity
        ...
        """
        calls = self.predicted_calls
        lines = [
            f"Plan {self.order}, loops {self.loops}, metric {self.metric}",
            f"  bound    {self.bound:.4g} ({self.theorem}; as printed {self.printed_bound:.4g})",
            f"  target   {'none' if self.tol is None else f'{self.tol:g}'}"
            f"{'' if self.tol is None else ', proved' if self.proved else ', not proved: judge by the gap'}",
            f"  calls    f' {calls['f']:,}   g' {calls['g']:,}   B and B^T {calls['B']:,}",
        ]
        lines += [
            f"  level {i}  {level.term.name}: T = {level.T}, N = {level.N}, L = {level.L:.4g}, "
            f"M = {level.term.M:.4g}, delta = {level.delta:.3g}, Omega = {level.term.Omega:.4g}"
            for i, level in enumerate(self.levels, start=1)
        ]
        lines += [f"  {name:<8} {constant.value:.6g} ({constant.origin})" for name, constant in self.constants.items()]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and strings, for JSON; `Plan.from_dict` reads them back.

        Examples
        --------
        >>> Plan(levels=place([Term("B", M=1.0, Omega=2.0)], (3,))).to_dict()["loops"]
        [3]
        """
        return {
            "loops": list(self.loops),
            "metric": self.metric,
            "tol": self.tol,
            "kappa": self.kappa,
            "terms": [_term_to_dict(level.term) for level in self.levels],
            "constants": {name: [c.value, c.origin] for name, c in self.constants.items()},
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Plan:
        """Read what `to_dict` wrote.

        Examples
        --------
        >>> plan = Plan(levels=place([Term("B", M=1.0, Omega=2.0)], (3,)))
        >>> Plan.from_dict(plan.to_dict()) == plan
        True
        """
        try:
            terms = [_term_from_dict(term) for term in data["terms"]]
            constants = {name: Constant(*pair) for name, pair in data["constants"].items()}
            return cls(place(terms, data["loops"]), constants, data["metric"], data["tol"], data["kappa"])
        except (KeyError, TypeError) as error:
            raise InputError(f"Plan.from_dict: {error!r} in the data; expected what Plan.to_dict wrote.") from error


def _term_to_dict(term: Term) -> dict[str, Any]:
    smoothness = None if term.smoothness is None else [term.smoothness.nu, term.smoothness.H]
    return {
        "name": term.name,
        "smoothness": smoothness,
        "M": term.M,
        "tau": term.tau,
        "Omega": term.Omega if math.isfinite(term.Omega) else None,
        "inexact": None if term.inexact is None else list(term.inexact),
        "weights": list(term.weights),
    }


def _term_from_dict(data: dict[str, Any]) -> Term:
    inexact = None if data["inexact"] is None else (float(data["inexact"][0]), float(data["inexact"][1]))
    smoothness = None if data["smoothness"] is None else Holder(*data["smoothness"])
    Omega = math.inf if data["Omega"] is None else data["Omega"]
    return Term(data["name"], smoothness, data["M"], inexact, data["tau"], tuple(data["weights"]), Omega)
