"""A reader, an export and a command, to copy into a distribution of your own.

They are attached by its ``pyproject.toml``; a name is the suffix of a file, or of a command:

    [project.entry-points."edgegraft.readers"]
    ".words" = "their_plugin:read"

    [project.entry-points."edgegraft.exports"]
    "names" = "their_plugin:write"

    [project.entry-points."edgegraft.commands"]
    "greet" = "their_plugin:greet"
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa

from edgegraft.ingest.options import ReadOptions
from edgegraft.model import PairwiseMRF


def read(path: Path, options: ReadOptions) -> pa.Table:
    """Return the table of a file; a file read in batches is a subclass of `Source`."""
    return pa.table({"word": path.read_text().split()})


def write(path: Path, model: PairwiseMRF, edge_columns: Any) -> None:
    """Write a model; `edge_columns` has further columns of its edges by name, or is None."""
    path.write_text(" ".join(model.names))


def greet(name: str) -> None:
    """Greet somebody: parameters are what typer makes options and arguments of."""
    print("hello", name)
