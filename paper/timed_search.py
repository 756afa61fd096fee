"""One timed search: its trajectory over seconds, measured after it has ended.

During the search only the parameters are copied, at intervals that grow by a seventh; the clock of
the trajectory excludes the copying. Held-out pseudolikelihood and recall are computed from the
copies afterwards. A small search of the same kind loads compiled code beforehand.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from time import perf_counter, process_time
from typing import NamedTuple

import numpy as np

from edgegraft.core import ActiveGraph, Layout
from edgegraft.core.types import Floats
from edgegraft.learn import Event, SearchState, StopReason, certify, grow
from edgegraft.objective.pseudolikelihood import Pseudolikelihood
from edgegraft.table import PackedTable
from paper.experiment import Cell, Row
from paper.networks import Case, Network, scale_free
from paper.versions import learner, with_method

_SPACING, _MIN_INTERVAL = 1.15, 0.02
_WARM_ROWS = 400


@dataclass(frozen=True)
class TimedSearch(Cell):
    """A search by one method.

    Parameters
    ----------
    method : str
        One of :data:`~paper.versions.METHODS`.
    n_variables, n_rows, seed : int
        Size and seed of the data; `n_rows` includes held-out rows.
    max_edges : int or None
        Edge budget.
    data : str
        ``scale-free``, or the name of a public table.
    penalty, ridge : float or None
        Replace those of the version.
    hubs : str
        ``mean`` or ``none``, to replace the version's threshold of hubs.
    priority : str
        ``uniform`` or ``auto``, to replace the version's order.
    certified : bool
        Whether to count the violating pairs at the end.
    """

    method: str
    n_variables: int
    n_rows: int
    seed: int = 0
    max_edges: int | None = None
    data: str = "scale-free"
    penalty: float | None = None
    ridge: float | None = None
    hubs: str = ""
    priority: str = ""
    certified: bool = False


class Snapshot(NamedTuple):
    """The state of a search at one moment."""

    seconds: float
    cpu_seconds: float  # total of all threads
    event: Event
    layout: Layout
    theta: Floats


class Snapshots:
    """An observer that copies the parameters at intervals, excluding the copying from its clock."""

    def __init__(self) -> None:
        self.taken: list[Snapshot] = []
        self._next = 0.0
        self._spent = 0.0
        self._started, self._cpu = perf_counter(), process_time()

    def on_event(self, event: Event, growth: SearchState) -> None:
        """Copy the parameters if an interval has passed."""
        now = perf_counter()
        seconds = now - self._started - self._spent
        if event.kind in ("start", "end") or seconds >= self._next:
            layout, theta = growth.graph.layout, growth.theta()
            self.taken.append(Snapshot(seconds, process_time() - self._cpu, event, layout, theta))
            self._next = max(seconds * _SPACING, seconds + _MIN_INTERVAL)
        self._spent += perf_counter() - now


def synthetic(cell: TimedSearch, n_jobs: int) -> Case:
    """Return the generated data of a cell."""
    return scale_free(Network(cell.n_variables, cell.n_rows, cell.seed), n_jobs)


def run_search(cell: TimedSearch, case: Case, n_jobs: int) -> list[Row]:
    """Run a search and return one row per snapshot; the last row also states how it ended."""
    warm_up(cell.version, cell.method, cell.priority, bool(case.train.n_missing.any()))
    snapshots, growth = _search(cell, case.train, n_jobs)
    rows = _measure(snapshots, case, n_jobs)
    info = growth.solution.info
    rows[-1] |= {
        "reason": str(growth.reason),
        "cut_off": growth.reason is StopReason.MAX_TIME,
        "converged": bool(info.converged),
        "engine": info.engine,
        "penalty_used": float(growth.penalty.penalty),
        "ridge_used": float(growth.penalty.ridge),
    }
    if cell.certified:
        rows[-1]["n_violating"] = certify(growth).n_violating
    return rows


def _search(
    cell: TimedSearch, table: PackedTable, n_jobs: int
) -> tuple[Sequence[Snapshot], SearchState]:
    used = learner(cell.version, table, n_jobs, cell.penalty, cell.ridge)
    settings = replace(
        with_method(used.settings, cell.method), max_edges=cell.max_edges, max_time=cell.max_time
    )
    if cell.hubs:
        settings = replace(settings, hub_threshold="mean" if cell.hubs == "mean" else None)
    if cell.priority == "uniform":
        settings = replace(settings, priority="uniform")
    snapshots = Snapshots()
    growth = grow(used.loss, used.penalty, settings, counts=used.counts, observers=[snapshots])
    if growth.interrupted:
        raise KeyboardInterrupt
    return snapshots.taken, growth


def _measure(snapshots: Sequence[Snapshot], case: Case, n_jobs: int) -> list[Row]:
    loss = Pseudolikelihood(case.test, n_jobs=n_jobs)
    rows: list[Row] = []
    for seconds, cpu_seconds, event, layout, theta in snapshots:
        row: Row = {
            "seconds": round(seconds, 4),
            "cpu_seconds": round(cpu_seconds, 4),
            "n_edges": event.n_edges,
            "n_activations": event.n_activations,
            "n_tests": event.n_tests,
            "n_tables": event.n_tables,
            "objective": event.objective,
            "held_out": loss.evaluate(theta, loss.init(layout)).value,
        }
        if case.truth is not None:
            found = ActiveGraph(layout.states, layout.edges).contains(case.truth)
            row["recall"] = float(found.mean())
        rows.append(row)
    return rows


@cache
def warm_up(version: str, method: str, priority: str = "", missing: bool = False) -> None:
    """Load compiled code by a search like the timed one, on very little data."""
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 3, (_WARM_ROWS, 6))
    codes[:, 1] = codes[:, 0]
    if missing:
        codes[rng.random(codes.shape) < 0.1] = -1
    table = PackedTable.from_codes(codes)
    cell = TimedSearch(version, 5.0, method, 6, _WARM_ROWS, max_edges=6, priority=priority)
    snapshots, _ = _search(cell, table, 1)
    _measure(snapshots, Case(table, table), 1)


def last_rows(rows: Sequence[Row]) -> list[Row]:
    """Return the last row of every trajectory."""
    return [row for row in rows if "reason" in row]


def outcome(row: Row, measure: str, digits: int) -> str:
    """Return a measure at the end of a search, its seconds, and its edges if it was cut off.

    Examples
    --------
    >>> row = {"seconds": 2.04, "recall": 0.5, "cut_off": True, "n_edges": 40}
    >>> outcome(row, "recall", 2)
    '0.50 (2.0 s, cut off at 40 edges)'
    """
    ended = f", cut off at {row['n_edges']:,} edges" if row["cut_off"] else ""
    return f"{row[measure]:,.{digits}f} ({row['seconds']:.1f} s{ended})"
