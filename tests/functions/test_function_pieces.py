"""The small answers that functions are made of, each at one point where it can be read off."""

import math

import numpy as np

import saddleslide as ss
from saddleslide.facts.noise import check_sample
from saddleslide.functions.blockwise import join_smoothness
from saddleslide.functions.constants import (
    exponent,
    hessian_diagonal,
    leaves,
    list_declared_forms,
    modulus_for_bounds,
    rests_on_declaration,
    smoothness_at_hand,
    takes_products,
)
from saddleslide.functions.entries import _between, minimal_entries
from saddleslide.functions.lifted import linear_models, make_lift
from saddleslide.functions.losses import _beyond_linear
from saddleslide.functions.minimum import LowerModel, careful_sum, has_closed_minimum, keep_modulus, minimiser_distance
from saddleslide.functions.parts import (
    add_terms,
    built_part,
    evaluate_parts,
    halves,
    sum_block,
    sum_in_pieces,
    whole_blocks,
)
from saddleslide.functions.remembered import Memory, Remembered
from saddleslide.functions.roundings import EXACTLY, NO_ROUNDING, Errors, Rounding, inner_error, join, round_linear
from saddleslide.functions.scaled import without_silent_noise
from saddleslide.functions.searched import Tally, TiltedMinimum, model_minimum, split_simple, wrong_slope_cost
from saddleslide.functions.separable import SeparableForm, balance_size, form_beside
from saddleslide.functions.trust import (
    certain_modulus,
    errors_at,
    gradient_aside,
    inside,
    is_ours,
    read_rounding,
    run_aside,
    runs_own_code,
    value_aside,
)

F, D = ss.functions, ss.domains
WHOLE, BALL, BOX = D.FullSpace(2), D.Ball(1.0, shape=2), D.Box(-1.0, 1.0, shape=2)
ONE, OWN = np.ones(1), F.Custom(lambda x: x, lambda x: 0.5 * x @ x, strong_convexity=1.0)


def test_what_is_known_without_a_product():
    A = ss.operators.as_operator((np.copy, np.copy), (2,), (2,))
    assert [takes_products(F.LeastSquares(matrix, np.ones(2))) for matrix in (A, np.eye(2))] == [True, False]
    assert smoothness_at_hand(F.Quadratic(3.0), WHOLE) == ss.Holder(1.0, 3.0)
    assert exponent(F.LeastSquares(A, np.ones(2)) + F.Power(0.5), BALL) == 0.5
    assert hessian_diagonal(F.LeastSquares(np.diag([1.0, 3.0]), np.zeros(2)), (2,)).tolist() == [1.0, 9.0]


def test_what_is_of_the_callers_is_told_from_ours():
    class Mine(F.Quadratic):
        pass

    assert [is_ours(kind(1.0), F.Quadratic) for kind in (F.Quadratic, Mine)] == [True, False]
    assert [runs_own_code(f) for f in (F.Zero(), 2.0 * OWN, OWN + F.Zero())] == [False, True, True]
    assert run_aside(OWN, lambda: OWN.gradient(ONE)).tolist() == [1.0]
    assert gradient_aside(F.Quadratic(2.0), ONE).tolist() == [2.0] and value_aside(F.Quadratic(2.0), np.ones(3)) == 3.0


def test_moduli_that_bounds_rest_on():
    assert certain_modulus(F.Quadratic(2.0), WHOLE) == 2.0
    assert [modulus_for_bounds(OWN, F.Zero(), domain) for domain in (BOX, WHOLE)] == [0.0, 1.0]
    assert [rests_on_declaration(OWN, domain) for domain in (WHOLE, BALL)] == [True, False]
    assert list_declared_forms(F.Power(0.5) + F.Linear([1.0, 2.0])) == ()
    assert [repr(leaf) for leaf in leaves(2.0 * F.Zero() + F.Huber(1.0))] == ["Zero()", "Huber(1)"]
    assert keep_modulus(2.0, BALL) == 2.0 > keep_modulus(2.0, WHOLE)
    both = [ss.Holder(1.0, 2.0), ss.Holder(1.0, 3.0)]
    assert join_smoothness(both, D.FullSpace((2, 1))) == ss.Holder(1.0, 3.0)


