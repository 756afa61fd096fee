"""The commands ``learn`` and ``resume``: from a file to a network."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from edgegraft.cli.console import (
    refuse_overwriting,
    reported,
    require_folder,
    require_report,
    require_table,
)
from edgegraft.cli.learn_request import LEARNING, READING, Request
from edgegraft.cli.options import (
    AsJson,
    Clusters,
    DataFiles,
    Force,
    OtherJobs,
    Quiet,
    Strata,
    Top,
    Weights,
    settings_from,
    with_options,
)
from edgegraft.errors import DataError


@with_options((*READING, *LEARNING))
def learn(
    context: typer.Context,
    data: DataFiles,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The model file to write (.edgegraft).")
    ],
    report: Annotated[
        Path | None,
        typer.Option(help="A page about the network to write (.html).", show_default=False),
    ] = None,
    weights: Weights = None,
    strata: Strata = None,
    clusters: Clusters = None,
    bootstrap: Annotated[
        int,
        typer.Option(
            min=0,
            help="Bootstrap replicates; the table then shows the share of them that has each "
            "edge: how often another sample of as many rows would.",
        ),
    ] = 0,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            help="File to resume from, written as the search goes, with its options beside it "
            "(.json).",
            show_default=False,
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Report memory and time that learning would take.")
    ] = False,
    top: Top = 15,
    as_json: AsJson = False,
    quiet: Quiet = False,
    force: Force = False,
    **options: Any,
) -> None:
    """Learn the network of a table's columns.

    Ctrl-C ends the search early and writes the model of the edges found so far.
    """
    with reported(quiet) as console:
        if context.args:  # a shell has replaced a pattern by files
            raise DataError(
                f"{len(context.args) + 1:,} names were given where one table is learned from: name "
                "the folder of its files, or put their pattern in quotes, such as 'rows/*.csv'"
            )
        files = require_table(data)
        request = Request(
            data=str(data.absolute()),
            output=str(output.absolute()),
            report=None if report is None else str(report.absolute()),
            weights=weights,
            strata=strata,
            clusters=clusters,
            bootstrap=bootstrap,
            reading=settings_from(READING, options),
            learning=settings_from(LEARNING, options),
        )
        if request.reading["cache_dir"] is not None:
            require_folder(Path(request.reading["cache_dir"]))
        request.check()
        if report is not None:
            require_report()
        if dry_run:
            from edgegraft.cli.learn_run import show_dry_run

            show_dry_run(request, console, as_json)
            return
        named = [output, report, checkpoint]
        named += [None if checkpoint is None else request.beside(checkpoint)]
        written = [path for path in named if path is not None]
        for k, path in enumerate(written):
            refuse_overwriting(path, force, (*files, *written[:k]))
        from edgegraft.cli.learn_run import LearnRun

        LearnRun(request, console, top, as_json, checkpoint).run()


def resume(
    checkpoint: Annotated[Path, typer.Argument(help="What `learn --checkpoint` wrote.")],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="The model file; by default that of `learn`."),
    ] = None,
    data: Annotated[
        Path | None, typer.Option(help="The data, if they have moved; the rows must be the same.")
    ] = None,
    max_edges: Annotated[
        int | None, typer.Option(min=0, help="Another budget of edges; those found count.")
    ] = None,
    max_time: Annotated[
        float | None,
        typer.Option(min=0.0, help="Another budget of seconds; those before count."),
    ] = None,
    max_memory: Annotated[
        str | None, typer.Option(help="Another limit of memory, such as '2 GiB'.")
    ] = None,
    jobs: OtherJobs = None,
    top: Top = 15,
    as_json: AsJson = False,
    quiet: Quiet = False,
    force: Force = False,
) -> None:
    """Resume a search that was interrupted or ran out of a budget.

    The data and all other options are those that the search was begun with.
    """
    with reported(quiet) as console:
        request = Request.read(checkpoint).changed(
            data=data,
            output=output,
            max_memory=max_memory,
            max_edges=max_edges,
            max_time=max_time,
            n_jobs=jobs,
        )
        files = require_table(Path(request.data))
        read = (*files, checkpoint, request.beside(checkpoint))
        refuse_overwriting(Path(request.output), force, read)
        if request.report is not None:
            require_report()
            refuse_overwriting(Path(request.report), force, read)
        from edgegraft.cli.learn_run import LearnRun

        LearnRun(request, console, top, as_json, checkpoint).run(resumed=True)
