"""Files that are whole or absent: written under another name, renamed when complete."""

from __future__ import annotations

import errno
import gzip
import os
import stat
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import BinaryIO, Self
from uuid import uuid4

from edgegraft.errors import DiskFullError

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}


class Closing:
    """A base of what is closed at the end of a ``with`` block."""

    def close(self) -> None:
        """Let go of files; nothing can be read afterwards."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def check_replaceable(path: str | os.PathLike[str]) -> int | None:
    """Return the mode of the file that a new one may replace, None if there is none.

    Folders, devices, pipes and sockets are refused: none of them can be replaced in one step.
    """
    try:
        mode = Path(path).stat().st_mode
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(f"'{path}' is a folder: give the name of a file")
    if not stat.S_ISREG(mode):
        raise FileExistsError(
            f"'{path}' is a device, a pipe or a socket, which no file can replace: give the name "
            "of a file"
        )
    return stat.S_IMODE(mode)


@contextmanager
def disk_full_named(path: str | os.PathLike[str]) -> Iterator[None]:
    """Let a disk without room for a file be an error that names the file."""
    try:
        yield
    except OSError as error:
        if error.errno not in _FULL or isinstance(error, DiskFullError):
            raise
        raise DiskFullError.at(path, error) from error


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a file that takes the place of `path` when the block ends without an error.

    A reader sees the old file or the new one, never a part, whatever happens on the way. The file
    behind a link is replaced, not the link, and keeps its mode. What has been written can be read
    back before the end. Errors name `path`.
    """
    mode = check_replaceable(path)
    target = Path(os.path.realpath(path))
    temporary = target.with_name(f".{target.name}.{uuid4().hex[:8]}")
    # A new file follows the user's umask, one that takes the place of a private one stays private.
    opener = None if mode is None else partial(os.open, mode=0o600)
    try:
        with disk_full_named(path), open(temporary, "x+b", opener=opener) as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if mode is not None:
            temporary.chmod(mode)
        temporary.replace(target)
    except DiskFullError:
        raise
    except OSError as error:
        if error.errno is None or error.filename not in (None, str(temporary)):
            raise
        raise OSError(error.errno, error.strerror, os.fspath(path)) from error
    finally:
        temporary.unlink(missing_ok=True)


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
