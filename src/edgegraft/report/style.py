"""Style of pictures and pages: colours, axes, and text that is shown literally.

The hues are those of Okabe and Ito (2008), distinguishable with any kind of colour vision. Blue and
vermillion are reserved for signs, so that the colours of lines and dots are never confused; groups
use the other hues and, when these run out, another shape.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from edgegraft.core.types import Floats
from edgegraft.errors import import_extra

if TYPE_CHECKING:
    from matplotlib.axes import Axes

POSITIVE = "#0072B2"
NEGATIVE = "#D55E00"
NEUTRAL = "#8A8A8A"
INK = "#222222"
OTHER = "#C4C4C4"

_HUES = ("#E69F00", "#56B4E9", "#009E73", "#CC79A7", "#F0E442")
_SHAPES = ("circle", "square", "triangle")
MAX_GROUPS = len(_HUES) * len(_SHAPES)


class Style(NamedTuple):
    """Style of the members of a group."""

    colour: str
    shape: str


def group_style(group: int) -> Style:
    """Return the style of a group; groups count from 0, and -1 means no group.

    >>> group_style(0), group_style(5).shape, group_style(-1).colour
    (Style(colour='#E69F00', shape='circle'), 'square', '#C4C4C4')
    """
    if not 0 <= group < MAX_GROUPS:
        return Style(OTHER, "circle")
    return Style(_HUES[group % len(_HUES)], _SHAPES[group // len(_HUES)])


def sign_colour(sign: int) -> str:
    """Return the colour of an edge whose sign is 1, -1 or 0 for none."""
    return {1: POSITIVE, -1: NEGATIVE}.get(sign, NEUTRAL)


def diverging(value: float, limit: float) -> str:
    """Return the colour of a number between vermillion (-limit), white (0) and blue (limit).

    >>> diverging(0.0, 1.0), diverging(-2.0, 1.0)
    ('#ffffff', '#d55e00')
    """
    share = max(-1.0, min(1.0, value / limit)) if limit > 0 else 0.0
    end = POSITIVE if share > 0 else NEGATIVE
    channels = (int(end[k : k + 2], 16) for k in (1, 3, 5))
    return "#" + "".join(f"{round(255 + (c - 255) * abs(share)):02x}" for c in channels)


_LONGEST = 32


def require_matplotlib() -> None:
    """Raise an error before any work if matplotlib is not installed."""
    import_extra("matplotlib", "plot", "a picture")


def axes_or_new(ax: Axes | None, width: float, height: float) -> Axes:
    """Return `ax`, or the axes of a new figure of this size in inches."""
    if ax is not None:
        return ax
    require_matplotlib()
    import matplotlib.pyplot as plt

    _, made = plt.subplots(figsize=(width, height), layout="constrained")
    return made


def shown(label: Any, longest: int = _LONGEST) -> str:
    r"""Return a label on one line, shortened if it is too long for a picture.

    >>> shown("two\nlines"), shown("a rather long name", 10)
    ('two lines', 'a rather …')
    """
    text = " ".join(str(label).split()) or "(blank)"
    text = text.encode("utf-8", "backslashreplace").decode()  # halves of surrogate pairs
    return text if len(text) <= longest else text[: longest - 1] + "…"


def heat_map(ax: Axes, table: Floats, limit: float, label: str = "", **image: Any) -> None:
    """Draw a table in the colours of signs up to `limit`, with a bar of them if it has a label.

    What is not finite is dark.
    """
    from matplotlib.colors import LinearSegmentedColormap

    signs = LinearSegmentedColormap.from_list("sign", [NEGATIVE, "white", POSITIVE])
    image |= {"cmap": signs.with_extremes(bad=INK), "vmin": -limit, "vmax": limit}
    drawn = ax.imshow(np.ma.masked_invalid(table), **image)
    figure = ax.get_figure(root=True)
    if label and figure is not None:
        figure.colorbar(drawn, ax=ax, label=label)


def name_rows(ax: Axes, names: Sequence[Any], across: bool = False) -> None:
    """Name the rows of a picture, and also its columns if they are the same."""
    ax.set_yticks(np.arange(len(names)), names)
    if across:
        ax.set_xticks(np.arange(len(names)), names, rotation=90)
    literal(ax)


def literal(ax: Axes) -> None:
    """Prevent dollar signs in tick labels from being parsed as formulas."""
    for tick in (*ax.get_xticklabels(), *ax.get_yticklabels()):
        tick.set_parse_math(False)
