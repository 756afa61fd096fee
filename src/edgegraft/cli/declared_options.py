"""Options that are derived from declared settings, and how their text is read.

:mod:`edgegraft.config` declares the settings of learning and of reading tables, with their types,
bounds, help and flags. A command that takes ``**options`` gets an option for each of them, and
:func:`settings_from` turns what was typed into values. A new setting with a flag needs no edit here
unless its text is read in a way of its own.
"""

from __future__ import annotations

import csv
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import typer

from edgegraft.cli.flags import check_jobs
from edgegraft.config import Plan, Setting, TableOptions, settings_of
from edgegraft.errors import DataError, SettingError

_Command = TypeVar("_Command", bound=Callable[..., None])
_DEFAULTS = {"n_jobs": -1}  # of the command line, if not those of Python


@cache
def flagged(config: type) -> tuple[Setting, ...]:
    """Return the settings of a config that the command line offers."""
    return tuple(setting for setting in settings_of(config).values() if setting.flag)


def flag_of(name: str) -> str:
    """Return the option of a setting or argument.

    >>> flag_of("missing_values"), flag_of("max_memory"), flag_of("engine")
    ('--missing', '--max-memory', '--engine')
    """
    for config in (Plan, TableOptions):
        declared = settings_of(config).get(name)
        if declared is not None and declared.flag:
            return declared.flag.split()[0].partition("/")[0]
    return f"--{name.replace('_', '-')}"


def key_of(setting: Setting) -> str:
    """Return the name of a setting in the files of the command line: that of its option."""
    return flag_of(setting.name)[2:].replace("-", "_")


def default_of(setting: Setting) -> Any:
    """Return the value of a setting whose option is not given."""
    return _DEFAULTS.get(setting.name, setting.default)


def with_options(settings: Iterable[Setting]) -> Callable[[_Command], _Command]:
    """Give a command an option per setting, in the place of its ``**options``."""

    def decorate(command: _Command) -> _Command:
        signature = inspect.signature(command, eval_str=True)
        parameters: list[inspect.Parameter] = []
        for own in signature.parameters.values():
            if own.kind is inspect.Parameter.VAR_KEYWORD:
                parameters += map(_parameter, settings)
            else:
                parameters.append(own.replace(kind=inspect.Parameter.KEYWORD_ONLY))
        command.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
        command.__annotations__ = {own.name: own.annotation for own in parameters}
        return command

    return decorate


def _parameter(setting: Setting) -> inspect.Parameter:
    assert setting.flag is not None
    default = default_of(setting)
    bounds: dict[str, Any] = {}
    none_has_a_word = setting.optional and setting.default is not None
    annotation: Any
    if setting.name in _LISTS:
        annotation, default = list[str] | None, None
    elif setting.name in _READ:
        annotation = str if default is not None else str | None
    elif setting.kinds == (bool,):
        annotation = bool
    elif setting.words and not setting.kinds:
        annotation = Literal[setting.words]
    elif len(setting.kinds) == 1 and not setting.words and not none_has_a_word:
        annotation = setting.kinds[0] | None if default is None else setting.kinds[0]
        bounds = {"min": setting.minimum, "max": setting.maximum}
    else:
        annotation, default = str | None, None if default is None else str(default)
    if setting.name == "n_jobs":
        bounds = {"callback": check_jobs}
    option = typer.Option(
        *setting.flag.split(), help=setting.help, show_default=default is not None, **bounds
    )
    return inspect.Parameter(
        setting.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=default,
        annotation=Annotated[annotation, option],
    )


def settings_from(settings: Iterable[Setting], typed: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values of settings by name, from what was typed for their options."""
    return {setting.name: _value(setting, typed[setting.name]) for setting in settings}


def _value(setting: Setting, typed: Any) -> Any:
    if typed is None or typed == []:
        return setting.default if setting.name in _READ else typed
    if setting.name in _READ:
        return _READ[setting.name](typed)
    return parse_value(setting, typed) if isinstance(typed, str) else typed


def parse_value(setting: Setting, text: str) -> Any:
    """Return a number, or a word that may take its place.

    >>> fdr = settings_of(Plan)["fdr"]
    >>> parse_value(fdr, "0.01"), parse_value(fdr, "none")
    (0.01, None)
    """
    word = text.strip().lower()
    if word in setting.words:
        return word
    if word == "none" and setting.optional:
        return None
    try:
        return float(word) if float in setting.kinds else int(word)
    except ValueError:
        expected = f"must be {setting.expected}, found {text!r}"
        raise SettingError(setting.name, expected) from None


def parse_names(texts: Sequence[str]) -> list[str]:
    """Return names separated by commas, a name with a comma in it being quoted.

    >>> parse_names(["age,sex", '"last, first"'])
    ['age', 'sex', 'last, first']
    """
    names = [name for row in csv.reader(texts, skipinitialspace=True) for name in row]
    if "" in names or not all(text.strip() for text in texts):
        raise DataError(f"an empty name stands in {', '.join(map(repr, texts))}")
    return names


def parse_bins(texts: Sequence[str]) -> int | dict[str, int]:
    """Return a number of bins for all columns, or numbers by name.

    >>> parse_bins(["5"]), parse_bins(["age=4", "income=6"])
    (5, {'age': 4, 'income': 6})
    """
    if len(texts) == 1 and texts[0].strip().isdecimal():
        return int(texts[0])
    found = {}
    for text in texts:
        name, _, count = text.rpartition("=")
        if not name or not count.strip().isdecimal():
            raise DataError(
                f"--bins {text!r} is neither a number of bins for all columns (given once) nor "
                "NAME=NUMBER"
            )
        found[name] = int(count)
    return found


def _tab(text: str) -> str:
    """Return the tab for the texts that shells pass for it."""
    return "\t" if text in ("\\t", "tab") else text


def _folder(text: str) -> str:
    return str(Path(text).absolute())


_READ: dict[str, Callable[[Any], Any]] = {
    "columns": parse_names,
    "drop": parse_names,
    "bins": parse_bins,
    "nominal": parse_names,
    "ordinal": parse_names,
    "count": parse_names,
    "numeric": parse_names,
    "order": list,
    "rules": list,
    "missing_values": list,
    "delimiter": _tab,
    "encoding": str,
    "max_memory": str,
    "cache_size": str,
    "cache_dir": _folder,
}
_LISTS = (
    *("columns", "drop", "bins", "missing_values"),
    *("nominal", "ordinal", "count", "numeric", "order", "rules"),
)
