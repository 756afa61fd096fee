"""Commands that put a table beside a model: ``impute`` and ``score``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from edgegraft.cli.console import give, refuse_overwriting, reported, require_files, say, warned
from edgegraft.cli.options import (
    AsJson,
    Data,
    Delimiter,
    Encoding,
    Force,
    Header,
    Missing,
    Model,
    OfUnseen,
    Quiet,
    Seed,
    Weights,
)
from edgegraft.cli.tasks import Completion, Unseen


def impute(
    model: Model,
    data: Data,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="A .csv or .tsv file (also .gz); stdout as CSV by default."
        ),
    ] = None,
    method: Annotated[
        Completion, typer.Option(help="The likeliest completion of a row, or a random draw.")
    ] = Completion.MAP,
    seed: Seed = 0,
    missing: Missing = None,
    unseen: OfUnseen = Unseen.ERROR,
    delimiter: Delimiter = None,
    header: Header = True,
    encoding: Encoding = "utf8",
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Fill the missing cells of a table; all other cells and columns stay as they are."""
    with reported(quiet) as console, warned(console):
        require_files(model, data)
        refuse_overwriting(output, force, (model, data))
        from edgegraft.cli.row_files import write_blocks
        from edgegraft.cli.table_questions import Reading, complete
        from edgegraft.model import load

        reading = Reading(data, tuple(missing or ()), unseen.value, delimiter, header, encoding)
        names, blocks, n_filled = complete(load(model), reading, method.value, seed)
        write_blocks(output, names, blocks)
        where = "" if output is None else f" The rows are in [bold]{escape(str(output))}[/]."
        say(
            console,
            f"{n_filled:,} missing {'cell was' if n_filled == 1 else 'cells were'} filled.{where}",
        )


def score(
    model: Model,
    data: Data,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="A .csv, .tsv or .parquet file for the rows' scores."),
    ] = None,
    missing: Missing = None,
    weights: Weights = None,
    unseen: OfUnseen = Unseen.ERROR,
    delimiter: Delimiter = None,
    header: Header = True,
    encoding: Encoding = "utf8",
    as_json: AsJson = False,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Say how well a model predicts each cell of a table from the rest of its row."""
    with reported(quiet) as console, warned(console):
        require_files(model, data)
        refuse_overwriting(output, force, (model, data))
        from edgegraft.cli.row_files import check_format
        from edgegraft.cli.table_questions import Reading, scores, show_scores, write_scores
        from edgegraft.model import load

        check_format(output)
        words = tuple(missing or ())
        reading = Reading(data, words, unseen.value, delimiter, header, encoding, weights)
        found = scores(load(model), reading)
        if output is not None:
            write_scores(output, found)
        give(found.summary()) if as_json else show_scores(console, found)
