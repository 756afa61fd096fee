"""Plots of answers: power of a study, and what is read from a network."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from edgegraft.core.types import Floats, Integers, Mask
from edgegraft.report.network import Network, build_network
from edgegraft.report.network_plot import draw_names, draw_network, figure_size
from edgegraft.report.style import (
    INK,
    NEGATIVE,
    NEUTRAL,
    POSITIVE,
    axes_or_new,
    heat_map,
    name_rows,
    require_matplotlib,
    shown,
)
from edgegraft.study import Comparison, NetworkReading, PowerPlan
from edgegraft.study.columns import NORMAL

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.path import Path as MarkerPath


def plot_power(plan: PowerPlan, ax: Axes | None = None) -> Axes:
    """Draw the expected share of edges found against the number of rows, on `ax` or anew."""
    ax = axes_or_new(ax, 6.0, 4.0)
    rows, curve = plan.curve["rows"], plan.curve
    ax.semilogx(rows, curve["power"], color=POSITIVE, label="theory")
    if "power_low" in curve:
        band = curve["power_low"], curve["power_high"]
        label = "interval of 95 %"
        ax.fill_between(rows, *band, color=POSITIVE, alpha=0.15, linewidth=0, label=label)
    if "simulated" in curve:
        ax.plot(rows, curve["simulated"], "o", color=NEGATIVE, label="simulation")
    ax.axhline(plan.power, color=NEUTRAL, linewidth=0.8)
    if np.isfinite(plan.rows):
        ax.axvline(plan.rows, color=NEUTRAL, linewidth=0.8)
        ax.annotate(f"{plan.rows:,.0f} rows", (plan.rows, 0.02), rotation=90, va="bottom")
    ax.set(xlabel="rows", ylabel="share of edges found", ylim=(0.0, 1.02))
    ax.legend(frameon=False, loc="upper left", fontsize=8)
    return ax


def plot_centrality(reading: NetworkReading, ax: Axes | None = None) -> Axes:
    """Draw strength and influence of variables with intervals of 95 %, strongest on top."""
    columns = reading.variables
    order = np.argsort(columns["strength"], kind="stable")
    ax = axes_or_new(ax, 6.5, 1.5 + 0.25 * len(order))
    _intervals(ax, columns, ("strength", "strength_low", "strength_high"), order, 0.12)
    influence = "influence", "influence_low", "influence_high"
    _intervals(ax, columns, influence, order, -0.12, NEGATIVE, label="expected influence")
    name_rows(ax, [shown(name) for name in columns["name"][order]])
    ax.set(xlabel="sum of effects, with intervals of 95 %")
    ax.legend(frameon=False, loc="lower right")
    return ax


def plot_edge_intervals(reading: NetworkReading, ax: Axes | None = None, *, top: int = 60) -> Axes:
    """Draw the effects of edges with their intervals of 95 %, the strongest `top` of them."""
    columns = reading.edges
    strongest = np.argsort(-np.abs(columns["effect"]), kind="stable")[:top]
    order = strongest[np.argsort(columns["effect"][strongest], kind="stable")]
    ax = axes_or_new(ax, 6.5, 1.5 + 0.2 * len(order))
    _intervals(ax, columns, ("effect", "low", "high"), order)
    name_rows(ax, _edge_names(reading, order))
    ax.set(xlabel="effect, with intervals of 95 %")
    return ax


def _intervals(
    ax: Axes,
    columns: dict[str, NDArray[Any]],
    names: tuple[str, str, str],
    order: Integers,
    shift: float = 0.0,
    colour: str = POSITIVE,
    label: str = "",
) -> None:
    """Draw values with their intervals, one row each."""
    at = np.arange(len(order)) + shift
    value, low, high = (columns[name][order] for name in names)
    ax.hlines(at, low, high, color=colour, linewidth=1.2)
    ax.plot(value, at, "o", color=colour, markersize=4, label=label or names[0])
    ax.set_ylim(-0.6, len(order) - 0.4)
    ax.axvline(0.0, color=NEUTRAL, linewidth=0.8)


def plot_stability(reading: NetworkReading, ax: Axes | None = None) -> Axes:
    """Draw the correlation of centralities of fewer rows with the centralities of all rows."""
    ax = axes_or_new(ax, 6.0, 4.0)
    columns = reading.dropped
    for name, colour, line in (("strength", POSITIVE, "-"), ("influence", NEGATIVE, "--")):
        label = f"{name}, coefficient {reading.coefficient[name]:.2f}"
        ax.plot(columns["share"], columns[f"{name}_correlation"], line, color=colour, label=label)
        band = columns[f"{name}_low"], columns[f"{name}_correlation"]
        ax.fill_between(columns["share"], *band, color=colour, alpha=0.15)
    ax.axhline(0.7, color=NEUTRAL, linewidth=0.8)
    ax.set(xlabel="share of rows dropped", ylabel="correlation with all rows", ylim=(-0.05, 1.02))
    ax.legend(frameon=False, loc="lower left")
    return ax


def plot_adjacency(reading: NetworkReading, ax: Axes | None = None) -> Axes:
    """Draw the effects of all pairs as a heat map, variables of a community side by side."""
    n, community = reading.model.n_variables, reading.variables["community"]
    order = np.lexsort((-reading.variables["strength"], np.where(community < 0, n, community)))
    matrix = reading.model.adjacency(reading.edges["effect"])[np.ix_(order, order)]
    limit = float(np.abs(matrix).max(initial=1e-9))
    names = [shown(reading.model.names[i], 16) for i in order]
    return _square(ax, matrix, names, limit, 0.22, "effect")


def _square(
    ax: Axes | None,
    matrix: Floats,
    names: list[str],
    limit: float,
    inches: float,
    label: str = "",
) -> Axes:
    """Draw a matrix whose rows and columns have the same names."""
    side = 2.0 + inches * len(names)
    ax = axes_or_new(ax, side + 1.0, side)
    heat_map(ax, matrix, limit, label)
    name_rows(ax, names, across=True)
    return ax


def plot_predictability(reading: NetworkReading, ax: Axes | None = None, *, seed: int = 0) -> Axes:
    """Draw the network, the share of entropy that is explained as a ring around each dot."""
    require_matplotlib()
    effect, model = reading.edges["effect"], reading.model
    signs = dict(model.edge_columns).get("sign", np.sign(effect))
    network = build_network(model, strengths=np.abs(effect), signs=signs, seed=seed)
    ax = axes_or_new(ax, *figure_size(network))
    radii, _ = draw_network(ax, network)
    share = np.nan_to_num(np.clip(reading.variables["explained"][network.variables], 0.0, 1.0))
    for (x, y), radius, part in zip(network.spots, radii, share, strict=True):
        size = float(2.9 * radius) ** 2
        ax.scatter(x, y, s=size, color="white", linewidths=0, zorder=1.4)  # lines end at the ring
        for portion, colour in ((1.0, "#dddddd"), (float(part), INK)):
            ax.scatter(x, y, s=size, marker=_ring(portion), color=colour, linewidths=0, zorder=1.5)
    draw_names(ax, network, 1.5 * radii)
    ax.set_title("rings: share of the entropy that the others explain", fontsize=9)
    return ax


def plot_edge_differences(
    reading: NetworkReading, ax: Axes | None = None, *, top: int = 40
) -> Axes:
    """Draw which effects of edges differ; effects of the strongest `top` are on the diagonal.

    Blue: the effect of the row is larger than the column's, by size; vermillion: smaller;
    white: zero is in the interval of 95 % of their difference.
    """
    columns, (differences, error) = reading.edges, reading.influence.differences()
    order = np.argsort(-np.abs(columns["effect"]), kind="stable")[:top]
    differs = np.sign(differences) * (np.abs(differences) > NORMAL * error)
    names = _edge_names(reading, order)
    ax = _square(ax, differs[np.ix_(order, order)], names, 1.0, 0.25)
    for at, k in enumerate(order):
        ax.text(at, at, f"{columns['effect'][k]:.2f}", ha="center", va="center", fontsize=6)
    return ax


def _edge_names(reading: NetworkReading, order: Integers) -> list[str]:
    ends = zip(reading.edges["first"][order], reading.edges["second"][order], strict=True)
    return [f"{shown(a, 20)} -- {shown(b, 20)}" for a, b in ends]


#: Pictures of a network read by name, with their descriptions.
READING_PLOTS: dict[str, tuple[Callable[[NetworkReading], Axes], str]] = {
    "network": (plot_predictability, "The network, rings showing the share explained"),
    "centrality": (plot_centrality, "Centralities with intervals"),
    "edges": (plot_edge_intervals, "Effects of edges with intervals"),
    "differences": (plot_edge_differences, "Which effects of edges differ"),
    "stability": (plot_stability, "Correlation of centralities if rows are dropped"),
    "adjacency": (plot_adjacency, "Effects as a heat map"),
}


def _ring(share: float) -> MarkerPath:
    """Return a part of a ring, clockwise from the top."""
    from matplotlib.path import Path

    turn = np.linspace(0.0, 2 * np.pi * max(share, 1e-3), 60)
    outer = np.column_stack((np.sin(turn), np.cos(turn)))
    return Path(np.vstack((outer, 0.8 * outer[::-1])))


def plot_comparison(comparison: Comparison, *, seed: int = 0) -> list[Axes]:
    """Draw the network of each group, and the edges that differ, on one layout; return all axes.

    A group's picture has the edges of its own network and those that do not differ, their widths
    and colours being its effects, on one scale for all pictures, and signs. The last picture has
    the edges that differ: blue if the effect is larger in the second of two groups, vermillion if
    it is smaller, grey if there are more groups or no signs. `seed` is as in
    :func:`edgegraft.report.plot_network`.
    """
    require_matplotlib()
    import matplotlib.pyplot as plt

    columns = comparison.edges
    effects = {name: np.nan_to_num(columns[f"effect_{name}"]) for name in comparison.groups}
    largest = np.max([np.abs(effect) for effect in effects.values()], axis=0, initial=0.0)
    order = comparison.places()
    whole = build_network(comparison.first_model(), strengths=largest[order], seed=seed)
    drawn = np.any([comparison.shown_in(name) for name in comparison.groups], axis=0)
    whole = whole._replace(largest=float(largest[drawn].max(initial=0.0)) or None)
    width, height = figure_size(whole)
    n = len(comparison.groups) + 1
    down = math.ceil(n / math.ceil(math.sqrt(2.0 * n * height / width)))  # twice as wide as high
    across = math.ceil(n / down)
    size = (0.8 * across * width, 0.8 * down * height)
    _, grid = plt.subplots(down, across, figsize=size, layout="constrained", squeeze=False)
    axes = grid.ravel()[:n]
    for empty in grid.ravel()[n:]:
        empty.set_axis_off()
    difference = np.nan_to_num(columns["difference"])
    parts = [(name, effects[name], comparison.shown_in(name)) for name in comparison.groups]
    noun = "edge differs" if comparison.n_different == 1 else "edges differ"
    parts.append((f"{comparison.n_different} {noun}", difference, columns["differs"]))
    signed = len(comparison.groups) == 2
    for k, (ax, (title, values, kept)) in enumerate(zip(axes, parts, strict=True)):
        coloured = columns["signed"] & (k < n - 1 or signed)
        part = _part(whole, values[order], kept[order], np.asarray(coloured)[order])
        radii, _ = draw_network(ax, part)
        ax.set_title(shown(title), parse_math=False)
        draw_names(ax, part, radii)
    return list(axes)


def _part(whole: Network, values: Floats, kept: Mask, signed: Mask) -> Network:
    """Return some edges of a network with other values, where the variables are."""
    chosen = np.flatnonzero(kept[whole.which])
    which = whole.which[chosen]
    return whole._replace(
        edges=whole.edges[chosen],
        which=which,
        strength=np.abs(values[which]),
        sign=np.where(signed[which], np.sign(values[which]), 0).astype(np.int64),
        bends=whole.bends[chosen],
    )
