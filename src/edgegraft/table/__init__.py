"""Tables as the library holds them: schemas, codes, bit planes, and their rows in blocks.

`PackedTable` and rows, whose kernels are compiled, are loaded when they are first used.
"""

import importlib
from typing import TYPE_CHECKING, Any

from edgegraft.table.schema import Schema, Variable

if TYPE_CHECKING:
    from edgegraft.table.blocks import StoredRows, TableRows
    from edgegraft.table.packed import PackedTable

__all__ = ["PackedTable", "Schema", "StoredRows", "TableRows", "Variable"]

_HOME = {"PackedTable": "packed", "StoredRows": "blocks", "TableRows": "blocks"}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'edgegraft.table' has no attribute {name!r}")
    return getattr(importlib.import_module(f"edgegraft.table.{_HOME[name]}"), name)
