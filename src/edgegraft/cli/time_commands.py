"""The command that prepares rows over time: ``lag``."""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from typing import Annotated, Any

import typer
from rich.markup import escape

from edgegraft.cli.console import say, working
from edgegraft.cli.options import DataFile, Force, Quiet, flagged, settings_from, with_options
from edgegraft.config import TableOptions

_TEXT = ("missing_values", "delimiter", "header", "encoding")
_CELLS = [setting for setting in flagged(TableOptions) if setting.name in _TEXT]


@with_options(_CELLS)
def lag(
    data: DataFile,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="A .csv, .tsv or .parquet file for the rows.")
    ],
    subject: Annotated[
        str | None, typer.Option(help="The column that names whose row it is.")
    ] = None,
    time: Annotated[
        str | None, typer.Option(help="The column to sort the rows of a subject by.")
    ] = None,
    lags: Annotated[int, typer.Option(min=1, help="How many rows back.")] = 1,
    at: Annotated[
        float | None, typer.Option(help="A moment around which rows count: a column of weights.")
    ] = None,
    bandwidth: Annotated[
        float | None, typer.Option(help="How far from that moment rows count, in units of time.")
    ] = None,
    quiet: Quiet = False,
    force: Force = False,
    **options: Any,
) -> None:
    """Write rows of a diary or a panel with the values of earlier rows beside their own."""
    with working(data, writes=[output], force=force, quiet=quiet) as console:
        from edgegraft.errors import SettingError
        from edgegraft.io.exports import check_format, write_rows
        from edgegraft.study import kernel_weights, lagged

        check_format(output)
        if (at is None) != (bandwidth is None) or (at is not None and time is None):
            raise SettingError("at", "needs a bandwidth and a column of time, and they need it")
        found = lagged(data, lags, subject=subject, time=time, **settings_from(_CELLS, options))
        columns = dict(found.columns)
        learn = ["edgegraft", "learn", str(output), "-o", "network.edgegraft"]
        if subject is not None and found.clusters is not None:
            columns[subject] = found.clusters.tolist()
            learn += ["--clusters", subject]
        if found.times is not None and at is not None and bandwidth is not None:
            columns["weight"] = kernel_weights(found.times, at, bandwidth).tolist()
            learn += ["--weights", "weight"]
        write_rows(output, columns)
        learn += [word for rule in found.rules for word in ("--rule", rule)]
        say(console, f"Written: [bold]{escape(str(output))}[/]. To learn from it:")
        say(console, escape(" ".join(map(quote, learn))))