def test_separable_forms():
    assert (2.0 * F.Quadratic(1.5)).separable_form().quadratic == 3.0
    assert SeparableForm(quadratic=2.0, linear=-3.0).size(ONE) == 4.0
    assert form_beside(F.Linear([1.0, 2.0]), np.zeros(2)).linear.tolist() == [1.0, 2.0]
    found = balance_size(SeparableForm(hubers=((1.0, 0.5),)), np.array([0.0, 0.5, 3.0]), 2.0)
    assert found.tolist() == [0.0, 0.125, 1.0]
    middles = _between(np.array([-1.0, 1.0, 1.0, 0.0]), np.array([4.0, 1e100, 3.0, 1.0]))
    assert middles.tolist() == [0.0, 1e50, 2.0, 2.2227587494850775e-162]
    entries = minimal_entries(F.Power(0.0), np.array([0.5, -3.0]), -np.ones(2), np.ones(2))
    assert (entries.point.tolist(), entries.missed.tolist(), entries.method) == ([0.0, 1.0], [0.0, 0.0], "closed form")


def test_minima_and_what_bounds_them():
    assert careful_sum(np.array([1e16, 1.0, -1e16])) == (1.0, 0)
    f = F.LeastSquares(np.eye(2), [1.0, 2.0])
    assert [has_closed_minimum(part, BALL) for part in (f, F.Quadratic(1.0))] == [False, True]
    line, here = D.FullSpace(1), TiltedMinimum(np.zeros(1), 0.0, 0.0, "")
    assert 1.0 < minimiser_distance(F.Power(nu=0.5), ONE, line, 1e-16, here, 0.0) < 1.01
    assert minimiser_distance(F.Linear(ONE), -ONE, line, 1e-16, here, 0.0) == math.inf
    assert wrong_slope_cost(0.5, way=2.0, distance=10.0, modulus=1.0) == 1.125
    bound, lost = model_minimum(1.0, ONE, np.zeros(1), 2.0, F.Zero(), line, Errors(0.0, 0.0))
    assert round(bound, 12) == 0.75 and lost < 1e-14
    loss, l1 = F.Logistic(np.eye(2), [1, -1]), F.Power(0.0)
    assert split_simple(loss + l1, WHOLE) == (loss, l1)
    tally = Tally(most=2.0)
    tally.count(1.5)
    assert tally.gradients == 1.5 and not tally.allows(1.0)


def test_lower_models():
    assert LowerModel.at(2.0 * ONE, value=1.0, gradient=3.0 * ONE).constant == -5.0
    bent = LowerModel.at(ONE, value=0.5, gradient=ONE, curvature=1.0)
    assert bent.constant == 0.0 and bent.slope.tolist() == [0.0]
    rounded = LowerModel.from_gradient(F.Quadratic(1.0), D.Box(-1.0, 1.0, shape=1), ONE, 0.5, ONE, 0.0)
    assert -0.5 - 1e-14 < rounded.constant < -0.5
    assert LowerModel(1.0, np.array([1.0, -2.0])).tilted_minimum(np.zeros(2), BOX).value == -2.0


def test_sizes_of_rounding():
    assert inner_error(16) < 1e-14 and inner_error(10**6) < 1e-11
    assert Rounding().at(3.0, 0.0) == (0.0, 0.0) and read_rounding(F.Zero()).at(1.0, 0.0).value == 0.0
    squares = Rounding(value=((0.0, 0.0, 1e-15), *EXACTLY[1:]))
    assert squares.at(size=1.0, value=2.0).value < squares.times(10.0).at(size=1.0, value=20.0).value
    first, second = (Rounding(value=((1.0, root, 0.0), *EXACTLY[1:])) for root in (3.0, 4.0))
    assert first.plus(second).value[0] == (2.0, 5.0, 0.0)
    assert Rounding().over_levels(10).at(1.0, 1.0).value > Rounding().at(1.0, 1.0).value
    assert join([NO_ROUNDING, NO_ROUNDING]) == NO_ROUNDING
    assert round_linear(np.array([3.0, 4.0])).floor == (0.0, 5.0, 0.0) and round_linear(np.array(3.0)).floor == (
        0.0,
        0.0,
        3.0,
    )
    assert 1e-8 < errors_at(F.LeastSquares(np.eye(1), [1e9]), np.array([1e9 + 1.0]), 0.5).value < 1e-5
    error, norm = F.LeastSquares(3.0 * np.eye(2), np.zeros(2)).product_sizes
    assert 3.0 <= norm < 3.1 and 0.0 < error < 1e-14
    assert f"{_beyond_linear(np.array([1e-9])).item():.12e}" == "4.999999998333e-19"  # u^2/2 - u^3/6


