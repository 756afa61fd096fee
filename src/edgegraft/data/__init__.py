"""Tables in: schemas, encoding from frames and files, and the packed table."""

from edgegraft.data.pack import encode, pack
from edgegraft.data.packed import PackedTable
from edgegraft.data.schema import Schema, Variable

__all__ = ["PackedTable", "Schema", "Variable", "encode", "pack"]
