"""Placement of names beside dots, without overlaps.

For each name, the most important first, eight places around its dot are tried. A place is free if
it is inside the picture and covers neither a dot nor a name placed earlier; of the free places, the
one that covers the fewest lines is used. A name without a free place is omitted.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from edgegraft.core.types import Floats

# Offsets of the centre of a name, in half widths and half heights of the name.
_PLACES = np.array(
    [(1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (-1, 1), (1, -1), (-1, -1)], np.float64
)


def place_labels(
    dots: Floats,
    radii: Floats,
    sizes: Floats,
    frame: Floats,
    lines: Floats | None = None,
    *,
    keep_all: bool = False,
) -> tuple[Floats, NDArray[np.bool_]]:
    """Return the centres of the names, and which of them have a place.

    `dots` are centres, the most important first; `sizes` widths and heights of the names; `frame`
    the lower left and the upper right corner of the picture; `lines` points along its lines. With
    `keep_all`, a name without a free place gets the one that covers the least.

    >>> dots = np.array([[0.0, 0.0], [1.0, 0.0]])
    >>> frame = np.array([[-20.0, -5.0], [20.0, 5.0]])
    >>> middles, kept = place_labels(dots, np.full(2, 1.0), np.full((2, 2), 8.0), frame)
    >>> kept.tolist(), (middles[0, 0] < middles[1, 0]).item()
    ([True, True], True)
    """
    n = len(dots)
    middles, kept = np.zeros((n, 2)), np.zeros(n, np.bool_)
    half = sizes / 2
    points = np.zeros((0, 2)) if lines is None else lines
    for k in range(n):
        tries = dots[k] + _PLACES * (half[k] + radii[k])
        inside = (tries - half[k] >= frame[0]).all(axis=1) & (tries + half[k] <= frame[1]).all(1)
        over_names = _overlaps(tries, half[k], middles[kept], half[kept])
        over_dots = _overlaps(tries, half[k], dots, np.repeat(radii[:, None], 2, axis=1))
        free = inside & (over_names == 0) & (over_dots == 0)
        if not free.any() and not keep_all:
            continue
        over_lines = _overlaps(tries, half[k], points, np.zeros_like(points))
        cost = (
            over_lines / (1.0 + len(points)) + over_dots + 1000.0 * over_names + 100_000.0 * ~inside
        )
        best = int(np.argmin(cost))
        middles[k], kept[k] = tries[best], True
    return middles, kept


def _overlaps(middles: Floats, half: Floats, others: Floats, other_halves: Floats) -> Floats:
    """Return, for each of some boxes of equal size, how many of the other boxes it overlaps."""
    apart = np.abs(middles[:, None, :] - others[None, :, :])
    # Boxes that only touch do not overlap; the tolerance is for rounding.
    meets = (apart < (half + other_halves)[None, :, :] - 1e-6).all(axis=2)
    return np.asarray(meets.sum(axis=1), np.float64)
