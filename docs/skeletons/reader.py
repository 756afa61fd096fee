"""A reader of files: copy this file, and attach `read` to the suffix of your files.

In a distribution of your own, in its ``pyproject.toml``:

    [project.entry-points."edgegraft.readers"]
    ".words" = "their_plugin:read"

In edgegraft itself: a module of ``edgegraft/formats`` and a line in ``edgegraft/plugins.py``.
"""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from edgegraft.ingest.options import ReadOptions


def read(path: Path, options: ReadOptions) -> pa.Table:
    """Return the table of a file; for files to be read in batches, return a `Source`."""
    return pa.table({"word": path.read_text().split()})
