"""The page of the contract against the code: every status is on it, and every failure names a test that exists."""

import importlib.util
import json
import re
from pathlib import Path

import saddleslide as ss

FOLDER = Path(__file__).resolve().parents[1]
PAGE = (FOLDER.parent / "docs" / "contract.md").read_text(encoding="utf-8")


def test_every_status_is_in_the_table():
    table = PAGE.partition("## Statuses")[2].partition("## Limits")[0]
    assert {status.name for status in ss.Status} == set(re.findall(r"`([A-Z][A-Z_]+)`", table))


def test_every_failure_names_a_test_that_exists():
    table = PAGE.partition("ways to fail")[2].partition("## Measured")[0]
    rows = [line.split("|")[1:-1] for line in table.splitlines() if line.startswith("| ")][1:]
    assert len(rows) >= 30 and all(len(row) == 3 for row in rows)
    named = [re.search(r"(test_\w+\.py)::(test_\w+)", row[2]) or row[2].strip() for row in rows]
    assert named[0] != "the same" and all(name == "the same" or not isinstance(name, str) for name in named)
    for found in named:
        if found != "the same":
            text = next(FOLDER.rglob(found[1])).read_text(encoding="utf-8")
            assert f"def {found[2]}(" in text, found[0]


def test_every_mutant_is_one_place_of_the_core():
    """Else a change of the code would leave a mutant that says nothing; and each was caught when it was run last."""
    spec = importlib.util.spec_from_file_location("mutants", FOLDER.parent / "benchmarks" / "mutants.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    source = FOLDER.parent / "src" / "saddleslide"
    stored = json.loads((FOLDER.parent / "benchmarks" / "results" / "mutants.json").read_text(encoding="utf-8"))
    assert {tuple(row["mutant"]) for row in stored if row["outcome"] == "killed"} == {m[:3] for m in module.MUTANTS}
    for name, old, new, tests in module.MUTANTS:
        assert (source / name).read_text(encoding="utf-8").count(old) == 1, (name, old)
        assert new != old and all((FOLDER.parent / test.partition("::")[0]).exists() for test in tests)
