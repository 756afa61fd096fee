"""Commands that read or write rows: ``impute``, ``score``, ``simulate`` and ``demo``."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from edgegraft.cli.console import give, require_report, results, say, say_approximation, working
from edgegraft.cli.options import (
    AsJson,
    Completion,
    DataFile,
    Force,
    GraphName,
    Jobs,
    ModelFile,
    Quiet,
    Seed,
    Weights,
    default_of,
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
        from edgegraft.io.exports import check_format, write_rows
        from edgegraft.model import load

        check_format(output)
        reading = ReadOptions(**settings_from(_OPTIONS, options))
        columns, n_filled, approximation = complete(load(model), data, reading, method, seed)
        write_rows(output, columns)
        where = "" if output is None else f" The rows are in [bold]{escape(str(output))}[/]."
        say(
            console,
            f"{n_filled:,} missing {'cell was' if n_filled == 1 else 'cells were'} filled.{where}",
        )
        say_approximation(console, approximation)


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
        from edgegraft.io.exports import check_format, write_rows
        from edgegraft.model import load

        check_format(output)
        reading = ReadOptions(**settings_from(_OPTIONS, options))
        rows, found = scores(load(model), data, reading, weights)
        if output is not None:
            write_rows(output, {"log_pseudolikelihood": rows.tolist()})
        give(found) if as_json else show_scores(results(console), found)


if TYPE_CHECKING:
    from edgegraft.datasets import SyntheticData


def demo(
    folder: Annotated[
        Path, typer.Argument(help="Where survey.csv, and what is learned from it, are written.")
    ] = Path(),
    jobs: Jobs = -1,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Learn the network of a bundled survey; write its table, model, report and picture.

    The survey is made up, so that its true network is known.
    """
    folder.mkdir(parents=True, exist_ok=True)
    names = ("survey.csv", "survey.edgegraft", "survey.html", "survey.png")
    data, model, page, picture = (folder / name for name in names)
    with working(writes=[data, model, page, picture], force=force, quiet=quiet) as console:
        require_report()
        from edgegraft.cli.learn_commands import SETTINGS, Request
        from edgegraft.cli.learn_run import LearnRun
        from edgegraft.cli.model_commands import save_picture
        from edgegraft.core.atomic import replace_file
        from edgegraft.datasets.source import SURVEY_FILE
        from edgegraft.model import load
        from edgegraft.report import plot_network

        replace_file(data, SURVEY_FILE.read_text("utf-8"))
        request = Request(
            data=str(data.absolute()),
            output=str(model.absolute()),
            report=str(page.absolute()),
            weights="weight",
            settings={setting.name: default_of(setting) for setting in SETTINGS} | {"n_jobs": jobs},
        )
        LearnRun(request, console, top=15, as_json=False).run()
        save_picture(plot_network(load(model)), picture)
        say(console, f"The picture is in [bold]{escape(str(picture))}[/]. Now ask, for example:")
        say(console, f"  edgegraft query {quote(str(model))} --given stress=5 --of sleep")


def simulate(
    graph: Annotated[GraphName, typer.Argument(help="Which variables depend on each other.")],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Rows: .csv, .tsv (also .gz) or .parquet.")
    ],
    truth: Annotated[
        Path | None,
        typer.Option(help="Model file of the true model, to compare with.", show_default=False),
    ] = None,
    variables: Annotated[int, typer.Option(min=2, help="Number of variables.")] = 50,
    states: Annotated[int, typer.Option(min=2, help="States of each variable.")] = 3,
    rows: Annotated[int, typer.Option(min=1, help="Number of rows.")] = 10_000,
    degree: Annotated[
        int, typer.Option(min=1, help="Neighbours per variable (random: on average; regular).")
    ] = 4,
    strength: Annotated[
        float, typer.Option(min=0.0, help="Standard deviation of the entries of edge tables.")
    ] = 1.0,
    seed: Seed = 0,
    jobs: Jobs = -1,
    force: Force = False,
    quiet: Quiet = False,
) -> None:
    """Draw rows from a random model whose edges are known."""
    with working(writes=[output, truth], force=force, quiet=quiet) as console:
        from edgegraft.io.exports import check_format, write_rows

        check_format(output)
        options = {"edge_scale": strength, "random_state": seed, "n_jobs": jobs}
        data = _draw(graph, variables, states, rows, degree, **options)
        write_rows(output, data.schema.decode(data.X))
        if truth is not None:
            data.model.save(truth, details={"simulated": {"graph": graph, "seed": seed}})
        n_rows, n = data.X.shape
        say(console, f"{n_rows:,} rows of {n:,} variables are in [bold]{escape(str(output))}[/].")
        if truth is not None:
            say(
                console,
                f"The true model of {len(data.edges):,} edges is in [bold]{escape(str(truth))}[/].",
            )


def _draw(
    graph: GraphName, variables: int, states: int, rows: int, degree: int, **options: Any
) -> SyntheticData:
    """Return rows of a random model; a grid is as near to a square as `variables` allows."""
    from edgegraft import datasets

    side = next(k for k in range(math.isqrt(variables), 0, -1) if variables % k == 0)
    n_edges = min(round(variables * degree / 2), variables * (variables - 1) // 2)
    make: dict[GraphName, Callable[..., SyntheticData]] = {
        "scale-free": partial(datasets.make_scale_free, variables),
        "chain": partial(datasets.make_chain, variables),
        "star": partial(datasets.make_star, variables),
        "grid": partial(datasets.make_grid, side, variables // side),
        "random": partial(datasets.make_erdos_renyi, variables, n_edges=n_edges),
        "regular": partial(datasets.make_regular, variables, degree),
    }
    return make[graph](n_states=states, n_rows=rows, **options)
