"""Commands that answer questions about networks: ``compare``, ``read`` and ``plan``."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from edgegraft.cli import options as opt
from edgegraft.cli.console import give, results
from edgegraft.cli.files import require_report, working

_CELLS = opt.reading(opt.UNDER_A_SCHEMA)
_READING = opt.reading(but=["max_memory", "cache_dir", "cache_size", "unseen"])  # rows in memory
_Output = Annotated[Path | None, opt.output(help="A table to write (.csv, .tsv or .parquet).")]
_what_to_write = typer.Option("--table", help="Which table --output writes.")
_ComparedTable = Literal["edges", "variables"]
_ReadTable = Literal["variables", "edges", "absent", "stability", "differences"]
_PlanTable = Literal["edges", "curve"]
_Kind = Literal["centrality", "edges", "stability", "adjacency", "network", "differences"]
_Report = Annotated[Path | None, typer.Option(help="A page with the answers to write (.html).")]
_Picture = Annotated[
    Path | None, typer.Option("--plot", help="A picture to write: .png, .svg or .pdf.")
]
_Clusters = Annotated[
    str | None,
    typer.Option(
        "--clusters", "--cluster", help="A column that names the person or school of a row."
    ),
]


@opt.with_options(_READING)
def compare(
    data: opt.DataFiles,
    by: Annotated[str, typer.Option("--by", help="The column that names the group of a row.")],
    output: _Output = None,
    table: Annotated[_ComparedTable, _what_to_write] = "edges",
    report: _Report = None,
    picture: _Picture = None,
    clusters: _Clusters = None,
    weights: opt.Weights = None,
    level: Annotated[
        float, typer.Option("--fdr", help="Share of false edges allowed among those that differ.")
    ] = 0.05,
    permutations: Annotated[
        int, typer.Option(min=0, help="Random assignments of rows to groups.")
    ] = 1000,
    top: opt.Top = 15,
    seed: opt.Seed = 0,
    jobs: opt.Jobs = -1,
    as_json: opt.AsJson = False,
    quiet: opt.Quiet = False,
    force: opt.Force = False,
    **options: Any,
) -> None:
    """Compare the networks of groups of rows.

    Edge by edge, by variable, and as a whole.
    """
    written: dict[str, Any] = {"rows": output, "page": report, "picture": picture}
    with working(table=data, **written, force=force, quiet=quiet) as console:
        from edgegraft.cli.answers import show_comparison, write_answer, write_compared_page
        from edgegraft.report import plot_comparison
        from edgegraft.study import compare as compare_groups

        reading = opt.settings_from(_READING, options)
        found = compare_groups(
            data,
            by,
            clusters=clusters,
            fdr=level,
            n_permutations=permutations,
            sample_weight=_weights(data, weights, reading),
            n_jobs=jobs,
            random_state=seed,
            **reading | {"drop": [*(reading["drop"] or ()), *([weights] if weights else ())]},
        )
        give(found.summary()) if as_json else show_comparison(results(console), found, top)
        write_answer(
            console,
            (output, found.edges if table == "edges" else found.variables),
            (picture, lambda: plot_comparison(found)[0]),
            (report, partial(write_compared_page, found, data.name)),
        )


def _weights(data: Path, column: str | None, reading: dict[str, Any]) -> Any:
    """Return the weights of the rows of a file; None without a column of them."""
    from edgegraft.ingest.options import ReadOptions
    from edgegraft.ingest.rows import read_weights

    return None if column is None else read_weights(data, column, ReadOptions(**reading))


@opt.with_options(_CELLS)
def read(
    model: opt.ModelFile,
    data: opt.DataFile,
    held_out: Annotated[
        Path | None, typer.Option(help="Rows that the fit has not seen, to predict them.")
    ] = None,
    output: _Output = None,
    table: Annotated[_ReadTable, _what_to_write] = "variables",
    report: _Report = None,
    picture: _Picture = None,
    kind: Annotated[
        _Kind,
        typer.Option(
            help="What the picture shows. Centrality or effects of edges with intervals, stability "
            "if rows are dropped, effects as a heat map, the network with rings of what is "
            "explained, or which edges differ from which."
        ),
    ] = "centrality",
    clusters: _Clusters = None,
    weights: opt.Weights = None,
    resolutions: Annotated[
        list[float] | None,
        typer.Option(
            "--resolution",
            "--resolutions",
            help="Resolution of the communities; repeat. 0.5, 1 and 2 by default.",
        ),
    ] = None,
    top: opt.Top = 15,
    seed: opt.Seed = 0,
    jobs: opt.Jobs = -1,
    as_json: opt.AsJson = False,
    quiet: opt.Quiet = False,
    force: opt.Force = False,
    **options: Any,
) -> None:
    """Read a network: centrality, communities, stability and more.

    Also how well its variables are predicted, and which effects the rows exclude.

    DATA are the rows that the model was learned from.
    """
    written: dict[str, Any] = {"rows": output, "page": report, "picture": picture}
    with working(model, data, held_out, **written, force=force, quiet=quiet) as console:
        require_report()
        from edgegraft.cli.answers import show_reading, write_answer, write_read_page
        from edgegraft.report import answer_plots
        from edgegraft.study import read_network

        reading = opt.settings_from(_CELLS, options)
        found = read_network(
            model,
            data,
            clusters=clusters,
            held_out=held_out,
            resolutions=resolutions or (0.5, 1.0, 2.0),
            sample_weight=_weights(data, weights, reading),
            n_jobs=jobs,
            random_state=seed,
            **reading,
        )
        give(found.summary()) if as_json else show_reading(results(console), found, top)
        write_answer(
            console,
            (output, found.table(table)),
            (picture, partial(answer_plots.READING_PLOTS[kind][0], found)),
            (report, partial(write_read_page, found, model)),
        )


def plan(
    model: Annotated[
        Path | None,
        typer.Argument(
            help="A model file whose edges are to be found again, instead of assumptions."
        ),
    ] = None,
    power: Annotated[
        float, typer.Option(help="Share of the edges, or chance of one, to be found.")
    ] = 0.8,
    effect: Annotated[float, typer.Option(help="Correlation that an edge alone gives.")] = 0.1,
    columns: Annotated[int, typer.Option(min=2, help="Number of columns.")] = 20,
    edges: Annotated[
        int | None,
        typer.Option(
            "--edges", "--n-edges", min=1, help="Number of edges; as many as columns by default."
        ),
    ] = None,
    dof: Annotated[
        int, typer.Option(min=1, help="Degrees of freedom of a test; 1 if columns are ordered.")
    ] = 1,
    level: Annotated[
        float | None,
        typer.Option("--fdr", help="Share of false edges allowed; by default as in the fit."),
    ] = None,
    rows: Annotated[
        list[int] | None, typer.Option(help="Rows to show the power of; repeat.")
    ] = None,
    simulations: Annotated[
        int, typer.Option(min=0, help="Data sets to draw and learn from, per number of rows.")
    ] = 0,
    output: _Output = None,
    table: Annotated[_PlanTable, _what_to_write] = "edges",
    picture: _Picture = None,
    top: opt.Top = 15,
    seed: opt.Seed = 0,
    as_json: opt.AsJson = False,
    quiet: opt.Quiet = False,
    force: opt.Force = False,
) -> None:
    """Plan the rows of a study.

    That is the number of rows that finds an edge, or a share of the edges of a network.
    """
    with working(model, rows=output, picture=picture, force=force, quiet=quiet) as console:
        from edgegraft.cli.answers import show_plan, write_answer
        from edgegraft.report import plot_power
        from edgegraft.study import plan as plan_rows

        found = plan_rows(
            model,
            power=power,
            effect=effect,
            n_columns=columns,
            n_edges=edges,
            dof=dof,
            fdr=level,
            rows=rows or None,
            n_simulations=simulations,
            random_state=seed,
        )
        give(found.summary()) if as_json else show_plan(results(console), found, top)
        columns_of = found.edges if table == "edges" else found.curve
        write_answer(console, (output, columns_of), (picture, partial(plot_power, found)))
