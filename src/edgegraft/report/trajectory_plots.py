"""Charts of a search and of a path of penalties, as pictures and for the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from edgegraft.core.types import Floats
from edgegraft.errors import DataError
from edgegraft.learn.selection.path import PathPoint
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
    """Lines over one horizontal axis; `mark` is the place of the best point, if there is one."""

    title: str  # label of the horizontal axis
    x: Floats
    left: Side
    right: Side
    log: bool = False
    reverse: bool = False
    mark: int | None = None


def trace_chart(trace: Mapping[str, ArrayLike]) -> Chart:
    """Return the chart of a search: its objective, and its edges or its recall."""
    columns = _check_trace(trace)
    left = [Line("objective", columns["objective"], POSITIVE)]
    if "held_out" in columns:
        left.append(Line("held out", columns["held_out"], NEGATIVE, dashed=True))
    which, title = ("recall", "recall") if "recall" in columns else ("n_edges", "edges")
    right = Side(title, [Line(title, columns[which], NEUTRAL)], from_zero=True)
    return Chart("seconds", columns["seconds"], Side("nats per row", left), right)


def path_chart(points: Sequence[PathPoint]) -> Chart:
    """Return the chart of a path: its edges, and the measure that compares its models."""
    penalties = np.array([point.penalty for point in points])
    n_edges = np.array([point.n_edges for point in points], np.float64)
    title, values = "held-out log-pseudolikelihood", np.array([p.held_out for p in points])
    best = int(np.argmax(values))
    if not np.isfinite(values).all():
        title, values = "EBIC", np.array([p.ebic for p in points])
        best = int(np.argmin(values))
    left = Side("edges", [Line("edges", n_edges, POSITIVE)], from_zero=True)
    right = Side(title, [Line(title, values, NEGATIVE, dashed=True)])
    log = bool((penalties > 0).all())
    return Chart("penalty", penalties, left, right, log=log, reverse=True, mark=best)


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


def plot_path(points: Sequence[PathPoint], ax: Axes | None = None) -> Axes:
    """Draw the number of edges along a path of penalties, the largest penalty on the left.

    The right axis shows the mean log-pseudolikelihood of held-out rows if there are any, otherwise
    the EBIC; a line marks the best model by that measure. `points` are those of
    :func:`~edgegraft.learn.selection.path.penalty_path`; the left axes are returned.
    """
    if not len(points):
        raise DataError("the path has no points to draw")
    return _draw(path_chart(points), ax)


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
    if chart.log:
        ax.set_xscale("log")
    ax.xaxis.set_inverted(chart.reverse)
    ax.set_xlabel(chart.title)
    if chart.mark is not None:
        best = chart.left.lines[0].values[chart.mark]
        ax.axvline(chart.x[chart.mark], color=NEUTRAL, linewidth=1, label=f"best: {best:,.0f}")
    handles = [*ax.get_legend_handles_labels()[0], *right.get_legend_handles_labels()[0]]
    right.legend(handles=handles, framealpha=0.8, edgecolor="none", fontsize=8, loc="best")
    return ax
