"""The rows of a request: opened as the estimators do, described and shown."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console
from rich.markup import escape

from edgegraft.cli.console import say, size, warned
from edgegraft.cli.learn_commands import Request
from edgegraft.cli.progress import Progress
from edgegraft.cli.summary import show_columns
from edgegraft.conditional.survey_design import SurveyDesign
from edgegraft.core.types import Floats
from edgegraft.errors import Argument, MemoryBudgetError
from edgegraft.grafting.pair_rules import PairRules
from edgegraft.ingest.frames import open_source
from edgegraft.ingest.options import ReadOptions, enough
from edgegraft.ingest.rows import OpenRows, open_rows, read_labels, read_weights
from edgegraft.table import PackedTable
from edgegraft.table.blocks import RowStore


class LearnRows(NamedTuple):
    """The open rows of a request."""

    fitted: OpenRows  # as the search takes them
    weights: Floats | None  # None if all are 1
    notes: list[str]  # decisions about columns that the user should know of
    design: SurveyDesign | None

    @property
    def table(self) -> PackedTable | RowStore:
        """The table that describes the columns, in memory or on disk."""
        assert self.fitted.table is not None  # files are not on a cluster
        return self.fitted.table

    @property
    def sample_rows(self) -> int:
        """Rows of the sample that the search begins on; 0 if all rows are in memory."""
        return 0 if isinstance(self.fitted.rows, PackedTable) else self.fitted.sample_rows

    def weight(self, request: Request) -> dict[str, Any]:
        """Return the column of weights and their sum; nothing if all are 1."""
        if self.weights is None:
            return {}
        return {"weights": request.weights, "weight": float(self.weights.sum())}


@contextmanager
def open_request(request: Request, console: Console, progress: Progress) -> Iterator[LearnRows]:
    """Open the rows of a request, in memory if they fit the limit, otherwise on disk."""
    path = Path(request.data)
    progress.stage("reading", path.name)
    options = request.read_options(progress.on_rows)
    _check_rules(request, options)
    design, weights = _read_design(request), None
    with warned(console) as notes:
        if request.weights is not None:
            weights = read_weights(path, request.weights, request.read_options())
        opened = open_rows(path, None, options, weights)
    with opened as fitted:
        rows = LearnRows(fitted, weights, notes, design)
        if not isinstance(fitted.rows, PackedTable):
            progress.over(fitted.rows.weight)
            if request.bootstrap:
                raise _no_bootstrap(rows)
        yield rows


def _check_rules(request: Request, options: ReadOptions) -> None:
    """Refuse rules about columns that the table has not, as soon as its header is known."""
    if not request.settings["rules"]:
        return
    with open_source(Path(request.data), options) as source:
        PairRules.read(request.settings["rules"], options.choose(source.names, source.named))


def _read_design(request: Request) -> SurveyDesign | None:
    """Return the strata and clusters of the rows."""
    options = replace(request.read_options(), drop=None, columns=None)
    columns = {
        name: read_labels(request.data, column, options)
        for name, column in {"strata": request.strata, "clusters": request.clusters}.items()
        if column is not None
    }
    return SurveyDesign.of(len(next(iter(columns.values()), ())), **columns)


def _no_bootstrap(rows: LearnRows) -> MemoryBudgetError:
    assert rows.fitted.budget is not None  # of rows on disk
    return MemoryBudgetError(
        "--bootstrap needs all rows in memory: allow at least "
        f"{enough(rows.fitted.budget.for_all)} (",
        Argument("max_memory"),
        f") for {rows.table.n_rows:,} rows of {rows.table.n_variables:,} columns, or learn without "
        "--bootstrap",
    )


def show_rows(console: Console, request: Request, rows: LearnRows) -> None:
    """Show the columns, the weights, and where the rows are kept."""
    show_columns(console, rows.table)
    if rows.weights is not None:
        text = f"{rows.table.n_rows:,} rows have a total weight of {rows.weights.sum():,.6g}."
        say(console, escape(f"Rows are weighted by '{request.weights}': {text}"))
    budget, store = rows.fitted.budget, rows.fitted.store
    if budget is None or store is None:
        return
    kept = f"codes ({size(store.nbytes)}) are kept in '{store.path}'."
    text = (
        f"All rows fit in the {size(budget.limit)} of memory allowed; their {kept}"
        if not rows.sample_rows
        else f"The rows do not fit in the {size(budget.limit)} of memory allowed: edges are tested "
        f"on a sample of about {rows.sample_rows:,} rows, on which the search may begin as well; "
        f"it ends over all rows, whose {kept}"
    )
    say(console, escape(text))
