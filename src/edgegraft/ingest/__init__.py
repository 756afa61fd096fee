"""Tables in: any frame, file, folder or stream becomes codes under a schema."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from edgegraft.ingest.packing import encode, pack

__all__ = ["encode", "pack"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'edgegraft.ingest' has no attribute {name!r}")
    from edgegraft.ingest import packing

    return getattr(packing, name)
