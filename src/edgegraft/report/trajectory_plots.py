"""How a run went, and what other penalties would have given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from edgegraft.errors import DataError
from edgegraft.learn.selection.path import PathPoint
from edgegraft.report.axes import axes_or_new, require_matplotlib
from edgegraft.report.palette import INK, NEGATIVE, NEUTRAL, POSITIVE

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_trace(trace: Mapping[str, ArrayLike], ax: Axes | None = None) -> Axes:
    """Draw the trajectory of a run against its time.

    On the left axis is the objective and, if it was measured, the mean negative
    log-pseudolikelihood of rows held out; on the right axis the recall if the truth is known,
    else the number of edges.

    Parameters
    ----------
    trace : dict of columns
        ``trace_`` of an estimator, ``SearchState.trace()``, or the columns of a ``Monitor``.
    ax : Axes, optional
        A new figure's by default.

    Returns
    -------
    Axes
        The left ones.

    Examples
    --------
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> ax = plot_trace({"seconds": [0, 1], "objective": [2.0, 1.5], "n_edges": [0, 3]})
    >>> [line.get_label() for line in ax.lines]
    ['objective']
    """
    require_matplotlib()
    columns = check_trace(trace)
    ax = axes_or_new(ax, 6.4, 3.6)
    seconds = columns["seconds"]
    ax.plot(seconds, columns["objective"], color=POSITIVE, marker=".", label="objective")
    if "held_out" in columns:
        ax.plot(seconds, columns["held_out"], color=NEGATIVE, linestyle="--", label="held out")
    ax.set_xlabel("seconds")
    ax.set_ylabel("nats per row")
    right = ax.twinx()
    which, title = ("recall", "recall") if "recall" in columns else ("n_edges", "edges")
    right.plot(seconds, columns[which], color=NEUTRAL, drawstyle="steps-post", label=title)
    right.set_ylabel(title, color=INK)
    right.set_ylim(bottom=0, top=1.02 if which == "recall" else None)
    _join_legends(ax, right)
    return ax


def plot_path(points: Sequence[PathPoint], ax: Axes | None = None) -> Axes:
    """Draw the number of edges along a path of penalties, the largest penalty on the left.

    The right axis has the mean log-pseudolikelihood of rows held out if there are any, else
    the EBIC; a line marks the best model by that measure.

    Parameters
    ----------
    points : list of PathPoint
        What :func:`~edgegraft.learn.selection.path.penalty_path` returns.
    ax : Axes, optional
        A new figure's by default.

    Returns
    -------
    Axes
        The left ones.
    """
    require_matplotlib()
    if not len(points):
        raise DataError("the path has no points to draw")
    ax = axes_or_new(ax, 6.4, 3.6)
    penalties = np.array([point.penalty for point in points])
    ax.plot(
        penalties, [point.n_edges for point in points], color=POSITIVE, marker="o", label="edges"
    )
    if (penalties > 0).all():
        ax.set_xscale("log")
    ax.xaxis.set_inverted(True)
    ax.set_xlabel("penalty")
    ax.set_ylabel("edges")
    ax.set_ylim(bottom=0)
    title, values, best = path_measure(points)
    right = ax.twinx()
    right.plot(penalties, values, color=NEGATIVE, linestyle="--", marker=".", label=title)
    right.set_ylabel(title)
    ax.axvline(penalties[best], color=NEUTRAL, linewidth=1, label=f"best: {points[best].n_edges:,}")
    _join_legends(ax, right)
    return ax


def check_trace(trace: Mapping[str, ArrayLike]) -> dict[str, np.ndarray]:
    """Return the columns of a trace that can be drawn, as arrays of one length."""
    wanted = ("seconds", "objective", "n_edges")
    missing = [name for name in wanted if name not in trace]
    if missing:
        raise DataError(
            f"the trace has no column '{missing[0]}': it has {', '.join(map(repr, trace))}; give "
            "what `SearchState.trace()` or `Monitor.columns()` returns"
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


def path_measure(points: Sequence[PathPoint]) -> tuple[str, np.ndarray, int]:
    """Return what models of a path are compared by: its name, its values, and the best point."""
    held_out = np.array([point.held_out for point in points])
    if np.isfinite(held_out).all():
        return "held-out log-pseudolikelihood", held_out, int(np.argmax(held_out))
    ebic = np.array([point.ebic for point in points])
    return "EBIC", ebic, int(np.argmin(ebic))


def _join_legends(left: Axes, right: Axes) -> None:
    handles = [*left.get_legend_handles_labels()[0], *right.get_legend_handles_labels()[0]]
    right.legend(handles=handles, framealpha=0.8, edgecolor="none", fontsize=8, loc="best")
