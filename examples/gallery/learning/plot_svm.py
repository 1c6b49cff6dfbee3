"""
A support vector machine with few features
==========================================

Hinge loss and an l1 penalty, and which features are left as the penalty grows.
"""

import matplotlib.pyplot as plt
import numpy as np

import saddleslide as ss

F = ss.functions
rng = np.random.default_rng(0)
A = rng.standard_normal((150, 12))
weights = np.zeros(12)
weights[:3] = 2.0, -1.5, 1.0
labels = np.sign(A @ weights + 0.3 * rng.standard_normal(150))

# %%
penalties = np.geomspace(1.0, 60.0, 12)
results = [ss.minimize(F.Hinge() @ (labels[:, None] * A) + penalty * F.L1(), rtol=1e-4) for penalty in penalties]
print(results[0])

# %%
fig, ax = plt.subplots(figsize=(6, 3.5), layout="constrained")
ax.semilogx(penalties, [result.x for result in results])
ax.set_xlabel("penalty")
ax.set_ylabel("weight of a feature")
