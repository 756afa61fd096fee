"""The commands of ``edgegraft``, each with an example at the end of its help."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Annotated, Any

import typer

from edgegraft import __version__
from edgegraft.cli.console import set_debug
from edgegraft.cli.data_commands import demo, impute, lag, score, simulate
from edgegraft.cli.help import Command
from edgegraft.cli.learn_commands import learn, resume
from edgegraft.cli.model_commands import explore, export, info, plot, report
from edgegraft.cli.query_commands import infer, query, sample
from edgegraft.cli.study_commands import compare, plan, read

_EXAMPLES: dict[Callable[..., Any], str] = {
    learn: "edgegraft learn survey.csv --drop id --report survey.html",
    resume: "edgegraft resume survey.checkpoint --force",
    info: "edgegraft info survey.edgegraft",
    query: "edgegraft query survey.edgegraft --given smoker=yes --of cancer",
    sample: "edgegraft sample survey.edgegraft --rows 1000 --given smoker=yes -o rows.csv",
    impute: "edgegraft impute survey.edgegraft survey.csv -o complete.csv",
    score: "edgegraft score survey.edgegraft other.csv --json",
    export: "edgegraft export survey.edgegraft survey.graphml",
    report: "edgegraft report survey.edgegraft -o survey.html",
    plot: "edgegraft plot survey.edgegraft -o survey.svg --around smoker",
    explore: "edgegraft explore survey.edgegraft",
    compare: "edgegraft compare survey.csv --by sex --report compared.html --plot compared.png",
    read: "edgegraft read survey.edgegraft survey.csv --plot centrality.png",
    plan: "edgegraft plan --effect 0.15 --columns 25 --power 0.8",
    lag: "edgegraft lag diary.csv -o rows.csv --subject person --time day",
    simulate: "edgegraft simulate scale-free -o rows.csv --variables 50 --truth truth.edgegraft",
    infer: "edgegraft infer grid.uai --task MAR --evidence grid.uai.evid",
    demo: "edgegraft demo",
}

app = typer.Typer(
    name="edgegraft",
    help="Networks of direct dependencies, and generative models, from categorical tables.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for _command, _example in _EXAMPLES.items():
    app.command(
        _example.split()[1],
        cls=Command,
        epilog=f"Example: {_example}",
        context_settings={"allow_extra_args": _command is learn},  # refused with advice
    )(_command)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"edgegraft {__version__}")
        raise typer.Exit


@app.callback(epilog="Example: edgegraft learn survey.csv -o survey.edgegraft")
def _options(
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks.")] = False,
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    set_debug(debug)
    os.environ.setdefault("MPLBACKEND", "Agg")  # pictures are files: no window is opened
