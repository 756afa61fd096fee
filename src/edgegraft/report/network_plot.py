"""The network of a model as a picture."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import ArrayLike

from edgegraft.model import PairwiseMRF
from edgegraft.report.layout import curve_points, place_labels
from edgegraft.report.network import ColourBy, Network, build_network, finite_strengths
from edgegraft.report.style import (
    INK,
    LIMITS,
    MAX_GROUPS,
    NEGATIVE,
    NEUTRAL,
    OTHER,
    POSITIVE,
    axes_or_new,
    group_style,
    require_matplotlib,
    shown,
    sign_colour,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D

_MARKERS = {"circle": "o", "square": "s", "triangle": "^"}
_FONT = 8.0  # points: the smallest that prints well


def plot_network(
    model: PairwiseMRF,
    ax: Axes | None = None,
    *,
    min_strength: float | None = None,
    top: int | None = None,
    around: str | None = None,
    colour_by: ColourBy = "community",
    strengths: ArrayLike | None = None,
    signs: ArrayLike | None = None,
    names: bool | Literal["auto"] = "auto",
    legend: bool = True,
    seed: int = 0,
) -> Axes:
    """Draw the network of a model.

    The stronger an edge, the thicker its line; blue and vermillion show the sign of edges between
    variables of two categories (of their log odds ratio, in the order of the categories). The
    stronger the edges of a variable in total, the larger its dot. An edge bends around dots that it
    does not join. Variables without an edge are drawn if all edges are drawn, unless there are more
    than 30 and than variables with an edge.

    Parameters
    ----------
    model : PairwiseMRF
    ax : Axes, optional
        By default, the axes of a new figure.
    min_strength : float, optional
        Draw only edges with at least this strength.
    top : int, optional
        Draw only this many of the strongest edges.
    around : str, optional
        Draw this variable, its neighbours, and the edges among them.
    colour_by : "community", None, or dict of variable to group
        Communities of the drawn edges by the Leiden method. Variables that are missing
        from a dict are grey.
    strengths : array of float, optional
        Strengths to use instead of the model's own, one per edge; for example, corrected ones.
    signs : array of int, optional
        Signs to use instead of the model's own, one per edge in its order: 1, -1 or 0. Those of
        ordered columns are the edge column ``sign`` of a model file.
    names : bool or "auto"
        "auto" omits names that would overlap others, names of weaker variables first.
    legend : bool, default True
        Explain widths, sizes and colours below the picture.
    seed : int, default 0
        Seed of the communities, and of the layout if nodes have the same start.

    Returns
    -------
    Axes

    Raises
    ------
    MissingExtraError
        matplotlib, or graspologic-native for communities, is not installed.

    Examples
    --------
    >>> model = PairwiseMRF.from_potentials(
    ...     {"smoker": ["no", "yes"], "cancer": ["no", "yes"]},
    ...     edges={("smoker", "cancer"): [[1.0, 0.0], [0.0, 1.0]]},
    ... )
    >>> import matplotlib
    >>> matplotlib.use("Agg")
    >>> ax = plot_network(model)
    >>> ax.figure.savefig("network.png")  # doctest: +SKIP
    """
    require_matplotlib()
    if names not in (True, False, "auto"):
        raise ValueError(f"names must be True, False or 'auto', found {names!r}")
    network = build_network(
        model,
        min_strength=min_strength,
        top=top,
        around=around,
        colour_by=colour_by,
        strengths=strengths,
        signs=signs,
        seed=seed,
    )
    ax = axes_or_new(ax, *figure_size(network))
    radii, widths = draw_network(ax, network, around)
    if legend and len(network.names):
        _draw_legend(ax, network, widths, radii, colour_by == "community")
    if names and len(network.names):
        draw_names(ax, network, radii, around, keep_all=names is True)
    return ax


def draw_network(
    ax: Axes, network: Network, around: str | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Draw dots and lines; return the radii and widths in points."""
    ax.set_axis_off()
    if not len(network.names):
        ax.text(0.5, 0.5, "no edges to draw", ha="center", va="center", transform=ax.transAxes)
        return np.zeros(0), np.zeros(0)
    ax.update_datalim(_outline(network))
    ax.margins(0.03, 0.02)
    ax.autoscale_view()
    ax.set_aspect("equal", adjustable="datalim")
    widths = _draw_edges(ax, network) if len(network.edges) else np.zeros(0)
    return _draw_nodes(ax, network, around), widths


def _outline(network: Network) -> np.ndarray:
    curves = curve_points(network.spots[network.edges], network.bends)
    return np.concatenate((network.spots, curves.reshape(-1, 2)))


def figure_size(network: Network) -> tuple[float, float]:
    """Return width and height in inches, in the shape of the layout."""
    side = float(np.clip(5.0 + 0.28 * np.sqrt(len(network.names) * 4.0), 5.0, 14.0))
    extent = np.ptp(_outline(network), axis=0) + 0.2 if len(network.names) else np.ones(2)
    height = 1.25 * side * float(np.clip(extent[1] / extent[0], 0.12, 1.2))
    return 1.25 * side, height + 0.3  # and the legend


