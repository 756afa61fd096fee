"""The one door for rows: whatever the caller holds, opened as rows to learn from or as codes.

open_rows    in memory if the rows fit, on disk if not, elsewhere if a plug-in keeps them
read_table   in memory
read_codes   in memory, as an array of codes under a schema
read_weights a column of the table as row weights
read_labels  a column of the table as it is
"""

from __future__ import annotations

import math
import warnings
from array import array
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from edgegraft import plugins
from edgegraft.core.atomic import Closing
from edgegraft.core.checks import check_weights
from edgegraft.core.threads import physical_memory
from edgegraft.core.types import Floats, Integers
from edgegraft.errors import Argument, DataError, DataTypeError, UnseenCategoryError, suggestion
from edgegraft.ingest.cells import Place, dressed_number, read_number
from edgegraft.ingest.column_kinds import settle_levels
from edgegraft.ingest.encoder import MemoryRule, encode_source, not_in_memory
from edgegraft.ingest.files import find_files, has_reader
from edgegraft.ingest.findings import Findings
from edgegraft.ingest.frames import open_source
from edgegraft.ingest.kinds import TableKind, library_of, table_kind
from edgegraft.ingest.options import ReadOptions, read_size
from edgegraft.table import PackedTable, Schema
from edgegraft.table.arrow import labels
from edgegraft.table.blocks import SAMPLE_ROWS, Rows, RowStore


class Budget(NamedTuple):
    """What the parts of a fit may take."""

    limit: int  # bytes, all together
    for_all: int  # the smallest limit within which all rows fit in memory
    whole: bool  # whether all rows fit in memory
    sample_rows: int  # rows read into memory if not all fit
    kept_bytes: int  # for blocks that stay decoded between passes
    n_jobs: int  # threads that pass over the rows, at most those asked for


@dataclass(frozen=True)
class OpenRows(Closing):
    """Rows that have been opened; used as a context, they are closed at its end.

    A table is in memory; rows on disk or on a cluster have their own weights.
    """

    rows: PackedTable | Rows
    weights: Floats | None = None  # of the rows of a table
    sample_rows: int = SAMPLE_ROWS  # that a search begins on, if not all are in memory
    store: RowStore | None = None  # that the rows were read through
    budget: Budget | None = None  # what learning may take, if there is a limit of memory

    @property
    def table(self) -> PackedTable | RowStore | None:
        """The table that describes the columns, in memory or on disk; None on a cluster."""
        return self.rows if isinstance(self.rows, PackedTable) else self.store

    def source(self, n_fitted: float) -> dict[str, Any]:
        """Return what a model file keeps of the rows; `n_fitted` is the weight of those fitted."""
        source: dict[str, Any] = {"rows": self.rows.n_rows}
        if self.table is not None:
            source["missing"] = self.table.n_missing.tolist()
        if not isinstance(self.rows, PackedTable):
            source["sample"] = self.sample_rows  # on which edges were tested
            if n_fitted < self.rows.weight:
                source["fitted"] = "the sample"  # interrupted before all rows were used
        if self.weights is not None:
            source["weight"] = float(self.weights.sum())
        return source

    def close(self) -> None:
        """Close the store."""
        if self.store is not None:
            self.store.close()


def open_rows(
    X: Any,
    schema: Schema | None = None,
    options: ReadOptions | None = None,
    weights: ArrayLike | None = None,
) -> OpenRows:
    """Open whatever :func:`edgegraft.ingest.pack` takes, a PackedTable, or rows on a cluster.

    A schema replaces the columns and categories found in the data. Files and streams that do not
    fit in ``max_memory`` are kept on disk and read in blocks; what lies on a cluster stays there.
    """
    options = options or ReadOptions()
    kind = table_kind(X)
    if kind is TableKind.REMOTE:
        if not isinstance(X, Rows):
            opened: OpenRows = plugins.find("rows", library_of(X))(X, schema, options, weights)
            return opened
        if weights is not None or schema not in (None, X.schema):
            what = "weights" if weights is not None else "a schema"
            raise DataError(f"these rows have {what} of their own: pass {what} when they are made")
        return OpenRows(X)
    limit = _limit(X, kind, options)
    if limit is None:
        table = read_table(X, schema, options, stacklevel=3)
        return OpenRows(table, None if weights is None else check_weights(weights, table.n_rows))
    options = replace(options, max_memory=limit)
    with memory_named(X):
        found: OpenRows = plugins.find("rows", "disk")(X, schema, options, weights)
    return found


