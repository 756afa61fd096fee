"""Rows in blocks: in memory, on disk or on a cluster, one interface for whatever sums over them.

Everything that learning needs of rows is a sum over rows. Rows come in blocks, and
:meth:`Rows.map` applies a function to each and returns the results in the order of the blocks.
Where blocks end depends on the data alone, never on threads or workers, and sums are added in
block order; so results are the same to the last bit whichever thread or machine does the work.
A table in memory is a single block.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from math import prod
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from edgegraft.core.atomic import Closing
from edgegraft.core.checks import check_weights
from edgegraft.core.threads import resolve_jobs, run_in_order
from edgegraft.core.types import Floats, Integers
from edgegraft.errors import DataError, SettingError
from edgegraft.table.packed import Cells, PackedTable, empty_cells
from edgegraft.table.schema import Schema

if TYPE_CHECKING:
    from edgegraft.core.backend import Backend

Result = TypeVar("Result")

KEPT_BYTES = 1 << 28  # of blocks that stay in memory between passes


@dataclass(frozen=True)
class _DrawRule:
    """How random rows are drawn from a block: in runs of neighbours, which are read together."""

    run: int = 256  # rows of a run, if that leaves enough draws
    draws: int = 64  # at least: neighbouring rows may be alike


@dataclass(frozen=True)
class _DistinctRule:
    """When distinct rows are counted."""

    work: int = 1 << 20  # rows times cells of the largest pair: less is summed in a moment
    rows: int = 1 << 16  # at a time: budget of memory
    fewer: int = 4  # rows per possible row, from which there are far fewer distinct ones


#: Rows of the largest sample that a search over rows on disk begins with.
SAMPLE_ROWS = 1 << 19


class Rows(ABC):
    """Rows in blocks."""

    schema: Schema
    n_rows: int
    n_blocks: int = 1
    weights: Floats | None = None  # of the rows, not negative
    round_trips: int = 0  # calls of `map` that went over a network so far
    device: Backend | None = None  # where sums over the rows are computed; None for the processor

    @property
    def weight(self) -> float:
        """Weight of all rows: their number if they have no weights."""
        return float(self.n_rows if self.weights is None else self.weights.sum())

    @abstractmethod
    def map(self, work: Callable[..., Result], *each: Sequence[Any]) -> Iterator[Result]:
        """Yield ``work(block, *values)`` for every block, in the order of the blocks.

        Each sequence of `each` has one value per block. `work` must be picklable if the rows may
        be on a cluster.
        """


class TableRows(Rows):
    """The rows of a table in memory: one block, with what has been derived from it.

    `n_rows` are the rows that those of the table stand for, if it has each distinct row once. Sums
    over the rows do not depend on `n_jobs`.
    """

    def __init__(
        self,
        table: PackedTable,
        weights: ArrayLike | None = None,
        n_jobs: int | None = None,
        n_rows: int | None = None,
        device: Backend | None = None,
    ) -> None:
        self.table, self.schema, self.device = table, table.schema, device
        self.n_rows = table.n_rows if n_rows is None else n_rows
        self.weights = None if weights is None else check_weights(weights, table.n_rows)
        self.n_jobs = resolve_jobs(n_jobs)
        self._derived: dict[Any, Any] = {}

    @property
    def product_device(self) -> Backend | None:
        """The device, if products of all pairs of states fit its memory."""
        fits = self.device is not None and self.device.holds(int(self.schema.n_states.sum()))
        return self.device if fits else None

    def map(self, work: Callable[..., Result], *each: Sequence[Any]) -> Iterator[Result]:
        """Yield ``work(block, *values)`` for the only block, which is this."""
        yield work(self, *(values[0] for values in each))

    def derive(self, key: Any, make: Callable[[TableRows], Result]) -> Result:
        """Return ``make(self)``, computed once for each key; much smaller than the table."""
        if key not in self._derived:
            self._derived[key] = make(self)
        found: Result = self._derived[key]
        return found

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + self.table.nbytes  # by which Dask decides what to move

    def __reduce__(self) -> tuple[Any, ...]:
        return TableRows, (self.table, self.weights, self.n_jobs, self.n_rows, self.device)

    def subsample(self, share: float, rng: np.random.Generator) -> TableRows:
        """Return about a share of the rows, in whole runs of neighbours, with their weights."""
        if not 0 < share <= 1:
            raise ValueError(f"the share of rows must be above 0 and at most 1, found {share}")
        chosen = draw_rows(self.table.n_rows, share, rng)
        weights = None if self.weights is None else self.weights[chosen]
        return TableRows(self.table.take(chosen), weights, self.n_jobs, device=self.device)

    def changed(self, weights: Floats | None = None, device: Backend | None = None) -> TableRows:
        """Return the same rows with other weights, or computed elsewhere."""
        weights = self.weights if weights is None else weights
        return TableRows(self.table, weights, self.n_jobs, self.n_rows, device or self.device)

    def reweighted(self, weights: ArrayLike, n_jobs: int | None = None) -> TableRows:
        """Return the rows with other weights; those that weigh nothing are left out.

        This saves a bootstrap replicate a third of the rows.
        """
        checked = check_weights(weights, self.table.n_rows)
        shown = np.flatnonzero(checked)
        threads = self.n_jobs if n_jobs is None else n_jobs
        table = self.table.take(shown)
        return TableRows(table, checked[shown], threads, device=self.device)


class RowStore(Closing, ABC):
    """A table that is read block by block.

    `starts` has the first row of every block, and the number of rows at the end.
    """

    schema: Schema
    n_rows: int
    n_variables: int
    n_missing: Integers  # missing cells of each variable
    starts: Integers
    path: Path

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Bytes of the blocks where they are kept."""

    @abstractmethod
    def block(self, k: int) -> PackedTable:
        """Return the rows ``starts[k]`` to ``starts[k + 1]``, in memory."""

    @abstractmethod
    def table(self) -> PackedTable:
        """Return all rows, in memory."""


