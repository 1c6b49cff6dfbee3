"""What people call. `resume`, `minimize`, `compare` and `crossover` stand on these two, and are read when asked for."""

from saddleslide.api.runner import run
from saddleslide.api.solver import solve

__all__ = ["run", "solve"]
