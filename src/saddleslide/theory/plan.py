"""The plan: what a run intends, as data. No arrays."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from saddleslide.errors import InputError
from saddleslide.theory.holder import Holder
from saddleslide.theory.hypotheses import Hypothesis, hypotheses_from_data, hypotheses_to_data
from saddleslide.theory.levels import Term


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


@dataclass(frozen=True, kw_only=True)
class Plan(ABC):
    """What a run intends: `ss.plan` makes it, `ss.solve` begins with the same one, `ss.run` carries it out.

    A plan is plain data. `to_dict` goes into JSON, `Plan.from_dict` reads any plan back, and the same plan gives the
    same bits: whatever was random or measured while it was made is written in it.

    Parameters
    ----------
    tol : float or None
        Target gap.
    rtol : float
        Target relative to the gap at the start; the larger of both targets counts.
    constants : dict
        Every constant used, by name, with its origin.
    hypotheses : tuple of Hypothesis
        All that a theorem asks for, with how it is known.
    reasons : tuple of str
        Why the method and its settings were chosen, and what was rejected.
    costs : (c_f, c_g, c_B) or None
        Prices of the oracles that the plan was made with: declared, measured or estimated from sizes.
    alternatives : tuple of (description, predicted cost)
        What else was considered, and what it would have cost.
    shapes : (x shape, y shape) or None
        Of the problem the plan was made for; `run` refuses others.
    seed : int
        Seed of all that is random in the run.
    spent : (f, g, B)
        Calls that making the plan took. They are in `result.calls`, of `run` as of `solve`.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> simplex, zero = ss.domains.Simplex(3), ss.functions.Zero()
    >>> game = ss.SaddleProblem(f=zero, g=zero, B=np.eye(3), X=simplex, Y=simplex)
    >>> plan = ss.plan(game, tol=1e-3)
    >>> plan == ss.solve(game, tol=1e-3).plans[0]
    True
    """

    # A field that only this kind of plan has.
    mark: ClassVar[str] = ""

    tol: float | None = None
    rtol: float = 0.0
    constants: dict[str, Constant] = field(default_factory=dict)
    hypotheses: tuple[Hypothesis, ...] = ()
    reasons: tuple[str, ...] = ()
    costs: tuple[float, float, float] | None = None
    alternatives: tuple[tuple[str, float], ...] = ()
    shapes: tuple[tuple[int, ...], tuple[int, ...]] | None = None
    seed: int = 0
    spent: tuple[float, float, int] = field(default=(0, 0, 0), compare=False)

    @property
    def regime(self) -> str:
        """The regime of the paper, "adaptive" for adaptive sliding, "method" for a named method."""
        return "method"

    @property
    def order(self) -> str:
        """Names of the levels, outermost first; empty where the method has none."""
        return ""

    @property
    def bound(self) -> float:
        """Bound on the gap that a theorem promises; infinite where none does."""
        return math.inf

    @property
    def proved(self) -> bool:
        """Whether a theorem promises the target; elsewhere the certificate is the proof."""
        return False

    @property
    def sampled(self) -> bool:
        """Whether a gradient is sampled, so that every bound is in expectation."""
        return False

    @property
    def simple_terms(self) -> tuple[str, ...]:
        """What is in the projection or proximal step instead of costing calls, for people."""
        return ()

    @property
    @abstractmethod
    def predicted_calls(self) -> Mapping[str, float]:
        """Calls per oracle: proved, or expected; empty where nothing was predicted."""

    @abstractmethod
    def explain(self) -> str:
        """The plan as readable lines.

        Examples
        --------
        >>> import numpy as np, saddleslide as ss
        >>> simplex, zero = ss.domains.Simplex(3), ss.functions.Zero()
        >>> game = ss.SaddleProblem(f=zero, g=zero, B=np.eye(3), X=simplex, Y=simplex)
        >>> print(ss.plan(game, tol=1e-3, method="mirror-prox").explain())
        Plan: mirror-prox, output average, metric balanced
          target   gap at most 0.001
          inspect  every 10 % more iterations
        """

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and strings, for JSON; `Plan.from_dict` reads them back.

        Examples
        --------
        >>> import numpy as np, saddleslide as ss
        >>> simplex, zero = ss.domains.Simplex(3), ss.functions.Zero()
        >>> game = ss.SaddleProblem(f=zero, g=zero, B=np.eye(3), X=simplex, Y=simplex)
        >>> ss.plan(game, tol=1e-3).to_dict()["tol"]
        0.001
        """
        return {
            "tol": self.tol,
            "rtol": self.rtol,
            "constants": {name: [constant.value, constant.origin] for name, constant in self.constants.items()},
            "hypotheses": hypotheses_to_data(self.hypotheses),
            "reasons": list(self.reasons),
            "costs": None if self.costs is None else list(self.costs),
            "alternatives": [list(pair) for pair in self.alternatives],
            "shapes": None if self.shapes is None else [list(shape) for shape in self.shapes],
            "seed": self.seed,
            "spent": list(self.spent),
            **self.own_data(),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Plan:
        """The plan that `to_dict` wrote, of whatever kind.

        Examples
        --------
        >>> import json, numpy as np, saddleslide as ss
        >>> simplex, zero = ss.domains.Simplex(2), ss.functions.Zero()
        >>> game = ss.SaddleProblem(f=zero, g=zero, B=np.eye(2), X=simplex, Y=simplex)
        >>> result = ss.solve(game, 1e-3)
        >>> text = json.dumps(result.plans[0].to_dict())
        >>> again = ss.run(game, ss.Plan.from_dict(json.loads(text)))
        >>> bool((again.x == result.x).all())
        True
        """
        if not isinstance(data, Mapping):
            raise InputError(f"Plan.from_dict: received {type(data).__name__}; expected what a plan's to_dict wrote.")
        known = {kind.mark: kind for kind in _kinds(cls)}
        found = [kind for mark, kind in known.items() if mark in data]
        if not found:
            names = sorted(map(str, data))
            raise InputError(
                f"Plan.from_dict: the data has {names}; expected what to_dict wrote, with one of {sorted(known)}."
            )
        try:
            return found[0](**_common_from_data(data), **found[0].own_from_data(data))
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"Plan.from_dict: {error!r} in the data; expected what to_dict wrote.") from error

    @abstractmethod
    def own_data(self) -> dict[str, Any]:
        """What only this kind of plan has, as plain data."""

    @classmethod
    @abstractmethod
    def own_from_data(cls, data: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments that `own_data` wrote."""


def _kinds(base: type[Any]) -> list[type[Plan]]:
    """All kinds of plans that can be made."""
    found = [base] if base.mark else []
    return found + [kind for below in base.__subclasses__() for kind in _kinds(below)]


def _common_from_data(data: Mapping[str, Any]) -> dict[str, Any]:
    costs, shapes = data["costs"], data["shapes"]
    return {
        "tol": data["tol"],
        "rtol": data["rtol"],
        "constants": {name: Constant(*pair) for name, pair in data["constants"].items()},
        "hypotheses": hypotheses_from_data(data["hypotheses"]),
        "reasons": tuple(data["reasons"]),
        "costs": None if costs is None else tuple(costs),
        "alternatives": tuple((str(name), float(cost)) for name, cost in data["alternatives"]),
        "shapes": None if shapes is None else (tuple(shapes[0]), tuple(shapes[1])),
        "seed": data["seed"],
        "spent": tuple(data["spent"]),
    }


def target_words(plan: Plan) -> str:
    """The target, for people."""
    words = [f"gap at most {plan.tol:g}"] if plan.tol else []
    return " or ".join(words + ([f"{plan.rtol:g} of the gap at the start"] if plan.rtol > 0.0 else []))


def prediction_lines(plan: Plan) -> list[str]:
    """Expected calls and cost, and what else was considered, for people; nothing where nothing was predicted."""
    calls = plan.predicted_calls
    if not calls:
        return []
    f, g, B = (calls[name] for name in "fgB")
    about = f"  calls    about f' {f:,.3g}   g' {g:,.3g}   B and B^T {B:,.3g}"
    return [about, *cost_lines(calls, plan.costs, plan.alternatives)]


def weighted_cost(calls: Mapping[str, float], costs: tuple[float, float, float]) -> float:
    """c_f N_f + c_g N_g + c_B N_B.

    Examples
    --------
    >>> weighted_cost({"f": 2, "g": 3, "B": 8}, (10.0, 1.0, 0.5))
    27.0
    """
    c_f, c_g, c_B = costs
    return math.fsum((c_f * calls["f"], c_g * calls["g"], c_B * calls["B"]))


def cost_lines(
    calls: Mapping[str, float],
    costs: tuple[float, float, float] | None,
    alternatives: Sequence[tuple[str, float]],
    share: float = 1.0,
) -> list[str]:
    """Expected cost and rejected alternatives, for people; `share` is the part of the calls expected to be needed."""
    if costs is None:
        return []
    prices = f"f' {costs[0]:.4g}, g' {costs[1]:.4g}, B {costs[2]:.4g}"
    lines = [f"  cost     {share * weighted_cost(calls, costs):.4g} expected, at prices {prices}"]
    return lines + [f"  instead  {name}: {cost:.4g}" for name, cost in alternatives]


def metric_to_data(given: Any) -> Any:
    """A metric as plain data; what is data already, and None, as it is."""
    return given if given is None or isinstance(given, dict) else given.to_dict()


def metric_lines(given: Any) -> list[str]:
    """The norm of the x block, for people."""
    if given is None:
        return []
    return [f"  norm     of x: {given['kind'] if isinstance(given, dict) else given.name}"]


def term_to_dict(term: Term) -> dict[str, Any]:
    """A term as plain numbers and strings."""
    smoothness = None if term.smoothness is None else [term.smoothness.nu, term.smoothness.H]
    return {
        "name": term.name,
        "smoothness": smoothness,
        "M": term.M,
        "tau": term.tau,
        "Omega": term.Omega if math.isfinite(term.Omega) else None,
        "inexact": None if term.inexact is None else list(term.inexact),
        "weights": list(term.weights),
        "variance": term.variance,
    }


def term_from_dict(data: dict[str, Any]) -> Term:
    """The term that `term_to_dict` wrote."""
    inexact = None if data["inexact"] is None else (float(data["inexact"][0]), float(data["inexact"][1]))
    smoothness = None if data["smoothness"] is None else Holder(*data["smoothness"])
    Omega = math.inf if data["Omega"] is None else data["Omega"]
    weights, variance = tuple(data["weights"]), data.get("variance", 0.0)
    return Term(data["name"], smoothness, data["M"], inexact, data["tau"], weights, Omega, variance)
