"""Problems on sets without an end, planted in whole numbers: claims about them are compared with exact arithmetic.

    min over x of  1/2 |A x - b|^2 + <w, |x|> + <c, x>  +  max over y in Y of <y, B x - d>,

x in R^n or x >= 0, and Y the whole space (B x = d), y >= 0 (B x <= d) or a box (a sum of kinks). A saddle point, or a
ray that excludes one, is planted; data are whole numbers, and units of x, y and F are changed by powers of two, so that
doubles have all of it without rounding and a run should not notice the change. Values of F are fractions.

A claim is refuted by a witness: a point of a set within the radius, found by Clarabel or planted, at which F, computed
exactly, lies beyond the bound; a planted point that a ray is said to exclude; success where nothing is feasible.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

import saddleslide as ss
from trusted import conic_program

F, D = ss.functions, ss.domains
FALSE = "false success"
KINDS = ("equal", "below", "sum")


@dataclass(frozen=True)
class Endless:
    """Data, the planted saddle point, and which status is right where there is none."""

    kind: str
    B: np.ndarray
    d: np.ndarray
    c: np.ndarray
    w: np.ndarray
    A: np.ndarray
    b: np.ndarray
    is_positive: bool = False
    sides: tuple[float, float] = (-1.0, 1.0)
    x: np.ndarray | None = None
    y: np.ndarray | None = None
    lacks: str = ""

    def in_units(self, x_unit: float, y_unit: float, root: float) -> Endless:
        """The same with x, y and F multiplied by `x_unit`, `y_unit` and the square of `root`."""
        value = root * root
        return replace(
            self, B=self.B * (value / (x_unit * y_unit)), d=self.d * (value / y_unit), c=self.c * (value / x_unit),
            w=self.w * (value / x_unit), A=self.A * (root / x_unit), b=self.b * root,
            sides=(self.sides[0] * y_unit, self.sides[1] * y_unit),
            x=None if self.x is None else self.x * x_unit, y=None if self.y is None else self.y * y_unit,
        )  # fmt: skip

    def problem(self, mirrored: bool) -> ss.SaddleProblem:
        """As a saddle problem; mirrored, x and y change their roles."""
        m, n = self.B.shape
        parts = [F.LeastSquares(self.A, self.b)] if self.A.size else []
        parts += [F.Power(0.0, weight=self.w)] if self.w.any() else []
        parts += [F.Linear(self.c)] if self.c.any() else []
        f, g = sum(parts[1:], parts[0]) if parts else F.Zero(), F.Linear(self.d) if self.d.any() else F.Zero()
        X = D.NonNegative(n) if self.is_positive else D.FullSpace(n)
        Y = {"equal": D.FullSpace(m), "below": D.NonNegative(m), "sum": D.Box(*self.sides, shape=m)}[self.kind]
        if mirrored:
            return ss.SaddleProblem(f=g, g=f, B=-self.B.T, X=Y, Y=X)
        return ss.SaddleProblem(f=f, g=g, B=self.B, X=X, Y=Y)

    def F(self, x: np.ndarray, y: np.ndarray) -> Fraction:
        """F without rounding."""
        x, y = ([Fraction(float(e)) for e in v] for v in (x, y))
        misses = [sum(Fraction(float(a)) * e for a, e in zip(row, x, strict=True)) for row in self.A]
        total = sum(((r - Fraction(float(t))) ** 2 for r, t in zip(misses, self.b, strict=True)), Fraction(0)) / 2
        total += sum(
            Fraction(float(v)) * abs(e) + Fraction(float(s)) * e for v, s, e in zip(self.w, self.c, x, strict=True)
        )
        for row, level, weight in zip(self.B, self.d, y, strict=True):
            image = sum((Fraction(float(a)) * e for a, e in zip(row, x, strict=True)), Fraction(0))
            total += weight * (image - Fraction(float(level)))
        return total


def whole(rng, shape, most=3):
    return rng.integers(-most, most + 1, shape).astype(float)


def solvable(rng) -> Endless:
    """A problem around a saddle point: slopes are made to fit by c, or by w alone."""
    n, m, kind = int(rng.integers(1, 7)), int(rng.integers(1, 6)), KINDS[int(rng.integers(3))]
    positive = bool(rng.random() < 0.5)
    x = whole(rng, n) * (rng.random(n) < 0.6)
    x = np.abs(x) if positive else x
    rows = 0 if rng.random() < 0.45 else int(rng.integers(1, n + 3))
    A, r = whole(rng, (rows, n), 2), whole(rng, rows, 2)
    A = np.abs(A) if rng.random() < 0.4 else A
    A[:, 0] += 0.0 if A.any() else 1.0
    B = whole(rng, (m, n)) if rng.random() < 0.7 else np.eye(m, n) - np.eye(m, n, k=1)
    high, low = float(rng.integers(1, 4)), -float(rng.integers(0, 4))
    y, misses = whole(rng, m), np.zeros(m)
    if kind == "below":
        y = np.maximum(y, 0.0)
        misses = -np.where(y == 0.0, rng.integers(0, 4, m), 0.0)
    elif kind == "sum":
        y = np.clip(y, low, high)
        misses = np.where(y == high, 1.0, 0.0) * rng.integers(0, 3, m) - np.where(y == low, 1.0, 0.0) * rng.integers(
            0, 3, m
        )
    slope = A.T @ r + B.T @ y
    w, c = np.zeros(n), np.zeros(n)
    if rng.random() < 0.5:
        w = np.full(n, float(rng.integers(1, 3))) if rng.random() < 0.5 else rng.integers(0, 4, n).astype(float)
    if rng.random() < 0.5 and rows:
        # As a lasso: weights are the slopes, and x points against them.
        w = np.where(x == 0.0, np.abs(slope) + rng.integers(0, 2, n), np.abs(slope))
        x = np.where(slope > 0.0, 0.0, np.abs(x)) if positive else -np.sign(slope) * np.abs(x)
    else:
        signs = np.where(x == 0.0, rng.integers(-1, 2, n), np.sign(x))
        c = -slope - w * signs + np.where(positive & (x == 0.0), rng.integers(0, 3, n), 0.0)
    return Endless(kind, B, B @ x - misses, c, w, A, A @ x - r, positive, (low, high), x, y)


def infeasible(rng) -> Endless:
    """Rows that contradict each other, or the signs of x, by whole numbers."""
    n, kind = int(rng.integers(1, 6)), KINDS[int(rng.integers(2))]
    rows = 0 if rng.random() < 0.5 else int(rng.integers(1, n + 2))
    A, b, c = whole(rng, (rows, n), 2), whole(rng, rows, 2), np.zeros(n) if rows else whole(rng, n)
    w = np.full(n, float(rng.integers(0, 2)))
    k, positive = int(rng.integers(1, 4)), bool(rng.random() < 0.5)
    B, x = whole(rng, (k, n)), np.abs(whole(rng, n))
    if positive and rng.random() < 0.4:
        B = np.abs(B) + np.eye(k, n)
        d = B @ x
        d[0] = -float(rng.integers(1, 4))
    elif kind == "below":
        B, d = np.vstack([B, -B[:1]]), np.concatenate([B @ x, [-(B[0] @ x) - rng.integers(1, 4)]])
    else:
        mixed = rng.integers(1, 3, k).astype(float)
        B, d = np.vstack([B, mixed @ B]), np.concatenate([B @ x, [mixed @ (B @ x) + rng.integers(1, 4)]])
    return Endless(kind, B, d, c, w, A, b, positive, lacks="INFEASIBLE")


def unbounded(rng) -> Endless:
    """Prices that fall for ever along a ray that no row stops."""
    n, kind = int(rng.integers(2, 7)), KINDS[int(rng.integers(3))]
    k, positive = int(rng.integers(1, 4)), bool(rng.random() < 0.5)
    B, c = whole(rng, (k, n)), whole(rng, n)
    ray = rng.integers(1, 3, n).astype(float)
    ray = ray if positive else ray * rng.choice([-1.0, 1.0], n)
    # B ray = 0, so that nothing stops it; one entry of the ray is 1.
    ray[-1] = 1.0
    B[:, -1] = -B[:, :-1] @ ray[:-1]
    if kind == "below" and rng.random() < 0.5:
        B[:, -1] -= rng.integers(0, 3, k)
    c[-1] = -(c[:-1] @ ray[:-1]) - float(rng.integers(1, 4))
    x = np.abs(whole(rng, n))
    return Endless(kind, B, B @ x, c, np.zeros(n), np.zeros((0, n)), np.zeros(0), positive, lacks="UNBOUNDED")


FAMILIES = {"endless": solvable, "infeasible": infeasible, "unbounded": unbounded}


def drawn_units(rng):
    """Powers of two from 1e-6 to 1e6 for x and y, and the root of one for F."""
    return 2.0 ** int(rng.integers(-20, 21)), 2.0 ** int(rng.integers(-20, 21)), 2.0 ** int(rng.integers(-10, 11))


DOORS = ("auto", "auto", "auto", "auto", "certify", "certify a result")


def judged(family, seed):
    """A row: one planted problem in two systems of units through one door, and what is wrong with what is said."""
    rng = np.random.default_rng([seed, 27])
    made = FAMILIES[family](rng)
    mirrored, units = bool(rng.random() < 0.3), drawn_units(rng)
    rtol = float(10.0 ** -rng.integers(2, 7))
    told = f"{made.kind}{', mirrored' * mirrored}, units {units[0]:g} {units[1]:g} {units[2] ** 2:g}, rtol {rtol:g}"
    point = tuple(whole(rng, size) for size in made.B.shape[::-1])
    cases = (made, point), (made.in_units(*units), (point[0] * units[0], point[1] * units[1]))
    for _ in range(6):
        pool = DOORS if rng.random() < 0.6 else tuple(ss.methods.by_name)
        door = pool[int(rng.integers(len(pool)))]
        try:
            first, second = (through(case, door, mirrored, rtol, at) for case, at in cases)
            break
        except ss.errors.InputError:
            continue
    else:
        return {"seed": seed, "family": family, "told": told, "status": "REFUSED", "value": "", "wrong": []}
    row = {"seed": seed, "family": family, "door": door, "told": told}
    wrong = complaints(made, first) + complaints(cases[1][0], second)
    # Methods by name work in the Euclidean norm where sets have no end, and f without curvature has no unit of it.
    is_blind = door not in DOORS or (made.A.size and not made.A.any())
    # The last point of a run without a solution, certified, is any point; and where Bx = d to the last bit, what is
    # proved within radii holds everywhere.
    is_chance = door == "certify a result" and made.lacks != ""
    if {first.status, second.status} == {"SOLVED", "SOLVED_WITHIN"} and made.kind == "equal":
        both = zip(cases, (first, second), strict=True)
        is_chance = any(np.array_equal(case.B @ said.x, case.d) for (case, _), said in both)
    if first.status != second.status and not (is_blind or is_chance):
        wrong.append(f"units change the status: {first.status} and {second.status}")
    same = "same calls" if first.calls == second.calls else "other calls"
    named = "" if not made.lacks else ", named" if first.status == made.lacks else ", not named"
    return {**row, "status": first.status, "success": first.success, "value": same + named, "wrong": wrong}


@dataclass
class Said:
    """What came out of a door, in the roles of the planted problem."""

    x: np.ndarray
    y: np.ndarray
    certificate: ss.Certificate
    status: str
    success: bool
    target: float
    calls: float
    message: str = ""


def through(case, door, mirrored, rtol, point) -> Said:
    problem = case.problem(mirrored)
    if door == "certify":
        x, y = point if case.x is None or point[0][0] <= 0.0 else (case.x, case.y)
        x, y = np.maximum(x, 0.0) if case.is_positive else x, y
        y = np.clip(y, *case.sides) if case.kind == "sum" else np.maximum(y, 0.0) if case.kind == "below" else y
        return _certified(problem, x, y, mirrored)
    method = "auto" if door == "certify a result" else door
    most = 4000 if method == "auto" else 800
    limits = {"max_steps": most // 2, "max_calls": {"f": most, "g": most, "B": 2 * most}}
    result = ss.solve(problem, rtol=rtol, method=method, **limits)
    x, y = (result.y, result.x) if mirrored else (result.x, result.y)
    if door == "certify a result":
        return _certified(problem, x, y, mirrored)
    calls = result.calls.f + result.calls.g + result.calls.B
    seen = _turned(result.certificate) if mirrored else result.certificate
    status = result.status.name
    if mirrored:
        status = {"INFEASIBLE": "UNBOUNDED", "UNBOUNDED": "INFEASIBLE"}.get(status, status)
    return Said(x, y, seen, status, result.success, result.known_target, calls, str(result.message))


def _certified(problem, x, y, mirrored) -> Said:
    seen = ss.certify(problem, *((y, x) if mirrored else (x, y)))
    seen = _turned(seen) if mirrored else seen
    # How a minimum was found ("exact", "searched") is no status.
    kind = "within" if seen.within_gap < math.inf else "none" if seen.kind == "none" else "global"
    return Said(x, y, seen, f"CERTIFIED {kind}", False, math.nan, seen.calls.f + seen.calls.g + seen.calls.B)


def _turned(seen):
    """A certificate of the mirrored problem, whose F is -F."""
    within = (-seen.within[1], -seen.within[0])
    return replace(seen, lower=-seen.upper, upper=-seen.lower, within=within, radii=seen.radii[::-1])


def complaints(case: Endless, said: Said) -> list[str]:
    """What is wrong with a claim: see the head of this file."""
    seen, found = said.certificate, []
    if case.lacks and said.success:
        return [f"{FALSE}: {said.status}, and the problem is {case.lacks}"]
    if said.success and not min(seen.gap, seen.within_gap) <= said.target:
        found.append(f"{FALSE}: gap {min(seen.gap, seen.within_gap):.6g} above the target {said.target:.6g}")
    if seen.lower > seen.upper or seen.within[0] > seen.within[1]:
        found.append("negative gap")
    if case.lacks:
        opposite = {"INFEASIBLE": "upper", "UNBOUNDED": "lower"}[case.lacks]
        if math.isfinite(getattr(seen, opposite)):
            found.append(f"{opposite} is {getattr(seen, opposite):.6g}, and the problem is {case.lacks}")
    else:
        value = case.F(case.x, case.y)
        near = [
            math.inf if math.isinf(radius) else radius * (1.0 - 1e-12) - float(np.linalg.norm(point - planted))
            for radius, point, planted in zip(seen.radii, (said.x, said.y), (case.x, case.y), strict=True)
        ]
        bounds = [("", seen.lower, seen.upper)]
        if seen.within_gap < math.inf and min(near) >= 0.0:
            bounds.append((" within the radii", *seen.within))
        for name, lower, upper in bounds:
            if math.isfinite(lower) and Fraction(lower) > value:
                found.append(f"lower{name} is above the value by {float(Fraction(lower) - value):.3g}")
            if math.isfinite(upper) and Fraction(upper) < value:
                found.append(f"upper{name} is below the value by {float(value - Fraction(upper)):.3g}")
        if said.status in ("INFEASIBLE", "UNBOUNDED"):
            block = 0 if said.status == "INFEASIBLE" else 1
            stated = re.search(r"The distance is ([0-9.e+-]+)", said.message)
            apart = float(np.linalg.norm((said.x, said.y)[block] - (case.x, case.y)[block]))
            if stated is None or apart <= float(stated[1].rstrip(".")) * (1.0 - 1e-3):
                found.append(f"{said.status}, but a point {apart:.3g} away shows the opposite: {said.message[-90:]}")
    if seen.within_gap < math.inf and seen.within_gap < seen.gap:
        found += _beyond(case, said)
    return found


def _beyond(case: Endless, said: Said) -> list[str]:
    """Points within the radii at which F lies beyond the bounds."""
    (lower, upper), (x, y), found = said.certificate.within, (said.x, said.y), []
    tries_x, tries_y = [x], [y]
    for radius, point, planted, tries in (
        (said.certificate.radii[0], x, case.x, tries_x),
        (said.certificate.radii[1], y, case.y, tries_y),
    ):
        if planted is not None and radius > 0.0:
            way = float(np.linalg.norm(planted - point))
            tries.append(point + (planted - point) * min(1.0, (1.0 - 1e-12) * radius / way) if way else point)
    m, n = case.B.shape
    rx, ry = said.certificate.radii
    if math.isfinite(rx) and rx > 0.0:
        Q, slope = case.A.T @ case.A, case.A.T @ (case.A @ x - case.b) + case.c + case.B.T @ y
        low = np.zeros(n) if case.is_positive else np.full(n, -np.inf)
        tries_x.append(nearby(Q, slope, case.w, x, rx, low, np.full(n, np.inf)))
    if math.isfinite(ry) and ry > 0.0:
        low, high = {"equal": (-np.inf, np.inf), "below": (0.0, np.inf), "sum": case.sides}[case.kind]
        none = np.zeros((m, m)), case.d - case.B @ x, np.zeros(m)
        tries_y.append(nearby(*none, y, ry, np.full(m, low), np.full(m, high)))
    if math.isfinite(lower):
        least = min(case.F(witness, y) for witness in tries_x if witness is not None)
        if least < Fraction(lower):
            found.append(f"F(., y) is below the lower bound within the radius by {float(Fraction(lower) - least):.3g}")
    if math.isfinite(upper):
        most = max(case.F(x, witness) for witness in tries_y if witness is not None)
        if most > Fraction(upper):
            found.append(f"F(x, .) is above the upper bound within the radius by {float(most - Fraction(upper)):.3g}")
    return found


def nearby(Q, slope, w, center, radius, low, high):
    """A minimiser of <slope, s> + 1/2 <s, Q s> + <w, |center + s|> over |s| <= radius within a box, pulled inside."""
    n = center.size
    # In units of the radius, slopes of size 1: what Clarabel likes.
    size = max(float(np.abs(slope).max()), float(w.max(initial=0.0)), radius * float(np.abs(Q).max()), 1e-300)
    eye, none = np.eye(n), np.zeros((n, n))
    P = np.block([[Q * (radius / size), none], [none, none]])
    rows = [
        (np.hstack([eye, -eye]), -center / radius, "Nonnegative"),
        (np.hstack([-eye, -eye]), center / radius, "Nonnegative"),
        (np.vstack([np.zeros((1, 2 * n)), np.hstack([-eye, none])]), np.r_[1.0, np.zeros(n)], "SecondOrder"),
    ]
    if np.isfinite(low).all():
        rows.append((np.hstack([-eye, none]), (center - low) / radius, "Nonnegative"))
    if np.isfinite(high).all():
        rows.append((np.hstack([eye, none]), (high - center) / radius, "Nonnegative"))
    try:
        _, z, _ = conic_program(P, np.r_[slope, np.maximum(w, 1e-12 * size)] / size, rows)
    except AssertionError:
        return None
    step = np.clip(center + radius * z[:n], low, high) - center
    length = float(np.linalg.norm(step))
    # Towards the center, a point of the set: in the ball whatever rounding does.
    return np.clip(center + step * min(1.0, (1.0 - 1e-12) * radius / length if length else 1.0), low, high)
