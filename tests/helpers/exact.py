"""The truth in 120 digits: functions, sets, inner minima and saddle values that share no code with the package.

Data are doubles, hence exact. Everything after them is computed with 400 bits, so what is found is exact for every
purpose of a check: `SLACK` is far above its rounding and far below that of doubles. (Arrays stand left of the numbers
that they are multiplied with: the other way round mpmath prints them first.)

Two kinds of statements come out. A feasible point is a witness: F(x, y') bounds max F(x, .) from below, however y' was
found, so a bound that a witness violates is false. And a point with its gradient bounds a convex minimum from below, so
[min F(., y*), max F(x*, .)] contains the saddle value for any (x*, y*), and is a point where (x*, y*) is the saddle.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from support import need

mpmath = need("mpmath")
mpmath.mp.prec = 400
mpf = mpmath.mpf
SLACK = mpf(10) ** -40
# Curvature that makes every minimum unique; what it changes is far below SLACK.
FAINT = mpf(10) ** -75
# Nothing is searched for that far away.
FAR = mpf(10) ** 25
ZERO, ONE, HALF, INF = mpf(0), mpf(1), mpf(0.5), mpmath.inf

_exactly = np.frompyfunc(mpf, 1, 1)


def exactly(array):
    """Doubles as numbers of 400 bits, none of them changed."""
    return np.asarray(_exactly(np.asarray(array, float)), dtype=object)


def norm(v):
    return mpmath.sqrt(sum((e * e for e in v.ravel()), ZERO))


def dot(u, v):
    return sum((a * b for a, b in zip(u.ravel(), v.ravel(), strict=True)), ZERO)


def solved(M, r):
    """M^-1 r by elimination with pivots."""
    n = len(r)
    if n == 0:
        return r.copy()
    T = np.concatenate([M, r.reshape(n, 1)], axis=1)
    for k in range(n):
        p = max(range(k, n), key=lambda i: abs(T[i, k]))
        if T[p, k] == 0:
            raise ZeroDivisionError("singular")
        if p != k:
            T[[k, p]] = T[[p, k]]
        for i in range(k + 1, n):
            if T[i, k] != 0:
                T[i, k:] = T[i, k:] - T[k, k:] * (T[i, k] / T[k, k])
    x = np.empty(n, dtype=object)
    for k in range(n - 1, -1, -1):
        x[k] = (T[k, n] - dot(T[k, k + 1 : n], x[k + 1 :])) / T[k, k]
    return x


# Functions


@dataclass
class Exact:
    """A sum of terms: 1/2 x'Hx + h'x + constant, smooth losses of Ax, and sums over entries w |x|."""

    H: np.ndarray
    h: np.ndarray
    constant: object = ZERO
    # (factor, A, loss) with loss(q) -> values, slopes, curvatures.
    losses: tuple = ()
    # Weights of |x_i|, or None.
    kinks: np.ndarray | None = None
    # Functions of each entry alone, in closed form: (value, minimise(c, low, high) -> x) for entries; or None.
    entries: tuple | None = None
    scale: object = field(default=ONE)

    @property
    def size(self):
        return len(self.h)

    def plus(self, other):
        kinks = self.kinks if other.kinks is None else other.kinks if self.kinks is None else self.kinks + other.kinks
        return Exact(self.H + other.H, self.h + other.h, self.constant + other.constant,
                     self.losses + other.losses, kinks)  # fmt: skip

    def times(self, factor):
        factor = mpf(factor)
        losses = tuple((factor * c, A, loss) for c, A, loss in self.losses)
        kinks = None if self.kinks is None else self.kinks * factor
        return Exact(self.H * factor, self.h * factor, factor * self.constant, losses, kinks)

    def value(self, x):
        found = HALF * dot(x, self.H.dot(x)) + dot(self.h, x) + self.constant
        for factor, A, loss in self.losses:
            found += factor * sum((loss(q)[0] for q in A.dot(x)), ZERO)
        if self.kinks is not None:
            found += sum((w * abs(e) for w, e in zip(self.kinks, x, strict=True)), ZERO)
        if self.entries is not None:
            found += sum((entry[0](e) for entry, e in zip(self.entries, x, strict=True)), ZERO)
        return found

    def smooth(self, x):
        """Gradient and Hessian of all but the kinks."""
        gradient, H = self.H.dot(x) + self.h, self.H
        for factor, A, loss in self.losses:
            known = [loss(q) for q in A.dot(x)]
            gradient = gradient + A.T.dot(np.array([k[1] for k in known], dtype=object)) * factor
            H = H + (A.T * np.array([k[2] for k in known], dtype=object)).dot(A) * factor
        return gradient, H


def blank(n):
    return exactly(np.zeros((n, n))), exactly(np.zeros(n))


def zero(n):
    return Exact(*blank(n))


def linear(c):
    return Exact(blank(len(c))[0], exactly(c))


def quadratic(Q, c=None):
    """1/2 x'Qx + c'x with the symmetric part of Q, as x'Qx sees it."""
    Q = exactly(Q)
    return Exact((Q + Q.T) * HALF, exactly(np.zeros(len(Q)) if c is None else c))


