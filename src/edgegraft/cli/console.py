"""Shared by all commands: a console for people, tables, errors in one line.

Exit codes: 0 done, 1 the work failed or was interrupted, 2 bad usage or bad input. Results go to
stdout, progress, notes and errors to stderr.

Text is made fit for a terminal: arguments of messages are written as options, control characters
are written out.
"""

from __future__ import annotations

import csv
import io
import json
import os
import sys
import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from shlex import quote
from typing import Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from edgegraft.cli.options import flag_of
from edgegraft.errors import Argument, Message


@dataclass(frozen=True)
class Screen:
    """What is shown to people of long lists: a screen of 80 columns and 40 lines."""

    rows: int = 40  # lines of a table
    names: int = 6  # names or categories in a cell or sentence
    letters: int = 80  # of a text within a sentence
    reasons: int = 8  # lines below a table, a fifth of the screen


SCREEN = Screen()
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
    """Return the console of results, on stdout; it is quiet if the console of progress is."""
    known = sys.stdout.isatty() or "COLUMNS" in os.environ
    return Console(quiet=console.quiet, width=None if known else 160)  # a file is as wide as needed


#: Formats of numbers by the head of their column; others have three digits.
_FORMATS = {
    **dict.fromkeys(("accuracy", "commonest", "explained", "R²"), ".1%"),
    **dict.fromkeys(("held accuracy", "held explained"), ".1%"),
    **dict.fromkeys(("strength", "effect", "low", "high", "frequency", "nats", "entropy"), ".3f"),
    **dict.fromkeys(("probability", "without evidence"), ".4f"),
    "change": "+.4f",
    "rows": ",.0f",
    "q-value": ".1e",
}


def show_table(
    console: Console,
    title: str,
    columns: Iterable[tuple[str, Iterable[Any]]],
    sections: Collection[int] = (),
) -> None:
    """Show columns of values, each under its head; `sections` are rows that a line follows.

    Texts are names or categories of the data and align left, numbers align right; so do values
    that come as `rich.text.Text` with ``justify="right"``. None and NaN are left empty.
    """
    say(console, f"[bold]{title}[/]")
    table, texts = Table(), []
    for head, given in columns:
        values = list(given)
        words = all(isinstance(value, str | Text) for value in values)
        right = not words or any(getattr(value, "justify", None) == "right" for value in values)
        table.add_column(head, justify="right" if right else "left", overflow="fold")
        texts.append([_shown(value, _FORMATS.get(head, ".3g")) for value in values])
    for k, row in enumerate(zip(*texts, strict=True)):
        table.add_row(*row, end_section=k in sections)
    console.print(table, highlight=False)


def _shown(value: Any, spec: str) -> str | Text:
    plain = value.item() if hasattr(value, "item") else value
    if isinstance(plain, Text):
        return plain
    if isinstance(plain, bool):
        return "yes" if plain else "no"
    if isinstance(plain, int):
        return f"{plain:,}"
    if isinstance(plain, float):
        return "" if plain != plain else f"{plain:{spec}}"
    return "" if plain is None else cell(plain)


def wrote(console: Console, what: str, path: object, more: str = "") -> None:
    """Report where an output is."""
    say(console, f"{what} is in [bold]{escape(str(path))}[/]{more}.")


def give(result: Any) -> None:
    """Write a result for programs to stdout, as JSON."""
    sys.stdout.write(json.dumps(result, indent=2, allow_nan=False, ensure_ascii=False) + "\n")
