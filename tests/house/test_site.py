"""The site: every page has its place, and what its pages say runs."""

import html
import inspect
import re
from pathlib import Path
from urllib.parse import unquote

import pytest

import saddleslide as ss
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


def test_the_first_example_of_the_site_prints_what_the_page_says(capsys):
    names = {}
    exec(compile("".join(blocks("start.md", "python start")), "docs/start.md", "exec"), names)
    (said,) = blocks("start.md", "text start")
    printed = "\n".join(capsys.readouterr().out.splitlines()[: said.count("\n")]) + "\n"
    number = r"\d+(?:\.\d+)?"
    assert re.sub(number, "#", printed) == re.sub(number, "#", said)
    # The last digits are the processor's.
    told, found = ([float(digits) for digits in re.findall(number, text)] for text in (said, printed))
    assert found == pytest.approx(told, rel=1e-2)
    assert names["result"].success and names["result"].x.shape == (32, 32)


def test_examples_of_the_gallery_have_a_title_and_a_picture_each():
    examples = sorted((ROOT / "examples" / "gallery").rglob("plot_*.py"))
    assert len(examples) >= 15
    for example in examples:
        text = example.read_text(encoding="utf-8")
        assert re.match(r'"""\n(.+)\n(=+)\n\n.+', text), example.name
        title, line = text.splitlines()[1:3]
        assert len(title) == len(line), example.name
        compile(text, example.name, "exec")


# A page in frames of two widths, and what of it is wider than its frame, or a picture that is not there.
FRAMES = """<script>
const said = [];
async function look(page, width) {
  const frame = document.createElement("iframe");
  frame.style.cssText = `width:${width}px;height:900px;border:0`;
  frame.src = page;
  await new Promise(done => { frame.onload = done; document.body.append(frame); });
  const shown = frame.contentDocument;
  const article = shown.querySelector(".bd-article-container");
  // What is wider than an article scrolls in a frame of its own: code and tables, and nothing else.
  const wide = shown.documentElement.scrollWidth > width || article.scrollWidth > article.clientWidth;
  if (wide) said.push(`${page} is wider than ${width}`);
  for (const image of shown.images) if (image.complete && !image.naturalWidth) said.push(`${page} lacks ${image.src}`);
  said.push(`looked at ${page}`);
}
window.onload = async () => {
  for (const page of PAGES) for (const width of [1280, 400]) await look(page, width);
  document.body.textContent = said.join(";");
};
</script><body></body>"""
PAGES = ["index", "start", "recipes", "howto", "minimize", "functions", "arena", "theory", "gallery/index"]
REFERENCE = "reference/generated/saddleslide.functions.L21"


def find_site():
    """Made by `.ci/run` or `python -m sphinx docs docs/_build/html`."""
    site = DOCS / "_build" / "html"
    # Written when all else is there.
    if not (site / "searchindex.js").exists():
        made_by = "site: python -m sphinx -D plot_gallery=0 docs docs/_build/html"
        (pytest.skip if support.SKIPS else pytest.fail)(support.MISSING.format(made_by))
    return site


def test_the_site_in_a_browser(tmp_path):
    """Search answers, and pages at the widths of a screen and of a phone load all they name."""
    site = find_site()
    found, log = opened(site / "search.html", "--dump-dom", "--virtual-time-budget=5000", query="q=isotropic")
    assert int(re.search(r"found (\d+) pages? matching", found)[1]) >= 5
    assert 'href="recipes.html' in found
    pages = [(site / f"{name}.html").as_uri() for name in [*PAGES, REFERENCE]]
    (tmp_path / "frames.html").write_text(FRAMES.replace("PAGES", str(pages)), encoding="utf-8")
    shown, console = opened(
        tmp_path / "frames.html", "--allow-file-access-from-files", "--dump-dom", "--virtual-time-budget=60000"
    )
    shown = shown.partition("<body>")[2]
    assert shown.count("looked at") == 2 * len(pages)
    assert not re.findall(r"[^;]+ is wider than \d+|[^;]+ lacks [^;]+", shown)
    assert not [line for line in log + console if re.search(r"Uncaught|Failed to load|ERR_|Refused", line)]


def test_every_link_of_the_site_leads_somewhere():
    """Links between pages and to places on them; and nothing that a page shows is fetched from elsewhere."""
    site = find_site()
    pages = {path: path.read_text(encoding="utf-8") for path in site.rglob("*.html") if "_static" not in path.parts}
    places = {path: {*re.findall(r'\b(?:id|name)="([^"]+)"', text), ""} for path, text in pages.items()}
    broken = set()
    for path, text in pages.items():
        assert not re.search(r'<(?:script|img|link)\b[^>]*(?:src|href)="(?:https?:)?//', text), path
        for link in re.findall(r'\b(?:href|src)="([^"]+)"', text):
            file, _, place = unquote(html.unescape(link)).partition("#")
            target = (path.parent / file.partition("?")[0]).resolve() if file else path
            known = re.match(r"[a-z]+:", link) or (place in places[target] if target in places else target.is_file())
            if not known:
                broken.add((path.name, link))
    assert not broken
    rooms = {"": ss, **{f".{name}": getattr(ss, name) for name in ss.__all__ if inspect.ismodule(getattr(ss, name))}}
    public = {f"saddleslide{room}.{name}" for room, module in rooms.items() for name in getattr(module, "__all__", ())}
    listed = {path.stem for path in pages if path.parent.name == "generated"}
    # A name that stands in two rooms has its page in the first.
    missed = public - listed - {f"saddleslide{room}" for room in rooms}
    assert len(listed) > 200 and {name.rpartition(".")[2] for name in missed} <= {*ss.__all__}
