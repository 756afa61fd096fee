"""Tables as the library holds them: schemas, codes, bit planes."""

from edgegraft.table.packed import PackedTable
from edgegraft.table.schema import Schema, Variable

__all__ = ["PackedTable", "Schema", "Variable"]
