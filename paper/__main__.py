"""``python -m paper NAME``: repeat the experiments of the paper."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.markup import escape

from edgegraft.cli.console import say
from edgegraft.cli.files import working
from edgegraft.cli.options import Quiet

if TYPE_CHECKING:
    from paper import Cell, Context, Experiment, Outcome

_ALL = "all"


def run_experiments(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME...", help="Experiments, or 'all'; see --list.", show_default=False
        ),
    ] = None,
    list_them: Annotated[
        bool, typer.Option("--list", help="List the experiments and exit.")
    ] = False,
    quick: Annotated[
        bool, typer.Option("--quick", help="Small sizes: seconds instead of minutes.")
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="Folder of the results. [default: reproduction, or reproduction-quick]",
            show_default=False,
        ),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(
            help="Folder of the Jester and Yummly data; downloaded by default.",
            show_default=False,
        ),
    ] = None,
    max_time: Annotated[
        float | None,
        typer.Option(
            min=0.1,
            help="Time limit of each search in seconds, instead of its own.",
            show_default=False,
        ),
    ] = None,
    page: Annotated[
        Path | None,
        typer.Option(help="Write tables and pictures into this Markdown page.", show_default=False),
    ] = None,
    again: Annotated[
        bool, typer.Option("--again", help="Also repeat runs that have results.")
    ] = False,
    jobs: Annotated[int, typer.Option("--jobs", "-j", help="Threads; -1 for all cores.")] = 2,
    quiet: Quiet = False,
) -> None:
    """Repeat experiments of the paper; write a table, a figure and the machine of each.

    Every finished run is saved at once: after an interruption, the same command resumes.
    """
    with working(page, quiet=quiet) as console:
        from paper import EXPERIMENTS, Context

        if list_them:
            for experiment in EXPERIMENTS.values():
                typer.echo(f"{experiment.name:12} {experiment.claim}")
            return
        chosen = _choose(names or [], EXPERIMENTS)
        folder = output or Path("reproduction-quick" if quick else "reproduction")
        _run(chosen, console, folder, Context(data, jobs), quick, max_time, again, page)


def _choose(names: list[str], known: dict[str, Experiment]) -> list[Experiment]:
    unknown = [name for name in names if name not in known and name != _ALL]
    if unknown or not names:
        found = f"there is no experiment '{unknown[0]}'" if unknown else "no experiment was named"
        raise ValueError(f"{found}: choose from {', '.join(known)}, or {_ALL}")
    return [known[name] for name in (known if _ALL in names else dict.fromkeys(names))]


def _run(
    chosen: list[Experiment],
    console: Console,
    folder: Path,
    context: Context,
    quick: bool,
    max_time: float | None,
    again: bool,
    page: Path | None,
) -> None:
    from edgegraft.cli.console import clock
    from edgegraft.cli.progress import Progress
    from paper.page import Page
    from paper.public import require_data
    from paper.runner import reproduce

    require_data({experiment.public for experiment in chosen} - {""}, context.data)
    shown = None if page is None else Page(page, {experiment.name for experiment in chosen})
    redone: set[str] = set()
    for experiment in chosen:
        progress = Progress(console)

        def on_cell(
            cell: Cell,
            number: int,
            n: int,
            experiment: Experiment = experiment,
            progress: Progress = progress,
        ) -> None:
            progress.stage(experiment.name, f"run {number} of {n}: {cell.name.rsplit('-', 1)[0]}")

        try:
            with progress.shown():
                done = reproduce(
                    experiment,
                    folder,
                    context,
                    quick=quick,
                    max_time=max_time,
                    # Experiments that share runs repeat them only once.
                    again=again and experiment.runs not in redone,
                    on_cell=on_cell,
                )
        except KeyboardInterrupt:
            say(console, "interrupted: finished runs are saved; the same command resumes")
            raise typer.Exit(1) from None
        redone.add(experiment.runs)
        say(console, _summary(experiment, done, clock(progress.seconds)))
        if shown is not None:
            shown.write(experiment, done, quick)


def _summary(experiment: Experiment, done: Outcome, took: str) -> str:
    kept = f", {done.n_cells - done.n_run} loaded" if done.n_run < done.n_cells else ""
    return (
        f"[bold]{experiment.name}[/]: {done.n_run} runs in {took}{kept}; "
        f"{escape(str(done.table))}, {escape(str(done.figure))}"
    )


def main() -> None:
    """Run the command; ``python -m paper`` is its only entry point."""
    app = typer.Typer(pretty_exceptions_enable=False)
    app.command(context_settings={"help_option_names": ["-h", "--help"]})(run_experiments)
    app(prog_name="python -m paper")


if __name__ == "__main__":
    main()
