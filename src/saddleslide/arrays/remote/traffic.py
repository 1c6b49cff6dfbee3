"""How many arrays went between the host and another library's side; numbers that steer a method are not counted."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Traffic:
    """Arrays copied to the host and from it.

    Examples
    --------
    >>> Traffic(down=3, up=1) - Traffic(down=1, up=1)
    Traffic(down=2, up=0)
    """

    down: int = 0
    up: int = 0

    def __sub__(self, other: Traffic) -> Traffic:
        return Traffic(self.down - other.down, self.up - other.up)

    @property
    def total(self) -> int:
        """Both ways."""
        return self.down + self.up


# State of the process.
COUNTS = Traffic()


def traffic() -> Traffic:
    """What has been copied so far in this process.

    Examples
    --------
    >>> before = traffic()
    >>> (traffic() - before).total
    0
    """
    return Traffic(COUNTS.down, COUNTS.up)
