"""Rows that were read once, in a file beside a checkpoint: a resumed run does not read them again.

The file is of one request: its key is that of the files as they were and of all that changes how
they are read (:func:`~edgegraft.ingest.cache.key_of`). A file of another key, a damaged one or none
means that the rows are read; nothing else depends on it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from numpy.typing import NDArray

from edgegraft.core.container import ContainerFormat, ContainerReader, write_container
from edgegraft.core.types import Floats
from edgegraft.errors import FileFormatError
from edgegraft.table import PackedTable, Schema

FORMAT = ContainerFormat(
    "edgegraft-rows", 1, "file of rows", "learn with a checkpoint", "delete it", checksum="crc32"
)


class KeptRows(NamedTuple):
    """A table, its row weights, and the warnings that reading it gave."""

    table: PackedTable
    weights: Floats | None
    notes: list[str]

    def write(self, path: Path, key: str) -> None:
        """Keep the rows."""
        table = self.table
        content = {"key": key, "notes": self.notes, "n_rows": table.n_rows}
        content["schema"] = table.schema.to_json()
        arrays: dict[str, NDArray[Any]] = {"cells": table.cells}
        if self.weights is not None:
            arrays["weights"] = self.weights
        write_container(path, FORMAT, content, arrays)

    @classmethod
    def find(cls, path: Path, key: str) -> KeptRows | None:
        """Return the rows that were kept under a key; None if there are none."""
        try:
            with ContainerReader(path, FORMAT) as reader:
                if reader.content.get("key") != key:
                    return None
                schema = reader.field("schema", Schema.from_json)
                table = PackedTable(schema, reader.read("cells"), reader.field("n_rows", int))
                weights = reader.read("weights") if "weights" in reader.names else None
                return cls(table, weights, reader.field("notes", list))
        except (FileFormatError, OSError):
            return None
