"""Results as people see them: the table, its HTML form, the plot, the progress line."""

from __future__ import annotations

import html
import io
import logging
import math
import re
import sys
import types
from html.parser import HTMLParser

import numpy as np
import pytest
from rich.console import Console

import saddleslide as ss
from saddleslide.errors import InputError, MissingExtraError
from saddleslide.runs.result import Moment
from small_problems import problems
from support import gathered

CALLS = [ss.Calls(1.5, 0, 8), ss.Calls(3, 2, 80), ss.Calls(4.5, 4, 800), ss.Calls(6, 6, 8000)]
GAPS = [math.inf, 1e-1, 1e-3, 1e-5]


def made_result(gaps=GAPS, calls=CALLS, target=1e-4, status=ss.Status.SOLVED, reason=""):
    history = tuple(
        Moment(step, spent, 0.1 * step, gap) for step, (spent, gap) in enumerate(zip(calls, gaps, strict=True), start=1)
    )
    certificate = ss.Certificate(1.0, 1.0 + 1e-5, "residual", reason=reason, calls=ss.Calls(0.5, 1, 4))
    return ss.Result(np.zeros(3), np.ones(2), status, certificate, calls[-1], 0.4, (), history, target)


class Collector(HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags, self.texts, self.open = [], [], 0

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.open += 1
        assert not any(name.startswith("on") or name in ("src", "href") for name, _ in attributes)

    def handle_endtag(self, tag):
        self.open -= 1

    def handle_data(self, data):
        self.texts.append(data)


# The table


def test_table_shows_each_number_once():
    lines = dict(line.strip().split(": ", 1) for line in repr(made_result()).splitlines())
    assert lines["status"] == "solved"
    assert "method" not in lines
    assert lines["gap"] == "1e-05 (residual)"
    assert lines["calls"] == "f' 6   g' 6   B 8,000"
    assert lines["judging"] == "f' 0.5   g' 1   B 4"
    assert lines["message"] == ss.Status.SOLVED.value


def test_whole_numbers_of_calls_print_without_a_point():
    result = made_result(calls=[ss.Calls(29.0, 0, 1)], gaps=[1.0])
    assert "f' 29   g' 0" in repr(result)


def test_html_says_what_the_table_says_and_is_closed_and_harmless():
    result = made_result()
    page = Collector()
    page.feed(result._repr_html_())
    assert page.open == 0
    assert set(page.tags) <= {"table", "tbody", "tr", "th", "td"}
    expected = [part for line in repr(result).splitlines() for part in line.strip().split(": ", 1)]
    assert page.texts == expected


def test_html_escapes_what_it_prints(monkeypatch):
    plan = ss.plan(problems()["game"], 1e-3)
    assert plan._repr_html_() == f"<pre>{html.escape(plan.explain())}</pre>"
    monkeypatch.setattr(ss.Result, "message", "<script>alert(1)</script> & more")
    text = made_result()._repr_html_()
    assert "<script" not in text
    assert "&lt;script&gt;alert(1)&lt;/script&gt; &amp; more" in text


# The plot


def lines_of(axes):
    """Data of the curves, without the target's line."""
    return [line.get_xydata().tolist() for line in axes.get_lines() if len(line.get_xydata()) and not is_level(line)]


def is_level(line):
    return line.get_linestyle() == "--"


def test_plot_has_four_panels_with_the_history_and_nothing_else():
    figure = made_result().plot()
    labels = [axes.get_xlabel() for axes in figure.axes]
    assert labels == ["calls of f'", "calls of g'", "products with B and B$^T$", "seconds"]
    assert all(axes.get_yscale() == "log" for axes in figure.axes)
    assert lines_of(figure.axes[0]) == [[[3.0, 1e-1], [4.5, 1e-3], [6.0, 1e-5]]]
    assert lines_of(figure.axes[1]) == [[[2.0, 1e-1], [4.0, 1e-3], [6.0, 1e-5]]]
    assert lines_of(figure.axes[2]) == [[[80.0, 1e-1], [800.0, 1e-3], [8000.0, 1e-5]]]
    assert np.allclose(lines_of(figure.axes[3])[0], [[0.2, 1e-1], [0.3, 1e-3], [0.4, 1e-5]])
    assert figure.axes[2].get_xscale() == "log" and figure.axes[0].get_xscale() == "linear"


def test_plot_draws_the_target_where_it_is_known():
    levels = [line.get_ydata()[0] for line in made_result().plot().axes[0].get_lines() if is_level(line)]
    assert levels == [1e-4]
    assert not any(is_level(line) for line in made_result(target=math.nan).plot().axes[0].get_lines())


def test_target_is_read_from_a_plan_with_an_absolute_one():
    problem = ss.gallery.synthetic()
    assert ss.solve(problem, tol=0.125).known_target == 0.125
    assert ss.run(problem, ss.plan(problem, 4.0, regime="degenerate")).known_target == 4.0
    assert math.isnan(ss.run(problem, ss.plan(problem, order="fgB", loops=(1, 1, 1))).known_target)


def test_plot_adds_the_weighted_cost_when_prices_are_given():
    figure = made_result().plot(costs=(10.0, 1.0, 0.5))
    assert figure.axes[4].get_xlabel() == "weighted cost"
    costs = [x for x, _ in lines_of(figure.axes[4])[0]]
    assert costs == [10 * 3 + 2 + 40, 10 * 4.5 + 4 + 400, 10 * 6 + 6 + 4000]


def test_plot_on_one_axes_draws_the_three_oracles():
    from matplotlib.figure import Figure

    axes = Figure().subplots()
    assert made_result().plot(axes) is axes.figure
    assert [text.get_text() for text in axes.get_legend().get_texts()][:2] == ["calls of f'", "calls of g'"]
    assert len(lines_of(axes)) == 3


def test_plot_on_given_axes_uses_each_once_and_counts_them():
    from matplotlib.figure import Figure

    grid = Figure().subplots(2, 2)
    made_result().plot(grid)
    assert [len(lines_of(axes)) for axes in grid.ravel()] == [1, 1, 1, 1]
    with pytest.raises(InputError, match=r"^plot: ax holds 4 Axes; expected 5, one per panel"):
        made_result().plot(grid, costs=(1.0, 1.0, 1.0))


def test_plot_says_when_there_is_nothing_to_draw():
    unjudged = made_result(gaps=[math.nan, math.nan, math.inf, math.nan])
    assert unjudged.plot().axes[0].texts[0].get_text() == "the history holds no finite gap"
    no_g = made_result(calls=[ss.Calls(n, 0, n) for n in (1, 2, 3, 4)])
    assert no_g.plot().axes[1].texts[0].get_text() == "none"


@gathered("suffix", ["png", "svg", "pdf"])
def test_plot_saves_itself(tmp_path, suffix):
    made_result().plot(path=tmp_path / f"picture.{suffix}")
    assert (tmp_path / f"picture.{suffix}").stat().st_size > 1000


@gathered("costs", [(1.0, 2.0), (1.0, 2.0, -1.0), (1.0, 2.0, math.nan)])
def test_plot_refuses_prices_that_are_none(costs):
    with pytest.raises(InputError, match=r"^plot: costs is .*; expected three finite numbers >= 0"):
        made_result().plot(costs=costs)


def test_plot_without_matplotlib_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(MissingExtraError, match=r"Matplotlib is not installed.*pip install matplotlib"):
        made_result().plot()


def test_plot_leaves_pyplot_alone():
    before = "matplotlib.pyplot" in sys.modules
    made_result().plot()
    assert ("matplotlib.pyplot" in sys.modules) == before


def test_figures_show_in_notebooks_and_windows_once(monkeypatch):
    from matplotlib import pyplot

    pyplot.switch_backend("agg")
    figure = made_result().plot()
    assert figure._repr_png_().startswith(b"\x89PNG")
    assert not pyplot.get_fignums()
    windows = []
    monkeypatch.setattr(pyplot, "show", lambda: windows.append([pyplot.figure(n) for n in pyplot.get_fignums()]))
    figure.show()
    assert windows == [[figure]]
    pyplot.close("all")


# The log


def test_log_says_what_is_done_and_how_it_ended(caplog):
    with caplog.at_level(logging.DEBUG, logger="saddleslide"):
        result = ss.solve(ss.gallery.tomography(n=16), reduction=1e-4)
    lines = [(record.levelname, record.getMessage()) for record in caplog.records if record.name == "saddleslide"]
    assert lines[0][0] == "INFO" and lines[0][1].startswith(f"{result.plans[0].method}: ")
    assert [level for level, _ in lines[1:-1]] == ["DEBUG"] * result.nit
    assert lines[-1] == ("INFO", f"SOLVED after {result.nit} steps: gap {result.gap:.4g}")


# The progress line


def terminal(width=200):
    return Console(
        file=io.StringIO(), force_terminal=True, width=width, color_system=None, legacy_windows=False, _environ={}
    )


def pipe():
    return Console(file=io.StringIO(), force_terminal=False, width=200, _environ={})


def written(console):
    return console.file.getvalue()


def test_progress_shows_steps_calls_gap_target_and_time():
    console = terminal()
    ss.Progress(console=console, every=0.0)(made_result(status=ss.Status.RUNNING))
    shown = written(console)
    for part in ("step 4", "f' 6  g' 6  B 8,000", "gap 1e-05", "target 0.0001", " s"):
        assert part in shown
    assert shown.startswith("\r") and "\n" not in shown


def test_progress_in_a_pipe_is_a_line_now_and_then():
    seldom, often = pipe(), pipe()
    with ss.Progress(console=seldom) as progress:
        progress(made_result())
    # A run of less than ten seconds is no news.
    assert written(seldom) == ""
    with ss.Progress(console=often, every=0.0) as progress:
        progress(made_result())
        progress(made_result())
    assert written(often).count("\n") == 2 and "\r" not in written(often)


def test_progress_in_a_notebook_is_one_line_that_changes(monkeypatch):
    shown = []

    class Cell:
        def update(self, data, raw):
            shown.append(("update", data["text/plain"]))

    def display(data, raw, display_id):
        shown.append(("display", data["text/plain"]))
        return Cell()

    notebook = types.ModuleType("IPython.display")
    notebook.display = display
    monkeypatch.setitem(sys.modules, "IPython", types.ModuleType("IPython"))
    monkeypatch.setitem(sys.modules, "IPython.display", notebook)
    console = Console(file=io.StringIO(), force_jupyter=True, width=200, _environ={})
    for every in (0.0, 3600.0):
        # What comes too soon after the first line is shown at the end.
        with ss.Progress(console=console, every=every) as progress:
            progress(made_result())
            progress(made_result())
        assert [kind for kind, _ in shown] == ["display", "update"]
        assert all("gap 1e-05" in line for _, line in shown)
        shown.clear()
    assert written(console) == ""


def test_progress_leaves_a_clean_line_when_closed_or_dropped():
    for end in (lambda progress: progress.close(), lambda progress: progress.__del__()):
        console = terminal()
        progress = ss.Progress(console=console, every=0.0)
        progress(made_result())
        before = written(console)
        end(progress)
        end(progress)
        assert written(console) == before + "\r\x1b[2K"


def test_progress_never_wraps():
    console = terminal(width=30)
    ss.Progress(console=console, every=0.0)(made_result())
    (line,) = re.findall(r"\x1b\[2K([^\r\x1b]+)", written(console))
    assert len(line) == 29 and line.endswith("…")


def test_progress_keeps_quiet_between_updates():
    console = terminal()
    progress = ss.Progress(console=console, every=3600.0)
    progress(made_result())
    once = written(console)
    progress(made_result())
    assert written(console) == once


def test_progress_passes_results_on_and_lets_them_stop_the_run():
    seen = []

    def stop(result):
        seen.append(result.nit)
        raise StopIteration

    problem = ss.gallery.tomography(n=16)
    result = ss.solve(problem, reduction=1e-9, callback=ss.Progress(stop, console=pipe()))
    assert result.status is ss.Status.STOPPED
    assert seen == [1]


def test_progress_watches_a_whole_run_without_changing_it():
    problem = ss.gallery.tomography(n=16)
    console = pipe()
    watched = ss.solve(problem, reduction=1e-6, callback=ss.Progress(console=console, every=0.0))
    alone = ss.solve(problem, reduction=1e-6)
    assert np.array_equal(watched.x, alone.x) and watched.calls == alone.calls
    assert written(console).count("\n") == watched.nit