def least_squares(A, b, ridge=0.0):
    A, b = exactly(A), exactly(b)
    H = A.T.dot(A) + exactly(np.eye(A.shape[1])) * mpf(ridge)
    return Exact(H, -A.T.dot(b), HALF * dot(b, b))


def _softplus(label):
    def loss(q):
        u = mpmath.exp(-abs(q))
        margin = label * q
        value = mpmath.log1p(u) + (ZERO if margin > 0 else -margin)
        doubt = u / (1 + u) if margin > 0 else 1 / (1 + u)
        return value, -label * doubt, doubt * (1 - doubt)

    return loss


def logistic(A, labels, ridge=0.0):
    """Rows carry their labels, so that one loss serves all."""
    A = exactly(A) * exactly(labels).reshape(-1, 1)
    h = exactly(np.zeros(A.shape[1]))
    return Exact(exactly(np.eye(len(h))) * mpf(ridge), h, ZERO, ((ONE, A, _softplus(1)),))


def _log_cosh(q):
    t = mpmath.tanh(q)
    return abs(q) + mpmath.log1p(mpmath.exp(-2 * abs(q))) - mpmath.log(2), t, 1 - t * t


def log_cosh(A):
    H, h = blank(np.shape(A)[1])
    return Exact(H, h, ZERO, ((ONE, exactly(A), _log_cosh),))


def huber(delta, n):
    delta = mpf(delta)

    def loss(q):
        if abs(q) <= delta:
            return q * q / (2 * delta), q / delta, 1 / delta
        return abs(q) - delta / 2, mpmath.sign(q), ZERO

    H, h = blank(n)
    return Exact(H, h, ZERO, ((ONE, exactly(np.eye(n)), loss),))


def absolute(weights):
    H, h = blank(len(weights))
    return Exact(H, h, ZERO, (), exactly(weights))


# Sets


@dataclass
class Set:
    """Box (with infinite sides for the whole space), "simplex" or "ball" around a centre."""

    kind: str
    lower: np.ndarray | None = None
    upper: np.ndarray | None = None
    center: np.ndarray | None = None
    radius: object = ZERO

    def project(self, x):
        """A point of the set, next to x where x left it by rounding only."""
        if self.kind == "box":
            return np.array([min(max(e, a), b) for e, a, b in zip(x, self.lower, self.upper, strict=True)], object)
        if self.kind == "simplex":
            x = np.array([max(e, ZERO) for e in x], dtype=object)
            total = sum(x, ZERO)
            return x / total if total > 0 else exactly(np.full(len(x), 1.0)) / len(x)
        step = x - self.center
        size = norm(step)
        return x if size <= self.radius else self.center + step * (self.radius * (1 - mpf(10) ** -110) / size)

    def least(self, r, x):
        """Minimum of <r, x' - x> over the set; -inf where it has none."""
        if self.kind == "simplex":
            return min(r) - dot(r, x)
        if self.kind == "ball":
            return dot(r, self.center - x) - self.radius * norm(r)
        found = ZERO
        for slope, e, a, b in zip(r, x, self.lower, self.upper, strict=True):
            way = (a if slope > 0 else b) - e
            found += slope * way if slope != 0 and way != 0 else ZERO
        return found


