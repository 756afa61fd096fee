"""Shared by all commands: a console for people, errors in one line, outputs kept safe.

Exit codes: 0 done, 1 the work failed or was interrupted, 2 bad usage or bad input. Results go to
stdout, progress, notes and errors to stderr.

Text is made fit for a terminal: arguments of messages are written as options, control characters
are written out.
"""

from __future__ import annotations

import csv
import glob
import io
import json
import os
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from shlex import quote
from tempfile import TemporaryFile
from typing import Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from edgegraft.cli.options import flag_of
from edgegraft.errors import Argument, Message, MissingExtraError, ModelError

_CONTROLS = {k: repr(chr(k))[1:-1] for k in (*range(32), *range(127, 160)) if chr(k) != "\n"}


def message(error: BaseException | str) -> str:
    """Return the text of an error or a warning, with its arguments written as options."""
    return error.written(as_option) if isinstance(error, Message) else str(error)


def as_option(argument: Argument) -> str:
    r"""Return an argument as it is written on the command line.

    >>> as_option(Argument("drop", ["id", "last, first"])), as_option(Argument("max_memory"))
    ('--drop \'id,"last, first"\'', '--max-memory')
    >>> as_option(Argument("missing_values", ("?", "-1"))), as_option(Argument("bins", {"age": 4}))
    ("--missing '?' --missing -1", '--bins age=4')
    """
    name, value = argument.name, argument.value
    flag = flag_of(name)
    if value is None:
        return flag
    if name == "missing_values":
        texts = [str(token) for token in value]
    elif isinstance(value, Mapping):
        texts = [f"{key}={item}" for key, item in value.items()]
    elif isinstance(value, list | tuple):
        line = io.StringIO()  # names separated by commas, as ``--drop`` reads them
        csv.writer(line, lineterminator="").writerow(value)
        texts = [line.getvalue()]
    else:
        texts = ["tab" if value == "\t" else str(value)]
    return " ".join(f"{flag} {quote(text)}" for text in texts)


def visible(text: str) -> str:
    r"""Return text with its control characters written out, which a terminal would obey.

    >>> print(visible("red \x1b[31m"))
    red \x1b[31m
    """
    return text.translate(_CONTROLS)


def cell(value: object, width: int = 60) -> str:
    r"""Return a name or category of the data for the cell of a table, short and unchanged.

    >>> cell("a\nb"), cell("[red]"), cell("x" * 100, 8)
    ('a\\nb', '\\[red]', 'xxxxxxx…')
    """
    text = visible(str(value)).replace("\n", "\\n")
    return escape(text if len(text) <= width else text[: width - 1] + "…")


def clock(seconds: float) -> str:
    """Return a duration as people read it.

    >>> clock(3.2), clock(75), clock(7325)
    ('0:03', '1:15', '2:02:05')
    """
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def size(n_bytes: float) -> str:
    """Return a number of bytes as people read it.

    >>> size(5000), size(3 << 20), size(2 << 30)
    ('5 KiB', '3 MiB', '2.00 GiB')
    """
    if n_bytes >= 1 << 30:
        return f"{n_bytes / 2**30:,.2f} GiB"
    unit, name = (1 << 20, "MiB") if n_bytes >= 1 << 20 else (1 << 10, "KiB")
    return f"{n_bytes / unit:,.0f} {name}"


_DEBUG = {"on": False}
_PICTURES = (".png", ".svg", ".pdf")
_BAD_INPUT = (
    ValueError,
    TypeError,
    FileExistsError,
    FileNotFoundError,
    IsADirectoryError,
    NotADirectoryError,
    PermissionError,
)
_FAILED = (OSError, ImportError, MemoryError)  # nothing wrong with what was asked


def set_debug(on: bool) -> None:
    """Set whether errors are shown with their tracebacks."""
    _DEBUG["on"] = on


