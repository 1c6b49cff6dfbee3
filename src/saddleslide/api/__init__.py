"""What people call: `solve`, `run`, `resume`, `compare` and `crossover`."""

from saddleslide.api.comparison import compare, crossover
from saddleslide.api.resumption import resume
from saddleslide.api.runner import run
from saddleslide.api.solver import solve

__all__ = ["compare", "crossover", "resume", "run", "solve"]
