"""Arguments and options that several commands have, and the words that they take.

Options that are settings of learning or of reading tables are not written here: they are derived,
see :mod:`edgegraft.cli.declared_options`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

UaiTask = Literal["PR", "MAR", "MAP"]
Completion = Literal["map", "draw"]
GraphName = Literal["scale-free", "chain", "star", "grid", "random", "regular"]


def check_jobs(jobs: int | None) -> int | None:
    """Refuse a number of threads that is neither -1 nor positive."""
    if jobs is not None and jobs < 1 and jobs != -1:
        raise typer.BadParameter(f"{jobs} is neither -1, for all cores, nor at least 1")
    return jobs


_FILE = "CSV or TSV (also .gz, .bz2, .zst), Parquet, Feather, Arrow, .xlsx or .sav file"
ModelFile = Annotated[
    Path,
    typer.Argument(metavar="MODEL", help="A model file, as `edgegraft learn` writes."),
]
DataFile = Annotated[
    Path,
    typer.Argument(metavar="DATA", help=f"{_FILE}."),
]
DataFiles = Annotated[
    Path,
    typer.Argument(
        metavar="DATA",
        help=f"{_FILE}; or several as one table: a folder of them, or a pattern in quotes, such as "
        "'rows/*.csv'.",
    ),
]
Weights = Annotated[
    str | None,
    typer.Option(
        "--weights",
        help="A column of row weights, left out of the model: a row of weight 2 is two rows.",
        show_default=False,
    ),
]
Strata = Annotated[
    str | None,
    typer.Option(
        "--strata",
        help="A column of strata of the sample, left out of the model.",
        show_default=False,
    ),
]
Clusters = Annotated[
    str | None,
    typer.Option(
        "--clusters",
        help="A column of clusters of rows that were drawn together, left out of the model.",
        show_default=False,
    ),
]
Force = Annotated[bool, typer.Option("--force", help="Replace existing output files.")]
AsJson = Annotated[bool, typer.Option("--json", help="Write the result to stdout as JSON.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show errors only.")]
Jobs = Annotated[
    int,
    typer.Option(
        "--jobs",
        "-j",
        callback=check_jobs,
        help="Threads; -1 for all cores. Results do not depend on it.",
    ),
]
OtherJobs = Annotated[
    int | None,
    typer.Option(
        "--jobs",
        "-j",
        callback=check_jobs,
        help="Another number of threads; -1 for all cores. Results do not depend on it.",
    ),
]
Seed = Annotated[int, typer.Option("--seed", min=0, help="The same seed gives the same result.")]
Top = Annotated[int, typer.Option("--top", min=0, help="Edges to show.")]
Without = Annotated[
    list[str] | None,
    typer.Option(
        "--without",
        help="A category that does not count towards strengths, such as a gap; repeat.",
        show_default=False,
    ),
]
Corrected = Annotated[
    Literal["apc"] | None,
    typer.Option(
        "--correction",
        help="Subtract from strengths what those of their variables explain (average product).",
        show_default=False,
    ),
]
Engine = Annotated[
    Literal["auto", "exact", "bp", "trw", "gibbs"], typer.Option("--engine", help="How to infer.")
]
Given = Annotated[
    list[str] | None,
    typer.Option("--given", "-g", help="Evidence, as NAME=CATEGORY; repeat.", show_default=False),
]
