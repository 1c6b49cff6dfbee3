"""OR-tools PDLP."""

from __future__ import annotations

from importlib.metadata import version

import numpy as np
from ortools.pdlp import solvers_pb2
from ortools.pdlp.python import pdlp
from qp import Answer, Program, solver


def solve(program: Program, tolerance: float, seconds: float) -> Answer:
    model = pdlp.QuadraticProgram()
    model.resize_and_initialize(program.q.size, program.e.size)
    model.objective_vector, model.constraint_matrix = program.q, program.E
    model.constraint_lower_bounds = model.constraint_upper_bounds = program.e
    model.variable_lower_bounds, model.variable_upper_bounds = program.lower, program.upper
    if program.p.any():
        model.set_objective_matrix_diagonal(program.p)
    settings = solvers_pb2.PrimalDualHybridGradientParams()
    criteria = settings.termination_criteria
    criteria.simple_optimality_criteria.eps_optimal_relative = tolerance
    criteria.simple_optimality_criteria.eps_optimal_absolute = tolerance
    criteria.time_sec_limit = seconds
    settings.num_threads = 1
    found = pdlp.primal_dual_hybrid_gradient(model, settings)
    x, y = np.array(found.primal_solution), -np.array(found.dual_solution)
    ended = x.size == program.q.size and np.isfinite(x).all() and np.isfinite(y).all()
    return (x, y) if ended else "no finite point"


if __name__ == "__main__":
    solver(solve, f"ortools {version('ortools')}")
