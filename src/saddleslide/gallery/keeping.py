"""Results of a gallery problem come back as the kind of arrays that it was given."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from typing import ParamSpec

from saddleslide.arrays.kinds import NUMPY, origin_of
from saddleslide.problem import SaddleProblem

P = ParamSpec("P")


def keeping_kind(make: Callable[P, SaddleProblem]) -> Callable[P, SaddleProblem]:
    """The maker of a problem, with the kind of its arguments' arrays kept for the results."""

    @wraps(make)
    def made(*args: P.args, **kwargs: P.kwargs) -> SaddleProblem:
        kind = origin_of(*args, *kwargs.values())
        problem = make(*args, **kwargs)
        return problem if kind == NUMPY else replace(problem, B=problem.coupling, arrays=kind)

    return made
