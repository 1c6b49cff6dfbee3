"""`compare`: every method on one problem, predicted or run."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from pathlib import Path
from typing import Any

from saddleslide.api.runner import run as run_plan
from saddleslide.api.solver import solve
from saddleslide.arrays.arguments import as_flag, as_names
from saddleslide.certificates.books import count_aside
from saddleslide.certificates.certificate import judge_point
from saddleslide.errors import InputError, raise_all
from saddleslide.facts.costs import choose_costs
from saddleslide.facts.facts import Facts
from saddleslide.methods.base import Method
from saddleslide.methods.catalogue import as_method, by_name
from saddleslide.methods.schedule.planner import theorem_plan
from saddleslide.oracles.calls import Calls
from saddleslide.oracles.sampling import is_sampled
from saddleslide.planner.forecast import ADAPTIVE, PAPER, Prediction, SolveRequest, predictions
from saddleslide.planner.plans import plan
from saddleslide.plots import draw_comparison
from saddleslide.problem import SaddleProblem
from saddleslide.runs.result import Result
from saddleslide.theory.plan import Plan, weigh_calls


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
    """The rho* of the paper: rho (N_f + N_g) + N_B is equal for both methods."""
    saved, extra = other.f + other.g - sliding.f - sliding.g, sliding.B - other.B
    if extra <= 0:
        return 0.0 if saved >= 0 else math.inf
    return extra / saved if saved > 0 else math.inf


def crossover(
    problem: SaddleProblem,
    tol: float | None = None,
    method: str | Method = "mirror-prox",
    options: Mapping[str, Any] | None = None,
    *,
    rtol: float | None = None,
    reduction: float | None = None,
) -> Crossover:
    """Run adaptive sliding and another method to the same certified gap, and compare their calls.

    Parameters
    ----------
    problem : SaddleProblem
        The problem.
    tol, rtol, reduction : float, optional
        Targets, as in `ss.solve`.
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
    asked: dict[str, Any] = {"tol": tol, "rtol": rtol, "reduction": reduction}
    results = solve(problem, method=ADAPTIVE, **asked), solve(problem, method=rival, **asked)
    short = [
        f"{tried} ended with status {result.status.name}; expected SOLVED. Ask for a larger gap."
        for tried, result in zip((ADAPTIVE, name), results, strict=True)
        if not result.gap <= result.known_target
    ]
    raise_all("crossover", short)
    sliding, other = (result.calls - result.certificate_calls for result in results)
    return Crossover(break_even(sliding, other), sliding, other, name, results[0].calls + results[1].calls)


Costs = tuple[float, float, float]
HEADINGS = ("method", "predicted", "cost", "f'", "g'", "B", "judging", "gap", "seconds", "status")
# A method is stopped when it has cost so many times what adaptive sliding did.
_PATIENCE = 20.0


