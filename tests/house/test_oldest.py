"""What an install promises: floors that were tried, one set of files in the source distribution, two ways to start."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import saddleslide as ss
import support
from saddleslide.cli import main as cli

ROOT = Path(__file__).parents[2]
DATA = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def numbers(version):
    return [int(part) for part in version.split(".")]


def test_the_oldest_versions_are_the_floors():
    floors = dict(requirement.split(">=") for requirement in DATA["project"]["dependencies"])
    lines = (ROOT / "constraints-oldest.txt").read_text(encoding="utf-8").splitlines()
    tried = dict(line.split("==") for line in lines if not line.startswith("#"))
    assert set(floors) <= set(tried)
    for name, floor in floors.items():
        assert numbers(tried[name])[: len(numbers(floor))] == numbers(floor), name
        assert not any(numbers(tried[name])[len(numbers(floor)) :]), name


def test_pictures_need_no_extra():
    assert any(requirement.startswith("matplotlib") for requirement in DATA["project"]["dependencies"])
    assert "plot" not in DATA["project"]["optional-dependencies"]
    lines = "import sys, saddleslide; print('matplotlib' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", lines], capture_output=True, text=True, check=True)
    assert found.stdout == "False\n"


def packages_of(extra):
    """The packages of an extra, with those of the extras that it names."""
    found = set()
    for requirement in DATA["project"]["optional-dependencies"][extra]:
        own = re.match(r"saddleslide\[([\w,-]+)\]", requirement)
        parts = own[1].split(",") if own else []
        found |= {package for part in parts for package in packages_of(part)} or {re.match(r"[\w-]+", requirement)[0]}
    return found


def test_light_tests_need_no_large_package_and_all_tests_are_run_in_the_end():
    light, everything, extras = packages_of("test"), packages_of("test-all"), DATA["project"]["optional-dependencies"]
    assert not light & (packages_of("jax") | packages_of("dask") | packages_of("torch") | {"scikit-learn", "zarr"})
    assert everything >= light | packages_of("examples") | packages_of("odl") | {"torch", "pyproximal"}
    # Newer ones are installed with several GB of CUDA packages.
    assert [name for name in extras["test-all"] if name.startswith("torch")] == ["torch==2.13.0"]
    lines = [line.strip() for line in (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()]
    install = lines.index('.venv/bin/python -m pip install -q -e ".[test-all]"')
    assert ".venv/bin/python -m pytest --left-out" in lines[install:]


def test_what_a_missing_package_skips_is_a_failure_when_it_is_asked_for(monkeypatch):
    with pytest.raises(pytest.skip.Exception, match="left out without no_such_package"):
        support.need("no_such_package.part")
    monkeypatch.setattr(support, "SKIPS", False)
    with pytest.raises(ModuleNotFoundError):
        support.need("no_such_package.part")


def test_the_source_distribution_has_what_its_tests_look_at():
    included = [name.removeprefix("/") for name in DATA["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]]
    assert all((ROOT / name).exists() for name in included)
    documents = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]
    wanted = {path.name for path in documents if path.parent == ROOT}
    wanted |= {"CITATION.cff", "LICENSE", "constraints-oldest.txt"}
    for document in documents:
        for target in re.findall(r"\]\(([^)#]+)\)", document.read_text(encoding="utf-8")):
            if not target.startswith("https://"):
                wanted.add((document.parent / target).resolve().relative_to(ROOT.resolve()).parts[0])
    for test in (ROOT / "tests").rglob("*.py"):
        wanted |= set(re.findall(r'text\("([\w.-]+)"\)', test.read_text(encoding="utf-8")))
    # pyproject.toml and .gitignore are always taken along.
    assert wanted - {"pyproject.toml"} <= set(included)


@pytest.mark.parametrize("start", [["-m", "saddleslide"], ["-m", "saddleslide.cli.main"]])
def test_the_command_says_its_version(start):
    said = subprocess.run([sys.executable, *start, "--version"], capture_output=True, text=True, check=True)
    assert said.stdout == f"saddleslide {ss.__version__}\n" and said.stderr == ""


def test_the_help_names_the_option(capsys):
    with pytest.raises(SystemExit):
        cli.main(["--help"])
    assert "--version" in capsys.readouterr().out
