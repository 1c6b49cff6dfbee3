"""The committed measurements on clusters say what the documents say."""

from __future__ import annotations

import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def stored(name):
    return json.loads((ROOT / "benchmarks" / "results" / name).read_text(encoding="utf-8"))


def test_every_killed_run_was_solved_with_the_same_bits_and_says_what_was_repeated():
    found = stored("cluster_kills.json")
    rows = found["rows"]
    assert len(rows) == 20 == found["summary"]["same_bits"]
    assert all(row["status"] == "SOLVED" and row["same_bits"] and row["workers_lost"] for row in rows)
    assert len({row["calls_f"] for row in rows}) == 1 == len({row["calls_to_workers"] for row in rows})
    for row in rows:
        # A worker that was killed between two calls may have left nothing open.
        assert all(again["parts"] and 1 <= again["call"] <= row["calls_to_workers"] for again in row["repeated"])
    assert sum(bool(row["repeated"]) for row in rows) >= 10


def test_tables_of_the_scaling_page_are_the_stored_measurements():
    sys.path.insert(0, str(ROOT))
    try:
        from benchmarks import cluster_scaling
    finally:
        sys.path.remove(str(ROOT))
    found, page = stored("cluster_scaling.json"), (ROOT / "docs" / "scaling.md").read_text(encoding="utf-8")
    assert cluster_scaling.in_page(page, found) == page
    assert cluster_scaling.predictions(found["fit"]) == found["predicted"]
    fit = {"latency_ms": 2.0, "MB_per_s": 1000.0}
    # Four workers: one level of latency, four arrays of 8 MB there and four back. Twenty: two levels.
    assert cluster_scaling.model(4, 10**6, **fit) == 2.0 + 8 * 8.0
    assert cluster_scaling.model(20, 10**6, **fit) == 2 * cluster_scaling.model(4, 10**6, **fit)
    assert cluster_scaling.model(21, 10**6, **fit) == 3 * cluster_scaling.model(4, 10**6, **fit)
    assert cluster_scaling.flat(1, 10**6, **fit) == cluster_scaling.model(1, 10**6, **fit) == 2.0 + 2 * 8.0


def test_a_call_with_a_million_entries_costs_at_most_fifteen_milliseconds_beyond_computing():
    rows = stored("cluster_scaling.json")["overhead"]
    large = [row for row in rows if row["size"] == 1_000_000 and row["way"] == "shared"]
    assert {row["workers"] for row in large} == {1, 2, 4}
    assert all(row["ms_median"] <= 15.0 for row in large)
