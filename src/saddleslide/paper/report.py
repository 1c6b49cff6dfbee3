"""One self-contained HTML page: agreement, every table beside print, every figure, the environment."""

from __future__ import annotations

import base64
import os
import platform
from collections import Counter
from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template

from saddleslide.paper.rows import Row
from saddleslide.paper.runner import versions
from saddleslide.paper.spec import Experiment
from saddleslide.paper.tables import Cell, Table, Verdict, agreement

FILE = "report.html"
MARKS = {
    Verdict.AGREES: ("✓", "agrees with the paper"),
    Verdict.DIFFERS: ("✗", "differs"),
    Verdict.FAILED: ("!", "the run failed"),
    Verdict.MEASURED: ("~", "measured on another machine or another object, not judged"),
    Verdict.OURS: ("·", "not printed in the paper"),
    Verdict.PARTIAL: ("…", "some runs are missing, not judged"),
    Verdict.NOT_RUN: ("-", "not run"),
}
UNEXPLAINED = "No reason is known: nothing about this cell is left open by the paper."
WIDE = 9


def write_report(
    folder: Path,
    experiments: Sequence[Experiment],
    tables: Mapping[str, Sequence[Table]],
    figures: Mapping[str, Mapping[str, str]],
    rows: Mapping[str, Row],
) -> Path:
    """Write the page into the folder; figures are read from there and put inside."""
    found = agreement([table for several in tables.values() for table in several])
    marks = "".join(f"<span><b>{mark}</b> {escape(text)}</span> " for mark, text in MARKS.values())
    names = [("summary", "Agreement"), *((e.name, e.name) for e in experiments), ("environment", "Environment")]
    style, page = (
        (files("saddleslide.paper") / name).read_text(encoding="utf-8") for name in ("report.css", "report.html")
    )
    parts = {
        "style": style,
        "version": escape(versions()["saddleslide"]),
        "tiles": _tiles(found, rows),
        "contents": "".join(f'<li><a href="#{name}">{escape(text)}</a></li>' for name, text in names),
        "summary": _summary(experiments, found["experiments"]),
        "legend": f"<span>small: the paper's value</span> {marks}",
        "differing": _list_differences(found["differing"]),
        "sections": "\n".join(_section(e, tables[e.name], figures[e.name], folder) for e in experiments),
        "environment": _environment(rows),
    }
    path = folder / FILE
    path.write_text(Template(page).substitute(parts), encoding="utf-8")
    return path


def _tiles(found: Mapping[str, int], rows: Mapping[str, Row]) -> str:
    wrong = found["differs"] + found["failed"]
    done = sum(row["status"] == "done" for row in rows.values())
    minutes = sum(row.get("total_seconds", 0.0) for row in rows.values()) / 60.0
    tiles = (
        (f"{found['agrees']} of {found['agrees'] + wrong}", "judged cells agree with the paper"),
        (str(wrong), "differ"),
        (str(found["measured"] + found["ours"]), "measured, or not in print"),
        (str(found["partial"] + found["not run"]), "not run here"),
        (str(done), f"runs, {minutes:.0f} min of work"),
    )
    return "".join(f'<div class="tile"><b>{escape(big)}</b><span>{escape(small)}</span></div>' for big, small in tiles)


def _summary(experiments: Sequence[Experiment], found: Mapping[str, Mapping[str, int]]) -> str:
    lines = []
    for experiment in experiments:
        counts = Counter(found.get(experiment.name, {}))
        judged = sum(counts[verdict.value] for verdict in Verdict if verdict.is_judged)
        share = 100.0 * counts["agrees"] / judged if judged else 0.0
        bar = f'<span class="bar"><i style="width: {share:.0f}%"></i></span>' if judged else ""
        lines.append(
            f'<tr><th><a href="#{experiment.name}">{escape(experiment.name)}</a></th>'
            f'<td class="words">{escape(experiment.title)}</td><td>{counts["agrees"]} of {judged}</td>'
            f'<td class="bars">{bar}</td><td>{counts["partial"] + counts["not run"] or ""}</td></tr>'
        )
    heads = '<th>experiment</th><th class="words">what it shows</th><th>agree</th><th class="bars"></th>'
    return f"<table><thead><tr>{heads}<th>not run</th></tr></thead><tbody>{''.join(lines)}</tbody></table>"


