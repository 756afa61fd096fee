"""Tables as the library holds them: schemas, codes, bit planes.

`PackedTable`, whose kernels are compiled, is loaded when it is first used.
"""

from typing import TYPE_CHECKING, Any

from edgegraft.table.schema import Schema, Variable

if TYPE_CHECKING:
    from edgegraft.table.packed import PackedTable

__all__ = ["PackedTable", "Schema", "Variable"]


def __getattr__(name: str) -> Any:
    if name != "PackedTable":
        raise AttributeError(f"module 'edgegraft.table' has no attribute {name!r}")
    from edgegraft.table.packed import PackedTable

    return PackedTable
