"""
A proximal step of your own
===========================

A penalty that the catalogue lacks: give its proximal step and its value.
"""

import matplotlib.pyplot as plt
import numpy as np

import saddleslide as ss

F = ss.functions
rng = np.random.default_rng(0)
A = rng.standard_normal((60, 30))
x = np.zeros(30)
x[:5] = rng.uniform(1.0, 2.0, 5)
b = A @ x + 0.3 * rng.standard_normal(60)

# %%
# The penalty is the sum of x_i where it is positive, and five times its size where it is not: a negative entry costs
# five times as much.


def shrink(center, step):
    """Minimise the penalty plus (x - center)^2 / (2 step), entry by entry."""
    return np.where(center > step, center - step, np.minimum(center + 5.0 * step, 0.0))


penalty = F.Custom(prox=shrink, value=lambda x: np.sum(np.maximum(x, 0.0) + 5.0 * np.maximum(-x, 0.0)))
result = ss.minimize(F.LeastSquares(A, b) + 4.0 * penalty, rtol=1e-6)
print(result)

# %%
fig, ax = plt.subplots(figsize=(6, 3), layout="constrained")
ax.stem(result.x, label="found")
ax.plot(x, "kx", label="true")
ax.legend()
