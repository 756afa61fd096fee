"""Every error and warning of the library, in one place.

A message names the column, row or edge, what was found, and what to do about it. The classes derive
from the built-in ones that callers already catch.

Arguments that a message advises are parts of it, as :class:`Argument`: ``str(error)`` writes them
as Python (``drop=['id']``), the command line as options (``--drop id``).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from importlib import import_module
from typing import Any

__all__ = [
    "Argument",
    "ClusterError",
    "ConvergenceWarning",
    "DataError",
    "DataTypeError",
    "DiskFullError",
    "EdgeError",
    "EncodingWarning",
    "FileFormatError",
    "ImpossibleEvidenceError",
    "MemoryBudgetError",
    "MissingExtraError",
    "ModelError",
    "ModelFileError",
    "SettingError",
    "TreewidthError",
    "UnseenCategoryError",
]


@dataclass(frozen=True)
class Argument:
    """An argument that a message names, with the value that it advises if there is one.

    Examples
    --------
    >>> str(Argument("drop", ["id"])), str(Argument("max_memory"))
    ("drop=['id']", 'max_memory=')
    """

    name: str
    value: Any = None

    def __str__(self) -> str:
        return f"{self.name}=" + ("" if self.value is None else repr(self.value))


class Message(Exception):
    """A message of several parts, some of them arguments; mixed into errors and warnings.

    >>> error = DataError("column 'id' identifies rows: use ", Argument("drop", ["id"]))
    >>> str(error)
    "column 'id' identifies rows: use drop=['id']"
    >>> error.written(lambda argument: f"--{argument.name} {','.join(argument.value)}")
    "column 'id' identifies rows: use --drop id"
    """

    parts: tuple[str | Argument, ...]

    def __init__(self, *parts: str | Argument) -> None:
        self.parts = parts
        super().__init__("".join(map(str, parts)))

    def written(self, write: Callable[[Argument], str]) -> str:
        """Return the message with its arguments written by a function."""
        return "".join(part if isinstance(part, str) else write(part) for part in self.parts)


class DataError(Message, ValueError):
    """The table cannot be used as it is: its content is at fault."""


class DataTypeError(Message, TypeError):
    """The kind of an input, or the type of a column, is not one that can be encoded."""


class UnseenCategoryError(DataError):
    """A fixed schema met a category that it does not know."""


class FileFormatError(DataError):
    """A file is malformed, truncated, of a foreign format or of a newer version."""


class ModelFileError(FileFormatError):
    """A file is not a model of edgegraft, is damaged, or was written by a newer release."""


class SettingError(Message, ValueError):
    """A setting, `name`, has a value that it does not take; `problem` is what is wrong with it.

    Examples
    --------
    >>> error = SettingError("max_edges", "must be at least 0, found -1")
    >>> str(error), error.written(lambda argument: "--max-edges")
    ('max_edges must be at least 0, found -1', '--max-edges must be at least 0, found -1')
    """

    def __init__(self, name: str, problem: str = "") -> None:
        super().__init__(f"{name} {problem}")
        self.parts = (Argument(name), f" {problem}")


class EdgeError(ValueError):
    """An edge names a variable that does not exist, or joins a variable to itself."""


class MemoryBudgetError(Message, ValueError):
    """A request was refused because its result would not fit the memory allowed for it."""


class TreewidthError(MemoryBudgetError):
    """Exact inference was refused: its largest table would not fit the budget."""


class ModelError(Message, ValueError):
    """A model is malformed, or a question names a variable or category that it does not have."""


class ImpossibleEvidenceError(ModelError):
    """The evidence has probability zero under the model."""


class MissingExtraError(ImportError):
    """An optional dependency is not installed; the message names the extra that brings it."""

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(
            f"{purpose} needs the package '{package}': install it with "
            f"`pip install 'edgegraft[{extra}]'`",
            name=package,
        )


def import_extra(package: str, extra: str, purpose: str) -> Any:
    """Return the module of an optional dependency, or raise the error that names its extra."""
    try:
        return import_module(package)
    except ImportError as error:
        raise MissingExtraError(package, extra, purpose) from error


class DiskFullError(Message, OSError):
    """The disk has no space left for a file; no part of it is left behind."""

    @classmethod
    def at(cls, path: object, cause: OSError, *remedy: str | Argument) -> DiskFullError:
        """Return the error for a file that could not be written, with the number of its cause."""
        why = os.strerror(cause.errno or 0).lower()
        full = cls(f"the disk of '{path}' is full ({why}); nothing was left behind", *remedy)
        full.errno = cause.errno
        return full


class ClusterError(RuntimeError):
    """A cluster was lost or could not finish its work; the message explains how to resume."""


class EncodingWarning(Message, UserWarning):
    """Something was decided about a column that the user should know of."""


class IdentificationWarning(Message, UserWarning):
    """The rows cannot distinguish some edges, so that their tests cannot be relied on."""


class ConvergenceWarning(Message, UserWarning):
    """An iteration ended before it converged; the answer may be far from the exact one."""


class TooFewRowsWarning(Message, UserWarning):
    """There are too few rows to find an edge, or too few that know both columns of a pair."""


def counted(n: int, thing: str) -> str:
    """Return a number of things in words.

    >>> counted(1, "edge"), counted(1200, "edge")
    ('1 edge', '1,200 edges')
    """
    return f"{n:,} {thing}" + ("" if n == 1 else "s")


def listing(items: Iterable[object], limit: int = 6) -> str:
    """Return items as they are written in Python, a long list cut short.

    >>> listing(["a", "b", "c"], limit=2)
    "'a', 'b' and 1 more"
    """
    shown = [_short(item) for item in items]
    text = ", ".join(shown[:limit])
    return text if len(shown) <= limit else f"{text} and {len(shown) - limit:,} more"


def _short(item: object, width: int = 40) -> str:
    text = repr(item)
    return text if len(text) <= width else f"{text[: width - 4]}...{text[0]}"


_COMPARED = 10_000  # names that an unknown one is compared with


def nearest(text: str, known: Sequence[str]) -> str | None:
    """Return the name that was probably meant: equal but for capitals, or similar.

    >>> nearest("CITY", ["city", "citu"]), nearest("smokr", ["age", "smoker"]), nearest("x", ["y"])
    ('city', 'smoker', None)
    """
    alike = [name for name in known if name.casefold() == text.casefold()]
    return next(iter(alike or get_close_matches(text, known[:_COMPARED], n=1)), None)


def suggestion(text: str, known: Sequence[str]) -> str:
    """Return what to say about an unknown name: the one that was meant, or all there are.

    >>> suggestion("smokr", ["age", "smoker"]), suggestion("x", ["age", "smoker"])
    ("did you mean 'smoker'?", "there are 'age', 'smoker'")
    """
    near = nearest(text, known)
    return f"there are {listing(known)}" if near is None else f"did you mean {near!r}?"
