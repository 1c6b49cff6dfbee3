"""A gap check that shares no code with the package: plain values, own projections, own inner maximisation.

It proves violations and nothing else: every feasible y' gives F(x, y') <= upper and every feasible x' gives
F(x', y) >= lower, so a witness beyond a reported bound refutes it, however it was found. Good witnesses come from
accelerated projected gradients with backtracking, SciPy's L-BFGS-B on boxes, and the planted point.
"""

import math

import numpy as np
import scipy.optimize

# Own evaluations carry rounding of their own, relative to the sizes of the terms.
ROUNDING = 1e-13
SLACK = 1e-9


def minimise(piece, tilt, side, starts, steps=40):
    """Smallest value found of f(x) + <tilt, x> over the set, and its point: an upper bound of the true minimum."""

    def value(x):
        return piece.value(x) + float(np.sum(tilt * x))

    def slope(x):
        return piece.gradient(x) + tilt

    best, point = math.inf, None
    for start in starts:
        for candidate in (side.project(start), _descend(value, slope, side, side.project(start), steps)):
            found = value(candidate)
            if found < best:
                best, point = found, candidate
    if side.bounds is not None:
        kinked = "power 0.0" in piece.name
        finishers = (_quasi_newton, _entry_by_entry) if kinked else (_quasi_newton,)
        for finish in finishers:
            candidate = finish(value, slope, side, point)
            found = value(candidate)
            if found < best:
                best, point = found, candidate
    return best, point


def _descend(value, slope, side, x, steps):
    """FISTA with backtracking and restarts, on values alone."""
    L, v, previous, t = 1.0, x, x, 1.0
    best, point = value(x), x
    for _ in range(steps):
        gradient, at_v = slope(v), value(v)
        for _ in range(60):
            x = side.project(v - gradient / L)
            step = x - v
            square = float(np.sum(step * step))
            here = value(x)
            if here <= at_v + float(np.sum(gradient * step)) + 0.5 * L * square + 1e-15 * abs(at_v):
                break
            L *= 3.0
        if here < best:
            best, point = here, x
        if square <= 1e-30 * float(np.sum(x * x)):
            break
        if float(np.sum((v - x) * (x - previous))) > 0.0:
            t, previous = 1.0, x
        t_next = 0.5 * (1.0 + math.sqrt(1.0 + 4.0 * t * t))
        v = side.project(x + (t - 1.0) / t_next * (x - previous))
        previous, t, L = x, t_next, L / 1.3
    return point


def _quasi_newton(value, slope, side, x):
    lower, upper = (np.broadcast_to(b, x.shape).ravel() for b in side.bounds)
    found = scipy.optimize.minimize(
        lambda flat: value(flat.reshape(x.shape)),
        x.ravel(),
        jac=lambda flat: slope(flat.reshape(x.shape)).ravel(),
        method="L-BFGS-B",
        bounds=list(zip(lower, upper, strict=True)),
        options={"maxiter": 500, "ftol": 1e-16, "gtol": 1e-14},
    )
    return side.project(found.x.reshape(x.shape))


def _entry_by_entry(value, slope, side, x):
    """Kinks stop gradient methods: move single entries to 0 or a bound where that helps."""
    x = x.copy()
    best = value(x)
    lower, upper = (np.broadcast_to(b, x.shape) for b in side.bounds)
    for index in np.ndindex(x.shape):
        for target in (0.0, lower[index], upper[index]):
            if not math.isfinite(target) or not lower[index] <= target <= upper[index]:
                continue
            kept, x[index] = x[index], target
            found = value(x)
            if found < best:
                best = found
            else:
                x[index] = kept
    return x


class Truth:
    """Witnesses against reported bounds at points (x, y) of a planted problem."""

    def __init__(self, planted, steps=40):
        self.planted, self.steps = planted, steps
        p = planted.problem
        self.x_starts = [np.zeros(p.X.shape)] + ([planted.saddle[0]] if planted.saddle else [])
        self.y_starts = [np.zeros(p.Y.shape)] + ([planted.saddle[1]] if planted.saddle else [])

    def best_y(self, x):
        """A lower bound of max_y F(x, y), near it."""
        p = self.planted
        Bx = (p.matrix @ x.ravel()).reshape(p.problem.Y.shape)
        least, y = minimise(p.g, -Bx, p.Y, self.y_starts, self.steps)
        return p.f.value(x) - least, y

    def best_x(self, y):
        """An upper bound of min_x F(x, y), near it."""
        p = self.planted
        BTy = (p.matrix.T @ y.ravel()).reshape(p.problem.X.shape)
        least, x = minimise(p.f, BTy, p.X, self.x_starts, self.steps)
        return least - p.g.value(y), x

    def gap(self, x, y):
        """A lower bound of the true gap at (x, y), near it."""
        return self.best_y(x)[0] - self.best_x(y)[0]

    def size(self, x, y):
        """Sizes of the terms, which rounding is relative to."""
        p = self.planted
        return p.f.size(x) + p.g.size(y) + float(np.abs(y.ravel()) @ np.abs(p.matrix) @ np.abs(x.ravel()))

    def complaints(self, x, y, lower, upper):
        """What is wrong with reported bounds at (x, y); empty when nothing is."""
        p = self.planted
        (above, y_best), (below, x_best) = self.best_y(x), self.best_x(y)
        slack = SLACK * (upper - lower) + ROUNDING * (self.size(x, y_best) + self.size(x_best, y) + self.size(x, y))
        found = []
        for name, point, side in (("x", x, p.X), ("y", y, p.Y)):
            outside = float(np.max(np.abs(side.project(point) - point), initial=0.0))
            if not outside <= 1e-12 * (1.0 + float(np.max(np.abs(point), initial=0.0))):
                found.append(f"{name} is outside its set by {outside:.2e}")
        if above > upper + slack:
            found.append(f"F(x, y') = {above:.17g} exceeds upper {upper:.17g} by {above - upper:.2e}")
        if below < lower - slack:
            found.append(f"F(x', y) = {below:.17g} is below lower {lower:.17g} by {lower - below:.2e}")
        if above - below > (upper - lower) + slack:
            found.append(f"true gap {above - below:.4e} exceeds reported {upper - lower:.4e}")
        if p.value is not None:
            value_slack = slack + ROUNDING * self.size(*p.saddle)
            if p.value > upper + value_slack:
                found.append(f"saddle value {p.value:.17g} exceeds upper {upper:.17g} by {p.value - upper:.2e}")
            if p.value < lower - value_slack:
                found.append(f"saddle value {p.value:.17g} is below lower {lower:.17g} by {lower - p.value:.2e}")
        return found
