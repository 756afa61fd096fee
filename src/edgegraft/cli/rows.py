"""The rows that a run learns from: read as the estimators do, and told of."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.markup import escape

from edgegraft.cli.columns import AnyTable, show_columns
from edgegraft.cli.console import say, warned
from edgegraft.cli.progress import Progress
from edgegraft.cli.request import Request
from edgegraft.core.types import Floats
from edgegraft.errors import MemoryBudgetError
from edgegraft.estimators.reading import RowsToFit, rows_to_fit
from edgegraft.ingest.memory import enough, needed_for_all
from edgegraft.objective.sharded import Shards
from edgegraft.table import PackedTable


class Rows(NamedTuple):
    """Rows that have been read.

    Attributes
    ----------
    given : RowsToFit
        As the search takes them.
    weights : array of float or None
        What they weigh if not 1 each.
    notes : list of str
        What was decided about columns that a user should know of.
    """

    given: RowsToFit
    weights: Floats | None
    notes: list[str]

    @property
    def shards(self) -> Shards | None:
        """The rows on disk, where they do not fit in memory."""
        return None if isinstance(self.given.rows, PackedTable) else self.given.rows

    @property
    def table(self) -> AnyTable:
        """What tells of the columns, in memory or on disk."""
        if isinstance(self.given.rows, PackedTable):
            return self.given.rows
        assert self.given.store is not None
        return self.given.store

    @property
    def sample_rows(self) -> int:
        """Rows of the sample that the search begins on; 0 where all rows are in memory."""
        return 0 if self.shards is None else self.given.sample_rows


@contextmanager
def open_rows(request: Request, console: Console, progress: Progress) -> Iterator[Rows]:
    """Read the rows of a request, into memory where they fit the limit, otherwise onto disk."""
    progress.stage("reading", Path(request.data).name)
    with ExitStack() as stack:
        with warned(console) as notes:
            weights = request.row_weights()  # first: its complaints name the option
            options = request.options(progress.on_rows)
            reading = rows_to_fit(Path(request.data), None, options, weights)
            rows = Rows(stack.enter_context(reading), weights, notes)
        if rows.shards is not None:
            progress.over(rows.shards.weight)
            if request.bootstrap:
                raise _no_bootstrap(rows.table)
        yield rows


def _no_bootstrap(table: AnyTable) -> MemoryBudgetError:
    needed = needed_for_all(table.n_rows, table.n_variables)
    return MemoryBudgetError(
        f"--bootstrap needs all rows in memory: allow at least {enough(needed)} (--max-memory) for "
        f"{table.n_rows:,} rows of {table.n_variables:,} columns, or learn without --bootstrap"
    )


def show_rows(console: Console, request: Request, rows: Rows) -> None:
    """Show the columns, and what else is known of the rows."""
    show_columns(console, rows.table)
    if rows.weights is not None:
        name, whole = request.weights, rows.weights.sum()
        text = f"Rows are weighed by '{name}': {rows.table.n_rows:,} rows weigh {whole:,.6g}."
        say(console, escape(text))
    lie = where_they_lie(rows)
    if lie:
        say(console, escape(lie))


def where_they_lie(rows: Rows) -> str:
    """Say whether all rows fit the limit, and where they are if not; nothing without a limit."""
    budget, store = rows.given.budget, rows.given.store
    if budget is None or store is None:
        return ""
    kept = f"bit planes ({size(store.nbytes)}) are kept in '{store.path}'."
    if rows.shards is None:
        return f"All rows fit in the {size(budget.limit)} of memory allowed; their {kept}"
    return (
        f"The rows do not fit in the {size(budget.limit)} of memory allowed: edges are tested on a "
        f"sample of about {rows.sample_rows:,} rows, where the search may begin as well; it ends "
        f"over all rows, whose {kept}"
    )


def size(n_bytes: float) -> str:
    """Return a number of bytes as people read it.

    Examples
    --------
    >>> size(5000), size(3 << 20), size(2 << 30)
    ('5 KiB', '3 MiB', '2.00 GiB')
    """
    if n_bytes >= 1 << 30:
        return f"{n_bytes / 2**30:,.2f} GiB"
    unit, name = (1 << 20, "MiB") if n_bytes >= 1 << 20 else (1 << 10, "KiB")
    return f"{n_bytes / unit:,.0f} {name}"
