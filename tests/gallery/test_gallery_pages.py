"""The pages of the gallery: their lines run as printed in an empty directory and make the picture they show."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from support import need

ROOT = Path(__file__).resolve().parents[2]
PAGES = ["tomography", "games", "constrained", "transport", "pictures", "consensus", "inverse", "synthetic"]


def lines_of(page):
    text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"^```python\n(.*?)^```$", text, flags=re.DOTALL | re.MULTILINE)
    return text, block


@pytest.fixture
def printed(tmp_path, monkeypatch, capsys):
    """Runs lines in an empty directory: what they print."""
    monkeypatch.chdir(tmp_path)

    def run(block):
        exec(compile(block, "page", "exec"), {"__name__": "__main__"})
        return capsys.readouterr().out

    return run


@pytest.mark.parametrize("page", PAGES)
def test_lines_of_the_page_make_its_picture(page, printed, tmp_path):
    text, block = lines_of(page)
    assert printed(block)
    picture = re.findall(r"!\[[^\]]+\]\(pictures/([^)]+)\)", text)[0]
    made = (tmp_path / picture).read_bytes()
    assert made.startswith(b"\x89PNG")
    assert (ROOT / "docs" / "pictures" / picture).read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("page", PAGES)
def test_ten_lines_are_enough(page):
    statements = [line for line in lines_of(page)[1].splitlines() if line.strip() and "import" not in line]
    assert len(statements) <= 10


def test_every_page_is_linked_from_the_readme():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert all(f"(docs/{page}.md)" in readme for page in PAGES)


def test_lines_of_the_realistic_instances_make_their_picture(printed, tmp_path):
    text = (ROOT / "docs" / "tomography.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"^```python realistic\n(.*?)^```$", text, flags=re.DOTALL | re.MULTILINE)
    small = block.replace("size = None", "size = 16")
    assert small != block
    shown = [line.split("|")[1].strip() for line in printed(small).splitlines()]
    assert shown == re.findall(r"^\| (\w+) \| \d", text, re.M)
    assert (tmp_path / "realistic.png").read_bytes().startswith(b"\x89PNG")
    assert (ROOT / "docs" / "pictures" / "realistic.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("language", "says"),
    [("python", "met_as_declared"), ("python complex", "SOLVED_WITHIN"), ("python torch", "torch.Tensor")],
)
def test_lines_on_your_own_operators_and_arrays_run(language, says, printed):
    text = (ROOT / "docs" / "own.md").read_text(encoding="utf-8")
    if "torch" in language:
        need("torch")
    (block,) = re.findall(rf"^```{language}\n(.*?)^```$", text, flags=re.DOTALL | re.MULTILINE)
    assert says in printed(block)
