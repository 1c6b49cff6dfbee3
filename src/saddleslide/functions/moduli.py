"""Which modulus of strong convexity a bound may rest on: what is certain, and what is only declared."""

from __future__ import annotations

from saddleslide.domains import Domain
from saddleslide.functions.base import Function


def bounding_modulus(rest: Function, simple: Function, domain: Domain) -> float:
    """Modulus of `rest` that a bound on the minimum of rest + simple may use.

    What is certain; and what is only declared where there would be no bound without it: see `rests_on_declaration`.

    Examples
    --------
    >>> import saddleslide as ss
    >>> f = ss.functions.Custom(lambda x: x, lambda x: 0.5 * x @ x, strong_convexity=1.0)
    >>> zero, box = ss.functions.Zero(), ss.domains.Box(-1.0, 1.0, shape=2)
    >>> bounding_modulus(f, zero, box), bounding_modulus(f, zero, ss.domains.FullSpace(2))
    (0.0, 1.0)
    """
    certain = rest.certain_convexity(domain)
    if certain > 0.0 or domain.bounded or simple.certain_convexity(domain) > 0.0:
        return certain
    return rest.strong_convexity(domain)


def rests_on_declaration(f: Function, domain: Domain) -> bool:
    """Whether the minimum of f over the domain can only be bounded with a modulus that is declared and not certain.

    Examples
    --------
    >>> import saddleslide as ss
    >>> f = ss.functions.Custom(lambda x: x, lambda x: 0.5 * x @ x, strong_convexity=1.0)
    >>> rests_on_declaration(f, ss.domains.FullSpace(2)), rests_on_declaration(f, ss.domains.Ball(1.0, shape=2))
    (True, False)
    """
    return not domain.bounded and f.certain_convexity(domain) == 0.0 and f.strong_convexity(domain) > 0.0
