"""The networks of groups side by side on one layout, and their differences."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from edgegraft.core.types import Floats, Mask
from edgegraft.report.axes import require_matplotlib, shown
from edgegraft.report.network import Network, build_network
from edgegraft.report.network_plot import draw_names, draw_network, figure_size
from edgegraft.study.comparison import Comparison

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def plot_comparison(found: Comparison, *, seed: int = 0) -> list[Axes]:
    """Draw the network of each group, and the edges that differ, on one layout.

    A group's picture has the edges of its own network, their widths and colours being effects and
    signs. The last picture has the edges that differ: blue if the effect is larger in the second of
    two groups, vermillion if it is smaller, grey if there are more groups or no signs.

    Parameters
    ----------
    found : Comparison
    seed : int, default 0
        As in :func:`edgegraft.report.plot_network`.

    Returns
    -------
    list of Axes
        One per group, then that of the differences.
    """
    require_matplotlib()
    import matplotlib.pyplot as plt

    columns = found.edges
    effects = {name: np.nan_to_num(columns[f"effect_{name}"]) for name in found.groups}
    largest = np.max([np.abs(effect) for effect in effects.values()], axis=0, initial=0.0)
    model, _ = found.first_model()
    order = found.places()
    whole = build_network(model, strengths=largest[order], colour_by="community", seed=seed)
    width, height = figure_size(whole)
    n = len(found.groups) + 1
    _, axes = plt.subplots(1, n, figsize=(0.8 * n * width, 0.8 * height), layout="constrained")
    apart = np.nan_to_num(columns["difference"])
    parts = [(name, effects[name], columns[f"in_{name}"]) for name in found.groups]
    noun = "edge differs" if found.n_different == 1 else "edges differ"
    parts.append((f"{found.n_different} {noun}", apart, columns["differs"]))
    signed = len(found.groups) == 2
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
