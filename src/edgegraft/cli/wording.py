"""Messages of the library in the words of the command line: ``drop=['id']`` is ``--drop id``."""

from __future__ import annotations

import ast
import csv
import io
import re
from collections.abc import Callable, Sequence
from shlex import quote

from rich.markup import escape

_TEXT = r"""(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")"""  # as Python writes one
_TEXTS = rf"[\[(]{_TEXT}(?:, {_TEXT})*,?[\])]"
_CONTROLS = {k: repr(chr(k))[1:-1] for k in (*range(32), *range(127, 160)) if chr(k) != "\n"}
_Words = str | Callable[[re.Match[str]], str]


def _drop(match: re.Match[str]) -> str:
    return f"--drop {quote(_joined(ast.literal_eval(match[1])))}"


def _missing(match: re.Match[str]) -> str:
    return " ".join(f"--missing {quote(text)}" for text in ast.literal_eval(match[1]))


def _bins(match: re.Match[str]) -> str:
    return f"--bins {quote(ast.literal_eval(match[1]) + '=' + match[2])}"


_REPLACED: tuple[tuple[str, _Words], ...] = (
    (rf"drop=({_TEXTS})", _drop),
    (rf"missing_values=({_TEXTS})", _missing),
    (rf"bins=\{{({_TEXT}): (\d+)\}}", _bins),
    (r"keep the values with max_numeric_states=, ", ""),
    (r"\bdelimiter=('[^']*')", r"--delimiter \1"),
    (r"\bencoding=('[^']*')", r"--encoding \1"),
    (r"\b(engine|unseen)='(\w+)'", r"--\1 \2"),
    (r"\bbins=(\d+)", r"--bins \1"),
    (r"\b(columns|drop|bins|delimiter|encoding)=", r"--\1"),
    (r"\b(max|cache)_(memory|dir|size)=", r"--\1-\2"),
    (r"\bn_jobs=", "--jobs"),
    (r"^(penalty|ridge|fdr|bins) must be", r"--\1 must be"),
    (r"^(--fdr must be .*) or None,", r"\1 or 'none',"),
)


def as_options(message: str) -> str:
    r"""Return a message with Python's arguments written as options.

    Examples
    --------
    >>> as_options("leave them out with drop=['id', 'last, first'], or choose bins=5")
    'leave them out with --drop \'id,"last, first"\', or choose --bins 5'
    >>> as_options("if that means missing, use missing_values=('?',)")
    "if that means missing, use --missing '?'"
    """
    for pattern, words in _REPLACED:
        message = re.sub(pattern, words, message)
    return message


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
