"""Small parts of the experiments: keys, loops, rows, statistics, cells, prices."""

from __future__ import annotations

import math

import saddleslide as ss
from saddleslide.paper.instances import instance
from saddleslide.paper.methods import OneLevel
from saddleslide.paper.report import machine
from saddleslide.paper.rows import append_row, field_of, read_rows, share_costs
from saddleslide.paper.runner import find_missing, measure_costs, perform, versions
from saddleslide.paper.spec import Run, choose, load, loops_of
from saddleslide.paper.statistics import STATISTICS, values
from saddleslide.paper.tables import Cell, Table, Verdict, agreement, as_csv, as_markdown, numbers, read_printed


def test_a_key_does_not_depend_on_the_order_of_names():
    run = Run("budgets", "main", "recursion", {"family": "synthetic", "seed": 0}, {"tol": 0.5})
    assert run.key == Run("budgets", "main", "recursion", {"seed": 0, "family": "synthetic"}, {"tol": 0.5}).key


def test_experiments_come_in_the_fixed_order():
    assert [experiment.name for experiment in choose(["cost", "budgets"])] == ["budgets", "cost"]
    assert load("budgets").label == "tab:e2_mixed" and read_printed()["tab:e2_mixed"]["(1, 0.5)"]["gap"] == "0.152"


def test_the_innermost_loop_follows_from_the_outermost():
    assert loops_of({"nu_x": 1.0}, {"T_1": 8, "T_2": 2}) == [8, 2, 32]


def test_a_run_becomes_a_row():
    row = perform(Run("budgets", "main", "recursion", {"family": "synthetic", "nu_x": 1.0, "nu_y": 0.5}, {"tol": 0.5}))
    assert (row["status"], row["order"], row["calls"]) == ("done", "fgB", {"f": 16, "g": 96, "B": 1920})
    assert set(row["versions"]) == {"numpy", "python", "saddleslide", "scipy"}


def test_only_rows_of_this_version_are_finished():
    run = Run("budgets", "main", "recursion", {}, {})
    assert find_missing([run], {}) == [run]
    assert find_missing([run], {run.key: {"status": "done", "versions": versions()}}) == []
    assert find_missing([run], {run.key: {"status": "done", "versions": {"saddleslide": "0"}}}) == [run]


def test_an_infinite_number_in_a_row_is_none(tmp_path):
    append_row(tmp_path, {"key": "a", "status": "done", "gap": math.inf})
    assert read_rows(tmp_path) == {"a": {"key": "a", "status": "done", "gap": None}}


def test_fields_and_values_of_rows():
    assert field_of({"calls": {"f": 16}}, "calls.f") == 16 and field_of({"calls": 3}, "calls.f") is None
    assert values([{"gap": 1.0}, {"gap": None}], {"field": "gap"}) == [1.0]
    assert STATISTICS["same"]([{"N": 16}, {"N": 16}], {"field": "N"}, {}) == 16
    assert STATISTICS["same"]([{"N": 16}, {"N": 17}], {"field": "N"}, {}) == "16 or 17"
    assert STATISTICS["spread"]([{"N": 16}, {"N": 17}], {"field": "N"}, {}) == (16.0, 17.0)
    assert STATISTICS["quotient"]([], {"of": ["a", "b"]}, {"a": 6, "b": 4}) == 1.5


def test_rows_of_one_problem_share_their_prices():
    rows = {k: {"problem": {}, "prices": {"f": p, "g": 1.0, "B": 1.0}} for k, p in (("a", 1.0), ("b", 3.0))}
    assert share_costs(rows | {"c": {"problem": {}}})["a"]["prices"]["f"] == 2.0
    assert share_costs({"c": {"problem": {}}}) == {"c": {"problem": {}}}


def test_prices_are_of_all_oracles():
    found = measure_costs(instance({"family": "synthetic"}))
    assert set(found) == {"f", "g", "B"} and min(found.values()) >= 0.0
    assert machine()


def test_psi_is_zero_at_the_solution():
    given = instance({"family": "noisy", "bounded": False})
    assert given.Psi(*given.solution) == 0.0


def test_one_level_scales_the_whole_prox_weight():
    problem = ss.gallery.synthetic(1.0, 0.5, seed=0)
    assert OneLevel(steps=8, scale=0.75, metric="identity").levels(problem, problem.start(), 1.0)[0].term.M == 1.5


def test_cells_as_csv_as_markdown_and_in_the_summary():
    good = Cell("gap", "0.152", "0.152", "0", Verdict.AGREES)
    bad = Cell("gap", "0.152", "0.153", "+0.001", Verdict.DIFFERS)
    one, other = (Table("budgets", "e2", "", "Budgets", ("gap",), {"(1, 0.5)": (cell,)}) for cell in (good, bad))
    assert as_csv(one).splitlines()[1] == '"(1, 0.5)",gap,0.152,0.152,0,agrees,'
    assert as_markdown(other).splitlines()[-1] == "| (1, 0.5) | **0.153** (paper 0.152) |"
    found = agreement([one, other])
    assert found["agrees"] == found["differs"] == found["experiments"]["budgets"]["differs"] == 1
    assert [cell["ours"] for cell in found["differing"]] == ["0.153"] and agreement([])["agrees"] == 0
    assert good.verdict.is_judged and not Verdict.OURS.is_judged


def test_numbers_in_all_forms_of_print():
    assert numbers("1,843,204") == [1843204.0] and numbers("4.7\N{MULTIPLICATION SIGN}") == [4.7]
    assert numbers("fgB") == [] and numbers("3.10%") == [0.031]
