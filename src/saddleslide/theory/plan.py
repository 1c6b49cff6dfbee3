"""The plan: what a run intends, as data. No arrays."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from html import escape
from typing import TYPE_CHECKING, Any, NamedTuple

from saddleslide import theory
from saddleslide.errors import InputError, raise_all
from saddleslide.theory.claim import Claim
from saddleslide.theory.hypotheses import Constant, Hypothesis, all_hold, as_data, rests_on_estimate

if TYPE_CHECKING:
    from saddleslide.theory.schedule import Schedule

# Inspections of a named method come 10 % apart: at most a tenth of the work is done after the target was met.
GROWTH = 1.1
# What `solve` does by itself: with a costly f or g, and where both are simple terms.
ADAPTIVE_SLIDING, RESTARTED_PRIMAL_DUAL = "adaptive sliding", "restarted primal-dual"
# What carries a schedule out.
RECURSIVE_SLIDING = "recursive sliding"
# Constants of a plan: upper bounds on the distances from the start to the solution.
DISTANCES = ("D_x", "D_y")

# A claim within a radius reaches so many times the size of the point.
RADIUS = 10.0
# A target relative to the saddle value is at least this part of it relative to the gap at the start: values may be 0.
FLOOR = 1e-3


class Target(NamedTuple):
    """The gap that is asked for: absolute, relative to the gap at the start, and relative to the saddle value."""

    tol: float = 0.0
    reduction: float = 0.0
    rtol: float = 0.0
    radius: float = RADIUS

    @property
    def gap_share(self) -> float:
        """The part of the gap at the start that is asked for; of a target relative to the value, its floor."""
        return max(self.reduction, FLOOR * self.rtol)

    def at(self, start_gap: float, lower: float, upper: float) -> float:
        """The target in absolute terms, from a gap at the start and bounds on the value."""
        size = max(abs(lower), abs(upper))
        return max(self.tol, self.gap_share * start_gap, self.rtol * size if size < math.inf else 0.0)


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What a run intends: `ss.plan` makes it, `ss.solve` begins with the same one, `ss.run` carries it out.

    A plan is plain data. `to_dict` goes into JSON, `Plan.from_dict` reads any plan back, and the same plan gives the
    same bits: whatever was random or measured while it was made is written in it.

    Parameters
    ----------
    method : str
        A name in `ss.methods`, "adaptive sliding" (f or g has a costly part), "restarted primal-dual" (both are simple
        terms), or "recursive sliding", which carries a schedule out.
    settings : dict
        All settings of the method, defaults included. Of adaptive sliding: `metric`, `inner_steps` (most coupling steps
        per outer step), the first `curvature`, `g_steps` and `steps_per_g` (where g is slid inside the steps on f), and
        the metric `given` by the caller.
    own : Method or None
        The method itself, where it is a class of the caller's; such a plan can not be written to a file.
    tol : float or None
        Target gap.
    reduction, rtol : float
        Targets relative to the gap at the start, and to the size of the saddle value; the largest of all counts.
    radius : float
        How far a claim within a radius reaches, as a multiple of the size of the point (docs/certificates.md).
    certificate : Claim or None
        The strongest claim that is possible (`kind`, `why`), and what would make it stronger (`advice`).
    schedule : Schedule or None
        Stages, levels, loops and norm of recursive sliding, with the theorem behind them.
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
    predicted : mapping or None
        Calls per oracle that are expected, no promise; a schedule has its own count.
    shapes : (x shape, y shape) or None
        Of the problem the plan was made for; `run` refuses others.
    seed : int
        Seed of all that is random in the run.
    mirrored : bool
        Whether the roles of x and y are exchanged, so that the costly function is outside.
    proximal : tuple of str
        Functions handled by their proximal step, for people.
    every : int or None
        Iterations of a named method between two certificates; None: 10 % more each time.
    on_allowance : bool
        Whether another method goes on once this one has cost, at the prices of the plan, what the other one is
        predicted to: adaptive sliding after a method that was preferred to it, interior points after adaptive sliding.
    notes : tuple of str
        Constants that a run relied on, and where practice leaves the guarantee: found on the way, no part of the plan.
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

    method: str
    settings: dict[str, Any] = field(default_factory=dict)
    own: Any = None
    tol: float | None = None
    reduction: float = 0.0
    rtol: float = 0.0
    radius: float = RADIUS
    certificate: Claim | None = None
    schedule: Schedule | None = None
    constants: dict[str, Constant] = field(default_factory=dict)
    hypotheses: tuple[Hypothesis, ...] = ()
    reasons: tuple[str, ...] = ()
    costs: tuple[float, float, float] | None = None
    alternatives: tuple[tuple[str, float], ...] = ()
    predicted: Mapping[str, float] | None = None
    shapes: tuple[tuple[int, ...], tuple[int, ...]] | None = None
    seed: int = 0
    mirrored: bool = False
    proximal: tuple[str, ...] = ()
    every: int | None = None
    on_allowance: bool = False
    notes: tuple[str, ...] = field(default=(), compare=False)
    spent: tuple[float, float, int] = field(default=(0, 0, 0), compare=False)

    def __post_init__(self) -> None:
        complaints = []
        if not isinstance(self.method, str) or not isinstance(self.settings, Mapping):
            found = f"{self.method!r}, {self.settings!r}"
            complaints.append(f"method and settings are {found}; expected a name and a dict.")
        counted = isinstance(self.every, int) and not isinstance(self.every, bool) and self.every >= 1
        if self.every is not None and not counted:
            complaints.append(f"every is {self.every!r}; expected a whole number >= 1, or None.")
        raise_all("Plan", complaints)

    @property
    def target(self) -> Target:
        """What is asked for, in all its forms."""
        return Target(self.tol or 0.0, self.reduction, self.rtol, self.radius)

    @property
    def is_adaptive(self) -> bool:
        """Whether it is what `solve` does by itself."""
        return self.method in (ADAPTIVE_SLIDING, RESTARTED_PRIMAL_DUAL)

    @property
    def regime(self) -> str:
        """The regime of the paper, "adaptive" for adaptive sliding, "method" for a named method."""
        return self.schedule.regime if self.schedule is not None else "adaptive" if self.is_adaptive else "method"

    @property
    def metric(self) -> str:
        """Norm of a schedule or of adaptive sliding, by name; the setting of a method that has one, else empty."""
        return self.schedule.metric if self.schedule is not None else str(self.settings.get("metric", ""))

    @property
    def order(self) -> str:
        """Names of the levels, outermost first; simple terms have none. Empty where the method has no levels."""
        if self.schedule is not None:
            return self.schedule.order
        if self.method == RESTARTED_PRIMAL_DUAL:
            return "B"
        if self.method != ADAPTIVE_SLIDING:
            return ""
        return "fgB" if self.settings["g_steps"] > 0 else "gB" if self.mirrored else "fB"

    @property
    def loops(self) -> tuple[int, ...]:
        """Iterations per entry of each level of a schedule, those of the first stage."""
        return () if self.schedule is None else self.schedule.loops

    @property
    def sampled(self) -> bool:
        """Whether a gradient is sampled, so that every bound is in expectation."""
        return self.schedule is not None and self.schedule.is_sampled(self)

    @property
    def bound(self) -> float:
        """Bound on the gap that a theorem promises, of sampled gradients on average; infinite where none does."""
        return math.inf if self.schedule is None else self.schedule.bound_of(self)

    @property
    def Psi_bound(self) -> float:
        """What the proved constants of restarts promise for Psi at the end; infinite for practical ones."""
        return math.inf if self.schedule is None else self.schedule.Psi_bound_of(self)

    @property
    def proved(self) -> bool:
        """Whether a theorem promises the target (any bound without one); elsewhere the certificate is the proof."""
        if self.schedule is None or not self.is_founded(for_gap=self.tol is not None):
            return False
        if self.tol is None and self.schedule.has_restarts:
            # Psi is what was asked for.
            return self.Psi_bound <= self.constants["Psi_end"].value * (1.0 + 1e-9)
        return self.bound <= (math.inf if self.tol is None else self.tol) and math.isfinite(self.bound)

    def is_founded(self, for_gap: bool = True) -> bool:
        """Whether every constant is a bound and every hypothesis is known to hold."""
        return not rests_on_estimate(self.constants) and all_hold(self.hypotheses, for_gap)

    @property
    def theorem(self) -> str:
        """The statement behind `bound`."""
        return "none: the certificate is the proof" if self.schedule is None else self.schedule.theorem_of(self)

    @property
    def simple_terms(self) -> tuple[str, ...]:
        """What is in the projection or proximal step instead of costing calls, for people."""
        if self.schedule is None:
            return self.proximal
        return tuple(f"the simple terms of {name} are in the projection step" for name in self.schedule.simple)

    @property
    def predicted_calls(self) -> Mapping[str, float]:
        """Calls per oracle: as a theorem counts them, or expected; empty where nothing was predicted."""
        return self.schedule.calls if self.schedule is not None else dict(self.predicted or {})

    @property
    def expected_share(self) -> float:
        """Part of the predicted calls that a run is expected to need: a certificate stops it before Psi is proved."""
        return 1.0 if self.schedule is None else self.schedule.share_of(self)

    @property
    def predicted_samples(self) -> dict[str, int]:
        """Samples per oracle, anchors included: calls times batch for sampled gradients, 0 for exact ones."""
        if self.schedule is None:
            return {"f": 0, "g": 0}
        calls, batches = self.predicted_calls, {"f": self.constants.get("batch_x"), "g": self.constants.get("batch_y")}
        return {name: 0 if batch is None else int(calls[name] * batch.value) for name, batch in batches.items()}

    @property
    def distances(self) -> tuple[float, float]:
        """How far x and y may be from the solution at the start; infinite where that is not known."""
        found = [self.constants[name].value if name in self.constants else math.inf for name in DISTANCES]
        return found[0], found[1]

    def next_judgement(self, step: int) -> int:
        """The iteration of the certificate after the one at `step`; adaptive sliding is judged at every one."""
        every = 1 if self.is_adaptive else self.every
        return max(step + 1, math.floor(GROWTH * step)) if every is None else step + every

    def raised(self, first: int, factor: float = 2.0) -> Plan:
        """Longer stages from number `first` on: what a run does when a practical stage gained too little."""
        assert self.schedule is not None
        return replace(self, schedule=self.schedule.lengthened(first, factor))

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
          judge    every 10 % more iterations
          proof    global: X is bounded; Y is bounded
        """
        lines = self._method_lines() if self.schedule is None else self.schedule.lines_of(self)
        if self.certificate is not None:
            lines.append(f"  proof    {self.certificate.kind}: {self.certificate.why}")
            lines += [f"  better   {self.certificate.advice}"] * bool(self.certificate.advice)
        lines += [f"  {name:<8} {constant.value:.6g} ({constant.origin})" for name, constant in self.constants.items()]
        if self.schedule is not None:
            lines += [one.line for one in self.hypotheses]
        else:
            lines += [f"  because  {why}" for why in (*self.reasons, *self.notes)]
        if self.schedule is None and self.predicted:
            f, g, B = (self.predicted[name] for name in "fgB")
            lines.append(f"  calls    about f' {f:,.3g}   g' {g:,.3g}   B and B^T {B:,.3g}")
        if self.costs is not None and (self.schedule is not None or self.predicted):
            c_f, c_g, c_B = self.costs
            cost = self.expected_share * weigh_calls(self.predicted_calls, self.costs)
            lines.append(f"  cost     {cost:.4g} expected, at prices f' {c_f:.4g}, g' {c_g:.4g}, B {c_B:.4g}")
            lines += [f"  instead  {name}: {cost:.4g}" for name, cost in self.alternatives]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """The same lines for notebooks."""
        return f"<pre>{escape(self.explain())}</pre>"

    def _method_lines(self) -> list[str]:
        """Of a method without a schedule: a named one, or what `solve` does by itself."""
        words = [f"gap at most {self.tol:g}"] if self.tol else []
        words += [f"{self.reduction:g} of the gap at the start"] if self.reduction > 0.0 else []
        words += [f"{self.rtol:g} of the saddle value"] if self.rtol > 0.0 else []
        target, of = f"  target   {' or '.join(words)}", self.settings
        if not self.is_adaptive:
            chosen = "".join(f", {name} {value}" for name, value in of.items() if value is not None)
            every = "10 % more" if self.every is None else self.every
            lines = [f"Plan: {self.method}{chosen}", target, f"  judge    every {every} iterations"]
            then = "  then     adaptive sliding, where it costs more than that is predicted to, or stands still"
            return lines + ([then] if self.on_allowance else [])
        lines = [f"Plan: {self.method}, levels {self.order}, metric {self.metric}", target]
        lines.append("  bound    none in advance: the certificate is the proof")
        # Restarted primal-dual steps have nothing inside.
        if self.order != "B":
            if of["g_steps"] > 0:
                lines.append(f"  inside   at most {of['g_steps']} steps on g per gradient of f")
            steps, name = (of["steps_per_g"], " of g") if of["g_steps"] > 0 else (of["inner_steps"], "")
            lines.append(f"  inner    at most {steps} coupling steps (2 products each) per gradient{name}")
            lines.append(f"  start    curvature {of['curvature']:.4g} in the metric, then by backtracking")
        then = "  then     interior points, once what is left to do looks dearer than these"
        return lines + [f"  simple   {term}" for term in self.simple_terms] + ([then] if self.on_allowance else [])

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers and strings, for JSON; `Plan.from_dict` reads them back."""
        if self.own is not None:
            raise InputError(
                f"Plan.to_dict: the method {self.own!r} is a class of your own, which a file can not hold; expected a "
                "method of ss.methods."
            )
        data = {entry.name: as_data(getattr(self, entry.name)) for entry in fields(self) if entry.name != "own"}
        # Settings stay as they are, but for the metric.
        return data | {"settings": {name: as_data(v) if name == "given" else v for name, v in self.settings.items()}}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Plan:
        """The plan that `to_dict` wrote.

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
        if "method" not in data or "schedule" not in data:
            expected = "expected what to_dict wrote, with 'method' and 'schedule'"
            raise InputError(f"Plan.from_dict: the data has {sorted(map(str, data))}; {expected}.")
        try:
            costs, shapes, schedule = data["costs"], data["shapes"], data["schedule"]
            claim = data["certificate"]
            plain = (
                "method", "settings", "tol", "reduction", "rtol", "radius", "predicted", "seed", "mirrored", "every",
                "on_allowance",
            )  # fmt: skip
            kept: dict[str, Any] = {name: data[name] for name in plain}
            kept |= {name: tuple(data[name]) for name in ("reasons", "proximal", "notes", "spent")}
            return cls(
                **kept,
                certificate=None if claim is None else Claim(*claim),
                schedule=None if schedule is None else theory.Schedule.from_dict(schedule),
                constants={name: Constant(*pair) for name, pair in data["constants"].items()},
                hypotheses=tuple(Hypothesis(*one) for one in data["hypotheses"]),
                costs=None if costs is None else tuple(costs),
                alternatives=tuple((str(name), float(cost)) for name, cost in data["alternatives"]),
                shapes=None if shapes is None else (tuple(shapes[0]), tuple(shapes[1])),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"Plan.from_dict: {error!r} in the data; expected what to_dict wrote.") from error


def weigh_calls(calls: Mapping[str, float], costs: Sequence[float]) -> float:
    """c_f N_f + c_g N_g + c_B N_B."""
    c_f, c_g, c_B = costs
    return math.fsum((c_f * calls["f"], c_g * calls["g"], c_B * calls["B"]))
