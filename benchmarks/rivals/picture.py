"""One plot: quality against CPU seconds, a panel a data set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.rivals.problems import SOURCES
from benchmarks.rivals.summary import OURS, Line, likelihood

PANELS = ("scale-free-100", "scale-free-200", "ising-200", "yummly", "jester", "debd-plants")
COLUMNS = 3


def draw(shown: Mapping[str, Sequence[Line]], path: Path) -> None:
    """Draw the panels of the data that there are results for; upper left is better."""
    import matplotlib as mpl

    mpl.use("agg")
    from matplotlib import pyplot as plt

    names = [name for name in PANELS if name in shown] or list(shown)[:1]
    if not names:
        return
    rows = -(-len(names) // COLUMNS)
    columns = min(COLUMNS, len(names))
    figure, panels = plt.subplots(
        rows, columns, figsize=(4.6 * columns, 3.8 * rows), squeeze=False, layout="constrained"
    )
    for panel in panels.flat[len(names) :]:
        panel.set_visible(False)
    for name, panel in zip(names, panels.flat, strict=False):
        draw_panel(panel, SOURCES[name].title, shown[name])
    figure.savefig(path, dpi=110)
    plt.close(figure)


def draw_panel(panel: object, title: str, lines: Sequence[Line]) -> None:
    done = [line for line in lines if line.ended is None]
    ranked = any("average_precision" in line.figures for line in done)
    done.sort(key=lambda line: line.figures["cpu_s"].mean)
    for k, line in enumerate(done):
        if ranked:
            value = line.figures["average_precision"].mean
        elif (score := likelihood(line)) is not None:
            value = score
        else:
            continue
        ours = line.rival.startswith(OURS)
        seconds = max(line.figures["cpu_s"].mean, 1e-3)
        colour = "#c0392b" if ours else "#34618f"
        panel.plot(seconds, value, "o", color=colour, ms=7 if ours else 5)
        offset = (4, 4) if k % 2 else (4, -9)  # neighbours in time do not share a line
        panel.annotate(line.label, (seconds, value), xytext=offset, textcoords="offset points",
                       fontsize=6.5, color=colour)  # fmt: skip
    panel.set_xscale("log")
    panel.set_title(title, fontsize=9)
    panel.set_xlabel("CPU seconds", fontsize=8)
    panel.set_ylabel("average precision" if ranked else "held-out nats a row (fewer is better)",
                     fontsize=8)  # fmt: skip
    if not ranked:
        panel.invert_yaxis()
    panel.tick_params(labelsize=7)
    panel.margins(x=0.25, y=0.1)
    panel.grid(alpha=0.25)
