"""Curvature through B: mu_xy and mu_yx of Assumption properties_of_B, and the range conditions they may rest on."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from saddleslide.arrays.base import Array, length_of
from saddleslide.domains.base import Domain
from saddleslide.domains.entrywise import FullSpace
from saddleslide.errors import InputError
from saddleslide.facts.metric_constants import Norms, in_coordinates
from saddleslide.functions.base import Function
from saddleslide.functions.trust import gradient_aside, runs_own_code, terms_of
from saddleslide.operators.base import Mirrored, Operator, is_own_code
from saddleslide.operators.spectrum import FACTORISABLE, as_dense, lanczos_smallest
from saddleslide.problem import SaddleProblem
from saddleslide.theory.hypotheses import COMPUTED, DECLARED, Constant
from saddleslide.watcher import made

if TYPE_CHECKING:
    from saddleslide.methods.schedule.request import Request
    from saddleslide.theory.restarts import Curvature

# A gradient is in a range where no more of it is left than this part.
_LEFT = 1e-10


@dataclass(frozen=True)
class CouplingModuli:
    """mu_xy and mu_yx, 0 where the anchor is refused, with their origins; how range conditions in use are known."""

    values: tuple[float, float] = (0.0, 0.0)
    origins: tuple[str, str] = ("", "")
    ranges: Mapping[str, str] = field(default_factory=dict)

    def constants(self, used: Curvature) -> dict[str, Constant]:
        """What of them is used, for the plan."""
        found = {}
        for name, value, origin, final in zip(
            ("mu_xy", "mu_yx"), self.values, self.origins, (used.mu_xy, used.mu_yx), strict=True
        ):
            if origin:
                lowered = (
                    "" if final == value else f", lowered from {value:.6g} (Assumption properties_of_B, Theorem 4.4)"
                )
                found[name] = Constant(final, origin + lowered)
        return found


def inactive_blocks(problem: SaddleProblem, request: Request) -> tuple[bool, bool]:
    """Whether the normal vectors of X and of Y are known to vanish at the solution."""
    X, Y = problem.X, problem.Y
    return isinstance(X, FullSpace) or "x" in request.interior, isinstance(Y, FullSpace) or "y" in request.interior


def free_anchors(problem: SaddleProblem, request: Request, simple: Collection[str] = ()) -> tuple[bool, bool]:
    """Whether f' may be the anchor of y and g' that of x.

    Theorem 4.4 wants xi = 0 (the normal vector of X) for beta_y and zeta = 0 (that of Y) for beta_x, and a smooth f or
    g as a whole: the slope of a simple term jumps, so that nothing bounds what it differs by at the solution.
    """
    x, y = inactive_blocks(problem, request)
    return x and "f" not in simple, y and "g" not in simple


def find_moduli(
    problem: SaddleProblem, request: Request, noisy: bool, L_xy: float, norms: Norms = (None, None),
    simple: Collection[str] = (),
) -> CouplingModuli:  # fmt: skip
    """Both moduli, declared or found, in the norms of the blocks; those declared and L_xy are Euclidean."""
    free_x, free_y = free_anchors(problem, request, simple)
    if not any(inactive_blocks(problem, request)):
        raise InputError(
            f"plan: anchors can not be used: X is {problem.X} and Y is {problem.Y}, whose constraints can be active. "
            "Theorem 4.4 expects a zero normal vector at the solution. Declare interior=('x',), ('y',) or both if you "
            "know that, or use anchors=False, which is always allowed."
        )
    if not (free_x or free_y):
        raise InputError(
            f"plan: anchors take f' of an f and g' of a g without a simple term, and simple is {tuple(simple)}; "
            "expected one of them without, or anchors=False, which is always allowed."
        )
    if noisy:
        # The stochastic statement takes mu_xy = mu_yx = 0: anchors, but delta = mu.
        return CouplingModuli()
    coupling, known, ranges = problem.coupling, request.known_constants, dict[str, str]()
    sides = (
        ("x", "mu_xy", problem.f, problem.X, coupling, free_y),
        ("y", "mu_yx", problem.g, problem.Y, Mirrored(coupling), free_x),
    )
    # Every singular value of P_y^-1/2 B P_x^-1/2 is at least that of B over the root of the largest eigenvalues.
    white = None if norms == (None, None) else in_coordinates(norms, coupling)
    scale = math.prod(1.0 if norm is None else norm.largest**-0.5 for norm in norms)
    values, origins = [], []
    for block, name, function, domain, operator, free in sides:
        asked = block in request.range_conditions
        value, origin, how = (
            _modulus(block, function, domain, operator, asked, known.get(name)) if free else (0.0, "", "")
        )
        if value > L_xy:
            raise InputError(f"plan: constants[{name!r}] is {value:g} and L_xy is {L_xy:g}; expected {name} <= L_xy.")
        if white is not None and origin not in ("", DECLARED):
            value = _smallest(white if block == "x" else Mirrored(white), positive=bool(how))[0]
        elif norms != (None, None):
            value *= scale
        values.append(value)
        origins.append(origin)
        ranges |= {block: how} if how and value > 0.0 else {}
    return CouplingModuli((values[0], values[1]), (origins[0], origins[1]), ranges)


def _modulus(
    block: str, function: Function, domain: Domain, coupling: Operator, asked: bool, known: float | None
) -> tuple[float, str, str]:
    """The modulus on a block, its origin, and how the range condition is known that it rests on, if any."""
    kernel, name = ("ker B", "X") if block == "x" else ("ker B^T", "Y")
    columns, rows = math.prod(coupling.x_shape), math.prod(coupling.y_shape)
    if asked and not isinstance(domain, FullSpace):
        # The range condition is for domain + kernel = domain; without a kernel nobody needs it.
        if _smallest(coupling, positive=False)[0] == 0.0 and known is None:
            raise InputError(
                f"plan: range_conditions has {block!r}, which needs {name} + {kernel} = {name}; {name} is {domain}, "
                f"expected the whole space, or a B without that kernel. Leave {block!r} out."
            )
        asked = False
    holds = asked or (known is None and range_condition(function, domain, Mirrored(coupling)))
    how = (DECLARED if asked else COMPUTED) if holds else ""
    if known is not None:
        if columns > rows and not holds and known > 0.0:
            holds = range_condition(function, domain, Mirrored(coupling))
            if not holds:
                raise InputError(
                    f"plan: constants declares curvature {known:g} of {block} through B, which has a kernel there; "
                    f"expected range_conditions=({block!r},) with it, or 0."
                )
            how = COMPUTED
        return known, DECLARED, how
    value, method = _smallest(coupling, positive=holds)
    kind = "smallest positive singular value" if holds else "smallest singular value"
    return value, f"{kind} of B, lower bound: {method}", how


def _smallest(coupling: Operator, positive: bool) -> tuple[float, str]:
    """A lower bound on a smallest singular value: as the operator knows it, else by Lanczos steps."""
    found = coupling.smallest_singular_value(positive=positive)
    if found.lower == 0.0 and math.isnan(found.estimate):
        found = lanczos_smallest(coupling, positive)
    return found.lower, found.method


def range_condition(function: Function, domain: Domain, coupling: Operator) -> bool:
    """R_x or R_y of Assumption properties_of_B, where it can be checked.

    Every gradient lies in the range of `coupling` (B^T for f, B for g): that is certain of an onto map, and of terms
    that are constant, quadratic or losses of a linear map, whose gradients lie in a space with a basis at hand.
    """
    # The assumption also wants X + ker B = X, which a bounded set breaks.
    if not isinstance(domain, FullSpace):
        return False
    linear = function.linear
    if linear and length_of(_gradient(function, np.zeros(domain.shape))) == 0.0:
        return True
    if min(coupling.shape) > FACTORISABLE:
        return False
    spanned = None if runs_own_code(function) and not linear else _gradient_space(function, domain)
    matrix = as_dense(coupling)
    values, basis = _range_of(matrix)
    if values == matrix.shape[0]:
        return True
    if spanned is None:
        return False
    left = spanned - basis @ (basis.T @ spanned)
    sizes = np.linalg.norm(spanned, axis=0)
    return bool(np.all(np.linalg.norm(left, axis=0) <= _LEFT * sizes))


def _gradient(function: Function, point: Array) -> Array:
    """A gradient aside; it is a call where it runs the caller's code or takes products with a map of theirs."""
    for operator, part in () if runs_own_code(function) else function.operators:
        if operator.entry_count is None or is_own_code(operator):
            return made(operator, lambda: gradient_aside(function, point), 1.0 / part)
    return gradient_aside(function, point)


