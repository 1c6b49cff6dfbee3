"""The measurements as tables, and the comparison of their ratios with committed ones."""

from __future__ import annotations

from typing import Any

# What must hold: limit, and whether small is good.
LIMITS = {
    "run over weighted cost": (0.95, True),
    "gain over NumPy": (1.6, False),
    "distance to NumPy": (1e-12, True),
    "microseconds above two products, 60 x 60": (3.0, True),
    "exponent of pixels": (1.1, True),
    "outer iteration, departure from overhead + T_3 inner": (0.1, True),
    "import, seconds": (0.35, True),
    "first solve adds, seconds": (1.0, True),
    "memory beyond data, bytes": (1e9, True),
}
# A ratio may move by this factor between two runs before it counts as a regression.
SLACK = 1.25


def ratios(found: dict[str, Any]) -> dict[str, tuple[float, bool]]:
    """Every ratio that does not depend on the speed of the machine, and whether small is good.

    In processor time: other work on the machine moves it least.
    """
    listed = {}
    for row in found["plans"]:
        listed[f"plan {row['regime']}: run over weighted"] = (row["cpu_over_weighted"], True)
        listed[f"plan {row['regime']}: gain over NumPy"] = (row["cpu_gain"], False)
    listed["growth: exponent"] = (found["growth"]["cpu_exponent"], True)
    for row in found["solve"]:
        listed[f"solve {row['instance']} {row['reduction']:.0e}: gain over NumPy"] = (row["cpu_gain"], False)
    for name, row in found["memory"].items():
        listed[f"memory {name}: vectors"] = (row["vectors"], True)
    return listed


def regressions(new: dict[str, Any], old: dict[str, Any]) -> list[str]:
    """Ratios that are worse than committed ones by more than the slack.

    >>> plan = {"regime": "a", "cpu_over_weighted": 0.5, "cpu_gain": 3.0}
    >>> rest = {"growth": {"cpu_exponent": 1.0}, "solve": [], "memory": {}}
    >>> regressions({"plans": [plan | {"cpu_gain": 2.0}], **rest}, {"plans": [plan], **rest})
    ['plan a: gain over NumPy: 2 now, 3 committed']
    """
    before = ratios(old)
    return [
        f"{name}: {value:.3g} now, {before[name][0]:.3g} committed"
        for name, (value, small) in ratios(new).items()
        if name in before and (value > SLACK * before[name][0] if small else value < before[name][0] / SLACK)
    ]


def verdicts(found: dict[str, Any]) -> list[tuple[str, float, float, float, bool]]:
    """(what, in wall time, in processor time, limit, whether it holds in wall time) for every line that is judged."""
    return [
        (name, *pair, limit, pair[0] <= limit if small else pair[0] >= limit)
        for (name, (limit, small)), pair in zip(LIMITS.items(), _judged_values(found), strict=True)
    ]


def _judged_values(found: dict[str, Any]) -> list[tuple[float, float]]:
    """In the order of the limits; what is no time stands twice."""
    plans, small, growth, start = found["plans"], found["small"], found["growth"], found["start-up"]
    far = max(max(row["distance"].values()) for row in plans)
    most = max(float(row["bytes"]) for row in found["memory"].values())
    return [
        (max(row["wall_over_weighted"] for row in plans), max(row["cpu_over_weighted"] for row in plans)),
        (min(row["gain"] for row in plans), min(row["cpu_gain"] for row in plans)),
        (far, far),
        (small["overhead"], small["cpu_overhead"]),
        (growth["exponent"], growth["cpu_exponent"]),
        (found["outer"]["wall"]["departure"], found["outer"]["cpu"]["departure"]),
        (start["import"]["wall"], start["import"]["cpu"]),
        (start["first solve adds"]["wall"], start["first solve adds"]["cpu"]),
        (most, most),
    ]


def tables(found: dict[str, Any]) -> str:
    """All measurements as Markdown."""
    parts = (_plans, _inner, _steps, _processes, _solve, _judged)
    return "\n\n".join(part(found) for part in parts)


def in_page(page: str, found: dict[str, Any]) -> str:
    """The page with its tables replaced, between the two marks."""
    before, rest = page.split("<!-- measured -->")
    after = rest.split("<!-- end -->")[1]
    return f"{before}<!-- measured -->\n{tables(found)}\n<!-- end -->{after}"


