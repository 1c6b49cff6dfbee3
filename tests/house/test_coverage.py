"""The table of what is covered of the paper names files and tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

import saddleslide as ss
from support import gathered

ROOT = Path(__file__).resolve().parents[2]
SOURCE = Path(ss.__file__).parent


def lines():
    """Label, where and tests of every row."""
    text = (ROOT / "docs/paper.md").read_text(encoding="utf-8").split("| label | where | tests |\n|---|---|---|\n")[1]
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in text.split("\n\n")[0].splitlines()]


@gathered("row", lines(), ids=lambda row: row[0])
def test_a_row_names_what_exists(row):
    label, where, tests = row
    assert label
    for path in re.findall(r"`([a-z_/]+(?:\.py|/))`", where):
        assert (SOURCE / path).exists(), path
    file, found = "", re.findall(r"`([^`]*)::(\w+)`", tests)
    assert found
    for named, test in found:
        file = named or file
        assert re.search(rf"^def {test}\(", (ROOT / file).read_text(encoding="utf-8"), re.MULTILINE), (file, test)


def test_only_rows_with_a_reason_say_partly():
    assert len(lines()) >= 25
    partly = [row for row in lines() if "partly" in " ".join(row)]
    assert all("partly: " in row[2] for row in partly)
