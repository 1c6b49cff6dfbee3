"""
Colour total variation
======================

The three channels of a picture share their edges when the gradients of all of them form one group.
"""

import matplotlib.pyplot as plt
import numpy as np

import saddleslide as ss

F = ss.functions
rng = np.random.default_rng(0)
rows, columns = np.mgrid[0:48, 0:48] / 47.0
disc = ((rows - 0.5) ** 2 + (columns - 0.5) ** 2 < 0.1).astype(float)
clean = np.stack([0.2 + 0.7 * disc, 0.3 + 0.4 * columns, 0.8 - 0.6 * disc], axis=-1)
noisy = clean + 0.15 * rng.standard_normal(clean.shape)

# %%
# `axis=(0, 3)`: the two directions and the three channels at a pixel are one group of six numbers.
tv = 0.15 * F.L21(axis=(0, 3)) @ ss.operators.FiniteDifferences((48, 48), channels=3)
result = ss.minimize(F.LeastSquares(None, noisy) + tv, rtol=1e-4)
print(result)

# %%
fig, axes = plt.subplots(1, 3, figsize=(9, 3), layout="constrained")
for ax, picture, title in zip(axes, (noisy, result.x, clean), ("noisy", "denoised", "clean"), strict=True):
    ax.imshow(np.clip(picture, 0.0, 1.0))
    ax.set_title(title)
    ax.set_axis_off()
