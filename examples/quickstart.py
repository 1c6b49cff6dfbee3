import numpy as np

import saddleslide as ss

rng = np.random.default_rng(0)
A, b = rng.standard_normal((200, 20)), rng.standard_normal(200)  # put your own arrays here
F = ss.functions
result = ss.minimize(
    F.Huber(0.5).translated(b) @ A  # Huber loss of A x - b: outliers in b count less
    + 0.5 * F.Quadratic(1.0)  # ridge: 0.5 * |x|^2 / 2
    + 10.0 * F.L1(),  # few entries of x matter: 5 of 20 here
    tol=1e-6,
)
print(result)