def whole_space(n):
    return Set("box", np.full(n, -INF, object), np.full(n, INF, object))


def box(lower, upper):
    return Set("box", exactly(lower), exactly(upper))


def simplex(n):
    return Set("simplex", exactly(np.zeros(n)), np.full(n, INF, object))


def ball(radius, center):
    return Set("ball", center=exactly(center), radius=mpf(radius))


# Inner minima


def _polyhedral(H, c, S, x):
    """min 1/2 x'Hx + c'x over a box or a simplex, from a feasible x: active sets, one linear system a step."""
    n, equal = len(c), S.kind == "simplex"
    low, high = S.lower, S.upper
    status = [2 if a == b else -1 if e == a else 1 if e == b else 0 for e, a, b in zip(x, low, high, strict=True)]
    if equal and 0 not in status:
        status[int(np.argmax(x))] = 0
    for _ in range(12 * n + 12):
        slope = H.dot(x) + c
        free = [i for i in range(n) if status[i] == 0]
        shift = ZERO
        if free:
            M, r = H[np.ix_(free, free)], -slope[free]
            if equal:
                edge = exactly(np.ones((len(free), 1)))
                M = np.block([[M, edge], [edge.T, exactly(np.zeros((1, 1)))]])
                found = solved(M, np.append(r, 1 - sum(x, ZERO)))
                d, shift = found[:-1], found[-1]
            else:
                d = solved(M, r)
            t, blocking = ONE, None
            for i, e in zip(free, d, strict=True):
                wall = low[i] if e < 0 else high[i]
                if e != 0 and abs(wall) != INF and (wall - x[i]) / e < t:
                    t, blocking = (wall - x[i]) / e, i
            x = x.copy()
            x[free] = x[free] + d * t
            if blocking is not None:
                status[blocking] = -1 if d[free.index(blocking)] < 0 else 1
                x[blocking] = low[blocking] if status[blocking] < 0 else high[blocking]
                continue
            slope = H.dot(x) + c
        pulls = [(-status[i] * -(slope[i] + shift), i) for i in range(n) if status[i] in (-1, 1)]
        worst = max(pulls, default=(ZERO, -1))
        if worst[0] <= 0:
            return x
        status[worst[1]] = 0
    return x


def _round(H, c, S):
    """The same over a ball: the multiplier is the root of |x(t)| = R."""
    n, c = len(c), H.dot(S.center) + c
    eye = exactly(np.eye(n))
    step = solved(H, -c)
    if norm(step) <= S.radius:
        return S.center + step
    if S.radius == 0:
        return S.center.copy()
    t = _multiplier(H, c, S.radius)
    for _ in range(60):
        step = solved(H + eye * t, -c)
        size = norm(step)
        if abs(size - S.radius) <= S.radius * mpf(10) ** -90:
            break
        # Newton on 1/|x(t)|, which is nearly linear in t.
        turn = dot(step, solved(H + eye * t, step)) / size
        t = max(t + (size - S.radius) / S.radius * size / turn, t * mpf(0.01))
    return S.project(S.center + step)


def _multiplier(H, c, radius):
    """The root in doubles, where they reach."""
    values, vectors = np.linalg.eigh(H.astype(float))
    parts, radius = (vectors.T @ c.astype(float)) ** 2, float(radius)
    low, high = 0.0, float(np.sqrt(parts.sum())) / radius
    for _ in range(60):
        t = 0.5 * (low + high)
        if t > 0.0 and float(np.sum(parts / (np.maximum(values, 0.0) + t) ** 2)) > radius * radius:
            low = t
        else:
            high = t
    return mpf(high)


def _quadratic_step(H, c, S, x):
    H = H + exactly(np.eye(len(c))) * (FAINT * (max((abs(e) for e in H.ravel()), default=ZERO) or ONE))
    return _round(H, c, S) if S.kind == "ball" else _polyhedral(H, c, S, x)


