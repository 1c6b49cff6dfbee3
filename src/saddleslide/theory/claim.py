"""What a run can prove of its point, as words of a plan."""

from __future__ import annotations

from typing import NamedTuple

# Kinds of claims, strongest first: see docs/certificates.md.
GLOBAL, MADE_GLOBAL, AS_DECLARED = "global", "made global", "as declared"
WITHIN, NONE = "within a radius", "none"


class Claim(NamedTuple):
    """The strongest claim that is possible, why, and what the caller could change for a stronger one.

    Parameters
    ----------
    kind : str
        "global", "made global" (by bounds that every solution obeys), "as declared", "within a radius" or "none".
    why : str
        What it rests on, or what is missing.
    advice : str
        What would make it stronger; empty where nothing would.

    Examples
    --------
    >>> Claim("within a radius", "X has no end", "pass X=Box(0, big)").sentence
    'Possible here: a claim that is within a radius (X has no end); pass X=Box(0, big).'
    """

    kind: str
    why: str = ""
    advice: str = ""

    @property
    def sentence(self) -> str:
        """All of it in one sentence."""
        what = "no claim" if self.kind == NONE else f"a claim that is {self.kind}"
        return f"Possible here: {what} ({self.why}){'; ' * bool(self.advice)}{self.advice}."

    def without_radius(self) -> Claim:
        """The same where no claim within a radius is asked for."""
        return self._replace(kind=NONE) if self.kind == WITHIN else self
