"""
Quantile regression
===================

Lines that leave a tenth, a half and nine tenths of the data below them.
"""

import matplotlib.pyplot as plt
import numpy as np

import saddleslide as ss

F = ss.functions
rng = np.random.default_rng(0)
t = np.sort(rng.random(120))
b = 1.0 + 2.0 * t + (0.2 + 0.8 * t) * rng.standard_normal(120)
A = np.column_stack([t, np.ones(120)])  # slope and intercept

# %%
fig, ax = plt.subplots(figsize=(6, 3.5), layout="constrained")
ax.plot(t, b, ".", color="0.6")
for level in (0.1, 0.5, 0.9):
    result = ss.minimize(F.Quantile(level).translated(-b) @ (-A), rtol=1e-5)
    ax.plot(t, A @ result.x, label=f"{level:.0%}")
    print(f"{level:.0%}: slope {result.x[0]:.3f}, intercept {result.x[1]:.3f}, gap {result.gap:.1e}")
ax.legend()
