"""
Stop, and go on later
=====================

A limit ends the run with the best point and its bounds. The checkpoint goes on with the same bits.
"""

import tempfile
from pathlib import Path

import numpy as np

import saddleslide as ss

truth = ss.gallery.shaded_phantom(32)
angles = np.linspace(0.0, np.pi, 30, endpoint=False)
beams = ss.gallery.parallel_beam(32, angles, bins=47)
sinogram = beams.project(truth) + 0.1 * np.random.default_rng(0).standard_normal((30, 47))
problem = ss.gallery.reconstruct(sinogram, angles, weight=2e-4)

# %%
with tempfile.TemporaryDirectory() as folder:
    file = Path(folder) / "run.npz"
    early = ss.solve(problem, reduction=1e-6, max_calls={"f": 8}, checkpoint=file)
    print(early.status.name, f"gap {early.gap:.1e} after {early.calls.f:g} calls of f'")
    late = ss.resume(file, problem, max_calls={"f": 200})
    print(late.status.name, f"gap {late.gap:.1e} after {late.calls.f:g}")

# %%
# The run that never stopped gives the same bits.
whole = ss.solve(problem, reduction=1e-6)
print("same bits:", np.array_equal(whole.x, late.x))
whole.plot().show()