def _table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _plans(found: dict[str, Any]) -> str:
    rows = [
        [
            row["regime"],
            *[f"{seconds['wall']:.3f}" for seconds in (row["weighted"], row["compiled"], row["numpy"])],
            f"{row['wall_over_weighted']:.2f}", f"{row['cpu_over_weighted']:.2f}", f"{row['gain']:.2f}",
            f"{max(row['distance'].values()):.1e}",
        ]
        for row in found["plans"]
    ]  # fmt: skip
    head = ["regime", "weighted, s", "compiled, s", "NumPy, s", "wall/weighted", "cpu/weighted", "gain", "distance"]
    return _table(head, rows)


def _inner(found: dict[str, Any]) -> str:
    small, outer = found["small"]["microseconds"], found["outer"]["cpu"]
    growth, threads = found["growth"], found["threads"]
    rows = [
        ["60 x 60 dense", f"{small['compiled']:.2f}", f"NumPy {small['numpy']:.1f}, two products alone "
         f"{small['two products']:.2f}"],
        *[[f"TV {row['side']} x {row['side']}", f"{row['wall']:.1f}",
           f"processor {row['cpu']:.1f}, with outer levels {row['with outer levels']['wall']:.1f} at T_3 = "
           f"{2 * row['T_3']}"] for row in growth["microseconds"]],
        ["exponent of pixels", f"{growth['exponent']:.2f}", f"processor {growth['cpu_exponent']:.2f}, with outer "
         f"levels {growth['exponent with outer levels']:.2f}"],
        ["overhead of an outer iteration, 64 x 64", f"{outer['overhead']:.0f}",
         f"processor; T_3 from 5 to 80 departs from the line by at most {100 * outer['departure']:.0f} %"],
        *[[f"gain of two threads, {name}, 128 x 128", f"{gain:.2f} times", f"{threads['cores']} cores, same bits: "
           f"{'yes' if threads['same bits'] else 'no'}"] for name, gain in threads["gain"].items()],
    ]  # fmt: skip
    return _table(["inner iteration", "microseconds", "beside it"], rows)


def _steps(found: dict[str, Any]) -> str:
    rows = [
        [
            f"{row['instance']}, {row['metric']}",
            *[f"{row[step]['products']:,}" for step in ("extragradient", "primal-dual")],
            *[f"{1e3 * row[step]['seconds']:.0f}" for step in ("extragradient", "primal-dual")],
            *[f"{row[step]['gap']:.3g}" for step in ("extragradient", "primal-dual")],
        ]
        for row in found["steps"]
    ]
    head = ["same loops", "products", "primal-dual", "ms", "primal-dual", "gap", "primal-dual"]
    return _table(head, rows)


def _processes(found: dict[str, Any]) -> str:
    start = found["start-up"]
    rows = [[name, f"{row['wall']:.2f} s", f"processor {row['cpu']:.2f} s"] for name, row in start.items()]
    rows += [
        [f"memory, {name}", f"{row['bytes'] / 1e9:.2f} GB", f"{row['vectors']:.1f} vectors"]
        for name, row in found["memory"].items()
    ]
    return _table(["process", "value", "beside it"], rows)


def _solve(found: dict[str, Any]) -> str:
    rows = [
        [
            row["instance"], f"{row['reduction']:.0e}",
            f"{1e3 * row['method']:.1f}", f"{1e3 * row['numpy method']:.1f}",
            f"{1e3 * row['with certificate']['wall']:.1f}", f"{row['gain']:.2f}", f"{row['cpu_gain']:.2f}",
        ]
        for row in found["solve"]
    ]  # fmt: skip
    head = ["instance", "reduction", "method, ms", "NumPy, ms", "with certificate, ms", "gain", "gain, processor"]
    return _table(head, rows)


def _judged(found: dict[str, Any]) -> str:
    rows = [
        [name, f"{wall:.3g}", f"{cpu:.3g}", f"{limit:g}", "holds" if holds else "does not hold"]
        for name, wall, cpu, limit, holds in verdicts(found)
    ]
    return _table(["judged", "wall", "processor", "limit", "in wall time"], rows)
