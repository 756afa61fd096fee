"""What a setting is: its declaration, the checks derived from it, and records of settings.

A setting is a field of a dataclass. Its type states the kinds of value and the words that it takes;
its metadata state the bounds, the help text and the command-line option.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field, fields
from functools import cache
from numbers import Integral, Real
from types import NoneType
from typing import Any, Literal, NamedTuple, cast, get_args, get_origin, get_type_hints

from edgegraft.errors import SettingError

#: Headings of the options that ``edgegraft learn --help`` shows; the others are in ``--help-all``.
TABLE, NETWORK, RUN = "Table", "Network", "Run"


class Setting(NamedTuple):
    """What a setting may be, and how it is offered."""

    name: str
    default: Any
    kinds: tuple[type, ...]  # among bool, int and float; empty if only words are taken
    words: tuple[str, ...]  # words that are taken, instead of or besides numbers
    optional: bool  # whether None is taken
    minimum: float | None = None  # bounds of numbers, themselves allowed
    maximum: float | None = None
    above: float | None = None  # bound of numbers, itself not allowed
    help: str = ""  # one sentence for the command line
    #: the command-line option and its short form, such as "--jobs -j"; None if it has none
    flag: str | None = None
    #: of reading: whether it may change the cells that are read, not time and memory alone
    cells: bool = True
    texts: bool = False  # whether lists of texts are taken
    plugins: bool = False  # whether names of plug-ins are taken, checked when one is looked up
    group: str | None = None  # heading in the short help; None if only --help-all shows the option

    def allows(self, value: object) -> bool:
        """Return whether a value is one of those that the setting takes."""
        if value is None:
            return self.optional
        if isinstance(value, str):
            return self.plugins or value in self.words
        if isinstance(value, list | tuple):
            return self.texts and all(isinstance(text, str) for text in value)
        if isinstance(value, bool):
            return bool in self.kinds
        if not isinstance(value, Real if float in self.kinds else Integral):
            return False
        number = float(value)
        return (
            bool({int, float} & set(self.kinds))
            and math.isfinite(number)
            and (self.minimum is None or number >= self.minimum)
            and (self.maximum is None or number <= self.maximum)
            and (self.above is None or number > self.above)
        )

    @property
    def expected(self) -> str:
        """What the setting takes, in words.

        >>> from edgegraft.config import Settings
        >>> settings_of(Settings)["reservoir_size"].expected
        "an integer of at least 1, 'unlimited' or None"
        """
        if len(self.words) > 1 and not self.kinds and not self.optional:
            return f"one of {', '.join(self.words)}"
        parts = [f"{_NOUNS[kind]}{self._bounds}" for kind in self.kinds]
        parts += ["a list of texts"] * self.texts
        parts += [repr(word) for word in self.words] + ["None"] * self.optional
        return " or ".join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)

    @property
    def _bounds(self) -> str:
        if self.minimum is not None and self.maximum is not None:
            return f" from {self.minimum:g} to {self.maximum:g}"
        bounds = [] if self.above is None else [f"above {self.above:g}"]
        bounds += [] if self.minimum is None else [f"of at least {self.minimum:g}"]
        bounds += [] if self.maximum is None else [f"at most {self.maximum:g}"]
        return " " + " and ".join(bounds) if bounds else ""


_NOUNS: dict[type, str] = {bool: "True or False", int: "an integer", float: "a number"}


def setting(default: Any, help: str = "", flag: str | None = None, **others: Any) -> Any:
    """Return a dataclass field that declares a setting; others are bounds and so on of `Setting`.

    `flag` offers it on the command line.
    """
    return field(default=default, metadata={"help": help, "flag": flag, **others})


def settings_of(config: type) -> dict[str, Setting]:
    """Return the settings that a dataclass declares or inherits, by name.

    >>> from edgegraft.config import Plan
    >>> found = settings_of(Plan)["max_edges"]
    >>> found.kinds, found.minimum, found.optional, found.flag
    ((<class 'int'>,), 0, True, '--max-edges')
    """
    return _settings_of(cast(Hashable, config))


@cache
def _settings_of(config: Any) -> dict[str, Setting]:
    hints = get_type_hints(config)
    found = {}
    for declared in fields(config):
        if declared.metadata:
            kinds = _parts(hints[declared.name])
            found[declared.name] = Setting(
                declared.name,
                declared.default,
                tuple(kind for kind in kinds if kind in (bool, int, float)),
                tuple(word for word in kinds if isinstance(word, str)),
                NoneType in kinds,
                texts=str in kinds,
                **declared.metadata,
            )
    return found


def check_settings(options: Any, names: Iterable[str] | None = None) -> None:
    """Refuse values that the settings of a dataclass, or those that are named, do not take."""
    declared = settings_of(type(options))
    for name in declared if names is None else names:
        if not declared[name].allows(value := getattr(options, name)):
            raise SettingError(name, f"must be {declared[name].expected}, found {value!r}")


def _parts(hint: Any) -> list[Any]:
    """Return the types and the literal words of a type hint, in order."""
    if get_origin(hint) is Literal:
        return list(get_args(hint))
    return [part for one in get_args(hint) for part in _parts(one)] or [hint]


@dataclass(frozen=True, repr=False)
class Options:
    """Values of settings; the text of one has those that are not the default."""

    def __repr__(self) -> str:
        changed = [
            f"{own.name}={getattr(self, own.name)!r}"
            for own in fields(self)
            if getattr(self, own.name) != own.default
        ]
        return f"{type(self).__name__}({', '.join(changed)})"
