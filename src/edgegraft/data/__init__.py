"""From a frame or a file to bit planes, without losing a name or a category."""

from edgegraft.data.packed import PackedTable
from edgegraft.data.schema import Schema, Variable

__all__ = ["PackedTable", "Schema", "Variable"]
