"""Saddle-point problems whose parts have different prices.

min over x in X, max over y in Y of f(x) + <y, Bx> - g(y): each of f', g' and B is called as often as it needs, and the
gap of the answer is certified.
"""

import importlib
from typing import TYPE_CHECKING, Any

from saddleslide import couplings, domains, errors, functions, gallery, metrics, planning
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
from saddleslide.result import Certificate, Result, Status
from saddleslide.resuming import resume
from saddleslide.sliding import Component, component_levels, slide
from saddleslide.solver import solve

if TYPE_CHECKING:
    from saddleslide import distributed

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


def __getattr__(name: str) -> Any:
    # Clusters are loaded when asked for: they bring asyncio along, and most programs have none.
    if name == "distributed":
        return importlib.import_module("saddleslide.distributed")
    raise AttributeError(f"module 'saddleslide' has no attribute {name!r}")