@contextmanager
def reported(quiet: bool = False) -> Iterator[Console]:
    """Yield the console of progress and notes, and turn errors into one line and an exit code.

    A quiet console shows nothing but errors.
    """
    try:
        yield Console(stderr=True, quiet=quiet)
    except (typer.Exit, BrokenPipeError):  # a reader that has seen enough is not an error
        raise
    except KeyboardInterrupt:
        _fail("interrupted: nothing was written")
        raise typer.Exit(1) from None
    except Exception as error:
        if _DEBUG["on"]:
            raise
        if isinstance(error, _BAD_INPUT + _FAILED):
            _fail(message(error) or type(error).__name__)
        else:
            _fail(
                f"{type(error).__name__}: {error}; this should not happen: run `edgegraft --debug "
                "...` for the traceback, and report it"
            )
        raise typer.Exit(2 if isinstance(error, _BAD_INPUT) else 1) from None


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
        read = tuple(path for path in reads if path is not None)
        for path in read:  # before anything is loaded
            if not path.exists():
                raise FileNotFoundError(f"there is no file '{path}'")
            if path.is_dir():
                raise IsADirectoryError(f"'{path}' is a folder: give the path of one file in it")
        read += () if table is None else tuple(require_table(table))
        for output in (*writes, rows, page, picture):
            refuse_overwriting(output, force, read)
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


def _fail(text: str) -> None:
    say(Console(stderr=True), f"[bold red]error:[/] {escape(text)}")


@contextmanager
def warned(console: Console) -> Iterator[list[str]]:
    """Show warnings as single lines, each once, on the console when the block ends.

    They are then also in the list that is yielded.
    """
    texts: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield texts
    texts += dict.fromkeys(message(warning.message) for warning in caught)
    for text in texts:
        say(console, f"[bold yellow]warning:[/] {escape(text)}")


def say(console: Console, text: str) -> None:
    """Show a line of rich markup as it is: not wrapped, its numbers and paths not coloured."""
    console.print(visible(text), highlight=False, soft_wrap=True)


def say_approximation(console: Console, approximation: str | None) -> None:
    """Report how an answer was approximated, if it was."""
    if approximation is not None:
        say(console, f"The answer is an approximation: {escape(approximation)}.")


def results(console: Console) -> Console:
    """Return the console of results, on stdout; it is quiet if that of progress is."""
    known = sys.stdout.isatty() or "COLUMNS" in os.environ
    return Console(quiet=console.quiet, width=None if known else 160)  # a file is as wide as needed


def show_table(
    console: Console, title: str, heads: Iterable[str], rows: Iterable[Sequence[str] | None]
) -> None:
    """Show a table; a head that starts with ``>`` aligns right, a row that is None draws a line."""
    say(console, f"[bold]{title}[/]")
    table = Table()
    for head in heads:
        justify: Any = "right" if head.startswith(">") else "left"
        table.add_column(head.removeprefix(">"), justify=justify, overflow="fold")
    for row in rows:
        table.add_section() if row is None else table.add_row(*row)
    console.print(table, highlight=False)


def give(result: Any) -> None:
    """Write a result for programs to stdout, as JSON."""
    sys.stdout.write(json.dumps(result, indent=2, allow_nan=False, ensure_ascii=False) + "\n")


def require_table(data: Path) -> list[Path]:
    """Return the files of a table: one, those of a folder, or those that match a pattern.

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
    if find_spec("networkx") is None:
        raise MissingExtraError("networkx", "report", "a report")


def refuse_overwriting(path: Path | None, force: bool, others: tuple[Path, ...] = ()) -> None:
    """Stop before the work if its output would replace a file without --force.

    Other files of the command, which it reads or also writes, are never replaced.
    """
    if path is None:
        return
    if any(_same(path, other) for other in others):
        raise FileExistsError(
            f"'{path}' is named for something else as well: choose another name for what is written"
        )
    if path.is_dir():
        raise IsADirectoryError(f"'{path}' is a folder: give the name of a file")
    if path.exists() and not force:
        raise FileExistsError(f"'{path}' exists: choose another name, or add --force")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"there is no folder '{path.parent}' to write '{path.name}' to")
    _try_writing(path.name, path.parent)  # files are written beside their place and moved


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
