"""Orders and budgets of Table e2_mixed at eps = 0.5.

The gaps of three rows are found by `saddleslide paper run budgets --quick` (tests/paper/test_paper.py), those of all by
the full run, whose verdict is in benchmarks/results/paper_summary.json.
"""

from __future__ import annotations

import saddleslide as ss
from support import gathered, paper_plan

# (nu_x, nu_y), levels, N_f, N_g, N_B.
ROWS = [
    ((1.0, 0.5), "fgB", 16, 96, 1920),
    ((1.0, 0.0), "fBg", 16, 115680, 1920),
    ((0.75, 0.25), "fBg", 31, 992, 1984),
    ((0.5, 0.5), "fgB", 93, 93, 2232),
    ((0.0, 0.0), "Bfg", 115680, 115680, 1920),
]


@gathered("nus, order, N_f, N_g, N_B", ROWS)
def test_orders_and_budgets_are_the_printed_ones(nus, order, N_f, N_g, N_B):
    plan = paper_plan(ss.gallery.synthetic(*nus), tol=0.5)
    assert plan.order == order and plan.predicted_calls == {"f": N_f, "g": N_g, "B": N_B}
