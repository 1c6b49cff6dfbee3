"""
Total variation of a volume
===========================

Differences along any number of axes: a noisy 3-D ball, denoised with isotropic total variation.
"""

import matplotlib.pyplot as plt
import numpy as np

import saddleslide as ss

F = ss.functions
rng = np.random.default_rng(0)
grid = np.mgrid[0:20, 0:20, 0:20] / 19.0 - 0.5
clean = (np.sum(grid**2, axis=0) < 0.12).astype(float)
noisy = clean + 0.3 * rng.standard_normal(clean.shape)

# %%
tv = 0.3 * F.L21(axis=0) @ ss.operators.FiniteDifferences(clean.shape)
result = ss.minimize(F.LeastSquares(None, noisy) + tv, over=ss.domains.Box(0.0, 1.0, shape=clean.shape), rtol=1e-3)
print(result)

# %%
fig, axes = plt.subplots(2, 4, figsize=(8, 4), layout="constrained")
for column, slice_ in zip(axes.T, (3, 7, 10, 14), strict=True):
    for ax, volume in zip(column, (noisy, result.x), strict=True):
        ax.imshow(volume[slice_], cmap="gray", vmin=0.0, vmax=1.0)
        ax.set_title(f"slice {slice_}")
        ax.set_axis_off()
