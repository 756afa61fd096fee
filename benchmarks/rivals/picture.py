"""The plot: quality over CPU seconds, one panel per data set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.rivals.problems import SOURCES
from benchmarks.rivals.registry import RIVALS
from benchmarks.rivals.summary import OURS, Line, likelihood

PANELS = ("scale-free-100", "scale-free-200", "ising-200", "yummly", "jester", "debd-plants")
COLUMNS = 3
#: One style per tool, the same in every panel; variants of a tool share it. Ours are red.
COLOURS = ("#34618f", "#2a9d8f", "#e9a23b", "#7b5ea7", "#6b8e23", "#8c6d5a", "#5bb4e5", "#444444")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")


def draw(shown: Mapping[str, Sequence[Line]], path: Path) -> None:
    """Draw the panels of data sets with results; upper left is better."""
    import matplotlib as mpl

    mpl.use("agg")
    from matplotlib import pyplot as plt

    names = [name for name in PANELS if name in shown] or list(shown)[:1]
    if not names:
        return
    rows = -(-len(names) // COLUMNS)
    columns = min(COLUMNS, len(names))
    figure, panels = plt.subplots(
        rows, columns, figsize=(4.2 * columns, 3.4 * rows + 0.9), squeeze=False,
        layout="constrained",
    )  # fmt: skip
    for panel in panels.flat[len(names) :]:
        panel.set_visible(False)
    for name, panel in zip(names, panels.flat, strict=False):
        draw_panel(panel, SOURCES[name].title, shown[name])
    drawn = {}
    for panel in panels.flat:
        for handle, label in zip(*panel.get_legend_handles_labels(), strict=True):
            drawn.setdefault(label, handle)
    order = [name for name in RIVALS if name in drawn]
    figure.legend([drawn[name] for name in order], order, loc="outside lower center", ncols=7,
                  fontsize=7.5, frameon=False)  # fmt: skip
    figure.savefig(path, dpi=110)
    plt.close(figure)


def style_of(rival: str) -> dict[str, object]:
    """Return the colour and marker of a tool."""
    if rival.startswith(OURS):
        ours = [name for name in RIVALS if name.startswith(OURS)]
        return {"color": "#c0392b", "marker": ("*", "d", "p", "h")[ours.index(rival) % 4], "ms": 10}
    k = [name for name in RIVALS if not name.startswith(OURS)].index(rival)
    return {"color": COLOURS[k % len(COLOURS)], "marker": MARKERS[k % len(MARKERS)], "ms": 6}


def draw_panel(panel: Any, title: str, lines: Sequence[Line]) -> None:
    done = [line for line in lines if line.ended is None]
    ranked = any("average_precision" in line.figures for line in done)
    for line in reversed(done):  # the best, and ours, on top
        if ranked:
            value = line.figures["average_precision"].mean
        elif (score := likelihood(line)) is not None:
            value = score
        else:
            continue
        seconds = max(line.figures["cpu_s"].mean, 1e-3)
        panel.plot(seconds, value, ls="", label=line.rival, alpha=0.85, **style_of(line.rival))
    panel.set_xscale("log")
    panel.set_title(title, fontsize=9)
    panel.set_xlabel("CPU seconds", fontsize=8)
    panel.set_ylabel("average precision" if ranked else "held-out nats per row (fewer is better)",
                     fontsize=8)  # fmt: skip
    if not ranked:
        panel.invert_yaxis()
    panel.tick_params(labelsize=7)
    panel.margins(x=0.08, y=0.08)
    panel.grid(alpha=0.25)
