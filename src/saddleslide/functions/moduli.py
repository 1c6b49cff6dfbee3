"""Which modulus of strong convexity a bound may rest on: what is certain, and what is only declared."""

from __future__ import annotations

from collections.abc import Iterator

from saddleslide.domains import Domain
from saddleslide.functions.base import Function, certain_modulus, is_own_class


def bounding_modulus(rest: Function, simple: Function, domain: Domain) -> float:
    """Modulus of `rest` that a bound on the minimum of rest + simple may use.

    What is certain; and what is only declared where there would be no bound without it: see `rests_on_declaration`.
    """
    certain = certain_modulus(rest, domain)
    if certain > 0.0 or domain.bounded or certain_modulus(simple, domain) > 0.0:
        return certain
    return rest.strong_convexity(domain)


def rests_on_declaration(f: Function, domain: Domain) -> bool:
    """Whether the minimum of f over the domain can only be bounded with a modulus that is declared and not certain."""
    return not domain.bounded and certain_modulus(f, domain) == 0.0 and f.strong_convexity(domain) > 0.0


def declared_forms(f: Function) -> tuple[str, ...]:
    """What classes of the caller's say of their form, and bounds on f may go by: nobody can check it."""
    own = [part for part in leaves(f) if is_own_class(part) or part.own_code]
    claims = (
        ("linear", any(part.linear for part in own)),
        ("quadratic", any(part.quadratic for part in own)),
        ("separable", any(part.separable or part.separable_form() is not None for part in own)),
    )
    return tuple(word for word, claimed in claims if claimed)


def leaves(f: Function) -> Iterator[Function]:
    """The functions that f is made of, as far as they are in this process."""
    inside = f.composed_of
    # A class of the caller's that is made of others may say of itself what none of them says.
    if not inside or is_own_class(f):
        yield f
    for part in inside:
        yield from leaves(part)
