"""What was called, and what ends a run: plain values, without a problem in sight."""

from __future__ import annotations

from dataclasses import dataclass

# A trial step at which an oracle overflows is shortened by this factor, so many times at most.
SHORTER, MOST_SHORTENED = 16.0, 60
# Names of oracles where the roles of x and y are exchanged.
ACROSS = {"f": "g", "g": "f", "B": "B"}


def as_count(count: float) -> float:
    """Whole numbers are integers, so that counts print as counts."""
    return int(count) if type(count) is not int and count == int(count) else count


@dataclass
class Calls:
    """Calls of each oracle: gradients of f, gradients of g, products with B or B^T.

    Where f = loss(Ax), a product with A and one with A^T are half a gradient each. A value alone is half a gradient,
    of the caller's own code a whole call.

    Examples
    --------
    >>> Calls(f=2, g=3, B=8) + Calls(f=1, g=0, B=2)
    Calls(f=3, g=3, B=10)
    """

    f: float = 0
    g: float = 0
    B: int = 0

    def __post_init__(self) -> None:
        if not (type(self.f) is type(self.g) is int):
            self.f, self.g = as_count(self.f), as_count(self.g)

    def __add__(self, other: Calls) -> Calls:
        return Calls(self.f + other.f, self.g + other.g, self.B + other.B)

    def __sub__(self, other: Calls) -> Calls:
        return Calls(self.f - other.f, self.g - other.g, self.B - other.B)

    @property
    def by_oracle(self) -> dict[str, float]:
        """The same as a dictionary, as plans have it."""
        return {"f": self.f, "g": self.g, "B": self.B}

    def mirrored(self) -> Calls:
        """The same with the roles of f and g exchanged."""
        return Calls(self.g, self.f, self.B)

    def copy(self) -> Calls:
        """A copy that further calls do not change."""
        return Calls(self.f, self.g, self.B)


@dataclass
class Seconds:
    """Time spent inside each oracle."""

    f: float = 0.0
    g: float = 0.0
    B: float = 0.0


class RunEnded(Exception):
    """The run can not go on: a limit, or oracles that contradict each other; `status` is the name of a status."""

    def __init__(self, status: str, reason: str = "") -> None:
        super().__init__(reason or status)
        self.status, self.reason = status, reason


class NonFiniteAnswer(RunEnded):
    """An oracle answered with NaN or infinities at a finite point; a trial step that is ours is shortened then."""

    def __init__(self, reason: str) -> None:
        super().__init__("NON_FINITE", reason)
