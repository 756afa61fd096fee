"""What the caller asked of `pack`, checked once before any data are touched."""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from inspect import signature
from os import PathLike
from typing import Any, cast

import numpy as np

from edgegraft.config import BinRule, TableOptions, Unseen, check_settings, setting
from edgegraft.errors import Argument, DataError, SettingError, listing, suggestion
from edgegraft.ingest.cells import MISSING_TOKENS
from edgegraft.ingest.sources import OnRows
from edgegraft.table.schema import KINDS, MAX_STATES, Kind

__all__ = ["BinRule", "ReadOptions", "Unseen"]


_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_UNITS |= {"ki": 1 << 10, "mi": 1 << 20, "gi": 1 << 30, "ti": 1 << 40}


def read_size(size: int | str) -> int:
    """Return a number of bytes, given as such or as text with a unit.

    >>> read_size("2 GiB"), read_size("500MB"), read_size(1024)
    (2147483648, 500000000, 1024)
    """
    if isinstance(size, str):
        found = re.fullmatch(r"\s*([0-9]+\.?[0-9]*|\.[0-9]+)\s*([kmgt]?i?)b?\s*", size.lower())
        if not found or found[2] not in _UNITS:
            raise ValueError(
                f"invalid size {size!r}: expected a whole number of bytes or a text such as '2 GiB'"
            )
        return int(float(found[1]) * _UNITS[found[2]])
    return int(size)


def enough(n_bytes: int) -> str:
    """Return a size, rounded up so that it suffices when it is read back.

    >>> enough((1 << 30) + 1)
    '1.01 GiB'
    """
    return f"{-(-100 * n_bytes >> 30) / 100:.2f} GiB"


#: Settings whose declaration states all that they may be.
_PLAIN = ("bin_rule", "unseen", "max_numeric_states", "max_categories", "max_states", "batch_rows")


