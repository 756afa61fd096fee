"""Write the tables and the plot of docs/rivals.md from the files of results."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from benchmarks.rivals.harness import ROOT, Result
from benchmarks.rivals.problems import SOURCES
from benchmarks.rivals.registry import RIVALS
from benchmarks.rivals.summary import Line, Spread, summarise, verdict

PAGE = ROOT / "docs" / "rivals.md"
PICTURE = "images/rivals.png"
RANKED = (
    ("average precision", "average_precision", 3),
    ("F1, true number", "f1_true_number", 3),
    ("F1, own cut", "f1_own_cut", 3),
)
SCORED = (
    ("edges of its cut", "own_edges", 0),
    ("held out, one model", "held_out", 3),
    ("held out, conditionals", "held_out_conditionals", 3),
)


def write_page(folder: Path, names: Sequence[str], page: Path = PAGE) -> None:
    """Rewrite the tables between the markers of the page, and its plot."""
    results = read_results(folder)
    shown = {name: summarise(results, name) for name in names}
    shown = {name: lines for name, lines in shown.items() if lines}
    parts = [f"### {SOURCES[name].title}\n\n{section(lines)}" for name, lines in shown.items()]
    machines = sorted({f"*{each['machine']}*" for each in results if "machine" in each})
    tables = "\n\n".join([*parts, *machines]) if parts else "There are no results yet."
    text = replaced(page.read_text(encoding="utf-8"), "tables", tables)
    text = replaced(text, "tools", tools(results))
    from benchmarks.rivals.picture import draw

    (page.parent / PICTURE).parent.mkdir(parents=True, exist_ok=True)
    draw(shown, page.parent / PICTURE)
    page.write_text(text, encoding="utf-8")


def read_results(folder: Path) -> list[Result]:
    """Return all results of tools and data sets that still exist."""
    found = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.json"))]
    return [each for each in found if each["rival"] in RIVALS and each["data"] in SOURCES]


def section(lines: Sequence[Line]) -> str:
    """Return the table of one data set, and its verdicts on first places and speed."""
    figures = [
        column for column in RANKED + SCORED if any(column[1] in line.figures for line in lines)
    ]
    heads = ["tool", "CPU s", "peak MB", *(head for head, _, _ in figures)]
    rows = [f"| {' | '.join(heads)} |", f"| --- |{' ---: |' * (len(heads) - 1)}"]
    for line in lines:
        if line.ended is not None:
            cells = [line.ended, *[""] * (len(heads) - 2)]
        else:
            cells = [short_figure(line.figures["cpu_s"]), f"{line.figures['peak_mb'].mean:,.0f}"]
            cells += [
                with_digits(line.figures[key], digits) if key in line.figures else "-"
                for _, key, digits in figures
            ]
        rows.append(f"| {line.label} | {' | '.join(cells)} |")
    return "\n".join([*rows, "", *(f"- {sentence}" for sentence in verdict(lines))])


def with_digits(spread: Spread, digits: int) -> str:
    half = "" if spread.half is None or digits == 0 else f" ± {spread.half:.{digits}f}"
    return f"{spread.mean:,.{digits}f}{half}"


def short_figure(spread: Spread) -> str:
    digits = 2 if spread.mean < 10 else 0
    return f"{spread.mean:,.{digits}f}"


def tools(results: Sequence[Result]) -> str:
    """Return the table of tools, with the versions recorded in the results."""
    rows = ["| tool | versions | what is run |", "| --- | --- | --- |"]
    for name, rival in RIVALS.items():
        mine = [each for each in results if each["rival"] == name]
        versions = {
            f"{package} {version}"
            for each in mine
            for package, version in each.get("versions", {}).items()
        }
        if not versions:
            failures = {each["message"] for each in mine if "message" in each}
            stated = "; ".join(sorted(failures)) or "-"
        else:
            stated = ", ".join(sorted(versions))
        rows.append(f"| {name} | {stated.replace('|', '/')} | {rival.about} |")
    return "\n".join(rows)


def replaced(page: str, name: str, text: str) -> str:
    """Return the page with the text between two markers replaced."""
    begin, end = f"<!-- begin {name} -->", f"<!-- end {name} -->"
    before, found, rest = page.partition(begin)
    _, closed, after = rest.partition(end)
    if not found or not closed:
        raise ValueError(f"the page has no lines {begin!r} and {end!r} to write between")
    return f"{before}{begin}\n{text}\n{end}{after}"
