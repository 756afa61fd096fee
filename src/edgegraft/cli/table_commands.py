"""Commands that put a table beside a model: ``impute`` and ``score``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape

from edgegraft.cli.console import give, results, say, say_approximation, working
from edgegraft.cli.options import (
    AsJson,
    Completion,
    DataFile,
    Force,
    ModelFile,
    Quiet,
    Seed,
    Weights,
    flagged,
    settings_from,
    with_options,
)
from edgegraft.config import TableOptions

_UNDER_A_SCHEMA = ("missing_values", "unseen", "delimiter", "header", "encoding")
_OPTIONS = [setting for setting in flagged(TableOptions) if setting.name in _UNDER_A_SCHEMA]


@with_options(_OPTIONS)
def impute(
    model: ModelFile,
    data: DataFile,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="A .csv or .tsv file (also .gz); stdout as CSV by default."
        ),
    ] = None,
    method: Annotated[
        Completion, typer.Option(help="The likeliest completion of a row, or a random draw.")
    ] = "map",
    seed: Seed = 0,
    force: Force = False,
    quiet: Quiet = False,
    **options: Any,
) -> None:
    """Fill the missing cells of a table; all other cells and columns stay as they are."""
    with working(model, data, writes=[output], force=force, quiet=quiet) as console:
        from edgegraft.cli.table_answers import complete
        from edgegraft.ingest.options import ReadOptions
        from edgegraft.io.exports import write_blocks
        from edgegraft.model import load

        reading = ReadOptions(**settings_from(_OPTIONS, options))
        done = complete(load(model), data, reading, method, seed)
        write_blocks(output, done.names, done.blocks)
        where = "" if output is None else f" The rows are in [bold]{escape(str(output))}[/]."
        say(
            console,
            f"{done.n_filled:,} missing {'cell was' if done.n_filled == 1 else 'cells were'} "
            f"filled.{where}",
        )
        say_approximation(console, done.approximation)


@with_options(_OPTIONS)
def score(
    model: ModelFile,
    data: DataFile,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="A .csv, .tsv or .parquet file for the rows' scores."),
    ] = None,
    weights: Weights = None,
    as_json: AsJson = False,
    force: Force = False,
    quiet: Quiet = False,
    **options: Any,
) -> None:
    """Measure how well a model predicts each cell of a table from the rest of its row.

    Beside each figure stands that of a guess that knows only how common the answers are.
    """
    with working(model, data, writes=[output], force=force, quiet=quiet) as console:
        from edgegraft.cli.table_answers import scores, show_scores
        from edgegraft.ingest.options import ReadOptions
        from edgegraft.io.exports import check_format, write_columns
        from edgegraft.model import load

        check_format(output)
        reading = ReadOptions(**settings_from(_OPTIONS, options))
        found = scores(load(model), data, reading, weights)
        if output is not None:
            write_columns(output, {"log_pseudolikelihood": found.rows.tolist()})
        give(found.summary()) if as_json else show_scores(results(console), found)
