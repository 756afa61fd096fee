"""The work of ``learn`` and ``resume``: read the rows, learn, write the model; or estimate it."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from shlex import quote
from typing import Any

import typer
from rich.console import Console
from rich.markup import escape

from edgegraft import plugins
from edgegraft.cli.console import clock, give, results, say, size, warned, wrote
from edgegraft.cli.files import near
from edgegraft.cli.learn_commands import Request
from edgegraft.cli.learn_rows import LearnRows, open_request, show_rows
from edgegraft.cli.progress import Progress
from edgegraft.cli.summary import describe_columns, describe_model, show_model
from edgegraft.core.threads import interruptible
from edgegraft.counts.information import data_quality
from edgegraft.learn import Discovery, Event, SearchState, discover, resume_discovery
from edgegraft.learn.pilot import Estimate, estimate_run
from edgegraft.learn.prediction import columns_of_all
from edgegraft.learn.provenance import details_of
from edgegraft.model import PairwiseMRF, StoredModel
from edgegraft.table import PackedTable

_RESUME = "  edgegraft resume {} --force"


@dataclass
class LearnRun:
    """One run of a request; shows the `top` strongest edges, or the summary as JSON.

    It is an observer of the search, which stores the request with the checkpoint.
    """

    request: Request
    console: Console
    top: int
    as_json: bool
    checkpoint: Path | None = None

    def __post_init__(self) -> None:
        self._plan = self.request.plan()
        self._progress = Progress(self.console, self._plan.max_time)
        self._report_failed = False

    def run(self, *, resumed: bool = False) -> None:
        """Learn from the beginning, or resume from the checkpoint."""
        progress, checkpoint = self._progress, self.checkpoint
        with progress.shown(), ExitStack() as stack:
            with interruptible() as progress.interruption:
                opening = open_request(self.request, self.console, progress)
                rows = stack.enter_context(opening)
                progress.interruption.check()  # nothing has been learned that could be kept
                self.request = replace(self.request, sample_rows=rows.sample_rows)
                show_rows(self.console, self.request, rows)
                progress.stage("ranking pairs")
                found = self._discover(rows, resumed)
            model = found.final_model
            if self.request.bootstrap and not found.interrupted:
                with warned(self.console):
                    model = model.with_edge_columns(self._bootstrap(found, rows))
            progress.stage("writing")
            source = {"file": Path(self.request.data).name}
            source |= rows.fitted.source(found.search.objective.n_rows) | rows.weight(self.request)
            details = details_of(found, source, self.request.kept())
            details["data_quality"] = data_quality(
                rows.table, dropped=self.request.dropped(), notes=rows.notes
            )
            stored = StoredModel.of(model, details)
            stored.write(self.request.output)
            self._write_report(model, stored.details, found.search)
            reason = found.search.reason
            resumable = found.interrupted or (reason is not None and reason.resumable)
            if checkpoint is not None and (resumable or resumed):
                self.request.write(checkpoint)
        self._report(stored)
        if found.interrupted or (checkpoint is not None and resumable):
            say(self.console, escape(_advice(self.request, checkpoint, found.interrupted)))
        if found.interrupted or self._report_failed:
            raise typer.Exit(1)

    def _discover(self, rows: LearnRows, resumed: bool) -> Discovery:
        """Search; if a second Ctrl-C ends that at once, explain how to resume."""
        checkpoint, plan = self.checkpoint, self._plan
        common: dict[str, Any] = {
            "weights": rows.fitted.weights,
            "design": rows.design,
            "sample_rows": rows.fitted.sample_rows,
            "observers": [self._progress, self],
        }
        try:
            with warned(self.console):
                if resumed and checkpoint is not None:
                    common |= {"max_time": plan.max_time, "max_edges": plan.max_edges}
                    return resume_discovery(checkpoint, rows.fitted.rows, plan, **common)
                if checkpoint is not None:
                    for old in (checkpoint, self.request.path_for(checkpoint)):
                        old.unlink(missing_ok=True)  # of another run
                return discover(rows.fitted.rows, plan, checkpoint=checkpoint, **common)
        except KeyboardInterrupt:
            if checkpoint is not None and checkpoint.exists():
                command = _RESUME.format(quote(str(checkpoint)))
                say(self.console, escape(f"Resume from the last checkpoint with:\n{command}"))
            raise

    def on_event(self, event: Event, state: SearchState) -> None:
        """Write the request with a checkpoint."""
        if self.checkpoint is not None and event.kind == "start":
            self.request.write(self.checkpoint)

    def _bootstrap(self, found: Discovery, rows: LearnRows) -> dict[str, Any]:
        """Return how often each edge of the model is found again; nothing if Ctrl-C came first."""
        from edgegraft.learn.bootstrap import bootstrap

        assert isinstance(rows.fitted.rows, PackedTable)  # any other was refused
        self._progress.stage("bootstrap")
        try:
            replicates = bootstrap(
                found.model,
                rows.fitted.rows,
                self.request.bootstrap,
                plan=self._plan,
                ranking=found.ranking,
                weights=rows.weights,
                n_jobs=self._plan.n_jobs,
                random_state=self._plan.random_state,
                on_pairs=self._progress.on_pairs,
            )
        except KeyboardInterrupt:
            say(self.console, "The bootstrap was interrupted: edges have no frequencies.")
            return {}
        kept = {"frequency": replicates.frequency[: found.model.n_edges]}
        return columns_of_all(found.model, found.final_model, kept)

    def _write_report(
        self, model: PairwiseMRF, details: dict[str, Any], search: SearchState
    ) -> None:
        if self.request.report is None:
            return
        write_report = plugins.find("pages", "report")
        self._progress.stage("writing the report")
        try:
            title = f"The network of {Path(self.request.data).name}"
            trace = search.trace()
            write_report(self.request.report, model, details=details, trace=trace, title=title)
        except KeyboardInterrupt:
            self._report_failed = True  # the model is there all the same

    def _report(self, stored: StoredModel) -> None:
        """Show the model, and where it and the report are."""
        path, page = near(Path(self.request.output)), self.request.report
        summary = describe_model(stored, stored.edge_columns, path)
        if self.as_json:
            summary["report"] = None if self._report_failed else page
            give(summary | {"seconds": round(self._progress.seconds, 3)})
        else:
            show_model(results(self.console), summary, self.top)
        wrote(self.console, "The model", path, f" after {clock(self._progress.seconds)}")
        if self._report_failed:
            say(self.console, "The report was interrupted, and is not written.")
        elif page is not None:
            wrote(self.console, "The report", near(Path(page)))


def _advice(request: Request, checkpoint: Path | None, interrupted: bool) -> str:
    """Return how to resume a search that was interrupted, or with twice its budgets."""
    if checkpoint is None:
        return "The search was interrupted. To be able to resume one, learn with --checkpoint."
    command = _RESUME.format(quote(str(checkpoint)))
    if interrupted:
        return f"The search was interrupted. Resume it with:\n{command}"
    edges, time = request.settings["max_edges"], request.settings["max_time"]
    more = "" if edges is None else f" --max-edges {2 * max(1, edges)}"
    more += "" if time is None else f" --max-time {2 * max(1.0, time):g}"
    return f"Resume with a larger budget:\n{command}{more}"


def show_dry_run(request: Request, console: Console, as_json: bool) -> None:
    """Read the data and report what learning would take, without doing it."""
    plan = request.plan()
    progress = Progress(console, plan.max_time)
    with progress.shown(), open_request(request, console, progress) as rows:
        progress.stage("trying the search on some of the rows")
        budget, store, table = rows.fitted.budget, rows.fitted.store, rows.table
        with warned(Console(quiet=True)):  # a pilot is expected to end early
            found = estimate_run(
                rows.fitted.rows,
                plan,
                rows.fitted.weights,
                n_sampled=rows.sample_rows,
                max_bytes=0 if budget is None else budget.limit,
            )
        n_pairs = table.n_variables * (table.n_variables - 1) // 2
        if not as_json:
            _show_estimate(results(console), request, rows, n_pairs, found)
            return
        memory = {
            "limit": None if budget is None else budget.limit,
            "all_rows_fit": not rows.sample_rows,
            "sample_rows": rows.sample_rows or None,
            "store": None if store is None else str(store.path),
        }
        result = {"rows": table.n_rows, "columns": describe_columns(table)}
        result |= rows.weight(request) | {"memory": memory, "dry_run": True}
        give(result | {"pairs": n_pairs, "estimate": found._asdict()})


def _show_estimate(
    console: Console, request: Request, rows: LearnRows, n_pairs: int, found: Estimate
) -> None:
    show_rows(console, request, rows)
    plan, about = request.plan(), "at least" if found.at_least else "about"
    passes = ", and passes over all rows come on top" if rows.sample_rows else ""
    for line in (
        f"{n_pairs:,} pairs would be searched by {plan.strategy} under the {plan.objective}; the "
        f"model would go to '{near(Path(request.output))}'.",
        f"Memory: about {size(found.n_bytes)}.",
        f"Time: {about} {clock(found.seconds)} (a guess, by a pilot over "
        f"{found.pilot_rows:,} rows that found {found.pilot_edges:,} edges; it may be wrong by "
        f"a factor of three{passes}).",
    ):
        say(console, escape(line))
