"""What is known of a problem: costs from sizes, variances and constants in the norms of a plan, hypotheses."""

import numpy as np
import pytest

import saddleslide as ss
from saddleslide.facts.costs import estimate_costs, g_steps_per_gradient, gradient_cost, measure_costs, product_cost
from saddleslide.facts.metric_constants import Omega_in, constants_in, noise_in, oracles_in
from saddleslide.facts.noise import noise_constants, variances, with_variances
from saddleslide.theory import Constant, Term

BOX, ZERO = ss.domains.Box(-1.0, 1.0, shape=10), ss.functions.Zero()


def test_costs_come_from_sizes():
    problem = ss.SaddleProblem(f=ZERO, g=ZERO, B=np.eye(10), X=BOX, Y=BOX)
    assert product_cost(problem.coupling) == 200.0
    assert gradient_cost(ss.functions.LeastSquares(np.eye(10), np.zeros(10)), 10) == 400.0
    assert estimate_costs(problem) == (40.0, 40.0, 200.0)
    assert all(cost > 0.0 for cost in measure_costs(problem))
    assert [g_steps_per_gradient(costs) for costs in ((100.0, 5.0, 1.0), (1.0, 5.0, 1.0))] == [20, 4]


def test_variances_are_in_the_dual_norms_of_their_levels():
    q, box = ss.functions.Quadratic(1.0), ss.domains.Box(-1.0, 1.0, shape=2)
    problem = ss.SaddleProblem(f=ss.functions.Noisy(q, 0.5), g=q, B=np.eye(2), X=box, Y=box)
    found = noise_constants(problem, problem.start())
    assert {name: constant.value for name, constant in found.items()} == {"sigma2_x": 0.25, "batch_x": 1}
    assert variances({"sigma2_y": Constant(4.0, "declared")}) == (0.0, 4.0)
    terms = [Term("f", weights=(4.0, 1.0)), Term("B", M=1.0, weights=(4.0, 1.0))]
    seen = with_variances(terms, {"sigma2_x": Constant(2.0, "declared")})
    assert [term.variance for term in seen] == [0.5, 0.0]


def test_constants_in_the_norm_of_a_metric():
    free = ss.domains.FullSpace(2)
    f, g, B = ss.functions.Quadratic([1.0, 100.0]), ss.functions.Quadratic(1.0), np.diag([1.0, 10.0])
    problem = ss.SaddleProblem(f=f, g=g, B=B, X=free, Y=free)
    euclidean = {"nu_x": 1.0, "H_x": 100.0, "mu_x": 1.0, "L_xy": 10.0}
    metric = ss.metrics.Diagonal([1.0, 100.0]).with_coupling(problem.coupling)
    found = constants_in(metric, problem, {name: Constant(value, "") for name, value in euclidean.items()}, {})
    assert [round(found[name].value, 6) for name in ("H_x", "mu_x", "L_xy")] == [1.0, 1.0, 1.0]
    metric = ss.metrics.Diagonal([0.5, 4.0])
    norms = (metric, ss.metrics.Operator.of(np.diag([0.25, 1.0])))
    declared = oracles_in(norms, {"f": (0.1, 3.0), "g": (0.1, 3.0)}, problem)
    assert declared["f"] == (0.1, 6.0) and declared["g"] == (0.1, pytest.approx(12.0))
    noise = noise_in(norms, {"sigma2_x": Constant(3.0, "declared"), "sigma2_y": Constant(1.0, "declared")}, problem)
    assert [noise[name].value for name in ("sigma2_x", "sigma2_y")] == pytest.approx([6.0, 4.0])
    box = ss.domains.Box(-1.0, 1.0, shape=2)
    assert Omega_in(ss.metrics.Diagonal([1.0, 4.0]), box, np.zeros(2)) == 5.0


def test_every_theorem_says_how_its_hypotheses_are_known():
    plan = ss.plan(ss.gallery.synthetic(seed=0), order="fgB", loops=(2, 2, 2))
    assert [one.how for one in plan.hypotheses[:6]] == [
        "follows",
        "computed",
        "follows",
        "computed",
        "follows",
        "declared",
    ]
