"""
MRI from a part of the Fourier samples
======================================

Complex data, a complex picture, moduli in the total variation.
"""

import matplotlib.pyplot as plt
import numpy as np

import saddleslide as ss

F = ss.functions
rng = np.random.default_rng(0)
truth = ss.gallery.shaded_phantom(48) * np.exp(0.5j * np.linspace(0.0, 1.0, 48))

# %%
# Low frequencies are all measured, of the others one in three. Frequency 0 stands first, as in `np.fft.fft2`.
frequency = np.abs(np.fft.fftfreq(48))
seen = (rng.random((48, 48)) < 0.33) | (np.maximum.outer(frequency, frequency) < 0.08)
kspace = ss.operators.Fourier((48, 48), mask=seen)
data = kspace @ truth + 0.01 * (rng.standard_normal(seen.sum()) + 1j * rng.standard_normal(seen.sum()))

# %%
tv = 0.01 * F.L21(axis=0) @ ss.operators.FiniteDifferences((48, 48), dtype=complex)
result = ss.minimize(F.LeastSquares(kspace, data) + tv, rtol=1e-3)
print(result)

# %%
zero_filled = kspace.T @ data
fig, axes = plt.subplots(1, 3, figsize=(9, 3), layout="constrained")
pictures = (np.fft.fftshift(seen), np.abs(zero_filled), np.abs(result.x))
for ax, picture, title in zip(axes, pictures, ("samples", "zeros in the gaps", "total variation"), strict=True):
    ax.imshow(picture, cmap="gray")
    ax.set_title(title)
    ax.set_axis_off()
