"""Style of pictures and pages: colours, axes, limits, and how values become text.

The hues are from Okabe and Ito (2008), distinguishable with any kind of colour vision. Blue and
vermillion are reserved for signs, so that the colours of lines and dots are never confused; groups
use the other hues and, when these run out, another shape.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from edgegraft.core.types import Floats, Integers
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


@dataclass(frozen=True)
class _Limits:
    """How much of a large model is shown."""

    drawn: int = 3000  # edges of an interactive network: what a browser moves smoothly
    alone: int = 30  # variables without an edge, even if they are the majority: two rows of dots
    lines: int = 400  # that names avoid; of more edges, lines are everywhere
    rows: int = 100  # of a table of a page, or variables of a picture: two printed pages
    variables: int = 1000  # of the sortable table: more take a browser seconds to lay out
    edges: int = 50  # with interaction tables on paper
    opened: int = 4  # of these without a click: one screen
    table: int = 12  # rows and columns of an interaction table: the width of a phone
    cells: int = 40_000  # of all interaction tables of a page: half a megabyte
    points: int = 500  # of a line: pixels of a chart
    label: int = 32  # letters of a name in a picture: a sixth of its width


LIMITS = _Limits()


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


class Cell(NamedTuple):
    """A number of an interaction table on its colour."""

    text: str
    background: str
    ink: str


def heat_cell(value: float, limit: float) -> Cell:
    """Return a number on a colour from vermillion (-limit) over white (0) to blue (limit).

    A pair of categories that is forbidden is dark.

    >>> heat_cell(0.0, 1.0).background, heat_cell(-2.0, 1.0)
    ('#ffffff', Cell(text='-2.00', background='#d55e00', ink='white'))
    """
    if not math.isfinite(value):
        return Cell("never", INK, "white")
    share = max(-1.0, min(1.0, value / limit)) if limit > 0 else 0.0
    end = POSITIVE if share > 0 else NEGATIVE
    channels = (int(end[k : k + 2], 16) for k in (1, 3, 5))
    colour = "#" + "".join(f"{round(255 + (c - 255) * abs(share)):02x}" for c in channels)
    return Cell(f"{value:+.2f}", colour, "white" if abs(share) > 0.65 else INK)


def largest_entry(table: Floats) -> float:
    """Return the size of the largest finite entry: the limit of a table's colours."""
    return float(np.abs(table[np.isfinite(table)]).max(initial=0.0))


def strongest_part(table: Floats, limit: int) -> tuple[Integers, Integers]:
    """Return the rows and columns with the largest entries, in their order.

    Forbidden pairs count as the largest.

    >>> strongest_part(np.array([[0.0, 1.0], [-3.0, 0.0], [-np.inf, 0.0]]), 2)
    (array([1, 2]), array([0, 1]))
    """
    largest = (np.abs(table).max(axis=axis) for axis in (1, 0))
    rows, columns = (np.sort(np.argsort(-size, kind="stable")[:limit]) for size in largest)
    return rows, columns


def shown(label: Any, longest: int = LIMITS.label) -> str:
    r"""Return a label on one line, shortened if it is too long for a picture.

    >>> shown("two\nlines"), shown("a rather long name", 10)
    ('two lines', 'a rather …')
    """
    text = " ".join(str(label).split()) or "(blank)"
    text = text.encode("utf-8", "backslashreplace").decode()  # halves of surrogate pairs
    return text if len(text) <= longest else text[: longest - 1] + "…"


def as_words(value: Any, exact: bool = False) -> str:
    """Return a value of a plain type as text: integers with separators, others in three digits.

    Exact numbers have all digits, so that runs can be repeated.

    >>> as_words(12345), as_words(0.012345), as_words(float("inf")), as_words(float("nan"))
    ('12,345', '0.0123', '∞', 'n/a')
    >>> as_words(0.012345, exact=True), as_words([]), as_words(None), as_words(True)
    ('0.012345', 'none', 'none', 'yes')
    """
    value = value.item() if isinstance(value, np.generic) else value
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, list | tuple):
        text = ", ".join(as_words(entry, exact) for entry in value[:20])
        return (text + f", … ({len(value):,} in total)" if len(value) > 20 else text) or "none"
    if not isinstance(value, float):
        return str(value)
    if exact:
        return repr(value)
    if math.isnan(value):
        return "n/a"
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:,.0f}"


def for_json(value: float, digits: int = 4) -> float | None:
    """Return a rounded number, or None if JSON cannot express it."""
    return float(f"{value:.{digits}g}") if math.isfinite(value) else None


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