def read_table(
    X: Any,
    schema: Schema | None = None,
    options: ReadOptions | None = None,
    *,
    stacklevel: int = 2,
) -> PackedTable:
    """Return a table in memory, under `schema` if there is one.

    A PackedTable is recoded if its schema is another. Of the warnings, `stacklevel` 2 points at the
    caller.
    """
    if schema is not None and not isinstance(schema, Schema):
        raise DataTypeError(f"schema must be a Schema, found {type(schema).__name__}")
    if isinstance(X, PackedTable):
        return _recoded(X, schema)
    findings = Findings()
    options = options or ReadOptions()
    with memory_named(X), open_source(X, options) as source:
        table = source.packed(options, findings) if schema is None else None
        if table is None:
            table = encode_source(source, schema, options, findings)
            table = settle_levels(table, options) if schema is None else table
    for warning in findings.warnings():
        warnings.warn(warning, stacklevel=stacklevel)
    return table


def read_codes(X: Any, schema: Schema, options: ReadOptions | None = None) -> Integers:
    """Return a table's codes under a schema, -1 for a missing cell, in rows."""
    try:
        table = read_table(X, schema, options, stacklevel=3)
    except UnseenCategoryError as error:
        error.add_note(
            "An estimator takes unseen='missing', or a schema= with all categories there may be."
        )
        raise
    return np.ascontiguousarray(table.codes(), np.int64)


def _recoded(table: PackedTable, schema: Schema | None) -> PackedTable:
    if schema is None or table.schema == schema:
        return table
    for own in table.schema:
        if own.name not in schema or own == schema[own.name]:
            continue
        if own.binned or schema[own.name].binned:
            raise DataError(
                f"column '{own.name}' was binned differently when this table was packed: pack it "
                "with schema=estimator.schema_"
            )
    return read_table(labels(table.schema, table.codes()), schema)


@contextmanager
def memory_named(X: Any) -> Iterator[None]:
    """Let a lack of memory be an error that names what is read and the option that helps."""
    try:
        yield
    except MemoryError as error:
        where = f"'{X}'" if table_kind(X) is TableKind.PATH else "the table"
        raise not_in_memory(where) from error


def _limit(X: Any, kind: TableKind, options: ReadOptions) -> int | None:
    """Return the bytes that learning may take; None if the rows are in memory or small."""
    if options.max_memory is not None:
        return read_size(options.max_memory)
    if kind not in (TableKind.PATH, TableKind.STREAM) or (
        kind is TableKind.PATH and has_reader(Path(X))
    ):
        return None
    memory = physical_memory()
    if memory is None:
        return None
    if kind is TableKind.PATH:
        size = sum(path.stat().st_size for path in find_files(X) if path.exists())
        if size <= MemoryRule.large * memory:
            return None
    return int(MemoryRule.used * memory)


def read_labels(X: Any, name: str, options: ReadOptions | None = None) -> list[Any]:
    """Return the cells of one column, None for those that are missing.

    >>> read_labels({"town": ["Ulm", None], "age": [3, 4]}, "town")
    ['Ulm', None]
    """
    if isinstance(X, PackedTable):
        X, options = labels(X.schema, X.codes()), None
    found = _column_of(X, name, options or ReadOptions(), f"the table has no column '{name}': ")
    return [cell for cells, _ in found for cell in cells]


def read_weights(X: Any, name: str, options: ReadOptions) -> Floats:
    """Return the column `name` as row weights: every cell a number, none of them negative."""
    weights = array("d")  # a list would take four times the memory
    lacking = Argument("weights"), f" names column '{name}', which the table lacks: "
    for cells, place in _column_of(X, name, options, *lacking):
        for k, cell in enumerate(cells):
            number = read_number(cell.strip()) if isinstance(cell, str) else cell
            if not isinstance(number, int | float) or not 0 <= number < math.inf:
                found = "the cell is missing" if cell is None else f"{cell!r} was found"
                remedy = "give rows that should not count the weight 0"
                if isinstance(cell, str) and dressed_number([cell.strip()]):
                    remedy = "write numbers plainly, with a decimal point"
                raise DataError(
                    f"weights in column '{name}', row {place(k)} (counted from 0): {found}, "
                    f"expected a number that is not negative; {remedy}"
                )
            weights.append(float(number))
    if weights and not any(weights):
        raise DataError(f"every cell of the weights' column '{name}' is zero, so no row counts")
    return np.array(weights, np.float64)


def _column_of(
    X: Any, name: str, options: ReadOptions, *lacking: str | Argument
) -> Iterator[tuple[list[Any], Place]]:
    """Yield the cells of a column, None if missing, in batches, and what messages call the rows."""
    with open_source(X, options) as source:
        if name not in source.names:
            raise DataError(*lacking, suggestion(name, source.names))
        source.select([name])
        missing, first_row = options.missing_labels(source.from_text), 0
        for batch in source.batches([name]):
            cells = batch.column(0).to_pylist()
            known = [None if cell in missing or cell != cell else cell for cell in cells]
            yield known, source.place(first_row)
            first_row += batch.num_rows
