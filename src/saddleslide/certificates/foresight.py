"""What can be claimed of a problem, before the first call: which bounds on the whole sets there will be, and why."""

from __future__ import annotations

import numpy as np

from saddleslide import certificates
from saddleslide.certificates.candidate import Split
from saddleslide.domains.base import Domain
from saddleslide.domains.entrywise import Box, FullSpace
from saddleslide.functions.base import Function
from saddleslide.functions.constants import modulus_for_bounds
from saddleslide.functions.minimum import has_closed_minimum
from saddleslide.functions.trust import certain_modulus
from saddleslide.problem import SaddleProblem
from saddleslide.theory.claim import AS_DECLARED, GLOBAL, MADE_GLOBAL, NONE, WITHIN, Claim


def possible_claim(problem: SaddleProblem) -> Claim:
    """The strongest claim that a run may end with, why, and what the caller could change for a stronger one.

    Examples
    --------
    >>> import numpy as np, saddleslide as ss
    >>> f, space = ss.functions.LeastSquares(np.ones((1, 3)), [1.0]), ss.domains.FullSpace(3)
    >>> box = ss.domains.Box(-1.0, 1.0, shape=3)
    >>> problem = ss.SaddleProblem(f=f, g=ss.functions.Zero(), B=np.ones((3, 3)), X=space, Y=box)
    >>> possible_claim(problem).kind
    'within a radius'
    """
    sides = ("f", problem.f, "X", problem.X), ("g", problem.g, "Y", problem.Y)
    silent = [name for name, function, _, _ in sides if not function.has_value]
    if silent:
        which = " and ".join(silent)
        return Claim(NONE, f"{which} without values bound nothing", f"pass value= of {which}")
    split = Split(*problem.f_parts, *problem.g_parts)
    found = [_reason(*side, *parts) for side, parts in zip(sides, (problem.f_parts, problem.g_parts), strict=True)]
    levels = () if all(found) else certificates.level_sets(problem, split)
    rules = ["" if found[block] else levels[block].rule(levels[1 - block]) for block in (0, 1)]
    whys = [reason or rule for reason, rule in zip(found, rules, strict=True)]
    if all(whys):
        kind = AS_DECLARED if problem.assumptions else MADE_GLOBAL if any(rules) else GLOBAL
        advice = "build f and g of functions of known form, or bound X and Y" if kind == AS_DECLARED else ""
        return Claim(kind, "; ".join(whys), advice)
    missing, changes = [], []
    for (name, function, set_name, domain), sets, why in zip(sides, levels, whys, strict=True):
        if not why:
            missing.append(f"{set_name} has no end and no modulus of {name} is certain")
            if sets.may_meet_a_margin:
                missing[-1] += ", unless the run meets a point with a margin in every constraint"
            changes.append(_change(name, function, set_name, domain))
    return Claim(WITHIN, "; ".join(missing), f"for a global proof {' and '.join(changes)}")


def _reason(name: str, function: Function, set_name: str, domain: Domain, rest: Function, simple: Function) -> str:
    """Why the minimum over the whole set is bounded whatever the slope; empty where it is not."""
    if domain.bounded:
        return f"{set_name} is bounded"
    if certain_modulus(simple, domain) > 0.0 or modulus_for_bounds(rest, simple, domain) > 0.0:
        return f"{name} is strongly convex"
    form = function.separable_form()
    if form is not None and has_closed_minimum(function, domain) and isinstance(domain, Box | FullSpace):
        rising = np.asarray(form.quadratic, dtype=np.float64)
        for weight, nu in form.powers:
            rising = rising + (np.asarray(weight) if nu > 0.0 else 0.0)
        if np.all(rising > 0.0):
            return f"{name} grows faster than any slope"
    return ""


def _change(name: str, function: Function, set_name: str, domain: Domain) -> str:
    """What would bound one block."""
    below = isinstance(domain, Box) and bool(np.all(np.isfinite(domain.lower)))
    box = f"pass {set_name}=Box({'0' if below else '-big'}, big)" + " (over= in minimize)" * (set_name == "X")
    ridge = f"give {name} a ridge=" if function.linear_image is not None else f"add a small Quadratic to {name}"
    return f"{box} or {ridge}"
