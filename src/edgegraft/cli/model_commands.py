"""Commands that show or convert a model file, and the page that explores one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.markup import escape

from edgegraft.cli import options as opt
from edgegraft.cli.console import give, results, say, wrote
from edgegraft.cli.files import working
from edgegraft.errors import ModelError

if TYPE_CHECKING:
    from edgegraft.core.types import Floats


def info(
    model: opt.ModelFile,
    top: opt.Top = 15,
    without: opt.Without = None,
    correction: opt.Corrected = None,
    as_json: opt.AsJson = False,
) -> None:
    """Show a model file: its network, and how it was learned."""
    with working(model) as console:
        from edgegraft.cli.summary import describe_model, show_model, show_variables
        from edgegraft.model.file import read_details

        stored = read_details(model)
        columns = dict(stored.edge_columns)
        if without or correction or "strength" not in columns:
            columns["strength"] = _strengths(model, without, correction)
            columns.pop("weight", None)
        found = describe_model(stored, columns, model)
        if as_json:
            give(found)
            return
        show_model(results(console), found, top)
        show_variables(results(console), found)


def report(
    model: opt.ModelFile,
    output: Annotated[
        Path | None, opt.output(help="The page to write (.html); by default next to the model.")
    ] = None,
    force: opt.Force = False,
    quiet: opt.Quiet = False,
) -> None:
    """Write a page about a model.

    It shows the network, the tables of its edges, and how it was learned, in one file that works
    offline.
    """
    page = model.with_suffix(".html") if output is None else output
    with working(model, page=page, force=force, quiet=quiet) as console:
        from edgegraft.model import load, read_details
        from edgegraft.report import write_report

        stored = read_details(model)
        source = stored.details.get("source") or {}
        title = f"The network of {source.get('file', model.name)}"
        write_report(page, load(model), details=stored.details, title=title)
        wrote(console, "The report", page)


def export(
    model: opt.ModelFile,
    output: Annotated[
        Path, typer.Argument(help="A .csv, .parquet, .graphml, .gexf or .uai file to write.")
    ],
    file_format: Annotated[
        str | None,
        typer.Option("--format", help="csv, parquet, graphml, gexf or uai; else by the suffix."),
    ] = None,
    without: opt.Without = None,
    correction: opt.Corrected = None,
    force: opt.Force = False,
    quiet: opt.Quiet = False,
) -> None:
    """Write a model's edges, network or potentials for other programs."""
    with working(model, writes=[output], force=force, quiet=quiet) as console:
        from edgegraft.model import load
        from edgegraft.model.export import export as write

        columns = {}
        if without or correction:
            columns["strength"] = _strengths(model, without, correction)
        write(load(model), output, file_format, columns)
        wrote(console, "The export", output)


def _strengths(path: Path, without: list[str] | None, correction: Literal["apc"] | None) -> Floats:
    """Compute strengths anew from a model's tables."""
    from edgegraft.cli.typed_evidence import parse_categories
    from edgegraft.model import load

    model = load(path)
    left_out = parse_categories(model.schema, without or [], "--without")
    return model.edge_strengths(without=left_out, correction=correction)


def plot(
    model: opt.ModelFile,
    output: Annotated[Path, opt.output(help="The picture: .png, .svg or .pdf.")],
    around: Annotated[
        str | None, typer.Option(help="Only a variable, its neighbours and the edges among them.")
    ] = None,
    strongest: Annotated[
        int | None, typer.Option("--top", min=1, help="Only this many of the strongest edges.")
    ] = None,
    min_strength: Annotated[
        float | None, typer.Option(min=0.0, help="Only edges of at least this strength.")
    ] = None,
    edge: Annotated[
        tuple[str, str] | None,
        typer.Option(help="Instead of the network, the table of the edge of two variables."),
    ] = None,
    of: Annotated[
        list[str] | None,
        typer.Option(
            "--of", help="Instead of the network, probabilities of variables (by commas)."
        ),
    ] = None,
    given: opt.Given = None,
    dpi: Annotated[int, typer.Option(min=20, max=1200, help="Dots per inch of a .png.")] = 200,
    seed: opt.Seed = 0,
    force: opt.Force = False,
    quiet: opt.Quiet = False,
) -> None:
    """Draw a network, the table of an edge, or probabilities."""
    with working(model, picture=output, force=force, quiet=quiet) as console:
        network = {"around": around, "top": strongest, "min_strength": min_strength}
        if (set(network.values()) != {None}) + bool(edge) + bool(of or given) > 1:
            raise ModelError(
                "a picture is of the network (--around, --top, --min-strength), of one edge "
                "(--edge) or of probabilities (--of, --given): choose one"
            )
        from edgegraft.cli.typed_evidence import check_names, parse_given, parse_variables
        from edgegraft.model import load
        from edgegraft.report import plot_edge, plot_marginals, plot_network

        known = load(model)
        asked = parse_variables(known.schema, of or [], "--of")
        check_names(known.schema, edge or (), "--edge")
        check_names(known.schema, [around] if around else (), "--around")
        if edge:
            axes = plot_edge(known, *edge)
        elif asked or given:
            axes = plot_marginals(known, asked or None, parse_given(known.schema, given or []))
        else:
            axes = plot_network(known, **network, seed=seed)  # type: ignore[arg-type]
        save_picture(axes, output, dpi)
        wrote(console, "The picture", output)


def save_picture(axes: Any, path: Path, dpi: int = 200) -> None:
    """Write a picture to a file, in the format of its suffix."""
    from edgegraft.core.atomic import replacing

    with replacing(path) as file:
        axes.figure.savefig(file, format=path.suffix.lower()[1:], dpi=dpi)


def explore(
    model: opt.ModelFile,
    port: Annotated[
        int, typer.Option("--port", min=0, max=65535, help="Where to serve; 0 for any free port.")
    ] = 0,
    open_browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Open the page in a browser.")
    ] = True,
) -> None:
    """Explore a model in the browser.

    The page shows the network, its tables, and probabilities given evidence.

    The page is served to this machine alone, under an address that cannot be guessed, until
    Ctrl-C; nothing is sent anywhere else.
    """
    with working(model) as console:
        from edgegraft.cli.summary import shares_of
        from edgegraft.model import load, read_details
        from edgegraft.report.explorer import Explorer
        from edgegraft.report.explorer_app import make_explorer_server, one_time_address

        shares = shares_of(read_details(model).details)
        explorer = Explorer(load(model), title=model.name, shares=shares)
        server, url = make_explorer_server(explorer, port)
        say(console, f"[bold]{escape(str(model))}[/] is at {escape(url)} (Ctrl-C ends it)")
        if open_browser:
            import webbrowser

            webbrowser.open(one_time_address(server))
        server.serve_forever()  # returns on Ctrl-C
        say(console, "The explorer has ended.")
