"""Bins of a numeric column: edges from its distribution, and labels that people can read.

Bins are closed on the left, ``[a, b)``, and the last one on both sides. Applied to new data the
first and the last bin are open-ended: a value beyond the range that was seen falls into the
nearest bin.
"""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from edgegraft.ingest.options import BinRule
from edgegraft.table.builder import MISSING

__all__ = ["assign_bins", "bin_edges", "bin_labels"]


def bin_edges(
    values: NDArray[np.float64], counts: NDArray[np.int64], n_bins: int, rule: BinRule
) -> tuple[float, ...]:
    """Return the edges of at most `n_bins` bins.

    Parameters
    ----------
    values : array of float64
        The distinct values, ascending; two or more.
    counts : array of int64
        How often each occurs.
    n_bins : int
    rule : {"quantile", "uniform"}
        Bins of nearly equal counts, of which heavy ties leave fewer; or of equal widths.

    Examples
    --------
    >>> import numpy as np
    >>> from edgegraft.ingest.binning import bin_edges
    >>> bin_edges(np.arange(10.0), np.ones(10, np.int64), 2, "quantile")
    (0.0, 5.0, 9.0)
    """
    low, high = float(values[0]), float(values[-1])
    if rule == "uniform":
        # Scaled steps, because the range itself can overflow to infinity.
        inner = [low * (1 - k / n_bins) + high * (k / n_bins) for k in range(1, n_bins)]
        return tuple(_rising([low, *inner, high]))
    before = np.cumsum(counts) - counts
    targets = np.arange(1, n_bins) * (counts.sum() / n_bins)
    after = np.searchsorted(before, targets).clip(1, len(values) - 1)
    # Whichever of the two neighbouring cuts leaves the more even bins.
    nearer = targets - before[after - 1] < before[after] - targets
    cuts = np.unique(np.where(nearer & (after > 1), after - 1, after))
    inner = [_short_between(float(values[i - 1]), float(values[i])) for i in cuts]
    return tuple(_rising([low, *inner, high]))


def _rising(edges: list[float]) -> list[float]:
    """Drop inner edges that rounding made equal; the last bin may be a single point."""
    kept = [edges[0]]
    for edge in edges[1:-1]:
        if edge > kept[-1]:
            kept.append(edge)
    return [*kept, edges[-1]]


def _short_between(below: float, value: float) -> float:
    """Return the number of fewest decimals in ``(below, value]``: an edge that reads well."""
    gap = value - below
    if not 1e-15 <= gap <= 1e15 or abs(value) > 1e15:  # no short number to be found
        return value
    first = -math.floor(math.log10(gap)) - 1
    for digits in range(first, first + 4):
        edge = round(value, digits)
        if edge > value:
            edge = round(edge - 10.0**-digits, digits)
        if below < edge <= value:
            return edge
    return value


def bin_labels(edges: tuple[float, ...]) -> tuple[str, ...]:
    """Return interval labels with the fewest digits that tell the edges apart.

    Examples
    --------
    >>> from edgegraft.ingest.binning import bin_labels
    >>> bin_labels((0.0, 1.25, 3.000001))
    ('[0, 1.25)', '[1.25, 3]')
    """
    texts = _edge_texts(edges)
    last = len(texts) - 2
    return tuple(
        f"[{low}, {high}{']' if k == last else ')'}"
        for k, (low, high) in enumerate(pairwise(texts))
    )


def _edge_texts(edges: tuple[float, ...]) -> list[str]:
    with np.errstate(over="ignore"):
        widths = np.diff(edges)
    widths[widths == 0] = np.inf  # a last bin of one point
    # Rounding may move a printed edge by a fiftieth of the narrower bin beside it, no more.
    slack = np.minimum(np.append(widths[0], widths), np.append(widths, widths[-1])) / 50
    if all(edge.is_integer() and abs(edge) < 1e15 for edge in edges):
        return [str(int(edge)) for edge in edges]
    for digits in range(1, 17):
        texts = [f"{edge:.{digits}g}" for edge in edges]
        near = np.abs(np.array(texts, np.float64) - edges) <= slack
        if near.all() and len(set(texts)) == len(set(edges)):
            return [_plain(text) for text in texts]
    return [repr(edge) for edge in edges]


def _plain(text: str) -> str:
    """Write small exponents out: ``2e+03`` is 2000."""
    value = float(text)
    if value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return text


def assign_bins(values: NDArray[np.float64], edges: tuple[float, ...]) -> NDArray[np.uint16]:
    """Return the bin of every value, `MISSING` for NaN."""
    codes = np.searchsorted(np.array(edges[1:-1]), values, side="right").astype(np.uint16)
    codes[np.isnan(values)] = MISSING
    return codes
