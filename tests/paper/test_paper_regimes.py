"""The paper's proved regimes in its reproduction: exponents, sampled runs, Psi, and what a table makes of them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from saddleslide.paper.figures import DRAWINGS
from saddleslide.paper.instances import instance
from saddleslide.paper.methods import compare_means, make_plan, promises
from saddleslide.paper.runner import perform
from saddleslide.paper.spec import Run, load
from saddleslide.paper.statistics import power_law
from saddleslide.paper.tables import Verdict, tables_of

FREE = {"family": "noisy", "bounded": False, "sigma_x": 0.3, "sigma_y": 0.2, "kappa_x": 3.0, "kappa_xy": 2.0}


def planned(problem, **settings):
    row = perform(Run("stochastic", "test", "plan", {"family": "noisy", **problem}, settings))
    assert row["status"] == "done", row.get("trace")
    return row


def test_counts_on_bounded_domains_are_the_corollarys():
    """Transcribed: max(sqrt(L Omega / eps), sigma^2 Omega / eps^2) of each gradient, L_xy Omega / eps for B."""
    eps, Omega = 1e-3, 12.0
    row = planned({"sigma_x": 0.7, "sigma_y": 0.0}, tol=eps)
    N = {"g": np.sqrt(Omega / eps), "B": 4.0 * Omega / eps, "f": 0.49 * Omega / eps**2}
    assert row["order"] == "gBf"
    for name, need in N.items():
        assert need <= row["planned"][name] <= 1.02 * need


def test_counts_of_restarts_are_the_sums_over_stages():
    """Transcribed: sqrt(kappa) + 8 sigma^2 / (delta Gamma_s) calls in stage s, Gamma_s = (3/4)^s Psi_0."""
    settings = {"tol": 0.02, "regime": "restarts", "factor": 1.0}
    row = planned(FREE, **settings)
    given = instance(FREE)
    Gamma = given.Psi(*given.problem.start()) * 0.75 ** np.arange(row["stages"]["planned"])
    for name, kappa, sigma in (("f", 3.0, 0.3), ("g", 1.0, 0.2)):
        need = np.sum(np.sqrt(kappa) + 8.0 * sigma**2 / Gamma)
        assert need <= row["planned"][name] <= 2.0 * need + 2.0 * len(Gamma)


def test_the_solution_of_the_free_instance_is_a_saddle_point():
    given = instance(FREE)
    problem, (x, y) = given.problem, given.solution
    assert np.allclose(problem.f.gradient(x) + problem.coupling.adjoint(y), 0.0, atol=1e-12)
    assert np.allclose(problem.coupling.forward(x) - problem.g.gradient(y), 0.0, atol=1e-12)


def test_Psi_is_the_papers_for_quadratics():
    """With f of Hessian H: mu |dx|^2 + 6 dx'H dx, the same for g."""
    given = instance(FREE)
    x, y = np.linspace(-1.0, 1.0, 6), np.linspace(2.0, 0.0, 6)
    dx, dy = x - given.solution[0], y - given.solution[1]
    expected = dx @ dx + 6.0 * dx @ (np.geomspace(1.0, 3.0, 6) * dx) + 7.0 * dy @ dy
    assert given.Psi(x, y) == pytest.approx(expected, rel=1e-12)


def test_sampled_runs_make_the_planned_calls_and_stay_below_the_bound():
    settings = {"tol": 0.4, "draws": 6}
    row = perform(Run("stochastic", "test", "sampled", {"family": "noisy", "sigma_x": 0.5, "sigma_y": 0.5}, settings))
    assert row["exact_draws"] == row["draws"] == 6
    assert row["samples"] == row["planned_samples"] == {name: row["planned"][name] for name in "fg"}
    assert 0.0 < row["monte_carlo"]["share"] < 1.0


