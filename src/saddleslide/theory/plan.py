"""The plan: what a run intends, as data. No arrays."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from saddleslide.errors import InputError
from saddleslide.theory.bounds import printed_holder_bound, printed_inexact_bound, sharp_bound
from saddleslide.theory.holder import Holder
from saddleslide.theory.hypotheses import Hypothesis, all_hold, hypotheses_from_data, hypotheses_to_data, missing_words
from saddleslide.theory.levels import Level, Term, place
from saddleslide.theory.noise import ESTIMATE, is_noisy, noise_lines, rests_on_estimate, samples_of

PRODUCTS_PER_COUPLING_STEP = 4
# How an innermost coupling steps, with its products a step: the paper's form, and the one of docs/theory.md.
EXTRAGRADIENT, PRIMAL_DUAL = "extragradient", "primal-dual"
COUPLING_STEPS = {EXTRAGRADIENT: PRODUCTS_PER_COUPLING_STEP, PRIMAL_DUAL: 2}


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
    costs : (c_f, c_g, c_B) or None
        Prices of the oracles that the choice was made with.
    alternatives : tuple of (description, predicted cost)
        What else was considered, and what it would have cost.
    shapes : (x shape, y shape) or None
        Of the problem the plan was made for; `run` refuses others.
    simple : tuple of "f", "g"
        Functions whose simple terms are in the projection step; one that is simple as a whole has no level.
    given : object or dict or None
        Norm of the x block, from `ss.metrics` or as its `to_dict` wrote it; None for a number.
    coupling_step : "extragradient" or "primal-dual"
        The paper's step, four products, or the one of docs/theory.md with the same bound, two products.
    hypotheses : tuple of Hypothesis
        All that the theorem asks for, with how it is known. `proved` needs every one.
    planning_calls : dict or None
        Calls per oracle that making the plan took, outside of any run; None where that is not known, as of a plan from
        a file. No part of what `to_dict` writes, and none of what makes two plans equal.

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
    costs: tuple[float, float, float] | None = None
    alternatives: tuple[tuple[str, float], ...] = ()
    shapes: tuple[tuple[int, ...], tuple[int, ...]] | None = None
    simple: tuple[str, ...] = ()
    given: Any = None
    coupling_step: str = EXTRAGRADIENT
    hypotheses: tuple[Hypothesis, ...] = ()
    planning_calls: dict[str, float] | None = field(default=None, compare=False, repr=False)

    @property
    def regime(self) -> str:
        """One run of the recursion, without restarts."""
        return "degenerate"

    @property
    def simple_terms(self) -> tuple[str, ...]:
        """What is in the projection step instead of costing a level, for people."""
        return tuple(f"the simple terms of {name} are in the projection step" for name in self.simple)

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
        """Sharp right-hand side of Theorem 3.5; infinite on unbounded domains.

        With sampled gradients: of Theorem VI_sliding_stochastic_uniform, a bound on the expected gap.
        """
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
        if not math.isfinite(self.bound):
            return "none: the domain is unbounded"
        if self.sampled:
            return "Theorem VI_sliding_stochastic_uniform, in expectation"
        declared = any(level.term.inexact is not None for level in self.levels)
        named = "Theorem 3.3 with the declared oracles" if declared else "Theorem 3.5"
        return named + (", primal-dual steps" if self.coupling_step == PRIMAL_DUAL else "")

    @property
    def sampled(self) -> bool:
        """Whether a gradient is sampled, so that `bound` is on the expected gap."""
        return is_noisy(level.term for level in self.levels)

    @property
    def predicted_samples(self) -> dict[str, int]:
        """Samples per oracle: calls times batch for sampled gradients, 0 for exact ones."""
        return samples_of(self.predicted_calls, self.constants)

    @property
    def proved(self) -> bool:
        """Whether the theorem promises `tol` for this plan; without a target, whether the bound is finite."""
        if rests_on_estimate(self.constants) or not all_hold(self.hypotheses):
            return False
        return self.bound <= (math.inf if self.tol is None else self.tol) and math.isfinite(self.bound)

    @property
    def predicted_calls(self) -> dict[str, int]:
        """Calls per oracle as the theorem counts them: N_i gradients, and 4 products per iteration of the coupling.

        Primal-dual steps take 2 products each. A run makes up to 4 fewer in all: see `Result.spared`.
        """
        calls = dict.fromkeys("fgB", 0)
        for level in self.levels:
            products = COUPLING_STEPS[self.coupling_step] if level.term.M > 0.0 else 0
            calls[level.term.name] = level.N * (products if level.term.name == "B" else 1)
        return calls

    def explain(self) -> str:
        """The plan as readable lines.

        Examples
        --------
        >>> import numpy as np, saddleslide as ss
        >>> f, box = ss.functions.Quadratic(1.0), ss.domains.Box(-1.0, 1.0, shape=3)
        >>> problem = ss.SaddleProblem(f=f, g=f, B=np.eye(3), X=box, Y=box)
        >>> plan = ss.plan(problem, order="fgB", loops=(4, 2, 3), metric="identity")
        >>> print(plan.explain())  # doctest: +ELLIPSIS
        Plan fgB, loops (4, 2, 3), metric identity
        ...
        """
        calls = self.predicted_calls
        lines = [
            f"Plan {self.order}, loops {self.loops}, metric {self.metric}",
            f"  bound    {self.bound:.4g} ({self.theorem}; as printed {self.printed_bound:.4g})"
            f"{'; it rests on an estimate: ' + ESTIMATE if rests_on_estimate(self.constants) else ''}",
            f"  target   {'none' if self.tol is None else f'{self.tol:g}'}"
            f"{'' if self.tol is None else ', proved' if self.proved else ', not proved: judge by the gap'}",
            f"  calls    f' {calls['f']:,}   g' {calls['g']:,}   B and B^T {calls['B']:,}",
        ]
        if missing_words(self.hypotheses):
            lines.append(f"  open     nothing is proved: {missing_words(self.hypotheses)}")
        lines += [
            f"  level {i}  {level.term.name}: T = {level.T}, N = {level.N}, L = {level.L:.4g}, "
            f"M = {level.term.M:.4g}, delta = {level.delta:.3g}, Omega = {level.term.Omega:.4g}"
            for i, level in enumerate(self.levels, start=1)
        ]
        lines += [f"  simple   {term}" for term in self.simple_terms]
        lines += metric_lines(self.given)
        if self.coupling_step == PRIMAL_DUAL:
            lines.append("  coupling primal-dual steps, 2 products each, proved like the paper's 4 (docs/theory.md)")
        lines += noise_lines(self.levels, self.predicted_samples)
        lines += [f"  {name:<8} {constant.value:.6g} ({constant.origin})" for name, constant in self.constants.items()]
        lines += [one.line for one in self.hypotheses]
        lines += cost_lines(self.predicted_calls, self.costs, self.alternatives)
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
            "terms": [term_to_dict(level.term) for level in self.levels],
            "constants": {name: [c.value, c.origin] for name, c in self.constants.items()},
            "costs": None if self.costs is None else list(self.costs),
            "alternatives": [list(pair) for pair in self.alternatives],
            "shapes": None if self.shapes is None else [list(shape) for shape in self.shapes],
            "simple": list(self.simple),
            "given": metric_to_data(self.given),
            "coupling_step": self.coupling_step,
            "hypotheses": hypotheses_to_data(self.hypotheses),
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
            terms = [term_from_dict(term) for term in data["terms"]]
            constants = {name: Constant(*pair) for name, pair in data["constants"].items()}
            costs = None if data["costs"] is None else tuple(data["costs"])
            alternatives = tuple((str(name), float(cost)) for name, cost in data["alternatives"])
            levels, shapes = place(terms, data["loops"]), shapes_from_data(data["shapes"])
            return cls(
                levels, constants, data["metric"], data["tol"], data["kappa"], costs, alternatives, shapes,
                tuple(data.get("simple", ())), data.get("given"), data.get("coupling_step", EXTRAGRADIENT),
                hypotheses_from_data(data.get("hypotheses", ())),
            )  # fmt: skip
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"Plan.from_dict: {error!r} in the data; expected what Plan.to_dict wrote.") from error


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


def shapes_from_data(data: Any) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
    """Shapes of x and y as `to_dict` wrote them."""
    return None if data is None else (tuple(data[0]), tuple(data[1]))


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
