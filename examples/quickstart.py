import numpy as np

import saddleslide as ss

rng = np.random.default_rng(0)
A, b = rng.standard_normal((200, 20)), rng.standard_normal(200)  # put your own arrays here
problem = ss.SaddleProblem(
    f=ss.functions.Quadratic(1.0),  # |x|^2 / 2
    g=ss.functions.Quadratic(0.5) + ss.functions.Linear(b),  # with Y below: the Huber loss of A x - b
    B=A,
    X=ss.domains.Box(-5.0, 5.0, shape=20),
    Y=ss.domains.Box(-1.0, 1.0, shape=200),
)
result = ss.solve(problem, tol=1e-6)
print(result)
