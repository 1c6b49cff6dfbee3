"""Any plan from the data that its `to_dict` wrote."""

from __future__ import annotations

from typing import Any

from saddleslide.errors import InputError
from saddleslide.theory.adaptive import AdaptivePlan
from saddleslide.theory.method_plan import MethodPlan
from saddleslide.theory.plan import Plan
from saddleslide.theory.restart_plan import RestartPlan

AnyPlan = Plan | RestartPlan | AdaptivePlan | MethodPlan
# A field that only this kind of plan has.
_KINDS: dict[str, type[AnyPlan]] = {
    "terms": Plan,
    "stages": RestartPlan,
    "inner_steps": AdaptivePlan,
    "options": MethodPlan,
}


def plan_from_dict(data: dict[str, Any]) -> AnyPlan:
    """The plan that some `to_dict` wrote: of `ss.plan`, of `result.plans`, of any method.

    Examples
    --------
    >>> import json, numpy as np, saddleslide as ss
    >>> simplex, zero = ss.domains.Simplex(2), ss.functions.Zero()
    >>> game = ss.SaddleProblem(f=zero, g=zero, B=np.eye(2), X=simplex, Y=simplex)
    >>> result = ss.solve(game, 1e-3)
    >>> text = json.dumps(result.plans[0].to_dict())
    >>> again = ss.run(game, ss.plan_from_dict(json.loads(text)))
    >>> bool((again.x == result.x).all())
    True
    """
    if not isinstance(data, dict):
        raise InputError(f"plan_from_dict: received {type(data).__name__}; expected what a plan's to_dict wrote.")
    for name, kind in _KINDS.items():
        if name in data:
            return kind.from_dict(data)
    raise InputError(f"plan_from_dict: the data has {sorted(data)}; expected what a plan's to_dict wrote.")
