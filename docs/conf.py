"""The documentation site: `python -m sphinx -W docs docs/_build/html` makes pages that open from disk."""

from __future__ import annotations

import importlib
import inspect
import re
from pathlib import Path
from typing import Any

import saddleslide

project = "saddleslide"
author = "The saddleslide developers"
version = release = saddleslide.__version__
project_copyright = author

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
templates_path = ["_templates"]
exclude_patterns = ["_templates", "_build", "gallery/*.ipynb", "gallery/*.py", "gallery/*.md5", "**/*.codeobj.json"]
nitpicky = False

# Pages are Markdown that also reads well in the repository: links to headings work in both.
myst_heading_anchors = 4
myst_enable_extensions = ["colon_fence", "dollarmath"]
# Blocks of code whose second word names a test that runs them.
suppress_warnings = ["misc.highlighting_failure"]

numpydoc_show_class_members = False
numpydoc_class_members_toctree = False
autosummary_generate = True
autodoc_typehints = "none"
default_role = "literal"

sphinx_gallery_conf = {
    "examples_dirs": "../examples/gallery",
    "gallery_dirs": "gallery",
    "filename_pattern": r"/plot_",
    "subsection_order": [f"../examples/gallery/{room}" for room in ("pictures", "learning", "games", "working")],
    "within_subsection_order": "FileNameSortKey",
    "download_all_examples": False,
    "show_signature": False,
    "write_computation_times": False,
    "show_memory": False,
    "remove_config_comments": True,
    "abort_on_example_error": True,
}

html_theme = "pydata_sphinx_theme"
html_title = "saddleslide"
html_show_sourcelink = False
# Summaries are fetched, which browsers refuse to pages from disk.
html_show_search_summary = False
html_theme_options = {
    "navigation_with_keys": False,
    "show_prev_next": True,
    "show_toc_level": 2,
    "header_links_before_dropdown": 6,
    "footer_start": ["copyright"],
    "footer_end": [],
    "navbar_end": ["theme-switcher"],
    # Nothing is fetched from elsewhere: the pages work without a network.
    "show_version_warning_banner": False,
}
html_static_path = ["_static"]
html_css_files = ["site.css"]
# Pages without neighbours in their section leave the room to the code.
html_sidebars: dict[str, list[str]] = {page: [] for page in ("index", "start", "recipes", "coming", "search")}

# One page a room of public names, from its `__all__`: what is public is in the reference, and nothing else is.
ROOMS = (
    ("saddleslide", "Solving"),
    ("saddleslide.functions", "Functions"),
    ("saddleslide.domains", "Sets"),
    ("saddleslide.operators", "Operators"),
    ("saddleslide.methods", "Methods"),
    ("saddleslide.metrics", "Metrics"),
    ("saddleslide.gallery", "Problems ready to solve"),
    ("saddleslide.distributed", "Clusters"),
    ("saddleslide.theory", "Theory"),
    ("saddleslide.errors", "Errors"),
)


def list_names(room: str) -> str:
    """The page of a room: what it is for, and a table of its names, each with a page of its own."""
    module = importlib.import_module(room)
    told = () if room == "saddleslide" else saddleslide.__all__
    names = [name for name in module.__all__ if name not in told and not inspect.ismodule(getattr(module, name))]
    if room == "saddleslide":
        # What is called stands before what comes back.
        names.sort(key=lambda name: inspect.isclass(getattr(module, name)))
    table = "\n".join(f"   {name}" for name in names)
    return (
        f"{inspect.getdoc(module)}\n\n.. currentmodule:: {room}\n\n"
        f".. autosummary::\n   :toctree: generated\n   :nosignatures:\n\n{table}\n"
    )


def write_reference(folder: Path) -> None:
    """The reference, written before Sphinx reads it; pages that have not changed stay, so that a build is short."""
    folder.mkdir(exist_ok=True)
    pages = {room.replace(".", "_"): f"{title}\n{'=' * len(title)}\n\n{list_names(room)}" for room, title in ROOMS}
    listing = "\n".join(f"   {name}" for name in pages)
    pages["index"] = f"Every public name\n=================\n\n.. toctree::\n   :maxdepth: 1\n\n{listing}\n"
    for name, text in pages.items():
        page = folder / f"{name}.rst"
        if not page.exists() or page.read_text(encoding="utf-8") != text:
            page.write_text(text, encoding="utf-8")


write_reference(Path(__file__).parent / "reference")


def keep_formulas(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Docstrings are plain text: |x| and x* are formulas, not markup. Examples and code keep their letters."""
    for i, line in enumerate(lines):
        if not line.lstrip().startswith((">>>", "...")):
            parts = re.split(r"(`[^`]*`)", line)
            lines[i] = "".join(p if p.startswith("`") else re.sub(r"(?<!\\)([|*])", r"\\\1", p) for p in parts)


def show_own_signature(
    app: Any, what: str, name: str, obj: Any, options: Any, signature: str, returned: str
) -> tuple[str, str] | None:
    """Classes are shown with the arguments of `__init__`, also where something stands before it."""
    if what != "class" or "*args" not in (signature or ""):
        return None
    own = inspect.signature(obj.__init__)
    bare = [parameter.replace(annotation=own.empty) for parameter in list(own.parameters.values())[1:]]
    return str(own.replace(parameters=bare, return_annotation=own.empty)), returned


def setup(app: Any) -> None:
    """Formulas before numpydoc reads docstrings, signatures as they are found."""
    app.connect("autodoc-process-docstring", keep_formulas, priority=100)
    app.connect("autodoc-process-signature", show_own_signature)
