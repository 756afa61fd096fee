"""The commands of ``edgegraft``, each with an example at the end of its help."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from edgegraft import __version__, plugins
from edgegraft.cli.console import set_debug
from edgegraft.cli.data_commands import demo, impute, score, simulate
from edgegraft.cli.learn_commands import learn, resume
from edgegraft.cli.model_commands import export, info
from edgegraft.cli.options import ALL_OPTIONS, MORE
from edgegraft.cli.query_commands import query, sample
from edgegraft.config.declare import NETWORK, RUN, TABLE

_HEADINGS = ("Arguments", TABLE, NETWORK, RUN, "Options", MORE)
_CORE = (learn, resume, info, query, sample, impute, score, export, simulate, demo)
#: In the order of the help; commands of other distributions follow.
_EXAMPLES = (
    "edgegraft learn survey.csv --drop id --report survey.html",
    "edgegraft resume survey.checkpoint --force",
    "edgegraft info survey.edgegraft",
    "edgegraft query survey.edgegraft --given smoker=yes --of cancer",
    "edgegraft sample survey.edgegraft --rows 1000 --given smoker=yes -o rows.csv",
    "edgegraft impute survey.edgegraft survey.csv -o complete.csv",
    "edgegraft score survey.edgegraft other.csv --json",
    "edgegraft export survey.edgegraft survey.graphml",
    "edgegraft report survey.edgegraft -o survey.html",
    "edgegraft plot survey.edgegraft -o survey.svg --around smoker",
    "edgegraft explore survey.edgegraft",
    "edgegraft compare survey.csv --by sex --report compared.html --plot compared.png",
    "edgegraft read survey.edgegraft survey.csv --plot centrality.png",
    "edgegraft plan --effect 0.15 --columns 25 --power 0.8",
    "edgegraft lag diary.csv -o rows.csv --subject person --time day",
    "edgegraft simulate scale-free -o rows.csv --variables 50 --truth truth.edgegraft",
    "edgegraft infer grid.uai --task MAR --evidence grid.uai.evid",
    "edgegraft demo",
)


class Command(TyperCommand):
    """A command whose help fits on a screen."""

    def format_help_text(self, ctx: Any, formatter: Any) -> None:
        """Write what the command does, one paragraph if options are left out."""
        text = self.help or ""
        with formatter.indentation():
            formatter.write_paragraph()
            formatter.write_text(text.partition("\n\n")[0] if self._short(ctx) else text)

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the options by heading: all, or some with the first sentence of their help."""
        short = self._short(ctx)
        groups: dict[str, list[tuple[str, str]]] = {heading: [] for heading in _HEADINGS}
        for own in self.get_params(ctx):
            record = own.get_help_record(ctx)
            if record is None or (short and _heading(own) == MORE):
                continue
            if short:
                is_option = own.param_type_name == "option"
                names = ", ".join(sorted(own.opts, key=len)) if is_option else record[0].split()[0]
                text = str(getattr(own, "help", "")).partition(". ")[0].removesuffix(".") + "."
                record = names, text + "  [required]" * (is_option and own.required)
            groups[_heading(own)].append(record)
        for heading, records in groups.items():
            if records:
                with formatter.section(heading):
                    formatter.write_dl(records)

    def _short(self, ctx: Any) -> bool:
        """Return whether options are left out."""
        return not ctx.meta.get(ALL_OPTIONS) and any(_heading(own) == MORE for own in self.params)


def _heading(parameter: Any) -> str:
    kind = "Arguments" if parameter.param_type_name == "argument" else "Options"
    return getattr(parameter, "rich_help_panel", None) or kind


app = typer.Typer(
    name="edgegraft",
    help="Networks of direct dependencies, and generative models, from categorical tables.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _commands() -> dict[str, tuple[Callable[..., Any], str]]:
    """Return every command and its example, by name: the core's, and those attached to it."""
    core = {command.__name__: command for command in _CORE}
    examples = {example.split()[1]: example for example in _EXAMPLES}
    names = dict.fromkeys([*examples, *plugins.names("commands")])
    found = {name: core.get(name) or plugins.find("commands", name) for name in names}
    return {name: (command, examples.get(name, "")) for name, command in found.items()}


for _name, (_command, _example) in _commands().items():
    app.command(
        _name,
        cls=Command,
        epilog=f"Example: {_example}" if _example else None,
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