@dataclass(frozen=True)
class Row:
    """One method of a comparison: its prediction, and its result where it was run."""

    prediction: Prediction
    costs: Costs
    result: Result | None = None

    @property
    def method(self) -> str:
        """Name of the method."""
        return self.prediction.method

    @property
    def total(self) -> Calls:
        """All calls of the run."""
        assert self.result is not None
        return self.result.calls

    @property
    def cost(self) -> float:
        """Measured weighted cost, judging included; NaN where it was not run."""
        return math.nan if self.result is None else _cost(self.total, self.costs)

    @property
    def own_cost(self) -> float:
        """Measured weighted cost of the method alone."""
        return math.nan if self.result is None else self.cost - _cost(self.result.certificate_calls, self.costs)

    @property
    def course(self) -> list[tuple[tuple[float, ...], float]]:
        """Weighted cost, calls and seconds beside the certified gap; `run` of a plan is judged only at its end."""
        assert self.result is not None
        rows = [(at.calls, at.seconds, at.gap) for at in self.result.history if math.isfinite(at.gap)]
        if not (rows and rows[-1][2] <= self.result.gap):
            rows.append((self.total, self.result.seconds, self.result.gap))
        return [((_cost(c, self.costs), float(c.f), float(c.g), float(c.B), at), gap) for c, at, gap in rows]

    def rank(self, tol: float) -> tuple[int, float, float]:
        """Those that met the target by cost, then those that did not, then those that were not run or do not apply."""
        predicted = self.prediction.cost
        if self.result is None:
            return 2 if self.prediction.applies else 3, 0.0, predicted
        return (0, self.cost, predicted) if self.result.gap <= tol else (1, self.result.gap, predicted)

    @property
    def cells(self) -> tuple[str, ...]:
        """What stands under the headings."""
        predicted = f"{self.prediction.cost:.3g}" if math.isfinite(self.prediction.cost) else "no promise"
        if self.result is None:
            return (self.method, predicted, *([""] * (len(HEADINGS) - 2)))
        calls = f"{self.total.f:g}", f"{self.total.g:g}", f"{self.total.B:g}"
        judging = f"{_cost(self.result.certificate_calls, self.costs):.3g}"
        end = f"{self.result.gap:.2g}", f"{self.result.seconds:.2g}", self.result.status.name.lower()
        return (self.method, predicted, f"{self.cost:.3g}", *calls, judging, *end)

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and strings, for JSON; None where nothing is known."""
        prediction, result = self.prediction, self.result
        known: dict[str, Any] = {"method": self.method, "predicted": _known(prediction.cost)}
        known["lacks"] = list(prediction.why_not)
        if result is not None:
            known |= {"cost": self.cost, "own_cost": self.own_cost, "calls": _list_calls(self.total)}
            known |= {"judging": _list_calls(result.certificate_calls), "gap": _known(result.gap)}
            known |= {"seconds": result.seconds, "timings": dict(result.timings), "status": result.status.name}
        return known


@dataclass(frozen=True, eq=False)
class Comparison:
    """The rows of `compare`, cheapest first; prints as a table.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> simplex, zero = ss.domains.Simplex(3), ss.functions.Zero()
    >>> game = ss.SaddleProblem(f=zero, g=zero, B=np.eye(3), X=simplex, Y=simplex)
    >>> ss.compare(game, tol=1e-3).rows[0].method
    'adaptive'
    """

    rows: tuple[Row, ...]
    tol: float
    costs: Costs
    # What `method="auto"` begins with at these prices: it adds vector work where prices are estimated.
    plan: Plan
    # All that the call of `compare` made: predictions, the choice, and every run with its judging.
    calls: Calls = field(default_factory=Calls)

    @property
    def auto(self) -> str:
        """The method that `ss.solve` takes, and the row of it."""
        return self.plan.method if self.plan.regime == "method" else ADAPTIVE

    @property
    def best(self) -> Row:
        """The cheapest row that met the target, or by prediction where nothing was run."""
        met = [row for row in self.rows if row.result is not None and row.result.gap <= self.tol]
        return min(met, key=lambda row: row.cost) if met else self.rows[0]

    def __repr__(self) -> str:
        cells = [HEADINGS, *(row.cells for row in self.rows if row.prediction.applies)]
        widths = [max(len(line[i]) for line in cells) for i in range(len(HEADINGS))]
        lines = ["  ".join(text.ljust(w) for text, w in zip(line, widths, strict=True)).rstrip() for line in cells]
        unit_costs = ", ".join(f"{unit_cost:g}" for unit_cost in self.costs)
        return "\n".join([f"target {self.tol:g}, prices of f', g', B: {unit_costs}", *lines, *self._notes()])

    def _repr_html_(self) -> str:
        """The same table for notebooks: no style sheet, no script."""
        head = "".join(f"<th>{escape(text)}</th>" for text in HEADINGS)
        shown = [row.cells for row in self.rows if row.prediction.applies]
        body = "".join("<tr>" + "".join(f"<td>{escape(text)}</td>" for text in cells) + "</tr>" for cells in shown)
        rest = "".join(f"<p>{escape(line)}</p>" for line in self._notes())
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{rest}"

    def _notes(self) -> list[str]:
        """What `solve` takes and why, what all this took, and why other methods do not apply."""
        return [
            "predicted: what is promised in the worst case, at these prices; auto also counts what else a step costs",
            f"auto takes {self.auto}: {self.plan.reasons[0]}",
            f"made in all: f' {self.calls.f:g}, g' {self.calls.g:g}, B {self.calls.B:g}",
            *(f"{row.method}: {' '.join(row.prediction.why_not)}" for row in self.rows if not row.prediction.applies),
        ]

    def to_dict(self) -> dict[str, Any]:
        """Target, prices and all rows, for JSON."""
        known = {"tol": self.tol, "costs": list(self.costs), "auto": self.auto, "calls": _list_calls(self.calls)}
        return {**known, "rows": [row.to_dict() for row in self.rows]}

    def plot(self, path: str | Path | None = None) -> Any:
        """Draw the certified gap of every run against weighted cost, calls of each oracle, and time.

        The figure is saved where `path` says; the suffix sets the format.
        """
        ran = [row for row in self.rows if row.result is not None]
        if not ran:
            raise InputError("plot: nothing was run; expected a comparison with run=True.")
        labels = ("weighted cost", "calls of f'", "calls of g'", "products with B and B$^T$", "seconds")
        return draw_comparison(labels, {row.method: row.course for row in ran}, self.tol, path)


def compare(
    problem: SaddleProblem,
    tol: float | None = None,
    *,
    rtol: float | None = None,
    reduction: float | None = None,
    costs: Sequence[float] | str | None = None,
    run: bool = False,
    only: Collection[str] | None = None,
    start: tuple[Any, Any] | None = None,
) -> Comparison:
    """The predicted weighted cost of every method and plan; with `run=True` what each really took, certified.

    Parameters
    ----------
    problem : SaddleProblem
        The problem.
    tol, rtol, reduction : float, optional
        As in `ss.solve`. All methods go to one absolute gap: relative targets are resolved by the bounds at the start.
    costs : (c_f, c_g, c_B) or "measure", optional
        Prices of one gradient of f, one of g and one product; estimated from sizes when missing.
    run : bool, optional
        Run every method that applies, to the target or to 20 times the cost of adaptive sliding.
    only : collection of str, optional
        Names to run, out of `ss.methods` and "paper"; adaptive sliding always runs. All when missing.
    start : (x, y), optional
        Feasible starting point of the runs.

    Returns
    -------
    Comparison
        `calls` are all calls that were made: predictions take the norms of operators, a gradient of f and of g and
        what else `ss.plan` takes; with `run=True` the runs and their judging come on top.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> q, free = ss.functions.Quadratic(1.0), ss.domains.FullSpace(2)
    >>> problem = ss.SaddleProblem(f=q + ss.functions.Linear(1.0), g=q, B=np.eye(2), X=free, Y=free)
    >>> table = ss.compare(problem, tol=1e-6, run=True, only=("apdg",))
    >>> sorted(row.method for row in table.rows if row.result is not None)
    ['adaptive', 'apdg']
    """
    goal = SolveRequest(tol, reduction, start=start, caller="compare", rtol=rtol).target(problem)
    if only is not None:
        as_names(only, "compare: only", {*by_name, PAPER, ADAPTIVE})
    as_flag(run, "compare: run")
    if is_sampled(problem):
        raise InputError(
            "compare: f or g has a sampled gradient, and the methods take exact ones; expected exact functions. "
            "Compare without Noisy, MiniBatch or sample=, and see ss.plan(...).explain() for predicted samples."
        )
    with count_aside(problem) as books:
        target = goal.tol
        if goal.gap_share > 0.0:
            seen = judge_point(problem, *problem.start(start))
            books.note(seen.calls)
            target = goal.at(seen.gap, seen.lower, seen.upper) if math.isfinite(seen.gap) else target
            missing = "the bounds at the start are not finite; expected tol=, an absolute target."
            raise_all("compare", [missing] * (target == 0.0))
        unit_costs = choose_costs(problem, costs, "compare")
        found = predictions(Facts(problem), target, unit_costs)
        chosen = plan(problem, target, costs=None if costs is None else unit_costs, start=start)
        rows = [Row(prediction, unit_costs) for prediction in found]
        if run:
            rows = _run_all(problem, rows, target, only, start)
    ran = [row.total for row in rows if row.result is not None]
    # The plan keeps its own books.
    calls = sum(ran, books.calls + Calls(*chosen.spent))
    return Comparison(tuple(rows), target, unit_costs, chosen, calls)


def _run_all(
    problem: SaddleProblem, rows: list[Row], tol: float, only: Collection[str] | None, start: tuple[Any, Any] | None
) -> list[Row]:
    """Every row that applies and is wanted with its result, best first."""
    unit_costs, ran = rows[0].costs, []
    first = solve(problem, tol, method=ADAPTIVE, costs=unit_costs, start=start)
    limit = _PATIENCE * _cost(first.calls, unit_costs)
    limits = {letter: limit / unit_cost for letter, unit_cost in zip("fgB", unit_costs, strict=True) if unit_cost > 0.0}
    for row in rows:
        result = first if row.method == ADAPTIVE else None
        wanted = result is None and row.prediction.applies and (only is None or row.method in only)
        if wanted and row.method != PAPER:
            result = solve(problem, tol, method=row.method, start=start, max_calls=limits)
        elif wanted and row.prediction.cost <= limit:
            # A plan can not be stopped by calls: it is run only if it is meant to end within the limit.
            result = run_plan(problem, theorem_plan(problem, tol, costs=unit_costs, start=start), start=start)
        ran.append(replace(row, result=result))
    return sorted(ran, key=lambda row: row.rank(tol))


def _cost(calls: Calls, unit_costs: Costs) -> float:
    return weigh_calls(calls.by_oracle, unit_costs)


def _known(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _list_calls(calls: Calls) -> list[float]:
    return [calls.f, calls.g, calls.B]
