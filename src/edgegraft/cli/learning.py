"""The work of ``learn`` and ``resume``: read, learn, write, tell."""

from __future__ import annotations

import math
import platform
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from shlex import quote
from typing import Any

import numpy as np
import typer
from rich.console import Console
from rich.markup import escape

from edgegraft.cli.columns import describe_columns, show_columns
from edgegraft.cli.console import give, say, warned
from edgegraft.cli.progress import Progress, clock
from edgegraft.cli.request import Request
from edgegraft.cli.summary import describe, show
from edgegraft.data import PackedTable
from edgegraft.learn import Certificate, Discovery, Plan, discover, resume_discovery
from edgegraft.model import read_details

Json = dict[str, Any]
Floats = np.ndarray[Any, np.dtype[np.float64]]
_PACKAGES = ("edgegraft", "numpy", "scipy", "numba", "pyarrow")


class Learning:
    """One run of a request.

    Parameters
    ----------
    request : Request
    console : Console
        For people.
    jobs : int
        Threads.
    top : int
        Edges to show.
    as_json : bool
        Whether the summary goes to stdout.
    """

    def __init__(
        self, request: Request, console: Console, jobs: int, top: int, as_json: bool
    ) -> None:
        self._request = request
        self._console = console
        self._jobs = jobs
        self._top = top
        self._as_json = as_json
        self._plan = request.plan(jobs)
        self._progress = Progress(console, request.max_time)

    def learn(self, checkpoint: Path | None) -> None:
        """Learn from the beginning."""

        def work(table: PackedTable, observers: list[Any]) -> Discovery:
            if checkpoint is not None:
                checkpoint.unlink(missing_ok=True)  # an old one is of another run
                self._request.write(checkpoint)
            return discover(table, self._plan, checkpoint=checkpoint, observers=observers)

        self._run(work, checkpoint)

    def resume(self, checkpoint: Path) -> None:
        """Go on from a checkpoint."""

        def work(table: PackedTable, observers: list[Any]) -> Discovery:
            return resume_discovery(checkpoint, table, self._plan, observers=observers)

        self._run(work, checkpoint)

    def rehearse(self) -> None:
        """Read the data and say what learning would take, without doing it."""
        from edgegraft.cli.estimate import estimate

        with self._progress.shown():
            table = self._read()
            self._progress.stage("trying the search on some of the rows")
            with warned(Console(quiet=True)):  # a pilot that ends early is as it should be
                found = estimate(table, self._plan)
        n, path = table.n_variables, Path(self._request.output)
        if self._as_json:
            told = {"rows": table.n_rows, "columns": describe_columns(table), "dry_run": True}
            give(told | {"pairs": n * (n - 1) // 2} | {"estimate": found._asdict()})
            return
        show_columns(self._console, table)
        least = "at least " if found.at_least else "about "
        lines = (
            f"{n * (n - 1) // 2:,} pairs would be searched by {self._request.strategy} under the "
            f"{self._request.objective}; the model would go to '{_near(path)}'.",
            f"Memory: about {found.n_bytes / 2**20:,.0f} MiB.",
            f"Time: {least}{clock(found.seconds)} (a guess, by a pilot over "
            f"{found.pilot_rows:,} rows that found {found.pilot_edges:,} edges; it may be wrong by "
            "a factor of three).",
        )
        for line in lines:
            say(self._console, escape(line))

    def _read(self) -> PackedTable:
        self._progress.stage("reading", Path(self._request.data).name)
        with warned(self._console):
            return self._request.table(self._jobs)

    def _run(
        self,
        work: Callable[[PackedTable, list[Any]], Discovery],
        checkpoint: Path | None,
    ) -> None:
        progress = self._progress
        interrupts = progress.interrupts
        with progress.shown():
            with interrupts:
                table = self._read()
                interrupts.check()
                show_columns(self._console, table)
                progress.stage("ranking pairs")
                with self._abandoning(checkpoint), warned(self._console):
                    found = work(table, [interrupts, progress])
            frequency = None
            if self._request.bootstrap and not interrupts.asked:
                with warned(self._console):
                    frequency = self._bootstrap(found, table)
            progress.stage("writing")
            self._save(found, table, frequency, interrupts.asked)
            if interrupts.asked and checkpoint is not None:
                _keep(checkpoint, found)
        self._tell(checkpoint, interrupts.asked)
        if interrupts.asked:
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
                    escape(f"Go on from the last checkpoint with:\n  {_resume(checkpoint)}"),
                )
            raise

    def _bootstrap(self, found: Discovery, table: PackedTable) -> Floats | None:
        """Return how often each edge of the model is found again; None where Ctrl-C came first."""
        from edgegraft.learn.bootstrap import bootstrap

        request = self._request
        self._progress.stage("bootstrap")
        try:
            sure = bootstrap(
                found,
                table,
                request.bootstrap,
                fdr=self._plan.fdr,
                n_jobs=self._jobs,
                random_state=request.seed,
                on_replicate=self._progress.on_replicate,
            )
        except KeyboardInterrupt:
            say(self._console, "The bootstrap was interrupted before its first replicate.")
            return None
        return sure.frequency[: found.model.n_edges]

    def _save(
        self, found: Discovery, table: PackedTable, frequency: Floats | None, interrupted: bool
    ) -> None:
        details = details_of(self._request, self._plan, found, table)
        if interrupted:
            details["reason"] = "interrupted"
        columns = edge_columns(found)
        if frequency is not None:
            columns["frequency"] = frequency
        found.model.save(self._request.output, details=details, edge_columns=columns)

    def _tell(self, checkpoint: Path | None, interrupted: bool) -> None:
        path = Path(self._request.output)
        summary = describe(read_details(path), _near(path))
        if self._as_json:
            give(summary | {"seconds": round(self._progress.seconds, 3)})
        else:
            show(self._console, summary, self._top)
        taken = clock(self._progress.seconds)
        say(self._console, f"The model is in [bold]{escape(str(_near(path)))}[/] after {taken}.")
        if interrupted:
            say(self._console, escape(_how_to_go_on(checkpoint)))


def _near(path: Path) -> Path:
    """Return a path as it is seen from here."""
    here = Path.cwd()
    return path.relative_to(here) if path.is_relative_to(here) else path


def _keep(checkpoint: Path, found: Discovery) -> None:
    """Write a checkpoint of the search as it was left."""
    from edgegraft.learn.checkpoint import save
    from edgegraft.learn.steps import restart

    restart(found.growth)  # checkpoints hold what a restart was given
    save(checkpoint, found.growth)


def _how_to_go_on(checkpoint: Path | None) -> str:
    if checkpoint is None:
        return (
            "It is that of an interrupted search. To be able to go on where a search was left, "
            "learn with --checkpoint FILE."
        )
    return f"It is that of an interrupted search. Go on with:\n  {_resume(checkpoint)}"


def _resume(checkpoint: Path) -> str:
    return f"edgegraft resume {quote(str(checkpoint))} --force"


def edge_columns(found: Discovery) -> dict[str, Any]:
    """Return what is known of the model's edges, in their order."""
    n, tests, model = len(found.model.names), found.tests, found.model
    ids = tests.edges @ (n, 1)
    order = np.argsort(ids)
    at = order[np.searchsorted(ids, model.edges @ (n, 1), sorter=order)]
    columns = {
        name: getattr(tests, name)[at] for name in ("statistic", "dof", "p_value", "q_value")
    }
    return {"strength": model.edge_strengths()} | columns


def details_of(request: Request, plan: Plan, found: Discovery, table: PackedTable) -> Json:
    """Return what a model file keeps of how its model was learned.

    Nothing in it depends on the machine or the clock: the same run gives the same file.
    """
    growth = found.growth
    return {
        "source": {
            "file": Path(request.data).name,
            "rows": table.n_rows,
            "missing": table.n_missing.tolist(),
        },
        "settings": {
            "columns": request.columns,
            "drop": request.drop,
            "bins": request.bins,
            "missing": list(request.missing),
            "objective": plan.objective,
            "inference": plan.inference,
            "penalty": plan.penalty,
            "ridge": plan.ridge,
            "group_weight": plan.group_weight,
            "bootstrap": request.bootstrap,
            **plan.settings.as_dict(),
        },
        "penalty": float(found.penalty),
        "ridge": float(found.ridge),
        "fdr": plan.fdr,
        "reason": growth.reason,
        "converged": bool(found.converged),
        "search": {
            "edges": len(found.kept),
            "activations": growth.n_activations,
            "tests": growth.n_tests,
            "tables": growth.n_tables,
        },
        "certificate": _certificate(found.certificate),
        "versions": {name: version(name) for name in _PACKAGES}
        | {"python": platform.python_version()},
    }


def _certificate(certificate: Certificate) -> Json:
    """Return a certificate in JSON's types, which have no infinity, with its sentence."""
    fields = {
        name: None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in certificate._asdict().items()
    }
    return fields | {"text": str(certificate)}
