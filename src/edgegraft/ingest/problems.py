"""Columns that cannot be used, gathered so that all of them are reported at once."""

from __future__ import annotations

from edgegraft.core.text import listing
from edgegraft.errors import Argument, DataError, DataTypeError, UnseenCategoryError

__all__ = ["Problems"]

_SHOWN = 6


class Problems:
    """Errors by column.

    Examples
    --------
    >>> problems = Problems()
    >>> problems.add("a", DataError("column 'a' is odd"))
    >>> problems.empty += ["b", "c"]
    >>> problems.raise_all()
    Traceback (most recent call last):
    ...
    edgegraft.errors.DataError: 3 columns cannot be used: (1) column 'a' is odd; (2) columns 'b', \
'c' have no observed value at all: leave them out with drop=['b', 'c']; to leave all of them out \
use drop=['a', 'b', 'c']
    """

    def __init__(self) -> None:
        self.empty: list[str] = []  # columns without one observed cell
        self._found: list[tuple[str, DataError | DataTypeError]] = []

    def add(self, name: str, error: DataError | DataTypeError) -> None:
        """Note what is wrong with a column."""
        self._found.append((name, error))

    def raise_all(self) -> None:
        """Raise one error that reports every column noted so far; return if there is none."""
        errors = [error for _, error in self._found]
        if self.empty:
            errors.append(_all_missing(self.empty))
        if not errors:
            return
        if len(errors) == 1:
            raise errors[0]
        names = [*(name for name, _ in self._found), *self.empty]
        parts: list[str | Argument] = [f"{len(names)} columns cannot be used: "]
        for k, error in enumerate(errors[:_SHOWN], 1):
            parts += [f"({k}) ", *error.parts, "; "]
        if len(errors) > _SHOWN:
            parts.append(f"and {len(errors) - _SHOWN} more; ")
        kinds = {type(error) for error in errors}
        kind = kinds.pop() if len(kinds) == 1 else DataError
        if kind is UnseenCategoryError:
            raise kind(*parts[:-1])
        raise kind(*parts, "to leave all of them out use ", Argument("drop", names))


def _all_missing(names: list[str]) -> DataError:
    one = len(names) == 1
    return DataError(
        f"{'column' if one else 'columns'} {listing(names)} {'has' if one else 'have'} no observed "
        f"value at all: leave {'it' if one else 'them'} out with ",
        Argument("drop", names),
    )
