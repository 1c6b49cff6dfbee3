"""Small parts of the theory that everything else rests on."""

import math

import pytest

from saddleslide import Holder
from saddleslide.theory import Term, place
from saddleslide.theory.bounds import drift, noise_bound, noise_weights
from saddleslide.theory.holder import total
from saddleslide.theory.hypotheses import Constant, Hypothesis, all_hold, rests_on_estimate
from saddleslide.theory.noise import is_noisy, prove_accuracy, steady
from saddleslide.theory.restarts import Curvature, Stage, anchor_calls, lengthen, practical_stage, with_anchors


def test_a_sum_of_functions_has_the_condition_that_its_parts_share():
    assert total([Holder(1.0, 1.0), Holder(1.0, 2.0)], math.inf) == Holder(1.0, 3.0)
    assert total([Holder(1.0, 1.0), Holder(0.5, 1.0)], math.inf) is None
    assert total([Holder(1.0, 1.0), None], 1.0) is None


def test_what_rests_on_an_estimate_or_an_open_hypothesis():
    assert not rests_on_estimate({"sigma2_x": Constant(1.0, "declared")})
    open_one = Hypothesis("x* lies inside X", "unknown", for_gap=True)
    assert all_hold([open_one], for_gap=False) and not all_hold([open_one])


def test_noise_of_one_level():
    term = Term("f", variance=1.0, Omega=4.0)
    assert is_noisy([term, Term("B", M=1.0)]) and not is_noisy([Term("B", M=1.0)])
    assert [found.tau for found in steady([term, Term("B", M=1.0)], loops=(4, 2))] == [2.0, 0.0]
    placed = place(steady([term], (1,)), (1,))
    assert noise_weights(placed) == [(1.0, 1.0)] and noise_bound(placed) == 4.0
    assert drift(place([Term("f", variance=4.0, tau=2.0)], (1,))[0], 3.0) == 3.0
    assert 0.01 < prove_accuracy([term, Term("B", M=1.0, Omega=4.0)], tol=0.5) < 0.5


def test_anchors_stages_and_their_calls():
    assert with_anchors(Curvature(Holder(1.0, 2.0), Holder(1.0, 4.0), L_xy=3.0), 1.0, 1.0).delta_x == 0.25
    anchored = Stage(place([Term("f", variance=1.0), Term("g")], (1, 1)), 1.0, 0.1, 0.1, anchor_batch=8)
    assert (anchor_calls(anchored, "f"), anchor_calls(anchored, "g")) == (8, 1)
    curvature = Curvature(Holder(1.0, 100.0), Holder(1.0, 400.0), L_xy=2.0, mu_x=1.0, mu_y=1.0)
    stage = practical_stage(curvature, Omega=1.0)
    assert "".join(level.term.name for level in stage.levels) == "Bfg"
    assert [level.N for level in lengthen(stage, 2.0).levels] == [4, 20, 40]
    assert curvature.kappa_xy == pytest.approx(4.0)
