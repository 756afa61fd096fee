"""Text for a terminal: errors with their advice as options, and cells of tables."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from shlex import quote

from rich.markup import escape

from edgegraft.errors import Argument, Message

_CONTROLS = {k: repr(chr(k))[1:-1] for k in (*range(32), *range(127, 160)) if chr(k) != "\n"}
_FLAGS = {"missing_values": "--missing", "n_jobs": "--jobs", "random_state": "--seed"}


def message(error: BaseException) -> str:
    """Return what an error or a warning says, the arguments it names written as options."""
    return error.written(as_option) if isinstance(error, Message) else str(error)


def as_option(argument: Argument) -> str:
    r"""Return an argument as it is written on the command line.

    Examples
    --------
    >>> as_option(Argument("drop", ["id", "last, first"])), as_option(Argument("max_memory"))
    ('--drop \'id,"last, first"\'', '--max-memory')
    >>> as_option(Argument("missing_values", ("?", "-1"))), as_option(Argument("bins", {"age": 4}))
    ("--missing '?' --missing -1", '--bins age=4')
    """
    name, value = argument.name, argument.value
    flag = _FLAGS.get(name, f"--{name.replace('_', '-')}")
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

    Examples
    --------
    >>> print(visible("red \x1b[31m"))
    red \x1b[31m
    """
    return text.translate(_CONTROLS)


def cell(value: object, width: int = 60) -> str:
    r"""Return a name or category of the data for the cell of a table, short and as it is.

    Examples
    --------
    >>> cell("a\nb"), cell("[red]"), cell("x" * 100, 8)
    ('a\\nb', '\\[red]', 'xxxxxxx…')
    """
    text = visible(str(value)).replace("\n", "\\n")
    return escape(text if len(text) <= width else text[: width - 1] + "…")


def counted(n: int, thing: str) -> str:
    """Return a number of things in words.

    Examples
    --------
    >>> counted(1, "edge"), counted(1200, "edge")
    ('1 edge', '1,200 edges')
    """
    return f"{n:,} {thing}" + ("" if n == 1 else "s")


def _joined(names: Sequence[str]) -> str:
    """Return names separated by commas, as `parse_names` reads them."""
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(names)
    return line.getvalue()
