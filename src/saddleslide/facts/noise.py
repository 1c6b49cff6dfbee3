"""Sampled gradients in a plan: reads the variances of f and g off a problem and puts them on the terms."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NoReturn

import numpy as np

from saddleslide.arrays.base import Array
from saddleslide.domains.base import Domain
from saddleslide.errors import InputError
from saddleslide.functions.base import Function
from saddleslide.functions.trust import run_aside
from saddleslide.problem import SaddleProblem
from saddleslide.theory.hypotheses import ESTIMATE, Constant
from saddleslide.theory.levels import Term

_ADVICE = (
    "Put the unbounded block in a Ball or Box that is sure to hold the solution, or add a ridge "
    "(+ ss.functions.Quadratic(mu)) to a function without strong convexity, or pass exact functions."
)


def noise_constants(problem: SaddleProblem, start: tuple[Array, Array]) -> dict[str, Constant]:
    """sigma^2 and batch of every sampled gradient, with their origins, estimates near `start`; none of exact ones."""
    found: dict[str, Constant] = {}
    blocks = (("f", problem.f, problem.X), ("g", problem.g, problem.Y))
    for (name, function, domain), point in zip(blocks, start, strict=True):
        if function.sampled:
            check_sample(function, domain, name, point)
            variance, side = function.variance(domain, point), "x" if name == "f" else "y"
            # An estimate must never pass for a bound.
            said = f"variance of {name}', {variance.origin}" + (f"; {ESTIMATE}" if variance.estimate else "")
            found[f"sigma2_{side}"] = Constant(variance.value, said)
            found[f"batch_{side}"] = Constant(function.batch, f"samples per call of {name}'")
    return found


def check_sample(function: Function, domain: Domain, name: str, start: Array | None = None) -> None:
    """One draw at the start, thrown away: wrong shapes and numbers show before a run begins."""
    x = domain.project(np.zeros(domain.shape)) if start is None else start
    drawn: Any = run_aside(function, lambda: function.sample(x, np.random.default_rng(0)))
    if np.shape(drawn) != domain.shape or not np.isfinite(drawn).all():
        raise InputError(
            f"{name}: its sampled gradient has shape {np.shape(drawn)} or numbers that are not finite; expected finite "
            f"numbers of shape {domain.shape}."
        )


def variances(constants: Mapping[str, Constant]) -> tuple[float, float]:
    """sigma_x^2 and sigma_y^2 in the Euclidean norm, 0 for exact gradients."""
    x, y = (constants[name].value if name in constants else 0.0 for name in ("sigma2_x", "sigma2_y"))
    return x, y


def with_variances(terms: Sequence[Term], constants: Mapping[str, Constant]) -> list[Term]:
    """Terms with the variances of f and g in the dual norms of their levels: divided by the weight of the block."""
    found = dict(zip("fg", variances(constants), strict=True))
    return [
        replace(term, variance=found[term.name] / term.weights["fg".index(term.name)]) if found.get(term.name) else term
        for term in terms
    ]


def refuse_unbounded(problem: SaddleProblem) -> None:
    """The uniform theorem takes a sup over the domains."""
    sets = (("X", problem.X), ("Y", problem.Y))
    endless = [f"{name} is {domain}" for name, domain in sets if not math.isfinite(domain.diameter())]
    if endless:
        raise InputError(
            f"plan: a gradient is sampled and the domain is unbounded: {' and '.join(endless)}; regime 'degenerate' "
            f"expects bounded ones (Theorem VI_sliding_stochastic_uniform). {_ADVICE}"
        )


def refuse_unbounded_block(block: str, domain: Domain) -> NoReturn:
    """The mixed regime takes a sup over the block that it regularises; only exact gradients have a way around it."""
    raise InputError(
        f"plan: with sampled gradients and no curvature of {block} regime 'mixed' is left, and {block.upper()} is "
        f"{domain}: Omega of the block without curvature is inf; expected a bounded set. {_ADVICE}"
    )


def check_anchor_batch(anchor_batch: int | None, anchors: bool, constants: Mapping[str, Constant] | None) -> None:
    """An anchor_batch that no anchor would use is refused: before planning, and for the constants of a plan."""
    if anchor_batch is None or (anchors and (constants is None or "b" in constants)):
        return
    raise InputError(
        f"plan: anchor_batch is {anchor_batch}, and the plan has no sampled anchors; expected anchors=True, "
        "regime='restarts' and sampled gradients with it. Leave anchor_batch out otherwise."
    )