def test_linear_models_and_quadratics_inside():
    f = F.LeastSquares(np.eye(2), np.ones(2))
    assert [weight for weight, _ in linear_models(2.0 * f + f)] == [2.0, 1.0]
    assert linear_models(f + F.Quadratic(1.0)) == []
    assert type(make_lift(f, np.zeros(2))).__name__ == "LinearModelLift"
    assert [part.linear_image for part in inside(2.0 * f + F.Quadratic(1.0)) if part.linear_image] == [f.A]
    assert [part.matrix_test is None for part in inside(2.0 * F.Quadratic(1.0) + F.Zero())] == [True, True, False, True]
    assert F.Quadratic(np.array([[2.0, 1.0], [1.0, 3.0]])).hessian_diagonal((2,)).tolist() == [2.0, 3.0]
    skew = (lambda x: np.array([x[0] + 1e-8 * x[1], x[1]])), (lambda y: np.array([y[0], y[1] + 1e-8 * y[0]]))
    assert 1e-8 < F.Quadratic(skew, x_shape=(2,)).symmetry_test.bound < 1e-5


def test_sums_of_parts_along_a_tree():
    assert [halves(block)[0][1] for block in ((0, 8), (0, 5), (4, 6))] == [4, 4, 5] and halves((0, 6)) == (
        (0, 4),
        (4, 6),
    )
    assert sum_block((0, 3), lambda block: ((float(block[0]),), None) if block[1] - block[0] == 1 else None)[0] == (
        3.0,
    )
    numbers, array = sum_in_pieces((0, 2), {(0, 1): ((1.0,), np.ones(2)), (1, 2): ((2.0,), np.ones(2))}, np.empty(2))
    assert numbers == (3.0,) and array.tolist() == [2.0, 2.0]
    assert add_terms(((1.0,), None), ((2.0,), None)) == ((3.0,), None)
    assert whole_blocks(8, [0, 1, 2, 3, 5, 6, 7]) == [(0, 4), (5, 6), (6, 8)]
    assert isinstance(built_part(lambda: F.Quadratic(1.0), 0, "PartSum"), F.Quadratic)
    numbers, array = evaluate_parts(
        [F.Quadratic(k) for k in (1.0, 2.0, 3.0)].__getitem__, "both", ONE, (0, 3), chosen=[0, 2]
    )
    assert numbers == (2.0,) and array.tolist() == [4.0]
    parts = F.PartSum([F.Quadratic(1.0), F.Quadratic(3.0)])
    assert [constants.strong_convexity for constants in parts.part_constants(WHOLE)] == [1.0, 3.0]
    stacked = F.PartSum([F.LeastSquares(scale * np.eye(2), np.zeros(2)) for scale in (3.0, 4.0)])
    assert round(stacked.stacked_norm(WHOLE), 9) == 5.0


def test_samples_and_memories():
    noisy = F.Noisy(F.Quadratic(1.0), sigma=0.0)
    assert repr(without_silent_noise(2.0 * noisy)) == "2 * Quadratic(diagonal, any shape)"
    check_sample(F.Noisy(F.Quadratic(1.0), sigma=0.5), D.FullSpace(3), "f")
    assert F.MiniBatch(F.LeastSquares(np.eye(2), [1.0, 0.0]), batch=1).variance_at(np.zeros(2)) == 1.0
    lines = F.PartSum([F.Linear([1.0]), F.Linear([3.0])])
    assert F.SampledParts(lines, batch=1).variance_at(np.zeros(1)) == 4.0
    memory = Memory()
    memory.keep(np.ones(2), 1.0, np.ones(2))
    assert Remembered(F.Quadratic(1.0), memory, WHOLE).value(np.ones(2)) == 1.0
