"""Tables in: any frame, file, folder or stream becomes codes under a schema."""

from edgegraft.ingest.pack import encode, pack

__all__ = ["encode", "pack"]
