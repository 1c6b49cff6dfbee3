"""
Matrix games and Kuhn poker
===========================

A game of two players in normal form, and one with hidden cards in sequence form.
"""

import matplotlib.pyplot as plt
import numpy as np

import saddleslide as ss

# %%
# The column player pays `payoff[row, column]`. What both can still gain by changing is the certified gap.
payoff = np.random.default_rng(0).standard_normal((12, 15))
game = ss.gallery.matrix_game(payoff)
solution = game.read(ss.solve(game, tol=1e-8))
print(f"value {solution.value:.4f}, exploitability at most {solution.exploitability:.1e}")

# %%
# Kuhn poker: whoever moves first loses 1/18 a hand against good play.
poker = ss.gallery.kuhn_poker()
result = ss.solve(poker, tol=1e-6)
print(poker.read(result))

# %%
fig, axes = plt.subplots(2, 1, figsize=(6, 4), layout="constrained")
for ax, strategy, player in zip(axes, (solution.row, solution.column), ("row", "column"), strict=True):
    ax.bar(np.arange(strategy.size), strategy)
    ax.set_ylabel(player)
axes[1].set_xlabel("action")
