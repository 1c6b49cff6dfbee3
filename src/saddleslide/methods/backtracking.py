"""The search of universal methods: a curvature that is doubled until a step with it passes its test."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from saddleslide.oracles.calls import MOST_SHORTENED, SHORTER

if TYPE_CHECKING:
    from saddleslide.oracles.oracles import Oracles

Found = TypeVar("Found")
# Doublings after which an oracle is taken to be broken; rounding can not need more.
_MOST_DOUBLINGS = 200


def backtrack(oracles: Oracles, L: float, trial: Callable[[float], tuple[bool, Found]]) -> tuple[float, Found]:
    """The first of L, 2L, 4L, ... whose trial passes, and what that found."""
    shortened = 0
    for _ in range(_MOST_DOUBLINGS):
        tried = oracles.tried(partial(trial, L)) if shortened < MOST_SHORTENED else trial(L)
        if tried is None:
            # An oracle overflows there: a larger L keeps nearer to where it is finite.
            shortened, L = shortened + 1, SHORTER * L
            continue
        passed, found = tried
        if passed:
            break
        L *= 2.0
    return L, found
