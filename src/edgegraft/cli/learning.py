"""The work of ``learn`` and ``resume``: read, learn, write, tell."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import typer
from rich.console import Console
from rich.markup import escape

from edgegraft.cli.console import give, near, say, warned
from edgegraft.cli.details import details_of, edge_columns
from edgegraft.cli.going_on import (
    RequestKeeper,
    after_budget,
    after_interruption,
    keep,
    out_of_budget,
    resume_command,
)
from edgegraft.cli.progress import Progress, clock
from edgegraft.cli.request import Request
from edgegraft.cli.rows import Rows, open_rows, show_rows
from edgegraft.cli.summary import describe, show
from edgegraft.core.types import Floats
from edgegraft.errors import MissingExtraError
from edgegraft.learn import Discovery, discover, resume_discovery
from edgegraft.model import read_details
from edgegraft.table import PackedTable


class Learning:
    """One run of a request.

    Parameters
    ----------
    request : Request
    console : Console
        For people.
    top : int
        Edges to show.
    as_json : bool
        Whether the summary goes to stdout.
    """

    def __init__(self, request: Request, console: Console, top: int, as_json: bool) -> None:
        self._request = request
        self._console = console
        self._top = top
        self._as_json = as_json
        self._plan = request.plan()
        self._progress = Progress(console, request.max_time)
        self._complete = True
        if request.report is not None:
            require_report()

    def learn(self, checkpoint: Path | None) -> None:
        """Learn from the beginning."""

        def work(rows: Rows, observers: list[Any]) -> Discovery:
            if checkpoint is not None:
                for old in (checkpoint, self._request.beside(checkpoint)):
                    old.unlink(missing_ok=True)  # of another run
                observers = [*observers, RequestKeeper(self._request, checkpoint, "checkpoint")]
            return discover(
                rows.given.rows,
                self._plan,
                weights=rows.given.weights,
                sample_rows=rows.given.sample_rows,
                checkpoint=checkpoint,
                observers=observers,
            )

        self._run(work, checkpoint)

    def resume(self, checkpoint: Path) -> None:
        """Go on from a checkpoint."""

        def work(rows: Rows, observers: list[Any]) -> Discovery:
            return resume_discovery(
                checkpoint,
                rows.given.rows,
                self._plan,
                weights=rows.given.weights,
                sample_rows=rows.given.sample_rows,
                observers=[*observers, RequestKeeper(self._request, checkpoint, "start")],
                max_time=self._request.max_time,
                max_edges=self._request.max_edges,
            )

        self._run(work, checkpoint)

    def rehearse(self) -> None:
        """Read the data and say what learning would take, without doing it."""
        from edgegraft.cli.estimate import estimate
        from edgegraft.cli.rehearsal import give_rehearsal, show_rehearsal

        with self._progress.shown(), self._open() as rows:
            self._progress.stage("trying the search on some of the rows")
            with warned(Console(quiet=True)):  # a pilot that ends early is as it should be
                found = estimate(rows, self._plan)
        if self._as_json:
            give_rehearsal(self._request, rows, found)
        else:
            show_rehearsal(self._console, self._request, rows, found)

    def _open(self) -> AbstractContextManager[Rows]:
        return open_rows(self._request, self._console, self._progress)

    def _run(
        self,
        work: Callable[[Rows, list[Any]], Discovery],
        checkpoint: Path | None,
    ) -> None:
        progress = self._progress
        interrupts = progress.interrupts
        with progress.shown(), ExitStack() as stack:
            with interrupts:
                rows = stack.enter_context(self._open())
                interrupts.check()
                self._request = replace(self._request, sample_rows=rows.sample_rows)
                show_rows(self._console, self._request, rows)
                progress.stage("ranking pairs")
                with self._abandoning(checkpoint), warned(self._console):
                    found = work(rows, [interrupts, progress])
            frequency = None
            if self._request.bootstrap and not interrupts.asked:
                with warned(self._console):
                    frequency = self._bootstrap(found, rows)
            progress.stage("writing")
            self._save(found, rows, frequency, interrupts.asked)
            if checkpoint is not None and (interrupts.asked or out_of_budget(found)):
                keep(self._request, checkpoint, found)
        self._tell(checkpoint, found, interrupts.asked)
        if interrupts.asked or not self._complete:
            raise typer.Exit(1)

    @contextmanager
    def _abandoning(self, checkpoint: Path | None) -> Iterator[None]:
        """Say what is left where Ctrl-C was insisted upon."""
        try:
            yield
        except KeyboardInterrupt:
            if checkpoint is not None and checkpoint.exists():
                say(
                    self._console,
                    escape(f"Go on from the last checkpoint with:\n  {resume_command(checkpoint)}"),
                )
            raise

    def _bootstrap(self, found: Discovery, rows: Rows) -> Floats | None:
        """Return how often each edge of the model is found again; None where Ctrl-C came first."""
        from edgegraft.learn.bootstrap import bootstrap

        assert isinstance(rows.given.rows, PackedTable)  # it was refused for any other
        request = self._request
        self._progress.stage("bootstrap")
        try:
            sure = bootstrap(
                found,
                rows.given.rows,
                request.bootstrap,
                weights=rows.weights,
                fdr=self._plan.fdr,
                n_jobs=request.jobs,
                random_state=request.seed,
                on_replicate=self._progress.on_replicate,
            )
        except KeyboardInterrupt:
            say(self._console, "The bootstrap was interrupted before its first replicate.")
            return None
        return sure.frequency[: found.model.n_edges]

    def _save(
        self, found: Discovery, rows: Rows, frequency: Floats | None, interrupted: bool
    ) -> None:
        details = details_of(self._request, self._plan, found, rows)
        if interrupted:
            details["reason"] = "interrupted"
        columns = edge_columns(found)
        if frequency is not None:
            columns["frequency"] = frequency
        found.model.save(self._request.output, details=details, edge_columns=columns)
        if self._request.report is not None:
            self._progress.stage("writing the report")
            try:
                self._write_report(self._request.report, found, rows, details, columns)
            except KeyboardInterrupt:
                self._complete = False  # what is told later tells of the model alone

    def _write_report(
        self,
        path: str,
        found: Discovery,
        rows: Rows,
        details: dict[str, Any],
        columns: dict[str, Any],
    ) -> None:
        from edgegraft.report import data_quality, write_report

        dropped = dict.fromkeys(self._request.drop or [], "left out by --drop")
        if self._request.weights is not None:
            dropped[self._request.weights] = "the weights of the rows"
        write_report(
            path,
            found.model,
            details=details,
            edge_columns=columns,
            trace=found.growth.trace(),
            data_quality=data_quality(rows.table, dropped=dropped, notes=rows.notes),
            title=f"The network of {Path(self._request.data).name}",
        )

    def _tell(self, checkpoint: Path | None, found: Discovery, interrupted: bool) -> None:
        path = Path(self._request.output)
        summary = describe(read_details(path), near(path))
        if self._as_json:
            summary |= {"report": self._request.report if self._complete else None}
            give(summary | {"seconds": round(self._progress.seconds, 3)})
        else:
            show(self._console, summary, self._top)
        taken = clock(self._progress.seconds)
        say(self._console, f"The model is in [bold]{escape(str(near(path)))}[/] after {taken}.")
        if not self._complete:
            say(self._console, "The report was interrupted, and is not written.")
        elif self._request.report is not None:
            page = near(Path(self._request.report))
            say(self._console, f"The report is in [bold]{escape(str(page))}[/].")
        if interrupted:
            say(self._console, escape(after_interruption(checkpoint)))
        elif checkpoint is not None and out_of_budget(found):
            say(self._console, escape(after_budget(self._request, checkpoint)))


def require_report() -> None:
    """Refuse to begin where what the report needs is not installed."""
    if find_spec("networkx") is None:
        raise MissingExtraError("networkx", "report", "a report")
