"""The page of the command line, written from the commands themselves when the site is built."""

from pathlib import Path

import typer
from typer.main import get_command

from edgegraft.cli.app import app

HEAD = """# The command line

Results go to stdout, progress, notes and errors to stderr, so that `edgegraft info m > info.txt`
works; `--json` writes results for programs. Exit codes: 0 done, 1 the work failed or was
interrupted, 2 bad usage or bad input. Files that exist are replaced only with `--force`. This page
is written from the commands of this version; `edgegraft COMMAND --help` shows the same.
"""


def write_command_line(path: Path) -> None:
    """Write the page."""
    group = get_command(app)
    context = typer.Context(group, info_name="edgegraft")
    parts = [HEAD]
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        own = typer.Context(command, info_name=name, parent=context)
        pieces = [piece.strip("{}") for piece in command.collect_usage_pieces(own)]
        usage = " ".join(["edgegraft", name, *pieces])
        parts.append(f"## {name}\n\n{command.help}\n\n```sh\n{usage}\n```\n")
        parts.append("| option | meaning | default |\n| --- | --- | --- |")
        parts += [_row(one, own) for one in command.params if not getattr(one, "hidden", False)]
        parts.append(f"\n{_code(command.epilog)}\n")
    path.write_text("\n".join(parts), encoding="utf-8")


def _row(parameter, context) -> str:
    names = [*parameter.opts, *parameter.secondary_opts]
    if parameter.param_type_name == "argument":
        names = [parameter.metavar or parameter.name.upper()]
    default = parameter.get_default(context, call=False)
    shown = "" if default in (None, False, "", ()) or callable(default) else f"`{default}`"
    text = (getattr(parameter, "help", None) or "").replace("|", "\\|")
    return f"| {', '.join(f'`{name}`' for name in names)} | {text} | {shown} |"


def _code(epilog: str) -> str:
    return f"Example: `{epilog.removeprefix('Example: ')}`"
