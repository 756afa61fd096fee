"""The command line: thin over the rest.

Heavy modules are imported inside the commands that use them, so that ``edgegraft --help`` is
there at once.
"""

from __future__ import annotations

import codecs
import sys
from io import TextIOWrapper


def main() -> None:
    """Run the command line; the entry point of the ``edgegraft`` script."""
    try:
        _run()
    except KeyboardInterrupt:  # before a command has begun
        sys.stderr.write("error: interrupted: nothing was written\n")
        raise SystemExit(1) from None


def _run() -> None:
    try:
        from edgegraft.cli.app import app
    except ModuleNotFoundError as error:
        if error.name not in ("typer", "rich"):
            raise
        sys.stderr.write(
            f"edgegraft: the command line needs the package '{error.name}': install it with "
            "`pip install 'edgegraft[cli]'`\n"
        )
        raise SystemExit(1) from None
    # Any name can be written: as UTF-8 if the locale is ASCII, escaped if it lacks a character.
    if isinstance(sys.stdout, TextIOWrapper):
        plain = codecs.lookup(sys.stdout.encoding).name == "ascii"
        encoding = "utf-8" if plain else None
        sys.stdout.reconfigure(encoding=encoding, errors="backslashreplace")
    app()
