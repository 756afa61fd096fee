"""Messages of the library in the words of the command line: ``drop=`` is ``--drop`` here."""

from __future__ import annotations

import re

_REPLACED = (
    (r"bins=\{'column': (\d+)\}", r"--bins column=\1"),
    (r"keep the values with max_numeric_states=, ", ""),
    (r"missing_values=\((.+?),\)", r"--missing \1"),
    (r"\bdelimiter=('[^']*')", r"--delimiter \1"),
    (r"\bencoding=('[^']*')", r"--encoding \1"),
    (r"\b(engine|unseen)='(\w+)'", r"--\1 \2"),
    (r"\bbins=(\d+)", r"--bins \1"),
    (r"\b(columns|drop|bins|delimiter|encoding)=", r"--\1"),
)


def as_options(message: str) -> str:
    """Return a message with Python's arguments written as options.

    Examples
    --------
    >>> as_options("leave them out with drop=, or choose bins=5")
    'leave them out with --drop, or choose --bins 5'
    >>> as_options("if that means missing, use missing_values=('?',)")
    "if that means missing, use --missing '?'"
    """
    for pattern, option in _REPLACED:
        message = re.sub(pattern, option, message)
    return message