def _range_of(matrix: Array) -> tuple[int, Array]:
    """The rank of a matrix and an orthonormal basis of its range, up to rounding."""
    left, sizes, _ = np.linalg.svd(matrix, full_matrices=False)
    rank = int(np.sum(sizes > _LEFT * max(float(sizes.max(initial=0.0)), np.finfo(float).tiny)))
    return rank, left[:, :rank]


def _gradient_space(function: Function, domain: Domain) -> Array | None:
    """Columns that span a space with every gradient in it; None where none is known."""
    columns = []
    for _, term in terms_of(function):
        size = math.prod(domain.shape)
        if term.linear:
            columns.append(_gradient(term, np.zeros(domain.shape)).reshape(size, 1))
        elif term.quadratic and size <= FACTORISABLE:
            at_zero = _gradient(term, np.zeros(domain.shape)).ravel()
            units = np.eye(size).reshape(-1, *domain.shape)
            rows = [_gradient(term, unit).ravel() - at_zero for unit in units]
            columns += [np.array(rows).T, at_zero[:, None]]
        elif term.linear_image is not None and term.strong_convexity(domain) == 0.0:
            # Of loss(Ax) + ridge/2 |x|^2 the ridge is 0 where the modulus is, unless A adds to it.
            if min(term.linear_image.shape) > FACTORISABLE:
                return None
            columns.append(as_dense(term.linear_image).T)
        else:
            return None
    return np.hstack(columns) if columns else np.zeros((math.prod(domain.shape), 1))
