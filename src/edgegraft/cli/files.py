"""Commands that turn a model file into something else: ``info``, ``export`` and ``plot``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.markup import escape

from edgegraft.cli.console import (
    give,
    refuse_overwriting,
    reported,
    require_files,
    say,
    warned,
)
from edgegraft.cli.options import (
    AsJson,
    Corrected,
    Force,
    Given,
    Model,
    Quiet,
    Seed,
    Top,
    Without,
)
from edgegraft.cli.tasks import Correction

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def info(
    model: Model,
    top: Top = 15,
    without: Without = None,
    correction: Corrected = None,
    as_json: AsJson = False,
) -> None:
    """Show what a model file holds, and how its model was learned."""
    with reported() as console:
        require_files(model)
        from edgegraft.cli.summary import describe, show
        from edgegraft.model.file import read_details

        strengths = None if not (without or correction) else _strengths(model, without, correction)
        found = describe(read_details(model), model, strengths)
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
    without: Without = None,
    correction: Corrected = None,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Write a model's edges, network or potentials for other programs."""
    with reported(quiet) as console:
        require_files(model)
        refuse_overwriting(output, force, (model,))
        from edgegraft.io.exports import export as write
        from edgegraft.model import load, read_details

        columns = dict(read_details(model).edge_columns)
        if without or correction:
            columns["strength"] = _strengths(model, without, correction)
        write(load(model), output, file_format, columns)
        say(console, f"The model is exported to [bold]{escape(str(output))}[/].")


def _strengths(
    path: Path, without: list[str] | None, correction: Correction | None
) -> NDArray[np.float64]:
    """Work strengths out anew from a model's tables."""
    from edgegraft.cli.evidence import parse_categories
    from edgegraft.model import load

    model = load(path)
    left_out = parse_categories(model.schema, without or [], "--without")
    return model.edge_strengths(without=left_out, correction="apc" if correction else None)


def plot(
    model: Model,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The picture: .png, .svg or .pdf.")
    ],
    around: Annotated[
        str | None, typer.Option(help="Only a variable, its neighbours and the edges among them.")
    ] = None,
    strongest: Annotated[
        int | None, typer.Option("--top", min=1, help="Only the strongest so many edges.")
    ] = None,
    min_strength: Annotated[
        float | None, typer.Option(min=0.0, help="Only edges at least so strong.")
    ] = None,
    edge: Annotated[
        tuple[str, str] | None,
        typer.Option(help="Not the network: the table of one edge, by its two variables."),
    ] = None,
    of: Annotated[
        list[str] | None,
        typer.Option("--of", help="Not the network: probabilities of variables, by commas."),
    ] = None,
    given: Given = None,
    dpi: Annotated[int, typer.Option(min=20, max=1200, help="Dots an inch of a .png.")] = 200,
    seed: Seed = 0,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Draw the network of a model, the table of an edge, or probabilities given evidence."""
    with reported(quiet) as console, warned(console):
        require_files(model)
        refuse_overwriting(output, force, (model,))
        from edgegraft.cli.pictures import Picture, draw, write_picture
        from edgegraft.model import load

        picture = Picture(around, strongest, min_strength, edge, of or [], given or [], seed)
        picture.check(output)
        write_picture(draw(load(model), picture), output, dpi)
        say(console, f"The picture is in [bold]{escape(str(output))}[/].")
