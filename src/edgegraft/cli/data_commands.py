"""Commands that read or write rows: ``impute``, ``score``, ``lag``, ``simulate``, ``demo``."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.markup import escape

from edgegraft import plugins
from edgegraft.cli import options as opt
from edgegraft.cli.console import give, results, say, say_approximation, wrote
from edgegraft.cli.files import working
from edgegraft.errors import counted

if TYPE_CHECKING:
    from edgegraft.datasets import SyntheticData

_OPTIONS = opt.reading(opt.UNDER_A_SCHEMA)
_CELLS = opt.reading(opt.OF_CELLS)


@opt.with_options(_OPTIONS)
def impute(
    model: opt.ModelFile,
    data: opt.DataFile,
    output: Annotated[
        Path | None, opt.output(help="A .csv or .tsv file (also .gz); stdout as CSV by default.")
    ] = None,
    method: Annotated[
        opt.Completion,
        typer.Option(help="The most probable completion of a row, or a random draw."),
    ] = "map",
    seed: opt.Seed = 0,
    force: opt.Force = False,
    quiet: opt.Quiet = False,
    **options: Any,
) -> None:
    """Fill the missing cells of a table.

    All other cells and columns stay as they are.
    """
    with working(model, data, rows=output, force=force, quiet=quiet) as console:
        from edgegraft.cli.answers import complete
        from edgegraft.ingest.options import ReadOptions
        from edgegraft.ingest.output import write_rows
        from edgegraft.model import load

        reading = ReadOptions(**opt.settings_from(_OPTIONS, options))
        columns, n_filled, approximation = complete(load(model), data, reading, method, seed)
        write_rows(output, columns)
        say(console, f"{counted(n_filled, 'missing cell')} filled.")
        if output is not None:
            wrote(console, "The table", output)
        say_approximation(console, approximation)


@opt.with_options(_OPTIONS)
def score(
    model: opt.ModelFile,
    data: opt.DataFile,
    output: Annotated[
        Path | None, opt.output(help="A .csv, .tsv or .parquet file for the rows' scores.")
    ] = None,
    weights: opt.Weights = None,
    as_json: opt.AsJson = False,
    force: opt.Force = False,
    quiet: opt.Quiet = False,
    **options: Any,
) -> None:
    """Measure how well a model predicts the cells of a table.

    Each cell is predicted from the rest of its row. Each figure is compared with a guess that
    knows only how common the answers are.
    """
    with working(model, data, rows=output, force=force, quiet=quiet) as console:
        from edgegraft.cli.answers import scores, show_scores
        from edgegraft.ingest.options import ReadOptions
        from edgegraft.ingest.output import write_rows
        from edgegraft.model import load

        reading = ReadOptions(**opt.settings_from(_OPTIONS, options))
        rows, found = scores(load(model), data, reading, weights)
        if output is not None:
            write_rows(output, {"log_pseudolikelihood": rows.tolist()})
        give(found) if as_json else show_scores(results(console), found)


@opt.with_options(_CELLS)
def lag(
    data: opt.DataFile,
    output: Annotated[Path, opt.output(help="A .csv, .tsv or .parquet file for the rows.")],
    subject: Annotated[
        str | None, typer.Option(help="A column that names the subject of a row.")
    ] = None,
    time: Annotated[
        str | None, typer.Option(help="A column to sort the rows of a subject by.")
    ] = None,
    lags: Annotated[int, typer.Option(min=1, help="Number of earlier rows.")] = 1,
    at: Annotated[
        float | None,
        typer.Option(
            help="A moment in time; a column of weights is written, largest for rows near it."
        ),
    ] = None,
    bandwidth: Annotated[
        float | None, typer.Option(help="Width of these weights, in units of time.")
    ] = None,
    quiet: opt.Quiet = False,
    force: opt.Force = False,
    **options: Any,
) -> None:
    """Add earlier rows of a diary or a panel as columns."""
    with working(data, rows=output, force=force, quiet=quiet) as console:
        from edgegraft.errors import SettingError
        from edgegraft.ingest.output import write_rows
        from edgegraft.study import kernel_weights, lagged

        if (at is None) != (bandwidth is None) or (at is not None and time is None):
            raise SettingError("at", "needs a bandwidth and a column of time, and they need it")
        found = lagged(data, lags, subject=subject, time=time, **opt.settings_from(_CELLS, options))
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
        wrote(console, "The table", output, "; to learn from it")
        say(console, escape(" ".join(map(quote, learn))))


def demo(
    folder: Annotated[
        Path, typer.Argument(help="Where survey.csv, and what is learned from it, are written.")
    ] = Path(),
    jobs: opt.Jobs = -1,
    force: opt.Force = False,
    quiet: opt.Quiet = False,
) -> None:
    """Learn the network of a bundled survey.

    Its table, model, report and picture are written. The survey is simulated, so that its true
    network is known.
    """
    folder.mkdir(parents=True, exist_ok=True)
    names = ("survey.csv", "survey.edgegraft", "survey.html", "survey.png")
    data, model, page, picture = (folder / name for name in names)
    writes: dict[str, Any] = {"writes": [data, model], "page": page, "picture": picture}
    with working(**writes, force=force, quiet=quiet) as console:
        from edgegraft.cli.learn_commands import SETTINGS, Request
        from edgegraft.cli.learn_run import LearnRun
        from edgegraft.cli.model_commands import save_picture
        from edgegraft.core.atomic import replace_file
        from edgegraft.datasets.source import SURVEY_FILE
        from edgegraft.model import load

        replace_file(data, SURVEY_FILE.read_text("utf-8"))
        request = Request(
            data=str(data.absolute()),
            output=str(model.absolute()),
            report=str(page.absolute()),
            weights="weight",
            settings={setting.name: opt.default_of(setting) for setting in SETTINGS}
            | {"n_jobs": jobs},
        )
        LearnRun(request, console, top=15, as_json=False).run()
        save_picture(plugins.find("pages", "network")(load(model)), picture)
        wrote(console, "The picture", picture)
        say(console, "Now ask, for example:")
        say(console, f"  edgegraft query {quote(str(model))} --given stress=5 --of sleep")


def simulate(
    graph: Annotated[opt.GraphName, typer.Argument(help="Which variables depend on each other.")],
    output: Annotated[Path, opt.output(help="Rows: .csv, .tsv (also .gz) or .parquet.")],
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
    seed: opt.Seed = 0,
    jobs: opt.Jobs = -1,
    force: opt.Force = False,
    quiet: opt.Quiet = False,
) -> None:
    """Draw rows from a random model whose edges are known."""
    with working(writes=[truth], rows=output, force=force, quiet=quiet) as console:
        from edgegraft.ingest.output import write_rows

        options = {"edge_scale": strength, "random_state": seed, "n_jobs": jobs}
        data = _draw(graph, variables, states, rows, degree, **options)
        write_rows(output, data.schema.decode(data.X))
        if truth is not None:
            data.model.save(truth, details={"simulated": {"graph": graph, "seed": seed}})
        n_rows, n = data.X.shape
        wrote(console, f"The table of {n_rows:,} rows and {n:,} variables", output)
        if truth is not None:
            wrote(console, f"The true model of {len(data.edges):,} edges", truth)


def _draw(
    graph: opt.GraphName, variables: int, states: int, rows: int, degree: int, **options: Any
) -> SyntheticData:
    """Return rows of a random model; a grid is as square as `variables` allows."""
    from edgegraft import datasets

    side = next(k for k in range(math.isqrt(variables), 0, -1) if variables % k == 0)
    n_edges = min(round(variables * degree / 2), variables * (variables - 1) // 2)
    make: dict[opt.GraphName, Callable[..., SyntheticData]] = {
        "scale-free": partial(datasets.make_scale_free, variables),
        "chain": partial(datasets.make_chain, variables),
        "star": partial(datasets.make_star, variables),
        "grid": partial(datasets.make_grid, side, variables // side),
        "random": partial(datasets.make_erdos_renyi, variables, n_edges=n_edges),
        "regular": partial(datasets.make_regular, variables, degree),
    }
    return make[graph](n_states=states, n_rows=rows, **options)