def _list_differences(cells: Sequence[Mapping[str, str]]) -> str:
    if not cells:
        return "<p>No judged cell differs.</p>"
    items = "".join(
        f"<li>{escape(cell['table'])}, {escape(cell['row'])}, {escape(cell['column'])}: paper {escape(cell['paper'])}, "
        f"ours {escape(cell['ours'])}. {escape(cell['note'] or UNEXPLAINED)}</li>"
        for cell in cells
    )
    return f"<h3>Cells that differ</h3><ul>{items}</ul>"


def _section(experiment: Experiment, tables: Sequence[Table], figures: Mapping[str, str], folder: Path) -> str:
    grids, pictures = "".join(_table(table) for table in tables), ""
    for figure in (figure for figure in experiment.figures if figure["name"] in figures):
        data = base64.b64encode((folder / figures[figure["name"]]).read_bytes()).decode()
        caption = escape(figure["caption"] + (f" ({figure['label']})" if figure.get("label") else ""))
        image = f'<img src="data:image/svg+xml;base64,{data}" alt="{caption}">'
        pictures += f'<figure><div class="scroll">{image}</div><figcaption>{caption}</figcaption></figure>'
    about = f'<p class="about">{escape(experiment.about)}</p>'
    return f'<section id="{experiment.name}"><h2>{_title(experiment)}</h2>{about}{grids}{pictures}</section>'


def _title(shown: Experiment | Table) -> str:
    """The title, with the label that the paper has for it."""
    where = f' <span class="where">{escape(shown.label)}</span>' if shown.label else ""
    return f"{escape(shown.title)}{where}"


def _table(table: Table) -> str:
    title = f"<h3>{_title(table)}</h3>"
    if all(cell.verdict is Verdict.NOT_RUN for cell in table.cells()):
        return f'{title}<p class="note">Not run here. {escape(table.note)}</p>'
    heads = "".join(f"<th>{escape(head)}</th>" for head in (table.row_head, *table.heads))
    body = "".join(
        f"<tr><th>{escape(name)}</th>{''.join(_cell(cell) for cell in line)}</tr>" for name, line in table.lines.items()
    )
    # Below it its note, and those of its columns: equal ones once, with all their columns.
    noted: dict[str, dict[str, None]] = {}
    for cell in table.cells():
        if cell.note:
            noted.setdefault(cell.note, {})[cell.head] = None
    notes = ([table.note] if table.note else []) + [f"{', '.join(own)}: {note}." for note, own in noted.items()]
    below = "".join(f'<p class="note">{escape(text)}</p>' for text in notes)
    kind = ' class="wide"' if len(table.heads) >= WIDE else ""
    grid = f"<table{kind}><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>"
    return f'{title}<div class="scroll">{grid}</div>{below}'


def _cell(cell: Cell) -> str:
    mark, says = MARKS[cell.verdict]
    paper = f"<small>{escape(cell.paper)}</small>" if cell.paper else ""
    title = escape(f"{says}. {cell.note}" if cell.note else says)
    kind = cell.verdict.value.replace(" ", "-")
    return f'<td class="{kind}" title="{title}"><span class="mark">{mark}</span>{escape(cell.ours)}{paper}</td>'


def _environment(rows: Mapping[str, Row]) -> str:
    """Versions of the rows and of this page, and the machine; no name of a host or a user."""
    made = {name: sorted({row["versions"][name] for row in rows.values()}) for name in versions()}
    lines = [(f"{name}, of the rows", ", ".join(found)) for name, found in made.items()]
    lines += [("system", f"{platform.system()} {platform.machine()}"), ("processor", machine())]
    lines += [("cores", str(os.cpu_count())), ("threads per run", "1")]
    cells = "".join(f'<tr><th>{escape(a)}</th><td class="words">{escape(b)}</td></tr>' for a, b in lines)
    return f"<table><tbody>{cells}</tbody></table>"


def machine() -> str:
    """The processor, in the words of the system."""
    known = Path("/proc/cpuinfo")
    lines = known.read_text(encoding="utf-8", errors="replace").splitlines() if known.exists() else []
    named = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return next(iter(named), "") or platform.processor() or platform.machine() or "unknown"