def _split(f, S):
    """|x| as p + q with x = p - q, for boxes that contain 0."""
    n = f.size
    P = np.concatenate([exactly(np.eye(n)), -exactly(np.eye(n))], axis=1)
    losses = tuple((factor, A.dot(P), loss) for factor, A, loss in f.losses)
    parts = Exact(P.T.dot(f.H).dot(P), P.T.dot(f.h) + np.concatenate([f.kinks, f.kinks]), f.constant, losses)
    zeros = exactly(np.zeros(2 * n))
    return parts, Set("box", zeros, np.concatenate([S.upper, -S.lower])), P


@dataclass
class Minimum:
    """A feasible point, its value, and a lower bound on all values."""

    point: np.ndarray
    value: object
    lower: object


def minimise(f, c, S, x):
    """min over S of f(x) + <c, x>, from a point near it."""
    if f.entries is not None:
        point = np.array(
            [entry[1](f.h[i] + c[i], S.lower[i], S.upper[i]) for i, entry in enumerate(f.entries)], dtype=object
        )
        value = f.value(point) + dot(c, point)
        return Minimum(point, value, value)
    if f.kinks is not None:
        parts, both, P = _split(f, S)
        start = np.concatenate([[max(e, ZERO) for e in x], [max(-e, ZERO) for e in x]])
        found = minimise(parts, P.T.dot(c), both, start)
        point = P.dot(found.point)
        return Minimum(point, f.value(point) + dot(c, point), found.lower)
    tilted = Exact(f.H, f.h + c, f.constant, f.losses)
    x = S.project(x)
    value = tilted.value(x)
    for _ in range(60 if f.losses else 1):
        slope, H = tilted.smooth(x)
        new = _quadratic_step(H, slope - H.dot(x), S, x)
        if not f.losses:
            x, value = new, tilted.value(new)
            break
        step, t = new - x, ONE
        size = norm(step)
        if size > FAR:
            break
        there = tilted.value(new)
        while there > value and t > mpf(1e-9):
            t /= 4
            there = tilted.value(x + step * t)
        if there > value:
            break
        x, value = x + step * t, there
        if size <= mpf(10) ** -45 * (1 + norm(x)):
            break
    slope, _ = tilted.smooth(x)
    # Beyond, even 400 bits cancel.
    lower = value + S.least(slope, x) if norm(x) < FAR else -INF
    if lower == -INF and norm(x) < FAR and norm(slope) <= mpf(10) ** -20 * (norm(f.h) + norm(c) + mpf(10) ** -30):
        # A gradient that vanishes on the whole space: what is left is far below anything measured.
        lower = value - norm(slope) * mpf(10) ** 25
    return Minimum(x, value, lower)


# Saddle points


