"""Tables out: rows of codes as the kind of table that the caller works with.

Names, categories, their order and types are taken from the table that was read. A binned column
gets a number in the bin, its mean or a random one: what is sampled or imputed can be scored and
fitted again.
"""

from __future__ import annotations

import csv
import importlib.util
import io
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from edgegraft.core.atomic import replace_file, replacing, suffix_of
from edgegraft.core.types import Mask
from edgegraft.errors import DataError
from edgegraft.ingest import encode
from edgegraft.ingest.kinds import TableKind, column_labels, library_of, table_kind
from edgegraft.table import PackedTable, Schema, Variable
from edgegraft.table.arrow import Codes, labels

_DELIMITERS = {".csv": ",", ".tsv": "\t"}
_BLOCK = 65536  # rows converted to Python values at a time


def check_format(path: Path | None) -> None:
    """Refuse a name without the suffix of a format for rows."""
    if path is not None and not _is_parquet(path) and suffix_of(path) not in _DELIMITERS:
        raise DataError(
            f"rows cannot be written to '{path}': use a name that ends in .csv or .tsv (also with "
            ".gz) or in .parquet"
        )


def write_rows(
    path: Path | None, columns: Mapping[str, Sequence[Any]] | pa.Table, line_end: str = "\n"
) -> None:
    """Write columns atomically to a file by its suffix, or to stdout as CSV.

    `pack` reads the text back; None is an empty cell.
    """
    if not isinstance(columns, Mapping):
        columns = dict(zip(columns.column_names, columns.columns, strict=True))
    if path is not None and _is_parquet(path):
        write_parquet(path, columns)
        return
    out = sys.stdout if path is None else io.StringIO()
    delimiter = "," if path is None else _DELIMITERS.get(suffix_of(path), ",")
    writer = csv.writer(out, delimiter=delimiter, lineterminator=line_end)
    writer.writerow(columns)
    for first in range(0, max(map(len, columns.values()), default=0), _BLOCK):
        parts = [values[first : first + _BLOCK] for values in columns.values()]
        plain = [part.to_pylist() if hasattr(part, "to_pylist") else part for part in parts]
        writer.writerows(zip(*(map(as_text, part) for part in plain), strict=True))
    if path is not None and isinstance(out, io.StringIO):
        replace_file(path, out.getvalue())


def as_text(value: Any) -> str:
    """Return a cell as text files have it."""
    if value is None or isinstance(value, bool):
        return {None: "", True: "true", False: "false"}[value]
    return str(value)


def _is_parquet(path: Path) -> bool:
    return path.suffix.lower() == ".parquet"


def write_parquet(path: str | os.PathLike[str], columns: Mapping[str, Any]) -> None:
    """Write named columns of equal length, lists or arrays, replacing the file in one step."""
    with replacing(path) as file:
        pq.write_table(make_frame(columns, "pyarrow"), file)


def make_frame(columns: Mapping[str, Any], library: str | None = None) -> Any:
    """Return named columns as a frame of a library: pandas, polars or pyarrow.

    By default the first of them that is installed; pyarrow always is.
    """
    names = ("pandas", "polars", "pyarrow")
    library = library if library in names else next(filter(importlib.util.find_spec, names))
    if library == "pyarrow":
        return pa.table({name: pa.array(values) for name, values in columns.items()})
    return importlib.import_module(library).DataFrame(
        {name: list(values) if library == "polars" else values for name, values in columns.items()}
    )


@dataclass(frozen=True)
class OutputForm:
    """What kind of table rows are given back as."""

    library: str  # numpy, pandas, polars, pyarrow, dict or packed
    labels: tuple[Any, ...] | None = None  # column labels of a pandas frame, which need not be text
    #: column types in the library's own terms; of an array, its one type
    dtypes: tuple[Any, ...] | None = None

    @classmethod
    def of(cls, X: Any) -> OutputForm:
        """Return the kind of a table; files and streams are given back as Arrow tables."""
        kind = table_kind(X)
        if kind in (TableKind.ARRAY, TableKind.RECORDS):
            return cls("numpy", None, (X.dtype,))
        if kind in (TableKind.PANDAS, TableKind.POLARS):
            return cls(kind.value, tuple(X.columns), tuple(X.dtypes))
        if kind in (TableKind.PACKED, TableKind.COLUMNS):
            return cls(kind.value)
        if library_of(X) == "pyarrow":
            return cls("pyarrow", None, tuple(X.schema.types))
        return cls("pyarrow")

    def build(self, schema: Schema, codes: Codes, rng: np.random.Generator | None = None) -> Any:
        """Return rows of codes as a table of this kind; `rng` draws numbers within bins."""
        if self.library == "packed":
            return PackedTable.from_codes(codes, schema)
        table = labels(schema, codes, rng)
        if self.library == "dict":
            return table.to_pydict()
        if self.library == "numpy":
            assert self.dtypes is not None
            return _to_array(table, self.dtypes[0])
        if self.dtypes is None:
            return table
        columns = [
            _COLUMN[self.library](table.column(k), codes[:, k], dtype, schema[k])
            for k, dtype in enumerate(self.dtypes)
        ]
        if self.library == "pandas":
            frame = importlib.import_module("pandas").DataFrame(dict(enumerate(columns)))
            return frame.set_axis(list(self.labels or ()), axis=1)
        if self.library == "polars":
            return importlib.import_module("polars").DataFrame(
                dict(zip(schema.names, columns, strict=True))
            )
        return type(table).from_arrays(columns, names=list(schema.names))


