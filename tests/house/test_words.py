"""The glossary: retired words are gone from the names of the package, and its words have a place there."""

import ast
import re
from pathlib import Path

import saddleslide

SOURCE = Path(saddleslide.__file__).parent
PAGE = (Path(__file__).parents[2] / "docs" / "glossary.md").read_text(encoding="utf-8")


def names():
    """Names of modules, classes, functions, arguments and attributes."""
    for path in SOURCE.rglob("*.py"):
        yield path.stem
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef | ast.FunctionDef):
                yield node.name
            elif isinstance(node, ast.arg):
                yield node.arg
            elif isinstance(node, ast.Attribute):
                yield node.attr
            elif isinstance(node, ast.Name):
                yield node.id


def test_retired_words_name_nothing():
    retired = re.search(r"Retired words: (.*)\.", PAGE).group(1).split(", ")
    assert len(retired) >= 9
    found = {name for name in set(names()) for word in retired if re.search(rf"(^|_){word}(_|$)", name.lower())}
    assert not found


def test_words_of_the_glossary_are_used():
    words = [word for row in re.findall(r"^\| ([a-z ,]+) \|", PAGE, re.M)[1:] for word in row.split(", ")]
    assert len(words) > 20
    text = " ".join(path.read_text(encoding="utf-8") for path in SOURCE.rglob("*.py"))
    assert not [word for word in words if not re.search(rf"\b{word}s?\b", text)]