class StoredRows(Rows):
    """Rows of a store, read block by block; each thread holds one block.

    Blocks that stay decoded between passes take up to `max_bytes`. Sums over the rows do not depend
    on `n_jobs`.
    """

    def __init__(
        self,
        store: RowStore,
        weights: ArrayLike | None = None,
        n_jobs: int | None = None,
        max_bytes: int = KEPT_BYTES,
        device: Backend | None = None,
    ) -> None:
        self.store, self.schema, self.device = store, store.schema, device
        self.n_rows, self.n_blocks = store.n_rows, len(store.starts) - 1
        self.n_jobs = resolve_jobs(n_jobs)
        self.weights = None if weights is None else check_weights(weights, store.n_rows)
        self._free = self._max_bytes = max_bytes
        self._kept: dict[int, tuple[TableRows, int]] = {}
        self._lock = Lock()

    def changed(self, weights: Floats | None = None, device: Backend | None = None) -> StoredRows:
        """Return the same rows with other weights, or computed elsewhere."""
        weights = self.weights if weights is None else weights
        return StoredRows(self.store, weights, self.n_jobs, self._max_bytes, device or self.device)

    def map(self, work: Callable[..., Result], *each: Sequence[Any]) -> Iterator[Result]:
        """Yield ``work(block, *values)`` for every block, in the order of the blocks."""

        def task(k: int) -> Result:
            block = self._block(k)
            result = work(block, *(values[k] for values in each))
            self._keep(k, block)
            return result

        return run_in_order(task, range(self.n_blocks), self.n_jobs)

    def _block(self, k: int) -> TableRows:
        if k in self._kept:
            return self._kept[k][0]
        block = TableRows(self.store.block(k), device=self.device)
        if self.weights is not None:  # checked as a whole: those of one block may all be zero
            first, stop = self.store.starts[k : k + 2]
            block.weights = self.weights[first:stop]
        return block

    def _keep(self, k: int, block: TableRows) -> None:
        """Keep a block if it fits.

        The first blocks stay: of blocks read in turn, the least recently used is the next.
        """
        with self._lock:
            _, held = self._kept.pop(k, (block, 0))
            self._free += held
            size = block.table.nbytes
            if size <= self._free:
                self._free -= size
                self._kept[k] = block, size