def fill(
    X: Any,
    schema: Schema,
    before: Codes,
    after: Codes,
    rng: np.random.Generator | None = None,
) -> Any:
    """Return a copy of `X` in which the missing cells have the states of `after`.

    Cells that are known stay as they are, binned numbers included. `before` and `after` are codes
    of the columns in the order of the schema, with -1 and without; `rng` draws numbers within bins.
    """
    kind, names = OutputForm.of(X), column_labels(X)
    if kind.library == "packed":
        return kind.build(schema, after)
    if kind.library == "pyarrow" and not hasattr(X, "set_column"):
        return labels(schema, after, rng)  # a file or a stream, which is gone
    # A table's columns may come in another order than the schema's; an array's cannot.
    order = range(len(schema)) if names is None else [schema.index(str(name)) for name in names]
    own = schema.select(order)
    missing, after = before[:, order] < 0, after[:, order]
    wanting = [k for k in range(len(own)) if missing[:, k].any()]
    complete = labels(own, after, rng)
    if kind.library == "numpy":
        return _fill_array(X, complete, missing, wanting)
    if kind.library == "dict":
        return {
            name: list(np.where(missing[:, k], _cells(complete.column(k)), _cells(cells)))
            if k in wanting
            else cells
            for k, (name, cells) in enumerate(X.items())
        }
    assert kind.dtypes is not None
    if kind.library == "pandas":
        X = X.copy()  # the others are immutable, or copy what is written to
    for k in wanting:
        column = _COLUMN[kind.library](complete.column(k), after[:, k], kind.dtypes[k], own[k])
        X = _REPLACE[kind.library](X, k, column, ~missing[:, k] if own[k].binned else None)
    return X


def _to_array(table: Any, dtype: np.dtype[Any]) -> NDArray[Any]:
    if dtype.names:
        out = np.empty(table.num_rows, dtype)
        for name in dtype.names:
            out[name] = _cells(table.column(name))
        return out
    out = np.empty((table.num_rows, table.num_columns), dtype)
    for k in range(table.num_columns):
        out[:, k] = _cells(table.column(k))
    return out


def _fill_array(X: NDArray[Any], complete: Any, missing: Mask, wanting: list[int]) -> NDArray[Any]:
    out = np.array(np.ma.getdata(X))
    for k in wanting:
        holes = missing[:, k]
        cells = _cells(complete.column(k))[holes]
        if out.dtype.names:
            out[out.dtype.names[k]][holes] = cells
            continue
        if out.dtype.kind == "U":  # text of a fixed width: a longer label would be cut
            out = out.astype(np.result_type(out.dtype, cells.astype(str).dtype))
        out[holes, k] = cells
    return out


def _cells(column: Any) -> NDArray[Any]:
    """Return a column's labels as an array, of Python objects."""
    cells = np.empty(len(column), object)
    cells[:] = column.to_pylist() if hasattr(column, "to_pylist") else list(column)
    return cells


def _to_pandas(column: Any, codes: Codes, dtype: Any, variable: Variable) -> Any:
    kind = type(dtype).__name__
    if kind == "CategoricalDtype":
        return _to_categorical(column, codes, dtype, variable)
    series = column.to_pandas()
    return series if kind == "IntervalDtype" else series.astype(dtype)


def _to_categorical(column: Any, codes: Codes, dtype: Any, variable: Variable) -> Any:
    """Return codes as a pandas column of a categorical type, or of the fitted categories.

    The type may have other categories than were fitted, in another order; and its categories may
    be intervals or dates, which the schema has as text. So they are encoded as data would be.
    """
    pandas = importlib.import_module("pandas")
    own = pandas.Series(pandas.Categorical.from_codes(range(len(dtype.categories)), dtype=dtype))
    states = encode({variable.name: own}, Schema([variable]), unseen="missing")[:, 0]
    place = np.full(variable.n_states, -1)
    place[states[states >= 0]] = np.flatnonzero(states >= 0)
    if (place[np.unique(codes)] < 0).any():
        return column.to_pandas()
    return pandas.Series(pandas.Categorical.from_codes(place[codes], dtype=dtype))


def _to_polars(column: Any, codes: Codes, dtype: Any, variable: Variable) -> Any:
    polars = importlib.import_module("polars")
    series = polars.from_arrow(column)
    if dtype in (polars.Categorical, polars.Enum):
        series = series.cast(polars.String)
    if dtype == polars.Enum and not series.unique().is_in(dtype.categories).all():
        dtype = polars.Enum(list(variable.categories))  # the table's own lacks a fitted category
    return series.cast(dtype)


def _to_arrow(column: Any, codes: Codes, dtype: Any, variable: Variable) -> Any:
    # How a dictionary stores its indices and texts says nothing of the data: it may change.
    return column if hasattr(dtype, "index_type") else column.cast(dtype)


_COLUMN = {"pandas": _to_pandas, "polars": _to_polars, "pyarrow": _to_arrow}


# Each of these returns a frame with another k-th column, of whose own cells it keeps the `known`.


def _in_pandas(X: Any, k: int, column: Any, known: Mask | None) -> Any:
    column = column.set_axis(X.index)
    X.isetitem(k, column if known is None else X.iloc[:, k].where(known, column))
    return X


def _in_polars(X: Any, k: int, column: Any, known: Mask | None) -> Any:
    if known is not None:
        column = X.to_series(k).zip_with(importlib.import_module("polars").Series(known), column)
    return X.with_columns(column.alias(X.columns[k]))


def _in_arrow(X: Any, k: int, column: Any, known: Mask | None) -> Any:
    column = column.combine_chunks()
    if known is not None:
        column = pc.if_else(pa.array(known), X.column(k), column)
    return X.set_column(k, X.schema.names[k], column)


_REPLACE = {"pandas": _in_pandas, "polars": _in_polars, "pyarrow": _in_arrow}
