"""The cells of a block of rows on a device, as zeros and ones of states.

Variables are put in the order of their numbers of states, so that those with as many are together:
the conditionals of all of them are one operation.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from edgegraft.core.types import Floats, Integers
from edgegraft.device.device import Device, Tensor, slices, to_host, torch_module
from edgegraft.table.blocks import TableRows

_SHARE = 8  # of the free memory that one array of a step may take
_KEPT = 4  # share of it that zeros and ones may take between steps


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
        self.start = np.empty(len(states), np.int64)  # of each variable among all states
        self.start[order] = starts[:-1]
        new = np.flatnonzero((np.diff(sizes) != 0) | (np.diff(kinds[order]) != 0)) + 1
        self.groups = [
            Group(int(sizes[a]), int(starts[a]), b - a)
            for a, b in pairwise([0, *new.tolist(), len(order)])
            if b > a and sizes[a]
        ]

    def places(self, node_offset: Integers) -> Integers:
        """Return where the states of the variables, in their own order, are among all states."""
        sizes = np.diff(node_offset)
        within = np.arange(node_offset[-1]) - np.repeat(node_offset[:-1], sizes)
        return np.asarray(np.repeat(self.start, sizes) + within)


class Step(NamedTuple):
    """Some of the rows."""

    shown: Tensor  # (states, rows): 1 where a variable is in a state
    weights: Tensor | None  # (rows,)


class DeviceColumns(Placement):
    """The cells of a block on a device; `dtype` is that of what is computed from them."""

    def __init__(self, block: TableRows, device: Device, dtype: type[np.floating]) -> None:
        torch = torch_module()
        table, states = block.table, np.asarray(block.schema.n_states)
        self.device, self.n_rows = device, table.n_rows
        self.dtype = torch.float32 if dtype == np.float32 else torch.float64
        self._size = np.dtype(dtype).itemsize
        super().__init__(states, np.zeros_like(states))
        device.check(table.n_rows * (len(states) + self._size), "the table")
        self.codes = device.put(table.cells[self.order, : table.n_rows])  # in the order `order`
        self.complete = not table.n_missing.any()
        self.weights = (
            None if block.weights is None else device.put(np.asarray(block.weights, dtype))
        )
        self.n_states = int(states.sum())
        owner = np.repeat(np.arange(len(states)), states[self.order])
        self._owner = device.put(owner)
        state = np.arange(self.n_states) - self.start[self.order][owner]
        self._state = device.put(state)[:, None]
        first = np.cumsum([0, *(group.n for group in self.groups)]).tolist()
        self.first_of = dict(zip(self.groups, first, strict=False))  # place of its first variable
        self._kept: Tensor = None

    def in_order(self, values: Tensor) -> Floats:
        """Return values of the variables in their own order."""
        out = np.empty(len(self.order))
        out[self.order] = to_host(values)
        return out

    def steps(self) -> Iterator[Step]:
        """Yield all rows, as many at a time as fit the memory."""
        if self._keep():
            yield Step(self._kept, self.weights)
            return
        for rows in self.row_slices(self._size):
            weights = None if self.weights is None else self.weights[rows]
            yield Step(self._show(rows, self.dtype), weights)

    @property
    def whole(self) -> bool:
        """Whether all rows are one step."""
        return self._kept is not None

    def row_slices(self, size: int) -> list[slice]:
        """Return the rows in slices whose zeros and ones, of `size` bytes each, fit the memory."""
        fitting = self.device.free_bytes // _SHARE // (self.n_states * size)
        return slices(0, self.n_rows, fitting)

    def show(self, rows: slice, dtype: Any) -> Tensor:
        """Return the zeros and ones of some rows."""
        if self._kept is not None and dtype == self.dtype:
            return self._kept[:, rows]
        return self._show(rows, dtype)

    def show_states(self, states: slice) -> Tensor:
        """Return the zeros and ones of some states in half precision, over all rows."""
        codes = self.codes.index_select(0, self._owner[states])
        return (codes == self._state[states]).to(torch_module().bfloat16)

    @cached_property
    def shares(self) -> Tensor:
        """The share of the rows that each state has, in single precision."""
        torch = torch_module()
        at_once = self.device.free_bytes // _SHARE // (4 * self.n_rows)
        parts = [
            self.show_states(states).sum(1, dtype=torch.float64)
            for states in slices(0, self.n_states, at_once)
        ]
        return (torch.cat(parts) / self.n_rows).float()

    def _keep(self) -> bool:
        """Keep the zeros and ones of all rows, if they fit; return whether they do."""
        if self._kept is None and self._fits():
            self._kept = self._show(slice(0, self.n_rows), self.dtype)
        return self._kept is not None

    def _show(self, rows: slice, dtype: Any) -> Tensor:
        codes = self.codes[:, rows].index_select(0, self._owner)
        return (codes == self._state).to(dtype)

    def _fits(self) -> bool:
        return self.n_states * self.n_rows * self._size <= self.device.free_bytes // _KEPT


def columns_on(block: TableRows, dtype: type[np.floating]) -> DeviceColumns:
    """Return a block's cells on its device; they stay there while the block does."""
    device = block.device
    assert device is not None
    return block.derive((device, dtype), lambda given: DeviceColumns(given, device, dtype))
