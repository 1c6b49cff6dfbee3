"""Saddle-point problems whose parts have different prices.

min over x in X, max over y in Y of f(x) + <y, Bx> - g(y): each of f', g' and B is called as often as it needs, and the
gap of the answer is certified.
"""

from saddleslide import couplings, domains, errors, functions, gallery, planning
from saddleslide.baselines import methods
from saddleslide.certificate import certify, exact_gap
from saddleslide.driver import run
from saddleslide.holder import Holder
from saddleslide.oracles import Calls
from saddleslide.planner import plan
from saddleslide.planning import Plan
from saddleslide.problem import SaddleProblem
from saddleslide.progress import Progress
from saddleslide.result import Certificate, Result, Status
from saddleslide.sliding import Component, component_levels, slide
from saddleslide.solver import adaptive_plan, solve

__version__ = "0.1.0"

__all__ = [
    "Calls",
    "Certificate",
    "Component",
    "Holder",
    "Plan",
    "Progress",
    "Result",
    "SaddleProblem",
    "Status",
    "adaptive_plan",
    "certify",
    "component_levels",
    "couplings",
    "domains",
    "errors",
    "exact_gap",
    "functions",
    "gallery",
    "methods",
    "plan",
    "planning",
    "run",
    "slide",
    "solve",
]
