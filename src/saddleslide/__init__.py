"""Saddle-point problems whose parts have different prices.

min over x in X, max over y in Y of f(x) + <y, Bx> - g(y): each of f', g' and B is called as often as it needs, and the
gap of the answer is certified.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from saddleslide import couplings, distributed, domains, errors, functions, gallery, metrics, planning
    from saddleslide.adaptive_planner import adaptive_plan
    from saddleslide.baselines import methods
    from saddleslide.break_even import Crossover, crossover
    from saddleslide.certificate import certify, exact_gap
    from saddleslide.comparison import Comparison, compare
    from saddleslide.driver import run
    from saddleslide.holder import Holder
    from saddleslide.oracles import Calls
    from saddleslide.planning import AdaptivePlan, Plan, RestartPlan, plan_from_dict
    from saddleslide.plans import plan
    from saddleslide.problem import SaddleProblem
    from saddleslide.progress import Progress
    from saddleslide.result import Result
    from saddleslide.resuming import resume
    from saddleslide.sliding import Component, component_levels, slide
    from saddleslide.solver import solve
    from saddleslide.verdict import Certificate, Status

__version__ = "0.1.0"

__all__ = [
    "AdaptivePlan",
    "Calls",
    "Certificate",
    "Comparison",
    "Component",
    "Crossover",
    "Holder",
    "Plan",
    "Progress",
    "RestartPlan",
    "Result",
    "SaddleProblem",
    "Status",
    "adaptive_plan",
    "certify",
    "compare",
    "component_levels",
    "couplings",
    "crossover",
    "distributed",
    "domains",
    "errors",
    "exact_gap",
    "functions",
    "gallery",
    "methods",
    "metrics",
    "plan",
    "plan_from_dict",
    "planning",
    "resume",
    "run",
    "slide",
    "solve",
]

# Where each name lives. They are loaded when first asked for, so that `import saddleslide` takes no time.
_HOMES = {
    "adaptive_planner": ("adaptive_plan",),
    "baselines": ("methods",),
    "break_even": ("Crossover", "crossover"),
    "certificate": ("certify", "exact_gap"),
    "comparison": ("Comparison", "compare"),
    "driver": ("run",),
    "holder": ("Holder",),
    "oracles": ("Calls",),
    "planning": ("AdaptivePlan", "Plan", "RestartPlan", "plan_from_dict"),
    "plans": ("plan",),
    "problem": ("SaddleProblem",),
    "progress": ("Progress",),
    "result": ("Result",),
    "resuming": ("resume",),
    "sliding": ("Component", "component_levels", "slide"),
    "solver": ("solve",),
    "verdict": ("Certificate", "Status"),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}


if not TYPE_CHECKING:
    # Unseen by type checkers, which would take every misspelt name for one of these.
    def __getattr__(name: str) -> Any:
        if name not in __all__:
            raise AttributeError(f"module 'saddleslide' has no attribute {name!r}")
        home = _HOME.get(name)
        # A name without a home is a room of its own: couplings, functions, gallery, ...
        module = importlib.import_module(f"saddleslide.{home or name}")
        value = getattr(module, name) if home else module
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
