"""The help of commands: common options under headings; ``--help-all`` has the others too."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from edgegraft.config.declare import NETWORK, RUN, TABLE

MORE = "More options"  # heading of the options that only --help-all shows
_HEADINGS = ("Arguments", TABLE, NETWORK, RUN, "Options", MORE)
_ALL = "edgegraft.help_all"


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
        return not ctx.meta.get(_ALL) and any(_heading(own) == MORE for own in self.params)


def _heading(parameter: Any) -> str:
    kind = "Arguments" if parameter.param_type_name == "argument" else "Options"
    return getattr(parameter, "rich_help_panel", None) or kind


def _show_all(ctx: typer.Context, wanted: bool) -> None:
    if wanted:
        ctx.meta[_ALL] = True
        typer.echo(ctx.get_help())
        raise typer.Exit


HelpAll = Annotated[
    bool,
    typer.Option(
        "--help-all",
        is_eager=True,
        expose_value=False,
        callback=_show_all,
        help="Show all options and exit.",
    ),
]
