"""The commands ``learn`` and ``resume``: from a file to a network."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from edgegraft.cli.console import (
    refuse_overwriting,
    reported,
    require_folder,
    require_table,
)
from edgegraft.cli.options import (
    AsJson,
    CacheDir,
    CacheSize,
    Delimiter,
    Encoding,
    Force,
    Header,
    Jobs,
    ManyFiles,
    MaxMemory,
    Missing,
    OtherJobs,
    Quiet,
    Seed,
    Top,
    Weights,
)
from edgegraft.cli.request import Request, parse_bins, parse_level, parse_names, parse_size
from edgegraft.cli.tasks import Loss, Strategy
from edgegraft.errors import DataError


def learn(
    context: typer.Context,
    data: ManyFiles,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The model file to write (.edgegraft).")
    ],
    report: Annotated[
        Path | None,
        typer.Option(help="A page about the network to write (.html).", show_default=False),
    ] = None,
    columns: Annotated[
        list[str] | None,
        typer.Option(help="Columns to use, separated by commas, or repeat.", show_default=False),
    ] = None,
    drop: Annotated[
        list[str] | None,
        typer.Option(help="Columns to leave out, likewise.", show_default=False),
    ] = None,
    bins: Annotated[
        list[str] | None,
        typer.Option(help="Bins of numeric columns: 5, or age=4; repeat.", show_default=False),
    ] = None,
    missing: Missing = None,
    weights: Weights = None,
    penalty: Annotated[
        str, typer.Option(help="Threshold of the test that a pair must pass, or 'auto'.")
    ] = "auto",
    ridge: Annotated[
        str, typer.Option(help="Weight of the squared parameters in the fits, or 'auto'.")
    ] = "auto",
    fdr: Annotated[
        str | None,
        typer.Option(
            help="Share of false edges allowed among those kept, or 'none' for no such cut.",
            show_default="0.005",
        ),
    ] = None,
    max_edges: Annotated[
        int | None, typer.Option(min=0, help="End the search at so many edges.")
    ] = None,
    max_time: Annotated[
        float | None, typer.Option(min=0.0, help="End the search after so many seconds.")
    ] = None,
    strategy: Annotated[
        Strategy, typer.Option(help="How the search chooses.")
    ] = Strategy.BEST_CHOICE,
    objective: Annotated[Loss, typer.Option(help="What is fitted.")] = Loss.PSEUDOLIKELIHOOD,
    bootstrap: Annotated[
        int,
        typer.Option(
            min=0,
            help="Replicates that say how sure the edges are: the share that has an edge, blank "
            "where half of the rows are too few to tell.",
        ),
    ] = 0,
    seed: Seed = 0,
    jobs: Jobs = -1,
    checkpoint: Annotated[
        Path | None,
        typer.Option(
            help="File to resume from, written as the search goes, with its options beside it "
            "(.json).",
            show_default=False,
        ),
    ] = None,
    delimiter: Delimiter = None,
    header: Header = True,
    encoding: Encoding = "utf8",
    max_memory: MaxMemory = None,
    cache_dir: CacheDir = None,
    cache_size: CacheSize = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be done, with memory and time.")
    ] = False,
    top: Top = 15,
    as_json: AsJson = False,
    quiet: Quiet = False,
    force: Force = False,
) -> None:
    """Learn the network of a table's columns.

    Ctrl-C ends the search early and writes the model of the edges found so far.
    """
    with reported(quiet) as console:
        _refuse_more(context.args)
        files = require_table(data)
        require_folder(cache_dir)
        request = Request(
            data=str(data.absolute()),
            output=str(output.absolute()),
            report=None if report is None else str(report.absolute()),
            columns=parse_names(columns),
            drop=parse_names(drop),
            bins=parse_bins(bins),
            missing=missing or [],
            delimiter=delimiter,
            header=header,
            encoding=encoding,
            weights=weights,
            penalty=parse_level("penalty", penalty, "auto"),
            ridge=parse_level("ridge", ridge, "auto"),
            fdr="default" if fdr is None else parse_level("fdr", fdr, "none"),
            max_edges=max_edges,
            max_time=max_time,
            strategy=strategy.value,
            objective=objective.value,
            bootstrap=bootstrap,
            seed=seed,
            jobs=jobs,
            max_memory=parse_size("max-memory", max_memory),
            cache_dir=None if cache_dir is None else str(cache_dir.absolute()),
            cache_size=parse_size("cache-size", cache_size),
        )
        if not dry_run:
            named = [output, report, checkpoint]
            named += [None if checkpoint is None else request.beside(checkpoint)]
            written = [path for path in named if path is not None]
            for k, path in enumerate(written):
                refuse_overwriting(path, force, (*files, *written[:k]))
        from edgegraft.cli.learning import Learning

        work = Learning(request, console, top, as_json)
        work.rehearse() if dry_run else work.learn(checkpoint)


def _refuse_more(more: list[str]) -> None:
    """Say what to do where a shell has put files in the place of a pattern."""
    if more:
        raise DataError(
            f"{len(more) + 1:,} names were given where one table is learned from: name the folder "
            "of its files, or put their pattern in quotes, such as 'rows/*.csv'"
        )


def resume(
    checkpoint: Annotated[Path, typer.Argument(help="What `learn --checkpoint` wrote.")],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="The model file; by default that of `learn`."),
    ] = None,
    data: Annotated[
        Path | None, typer.Option(help="The data, where they have moved; the rows must be the same")
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
    """Go on with a search that was interrupted or ran out of a budget.

    The data and all other options are those that the search was begun with.
    """
    with reported(quiet) as console:
        request = Request.read(checkpoint).moved(data, output)
        request = request.within(
            max_edges=max_edges,
            max_time=max_time,
            max_memory=parse_size("max-memory", max_memory),
            jobs=jobs,
        )
        files = require_table(Path(request.data))
        read = (*files, checkpoint, request.beside(checkpoint))
        refuse_overwriting(Path(request.output), force, read)
        refuse_overwriting(None if request.report is None else Path(request.report), force, read)
        from edgegraft.cli.learning import Learning

        Learning(request, console, top, as_json).resume(checkpoint)
