"""Options of commands: those that several of them share, and those derived from declared settings.

:mod:`edgegraft.config` declares the settings of learning and of reading tables, with their types,
bounds, help and flags. A command that takes ``**options`` gets an option for each of them, and
:func:`settings_from` turns what was typed into values. A new setting with a flag needs no edit here
unless its text is read in a way of its own.
"""

from __future__ import annotations

import csv
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import typer

from edgegraft.config import Plan, Setting, TableOptions, settings_of
from edgegraft.config.declare import TABLE
from edgegraft.errors import DataError, SettingError

UaiTask = Literal["PR", "MAR", "MAP"]
Completion = Literal["map", "draw"]
GraphName = Literal["scale-free", "chain", "star", "grid", "random", "regular"]


MORE = "More options"  # heading of the options that only --help-all shows
ALL_OPTIONS = "edgegraft.help_all"  # whether a context shows them


def _show_all(ctx: typer.Context, wanted: bool) -> None:
    if wanted:
        ctx.meta[ALL_OPTIONS] = True
        typer.echo(ctx.get_help())
        raise typer.Exit


HelpAll = Annotated[
    bool,
    typer.Option(
        "--help-all",
        is_eager=True,
        expose_value=False,
        callback=_show_all,
        help="Show all options and exit.",
    ),
]
_FILE = "A CSV, TSV, Parquet, Feather, Arrow, .xlsx, .sav, .bed or .vcf file"
_ZIPPED = "Text may be compressed (.gz, .bz2, .zst)."
ModelFile = Annotated[
    Path, typer.Argument(metavar="MODEL", help="A model file, as `edgegraft learn` writes.")
]
DataFile = Annotated[Path, typer.Argument(metavar="DATA", help=f"{_FILE}. {_ZIPPED}")]
DataFiles = Annotated[
    Path,
    typer.Argument(
        metavar="DATA",
        help=f"{_FILE}, or several as one table: a folder, or a quoted pattern. {_ZIPPED}",
    ),
]
output = partial(typer.Option, "--output", "-o")
_optional = partial(typer.Option, show_default=False)
Weights = Annotated[
    str | None,
    _optional(
        "--weights",
        help="A column of row weights, left out of the model. A row of weight 2 is two rows.",
        rich_help_panel=TABLE,
    ),
]
Strata = Annotated[
    str | None,
    _optional(
        "--strata",
        help="A column of strata of the sample, left out of the model.",
        rich_help_panel=MORE,
    ),
]
Clusters = Annotated[
    str | None,
    _optional(
        "--clusters",
        help="A column of clusters of rows drawn together, left out of the model.",
        rich_help_panel=MORE,
    ),
]
Force = Annotated[bool, typer.Option("--force", help="Replace existing output files.")]
AsJson = Annotated[bool, typer.Option("--json", help="Write the result to stdout as JSON.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show errors only.")]
_jobs = partial(typer.Option, "--jobs", "-j")
Jobs = Annotated[int, _jobs(help="Threads; -1 for all cores. Results do not depend on it.")]
OtherJobs = Annotated[
    int | None,
    _jobs(help="A new number of threads; -1 for all cores. Results do not depend on it."),
]
Seed = Annotated[int, typer.Option("--seed", min=0, help="The same seed gives the same result.")]
Top = Annotated[int, typer.Option("--top", min=0, help="Edges to show.")]
Without = Annotated[
    list[str] | None,
    _optional("--without", help="A category that strengths leave out, such as a gap; repeat."),
]
Corrected = Annotated[
    Literal["apc"] | None,
    _optional(
        "--correction",
        help="Correct strengths for strong variables (apc, the average product correction).",
    ),
]
Engine = Annotated[
    Literal["auto", "exact", "bp", "trw", "gibbs"],
    typer.Option("--engine", help="The inference engine."),
]
Given = Annotated[
    list[str] | None,
    _optional("--given", "-g", help="Evidence, as NAME=CATEGORY or NAME=NUMBER; repeat."),
]

#: Settings of reading that apply to the cells of a file, and to a file under a schema.
OF_CELLS = ("missing_values", "delimiter", "header", "encoding")
UNDER_A_SCHEMA = (*OF_CELLS, "unseen")
_Command = TypeVar("_Command", bound=Callable[..., None])
_DEFAULTS = {"n_jobs": -1}  # defaults of the command line that Python does not have


@cache
def flagged(config: type) -> tuple[Setting, ...]:
    """Return the settings of a config that the command line offers."""
    return tuple(setting for setting in settings_of(config).values() if setting.flag)


def reading(names: Sequence[str] = (), *, but: Sequence[str] = ()) -> list[Setting]:
    """Return the settings of reading of these names, by default all, but for some."""
    found = flagged(TableOptions)
    return [each for each in found if each.name not in but and (not names or each.name in names)]


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
    """Return the name of a setting in model files: the name of its option."""
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
        kind = inspect.Parameter.KEYWORD_ONLY
        parameters.append(inspect.Parameter("help_all", kind, default=False, annotation=HelpAll))
        command.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
        command.__annotations__ = {own.name: own.annotation for own in parameters}
        return command

    return decorate


def _parameter(setting: Setting) -> inspect.Parameter:
    assert setting.flag is not None
    default, metavar = default_of(setting), None
    annotation: Any = str | None
    if setting.name in _LISTS:
        annotation, default = list[str] | None, None
        metavar = "<names>" if setting.name in _NAMES else "<text>"
    elif setting.kinds == (bool,):
        annotation = bool
    elif setting.words and not setting.kinds and not setting.plugins:
        annotation = Literal[setting.words]
    else:
        default = None if default is None else str(default)
        metavar = "<number>" if setting.kinds and setting.name not in _READ else "<text>"
    option = typer.Option(
        *setting.flag.split(),
        help=setting.help,
        show_default=default is not None,
        rich_help_panel=setting.group or MORE,
        metavar=metavar,
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
    value: Any = None if word == "none" and setting.optional else word
    if word not in (*setting.words, "none"):
        with suppress(ValueError):
            value = float(word) if float in setting.kinds else int(word)
    if not setting.allows(value):
        raise SettingError(setting.name, f"must be {setting.expected}, found {text!r}")
    return value


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


_NAMES = ("columns", "drop", "nominal", "ordinal", "count", "numeric")
_LISTS = (*_NAMES, "bins", "missing_values", "order", "rules")
_READ: dict[str, Callable[[Any], Any]] = {
    **dict.fromkeys(_NAMES, parse_names),
    **dict.fromkeys(("order", "rules", "missing_values"), list),
    **dict.fromkeys(("encoding", "max_memory", "cache_size"), str),
    "bins": parse_bins,
    "delimiter": lambda text: "\t" if text in ("\\t", "tab") else text,
    "cache_dir": lambda text: str(Path(text).absolute()),
}
