"""
A path of weights
=================

Twenty lassos, each from the solutions before it.
"""

import matplotlib.pyplot as plt
import numpy as np

import saddleslide as ss

F = ss.functions
rng = np.random.default_rng(0)
A = rng.standard_normal((80, 40))
b = A @ np.where(np.arange(40) < 5, 1.0, 0.0) + 0.5 * rng.standard_normal(80)

# %%
# `ss.path` hands on the point and what the method has learnt. Every answer has a certificate of its own.
weights = np.geomspace(60.0, 1.0, 20)
found = ss.path(F.LeastSquares(A, b) + weight * F.L1() for weight in weights)
alone = [ss.minimize(F.LeastSquares(A, b) + weight * F.L1()) for weight in weights]
print(f"calls of f': {sum(r.calls.f for r in found):g} along the path, {sum(r.calls.f for r in alone):g} one by one")

# %%
fig, ax = plt.subplots(figsize=(6, 3.5), layout="constrained")
ax.semilogx(weights, [result.x for result in found])
ax.set_xlabel("weight")
ax.set_ylabel("coefficient")
