"""Bins of a numeric column: edges from its distribution, and labels that people can read.

Bins are closed on the left, ``[a, b)``, and the last one on both sides. Applied to new data the
first and the last bin are open-ended: a value beyond the range that was seen falls into the
nearest bin.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from edgegraft.core.types import Floats
from edgegraft.ingest.options import BinRule
from edgegraft.table.schema import MISSING

SAMPLE_ROWS = 1 << 20


def bin_edges(
    values: Floats, counts: NDArray[np.int64], n_bins: int, rule: BinRule
) -> tuple[float, ...]:
    """Return the edges of at most `n_bins` bins of two or more ascending values and their counts.

    The rule "quantile" makes bins of nearly equal counts, of which heavy ties leave fewer.
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
    """Return interval labels with the fewest digits that tell the edges apart."""
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
            shown = [(text, float(text)) for text in texts]  # 2e+03 is 2000
            whole = [value.is_integer() and abs(value) < 1e15 for _, value in shown]
            return [
                str(int(value)) if plain else text
                for (text, value), plain in zip(shown, whole, strict=True)
            ]
    return [repr(edge) for edge in edges]


def assign_bins(values: Floats, edges: tuple[float, ...]) -> NDArray[np.uint16]:
    """Return the bin of every value, `MISSING` for NaN."""
    codes = np.searchsorted(np.array(edges[1:-1]), values, side="right").astype(np.uint16)
    codes[np.isnan(values)] = MISSING
    return codes


class RowSample:
    """A uniform sample of rows that depends on their numbers alone.

    Every row has a priority, a hash of its number, and the `capacity` smallest are kept: the
    sample is the same however the rows are cut into batches. Up to `capacity` rows it is the
    table itself, in order.
    """

    def __init__(self, names: Sequence[str], capacity: int | None = None) -> None:
        self._capacity = SAMPLE_ROWS if capacity is None else capacity
        self._priority: list[NDArray[np.uint64]] = []
        self._values: dict[str, list[Floats]] = {name: [] for name in names}
        self._extremes = dict.fromkeys(names, (np.inf, -np.inf))
        self._n_rows = 0
        self._n_held = 0

    @property
    def complete(self) -> bool:
        """Whether the sample is the whole table."""
        return self._n_rows <= self._capacity

    def offer(self, first_row: int, columns: dict[str, Floats]) -> None:
        """Consider the rows from `first_row` on."""
        n_rows = len(next(iter(columns.values())))
        self._priority.append(_hash(np.arange(first_row, first_row + n_rows, dtype=np.uint64)))
        for name, values in columns.items():
            self._values[name].append(values)
            seen = values[~np.isnan(values)]
            if len(seen):
                low, high = self._extremes[name]
                self._extremes[name] = (min(low, seen.min()), max(high, seen.max()))
        self._n_rows += n_rows
        self._n_held += n_rows
        if self._n_held > 2 * self._capacity:
            self._shrink()

    def values(self, name: str) -> Floats:
        """Return the sampled values of a column, NaN for missing."""
        if self._n_held > self._capacity:
            self._shrink()
        self._values[name] = [np.concatenate(self._values[name] or [np.empty(0)])]
        return self._values[name][0]

    def batch(self) -> pa.RecordBatch:
        """Return the sampled rows."""
        return pa.record_batch({name: pa.array(self.values(name)) for name in self._values})

    def extremes(self, name: str) -> tuple[float, float]:
        """Return the smallest and largest value over all rows."""
        low, high = self._extremes[name]
        return float(low), float(high)

    def _shrink(self) -> None:
        priority = np.concatenate(self._priority)
        kept = np.sort(np.argpartition(priority, self._capacity - 1)[: self._capacity])
        self._priority = [priority[kept]]
        for name, parts in self._values.items():
            self._values[name] = [np.concatenate(parts)[kept]]
        self._n_held = self._capacity


def _hash(rows: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Scramble row numbers (the finaliser of splitmix64)."""
    mixed = (rows + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))
