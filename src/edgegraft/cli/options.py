"""Options that several commands have."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from edgegraft.cli.tasks import Correction, EngineName, Unseen


def _check_jobs(jobs: int | None) -> int | None:
    if jobs is not None and jobs < 1 and jobs != -1:
        raise typer.BadParameter(f"{jobs} is neither -1, for all cores, nor at least 1")
    return jobs


def _read_delimiter(text: str | None) -> str | None:
    """Return the tab for what shells pass on of it."""
    return "\t" if text in ("\\t", "tab") else text


Model = Annotated[Path, typer.Argument(help="A model file, as `edgegraft learn` writes.")]
Data = Annotated[Path, typer.Argument(help="CSV, TSV (also .gz), Parquet, Feather or Arrow file.")]
ManyFiles = Annotated[
    Path,
    typer.Argument(
        help="CSV, TSV (also .gz), Parquet, Feather or Arrow file; or several as one table: a "
        "folder of them, or a pattern in quotes, such as 'rows/*.csv'."
    ),
]
MaxMemory = Annotated[
    str | None,
    typer.Option(
        "--max-memory",
        help="Memory that the run may take, such as '2 GiB'. Rows that do not fit are kept on "
        "disk as bit planes: the search begins on a sample, which also tests the edges, and ends "
        "over all rows. The sample gets what the threads (--jobs) leave.",
        show_default="half of the machine's, for files above an eighth of it",
    ),
]
CacheDir = Annotated[
    Path | None,
    typer.Option(
        "--cache-dir",
        help="Folder of the bit planes, which are found again while the files are the same.",
        show_default="$EDGEGRAFT_CACHE, or the user's cache",
    ),
]
CacheSize = Annotated[
    str | None,
    typer.Option(
        "--cache-size",
        help="Room that all bit planes in the folder may take; the oldest make way.",
        show_default="32 GiB",
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
        callback=_check_jobs,
        help="Threads; -1 for all cores. Results do not depend on it",
    ),
]
OtherJobs = Annotated[
    int | None,
    typer.Option(
        "--jobs",
        "-j",
        callback=_check_jobs,
        help="Threads, if others than before; -1 for all cores. Results do not depend on it",
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
    Correction | None,
    typer.Option(
        "--correction",
        help="Take from strengths what those of their variables explain (average product).",
        show_default=False,
    ),
]
Engine = Annotated[EngineName, typer.Option("--engine", help="How to infer.")]
Given = Annotated[
    list[str] | None,
    typer.Option("--given", "-g", help="Evidence, as NAME=CATEGORY; repeat.", show_default=False),
]
Missing = Annotated[
    list[str] | None,
    typer.Option("--missing", help="A cell that means missing; repeat.", show_default=False),
]
Delimiter = Annotated[
    str | None,
    typer.Option(
        "--delimiter",
        callback=_read_delimiter,
        help="What separates the columns of a text file, such as ; or tab.",
        show_default=False,
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
Header = Annotated[
    bool, typer.Option("--header/--no-header", help="Whether a text file's first row has names.")
]
Encoding = Annotated[str, typer.Option("--encoding", help="Of text files.")]
OfUnseen = Annotated[
    Unseen, typer.Option("--unseen", help="What a category is that the model does not know.")
]
