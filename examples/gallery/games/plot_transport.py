"""
Optimal transport, plain, quadratic and entropic
================================================

Three ways to move one histogram onto another.
"""

import matplotlib.pyplot as plt
import numpy as np

import saddleslide as ss

t = np.linspace(0.0, 1.0, 40)
source = np.exp(-((t - 0.3) ** 2) / 0.01)
target = np.exp(-((t - 0.5) ** 2) / 0.005) + np.exp(-((t - 0.8) ** 2) / 0.002)
source, target = source / source.sum(), target / target.sum()
costs = (t[:, None] - t[None, :]) ** 2

# %%
kinds = {None: {}, "quadratic": {"regularisation": 0.1}, "entropy": {"regularisation": 0.01}}
fig, axes = plt.subplots(1, 3, figsize=(9, 3), layout="constrained")
for ax, (kind, settings) in zip(axes, kinds.items(), strict=True):
    problem = ss.gallery.transport(costs, source, target, regulariser=kind, **settings)
    solution = problem.read(ss.solve(problem, rtol=1e-4))
    ax.imshow(solution.plan, cmap="Blues")
    ax.set_title(kind or "plain")
    print(f"{kind or 'plain'}: cost {solution.cost:.5f}")
