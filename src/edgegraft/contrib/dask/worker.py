"""What workers do: open, pack and hold a partition, and answer questions of those they hold.

Nothing here knows of other workers. Everything that travels is plain: tables, text, arrays; a
schema goes as JSON, so that its arrays are built anew as the kernels were compiled for them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from edgegraft.core.threads import run_in_order
from edgegraft.core.types import Edges
from edgegraft.counts import PairCounts
from edgegraft.ingest.options import ReadOptions
from edgegraft.ingest.partition import OpenPart, Survey, merge, open_part, pack_part
from edgegraft.table import PackedTable, Schema
from edgegraft.table.rows import TableRows

Counts = NDArray[np.int64]
Question = Callable[..., Any]  # of a held partition and arguments, asked on its worker


class Held:
    """A packed partition in the memory of a worker, with what was worked out from it.

    Parameters
    ----------
    table : PackedTable or None
        None for a partition without rows.
    """

    def __init__(self, table: PackedTable | None) -> None:
        self.table = table
        self.rows = None if table is None else TableRows(table)
        self.counts = None if self.rows is None else PairCounts(self.rows)
        self._derived: dict[Any, Any] = {}

    def derive(self, key: Any, make: Callable[[PackedTable], Any]) -> Any:
        """Return what `make` gives of the table, made once for each key."""
        if key not in self._derived:
            self._derived[key] = make(self.some_table)
        return self._derived[key]

    @property
    def some_table(self) -> PackedTable:
        """The table of a partition that has rows."""
        assert self.table is not None
        return self.table

    @property
    def some_counts(self) -> PairCounts:
        """Counts of a partition that has rows."""
        assert self.counts is not None
        return self.counts

    def __sizeof__(self) -> int:
        # Workers decide by it what to spill, and the scheduler what to move.
        return object.__sizeof__(self) + (0 if self.table is None else self.table.nbytes)

    def __reduce__(self) -> tuple[Any, ...]:
        if self.table is None:
            return Held, (None,)
        table = self.table
        stored = (table.n_rows, table.n_missing, table.planes.words, table.codes_of)
        return _restore, (table.schema.to_json(), *stored)


def _restore(schema: str, n_rows: int, *arrays: Any) -> Held:
    missing, words, codes = (np.asarray(array) for array in arrays)
    return Held(PackedTable._build(read_schema(schema), n_rows, missing, words, codes))


@lru_cache(maxsize=16)
def read_schema(text: str) -> Schema:
    """Return a schema from its JSON; the partitions of a worker share one."""
    return Schema.from_json(text)


def open_table(source: Any, options: ReadOptions) -> OpenPart:
    """Read a partition once."""
    return open_part(source, options)


def survey(part: OpenPart) -> Survey:
    """Return the labels of an open partition."""
    return part.survey()


def merge_surveys(*surveys: Survey) -> Survey:
    """Return the labels of several partitions."""
    return merge(surveys)


def hold_open(part: OpenPart, schema: str, options: ReadOptions) -> Held:
    """Pack an open partition under the schema of all of them, and keep it."""
    return _held(part.close(read_schema(schema), options))


def hold_source(source: Any, schema: str, options: ReadOptions) -> Held:
    """Pack a partition under a schema that was known beforehand, and keep it."""
    return _held(pack_part(source, read_schema(schema), options))


def _held(table: PackedTable | None) -> Held:
    held = Held(table)
    if held.counts is not None:
        held.counts.margins()  # which every later count needs
    return held


class At(NamedTuple):
    """Where a question is answered."""

    number: int  # of the partition
    threads: int  # that the answer may use


def answer(
    question: Question,
    arguments: Sequence[Any],
    together: bool,
    numbers: Sequence[int],
    *held: Held,
) -> list[Any]:
    """Ask the partitions of a worker.

    Parameters
    ----------
    question : callable
        Of a `Held`, an `At`, and the arguments.
    arguments : sequence
    together : bool
        Whether answers are integers that may be added in any order; then one is returned.
    numbers : sequence of int
        Of the partitions.
    """
    threads = _threads()
    if not together:
        # Sums of one partition are one thread's, so that they do not depend on the threads.
        def ask(k: int) -> Any:
            return question(held[k], At(numbers[k], 1), *arguments)

        return list(run_in_order(ask, range(len(held)), threads))
    total = question(held[0], At(numbers[0], threads), *arguments)
    for number, one in zip(numbers[1:], held[1:], strict=True):
        total += question(one, At(number, threads), *arguments)
    return [_narrow(total)]


def _narrow(counts: Any) -> Any:
    """Return counts in as few bytes as hold them: half or a quarter of what would travel."""
    if not isinstance(counts, np.ndarray) or not counts.size:
        return counts
    fitting = (t for t in (np.uint16, np.uint32) if counts.max() <= np.iinfo(t).max)
    return counts.astype(next(fitting, np.int64), copy=False)


def _threads() -> int:
    from distributed import get_worker

    try:
        return int(get_worker().state.nthreads)
    except ValueError:  # outside a worker
        return 1


def rows(held: Held, at: At) -> int:
    """Return the number of rows."""
    return 0 if held.table is None else held.table.n_rows


def margins(held: Held, at: At) -> Counts:
    """Return the counts of every state, flat."""
    return held.some_counts.margins().values.copy()


def pairs(held: Held, at: At, edges: Edges) -> Counts:
    """Return the tables of a batch of edges, flat."""
    counts = held.some_counts
    assert held.rows is not None
    held.rows.block.n_jobs = at.threads
    return counts.pairs(edges).values


def nothing(held: Held, at: At) -> int:
    """Return at once: what a round trip costs."""
    return 0
