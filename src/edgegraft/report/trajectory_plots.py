"""The chart of a search, as a picture and for the page."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from edgegraft.core.types import Floats
from edgegraft.errors import DataError
from edgegraft.report.style import INK, NEGATIVE, NEUTRAL, POSITIVE, axes_or_new

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class Line(NamedTuple):
    """A line of a chart."""

    name: str
    values: Floats
    colour: str
    dashed: bool = False


class Side(NamedTuple):
    """A vertical axis of a chart and its lines."""

    title: str
    lines: list[Line]
    from_zero: bool = False


class Chart(NamedTuple):
    """Lines over one horizontal axis."""

    title: str  # label of the horizontal axis
    x: Floats
    left: Side
    right: Side


def trace_chart(trace: Mapping[str, ArrayLike]) -> Chart:
    """Return the chart of a search: its objective, and its edges or its recall."""
    columns = _check_trace(trace)
    left = [Line("objective", columns["objective"], POSITIVE)]
    if "held_out" in columns:
        left.append(Line("held out", columns["held_out"], NEGATIVE, dashed=True))
    which, title = ("recall", "recall") if "recall" in columns else ("n_edges", "edges")
    right = Side(title, [Line(title, columns[which], NEUTRAL)], from_zero=True)
    return Chart("seconds", columns["seconds"], Side("nats per row", left), right)


def plot_trace(trace: Mapping[str, ArrayLike], ax: Axes | None = None) -> Axes:
    """Draw the trajectory of a search over time.

    The left axis shows the objective and, if measured, the mean negative log-pseudolikelihood of
    held-out rows; the right axis shows the recall if the truth is known, otherwise the number of
    edges.

    Parameters
    ----------
    trace : dict of columns
        ``trace_`` of an estimator, ``SearchState.trace()``, or the columns of a ``Monitor``.
    ax : Axes, optional
        By default, those of a new figure.

    Returns
    -------
    Axes
        The left axes.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> ax = plot_trace({"seconds": [0, 1], "objective": [2.0, 1.5], "n_edges": [0, 3]})
    >>> [line.get_label() for line in ax.lines]
    ['objective']
    """
    return _draw(trace_chart(trace), ax)


def _check_trace(trace: Mapping[str, ArrayLike]) -> dict[str, Floats]:
    """Return the columns of a trace that can be drawn, as arrays of one length."""
    wanted = ("seconds", "objective", "n_edges")
    missing = [name for name in wanted if name not in trace]
    if missing:
        raise DataError(
            f"the trace has no column '{missing[0]}': it has {', '.join(map(repr, trace))}; give "
            "the result of `SearchState.trace()` or `Monitor.columns()`"
        )
    names = [name for name in (*wanted, "held_out", "recall") if name in trace]
    columns = {name: np.asarray(trace[name], np.float64) for name in names}
    length = columns["seconds"].shape
    for name, values in columns.items():
        if values.ndim != 1 or values.shape != length:
            raise DataError(
                f"column '{name}' of the trace has shape {values.shape}, but 'seconds' has {length}"
            )
    return columns


def _draw(chart: Chart, ax: Axes | None) -> Axes:
    ax = axes_or_new(ax, 6.4, 3.6)
    right = ax.twinx()
    for axes, side in ((ax, chart.left), (right, chart.right)):
        for line in side.lines:
            style = "--" if line.dashed else "-"
            axes.plot(chart.x, line.values, style, color=line.colour, marker=".", label=line.name)
        axes.set_ylabel(side.title, color=INK)
        if side.from_zero:
            axes.set_ylim(bottom=0)
    ax.set_xlabel(chart.title)
    handles = [*ax.get_legend_handles_labels()[0], *right.get_legend_handles_labels()[0]]
    right.legend(handles=handles, framealpha=0.8, edgecolor="none", fontsize=8, loc="best")
    return ax
