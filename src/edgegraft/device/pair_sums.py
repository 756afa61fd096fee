"""Sums over rows of products of two arrays with a row per state, for pairs of variables; counts.

    sums_ij(a, b) = sum_r left_i(a, r) right_j(b, r)

Few pairs are small products of their own, many of the same shape at a time. Of many pairs, or few
states, the product of the whole arrays costs less, and pairs are read off it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edgegraft.core.pairs import table_offsets
from edgegraft.core.types import Edges, Floats, Integers
from edgegraft.device.columns import DeviceColumns, columns_on
from edgegraft.device.device import Tensor, half_product, slices, to_host, torch_module
from edgegraft.table.blocks import TableRows

DENSE_STATES = 1024
"""States of all variables up to which the products of all pairs are computed."""

_MAX_STATES = 1 << 14  # of a product of all pairs: a gigabyte in single precision
_FLOPS_PER_BYTE = 15.0  # of a GPU: products of whole arrays against reading rows of pairs
_SHARE = 16  # of the free memory that the rows of a batch of pairs may take
EXACT_ROWS = 1 << 24  # up to which sums of ones are exact in single precision


def worth_all(columns: DeviceColumns, edges: Edges, states: Integers) -> bool:
    """Return whether the product of the whole arrays costs less than those of some pairs."""
    n_states = columns.n_states
    if n_states <= DENSE_STATES:
        return True
    read = 4.0 * 2.0 * float(states[edges].sum())
    return n_states <= _MAX_STATES and 2.0 * n_states**2 <= _FLOPS_PER_BYTE * read


class PairTablesOnDevice:
    """Tables of pairs in any orientation, added up over steps.

    With `both`, the products of the two arrays in the other order are added.
    """

    def __init__(
        self, columns: DeviceColumns, edges: Edges, states: Integers, *, both: bool
    ) -> None:
        self._columns, self._both = columns, both
        self._offsets = table_offsets(states[edges])
        self._parts = [
            (chosen, shape, _rows_of(columns, edges[chosen, 0], shape[0]),
             _rows_of(columns, edges[chosen, 1], shape[1]))
            for chosen, shape in _by_shape(states[edges])
        ]  # fmt: skip
        self._sums: list[Tensor] = []

    def add(self, left: Tensor, right: Tensor) -> None:
        """Add the products over the rows of a step."""
        found = [
            torch_module().cat(list(self._products(rows, columns, left, right)))
            for _, _, rows, columns in self._parts
        ]
        self._gain(found)

    def read(self, whole: Tensor) -> None:
        """Add the products of pairs out of those of the whole arrays."""
        found = []
        for _, _, rows, columns in self._parts:
            part = whole[rows[:, :, None], columns[:, None, :]]
            if self._both:
                part = part + whole[columns[:, None, :], rows[:, :, None]]
            found.append(part)
        self._gain(found)

    def tables(self) -> Floats:
        """Return the sums, table after table, in the order of the pairs."""
        if not self._parts:
            return np.zeros(0)
        if len(self._parts) == 1:
            return to_host(self._sums[0]).reshape(-1)
        out = np.empty(int(self._offsets[-1]))
        for (chosen, (tall, wide), _, _), sums in zip(self._parts, self._sums, strict=True):
            at = self._offsets[chosen][:, None] + np.arange(tall * wide)
            out[at] = to_host(sums).reshape(len(chosen), -1)
        return out

    def _gain(self, found: list[Tensor]) -> None:
        if not self._sums:
            self._sums = [part.double() for part in found]
            return
        for sums, part in zip(self._sums, found, strict=True):
            sums += part

    def _products(
        self, rows: Tensor, columns: Tensor, left: Tensor, right: Tensor
    ) -> Iterator[Tensor]:
        torch = torch_module()
        each = 4 * (rows.shape[1] + columns.shape[1]) * left.shape[1] * left.element_size()
        for some in slices(0, len(rows), self._columns.device.free_bytes // _SHARE // each):
            i, j = rows[some], columns[some]
            found = torch.bmm(left[i], right[j].transpose(1, 2))
            if self._both:
                found += torch.bmm(right[i], left[j].transpose(1, 2))
            yield found


def _by_shape(shapes: Integers) -> list[tuple[Integers, tuple[int, int]]]:
    """Return the pairs whose tables have the same shape, and the shape."""
    found, which = np.unique(shapes, axis=0, return_inverse=True)
    return [
        (np.flatnonzero(which.reshape(-1) == k), (int(tall), int(wide)))
        for k, (tall, wide) in enumerate(found)
    ]


def _rows_of(columns: DeviceColumns, variables: Integers, n_states: int) -> Tensor:
    """Return where the states of each of the variables are among all states."""
    first = columns.device.put(columns.start[variables])
    return first[:, None] + torch_module().arange(n_states, device=first.device)


def count_on_device(block: TableRows, edges: Edges) -> NDArray[Any]:
    """Return the tables of a block's rows, one after another."""
    exact = block.weights is None and block.table.n_rows <= EXACT_ROWS
    columns = columns_on(block, np.float32 if exact else np.float64)
    states = block.schema.n_states
    out = PairTablesOnDevice(columns, edges, states, both=False)
    if worth_all(columns, edges, states):
        out.read(block.derive("all pairs", lambda _: _all_pairs(columns)))
    else:
        for step in columns.steps():
            out.add(_weighted(step.shown, step.weights), step.shown)
    tables = out.tables()
    return np.rint(tables).astype(np.int64) if block.weights is None else tables


def _all_pairs(columns: DeviceColumns) -> Any:
    """Return the counts of all pairs of states.

    Without weights they are exact in half precision with sums in single precision, as GPUs have it.
    """
    torch = torch_module()
    plain = columns.weights is None and columns.device.is_gpu
    dtype = torch.bfloat16 if plain else torch.float64
    total = None
    for rows in columns.row_slices(dtype.itemsize):
        for part in slices(rows.start, rows.stop, EXACT_ROWS):
            shown = columns.show(part, dtype)
            weights = None if columns.weights is None else columns.weights[part]
            left = _weighted(shown, weights)
            product = half_product(left, shown) if plain else left @ shown.T
            total = product.double() if total is None else total + product
    return total


def _weighted(shown: Any, weights: Any) -> Any:
    return shown if weights is None else shown * weights