@dataclass(frozen=True)
class ReadOptions(TableOptions):
    """How a table is read: the one set of options of `pack`, the estimators and the commands.

    Those of users are declared in :class:`edgegraft.config.TableOptions`, the others here.
    """

    max_states: int = setting(MAX_STATES, minimum=2, maximum=MAX_STATES)
    batch_rows: int = setting(65536, cells=False, minimum=1)
    n_jobs: int = setting(1, cells=False)
    sample_rows: int | None = setting(None, cells=False)
    on_rows: OnRows | None = field(default=None, metadata={"cells": False})  # gets reports

    @classmethod
    def of(cls, function: Callable[..., Any], given: Mapping[str, Any]) -> ReadOptions:
        """Return the options that a function got as its further keyword arguments."""
        options = {each.name for each in fields(cls)}
        for name in given.keys() - options:
            known = [*signature(function).parameters, *sorted(options)]
            raise TypeError(
                f"{function.__name__}() has no argument {name!r}: {suggestion(name, known)}"
            )
        return cls(**given)

    def __post_init__(self) -> None:
        check_settings(self, _PLAIN)
        if self.n_jobs != -1:
            _check_count("n_jobs", self.n_jobs, 1, None)
        for option in ("max_memory", "cache_size"):
            size = getattr(self, option)
            try:
                if size is not None:
                    read_size(size)
            except (ValueError, TypeError) as error:
                raise SettingError(option, f"is an {error}") from None
        if not isinstance(self.cache_dir, str | PathLike | None):
            raise SettingError("cache_dir", f"must be a path or None, found {self.cache_dir!r}")
        for which, count in _by_column(self.bins):
            if count is not None:
                _check_count("bins", count, 2, MAX_STATES, which)
        for option in ("columns", "drop", *KINDS, "order", "missing_values"):
            given = getattr(self, option)
            if isinstance(given, str) or not isinstance(given, Iterable | None):
                what = "tokens: write" if option == "missing_values" else "names: write"
                found = Argument(option, [given])
                raise DataError(Argument(option), f" takes a list of {what} ", found)
        self._check_kinds()
        self._check_text()

    def _check_kinds(self) -> None:
        for which, kind in _by_column(self.kinds):
            if kind not in (*KINDS, "auto"):
                raise SettingError(
                    "kinds",
                    f"{which}must be one of {listing(('auto', *KINDS))}, found {kind!r}",
                )
        named = [name for kind in KINDS for name in getattr(self, kind) or ()]
        if len(set(named)) < len(named):
            twice = next(name for name in named if named.count(name) > 1)
            raise DataError(f"column '{twice}' was given two kinds, or one twice: choose one")
        for text in self.order or ():
            if len(_split_order(text)[1]) < 2:
                raise DataError(Argument("order", [text]), " has no order: write 'low<middle<high'")

    @cached_property
    def named_kinds(self) -> dict[str, str]:
        """Kinds that were asked for single columns."""
        named = dict(self.kinds) if isinstance(self.kinds, Mapping) else {}
        return named | {name: kind for kind in KINDS for name in getattr(self, kind) or ()}

    def kind_for(self, name: str) -> Kind | None:
        """Return the kind that was asked for a column, None if it is to be found out."""
        found = self.named_kinds.get(name, self.kinds if isinstance(self.kinds, str) else "auto")
        return None if found == "auto" else cast(Kind, found)

    def order_for(self, name: str, labels: Collection[Any]) -> list[str] | None:
        """Return the order that was given for a column of text, if there is one.

        >>> options = ReadOptions(order=["low<high", "size=S<M<L"])
        >>> options.order_for("price", ["high"]), options.order_for("size", ["S", "L"])
        (['low', 'high'], ['S', 'M', 'L'])
        """
        for text in self.order or ():
            column, levels = _split_order(text)
            if column == name or (column is None and set(labels) <= set(levels)):
                return levels
        return None

    def orders_for_all(self) -> list[tuple[str, list[str]]]:
        """Return the orders that name no column: as they were given, and their levels."""
        found = [(text, *_split_order(text)) for text in self.order or ()]
        return [(text, levels) for text, column, levels in found if column is None]

    def _check_text(self) -> None:
        for token in self.missing_values:
            if not isinstance(token, str | int | float):
                raise DataError(f"missing_values: {token!r} is neither text nor a number")
        if self.delimiter is not None and len(self.delimiter) != 1:
            raise DataError(Argument("delimiter", self.delimiter), " must be one character")
        try:
            codecs.lookup(self.encoding)
        except LookupError:
            raise DataError(Argument("encoding", self.encoding), " is not an encoding") from None

    def of_cells(self) -> dict[str, Any]:
        """Return the options that may change the cells that are read, by name."""
        return {
            f.name: getattr(self, f.name) for f in fields(self) if f.metadata.get("cells", True)
        }

    @property
    def use_threads(self) -> bool:
        """Whether readers may use more than one thread."""
        return self.n_jobs != 1

    def bins_for(self, name: str) -> int | None:
        """Return the number of bins that was asked for a column."""
        return self.bins.get(name) if isinstance(self.bins, Mapping) else self.bins

    def missing_labels(self, from_text: bool) -> frozenset[Any]:
        """Return the labels that mean missing; in text files these are all texts."""
        if not from_text:
            return frozenset([None, *self.missing_values])
        return MISSING_TOKENS.union(map(str, self.missing_values), [None])

    def choose(self, names: Sequence[str], named: bool = True) -> list[str]:
        """Return the columns to encode, after `columns` and `drop`; or positions if not `named`."""
        for option, given in (
            ("bins", self.bins),
            ("kinds", self.kinds),
            *((kind, getattr(self, kind)) for kind in KINDS),
            ("order", [name for name, _ in map(_split_order, self.order or ()) if name]),
        ):
            if isinstance(given, Mapping | list | tuple):
                _resolve(option, list(given), names, named)
        chosen = list(names)
        if self.columns is not None:
            chosen = _resolve("columns", self.columns, names, named)
            if len(set(chosen)) != len(chosen):
                raise DataError(Argument("columns"), " names the same column twice")
        if self.drop is not None:
            dropped = set(_resolve("drop", self.drop, names, named))
            chosen = [name for name in chosen if name not in dropped]
        if not chosen:
            raise DataError(
                "no column is left after ", Argument("columns"), " and ", Argument("drop")
            )
        return chosen


def _by_column(given: Any) -> list[tuple[str, Any]]:
    """Return what was given for all columns, or for each, after the words that name it."""
    if not isinstance(given, Mapping):
        return [("", given)]
    return [(f"for column '{name}' ", value) for name, value in given.items()]


def _split_order(text: str) -> tuple[str | None, list[str]]:
    """Return the column that an order is for, if it names one, and its levels."""
    name, found, levels = text.partition("=")
    if not found or "<" in name:
        name, levels = "", text
    return name.strip() or None, [level.strip() for level in levels.split("<")]


def _check_count(option: str, value: object, low: int, high: int | None, which: str = "") -> None:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < low:
        raise SettingError(option, f"{which}must be an integer of at least {low}, found {value!r}")
    if high is not None and value > high:
        raise SettingError(option, f"{which}can be at most {high}, found {value}")


def _resolve(
    option: str, wanted: Sequence[str | int], names: Sequence[str], named: bool
) -> list[str]:
    known = set(names)
    resolved = []
    for item in wanted:
        if not named and isinstance(item, int | np.integer) and 0 <= item < len(names):
            name = names[item]
        else:
            name = str(item)
        if name not in known:
            raise DataError(
                Argument(option),
                f" names column '{name}', which the table lacks: {suggestion(name, names)}",
            )
        resolved.append(name)
    return resolved
