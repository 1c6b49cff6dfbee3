"""Table e2_mixed of the paper to the printed digit at eps = 0.5: seeds 0, 1, 2; in its two longest rows one or none.

`saddleslide paper run budgets` finds the gap of the row without; benchmarks/results/paper_summary.json has the verdict.
"""

from __future__ import annotations

import pytest

import saddleslide as ss
from support import paper_plan

# (nu_x, nu_y), levels, N_f, N_g, N_B, seeds, their gaps as printed: smallest, median and largest, or the median.
ROWS = [
    ((1.0, 0.5), "fgB", 16, 96, 1920, (0, 1, 2), ["0.108", "0.152", "0.196"]),
    ((1.0, 0.0), "fBg", 16, 115680, 1920, (2,), ["0.417"]),
    ((0.75, 0.25), "fBg", 31, 992, 1984, (0, 1, 2), ["0.094", "0.147", "0.185"]),
    ((0.5, 0.5), "fgB", 93, 93, 2232, (0, 1, 2), ["0.073", "0.127", "0.159"]),
    ((0.0, 0.0), "Bfg", 115680, 115680, 1920, (), []),
]


@pytest.mark.parametrize(("nus", "order", "N_f", "N_g", "N_B", "seeds", "printed"), ROWS, ids=[str(r[0]) for r in ROWS])
def test_row_is_reproduced_to_the_printed_digit(nus, order, N_f, N_g, N_B, seeds, printed):
    plan = paper_plan(ss.gallery.synthetic(*nus), tol=0.5)
    assert plan.order == order and plan.predicted_calls == {"f": N_f, "g": N_g, "B": N_B}
    gaps = []
    for seed in seeds:
        problem = ss.gallery.synthetic(*nus, seed=seed)
        result = ss.run(problem, paper_plan(problem, tol=0.5))
        assert result.counted == ss.Calls(N_f, N_g, N_B)
        assert result.method_calls.B == N_B - 4
        gaps.append(result.gap)
    assert [f"{gap:.3f}" for gap in sorted(gaps)] == printed
