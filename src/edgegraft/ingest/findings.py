"""What a reading finds out about columns: warnings, and all problems reported at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from edgegraft.errors import (
    Argument,
    DataError,
    DataTypeError,
    EncodingWarning,
    UnseenCategoryError,
    listing,
)

OTHER = "(other)"  # the state of pooled categories
_SHOWN = 6  # columns that a message names


def missing_values(tokens: Iterable[object]) -> Argument:
    """Return the argument that takes some cells as missing."""
    return Argument("missing_values", tuple(tokens))


@dataclass
class Findings:
    """Decisions about columns that the user should know of: one warning per subject."""

    constant: list[str] = field(default_factory=list)
    binned: list[tuple[str, int]] = field(default_factory=list)
    odd: list[tuple[str, list[str]]] = field(default_factory=list)
    dressed: list[tuple[str, str]] = field(default_factory=list)
    scattered: list[tuple[str, int]] = field(default_factory=list)
    twins: list[tuple[str, tuple[str, str]]] = field(default_factory=list)
    pooled: list[tuple[str, int]] = field(default_factory=list)

    def warnings(self) -> Iterator[EncodingWarning]:
        """Yield one warning per subject that came up."""
        drop = Argument("drop")
        if self.constant:
            yield EncodingWarning(
                f"constant columns: {listing(self.constant)}; they are kept but can have no edges "
                "(leave them out with ",
                drop,
                ")",
            )
        if self.binned:
            yield EncodingWarning(
                f"numeric columns with many values were cut into bins: "
                f"{_noted(self.binned, '{} bins')}; choose with ",
                Argument("bins", 5),
                " or ",
                Argument("bins", {"column": 3}),
                ", keep the values with ",
                Argument("max_numeric_states"),
                ", or leave columns out with ",
                drop,
            )
        for name, tokens in self.odd:
            yield EncodingWarning(
                f"column '{name}' is numeric but for {listing(tokens)}, so it was read as text; if "
                "that means missing, use ",
                missing_values(tokens),
            )
        if self.dressed:
            yield EncodingWarning(
                "columns of numbers that are not written plainly, so that each is a category of "
                f"its own: {_noted(self.dressed, 'such as {!r}')}; write them as 1234.5 to have "
                "them cut into bins",
            )
        if self.scattered:
            yield EncodingWarning(
                "columns with many categories of few rows each: "
                f"{_noted(self.scattered, '{:,} categories')}; they cost time and hardly show "
                "edges: merge categories (of dates keep the month, for example), or leave the "
                "columns out with ",
                Argument("drop", [name for name, _ in self.scattered]),
            )
        if self.pooled:
            yield EncodingWarning(
                "columns with very many categories, of which the rarest were pooled as "
                f"{OTHER!r}: {_noted(self.pooled, '{:,} categories pooled')}; keep more with ",
                Argument("max_categories"),
                ", or leave columns out with ",
                Argument("drop", [name for name, _ in self.pooled]),
            )
        if self.twins:
            yield EncodingWarning(
                "columns with categories that differ in blanks or capitals only: "
                f"{_noted(self.twins, '{0[0]!r} and {0[1]!r}')}; if they mean the same, write "
                "them alike",
            )


def _noted(columns: Sequence[tuple[str, object]], note: str) -> str:
    """Return columns with what was noted of each, a long list cut short."""
    shown = ", ".join(f"'{name}' ({note.format(fact)})" for name, fact in columns[:_SHOWN])
    return shown if len(columns) <= _SHOWN else f"{shown} and {len(columns) - _SHOWN} more"


class Problems:
    """Errors by column.

    >>> problems = Problems()
    >>> with problems.noted("a"):
    ...     raise DataError("column 'a' is odd")
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

    @contextmanager
    def noted(self, name: str) -> Iterator[None]:
        """Note what is found to be wrong with a column in the block, which then ends."""
        try:
            yield
        except (DataError, DataTypeError) as error:
            self._found.append((name, error))

    def raise_all(self) -> None:
        """Raise one error that reports every column noted so far; return if there is none."""
        errors = [error for _, error in self._found]
        if self.empty:
            one = len(self.empty) == 1
            have, them = ("has", "it") if one else ("have", "them")
            text = (
                f"{'column' if one else 'columns'} {listing(self.empty)} {have} no observed value "
                f"at all: leave {them} out with "
            )
            errors.append(DataError(text, Argument("drop", self.empty)))
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