def as_rows(
    rows: PackedTable | RowStore | Rows,
    weights: ArrayLike | None = None,
    n_jobs: int | None = None,
    device: Backend | None = None,
) -> Rows:
    """Return a table or a store as rows; rows, which have their own weights, as they are."""
    if isinstance(rows, PackedTable):
        return TableRows(rows, weights, n_jobs, device=device)
    if isinstance(rows, RowStore):
        return StoredRows(rows, weights, n_jobs, device=device)
    if weights is not None:
        raise DataError("these rows have weights of their own: pass them when the rows are made")
    if device is None or device == rows.device:
        return rows
    if isinstance(rows, TableRows | StoredRows):
        return rows.changed(device=device)
    raise SettingError("device", "must be 'cpu' for rows on a cluster")


def distinct_rows(rows: Rows) -> Rows:
    """Return every distinct row of a table once, weighted by how often it occurs, if that is less.

    Sums over rows are the same but for rounding, and take no longer than the distinct rows do. Only
    complete, unweighted tables with few possible rows are changed, if there is much to sum.
    """
    if not isinstance(rows, TableRows) or rows.weights is not None:
        return rows
    table, states = rows.table, rows.schema.n_states.tolist()
    possible, work = prod(states), rows.n_rows * prod(sorted(states)[-2:])
    if (
        possible * _DistinctRule.fewer > rows.n_rows
        or work < _DistinctRule.work
        or table.n_missing.any()
    ):
        return rows
    counts = np.zeros(possible, np.int64)
    for first in range(0, rows.n_rows, _DistinctRule.rows):
        part = table.cells[:, first : min(first + _DistinctRule.rows, rows.n_rows)]
        counts += np.bincount(np.ravel_multi_index(tuple(part), states), minlength=possible)
    shown = np.flatnonzero(counts)
    cells = empty_cells(rows.schema, len(shown))
    cells[:, : len(shown)] = np.unravel_index(shown, states)
    once = PackedTable(rows.schema, cells, len(shown))
    return TableRows(once, counts[shown], rows.n_jobs, rows.n_rows, rows.device)


def add_in_order(parts: Iterator[NDArray[Any]]) -> NDArray[Any]:
    """Return the sum of arrays, added in the order in which they come; the first is written to.

    >>> add_in_order(iter([np.arange(3), np.ones(3, int)]))
    array([1, 2, 3])
    """
    total = next(parts)
    for part in parts:
        total += part
    return total


def sample_rows(
    rows: Rows, n_rows: int, rng: np.random.Generator, n_jobs: int | None = None
) -> TableRows:
    """Return about `n_rows` random rows in memory, drawn in short runs from every block."""
    share = min(1.0, n_rows / rows.n_rows)
    seeds = rng.integers(0, 2**63, rows.n_blocks).tolist()
    drawn = list(rows.map(partial(_draw_from, share=share), seeds))
    n_drawn = sum(part.shape[1] for part, _ in drawn)
    cells = empty_cells(rows.schema, n_drawn)
    np.concatenate([part for part, _ in drawn], axis=1, out=cells[:, :n_drawn])
    weights = [own for _, own in drawn if own is not None]
    whole = np.concatenate(weights) if weights else None
    return TableRows(PackedTable(rows.schema, cells, n_drawn), whole, n_jobs, device=rows.device)


def draw_rows(n: int, share: float, rng: np.random.Generator) -> Integers:
    """Return about ``share * n`` of the rows ``0..n - 1``, in order, in runs of neighbours."""
    wanted = max(1, round(share * n))
    # Neighbouring rows may be alike: never so few runs that one of them matters much.
    length = max(1, min(_DrawRule.run, wanted // _DrawRule.draws))
    first = rng.permutation(-(-n // length))[: -(-wanted // length)]
    rows = (np.sort(first)[:, None] * length + np.arange(length)).ravel()
    return rows[rows < n].astype(np.int64)


def _draw_from(block: TableRows, seed: int, share: float) -> tuple[Cells, Floats | None]:
    rows = draw_rows(block.table.n_rows, share, np.random.default_rng(seed))
    return block.table.cells[:, rows], None if block.weights is None else block.weights[rows]
