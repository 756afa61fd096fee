"""Pictures of a model and of its search: the table of an edge, probabilities, the objective."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from edgegraft.core.types import Floats
from edgegraft.errors import DataError, ModelError, listing
from edgegraft.model import NodeMarginals, PairwiseMRF
from edgegraft.model.evidence import with_evidence
from edgegraft.report.style import (
    INK,
    LIMITS,
    NEGATIVE,
    NEUTRAL,
    POSITIVE,
    axes_or_new,
    heat_cell,
    heat_map,
    largest_entry,
    literal,
    require_matplotlib,
    shown,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class _Room:
    """How much fits in a picture of one screen at 8 points."""

    names: int = 40  # along an axis
    bars: int = 40  # if no variables are named
    states: int = 10  # of one variable; further ones are one bar


_ROOM = _Room()


def plot_edge(model: PairwiseMRF, first: str, second: str, ax: Axes | None = None) -> Axes:
    """Draw how the categories of two variables that share an edge attract and repel each other.

    The table is in zero-sum gauge: rows and columns sum to zero, and 0 means that the edge does not
    affect that pair of categories. Blue pairs occur more often, and vermillion ones less often,
    than all other edges and the single variables predict. Forbidden pairs are dark.

    Parameters
    ----------
    model : PairwiseMRF
    first, second : str
        Names of the variables: rows, columns.
    ax : Axes, optional
        By default, the axes of a new figure.

    Returns
    -------
    Axes

    Raises
    ------
    ModelError
        A variable, or an edge between the two, does not exist.
    MissingExtraError
        matplotlib is not installed.

    Examples
    --------
    >>> model = PairwiseMRF.from_potentials(
    ...     {"smoker": ["no", "yes"], "cancer": ["no", "yes"]},
    ...     edges={("smoker", "cancer"): [[1.0, 0.0], [0.0, 1.0]]},
    ... )
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> [cell.get_text() for cell in plot_edge(model, "smoker", "cancer").texts]
    ['+0.50', '-0.50', '-0.50', '+0.50']
    """
    table = model.zero_sum().edge_potential(first, second)
    rows, columns = table.shape
    ax = axes_or_new(ax, *np.clip((2.6 + 0.55 * columns, 1.6 + 0.42 * rows), 3.0, 12.0))
    limit = max(largest_entry(table), 1e-12)
    label = "log-potential, zero-sum gauge"
    heat_map(ax, table, limit, label, aspect="auto", interpolation="nearest")
    _name_categories(ax, model, first, second)
    if max(rows, columns) <= LIMITS.table:
        for (row, column), value in np.ndenumerate(table):
            cell = heat_cell(float(value), limit)
            text = ax.text(column, row, cell.text, fontsize=8, color=cell.ink)
            text.set(ha="center", va="center")
    return ax


def plot_marginals(
    model: PairwiseMRF | NodeMarginals,
    names: Iterable[str] | None = None,
    given: Mapping[str, Any] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the probabilities of categories, with and without evidence.

    Parameters
    ----------
    model : PairwiseMRF or NodeMarginals
        A model, or its answer to :meth:`~edgegraft.model.PairwiseMRF.marginals`.
    names : iterable of str, optional
        Variables to draw. By default those that the evidence changes most or, without evidence,
        the first, as many as fit.
    given : dict of name to category, optional
        Evidence, for a model, which is drawn first, in grey. Dark ticks show the probabilities
        without it.
    ax : Axes, optional
        By default, the axes of a new figure.

    Returns
    -------
    Axes
        The engine that answered is named below it.

    Examples
    --------
    >>> model = PairwiseMRF.from_potentials(
    ...     {"smoker": ["no", "yes"], "cancer": ["no", "yes"]},
    ...     edges={("smoker", "cancer"): [[1.0, 0.0], [0.0, 1.0]]},
    ... )
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> ax = plot_marginals(model, given={"smoker": "yes"})
    >>> [round(float(bar.get_width()), 3) for bar in ax.patches]
    [0.0, 1.0, 0.269, 0.731]
    """
    require_matplotlib()
    known = dict(given or {})
    if isinstance(model, PairwiseMRF):
        answer = with_evidence(model.marginals(given), model.schema, known)
        prior = model.marginals() if known else None
    else:
        if known:
            raise ValueError("evidence needs a model: these marginals have been computed already")
        answer, prior = model, None
    chosen = [*known, *_chosen(answer, prior, names, known)]
    bars = [bar for name in chosen for bar in _bars(answer, prior, name, name in known)]
    at = np.arange(len(bars)) + np.cumsum([bar.heading != "" for bar in bars])
    ax = axes_or_new(ax, 6.0, float(np.clip(0.9 + 0.24 * (at[-1] if len(at) else 1), 1.6, 30.0)))
    colours = [NEUTRAL if bar.given else POSITIVE for bar in bars]
    ax.barh(at, [bar.now for bar in bars], height=0.8, color=colours, alpha=0.85)
    if prior is not None:
        ax.plot([bar.before for bar in bars], at, "|", color=INK, markersize=9, markeredgewidth=2)
    ax.set_yticks(at, [bar.label for bar in bars], fontsize=8)
    ax.tick_params(axis="y", length=0)
    bold: dict[str, Any] = {"va": "center", "fontsize": 8, "weight": "bold", "parse_math": False}
    for y, bar in zip(at, bars, strict=True):
        if bar.heading:
            ax.text(0.0, y - 0.85, shown(bar.heading, 48), **bold)
    ax.set_xlim(0, 1)
    if len(at):
        ax.set_ylim(at[-1] + 0.6, at[0] - 1.4)
    ax.set_xlabel(f"probability ({_source(answer)})")
    for side in ("top", "right", "left"):
        ax.spines[side].set_visible(False)
    literal(ax)
    return ax


