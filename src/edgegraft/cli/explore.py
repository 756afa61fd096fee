"""``edgegraft explore``: a model as a page in the browser, served to this machine alone."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.markup import escape

from edgegraft.cli.console import reported, require_files, say


def explore_command(
    model_path: Annotated[
        Path,
        typer.Argument(metavar="MODEL", help="A model file, as `edgegraft learn` writes."),
    ],
    port: Annotated[
        int, typer.Option("--port", min=0, max=65535, help="Where to serve; 0 for any free port.")
    ] = 0,
    open_browser: Annotated[
        bool, typer.Option("--browser/--no-browser", help="Open the page at once.")
    ] = True,
) -> None:
    """Explore a model in the browser: its network, its tables, evidence and what follows.

    The page is served to this machine alone, under an address that cannot be guessed, until
    Ctrl-C; nothing is sent anywhere else.
    """
    with reported() as console:
        require_files(model_path)
        from edgegraft.model import load
        from edgegraft.report.explorer import Explorer
        from edgegraft.report.explorer_app import make_explorer_server

        explorer = Explorer(load(model_path), title=model_path.name)
        server, url = make_explorer_server(explorer, port)
        say(console, f"[bold]{escape(str(model_path))}[/] is at {escape(url)} (Ctrl-C ends it)")
        if open_browser:
            import webbrowser

            webbrowser.open(url)
        server.serve_forever()  # returns on Ctrl-C
        say(console, "The explorer has ended.")
