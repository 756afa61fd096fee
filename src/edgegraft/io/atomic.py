"""Text files that are whole or absent."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

from edgegraft.core.atomic import replacing


def replace_file(path: str | os.PathLike[str], text: str) -> None:
    """Write `text` to `path` in one step, in UTF-8, gzip-compressed if the name ends in ``.gz``.

    The same text gives the same bytes: no time stamp goes into the gzip header.
    """
    content = text.encode("utf-8")
    if Path(path).suffix == ".gz":
        content = gzip.compress(content, mtime=0)
    with replacing(path) as file:
        file.write(content)
