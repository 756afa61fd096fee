"""Sums over rows of products of two arrays with a row per state, for pairs of variables.

    sums_ij(a, b) = sum_r left_i(a, r) right_j(b, r)

Few pairs are small products of their own, many of the same shape at a time. Of many pairs, or few
states, the product of the whole arrays costs less, and pairs are read off it.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from edgegraft.core.pairs import table_offsets
from edgegraft.core.types import Edges, Floats, Integers
from edgegraft.device.columns import DeviceColumns, to_host
from edgegraft.device.device import Tensor, torch_module

DENSE_STATES = 1024
"""States of all variables up to which the products of all pairs are computed."""

_MAX_STATES = 1 << 14  # of a product of all pairs: a gigabyte in single precision
_FLOPS_PER_BYTE = 15.0  # of a GPU: products of whole arrays against reading rows of pairs
_SHARE = 16  # of the free memory that the rows of a batch of pairs may take


def worth_all(columns: DeviceColumns, edges: Edges, states: Integers) -> bool:
    """Return whether the product of the whole arrays costs less than those of some pairs."""
    n_states = columns.n_states
    if n_states <= DENSE_STATES:
        return True
    read = 4.0 * 2.0 * float(states[edges].sum())
    return n_states <= _MAX_STATES and 2.0 * n_states**2 <= _FLOPS_PER_BYTE * read


class PairTablesOnDevice:
    """Tables of pairs, added up over steps.

    Parameters
    ----------
    columns : DeviceColumns
    edges : array of int, shape (m, 2)
        In any orientation.
    states : array of int, shape (n,)
    both : bool
        Whether to add the products of the two arrays in the other order.
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
        at_once = max(1, self._columns.device.free_bytes // _SHARE // each)
        for first in range(0, len(rows), at_once):
            i, j = rows[first : first + at_once], columns[first : first + at_once]
            found = torch.bmm(left[i], right[j].transpose(1, 2))
            if self._both:
                found += torch.bmm(right[i], left[j].transpose(1, 2))
            yield found


def _by_shape(shapes: Integers) -> list[tuple[Integers, tuple[int, int]]]:
    """Return the pairs whose tables have the same shape, and the shape."""
    if not len(shapes):
        return []
    found, which = np.unique(shapes, axis=0, return_inverse=True)
    if len(found) == 1:
        return [(np.arange(len(shapes)), (int(found[0, 0]), int(found[0, 1])))]
    return [
        (np.flatnonzero(which.reshape(-1) == k), (int(tall), int(wide)))
        for k, (tall, wide) in enumerate(found)
    ]


def _rows_of(columns: DeviceColumns, variables: Integers, n_states: int) -> Tensor:
    """Return where the states of each of the variables are among all states."""
    first = columns.device.put(columns.start[variables])
    return first[:, None] + torch_module().arange(n_states, device=first.device)
