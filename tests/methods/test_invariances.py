"""What must not change a run: the metric after a change of variables, the names of x and y, units, the clock."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import saddleslide as ss
from support import gathered, pairwise, paper_plan

ORDERS = ["".join(letters) for letters in itertools.permutations("fgB")]
NUS = [(1.0, 1.0), (0.5, 0.75), (0.25, 0.0)]
LOOPS = (5, 3, 4)
LETTERS = str.maketrans("fg", "gf")


class Data:
    """Numbers of a saddle problem on boxes that the iterates press against, so that they can be transformed."""

    def __init__(self, nus, seed=0):
        rng = np.random.default_rng(seed)
        self.nus, self.weights = nus, (1.3, 0.6)
        self.tilts = rng.standard_normal(5), rng.standard_normal(4)
        self.curvatures = rng.uniform(0.1, 2.0, 5), rng.uniform(0.1, 2.0, 4)
        self.B = rng.standard_normal((4, 5))
        self.boxes = [(-0.4, np.linspace(0.3, 1.0, 5)), (np.linspace(-1.0, -0.1, 4), 0.6)]
        self.start = np.full(5, 0.2), np.full(4, -0.1)

    def rescaled(self, w_x, w_y):
        """The same problem in the variables sqrt(w_x) x and sqrt(w_y) y."""
        other = Data(self.nus)
        roots = np.sqrt(w_x), np.sqrt(w_y)
        other.weights = tuple(a / r ** (1.0 + nu) for a, r, nu in zip(self.weights, roots, self.nus, strict=True))
        other.tilts = tuple(c / r for c, r in zip(self.tilts, roots, strict=True))
        other.curvatures = tuple(q / r**2 for q, r in zip(self.curvatures, roots, strict=True))
        other.B = self.B / (roots[0] * roots[1])
        other.boxes = [(low * r, high * r) for (low, high), r in zip(self.boxes, roots, strict=True)]
        other.start = tuple(point * r for point, r in zip(self.start, roots, strict=True))
        return other

    def mirrored(self):
        """The same problem with x and y exchanged: min and max change sides, so B becomes -B^T."""
        other = Data(self.nus[::-1])
        for name in ("weights", "tilts", "curvatures", "boxes", "start"):
            setattr(other, name, getattr(self, name)[::-1])
        other.B = -self.B.T
        return other

    def times(self, s):
        """F multiplied by s."""
        other = Data(self.nus)
        other.weights = tuple(s * a for a in self.weights)
        other.tilts = tuple(s * c for c in self.tilts)
        other.curvatures = tuple(s * q for q in self.curvatures)
        other.B = s * self.B
        return other

    def run(self, order, metric=(1.0, 1.0)):
        """Averages after every outermost step, and the result."""
        f, g = (
            ss.functions.Power(nu, weight=a, tilt=c, quadratic=q)
            for nu, a, c, q in zip(self.nus, self.weights, self.tilts, self.curvatures, strict=True)
        )
        X, Y = (ss.domains.Box(*box) for box in self.boxes)
        problem = ss.SaddleProblem(f=f, g=g, B=self.B, X=X, Y=Y)
        plan = paper_plan(problem, order=order, loops=LOOPS, metric=metric, start=self.start)
        path: list = []
        result = ss.run(problem, plan, start=self.start, callback=lambda now: path.append((now.x, now.y)))
        return path, result


def assert_same_path(path, other, scales=(1.0, 1.0), tolerance=1e-12):
    assert len(path) == len(other) == LOOPS[0]
    for (x, y), (other_x, other_y) in zip(path, other, strict=True):
        np.testing.assert_allclose(x * scales[0], other_x, rtol=0.0, atol=tolerance)
        np.testing.assert_allclose(y * scales[1], other_y, rtol=0.0, atol=tolerance)


@pairwise(order=ORDERS, nus=NUS, metric=[(4.0, 0.25), (0.3, 2.7)])
def test_a_metric_is_a_change_of_variables(order, nus, metric):
    data = Data(nus)
    path, result = data.run(order, metric)
    other, plain = data.rescaled(*metric).run(order)
    assert_same_path(path, other, np.sqrt(metric))
    assert result.gap == pytest.approx(plain.gap, rel=1e-10)
    assert result.plans[0].bound == pytest.approx(plain.plans[0].bound, rel=1e-12)


@gathered("metric", [(4.0, 0.25), (0.3, 2.7)])
def test_a_metric_does_change_the_run(metric):
    plain, weighted = (Data((1.0, 0.5)).run("fgB", each)[1] for each in ((1.0, 1.0), metric))
    assert np.max(np.abs(plain.x - weighted.x)) > 1e-3


@gathered("nus", NUS)
@gathered("order", ORDERS)
def test_exchanging_x_and_y_mirrors_the_run(order, nus):
    path, result = Data(nus).run(order)
    mirror, mirrored = Data(nus).mirrored().run(order.translate(LETTERS))
    assert_same_path(path, [(x, y) for y, x in mirror], tolerance=1e-13)
    assert result.gap == pytest.approx(mirrored.gap, rel=1e-12)
    assert (result.lower, result.upper) == pytest.approx((-mirrored.upper, -mirrored.lower), rel=1e-12)
    assert (result.calls.f, result.calls.g, result.calls.B) == (
        mirrored.calls.g,
        mirrored.calls.f,
        mirrored.calls.B,
    )


@pairwise(order=ORDERS, nus=NUS, s=[1024.0, 0.007])
def test_multiplying_the_problem_multiplies_the_gap_and_leaves_the_path(order, nus, s):
    path, result = Data(nus).run(order)
    scaled_path, scaled = Data(nus).times(s).run(order)
    assert_same_path(path, scaled_path)
    assert scaled.gap == pytest.approx(s * result.gap, rel=1e-10)
    assert scaled.plans[0].bound == pytest.approx(s * result.plans[0].bound, rel=1e-12)


@gathered("order", ORDERS)
def test_the_same_inputs_give_the_same_bits(order):
    first, second = (Data((0.5, 0.25)).run(order, metric=(0.3, 2.7)) for _ in range(2))
    assert_same_path(first[0], second[0], tolerance=0.0)
    assert first[1].certificate == second[1].certificate
    assert first[1].plans == second[1].plans


def test_a_plan_read_back_gives_the_same_bits():
    problem = ss.gallery.synthetic(0.5, 0.5, d=7)
    plan = paper_plan(problem, tol=2.0)
    first, second = (ss.run(problem, each) for each in (plan, ss.Plan.from_dict(plan.to_dict())))
    assert np.array_equal(first.x, second.x)
    assert np.array_equal(first.y, second.y)


def test_slide_and_run_are_one_method():
    problem = ss.gallery.synthetic(1.0, 1.0, d=6)
    plan = paper_plan(problem, order="gBf", loops=LOOPS)
    result = ss.run(problem, plan)
    B = problem.coupling
    components = {
        "f": ss.Component(lambda z: np.concatenate([problem.f.gradient(z[:6]), np.zeros(6)]), ss.Holder(1.0, 1.0)),
        "g": ss.Component(lambda z: np.concatenate([np.zeros(6), problem.g.gradient(z[6:])]), ss.Holder(1.0, 1.0)),
        "B": ss.Component(operator=lambda z: np.concatenate([B.adjoint(z[6:]), -B.forward(z[:6])]), lipschitz=2.0),
    }
    Z = ss.domains.Product(problem.X, problem.Y)
    z = ss.slide([components[letter] for letter in "gBf"], Z, np.zeros(12), LOOPS).z
    np.testing.assert_allclose(z, np.concatenate([result.x, result.y]), rtol=0.0, atol=1e-14)
