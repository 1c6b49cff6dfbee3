"""Sampled gradients in a plan: reads the variances of f and g off a problem and puts them on the terms."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from saddleslide.arrays.base import Array
from saddleslide.errors import InputError
from saddleslide.functions.base import Variance, check_sample
from saddleslide.problem import SaddleProblem
from saddleslide.theory import Constant, Term
from saddleslide.theory.noise import ESTIMATE

_ADVICE = (
    "Put the unbounded block in a Ball or Box that is sure to hold the solution, or add a ridge "
    "(+ ss.functions.Quadratic(mu)) to a function without strong convexity, or pass exact functions."
)
NOISE_NAMES = {"f": ("sigma2_x", "batch_x"), "g": ("sigma2_y", "batch_y")}


def noise_constants(problem: SaddleProblem, start: tuple[Array, Array]) -> dict[str, Constant]:
    """sigma^2 and batch of every sampled gradient, with their origins, estimates near `start`; nothing for exact ones.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> q, box = ss.functions.Quadratic(1.0), ss.domains.Box(-1.0, 1.0, shape=2)
    >>> problem = ss.SaddleProblem(f=ss.functions.Noisy(q, 0.5), g=q, B=np.eye(2), X=box, Y=box)
    >>> {name: constant.value for name, constant in noise_constants(problem, problem.start()).items()}
    {'sigma2_x': 0.25, 'batch_x': 1}
    """
    found: dict[str, Constant] = {}
    blocks = (("f", problem.f, problem.X), ("g", problem.g, problem.Y))
    for (name, function, domain), point in zip(blocks, start, strict=True):
        if function.sampled:
            check_sample(function, domain, name, point)
            variance, (sigma2, batch) = function.variance(domain, point), NOISE_NAMES[name]
            found[sigma2] = Constant(variance.value, _said(variance, name))
            found[batch] = Constant(function.batch, f"samples per call of {name}'")
    return found


def _said(variance: Variance, name: str) -> str:
    """Where the variance came from; an estimate must never pass for a bound."""
    said = f"variance of {name}', {variance.origin}"
    return f"{said}; {ESTIMATE}" if variance.estimate else said


def variances(constants: Mapping[str, Constant]) -> tuple[float, float]:
    """sigma_x^2 and sigma_y^2 in the Euclidean norm, 0 for exact gradients.

    Examples
    --------
    >>> variances({"sigma2_y": Constant(4.0, "declared")})
    (0.0, 4.0)
    """
    x, y = (constants[name].value if name in constants else 0.0 for name in ("sigma2_x", "sigma2_y"))
    return x, y


def with_variances(terms: Sequence[Term], constants: Mapping[str, Constant]) -> list[Term]:
    """Terms with the variances of f and g in the dual norms of their levels: divided by the weight of the block.

    Examples
    --------
    >>> terms = [Term("f", weights=(4.0, 1.0)), Term("B", M=1.0, weights=(4.0, 1.0))]
    >>> [term.variance for term in with_variances(terms, {"sigma2_x": Constant(2.0, "declared")})]
    [0.5, 0.0]
    """
    found = dict(zip("fg", variances(constants), strict=True))
    return [
        replace(term, variance=found[term.name] / term.weights["fg".index(term.name)]) if found.get(term.name) else term
        for term in terms
    ]


def refuse_mixed(regime: str) -> None:
    """The paper has no stochastic statement for one modulus of curvature."""
    if regime == "mixed":
        raise InputError(
            "plan: regime 'mixed' has no statement for sampled gradients; expected bounded domains "
            f"(regime='degenerate') or strongly convex f and g (regime='restarts'). {_ADVICE}"
        )


def refuse_unbounded(problem: SaddleProblem) -> None:
    """The uniform theorem takes a sup over the domains.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> q, box = ss.functions.Quadratic(1.0), ss.domains.Box(-1.0, 1.0, shape=2)
    >>> refuse_unbounded(ss.SaddleProblem(f=ss.functions.Noisy(q, 0.5), g=q, B=np.eye(2), X=box, Y=box))
    """
    endless = [
        f"{name} is {domain}"
        for name, domain in (("X", problem.X), ("Y", problem.Y))
        if not math.isfinite(domain.diameter())
    ]
    if endless:
        raise InputError(
            f"plan: a gradient is sampled and the domain is unbounded: {' and '.join(endless)}; regime 'degenerate' "
            f"expects bounded ones (Theorem VI_sliding_stochastic_uniform). {_ADVICE}"
        )


def check_anchor_batch(anchor_batch: int | None, anchors: bool, constants: Mapping[str, Constant] | None) -> None:
    """An anchor_batch that no anchor would use is refused: before planning, and for the constants of what was planned.

    Examples
    --------
    >>> check_anchor_batch(None, anchors=False, constants={})
    """
    if anchor_batch is None or (anchors and (constants is None or "b" in constants)):
        return
    raise InputError(
        f"plan: anchor_batch is {anchor_batch}, and the plan has no sampled anchors; expected anchors=True, "
        "regime='restarts' and sampled gradients with it. Leave anchor_batch out otherwise."
    )
