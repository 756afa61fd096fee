"""Files of commands: inputs that are there, outputs that replace nothing unasked."""

from __future__ import annotations

import glob
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryFile

from rich.console import Console

from edgegraft.cli.console import reported, warned
from edgegraft.errors import MissingExtraError, ModelError

_PICTURES = (".png", ".svg", ".pdf")


@contextmanager
def working(
    *reads: Path | None,
    table: Path | None = None,
    writes: Sequence[Path | None] = (),
    rows: Path | None = None,
    picture: Path | None = None,
    page: Path | None = None,
    force: bool = False,
    quiet: bool = False,
) -> Iterator[Console]:
    """Check the files of a command, then yield the console; errors and warnings are reported.

    `table` may be several files. Files that it writes (`rows`, `picture` and `page` by their
    formats) must not exist unless `force` is set, and never replace those it reads.
    """
    with reported(quiet) as console, warned(console):
        read = [path for path in reads if path is not None]
        for path in read:  # before anything is loaded
            if not path.exists():
                raise FileNotFoundError(f"there is no file '{path}'")
            if path.is_dir():
                raise IsADirectoryError(f"'{path}' is a folder: give the path of one file in it")
        read += [] if table is None else require_table(table)
        check_outputs(*writes, rows, page, picture, force=force, reads=read)
        if picture is not None and picture.suffix.lower() not in _PICTURES:
            raise ModelError(
                f"'{picture}' does not end in the suffix of a picture: use .png, .svg or .pdf"
            )
        if rows is not None:
            from edgegraft.ingest.output import check_format

            check_format(rows)
        if page is not None:
            require_report()
        yield console


def require_table(data: Path) -> list[Path]:
    """Return the files of a table: one, all of a folder, or all that match a pattern.

    Stops before anything is loaded if there are none.
    """
    if not data.exists() and not glob.has_magic(str(data)):
        raise FileNotFoundError(f"there is no file or folder '{data}'")
    from edgegraft.ingest.files import find_files

    return find_files(data)


def require_folder(path: Path | None) -> None:
    """Stop if the path of a folder is something else, or the folder cannot be created."""
    if path is None:
        return
    there = next(part for part in (path, *path.absolute().parents) if part.exists())
    if not there.is_dir():
        raise NotADirectoryError(f"'{there}' is a file: give the name of a folder")
    _try_writing(path.name, there)


def require_report() -> None:
    """Stop if the packages that a report needs are not installed."""
    if find_spec("jinja2") is None:
        raise MissingExtraError("jinja2", "report", "a report")


def check_outputs(*outputs: Path | None, force: bool, reads: Iterable[Path] = ()) -> None:
    """Stop before the work if an output would replace a file without --force.

    Other files of the command, which it reads or also writes, are never replaced.
    """
    from edgegraft.core.atomic import check_replaceable

    others = list(reads)
    for path in outputs:
        if path is None:
            continue
        if any(_same(path, other) for other in others):
            raise FileExistsError(
                f"'{path}' is named for something else as well: choose another name for the output"
            )
        if check_replaceable(path) is not None and not force:
            raise FileExistsError(f"'{path}' exists: choose another name, or add --force")
        folder = path.resolve().parent  # of the file behind a link
        if not folder.is_dir():
            raise FileNotFoundError(f"there is no folder '{folder}' to write '{path.name}' to")
        _try_writing(path.name, folder)  # files are written next to their place and moved
        others.append(path)


def _try_writing(name: str, folder: Path) -> None:
    try:
        with TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise PermissionError(
            f"'{name}' cannot be written to the folder '{folder}': {error.strerror}"
        ) from None


def _same(path: Path, other: Path) -> bool:
    linked = path.exists() and other.exists() and path.samefile(other)
    return linked or path.absolute() == other.absolute()


def near(path: Path) -> Path:
    """Return a path as it is seen from here."""
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path
