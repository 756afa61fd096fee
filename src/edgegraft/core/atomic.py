"""Files that are whole or absent: written under another name, renamed when complete."""

from __future__ import annotations

import gzip
import os
import tempfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Self


class Closing:
    """A base of what is closed at the end of a ``with`` block."""

    def close(self) -> None:
        """Let go of files; nothing can be read afterwards."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a file that takes the place of `path` when the block ends without an error.

    A reader sees the old file or the new one, never a part, whatever happens on the way.
    What has been written can be read back before that.
    """
    target = Path(path)
    descriptor, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(descriptor, "w+b") as file:
            yield file
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


def replace_file(path: str | os.PathLike[str], text: str) -> None:
    """Write `text` to `path` in one step, in UTF-8, gzip-compressed if the name ends in ``.gz``.

    The same text gives the same bytes: no time stamp goes into the gzip header.
    """
    content = text.encode("utf-8")
    if Path(path).suffix == ".gz":
        content = gzip.compress(content, mtime=0)
    with replacing(path) as file:
        file.write(content)


def suffix_of(path: Path, compressed: Collection[str] = (".gz",)) -> str:
    """Return the suffix of a file in small letters, of the content if it is compressed.

    >>> suffix_of(Path("rows.CSV.gz")), suffix_of(Path("rows"))
    ('.csv', '')
    """
    return (path.with_suffix("") if path.suffix.lower() in compressed else path).suffix.lower()
