"""Two-dimensional integer and boolean NumPy arrays: the path for thousands of columns.

The provisional code of a cell is its distance from the column's smallest value, so nothing is
hashed and a block of columns costs one pass.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from edgegraft.errors import DataError
from edgegraft.ingest.binning import assign_bins
from edgegraft.ingest.columns import ClosedColumn
from edgegraft.ingest.decide import Observed, decide
from edgegraft.ingest.numeric_cells import unseen_category
from edgegraft.ingest.options import ReadOptions
from edgegraft.ingest.sources import Source
from edgegraft.ingest.wording import Findings
from edgegraft.kernels.counting.encode import offset_codes
from edgegraft.table.arrow_types import Kind
from edgegraft.table.builder import MISSING, ColumnBuilder, PackedColumn
from edgegraft.table.schema import MAX_STATES, Variable

__all__ = ["IntegerArraySource", "array_names", "is_integer_array", "pack_narrow"]

_BLOCK_COLUMNS = 64  # one cache line of bytes


def array_names(array: np.ndarray[Any, Any]) -> list[str]:
    """Return the names of an array's columns: ``x0``, ``x1`` and so on."""
    return [f"x{i}" for i in range(array.shape[1])]


def is_integer_array(array: np.ndarray[Any, Any]) -> bool:
    """Tell whether an array can take this path."""
    return array.dtype.kind in "iub" and not isinstance(array, np.ma.MaskedArray)


class IntegerArraySource(Source):
    """An integer or boolean array, which is also a source of batches for its wide columns."""

    named = False

    def __init__(self, array: np.ndarray[Any, Any], batch_rows: int) -> None:
        if not len(array):
            raise DataError("the table has no rows")
        self.array = array
        self.names = array_names(array)
        dtype = pa.from_numpy_dtype(array.dtype)
        self.fields = pa.schema([(name, dtype) for name in self.names])
        self._position = {name: i for i, name in enumerate(self.names)}
        self._batch_rows = batch_rows
        cells = array.view(np.uint8) if array.dtype.kind == "b" else array
        self.low, self.high = cells.min(axis=0), cells.max(axis=0)

    def narrow(self, names: Sequence[str]) -> list[str]:
        """Return the columns whose range of values is small enough for codes."""
        width = self.high.astype(object) - self.low.astype(object)
        return [name for name in names if width[self._position[name]] < MAX_STATES]

    def blocks(self, names: Sequence[str]) -> Iterator[IntegerBlock]:
        """Yield the columns in blocks of provisional codes."""
        columns = [self._position[name] for name in names]
        unsigned = np.dtype(f"u{self.array.dtype.itemsize}")
        mask = np.uint64(np.iinfo(unsigned).max)
        cells = self.array.view(unsigned)
        for first in range(0, len(columns), _BLOCK_COLUMNS):
            chosen = columns[first : first + _BLOCK_COLUMNS]
            run = chosen[-1] - chosen[0] == len(chosen) - 1 and chosen == sorted(chosen)
            block = cells[:, chosen[0] : chosen[-1] + 1] if run else cells[:, chosen]
            # Kernels are compiled for read-only input: one version, whoever owns the array.
            block.flags.writeable = False
            low, high = self.low[chosen], self.high[chosen]
            width = 1 + max(int(h) - int(least) for h, least in zip(high, low, strict=True))
            codes = np.empty((len(chosen), len(cells)), np.uint16)
            counts = np.zeros((len(chosen), max(width, 2)), np.int64)
            offset_codes(block, low.view(unsigned), mask, codes, counts)
            yield IntegerBlock(names[first : first + _BLOCK_COLUMNS], low.tolist(), codes, counts)

    def batches(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Read the given columns."""
        positions = [self._position[name] for name in columns]
        for first in range(0, len(self.array), self._batch_rows):
            part = self.array[first : first + self._batch_rows]
            yield pa.record_batch([pa.array(part[:, i]) for i in positions], names=list(columns))


class IntegerBlock(NamedTuple):
    """Some columns as distances from their smallest values."""

    names: Sequence[str]
    low: list[int]
    codes: NDArray[np.uint16]
    counts: NDArray[np.int64]


def pack_narrow(
    source: IntegerArraySource,
    names: Sequence[str],
    variables: dict[str, Variable],
    options: ReadOptions,
    findings: Findings,
) -> Iterator[tuple[str, Variable, PackedColumn]]:
    """Encode columns of small range, learning their variables or under those given."""
    boolean = source.array.dtype.kind == "b"
    dtype = str(pa.from_numpy_dtype(source.array.dtype))
    for block in source.blocks(names):
        for name, low, codes, counts in zip(*block, strict=True):
            # Both states of a boolean column are declared by its type.
            places = np.arange(2) if boolean else np.flatnonzero(counts)
            labels = [False, True] if boolean else [place + low for place in places.tolist()]
            if name in variables:
                variable = variables[name]
                final = _closed_codes(variable, labels, places, codes, options)
            else:
                kind = Kind.BOOL if boolean else Kind.INT
                observed = Observed(name, kind, dtype, False, False, labels, counts[places])
                variable, final = _open_codes(observed, options, findings)
            # Values between the observed ones do not occur, so their entry is never read.
            recode = np.zeros(int(places[-1]) + 1, np.uint16)
            recode[places] = final
            builder = ColumnBuilder()
            builder.append(codes)
            yield name, variable, builder.finish(recode, variable.n_states)


def _open_codes(
    observed: Observed, options: ReadOptions, findings: Findings
) -> tuple[Variable, NDArray[np.uint16]]:
    """Decide about a column, less the labels that mean missing."""
    if not options.missing_values or observed.kind is Kind.BOOL:
        return decide(observed, options, findings)
    missing = options.missing_labels(from_text=False)
    known = np.array([label not in missing for label in observed.labels])
    final = np.full(len(known), MISSING, np.uint16)
    observed.labels = [label for label in observed.labels if label not in missing]
    observed.counts = observed.counts[known]
    variable, final[known] = decide(observed, options, findings)
    return variable, final


def _closed_codes(
    variable: Variable,
    labels: list[Any],
    places: NDArray[np.int64],
    codes: NDArray[np.uint16],
    options: ReadOptions,
) -> NDArray[np.uint16]:
    """Return the codes of labels under a fixed variable."""
    if variable.edges is not None:
        missing = options.missing_labels(from_text=False)
        values = [np.nan if label in missing else float(label) for label in labels]
        return assign_bins(np.array(values, np.float64), variable.edges)
    column = ClosedColumn(variable, options, from_text=False)
    final = np.full(len(labels), MISSING, np.uint16)
    for k, label in enumerate(labels):
        code = column.code_of(label)
        if code is not None:
            final[k] = code
        elif options.unseen == "error" and (codes == places[k]).any():
            raise unseen_category(variable, label, int(np.argmax(codes == places[k])))
    return final
