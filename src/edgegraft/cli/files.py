"""Commands that turn a model file into something else: ``info`` and ``export``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from edgegraft.cli.console import give, refuse_overwriting, reported, require_files, say
from edgegraft.cli.options import AsJson, Force, Model, Quiet, Top


def info(model: Model, top: Top = 15, as_json: AsJson = False) -> None:
    """Show what a model file holds, and how its model was learned."""
    with reported() as console:
        require_files(model)
        from edgegraft.cli.summary import describe, show
        from edgegraft.model.file import read_details

        found = describe(read_details(model), model)
        give(found) if as_json else show(console, found, top)


def export(
    model: Model,
    output: Annotated[
        Path, typer.Argument(help="A .csv, .parquet, .graphml, .gexf or .uai file to write.")
    ],
    file_format: Annotated[
        str | None,
        typer.Option("--format", help="csv, parquet, graphml, gexf or uai; else by the suffix."),
    ] = None,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Write a model's edges, network or potentials for other programs."""
    with reported(quiet) as console:
        require_files(model)
        refuse_overwriting(output, force, (model,))
        from edgegraft.io.exports import export as write
        from edgegraft.model import load, read_details

        write(load(model), output, file_format, read_details(model).edge_columns)
        say(console, f"The model is exported to [bold]{escape(str(output))}[/].")
