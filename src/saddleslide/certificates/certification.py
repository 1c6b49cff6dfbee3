"""`certify`: what is proved of a point, whoever found it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from saddleslide.arrays.arguments import as_mapping, as_whole
from saddleslide.arrays.base import Array, as_number
from saddleslide.certificates.books import count_aside
from saddleslide.certificates.candidate import Candidate, Linearisation, Split
from saddleslide.certificates.certificate import certify_counted, feasible, sides_of
from saddleslide.certificates.guards import PairGuard, check_own_steps
from saddleslide.certificates.judge import Judge
from saddleslide.certificates.verdict import Certificate, Status
from saddleslide.errors import InputError, raise_all
from saddleslide.functions.entrywise import Zero
from saddleslide.functions.minimum import LowerModel
from saddleslide.oracles.calls import RunEnded
from saddleslide.oracles.oracles import Oracles
from saddleslide.problem import SaddleProblem
from saddleslide.theory.plan import RADIUS, Target


def certify(
    problem: SaddleProblem,
    x: Any,
    y: Any,
    models: Mapping[str, LowerModel] | None = None,
    accuracy: float = 0.0,
    max_gradients: int = 1000,
    radius: float = RADIUS,
) -> Certificate:
    """Bounds on the saddle value at a point from any solver, and so on its gap.

    From above by max over Y of F(x, .), from below by min over X of F(., y). Each side is tried by a certified inner
    solve and by the lower model of f or g, where one is given; the tighter bound counts. Where nothing bounds a set,
    bounds that every solution obeys are tried, and the gap within a radius (docs/certificates.md).

    Parameters
    ----------
    problem : SaddleProblem
        The problem.
    x, y : array
        Feasible points.
    models : mapping, optional
        Lower models of "f" and "g", as `run` carries them along (`saddleslide.methods.sliding.carried_models`).
    accuracy : float, optional
        Error at which an iterative inner solve may stop.
    max_gradients : int, optional
        Most gradients of f, and of g, that the inner solves may take; 0 uses the models alone where there are any.
    radius : float, optional
        How far a gap within a radius reaches where no other is known, as in `ss.solve`; 0 asks for none.

    Returns
    -------
    Certificate
        Rounding and the errors of the inner solves are included in the bounds. `kind` is "exact" (error bars at
        rounding level), "searched" (an inner solve stopped earlier), "model", or "none" with a `reason`. `calls` are
        all calls that were made, those that look whether your own code is convex included: five of f and of g.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> simplex, zero = ss.domains.Simplex(2), ss.functions.Zero()
    >>> game = ss.SaddleProblem(f=zero, g=zero, B=np.array([[1.0, -1.0], [-1.0, 1.0]]), X=simplex, Y=simplex)
    >>> certificate = ss.certify(game, [0.5, 0.5], [1.0, 0.0])
    >>> round(certificate.gap, 12), certificate.kind
    (1.0, 'exact')
    """
    if not isinstance(problem, SaddleProblem):
        raise InputError(f"certificate: problem is {type(problem).__name__}; expected a SaddleProblem.")
    models = as_mapping(models, "certificate: models", "{'f': model}")
    wrong = [name for name, model in models.items() if not isinstance(model, LowerModel)]
    expected = "is no lower model; expected those that a run carries."
    raise_all("certificate", [f"models[{name!r}] {expected}" for name in wrong])
    accuracy = as_number(accuracy, "certificate: accuracy", 0.0)
    max_gradients = as_whole(max_gradients, "certificate: max_gradients", 0)
    radius = as_number(radius, "certificate: radius", 0.0)
    point, oracles = feasible(problem, x, y), Oracles(problem)
    with count_aside(problem) as books:
        found = certify_counted(oracles, *point, models, accuracy, max_gradients)
        # Reasons that a guard has given are no lack of bounds.
        is_endless = not (problem.X.bounded and problem.Y.bounded)
        if radius > 0.0 and is_endless and not math.isfinite(found.gap) and not math.isnan(found.error):
            near = certify_within(problem, point, Target(radius=radius))
            oracles.calls = oracles.calls + near.calls
            has_none = near.reason.startswith((Status.INFEASIBLE.value, Status.UNBOUNDED.value))
            found = near if has_none or near.known_gap < math.inf else found
        try:
            check_own_steps(oracles)
            for side, around in zip(sides_of(problem), point, strict=True):
                # A bound from gradients believes that own functions are convex.
                if math.isfinite(found.known_gap):
                    PairGuard(side.name, side.function, side.domain).probe(oracles, around, math.inf)
        except RunEnded as ended:
            found = Certificate(reason=ended.reason) if ended.reason else found
    return replace(found, calls=oracles.calls + books.calls)


def certify_within(
    problem: SaddleProblem, point: tuple[Array, Array], target: Target, radii: tuple[float, ...] | None = None
) -> Certificate:
    """Bounds at a point by what every solution obeys, and the gap within the given radii or those of the target."""
    (x, y), split = point, Split(*problem.f_parts, *problem.g_parts)
    judge = Judge(problem, split, target, problem.place(problem.start()))
    judge.nearby.give(radii)
    # No other point will come: rays are tried here.
    judge.rays.offered = 1
    value, gradient = judge.oracles.made(
        "f", float(not isinstance(split.f_rest, Zero)), lambda: split.f_rest.value_and_gradient(x)
    )
    if math.isfinite(value) and np.isfinite(gradient).all():
        try:
            judge.judge_exactly(Candidate(x, y, value, linearisation=Linearisation(x, value, gradient)))
        except RunEnded as ended:
            # A ray proves that there is no solution, or bounds contradict each other.
            return Certificate(reason=f"{Status[ended.status].value} {ended.reason}", calls=judge.oracles.calls.copy())
    return judge.certificate()
