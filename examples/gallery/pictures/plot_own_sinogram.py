"""
Tomography from your own sinogram
=================================

A sinogram (a row for each angle, a column for each detector bin) becomes a picture, and the picture has a proof.
"""

import matplotlib.pyplot as plt
import numpy as np

import saddleslide as ss

# %%
# Put your own sinogram and angles here. This one has 60 noisy projections of a phantom.
truth = ss.gallery.shaded_phantom(64)
angles = np.linspace(0.0, np.pi, 60, endpoint=False)
clean = ss.gallery.parallel_beam(64, angles, bins=91).project(truth)
sinogram = clean + 0.3 * np.random.default_rng(0).standard_normal(clean.shape)

# %%
# Total variation keeps edges. One call solves, `read` says the answer in words of the problem.
problem = ss.gallery.reconstruct(sinogram, angles, weight=2e-4, truth=truth)
result = ss.solve(problem, reduction=1e-4)
solution = problem.read(result)
print(result)
print(f"PSNR {solution.psnr():.1f} dB")

# %%
fig, axes = plt.subplots(1, 3, figsize=(9, 3), layout="constrained")
for ax, picture, title in zip(
    axes, (sinogram, solution.image, truth), ("sinogram", "reconstruction", "object"), strict=True
):
    ax.imshow(picture, cmap="gray", aspect="auto" if picture is sinogram else "equal")
    ax.set_title(title)
    ax.set_axis_off()
