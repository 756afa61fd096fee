"""The cells of a block of rows on a device, as zeros and ones of states.

Variables are put in the order of their numbers of states, so that those of the same number are
neighbours: the conditionals of all of them are one operation.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from edgegraft.core.types import Edges, Integers
from edgegraft.device.device import Device, Tensor, slices, torch_module
from edgegraft.table.blocks import TableRows

_ALL = slice(None)
#: Rows up to which sums of ones are exact in single precision, which has 24 binary digits.
EXACT_ROWS = 1 << 24


class Group(NamedTuple):
    """Variables with the same number of states, in a row."""

    states: int
    first: int  # state of the first of them, among all states
    n: int

    @property
    def rows(self) -> slice:
        """Their states."""
        return slice(self.first, self.first + self.n * self.states)

    def of(self, values: Tensor) -> Tensor:
        """Return their part of an array with a row per state, one table per variable."""
        return values[self.rows].view(self.n, self.states, *values.shape[1:])


class Placement:
    """Variables in the order of their kinds, and within them of their numbers of states."""

    def __init__(self, states: Integers, kinds: Integers) -> None:
        self.order = order = np.lexsort((states, kinds))
        sizes = states[order]
        starts = np.concatenate(([0], np.cumsum(sizes)))
        self.n_states = int(starts[-1])
        self.start = np.empty(len(states), np.int64)  # of each variable among all states
        self.start[order] = starts[:-1]
        new = np.flatnonzero((np.diff(sizes) != 0) | (np.diff(kinds[order]) != 0)) + 1
        self.groups = [
            Group(int(sizes[a]), int(starts[a]), b - a)
            for a, b in pairwise([0, *new.tolist(), len(order)])
            if b > a and sizes[a]
        ]

    def places(self, node_offset: Integers) -> Integers:
        """Return where the states of the variables, in the table's order, are among all states."""
        sizes = np.diff(node_offset)
        within = np.arange(node_offset[-1]) - np.repeat(node_offset[:-1], sizes)
        return np.asarray(np.repeat(self.start, sizes) + within)


class Step(NamedTuple):
    """Some of the rows."""

    shown: Tensor  # (states, rows): 1 where a variable is in a state
    weights: Tensor | None  # (rows,)


class DeviceColumns(Placement):
    """The cells of a block on a device."""

    def __init__(self, block: TableRows, device: Device) -> None:
        table, states = block.table, np.asarray(block.schema.n_states)
        super().__init__(states, np.zeros_like(states))
        self.device, self.n_rows = device, table.n_rows
        device.check(table.n_rows * (len(states) + 8.0), "the table")
        self.codes = device.put(table.cells[self.order, : table.n_rows])  # in the order `order`
        self.complete = not table.n_missing.any()
        self.weights = None if block.weights is None else device.put(np.asarray(block.weights))
        owner = np.repeat(np.arange(len(states)), states[self.order])
        self.owner = device.put(owner)  # of each state, in the order `order`
        self._state = device.put(np.arange(self.n_states) - self.start[self.order][owner])[:, None]
        self._sizes, self._starts = device.put(states), device.put(self.start)
        self._kept: Tensor = None

    def shown(self, dtype: Any, states: slice = _ALL, rows: slice = _ALL) -> Tensor:
        """Return zeros and ones of some states in some rows."""
        codes = self.codes[:, rows].index_select(0, self.owner[states])
        return (codes == self._state[states]).to(dtype)

    def steps(self, dtype: Any, most: int = EXACT_ROWS) -> Iterator[Step]:
        """Yield all rows, as many at a time as fit the memory, and `most`; one step is kept."""
        wide = self.n_states * dtype.itemsize
        fitting = min(most, self.device.at_once // wide)
        whole = self.n_rows <= fitting
        for rows in slices(0, self.n_rows, fitting):
            shown = self._kept if whole else None
            if shown is None or shown.dtype != dtype:
                shown = self.shown(dtype, rows=rows)
                self._kept = shown if whole else None
            weights = None if self.weights is None else self.weights[rows].to(dtype)
            yield Step(shown, weights)

    def cells(self, edges: Edges) -> Tensor:
        """Return where the tables of pairs are in a matrix of all states, cell after cell."""
        torch = torch_module()
        i, j = self.device.put(edges.T)
        wide = self._sizes[j]
        sizes = self._sizes[i] * wide
        pair = torch.repeat_interleave(sizes)
        cell = torch.arange(len(pair), device=pair.device) - (sizes.cumsum(0) - sizes)[pair]
        row = self._starts[i][pair] + cell // wide[pair]
        return row * self.n_states + self._starts[j][pair] + cell % wide[pair]


def columns_on(device: Device, block: TableRows) -> DeviceColumns:
    """Return a block's cells on a device; they stay there while the block does."""
    return block.derive(device, lambda rows: DeviceColumns(rows, device))
