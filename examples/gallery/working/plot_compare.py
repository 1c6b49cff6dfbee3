"""
Compare methods on your problem
===============================

Which method is predicted to be cheapest, and what each of them took to the same certified gap.
"""

import numpy as np

import saddleslide as ss

rng = np.random.default_rng(0)
payoff = rng.standard_normal((20, 30))
simplex = ss.domains.Simplex
game = ss.SaddleProblem(
    f=ss.functions.Quadratic(0.1), g=ss.functions.Quadratic(0.1), B=payoff, X=simplex(30), Y=simplex(20)
)

# %%
# Predictions, and what a method lacks where it does not apply.
print(ss.compare(game, tol=1e-3))

# %%
# The same with runs.
ran = ss.compare(game, tol=1e-3, run=True, only=("pdhg", "mirror-prox", "adaptive"))
print(ran)

# %%
ran.plot().show()
