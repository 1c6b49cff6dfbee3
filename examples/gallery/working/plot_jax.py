"""
A loss written in JAX
=====================

JAX differentiates, saddleslide counts how often it is asked.
"""

import jax.numpy as jnp
import matplotlib.pyplot as plt
import numpy as np

import saddleslide as ss

F = ss.functions
rng = np.random.default_rng(0)
t = np.linspace(0.0, 1.0, 80)
clean = np.where(t < 0.4, 0.0, 1.0) + np.where(t > 0.75, 1.0, 0.0)
data = clean + 0.2 * rng.standard_normal(80)
data[5::11] += 3.0  # outliers

# %%
# A smooth loss in which outliers count little, and total variation.
loss = F.from_jax(lambda x: jnp.sum(jnp.log(jnp.cosh(2.0 * (x - data)))) / 2.0)
steps = 0.8 * F.L1() @ ss.operators.FiniteDifferences((80,))
result = ss.minimize(loss + steps, over=ss.domains.Box(-1.0, 5.0, shape=80), rtol=1e-4)
print(result)

# %%
fig, ax = plt.subplots(figsize=(6, 3), layout="constrained")
ax.plot(t, data, ".", color="0.6", label="data")
ax.plot(t, clean, "k--", label="clean")
ax.plot(t, result.x, label="found")
ax.legend()
