"""What a run gives back: the point, its verdict, what it cost, and how it went."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from html import escape
from os import PathLike
from pathlib import Path
from typing import Any

from saddleslide import runs
from saddleslide.arrays.base import Array
from saddleslide.arrays.kinds import NUMPY, ArrayKind, kind_of
from saddleslide.certificates.verdict import Certificate, Status
from saddleslide.errors import OutcomeError
from saddleslide.oracles.calls import Calls
from saddleslide.oracles.clock import PHASES
from saddleslide.oracles.sampling import Samples
from saddleslide.theory.plan import Plan

# Ends before the target whose own words do not say what another problem could prove.
_SHORT = (
    Status.NO_CERTIFICATE, Status.COMPLETED, Status.CALL_LIMIT, Status.TIME_LIMIT, Status.STEP_LIMIT, Status.STOPPED,
    Status.INTERRUPTED,
)  # fmt: skip


@dataclass(frozen=True)
class Moment:
    """One row of the history: what had been spent after an outermost step."""

    step: int
    calls: Calls
    seconds: float
    gap: float = math.nan
    samples: Samples = field(default_factory=Samples)


@dataclass(frozen=True)
class Past:
    """What the plans before the present one have come to: calls, judging, steps, and the best of their points."""

    own: Calls = field(default_factory=Calls)
    judging: Calls = field(default_factory=Calls)
    spared: int = 0
    steps: int = 0
    target: float = math.nan
    point: tuple[Array, Array] | None = None
    certificate: Certificate = field(default_factory=Certificate)


@dataclass(frozen=True, eq=False)
class Result:
    """Outcome of a run, with SciPy's names beside ours.

    Parameters
    ----------
    x, y : Array
        Feasible points: NumPy arrays, or of the kind that the problem was built of.
    status : Status
        What happened; `message` says it in three sentences. `success` is True only if what was asked was reached.
    certificate : Certificate
        `gap`, `lower` and `upper` come from here.
    calls : Calls
        Calls of f', g' and B, B^T: everything, from making the plan to judging. `certificate_calls` shows the share of
        judging, `aside` that of making the plan, and `method_calls` the method's own.
    seconds : float
        Time of the whole call, from its beginning to its end; of a run that was taken up again, of all its parts.
    plans : tuple of Plan
        Every plan that was used.
    history : tuple of Moment
        One row per outermost step.
    target : float
        The gap that ends the run, a relative one resolved; NaN where the run did not say.
    samples : Samples
        What sampled gradients drew, anchors included; zeros for exact gradients.
    expected_gap : float
        Bound on the expected gap of such a run, from its plan: over all draws, not of this point. NaN for exact
        gradients, infinite where nothing is proved.
    floor : float
        What E[Psi] is not proved to fall below because anchors are sampled (4 C_anc Delta_anc / b); 0 otherwise.
    timings : mapping
        What of `seconds` went into "plan" (choosing, planning, bounding norms), "compile" (importing Numba and SciPy's
        transforms, compiling or loading kernels), "method" and "certificate". They do not overlap; callbacks,
        checkpoints and the like are in none of them.
    transfers : int
        Arrays copied between the host and the library of the problem's arrays, both ways; 0 for NumPy. The few numbers
        that steer a method are read without being counted.
    on_host : tuple of str
        What runs on the host although the problem's arrays lie elsewhere: `SaddleProblem.on_host`.
    time_limit : float
        Seconds that the run was allowed; infinite without a limit. A run with a limit may end elsewhere the next time.
    spared : int
        Products that the theorem of a plan counts and the run had no need to make: at a start of 0, and the last
        correction. `counted` has them, `calls` has not.
    aside : Calls
        Part of `calls` that is neither the method's nor judging: making the plan, bounding norms, measuring prices.
    state : State or None
        Where the method of the last plan ended: what `start=result` hands on to another call (docs/paths.md).
    objective, violation, duals, problem
        What `ss.minimize` adds: the value at x with indicators left out, the largest distance from their sets, a
        subgradient for every composed term, and the saddle problem that was solved.
    detail : str
        Which oracle answered with NaN or infinities, in which call and where, for status NON_FINITE; why a method was
        stopped that ran away from its best point. `message` has it.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> f, box = ss.functions.Quadratic(1.0), ss.domains.Box(-1.0, 1.0, shape=3)
    >>> problem = ss.SaddleProblem(f=f, g=f, B=np.eye(3), X=box, Y=box)
    >>> result = ss.run(problem, ss.plan(problem, order="fgB", loops=(4, 2, 3)), start=(np.ones(3), np.ones(3)))
    >>> result.calls, result.spared, result.success
    (Calls(f=4, g=8, B=96), 2, True)
    """

    x: Array
    y: Array
    status: Status
    certificate: Certificate
    calls: Calls
    seconds: float
    plans: tuple[Plan, ...]
    history: tuple[Moment, ...] = ()
    target: float = math.nan
    samples: Samples = field(default_factory=Samples)
    expected_gap: float = math.nan
    floor: float = 0.0
    timings: Mapping[str, float] = field(default_factory=lambda: dict.fromkeys(PHASES, 0.0))
    time_limit: float = math.inf
    transfers: int = 0
    on_host: tuple[str, ...] = ()
    spared: int = 0
    aside: Calls = field(default_factory=Calls)
    detail: str = ""
    state: Any = None
    objective: float = math.nan
    violation: float = 0.0
    duals: tuple[Array, ...] = ()
    problem: Any = None

    @property
    def method_calls(self) -> Calls:
        """Calls of the method itself: without judging, and without what was made aside."""
        return self.calls - self.certificate_calls - self.aside

    @property
    def counted(self) -> Calls:
        """The method's own calls as the theorem of a plan counts them, with the products that the run spared.

        The two products of `check_adjoint=True`, which no theorem counts, are here as they are in `calls`.
        """
        return self.method_calls + Calls(B=self.spared)

    @property
    def gap(self) -> float:
        """Certified gap at (x, y), within `radius` where the status says so; infinite when unknown."""
        return self.certificate.within_gap if self._is_within else self.certificate.gap

    @property
    def radius(self) -> float:
        """How far the claim reaches, as a multiple of the size of the point; infinite where it holds on whole sets."""
        return self.plans[-1].radius if self._is_within and self.plans else math.inf

    @property
    def lower(self) -> float:
        """Certified lower bound on the saddle value; with SOLVED_WITHIN if a saddle point lies within the radii."""
        return self.certificate.within[0] if self._is_within else self.certificate.lower

    @property
    def upper(self) -> float:
        """Certified upper bound on the saddle value; with SOLVED_WITHIN if a saddle point lies within the radii."""
        return self.certificate.within[1] if self._is_within else self.certificate.upper

    @property
    def Psi(self) -> float:
        """A bound on Psi (eq. Psi_s) at (x, y), of a run with restarts: from the certified gap, or what is proved.

        The second holds at the end of all stages. Infinite where neither says anything, NaN without restarts.
        """
        plan = self.plans[-1] if self.plans else None
        if plan is None or plan.schedule is None or not plan.schedule.has_restarts or plan.schedule.regularisation:
            return math.nan
        per_gap = plan.constants.get("Psi_per_gap")
        by_gap = per_gap.value * self.certificate.gap if per_gap is not None else math.inf
        at_end = self.nit >= sum(stage.levels[0].T for stage in plan.schedule.stages)
        return min(by_gap, plan.Psi_bound if at_end and not plan.sampled else math.inf)

    @property
    def certificate_calls(self) -> Calls:
        """Oracle calls spent on judging the point."""
        return self.certificate.calls

    @property
    def simple_terms(self) -> tuple[str, ...]:
        """What was minimised in the projection or proximal steps, at no oracle call."""
        return self.plans[-1].simple_terms if self.plans else ()

    @property
    def success(self) -> bool:
        """Whether what was asked was reached: the target, or the end of a plan without one."""
        if self.status is Status.COMPLETED:
            return not (self.known_target > 0.0 or (self.plans and any(self.plans[-1].target[:3])))
        return self.status in (Status.SOLVED, Status.SOLVED_WITHIN, Status.EXPECTED)

    def or_raise(self) -> Result:
        """The result itself, or an OutcomeError that carries it where it is not a success."""
        if not self.success:
            raise OutcomeError(f"{self.status.name}: {self.message}", self)
        return self

    @property
    def message(self) -> str:
        """What happened, what the numbers mean, what to try; what no bound speaks of, and what the bounds rest on."""
        known = (("x", "upper", self.upper), ("y", "lower", self.lower))
        unknown = [(block, bound) for block, bound, value in known if not math.isfinite(value)]
        parts = [str(self.status.value)]
        if self.detail:
            parts.append(f"{self.detail}.")
        if self.status is Status.TIME_LIMIT and self._mostly_compiled:
            parts.append(f"Compiling kernels took {self.timings['compile']:.3g} s of it; this happens once.")
        if self._is_within:
            numbers = range(1, len(self.certificate.radii))
            names = ["x", *(["y"] if len(numbers) == 1 else [f"block {number} of y" for number in numbers])]
            lengths = zip(names, self.certificate.radii, strict=True)
            parts.append(f"Radii: {', '.join(f'{r:.4g} around {block}' for block, r in lengths if r < math.inf)}.")
            above = self.objective - self.lower
            if above > 1.01 * self.gap:
                parts.append(
                    f"The objective is {above:.4g} above the lower bound, more than the gap: a y beyond the radii "
                    "reaches it. With a larger radius= the gap counts that y too."
                )
        if self.status in (Status.BOUND_REACHED, Status.INCONSISTENT) and self.certificate.reason:
            parts.append(f"Seen: {self.certificate.reason.rstrip('.')}.")
        if unknown and self.status not in (Status.INCONSISTENT, Status.EXPECTED, Status.RUNNING):
            # These three say themselves what their point is, and so does a method that was stopped for going astray.
            which = "point" if self.status is Status.COMPLETED and self.detail else "last point"
            blocks, bounds = (" and ".join(names) for names in zip(*unknown, strict=True))
            own = f"{blocks} {'are' if len(unknown) > 1 else 'is'} the method's own {which}"
            parts.append(f"No {bounds} bound is known: {own}, and nothing is proved of it.")
        if self.certificate.solutions and not self._is_within:
            parts.append(f"The bounds hold because every solution has {self.certificate.solutions}.")
            if self.violation > 0.0:
                missed = (
                    f"Constraints are missed by up to {self.violation:.3g}: the gap counts that times multipliers as"
                )
                parts.append(f"{missed} large as these. A smaller target misses less.")
        if self.certificate.assumes:
            parts.append(f"Assumed: {self.certificate.assumes}.")
        claim = self.plans[-1].certificate if self.plans and self.status in _SHORT and not self.success else None
        if claim is not None and claim.advice:
            parts.append(claim.sentence)
        return " ".join(parts)

    @property
    def nit(self) -> int:
        """Outermost steps that were judged: the rows of the history."""
        return len(self.history)

    @property
    def fun(self) -> float:
        """SciPy's name for the objective; of a saddle problem the certified upper bound on its value."""
        return self.upper if math.isnan(self.objective) else self.objective

    @property
    def nfev(self) -> float:
        """SciPy's name for `calls.f`: a call gives value and gradient together."""
        return self.calls.f

    @property
    def njev(self) -> float:
        """SciPy's name for `calls.f`."""
        return self.calls.f

    def save(self, path: str | PathLike[str]) -> None:
        """Write the result to a file that `ss.load` reads; its problem is left out."""
        runs.write_result(self, path)

    def of_kind(self, kind: ArrayKind) -> Result:
        """The same result with x and y as arrays of a kind: see the `arrays` of a problem."""
        return self if kind == NUMPY else replace(self, x=kind.wrap(self.x), y=kind.wrap(self.y))

    def __repr__(self) -> str:
        return "\n".join(f"{name:>8}: {text}" for name, text in self._rows())

    def _repr_html_(self) -> str:
        """The same table for notebooks: one element, no style sheet, no script."""
        cell = 'style="text-align: left; vertical-align: top; padding: 0.1em 0.8em"'
        rows = "".join(
            f"<tr><th {cell}>{escape(name)}</th><td {cell}>{escape(text)}</td></tr>" for name, text in self._rows()
        )
        return f"<table><tbody>{rows}</tbody></table>"

    def _rows(self) -> list[tuple[str, str]]:
        remote, spared = kind_of(self.x) != NUMPY, f" ({self.spared} more are in the plan, not needed)"
        compiled = f", {self.timings['compile']:.3g} compiling, once" * self._mostly_compiled
        rows = [
            ("status", self.status.name.lower()),
            ("method", ", then ".join(dict.fromkeys(plan.method for plan in self.plans))),
            ("minimum", self._objective),
            ("gap", f"{self.gap:.4g} ({self._kind})"),
            ("bounds", f"[{self.lower:.{self._digits}g}, {self.upper:.{self._digits}g}]"),
            ("Psi", f"{self.Psi:.4g} (at most)" * math.isfinite(self.Psi)),
            ("expected", f"{self.expected_gap:.4g} (bound on the expected gap)" * (not math.isnan(self.expected_gap))),
            ("floor", f"{self.floor:.4g} (of E[Psi], from sampled anchors)" * (self.floor > 0.0)),
            ("calls", _format_calls(self.calls) + spared * (self.spared > 0)),
            ("samples", f"f' {self.samples.f:,}   g' {self.samples.g:,}" * (self.samples.total > 0)),
            ("simple", "; ".join(self.simple_terms)),
            ("judging", _format_calls(self.certificate_calls)),
            ("seconds", f"{self.seconds:.3g} in all, {self.timings['method']:.3g} of them in the method{compiled}"),
            ("x, y", f"{tuple(self.x.shape)}, {tuple(self.y.shape)}"),
            ("arrays", f"{kind_of(self.x)}, {self.transfers:,} copied to or from the host" * remote),
            ("on host", "; ".join(self.on_host) * remote),
            ("message", self.message),
        ]
        return [(name, text) for name, text in rows if text]

    @property
    def _mostly_compiled(self) -> bool:
        """Whether kernels took most of the time: they are compiled once for an installation."""
        return self.timings["compile"] > 0.5 * self.seconds

    @property
    def _digits(self) -> int:
        """So many that the bounds show their gap."""
        size = max(abs(self.lower), abs(self.upper))
        if not (0.0 < self.gap < math.inf and 0.0 < size < math.inf):
            return 6
        return min(max(6, 2 + math.ceil(math.log10(size / self.gap))), 17)

    @property
    def _objective(self) -> str:
        """The value of an objective that was given to `minimize`, with what its constraints are broken by."""
        if math.isnan(self.objective) or self.status is Status.INFEASIBLE:
            return ""
        broken = f", constraints broken by {self.violation:.2g}" if self.violation > 0.0 else ""
        return f"{self.objective:.10g}{broken}"

    @property
    def _is_within(self) -> bool:
        """Whether the claim is one within a radius."""
        claims, seen = (Status.SOLVED_WITHIN, Status.MET_AS_DECLARED), self.certificate
        return self.status in claims and seen.within_gap < seen.gap

    @property
    def _kind(self) -> str:
        return f"within {self.radius:g} times its size" if self._is_within else self.certificate.kind

    def plot(
        self, ax: Any = None, *, path: str | Path | None = None, costs: tuple[float, float, float] | None = None
    ) -> Any:
        """A figure of the gap against calls of f', calls of g', products and seconds: rows with a finite gap.

        Parameters
        ----------
        ax : Axes or sequence of Axes, optional
            One Axes takes the three oracles as three lines. A sequence takes one panel each. A new figure when missing.
        path : str or Path, optional
            Where to save the figure; the suffix sets the format.
        costs : (c_f, c_g, c_B), optional
            Prices of one call each; adds a panel with the weighted cost.
        """
        return runs.plot_result(self, ax, path, costs)

    @property
    def known_target(self) -> float:
        """The gap that ends the run, where the result knows it; NaN otherwise."""
        if not math.isnan(self.target):
            return self.target
        if not self.plans or self.plans[-1].tol is None or max(self.plans[-1].reduction, self.plans[-1].rtol) > 0.0:
            return math.nan
        return self.plans[-1].tol


def _format_calls(calls: Calls) -> str:
    return f"f' {calls.f:,.12g}   g' {calls.g:,.12g}   B {calls.B:,.12g}"