def _draw_edges(ax: Axes, network: Network) -> np.ndarray:
    """Draw the edges and return the widths of their lines in points."""
    from matplotlib.collections import LineCollection

    weights = network.weights()
    # Many edges would blacken the picture: weak edges of a large network fade.
    crowd = np.clip(200.0 / max(len(weights), 1), 0.15, 1.0) ** 0.5
    widths = np.asarray((0.4 + 3.6 * weights) * (0.45 + 0.55 * crowd))
    lines = LineCollection(
        list(curve_points(network.spots[network.edges], network.bends)),
        colors=[sign_colour(int(sign)) for sign in network.sign],
        linewidths=widths,
        alpha=np.clip((0.25 + 0.65 * weights) * (0.5 + 0.5 * crowd) + 0.1, 0.0, 0.95),
        capstyle="round",
        zorder=1,
    )
    ax.add_collection(lines)
    return widths


def _draw_nodes(ax: Axes, network: Network, around: str | None) -> np.ndarray:
    """Draw the dots and return their radii in points."""
    share = network.sizes()
    full = float(np.clip(13.0 - 3.2 * np.log10(max(len(share), 1)), 4.5, 12.0))
    radii = full * (0.25 + 0.46 * share)
    centre = np.array([name == around for name in network.names])
    for group in np.unique(network.group):
        members = network.group == group
        style = group_style(int(group))
        ax.scatter(
            network.spots[members, 0],
            network.spots[members, 1],
            s=(2.0 * radii[members]) ** 2,
            c=style.colour,
            marker=_MARKERS[style.shape],
            edgecolors=[INK if c else "white" for c in centre[members]],
            linewidths=[2.0 if c else 0.7 for c in centre[members]],
            zorder=2,
        )
    return np.asarray(radii)


def _draw_legend(
    ax: Axes, network: Network, widths: np.ndarray, radii: np.ndarray, communities: bool
) -> None:
    """Explain width, size and colour below the picture."""
    from matplotlib.lines import Line2D

    strengths = finite_strengths(network.strength)
    total = np.bincount(network.edges.ravel(), np.repeat(strengths, 2), len(network.names))
    handles = []
    for k in _extremes(strengths):
        label = f"strength {strengths[k]:.2g}"
        handles.append(Line2D([], [], color=NEUTRAL, linewidth=float(widths[k]), label=label))
    joined = np.flatnonzero(total > 0)
    for k in joined[_extremes(total[joined])]:
        label = f"sum of strengths {total[k]:.2g}"
        handles.append(_dot(OTHER, label, size=2 * float(radii[k])))
    if network.sign.any():
        kinds = ((1, POSITIVE, "positive"), (-1, NEGATIVE, "negative"), (0, NEUTRAL, "no sign"))
        for sign, colour, label in kinds:
            if (network.sign == sign).any():
                handles.append(Line2D([], [], color=colour, linewidth=2.5, label=label))
    for group, name in enumerate(network.group_names[:MAX_GROUPS]):
        style = group_style(group)
        handles.append(_dot(style.colour, shown(name), _MARKERS[style.shape]))
    grey = (network.group < 0) | (network.group >= MAX_GROUPS)
    if not communities and grey.any():
        handles.append(_dot(OTHER, "other"))
    if communities and (network.group >= 0).any():
        handles.append(_dot(group_style(0).colour, "colours: communities"))
    legend = ax.legend(
        handles=handles,
        loc="upper center",
        bbox_to_anchor=(0.5, 0.0),
        ncols=min(len(handles), 5),
        frameon=False,
        fontsize=_FONT,
    )
    for text in legend.get_texts():
        text.set_parse_math(False)


def _extremes(values: np.ndarray) -> list[int]:
    """Return where the smallest and the largest value are; once if they are equal."""
    return list(dict.fromkeys((int(values.argmin()), int(values.argmax())))) if len(values) else []


def _dot(colour: str, label: str, marker: str = "o", size: float = 7.0) -> Line2D:
    from matplotlib.lines import Line2D

    return Line2D([], [], linestyle="", marker=marker, color=colour, markersize=size, label=label)


def draw_names(
    ax: Axes,
    network: Network,
    radii: np.ndarray,
    around: str | None = None,
    *,
    keep_all: bool = False,
) -> None:
    """Write the names, of strong variables first; shift or omit names that collide."""
    from matplotlib.patheffects import withStroke

    figure = ax.get_figure(root=True)
    assert figure is not None
    figure.draw_without_rendering()  # fixes the position of the axes, and thus the size of a point
    points = 72.0 / figure.dpi  # points per pixel
    dots, bends = (
        ax.transData.transform(spots) * points for spots in (network.spots, network.bends)
    )
    few = len(network.edges) <= LIMITS.lines
    lines = curve_points(dots[network.edges], bends, 60) if few else np.zeros((0, 2))
    frame = np.array(ax.get_window_extent().get_points()) * points
    first = np.array([name != around for name in network.names])
    order = np.lexsort((-network.node_strength(), first))
    texts = [
        ax.annotate(
            shown(network.names[v]),
            tuple(network.spots[v]),
            ha="center",
            va="center",
            fontsize=_FONT,
            color=INK,
            parse_math=False,
            zorder=3,
            path_effects=[withStroke(linewidth=2.2, foreground="white")],
        )
        for v in order
    ]
    sizes = np.array([text.get_window_extent().size for text in texts]) * points
    middles, kept = place_labels(
        dots[order],
        radii[order] + 1.0,
        sizes + np.array([2.0, -1.0]),
        frame,
        lines.reshape(-1, 2),
        keep_all=keep_all,
    )
    for text, spot, dot, keep in zip(texts, middles, dots[order], kept, strict=True):
        if keep:
            text.set(position=tuple(spot - dot), anncoords="offset points")
        else:
            text.remove()
