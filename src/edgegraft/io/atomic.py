"""Files that are whole or absent: written beside their destination, renamed when complete."""

from __future__ import annotations

import gzip
import os
import tempfile
from pathlib import Path


def replace_file(path: str | os.PathLike[str], text: str) -> None:
    """Write `text` to `path` in one step, gzip-compressed where the name ends in ``.gz``.

    A reader sees the old file or the new one, never a part, whatever happens on the way. The
    same text gives the same bytes: no time stamp goes into the gzip header.
    """
    target = Path(path)
    content = text.encode("ascii")
    if target.suffix == ".gz":
        content = gzip.compress(content, mtime=0)
    descriptor, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        # mkstemp is private to its owner; the finished file follows the user's umask.
        umask = os.umask(0)
        os.umask(umask)
        Path(temporary).chmod(0o666 & ~umask)
        Path(temporary).replace(target)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
