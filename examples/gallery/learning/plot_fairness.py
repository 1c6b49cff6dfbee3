"""
A fair classifier
=================

Logistic regression in which the mean scores of two groups may differ by no more than what is stated.
"""

import matplotlib.pyplot as plt
import numpy as np

import saddleslide as ss

F, D = ss.functions, ss.domains
rng = np.random.default_rng(0)
A = rng.standard_normal((200, 6))
group = rng.random(200) < 0.4
A[group, 0] += 1.0
labels = np.sign(A @ np.array([1.5, -1.0, 0.5, 0.0, 0.0, 0.0]) + 0.5 * rng.standard_normal(200))
difference = A[group].mean(axis=0) - A[~group].mean(axis=0)

# %%
allowed = np.array([0.0, 0.05, 0.1, 0.2, 0.4, 0.8, 1.6])
found = []
for most in allowed:
    fair = F.Indicator(D.Box([-most], [most])) @ difference[None]
    found.append(ss.minimize(F.Logistic(A, labels, ridge=0.1) + fair, rtol=1e-5))

# %%
fig, ax = plt.subplots(figsize=(6, 3.5), layout="constrained")
ax.plot([abs(difference @ result.x) for result in found], [result.objective for result in found], "o-")
ax.set_xlabel("difference of the mean scores")
ax.set_ylabel("loss")
