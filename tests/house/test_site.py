"""The site: every page has its place, and what its pages say runs."""

import re
from pathlib import Path

import pytest

import support
from browser import opened

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"


def blocks(page, kind):
    return re.findall(
        rf"^```{kind}\n(.*?)^```$", (DOCS / page).read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE
    )


def test_every_page_is_in_the_contents():
    pages = [page.name for page in DOCS.glob("*.md")]
    lines = [line for page in pages for block in blocks(page, r"\{toctree\}") for line in block.splitlines()]
    listed = {re.sub(r".*<(.*)>", r"\1", line) for line in lines}
    assert {page.stem for page in DOCS.glob("*.md")} - {"index"} <= listed


def test_lines_beside_those_of_other_libraries_run():
    names = {}
    exec(compile(blocks("recipes.md", "python")[0], "docs/recipes.md", "exec"), names)
    for block in blocks("coming.md", "python"):
        for statement in block.strip().replace("\nr = ", "\n\0r = ").split("\0"):
            exec(compile(statement, "docs/coming.md", "exec"), names)
            assert names["r"].success, statement


def test_the_first_example_of_the_site_runs():
    names = {}
    exec(compile("".join(blocks("start.md", "python start")), "docs/start.md", "exec"), names)
    assert names["result"].success and names["result"].x.shape == (32, 32)


def test_examples_of_the_gallery_have_a_title_and_a_picture_each():
    examples = sorted((ROOT / "examples" / "gallery").glob("plot_*.py"))
    assert len(examples) >= 15
    for example in examples:
        text = example.read_text(encoding="utf-8")
        assert re.match(r'"""\n(.+)\n(=+)\n\n.+', text), example.name
        title, line = text.splitlines()[1:3]
        assert len(title) == len(line), example.name
        compile(text, example.name, "exec")


def test_the_site_in_a_browser():
    """Made by `.ci/run` or `python -m sphinx docs docs/_build/html`: search answers, pages load all they name."""
    site = DOCS / "_build" / "html"
    # Written when all else is there.
    if not (site / "searchindex.js").exists():
        made_by = "site: python -m sphinx -D plot_gallery=0 docs docs/_build/html"
        (pytest.skip if support.SKIPS else pytest.fail)(support.MISSING.format(made_by))
    found, log = opened(site / "search.html", "--dump-dom", "--virtual-time-budget=5000", query="q=isotropic")
    assert int(re.search(r"found (\d+) pages? matching", found)[1]) >= 5
    assert 'href="recipes.html' in found
    for page in ("index.html", "howto.html", "reference/generated/saddleslide.functions.L21.html"):
        shown, console = opened(site / page, "--dump-dom", "--virtual-time-budget=3000")
        assert "<h1>" in shown
        log += console
    assert not [line for line in log if re.search(r"Uncaught|Failed to load|ERR_|Refused", line)]