@dataclass
class Saddle:
    """min over X, max over Y of f(x) + <y, Bx> - g(y)."""

    f: Exact
    g: Exact
    B: np.ndarray
    X: Set
    Y: Set

    def value(self, x, y):
        return self.f.value(x) + dot(y, self.B.dot(x)) - self.g.value(y)

    def above(self, x, near):
        """Max over Y of F(x, .): the value of a witness, and an upper bound."""
        found = minimise(self.g, -self.B.dot(x), self.Y, near)
        at_x = self.f.value(x)
        return at_x - found.value, at_x - found.lower, found.point

    def below(self, y, near):
        """Min over X of F(., y): the value of a witness, and a lower bound."""
        found = minimise(self.f, self.B.T.dot(y), self.X, near)
        at_y = self.g.value(y)
        return found.value - at_y, found.lower - at_y, found.point

    def bracket(self, x, y):
        """Two numbers between which the saddle value lies, from points near the saddle point."""
        x, y = self.X.project(x), self.Y.project(y)
        best = -INF, INF
        for _ in range(3):
            x, y = self.newton(x, y)
            (_, low, reply_x), (_, high, reply_y) = self.below(y, x), self.above(x, y)
            best = max(best[0], low), min(best[1], high)
            if best[1] - best[0] <= mpf(10) ** -30 * (1 + abs(best[0])):
                break
            # The guess of what is active went round in circles: begin elsewhere.
            x, y = (x + reply_x) / 2, (y + reply_y) / 2
        return best

    def newton(self, x, y):
        """Towards the saddle point: guess what is active on both sides, and solve for the rest."""
        if self.f.kinks is not None or self.g.kinks is not None or self.f.entries or self.g.entries:
            return x, y
        for _ in range(12 + 12 * bool(self.f.losses or self.g.losses)):
            old = x, y
            try:
                x, y = self._one_step(x, y)
            except ZeroDivisionError:
                x, y = old
                break
            moved = norm(x - old[0]) + norm(y - old[1])
            if moved > FAR:
                x, y = old
                break
            if moved <= mpf(10) ** -70 * (1 + norm(x) + norm(y)):
                break
        return self.X.project(x), self.Y.project(y)

    def _one_step(self, x, y):
        sides = []
        for S, z, other in ((self.X, x, self.B.T.dot(y)), (self.Y, y, -self.B.dot(x))):
            fun = self.f if S is self.X else self.g
            slope, H = fun.smooth(z)
            z, fixed, rows = _activity(S, z, slope + other, H)
            sides.append((z, fixed, rows))
        (x, fixed_x, rows_x), (y, fixed_y, rows_y) = sides
        slope_x, Hx = self.f.smooth(x)
        slope_y, Hy = self.g.smooth(y)
        slope_x, slope_y = slope_x + self.B.T.dot(y), slope_y - self.B.dot(x)
        n, m = len(x), len(y)
        scale = max(abs(e) for part in (Hx, Hy, self.B) for e in part.ravel()) or ONE
        M = np.block([[Hx, self.B.T], [-self.B, Hy]]) + exactly(np.eye(n + m)) * (FAINT * scale)
        r = -np.concatenate([slope_x, slope_y])
        rows = [(np.concatenate([v, exactly(np.zeros(m))]), e, t, range(n)) for v, e, t in rows_x]
        rows += [(np.concatenate([exactly(np.zeros(n)), v]), e, t, range(n, n + m)) for v, e, t in rows_y]
        for _, _, turn, where in rows:
            for i in where:
                M[i, i] += turn
        free = [i for i in range(n + m) if not (fixed_x[i] if i < n else fixed_y[i - n])]
        k, q = len(free), len(rows)
        T = exactly(np.zeros((k + q, k + q)))
        T[:k, :k] = M[np.ix_(free, free)]
        right = np.concatenate([r[free], [e for _, e, _, _ in rows]]) if q else r[free]
        for j, (v, _, _, _) in enumerate(rows):
            T[k + j, :k] = v[free]
            T[:k, k + j] = v[free]
        found = solved(T, right)
        z = np.concatenate([x, y])
        z[free] = z[free] + found[:k]
        return z[:n], z[n:]


def _activity(S, z, slope, H):
    """The point with its active entries on their walls, which entries those are, and equations of the rest."""
    curvature = max((abs(e) for e in H.ravel()), default=ZERO) or ONE
    if S.kind == "box":
        moved = z - slope / curvature
        fixed = [bool(e <= a or e >= b) for e, a, b in zip(moved, S.lower, S.upper, strict=True)]
        walls = [min(max(e, a), b) for e, a, b in zip(moved, S.lower, S.upper, strict=True)]
        return np.array([w if k else e for e, w, k in zip(z, walls, fixed, strict=True)], object), fixed, []
    if S.kind == "simplex":
        shift = dot(z, slope)
        fixed = [bool(e <= 0 or e - (s - shift) / curvature <= 0) for e, s in zip(z, slope, strict=True)]
        fixed = [k and not (s - shift < 0) for k, s in zip(fixed, slope, strict=True)]
        if all(fixed):
            fixed[int(np.argmax(z))] = False
        z = np.array([ZERO if k else e for e, k in zip(z, fixed, strict=True)], object)
        return z, fixed, [(exactly(np.ones(len(z))), 1 - sum(z, ZERO), ZERO)]
    step = z - S.center
    moved = step - slope / curvature
    if norm(moved) <= S.radius or S.radius == 0:
        return z, [S.radius == 0] * len(z), []
    # Newton on |z - center| = R begins on the sphere.
    step = moved * (S.radius / norm(moved)) if norm(step) < S.radius / 2 else step
    z = S.center + step
    pull = max(-dot(slope, step) / (S.radius * S.radius), ZERO)
    return z, [False] * len(z), [(step, (S.radius * S.radius - dot(step, step)) / 2, pull)]
