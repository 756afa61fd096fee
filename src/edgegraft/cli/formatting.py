"""Text for a terminal: messages with their arguments as options, cells, counts, times and sizes."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from shlex import quote

from rich.markup import escape

from edgegraft.cli.options import flag_of
from edgegraft.errors import Argument, Message

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
        texts = [_joined(value)]
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


def counted(n: int, thing: str) -> str:
    """Return a number of things in words.

    >>> counted(1, "edge"), counted(1200, "edge")
    ('1 edge', '1,200 edges')
    """
    return f"{n:,} {thing}" + ("" if n == 1 else "s")


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


def _joined(names: Sequence[object]) -> str:
    """Return names separated by commas, as ``--drop`` reads them."""
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(names)
    return line.getvalue()
