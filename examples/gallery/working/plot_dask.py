"""
f on a Dask cluster
===================

The data of f lie in shards on workers. A gradient of f is expensive there, so it is asked for
rarely; the products with B stay in this process.
"""

from functools import partial

import numpy as np

import saddleslide as ss


def make_part(seed):
    """A part of f, made on the worker that keeps it."""
    rng = np.random.default_rng(seed)
    return ss.functions.LeastSquares(rng.standard_normal((50, 10)), rng.standard_normal(50), ridge=0.1)


# %%
# Two workers on this machine; `ss.distributed.connect` takes a running scheduler.
if __name__ == "__main__":
    parts = [partial(make_part, seed) for seed in range(4)]
    with ss.distributed.local(workers=2) as client, ss.distributed.DaskSum(client, parts) as f:
        problem = ss.gallery.constrained(f, np.ones((1, 10)), np.ones(1))
        result = ss.solve(problem, tol=1e-5)
        print(result)
        print(f.counts)
        result.plot().show()
