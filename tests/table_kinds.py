"""One table as every kind of input that `pack` accepts."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.feather as feather
import pyarrow.parquet as pq


class OnlyStream:
    """An object that implements only the Arrow stream protocol."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self._table.__arrow_c_stream__(requested_schema)


def to_csv(table: pa.Table, path: Path) -> Path:
    plain = pa.table(
        {
            name: column.cast(column.type.value_type)
            if pa.types.is_dictionary(column.type)
            else column
            for name, column in zip(table.column_names, table.columns, strict=True)
        }
    )
    pa_csv.write_csv(plain, path)
    return path


def to_gzip(table: pa.Table, path: Path) -> Path:
    text = to_csv(table, path.with_suffix(".csv")).read_bytes()
    path = path.with_suffix(".csv.gz")
    path.write_bytes(gzip.compress(text))
    return path


def to_tsv(table: pa.Table, path: Path) -> Path:
    pa_csv.write_csv(
        pa_csv.read_csv(to_csv(table, path.with_suffix(".csv"))),
        path,
        pa_csv.WriteOptions(delimiter="\t"),
    )
    return path


def to_parquet(table: pa.Table, path: Path) -> Path:
    pq.write_table(table, path, row_group_size=max(1, table.num_rows // 2))
    return path


def to_feather(table: pa.Table, path: Path) -> Path:
    feather.write_feather(table, path, chunksize=max(1, table.num_rows // 2))
    return path


def to_ipc_stream(table: pa.Table, path: Path) -> Path:
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, table.schema) as writer:
        writer.write_table(table)
    return path


# Kinds that keep types, then kinds that keep only text.
TYPED: dict[str, Callable[[pa.Table, Path], object]] = {
    "table": lambda table, _: table,
    "batch": lambda table, _: table.combine_chunks().to_batches()[0],
    "reader": lambda table, _: table.to_reader(max_chunksize=7),
    "stream": lambda table, _: OnlyStream(table),
    "dict": lambda table, _: dict(zip(table.column_names, table.columns, strict=True)),
    "pandas": lambda table, _: table.to_pandas(),
    "pandas_arrow": lambda table, _: table.to_pandas(types_mapper=pd.ArrowDtype),
    "polars": lambda table, _: pl.from_arrow(table),
    "parquet": lambda table, folder: to_parquet(table, folder / "table.parquet"),
    "feather": lambda table, folder: to_feather(table, folder / "table.feather"),
    "ipc": lambda table, folder: to_ipc_stream(table, folder / "table.arrows"),
}
TEXT: dict[str, Callable[[pa.Table, Path], object]] = {
    "csv": lambda table, folder: to_csv(table, folder / "table.csv"),
    "csv.gz": lambda table, folder: to_gzip(table, folder / "table"),
    "tsv": lambda table, folder: to_tsv(table, folder / "table.tsv"),
}
