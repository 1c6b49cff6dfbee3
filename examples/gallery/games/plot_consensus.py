"""
Agents on a ring
================

Twelve agents fit one model. Each knows its own data and talks to its two neighbours.
"""

import numpy as np

import saddleslide as ss

rng = np.random.default_rng(0)
data = [(rng.standard_normal((10, 4)), rng.standard_normal(10)) for _ in range(12)]
ring = np.roll(np.eye(12), 1, axis=1) + np.roll(np.eye(12), -1, axis=1)

# %%
problem = ss.gallery.consensus([ss.functions.LeastSquares(A, b, ridge=0.1) for A, b in data], ring)
solution = problem.read(ss.solve(problem, tol=1e-6))
print(f"{solution.local_gradients} gradients an agent, {solution.rounds} rounds of communication")
print(f"largest distance of an agent from the average: {solution.consensus_error:.1e}")

# %%
solution.plot().show()