def test_restarted_draws_are_judged_stage_by_stage():
    settings = {"tol": 2.0, "draws": 3, "regime": "restarts", "factor": 4.0}
    run = Run("stochastic", "test", "sampled", FREE, settings)
    row = perform(run)
    found = row["monte_carlo"]
    assert len(found["mean"]) == row["stages"]["planned"] == row["stages"]["made"] > 3
    plan = make_plan(instance(FREE), run)
    assert found["promised"] == promises(plan)
    assert found["promised"][0] == pytest.approx(0.75 * plan.constants["Psi0"].value)
    assert found["mean"][-1] < found["mean"][0] and row["exact_draws"] == 3


def test_shares_are_of_the_mean_with_two_errors():
    found = compare_means([[1.0, 2.0], [3.0, 2.0]], [8.0, 1.0])
    assert found["standard_error"] == [1.0, 0.0] and found["share"] == 2.0


def test_a_power_law_needs_two_points():
    assert power_law([(2.0, 8.0), (4.0, 64.0)]) == pytest.approx(3.0)
    with pytest.raises(ValueError, match="two points"):
        power_law([(2.0, 8.0), (2.0, 9.0)])


@pytest.fixture(scope="module")
def plans():
    """All rows of the stochastic experiment that cost next to nothing."""
    runs = [run for run in load("stochastic").runs() if run.method == "plan"]
    return {run.key: perform(run) for run in runs}


def test_every_row_of_the_stochastic_table_has_its_exponents(plans):
    """Two columns of the paper's table by three oracles: in eps, in sigma, and in the condition numbers."""
    tables = {table.name: table for table in tables_of(load("stochastic"), plans)}
    exponents = [cell for table in tables.values() for cell in table.cells() if cell.verdict is Verdict.AGREES]
    assert len(exponents) == 42
    assert not [cell for table in tables.values() for cell in table.cells() if cell.verdict is Verdict.DIFFERS]
    assert set(tables["bounded"].lines) == set(tables["restarts"].lines) == {"none", "f", "g", "f and g"}


def test_a_wrong_count_is_found(plans):
    """Counts of f' that grow like 1/eps where 1/eps^2 is promised."""
    wrong = {key: row | {"planned": row["planned"] | {"f": 1.0 / row["settings"]["tol"]}} for key, row in plans.items()}
    table = next(table for table in tables_of(load("stochastic"), wrong) if table.name == "bounded")
    assert {cell.head: cell.verdict for cell in table.lines["f"]}["f' in 1/eps"] is Verdict.DIFFERS


def test_restarts_cover_every_row_of_the_papers_tables():
    tables = {table.name: table for table in tables_of(load("restarts"), {})}
    assert set(tables["holder"].lines) == set(tables["holder_y"].lines) == {"0", "0.25", "0.5", "0.75"}
    assert set(tables["condition"].lines) == {"kappa_x: calls of f", "kappa_y: calls of g", "kappa_xy: calls of B"}
    assert set(tables["mixed"].lines) == {"y, (1, 1)", "y, (1, 0.5)", "y, (0.5, 0.5)", "x, (1, 1)"}


def test_the_figure_of_restarts_leaves_plans_without_runs_aside():
    """Plans that grow with H were not carried out: no restart was made, and none can be divided by."""
    every = load("restarts").runs()
    names = ("kappa_x", "kappa_y", "kappa_xy", "holder H")
    some = [next(run for run in every if run.group == name) for name in names]
    some.append(next(run for run in every if run.group == "holder" and run.settings["tol"] == 1e-7))
    rows = [perform(run) for run in some]
    assert {row["status"] for row in rows} == {"done"} and rows[3]["stages"]["made"] == 0
    right = DRAWINGS["restarts"](rows).axes[1]
    assert [line.get_label().split()[-1] for line in right.lines] == ["kappa_x", "kappa_y", "kappa_xy"]


def test_figures_of_the_regimes_want_their_rows(plans):
    assert DRAWINGS["restarts"]([]) is None and DRAWINGS["stochastic"](list(plans.values())) is None
    run = next(run for run in load("stochastic").runs() if run.group == "game")
    some = perform(replace(run, settings=run.settings | {"draws": 2}))
    figure = DRAWINGS["stochastic"]([*plans.values(), some])
    assert [ax.get_title()[:3] for ax in figure.axes] == ["(a)", "(b)"]
