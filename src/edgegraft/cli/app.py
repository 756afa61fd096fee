"""The commands and how their failures reach the user.

Exit codes: 0 done, 1 the work failed, 2 bad usage or bad input. Output for people goes to
stderr, results for programs to stdout.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.markup import escape

from edgegraft import __version__
from edgegraft.cli.tasks import EngineName, Task

app = typer.Typer(
    name="edgegraft",
    help="Networks of direct dependencies, and generative models, from categorical tables.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
_DEBUG = {"on": False}


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"edgegraft {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks.")] = False,
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    _DEBUG["on"] = debug


@contextmanager
def reported() -> Iterator[Console]:
    """Hand out the console for people, and turn errors into one line and an exit code."""
    console = Console(stderr=True)
    try:
        yield console
    except (ValueError, TypeError, OSError, ImportError) as error:
        if _DEBUG["on"]:
            raise
        console.print(f"[bold red]error:[/] {escape(str(error))}", highlight=False, soft_wrap=True)
        raise typer.Exit(1 if isinstance(error, ImportError) else 2) from None


@contextmanager
def warned(console: Console) -> Iterator[None]:
    """Show warnings as single lines on the console for people."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for warning in caught:
        text = f"[bold yellow]warning:[/] {escape(str(warning.message))}"
        console.print(text, highlight=False, soft_wrap=True)


def refuse_overwriting(path: Path, force: bool) -> None:
    """Stop before the work if its output would replace a file that the user did not give up."""
    if path.exists() and not force:
        raise FileExistsError(f"'{path}' exists: choose another name, or add --force")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"there is no folder '{path.parent}' to write '{path.name}' to")


@app.command()
def demo(
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Where the report goes (Markdown).")
    ] = Path("edgegraft-demo.md"),
    pairs: Annotated[int, typer.Option(min=1, help="How many pairs to show.")] = 15,
    jobs: Annotated[int, typer.Option(help="Threads; -1 for all cores.")] = -1,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing report.")] = False,
) -> None:
    """Count the pairs of scikit-learn's handwritten digits and show the strongest.

    Example: edgegraft demo --output report.md
    """
    with reported() as console:
        refuse_overwriting(output, force)
        from edgegraft.cli.demo import run_demo

        report = run_demo(n_pairs=pairs, n_jobs=jobs)
        output.write_text(report, encoding="utf-8")
        sys.stdout.write(report)
        console.print(f"\nThe report is in [bold]{escape(str(output))}[/].", highlight=False)


@app.command()
def infer(
    file: Annotated[Path, typer.Argument(help="A UAI model file (.uai, may be gzipped).")],
    task: Annotated[
        Task, typer.Option(case_sensitive=False, help="log10 Z, marginals or likeliest state.")
    ],
    evidence: Annotated[
        Path | None, typer.Option(help="A UAI evidence file.", show_default=False)
    ] = None,
    engine: Annotated[EngineName, typer.Option(help="How to infer.")] = EngineName.AUTO,
) -> None:
    """Answer a task of the UAI competitions, in their format, on stdout.

    Example: edgegraft infer grid.uai --task MAR --evidence grid.uai.evid
    """
    with reported() as console, warned(console):
        from edgegraft.cli.infer import answer
        from edgegraft.io import model_from_uai, read_evidence

        observed = {} if evidence is None else read_evidence(evidence)
        sys.stdout.write(answer(model_from_uai(file), task, observed, engine.value))
