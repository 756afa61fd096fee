"""Shared parts of the figures: colours of methods, and panels of lines over seconds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from edgegraft.report.style import INK, NEGATIVE, NEUTRAL, POSITIVE
from paper.experiment import Row
from paper.versions import ALPHAS, EXHAUSTIVE, FIRST_HIT

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["INK", "NEGATIVE", "NEUTRAL", "POSITIVE", "draw_lines", "new_figure", "style_of"]

_BLUES = ("#B5D4EC", "#7FB8DF", "#3F93C7", "#0072B2", "#00456C")  # darker for larger alpha
_STYLES = {
    **{name: {"color": colour} for name, colour in zip(ALPHAS, _BLUES, strict=True)},
    EXHAUSTIVE: {"color": NEGATIVE},
    FIRST_HIT: {"color": INK, "linestyle": ":"},
}


def new_figure(rows: int, columns: int, width: float, height: float) -> tuple[Figure, Any]:
    """Return a figure of panels, each of the given size in inches, and the array of their axes."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width * columns, height * rows), layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False)


def style_of(method: str) -> dict[str, Any]:
    """Return the line style of a method."""
    return _STYLES.get(method, {"color": NEUTRAL})


def draw_lines(
    rows: Sequence[Row],
    measure: str,
    label: str,
    panels: Sequence[Sequence[tuple[str, dict[str, Any]]]],
    across: str = "seconds",
) -> Figure:
    """Draw a measure over seconds, one line per method; a cross marks a run that was cut off.

    Parameters
    ----------
    rows : list of rows
        Trajectories of searches.
    measure, label : str
        Column of the vertical axis, and its label.
    panels : rows of panels, each a title and the values that select its rows
    across : str
        Column of the horizontal axis.
    """
    figure, axes = new_figure(len(panels), len(panels[0]), width=3.5, height=2.7)
    for line, titled in zip(axes, panels, strict=True):
        for ax, (title, wanted) in zip(line, titled, strict=True):
            inside = [row for row in rows if all(row[k] == v for k, v in wanted.items())]
            for method in dict.fromkeys(str(row["method"]) for row in inside):
                _draw_line(ax, [row for row in inside if row["method"] == method], across, measure)
            ax.set_title(title, fontsize=9)
            ax.set_xlabel(across.replace("n_", ""))
            if across == "seconds" and inside:
                ax.set_xscale("symlog", linthresh=0.1)
                ax.set_xlim(left=0)
        line[0].set_ylabel(label)
    axes[0][-1].legend(frameon=False, fontsize=7)
    return figure


def _draw_line(ax: Any, trajectory: Sequence[Row], across: str, measure: str) -> None:
    method = str(trajectory[0]["method"])
    x, y = ([row[name] for row in trajectory] for name in (across, measure))
    ax.plot(x, y, label=method, linewidth=1.4, **style_of(method))
    if trajectory[-1].get("cut_off"):
        ax.plot(x[-1:], y[-1:], "x", markersize=5, color=style_of(method)["color"])
