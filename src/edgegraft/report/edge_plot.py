"""The interaction table of an edge as a heat map."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from edgegraft.model import PairwiseMRF
from edgegraft.report.axes import axes_or_new, literal, require_matplotlib, shown
from edgegraft.report.palette import INK, NEGATIVE, POSITIVE

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MAX_NUMBERS = 12  # rows and columns of a table with written numbers
_MAX_NAMES = 40


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
        By default, those of a new figure.

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
    require_matplotlib()
    from matplotlib.colors import LinearSegmentedColormap

    table = model.zero_sum().edge_potential(first, second)
    rows, columns = table.shape
    ax = axes_or_new(ax, *np.clip((2.6 + 0.55 * columns, 1.6 + 0.42 * rows), 3.0, 12.0))
    possible = np.isfinite(table)
    limit = max(float(np.abs(table[possible]).max(initial=0.0)), 1e-12)
    colours = LinearSegmentedColormap.from_list("sign", [NEGATIVE, "white", POSITIVE])
    image = ax.imshow(
        np.ma.masked_array(table, ~possible),
        cmap=colours.with_extremes(bad=INK),
        vmin=-limit,
        vmax=limit,
        aspect="auto",
        interpolation="nearest",
    )
    figure = ax.get_figure(root=True)
    assert figure is not None
    figure.colorbar(image, ax=ax, label="log-potential, zero-sum gauge")
    _name_categories(ax, model, first, second)
    if max(rows, columns) <= _MAX_NUMBERS:
        _write_numbers(ax, table, limit)
    return ax


def _name_categories(ax: Axes, model: PairwiseMRF, first: str, second: str) -> None:
    for axis, name in ((ax.yaxis, first), (ax.xaxis, second)):
        labels = [shown(label, 20) for label in model.schema[name].categories]
        step = -(-len(labels) // _MAX_NAMES)
        axis.set_ticks(range(0, len(labels), step), labels[::step])
        axis.set_label_text(shown(name, 48), parse_math=False)
    tilted = max(len(shown(label, 20)) for label in model.schema[second].categories) > 5
    ax.tick_params(length=0, labelsize=8)
    if tilted:
        for tick in ax.get_xticklabels():
            tick.set(rotation=35, ha="right", rotation_mode="anchor")
    literal(ax)


def _write_numbers(ax: Axes, table: np.ndarray, limit: float) -> None:
    for (row, column), value in np.ndenumerate(table):
        dark = not np.isfinite(value) or abs(value) > 0.65 * limit
        ax.text(
            column,
            row,
            f"{value:+.2f}" if np.isfinite(value) else "never",
            ha="center",
            va="center",
            fontsize=8,
            color="white" if dark else INK,
        )