def _name_categories(ax: Axes, model: PairwiseMRF, first: str, second: str) -> None:
    for axis, name in ((ax.yaxis, first), (ax.xaxis, second)):
        labels = [shown(label, 20) for label in model.schema[name].categories]
        step = -(-len(labels) // _ROOM.names)
        axis.set_ticks(range(0, len(labels), step), labels[::step])
        axis.set_label_text(shown(name, 48), parse_math=False)
    tilted = max(len(shown(label, 20)) for label in model.schema[second].categories) > 5
    ax.tick_params(length=0, labelsize=8)
    if tilted:
        for tick in ax.get_xticklabels():
            tick.set(rotation=35, ha="right", rotation_mode="anchor")
    literal(ax)


class Bar(NamedTuple):
    """A category of a variable; the first of each has its heading."""

    heading: str
    label: str
    now: float
    before: float
    given: bool


def _chosen(
    answer: NodeMarginals,
    prior: NodeMarginals | None,
    names: Iterable[str] | None,
    given: Mapping[str, Any],
) -> list[str]:
    """Return the variables to draw besides those that are given."""
    order = [name for name in answer if name not in given]
    if names is not None:
        wanted = [names] if isinstance(names, str) else list(names)
        unknown = [name for name in wanted if name not in answer]
        if unknown:
            raise ModelError(
                f"there is no marginal of {unknown[0]!r}: the answer has no such variable, or it "
                f"is given; there are {listing(order, 8)}"
            )
        return [name for name in wanted if name not in given]
    if prior is not None:
        change = [np.abs(answer.array(name) - prior.array(name)).sum() for name in order]
        order = [order[k] for k in np.argsort(-np.array(change), kind="stable")]
    sizes = np.cumsum([min(len(answer.array(name)), _ROOM.states) for name in order])
    return order[: max(int((sizes <= _ROOM.bars).sum()), 1)]


def _bars(answer: NodeMarginals, prior: NodeMarginals | None, name: str, given: bool) -> list[Bar]:
    """Return the bars of a variable."""
    categories, now = answer.schema[name].categories, answer.array(name)
    before = now if prior is None else prior.array(name)
    kept = list(range(len(now)))
    if len(now) > _ROOM.states:
        kept = np.sort(np.argsort(-now, kind="stable")[: _ROOM.states - 1]).tolist()
    rows = [(shown(categories[k], 24), float(now[k]), float(before[k])) for k in kept]
    if len(kept) < len(now):
        rest = np.delete(np.arange(len(now)), kept)
        rows.append((f"{len(rest):,} others", float(now[rest].sum()), float(before[rest].sum())))
    heading = f"{name} (given)" if given else name
    return [Bar(heading if k == 0 else "", *row, given) for k, row in enumerate(rows)]


def _source(answer: NodeMarginals) -> str:
    if answer.engine.exact:
        return "exact"
    return f"{answer.engine.name}, {'converged' if answer.info.converged else 'NOT CONVERGED'}"


def trace_chart(trace: Mapping[str, ArrayLike]) -> dict[str, Any]:
    """Return the chart of a search: its objective, and its edges or its recall.

    Two vertical axes, left and right, have lines over one horizontal axis.
    """
    columns = _check_trace(trace)

    def line(title: str, name: str, colour: str, dashed: bool = False) -> dict[str, Any]:
        return {"name": title, "values": columns[name], "colour": colour, "dashed": dashed}

    left = [line("objective", "objective", POSITIVE)]
    if "held_out" in columns:
        left.append(line("held out", "held_out", NEGATIVE, dashed=True))
    name, title = ("recall", "recall") if "recall" in columns else ("n_edges", "edges")
    return {
        "title": "seconds",
        "x": columns["seconds"],
        "left": {"title": "nats per row", "lines": left, "from_zero": False},
        "right": {"title": title, "lines": [line(title, name, NEUTRAL)], "from_zero": True},
    }


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
        By default, the axes of a new figure.

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
    chart = trace_chart(trace)
    ax = axes_or_new(ax, 6.4, 3.6)
    right = ax.twinx()
    for axes, side in ((ax, chart["left"]), (right, chart["right"])):
        for line in side["lines"]:
            style = {"linestyle": "--" if line["dashed"] else "-", "color": line["colour"]}
            axes.plot(chart["x"], line["values"], marker=".", label=line["name"], **style)
        axes.set_ylabel(side["title"], color=INK)
        if side["from_zero"]:
            axes.set_ylim(bottom=0)
    ax.set_xlabel(chart["title"])
    handles = [*ax.get_legend_handles_labels()[0], *right.get_legend_handles_labels()[0]]
    right.legend(handles=handles, framealpha=0.8, edgecolor="none", fontsize=8, loc="best")
    return ax


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
