"""Numeric columns with more distinct values than there are codes.

Their bins need the whole column: one reading takes a sample of rows and the extremes, the
edges follow, and another reading (or the sample itself, where it is everything) is encoded.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from edgegraft.ingest.columns import BinnedColumn
from edgegraft.ingest.decide import all_missing, decide_bins
from edgegraft.ingest.numeric_cells import numbers_of
from edgegraft.ingest.options import ReadOptions
from edgegraft.ingest.sources import Source
from edgegraft.ingest.wording import Findings
from edgegraft.table.builder import PackedColumn
from edgegraft.table.schema import Variable

__all__ = ["SAMPLE_ROWS", "RowSample", "pack_continuous"]

SAMPLE_ROWS = 1 << 20


def pack_continuous(
    source: Source,
    dtypes: dict[str, str],
    options: ReadOptions,
    findings: Findings,
) -> Iterator[tuple[str, Variable, PackedColumn]]:
    """Bin and encode columns that must be read again.

    Quantiles are exact for tables of up to 2**20 rows; beyond that they are those of a fixed
    uniform sample of 2**20 rows, which is an approximation. Uniform bins always use the exact
    smallest and largest value.

    Parameters
    ----------
    source : Source
    dtypes : dict
        Name to type of the columns.
    """
    names = list(dtypes)
    if not names:
        return
    sample = RowSample(names, SAMPLE_ROWS)
    for first_row, numbers in _read_numbers(source, names, options):
        sample.offer(first_row, numbers)
    columns = {}
    for name in names:
        variable = _bins_of(name, dtypes[name], sample, options, findings)
        columns[name] = BinnedColumn(variable, options, source.from_text)
    if sample.complete:
        for name in names:
            columns[name].append_values(sample.values(name))
    else:
        for _, numbers in _read_numbers(source, names, options):
            for name in names:
                columns[name].append_values(numbers[name])
    for name in names:
        yield name, columns[name].variable, columns[name].finish()


def _bins_of(
    name: str, dtype: str, sample: RowSample, options: ReadOptions, findings: Findings
) -> Variable:
    values = sample.values(name)
    distinct, counts = np.unique(values[~np.isnan(values)], return_counts=True)
    if not len(distinct):
        raise all_missing([name])
    # The bins cover the column, also where the sample left out its ends.
    for end in sample.extremes(name):
        if not distinct[0] <= end <= distinct[-1]:
            place = int(np.searchsorted(distinct, end))
            distinct, counts = np.insert(distinct, place, end), np.insert(counts, place, 1)
    if dtype == "string":  # of a text file, whose numbers have no type yet
        dtype = "int64" if bool(np.all(distinct == np.floor(distinct))) else "double"
    return decide_bins(name, dtype, distinct, counts, options, findings)


def _read_numbers(
    source: Source, names: Sequence[str], options: ReadOptions
) -> Iterator[tuple[int, dict[str, NDArray[np.float64]]]]:
    first_row = 0
    for batch in source.batches(names):
        yield (
            first_row,
            {
                name: numbers_of(
                    name, batch.column(k), options, source.from_text, source.row(first_row)
                )
                for k, name in enumerate(names)
            },
        )
        first_row += batch.num_rows


class RowSample:
    """A uniform sample of rows that depends on their numbers alone.

    Every row has a priority, a hash of its number, and the `capacity` smallest are kept: the
    sample is the same however the rows are cut into batches. Up to `capacity` rows it is the
    table itself, in order.
    """

    def __init__(self, names: Sequence[str], capacity: int) -> None:
        self._capacity = capacity
        self._priority: list[NDArray[np.uint64]] = []
        self._values: dict[str, list[NDArray[np.float64]]] = {name: [] for name in names}
        self._extremes = dict.fromkeys(names, (np.inf, -np.inf))
        self._n_rows = 0
        self._n_held = 0

    @property
    def complete(self) -> bool:
        """Whether the sample is the whole table."""
        return self._n_rows <= self._capacity

    def offer(self, first_row: int, columns: dict[str, NDArray[np.float64]]) -> None:
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

    def values(self, name: str) -> NDArray[np.float64]:
        """Return the sampled values of a column, NaN for missing."""
        if self._n_held > self._capacity:
            self._shrink()
        self._values[name] = [np.concatenate(self._values[name] or [np.empty(0)])]
        return self._values[name][0]

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
