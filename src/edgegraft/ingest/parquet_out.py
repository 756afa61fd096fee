"""Columns out: Parquet files, whole or absent."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from edgegraft.core.atomic import replacing

__all__ = ["write_parquet"]


def write_parquet(path: str | os.PathLike[str], columns: Mapping[str, Any]) -> None:
    """Write named columns of equal length, lists or arrays, replacing the file in one step."""
    table = pa.table({name: pa.array(values) for name, values in columns.items()})
    with replacing(path) as file:
        pq.write_table(table, file)
