"""The checks as sessions: `nox` runs tests and lint, `nox -s docs` makes the site, `nox -s bench` takes a minute."""

from __future__ import annotations

import nox

nox.options.sessions = ["tests", "lint"]
nox.options.default_venv_backend = "venv"


@nox.session(python=["3.11", "3.12", "3.13", "3.14"])
def tests(session: nox.Session) -> None:
    """The suite on every Python that is found; what needs a heavy package is skipped without it."""
    session.install("-e", ".[test]")
    session.run("pytest", *session.posargs)


@nox.session
def everything(session: nox.Session) -> None:
    """The suite with all packages that some test needs, PyTorch and JAX among them; nothing is skipped."""
    session.install("-e", ".[test-all]")
    session.run("pytest", *session.posargs)


@nox.session
def oldest(session: nox.Session) -> None:
    """The suite on the oldest versions that are allowed."""
    session.install("-e", ".[test]", "-c", "constraints-oldest.txt")
    session.run("pytest", *session.posargs)


@nox.session
def lint(session: nox.Session) -> None:
    """Lint, format, types."""
    session.install("-e", ".[lint]")
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    session.run("mypy")


@nox.session
def docs(session: nox.Session) -> None:
    """The site, with every warning an error; open docs/_build/html/index.html."""
    session.install("-e", ".[docs,examples]")
    session.run("python", "-m", "sphinx", "-W", "--keep-going", "docs", "docs/_build/html", *session.posargs)


@nox.session
def bench(session: nox.Session) -> None:
    """Speed of the main pieces beside the committed ratios, with few repetitions."""
    session.install("-e", ".[test]")
    session.run("python", "-m", "benchmarks", "--rounds", "1", *session.posargs)
