"""Parameter-free sliding: Algorithm 1 with constants that are found on the way, each paid for by its own oracle.

The bound of Algorithm 1 needs three inequalities and no constant: f and g at the running average against their averaged
linear models, and the products of B against the steps between them. The run keeps account of all three (docs/open.md).
A level is given a share of the target, and the shortest loops for which that share affords the constant of the level.
Where an account is overdrawn the outermost steps since the last look are taken back, and the constant of that level
grows; where the loops are over and the gap is not small enough, all shares are halved and the loops go on.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple, TypeAlias, final

import numpy as np

from saddleslide.arrays.base import split
from saddleslide.arrays.state import ZVector
from saddleslide.certificates.candidate import Candidate, Linearisation, Split
from saddleslide.certificates.guards import PairGuard
from saddleslide.functions.entrywise import Zero
from saddleslide.functions.minimum import LowerModel
from saddleslide.methods.base import Array, Description, Facts, Method, Oracles, Point, State, option
from saddleslide.oracles.calls import RunEnded
from saddleslide.theory.levels import alpha as alpha_of
from saddleslide.theory.levels import last_alpha, shortest_loop

# What is averaged along with the points: the account (three numbers), and of f and g the lower model as one vector.
Ledger: TypeAlias = "dict[str, Array]"
# A budget may be out of order by this factor before the levels change places.
_OUT_OF_ORDER = 2.0
# The constant of an overdrawn account grows by this factor at least.
_GROWTH = 2.0
# Outermost steps between two looks at the accounts, as a part of those done.
_BETWEEN_LOOKS = 0.25
# Of so many linearisations an eighth are compared with those before: a model believes that the function is convex.
_COMPARED = 64
# Rounding of a value against its linear models.
_ROUNDING = 1e-13
# More steps than are ever made.
_DEEPEST = 2.0**52


@dataclass
class ParameterFreeState(State):
    """The running average and the iterates of the levels of `order`, outermost first, after `step` outermost steps.

    `constants` are those that the accounts have asked for so far, `share` the part theta of the target that a level may
    spend on its distances, and `reserve` is theta over the square of the last outermost alpha, which never falls. The
    `accounts` and `models` are averages with the weights of the point.
    """

    point: ZVector
    iterates: tuple[ZVector, ...]
    order: str
    constants: dict[str, float]
    Omegas: dict[str, float]
    eps: float
    share: float
    reserve: float = 0.0
    step: int = 0
    accounts: dict[str, tuple[float, float, float]] = field(default_factory=dict)
    models: dict[str, tuple[float, Array]] = field(default_factory=dict)
    found: Candidate | None = None

    def allowance(self, name: str) -> float:
        """Twice the share over Omega: what weights times step sizes of a level may come to."""
        return 2.0 * self.share * self.eps / self.Omegas[name]

    def depth(self, name: str) -> float:
        """1 / (alpha_{T_1-1} ... alpha_{T_k-1}) that the constant of a level asks for: half its calls, about."""
        ratio = self.constants[name] / self.allowance(name)
        return ratio if name == "B" else math.sqrt(ratio)

    def loops(self) -> tuple[tuple[int, ...], dict[str, float]]:
        """The shortest loops that afford the constants, and the constants that they afford."""
        product, loops, afforded = 1.0, [], {}
        for k, name in enumerate(self.order):
            depth = self.depth(name)
            if k == 0:
                depth = max(depth, math.sqrt(self.reserve / self.share))
            if not depth < _DEEPEST:
                raise RunEnded("NUMERICAL_LIMIT")
            loops.append(shortest_loop(product * depth))
            product *= last_alpha(loops[-1])
            afforded[name] = self.allowance(name) / (product if name == "B" else product**2)
        return tuple(loops), afforded

    def in_order(self) -> ParameterFreeState:
        """Levels sorted by their budgets: from the running average with new levels where that changes their order."""
        depths = {name: max(1.0, self.depth(name)) for name in self.order}
        pairs = zip(self.order, self.order[1:], strict=False)
        worst = max((depths[a] / depths[b] for a, b in pairs), default=1.0)
        if worst <= (1.0 if self.step == 0 else _OUT_OF_ORDER):
            return self
        order = "".join(sorted(self.order, key=depths.__getitem__))
        return replace(
            self, order=order, iterates=(self.point,) * len(order), step=0, reserve=0.0, accounts={}, models={}
        )


@final
@dataclass(frozen=True, repr=False)
class ParameterFreeSliding(Method):
    """Recursive sliding that is told no constant: neither exponents nor H_x, H_y, |B|, nor the order of the levels.

    Examples
    --------
    >>> import saddleslide as ss
    >>> problem = ss.gallery.synthetic(1.0, 0.5, d=20)
    >>> result = ss.solve(problem, tol=0.5, method="parameter-free-sliding")
    >>> result.status.name, result.calls.f < ss.plan(problem, 0.5, regime="degenerate").predicted_calls["f"]
    ('SOLVED', True)
    """

    description = Description(
        name="parameter-free-sliding",
        needs=("bounded X", "bounded Y"),
        guarantee="Gap at most eps. Calls of each oracle: its own budget of Corollary 3.6 for the best exponents and "
        "constants, known or not, times a constant and the number of times that a constant was raised, at most a "
        "logarithm of the budgets.",
        reference="Algorithm 1 with accounts (docs/open.md)",
    )
    on_host = True

    share: float = option(2.0, "part theta of the target for the distances of each level, halved when the loops end")
    slack: float = option(0.2, "part of the target by which each account may be overdrawn", maximum=0.25)

    def lacks(self, facts: Facts) -> list[str]:
        found = super().lacks(facts)
        if facts.problem.coupling.norm.upper == 0.0 and (facts.f.is_zero or facts.g.is_zero):
            found.append("B = 0 and one of f and g is 0: a block has no level.")
        return found

    def split(self, facts: Facts) -> Split:
        return Split(facts.problem.f, Zero(), facts.problem.g, Zero())

    def init(self, oracles: Oracles, facts: Facts, start: Point, tol: float) -> ParameterFreeState:
        x, y = start
        # Of a single point no distance matters.
        Omega_x, Omega_y = (block.domain.squared_radius(u) or 1.0 for block, u in ((facts.f, x), (facts.g, y)))
        Omegas = {"f": Omega_x, "g": Omega_y, "B": 2.0 * math.sqrt(Omega_x * Omega_y)}
        zero = {"f": facts.f.is_zero, "g": facts.g.is_zero, "B": facts.problem.coupling.norm.upper == 0.0}
        order = "".join(name for name in "fgB" if not zero[name])
        z = np.concatenate([x.ravel(), y.ravel()])
        constants = dict.fromkeys(order, 0.0)
        return ParameterFreeState(z, (z,) * len(order), order, constants, Omegas, tol or 1e-300, float(self.share))

    def step(self, state: ParameterFreeState, oracles: Oracles) -> ParameterFreeState:
        asked: dict[str, Linearisation] = {}
        while True:
            state = state.in_order()
            loops, afforded = state.loops()
            if state.step >= loops[0]:
                # The loops are over. Their steps stay what they are for longer ones.
                reserve = state.share / last_alpha(loops[0]) ** 2
                state = replace(state, share=0.5 * state.share, reserve=reserve)
                continue
            if state.step > 0:
                state = replace(state, reserve=state.share / last_alpha(loops[0]) ** 2)
            done = state.step + max(1, min(int(_BETWEEN_LOOKS * state.step), loops[0] - state.step))
            recursion = _Recursion(oracles, state, loops, afforded, asked)
            z, ledger = recursion.advance(done)
            at = {name: recursion.call(name, z) for name in state.order if name != "B"}
            asked_for = self._overdrawn(state, ledger, at, afforded)
            if not asked_for:
                break
            state = replace(state, constants={**state.constants, **asked_for})
        accounts = {name: (float(a[0]), float(a[1]), float(a[2])) for name, a in ledger.items()}
        shapes = {"f": oracles.problem.X.shape, "g": oracles.problem.Y.shape}
        models = {name: (float(ledger[name][3]), ledger[name][4:].reshape(shapes[name])) for name in at}
        found = _candidate(*recursion.blocks(z), at, models)
        return replace(
            state, point=z, iterates=tuple(recursion.iterates), step=done, accounts=accounts, models=models, found=found
        )

    def _overdrawn(
        self, state: ParameterFreeState, ledger: Ledger, at: Mapping[str, Linearisation], afforded: Mapping[str, float]
    ) -> dict[str, float]:
        """The constants that the overdrawn accounts ask for: no valid one is below what the account shows."""
        slack, found = self.slack * state.eps, {}
        for name, (total, linear, moved) in ((name, entry[:3].tolist()) for name, entry in ledger.items()):
            if name == "B":
                if total < -slack:
                    found[name] = math.sqrt(linear / moved) if moved > 0.0 else 0.0
            elif at[name].value > total + slack + _ROUNDING * (abs(at[name].value) + abs(total)):
                found[name] = (at[name].value - linear - slack) / moved if moved > 0.0 else 0.0
        return {name: max(_GROWTH * afforded[name], asked) for name, asked in found.items()}

    def point(self, state: ParameterFreeState, oracles: Oracles) -> Point:
        x, y = split(state.point, [oracles.problem.X.shape, oracles.problem.Y.shape])
        return x.copy(), y.copy()

    def candidates(self, state: ParameterFreeState, oracles: Oracles) -> tuple[Candidate, ...]:
        return super().candidates(state, oracles) if state.found is None else (state.found,)


def _candidate(
    x: Array, y: Array, at: Mapping[str, Linearisation], models: Mapping[str, tuple[float, Array]]
) -> Candidate:
    """The running average with what the accounts have called at it."""
    f, g = at.get("f"), at.get("g")
    averaged = None if f is None else (*models["f"], y)
    value = 0.0 if f is None else f.value
    return Candidate(
        x, y, value, linearisation=f, averaged=averaged, g_averaged=models.get("g"),
        g_value=None if g is None else g.value, g_linearisation=g,
    )  # fmt: skip


class _Above(NamedTuple):
    """What the outer levels pass down: centres, slope, weights of the entries, what averages add, product of alphas."""

    pull: Array
    slope: Array
    weights: Array
    base: Array
    Gamma: float
    last: float


class _Recursion:
    """Outermost steps of Algorithm 1 with accounts, from a state, with the loops and step sizes of a moment."""

    def __init__(
        self, oracles: Oracles, state: ParameterFreeState, loops: tuple[int, ...], afforded: Mapping[str, float],
        asked: dict[str, Linearisation],
    ) -> None:  # fmt: skip
        self.oracles, self.state, self.loops, self.afforded, self.asked = oracles, state, loops, afforded, asked
        problem = oracles.problem
        self.shapes, self.parts = (
            (problem.X.shape, problem.Y.shape),
            (slice(problem.X.size), slice(problem.X.size, None)),
        )
        self.functions = {"f": (problem.f, problem.X, self.parts[0]), "g": (problem.g, problem.Y, self.parts[1])}
        self.guards = {name: PairGuard(name, *entry[:2]) for name, entry in self.functions.items()}
        self.iterates, self.called = [z.copy() for z in state.iterates], 0
        w = math.sqrt(state.Omegas["g"] / state.Omegas["f"])
        self.weights = {
            name: self._stack(*pair) for name, pair in {"f": (1.0, 0.0), "g": (0.0, 1.0), "B": (w, 1.0 / w)}.items()
        }

    def _stack(self, on_x: float, on_y: float) -> Array:
        problem = self.oracles.problem
        return np.concatenate([np.full(problem.X.size, on_x), np.full(problem.Y.size, on_y)])

    def blocks(self, z: Array) -> Point:
        """Copies of x and y of one vector."""
        x, y = split(z, list(self.shapes))
        return x.copy(), y.copy()

    def advance(self, until: int) -> tuple[Array, Ledger]:
        """The running average and the ledger after so many outermost steps in all."""
        state = self.state
        average = state.point
        ledger = {name: np.array(account) for name, account in state.accounts.items()}
        for name, (constant, slope) in state.models.items():
            ledger[name] = np.concatenate([ledger[name], [constant], slope.ravel()])
        nothing = np.zeros_like(average)
        above = _Above(nothing, nothing, nothing, nothing, 1.0, last_alpha(self.loops[0]))
        for j in range(state.step, until):
            average, ledger = self._iterate(0, j, above, average, ledger)
        if not np.isfinite(average).all():
            raise RunEnded("NUMERICAL_LIMIT")
        return average, ledger

    def call(self, name: str, z: Array) -> Linearisation:
        """Value and gradient of f or g."""
        function, domain, part = self.functions[name]
        point = z[part].reshape(domain.shape).copy()
        found = Linearisation(point, *self.oracles.value_and_gradient(name, function, point))
        self.called += 1
        if self.called % _COMPARED <= _COMPARED // 8:
            self.guards[name].look(found)
        return found

    def _recall(self, name: str, z: Array) -> Linearisation:
        """The same; the first call since the last look is made again where steps were taken back."""
        if name not in self.asked:
            self.asked[name] = self.call(name, z)
        known = self.asked[name]
        return known if np.array_equal(known.point.ravel(), z[self.functions[name][2]]) else self.call(name, z)

    def _sweep(self, k: int, above: _Above) -> tuple[Array, Ledger]:
        """All iterations of level k, or the base case: a projection."""
        if k == len(self.loops):
            return self._project((above.pull - above.slope) / above.weights), {}
        ledger: Ledger = {}
        average = self.iterates[k]
        above = above._replace(last=above.last * last_alpha(self.loops[k]))
        for j in range(self.loops[k]):
            average, ledger = self._iterate(k, j, above, average, ledger)
        return average, ledger

    def _iterate(self, k: int, j: int, above: _Above, average: Array, ledger: Ledger) -> tuple[Array, Ledger]:
        """Iteration j of level k: its average and ledger afterwards."""
        name, z, alpha = self.state.order[k], self.iterates[k], alpha_of(j)
        weights, Gamma = self.weights[name], above.Gamma * alpha
        base = above.base + above.Gamma * (1.0 - alpha) * average
        eta, constant = Gamma * self.afforded[name], self.afforded[name]
        if name == "B":
            eta /= above.last
            slope = self._products(z)
        else:
            v, part = Gamma * z + base, self.functions[name][2]
            at, slope = self._recall(name, v), np.zeros_like(z)
            slope[part] = at.gradient.ravel()
        passed = _Above(
            above.pull + eta * weights * z, above.slope + slope, above.weights + eta * weights, base, Gamma, above.last
        )
        ahead, entries = self._sweep(k + 1, passed)
        moved = float(np.dot(weights, (ahead - z) ** 2))
        if name == "B":
            change = slope - self._products(ahead)
            following = self._project(ahead + change / (eta * weights))
            back = float(np.dot(weights, (following - ahead) ** 2))
            total = float(np.dot(change, ahead - following)) + 0.5 * eta * (back + moved)
            entry = np.array([total, float(np.dot(change**2, 1.0 / weights)) / eta, moved / eta])
        else:
            following = ahead
            linear = at.value + float(np.dot(slope[part], (ahead - v)[part]))
            moved *= 0.5 * Gamma
            model = LowerModel.from_gradient(*self.functions[name][:2], at.point, at.value, at.gradient, 0.0)
            head = [linear + constant * moved, linear, moved, model.constant]
            entry = np.concatenate([head, model.slope.ravel()])
        self.iterates[k] = following
        entries = {**entries, name: entry}
        if j > 0:
            entries = {name: alpha * entry + (1.0 - alpha) * ledger[name] for name, entry in entries.items()}
        return alpha * ahead + (1.0 - alpha) * average, entries

    def _products(self, z: Array) -> Array:
        """(B^T y, -Bx)."""
        x, y = split(z, list(self.shapes))
        return np.concatenate([self.oracles.adjoint(y).ravel(), -self.oracles.forward(x).ravel()])

    def _project(self, z: Array) -> Array:
        x, y = split(z, list(self.shapes))
        return np.concatenate([self.oracles.problem.X.project(x).ravel(), self.oracles.problem.Y.project(y).ravel()])
