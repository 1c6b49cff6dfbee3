"""Saddle-point problems whose parts have different prices.

min over x in X, max over y in Y of f(x) + <y, Bx> - g(y): each of f', g' and B is called as often as it needs, and the
gap of the answer is certified.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from saddleslide import distributed, domains, errors, functions, gallery, methods, metrics, operators, theory
    from saddleslide.api.comparison import Comparison, Crossover, compare, crossover
    from saddleslide.api.inequality import slide
    from saddleslide.api.minimisation import minimize
    from saddleslide.api.paths import path
    from saddleslide.api.resumption import resume
    from saddleslide.api.runner import run
    from saddleslide.api.solver import solve
    from saddleslide.certificates.certification import certify
    from saddleslide.certificates.verdict import Certificate, Status
    from saddleslide.methods.sliding.component import Component
    from saddleslide.oracles.calls import Calls
    from saddleslide.planner.plans import plan
    from saddleslide.problem import SaddleProblem
    from saddleslide.runs.inequality import InequalityResult
    from saddleslide.runs.progress import Progress
    from saddleslide.runs.record import load
    from saddleslide.runs.result import Result
    from saddleslide.theory import Plan
    from saddleslide.theory.holder import Holder

__version__ = "0.1.0"

__all__ = [
    "Calls", "Certificate", "Comparison", "Component", "Crossover", "Holder", "InequalityResult", "Plan", "Progress",
    "Result", "SaddleProblem", "Status", "certify", "compare", "crossover", "distributed", "domains", "errors",
    "functions", "gallery", "load", "methods", "metrics", "minimize", "operators", "path", "plan", "resume", "run",
    "slide", "solve", "theory",
]  # fmt: skip

# Where each name lives. They are loaded when first asked for, so that `import saddleslide` takes no time.
_HOMES = {
    "certificates.certification": ("certify",),
    "api.comparison": ("Comparison", "Crossover", "compare", "crossover"),
    "api.inequality": ("slide",),
    "api.minimisation": ("minimize",),
    "api.paths": ("path",),
    "api.runner": ("run",),
    "theory.holder": ("Holder",),
    "oracles.calls": ("Calls",),
    "theory": ("Plan",),
    "planner.plans": ("plan",),
    "problem": ("SaddleProblem",),
    "runs.inequality": ("InequalityResult",),
    "runs.progress": ("Progress",),
    "runs.record": ("load",),
    "runs.result": ("Result",),
    "api.resumption": ("resume",),
    "methods.sliding.component": ("Component",),
    "api.solver": ("solve",),
    "certificates.verdict": ("Certificate", "Status"),
}
_HOME = {name: home for home, names in _HOMES.items() for name in names}


if not TYPE_CHECKING:
    # Unseen by type checkers, which would take every misspelt name for one of these.
    def __getattr__(name: str) -> Any:
        if name not in __all__:
            raise AttributeError(f"module 'saddleslide' has no attribute {name!r}")
        home = _HOME.get(name)
        # A name without a home is a room of its own: operators, functions, gallery, ...
        module = importlib.import_module(f"saddleslide.{home or name}")
        value = getattr(module, name) if home else module
        if home and not isinstance(value, type):
            value = importlib.import_module("saddleslide.api.arguments").check_arguments(value)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
